//! `vrtrun top`: what a running job does, on a terminal.
//!
//! | file | subject |
//! |---|---|
//! | `main` | chooses the job; polls it; handles keys |
//! | `order` | the order in which ranks are shown |
//! | `screen` | the terminal |
//! | `print` | one table, without a terminal |

mod order;
mod print;
mod screen;

use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{CommandFactory, Parser};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use vrt_launch::monitor::{Connection, LookError, RunningJob, Snapshot, running_jobs};

use order::Order;
use screen::Screen;

/// Shows what a running job does: PEs, ranks, messages, moves
///
/// On a terminal the display is refreshed; q quits, and r, p, l, m, s, v, w sort ranks by number, PE, load, memory,
/// messages a second, moves, and the call they wait in. Without a terminal, one table is printed, for the time between
/// two snapshots.
///
/// Only jobs of this user on this machine can be shown; of a job that mpirun has started, the PEs of this machine.
#[derive(Debug, Parser)]
#[command(name = "vrtrun top", bin_name = "vrtrun top", version, max_term_width = 100)]
struct Options {
    /// The job's process: that of the program, or of vrtrun, which became it [default: the only running job]
    #[arg(value_name = "JOB", value_parser = process)]
    job: Option<u32>,

    /// Print one table even on a terminal
    #[arg(long)]
    once: bool,

    /// Print all of it once, as JSON
    #[arg(long)]
    json: bool,

    /// Seconds between two snapshots
    #[arg(long, default_value_t = 1.0, value_name = "SECONDS", value_parser = seconds)]
    every: f64,

    /// The order in which ranks are shown
    #[arg(long, value_enum, default_value_t = Order::Load)]
    sort: Order,
}

fn process(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| "the number of a process is allowed".to_owned())
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.1..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("a number of seconds from 0.1 to 3600 is allowed".to_owned()),
    }
}

/// Why nothing can be shown.
#[derive(Debug, thiserror::Error)]
enum TopError {
    #[error("no job of yours runs on this machine")]
    NoJob,
    #[error("several jobs run; say which:\n{}", list(.0))]
    Several(Vec<RunningJob>),
    #[error(transparent)]
    Look(#[from] LookError),
    #[error("the terminal: {0}")]
    Terminal(#[from] std::io::Error),
}

fn list(jobs: &[RunningJob]) -> String {
    let lines: Vec<_> =
        jobs.iter().map(|job| format!("  {:>7}  {}", job.process, job.command)).collect();
    lines.join("\n")
}

fn main() -> ExitCode {
    vrt_cli::print_if_asked(Options::command);
    let options = Options::parse();
    match top(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("vrtrun top: {error}");
            ExitCode::FAILURE
        }
    }
}

fn top(options: &Options) -> Result<(), TopError> {
    let process = match options.job {
        Some(process) => process,
        None => the_only_job()?,
    };
    let mut job = Connection::to(process)?;
    let first = job.look()?;
    let is_terminal = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
    if options.once || options.json || !is_terminal {
        std::thread::sleep(Duration::from_secs_f64(options.every));
        // Parts of the time are those since the first look, from which on they are measured.
        let shot = match job.look() {
            Err(LookError::Over) => first,
            again => again?,
        };
        match options.json {
            true => println!("{}", shot.json()),
            false => print::table(&shot, options.sort),
        }
        return Ok(());
    }
    let mut terminal = ratatui::try_init()?;
    let ended = watch(&mut terminal, &mut job, first, options);
    ratatui::try_restore()?;
    match ended {
        Err(TopError::Look(LookError::Over)) => {
            println!("the job is over");
            Ok(())
        }
        ended => ended,
    }
}

fn the_only_job() -> Result<u32, TopError> {
    let jobs = running_jobs();
    match &jobs[..] {
        [] => Err(TopError::NoJob),
        [job] => Ok(job.process),
        _ => Err(TopError::Several(jobs)),
    }
}

/// Refreshes the display until a key ends it, or the job ends.
fn watch(
    terminal: &mut DefaultTerminal,
    job: &mut Connection,
    first: Snapshot,
    options: &Options,
) -> Result<(), TopError> {
    let every = Duration::from_secs_f64(options.every);
    let mut screen = Screen::new(first, options.sort);
    let mut next = Instant::now() + every;
    loop {
        terminal.draw(|frame| screen.draw(frame))?;
        if event::poll(next.saturating_duration_since(Instant::now()))? {
            if let Event::Key(key) = event::read()?
                && key.kind == KeyEventKind::Press
            {
                let interrupt = key.modifiers.contains(KeyModifiers::CONTROL);
                match key.code {
                    KeyCode::Char('q') | KeyCode::Esc => return Ok(()),
                    KeyCode::Char('c') if interrupt => return Ok(()),
                    KeyCode::Char(letter) => screen.sort(letter),
                    KeyCode::Down => screen.scroll(1),
                    KeyCode::Up => screen.scroll(-1),
                    KeyCode::PageDown => screen.scroll(20),
                    KeyCode::PageUp => screen.scroll(-20),
                    _ => {}
                }
            }
        } else {
            screen.see(job.look()?);
            next = Instant::now() + every;
        }
    }
}
