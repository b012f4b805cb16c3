//! Communicators, topologies, persistent requests and windows of ranks that are moved all the time.
//!
//! Each round makes and drops communicators of different shapes and works with all of them, and
//! with a window that lives through all rounds.

use std::process::ExitCode;

use clap::Parser;
use vrt::collective::SystemOperation;
use vrt::topology::{Color, MergeOrder};
use vrt::traits::*;
use vrt::window::LockKind;

#[derive(Clone, Debug, Parser)]
struct Arguments {
    #[command(flatten)]
    vrt: vrt::Config,
    /// Rounds
    #[arg(long, default_value_t = 200)]
    rounds: i32,
}

#[derive(Clone, Debug, PartialEq)]
struct Round(i32);

impl CommAttribute for Round {
    const CLONE_ON_DUP: bool = true;
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let config = arguments.vrt.clone();
    vrt::launch(config, move || run(&arguments))
}

fn run(arguments: &Arguments) {
    let Some(universe) = vrt::initialize() else { unreachable!("main is a rank's program") };
    let world = universe.world();
    let (me, n) = (world.rank(), world.size());
    let (right, left) = ((me + 1) % n, (me + n - 1) % n);
    let mut memory = vec![0u64; 1000];
    let window = world.create_window(&mut memory);
    let (mut out, mut back) = (vec![0i32; 500], vec![0i32; 500]);
    let right_process = world.process_at_rank(right);
    let left_process = world.process_at_rank(left);
    let mut send = right_process.persistent_send(&mut out);
    let mut receive = left_process.persistent_receive_into(&mut back);
    let (mut pe, mut moves) = (vrt::statistics().pe, 0u64);
    for round in 0..arguments.rounds {
        let sum = SystemOperation::sum();
        let mut world = world.duplicate();
        world.set_attr(Round(round));
        // A communicator that is no range of ranks, and one of that.
        let color = Color::with_value((me + round) % 3);
        let Some(part) = world.split_by_color_with_key(color, -me) else { unreachable!("colored") };
        let mut ranks = vec![0; part.size() as usize];
        part.all_gather_into(&me, &mut ranks);
        assert!(ranks.is_sorted_by(|a, b| a > b) && ranks.contains(&me));
        let mut total = 0;
        part.duplicate().all_reduce_into(&me, &mut total, sum);
        assert_eq!(total, ranks.iter().sum::<i32>());
        assert_eq!(world.duplicate().get_attr(), Some(&Round(round)));

        let Some(grid) = world.create_cartesian_communicator(&[n], &[true], true) else {
            unreachable!("everybody is in the ring")
        };
        let mut sides = [-1; 2];
        grid.neighbor_all_to_all_into(&[me * 2, me * 2 + 1], &mut sides);
        assert_eq!(sides, [left * 2 + 1, right * 2]);

        let high = me >= n / 2;
        if let Some(half) = world.split_by_color(Color::with_value(high.into())).filter(|_| n > 1) {
            let leader = if high { 0 } else { n / 2 };
            let inter = half.create_intercommunicator(0, &world, leader, round);
            let order = if high { MergeOrder::High } else { MergeOrder::Low };
            assert_eq!(inter.merge(order).rank(), me);
        }

        send.send_data().fill(round + me);
        receive.start();
        send.start();
        // Tickets, all different.
        window.lock(LockKind::Shared, 0);
        let ticket = window.fetch_and_op(0, 0, 1, SystemOperation::sum());
        window.unlock(0);
        let mut tickets = vec![0u64; n as usize];
        world.all_gather_into(&ticket, &mut tickets);
        tickets.sort_unstable();
        let first = round as u64 * n as u64;
        assert!(tickets.iter().copied().eq(first..first + n as u64), "{tickets:?}");
        send.wait();
        receive.wait();
        assert!(receive.receive_data().iter().all(|value| *value == round + left));

        window.fence();
        let place = 1 + (round as usize % 100);
        window.put(right, place, &[me as u64 + 1; 300]);
        window.fence();
        let mut got = [0; 300];
        window.get(me, place, &mut got);
        assert_eq!(got, [left as u64 + 1; 300]);
        window.last_fence();
        window.lock(LockKind::Exclusive, right);
        let mut count = [0];
        window.get(right, 999, &mut count);
        vrt::yield_now();
        window.put(right, 999, &[count[0] + 1]);
        window.unlock(right);

        let now = vrt::statistics().pe;
        moves += u64::from(now != pe);
        pe = now;
    }
    drop(send);
    drop(receive);
    drop(window);
    assert_eq!(memory[999], arguments.rounds as u64);
    let mut all = 0;
    world.all_reduce_into(&moves, &mut all, SystemOperation::sum());
    if me == 0 {
        println!("migrate_comms: {} rounds of {n} ranks, {all} moves seen, ok", arguments.rounds);
    }
}
