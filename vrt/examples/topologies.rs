//! Ranks with neighbours: grids and graphs, and the collective operations among neighbours.
//!
//! ```sh
//! VRT_PES=2 VRT_RANKS=8 cargo run -p virtual-ranks --example topologies
//! ```

use vrt::collective::SystemOperation;
use vrt::topology::dimensions;
use vrt::traits::*;

#[vrt::main]
fn main() {
    let universe = vrt::initialize().expect("main is a rank's program");
    let world = universe.world();
    let (rank, size) = (world.rank(), world.size());

    // A grid of all ranks whose sides differ as little as may be, closed around its second side.
    let mut sides = [0, 0];
    dimensions(size, &mut sides);
    let grid = world
        .create_cartesian_communicator(&sides, &[false, true], false)
        .expect("the grid has a place for every rank");
    let [x, y] = grid.get_layout().coords[..] else { unreachable!("the grid is flat") };
    assert_eq!(grid.coordinates_to_rank(&[x, y]), grid.rank());

    // Who is beside whom, one side at a time. Beyond the open side there is nobody.
    let (below, above) = grid.shift(0, 1);
    assert_eq!(below.is_some(), x > 0);
    assert_eq!(above.is_some(), x + 1 < sides[0]);

    // One call sends a value to each neighbour and receives one from it: of each side the lower
    // neighbour, then the upper one. Where there is none the value stays as it is.
    let mine = [10 * rank, 10 * rank + 1, 10 * rank + 2, 10 * rank + 3];
    let mut theirs = [-1; 4];
    grid.neighbor_all_to_all_into(&mine, &mut theirs);
    assert_eq!(theirs[0], below.map_or(-1, |below| 10 * below + 1));
    assert_eq!(theirs[1], above.map_or(-1, |above| 10 * above));
    let before = grid.coordinates_to_rank(&[x, y - 1]);
    assert_eq!(theirs[2], 10 * before + 3);

    // The rings of the grid are communicators of their own.
    let ring = grid.subgroup(&[false, true]);
    let mut sum = 0;
    ring.all_reduce_into(&y, &mut sum, SystemOperation::sum());
    assert_eq!(sum, sides[1] * (sides[1] - 1) / 2);

    // Any other neighbourhood is a graph, of which each rank says what it knows: here a tree, where
    // ranks hear from their children and tell their parent.
    let parent: Vec<i32> = if rank == 0 { vec![] } else { vec![(rank - 1) / 2] };
    let children: Vec<i32> = (2 * rank + 1..=2 * rank + 2).filter(|c| *c < size).collect();
    let tree = world.create_distributed_graph_adjacent(&children, &parent, false);
    assert_eq!((tree.sources(), tree.destinations()), (children.clone(), parent));

    // The leaves know how many ranks are below them; after each round one level more does.
    let mut below = 1;
    for _ in 0..size.ilog2() {
        let mut of_children = vec![0; children.len()];
        tree.neighbor_all_gather_into(&below, &mut of_children[..]);
        below = 1 + of_children.iter().sum::<i32>();
    }
    if rank == 0 {
        assert_eq!(below, size);
        println!("a grid of {} x {} ranks, and a tree of {below}", sides[0], sides[1]);
    }
}
