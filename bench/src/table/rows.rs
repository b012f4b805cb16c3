//! The rows of the table: what is measured, and what is good enough.

mod images;

/// One row.
#[derive(Clone, Debug)]
pub(super) struct Row {
    /// A short name for the command line and the JSON file.
    pub name: &'static str,
    /// What is measured.
    pub title: &'static str,
    /// When the figure is good enough.
    pub target: Target,
    /// In which unit the figure is shown.
    pub unit: Unit,
    /// The program of vrt.
    pub vrt: Program,
    /// What it is compared with.
    pub reference: Reference,
}

/// When a figure is good enough.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Target {
    /// An operation takes at most so many seconds.
    Seconds(f64),
    /// A rank has at most so many bytes.
    Bytes(f64),
    /// An operation takes at most so many times the reference's seconds.
    TimesReference(f64),
    /// The bandwidth is at least so many times the reference's.
    TimesReferenceBandwidth(f64),
}

/// How a figure is shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Unit {
    /// As seconds.
    Time,
    /// As bandwidth of an operation that moves so many bytes.
    Bandwidth(f64),
    /// As memory of a rank; the figures are its bytes, not seconds.
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
        /// Processes.
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
    /// Whether it is to run as MPI processes that share no memory.
    pub through_mpi: bool,
    /// Whether Open MPI shall use TCP, as between machines, and not shared memory.
    pub over_tcp: bool,
    /// The options of `vrtrun`, for a C program whose ranks run images of it.
    pub vrtrun: Option<&'static str>,
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

/// All rows, in the order of the table.
pub(super) fn all() -> Vec<Row> {
    let mut rows = messages();
    rows.extend(messages_through_mpi());
    rows.extend(collectives());
    rows.extend(more_collectives());
    rows.extend(memory());
    rows.extend(many());
    rows.extend(moves());
    rows.extend(solvers());
    rows.extend(threads());
    rows.extend(images::rows());
    rows
}

const MEBIBYTE: f64 = 1_048_576.0;

/// The heap of threads beside the C library's.
fn threads() -> Vec<Row> {
    macro_rules! row {
        ($name:literal, $title:literal, $what:literal) => {
            Row {
                name: $name,
                title: $title,
                target: Target::TimesReference(1.1),
                unit: Unit::Time,
                vrt: program(
                    concat!(
                        "threads --what ",
                        $what,
                        " --pes 1 --ranks 1 --no-pin --operations 1000000 --repetitions 5"
                    ),
                    concat!(
                        "threads --what ",
                        $what,
                        " --pes 1 --ranks 1 --no-pin --operations 100000 --repetitions 5"
                    ),
                ),
                reference: Reference::Vrt(program(
                    concat!(
                        "threads --what ",
                        $what,
                        " --plain --operations 1000000 --repetitions 5"
                    ),
                    concat!(
                        "threads --what ",
                        $what,
                        " --plain --operations 100000 --repetitions 5"
                    ),
                )),
            }
        };
    }
    vec![
        row!("collect-in-threads", "2 threads collect a million strings, a string", "collect"),
        row!(
            "channel-between-threads",
            "strings through a channel between threads, each",
            "channel"
        ),
        row!("tasks-of-tokio", "strings between tasks of tokio, each", "tasks"),
    ]
}

fn messages() -> Vec<Row> {
    vec![
        Row {
            name: "switch",
            title: "switch between two ranks of a PE (yield)",
            target: Target::Seconds(40e-9),
            unit: Unit::Time,
            vrt: program(
                "switch --pes 1 --ranks 2 --operations 200000 --repetitions 21",
                "switch --pes 1 --ranks 2 --operations 50000 --repetitions 11",
            ),
            reference: Reference::None,
        },
        Row {
            name: "message-in-pe",
            title: "8 B message between ranks of one PE, one way",
            target: Target::Seconds(100e-9),
            unit: Unit::Time,
            vrt: program(
                "pingpong --pes 1 --ranks 2 --bytes 8 --operations 50000 --repetitions 21",
                "pingpong --pes 1 --ranks 2 --bytes 8 --operations 20000 --repetitions 11",
            ),
            reference: Reference::None,
        },
        Row {
            name: "message-between-pes",
            title: "8 B message between PEs, one way",
            target: Target::TimesReference(0.75),
            unit: Unit::Time,
            vrt: program(
                "pingpong --pes 2 --ranks 2 --bytes 8 --operations 20000 --repetitions 21",
                "pingpong --pes 2 --ranks 2 --bytes 8 --operations 10000 --repetitions 11",
            ),
            reference: Reference::OpenMpi {
                program: program("pingpong 8 20000 21", "pingpong 8 10000 11"),
                processes: 2,
            },
        },
        Row {
            name: "bandwidth",
            title: "1 MiB between PEs (ping-pong)",
            target: Target::TimesReferenceBandwidth(1.5),
            unit: Unit::Bandwidth(MEBIBYTE),
            vrt: program(
                "pingpong --pes 2 --ranks 2 --bytes 1048576 --operations 100 --repetitions 21",
                "pingpong --pes 2 --ranks 2 --bytes 1048576 --operations 50 --repetitions 11",
            ),
            reference: Reference::OpenMpi {
                program: program("pingpong 1048576 100 21", "pingpong 1048576 50 11"),
                processes: 2,
            },
        },
    ]
}

fn messages_through_mpi() -> Vec<Row> {
    let short = (
        through_mpi(
            "pingpong --ranks 2 --node-size 1 --bytes 8 --operations 20000 --repetitions 21",
            "pingpong --ranks 2 --node-size 1 --bytes 8 --operations 10000 --repetitions 11",
        ),
        program("pingpong 8 20000 21", "pingpong 8 10000 11"),
    );
    let long = (
        through_mpi(
            "pingpong --ranks 2 --node-size 1 --bytes 1048576 --operations 100 --repetitions 21",
            "pingpong --ranks 2 --node-size 1 --bytes 1048576 --operations 50 --repetitions 11",
        ),
        program("pingpong 1048576 100 21", "pingpong 1048576 50 11"),
    );
    let row = |name, title, target, unit, (vrt, program)| Row {
        name,
        title,
        target,
        unit,
        vrt,
        reference: Reference::OpenMpi { program, processes: 2 },
    };
    let tcp =
        |(vrt, program): &(Program, Program)| (over_tcp(vrt.clone()), over_tcp(program.clone()));
    let (latency, bandwidth) = (Target::TimesReference(1.3), Target::TimesReferenceBandwidth(0.95));
    vec![
        row(
            "message-through-mpi-tcp",
            "8 B message through MPI over TCP, one way",
            latency,
            Unit::Time,
            tcp(&short),
        ),
        row(
            "bandwidth-through-mpi-tcp",
            "1 MiB through MPI over TCP (ping-pong)",
            bandwidth,
            Unit::Bandwidth(MEBIBYTE),
            tcp(&long),
        ),
        row(
            "message-through-mpi",
            "8 B message through the MPI transport, one way",
            latency,
            Unit::Time,
            short,
        ),
        row(
            "bandwidth-through-mpi",
            "1 MiB through the MPI transport (ping-pong)",
            bandwidth,
            Unit::Bandwidth(MEBIBYTE),
            long,
        ),
    ]
}

fn collectives() -> Vec<Row> {
    vec![
        Row {
            name: "ring",
            title: "64 ranks on 2 PEs, ring of 8 B sendrecv, a step",
            target: Target::Seconds(3e-6),
            unit: Unit::Time,
            vrt: program(
                "ring --pes 2 --ranks 64 --operations 2000 --repetitions 11",
                "ring --pes 2 --ranks 64 --operations 500 --repetitions 7",
            ),
            reference: Reference::OpenMpi {
                program: program("ring 100 5", "ring 50 3"),
                processes: 64,
            },
        },
        Row {
            name: "allreduce",
            title: "allreduce of a double, 64 ranks on 2 PEs",
            target: Target::Seconds(5e-6),
            unit: Unit::Time,
            vrt: program(
                "allreduce --pes 2 --ranks 64 --operations 2000 --repetitions 11",
                "allreduce --pes 2 --ranks 64 --operations 500 --repetitions 7",
            ),
            reference: Reference::OpenMpi {
                program: program("allreduce 100 5", "allreduce 50 3"),
                processes: 64,
            },
        },
    ]
}

/// A row of `collective`: operation, bytes, ranks, the target, and the operations of full and
/// quick runs of vrt's program and of Open MPI's.
macro_rules! collective_row {
    ($what:literal, $bytes:literal, $size:literal, $ranks:literal, $target:expr,
     $ours:literal / $ours_quick:literal, $theirs:literal / $theirs_quick:literal) => {
        Row {
            name: concat!($what, "-", $bytes, "-", $ranks),
            title: concat!($what, ", ", $size, " a rank, ", $ranks, " ranks on 2 PEs"),
            target: $target,
            unit: Unit::Time,
            vrt: program(
                concat!(
                    "collective --what ",
                    $what,
                    " --bytes ",
                    $bytes,
                    " --pes 2 --ranks ",
                    $ranks,
                    " --repetitions 11 --operations ",
                    $ours
                ),
                concat!(
                    "collective --what ",
                    $what,
                    " --bytes ",
                    $bytes,
                    " --pes 2 --ranks ",
                    $ranks,
                    " --repetitions 7 --operations ",
                    $ours_quick
                ),
            ),
            reference: Reference::OpenMpi {
                program: program(
                    concat!("collective ", $what, " ", $bytes, " ", $theirs, " 11"),
                    concat!("collective ", $what, " ", $bytes, " ", $theirs_quick, " 7"),
                ),
                processes: $ranks,
            },
        }
    };
}

/// As fast as Open MPI.
const NO_SLOWER: Target = Target::TimesReference(1.0);

#[rustfmt::skip]
fn more_collectives() -> Vec<Row> {
    vec![
        collective_row!("allreduce", 8, "8 B", 2, NO_SLOWER, 20000/5000, 20000/5000),
        collective_row!("allreduce", 8192, "8 KiB", 2, NO_SLOWER, 5000/1000, 5000/1000),
        collective_row!("allreduce", 1048576, "1 MiB", 2, NO_SLOWER, 50/20, 50/20),
        collective_row!("broadcast", 8, "8 B", 2, NO_SLOWER, 20000/5000, 20000/5000),
        collective_row!("broadcast", 8192, "8 KiB", 2, NO_SLOWER, 5000/1000, 5000/1000),
        collective_row!("broadcast", 1048576, "1 MiB", 2, NO_SLOWER, 50/20, 50/20),
        collective_row!("alltoall", 8, "8 B", 2, NO_SLOWER, 20000/5000, 20000/5000),
        collective_row!("alltoall", 8192, "8 KiB", 2, NO_SLOWER, 5000/1000, 5000/1000),
        collective_row!("alltoall", 1048576, "1 MiB", 2, NO_SLOWER, 50/20, 50/20),
        collective_row!("allgather", 8, "8 B", 2, NO_SLOWER, 20000/5000, 20000/5000),
        collective_row!("allgather", 8192, "8 KiB", 2, NO_SLOWER, 5000/1000, 5000/1000),
        collective_row!("allgather", 1048576, "1 MiB", 2, NO_SLOWER, 50/20, 50/20),
        collective_row!("barrier", 8, "no data", 64, Target::Seconds(19e-6), 2000/500, 50/20),
        collective_row!("allreduce", 65536, "64 KiB", 64, NO_SLOWER, 50/10, 20/10),
        collective_row!("broadcast", 8, "8 B", 64, NO_SLOWER, 2000/500, 50/20),
        collective_row!("broadcast", 65536, "64 KiB", 64, NO_SLOWER, 100/20, 20/10),
        collective_row!("alltoall", 8, "8 B", 64, NO_SLOWER, 500/100, 20/10),
        collective_row!("alltoall", 4096, "4 KiB", 64, NO_SLOWER, 50/10, 10/5),
        collective_row!("allgather", 8, "8 B", 64, NO_SLOWER, 1000/200, 20/10),
        collective_row!("allgather", 4096, "4 KiB", 64, NO_SLOWER, 50/10, 10/5),
    ]
}

fn memory() -> Vec<Row> {
    let onesided = |name, title, full, quick, c_full, c_quick| Row {
        name,
        title,
        target: NO_SLOWER,
        unit: Unit::Time,
        vrt: program(full, quick),
        reference: Reference::OpenMpi { program: program(c_full, c_quick), processes: 2 },
    };
    vec![
        onesided(
            "put",
            "put of 8 B with its flush, 2 ranks on 2 PEs",
            "onesided --what put --pes 2 --ranks 2 --operations 50000 --repetitions 11",
            "onesided --what put --pes 2 --ranks 2 --operations 10000 --repetitions 7",
            "onesided put 8 50000 11",
            "onesided put 8 10000 7",
        ),
        onesided(
            "get",
            "get of 8 B with its flush, 2 ranks on 2 PEs",
            "onesided --what get --pes 2 --ranks 2 --operations 50000 --repetitions 11",
            "onesided --what get --pes 2 --ranks 2 --operations 10000 --repetitions 7",
            "onesided get 8 50000 11",
            "onesided get 8 10000 7",
        ),
        Row {
            name: "pack",
            title: "pack a column of 256^2 doubles, against a loop",
            target: Target::TimesReference(1.1),
            unit: Unit::Time,
            vrt: program(
                "pack --pes 1 --ranks 1 --operations 20000 --repetitions 11",
                "pack --pes 1 --ranks 1 --operations 5000 --repetitions 7",
            ),
            reference: Reference::Vrt(program(
                "pack --by-hand --pes 1 --ranks 1 --operations 20000 --repetitions 11",
                "pack --by-hand --pes 1 --ranks 1 --operations 5000 --repetitions 7",
            )),
        },
    ]
}

/// A row of very many ranks.
fn of_many(name: &'static str, title: &'static str, target: f64, run: &'static str) -> Row {
    Row {
        name,
        title,
        target: Target::Seconds(target),
        unit: Unit::Time,
        vrt: program(run, run),
        reference: Reference::None,
    }
}

fn many() -> Vec<Row> {
    vec![
        of_many(
            "start-many",
            "start of 100,000 ranks on 2 PEs",
            3.0,
            "many --what start --pes 2 --ranks 100000",
        ),
        of_many(
            "barrier-many",
            "barrier of 100,000 ranks on 2 PEs",
            50e-3,
            "many --what barrier --pes 2 --ranks 100000 --operations 10 --repetitions 5",
        ),
        of_many(
            "allreduce-many",
            "allreduce of a double, 100,000 ranks on 2 PEs",
            50e-3,
            "many --what allreduce --pes 2 --ranks 100000 --operations 10 --repetitions 5",
        ),
        of_many(
            "ring-many",
            "ring of 8 B sendrecv, 100,000 ranks, a step",
            50e-3,
            "many --what ring --pes 2 --ranks 100000 --operations 10 --repetitions 5",
        ),
        of_many(
            "switch-many",
            "switch among 16,384 ranks of a PE",
            300e-9,
            "many --what switch --pes 1 --ranks 16384 --operations 50 --repetitions 11",
        ),
    ]
}

/// A row of the rank that moves.
fn moved(
    name: &'static str,
    title: &'static str,
    target: f64,
    full: &'static str,
    quick: &'static str,
) -> Row {
    Row {
        name,
        title,
        target: Target::Seconds(target),
        unit: Unit::Time,
        vrt: program(full, quick),
        reference: Reference::None,
    }
}

fn moves() -> Vec<Row> {
    vec![
        moved(
            "hand-over",
            "move a rank of 1 KiB inside a node",
            5e-6,
            "move --pes 2 --ranks 2 --bytes 1024 --operations 5000 --repetitions 11",
            "move --pes 2 --ranks 2 --bytes 1024 --operations 1000 --repetitions 5",
        ),
        moved(
            "hand-over-large",
            "move a rank of 64 MiB inside a node",
            5e-6,
            "move --pes 2 --ranks 2 --bytes 67108864 --operations 5000 --repetitions 11",
            "move --pes 2 --ranks 2 --bytes 67108864 --operations 1000 --repetitions 5",
        ),
        moved(
            "touch-huge",
            "first touch of 64 MiB after that, 2 MiB pages",
            0.5e-3,
            "move --touch --pes 2 --ranks 2 --bytes 67108864 --repetitions 11",
            "move --touch --pes 2 --ranks 2 --bytes 67108864 --repetitions 5",
        ),
        moved(
            "touch",
            "first touch of 64 MiB after that, 4 KiB pages",
            5e-3,
            "move --touch --no-huge-pages --pes 2 --ranks 2 --bytes 67108864 --repetitions 11",
            "move --touch --no-huge-pages --pes 2 --ranks 2 --bytes 67108864 --repetitions 5",
        ),
        moved(
            "ship",
            "move a rank of 16 MiB to another node",
            4e-3,
            "move --node-size 1 --pes 2 --ranks 2 --bytes 16777216 --operations 50 --repetitions 11",
            "move --node-size 1 --pes 2 --ranks 2 --bytes 16777216 --operations 10 --repetitions 5",
        ),
        moved(
            "move-by-state",
            "move a rank by 1 MiB of state, inside a node",
            1e-3,
            "move --move state --pes 2 --ranks 2 --bytes 1048576 --operations 100 --repetitions 11",
            "move --move state --pes 2 --ranks 2 --bytes 1048576 --operations 20 --repetitions 5",
        ),
    ]
}

const JACOBI_96: Program = program(
    "jacobi --pes 2 --ranks 2 --size 96 --iterations 1000",
    "jacobi --pes 2 --ranks 2 --size 96 --iterations 200",
);
const JACOBI_192: Program = program(
    "jacobi --pes 2 --ranks 2 --size 192 --iterations 150",
    "jacobi --pes 2 --ranks 2 --size 192 --iterations 50",
);

fn solvers() -> Vec<Row> {
    vec![
        Row {
            name: "jacobi-96",
            title: "Jacobi, 96^3 cells, 2 ranks on 2 PEs",
            target: Target::TimesReference(1.02),
            unit: Unit::Time,
            vrt: JACOBI_96,
            reference: Reference::OpenMpi {
                program: program("jacobi 96 1000 10", "jacobi 96 200 10"),
                processes: 2,
            },
        },
        Row {
            name: "jacobi-192",
            title: "Jacobi, 192^3 cells, 2 ranks on 2 PEs",
            target: Target::TimesReference(1.02),
            unit: Unit::Time,
            vrt: JACOBI_192,
            reference: Reference::OpenMpi {
                program: program("jacobi 192 150 10", "jacobi 192 50 10"),
                processes: 2,
            },
        },
        Row {
            name: "ranks-per-pe-96",
            title: "Jacobi, 96^3 cells, 16 ranks per PE against 1",
            target: Target::TimesReference(1.05),
            unit: Unit::Time,
            vrt: program(
                "jacobi --pes 2 --ranks 32 --size 96 --iterations 1000",
                "jacobi --pes 2 --ranks 32 --size 96 --iterations 200",
            ),
            reference: Reference::Vrt(JACOBI_96),
        },
        Row {
            name: "ranks-per-pe-192",
            title: "Jacobi, 192^3 cells, 16 ranks per PE against 1",
            target: Target::TimesReference(1.05),
            unit: Unit::Time,
            vrt: program(
                "jacobi --pes 2 --ranks 32 --size 192 --iterations 150",
                "jacobi --pes 2 --ranks 32 --size 192 --iterations 50",
            ),
            reference: Reference::Vrt(JACOBI_192),
        },
    ]
}

impl Target {
    /// Whether a figure is good enough; `None` when the reference it takes is
    /// not there. `ratio` is that of the seconds, ours by theirs.
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
