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

/// How far a rank is: all it needs to begin again elsewhere, where it makes its matrix again.
#[derive(Debug, Serialize, Deserialize)]
struct State {
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
    let is_counted = counted(&partition, rank);
    let problem = Setup::new(settings, part, is_counted, &mut parts)?;
    let mut state = match world.restore() {
        Some(state) => state,
        None => problem.begin(settings, &mut parts)?,
    };
    while state.steps < settings.steps {
        problem.step(settings, &mut state, &mut parts)?;
        if rank == 0 {
            progress(state.steps);
        }
        if settings.migrate_every > 0 && state.steps.is_multiple_of(settings.migrate_every) {
            world.migrate(&mut state);
        }
    }
    let seconds = mpi::time() - state.start;
    let outcome = problem.outcome(settings, &state, &mut parts);
    Ok((rank == 0).then_some(Run { outcome, partition, seconds }))
}

/// Solves a problem on one part, without ranks.
///
/// # Errors
///
/// Those of [`Error`].
pub fn solve_whole(settings: &Settings) -> Result<Outcome, Error> {
    let part = Part { start: [0; 3], end: settings.elements };
    let problem = Setup::new(settings, part, vec![true; part.node_count()], &mut Whole)?;
    let mut state = problem.begin(settings, &mut Whole)?;
    while state.steps < settings.steps {
        problem.step(settings, &mut state, &mut Whole)?;
    }
    Ok(problem.outcome(settings, &state, &mut Whole))
}

/// What a part is, and does not change.
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

    /// The body at time zero, or at rest.
    fn begin(&self, settings: &Settings, parts: &mut impl Parts) -> Result<State, Error> {
        let start = mpi::time();
        let problem = settings.problem;
        let mut u: Vec<Vector> = self.places.iter().map(|at| problem.displacement(*at)).collect();
        let mut iterations = 0;
        if settings.steps == 0 {
            for (u, given) in u.iter_mut().zip(&self.body.is_given) {
                *u = std::array::from_fn(|axis| if given[axis] { u[axis] } else { 0.0 });
            }
            let precision = settings.precision;
            iterations = self.body.solve(0.0, &self.load, &mut u, precision, parts)?;
        }
        let v = self.places.iter().map(|at| problem.velocity(*at)).collect();
        let motion = Motion::new(&self.body, u, v, &self.load, parts);
        let first_energy = self.energy(&motion, parts);
        Ok(State { motion, steps: 0, iterations, first_energy, start })
    }

    fn step(
        &self,
        settings: &Settings,
        state: &mut State,
        parts: &mut impl Parts,
    ) -> Result<(), Error> {
        let dt = settings.problem.step(settings.steps);
        let precision = settings.precision;
        state.iterations += state.motion.step(&self.body, dt, &self.load, precision, parts)?;
        state.steps += 1;
        Ok(())
    }

    fn energy(&self, motion: &Motion, parts: &mut impl Parts) -> f64 {
        let elastic = self.body.elastic_energy(&motion.u, parts);
        elastic + self.body.kinetic_energy(&motion.v, parts)
    }

    fn outcome(&self, settings: &Settings, state: &State, parts: &mut impl Parts) -> Outcome {
        let Settings { problem, elements, .. } = *settings;
        let body = &self.body;
        let u = &state.motion.u;
        let time = problem.step(settings.steps.max(1)) * settings.steps as f64;
        let grid: Vec<[usize; 3]> = self.part.nodes().collect();
        let count = body.sum(parts, |_| 1.0);
        let square = |u: Vector| u.iter().map(|u| u * u).sum::<f64>();
        let squares = body.sum(parts, |node| square(u[node]));
        let errors = body.sum(parts, |node| {
            let exact = problem.exact(self.places[node], time).unwrap_or(u[node]);
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
            iterations: state.iterations,
            first_energy: state.first_energy,
            last_energy: self.energy(&state.motion, parts),
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

/// Which nodes a part counts in sums: those that no part before it has.
fn counted(partition: &Partition, number: usize) -> Vec<bool> {
    let mut counted = vec![true; partition.part(number).node_count()];
    for Shared { part, nodes } in partition.shared(number) {
        if part < number {
            for node in nodes {
                counted[node] = false;
            }
        }
    }
    counted
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

    fn sum(&mut self, value: f64) -> f64 {
        let mut sum = 0.0;
        self.world.all_reduce_into(&value, &mut sum, SystemOperation::sum());
        sum
    }
}
