//! Communicators, topologies, requests and windows: what they do, on ranks of one PE.

use vrt::collective::SystemOperation;
use vrt::datatype::{Located, Partition, PartitionMut};
use vrt::request::{CancelGuard, WaitGuard, generalized, scope, start_all};
use vrt::topology::{
    Color, CommunicatorRelation, GroupRelation, IntoTopology, MergeOrder, SystemGroup, Topology,
};
use vrt::traits::*;
use vrt::window::LockKind;

#[test]
fn groups_have_set_operations() {
    vrt::run_local(6, |world| {
        let all = world.group();
        let low = all.include(&[0, 1, 2, 3]);
        let high = all.include(&[5, 4, 3, 2]);
        let ranks = |g: &dyn Fn() -> vrt::topology::UserGroup| {
            let g = g();
            let places: Vec<i32> = (0..g.size()).collect();
            let ranks = g.translate_ranks(&places, &all);
            ranks.into_iter().map(Option::unwrap).collect::<Vec<_>>()
        };
        assert_eq!(ranks(&|| low.union(&high)), [0, 1, 2, 3, 5, 4]);
        assert_eq!(ranks(&|| high.union(&low)), [5, 4, 3, 2, 0, 1]);
        assert_eq!(ranks(&|| high.intersection(&low)), [3, 2]);
        assert_eq!(ranks(&|| low.difference(&high)), [0, 1]);
        assert_eq!(ranks(&|| all.exclude(&[1, 4])), [0, 2, 3, 5]);
        assert_eq!(ranks(&|| all.include_ranges(&[(4, 0, -2), (1, 1, 1)])), [4, 2, 0, 1]);
        assert_eq!(ranks(&|| all.exclude_ranges(&[(0, 4, 2)])), [1, 3, 5]);
        assert_eq!(low.translate_rank(3, &high), Some(2));
        assert_eq!(low.translate_rank(0, &high), None);
        assert_eq!(all.include(&[1, 0]).compare(&all.include(&[0, 1])), GroupRelation::Similar);
        assert_eq!(SystemGroup::empty().rank(), None);
    });
}

#[test]
fn communicators_are_split_and_compared() {
    vrt::run_local(5, |world| {
        assert_eq!(world.compare(world), CommunicatorRelation::Identical);
        assert_eq!(world.compare(&world.duplicate()), CommunicatorRelation::Congruent);
        let reversed = world.split_by_color_with_key(Color::with_value(3), -world.rank()).unwrap();
        assert_eq!(reversed.rank(), 4 - world.rank());
        assert_eq!(world.compare(&reversed), CommunicatorRelation::Similar);
        let half = world.split_by_color(Color::with_value(world.rank() / 3)).unwrap();
        assert_eq!(world.compare(&half), CommunicatorRelation::Unequal);
        assert_eq!(half.size(), if world.rank() < 3 { 3 } else { 2 });
        // Messages of one communicator are not seen in another, whatever their tags.
        half.this_process().buffered_send(&1);
        assert!(world.this_process().immediate_probe().is_none());
        assert_eq!(half.this_process().receive::<i32>().0, 1);
        assert_eq!(world.split_shared(0).size(), 5);
        // Splits of splits, with their own collectives.
        let alone = half.split_by_color(Color::with_value(half.rank())).unwrap();
        let mut sum = 0;
        alone.all_reduce_into(&world.rank(), &mut sum, SystemOperation::sum());
        assert_eq!(sum, world.rank());
    });
}

#[test]
fn many_communicators_come_and_go() {
    vrt::run_local(4, |world| {
        for round in 0..200 {
            let color = Color::with_value((world.rank() + round) % 2);
            let part = world.split_by_color_with_key(color, -world.rank()).unwrap();
            let mut sum = 0;
            part.all_reduce_into(&1, &mut sum, SystemOperation::sum());
            assert_eq!(sum, 2);
        }
    });
}

#[test]
fn grids_have_neighbours() {
    vrt::run_local(7, |world| {
        let grid = world.create_cartesian_communicator(&[3, 2], &[false, true], true);
        let Some(grid) = grid else {
            assert_eq!(world.rank(), 6);
            return;
        };
        let (x, y) = (grid.rank() / 2, grid.rank() % 2);
        assert_eq!(grid.get_layout().coords, [x, y]);
        assert_eq!(grid.coordinates_to_rank(&[x, y + 4]), grid.rank());
        assert_eq!(grid.shift(1, i32::MIN), (Some(grid.rank()), Some(grid.rank())),);
        let other = Some(grid.rank() - y + 1 - y);
        assert_eq!(grid.shift(1, i32::MAX), (other, other));
        assert_eq!(grid.shift(0, i32::MIN), (None, None));
        assert_eq!(
            grid.shift(0, 1),
            ((x > 0).then(|| grid.rank() - 2), (x < 2).then(|| grid.rank() + 2))
        );
        // Around the short ring both neighbours are one rank; data still comes from its side.
        let mine: Vec<i32> = (0..4).map(|side| grid.rank() * 10 + side).collect();
        let mut theirs = [-1; 4];
        grid.neighbor_all_to_all_into(&mine, &mut theirs);
        let other = grid.coordinates_to_rank(&[x, y + 1]);
        let below = if x > 0 { (grid.rank() - 2) * 10 + 1 } else { -1 };
        let above = if x < 2 { (grid.rank() + 2) * 10 } else { -1 };
        assert_eq!(theirs, [below, above, other * 10 + 3, other * 10 + 2]);
        let mut again = [-1; 4];
        grid.neighbor_all_gather_into(&grid.rank(), &mut again);
        assert_eq!(again[2..], [other, other]);
        let mut later = [[-1; 4]; 2];
        let [parts, same] = &mut later;
        let rank = grid.rank();
        scope(|scope| {
            let parts = grid.immediate_neighbor_all_to_all_into(scope, &mine, parts);
            let same = grid.immediate_neighbor_all_gather_into(scope, &rank, same);
            same.wait();
            parts.wait();
        });
        assert_eq!(later, [theirs, again]);
        let IntoTopology::Cartesian(copy) = grid.duplicate().into_topology() else {
            panic!("a duplicate of a grid is a grid")
        };
        assert_eq!(copy.num_dimensions(), 2);
        let row = grid.subgroup(&[false, true]);
        assert_eq!((row.size(), row.rank()), (2, y));
    });
}

#[test]
fn graphs_have_neighbours() {
    vrt::run_local(4, |world| {
        // Everybody sends to rank 0, twice; rank 0 to rank 3.
        let me = world.rank();
        let edges = if me == 1 { vec![(1, 0), (2, 0), (3, 0), (0, 3)] } else { vec![] };
        let graph = world.create_distributed_graph(&edges, false);
        assert_eq!(graph.topology_of(), Topology::DistributedGraph);
        let sources = graph.sources();
        assert_eq!(
            sources,
            match me {
                0 => vec![1, 2, 3],
                3 => vec![0],
                _ => vec![],
            }
        );
        let mut got = vec![0; sources.len()];
        graph.neighbor_all_gather_into(&(me + 10), &mut got);
        assert_eq!(got, sources.iter().map(|rank| rank + 10).collect::<Vec<_>>());
        let counts: Vec<i32> = sources.iter().map(|_| 2).collect();
        let places: Vec<i32> = (0..sources.len() as i32).map(|i| 2 * i).collect();
        let mut got = vec![0; 2 * sources.len()];
        let mut parts = PartitionMut::new(&mut got, &counts[..], &places[..]);
        graph.neighbor_all_gather_varcount_into(&[me, me + 1], &mut parts);
        let right =
            |got: &[i32]| got.chunks(2).zip(&sources).all(|(got, rank)| got == [*rank, rank + 1]);
        assert!(right(&got));
        let (mut gathered, mut exchanged) = (vec![0; got.len()], vec![0; got.len()]);
        let targets = graph.destinations().len();
        let (sent, starts) = (vec![2; targets], vec![0; targets]);
        let mine = [me, me + 1];
        let outgoing = Partition::new(&mine[..], &sent[..], &starts[..]);
        let mut to_gather = PartitionMut::new(&mut gathered, &counts[..], &places[..]);
        let mut to_exchange = PartitionMut::new(&mut exchanged, &counts[..], &places[..]);
        scope(|scope| {
            let exchange = graph.immediate_neighbor_all_to_all_varcount_into(
                scope,
                &outgoing,
                &mut to_exchange,
            );
            let gather =
                graph.immediate_neighbor_all_gather_varcount_into(scope, &mine, &mut to_gather);
            exchange.wait();
            gather.wait();
        });
        assert!(right(&gathered) && right(&exchanged));
        let ring = world.create_graph_communicator(&[2, 4, 6], &[1, 2, 0, 2, 0, 1], false);
        assert_eq!(ring.is_some(), me < 3);
        assert_eq!(ring.map(|ring| ring.neighbors().len()), (me < 3).then_some(2));
    });
}

trait TopologyOf {
    fn topology_of(&self) -> Topology;
}

impl<C: Communicator> TopologyOf for C {
    fn topology_of(&self) -> Topology {
        self.duplicate().topology()
    }
}

#[test]
fn intercommunicators_join_two_groups() {
    vrt::run_local(5, |world| {
        let high = world.rank() >= 2;
        let mine = world.split_by_color(Color::with_value(high.into())).unwrap();
        let partner = if high { 0 } else { 2 };
        let inter = mine.create_intercommunicator(0, world, partner, 7);
        assert!(inter.test_inter());
        assert_eq!((inter.size(), inter.remote_size()), if high { (3, 2) } else { (2, 3) });
        let other = inter.process_at_rank((inter.rank() + 1) % inter.remote_size());
        other.send(&world.rank());
        // Who has sent to this rank of the group?
        let from = (0..inter.remote_size())
            .filter(|rank| (rank + 1) % inter.size() == inter.rank())
            .collect::<Vec<_>>();
        for rank in from {
            let (value, status) = inter.process_at_rank(rank).receive::<i32>();
            assert_eq!(status.source_rank(), rank);
            assert_eq!(value, if high { rank } else { rank + 2 });
        }
        for (order, expected) in [
            (if high { MergeOrder::Low } else { MergeOrder::High }, (world.rank() + 3) % 5),
            (MergeOrder::Low, world.rank()),
        ] {
            let merged = inter.merge(order);
            assert_eq!((merged.size(), merged.rank()), (5, expected));
            let mut sum = 0;
            merged.all_reduce_into(&1, &mut sum, SystemOperation::sum());
            assert_eq!(sum, 5);
        }
    });
}

#[derive(Clone, Debug, PartialEq)]
struct Label(String);

impl CommAttribute for Label {
    const CLONE_ON_DUP: bool = true;
}

#[test]
fn communicators_carry_names_and_values() {
    vrt::run_local(2, |world| {
        let mut world = world.clone();
        assert_eq!(world.get_name(), "MPI_COMM_WORLD");
        assert_eq!(world.get_attr::<Label>(), None);
        world.set_attr(Label("one".into()));
        let first = world.get_attr::<Label>().cloned();
        world.set_attr(Label("two".into()));
        assert_eq!(first, Some(Label("one".into())));
        // The world is one communicator, whoever asks for it.
        let again = vrt::topology::SimpleCommunicator::world();
        assert_eq!(again.get_attr(), Some(&Label("two".into())));
        assert_eq!(world.duplicate().get_attr(), Some(&Label("two".into())));
        assert_eq!(world.split_by_color(Color::with_value(0)).unwrap().get_attr::<Label>(), None);
    });
}

#[test]
fn requests_are_waited_for_in_every_way() {
    vrt::run_local(2, |world| {
        let other = world.process_at_rank(1 - world.rank());
        let mut values = [0u32; 8];
        vrt::request::multiple_scope(8, |scope, all| {
            for value in &mut values {
                all.add(other.immediate_receive_into(scope, value));
            }
            for value in 0..8u32 {
                other.buffered_send(&value);
            }
            let (first, _, _) = all.wait_any().unwrap();
            let mut done = Vec::new();
            all.wait_some(&mut done);
            let some = done.len();
            all.wait_all(&mut done);
            assert_eq!((1 + some + done.len(), first), (8, 0));
            assert!(all.wait_any().is_none());
        });
        assert_eq!(values, [0, 1, 2, 3, 4, 5, 6, 7]);

        // Cancelled, by hand and by a guard.
        let (mut one, mut two) = (0, 0);
        scope(|scope| {
            let request = world.this_process().immediate_receive_into(scope, &mut one);
            request.cancel();
            assert!(request.wait().is_cancelled());
            let request = world.this_process().immediate_receive_into(scope, &mut two);
            drop(CancelGuard::from(WaitGuard::from(request)));
        });

        // Awaited.
        let sum = vrt::block_on(async {
            let mut sum = 0;
            let op = SystemOperation::sum();
            world.all_reduce_into_async(&world.rank(), &mut sum, op).await;
            world.immediate_barrier().await;
            sum
        });
        assert_eq!(sum, 1);

        let (completer, request) = generalized();
        let request = request.test().unwrap_err();
        completer.complete();
        request.wait();
    });
}

#[test]
fn immediate_operations_go_on_while_the_rank_waits_for_something_else() {
    vrt::run_local(6, |world| {
        // A tree of messages whose inner ranks wait for a message of a leaf before they wait for
        // the broadcast.
        let mut data = vec![if world.rank() == 0 { 7u64 } else { 0 }; 10_000];
        scope(|scope| {
            let root = world.process_at_rank(0);
            let request = root.immediate_broadcast_into(scope, &mut data[..]);
            if world.rank() == 5 {
                request.wait();
                for rank in 0..5 {
                    world.process_at_rank(rank).send(&1);
                }
            } else {
                world.process_at_rank(5).receive::<i32>();
                request.wait();
            }
        });
        assert!(data.iter().all(|value| *value == 7));
    });
}

#[test]
fn persistent_operations_run_again_and_again() {
    vrt::run_local(3, |world| {
        let right = world.process_at_rank((world.rank() + 1) % 3);
        let left = world.process_at_rank((world.rank() + 2) % 3);
        let (mut out, mut back) = (vec![0i64; 3000], vec![0i64; 3000]);
        let (mut mine, mut sum) = ([0i64], [0i64]);
        let mut data = [0i64];
        let mut send = right.persistent_send_with_tag(&mut out, 3);
        let mut receive = left.persistent_receive_into_with_tag(&mut back, 3);
        let op = SystemOperation::sum();
        let mut reduce = world.persistent_all_reduce_into(&mut mine, &mut sum, op);
        let mut broadcast = world.process_at_rank(1).persistent_broadcast_into(&mut data);
        let mut barrier = world.persistent_barrier();
        for step in 0..20 {
            send.send_data().fill(step);
            reduce.send_data()[0] = step;
            broadcast.receive_data()[0] = if world.rank() == 1 { step } else { -1 };
            receive.start();
            send.start();
            start_all([&mut reduce]);
            broadcast.start();
            barrier.start();
            assert!(receive.wait().unwrap().count(i64::equivalent_datatype()) == 3000);
            send.wait();
            while reduce.test().is_none() {}
            broadcast.wait();
            barrier.wait();
            assert!(receive.receive_data().iter().all(|value| *value == step));
            assert_eq!(reduce.receive_data()[0], 3 * step);
            assert_eq!(broadcast.receive_data()[0], step);
        }
        assert!(send.wait().is_none());
    });
}

#[test]
fn the_largest_is_found_with_its_location() {
    vrt::run_local(5, |world| {
        let heights = [3.0, 9.0, 1.0, 9.0, 0.5];
        let mine = Located::new(heights[world.rank() as usize], world.rank());
        let (mut max, mut min) = (Located::default(), Located::default());
        world.all_reduce_into(&mine, &mut max, SystemOperation::max_location());
        world.all_reduce_into(&mine, &mut min, SystemOperation::min_location());
        assert_eq!((max, min), (Located::new(9.0, 1), Located::new(0.5, 4)));
    });
}

#[test]
fn the_result_of_a_reduction_may_have_more_room_than_it_needs() {
    // The contributions say how long it is; so does the `mpi` crate.
    vrt::run_local(3, |world| {
        for len in [2usize, 3000] {
            let (mine, mut sum) = (vec![1i64; len], vec![-1i64; 2 * len]);
            world.all_reduce_into(&mine, &mut sum, SystemOperation::sum());
            assert!(sum[..len].iter().all(|x| *x == 3) && sum[len..].iter().all(|x| *x == -1));
            world.scan_into(&mine, &mut sum, SystemOperation::sum());
            assert!(sum[..len].iter().all(|x| *x == i64::from(world.rank()) + 1));
            assert!(sum[len..].iter().all(|x| *x == -1));
        }
    });
}

#[test]
fn integers_of_another_size_take_the_result_of_a_reduction_if_it_fits() {
    vrt::run_local(3, |world| {
        let (mut sum, mut low) = (0i32, [0i8; 2]);
        world.all_reduce_into(&(world.rank() as usize), &mut sum, SystemOperation::sum());
        assert_eq!(sum, 3);
        world.scan_into(&[-1i64, 5], &mut low, SystemOperation::sum());
        assert_eq!(low, [-1 - world.rank() as i8, 5 + 5 * world.rank() as i8]);
    });
}

#[test]
fn windows_are_read_written_and_folded() {
    vrt::run_local(4, |world| {
        let (me, n) = (world.rank(), world.size());
        let mut memory = vec![me as i64; 8];
        {
            let window = world.create_window(&mut memory);
            window.fence();
            let mut theirs = [0; 2];
            window.get((me + 1) % n, 3, &mut theirs);
            assert_eq!(theirs, [i64::from((me + 1) % n); 2]);
            // A fence in which nothing is accessed is no epoch.
            window.fence();

            // Everybody counts at rank 0; the counts are all different.
            window.lock_all();
            let ticket = window.fetch_and_op(0, 7, 1, SystemOperation::sum());
            assert!((0..4).contains(&ticket));
            window.flush(0);
            window.unlock_all();

            // One after the other, in spite of reading and writing apart.
            for _ in 0..10 {
                window.lock(LockKind::Exclusive, 1);
                let mut value = [0];
                window.get(1, 0, &mut value);
                vrt::yield_now();
                window.put(1, 0, &[value[0] + 1]);
                window.unlock(1);
            }
            world.barrier();
            if me == 1 {
                assert_eq!(window.load(0), 1 + 40);
                window.store(0, 5);
            }

            // Even ranks let odd ones in.
            let (even, odd) = (world.group().include(&[0, 2]), world.group().include(&[1, 3]));
            if me % 2 == 0 {
                window.post(&odd);
                window.wait();
                assert_eq!(window.load(1), i64::from(me) + 30);
            } else {
                window.start(&even);
                let target = me - 1;
                let mut before = [0];
                window.get_accumulate(target, 1, &[30], &mut before, SystemOperation::sum());
                assert_eq!(before, [i64::from(target)]);
                let found = window.compare_and_swap(target, 2, i64::from(target), -1);
                assert_eq!(found, i64::from(target));
                assert_eq!(window.compare_and_swap(target, 2, 99, -2), -1);
                window.complete();
            }
        }
        assert_eq!(memory[0], if me == 1 { 5 } else { i64::from(me) });
        assert_eq!(memory[7], if me == 0 { 4 } else { i64::from(me) });
    });
}

#[test]
fn pairs_are_folded_in_windows_too() {
    vrt::run_local(5, |world| {
        let window = world.allocate_window(vec![Located::new(-1.0f64, -1)]);
        window.fence();
        let mine = Located::new(f64::from(world.rank() % 3), world.rank());
        window.accumulate(2, 0, &[mine], SystemOperation::max_location());
        window.fence();
        if world.rank() == 2 {
            assert_eq!(window.load(0), Located::new(2.0, 2));
        }
    });
}

#[test]
fn pairs_of_every_type_are_folded_in_windows_and_reductions() {
    macro_rules! check {
        ($world:expr, $($ty:ty),*) => {{$({
            let (me, n) = ($world.rank(), $world.size());
            let pair = |value: i8, at: i32| Located::new(<$ty>::from(value), at);
            let before = [pair(2, 9), pair(-1, 9), pair(9, 9)];
            let window = $world.allocate_window(before.to_vec());
            let mine = [pair(me as i8, me), pair(-2 - me as i8, me), pair(9, me)];
            let right = (me + 1) % n;
            window.fence();
            let mut was = [pair(0, 0); 3];
            window.get_accumulate(right, 0, &mine, &mut was, SystemOperation::max_location());
            window.fence();
            assert_eq!(was, before);
            let left = (me + n - 1) % n;
            let mut now = [pair(0, 0); 3];
            window.get(me, 0, &mut now);
            let first = if left < 2 { pair(2, 9) } else { pair(left as i8, left) };
            assert_eq!(now, [first, pair(-1, 9), pair(9, left)]);
            window.fence();
            let was = window.fetch_and_op(right, 1, pair(-7, me), SystemOperation::min_location());
            assert_eq!(was, pair(-1, 9));
            window.fence();
            assert_eq!(window.load(1), pair(-7, left));
            let (mut low, mut sums) = ([pair(0, 0); 3], [pair(0, 0); 3]);
            $world.all_reduce_into(&mine, &mut low, SystemOperation::min_location());
            assert_eq!(low, [pair(0, 0), pair(-1 - n as i8, n - 1), pair(9, 0)]);
            $world.scan_into(&mine, &mut sums, SystemOperation::max_location());
            assert_eq!(sums, [pair(me as i8, me), pair(-2, 0), pair(9, 0)]);
        })*}};
    }
    vrt::run_local(5, |world| check!(world, i16, i32, i64, f32, f64));
}

#[test]
fn values_with_gaps_are_not_compared() {
    vrt::run_local(1, |world| {
        let window = world.allocate_window(vec![Located::new(0i16, 0)]);
        window.fence();
        let (old, new) = (Located::new(0i16, 0), Located::new(1, 1));
        let swap = || window.compare_and_swap(0, 0, old, new);
        let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(swap)).unwrap_err();
        let message = panic.downcast_ref::<String>().cloned().unwrap_or_default();
        assert!(message.contains("2 of its 8 bytes are gaps"), "{message}");
        window.fence();
        assert_eq!(window.load(0), old);
    });
}

/// A rank that looks again and again, and has its PE for itself, still lets timers of others end.
#[test]
fn polls_leave_turns_to_timers() {
    vrt::run_local(2, |world| {
        let other = world.process_at_rank(1 - world.rank());
        if world.rank() == 1 {
            vrt::sleep(std::time::Duration::from_millis(20));
            other.send(&7);
        } else {
            while other.immediate_probe().is_none() {}
            assert_eq!(other.receive::<i32>().0, 7);
        }
    });
}

/// Idleness of a PE is given away, to one rank after the other, and only when there is some.
#[test]
fn whoever_waits_for_idleness_comes_last() {
    use std::time::Duration;
    let busy = |times: u32| (0..times).for_each(|_| vrt::yield_now());
    vrt::run_local(4, |world| {
        let me = world.rank();
        if me == 0 {
            busy(100);
            world.process_at_rank(3).send(&0);
            busy(100);
            // Nobody else has anything to do from now on; they come in the order in which they began to wait.
            let came: Vec<i32> = (1..4).map(|_| world.any_process().receive::<i32>().0).collect();
            assert_eq!(came, [1, 2, 3]);
        } else {
            if me == 3 {
                // It waits for either, and goes on waiting for idleness behind the others.
                let from = world.process_at_rank(0);
                vrt::block_on(async {
                    tokio::select! {
                        biased;
                        _ = from.receive_async::<i32>() => {}
                        () = vrt::when_idle() => panic!("rank 0 was busy"),
                    }
                });
            }
            vrt::block_on(vrt::when_idle());
            world.process_at_rank(0).send(&me);
        }
        world.barrier();
        // A wait that is given up is over: nothing of it is left that would make others wait, or be given something.
        if me == 0 {
            for _ in 1..4 {
                while world.any_process().immediate_probe().is_none() {}
                world.any_process().receive::<i32>();
            }
        } else {
            let waits = vrt::timeout(Duration::from_micros(100), vrt::when_idle());
            assert!(vrt::block_on(waits).is_err(), "rank 0 was busy");
            world.process_at_rank(0).send(&me);
        }
        world.barrier();
        (0..3).for_each(|_| vrt::block_on(vrt::when_idle()));
        world.barrier();
    });
}

/// It ran to its end before its neighbours began, whose messages others may have waited for.
#[test]
fn a_rank_whose_messages_are_all_there_lets_others_run() {
    use std::sync::atomic::{AtomicBool, Ordering};

    for is_immediate in [false, true] {
        let others_ran = AtomicBool::new(false);
        vrt::run_local(2, |world| {
            if world.rank() == 1 {
                return others_ran.store(true, Ordering::Relaxed);
            }
            let me = world.this_process();
            for sent in 0..1000_i32 {
                me.send(&sent);
                let mut came = -1;
                if is_immediate {
                    scope(|scope| me.immediate_receive_into(scope, &mut came).wait());
                } else {
                    me.receive_into(&mut came);
                }
                assert_eq!(came, sent);
            }
            assert!(others_ran.load(Ordering::Relaxed));
        });
    }
}
