//! Every exchange protocol on every pattern of messages, against all-to-all operations.
//!
//! Each message bears its round, source and number, so that one of another round, of another
//! exchange or in another place is seen. Between two rounds with the oracle there are several
//! without any other synchronisation, and ranks that lag behind.

use std::process::ExitCode;

use clap::Parser;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use vrt::datatype::{Partition, PartitionMut};
use vrt::exchange::{Protocol, SparseExchange};
use vrt::topology::{Color, Rank};
use vrt::traits::*;

#[derive(Clone, Debug, Parser)]
struct Arguments {
    #[command(flatten)]
    vrt: vrt::Config,
    /// Rounds of each pattern and protocol
    #[arg(long, default_value_t = 8)]
    rounds: u32,
    /// The protocols to try [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    protocols: Vec<Protocol>,
    /// Bytes of the largest messages
    #[arg(long, default_value_t = 10 << 20)]
    largest: usize,
    /// Rounds of empty NBX exchanges instead
    #[arg(long, value_name = "ROUNDS")]
    soak: Option<u64>,
    /// Ranks are async
    #[arg(long)]
    asynchronous: bool,
}

impl Arguments {
    fn protocols(&self) -> Vec<Protocol> {
        if self.protocols.is_empty() { Protocol::all().collect() } else { self.protocols.clone() }
    }
}

/// Who sends what to whom.
#[derive(Clone, Copy, Debug)]
enum Pattern {
    Nothing,
    Oneself,
    Everybody,
    OneTarget,
    FewAtRandom,
    /// Some messages are empty, and some targets get several.
    Mixed,
    Large,
}

const PATTERNS: [Pattern; 7] = [
    Pattern::Nothing,
    Pattern::Oneself,
    Pattern::Everybody,
    Pattern::OneTarget,
    Pattern::FewAtRandom,
    Pattern::Mixed,
    Pattern::Large,
];

type Message = (Rank, Vec<u64>);

/// What a rank sends in a round.
fn messages(
    pattern: Pattern,
    round: u32,
    source: Rank,
    size: Rank,
    largest: usize,
) -> Vec<Message> {
    let seed = u64::from(round) << 32 | (pattern as u64) << 24 | source as u64;
    let mut random = StdRng::seed_from_u64(seed);
    let message = |to: Rank, number: usize, words: usize| {
        let stamp = [u64::from(round), source as u64, to as u64, number as u64];
        let body = (0..words as u64).map(|i| i ^ seed);
        (to, stamp.into_iter().chain(body).collect::<Vec<u64>>())
    };
    match pattern {
        Pattern::Nothing => Vec::new(),
        Pattern::Oneself => vec![message(source, 0, 5), message(source, 1, 0)],
        Pattern::Everybody => (0..size).map(|to| message(to, 0, 3)).collect(),
        Pattern::OneTarget => vec![message(round as Rank % size, 0, 20)],
        Pattern::FewAtRandom => {
            let k = random.random_range(0..=6.min(size as usize));
            let targets = rand::seq::index::sample(&mut random, size as usize, k);
            targets.iter().map(|to| message(to as Rank, 0, random.random_range(0..125))).collect()
        }
        Pattern::Mixed => (0..random.random_range(0..10))
            .map(|number| match random.random_range(0..size) {
                to if random.random_bool(0.3) => (to, Vec::new()),
                to => message(to, number, random.random_range(0..2000)),
            })
            .collect(),
        Pattern::Large => {
            let (near, far) = ((source + 1) % size, random.random_range(0..size));
            if source % 4 == 0 {
                vec![message(near, 0, largest / 8), message(far, 1, largest / 8)]
            } else {
                vec![message(near, 0, 1)]
            }
        }
    }
}

/// What comes here, by an all-to-all of lengths and one of all data.
fn by_all_to_all(comm: &impl Communicator, messages: &[Message]) -> Vec<Message> {
    let size = comm.size() as usize;
    // For each target its messages, each behind its length.
    let mut parts = vec![Vec::new(); size];
    for (to, data) in messages {
        parts[*to as usize].push(data.len() as u64);
        parts[*to as usize].extend_from_slice(data);
    }
    let counts: Vec<i32> = parts.iter().map(|part| part.len() as i32).collect();
    let mut coming = vec![0; size];
    comm.all_to_all_into(&counts[..], &mut coming[..]);
    let begins = |counts: &[i32]| -> Vec<i32> {
        counts.iter().scan(0, |at, n| Some(std::mem::replace(at, *at + n))).collect()
    };
    let (from, to) = (begins(&counts), begins(&coming));
    let sent = parts.concat();
    let mut came = vec![0u64; coming.iter().sum::<i32>() as usize];
    {
        let sent = Partition::new(&sent[..], &counts[..], &from[..]);
        let mut came = PartitionMut::new(&mut came[..], &coming[..], &to[..]);
        comm.all_to_all_varcount_into(&sent, &mut came);
    }
    let mut all = Vec::new();
    for source in 0..size {
        let begin = to[source] as usize;
        let mut rest = &came[begin..begin + coming[source] as usize];
        while let Some((len, data)) = rest.split_first() {
            let (data, after) = data.split_at(*len as usize);
            all.push((source as Rank, data.to_vec()));
            rest = after;
        }
    }
    all
}

/// What comes here, worked out from what every rank sends.
fn by_reckoning(
    pattern: Pattern,
    round: u32,
    me: Rank,
    size: Rank,
    largest: usize,
) -> Vec<Message> {
    let sent = |source| {
        let all = messages(pattern, round, source, size, largest).into_iter();
        all.filter(|(to, _)| *to == me).map(move |(_, data)| (source, data))
    };
    (0..size).flat_map(sent).collect()
}

fn compare(what: &str, me: Rank, got: &[Message], expected: &[Message]) {
    if got == expected {
        return;
    }
    let heads = |messages: &[Message]| -> Vec<(Rank, usize, Vec<u64>)> {
        let head = |(source, data): &Message| {
            (*source, data.len(), data.iter().take(4).copied().collect())
        };
        messages.iter().map(head).collect()
    };
    panic!("{what}, rank {me}: got {:?}, expected {:?}", heads(got), heads(expected));
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let config = arguments.vrt.clone();
    if arguments.asynchronous {
        return vrt::launch_async(config, move || run_asynchronously(arguments.clone()));
    }
    vrt::launch(config, move || match arguments.soak {
        Some(rounds) => soak(rounds),
        None => run(&arguments),
    })
}

fn run(arguments: &Arguments) {
    let Some(universe) = vrt::initialize() else { unreachable!("main is a rank's program") };
    let world = universe.world();
    let mut moves = Moves::new();
    let mut compared = all_patterns(&world, "world", arguments, &mut moves);
    // Ranks in another order, in two communicators.
    let color = Color::with_value(world.rank() % 2);
    if let Some(half) = world.split_by_color_with_key(color, -world.rank()) {
        compared += all_patterns(&half, "half", arguments, &mut moves);
    }
    let (mut all, mut moved) = (0, 0);
    let sum = vrt::collective::SystemOperation::sum();
    world.all_reduce_into(&compared, &mut all, sum);
    world.all_reduce_into(&moves.seen, &mut moved, sum);
    if world.rank() == 0 {
        println!("exchange: {all} exchanges of {} ranks, {moved} moves seen, ok", world.size());
    }
}

fn all_patterns(
    comm: &impl Communicator,
    name: &str,
    arguments: &Arguments,
    moves: &mut Moves,
) -> u64 {
    let (me, size) = (comm.rank(), comm.size());
    let mut compared = 0;
    for pattern in PATTERNS {
        for protocol in arguments.protocols() {
            let rounds = if matches!(pattern, Pattern::Large) { 2 } else { arguments.rounds };
            for round in 0..rounds {
                let sent = messages(pattern, round, me, size, arguments.largest);
                if (me as u32 + round).is_multiple_of(5) {
                    vrt::yield_now();
                }
                let got = comm.sparse_exchange_by(protocol, &sent);
                moves.look();
                let what = format!("{name}, {pattern:?} by {protocol}, round {round}");
                // Only some rounds end in an all-to-all, which synchronises.
                let expected = if round % 4 == 1 || matches!(pattern, Pattern::Large) {
                    by_all_to_all(comm, &sent)
                } else {
                    by_reckoning(pattern, round, me, size, arguments.largest)
                };
                compare(&what, me, &got, &expected);
                compared += 1;
            }
        }
    }
    compared
}

async fn run_asynchronously(arguments: Arguments) {
    let world = vrt::topology::SimpleCommunicator::world();
    let (me, size) = (world.rank(), world.size());
    let mut compared = 0u64;
    for pattern in PATTERNS {
        for protocol in arguments.protocols() {
            for round in 0..arguments.rounds.min(4) {
                let sent = messages(pattern, round, me, size, arguments.largest);
                let got = world.sparse_exchange_by_async(protocol, &sent).await;
                let expected = by_reckoning(pattern, round, me, size, arguments.largest);
                compare(&format!("{pattern:?} by {protocol}, round {round}"), me, &got, &expected);
                compared += 1;
            }
        }
    }
    if me == 0 {
        println!("exchange: {compared} async exchanges of {size} ranks, ok");
    }
}

/// A message each, by NBX, so many times: no round ever gets one of another.
fn soak(rounds: u64) {
    let Some(universe) = vrt::initialize() else { unreachable!("main is a rank's program") };
    let world = universe.world();
    let (me, size) = (world.rank() as u64, world.size() as u64);
    let mut moves = Moves::new();
    let began = vrt::time();
    for round in 0..rounds {
        let to = (me + 1 + round % size) % size;
        let from = (me + 2 * size - 1 - round % size) % size;
        let got = world.sparse_exchange_by(Protocol::Nbx, &[(to as Rank, [round, me])]);
        moves.look();
        compare("soak", me as Rank, &got, &[(from as Rank, vec![round, from])]);
        if me == 0 && round > 0 && round.is_multiple_of(1 << 20) {
            println!("exchange: {round} rounds in {:.0} s", vrt::time() - began);
        }
    }
    if me == 0 {
        let seconds = vrt::time() - began;
        println!(
            "exchange: {rounds} rounds of NBX among {size} ranks in {seconds:.1} s, {} moves of \
             rank 0 seen, ok",
            moves.seen
        );
    }
}

/// Counts how often a rank finds itself on another PE.
struct Moves {
    pe: u32,
    seen: u64,
}

impl Moves {
    fn new() -> Moves {
        Moves { pe: vrt::statistics().pe, seen: 0 }
    }

    fn look(&mut self) {
        let now = vrt::statistics().pe;
        self.seen += u64::from(now != self.pe);
        self.pe = now;
    }
}
