//! `tracing` with a subscriber: spans that a rank is in while it waits for messages.

use std::sync::Mutex;

use tracing::{Span, info, info_span, instrument};
use vrt::topology::SimpleCommunicator;
use vrt::traits::*;

use crate::rounds::{Rounds, pass};

/// What the PE's ranks have said, and nobody has read yet.
static SAID: Mutex<Vec<u8>> = Mutex::new(Vec::new());

struct Out;

impl std::io::Write for Out {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut said = SAID.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        said.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Before there are ranks, as programs do at the beginning of `main`.
pub(crate) fn subscribe() {
    tracing_subscriber::fmt().with_writer(|| Out).with_ansi(false).init();
}

/// Each rank has a span over all rounds, and enters some for parts of them.
pub(crate) fn spans(world: &SimpleCommunicator, rounds: &mut Rounds<'_>) {
    let me = world.rank();
    while let Some(round) = rounds.next() {
        let span = info_span!("round", me, round);
        span.in_scope(|| info!("begins"));
        assert!(!span.is_disabled());
        pass(world, &round);
        step(world, me, round);
        let copy = span.clone();
        world.barrier();
        drop(span);
        copy.in_scope(|| info!("ends"));
        drop(copy);
        world.barrier();
        // Nothing is open that the ranks of this PE could be in.
        if me == 0 && round % 4 == 0 {
            said(me);
        }
        world.barrier();
    }
}

#[instrument(skip(world))]
fn step(world: &SimpleCommunicator, me: i32, round: u64) {
    info!("before");
    let within = Span::current().id();
    pass(world, &round);
    assert!(within.is_some());
    info!("after");
}

#[inline(never)]
fn said(me: i32) {
    info!("rank {me} is in no span");
    let mut said = SAID.lock().expect("no panic");
    let text = String::from_utf8(std::mem::take(&mut *said)).expect("it is a text");
    drop(said);
    let last = text.lines().last().expect("something was said");
    assert!(last.ends_with(&format!("everyday::spans: rank {me} is in no span")), "{last}");
    assert!(!last.contains('{'), "{last}");
}
