//! Rows of solvers.

use super::{Program, Reference, Row, Target, Unit, program};

const JACOBI_96: Program = program(
    "jacobi --pes 2 --ranks 2 --size 96 --iterations 1000",
    "jacobi --pes 2 --ranks 2 --size 96 --iterations 200",
);
const JACOBI_192: Program = program(
    "jacobi --pes 2 --ranks 2 --size 192 --iterations 150",
    "jacobi --pes 2 --ranks 2 --size 192 --iterations 50",
);

pub(super) fn rows() -> Vec<Row> {
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
