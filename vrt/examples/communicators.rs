//! Which ranks talk to each other: splitting, duplicating, groups, names and attributes.
//!
//! ```sh
//! VRT_PES=2 VRT_RANKS=8 cargo run -p virtual-ranks --example communicators
//! ```

use vrt::collective::SystemOperation;
use vrt::topology::{Color, CommunicatorRelation, SimpleCommunicator};
use vrt::traits::*;

/// Ranks in a row.
const ROW: i32 = 4;

#[vrt::main]
fn main() {
    let universe = vrt::initialize().expect("main is a rank's program");
    let world = universe.world();
    let (rank, size) = (world.rank(), world.size());

    // The ranks as a table: a communicator for each row and one for each column. Those who give the
    // same color are together, in the order of their ranks here.
    let row = world.split_by_color(Color::with_value(rank / ROW)).expect("it has a color");
    let column = world.split_by_color(Color::with_value(rank % ROW)).expect("it has a color");
    assert_eq!((row.rank(), column.rank()), (rank % ROW, rank / ROW));
    let (mut of_row, mut of_column) = (0, 0);
    row.all_reduce_into(&rank, &mut of_row, SystemOperation::sum());
    column.all_reduce_into(&rank, &mut of_column, SystemOperation::sum());
    assert_eq!(of_row, (0..size).filter(|other| other / ROW == rank / ROW).sum::<i32>());
    assert_eq!(of_column, (0..size).filter(|other| other % ROW == rank % ROW).sum::<i32>());

    // A library duplicates what it is given: its messages are never taken for the program's, whatever
    // their tags.
    let mut library = Library::new(&world);
    world.this_process().buffered_send(&"the program's".len());
    assert_eq!(library.sum_of_ranks(), size * (size - 1) / 2);
    assert_eq!(world.this_process().receive::<usize>().0, 13);

    // Groups are sets of ranks; only those in the group have to make its communicator.
    let everybody = world.group();
    let even: Vec<i32> = (0..size).step_by(2).collect();
    let even = everybody.include(&even);
    let odd = everybody.difference(&even);
    let mine = if even.rank().is_some() { &even } else { &odd };
    let half = world.split_by_subgroup(mine).expect("it is in the group");
    assert_eq!(half.size(), mine.size());
    half.set_name(if rank % 2 == 0 { "even" } else { "odd" });
    let mut greatest = 0;
    half.all_reduce_into(&rank, &mut greatest, SystemOperation::max());
    assert_eq!(greatest % 2, rank % 2);
    if half.rank() == 0 {
        let (name, members) = (half.get_name(), half.size());
        println!("{members} ranks are {name}, the last of them is {greatest}");
    }
}

/// What a library keeps with its communicator, where all its parts find it.
#[derive(Clone, Debug)]
struct Calls(u32);

impl CommAttribute for Calls {}

struct Library(SimpleCommunicator);

impl Library {
    fn new(given: &impl Communicator) -> Library {
        let own = given.duplicate();
        assert_eq!(own.compare(given), CommunicatorRelation::Congruent);
        Library(own)
    }

    fn sum_of_ranks(&mut self) -> i32 {
        let calls = self.0.get_attr::<Calls>().map_or(1, |calls| calls.0 + 1);
        self.0.set_attr(Calls(calls));
        let mut sum = 0;
        self.0.all_reduce_into(&self.0.rank(), &mut sum, SystemOperation::sum());
        sum
    }
}
