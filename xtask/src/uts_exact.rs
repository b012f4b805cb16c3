//! `cargo xtask uts-exact`: every tree with every algorithm of uts.

use std::path::PathBuf;

use crate::job::{command, last_lines, run, succeed};
use crate::setup::{Library, build_quick, directory};
use crate::steps::{Error, Steps};

/// Check that uts finds every tree whole.
///
/// T1 to T5 with each algorithm and termination on 1, 2, 7 and 64 ranks of 2 PEs, still and with all ranks moved every
/// ms, on one node and on two; T1L, T2L, T3L with the defaults of each algorithm. Goes on after a job that fails, and
/// reports at the end which have.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// A job that takes longer has failed
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    limit: u64,
    /// The PEs are processes of this library; the program has the feature `mpi`
    #[arg(long, value_name = "LIBRARY")]
    mpi: Option<Library>,
    /// Other trees than T1 to T5, in one word, and none of the large ones
    #[arg(long, value_name = "NAMES")]
    trees: Option<String>,
    /// Where uts is [default: it is built, with the profile quick]
    #[arg(long, value_name = "DIRECTORY", value_parser = directory)]
    programs: Option<PathBuf>,
}

/// Each algorithm with the terminations that it can have.
const PAIRS: &str = "steal:dijkstra-scholten steal:token steal:counting steal:quiescence
    steal-2007:token steal-2007:dijkstra-scholten steal-2007:counting steal-2007:quiescence
    share:counting hierarchical:counting shared-2006:counting static:quiescence";

const ALGORITHMS: [&str; 6] =
    ["steal", "steal-2007", "share", "hierarchical", "shared-2006", "static"];

/// The jobs of the check.
struct Jobs<'a> {
    args: &'a Args,
    programs: PathBuf,
    count: u32,
    failed: String,
}

/// Runs the jobs.
pub(crate) fn check(args: &Args, steps: &mut Steps) -> Result<(), Error> {
    if let Some(library) = args.mpi {
        library.need(steps)?;
    }
    let programs = match (&args.programs, args.mpi) {
        (Some(programs), _) => programs.clone(),
        (None, None) => build_quick(steps, "-p uts")?,
        (None, Some(library)) => {
            steps.begin("programs");
            succeed(&library.build("--profile quick --bins -p uts --features uts/mpi"))?;
            library.target().join("quick")
        }
    };
    if !programs.join("uts").is_file() {
        return Err(Error::Usage(format!("{}: there is no program uts", programs.display())));
    }
    let mut jobs = Jobs { args, programs, count: 0, failed: String::new() };
    for (algorithm, termination) in PAIRS.split_whitespace().filter_map(|it| it.split_once(':')) {
        steps.begin(&format!("{algorithm}, {termination}"));
        for tree in args.trees.as_deref().unwrap_or("T1 T2 T3 T4 T5").split_whitespace() {
            let of = format!("--tree {tree} --algorithm {algorithm} --termination {termination}");
            // The manager of share searches nothing.
            let ranks = [1, 2, 7, 64].into_iter().filter(|&it| algorithm != "share" || it > 1);
            for ranks in ranks {
                for moves in ["", "--lb random --lb-period 1ms"] {
                    for more in ["", "--node-size 1", "--ask at-once"] {
                        if ranks > 2 || more != "--ask at-once" {
                            jobs.run(steps, &format!("{of} --ranks {ranks} {moves} {more}"))?;
                        }
                    }
                }
            }
        }
    }
    for tree in ["T1L", "T2L", "T3L"].into_iter().filter(|_| args.trees.is_none()) {
        steps.begin(tree);
        for algorithm in ALGORITHMS {
            jobs.run(steps, &format!("--tree {tree} --algorithm {algorithm} --ranks 2"))?;
        }
    }
    let Jobs { count, failed, .. } = jobs;
    match failed.lines().count() {
        0 => steps.close(&format!("{count} jobs are exact after {} s", steps.seconds())),
        wrong => steps.fail(format!("{wrong} of {count} jobs{failed}")),
    }
}

impl Jobs<'_> {
    /// Runs a job on 2 PEs, which has to say ok.
    fn run(&mut self, steps: &Steps, options: &str) -> Result<(), Error> {
        let uts = format!("{}/uts --no-progress {options}", self.programs.display());
        let command = match self.args.mpi {
            None => command(&format!("{uts} --pes 2")),
            Some(library) => library.launch("-n 2", &command(&uts)),
        };
        let job = run(self.args.limit, &command)?;
        self.count += 1;
        if let Some(fault) = job.fault() {
            steps.say(&format!("   {fault}: {}{}", job.line, last_lines(&job)));
            self.failed += &format!("\n   {fault}: {}", job.line);
        }
        Ok(())
    }
}
