//! One set of MPI's rules under both faces: the same calls through the C face and the Rust API give the same results,
//! and are refused at the same places.

use std::cell::Cell;
use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::{Mutex, Once};

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use vrt::collective::SystemOperation;
use vrt::topology::{
    CartesianCommunicator, Communicator, GraphCommunicator, SimpleCommunicator, dimensions,
};
use vrt::traits::*;
use vrt::window::LockKind;
use vrt::{Count, Rank};
use vrt_tests::job::Job;

use crate::program::Program;

const SEQUENCES: Program = Program::new("sequences.c");

thread_local! {
    /// Panics on this thread are results.
    static IS_CALLED: Cell<bool> = const { Cell::new(false) };
}

/// The result of a call, `None` if it is refused.
fn refusable<R>(call: impl FnOnce() -> R) -> Option<R> {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let usual = take_hook();
        set_hook(Box::new(move |info| {
            if !IS_CALLED.get() {
                usual(info);
            }
        }));
    });
    IS_CALLED.set(true);
    let result = catch_unwind(AssertUnwindSafe(call)).ok();
    IS_CALLED.set(false);
    result
}

/// Numbers as the other program prints them.
fn list(numbers: &[i32]) -> String {
    let numbers: Vec<String> = numbers.iter().map(i32::to_string).collect();
    format!("[{}]", numbers.join(" "))
}

/// Calls on a window of one value of each rank; the target is `to`, or the rank itself: `q`, `s`, `u`.
fn window(comm: &SimpleCommunicator, to: Rank, calls: &str) -> String {
    let (here, size) = (comm.rank(), comm.size());
    let from = (here - (to - here)).rem_euclid(size);
    let window = comm.allocate_window(vec![100 * here]);
    let mut said = String::new();
    comm.barrier();
    for call in calls.chars() {
        let mut result = None;
        let mut value = [-1];
        let done = refusable(|| match call {
            'F' => window.fence(),
            'N' => window.last_fence(),
            'n' => window.fence(),
            'p' => window.put(to, 0, &[7]),
            'q' => window.put(here, 0, &[7]),
            'a' => window.accumulate(to, 0, &[7], SystemOperation::sum()),
            'g' => {
                window.get(to, 0, &mut value);
                result = Some(value[0]);
            }
            'o' => window.put(to, 1, &[7]),
            'r' => window.put(99, 0, &[7]),
            'L' => window.lock(LockKind::Exclusive, to),
            'S' => window.lock(LockKind::Shared, to),
            's' => window.lock(LockKind::Shared, here),
            'U' => window.unlock(to),
            'u' => window.unlock(here),
            'A' => window.lock_all(),
            'Z' => window.unlock_all(),
            'f' => window.flush(to),
            'h' => window.flush_all(),
            'y' => window.sync(),
            'P' => {
                window.post(&comm.group().include(&[from]));
                window.start(&comm.group().include(&[to]));
            }
            'C' => window.complete(),
            'W' => window.wait(),
            'T' => result = Some(window.test().into()),
            'B' => comm.barrier(),
            _ => unreachable!("{call}"),
        });
        if let Some(result) = result {
            write!(said, "{result}").unwrap();
        }
        said.push(if done.is_some() { '.' } else { 'x' });
        if done.is_none() {
            break;
        }
    }
    said
}

fn dims(numbers: &[i32]) -> String {
    let mut given = numbers[2..].to_vec();
    match refusable(|| dimensions(numbers[0], &mut given)) {
        Some(()) => list(&given),
        None => "x".to_owned(),
    }
}

/// The parts that the neighbours have sent: a number for each edge.
fn exchange(comm: &impl Communicator, sources: usize, destinations: usize) -> String {
    let me = comm.rank();
    let mine: Vec<i32> = (0..destinations as i32).map(|edge| 100 * me + edge).collect();
    let mut said = String::new();
    let mut theirs = vec![-1; sources];
    comm.neighbor_all_to_all_into(&mine[..], &mut theirs[..]);
    said.push_str(&list(&theirs));
    theirs.fill(-1);
    comm.neighbor_all_gather_into(&me, &mut theirs[..]);
    said.push_str(&list(&theirs));
    said
}

fn grid(world: &SimpleCommunicator, numbers: &[i32]) -> String {
    let n = numbers[0] as usize;
    let flags = |at: usize| -> Vec<bool> {
        numbers[1 + at * n..][..n].iter().map(|flag| *flag != 0).collect()
    };
    let (shape, closed, kept) = (&numbers[1..][..n], flags(1), flags(2));
    let rank = |rank: Option<Rank>| rank.unwrap_or(-1);
    let mut said = match refusable(|| world.cartesian_map(shape, &closed)) {
        Some(mapped) => rank(mapped).to_string(),
        None => "x".to_owned(),
    };
    let made = refusable(|| world.create_cartesian_communicator(shape, &closed, false));
    let comm: CartesianCommunicator = match made {
        None => return said + "x",
        Some(None) => return said + "-",
        Some(Some(comm)) => comm,
    };
    let coords = comm.rank_to_coordinates(comm.rank());
    said.push_str(&list(&coords));
    for d in 0..n {
        for by in [0, 1, -1, 2, 7, Count::MAX, Count::MIN] {
            let (source, destination) = comm.shift(d as Count, by);
            write!(said, "{},{} ", rank(source), rank(destination)).unwrap();
            let mut there = coords.clone();
            there[d] = by;
            match refusable(|| comm.coordinates_to_rank(&there)) {
                Some(found) => write!(said, "{found} ").unwrap(),
                None => said.push_str("x "),
            }
        }
    }
    said.push_str(&exchange(&comm, 2 * n, 2 * n));
    let part = comm.subgroup(&kept);
    write!(said, "{}/{} {}", part.rank(), part.size(), part.num_dimensions()).unwrap();
    said
}

/// `symmetric`: each edge has one in the other direction, so that neighbours can exchange parts.
fn graph(world: &SimpleCommunicator, numbers: &[i32], symmetric: bool) -> String {
    let (index, edges) = numbers[1..].split_at(numbers[0] as usize);
    let made = refusable(|| world.create_graph_communicator(index, &edges[1..], false));
    let comm: GraphCommunicator = match made {
        None => return "x".to_owned(),
        Some(None) => return "-".to_owned(),
        Some(Some(comm)) => comm,
    };
    let around = comm.neighbors();
    let parts = if symmetric { exchange(&comm, around.len(), around.len()) } else { String::new() };
    list(&around) + &parts
}

/// Edges, each named by one rank.
fn edges(world: &SimpleCommunicator, numbers: &[i32]) -> String {
    let own = numbers[1..].chunks_exact(3).filter(|edge| edge[0] == world.rank());
    let named: Vec<(Rank, Rank)> = own.map(|edge| (edge[1], edge[2])).collect();
    let Some(comm) = refusable(|| world.create_distributed_graph(&named, false)) else {
        return "x".to_owned();
    };
    let (sources, destinations) = (comm.sources(), comm.destinations());
    let ranks = list(&sources) + &list(&destinations);
    ranks + &exchange(&comm, sources.len(), destinations.len())
}

fn run(world: &SimpleCommunicator, case: &str) -> String {
    let (kind, rest) = case.split_at(1);
    let numbers =
        || -> Vec<i32> { rest.split_whitespace().map(|number| number.parse().unwrap()).collect() };
    let (rank, size) = (world.rank(), world.size());
    match kind {
        "w" => window(&SimpleCommunicator::self_comm(), 0, rest.trim()),
        "W" => window(world, (rank + 1) % size, rest.trim()),
        "d" => dims(&numbers()),
        "c" => grid(world, &numbers()),
        "g" => graph(world, &numbers(), false),
        "G" => graph(world, &numbers(), true),
        "e" => edges(world, &numbers()),
        _ => unreachable!("{case}"),
    }
}

/// Runs sequences on so many ranks by both faces, which must agree; returns how many had a refused call.
#[track_caller]
fn both_agree(ranks: u32, cases: &[String]) -> usize {
    let said = Mutex::new(vec![vec![String::new(); cases.len()]; ranks as usize]);
    vrt::run_local(ranks, |world| {
        for (number, case) in cases.iter().enumerate() {
            let result = run(world, case);
            said.lock().unwrap()[world.rank() as usize][number] = result;
        }
    });
    let said = said.into_inner().unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), cases.join("\n")).unwrap();
    let options = format!("--pes 1 --ranks {ranks}");
    let job = Job::of(SEQUENCES.job(&options, file.path().to_str().unwrap())).succeeds();
    let mut lines = 0;
    for line in job.out.lines() {
        let mut parts = line.splitn(3, ' ');
        let number: usize = parts.next().unwrap().parse().unwrap();
        let rank: usize = parts.next().unwrap().parse().unwrap();
        let (rust, c) = (&said[rank][number], parts.next().unwrap());
        assert_eq!(rust, c, "rank {rank} of {ranks}, `{}`: the Rust API, and C", cases[number]);
        lines += 1;
    }
    assert_eq!(lines, cases.len() * ranks as usize);
    let is_refused = |number: &usize| said.iter().any(|said| said[*number].contains('x'));
    (0..cases.len()).filter(is_refused).count()
}

/// All sequences of so many calls on a window that only the rank itself is in.
#[test]
fn epochs_of_one_rank() {
    const CALLS: &str = "FNpLSUAZPCTfhg";
    let mut cases: Vec<String> = vec!["w ".to_owned()];
    let mut last = cases.clone();
    for _ in 0..3 {
        let longer = |case: &String| -> Vec<String> {
            CALLS.chars().map(|call| format!("{case}{call}")).collect()
        };
        last = last.iter().flat_map(longer).collect();
        cases.extend(last.iter().cloned());
    }
    let mut random = StdRng::seed_from_u64(46);
    let calls: Vec<char> = CALLS.chars().chain("oray".chars()).collect();
    let any = |_| -> String { (0..8).map(|_| *calls.choose(&mut random).unwrap()).collect() };
    cases.extend((0..2000).map(any).map(|calls| format!("w {calls}")));
    let refused = both_agree(1, &cases);
    assert!((100..cases.len() - 100).contains(&refused), "{refused} of {}", cases.len());
}

/// Sequences on a window of several ranks, in which nobody waits for ever.
#[test]
fn epochs_of_several_ranks() {
    let sequences = [
        "FpFgF",
        "FaFgN",
        "FaFAZ",
        "FFLU",
        "FaLU",
        "LaUB",
        "SgUBLpUBSgU",
        "AafhBgZ",
        "PpCWg",
        "PaCTWFgN",
        "PgCWPpCWFgF",
        "LaUFgF",
        "AhZLfU",
        "FrF",
        "oF",
        "ANZ",
        "LFU",
        "PFC",
        "NaF",
        "Ff",
        // Only the ranks that are locked, or that an epoch was started for.
        "sfu",
        "spu",
        "SsfpUuFgN",
        "SsUqu",
        "SsUpu",
        "SsUfu",
        "SsuF",
        "sAu",
        "sNu",
        "Pq",
        "PfCW",
        "PLC",
        "PpCWNq",
        // That nothing precedes a fence changes nothing.
        "nFpFg",
        "nAqZSU",
        "naFSU",
        "naSU",
        "naP",
        "npNp",
    ];
    let cases: Vec<String> = sequences.iter().map(|calls| format!("W {calls}")).collect();
    // A refused fence would leave others in theirs: those are the ones that all refuse.
    for ranks in [1, 2, 5] {
        both_agree(ranks, &cases);
    }
}

/// Dimensions whose product is 2^32, 2^32 + 4, 2^64 and 2^64 + 4: in too few bits it is none, or 4.
const BEYOND: [(usize, &str); 8] = [
    (2, "65536 65536"),
    (3, "65536 65536 0"),
    (2, "66050 65026"),
    (3, "66050 65026 0"),
    (4, "65536 65536 65536 65536"),
    (5, "65536 65536 65536 65536 0"),
    (3, "2147418113 1718039348 5"),
    (4, "2147418113 1718039348 5 0"),
];

/// Numbers of ranks divided among dimensions, some of them given.
#[test]
fn dimensions_of_any_numbers() {
    let mut random = StdRng::seed_from_u64(46);
    let mut cases: Vec<String> = (1..=400)
        .flat_map(|ranks| (1..=4).map(move |n| format!("d {ranks} {n}{}", " 0".repeat(n))))
        .collect();
    for _ in 0..2000 {
        let n = random.random_range(0..6usize);
        let dim = |random: &mut StdRng| match random.random_range(0..4) {
            0 => *[65536, Count::MAX, Count::MIN, -1, 46341].choose(random).unwrap(),
            1 => random.random_range(1..5),
            _ => 0,
        };
        let dims: String = (0..n).map(|_| format!(" {}", dim(&mut random))).collect();
        let ranks = *[0, -1, 1, 7, 12, 360, 5040, 65536, Rank::MAX].choose(&mut random).unwrap();
        cases.push(format!("d {ranks} {n}{dims}"));
    }
    cases.extend(BEYOND.map(|(n, dims)| format!("d 4 {n} {dims}")));
    let refused = both_agree(1, &cases);
    assert!((100..2000).contains(&refused), "{refused}");
}

/// Grids of some ranks, of too many, of dimensions beyond all numbers.
#[test]
fn grids() {
    let mut random = StdRng::seed_from_u64(46);
    let mut cases = Vec::new();
    for _ in 0..150 {
        let n = random.random_range(1..4usize);
        let dim = |random: &mut StdRng| match random.random_range(0..12) {
            0 => *[65536, Count::MAX, Count::MIN, -1, 0, 7].choose(random).unwrap(),
            _ => random.random_range(1..4),
        };
        let dims: String = (0..n).map(|_| format!(" {}", dim(&mut random))).collect();
        let flags: String = (0..2 * n).map(|_| format!(" {}", random.random_range(0..2))).collect();
        cases.push(format!("c {n}{dims}{flags}"));
    }
    cases.extend(BEYOND.map(|(n, dims)| format!("c {n} {dims}{}", " 0".repeat(2 * n))));
    for ranks in [1, 6, 12] {
        let refused = both_agree(ranks, &cases);
        assert!((10..150).contains(&refused), "{refused}");
    }
}

/// Graphs that all ranks know, some of which are none; and edges, some to no rank, that any rank names.
#[test]
fn graphs() {
    let mut random = StdRng::seed_from_u64(46);
    let mut cases = Vec::new();
    let numbers = |all: &[i32]| all.iter().map(|n| format!(" {n}")).collect::<String>();
    for _ in 0..50 {
        let nodes = random.random_range(1..6usize);
        let mut around = vec![Vec::new(); nodes];
        for _ in 0..random.random_range(0..8) {
            let [one, other] = [(); 2].map(|()| random.random_range(0..nodes));
            around[one].push(other as i32);
            around[other].push(one as i32);
        }
        let ends = around.iter().scan(0, |end, edges| {
            *end += edges.len() as i32;
            Some(*end)
        });
        let (index, edges) = (Vec::from_iter(ends), around.concat());
        cases.push(format!("G {nodes}{} {}{}", numbers(&index), edges.len(), numbers(&edges)));
    }
    for _ in 0..150 {
        let nodes = random.random_range(0..7usize);
        let mut end = 0;
        let index: Vec<i32> = (0..nodes)
            .map(|_| {
                end += random.random_range(0..4);
                end - i32::from(random.random_range(0..40) == 0) * 5
            })
            .collect();
        let other = |random: &mut StdRng| match random.random_range(0..60) {
            0 => *[-1, 6, 99].choose(random).unwrap(),
            _ => random.random_range(0..nodes.max(1) as i32),
        };
        let edges: Vec<i32> = (0..index.last().map_or(0, |last| (*last).max(0)))
            .map(|_| other(&mut random))
            .collect();
        cases.push(format!("g {nodes}{} {}{}", numbers(&index), edges.len(), numbers(&edges)));
    }
    for _ in 0..100 {
        let n = random.random_range(0..20);
        let edge = |_| {
            let rank = |random: &mut StdRng| random.random_range(0..5);
            let (by, from, to) = (rank(&mut random), rank(&mut random), rank(&mut random));
            format!(" {by} {from} {to}")
        };
        cases.push(format!("e {n}{}", (0..n).map(edge).collect::<String>()));
    }
    both_agree(5, &cases);
}
