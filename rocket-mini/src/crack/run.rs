//! The run on ranks, its result, and its verification.

use mpi::collective::SystemOperation;
use mpi::request::multiple_scope;
use mpi::topology::SimpleCommunicator;
use mpi::traits::*;
use serde::{Deserialize, Serialize};

use super::plate::{Plate, Strip, Sums};
use super::snapshot::Snapshot;
use super::{Error, Settings};
use crate::picture::is_due;

/// The result of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outcome {
    /// The sums at the end; their last bits depend on the strips.
    pub sums: Sums,
    /// The checksum of all displacements, which does not depend on the strips.
    pub checksum: u64,
}

/// A run: its outcome and its times.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// What was computed.
    pub outcome: Outcome,
    /// Seconds for all steps.
    pub seconds: f64,
    /// For each rank, the seconds that it computed, without the exchange of columns.
    pub compute_seconds: Vec<f64>,
}

/// The progress of a rank: all it needs to continue elsewhere.
#[derive(Debug, Serialize, Deserialize)]
struct State {
    plate: Plate,
    steps: usize,
    compute_seconds: f64,
    start: f64,
}

/// Steps between checks whether displacements are numbers.
const CHECK_EVERY: usize = 50;

/// Runs the crack on all ranks of `world`, which must all call this with the same `settings`. Rank 0 gets the outcome,
/// the others `None`; there `progress` is called with the number of steps, and `picture` with each snapshot.
///
/// # Errors
///
/// Those of [`Error`], on all ranks.
pub fn solve(
    world: &SimpleCommunicator,
    settings: &Settings,
    mut progress: impl FnMut(usize),
    mut picture: impl FnMut(&Snapshot),
) -> Result<Option<Run>, Error> {
    let (rank, ranks) = (world.rank() as usize, world.size() as usize);
    let [columns, _] = settings.elements();
    if ranks > columns {
        return Err(Error::TooManyRanks { ranks, columns });
    }
    let strip = Strip { start: rank * columns / ranks, end: (rank + 1) * columns / ranks };
    let mut state = world.restore().unwrap_or_else(|| State {
        plate: Plate::new(*settings, strip),
        steps: 0,
        compute_seconds: 0.0,
        start: mpi::time(),
    });
    world.set_coordinates([(strip.start + strip.end) as f64 / 2.0, 0.0, 0.0]);
    let is_pictured = |steps| is_due(steps, settings.snapshot_every, settings.steps);
    if state.steps == 0 && is_pictured(0) {
        snapshot(world, &mut state).iter().for_each(&mut picture);
    }
    while state.steps < settings.steps {
        exchange(world, &mut state.plate);
        let start = mpi::time();
        state.plate.step();
        state.compute_seconds += mpi::time() - start;
        state.steps += 1;
        if is_check(state.steps, settings) {
            let unsound = i32::from(!state.plate.is_sound());
            let mut any = 0;
            world.all_reduce_into(&unsound, &mut any, SystemOperation::max());
            if any > 0 {
                return Err(Error::BlownUp { step: state.steps });
            }
        }
        if rank == 0 {
            progress(state.steps);
        }
        if is_pictured(state.steps) {
            snapshot(world, &mut state).iter().for_each(&mut picture);
        }
        if settings.migrate_every > 0 && state.steps.is_multiple_of(settings.migrate_every) {
            world.migrate(&mut state);
        }
    }
    let seconds = mpi::time() - state.start;
    exchange(world, &mut state.plate);
    let mut row = [0.0; 12];
    let sums = state.plate.sums();
    world.all_reduce_into(&sums.to_row()[..], &mut row[..], SystemOperation::sum());
    let mut tip = 0.0;
    world.all_reduce_into(&sums.tip, &mut tip, SystemOperation::max());
    let mut checksums = vec![0; ranks];
    world.all_gather_into(&state.plate.checksum(), &mut checksums[..]);
    let mut compute_seconds = vec![0.0; ranks];
    world.all_gather_into(&state.compute_seconds, &mut compute_seconds[..]);
    let checksum = checksums.into_iter().fold(0, u64::wrapping_add);
    let outcome = Outcome { sums: Sums::from_row(row, tip), checksum };
    Ok((rank == 0).then_some(Run { outcome, seconds, compute_seconds }))
}

/// Runs the crack on one strip, without ranks.
///
/// # Errors
///
/// [`Error::BlownUp`].
pub fn solve_alone(settings: &Settings) -> Result<Outcome, Error> {
    let mut plate = Plate::new(*settings, Strip { start: 0, end: settings.elements()[0] });
    for step in 1..=settings.steps {
        plate.step();
        if is_check(step, settings) && !plate.is_sound() {
            return Err(Error::BlownUp { step });
        }
    }
    Ok(Outcome { sums: plate.sums(), checksum: plate.checksum() })
}

fn is_check(step: usize, settings: &Settings) -> bool {
    step.is_multiple_of(CHECK_EVERY) || step == settings.steps
}

/// The whole plate, on rank 0.
fn snapshot(world: &SimpleCommunicator, state: &mut State) -> Option<Snapshot> {
    // The sides of an edge are those of now only where the ghost columns are.
    exchange(world, &mut state.plate);
    state.plate.snapshot(state.steps).gather(world)
}

/// Exchanges the columns at the ends of the strip with both neighbours.
fn exchange(world: &SimpleCommunicator, plate: &mut Plate) {
    let (rank, ranks) = (world.rank(), world.size());
    let beside = [(rank > 0).then(|| rank - 1), (rank + 1 < ranks).then_some(rank + 1)];
    let outgoing = [0, 1].map(|side| plate.lend(side));
    let mut incoming = [0, 1].map(|side| vec![0.0; outgoing[side].len()]);
    let count = 2 * beside.iter().flatten().count();
    multiple_scope(count, |scope, requests| {
        for (neighbour, buffer) in beside.iter().zip(&mut incoming) {
            let Some(neighbour) = neighbour else { continue };
            let from = world.process_at_rank(*neighbour);
            requests.add(from.immediate_receive_into(scope, &mut buffer[..]));
        }
        for (neighbour, buffer) in beside.iter().zip(&outgoing) {
            let Some(neighbour) = neighbour else { continue };
            let to = world.process_at_rank(*neighbour);
            requests.add(to.immediate_send(scope, &buffer[..]));
        }
        requests.wait_all(&mut Vec::with_capacity(count));
    });
    for (side, lent) in incoming.iter().enumerate() {
        if beside[side].is_some() {
            plate.borrow(side, lent);
        }
    }
}

impl Sums {
    /// The sums over strips, as a row.
    fn to_row(self) -> [f64; 12] {
        let Self { elastic, kinetic, dissipated, work, momentum, momenta, edges, .. } = self;
        let Self { warming, heat, .. } = self;
        let ([mx, my], [inserted, broken, astray]) = (momentum, edges);
        [
            elastic, kinetic, dissipated, work, mx, my, momenta, inserted, broken, astray, warming,
            heat,
        ]
    }

    fn from_row(row: [f64; 12], tip: f64) -> Self {
        let [elastic, kinetic, dissipated, work, mx, my, momenta, ..] = row;
        let [.., inserted, broken, astray, warming, heat] = row;
        let (momentum, edges) = ([mx, my], [inserted, broken, astray]);
        Self { elastic, kinetic, dissipated, work, momentum, momenta, edges, tip, warming, heat }
    }
}

/// The tolerance for the momentum, relative to the momenta that it is the sum of.
const ROUND_OFF: f64 = 1e-10;
impl Outcome {
    /// The part of the gas's work that is missing in the energy balance.
    pub fn energy_imbalance(&self) -> f64 {
        let Sums { elastic, kinetic, dissipated, work, .. } = self.sums;
        if work == 0.0 { 0.0 } else { ((elastic + kinetic + dissipated) / work - 1.0).abs() }
    }

    /// Verifies the run against one on a single strip, bit for bit, and against what must be conserved.
    ///
    /// # Errors
    ///
    /// What is wrong.
    pub fn verify(&self, settings: &Settings, alone: &Self) -> Result<(), Wrong> {
        if self.checksum != alone.checksum {
            return Err(Wrong::Displacements { found: self.checksum, expected: alone.checksum });
        }
        let [mx, my] = self.sums.momentum;
        let momentum = mx.abs().max(my.abs());
        if momentum > ROUND_OFF * self.sums.momenta {
            return Err(Wrong::Momentum { found: momentum, of: self.sums.momenta });
        }
        let found = self.energy_imbalance();
        // Velocities are those of half a step before, which counts most while the plate is being set
        // in motion; and edges inserted under stress give back some of it, as they are not stretched.
        let bound = 0.02 + 0.2 / settings.size as f64 + 0.8 / settings.steps as f64;
        if found.is_nan() || found > bound {
            return Err(Wrong::Energy { found, bound });
        }
        Ok(())
    }
}

/// Why a result is wrong.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum Wrong {
    /// The displacements.
    #[error("the checksum of the displacements is {found:016x}, that of one strip {expected:016x}")]
    Displacements {
        /// Of this run.
        found: u64,
        /// Of the run on one strip.
        expected: u64,
    },
    /// The momentum: the gas pushes both sides equally, so it must be zero.
    #[error("the momentum is {found:e}, of momenta {of:e}, and has to be zero")]
    Momentum {
        /// The momentum.
        found: f64,
        /// The momenta that it is the sum of.
        of: f64,
    },
    /// The energy.
    #[error("of the work of the gas {found:e} is nowhere or from nowhere, more than {bound:e}")]
    Energy {
        /// See [`Outcome::energy_imbalance`].
        found: f64,
        /// What is allowed for this many elements and steps.
        bound: f64,
    },
}
