//! Every form of a collective operation does the same: awaited, and started again and again, it gives
//! what the blocking one gives.

use vrt::collective::{NeighborCollectives, SystemOperation, UserOperation};
use vrt::datatype::{DynBuffer, DynBufferMut, Partition, PartitionMut, UserDatatype};
use vrt::topology::SimpleCommunicator;
use vrt::traits::*;

/// Numbers of elements that PEs combine, and that go from rank to rank.
const LENGTHS: [usize; 3] = [0, 3, 6000];
const UNTOUCHED: u64 = 99;

/// Compares the forms of an operation, which receives into a view of so many numbers.
macro_rules! agree {
    ($what:expr, $view:expr, $len:expr, |$out:ident| $blocking:expr, $future:expr, $persistent:expr) => {{
        let fresh = || vec![UNTOUCHED; $len];
        let (mut expected, mut awaited, mut started) = (fresh(), fresh(), fresh());
        {
            let $out = &mut $view(&mut expected);
            $blocking;
        }
        {
            let $out = &mut $view(&mut awaited);
            vrt::block_on($future);
        }
        {
            let $out = &mut $view(&mut started);
            let mut request = $persistent;
            for _ in 0..2 {
                request.start();
                request.wait().unwrap();
            }
        }
        assert_eq!(awaited, expected, "{}, awaited", $what);
        assert_eq!(started, expected, "{}, started", $what);
        expected
    }};
}

fn whole(numbers: &mut [u64]) -> DynBufferMut<'_> {
    DynBufferMut::new(numbers)
}

/// Where parts of these lengths begin that lie one behind the other.
fn places(counts: &[i32]) -> Vec<i32> {
    let before = |end: &mut i32, count: &i32| {
        *end += count;
        Some(*end - count)
    };
    counts.iter().scan(0, before).collect()
}

fn parted(
    counts: &[i32],
) -> impl Fn(&mut Vec<u64>) -> PartitionMut<'_, Vec<u64>, Vec<i32>, Vec<i32>> {
    |numbers| PartitionMut::new(numbers, counts.to_vec(), places(counts))
}

fn on_each_size(program: impl Fn(&SimpleCommunicator, usize) + Sync) {
    for ranks in [1, 3, 4] {
        for len in LENGTHS {
            vrt::run_local(ranks, |world| program(world, len));
        }
    }
}

/// What a rank contributes.
fn contribution(world: &SimpleCommunicator, len: usize) -> Vec<u64> {
    (0..len).map(|i| (i * 7) as u64 + 1000 * (world.rank() as u64 + 1)).collect()
}

#[test]
fn moves_without_a_root() {
    on_each_size(|world, len| {
        let (n, me) = (world.size() as usize, world.rank());
        let mut mine = contribution(world, len);
        let all = agree!(
            "all_gather",
            whole,
            n * len,
            |out| world.all_gather_into(&mine, out),
            world.all_gather_into_async(&mine, out),
            world.persistent_all_gather_into(&mut mine, out)
        );
        assert!(
            all.iter()
                .enumerate()
                .all(|(i, value)| *value == (i % len * 7) as u64 + 1000 * (i / len + 1) as u64)
        );
        let mut parts = contribution(world, n * len);
        agree!(
            "all_to_all",
            whole,
            n * len,
            |out| world.all_to_all_into(&parts, out),
            world.all_to_all_into_async(&parts, out),
            world.persistent_all_to_all_into(&mut parts, out)
        );
        // Rank `r` contributes `len + r` numbers, or as many to each.
        let counts: Vec<i32> = (0..n).map(|rank| (len + rank) as i32).collect();
        let total: usize = counts.iter().map(|count| *count as usize).sum();
        let mut mine = contribution(world, len + me as usize);
        agree!(
            "all_gather_varcount",
            parted(&counts),
            total,
            |out| world.all_gather_varcount_into(&mine, out),
            world.all_gather_varcount_into_async(&mine, out),
            world.persistent_all_gather_varcount_into(&mut mine, out)
        );
        let sent = vec![(len + me as usize) as i32; n];
        let parts = contribution(world, n * (len + me as usize));
        let mut parts = Partition::new(&parts, &sent[..], places(&sent));
        agree!(
            "all_to_all_varcount",
            parted(&counts),
            total,
            |out| world.all_to_all_varcount_into(&parts, out),
            world.all_to_all_varcount_into_async(&parts, out),
            world.persistent_all_to_all_varcount_into(&mut parts, out)
        );
        let mut barrier = world.persistent_barrier();
        vrt::block_on(world.barrier_async());
        barrier.start();
        barrier.wait();
    });
}

#[test]
fn lists_of_buffers() {
    for len in [1, 6000] {
        vrt::run_local(3, |world| {
            let mine = contribution(world, 3 * len);
            let mut parts: Vec<DynBuffer<'_>> = mine.chunks(len).map(DynBuffer::new).collect();
            let mut expected = vec![UNTOUCHED; 3 * len];
            world.all_to_all_into(&mine, &mut expected);
            let mut check =
                |form: &mut dyn FnMut(&mut [DynBuffer<'_>], &mut [DynBufferMut<'_>])| {
                    let mut got = vec![UNTOUCHED; 3 * len];
                    let mut room: Vec<_> = got.chunks_mut(len).map(DynBufferMut::new).collect();
                    form(&mut parts, &mut room);
                    assert_eq!(got, expected);
                };
            check(&mut |from, to| world.all_to_all_buffers_into(from, to));
            check(&mut |from, to| vrt::block_on(world.all_to_all_buffers_into_async(from, to)));
            check(&mut |from, to| {
                let from = &*from;
                vrt::request::scope(|scope| {
                    world.immediate_all_to_all_buffers_into(scope, from, to).wait();
                });
            });
            check(&mut |from, to| {
                let mut request = world.persistent_all_to_all_buffers_into(from, to);
                request.start();
                request.wait();
            });
        });
    }
}

#[test]
fn reductions_without_a_root() {
    on_each_size(|world, len| {
        let (n, me) = (world.size() as usize, world.rank() as usize);
        let mut mine = contribution(world, len);
        let sum = SystemOperation::sum();
        agree!(
            "all_reduce",
            whole,
            len,
            |out| world.all_reduce_into(&mine, out, sum),
            world.all_reduce_into_async(&mine, out, sum),
            world.persistent_all_reduce_into(&mut mine, out, sum)
        );
        agree!(
            "scan",
            whole,
            len,
            |out| world.scan_into(&mine, out, sum),
            world.scan_into_async(&mine, out, sum),
            world.persistent_scan_into(&mut mine, out, sum)
        );
        let before = agree!(
            "exclusive_scan",
            whole,
            len,
            |out| world.exclusive_scan_into(&mine, out, sum),
            world.exclusive_scan_into_async(&mine, out, sum),
            world.persistent_exclusive_scan_into(&mut mine, out, sum)
        );
        assert!(me > 0 || before == vec![UNTOUCHED; len]);
        let mut all = contribution(world, n * len);
        agree!(
            "reduce_scatter_block",
            whole,
            len,
            |out| world.reduce_scatter_block_into(&all, out, sum),
            world.reduce_scatter_block_into_async(&all, out, sum),
            world.persistent_reduce_scatter_block_into(&mut all, out, sum)
        );
        let counts: Vec<i32> = (0..n).map(|rank| (len + rank) as i32).collect();
        let total: i32 = counts.iter().sum();
        let mut all = contribution(world, total as usize);
        agree!(
            "reduce_scatter",
            whole,
            len + me,
            |out| world.reduce_scatter_into(&all, out, &counts, sum),
            world.reduce_scatter_into_async(&all, out, &counts, sum),
            world.persistent_reduce_scatter_into(&mut all, out, &counts, sum)
        );
    });
}

#[test]
fn operations_with_a_root() {
    on_each_size(|world, len| {
        let (n, me) = (world.size() as usize, world.rank() as usize);
        let root = world.process_at_rank(world.size() / 2);
        let here = root.is_self();
        let only = |len: usize| if here { len } else { 0 };
        let sum = SystemOperation::sum();
        let mut mine = contribution(world, len);
        // Others than the root begin with what it does not have.
        let broadcast = |form: &dyn Fn(&mut Vec<u64>)| {
            let mut data = if here { mine.clone() } else { vec![UNTOUCHED; len] };
            form(&mut data);
            data
        };
        let expected = broadcast(&|data| root.broadcast_into(data));
        let awaited = broadcast(&|data| vrt::block_on(root.broadcast_into_async(data)));
        let started = broadcast(&|data| {
            let mut request = root.persistent_broadcast_into(data);
            request.start();
            request.wait();
        });
        assert_eq!((&awaited, &started), (&expected, &expected), "broadcast");
        agree!(
            "gather",
            whole,
            only(n * len),
            |out| match here {
                true => root.gather_into_root(&mine, out),
                false => root.gather_into(&mine),
            },
            async {
                match here {
                    true => root.gather_into_root_async(&mine, out).await,
                    false => root.gather_into_async(&mine).await,
                }
            },
            root.persistent_gather_into(&mut mine, out)
        );
        agree!(
            "reduce",
            whole,
            only(len),
            |out| match here {
                true => root.reduce_into_root(&mine, out, sum),
                false => root.reduce_into(&mine, sum),
            },
            async {
                match here {
                    true => root.reduce_into_root_async(&mine, out, sum).await,
                    false => root.reduce_into_async(&mine, sum).await,
                }
            },
            root.persistent_reduce_into(&mut mine, out, sum)
        );
        let mut all = contribution(world, only(n * len));
        agree!(
            "scatter",
            whole,
            len,
            |out| match here {
                true => root.scatter_into_root(&all, out),
                false => root.scatter_into(out),
            },
            async {
                match here {
                    true => root.scatter_into_root_async(&all, out).await,
                    false => root.scatter_into_async(out).await,
                }
            },
            root.persistent_scatter_into(&mut all, out)
        );
        let counts: Vec<i32> = (0..only(n)).map(|rank| (len + rank) as i32).collect();
        let total: usize = counts.iter().map(|count| *count as usize).sum();
        let mut mine = contribution(world, len + me);
        agree!(
            "gather_varcount",
            parted(&counts),
            total,
            |out| match here {
                true => root.gather_varcount_into_root(&mine, out),
                false => root.gather_varcount_into(&mine),
            },
            async {
                match here {
                    true => root.gather_varcount_into_root_async(&mine, out).await,
                    false => root.gather_varcount_into_async(&mine).await,
                }
            },
            root.persistent_gather_varcount_into(&mut mine, out)
        );
        let all = contribution(world, total);
        let mut all = Partition::new(&all, &counts[..], places(&counts));
        agree!(
            "scatter_varcount",
            whole,
            len + me,
            |out| match here {
                true => root.scatter_varcount_into_root(&all, out),
                false => root.scatter_varcount_into(out),
            },
            async {
                match here {
                    true => root.scatter_varcount_into_root_async(&all, out).await,
                    false => root.scatter_varcount_into_async(out).await,
                }
            },
            root.persistent_scatter_varcount_into(&mut all, out)
        );
    });
}

#[test]
fn operations_among_neighbours() {
    on_each_size(|world, len| {
        // An open line: its ends have one neighbour.
        let line = world.create_cartesian_communicator(&[world.size()], &[false], false).unwrap();
        let mut mine = contribution(world, len);
        let got = agree!(
            "neighbor_all_gather",
            whole,
            2 * len,
            |out| line.neighbor_all_gather_into(&mine, out),
            line.neighbor_all_gather_into_async(&mine, out),
            line.persistent_neighbor_all_gather_into(&mut mine, out)
        );
        assert!(world.rank() > 0 || got[..len] == vec![UNTOUCHED; len]);
        let mut parts = contribution(world, 2 * len);
        agree!(
            "neighbor_all_to_all",
            whole,
            2 * len,
            |out| line.neighbor_all_to_all_into(&parts, out),
            line.neighbor_all_to_all_into_async(&parts, out),
            line.persistent_neighbor_all_to_all_into(&mut parts, out)
        );
        let counts = [len as i32; 2];
        agree!(
            "neighbor_all_gather_varcount",
            parted(&counts),
            2 * len,
            |out| line.neighbor_all_gather_varcount_into(&mine, out),
            line.neighbor_all_gather_varcount_into_async(&mine, out),
            line.persistent_neighbor_all_gather_varcount_into(&mut mine, out)
        );
        let mut parts = Partition::new(&parts, &counts[..], places(&counts));
        let got = agree!(
            "neighbor_all_to_all_varcount",
            parted(&counts),
            2 * len,
            |out| line.neighbor_all_to_all_varcount_into(&parts, out),
            line.neighbor_all_to_all_varcount_into_async(&parts, out),
            line.persistent_neighbor_all_to_all_varcount_into(&mut parts, out)
        );
        assert!(world.rank() > 0 || got[..len] == vec![UNTOUCHED; len]);
    });
}

/// Zeros were written where no neighbour is, if the elements are packed on their way.
#[test]
fn parts_of_missing_neighbours_stay_as_they_are() {
    vrt::run_local(1, |world| {
        let line = world.create_cartesian_communicator(&[1], &[false], false).unwrap();
        let every_second = UserDatatype::resized(
            0,
            16,
            &UserDatatype::vector(1, 1, 2, &u64::equivalent_datatype()),
        );
        let (from, mut numbers) = ([1u64; 4], [UNTOUCHED; 8]);
        // SAFETY: two elements of a number with a gap behind it lie in four numbers, four in eight.
        let (from, mut to) = unsafe {
            (
                DynBuffer::from_raw(from.as_ptr(), 2, every_second.as_ref()),
                DynBufferMut::from_raw(numbers.as_mut_ptr(), 4, every_second.as_ref()),
            )
        };
        let mut parts = PartitionMut::new(&mut to, &[2, 2][..], &[0, 2][..]);
        line.neighbor_all_gather_varcount_into(&from, &mut parts);
        assert_eq!(numbers, [UNTOUCHED; 8]);
    });
}

/// Results that were put into integers of another size: bytes of several were taken for one.
#[test]
fn results_are_converted_in_every_form() {
    vrt::run_local(2, |world| {
        let sum = SystemOperation::sum();
        let mut small = [3u8, 200 / world.size() as u8];
        let mut large = [0u64; 2];
        world.all_reduce_into(&small, &mut large, sum);
        assert_eq!(large, [6, 200]);
        large = [0; 2];
        vrt::block_on(world.all_reduce_into_async(&small, &mut large, sum));
        assert_eq!(large, [6, 200]);
        large = [0; 2];
        let mut request = world.persistent_all_reduce_into(&mut small, &mut large, sum);
        request.start();
        request.wait();
        drop(request);
        assert_eq!(large, [6, 200]);
    });
}

/// A small operation is combined by PEs in whichever form each rank calls it.
#[test]
fn ranks_call_different_forms() {
    on_each_size(|world, len| {
        let mine = contribution(world, len);
        let op = || {
            UserOperation::commutative(|x, y| {
                let (x, y): (&[u64], &mut [u64]) = (x.downcast().unwrap(), y.downcast().unwrap());
                x.iter().zip(y).for_each(|(x, y)| *y = y.wrapping_add(*x));
            })
        };
        let (mut sum, mut same) = (vec![0; len], vec![0; len]);
        let (mut all, n) = (vec![0u64; len * world.size() as usize], world.size() as u64);
        if world.rank() % 2 == 0 {
            world.all_reduce_into(&mine, &mut sum, SystemOperation::sum());
            world.all_reduce_into(&mine, &mut same, op());
            world.all_gather_into(&mine, &mut all);
        } else {
            vrt::block_on(async {
                world.all_reduce_into_async(&mine, &mut sum, SystemOperation::sum()).await;
                world.all_reduce_into_async(&mine, &mut same, op()).await;
                world.all_gather_into_async(&mine, &mut all).await;
            });
        }
        assert_eq!(sum, same);
        let expected = |i: usize| n * (i * 7) as u64 + 1000 * (1..=n).sum::<u64>();
        assert!((0..len).all(|i| sum[i] == expected(i)));
    });
}
