//! A row of the table: what is measured, its target, and what it is compared with.

use super::peers::Peer;

/// One row.
#[derive(Clone, Debug)]
pub(super) struct Row {
    /// A short name for the command line and the JSON file.
    pub name: String,
    /// What is measured.
    pub title: String,
    /// The target of the figure.
    pub target: Target,
    /// The unit in which the figure is shown.
    pub unit: Unit,
    /// The program of vrt.
    pub vrt: Program,
    /// What the target compares it with.
    pub reference: Reference,
    /// The C program that does the same, for other MPIs.
    pub twin: Option<Twin>,
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
    /// The twin on Open MPI.
    OpenMpi,
    /// A program of vrt.
    Vrt(Program),
}

/// A program with its arguments.
#[derive(Clone, Debug)]
pub(super) struct Program {
    /// The program of `vrt-bench run` or of `bench/c`, and its arguments; of `A|B` the first is for a full run, the second
    /// for a quick one.
    pub line: String,
    /// Whether it runs as MPI processes that share no memory.
    pub through_mpi: bool,
    /// Whether Open MPI uses TCP, as between machines, instead of shared memory.
    pub over_tcp: bool,
    /// The options of `vrtrun`, for a C program whose ranks run images of it.
    pub vrtrun: Option<&'static str>,
}

impl<T: Into<String>> From<T> for Program {
    fn from(line: T) -> Self {
        Self { line: line.into(), through_mpi: false, over_tcp: false, vrtrun: None }
    }
}

impl Program {
    /// The program's name and its arguments.
    pub(super) fn words(&self, is_quick: bool) -> Vec<&str> {
        let chosen = |word| match str::split_once(word, '|') {
            Some((full, quick)) => [full, quick][usize::from(is_quick)],
            None => word,
        };
        self.line.split_whitespace().map(chosen).collect()
    }
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

/// Ranks that share no memory are not compared with threads.
const APART: &[Peer] = &[Peer::OpenMpi, Peer::AmpiProcesses];

impl Row {
    /// A row without a reference.
    pub(super) fn new(name: &str, title: &str, target: Target, vrt: impl Into<Program>) -> Self {
        let unit = if let Target::Bytes(_) = target { Unit::Memory } else { Unit::Time };
        let (name, title, vrt) = (name.to_owned(), title.to_owned(), vrt.into());
        Self { name, title, target, unit, vrt, reference: Reference::None, twin: None }
    }

    /// Its figure is the bandwidth of an operation that moves this many bytes.
    pub(super) fn of_bytes(self, bytes: f64) -> Self {
        Self { unit: Unit::Bandwidth(bytes), ..self }
    }

    /// Its reference is another program of vrt.
    pub(super) fn against(self, program: impl Into<Program>) -> Self {
        Self { reference: Reference::Vrt(program.into()), ..self }
    }

    /// Its reference is a C program with this many processes on Open MPI; other MPIs run that, too.
    pub(super) fn beside(self, processes: u32, program: impl Into<Program>) -> Self {
        let peers = if self.vrt.through_mpi { APART } else { &Peer::ALL };
        Self { reference: Reference::OpenMpi, ..self.twin(peers, 2, processes, program) }
    }

    /// A C program does the same on these MPIs.
    pub(super) fn twin(
        self,
        peers: &'static [Peer],
        pes: u32,
        processes: u32,
        program: impl Into<Program>,
    ) -> Self {
        Self { twin: Some(Twin { program: program.into(), processes, pes, peers }), ..self }
    }
}

impl Target {
    /// Whether a figure meets the target; `None` if the reference that it needs is missing. `ratio`
    /// is that of the seconds, ours by theirs.
    pub(super) fn is_met(self, seconds: f64, ratio: Option<f64>) -> Option<bool> {
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
    fn a_program_has_a_line_for_full_and_for_quick_runs() {
        let program = Program::from("ring --operations 2000|500 --repetitions 11|7");
        let [full, quick] = [false, true].map(|is_quick| program.words(is_quick).join(" "));
        assert_eq!(full, "ring --operations 2000 --repetitions 11");
        assert_eq!(quick, "ring --operations 500 --repetitions 7");
    }
}
