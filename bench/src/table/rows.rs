//! The rows of the table: what is measured, and the targets.

mod collectives;
mod images;
mod many;
mod memory;
mod messages;
mod solvers;
mod threads;
mod twins;

use super::peers::Peer;

/// One row.
#[derive(Clone, Debug)]
pub(super) struct Row {
    /// A short name for the command line and the JSON file.
    pub name: &'static str,
    /// What is measured.
    pub title: &'static str,
    /// The target of the figure.
    pub target: Target,
    /// The unit in which the figure is shown.
    pub unit: Unit,
    /// The program of vrt.
    pub vrt: Program,
    /// What it is compared with.
    pub reference: Reference,
}

/// The target of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Target {
    /// An operation takes at most this many seconds.
    Seconds(f64),
    /// A rank needs at most this many bytes.
    Bytes(f64),
    /// An operation takes at most this many times the reference's seconds.
    TimesReference(f64),
    /// The bandwidth is at least this many times the reference's.
    TimesReferenceBandwidth(f64),
}

/// How a figure is shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Unit {
    /// As seconds.
    Time,
    /// As bandwidth of an operation that moves this many bytes.
    Bandwidth(f64),
    /// As memory per rank; the figures are bytes, not seconds.
    Memory,
}

/// The other program of a row.
#[derive(Clone, Debug)]
pub(super) enum Reference {
    /// There is none.
    None,
    /// A C program on Open MPI.
    OpenMpi {
        /// The program.
        program: Program,
        /// Number of processes.
        processes: u32,
    },
    /// A program of vrt.
    Vrt(Program),
}

/// A program with its arguments, in full and for a quick run.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub full: &'static str,
    pub quick: &'static str,
    /// Whether it runs as MPI processes that share no memory.
    pub through_mpi: bool,
    /// Whether Open MPI uses TCP, as between machines, instead of shared memory.
    pub over_tcp: bool,
    /// The options of `vrtrun`, for a C program whose ranks run images of it.
    pub vrtrun: Option<&'static str>,
}

/// A C program that does the same as a row's program, for the MPIs that are compared.
#[derive(Clone, Debug)]
pub(super) struct Twin {
    /// The program.
    pub program: Program,
    /// Number of processes, or of ranks for Adaptive MPI.
    pub processes: u32,
    /// Number of PEs they share.
    pub pes: u32,
    /// The MPIs.
    pub peers: &'static [Peer],
}

const fn program(full: &'static str, quick: &'static str) -> Program {
    Program { full, quick, through_mpi: false, over_tcp: false, vrtrun: None }
}

const fn through_mpi(full: &'static str, quick: &'static str) -> Program {
    Program { through_mpi: true, ..program(full, quick) }
}

const fn over_tcp(program: Program) -> Program {
    Program { over_tcp: true, ..program }
}

/// The names of all rows.
pub(super) fn names() -> Vec<&'static str> {
    all().into_iter().map(|row| row.name).collect()
}

/// The subjects of rows.
pub(super) const SPEED: &str = "speed";
pub(super) const MANY: &str = "many ranks";
pub(super) const C: &str = "C programs";

/// The subject of a row.
pub(super) fn subject_of(name: &str) -> &'static str {
    let is_among = |rows: Vec<Row>| rows.iter().any(|row| row.name == name);
    if is_among(many::rows()) {
        MANY
    } else if is_among(images::rows()) {
        C
    } else {
        SPEED
    }
}

/// All rows, in the order of the table.
pub(super) fn all() -> Vec<Row> {
    [
        messages::rows(),
        collectives::rows(),
        memory::accesses(),
        many::rows(),
        memory::moves(),
        solvers::rows(),
        threads::rows(),
        images::rows(),
    ]
    .concat()
}

const MEBIBYTE: f64 = 1_048_576.0;

/// As fast as Open MPI.
const NO_SLOWER: Target = Target::TimesReference(1.0);

impl Target {
    /// Whether a figure meets the target; `None` if the reference that it needs is missing. `ratio`
    /// is that of the seconds, ours by theirs.
    pub fn is_met(self, seconds: f64, ratio: Option<f64>) -> Option<bool> {
        match self {
            Self::Seconds(most) | Self::Bytes(most) => Some(seconds <= most),
            Self::TimesReference(most) => ratio.map(|ratio| ratio <= most),
            Self::TimesReferenceBandwidth(least) => ratio.map(|ratio| 1.0 / ratio >= least),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_fit_the_table() {
        let mut names = names();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
        for row in all() {
            assert!(row.title.len() <= 50, "{}", row.title);
        }
    }

    #[test]
    fn targets_that_need_a_reference_are_open_without_one() {
        assert_eq!(Target::Seconds(40e-9).is_met(39e-9, None), Some(true));
        assert_eq!(Target::Seconds(40e-9).is_met(41e-9, Some(0.1)), Some(false));
        assert_eq!(Target::TimesReference(0.75).is_met(1.0, None), None);
        assert_eq!(Target::TimesReference(0.75).is_met(1.0, Some(0.76)), Some(false));
        let bandwidth = Target::TimesReferenceBandwidth(1.5);
        assert_eq!(bandwidth.is_met(1.0, Some(0.6)), Some(true));
        assert_eq!(bandwidth.is_met(1.0, Some(0.7)), Some(false));
    }

    #[test]
    fn quick_runs_do_less_of_the_same() {
        for row in all() {
            let first = |text: &'static str| text.split(' ').next();
            assert_eq!(first(row.vrt.full), first(row.vrt.quick), "{}", row.name);
            assert!(row.vrt.full.len() >= row.vrt.quick.len(), "{}", row.name);
        }
    }
}
