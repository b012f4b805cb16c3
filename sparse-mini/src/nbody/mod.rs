//! Galaxies: bodies that attract each other, by the method of Barnes and Hut (the paper's section
//! 5.2).
//!
//! Space is cut by orthogonal recursive bisection, a part for each rank. After each step, bodies
//! that have left their part are sent to its new owner by a sparse exchange: only their old owner
//! knows. What a rank needs to know about the others' bodies, the essential part of their trees, is
//! sent by another exchange.

mod bisection;
mod tree;

pub use bisection::{Bisection, Weighted};
pub use tree::{Field, Point, Tree};

use libm::pow;
use mpi::Rank;
use mpi::collective::SystemOperation;
use mpi::exchange::SparseExchange;
use mpi::traits::*;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

/// A body.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, Equivalence)]
pub struct Body {
    /// Its number, which never changes.
    pub number: u64,
    /// Its mass.
    pub mass: f64,
    /// Its place.
    pub place: [f64; 3],
    /// Its velocity.
    pub velocity: [f64; 3],
    /// The acceleration there, and the potential.
    pub acceleration: [f64; 3],
    /// See `acceleration`.
    pub potential: f64,
    /// The cost of computing them, in interactions.
    pub work: f64,
}

/// When space is cut again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Recut {
    /// When the ranks' work differs by more than 5%: each gets the same work.
    ByWork,
    /// Once, at the beginning: each rank gets the same number of bodies.
    Never,
    /// Once, at the beginning: each rank gets the same volume, and so very different work.
    Volume,
}

/// What is computed, and how.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Number of bodies.
    pub bodies: u64,
    /// Seed of their places.
    pub seed: u64,
    /// Time from step to step, in the natural units of a galaxy (G = M = R = 1).
    pub step: f64,
    /// A cell acts as one if its size is less than this many times its distance.
    pub opening: f64,
    /// Forces are softened at this distance.
    pub soft: f64,
    /// How space is cut.
    pub recut: Recut,
}

/// The ratio of the greatest work of a rank to the mean at which space is cut again.
const SKEW: f64 = 1.05;

/// The conserved quantities.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Totals {
    /// Kinetic and potential energy.
    pub energy: f64,
    /// Momentum.
    pub momentum: [f64; 3],
    /// Number of bodies, and the sum of their numbers.
    pub bodies: [u64; 2],
}

/// A rank's bodies between two steps. It can be encoded, and continued elsewhere.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Galaxy {
    settings: Settings,
    /// The bodies of this rank.
    pub bodies: Vec<Body>,
    bisection: Bisection,
    /// The greatest number of ranks that this one has sent bodies to after a step.
    pub neighbors: usize,
    /// Bodies that have left this rank for another one.
    pub migrated: u64,
    /// How often space was cut.
    pub cuts: u32,
}

/// Two galaxies (Plummer spheres, three quarters of all bodies and the rest) before their
/// encounter; only the bodies with these numbers.
pub fn two_galaxies(settings: &Settings, numbers: std::ops::Range<u64>) -> Vec<Body> {
    let body = |number: u64| {
        let mut random = ChaCha8Rng::seed_from_u64(settings.seed);
        random.set_stream(number);
        let small = number % 4 == 3;
        // The inverse of the mass inside a radius (Aarseth, Hénon, Wielen 1974), but for the
        // outermost tenth.
        let inside: f64 = random.random_range(0.0..0.9);
        let radius = 1.0 / (pow(inside, -2.0 / 3.0) - 1.0).sqrt();
        let speed = loop {
            let q: f64 = random.random();
            if random.random::<f64>() * 0.1 < q * q * pow(1.0 - q * q, 3.5) {
                break q * std::f64::consts::SQRT_2 * pow(1.0 + radius * radius, -0.25);
            }
        };
        let place = direction(&mut random).map(|x| x * radius);
        let velocity = direction(&mut random).map(|x| x * speed);
        // A quarter of the mass in a sphere half as large moves slower by the square root of 2.
        let (scale, shift, drift) = if small {
            (0.5, [4.5, 1.5, 0.0], [-0.45, 0.0, 0.0])
        } else {
            (1.0, [-1.5, -0.5, 0.0], [0.15, 0.0, 0.0])
        };
        let share = if small { 0.25 / scale } else { 0.75f64 };
        let add = |a: [f64; 3], by: f64, b: [f64; 3]| [0, 1, 2].map(|i| a[i] * by + b[i]);
        Body {
            number,
            mass: 1.0 / settings.bodies as f64,
            place: add(place, scale, shift),
            velocity: add(velocity, share.sqrt(), drift),
            acceleration: [0.0; 3],
            potential: 0.0,
            work: 1.0,
        }
    };
    numbers.map(body).collect()
}

/// A random direction.
fn direction(random: &mut impl Rng) -> [f64; 3] {
    let z: f64 = random.random_range(-1.0..1.0);
    let angle = random.random_range(0.0..std::f64::consts::TAU);
    let r = (1.0 - z * z).sqrt();
    [r * libm::cos(angle), r * libm::sin(angle), z]
}

impl Galaxy {
    /// The initial bodies. Collective.
    pub fn new(comm: &impl Communicator, settings: Settings) -> Galaxy {
        let (me, ranks) = (comm.rank() as u64, comm.size() as u64);
        let first = |rank: u64| rank * settings.bodies / ranks;
        let bodies = two_galaxies(&settings, first(me)..first(me + 1));
        let bisection = cut(comm, &bodies, settings.recut == Recut::Volume);
        let mut galaxy = Galaxy { settings, bodies, bisection, neighbors: 0, migrated: 0, cuts: 1 };
        galaxy.send_home(comm);
        (galaxy.neighbors, galaxy.migrated) = (0, 0);
        galaxy.feel(comm);
        galaxy
    }

    /// One step (kick, drift, kick). Collective.
    pub fn step(&mut self, comm: &impl Communicator) {
        let step = self.settings.step;
        for body in &mut self.bodies {
            for axis in 0..3 {
                body.velocity[axis] += step / 2.0 * body.acceleration[axis];
                body.place[axis] += step * body.velocity[axis];
            }
        }
        let recut = self.settings.recut == Recut::ByWork && self.skew(comm) > SKEW;
        if recut {
            self.bisection = cut(comm, &self.bodies, false);
            self.cuts += 1;
        }
        let sent = self.send_home(comm);
        if !recut {
            self.neighbors = self.neighbors.max(sent);
        }
        self.feel(comm);
        for body in &mut self.bodies {
            for axis in 0..3 {
                body.velocity[axis] += step / 2.0 * body.acceleration[axis];
            }
        }
    }

    /// The greatest work of a rank over the mean. Collective.
    pub fn skew(&self, comm: &impl Communicator) -> f64 {
        let mine: f64 = self.bodies.iter().map(|body| body.work).sum();
        let (mut most, mut all) = (0.0, 0.0);
        comm.all_reduce_into(&mine, &mut most, SystemOperation::max());
        comm.all_reduce_into(&mine, &mut all, SystemOperation::sum());
        most * comm.size() as f64 / all
    }

    /// Sends bodies that are in other ranks' parts of space there; returns the number of ranks.
    fn send_home(&mut self, comm: &impl Communicator) -> usize {
        let me = comm.rank();
        let mut leaving: Vec<(Rank, Body)> = Vec::new();
        self.bodies.retain(|body| {
            let owner = self.bisection.owner(body.place);
            if owner != me {
                leaving.push((owner, *body));
            }
            owner == me
        });
        leaving.sort_by_key(|(owner, _)| *owner);
        let messages: Vec<(Rank, Vec<Body>)> = leaving
            .chunk_by(|a, b| a.0 == b.0)
            .map(|same| (same[0].0, same.iter().map(|(_, body)| *body).collect()))
            .collect();
        self.migrated += leaving.len() as u64;
        for (_, bodies) in comm.sparse_exchange(&messages) {
            self.bodies.extend(bodies);
        }
        messages.len()
    }

    /// Computes the forces on each body.
    fn feel(&mut self, comm: &impl Communicator) {
        let Settings { opening, soft, .. } = self.settings;
        let mut points: Vec<Point> =
            self.bodies.iter().map(|body| Point { mass: body.mass, place: body.place }).collect();
        points.extend(self.essential_of_others(comm, &points));
        let tree = Tree::new(&points);
        for (number, body) in self.bodies.iter_mut().enumerate() {
            let field = tree.field(body.place, Some(number as u32), opening, soft);
            body.acceleration = field.acceleration;
            body.potential = field.potential;
            body.work = f64::from(field.interactions);
        }
    }

    /// The essential points of the other ranks' trees.
    fn essential_of_others(&self, comm: &impl Communicator, own: &[Point]) -> Vec<Point> {
        let (me, ranks) = (comm.rank() as usize, comm.size() as usize);
        let mut mine = [
            f64::INFINITY,
            f64::INFINITY,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::NEG_INFINITY,
            f64::NEG_INFINITY,
        ];
        for point in own {
            for axis in 0..3 {
                mine[axis] = mine[axis].min(point.place[axis]);
                mine[3 + axis] = mine[3 + axis].max(point.place[axis]);
            }
        }
        let mut boxes = vec![0.0; 6 * ranks];
        comm.all_gather_into(&mine[..], &mut boxes[..]);
        let tree = Tree::new(own);
        let mut messages: Vec<(Rank, Vec<f64>)> = Vec::new();
        for (rank, bounds) in boxes.chunks_exact(6).enumerate() {
            if rank == me || bounds[0] > bounds[3] {
                continue;
            }
            let [low, high] = [0, 3].map(|i| [bounds[i], bounds[i + 1], bounds[i + 2]]);
            let points = tree.essential(low, high, self.settings.opening);
            let words =
                points.iter().flat_map(|it| [it.mass, it.place[0], it.place[1], it.place[2]]);
            if !points.is_empty() {
                messages.push((rank as Rank, words.collect()));
            }
        }
        let came = comm.sparse_exchange(&messages);
        let words = came.iter().flat_map(|(_, words)| words.chunks_exact(4));
        words.map(|it| Point { mass: it[0], place: [it[1], it[2], it[3]] }).collect()
    }

    /// The conserved quantities. Collective.
    pub fn totals(&self, comm: &impl Communicator) -> Totals {
        let mut mine = [0.0; 4];
        let mut counted = [self.bodies.len() as u64, 0];
        for body in &self.bodies {
            let square: f64 = body.velocity.iter().map(|v| v * v).sum();
            mine[0] += body.mass * (square + body.potential) / 2.0;
            for axis in 0..3 {
                mine[1 + axis] += body.mass * body.velocity[axis];
            }
            counted[1] += body.number;
        }
        let (mut all, mut bodies) = ([0.0; 4], [0; 2]);
        comm.all_reduce_into(&mine, &mut all, SystemOperation::sum());
        comm.all_reduce_into(&counted, &mut bodies, SystemOperation::sum());
        Totals { energy: all[0], momentum: [all[1], all[2], all[3]], bodies }
    }
}

fn cut(comm: &impl Communicator, bodies: &[Body], by_volume: bool) -> Bisection {
    let places: Vec<Weighted> = bodies.iter().map(|body| (body.place, body.work)).collect();
    Bisection::new(comm, &places, by_volume)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    const SETTINGS: Settings = Settings {
        bodies: 600,
        seed: 1,
        step: 0.02,
        opening: 0.5,
        soft: 0.05,
        recut: Recut::ByWork,
    };

    /// Accelerations from all pairs.
    fn direct(bodies: &[Body]) -> Vec<[f64; 3]> {
        let points: Vec<Point> =
            bodies.iter().map(|body| Point { mass: body.mass, place: body.place }).collect();
        let tree = Tree::new(&points);
        let field = |(i, it): (usize, &Body)| {
            tree.field(it.place, Some(i as u32), 0.0, SETTINGS.soft).acceleration
        };
        bodies.iter().enumerate().map(field).collect()
    }

    #[test]
    fn forces_are_those_of_all_pairs() {
        for ranks in [1, 2, 7, 64] {
            let all = Mutex::new(Vec::new());
            mpi::run_local(ranks, |world| {
                let galaxy = Galaxy::new(world, SETTINGS);
                all.lock().unwrap().extend(galaxy.bodies);
            });
            let mut bodies = all.into_inner().unwrap();
            bodies.sort_by_key(|body| body.number);
            assert!(bodies.iter().map(|body| body.number).eq(0..SETTINGS.bodies));
            let square = |a: [f64; 3]| a.iter().map(|x| x * x).sum::<f64>();
            let (mut wrong, mut whole) = (0.0, 0.0);
            for (body, exact) in bodies.iter().zip(direct(&bodies)) {
                wrong += square([0, 1, 2].map(|i| body.acceleration[i] - exact[i]));
                whole += square(exact);
            }
            let error = (wrong / whole).sqrt();
            assert!(error < 0.01, "{ranks} ranks: {error}");
        }
    }

    #[test]
    fn energy_momentum_and_bodies_are_conserved() {
        for (ranks, recut) in
            [(1, Recut::ByWork), (7, Recut::ByWork), (7, Recut::Never), (5, Recut::Volume)]
        {
            mpi::run_local(ranks, |world| {
                let mut galaxy = Galaxy::new(world, Settings { recut, ..SETTINGS });
                let before = galaxy.totals(world);
                for _ in 0..50 {
                    galaxy.step(world);
                }
                let after = galaxy.totals(world);
                assert_eq!(before.bodies, after.bodies);
                assert_eq!(after.bodies, [600, 600 * 599 / 2]);
                let drift = (after.energy / before.energy - 1.0).abs();
                assert!(drift < 0.01, "{ranks} ranks: energy {before:?}, then {after:?}");
                for axis in 0..3 {
                    let drift = (after.momentum[axis] - before.momentum[axis]).abs();
                    assert!(drift < 0.01, "{before:?} {after:?}");
                }
            });
        }
    }
}
