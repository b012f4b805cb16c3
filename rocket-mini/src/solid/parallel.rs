//! The run on ranks: shared nodes by messages, dot products by reductions.

use mpi::collective::SystemOperation;
use mpi::request::multiple_scope;
use mpi::topology::SimpleCommunicator;
use mpi::traits::*;
use serde::{Deserialize, Serialize};

use super::body::{Body, Motion, Parts, Whole};
use super::element::Vector;
use super::outcome::Outcome;
use super::partition::{Part, Partition, Shared};
use super::{Error, Settings};
use crate::jacobi::cell_checksum;

/// What a run took, beside its outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// What was computed.
    pub outcome: Outcome,
    /// The parts.
    pub partition: Partition,
    /// Seconds for all steps, without the setting up.
    pub seconds: f64,
}

/// How far a rank is: all it needs to begin again elsewhere.
#[derive(Debug, Serialize, Deserialize)]
struct State {
    setup: Setup,
    motion: Motion,
    steps: usize,
    iterations: usize,
    first_energy: f64,
    start: f64,
}

/// Solves a problem on all ranks of `world`, which must all call this with the same `settings`.
/// Rank 0 gets the outcome, the others `None`; there `progress` is called with the steps made.
///
/// # Errors
///
/// Those of [`Error`], on all ranks.
pub fn solve(
    world: &SimpleCommunicator,
    settings: &Settings,
    mut progress: impl FnMut(usize),
) -> Result<Option<Run>, Error> {
    let (rank, ranks) = (world.rank() as usize, world.size() as usize);
    let partition = Partition::new(settings.elements, ranks)?;
    let mut parts = Ranks::new(world, &partition);
    let part = partition.part(rank);
    world.set_coordinates(part.centre());
    // A rank that begins again elsewhere does so alone: without messages.
    let mut state: State = match world.restore() {
        Some(state) => state,
        None => {
            let setup = Setup::new(settings, part, partition.counted(rank), &mut parts)?;
            State::new(setup, settings, &mut parts)?
        }
    };
    while state.steps < settings.steps {
        state.step(settings, &mut parts)?;
        if rank == 0 {
            progress(state.steps);
        }
        if settings.migrate_every > 0 && state.steps.is_multiple_of(settings.migrate_every) {
            world.migrate(&mut state);
        }
    }
    let seconds = mpi::time() - state.start;
    let outcome = state.outcome(settings, &mut parts);
    Ok((rank == 0).then_some(Run { outcome, partition, seconds }))
}

/// Solves a problem on one part, without ranks.
///
/// # Errors
///
/// Those of [`Error`].
pub fn solve_whole(settings: &Settings) -> Result<Outcome, Error> {
    let part = Part { start: [0; 3], end: settings.elements };
    let setup = Setup::new(settings, part, vec![true; part.node_count()], &mut Whole)?;
    let mut state = State::new(setup, settings, &mut Whole)?;
    while state.steps < settings.steps {
        state.step(settings, &mut Whole)?;
    }
    Ok(state.outcome(settings, &mut Whole))
}

/// What a part is, and does not change.
#[derive(Debug, Serialize, Deserialize)]
struct Setup {
    part: Part,
    body: Body,
    places: Vec<Vector>,
    load: Vec<Vector>,
}

impl Setup {
    fn new(
        settings: &Settings,
        part: Part,
        is_counted: Vec<bool>,
        parts: &mut impl Parts,
    ) -> Result<Self, Error> {
        let Settings { problem, elements, .. } = *settings;
        let places: Vec<Vector> = part.nodes().map(|node| problem.place(node, elements)).collect();
        let is_given = part.nodes().map(|node| problem.is_given(node, elements)).collect();
        let load = part.nodes().map(|node| problem.load(node, elements)).collect();
        let body = Body::new(&part, &places, &problem.material(), is_counted, is_given, parts)?;
        Ok(Self { part, body, places, load })
    }

    fn energy(&self, motion: &Motion, parts: &mut impl Parts) -> f64 {
        let elastic = self.body.elastic_energy(&motion.u, parts);
        elastic + self.body.kinetic_energy(&motion.v, parts)
    }
}

impl State {
    /// The body at time zero, or at rest.
    fn new(setup: Setup, settings: &Settings, parts: &mut impl Parts) -> Result<Self, Error> {
        let start = mpi::time();
        let problem = settings.problem;
        let mut u: Vec<Vector> = setup.places.iter().map(|at| problem.displacement(*at)).collect();
        let mut iterations = 0;
        if settings.steps == 0 {
            for (u, given) in u.iter_mut().zip(&setup.body.is_given) {
                *u = std::array::from_fn(|axis| if given[axis] { u[axis] } else { 0.0 });
            }
            let precision = settings.precision;
            iterations = setup.body.solve(0.0, &setup.load, &mut u, precision, parts)?;
        }
        let v = setup.places.iter().map(|at| problem.velocity(*at)).collect();
        let motion = Motion::new(&setup.body, u, v, &setup.load, parts);
        let first_energy = setup.energy(&motion, parts);
        Ok(Self { setup, motion, steps: 0, iterations, first_energy, start })
    }

    fn step(&mut self, settings: &Settings, parts: &mut impl Parts) -> Result<(), Error> {
        let dt = settings.problem.step(settings.steps);
        let Setup { body, load, .. } = &self.setup;
        self.iterations += self.motion.step(body, dt, load, settings.precision, parts)?;
        self.steps += 1;
        Ok(())
    }

    fn outcome(&self, settings: &Settings, parts: &mut impl Parts) -> Outcome {
        let Settings { problem, elements, .. } = *settings;
        let Setup { part, body, places, .. } = &self.setup;
        let u = &self.motion.u;
        let time = problem.step(settings.steps.max(1)) * settings.steps as f64;
        let grid: Vec<[usize; 3]> = part.nodes().collect();
        let count = body.sum(parts, |_| 1.0);
        let square = |u: Vector| u.iter().map(|u| u * u).sum::<f64>();
        let squares = body.sum(parts, |node| square(u[node]));
        let errors = body.sum(parts, |node| {
            let exact = problem.exact(places[node], time).unwrap_or(u[node]);
            square(std::array::from_fn(|axis| u[node][axis] - exact[axis]))
        });
        let at_end = |node: usize| if grid[node][0] == elements[0] { 1.0 } else { 0.0 };
        let end = body.sum(parts, |node| at_end(node) * u[node][1]);
        let fingerprint = body.sum(parts, |node| {
            let [x, y, z] = grid[node];
            let number = (z * (elements[1] + 1) + y) * (elements[0] + 1) + x;
            (0..3).map(|axis| weight(3 * number + axis) * u[node][axis]).sum()
        });
        Outcome {
            iterations: self.iterations,
            first_energy: self.first_energy,
            last_energy: self.setup.energy(&self.motion, parts),
            displacement: (squares / count).sqrt(),
            error: (errors / count).sqrt(),
            deflection: end / ((elements[1] + 1) * (elements[2] + 1)) as f64,
            fingerprint: fingerprint / count,
        }
    }
}

/// A weight from -1 to 1 for each number, which look random.
fn weight(number: usize) -> f64 {
    cell_checksum(number as u64, 1.0) as i64 as f64 / i64::MAX as f64
}

/// The parts of other ranks.
pub struct Ranks<'a> {
    world: &'a SimpleCommunicator,
    shared: Vec<Shared>,
}

impl<'a> Ranks<'a> {
    /// The parts beside that of the calling rank.
    pub fn new(world: &'a SimpleCommunicator, partition: &Partition) -> Self {
        Self { world, shared: partition.shared(world.rank() as usize) }
    }
}

impl Parts for Ranks<'_> {
    fn add<const N: usize>(&mut self, values: &mut [[f64; N]]) {
        let outgoing: Vec<Vec<f64>> = (self.shared.iter())
            .map(|shared| shared.nodes.iter().flat_map(|node| values[*node]).collect())
            .collect();
        let mut incoming: Vec<Vec<f64>> =
            outgoing.iter().map(|values| vec![0.0; values.len()]).collect();
        let count = 2 * self.shared.len();
        multiple_scope(count, |scope, requests| {
            for (shared, buffer) in self.shared.iter().zip(&mut incoming) {
                let from = self.world.process_at_rank(shared.part as i32);
                requests.add(from.immediate_receive_into(scope, &mut buffer[..]));
            }
            for (shared, buffer) in self.shared.iter().zip(&outgoing) {
                let to = self.world.process_at_rank(shared.part as i32);
                requests.add(to.immediate_send(scope, &buffer[..]));
            }
            requests.wait_all(&mut Vec::with_capacity(count));
        });
        // All copies add the same values in the order of parts, their own in its place.
        let own: Vec<[f64; N]> = values.to_vec();
        let me = self.world.rank() as usize;
        let before = self.shared.partition_point(|shared| shared.part < me);
        for shared in &self.shared {
            for node in &shared.nodes {
                values[*node] = [0.0; N];
            }
        }
        let add = |values: &mut [[f64; N]], shared: &Shared, more: &[[f64; N]]| {
            for (node, more) in shared.nodes.iter().zip(more) {
                for (value, more) in values[*node].iter_mut().zip(more) {
                    *value += more;
                }
            }
        };
        for (shared, incoming) in self.shared[..before].iter().zip(&incoming) {
            add(values, shared, incoming.as_chunks().0);
        }
        let mut is_done = vec![false; values.len()];
        for node in self.shared.iter().flat_map(|shared| &shared.nodes) {
            if !std::mem::replace(&mut is_done[*node], true) {
                for (value, own) in values[*node].iter_mut().zip(own[*node]) {
                    *value += own;
                }
            }
        }
        for (shared, incoming) in self.shared[before..].iter().zip(&incoming[before..]) {
            add(values, shared, incoming.as_chunks().0);
        }
    }

    fn sums<const N: usize>(&mut self, values: [f64; N]) -> [f64; N] {
        let mut sums = [0.0; N];
        self.world.all_reduce_into(&values[..], &mut sums[..], SystemOperation::sum());
        sums
    }
}
