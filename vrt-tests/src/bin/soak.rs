//! Random traffic among all ranks for a time; every byte and the order of messages are checked.
//!
//! All ranks draw each round's messages from the same seed, so each knows what it has to send and
//! what will come. A message says who sent it, in which round and as which one, and its bytes
//! follow from that.

use std::process::ExitCode;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use clap::Parser;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use vrt::collective::SystemOperation;
use vrt::point_to_point::Status;
use vrt::topology::SimpleCommunicator;
use vrt::traits::*;

#[derive(Clone, Parser)]
struct Arguments {
    #[command(flatten)]
    vrt: vrt::Config,
    /// How long to go on
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// Seed of everything random [default: from the clock]
    #[arg(long)]
    seed: Option<u64>,
    /// Longest message in bytes
    #[arg(long, default_value_t = 8 << 20)]
    longest: u64,
    /// Also print, panic, log and start threads in ranks
    #[arg(long)]
    hostile: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if arguments.hostile {
        let subscriber = tracing_subscriber::fmt().with_writer(std::io::sink).finish();
        let _ = tracing::subscriber::set_global_default(vrt::trace::OnRuntimeHeap(subscriber));
    }
    vrt::launch(arguments.vrt.clone(), move || soak(&arguments))
}

fn soak(arguments: &Arguments) {
    let world = vrt::initialize().expect("in a rank").world();
    // PEs that were not forked from one process would each draw a seed of their own.
    let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let mut seed = arguments.seed.unwrap_or(clock.map_or(1, |time| time.as_nanos() as u64));
    world.process_at_rank(0).broadcast_into(&mut seed);
    if world.rank() == 0 {
        eprintln!("soak: seed {seed}");
    }
    let end = Instant::now() + Duration::from_secs_f64(arguments.seconds);
    let mut messages = 0usize;
    let mut round = 0u64;
    loop {
        let plan = Plan::draw(seed, round, world.size(), arguments.longest);
        messages += plan.messages.len();
        let mut own = StdRng::seed_from_u64(seed ^ (round << 20) ^ (world.rank() as u64) << 50);
        match round % 4 {
            0 => exact(&world, &plan, &mut own),
            1 => wild(&world, &plan, &mut own),
            2 => probed(&world, &plan, &mut own),
            _ => collective(&world, seed, round),
        }
        if arguments.hostile {
            hostile(&world, round);
        }
        round += 1;
        let mut go_on = Instant::now() < end;
        world.process_at_rank(0).broadcast_into(&mut go_on);
        if !go_on {
            break;
        }
    }
    assert_eq!(vrt::stack_words_found(), 0, "pointers into the PE's heap on suspended stacks");
    if world.rank() == 0 {
        println!("soak: {round} rounds, {messages} messages, ok");
    }
}

/// The messages of a round.
struct Plan {
    round: u64,
    messages: Vec<Message>,
}

#[derive(Clone, Copy, Debug)]
struct Message {
    from: i32,
    to: i32,
    tag: i32,
    /// Which one between these two ranks.
    number: u64,
    len: usize,
}

/// Bytes in front of each message: sender, round, number, length.
const HEADER: usize = 32;

impl Plan {
    fn draw(seed: u64, round: u64, size: i32, longest: u64) -> Plan {
        let mut random = StdRng::seed_from_u64(seed.wrapping_add(round));
        let count = random.random_range(1..=4 * size as usize);
        let mut numbers = std::collections::HashMap::new();
        let messages = (0..count)
            .map(|_| {
                let (from, to) = (random.random_range(0..size), random.random_range(0..size));
                let number = numbers.entry((from, to)).or_insert(0);
                *number += 1;
                let bits = random.random_range(0..=longest.max(1).ilog2());
                let len = random.random_range(0..=(1u64 << bits).min(longest)) as usize;
                // Few are long, so that a round takes milliseconds.
                let len =
                    if len > 100_000 && random.random_range(0..10) > 0 { len >> 8 } else { len };
                let tag = random.random_range(0..3);
                Message { from, to, tag, number: *number, len }
            })
            .collect();
        Plan { round, messages }
    }

    fn bytes(&self, message: &Message) -> Vec<u8> {
        if message.len == 0 && message.number.is_multiple_of(2) {
            return Vec::new();
        }
        let words = [message.from as u64, self.round, message.number, message.len as u64];
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut state = words.iter().fold(1u64, |state, word| state.wrapping_mul(31) ^ word) | 1;
        bytes.extend((0..message.len).map(|_| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 56) as u8
        }));
        bytes
    }

    fn incoming(&self, world: &SimpleCommunicator) -> Vec<Message> {
        self.messages.iter().copied().filter(|message| message.to == world.rank()).collect()
    }

    fn outgoing(&self, world: &SimpleCommunicator) -> Vec<(Message, Vec<u8>)> {
        let mine = self.messages.iter().filter(|message| message.from == world.rank());
        mine.map(|message| (*message, self.bytes(message))).collect()
    }

    #[track_caller]
    fn check(&self, message: &Message, bytes: &[u8], status: Status) {
        assert_eq!((status.source_rank(), status.tag()), (message.from, message.tag));
        let expected = self.bytes(message);
        assert_eq!(bytes.len(), expected.len(), "{message:?} in round {}", self.round);
        assert!(bytes == expected, "{message:?} in round {} has other bytes", self.round);
    }
}

/// Receives with source and tag, all posted first, waited for in any order.
fn exact(world: &SimpleCommunicator, plan: &Plan, own: &mut StdRng) {
    let incoming = plan.incoming(world);
    let mut buffers: Vec<Vec<u8>> =
        incoming.iter().map(|message| vec![0; HEADER + message.len]).collect();
    let outgoing = plan.outgoing(world);
    let mut statuses: Vec<Option<Status>> = vec![None; incoming.len()];
    vrt::request::scope(|scope| {
        let mut receives = Vec::new();
        for ((i, message), buffer) in incoming.iter().enumerate().zip(&mut buffers) {
            let from = world.process_at_rank(message.from);
            receives.push((
                i,
                from.immediate_receive_into_with_tag(scope, &mut buffer[..], message.tag),
            ));
        }
        let mut sends = Vec::new();
        for (message, bytes) in &outgoing {
            let to = world.process_at_rank(message.to);
            sends.push(match own.random_range(0..3) {
                0 => to.immediate_synchronous_send_with_tag(scope, &bytes[..], message.tag),
                1 => to.immediate_buffered_send_with_tag(scope, &bytes[..], message.tag),
                _ => to.immediate_send_with_tag(scope, &bytes[..], message.tag),
            });
        }
        receives.shuffle(own);
        sends.shuffle(own);
        for (i, request) in receives {
            statuses[i] = Some(request.wait());
        }
        sends.into_iter().for_each(|send| send.wait_without_status());
    });
    for ((message, buffer), status) in incoming.iter().zip(&buffers).zip(statuses) {
        let status = status.expect("waited for");
        plan.check(message, &buffer[..status.bytes() as usize], status);
    }
}

/// Receives from anybody, of any length.
fn wild(world: &SimpleCommunicator, plan: &Plan, own: &mut StdRng) {
    let outgoing = plan.outgoing(world);
    let mut incoming = plan.incoming(world);
    vrt::request::scope(|scope| {
        let mut sends = Vec::new();
        for (message, bytes) in &outgoing {
            let to = world.process_at_rank(message.to);
            sends.push(to.immediate_send_with_tag(scope, &bytes[..], message.tag));
        }
        while !incoming.is_empty() {
            let (bytes, status) = if own.random_range(0..2) == 0 {
                world.any_process().receive_vec::<u8>()
            } else {
                // A tag that is still to come.
                let tag = incoming[own.random_range(0..incoming.len())].tag;
                world.any_process().receive_vec_with_tag::<u8>(tag)
            };
            // It has to be the first of its sender with its tag.
            let at = incoming
                .iter()
                .position(|m| m.from == status.source_rank() && m.tag == status.tag())
                .expect("a message that was sent");
            let message = incoming.remove(at);
            plan.check(&message, &bytes, status);
        }
        sends.into_iter().for_each(|send| send.wait_without_status());
    });
    // Otherwise somebody's next round could meet this round's wildcards.
    world.barrier();
}

/// Looks at messages before receiving them; polls.
fn probed(world: &SimpleCommunicator, plan: &Plan, own: &mut StdRng) {
    let outgoing = plan.outgoing(world);
    let mut incoming = plan.incoming(world);
    vrt::request::scope(|scope| {
        let mut sends = Vec::new();
        for (message, bytes) in &outgoing {
            let to = world.process_at_rank(message.to);
            sends.push(to.immediate_send_with_tag(scope, &bytes[..], message.tag));
        }
        while !incoming.is_empty() {
            let message = match own.random_range(0..3) {
                0 => Some(world.any_process().matched_probe()),
                1 => world.any_process().immediate_matched_probe(),
                _ => {
                    let status = world.any_process().probe();
                    let from = world.process_at_rank(status.source_rank());
                    Some(from.matched_probe_with_tag(status.tag()))
                }
            };
            let Some((message, probed)) = message else { continue };
            let mut bytes = vec![0u8; probed.bytes() as usize];
            let status = message.matched_receive_into(&mut bytes[..]);
            assert_eq!(status, probed);
            let at = incoming
                .iter()
                .position(|m| m.from == status.source_rank() && m.tag == status.tag())
                .expect("a message that was sent");
            let message = incoming.remove(at);
            plan.check(&message, &bytes, status);
        }
        sends.into_iter().for_each(|send| send.wait_without_status());
    });
    world.barrier();
}

/// Every collective operation, with data of any size, against what it has to be.
fn collective(world: &SimpleCommunicator, seed: u64, round: u64) {
    let mut random = StdRng::seed_from_u64(seed ^ round);
    let (me, size) = (world.rank() as u64, world.size() as u64);
    let len = 1usize << random.random_range(0..13);
    let root = random.random_range(0..size);
    let value = |rank: u64, i: usize| rank * 1000 + i as u64 + round;
    let mine: Vec<u64> = (0..len).map(|i| value(me, i)).collect();
    let all: Vec<u64> = (0..size).flat_map(|r| (0..len).map(move |i| value(r, i))).collect();
    let mut one = vec![0u64; len];
    let mut many = vec![0u64; len * size as usize];
    let sum_up_to =
        |n: u64| -> Vec<u64> { (0..len).map(|i| (0..n).map(|r| value(r, i)).sum()).collect() };
    world.all_reduce_into(&mine[..], &mut one[..], SystemOperation::sum());
    assert_eq!(one, sum_up_to(size));
    world.scan_into(&mine[..], &mut one[..], SystemOperation::sum());
    assert_eq!(one, sum_up_to(me + 1));
    world.all_gather_into(&mine[..], &mut many[..]);
    assert_eq!(many, all);
    let process = world.process_at_rank(root as i32);
    if process.is_self() {
        process.reduce_into_root(&mine[..], &mut one[..], SystemOperation::max());
        assert_eq!(one, (0..len).map(|i| value(size - 1, i)).collect::<Vec<_>>());
        many.fill(0);
        process.gather_into_root(&mine[..], &mut many[..]);
        assert_eq!(many, all);
        process.scatter_into_root(&all[..], &mut one[..]);
    } else {
        process.reduce_into(&mine[..], SystemOperation::max());
        process.gather_into(&mine[..]);
        process.scatter_into(&mut one[..]);
    }
    assert_eq!(one, mine);
    let mut message = if process.is_self() { mine.clone() } else { vec![0; len] };
    process.broadcast_into(&mut message[..]);
    assert_eq!(message, (0..len).map(|i| value(root, i)).collect::<Vec<_>>());
    let small = len.min(64);
    let outgoing: Vec<u64> =
        (0..size).flat_map(|to| (0..small).map(move |_| me * size + to)).collect();
    let mut incoming = vec![0u64; small * size as usize];
    world.all_to_all_into(&outgoing[..], &mut incoming[..]);
    let expected: Vec<u64> =
        (0..size).flat_map(|from| (0..small).map(move |_| from * size + me)).collect();
    assert_eq!(incoming, expected);
    world.barrier();
}

/// Things that allocate for the whole process, or elsewhere.
fn hostile(world: &SimpleCommunicator, round: u64) {
    static PATTERN: OnceLock<regex::Regex> = OnceLock::new();
    println!("rank {} round {round}", world.rank());
    let text = format!("{}-{round}", world.rank());
    let pattern = PATTERN.get_or_init(|| regex::Regex::new(r"(\d+)-(\d+)").expect("a pattern"));
    assert!(pattern.is_match(&text));
    tracing::info_span!("round", rank = world.rank()).in_scope(|| tracing::info!(round, "hello"));
    if (round + world.rank() as u64).is_multiple_of(61) {
        let caught = std::panic::catch_unwind(|| panic!("a panic that is caught"));
        assert!(caught.is_err());
    }
    if (round + world.rank() as u64).is_multiple_of(17) {
        let sum = std::thread::spawn(move || (0..100).map(|i| i * round).sum::<u64>()).join();
        assert_eq!(sum.ok(), Some(4950 * round));
        use rayon::prelude::*;
        let sum: u64 = (0..1000u64).into_par_iter().map(|i| i * 2).sum();
        assert_eq!(sum, 999_000);
    }
}
