//! The authors' own program, as their makefile builds it: one process, or several under MPI.

use super::ExperimentError;
use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};
use uts::{
    named::{Named, Published},
    tree::{Kind, Parameters, Shape},
};

/// Where the program is.
#[derive(Clone, Debug)]
pub(super) struct Reference {
    sequential: PathBuf,
    parallel: PathBuf,
    /// The launcher: a program, and its first arguments.
    launcher: String,
}

/// The sequential program.
const SEQUENTIAL: &str = "uts-seq";
/// Work stealing over MPI: without traces, which take time and only have room for short runs, and with them.
const PARALLEL: [&str; 2] = ["uts-mpi-ws-nt", "uts-mpi-ws"];

/// The result of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Found {
    /// Its reported tree size.
    pub size: Published,
    /// Its reported time in seconds.
    pub seconds: f64,
}

impl Reference {
    /// The programs in this directory.
    ///
    /// # Errors
    ///
    /// If one is missing.
    pub(super) fn find(folder: &Path, launcher: &str) -> Result<Self, ExperimentError> {
        let find = |names: &[&'static str]| {
            let missing = ExperimentError::MissingReference {
                program: names[names.len() - 1],
                folder: folder.to_owned(),
            };
            // Without its path, a launcher would look for it where programs are installed.
            let mut paths = names.iter().filter_map(|name| folder.join(name).canonicalize().ok());
            paths.find(|it| it.is_file()).ok_or(missing)
        };
        Ok(Self {
            sequential: find(&[SEQUENTIAL])?,
            parallel: find(&PARALLEL)?,
            launcher: launcher.to_owned(),
        })
    }

    /// Searches the tree with one process.
    ///
    /// # Errors
    ///
    /// If the program fails, or finds another tree.
    pub(super) fn run_sequentially(&self, tree: &Named) -> Result<Found, ExperimentError> {
        run(Command::new(&self.sequential), tree)
    }

    /// Searches the tree with this many processes.
    ///
    /// # Errors
    ///
    /// If the program fails, or finds another tree.
    pub(super) fn run(&self, tree: &Named, processes: u32) -> Result<Found, ExperimentError> {
        let mut words = self.launcher.split_whitespace();
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words).args(["-n", &processes.to_string()]).arg(&self.parallel);
        run(command, tree)
    }
}

fn run(mut command: Command, tree: &Named) -> Result<Found, ExperimentError> {
    command.args(flags(&tree.parameters)).args(["-v", "1"]).stdin(Stdio::null());
    let program = command.get_program().to_string_lossy().into_owned();
    let words = command.get_args().map(|it| it.to_string_lossy().into_owned());
    let line = std::iter::once(program).chain(words).collect::<Vec<_>>().join(" ");
    let fail = |why: String| ExperimentError::Reference { line: line.clone(), why };
    let output = command.output().map_err(|it| fail(it.to_string()))?;
    let [stdout, stderr] = [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it));
    if !output.status.success() {
        return Err(fail(format!("{}: {}", output.status, stderr.trim())));
    }
    let found =
        parse(&stdout).ok_or_else(|| fail(format!("its report is not understood:\n{stdout}")))?;
    let expected = tree.published;
    let wrong = |expected: Option<u64>, found: Option<u64>| expected.is_some() && expected != found;
    if found.size.nodes != expected.nodes
        || wrong(expected.depth, found.size.depth)
        || wrong(expected.leaves, found.size.leaves)
    {
        let text = |it: Published| {
            let number = |it: Option<u64>| it.map_or("?".to_owned(), |it| it.to_string());
            format!("{} nodes, depth {}, {} leaves", it.nodes, number(it.depth), number(it.leaves))
        };
        return Err(fail(format!(
            "it found {}; {}: {}",
            text(found.size),
            tree.name,
            text(expected)
        )));
    }
    Ok(found)
}

/// The parameters of a tree as flags of the program.
fn flags(parameters: &Parameters) -> Vec<String> {
    let it = parameters;
    let kind = match it.kind {
        Kind::Binomial => 0,
        Kind::Geometric => 1,
        Kind::Hybrid => 2,
        Kind::Balanced => 3,
    };
    let shape = match it.shape {
        Shape::Linear => 0,
        Shape::ExponentialDecrease => 1,
        Shape::Cyclic => 2,
        Shape::Fixed => 3,
    };
    let line = format!(
        "-t {kind} -b {} -r {} -a {shape} -d {} -q {} -m {} -f {} -g {}",
        it.branching, it.seed, it.depth, it.probability, it.children, it.shift, it.granularity
    );
    line.split(' ').map(str::to_owned).collect()
}

/// Parses the output of `-v 1`.
fn parse(text: &str) -> Option<Found> {
    let after = |line: &str, what: &str| -> Option<String> {
        let rest = line.split_once(what)?.1.trim_start();
        let number = rest.chars().take_while(|it| it.is_ascii_digit() || *it == '.');
        Some(number.collect())
    };
    let size = text.lines().find(|line| line.starts_with("Tree size = "))?;
    let time = text.lines().find(|line| line.starts_with("Wallclock time = "))?;
    let number = |what: &str| after(size, what)?.parse::<u64>().ok();
    Some(Found {
        size: Published {
            nodes: number("Tree size = ")?,
            depth: Some(number("tree depth = ")?),
            leaves: Some(number("num leaves = ")?),
        },
        seconds: after(time, "Wallclock time = ")?.parse().ok().filter(|it| *it > 0.0)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use uts::named;

    #[test]
    fn its_report_is_read() {
        let text = "UTS - Unbalanced Tree Search 2.1 (C/Sequential)\n\n\
            Tree size = 4130071, tree depth = 10, num leaves = 3305118 (80.03%)\n\
            Wallclock time = 0.702 sec, performance = 5881423 nodes/sec (5881423 nodes/sec per PE)\n";
        let size = named::find("T1").expect("a tree").published;
        assert_eq!(parse(text), Some(Found { size, seconds: 0.702 }));
        assert_eq!(parse("mpirun was unable to launch"), None);
        assert_eq!(parse(&text.replace("0.702", "0.000")), None);
    }

    #[test]
    fn flags_are_those_of_the_published_trees() {
        let flags = |name: &str| flags(&named::find(name).expect("a tree").parameters).join(" ");
        let t1 = flags("T1");
        assert!(t1.starts_with("-t 1 -b 4 -r 19 -a 3 -d 10 "), "{t1}");
        let t3 = flags("T3L");
        assert!(t3.starts_with("-t 0 -b 2000 -r 7 ") && t3.contains(" -q 0.200014 -m 5 "), "{t3}");
    }
}
