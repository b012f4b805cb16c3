//! `graph-bisection`: recursive bisection of the communication graph.
//!
//! The objects are cut in two so that each part has work for its half of the PEs and few bytes
//! cross the cut; then each part is cut again (H. D. Simon, "Partitioning of unstructured problems
//! for parallel processing", Computing Systems in Engineering 2, 1991). For one cut, two
//! breadth-first searches find an object at the rim of the graph, and the part grows from it
//! breadth-first until it has its work (graph growing, G. Karypis and V. Kumar, "A fast and high
//! quality multilevel scheme for partitioning irregular graphs", SIAM J. Sci. Comput. 20, 1998).
//! Then objects that have more partners beyond the cut than on their side cross it while balance
//! allows (after C. M. Fiduccia and R. M. Mattheyses, "A linear-time heuristic for improving
//! network partitions", DAC 1982, without the moves that are temporarily worse). The imbalance that
//! the cuts leave is [refined](crate::refine).
//!
//! Inputs: communication, loads, speeds, background load, nodes. Objects without partners fill up
//! the parts, those of neighbouring PEs together. Cost: `(n + edges) log p`.

use crate::{
    bounds::Bounds,
    config::{Config, Domain, Parameter},
    graph::{Graph, MESSAGE_BYTES},
    halving::{Divide, halve, pe_order},
    model::LoadModel,
    orb::cut,
    refine::{TOLERANCE, refine},
    strategy::Strategy,
};

/// Bisects the communication graph recursively where few bytes cross the cut.
#[derive(Clone, Copy, Debug)]
pub struct GraphBisection;

/// Default number of passes along a cut.
pub(crate) const PASSES: usize = 3;

impl Strategy for GraphBisection {
    fn name(&self) -> &'static str {
        "graph-bisection"
    }

    fn help(&self) -> &'static str {
        "recursive bisection of the communication graph: few bytes between PEs, many moves"
    }

    fn parameters(&self) -> &'static [Parameter] {
        &[
            TOLERANCE,
            MESSAGE_BYTES,
            Parameter {
                name: "passes",
                help: "how often the objects along a cut are looked at for a better side",
                domain: Domain::Count { default: PASSES as u64, range: 0..=100 },
            },
        ]
    }

    fn heeds_communication(&self) -> bool {
        true
    }

    fn propose(&self, model: &LoadModel, config: &Config, _seed: u64) -> Vec<usize> {
        let objects = model.objects();
        let mut pes: Vec<usize> = objects.iter().map(|it| it.pe).collect();
        let mut position = vec![0; model.pes().len()];
        for (index, pe) in pe_order(model).into_iter().enumerate() {
            position[pe] = index;
        }
        let mut order: Vec<u32> =
            (0..objects.len() as u32).filter(|&it| objects[it as usize].migratable).collect();
        order.sort_by_key(|&it| position[objects[it as usize].pe]);

        let graph = Graph::new(model, config.number("message-bytes"));
        let passes = config.count("passes");
        let cuts = || Cuts::new(model, &graph, passes);
        halve(model, &Bounds::new(model), &mut order, cuts, &mut pes);
        refine(model, &mut pes, config.number("tolerance"));
        pes
    }
}

pub(crate) struct Cuts<'a> {
    model: &'a LoadModel,
    graph: &'a Graph,
    passes: usize,
    side: Vec<Side>,
    /// Objects in breadth-first order.
    queue: Vec<u32>,
}

/// The position of an object with respect to the current cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    /// Not among the objects that are being cut.
    Elsewhere,
    Unseen,
    Front,
    Back,
}

impl Divide for Cuts<'_> {
    fn divide(&mut self, objects: &mut [u32], work: f64) -> usize {
        let rim = self.rim(objects);
        self.search(objects, rim);
        let end = cut(self.queue.iter().map(|&it| self.load(it)), work);
        for (place, &it) in self.queue.iter().enumerate() {
            self.side[it as usize] = if place < end { Side::Front } else { Side::Back };
        }
        self.smooth(objects, work);

        // Both parts keep their order, so that objects of neighbouring PEs stay together.
        let side = &self.side;
        self.queue.clear();
        self.queue.extend(objects.iter().filter(|&&it| side[it as usize] == Side::Front));
        let end = self.queue.len();
        self.queue.extend(objects.iter().filter(|&&it| side[it as usize] == Side::Back));
        objects.copy_from_slice(&self.queue);
        for &mut it in objects {
            self.side[it as usize] = Side::Elsewhere;
        }
        end
    }
}

impl<'a> Cuts<'a> {
    pub(crate) fn new(model: &'a LoadModel, graph: &'a Graph, passes: usize) -> Self {
        let side = vec![Side::Elsewhere; model.objects().len()];
        Self { model, graph, passes, side, queue: vec![] }
    }

    fn load(&self, object: u32) -> f64 {
        self.model.objects()[object as usize].load
    }

    /// An object at the rim: the last one of a search that began at the first object.
    fn rim(&mut self, objects: &[u32]) -> u32 {
        let first = objects[0];
        self.mark_unseen(objects);
        self.search_from(first);
        *self.queue.last().unwrap_or(&first)
    }

    /// Puts all `objects` into the queue in breadth-first order: those connected to `start`, then
    /// the others, each connected component in turn.
    fn search(&mut self, objects: &[u32], start: u32) {
        self.mark_unseen(objects);
        self.search_from(start);
        for &it in objects {
            if self.side[it as usize] == Side::Unseen {
                self.search_from(it);
            }
        }
    }

    fn mark_unseen(&mut self, objects: &[u32]) {
        self.queue.clear();
        for &it in objects {
            self.side[it as usize] = Side::Unseen;
        }
    }

    fn search_from(&mut self, start: u32) {
        let mut next = self.queue.len();
        self.side[start as usize] = Side::Back;
        self.queue.push(start);
        while let Some(&object) = self.queue.get(next) {
            next += 1;
            for partner in self.graph.of(object as usize) {
                let side = &mut self.side[partner.object as usize];
                if *side == Side::Unseen {
                    *side = Side::Back;
                    self.queue.push(partner.object);
                }
            }
        }
    }

    /// Lets objects cross the cut if that saves bytes, and leaves the front part's work within one
    /// percent of `work` or does not take it further away.
    fn smooth(&mut self, objects: &[u32], work: f64) {
        let front = objects.iter().filter(|&&it| self.side[it as usize] == Side::Front);
        let mut front: f64 = front.map(|&it| self.load(it)).sum();
        for _ in 0..self.passes {
            let mut moved = false;
            for &it in objects {
                let here = self.side[it as usize];
                let (mut stays, mut crosses) = (0.0, 0.0);
                for partner in self.graph.of(it as usize) {
                    match self.side[partner.object as usize] {
                        Side::Elsewhere | Side::Unseen => {}
                        side if side == here => stays += partner.weight,
                        _ => crosses += partner.weight,
                    }
                }
                if crosses <= stays {
                    continue;
                }
                let (there, change) = match here {
                    Side::Front => (Side::Back, -self.load(it)),
                    _ => (Side::Front, self.load(it)),
                };
                let (before, after) = ((front - work).abs(), (front + change - work).abs());
                if after <= before || after <= work * 0.01 {
                    self.side[it as usize] = there;
                    front += change;
                    moved = true;
                }
            }
            if !moved {
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        assignment::Assignment,
        model::{Edge, Object, Pe},
        registry::create,
    };

    #[test]
    fn a_chain_is_cut_in_as_few_places_as_there_are_pes() {
        // The chain goes through the objects in steps of 7, so that nothing is where it belongs.
        let objects = (0..64).map(|it| Object::new(1.0, it % 4)).collect();
        let edge =
            |it: usize| Edge { from: it * 7 % 64, to: (it + 1) * 7 % 64, messages: 1, bytes: 10 };
        let model = LoadModel::new(vec![Pe::default(); 4], objects, (0..63).map(edge).collect())
            .expect("sound");
        assert_eq!(Assignment::today(&model).remote_bytes(&model), 630);
        let strategy = create("graph-bisection", &[("tolerance", "0")]).expect("allowed");
        let placed = strategy.assign(&model, 0);
        assert_eq!(placed.pe_loads(&model), [16.0; 4]);
        assert_eq!(placed.remote_bytes(&model), 30);
    }
}
