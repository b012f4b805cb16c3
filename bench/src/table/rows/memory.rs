//! Rows for memory: accessed remotely, packed, and moved with its rank.

use super::{NO_SLOWER, Reference, Row, Target, Unit, program};

pub(super) fn accesses() -> Vec<Row> {
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

/// A row for the rank that moves.
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

pub(super) fn moves() -> Vec<Row> {
    vec![
        moved(
            "hand-over",
            "move a rank of 1 KiB inside a node",
            5e-6,
            "move --pes 2 --ranks 2 --bytes 1024 --operations 5000 --repetitions 11",
            "move --pes 2 --ranks 2 --bytes 1024 --operations 1000 --repetitions 5",
        ),
        moved(
            "hand-over-1m",
            "move a rank of 1 MiB inside a node",
            5e-6,
            "move --pes 2 --ranks 2 --bytes 1048576 --operations 5000 --repetitions 11",
            "move --pes 2 --ranks 2 --bytes 1048576 --operations 1000 --repetitions 5",
        ),
        moved(
            "hand-over-16m",
            "move a rank of 16 MiB inside a node",
            5e-6,
            "move --pes 2 --ranks 2 --bytes 16777216 --operations 5000 --repetitions 11",
            "move --pes 2 --ranks 2 --bytes 16777216 --operations 1000 --repetitions 5",
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
            "ship-1k",
            "move a rank of 1 KiB to another node",
            20e-6,
            "move --node-size 1 --pes 2 --ranks 2 --bytes 1024 --operations 500 --repetitions 11",
            "move --node-size 1 --pes 2 --ranks 2 --bytes 1024 --operations 100 --repetitions 5",
        ),
        moved(
            "ship-1m",
            "move a rank of 1 MiB to another node",
            0.25e-3,
            "move --node-size 1 --pes 2 --ranks 2 --bytes 1048576 --operations 200 --repetitions 11",
            "move --node-size 1 --pes 2 --ranks 2 --bytes 1048576 --operations 50 --repetitions 5",
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
