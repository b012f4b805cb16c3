//! Rows for messages between two ranks, and for the switch between them.

use super::{
    MEBIBYTE, NO_SLOWER, Program, Reference, Row, Target, Unit, over_tcp, program, through_mpi,
};

pub(super) fn rows() -> Vec<Row> {
    let mut rows = messages();
    rows.extend(longer_messages());
    rows.extend(messages_through_mpi());
    rows
}

fn messages() -> Vec<Row> {
    vec![
        Row {
            name: "switch",
            title: "switch between two ranks of a PE (yield)",
            target: Target::Seconds(25e-9),
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
            target: Target::Seconds(55e-9),
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
            name: "line",
            title: "8 B between PEs, against a bare cache line",
            target: Target::TimesReference(1.35),
            unit: Unit::Time,
            vrt: program(
                "pingpong --pes 2 --ranks 2 --bytes 8 --operations 20000 --repetitions 21",
                "pingpong --pes 2 --ranks 2 --bytes 8 --operations 10000 --repetitions 11",
            ),
            reference: Reference::Vrt(program(
                "line --operations 20000 --repetitions 21",
                "line --operations 10000 --repetitions 11",
            )),
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

/// A row for messages between two PEs: bytes, name, title, target, unit, and the round trips per repetition.
macro_rules! between_pes {
    ($bytes:literal, $name:literal, $title:literal, $target:expr, $unit:expr, $trips:literal / $quick:literal) => {
        Row {
            name: $name,
            title: $title,
            target: $target,
            unit: $unit,
            vrt: program(
                concat!(
                    "pingpong --pes 2 --ranks 2 --bytes ",
                    $bytes,
                    " --operations ",
                    $trips,
                    " --repetitions 21"
                ),
                concat!(
                    "pingpong --pes 2 --ranks 2 --bytes ",
                    $bytes,
                    " --operations ",
                    $quick,
                    " --repetitions 11"
                ),
            ),
            reference: Reference::OpenMpi {
                program: program(
                    concat!("pingpong ", $bytes, " ", $trips, " 21"),
                    concat!("pingpong ", $bytes, " ", $quick, " 11"),
                ),
                processes: 2,
            },
        }
    };
}

#[rustfmt::skip]
fn longer_messages() -> Vec<Row> {
    const AS_WIDE: Target = Target::TimesReferenceBandwidth(1.0);
    vec![
        between_pes!(1024, "message-1024", "1 KiB message between PEs, one way", NO_SLOWER, Unit::Time, 20000/5000),
        between_pes!(65536, "message-65536", "64 KiB message between PEs, one way", NO_SLOWER, Unit::Time, 1000/200),
        between_pes!(16777216, "bandwidth-16m", "16 MiB between PEs (ping-pong)", AS_WIDE,
                     Unit::Bandwidth(16.0 * MEBIBYTE), 10/5),
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
