//! Two ranks that send a message back and forth: the twin of `c/pingpong.c`.

use std::time::Instant;

use mpi::topology::SimpleCommunicator;
use mpi::traits::*;

use super::{Effort, Outcome, expect_ranks, expect_value, outcome, repetitions};

/// Bytes of a cache line, each of which is touched.
const LINE: usize = 64;

/// Writes to each cache line.
fn write_lines(buffer: &mut [u8], value: u8) {
    buffer.iter_mut().step_by(LINE).for_each(|byte| *byte = value);
}

/// Reads each cache line; returns whether all are as they were written.
fn lines_are(buffer: &[u8], value: u8) -> bool {
    buffer.iter().step_by(LINE).fold(0, |differences, byte| differences | (byte ^ value)) == 0
}

/// Seconds of a message of `bytes` bytes one way. If it `touches` them, each sender writes to each cache line of its
/// buffer before it sends, and each receiver reads each line of what it got, as programs do.
///
/// # Errors
///
/// If there are not two ranks, or wrong bytes arrive.
pub fn pingpong(
    world: &SimpleCommunicator,
    bytes: usize,
    touches: bool,
    effort: Effort,
) -> Outcome {
    expect_ranks(world, "pingpong", 2)?;
    let is_first = world.rank() == 0;
    let other_rank = 1 - world.rank();
    let other = world.process_at_rank(other_rank);
    let mut outgoing = vec![world.rank() as u8 + 1; bytes];
    let mut incoming = vec![0; bytes];
    let seconds = repetitions(effort, |repetition| {
        world.barrier();
        let start = Instant::now();
        let mut is_right = true;
        for turn in 0..effort.operations {
            if is_first {
                if touches {
                    write_lines(&mut outgoing, turn as u8);
                }
                other.send(&outgoing[..]);
            }
            other.receive_into(&mut incoming[..]);
            if touches {
                is_right &= lines_are(&incoming, turn as u8);
            }
            if !is_first {
                if touches {
                    write_lines(&mut outgoing, turn as u8);
                }
                other.send(&outgoing[..]);
            }
        }
        let one_way = start.elapsed().as_secs_f64() / f64::from(effort.operations) / 2.0;
        let expected = other_rank as u8 + 1;
        is_right &= (incoming.iter().enumerate())
            .all(|(at, byte)| (touches && at % LINE == 0) || *byte == expected);
        expect_value(is_right, "pingpong", repetition)?;
        incoming.fill(0);
        Ok(one_way)
    })?;
    outcome(world, "pingpong", &seconds)
}
