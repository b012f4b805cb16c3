//! The program `lb-sim`: runs load-balancing strategies side by side, on recorded or generated
//! loads, and shows what each would do.

mod draw;
mod input;
mod measure;
mod options;
mod page;
mod replays;
mod report;
mod traces;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use options::{Failure, Options, Output, Request};

fn main() -> ExitCode {
    vrt_cli::print_if_asked(Options::command);
    let mut words: Vec<_> = std::env::args_os().collect();
    if words.get(1).is_some_and(|word| word == "replay") {
        words[1] = "--replay".into();
    }
    let options = Options::parse_from(words);
    match run(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("lb-sim: {failure}");
            ExitCode::from(failure.status())
        }
    }
}

fn run(options: Options) -> Result<(), Failure> {
    match options.request()? {
        Request::List => print(&report::list()),
        Request::Table => print(&report::case_table()?),
        Request::Replay { files, cut, balancers, every, output, html } => {
            let phases = input::phases_of(&files, cut)?;
            let results = replays::run(&phases, balancers, &every)?;
            if let Some(path) = html {
                page::write(&path, &phases, &results)?;
            }
            print(&match output {
                Output::Text => replays::text(&phases, &results),
                Output::Json => replays::json(&results),
            })
        }
        Request::Compare { source, balancers, seed, output, svg, save } => {
            let input = input::model(&source)?;
            if let Some(directory) = save {
                input::save(&input.model, &directory)?;
            }
            let today = measure::today(&input.model);
            let results: Vec<_> =
                balancers.iter().map(|it| measure::run(it, &input.model, seed)).collect();
            if let Some(path) = svg {
                draw::write(&path, &input, &results)?;
            }
            print(&match output {
                Output::Text => report::text(&input, &today, &results),
                Output::Json => report::json(&input, &today, &results),
            })
        }
    }
}

/// Prints; a reader that closes the pipe early is not an error.
fn print(text: &str) -> Result<(), Failure> {
    use std::io::{ErrorKind, Write};
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::Print(error)),
        _ => Ok(()),
    }
}
