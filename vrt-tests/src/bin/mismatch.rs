//! A job in which rank 0 and the others, of two PEs, mean different types by one message, contribution
//! or window, or another root; chosen by name.

use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use vrt::collective::SystemOperation;
use vrt::topology::SimpleCommunicator;
use vrt::traits::*;

#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    vrt: vrt::Config,
    /// Where the types differ, or the roots
    what: What,
    /// Elements
    #[arg(long, default_value_t = 4)]
    len: usize,
    /// Every so-manieth rank moves to the next PE first
    #[arg(long, value_name = "NTH")]
    moved: Option<i32>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum What {
    /// u8 sent from the rank's memory, bool received
    Message,
    /// The same, the message there before its receive
    Early,
    /// The same, sent from a static, which the receiver cannot read
    Outside,
    /// A structure received as its bytes
    Structure,
    Broadcast,
    AllGather,
    AllReduce,
    Gather,
    Scatter,
    AllToAll,
    Sparse,
    Window,
    /// Each rank broadcasts as the root
    BroadcastRoots,
    /// Each sends what it has to the next one
    GatherRoots,
}

#[derive(Clone, Copy, Debug, Default, Equivalence)]
struct Pair {
    flag: bool,
    number: f64,
}

static OUTSIDE: [u8; 1 << 20] = [3; 1 << 20];

fn main() -> ExitCode {
    let Arguments { vrt, what, len, moved } = Arguments::parse();
    vrt::launch(vrt, move || run(what, len, moved))
}

fn run(what: What, len: usize, moved: Option<i32>) {
    let world = vrt::initialize().expect("in a rank").world();
    if moved.is_some_and(|nth| world.rank() % nth == 0) {
        let next = (vrt::statistics().pe + 1) % vrt::environment::pes() as u32;
        world.migrate_to(next, &mut ()).expect("nothing keeps it");
    }
    let zero = world.rank() == 0;
    match what {
        What::Message | What::Early | What::Outside | What::Structure => {
            messages(&world, what, len);
        }
        What::BroadcastRoots => {
            world.process_at_rank(world.rank()).broadcast_into(&mut vec![1u64; len][..])
        }
        What::GatherRoots => {
            let next = world.process_at_rank((world.rank() + 1) % world.size());
            next.gather_into(&vec![1u64; len][..]);
        }
        _ if zero => collective(&world, what, vec![3u8; len]),
        _ => collective(&world, what, vec![true; len]),
    }
    world.barrier();
    println!("nobody noticed");
}

fn messages(world: &SimpleCommunicator, what: What, len: usize) {
    let other = world.process_at_rank(1 - world.rank());
    if world.rank() == 0 {
        let bytes = vec![3u8; len];
        match what {
            What::Outside => other.send(&OUTSIDE[..len]),
            What::Structure => other.send(&vec![Pair::default(); len][..]),
            _ => other.send(&bytes[..]),
        }
        return;
    }
    if let What::Early = what {
        other.probe();
    }
    let mut flags = vec![true; len];
    other.receive_into(&mut flags[..]);
}

fn collective<T>(world: &SimpleCommunicator, what: What, mut mine: Vec<T>)
where
    T: Equivalence + Copy + 'static,
{
    let (root, first, len) = (world.process_at_rank(0), mine[0], mine.len());
    let mut both = vec![first; len * world.size() as usize];
    match what {
        What::Broadcast => root.broadcast_into(&mut mine[..]),
        What::AllGather => world.all_gather_into(&mine[..], &mut both[..]),
        What::AllReduce => {
            let op = SystemOperation::logical_or();
            world.all_reduce_into(&mine[..], &mut both[..len], op);
        }
        What::Gather if world.rank() == 0 => root.gather_into_root(&mine[..], &mut both[..]),
        What::Gather => root.gather_into(&mine[..]),
        What::Scatter if world.rank() == 0 => root.scatter_into_root(&both[..], &mut mine[..]),
        What::Scatter => root.scatter_into(&mut mine[..]),
        What::AllToAll => {
            let from = both.clone();
            world.all_to_all_into(&from[..], &mut both[..]);
        }
        What::Sparse => {
            world.sparse_exchange(&[(1 - world.rank(), mine)]);
        }
        What::Window => {
            let window = world.allocate_window(mine);
            window.fence();
            window.put(0, 0, &[first]);
            window.last_fence();
        }
        _ => {}
    }
}
