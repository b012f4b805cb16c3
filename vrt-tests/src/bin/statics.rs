//! Ranks that fill and use a static of their PE, from their own heaps, while they are moved: does
//! everybody on the PE find in it what was put there?

use std::collections::HashMap;
use std::process::ExitCode;
use std::sync::{LazyLock, Mutex, PoisonError};

use clap::Parser;
use serde::{Deserialize, Serialize};
use vrt::traits::*;

#[derive(Clone, Debug, Parser)]
struct Arguments {
    #[command(flatten)]
    vrt: vrt::Config,
    /// Times each rank uses the static
    #[arg(long, default_value_t = 1000)]
    rounds: u64,
}

/// The first ranks to come here fill it; all others only read.
const FULL: usize = 3;

/// Of each rank that was here: a text that its number and the round say.
static NOTES: LazyLock<Mutex<HashMap<i32, (u64, String)>>> = LazyLock::new(Mutex::default);

fn text(rank: i32, round: u64) -> String {
    format!("rank {rank} in round {round} ").repeat(1 + (round % 7) as usize)
}

/// What a rank is when it moves by state.
#[derive(Debug, Default, Serialize, Deserialize)]
struct State {
    round: u64,
    moves: u64,
    pe: u32,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    vrt::launch(arguments.vrt.clone(), move || use_statics(arguments.rounds))
}

/// In a frame of its own: what it leaves there does not look like references of the rank.
#[inline(never)]
fn read_and_write(rank: i32, now: u64) {
    let mut notes = NOTES.lock().unwrap_or_else(PoisonError::into_inner);
    for (of, (round, note)) in &*notes {
        assert_eq!(note, &text(*of, *round), "on PE {}", vrt::statistics().pe);
    }
    if notes.len() < FULL || notes.contains_key(&rank) {
        notes.insert(rank, (now, text(rank, now)));
    }
}

fn use_statics(rounds: u64) {
    let Some(universe) = vrt::initialize() else { unreachable!("main is a rank's program") };
    let world = universe.world();
    let rank = world.rank();
    let mut state = world
        .restore::<State>()
        .unwrap_or_else(|| State { pe: vrt::statistics().pe, ..State::default() });
    loop {
        // A rank that has moved by its state comes here.
        let pe = vrt::statistics().pe;
        state.moves += u64::from(pe != state.pe);
        state.pe = pe;
        if state.round == rounds {
            break;
        }
        read_and_write(rank, state.round);
        // Its own memory comes and goes between those of the static.
        let own: Vec<String> = (0..20).map(|i| text(rank, state.round + i)).collect();
        state.round += 1;
        world.migrate(&mut state);
        drop(own);
    }
    let stays = vrt::pinned().is_some_and(|why| why.contains("static"));
    let mut all = [0u64; 2];
    world.all_reduce_into(
        &[state.moves, u64::from(stays)],
        &mut all,
        vrt::collective::SystemOperation::sum(),
    );
    if rank == 0 {
        println!("statics: {} moves, {} ranks stay, ok", all[0], all[1]);
    }
}
