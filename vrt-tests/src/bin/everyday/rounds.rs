//! The rounds of a program: some, and as many as fit into its time, so that ranks are moved.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use vrt::Rank;
use vrt::collective::SystemOperation;
use vrt::topology::SimpleCommunicator;
use vrt::traits::*;

pub(crate) type Program = fn(&SimpleCommunicator, &mut Rounds<'_>);
pub(crate) type AsyncProgram = for<'a> fn(
    &'a SimpleCommunicator,
    &'a mut Rounds<'_>,
) -> Pin<Box<dyn Future<Output = ()> + 'a>>;

/// As few rounds as there are on the slowest machine.
const LEAST: u64 = 5;

/// Which round it is; all ranks are in the same one.
pub(crate) struct Rounds<'a> {
    world: &'a SimpleCommunicator,
    time: Duration,
    at: At,
    /// It has begun again, in the middle of a round's beginning.
    resumed: bool,
    /// What `main` has made, of which each PE has a copy.
    pub(crate) prepared: &'a Prepared,
}

pub(crate) struct Prepared {
    pub(crate) texts: Arc<Vec<String>>,
    /// So long that it has pages of its own.
    pub(crate) table: Arc<[u64]>,
}

/// What goes along with the state of a rank that moves by it.
#[derive(Clone, Copy, Deserialize, Serialize)]
struct At {
    /// Seconds of the job.
    began: f64,
    round: u64,
    pe: u32,
    moves: u64,
}

impl<'a> Rounds<'a> {
    pub(crate) fn new(
        world: &'a SimpleCommunicator,
        time: Duration,
        prepared: &'a Prepared,
    ) -> Self {
        let at = At { began: vrt::time(), round: 0, pe: vrt::statistics().pe, moves: 0 };
        Rounds { world, time, at, resumed: false, prepared }
    }

    /// What a rank has that begins: what it had, if it has moved by its state.
    pub(crate) fn state<S: Default + DeserializeOwned>(&mut self) -> S {
        let Some((at, state)) = self.world.restore::<(At, S)>() else { return S::default() };
        self.at = at;
        self.see();
        self.resumed = true;
        state
    }

    /// Rank 0's word for it: whether there is another round.
    fn goes_on(&self) -> bool {
        self.at.round < LEAST || vrt::time() - self.at.began < self.time.as_secs_f64()
    }

    fn count(&mut self, goes_on: bool) -> Option<u64> {
        self.see();
        self.at.round += 1;
        goes_on.then_some(self.at.round)
    }

    fn see(&mut self) {
        let pe = vrt::statistics().pe;
        self.at.moves += u64::from(pe != std::mem::replace(&mut self.at.pe, pe));
    }

    /// The number of the next round, from 1. All ranks call it.
    #[inline(never)]
    pub(crate) fn next(&mut self) -> Option<u64> {
        let mut goes_on = self.goes_on();
        self.world.process_at_rank(0).broadcast_into(&mut goes_on);
        self.count(goes_on)
    }

    /// The same, where the rank may be moved by what it has.
    #[inline(never)]
    pub(crate) fn next_with<S>(&mut self, state: &mut S) -> Option<u64>
    where
        S: Default + Serialize + DeserializeOwned,
    {
        if std::mem::take(&mut self.resumed) {
            return Some(self.at.round);
        }
        let round = self.next()?;
        let mut all = (self.at, std::mem::take(state));
        self.world.migrate(&mut all);
        *state = all.1;
        Some(round)
    }

    /// [`next`](Self::next) for async ranks.
    pub(crate) async fn next_async(&mut self) -> Option<u64> {
        let mut goes_on = self.goes_on();
        self.world.process_at_rank(0).broadcast_into_async(&mut goes_on).await;
        self.count(goes_on)
    }

    /// [`next_with`](Self::next_with) for async ranks.
    pub(crate) async fn next_with_async<S>(&mut self, state: &mut S) -> Option<u64>
    where
        S: Default + Serialize + DeserializeOwned,
    {
        if std::mem::take(&mut self.resumed) {
            return Some(self.at.round);
        }
        let round = self.next_async().await?;
        let mut all = (self.at, std::mem::take(state));
        self.world.migrate_async(&mut all).await;
        *state = all.1;
        Some(round)
    }

    /// Says that all ranks came to the end.
    pub(crate) fn end(self, name: &str) {
        let mut moves = 0u64;
        self.world.all_reduce_into(&self.at.moves, &mut moves, SystemOperation::sum());
        self.say(name, moves);
    }

    pub(crate) async fn end_async(self, name: &str) {
        let mut moves = 0u64;
        let sum = SystemOperation::sum();
        self.world.all_reduce_into_async(&self.at.moves, &mut moves, sum).await;
        self.say(name, moves);
    }

    fn say(&self, name: &str, moves: u64) {
        if self.world.rank() == 0 {
            println!("{name}: {} rounds, {moves} moves seen, ok", self.at.round - 1);
        }
    }
}

/// The neighbours of a rank in the ring: the next one and the one before.
pub(crate) fn neighbours(world: &SimpleCommunicator) -> (Rank, Rank) {
    let (rank, size) = (world.rank(), world.size());
    ((rank + 1) % size, (rank + size - 1) % size)
}

/// Gives a value to the next rank; returns what the one before gives.
pub(crate) fn pass<T: Serialize + DeserializeOwned>(world: &SimpleCommunicator, value: &T) -> T {
    let (next, previous) = neighbours(world);
    let (next, previous) = (world.process_at_rank(next), world.process_at_rank(previous));
    let receive = || previous.receive_value::<T>().expect("it is such a value").0;
    if world.rank() % 2 == 0 {
        next.send_value(value).expect("it can be encoded");
        receive()
    } else {
        let got = receive();
        next.send_value(value).expect("it can be encoded");
        got
    }
}

/// The sum over all ranks.
pub(crate) fn sum(world: &SimpleCommunicator, value: u64) -> u64 {
    let mut all = 0;
    world.all_reduce_into(&value, &mut all, SystemOperation::sum());
    all
}
