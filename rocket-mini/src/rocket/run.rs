//! An interval, the run on ranks, and its result.

use mpi::collective::SystemOperation;
use mpi::topology::SimpleCommunicator;
use mpi::traits::*;
use serde::{Deserialize, Serialize};

use super::heat::Heat;
use super::snapshot::Snapshot;
use super::surface::Surface;
use super::{Error, PROBLEM, Settings, material};
use crate::flow::{self, Block, Blocks, Clock, Neighbours, Sums, step};
use crate::picture::is_due;
use crate::solid::{self, Body, Motion, Part, Partition, Parts, Vector};

/// The result of a run: the same for any number of ranks, except for rounding and its effect within the tolerance of
/// the propellant's solver.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Steps of the gas.
    pub steps: usize,
    /// Iterations of the propellant's solver, over all intervals.
    pub iterations: usize,
    /// The gas at the beginning.
    pub first: Sums,
    /// The gas at the end.
    pub last: Sums,
    /// The heat in the propellant below the surface, beyond that of cold propellant: temperatures times volumes.
    pub heat: f64,
    /// The greatest number of columns of gas below propellant that was warming up at the same time.
    pub most_warming: usize,
    /// The root mean square of the propellant's displacements.
    pub displacement: f64,
    /// The volume of propellant at the end.
    pub propellant_volume: f64,
    /// The greatest number of ranks that one communicates with at the surface.
    pub most_partners: usize,
}

/// A run: its outcome and its time.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// What was computed.
    pub outcome: Outcome,
    /// Seconds for all intervals.
    pub seconds: f64,
}

/// The progress of a rank: all it needs to continue elsewhere.
#[derive(Debug, Serialize, Deserialize)]
struct State {
    surface: Surface,
    block: Block,
    clock: Clock,
    motion: Motion,
    /// The heat above each of the block's columns, x fastest.
    heat: Vec<Heat>,
    /// Number of columns that were warming up after each interval.
    warming: Vec<usize>,
    /// How far the propellant has moved the corners of the gas's columns.
    applied: Vec<f64>,
    intervals: usize,
    iterations: usize,
    start: f64,
}

impl State {
    /// The propellant above the block warms up.
    fn warm(&mut self, dt: f64, points: usize) {
        let nx = self.block.extent().lengths[0];
        for (column, heat) in self.heat.iter_mut().enumerate() {
            heat.advance(self.block.burn_rate(column % nx, column / nx), dt, points);
        }
    }

    /// The heat above the block.
    fn heat(&self) -> f64 {
        let columns = self.heat.iter().map(Heat::stored);
        self.block.column_area() * columns.sum::<f64>()
    }
}

/// Runs the rocket on all ranks of `world`, which must all call this with the same `settings`. Rank 0 gets the outcome,
/// the others `None`; there `progress` is called with the number of intervals, and `picture` with each snapshot.
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
    let blocks = Blocks::new(ranks, settings.cells, 1.0)?;
    let partition = Partition::new(settings.elements, ranks)?;
    let part = partition.part(rank);
    let first_block = || {
        let flow = settings.flow(0.0);
        Block::new(flow.problem, flow.limiter, flow.cells, blocks.extent(rank))
            .with_front(settings.ignition)
    };
    // A rank that begins again elsewhere does so alone: without messages.
    let moves = settings.migrate_every > 0;
    let mut state = moves.then(|| world.restore()).flatten().unwrap_or_else(|| {
        let block = first_block();
        let at_rest = vec![[0.0; 3]; part.node_count()];
        let motion = Motion { u: at_rest.clone(), v: at_rest.clone(), a: at_rest };
        let applied = vec![0.0; block.motion.len()];
        let clock = Clock::default();
        let surface = Surface::discover(world, settings, &block, part);
        let [nx, _, nz] = block.extent().lengths;
        State {
            surface,
            block,
            clock,
            motion,
            heat: vec![Heat::cold(); nx * nz],
            warming: Vec::new(),
            applied,
            intervals: 0,
            iterations: 0,
            start: mpi::time(),
        }
    });
    world.set_coordinates(blocks.extent(rank).centre());
    let mut rocket = Rocket {
        world,
        settings,
        part,
        is_counted: partition.counted(rank),
        neighbours: flow::Ranks::new(world, &blocks),
        parts: solid::Ranks::new(world, partition.shared(rank)),
    };
    let is_pictured = |intervals| is_due(intervals, settings.snapshot_every, settings.intervals);
    if state.intervals == 0 && is_pictured(0) {
        rocket.snapshot(&state)?.iter().for_each(&mut picture);
    }
    while state.intervals < settings.intervals {
        rocket.interval(&mut state)?;
        if rank == 0 {
            progress(state.intervals);
        }
        if is_pictured(state.intervals) {
            rocket.snapshot(&state)?.iter().for_each(&mut picture);
        }
        if moves && state.intervals.is_multiple_of(settings.migrate_every) {
            world.migrate(&mut state);
        }
    }
    let seconds = mpi::time() - state.start;
    let flow = settings.flow(state.clock.time);
    let first = flow::sum(world, Sums::of(&flow, &first_block(), 0.0));
    let outcome = rocket.outcome(&state, first)?;
    Ok((rank == 0).then_some(Run { outcome, seconds }))
}

/// The constant part of a rank's share of the rocket.
struct Rocket<'a> {
    world: &'a SimpleCommunicator,
    settings: &'a Settings,
    part: Part,
    is_counted: Vec<bool>,
    neighbours: flow::Ranks<'a>,
    parts: solid::Ranks<'a>,
}

impl Rocket<'_> {
    /// The gas flows, then the propellant deforms.
    fn interval(&mut self, state: &mut State) -> Result<(), Error> {
        let end = (state.intervals + 1) as f64 * self.settings.interval;
        let flow = self.settings.flow(end);
        while state.clock.time < end {
            let before = state.clock.time;
            step(&mut state.block, &mut self.neighbours, &flow, &mut state.clock)?;
            if self.settings.heat_points > 0 {
                state.warm(state.clock.time - before, self.settings.heat_points);
            }
        }
        state.warming.push(state.heat.iter().filter(|heat| heat.is_warming()).count());
        for (applied, motion) in state.applied.iter_mut().zip(&state.block.motion) {
            *applied += self.settings.interval * motion;
        }
        state.intervals += 1;

        let (body, places, mut load) = self.propellant(state)?;
        debug_assert_eq!(places.len(), load.len());
        self.parts.add(&mut load);
        let (dt, precision) = (self.settings.interval, self.settings.precision);
        state.iterations += state.motion.step(&body, dt, &load, precision, &mut self.parts)?;
        let displacements = state.surface.displacements(self.world, &state.motion.u);
        for (at, displacement) in displacements.iter().enumerate() {
            state.block.motion[at] = (displacement - state.applied[at]) / self.settings.interval;
        }
        Ok(())
    }

    /// The propellant in its current shape: its matrix, the positions of its nodes at rest, and this part's load.
    fn propellant(&mut self, state: &State) -> Result<(Body, Vec<Vector>, Vec<Vector>), Error> {
        let told = state.surface.tell(self.world, &state.block, &state.applied);
        let places = state.surface.places(&told);
        let burned = f64::from(u8::from(places.is_none()));
        let through = Error::BurnedThrough { intervals: state.intervals };
        if self.neighbours.largest(burned) > 0.0 {
            return Err(through);
        }
        let places = places.ok_or(through)?;
        let elements = self.settings.elements;
        // The case holds the propellant above, and lets it slide at its sides.
        let at_side = |at: usize, axis: usize| at == 0 || at == elements[axis];
        let is_given = (self.part.nodes())
            .map(|[x, y, z]| {
                [at_side(x, 0), false, at_side(z, 2)].map(|given| given || y == elements[1])
            })
            .collect();
        let counted = self.is_counted.clone();
        let elements = self.part.element_nodes();
        let body = Body::new(elements, &places, &material(), counted, is_given, &mut self.parts)?;
        Ok((body, places, state.surface.load(&told)))
    }

    fn snapshot(&mut self, state: &State) -> Result<Option<Snapshot>, Error> {
        let (_, places, _) = self.propellant(state)?;
        let when = [state.intervals as f64, state.clock.time];
        let own = Snapshot::of(when, &state.block, &self.part, &places, &state.motion.u);
        Ok(own.gather(self.world))
    }

    fn outcome(&mut self, state: &State, first: Sums) -> Result<Outcome, Error> {
        let (body, ..) = self.propellant(state)?;
        let u = &state.motion.u;
        let count = body.sum(&mut self.parts, |_| 1.0);
        let square = |node: usize| u[node].iter().map(|u| u * u).sum();
        let squares = body.sum(&mut self.parts, square);
        let mass = body.sum(&mut self.parts, |node| body.mass[node]);
        let flow = self.settings.flow(state.clock.time);
        let mut partners = 0;
        let own = state.surface.partners() as i32;
        self.world.all_reduce_into(&own, &mut partners, SystemOperation::max());
        let mut heat = 0.0;
        self.world.all_reduce_into(&state.heat(), &mut heat, SystemOperation::sum());
        let warming: Vec<u64> = state.warming.iter().map(|columns| *columns as u64).collect();
        let mut all_warming = vec![0; warming.len()];
        let sum = SystemOperation::sum();
        self.world.all_reduce_into(&warming[..], &mut all_warming[..], sum);
        Ok(Outcome {
            steps: state.clock.steps,
            iterations: state.iterations,
            first,
            last: flow::sum(self.world, Sums::of(&flow, &state.block, state.clock.time)),
            displacement: (squares / count).sqrt(),
            propellant_volume: mass / material().density,
            most_partners: partners as usize,
            heat,
            most_warming: all_warming.into_iter().max().unwrap_or(0) as usize,
        })
    }
}

/// The tolerance for the balances of mass and energy of the gas, relative to the total.
const ROUND_OFF: f64 = 2e-12;

impl Outcome {
    /// The mean pressure.
    pub fn mean_pressure(&self) -> f64 {
        self.last.pressure / self.last.volume
    }

    /// Verifies the run against one on a single rank, and against what must be conserved.
    ///
    /// # Errors
    ///
    /// What is wrong.
    pub fn verify(&self, settings: &Settings, alone: &Self) -> Result<(), Wrong> {
        for q in [0, 4] {
            let (first, last) = (self.first.totals[q], self.last.totals[q]);
            let off = (last - first - self.last.gained[q]).abs() / first.max(last);
            // A NaN is off, too.
            if off.is_nan() || off > ROUND_OFF {
                return Err(Wrong::Balance { found: off });
            }
        }
        let allowed = 1e5 * settings.precision.tolerance;
        let same = |what, found: f64, expected: f64| {
            if (found - expected).abs() <= allowed * expected.abs() {
                Ok(())
            } else {
                Err(Wrong::Differs { what, found, expected })
            }
        };
        same("number of steps", self.steps as f64, alone.steps as f64)?;
        same("mean pressure", self.mean_pressure(), alone.mean_pressure())?;
        same("volume of gas", self.last.volume, alone.last.volume)?;
        same("volume of propellant", self.propellant_volume, alone.propellant_volume)?;
        same("heat in the propellant", self.heat, alone.heat)?;
        same("displacement", self.displacement, alone.displacement)?;
        // What the propellant lost in volume became gas: the box is full at any time, but for what
        // the deformation takes.
        let [x, y, z] = PROBLEM.size();
        let whole = x * z * (y + super::THICKNESS);
        let filled = self.last.volume + self.propellant_volume;
        let squeezed = x * z * 4.0 * self.displacement;
        if (filled - whole).abs() > squeezed + 1e-9 {
            return Err(Wrong::Differs {
                what: "sum of both volumes",
                found: filled,
                expected: whole,
            });
        }
        Ok(())
    }
}

/// Why a result is wrong.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum Wrong {
    /// Mass or energy of the gas.
    #[error("mass or energy of the gas is off by {found:e} of itself, more than {ROUND_OFF:e}")]
    Balance {
        /// The imbalance.
        found: f64,
    },
    /// Two values that must be equal differ.
    #[error("the {what} is {found}, it must be {expected}")]
    Differs {
        /// The value's name.
        what: &'static str,
        /// Of this run.
        found: f64,
        /// Of the run on one rank, or derived from the geometry.
        expected: f64,
    },
}
