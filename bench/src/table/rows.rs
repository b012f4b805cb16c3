//! The rows of the table, by subject.

use super::peers::Peer;
use super::row::Target::{Bytes, Seconds, TimesReference, TimesReferenceBandwidth};
use super::row::{Program, Row, Target};

/// The names of all rows.
pub(super) fn names() -> Vec<String> {
    all().into_iter().map(|row| row.name).collect()
}

/// All rows, in the order of the table.
pub(super) fn all() -> Vec<Row> {
    [messages(), collectives(), accesses(), many(), moves(), solvers(), threads(), images()]
        .concat()
}

/// The subject of a row.
pub(super) fn subject_of(name: &str) -> Subject {
    let is_among = |rows: Vec<Row>| rows.iter().any(|row| row.name == name);
    match () {
        () if is_among(many()) => Subject::Many,
        () if is_among(images()) => Subject::C,
        () => Subject::Speed,
    }
}

/// The subjects of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// Messages, collective operations, one-sided access, moves, solvers, threads.
    Speed,
    /// Starting, and many ranks.
    Many,
    /// C programs.
    C,
}

const MEBIBYTE: f64 = 1_048_576.0;
/// As fast as Open MPI.
const NO_SLOWER: Target = TimesReference(1.0);
/// For ranks that share a core, or 100,000 of them: processes would not be comparable.
const ADAPTIVE: &[Peer] = &[Peer::AmpiThreads, Peer::AmpiProcesses];
/// For programs that ranks without shared memory can run, and processes cannot.
const ADAPTIVE_APART: &[Peer] = &[Peer::AmpiProcesses];

/// Messages between two ranks, and the switch between them.
fn messages() -> Vec<Row> {
    let in_pe = "pingpong --pes 1 --ranks 2 --bytes 8 --operations 50000|20000 --repetitions 21|11";
    let between = |name, title, target, bytes: u32, trips| {
        let ours = format!(
            "pingpong --pes 2 --ranks 2 --bytes {bytes} --operations {trips} --repetitions 21|11"
        );
        Row::new(name, title, target, ours).beside(2, format!("pingpong {bytes} {trips} 21|11"))
    };
    let through_mpi = |name, title, target, bytes: u32, trips, over_tcp| {
        let ours = Program::from(format!(
            "pingpong --ranks 2 --node-size 1 --bytes {bytes} --operations {trips} --repetitions 21|11"
        ));
        let theirs = Program::from(format!("pingpong {bytes} {trips} 21|11"));
        Row::new(name, title, target, Program { through_mpi: true, over_tcp, ..ours })
            .beside(2, Program { over_tcp, ..theirs })
    };
    let (latency, bandwidth) = (TimesReference(1.3), TimesReferenceBandwidth(0.95));
    let (short, long) = ("20000|10000", "100|50");
    vec![
        Row::new(
            "switch",
            "switch between two ranks of a PE (yield)",
            Seconds(25e-9),
            "switch --pes 1 --ranks 2 --operations 200000|50000 --repetitions 21|11",
        )
        .twin(ADAPTIVE, 1, 2, "yield 200000|50000 21|11"),
        Row::new(
            "message-in-pe",
            "8 B message between ranks of one PE, one way",
            Seconds(55e-9),
            in_pe,
        )
        .twin(ADAPTIVE, 1, 2, "pingpong 8 50000|20000 21|11"),
        between(
            "message-between-pes",
            "8 B message between PEs, one way",
            TimesReference(0.75),
            8,
            short,
        ),
        Row::new(
            "line",
            "8 B between PEs, against a bare cache line",
            TimesReference(1.35),
            "pingpong --pes 2 --ranks 2 --bytes 8 --operations 20000|10000 --repetitions 21|11",
        )
        .against("line --operations 20000|10000 --repetitions 21|11"),
        between(
            "bandwidth",
            "1 MiB between PEs (ping-pong)",
            TimesReferenceBandwidth(1.5),
            1 << 20,
            long,
        )
        .of_bytes(MEBIBYTE),
        between(
            "message-1024",
            "1 KiB message between PEs, one way",
            NO_SLOWER,
            1024,
            "20000|5000",
        ),
        between(
            "message-65536",
            "64 KiB message between PEs, one way",
            NO_SLOWER,
            65536,
            "1000|200",
        ),
        between(
            "bandwidth-16m",
            "16 MiB between PEs (ping-pong)",
            TimesReferenceBandwidth(1.0),
            16 << 20,
            "10|5",
        )
        .of_bytes(16.0 * MEBIBYTE),
        through_mpi(
            "message-through-mpi-tcp",
            "8 B message through MPI over TCP, one way",
            latency,
            8,
            short,
            true,
        ),
        through_mpi(
            "bandwidth-through-mpi-tcp",
            "1 MiB through MPI over TCP (ping-pong)",
            bandwidth,
            1 << 20,
            long,
            true,
        )
        .of_bytes(MEBIBYTE),
        through_mpi(
            "message-through-mpi",
            "8 B message through the MPI transport, one way",
            latency,
            8,
            short,
            false,
        ),
        through_mpi(
            "bandwidth-through-mpi",
            "1 MiB through the MPI transport (ping-pong)",
            bandwidth,
            1 << 20,
            long,
            false,
        )
        .of_bytes(MEBIBYTE),
    ]
}

/// Operations of many ranks together.
fn collectives() -> Vec<Row> {
    let mut rows = vec![
        Row::new(
            "ring",
            "64 ranks on 2 PEs, ring of 8 B sendrecv, a step",
            Seconds(3e-6),
            "ring --pes 2 --ranks 64 --operations 2000|500 --repetitions 11|7",
        )
        .beside(64, "ring 100|50 5|3"),
        Row::new(
            "allreduce",
            "allreduce of a double, 64 ranks on 2 PEs",
            Seconds(5e-6),
            "allreduce --pes 2 --ranks 64 --operations 2000|500 --repetitions 11|7",
        )
        .beside(64, "allreduce 100|50 5|3"),
    ];
    // Operation, bytes, their name, target, the operations of vrt's program and of Open MPI's.
    type Case = (&'static str, u32, &'static str, Target, &'static str, &'static str);
    let mut add = |ranks: u32, (what, bytes, size, target, ours, theirs): Case| {
        let line = format!(
            "collective --what {what} --bytes {bytes} --pes 2 --ranks {ranks} --repetitions 11|7 --operations {ours}"
        );
        let title = format!("{what}, {size} a rank, {ranks} ranks on 2 PEs");
        let row = Row::new(&format!("{what}-{bytes}-{ranks}"), &title, target, line);
        rows.push(row.beside(ranks, format!("collective {what} {bytes} {theirs} 11|7")));
    };
    for what in ["allreduce", "broadcast", "alltoall", "allgather"] {
        for (bytes, size, count) in
            [(8, "8 B", "20000|5000"), (8192, "8 KiB", "5000|1000"), (1 << 20, "1 MiB", "50|20")]
        {
            add(2, (what, bytes, size, NO_SLOWER, count, count));
        }
    }
    for case in [
        ("barrier", 8, "no data", Seconds(19e-6), "2000|500", "50|20"),
        ("allreduce", 65536, "64 KiB", NO_SLOWER, "50|10", "20|10"),
        ("broadcast", 8, "8 B", NO_SLOWER, "2000|500", "50|20"),
        ("broadcast", 65536, "64 KiB", NO_SLOWER, "100|20", "20|10"),
        ("alltoall", 8, "8 B", NO_SLOWER, "500|100", "20|10"),
        ("alltoall", 4096, "4 KiB", NO_SLOWER, "50|10", "10|5"),
        ("allgather", 8, "8 B", NO_SLOWER, "1000|200", "20|10"),
        ("allgather", 4096, "4 KiB", NO_SLOWER, "50|10", "10|5"),
        ("reduce", 65536, "64 KiB", NO_SLOWER, "50|10", "20|10"),
        ("reduce-scatter", 1024, "1 KiB", NO_SLOWER, "50|10", "20|10"),
    ] {
        add(64, case);
    }
    rows
}

/// Memory that is accessed remotely, or packed.
fn accesses() -> Vec<Row> {
    let onesided = |what: &str| {
        let ours = format!(
            "onesided --what {what} --pes 2 --ranks 2 --operations 50000|10000 --repetitions 11|7"
        );
        Row::new(what, &format!("{what} of 8 B with its flush, 2 ranks on 2 PEs"), NO_SLOWER, ours)
            .beside(2, format!("onesided {what} 8 50000|10000 11|7"))
    };
    let pack =
        |how| format!("pack {how} --pes 1 --ranks 1 --operations 20000|5000 --repetitions 11|7");
    vec![
        onesided("put"),
        onesided("get"),
        Row::new(
            "pack",
            "pack a column of 256^2 doubles, against a loop",
            TimesReference(1.1),
            pack(""),
        )
        .against(pack("--by-hand")),
    ]
}

/// Very many ranks.
fn many() -> Vec<Row> {
    let of_many = |name: &str, title, target, options: &str| {
        let (what, _) = name.split_once('-').unwrap_or((name, ""));
        Row::new(name, title, Seconds(target), format!("many --what {what} {options}"))
    };
    let (most, some) = (100_000, 8192);
    let of_most = "--pes 2 --ranks 100000 --operations 10 --repetitions 5";
    let of_some = "--pes 2 --ranks 8192 --operations 50 --repetitions 11";
    vec![
        of_many("start-many", "start of 100,000 ranks on 2 PEs", 3.0, "--pes 2 --ranks 100000"),
        of_many("barrier-many", "barrier of 100,000 ranks on 2 PEs", 50e-3, of_most).twin(
            ADAPTIVE,
            2,
            most,
            "collective barrier 8 10|5 2",
        ),
        of_many("allreduce-many", "allreduce of a double, 100,000 ranks on 2 PEs", 50e-3, of_most)
            .twin(ADAPTIVE, 2, most, "allreduce 10|5 2"),
        of_many("ring-many", "ring of 8 B sendrecv, 100,000 ranks, a step", 50e-3, of_most).twin(
            ADAPTIVE,
            2,
            most,
            "ring 10|5 2",
        ),
        of_many("barrier-8192", "barrier of 8,192 ranks on 2 PEs", 2e-3, of_some).twin(
            ADAPTIVE,
            2,
            some,
            "collective barrier 8 50|10 5|3",
        ),
        of_many("ring-8192", "ring of 8 B sendrecv, 8,192 ranks, a step", 2e-3, of_some).twin(
            ADAPTIVE,
            2,
            some,
            "ring 50|10 5|3",
        ),
        of_many(
            "switch-many",
            "switch among 16,384 ranks of a PE",
            300e-9,
            "--pes 1 --ranks 16384 --operations 50 --repetitions 11",
        ),
    ]
}

/// A rank that moves, with its memory.
fn moves() -> Vec<Row> {
    let moved = |name, title: &str, target, options: &str| {
        let line = format!("move {options} --pes 2 --ranks 2 --repetitions 11|5");
        Row::new(name, title, Seconds(target), line)
    };
    let on_node = |name, size, bytes: u32| {
        let options = format!("--bytes {bytes} --operations 5000|1000");
        moved(name, &format!("move a rank of {size} inside a node"), 5e-6, &options)
    };
    let across = |name, size, target, bytes: u32, count| {
        let options = format!("--node-size 1 --bytes {bytes} --operations {count}");
        moved(name, &format!("move a rank of {size} to another node"), target, &options)
    };
    let c = |bytes: u32, count| format!("move {bytes} {count} 11|5");
    vec![
        on_node("hand-over", "1 KiB", 1 << 10).twin(ADAPTIVE, 2, 2, c(1 << 10, "100|20")),
        on_node("hand-over-1m", "1 MiB", 1 << 20).twin(ADAPTIVE, 2, 2, c(1 << 20, "100|20")),
        on_node("hand-over-16m", "16 MiB", 16 << 20).twin(ADAPTIVE, 2, 2, c(16 << 20, "20|10")),
        on_node("hand-over-large", "64 MiB", 64 << 20),
        moved(
            "touch-huge",
            "first touch of 64 MiB after that, 2 MiB pages",
            0.5e-3,
            "--touch --bytes 67108864",
        ),
        moved(
            "touch",
            "first touch of 64 MiB after that, 4 KiB pages",
            5e-3,
            "--touch --no-huge-pages --bytes 67108864",
        ),
        across("ship-1k", "1 KiB", 20e-6, 1 << 10, "500|100").twin(
            ADAPTIVE_APART,
            2,
            2,
            c(1 << 10, "100|20"),
        ),
        across("ship-1m", "1 MiB", 0.25e-3, 1 << 20, "200|50").twin(
            ADAPTIVE_APART,
            2,
            2,
            c(1 << 20, "100|20"),
        ),
        across("ship", "16 MiB", 4e-3, 16 << 20, "50|10").twin(
            ADAPTIVE_APART,
            2,
            2,
            c(16 << 20, "20|10"),
        ),
        moved(
            "move-by-state",
            "move a rank by 1 MiB of state, inside a node",
            1e-3,
            "--move state --bytes 1048576 --operations 100|20",
        ),
    ]
}

fn solvers() -> Vec<Row> {
    let size = |size: u32, iterations: &str| {
        let ours = |ranks: u32| {
            format!("jacobi --pes 2 --ranks {ranks} --size {size} --iterations {iterations}")
        };
        let c = format!("jacobi {size} {iterations} 10");
        let title = format!("Jacobi, {size}^3 cells");
        let few = Row::new(
            &format!("jacobi-{size}"),
            &format!("{title}, 2 ranks on 2 PEs"),
            TimesReference(1.02),
            ours(2),
        );
        let many = Row::new(
            &format!("ranks-per-pe-{size}"),
            &format!("{title}, 16 ranks per PE against 1"),
            TimesReference(1.05),
            ours(32),
        );
        [few.beside(2, c.clone()), many.against(ours(2)).twin(&Peer::ALL, 2, 32, c)]
    };
    let ([a, b], [c, d]) = (size(96, "1000|200"), size(192, "150|50"));
    vec![a, c, b, d]
}

/// The heap of threads compared with the C library's.
fn threads() -> Vec<Row> {
    let row = |name, title, what| {
        let line = |how| {
            format!("threads --what {what} {how} --operations 1000000|100000 --repetitions 5")
        };
        Row::new(name, title, TimesReference(1.1), line("--pes 1 --ranks 1 --no-bind"))
            .against(line("--plain"))
    };
    vec![
        row("collect-in-threads", "2 threads collect a million strings, a string", "collect"),
        row(
            "channel-between-threads",
            "strings through a channel between threads, each",
            "channel",
        ),
        row("tasks-of-tokio", "strings between tasks of tokio, each", "tasks"),
    ]
}

/// C programs whose ranks run images of them, built by `vrtcc`.
fn images() -> Vec<Row> {
    let image = |vrtrun, line: &str| Program { vrtrun: Some(vrtrun), ..Program::from(line) };
    const BALANCED: &str = "--pes 2 --ranks 32 --lb greedy-refine --lb-period 100ms";
    const JACOBI: &str = "jacobi 96 1000|200 10";
    const OWN: &str = "--pes 2 --ranks 1000";
    let row =
        |name, title, target, vrtrun, line| Row::new(name, title, target, image(vrtrun, line));
    vec![
        row(
            "c-pingpong-8",
            "C face: 8 B to a rank of the same PE",
            TimesReference(1.0),
            "--pes 1 --ranks 2",
            "pingpong 8 50000|20000 21|11",
        )
        .against(
            "pingpong --pes 1 --ranks 2 --bytes 8 --operations 50000|20000 --repetitions 21|11",
        )
        .twin(ADAPTIVE, 1, 2, "pingpong 8 50000|20000 21|11"),
        row(
            "c-ring-64",
            "C face: 64 ranks on 2 PEs, ring, a step",
            TimesReference(1.0),
            "--pes 2 --ranks 64",
            "ring 2000|500 11|7",
        )
        .against("ring --pes 2 --ranks 64 --operations 2000|500 --repetitions 11|7")
        .twin(&Peer::ALL, 2, 64, "ring 100|50 5|3"),
        row(
            "c-jacobi-96",
            "C face: Jacobi, 96^3 cells, 16 ranks per PE",
            TimesReference(1.05),
            "--pes 2 --ranks 32",
            JACOBI,
        )
        .against("jacobi --pes 2 --ranks 32 --size 96 --iterations 1000|200")
        .twin(&Peer::ALL, 2, 32, JACOBI),
        row(
            "c-jacobi-balanced",
            "C face: a costly quarter, balanced",
            TimesReference(1.05),
            BALANCED,
            "jacobi 96 4000|2000 10 25 8",
        )
        .against(format!("jacobi {BALANCED} --size 96 --uneven 0.25:8 --iterations 4000|2000")),
        // More ranks than cores, without a change of the program.
        row(
            "c-jacobi-8",
            "C program: Jacobi, 96^3 cells, 8 ranks",
            TimesReference(0.8),
            "--pes 2 --ranks 8",
            JACOBI,
        )
        .beside(8, JACOBI),
        row(
            "c-jacobi-64",
            "C program: Jacobi, 96^3 cells, 64 ranks",
            TimesReference(0.8),
            "--pes 2 --ranks 64",
            JACOBI,
        )
        .beside(64, JACOBI),
        row(
            "c-calls",
            "C program: a call of MPI_Comm_rank",
            Seconds(30e-9),
            "--pes 1 --ranks 1",
            "calls 1000000|100000 11|5",
        )
        .twin(&Peer::ALL, 1, 1, "calls 1000000|100000 11|5"),
        row(
            "c-start-many",
            "C program: 100,000 ranks begin and meet",
            Seconds(3.0),
            "--pes 2 --ranks 100000 --share libc.so,libm.so",
            "start",
        ),
        row(
            "c++-start",
            "C++, own libraries: 1,000 ranks begin and meet",
            Seconds(0.3),
            OWN,
            "start-cxx",
        ),
        row(
            "c-memory",
            "C program: memory of a rank, with page tables",
            Bytes(32.0 * 1024.0),
            "--pes 2 --ranks 4000 --share libc.so,libm.so",
            "start",
        ),
        row(
            "c++-memory",
            "C++, own libraries: memory of a rank",
            Bytes(200.0 * 1024.0),
            OWN,
            "start-cxx",
        ),
    ]
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
    fn quick_runs_do_less_of_the_same() {
        for row in all() {
            let [full, quick] = [false, true].map(|is_quick| row.vrt.words(is_quick));
            assert_eq!((full[0], full.len()), (quick[0], quick.len()), "{}", row.name);
            for (full, quick) in full.iter().zip(&quick).filter(|(full, quick)| full != quick) {
                let [full, quick] = [full, quick].map(|it| it.parse::<u32>().unwrap());
                assert!(quick < full, "{}", row.name);
            }
        }
    }

    #[test]
    fn rows_without_a_reference_of_their_own_have_twins_too() {
        let twin = |name: &str| all().into_iter().find(|row| row.name == name).unwrap().twin;
        for name in ["c-pingpong-8", "c-ring-64", "c-jacobi-96", "c-calls", "ring-many"] {
            assert!(twin(name).is_some(), "{name}");
        }
        assert_eq!(twin("message-in-pe").unwrap().pes, 1);
        assert_eq!(twin("ranks-per-pe-96").unwrap().processes, 32);
        assert_eq!(twin("alltoall-4096-64").unwrap().processes, 64);
        assert!(twin("touch").is_none());
    }

    #[test]
    fn ranks_that_share_no_memory_are_not_compared_with_threads() {
        for row in all().into_iter().filter(|row| row.vrt.through_mpi) {
            assert!(!row.twin.unwrap().peers.contains(&Peer::AmpiThreads), "{}", row.name);
        }
    }

    #[test]
    fn twins_solve_what_the_row_solves() {
        for row in all().into_iter().filter(|row| row.name.contains("ranks-per-pe")) {
            let twin = row.twin.unwrap().program;
            for is_quick in [false, true] {
                let (ours, words) = (row.vrt.words(is_quick).join(" "), twin.words(is_quick));
                let expected = format!("--size {} --iterations {}", words[1], words[2]);
                assert!(ours.ends_with(&expected), "{ours}: {words:?}");
            }
        }
    }
}
