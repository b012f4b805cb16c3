//! Ranks that move by their state keep their communicators and datatypes: one rank after the other begins
//! again while the others go on, and all use the same communicators as before.

use std::process::ExitCode;

use clap::Parser;
use serde::{Deserialize, Serialize};
use vrt::collective::SystemOperation;
use vrt::datatype::{UserDatatype, View};
use vrt::topology::{
    CartesianCommunicator, Color, InterCommunicator, SimpleCommunicator, UserGroup,
};
use vrt::traits::*;

#[derive(Clone, Debug, Parser)]
struct Arguments {
    #[command(flatten)]
    vrt: vrt::Config,
    /// In each of them one rank moves
    #[arg(long, default_value_t = 40)]
    rounds: u64,
    /// Rank 0 has a window first, with which it cannot move by its state
    #[arg(long)]
    window: bool,
}

/// All that a rank is.
#[derive(Serialize, Deserialize)]
struct State {
    round: u64,
    /// How often it has moved, and where it was when it last asked.
    moves: u64,
    pe: u32,
    /// The ranks of the first and of the second half: they follow each other.
    half: SimpleCommunicator,
    /// The same.
    same_half: SimpleCommunicator,
    /// Even and odd ranks, which do not.
    parity: SimpleCommunicator,
    /// A ring.
    ring: CartesianCommunicator,
    /// Between even and odd ranks.
    across: InterCommunicator,
    world: SimpleCommunicator,
    group: UserGroup,
    /// Every other one of four pairs.
    pairs: UserDatatype,
}

#[derive(Clone, Copy, Default, Equivalence)]
struct Pair(u8, u32);

impl State {
    fn new(world: &SimpleCommunicator) -> State {
        let (rank, size) = (world.rank(), world.size());
        let color = |value| Color::with_value(value);
        let half = split(world, color(i32::from(rank >= size / 2)));
        half.set_name("half");
        let parity = split(world, color(rank % 2));
        let Some(ring) = world.create_cartesian_communicator(&[size], &[true], false) else {
            unreachable!("the ring has a place for each rank")
        };
        let across = parity.create_intercommunicator(0, world, 1 - rank % 2, 3);
        let same_half = half.clone();
        let (world, group) = (world.clone(), parity.group());
        let pairs = UserDatatype::vector(2, 1, 2, &Pair::equivalent_datatype());
        State {
            round: 0,
            moves: 0,
            pe: 0,
            half,
            same_half,
            parity,
            ring,
            across,
            world,
            group,
            pairs,
        }
    }

    /// Goes on after a move.
    fn has_come(&mut self) {
        self.moves += u64::from(vrt::statistics().pe != self.pe);
        self.round += 1;
    }

    /// Uses every communicator; what is computed depends on the round only.
    fn use_all(&self) {
        let (rank, size) = (self.world.rank(), self.world.size());
        let mine = self.round + rank as u64;
        let sum_of = |ranks: &mut dyn Iterator<Item = i32>| -> u64 {
            ranks.map(|rank| self.round + rank as u64).sum()
        };
        let mut sum = 0;
        let lower = rank < size / 2;
        let mut members = (0..size).filter(|other| (*other < size / 2) == lower);
        self.same_half.all_reduce_into(&mine, &mut sum, SystemOperation::sum());
        assert_eq!(sum, sum_of(&mut members), "half");
        self.parity.all_reduce_into(&mine, &mut sum, SystemOperation::sum());
        let mut members = (0..size).filter(|other| other % 2 == rank % 2);
        assert_eq!(sum, sum_of(&mut members), "parity");

        let (Some(left), Some(right)) = self.ring.shift(0, 1) else {
            unreachable!("a ring has no end")
        };
        let (from, _) = vrt::point_to_point::send_receive::<u64, _, _, _>(
            &mine,
            &self.ring.process_at_rank(right),
            &self.ring.process_at_rank(left),
        );
        assert_eq!(from, self.round + left as u64, "ring");

        // Pairs of neighbours, as far as there are some.
        let partner = self.parity.rank();
        if partner < self.across.remote_size() {
            let partner = self.across.process_at_rank(partner);
            vrt::request::scope(|scope| {
                let request = partner.immediate_send(scope, &mine);
                let (theirs, _) = partner.receive::<u64>();
                assert_eq!(theirs, self.round + (rank ^ 1) as u64, "across");
                request.wait();
            });
        }

        let next = (self.parity.rank() + 1) % self.parity.size();
        let came = self.parity.sparse_exchange(&[(next, [mine])]);
        let before = (self.parity.rank() + self.parity.size() - 1) % self.parity.size();
        assert_eq!(came, [(before, vec![self.round + (2 * before + rank % 2) as u64])], "sparse");

        let values = [Pair(1, 2), Pair(3, 4), Pair(5, 6), Pair(7, 8)];
        // SAFETY: one element of the type lies in the four pairs.
        let view = unsafe { View::with_count_and_datatype(&values[..], 1, &self.pairs) };
        assert_eq!(self.world.pack(&view), [1, 2, 0, 0, 0, 5, 6, 0, 0, 0], "datatype");
    }
}

fn split(world: &SimpleCommunicator, color: Color) -> SimpleCommunicator {
    let Some(part) = world.split_by_color(color) else { unreachable!("all have a color") };
    part
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let (rounds, window, pes) = (arguments.rounds, arguments.window, arguments.vrt.pes());
    vrt::launch(arguments.vrt, move || program(rounds, window, pes))
}

fn program(rounds: u64, window: bool, pes: u32) {
    let world = SimpleCommunicator::world();
    let restored = world.restore();
    let begins_again = restored.is_some();
    let mut state: State = restored.unwrap_or_else(|| State::new(&world));
    if window && !begins_again {
        stay_with_window(&world, &mut state);
    }
    // One that no state has: who begins again gives it up.
    let spare = (!begins_again).then(|| world.duplicate());
    if begins_again {
        check_again(&state);
        state.has_come();
    }
    while state.round < rounds {
        state.use_all();
        if state.round % world.size() as u64 == world.rank() as u64 {
            state.pe = vrt::statistics().pe;
            let to = (state.pe + 1) % pes;
            if let Err(why) = world.migrate_to(to, &mut state) {
                panic!("rank {} stays: {why}", world.rank());
            }
            state.has_come();
        } else {
            state.round += 1;
        }
    }
    drop(spare);
    state.world.barrier();
    let mut all = 0;
    world.all_reduce_into(&state.moves, &mut all, SystemOperation::sum());
    if world.rank() == 0 {
        println!("handles: {rounds} rounds of {} ranks, {all} moves, ok", world.size());
    }
}

/// A rank by whose window others reach its memory does not drop that.
fn stay_with_window(world: &SimpleCommunicator, state: &mut State) {
    let mut memory = [world.rank(); 4];
    let window = world.create_window(&mut memory);
    window.fence();
    if world.rank() == 0 {
        let other = 1 - vrt::statistics().pe;
        let stays = world.migrate_to(other, state).expect_err("it has a window");
        assert!(stays.to_string().contains("it has a window"), "{stays}");
    }
    window.fence();
    let mut theirs = [-1];
    window.get(0, 3, &mut theirs);
    assert_eq!(theirs, [0]);
    window.fence();
}

/// What a rank that has begun again has.
fn check_again(state: &State) {
    assert_eq!((state.half.get_name().as_str(), state.same_half == state.half), ("half", true));
    assert_eq!(state.group.size(), state.parity.size(), "the group");
    // half, parity, ring, across and the one of its local group: not `spare`.
    assert_eq!(vrt::statistics().communicators, 5);
    let elsewhere = vrt::encoding::encode(&state.half).expect_err("it would mean nothing");
    assert!(elsewhere.to_string().contains("given to `migrate` only"), "{elsewhere}");
}
