//! Small programs in the manner of ordinary ones: threads, pools, statics, locks, tokio, files,
//! regular expressions. Each checks what it computes and prints `ok`, however its ranks are moved.
//!
//! `everyday names` prints the names of the programs, `everyday names-by-state` those whose ranks can be
//! moved by their state.

mod channels;
mod locals;
mod locks;
mod objects;
mod pools;
mod rounds;
mod spans;
mod system;
mod tasks;
mod text;
mod threads;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use clap::builder::PossibleValuesParser;

use rounds::{AsyncProgram, Prepared, Program, Rounds};

#[derive(Clone, Debug, Parser)]
struct Arguments {
    #[command(flatten)]
    vrt: vrt::Config,
    #[arg(value_parser = PossibleValuesParser::new([names(), LISTS.to_vec()].concat()))]
    program: String,
    /// How long its rounds last; there are some anyhow
    #[arg(long, default_value_t = 100)]
    milliseconds: u64,
}

/// Programs of ranks that call and wait.
const PROGRAMS: &[(&str, Program)] = &[
    ("threads", threads::joined_later),
    ("scopes", threads::scoped),
    ("thread-barrier", threads::barrier_of_threads),
    ("channels", channels::of_threads),
    ("mpsc", channels::standard),
    ("queues", channels::queues),
    ("mailboxes", channels::between_ranks),
    ("rayon-collect", pools::collect),
    ("rayon-sort", pools::sort),
    ("rayon-pool", pools::own_pool),
    ("deques", pools::deques),
    ("thread-locals", locals::thread_locals),
    ("tables", locals::tables),
    ("random", locals::random),
    ("seeded", locals::seeded),
    ("static-map", locks::static_map),
    ("guards", locks::guards),
    ("conditions", locks::conditions),
    ("shared-counter", locks::shared_counter),
    ("held-by-thread", locks::held_by_thread),
    ("held-by-working-thread", locks::held_by_working_thread),
    ("output-lock", locks::output_lock),
    ("regex", text::regex),
    ("words", text::words),
    ("json", text::json),
    ("files", system::files),
    ("commands", system::commands),
    ("spans", spans::spans),
    ("graphs", objects::graphs),
    ("prepared", objects::prepared),
    ("shapes", objects::shapes),
    ("fourier", objects::fourier),
    ("panics", objects::panics),
];

/// Programs of async ranks.
const ASYNC_PROGRAMS: &[(&str, AsyncProgram)] = &[
    ("tasks", |world, rounds| Box::pin(tasks::tasks(world, rounds))),
    ("timeouts", |world, rounds| Box::pin(tasks::timeouts(world, rounds))),
    ("tokio-channels", |world, rounds| Box::pin(tasks::channels(world, rounds))),
    ("tokio-files", |world, rounds| Box::pin(tasks::files(world, rounds))),
];

/// What prints names instead.
const LISTS: [&str; 2] = ["names", "names-by-state"];

/// Those that call `migrate`.
const BY_STATE: &[&str] = &[
    "threads",
    "mpsc",
    "rayon-collect",
    "rayon-sort",
    "tables",
    "random",
    "static-map",
    "regex",
    "words",
    "commands",
    "fourier",
    "tasks",
    "timeouts",
];

fn names() -> Vec<&'static str> {
    let programs = PROGRAMS.iter().map(|(name, _)| *name);
    programs.chain(ASYNC_PROGRAMS.iter().map(|(name, _)| *name)).collect()
}

fn main() -> ExitCode {
    let Arguments { vrt, program, milliseconds } = Arguments::parse();
    let time = Duration::from_millis(milliseconds);
    let texts = Arc::new((0..10).map(|i| format!("prepared {i}")).collect::<Vec<String>>());
    let prepared = Prepared { texts, table: (0..100_000).collect() };
    if program == "spans" {
        spans::subscribe();
    }
    if let Some((name, run)) = PROGRAMS.iter().find(|(name, _)| *name == program) {
        return vrt::launch(vrt, move || {
            let world = vrt::initialize().expect("in a rank").world();
            let mut rounds = Rounds::new(&world, time, &prepared);
            run(&world, &mut rounds);
            rounds.end(name);
        });
    }
    if let Some((name, run)) = ASYNC_PROGRAMS.iter().find(|(name, _)| *name == program) {
        return vrt::launch_async(vrt, move || {
            let Prepared { texts, table } = &prepared;
            let prepared = Prepared { texts: Arc::clone(texts), table: Arc::clone(table) };
            async move {
                let world = vrt::initialize().expect("in a rank").world();
                let mut rounds = Rounds::new(&world, time, &prepared);
                run(&world, &mut rounds).await;
                rounds.end_async(name).await;
            }
        });
    }
    let listed = if program == LISTS[0] { names() } else { BY_STATE.to_vec() };
    listed.iter().for_each(|name| println!("{name}"));
    ExitCode::SUCCESS
}
