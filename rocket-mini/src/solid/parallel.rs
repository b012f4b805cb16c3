//! The run on ranks: shared nodes by messages, dot products by reductions.

use std::path::Path;

use mpi::Tag;
use mpi::collective::SystemOperation;
use mpi::request::multiple_scope;
use mpi::topology::SimpleCommunicator;
use mpi::traits::*;
use serde::{Deserialize, Serialize};

use super::body::{Body, Motion, Parts, Whole};
use super::element::Vector;
use super::mesh::Mesh;
use super::outcome::Outcome;
use super::partition::{Partition, Shared};
use super::region::Region;
use super::{Error, Problem, Settings, Shape};
use crate::jacobi::cell_checksum;

/// A run: its outcome and its time.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// The outcome.
    pub outcome: Outcome,
    /// The elements of each rank.
    pub elements: Vec<usize>,
    /// Seconds for all steps, without setup.
    pub seconds: f64,
}

/// The progress of a rank: all it needs to continue elsewhere.
#[derive(Debug, Serialize, Deserialize)]
struct State {
    setup: Setup,
    motion: Motion,
    steps: usize,
    iterations: usize,
    first_energy: f64,
    start: f64,
}

/// Solves a problem on all ranks of `world`, which must all call this with the same `settings`. Rank 0 gets the
/// outcome, the others `None`; there `progress` is called with the number of steps.
///
/// # Errors
///
/// Those of [`Error`], on all ranks.
pub fn solve(
    world: &SimpleCommunicator,
    settings: &Settings,
    mut progress: impl FnMut(usize),
) -> Result<Option<Run>, Error> {
    let rank = world.rank();
    // A rank that begins again elsewhere does so alone: without messages.
    let (mut state, mut parts) = match world.restore::<State>() {
        Some(state) => {
            let parts = Ranks::new(world, state.setup.shared.clone());
            (state, parts)
        }
        None => {
            let region = region(world, settings)?;
            let mut parts = Ranks::new(world, region.shared.clone());
            let setup = Setup::new(settings, region, &mut parts)?;
            (State::new(setup, settings, &mut parts)?, parts)
        }
    };
    world.set_coordinates(state.setup.centre);
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
    let mut elements = vec![0; world.size() as usize];
    world.all_gather_into(&state.setup.elements, &mut elements[..]);
    Ok((rank == 0).then_some(Run { outcome, elements, seconds }))
}

/// The calling rank's part of the body.
fn region(world: &SimpleCommunicator, settings: &Settings) -> Result<Region, Error> {
    const TAG: Tag = 8;
    let (rank, ranks) = (world.rank() as usize, world.size() as usize);
    let path = match &settings.shape {
        Shape::Grid(elements) => {
            let partition = Partition::new(*elements, ranks)?;
            return Ok(Region::of_grid(settings.problem, *elements, &partition, rank));
        }
        Shape::File(path) => path,
    };
    if rank > 0 {
        let from = world.process_at_rank(0);
        let (region, _) = from.receive_value_with_tag(TAG).expect("what was encoded");
        return Option::<Region>::ok_or(region, Error::NoMesh);
    }
    let tell = |rank: usize, region: &Option<Region>| {
        let to = world.process_at_rank(rank as i32);
        to.send_value_with_tag(region, TAG).expect("numbers can be encoded");
    };
    let cut = || -> Result<Region, Error> {
        let mesh = read(path, settings.problem, ranks)?;
        let mut regions = mesh.regions(settings.problem, ranks)?;
        let own = regions.next().ok_or(Error::NoMesh)?;
        (1..).zip(regions).for_each(|(rank, region)| tell(rank, &Some(region)));
        Ok(own)
    };
    cut().inspect_err(|_| (1..ranks).for_each(|rank| tell(rank, &None)))
}

/// The mesh from a file, if it can be cut into this many parts.
fn read(path: &Path, problem: Problem, ranks: usize) -> Result<Mesh, Error> {
    if problem == Problem::Wave {
        return Err(Error::OwnShape);
    }
    let mesh = Mesh::read(path)?;
    let elements = mesh.element_count();
    if elements < ranks { Err(Error::TooFewElements { ranks, elements }) } else { Ok(mesh) }
}

/// Solves a problem on one part, without ranks.
///
/// # Errors
///
/// Those of [`Error`].
pub fn solve_whole(settings: &Settings) -> Result<Outcome, Error> {
    let region = match &settings.shape {
        Shape::Grid(elements) => {
            let whole = Partition::new(*elements, 1)?;
            Region::of_grid(settings.problem, *elements, &whole, 0)
        }
        Shape::File(path) => {
            let mesh = read(path, settings.problem, 1)?;
            mesh.regions(settings.problem, 1)?.next().ok_or(Error::NoMesh)?
        }
    };
    let setup = Setup::new(settings, region, &mut Whole)?;
    let mut state = State::new(setup, settings, &mut Whole)?;
    while state.steps < settings.steps {
        state.step(settings, &mut Whole)?;
    }
    Ok(state.outcome(settings, &mut Whole))
}

/// The constant data of a part.
#[derive(Debug, Serialize, Deserialize)]
struct Setup {
    body: Body,
    places: Vec<Vector>,
    load: Vec<Vector>,
    numbers: Vec<usize>,
    is_at_end: Vec<bool>,
    span: [f64; 2],
    shared: Vec<Shared>,
    elements: usize,
    centre: Vector,
}

impl Setup {
    fn new(settings: &Settings, region: Region, parts: &mut impl Parts) -> Result<Self, Error> {
        let centre = region.centre();
        let Region { elements, places, numbers, is_given, load, .. } = region;
        let Region { is_at_end, span, shared, is_counted, .. } = region;
        let material = settings.problem.material();
        let count = elements.len();
        let body = Body::new(elements, &places, &material, is_counted, is_given, parts)?;
        Ok(Self { body, places, load, numbers, is_at_end, span, shared, elements: count, centre })
    }

    /// The position of a node along the body, as a fraction of its length.
    fn share(&self, node: usize) -> f64 {
        let [begin, end] = self.span;
        (self.places[node][0] - begin) / (end - begin)
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
        let v = (0..u.len()).map(|node| problem.velocity(setup.share(node))).collect();
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
        let problem = settings.problem;
        let Setup { body, places, load, numbers, is_at_end, .. } = &self.setup;
        let u = &self.motion.u;
        let time = problem.step(settings.steps.max(1)) * settings.steps as f64;
        let count = body.sum(parts, |_| 1.0);
        let square = |u: Vector| u.iter().map(|u| u * u).sum::<f64>();
        let squares = body.sum(parts, |node| square(u[node]));
        let errors = body.sum(parts, |node| {
            let exact = problem.exact(places[node], time).unwrap_or(u[node]);
            square(std::array::from_fn(|axis| u[node][axis] - exact[axis]))
        });
        let at_end = |node: usize| if is_at_end[node] { 1.0 } else { 0.0 };
        let [end, ends] =
            [body.sum(parts, |node| at_end(node) * u[node][1]), body.sum(parts, at_end)];
        let work =
            body.sum(parts, |node| (0..3).map(|axis| load[node][axis] * u[node][axis]).sum());
        let fingerprint = body.sum(parts, |node| {
            let number = numbers[node];
            (0..3).map(|axis| weight(3 * number + axis) * u[node][axis]).sum()
        });
        Outcome {
            iterations: self.iterations,
            first_energy: self.first_energy,
            last_energy: self.setup.energy(&self.motion, parts),
            displacement: (squares / count).sqrt(),
            error: (errors / count).sqrt(),
            work,
            deflection: end / ends,
            fingerprint: fingerprint / count,
        }
    }
}

/// A pseudo-random weight from -1 to 1 for each number.
fn weight(number: usize) -> f64 {
    cell_checksum(number as u64, 1.0) as i64 as f64 / i64::MAX as f64
}

/// The parts of other ranks.
pub struct Ranks<'a> {
    world: &'a SimpleCommunicator,
    shared: Vec<Shared>,
    /// How many of them have numbers below this rank's.
    before: usize,
    /// The nodes shared with any other part, without repetition.
    nodes: Vec<usize>,
    /// Buffers for values of shared nodes sent to and received from each of the other parts, and this part's own
    /// values, reused by each sum.
    outgoing: Vec<Vec<f64>>,
    incoming: Vec<Vec<f64>>,
    own: Vec<f64>,
}

impl<'a> Ranks<'a> {
    /// The parts of other ranks, and the nodes that the calling rank shares with them.
    pub fn new(world: &'a SimpleCommunicator, shared: Vec<Shared>) -> Self {
        let me = world.rank() as usize;
        let before = shared.partition_point(|shared| shared.part < me);
        let mut nodes: Vec<usize> = shared.iter().flat_map(|it| &it.nodes).copied().collect();
        nodes.sort_unstable();
        nodes.dedup();
        let [outgoing, incoming] = [vec![Vec::new(); shared.len()], vec![Vec::new(); shared.len()]];
        Self { world, shared, before, nodes, outgoing, incoming, own: Vec::new() }
    }

    /// Exchanges the values of shared nodes with the parts that have them.
    fn exchange<const N: usize>(&mut self, values: &[[f64; N]]) {
        let buffers = self.outgoing.iter_mut().zip(&mut self.incoming);
        for (shared, (outgoing, incoming)) in self.shared.iter().zip(buffers) {
            outgoing.clear();
            outgoing.extend(shared.nodes.iter().flat_map(|node| values[*node]));
            incoming.resize(outgoing.len(), 0.0);
        }
        let count = 2 * self.shared.len();
        multiple_scope(count, |scope, requests| {
            for (shared, buffer) in self.shared.iter().zip(&mut self.incoming) {
                let from = self.world.process_at_rank(shared.part as i32);
                requests.add(from.immediate_receive_into(scope, &mut buffer[..]));
            }
            for (shared, buffer) in self.shared.iter().zip(&self.outgoing) {
                let to = self.world.process_at_rank(shared.part as i32);
                requests.add(to.immediate_send(scope, &buffer[..]));
            }
            requests.wait_all(&mut Vec::with_capacity(count));
        });
    }
}

impl Parts for Ranks<'_> {
    fn add<const N: usize>(&mut self, values: &mut [[f64; N]]) {
        self.exchange(values);
        // All copies add the same values in the order of parts, their own in its place.
        self.own.clear();
        for node in &self.nodes {
            self.own.extend(std::mem::replace(&mut values[*node], [0.0; N]));
        }
        let mut add = |nodes: &[usize], more: &[f64]| {
            for (node, more) in nodes.iter().zip(more.as_chunks::<N>().0) {
                for (value, more) in values[*node].iter_mut().zip(more) {
                    *value += more;
                }
            }
        };
        let (before, after) = self.shared.split_at(self.before);
        let (incoming_before, incoming_after) = self.incoming.split_at(self.before);
        before.iter().zip(incoming_before).for_each(|(shared, more)| add(&shared.nodes, more));
        add(&self.nodes, &self.own);
        after.iter().zip(incoming_after).for_each(|(shared, more)| add(&shared.nodes, more));
    }

    fn sums<const N: usize>(&mut self, values: [f64; N]) -> [f64; N] {
        let mut sums = [0.0; N];
        self.world.all_reduce_into(&values[..], &mut sums[..], SystemOperation::sum());
        sums
    }
}
