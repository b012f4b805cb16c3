//! A program that does not become a job: its main thread is the only rank of a world of one.

use std::process::ExitCode;

use vrt::traits::*;

fn main() -> ExitCode {
    let Some(universe) = vrt::initialize() else {
        eprintln!("no world of one");
        return ExitCode::FAILURE;
    };
    let world = universe.world();
    match std::env::args().nth(1).as_deref() {
        Some("ok") => {
            world.barrier();
            println!("rank {} of {}: ok", world.rank(), world.size());
            ExitCode::SUCCESS
        }
        Some("fails") => ExitCode::from(7),
        Some("exit-0") => std::process::exit(0),
        Some("exit-5") => std::process::exit(5),
        Some("abort") => world.abort(9),
        Some("waits-for-ever") => {
            world.this_process().receive::<i32>();
            ExitCode::SUCCESS
        }
        Some("launches") => vrt::launch(vrt::Config::default(), || {}),
        what => {
            eprintln!("unknown: {what:?}");
            ExitCode::from(2)
        }
    }
}
