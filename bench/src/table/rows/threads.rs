//! The heap of threads compared with the C library's.

use super::{Reference, Row, Target, Unit, program};

/// The heap of threads compared with the C library's.
pub(super) fn rows() -> Vec<Row> {
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
                        " --pes 1 --ranks 1 --no-bind --operations 1000000 --repetitions 5"
                    ),
                    concat!(
                        "threads --what ",
                        $what,
                        " --pes 1 --ranks 1 --no-bind --operations 100000 --repetitions 5"
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
