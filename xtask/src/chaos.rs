//! `cargo xtask chaos`: jobs drawn at random.

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use regex::Captures;

use crate::job::{command, regex, run};
use crate::setup::{build_quick, directory};
use crate::steps::{Error, Steps};

/// Run jobs drawn at random: programs that verify their results, on any number of ranks, PEs and nodes, while ranks are
/// moved in any way.
///
/// Says what each job was, goes on after one that fails, and reports at the end which have.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Begin no further job after this time [default: 10, no limit with --jobs]
    #[arg(long, value_name = "N")]
    minutes: Option<u64>,
    /// Draw this many jobs [default: as many as there is time for]
    #[arg(long, value_name = "N")]
    jobs: Option<u64>,
    /// The seed of the first job; each next one has the next seed, so that --seed S --jobs 1 is the job that was drawn
    /// from S [default: from the clock]
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// A job that takes longer has failed
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    limit: u64,
    /// Where the programs are [default: they are built, with the profile quick]
    #[arg(long, value_name = "DIRECTORY", value_parser = directory)]
    programs: Option<PathBuf>,
}

/// Programs, which have the same chance each. One of the texts in brackets is drawn; `STATE` stands in programs that give
/// their state to `migrate`.
const PROGRAMS: [&str; 17] = [
    "uts --no-progress --tree {T1|T2|T3|T4|T5}",
    "uts --no-progress --tree {T1|T2|T3|T4|T5}",
    JACOBI,
    JACOBI,
    SOAK,
    SOAK,
    "soak --hostile --longest {64|1000|100000|2000000} --seconds {1|2} --seed SEED",
    "exchange --rounds 1 --largest {1000|100000} {|--asynchronous}",
    "sparse-mini bfs --searches 3 --graph {balanced|kronecker} --scale 10",
    "sparse-mini cg --matrix {laplace2d:40|laplace3d:12|box3d:8}",
    "sparse-mini nbody --bodies 500 --steps 10 --cut {work|bodies|volume}",
    "windows --rounds ROUNDS --long {100|20000} {|--asynchronous}",
    MIGRATE,
    MIGRATE,
    "collectives --counts COUNTS",
    "statics --rounds 100",
    "migrate_comms --rounds 30",
];
const JACOBI: &str = "rocket-mini jacobi --no-progress --max-iterations 60 --size SIZE \
    {|--uneven 0.25:8} {|--migrate-every 1|--migrate-every 10} STATE";
const SOAK: &str = "soak --longest {64|1000|100000|2000000} --seconds {1|2} --seed SEED";
const MIGRATE: &str = "migrate_stress --rounds 300 --bytes {1000|300000} \
    {|--asynchronous|--plain STATE}";
const MORE: &str = "{|||--no-huge-pages|--eager 0|--eager 100K}";
const MOVES: &str = "--lb {random|random|rotate|greedy|greedy-refine} \
    --lb-period {200us|500us|1ms|3ms|10ms|20ms}";

/// Runs the jobs.
pub(crate) fn check(args: &Args, steps: &mut Steps) -> Result<(), Error> {
    let programs = match &args.programs {
        Some(programs) => programs.clone(),
        None => build_quick(steps, "-p uts -p rocket-mini -p sparse-mini -p vrt-tests")?,
    };
    let default = if args.jobs.is_some() { u64::MAX } else { 10 };
    let most_seconds = args.minutes.unwrap_or(default).saturating_mul(60);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let first = args.seed.unwrap_or(now % 1_000_000 * 1000);
    steps.begin(&format!("jobs from seed {first}"));
    let (mut seed, mut failed) = (first, Vec::new());
    while args.jobs.is_none_or(|jobs| seed - first < jobs) && steps.seconds() < most_seconds {
        let mut command = command(&format!("{}/{}", programs.display(), draw(seed)));
        let job = run(args.limit, command.env("RUST_BACKTRACE", "0"))?;
        let fault = job.fault().map(|fault| format!("FAILED: {fault}"));
        let verdict = fault.as_deref().unwrap_or("right");
        steps.say(&format!("   seed {seed}: {}: {verdict}, {:.0} s", job.line, job.seconds));
        if fault.is_some() {
            steps.say(&job.text());
            failed.push(seed.to_string());
        }
        seed += 1;
    }
    let count = seed - first;
    match failed.len() {
        0 if count == 0 => steps.fail("no job was run".to_owned()),
        0 => steps.close(&format!("all {count} jobs are right")),
        wrong => steps.fail(format!("{wrong} of {count} jobs: seeds {}", failed.join(" "))),
    }
}

/// The command line of the job that is drawn from a seed, by a generator that draws the same wherever it runs.
fn draw(seed: u64) -> String {
    let random = &mut ChaCha8Rng::seed_from_u64(seed);
    let pes = [1, 2, 2, 3, 4, 4][random.random_range(0..6)];
    // Few ranks as often as many.
    let most = [3, 10, 30, 100][random.random_range(0..4)];
    let (ranks, node) = (random.random_range(1..=most), random.random_range(1..=pes));
    let (moves, state) = match random.random_range(0..6) {
        0 => ("", ""),
        _ => (MOVES, "{--move state|}"),
    };
    let program = PROGRAMS[random.random_range(0..PROGRAMS.len())];
    let template =
        format!("{program} --pes {pes} --ranks {ranks} --node-size {node} {MORE} {moves}");
    // A prime number of ranks is cut along one side.
    let size = [24, 32, 48][random.random_range(0..3)].max(ranks);
    let counts = if ranks <= 8 { "1,600" } else { "1,9 --largest 10" };
    let mut job = template
        .replace("STATE", state)
        .replace("SIZE", &size.to_string())
        .replace("COUNTS", counts)
        .replace("ROUNDS", &(1 + 100 / (ranks + 4)).to_string())
        .replace("SEED", &seed.to_string());
    // From the inside.
    let texts = regex(r"\{([^{}]*)\}");
    while job.contains('{') {
        let one_of = |texts: &Captures| {
            let texts: Vec<&str> = texts[1].split('|').collect();
            texts[random.random_range(0..texts.len())].to_owned()
        };
        job = texts.replace_all(&job, one_of).into_owned();
    }
    job
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_seed_is_a_job_and_all_programs_are_drawn() {
        let jobs: Vec<String> = (1..500).map(draw).collect();
        assert_eq!(jobs[6], draw(7));
        for job in &jobs {
            assert!(!job.contains(['{', '|', '}']) && !regex("[A-SU-Z]{4}").is_match(job), "{job}");
        }
        let programs: BTreeSet<_> = jobs.iter().filter_map(|it| it.split(' ').next()).collect();
        assert_eq!(programs.len(), 10, "{programs:?}");
    }
}
