//! `uts costs`: the cost of the parts of a search on this machine.

use clap::Args;
use std::{io::Write, process::ExitCode};
use uts::{
    costs::{self, Measured},
    lanes::Kernel,
};

/// Measures the cost of the parts of a search between ranks 0 and 1: an empty poll, messages, refused and granted
/// steals, and one-sided ones. The ranks are on two PEs by default; on one with --pes 1; on two nodes with --node-size
/// 1, or as MPI processes.
#[derive(Args, Clone, Debug)]
pub(crate) struct CostsOptions {
    /// Print a CSV table: a line of names and a line of nanoseconds
    #[arg(long)]
    csv: bool,

    /// Options of the runtime.
    #[command(flatten)]
    vrt: mpi::Config,
}

/// Measures, and prints a table.
pub(crate) fn run(options: &CostsOptions) -> ExitCode {
    if options.vrt.ranks() < 2 {
        eprintln!("uts: costs between {} ranks: allowed are 2 or more", options.vrt.ranks());
        return ExitCode::from(crate::USAGE);
    }
    let csv = options.csv;
    mpi::launch(options.vrt.clone(), move || {
        let Some(universe) = mpi::initialize() else {
            eprintln!("uts: the runtime was initialized before");
            return ExitCode::FAILURE;
        };
        let Some(measured) = costs::measure(&universe.world(), Kernel::fastest()) else {
            return ExitCode::SUCCESS;
        };
        let text = if csv { table(&measured) } else { Ok(lines(&measured)) };
        let written = text.and_then(|it| Ok(std::io::stdout().lock().write_all(it.as_bytes())?));
        if let Err(error) = written {
            eprintln!("uts: the costs cannot be written: {error}");
            return ExitCode::FAILURE;
        }
        ExitCode::SUCCESS
    })
}

fn lines(measured: &Measured) -> String {
    let (pes, kernel) = (mpi::environment::pes(), Kernel::fastest().name());
    let mut text = format!("ranks 0 and 1, {pes} PEs, kernel {kernel}; nanoseconds\n");
    for (what, time) in measured.lines() {
        text += &format!("{what:<40}{time:>12.2}\n");
    }
    text + "ok\n"
}

fn table(measured: &Measured) -> Result<String, csv::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.serialize(measured)?;
    let bytes = writer.into_inner().map_err(|it| it.into_error())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
