//! `scripts/sweeps`: the figures of ratios of ranks to PEs that docs/ratios.md shows, by `vrtrun sweep`.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use experiments::Progress;

use crate::Error;
use crate::process::{own_directory, run_to_end_within, write_file};

/// Compare ratios of ranks to PEs: of Jacobi with 192^3 cells, of one whose work is uneven, and of a program for the
/// `mpi` crate that knows nothing of vrt (rsmpi/unchanged/burn.rs).
///
/// Takes some minutes; the machine should have nothing else to do. For each, NAME.svg and NAME.txt are written.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Runs of each configuration
    #[arg(long, value_name = "COUNT", default_value_t = 5, value_parser = vrt_cli::positive::<u32>)]
    repeat: u32,
    /// The program for the `mpi` crate; scripts/sweeps passes it
    #[arg(long, value_name = "PROGRAM", hide = true, default_value = "burn")]
    burn: PathBuf,
    /// Where to write the files
    #[arg(value_name = "FOLDER", default_value = "sweeps-results")]
    out: PathBuf,
}

/// Of all runs of a sweep.
const TIME_LIMIT: Duration = Duration::from_secs(3600);

/// Runs the sweeps.
///
/// # Errors
///
/// If one of them fails, or a file cannot be written.
pub fn run(args: &Args) -> Result<(), Error> {
    let programs = own_directory();
    let jacobi = programs.join("rocket-mini");
    let balanced = "--strategies none,greedy-refine --lb-period 50ms";
    let mut progress = Progress::new(true);
    for (name, options, program, line) in [
        ("jacobi-192", "", &jacobi, "jacobi --size 192 --max-iterations 100 --no-verify"),
        (
            "jacobi-uneven",
            balanced,
            &jacobi,
            "jacobi --uneven 0.25:8 --max-iterations 600 --no-verify",
        ),
        ("burn", balanced, &args.burn, "1024 200"),
    ] {
        progress.show(|| name.to_owned());
        let place = tempfile::tempdir();
        let place = place.map_err(|cause| Error::File { path: args.out.clone(), cause })?;
        let mut sweep = Command::new(programs.join("vrtrun"));
        sweep.args(["sweep", "--pes", "2", "--ratios", "1,2,4,8,16,32"]);
        sweep.args(["--repeat", &args.repeat.to_string(), "--metric", r"time +(\S+) s"]);
        sweep.args(["--same", r"checksum +(\S+)", "--out"]).arg(place.path());
        sweep.args(options.split_whitespace()).arg("--").arg(program).args(line.split(' '));
        let said = run_to_end_within(&mut sweep, TIME_LIMIT)?.out;
        progress.clear();
        // Where its files were is of no interest.
        let lines = said.lines().filter(|line| !line.starts_with("files "));
        let said: String = lines.map(|line| format!("{line}\n")).collect();
        println!("{name}\n{said}");
        let figure = args.out.join(format!("{name}.svg"));
        std::fs::create_dir_all(&args.out)
            .and_then(|()| std::fs::copy(place.path().join("sweep.svg"), &figure))
            .map_err(|cause| Error::File { path: figure, cause })?;
        write_file(&args.out.join(format!("{name}.txt")), &said)?;
    }
    Ok(())
}
