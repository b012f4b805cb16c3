//! Rows for C programs whose ranks run images of them, built by `vrtcc`.

use super::{Program, Reference, Row, Target, Unit, program};

const fn image(vrtrun: &'static str, full: &'static str, quick: &'static str) -> Program {
    Program { vrtrun: Some(vrtrun), ..program(full, quick) }
}

const BALANCED: &str = "--pes 2 --ranks 32 --lb greedy-refine --lb-period 100ms";

pub(super) fn rows() -> Vec<Row> {
    let mut rows = beside_rust();
    rows.extend(beside_open_mpi());
    rows.extend(costs());
    rows
}

fn beside_rust() -> Vec<Row> {
    vec![
        Row {
            name: "c-pingpong-8",
            title: "C face: 8 B to a rank of the same PE",
            target: Target::TimesReference(1.0),
            unit: Unit::Time,
            vrt: image("--pes 1 --ranks 2", "pingpong 8 50000 21", "pingpong 8 20000 11"),
            reference: Reference::Vrt(program(
                "pingpong --pes 1 --ranks 2 --bytes 8 --operations 50000 --repetitions 21",
                "pingpong --pes 1 --ranks 2 --bytes 8 --operations 20000 --repetitions 11",
            )),
        },
        Row {
            name: "c-ring-64",
            title: "C face: 64 ranks on 2 PEs, ring, a step",
            target: Target::TimesReference(1.0),
            unit: Unit::Time,
            vrt: image("--pes 2 --ranks 64", "ring 2000 11", "ring 500 7"),
            reference: Reference::Vrt(program(
                "ring --pes 2 --ranks 64 --operations 2000 --repetitions 11",
                "ring --pes 2 --ranks 64 --operations 500 --repetitions 7",
            )),
        },
        Row {
            name: "c-jacobi-96",
            title: "C face: Jacobi, 96^3 cells, 16 ranks per PE",
            target: Target::TimesReference(1.05),
            unit: Unit::Time,
            vrt: image("--pes 2 --ranks 32", "jacobi 96 1000 10", "jacobi 96 200 10"),
            reference: Reference::Vrt(program(
                "jacobi --pes 2 --ranks 32 --size 96 --iterations 1000",
                "jacobi --pes 2 --ranks 32 --size 96 --iterations 200",
            )),
        },
        Row {
            name: "c-jacobi-balanced",
            title: "C face: a costly quarter, balanced",
            target: Target::TimesReference(1.05),
            unit: Unit::Time,
            vrt: image(BALANCED, "jacobi 96 4000 10 25 8", "jacobi 96 2000 10 25 8"),
            reference: Reference::Vrt(program(
                "jacobi --pes 2 --ranks 32 --lb greedy-refine --lb-period 100ms --size 96 \
                 --uneven 0.25:8 --iterations 4000",
                "jacobi --pes 2 --ranks 32 --lb greedy-refine --lb-period 100ms --size 96 \
                 --uneven 0.25:8 --iterations 2000",
            )),
        },
    ]
}

/// More ranks than cores, without a change of the program.
fn beside_open_mpi() -> Vec<Row> {
    macro_rules! row {
        ($ranks:literal, $title:literal) => {
            Row {
                name: concat!("c-jacobi-", $ranks),
                title: $title,
                target: Target::TimesReference(0.8),
                unit: Unit::Time,
                vrt: image(
                    concat!("--pes 2 --ranks ", $ranks),
                    "jacobi 96 1000 10",
                    "jacobi 96 200 10",
                ),
                reference: Reference::OpenMpi {
                    program: program("jacobi 96 1000 10", "jacobi 96 200 10"),
                    processes: $ranks,
                },
            }
        };
    }
    vec![
        row!(8, "C program: Jacobi, 96^3 cells, 8 ranks"),
        row!(64, "C program: Jacobi, 96^3 cells, 64 ranks"),
    ]
}

/// The cost of an image.
fn costs() -> Vec<Row> {
    let of = |target, unit| {
        move |name, title, vrt| Row { name, title, target, unit, vrt, reference: Reference::None }
    };
    let row = |name, title, most, vrt| of(Target::Seconds(most), Unit::Time)(name, title, vrt);
    let memory = |name, title, most, vrt| of(Target::Bytes(most), Unit::Memory)(name, title, vrt);
    const SHARED: &str = "--pes 2 --ranks 4000 --share libc.so,libm.so";
    const OWN: &str = "--pes 2 --ranks 1000";
    vec![
        row(
            "c-calls",
            "C program: a call of MPI_Comm_rank",
            30e-9,
            image("--pes 1 --ranks 1", "calls 1000000 11", "calls 100000 5"),
        ),
        row(
            "c-start-many",
            "C program: 100,000 ranks begin and meet",
            3.0,
            image("--pes 2 --ranks 100000 --share libc.so,libm.so", "start", "start"),
        ),
        row(
            "c++-start",
            "C++, own libraries: 1,000 ranks begin and meet",
            0.3,
            image(OWN, "start-cxx", "start-cxx"),
        ),
        memory(
            "c-memory",
            "C program: memory of a rank, with page tables",
            32.0 * 1024.0,
            image(SHARED, "start", "start"),
        ),
        memory(
            "c++-memory",
            "C++, own libraries: memory of a rank",
            200.0 * 1024.0,
            image(OWN, "start-cxx", "start-cxx"),
        ),
    ]
}
