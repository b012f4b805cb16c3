//! `vrtrun doctor`: what this machine allows, what that means for jobs, and how to change it.
//!
//! | file | subject |
//! |---|---|
//! | `main` | the report |
//! | `checks` | what is examined, and what each result means |
//! | `probe` | queries to the system |

mod checks;
mod probe;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use serde_json::json;

use checks::{Finding, State};

/// Examines this machine: what it allows, what that means for jobs, and how to change it
///
/// The exit status is 1 if jobs cannot run here, otherwise 0. This command changes nothing, and jobs start the same way
/// afterwards.
#[derive(Debug, Parser)]
#[command(name = "vrtrun doctor", bin_name = "vrtrun doctor", version, max_term_width = 100)]
struct Options {
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    vrt_cli::print_if_asked(Options::command);
    let options = Options::parse();
    let findings = checks::all();
    if options.json {
        println!("{}", as_json(&findings));
    } else {
        print(&findings);
    }
    ExitCode::from(u8::from(findings.iter().any(|it| it.state == State::Bad)))
}

fn as_json(findings: &[Finding]) -> serde_json::Value {
    let one = |it: &Finding| {
        json!({
            "subject": it.subject,
            "state": it.state.name(),
            "found": it.found,
            "consequence": it.consequence,
            "remedy": it.remedy,
        })
    };
    findings.iter().map(one).collect()
}

fn print(findings: &[Finding]) {
    for finding in findings {
        println!("{:<8} {:<22} {}", finding.state.name(), finding.subject, finding.found);
        for (label, text) in [("so", &finding.consequence), ("remedy", &finding.remedy)] {
            if let Some(text) = text {
                for (at, line) in text.lines().enumerate() {
                    let label = if at == 0 { format!("{label}: ") } else { String::new() };
                    println!("{:31} {label}{line}", "");
                }
            }
        }
    }
    let count = |state| findings.iter().filter(|it| it.state == state).count();
    let (limited, bad) = (count(State::Limited), count(State::Bad));
    let plural = |n: usize| if n == 1 { "" } else { "s" };
    println!();
    match (limited, bad) {
        (0, 0) => println!("Jobs run here without restrictions."),
        (n, 0) => println!("Jobs run here, with {n} restriction{}.", plural(n)),
        (_, n) => println!("Jobs cannot run here: {n} problem{}.", plural(n)),
    }
}
