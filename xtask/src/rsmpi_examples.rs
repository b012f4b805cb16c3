//! `cargo xtask rsmpi-examples`: the examples of the `mpi` crate.

use std::fs;
use std::path::{Path, PathBuf};

use crate::job::{Ended, command, last_lines, regex, run, succeed};
use crate::setup::{directory, root, target};
use crate::steps::{Error, Steps, at};

/// Build the examples of the `mpi` crate (rsmpi) on vrt and run them, still and moved about, on one node and on two.
///
/// They are not changed except for `#[mpi::main]` above their `main`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Change nothing: build them with the crate of the registry, and vrtcc for its MPI library, and with them
    /// rsmpi/unchanged, whose statics are each rank's own; one of these is also swept over ratios of ranks to PEs
    #[arg(long)]
    unchanged: bool,
    /// Where the examples are [default: those of the crate, as cargo has fetched it]
    #[arg(long, value_name = "DIRECTORY", value_parser = directory)]
    examples: Option<PathBuf>,
    /// Numbers of ranks
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1,2,3,4,8", value_parser = vrt_cli::positive::<u32>)]
    ranks: Vec<u32>,
    /// Run each job this many times
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = vrt_cli::positive::<u32>)]
    times: u32,
}

/// Why an example cannot pass, if it cannot: docs/rsmpi.md explains it.
fn cannot(name: &str, unchanged: bool) -> Option<&'static str> {
    match name {
        "spawn" | "spawn_multiple" => Some("starts processes"),
        _ if unchanged => None,
        "derive_nonthreaded_panic" => {
            Some("expects that a type cannot be derived on another thread")
        }
        "derive_postfinalize_panic" => Some("expects a panic after the universe is dropped"),
        "derive_preinit_panic" => Some("expects a panic before there is a universe"),
        _ => None,
    }
}

/// These expect others, and fail alone with any MPI library.
const NOT_ALONE: [&str; 2] = ["all_gather_bool", "immediate_multiple_requests"];

/// A job whose ranks are to be moved starts again until some were: a short one, such as that of a single rank, may end
/// before.
const ATTEMPTS: u32 = 5;
const MOVING: &str = "--lb random --lb-period 1ms";

const MANIFEST: &str = r#"[package]
name = "rsmpi-examples"
version = "0.0.0"
edition = "2021"
publish = false

[workspace]

[features]
default = ["user-operations"]
user-operations = []

[lints.rust]
unexpected_cfgs = "allow"

[dependencies]
memoffset = "0.9"
mpi = { version = "0.8", features = ["derive", "complex"] }
num-complex = "0.4"
"#;

/// Builds the examples and runs them.
pub(crate) fn check(args: &Args, steps: &mut Steps) -> Result<(), Error> {
    steps.begin(if args.unchanged { "the examples, unchanged" } else { "the examples" });
    succeed(&command("cargo build --quiet -p vrtrun --bins"))?;
    let package = target().join("rsmpi-examples");
    let names = write_package(args, &package)?;
    let built = build(args, &package)?;

    steps.begin("jobs");
    let mut jobs = Jobs { args, built: built.join("debug"), moved: 0, stayed: 0 };
    let [mut passed, mut failed] = [0, 0];
    for name in &names {
        if let Some(reason) = cannot(name, args.unchanged) {
            steps.say(&format!("   {name}: not run, because it {reason}"));
        } else if jobs.run(steps, name)? {
            passed += 1;
        } else {
            failed += 1;
        }
    }
    if args.unchanged {
        sweep(steps, &jobs.built.join("burn"), &package)?;
    }
    let (count, Jobs { moved, stayed, .. }) = (names.len(), jobs);
    let result = format!(
        "{passed} of {count} examples pass in each job, {failed} do not, {} cannot\n\
         ranks moved in {moved} jobs; {stayed} that were to move them ended before, {ATTEMPTS} times each",
        count - passed - failed,
    );
    if failed == 0 && moved > 0 { steps.close(&result) } else { steps.fail(result) }
}

/// The directory of the crate's examples, as cargo has fetched it.
fn fetched() -> Result<PathBuf, Error> {
    let metadata = succeed(&command("cargo metadata --locked --format-version 1"))?.out;
    let manifest = regex(r#""manifest_path":"([^"]*/mpi-0\.8\.[^/"]*)/Cargo.toml""#);
    let crates = manifest.captures(&metadata).map(|it| PathBuf::from(&it[1]).join("examples"));
    let missing = || "the crate mpi 0.8 is not among the sources that cargo has fetched".to_owned();
    crates.ok_or_else(|| Error::Failed(missing()))
}

/// Writes a package with the examples; returns their names.
fn write_package(args: &Args, package: &Path) -> Result<Vec<String>, Error> {
    let mut directories = vec![args.examples.clone().map_or_else(fetched, Ok)?];
    let mut manifest = MANIFEST.to_owned();
    if args.unchanged {
        manifest += "rand = \"0.9\"\n";
        directories.push(root().join("rsmpi/unchanged"));
    } else {
        manifest +=
            &format!("\n[patch.crates-io]\nmpi = {{ path = {:?} }}\n", root().join("rsmpi"));
    }
    let programs = package.join("src/bin");
    // There is none yet the first time.
    let _ = fs::remove_dir_all(package);
    fs::create_dir_all(&programs).map_err(at(&programs))?;
    fs::write(package.join("Cargo.toml"), manifest).map_err(at(package))?;
    let (main, mut names) = (regex(r"(?m)^fn main\("), Vec::new());
    for directory in directories {
        for entry in fs::read_dir(&directory).map_err(at(&directory))?.flatten() {
            let file = entry.file_name().to_string_lossy().into_owned();
            let Some(name) = file.strip_suffix(".rs") else { continue };
            names.push(name.to_owned());
            let text = fs::read_to_string(entry.path()).map_err(at(&entry.path()))?;
            let text = match args.unchanged {
                // It calls functions that are not there, so it cannot be linked.
                true if cannot(name, true).is_some() => continue,
                true => text,
                false => main.replace_all(&text, "#[mpi::main]\n$0").into_owned(),
            };
            fs::write(programs.join(&file), text).map_err(at(&programs))?;
        }
    }
    names.sort();
    Ok(names)
}

/// Builds the package; returns the target directory.
fn build(args: &Args, package: &Path) -> Result<PathBuf, Error> {
    let mut cargo = command("cargo build --quiet --manifest-path");
    cargo.arg(package.join("Cargo.toml"));
    let mut built = target();
    if args.unchanged {
        // What is built here has other libraries than programs of the same names that are not.
        cargo.env("MPICC", built.join("debug/vrtcc"));
        built.push("unchanged");
    }
    succeed(cargo.arg("--target-dir").arg(&built))?;
    Ok(built)
}

/// The jobs of the check.
struct Jobs<'a> {
    args: &'a Args,
    /// Where the examples are.
    built: PathBuf,
    /// How many jobs moved ranks, and how many did not in all of their attempts.
    moved: u32,
    stayed: u32,
}

impl Jobs<'_> {
    /// Runs all jobs of an example; returns whether all were right.
    fn run(&mut self, steps: &Steps, name: &str) -> Result<bool, Error> {
        let places = ["--pes 1", "--pes 2", "--pes 2 moving", "--pes 2 --node-size 1 moving"]
            .map(|it| it.replace("moving", MOVING));
        let (mut wrong, mut count) = (0, 0);
        for ranks in self.args.ranks.iter().filter(|&&it| it > 1 || !NOT_ALONE.contains(&name)) {
            for place in places.iter().flat_map(|it| (0..self.args.times).map(move |_| it)) {
                let job = self.run_once(name, &format!("--ranks {ranks} {place}"))?;
                count += 1;
                if let Some(failure) = job.failure() {
                    if wrong == 0 {
                        let (line, last) = (&job.line, last_lines(&job));
                        steps.say(&format!("   {name}: {failure}: {line}{last}"));
                    }
                    wrong += 1;
                }
            }
        }
        if wrong > 0 {
            steps.say(&format!("   {name}: {wrong} of {count} jobs failed"));
        }
        Ok(wrong == 0)
    }

    /// Runs a job, until ranks moved if they have to.
    fn run_once(&mut self, name: &str, options: &str) -> Result<Ended, Error> {
        let mut command = command(&format!("{}/debug/vrtrun {options}", target().display()));
        command.arg(self.built.join(name));
        let mut attempts = 0;
        loop {
            let job = run(60, &command)?;
            attempts += 1;
            let has_to_move = job.status == 0 && options.contains(MOVING);
            match job.moved() {
                0 if has_to_move && attempts < ATTEMPTS => continue,
                0 => self.stayed += u32::from(has_to_move),
                _ => self.moved += u32::from(has_to_move),
            }
            return Ok(job);
        }
    }
}

/// Sweeps a program over ratios of ranks to PEs.
fn sweep(steps: &mut Steps, burn: &Path, package: &Path) -> Result<(), Error> {
    steps.begin("a sweep over ratios");
    let options =
        "sweep --pes 2 --ratios 1,2,8 --strategies none,random --lb-period 1ms --repeat 2";
    let mut sweep = command(&format!("{}/debug/vrtrun {options}", target().display()));
    sweep.args(["--metric", r"time +(\S+) s", "--same", r"checksum +(\S+)", "--out"]);
    let printed = succeed(sweep.arg(package).arg(burn))?.out;
    printed
        .lines()
        .filter(|it| it.starts_with("best"))
        .for_each(|it| steps.say(&format!("   {it}")));
    let [table, figure] = ["sweep.csv", "sweep.svg"].map(|it| fs::read_to_string(package.join(it)));
    if table.is_ok_and(|it| it.lines().count() == 13) && figure.is_ok_and(|it| !it.is_empty()) {
        return Ok(());
    }
    Err(Error::Failed("not all runs are in sweep.csv, or there is no figure".into()))
}
