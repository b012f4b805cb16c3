//! Every collective operation, in its blocking and immediate form, on communicators of different
//! shapes, with elements of different types and counts, against a naive oracle: each rank computes
//! what every rank contributes, and from that what it has to get, one element after the other.
//!
//! | file | subject |
//! |---|---|
//! | `elements` | buffers of each type, with gaps that nobody may write to |
//! | `moves` | operations that move data |
//! | `reductions` | operations that fold it |

mod elements;
mod moves;
mod reductions;

use std::fmt;
use std::process::ExitCode;

use clap::Parser;
use elements::Kind;
use vrt::topology::{Color, SimpleCommunicator};
use vrt::traits::*;

#[derive(Clone, Debug, Parser)]
struct Arguments {
    #[command(flatten)]
    vrt: vrt::Config,
    /// Counts of elements
    #[arg(long, value_delimiter = ',', default_value = "0,1,200,600")]
    counts: Vec<usize>,
    /// Another count for all_reduce, of which large data is reduced in a way of its own
    #[arg(long, default_value_t = 9000)]
    largest: usize,
    /// Times the whole table is gone through
    #[arg(long, default_value_t = 1)]
    rounds: u32,
    /// Every so-manieth rank moves to the next PE first
    #[arg(long, value_name = "NTH")]
    moved: Option<i32>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let config = arguments.vrt.clone();
    vrt::launch(config, move || run(&arguments))
}

/// One line of the table.
#[derive(Clone, Copy)]
struct Case<'a> {
    comm: &'a SimpleCommunicator,
    shape: &'static str,
    kind: Kind,
    count: usize,
    immediate: bool,
}

impl fmt::Debug for Case<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Case")
            .field("shape", &self.shape)
            .field("rank", &self.rank())
            .field("size", &self.size())
            .field("kind", &self.kind)
            .field("count", &self.count)
            .field("immediate", &self.immediate)
            .finish()
    }
}

impl Case<'_> {
    fn size(&self) -> usize {
        self.comm.size() as usize
    }

    fn rank(&self) -> usize {
        self.comm.rank() as usize
    }

    /// What a rank contributes at a place.
    fn value(&self, rank: usize, place: usize) -> i64 {
        let seed = (rank as u64 + 1) * 1_000_003 + place as u64 * 7919 + self.count as u64;
        let mixed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed ^ (mixed >> 29)) as i64
    }

    /// The same of element `element` of the part of `rank` that is for `to`.
    fn part(&self, rank: usize, to: usize, element: usize) -> i64 {
        self.value(rank, (to << 20) + element)
    }
}

fn run(arguments: &Arguments) {
    let Some(universe) = vrt::initialize() else { unreachable!("main is a rank's program") };
    let world = universe.world();
    if arguments.moved.is_some_and(|nth| world.rank() % nth == 0) {
        let next = (vrt::statistics().pe + 1) % vrt::environment::pes() as u32;
        world.migrate_to(next, &mut ()).expect("nothing keeps it");
    }
    let mut cases = 0u64;
    for _ in 0..arguments.rounds {
        let reversed = world.split_by_color_with_key(Color::with_value(0), -world.rank());
        let odd = Color::with_value(world.rank() % 2);
        let every_second = world.split_by_color(odd);
        let last_first: Vec<i32> =
            [world.size() - 1].into_iter().chain((0..world.size() - 1).step_by(3)).collect();
        let group = world.group().include(&last_first);
        let shapes = [
            ("world", Some(world.duplicate())),
            ("reversed", reversed),
            ("every second", every_second),
            ("sub-group", world.split_by_subgroup_collective(&group)),
        ];
        for (shape, comm) in shapes {
            let Some(comm) = comm else { continue };
            for kind in Kind::ALL {
                for immediate in [false, true] {
                    let count = arguments.largest;
                    let case = Case { comm: &comm, shape, kind, count, immediate };
                    cases += reductions::check_large(case);
                }
                for count in arguments.counts.iter().copied() {
                    for immediate in [false, true] {
                        let case = Case { comm: &comm, shape, kind, count, immediate };
                        cases += moves::check(case) + reductions::check(case);
                    }
                }
            }
        }
    }
    let mut all = 0u64;
    world.all_reduce_into(&cases, &mut all, vrt::collective::SystemOperation::sum());
    if world.rank() == 0 {
        println!("collectives: {all} cases on {} ranks, ok", world.size());
    }
}

/// Lets the other ranks of a communicator make progress between the start of an operation and its
/// end: a message around the ring, which does not arrive if operations do not go on by themselves.
fn ring(comm: &SimpleCommunicator) {
    let (rank, size) = (comm.rank(), comm.size());
    let right = comm.process_at_rank((rank + 1) % size);
    let left = comm.process_at_rank((rank + size - 1) % size);
    let (from, _): (i32, _) = vrt::point_to_point::send_receive(&rank, &right, &left);
    assert_eq!(from, left.rank());
}
