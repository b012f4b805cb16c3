//! Rows for operations of many ranks together.

use super::{NO_SLOWER, Reference, Row, Target, Unit, program};

pub(super) fn rows() -> Vec<Row> {
    let mut rows = of_a_double();
    rows.extend(by_length());
    rows
}

fn of_a_double() -> Vec<Row> {
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

/// A row of `collective`: operation, bytes, ranks, the target, and the operations of full and quick
/// runs of vrt's program and of Open MPI's.
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

#[rustfmt::skip]
fn by_length() -> Vec<Row> {
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
        collective_row!("reduce", 65536, "64 KiB", 64, NO_SLOWER, 50/10, 20/10),
        collective_row!("reduce-scatter", 1024, "1 KiB", 64, NO_SLOWER, 50/10, 20/10),
    ]
}
