//! Orthogonal recursive bisection: space is cut in two across its longest axis, so that each side
//! has its share of the weight, and each side is cut again, until there is a part for every rank.

use mpi::Rank;
use mpi::collective::SystemOperation;
use mpi::traits::*;
use serde::{Deserialize, Serialize};

/// A place and its weight.
pub type Weighted = ([f64; 3], f64);

/// How space is cut.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bisection {
    cuts: Vec<Cut>,
}

/// The first `half` of its ranks are below the cut.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Cut {
    axis: usize,
    at: f64,
    /// What is below and above: a cut, or a rank.
    sides: [Side; 2],
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
enum Side {
    Cut(u32),
    Rank(Rank),
}

/// Steps of the search for a cut's position, each halving the interval.
const STEPS: u32 = 40;

/// A part of space to be divided among ranks.
struct Region {
    ranks: std::ops::Range<usize>,
    /// The parent cut and its side there.
    parent: Option<(u32, usize)>,
}

impl Bisection {
    /// Cuts space so that all ranks have the same weight (or the same volume, if `by_volume`).
    /// Collective.
    pub fn new(comm: &impl Communicator, places: &[Weighted], by_volume: bool) -> Bisection {
        let mut cuts: Vec<Cut> = Vec::new();
        let mut regions = vec![Region { ranks: 0..comm.size() as usize, parent: None }];
        // Which region each place is in; regions with one rank are done and have none.
        let mut inside: Vec<Option<usize>> = vec![Some(0); places.len()];
        regions.retain(|region| region.ranks.len() > 1);
        while !regions.is_empty() {
            let boxes = boxes(comm, places, &inside, regions.len());
            let axes: Vec<usize> = boxes.iter().map(longest).collect();
            let ends: Vec<[f64; 2]> =
                boxes.iter().zip(&axes).map(|(bounds, axis)| bounds[*axis]).collect();
            let shares: Vec<f64> = (regions.iter())
                .map(|region| (region.ranks.len() / 2) as f64 / region.ranks.len() as f64)
                .collect();
            let found = if by_volume {
                ends.iter()
                    .zip(&shares)
                    .map(|([low, high], share)| low + share * (high - low))
                    .collect()
            } else {
                weighted_cuts(comm, places, &inside, &axes, ends, &shares)
            };
            let mut next: Vec<Region> = Vec::new();
            let mut below_above = Vec::new();
            for ((region, axis), at) in regions.iter().zip(&axes).zip(&found) {
                let number = cuts.len() as u32;
                let middle = region.ranks.start + region.ranks.len() / 2;
                let halves = [region.ranks.start..middle, middle..region.ranks.end];
                let mut places_of_sides = [None; 2];
                let sides = [0, 1].map(|side| {
                    let ranks = halves[side].clone();
                    if ranks.len() == 1 {
                        return Side::Rank(ranks.start as Rank);
                    }
                    places_of_sides[side] = Some(next.len());
                    next.push(Region { ranks, parent: Some((number, side)) });
                    Side::Rank(0)
                });
                cuts.push(Cut { axis: *axis, at: *at, sides });
                if let Some((parent, side)) = region.parent {
                    cuts[parent as usize].sides[side] = Side::Cut(number);
                }
                below_above.push(places_of_sides);
            }
            for (region, (place, _)) in inside.iter_mut().zip(places) {
                if let Some(of) = *region {
                    *region = below_above[of][usize::from(place[axes[of]] >= found[of])];
                }
            }
            regions = next;
        }
        Bisection { cuts }
    }

    /// The rank that owns a position.
    pub fn owner(&self, place: [f64; 3]) -> Rank {
        let Some(mut cut) = self.cuts.first() else { return 0 };
        loop {
            match cut.sides[usize::from(place[cut.axis] >= cut.at)] {
                Side::Rank(rank) => return rank,
                Side::Cut(number) => cut = &self.cuts[number as usize],
            }
        }
    }
}

/// The least and greatest coordinates of the positions in each region, over all ranks.
fn boxes(
    comm: &impl Communicator,
    places: &[Weighted],
    inside: &[Option<usize>],
    regions: usize,
) -> Vec<[[f64; 2]; 3]> {
    // The largest of x and of -x.
    let mut mine = vec![f64::NEG_INFINITY; 6 * regions];
    for ((place, _), region) in places.iter().zip(inside) {
        let Some(region) = region else { continue };
        for (axis, x) in place.iter().enumerate() {
            let ends = &mut mine[6 * region + 2 * axis..][..2];
            ends[0] = ends[0].max(-x);
            ends[1] = ends[1].max(*x);
        }
    }
    let mut all = mine.clone();
    comm.all_reduce_into(&mine[..], &mut all[..], SystemOperation::max());
    let ends = |of: &[f64], axis: usize| match [-of[2 * axis], of[2 * axis + 1]] {
        [low, high] if low <= high => [low, high],
        // Nothing is there.
        _ => [0.0, 0.0],
    };
    all.chunks_exact(6).map(|of| [0, 1, 2].map(|axis| ends(of, axis))).collect()
}

fn longest(bounds: &[[f64; 2]; 3]) -> usize {
    let length = |axis: &usize| bounds[*axis][1] - bounds[*axis][0];
    (0..3).max_by(|a, b| length(a).total_cmp(&length(b))).unwrap_or(0)
}

/// Where to cut each region, so that its share of the weight is below.
fn weighted_cuts(
    comm: &impl Communicator,
    places: &[Weighted],
    inside: &[Option<usize>],
    axes: &[usize],
    mut ends: Vec<[f64; 2]>,
    shares: &[f64],
) -> Vec<f64> {
    let below = |at: &[f64]| {
        let mut mine = vec![0.0; at.len()];
        for ((place, weight), region) in places.iter().zip(inside) {
            if let Some(region) = region
                && place[axes[*region]] < at[*region]
            {
                mine[*region] += weight;
            }
        }
        let mut all = mine.clone();
        comm.all_reduce_into(&mine[..], &mut all[..], SystemOperation::sum());
        all
    };
    let whole = below(&vec![f64::INFINITY; axes.len()]);
    for _ in 0..STEPS {
        let middles: Vec<f64> = ends.iter().map(|[low, high]| low + (high - low) / 2.0).collect();
        let weights = below(&middles);
        for (i, middle) in middles.into_iter().enumerate() {
            let side = usize::from(weights[i] >= shares[i] * whole[i]);
            ends[i][side] = middle;
        }
    }
    ends.into_iter().map(|[_, high]| high).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};

    #[test]
    fn every_rank_has_its_share() {
        for ranks in [1u32, 2, 3, 7, 16] {
            mpi::run_local(ranks, |world| {
                let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(world.rank() as u64);
                let places: Vec<Weighted> = (0..500)
                    .map(|_| {
                        let place = [(); 3].map(|()| random.random::<f64>().powi(3));
                        (place, 0.5 + random.random::<f64>())
                    })
                    .collect();
                let bisection = Bisection::new(world, &places, false);
                let mut mine = vec![0.0; ranks as usize];
                for (place, weight) in &places {
                    mine[bisection.owner(*place) as usize] += weight;
                }
                let mut all = mine.clone();
                world.all_reduce_into(&mine[..], &mut all[..], SystemOperation::sum());
                let mean = all.iter().sum::<f64>() / f64::from(ranks);
                assert!(all.iter().all(|weight| (weight / mean - 1.0).abs() < 0.02), "{all:?}");
            });
        }
    }

    #[test]
    fn volumes_are_halved() {
        mpi::run_local(4, |world| {
            let corner = world.rank() as f64;
            let places = [([0.0, 0.0, 0.0], 1.0), ([8.0, 1.0 + corner / 100.0, 0.5], 1.0)];
            let bisection = Bisection::new(world, &places, true);
            assert!(bisection.owner([3.9, 0.0, 0.0]) < 2 && bisection.owner([4.1, 0.0, 0.0]) > 1);
        });
    }
}
