//! Ranks that own all kinds of things and are moved all the time: does everything survive?
//!
//! Each rank keeps strings, a map, a closure, references into its own stack and a large buffer,
//! has a receive and a send open while it is moved, and checks all of them after each move.

use std::collections::HashMap;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use clap::Parser;
use serde::{Deserialize, Serialize};
use vrt::traits::*;

#[derive(Clone, Debug, Parser)]
struct Arguments {
    #[command(flatten)]
    vrt: vrt::Config,
    /// Times each rank offers itself to be moved
    #[arg(long, default_value_t = 1000)]
    rounds: u64,
    /// Bytes of each rank's buffer
    #[arg(long, default_value_t = 1024)]
    bytes: usize,
    /// Keep no requests open and nothing but plain state, as moving by state needs it
    #[arg(long)]
    plain: bool,
    /// Be async ranks
    #[arg(long)]
    asynchronous: bool,
    /// Rank 0 holds something that cannot move, in the first half of the rounds
    #[arg(long, value_name = "WHAT")]
    hold: Option<Hold>,
}

/// What cannot move.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Hold {
    File,
    Socket,
    Thread,
    Mapping,
    /// Memory of its heap that a static refers to.
    Static,
}

/// What `Hold::Static` fills.
static SHARED: Mutex<Option<Box<[u64; 100]>>> = Mutex::new(None);

/// Something held, until it is dropped.
enum Held {
    Nothing,
    File(#[allow(dead_code, reason = "only its being open counts")] std::fs::File),
    Socket(#[allow(dead_code, reason = "as above")] std::net::UdpSocket),
    Thread(std::sync::mpsc::Sender<()>, std::thread::JoinHandle<()>),
    Mapping(*mut libc::c_void),
    Static,
}

impl Hold {
    fn take(self) -> Result<Held, std::io::Error> {
        Ok(match self {
            Hold::File => Held::File(std::fs::File::open("/proc/self/exe")?),
            Hold::Socket => Held::Socket(std::net::UdpSocket::bind("127.0.0.1:0")?),
            Hold::Thread => {
                let (end, ended) = std::sync::mpsc::channel::<()>();
                Held::Thread(end, std::thread::spawn(move || _ = ended.recv()))
            }
            Hold::Static => {
                let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
                *shared = Some(Box::new([7; 100]));
                Held::Static
            }
            Hold::Mapping => {
                // SAFETY: a fresh anonymous mapping.
                Held::Mapping(unsafe {
                    libc::mmap(
                        std::ptr::null_mut(),
                        4096,
                        libc::PROT_READ,
                        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                        -1,
                        0,
                    )
                })
            }
        })
    }
}

impl Held {
    fn give_back(self) {
        match self {
            Held::Nothing | Held::File(_) | Held::Socket(_) => {}
            Held::Thread(end, thread) => {
                drop(end);
                assert!(thread.join().is_ok());
            }
            Held::Static => {
                let shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner).take();
                assert_eq!(shared.as_deref(), Some(&[7; 100]));
            }
            // SAFETY: the mapping made by `take`.
            Held::Mapping(at) => assert_eq!(unsafe { libc::munmap(at, 4096) }, 0),
        }
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let config = arguments.vrt.clone();
    if arguments.asynchronous {
        return vrt::launch_async(config, move || wander_async(arguments.clone()));
    }
    vrt::launch(config, move || {
        if arguments.plain { stress_plain(&arguments) } else { migrate_stress(&arguments) }
    })
}

/// What a rank is when it moves by state.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Plain {
    round: u64,
    moves: u64,
    pe: u32,
    bytes: Vec<u8>,
    map: HashMap<String, u64>,
    seconds: f64,
}

fn stress_plain(arguments: &Arguments) {
    let Some(universe) = vrt::initialize() else { unreachable!("main is a rank's program") };
    let world = universe.world();
    let rank = world.rank();
    let fill = |i: usize| (i * 7 + rank as usize) as u8;
    let mut state = world.restore::<Plain>().unwrap_or_else(|| Plain {
        pe: vrt::statistics().pe,
        bytes: (0..arguments.bytes).map(fill).collect(),
        seconds: vrt::time(),
        ..Plain::default()
    });
    loop {
        let pe = vrt::statistics().pe;
        state.moves += u64::from(pe != state.pe);
        state.pe = pe;
        assert!(state.bytes.iter().enumerate().all(|(i, b)| *b == fill(i)), "bytes of {rank}");
        assert_eq!(state.map.values().sum::<u64>(), state.round);
        if state.round == arguments.rounds {
            break;
        }
        state.round += 1;
        *state.map.entry(format!("key {}", state.round % 10)).or_default() += 1;
        // Where there is a period, its steps are taken while ranks wait or let others run.
        vrt::yield_now();
        world.migrate(&mut state);
    }
    let seconds = vrt::time() - state.seconds;
    report(&world, arguments, state.moves, seconds);
}

fn migrate_stress(arguments: &Arguments) {
    let Some(universe) = vrt::initialize() else { unreachable!("main is a rank's program") };
    let world = universe.world();
    let (rank, size) = (world.rank(), world.size());
    let right = world.process_at_rank((rank + 1) % size);
    let left = world.process_at_rank((rank + size - 1) % size);

    let mut names = vec![format!("rank {rank}")];
    let mut map: HashMap<String, u64> = HashMap::new();
    let secret = u64::from(rank as u32) * 31;
    let closure: Box<dyn Fn(u64) -> u64> = Box::new(move |x| x.wrapping_mul(3) ^ secret);
    let on_stack = [rank as u64; 16];
    let reference = &on_stack[7];
    let fill = |i: usize| (i * 7 + rank as usize) as u8;
    let buffer: Vec<u8> = (0..arguments.bytes).map(fill).collect();
    let (mut pe, mut moves) = (vrt::statistics().pe, 0u64);

    let mut held = match arguments.hold.filter(|_| rank == 0).map(Hold::take) {
        None => Held::Nothing,
        Some(Ok(held)) => held,
        Some(Err(error)) => panic!("cannot hold it: {error}"),
    };
    let holds = !matches!(held, Held::Nothing);
    world.barrier();
    let began = Instant::now();
    for round in 0..arguments.rounds {
        if round == arguments.rounds / 2 {
            if holds {
                assert_eq!(moves, 0, "a rank has moved with what cannot move");
            }
            std::mem::replace(&mut held, Held::Nothing).give_back();
        }
        let message = [round, rank as u64, closure(round)];
        let mut answer = [0u64; 3];
        vrt::request::scope(|scope| {
            let receive = left.immediate_receive_into(scope, &mut answer[..]);
            let send = right.immediate_synchronous_send(scope, &message[..]);
            world.migrate(&mut ());
            send.wait_without_status();
            receive.wait_without_status();
        });
        let of_left = (rank + size - 1) % size;
        let expected = round.wrapping_mul(3) ^ (of_left as u64 * 31);
        assert_eq!(answer, [round, of_left as u64, expected], "round {round} of rank {rank}");
        *map.entry(format!("key {}", round % 10)).or_default() += 1;
        if round % 100 == 0 {
            names.push(format!("round {round}"));
        }
        assert_eq!(*reference, rank as u64);
        assert_eq!(map.values().sum::<u64>(), round + 1);
        let now = vrt::statistics().pe;
        moves += u64::from(now != pe);
        pe = now;
    }
    let seconds = began.elapsed().as_secs_f64();
    assert_eq!(names.len() as u64, 1 + arguments.rounds.div_ceil(100));
    assert!(buffer.iter().enumerate().all(|(i, b)| *b == fill(i)), "the buffer of rank {rank}");
    report(&world, arguments, moves, seconds);
}

/// [`migrate_stress`] for async ranks, which also sleep on the way.
async fn wander_async(arguments: Arguments) {
    let Some(universe) = vrt::initialize() else { unreachable!("main is a rank's program") };
    let world = universe.world();
    let (rank, size) = (world.rank(), world.size());
    let right = world.process_at_rank((rank + 1) % size);
    let left = world.process_at_rank((rank + size - 1) % size);
    let fill = |i: usize| (i * 7 + rank as usize) as u8;
    let buffer: Vec<u8> = (0..arguments.bytes).map(fill).collect();
    let (mut pe, mut moves) = (vrt::statistics().pe, 0u64);
    let began = vrt::time();
    for round in 0..arguments.rounds {
        let (message, mut answer) = ([round, rank as u64], [0u64; 2]);
        let send = right.send_with_tag_async(&message[..], 3);
        let receive = left.receive_into_with_tag_async(&mut answer[..], 3);
        tokio::join!(send, receive);
        assert_eq!(answer, [round, (rank + size - 1) as u64 % size as u64]);
        world.migrate_async(&mut ()).await;
        if round % 16 == 0 {
            vrt::sleep_async(std::time::Duration::from_micros(50)).await;
        }
        let now = vrt::statistics().pe;
        moves += u64::from(now != pe);
        pe = now;
    }
    assert!(buffer.iter().enumerate().all(|(i, b)| *b == fill(i)), "the buffer of rank {rank}");
    let mut all = vec![0u64; size as usize];
    world.all_gather_into_async(&moves, &mut all[..]).await;
    if rank == 0 {
        tell(&world, &arguments, &all, vrt::time() - began);
    }
}

fn report(
    world: &vrt::topology::SimpleCommunicator,
    arguments: &Arguments,
    moves: u64,
    seconds: f64,
) {
    let mut all = vec![0u64; world.size() as usize];
    world.all_gather_into(&moves, &mut all[..]);
    if world.rank() == 0 {
        tell(world, arguments, &all, seconds);
    }
}

fn tell(
    world: &vrt::topology::SimpleCommunicator,
    arguments: &Arguments,
    moves: &[u64],
    seconds: f64,
) {
    println!(
        "migrate_stress: {} rounds of {} ranks, {} bytes each: {} moves, at least {} a rank, {:.2} us a \
         round, ok",
        arguments.rounds,
        world.size(),
        arguments.bytes,
        moves.iter().sum::<u64>(),
        moves.iter().min().unwrap_or(&0),
        seconds * 1e6 / arguments.rounds as f64
    );
}
