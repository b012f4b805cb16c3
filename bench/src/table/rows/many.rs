//! Rows of very many ranks.

use super::{Reference, Row, Target, Unit, program};

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

pub(super) fn rows() -> Vec<Row> {
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
            "barrier-8192",
            "barrier of 8,192 ranks on 2 PEs",
            2e-3,
            "many --what barrier --pes 2 --ranks 8192 --operations 50 --repetitions 11",
        ),
        of_many(
            "ring-8192",
            "ring of 8 B sendrecv, 8,192 ranks, a step",
            2e-3,
            "many --what ring --pes 2 --ranks 8192 --operations 50 --repetitions 11",
        ),
        of_many(
            "switch-many",
            "switch among 16,384 ranks of a PE",
            300e-9,
            "many --what switch --pes 1 --ranks 16384 --operations 50 --repetitions 11",
        ),
    ]
}
