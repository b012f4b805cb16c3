//! `greedy-comm`: greedy that puts objects beside their communication partners.
//!
//! The objects are placed heaviest first, as by greedy, on a PE that stays below a limit: the lower
//! bound plus a tolerance. Among the PEs of an object's partners, its own PE, and the one that
//! would finish it first, those below the limit are compared, and the one that leaves the fewest
//! bytes between PEs wins; a move counts with the object's own bytes, spread over the horizon. If
//! no PE stays below the limit, the object goes to the one that finishes it first. PEs that are
//! above the limit afterwards are refined. The idea is that of Charm++'s GreedyCommLB (A. Bhatele,
//! L. V. Kale and S. Kumar, "Dynamic topology aware load balancing algorithms for molecular
//! dynamics applications", ICS 2009).
//!
//! Inputs: loads, speeds, background load, communication, nodes, live bytes. Cost: greedy's, plus
//! `d log d` for each object with `d` partners.

use crate::{
    bounds::lower_bound,
    config::{Config, Domain, Parameter},
    finish::PeFinish,
    graph::{Graph, MESSAGE_BYTES},
    greedy::heaviest_first,
    model::LoadModel,
    order::{Order, by_home},
    refine::{TOLERANCE, refine},
    strategy::Strategy,
};

/// Greedy that puts objects beside their communication partners, while balance allows.
#[derive(Clone, Copy, Debug)]
pub struct GreedyComm;

impl Strategy for GreedyComm {
    fn name(&self) -> &'static str {
        "greedy-comm"
    }

    fn help(&self) -> &'static str {
        "greedy that puts objects beside those they talk to, while balance allows"
    }

    fn parameters(&self) -> &'static [Parameter] {
        &[TOLERANCE, MESSAGE_BYTES, NODE_SHARE]
    }

    fn heeds_communication(&self) -> bool {
        true
    }

    fn propose(&self, model: &LoadModel, config: &Config, _seed: u64) -> Vec<usize> {
        let graph = Graph::new(model, config.number("message-bytes"));
        let limit = lower_bound(model) * (1.0 + config.number("tolerance"));
        let mut placing = Placing::new(model, config);
        let order = Order::falling(model, by_home(model));
        for item in heaviest_first(model, &order) {
            let object = item.object as usize;
            placing.gather(&graph, object);
            placing.place(object, limit);
        }
        let mut pes = placing.pes;
        refine(model, &mut pes, config.number("tolerance"));
        pes
    }
}

const NODE_SHARE: Parameter = Parameter {
    name: "node-share",
    help: "bytes between PEs of one node count only by this part",
    domain: Domain::Number { default: 0.2, range: 0.0..=1.0 },
};

/// An assignment under construction.
struct Placing<'a> {
    model: &'a LoadModel,
    finish: PeFinish,
    /// The PE of each object: its current PE until it is placed.
    pes: Vec<usize>,
    placed: Vec<bool>,
    node_share: f64,
    horizon: f64,
    /// What the current object exchanges with each PE.
    traffic: Vec<(usize, f64)>,
}

impl<'a> Placing<'a> {
    fn new(model: &'a LoadModel, config: &Config) -> Self {
        Self {
            model,
            finish: PeFinish::new(model),
            pes: model.objects().iter().map(|it| it.pe).collect(),
            placed: model.objects().iter().map(|it| !it.migratable).collect(),
            node_share: config.number("node-share"),
            horizon: config.number("horizon"),
            traffic: vec![],
        }
    }

    /// Sums what `object` exchanges with the PEs of already placed partners.
    fn gather(&mut self, graph: &Graph, object: usize) {
        let placed = graph.of(object).iter().filter(|it| self.placed[it.object as usize]);
        self.traffic.clear();
        self.traffic.extend(placed.map(|it| (self.pes[it.object as usize], it.weight.into())));
        self.traffic.sort_by_key(|it| it.0);
        self.traffic.dedup_by(|next, sum| {
            let same = next.0 == sum.0;
            if same {
                sum.1 += next.1;
            }
            same
        });
    }

    fn place(&mut self, object: usize, limit: f64) {
        let home = self.pes[object];
        let work = self.model.objects()[object].load;
        let (first, _) = self.finish.earliest(work);
        let mut best = (first, f64::INFINITY);
        // Home is asked first, so that it wins where costs are equal.
        for index in 0..self.traffic.len() + 2 {
            let pe = match index {
                0 => home,
                1 => first,
                _ => self.traffic[index - 2].0,
            };
            if self.finish.with(pe, work) <= limit {
                let cost = self.cost(object, pe);
                if cost < best.1 {
                    best = (pe, cost);
                }
            }
        }
        self.pes[object] = best.0;
        self.placed[object] = true;
        self.finish.add(best.0, work);
    }

    /// Bytes between PEs if `object` were on `pe`.
    fn cost(&self, object: usize, pe: usize) -> f64 {
        let pes = self.model.pes();
        let node = pes[pe].node;
        let share = |other: usize| match other {
            _ if other == pe => 0.0,
            _ if pes[other].node == node => self.node_share,
            _ => 1.0,
        };
        let traffic: f64 = self.traffic.iter().map(|&(other, bytes)| bytes * share(other)).sum();
        let &crate::model::Object { pe: home, bytes, .. } = &self.model.objects()[object];
        let travels = pe != home && bytes > 0;
        traffic + if travels { bytes as f64 / self.horizon } else { 0.0 }
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
    fn friends_meet_where_balance_allows() {
        // Pairs that talk, spread so that each pair is apart.
        let objects = (0..16).map(|it| Object::new(1.0, it % 4)).collect();
        let edge =
            |pair: usize| Edge { from: 2 * pair, to: 2 * pair + 1, messages: 1, bytes: 1000 };
        let edges = (0..8).map(edge).collect();
        let model = LoadModel::new(vec![Pe::default(); 4], objects, edges).expect("sound");
        assert_eq!(Assignment::today(&model).remote_bytes(&model), 8000);
        let placed =
            create("greedy-comm", &[("tolerance", "0")]).expect("allowed").assign(&model, 0);
        assert_eq!(placed.max_load(&model), 4.0);
        assert!(placed.remote_bytes(&model) <= 2000, "{}", placed.remote_bytes(&model));
    }
}
