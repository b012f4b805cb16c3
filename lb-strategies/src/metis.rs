//! `metis`: multilevel partitioning of the communication graph, by METIS.
//!
//! METIS (G. Karypis and V. Kumar, "A fast and high quality multilevel scheme for partitioning
//! irregular graphs", SIAM J. Sci. Comput. 20, 1998) partitions the objects so that each part has
//! work for the room of one PE and few bytes go between parts. It does not know where objects are,
//! so its parts are then reassigned to PEs: each PE gets the part of which it already has most, as
//! far as the part fits (up to 256 parts by the Hungarian method, J. Munkres, "Algorithms for the
//! assignment and transportation problems", J. SIAM 5, 1957; beyond that the largest overlap
//! first). The remaining imbalance is [refined](crate::refine).
//!
//! METIS is slow with very many parts and fails with parts of a few objects. So it makes at most
//! 1024 parts of at least 16 objects on average; if that is fewer than there are PEs, a part is for
//! several neighbouring PEs, and is [bisected](crate::graph_bisection) for them.
//!
//! Inputs: communication, loads, speeds, background load, live bytes (an object that is already on
//! a PE counts with the cost of moving it). Cost: about `(n + e) log p`, and the cube of the parts
//! up to 256.
//!
//! The crate feature `metis` builds METIS from the C sources in the crate `metis-sys` (METIS 5,
//! Apache licence); this needs a C compiler. METIS draws random numbers from the C library's single
//! generator: calls here wait for each other, and a program that calls `rand` meanwhile on another
//! thread changes what is drawn. METIS uses 32-bit numbers: a graph too large for them is left
//! unchanged, as is one on which METIS fails.

use std::{
    collections::HashMap,
    ops::Range,
    sync::{Mutex, PoisonError},
};

use ::metis::{Graph as MetisGraph, option};
use pathfinding::{kuhn_munkres::kuhn_munkres, matrix::Matrix};

use crate::{
    bounds::Bounds,
    config::{Config, Domain, Parameter},
    graph::{Graph, MESSAGE_BYTES},
    graph_bisection::{Cuts, PASSES},
    halving::{halve_ranges, pe_order},
    model::LoadModel,
    refine::{TOLERANCE, refine},
    strategy::Strategy,
};

/// Multilevel partitioning of the communication graph, with parts kept at home.
#[derive(Clone, Copy, Debug)]
pub struct Metis;

/// The most parts that METIS makes.
const MOST_PARTS: usize = 1024;
/// The least number of objects per part, on average.
const OBJECTS: usize = 16;

/// Up to this many parts, the optimal assignment of parts to PEs is computed; beyond, a good one.
const FEW_PARTS: usize = 256;

/// Weights are scaled to this sum, so that sums fit METIS's 32 bits.
const WEIGHT: f64 = 1e9;

impl Strategy for Metis {
    fn name(&self) -> &'static str {
        "metis"
    }

    fn help(&self) -> &'static str {
        "METIS's multilevel graph partitioning: fewest bytes between PEs, many moves"
    }

    fn parameters(&self) -> &'static [Parameter] {
        &[
            TOLERANCE,
            MESSAGE_BYTES,
            Parameter {
                name: "method",
                help: "how METIS gets from few parts to many: by halves, or all at once; auto \
                       halves up to 8 parts",
                domain: Domain::Choice { default: "auto", of: &["auto", "recursive", "k-way"] },
            },
        ]
    }

    fn heeds_communication(&self) -> bool {
        true
    }

    fn propose(&self, model: &LoadModel, config: &Config, seed: u64) -> Vec<usize> {
        let mut pes: Vec<usize> = model.objects().iter().map(|it| it.pe).collect();
        let bounds = Bounds::new(model);
        let graph = Graph::new(model, config.number("message-bytes"));
        if let Some(problem) = Problem::new(model, &bounds, &graph)
            && let Some(parts) = problem.solve(config, seed)
        {
            let mut lists = problem.settle(&parts);
            let ranges = problem.groups.iter().map(|it| it.0.clone());
            let ranges = ranges.zip(lists.iter_mut().map(Vec::as_mut_slice));
            let cuts = || Cuts::new(model, &graph, PASSES);
            halve_ranges(model, &bounds, ranges, cuts, &mut pes);
        }
        refine(model, &mut pes, config.number("tolerance"));
        pes
    }
}

/// The input of METIS.
struct Problem<'a> {
    model: &'a LoadModel,
    /// The objects that can move: METIS's vertices.
    vertices: Vec<u32>,
    /// Groups of PEs with room, as ranges of [`pe_order`], with their rooms.
    groups: Vec<(Range<usize>, f64)>,
    starts: Vec<i32>,
    partners: Vec<i32>,
    partner_weights: Vec<i32>,
    vertex_weights: Vec<i32>,
}

impl<'a> Problem<'a> {
    /// `None` if there is nothing to partition, or it is too large for 32 bits.
    fn new(model: &'a LoadModel, bounds: &Bounds, graph: &Graph) -> Option<Self> {
        let objects = model.objects();
        let vertices: Vec<u32> =
            (0..objects.len() as u32).filter(|&it| objects[it as usize].migratable).collect();
        let order = pe_order(model);
        let count = (vertices.len() / OBJECTS).clamp(2, MOST_PARTS).min(order.len());
        let range = |it: usize| it * order.len() / count..(it + 1) * order.len() / count;
        let room = |it: &Range<usize>| order[it.clone()].iter().map(|&pe| bounds.room(model, pe));
        let groups = (0..count).map(|it| (range(it), room(&range(it)).sum()));
        let mut groups: Vec<(Range<usize>, f64)> = groups.collect();
        // A part that no object would fit is none.
        let least = groups.iter().map(|it| it.1).sum::<f64>() * 1e-7;
        groups.retain(|it| it.1 > least);
        if groups.len() < 2 || vertices.is_empty() {
            return None;
        }
        let total: f64 = vertices.iter().map(|&it| objects[it as usize].load).sum();
        let scale = WEIGHT / total;
        let weight = |&it: &u32| match total {
            0.0 => 1,
            _ => (objects[it as usize].load * scale).round() as i32,
        };
        let vertex_weights = vertices.iter().map(weight).collect();
        let mut problem = Self {
            model,
            vertices,
            groups,
            starts: vec![0],
            partners: vec![],
            partner_weights: vec![],
            vertex_weights,
        };
        problem.connect(graph)?;
        Some(problem)
    }

    /// Lists the partners of each vertex, without repetition.
    fn connect(&mut self, graph: &Graph) -> Option<()> {
        let mut vertex = vec![-1; self.model.objects().len()];
        for (number, &object) in self.vertices.iter().enumerate() {
            vertex[object as usize] = i32::try_from(number).ok()?;
        }
        let all = self.vertices.iter().flat_map(|&it| graph.of(it as usize));
        let total: f64 = all.map(|it| f64::from(it.weight)).sum();
        let scale = if total > 0.0 { WEIGHT / total } else { 1.0 };
        let mut here: Vec<(i32, f64)> = vec![];
        for &object in &self.vertices {
            here.clear();
            let partners = graph.of(object as usize).iter();
            here.extend(
                partners
                    .map(|it| (vertex[it.object as usize], f64::from(it.weight)))
                    .filter(|it| it.0 >= 0),
            );
            here.sort_by_key(|it| it.0);
            here.dedup_by(|next, sum| {
                let same = next.0 == sum.0;
                if same {
                    sum.1 += next.1;
                }
                same
            });
            for &(partner, weight) in &here {
                self.partners.push(partner);
                self.partner_weights.push(((weight * scale).round() as i32).max(1));
            }
            self.starts.push(i32::try_from(self.partners.len()).ok()?);
        }
        Some(())
    }

    /// A part for each vertex, if METIS finds a partition.
    fn solve(&self, config: &Config, seed: u64) -> Option<Vec<i32>> {
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let room: f64 = self.groups.iter().map(|it| it.1).sum();
        let shares: Vec<f32> = self.groups.iter().map(|it| (it.1 / room) as f32).collect();
        let count = i32::try_from(self.groups.len()).ok()?;
        let allowed = [(1.0 + config.number("tolerance").clamp(0.001, 1.0)) as f32];
        let graph = MetisGraph::new(1, count, &self.starts, &self.partners).ok()?;
        let graph = graph
            .set_vwgt(&self.vertex_weights)
            .set_adjwgt(&self.partner_weights)
            .set_tpwgts(&shares)
            .set_ubvec(&allowed)
            .set_option(option::Seed((seed & 0x7fff_ffff) as i32));
        let recursive = match config.choice("method") {
            "recursive" => true,
            "auto" => count <= 8,
            _ => false,
        };
        let mut parts = vec![0; self.vertices.len()];
        let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        if recursive {
            graph.part_recursive(&mut parts).ok()?;
        } else {
            graph.part_kway(&mut parts).ok()?;
        }
        Some(parts)
    }

    /// Assigns parts to groups so that much is at home already: for each group its objects.
    fn settle(&self, parts: &[i32]) -> Vec<Vec<u32>> {
        let places = if self.groups.len() <= FEW_PARTS {
            self.best_places(parts)
        } else {
            self.good_places(parts)
        };
        let mut lists = vec![vec![]; self.groups.len()];
        for (&object, &part) in self.vertices.iter().zip(parts) {
            lists[places[part as usize]].push(object);
        }
        lists
    }

    /// Work of each part.
    fn works(&self, parts: &[i32]) -> Vec<f64> {
        let mut works = vec![0.0; self.groups.len()];
        for (&object, &part) in self.vertices.iter().zip(parts) {
            works[part as usize] += self.model.objects()[object as usize].load;
        }
        works
    }

    /// Whether a part of `work` is at most slightly too large for the group `place`. Every part
    /// fits the group for which METIS made it.
    fn fits(&self, work: f64, place: usize, part: usize) -> bool {
        place == part || work <= self.groups[place].1 * 1.05
    }

    /// What is saved if a group already has objects of a part: by part and group.
    fn overlaps(&self, parts: &[i32]) -> HashMap<(usize, usize), f64> {
        let order = pe_order(self.model);
        let mut places = vec![None; order.len()];
        for (place, (range, _)) in self.groups.iter().enumerate() {
            order[range.clone()].iter().for_each(|&pe| places[pe] = Some(place));
        }
        let objects = || self.vertices.iter().map(|&it| &self.model.objects()[it as usize]);
        let bytes: f64 = objects().map(|it| it.bytes as f64).sum();
        let mut overlaps = HashMap::new();
        for (object, &part) in objects().zip(parts) {
            let seconds = self.model.move_cost().seconds(object.bytes);
            // Without a measured cost moves count, and of as many moves their bytes.
            let saved =
                if seconds > 0.0 { seconds } else { 1.0 + object.bytes as f64 / (bytes + 1.0) };
            if let Some(place) = places[object.pe] {
                *overlaps.entry((part as usize, place)).or_default() += saved;
            }
        }
        overlaps
    }

    /// For each part its group, so that as much as possible is at home.
    fn best_places(&self, parts: &[i32]) -> Vec<usize> {
        let overlaps = self.overlaps(parts);
        let works = self.works(parts);
        let most = overlaps.values().copied().fold(0.0, f64::max);
        // Numbers so large that rounding does not matter, and sums of them are far from the end.
        let scale = if most > 0.0 { 1e12 / most } else { 1.0 };
        let misfit = -2_000_000_000_000 * self.groups.len() as i64;
        let weight = |(part, place): (usize, usize)| {
            if !self.fits(works[part], place, part) {
                return misfit;
            }
            overlaps.get(&(part, place)).map_or(0, |it| (it * scale) as i64)
        };
        kuhn_munkres(&Matrix::from_fn(self.groups.len(), self.groups.len(), weight)).1
    }

    /// For each part a group, the largest overlap first.
    fn good_places(&self, parts: &[i32]) -> Vec<usize> {
        const NONE: usize = usize::MAX;
        let works = self.works(parts);
        let mut pairs: Vec<((usize, usize), f64)> = self.overlaps(parts).into_iter().collect();
        pairs.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let mut places = vec![NONE; self.groups.len()];
        let mut taken = vec![false; self.groups.len()];
        for ((part, place), _) in pairs {
            if places[part] == NONE && !taken[place] && self.fits(works[part], place, part) {
                places[part] = place;
                taken[place] = true;
            }
        }
        // The rest by size, the largest part to the largest room.
        let mut parts: Vec<usize> = (0..places.len()).filter(|&it| places[it] == NONE).collect();
        let mut free: Vec<usize> = (0..places.len()).filter(|&it| !taken[it]).collect();
        parts.sort_by(|&a, &b| works[b].total_cmp(&works[a]).then(a.cmp(&b)));
        free.sort_by(|&a, &b| self.groups[b].1.total_cmp(&self.groups[a].1).then(a.cmp(&b)));
        for (part, place) in parts.into_iter().zip(free) {
            places[part] = place;
        }
        places
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Assignment, cases,
        model::{Edge, Object, Pe},
        registry::create,
    };

    fn metis(model: &LoadModel) -> Assignment {
        create::<&str, &str>("metis", &[]).expect("exists").assign(model, 1)
    }

    #[test]
    fn parts_stay_at_home() {
        // Four chains, each whole on a PE but for one object that is astray.
        let objects = (0..64).map(|it| Object::new(1.0, if it == 5 { 3 } else { it / 16 }));
        let edges = (0..63).filter(|it| it % 16 != 15);
        let edges = edges.map(|it| Edge { from: it, to: it + 1, messages: 1, bytes: 100 });
        let pes = vec![Pe::default(); 4];
        let model = LoadModel::new(pes, objects.collect(), edges.collect()).expect("sound");
        let placed = metis(&model);
        let moved: Vec<usize> = placed.moves(&model).map(|it| it.object).collect();
        assert_eq!((moved, placed.remote_bytes(&model)), (vec![5], 0));
    }

    #[test]
    fn few_bytes_cross_between_many_pes_too() {
        for (objects, pes) in [(900, 9), (4000, 400)] {
            let size = cases::Size { objects, pes, seed: 1 };
            let model = cases::find("clustered").expect("a case").model(size).expect("sound");
            let placed = metis(&model);
            let (before, after) =
                (Assignment::today(&model).remote_bytes(&model), placed.remote_bytes(&model));
            assert!(after < before / 3, "{after} of {before}");
            assert!(placed.max_load(&model) < Assignment::today(&model).max_load(&model));
        }
    }
}
