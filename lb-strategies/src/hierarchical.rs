//! `hierarchical`: nodes first, then the PEs within each.
//!
//! First, each node is treated as one PE as fast as its PEs together, and one strategy moves
//! objects between nodes. Then another strategy works within each node, on its objects and PEs
//! alone (G. Zheng, A. Bhatele, E. Meneses and L. V. Kale, "Periodic hierarchical load balancing
//! for large supercomputers", Int. J. High Performance Computing Applications 25, 2011). Moves
//! between nodes, which send memory, stay few if the first strategy makes few; moves within a node,
//! where a slot changes hands and no byte is copied, may be many. Objects that arrive at a node
//! start on the PE that would finish them first.
//!
//! Inputs: nodes, and the inputs of the two strategies. Cost: that of the first for as many PEs as
//! there are nodes, and that of the second for each node; with many objects, threads work on
//! several nodes in parallel.

use std::sync::LazyLock;

use crate::{
    assignment::pe_loads,
    config::{Config, Domain, Parameter},
    finish::PeFinish,
    model::{Edge, LoadModel, Object, Pe},
    order::heaviest_first,
    parallel,
    registry::{find, strategies},
    strategy::Strategy,
};

/// Nodes first, then the PEs within each.
#[derive(Clone, Copy, Debug)]
pub struct Hierarchical;

/// Strategies that this one can call: all except itself, chaos, and `metis`, which not every build contains.
static INNER: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let inner = strategies().iter().filter(|it| !it.is_chaos()).map(|it| it.name());
    inner.filter(|name| !["hierarchical", "metis"].contains(name)).collect()
});

static PARAMETERS: LazyLock<[Parameter; 2]> = LazyLock::new(|| {
    let domain = || Domain::Choice { default: "greedy-refine", of: &INNER };
    [
        Parameter { name: "between", help: "the strategy between nodes", domain: domain() },
        Parameter { name: "within", help: "the strategy within a node", domain: domain() },
    ]
});

impl Strategy for Hierarchical {
    fn name(&self) -> &'static str {
        "hierarchical"
    }

    fn help(&self) -> &'static str {
        "nodes first, then the PEs within each: few moves between nodes"
    }

    fn parameters(&self) -> &'static [Parameter] {
        &*PARAMETERS
    }

    fn heeds_communication(&self) -> bool {
        true
    }

    fn propose(&self, model: &LoadModel, config: &Config, seed: u64) -> Vec<usize> {
        let mut pes: Vec<usize> = model.objects().iter().map(|it| it.pe).collect();
        let nodes = Nodes::new(model);
        if nodes.members.len() > 1 {
            let arrivals = nodes.between(model, config.choice("between"), seed);
            nodes.settle(model, arrivals, &mut pes);
        }
        nodes.within(model, config.choice("within"), seed, &mut pes);
        pes
    }
}

/// Nodes have many objects each and can be balanced well: this tolerance adds to the one within nodes.
const BETWEEN_TOLERANCE: &str = "0.01";

fn run(name: &str, tolerance: Option<&str>, model: &LoadModel, seed: u64) -> Vec<usize> {
    let strategy = find(name).expect("the names that are allowed are registered");
    let mut config = Config::new(strategy);
    if let Some(tolerance) = tolerance
        && strategy.parameters().iter().any(|it| it.name == "tolerance")
    {
        config.set("tolerance", tolerance).expect("every tolerance may be small");
    }
    strategy.assign(model, &config, seed).into_pes()
}

/// The nodes of a model, numbered without gaps.
struct Nodes {
    /// For each PE, its node.
    of_pe: Vec<usize>,
    /// For each PE, its number within its node.
    local: Vec<usize>,
    /// For each node, its PEs.
    members: Vec<Vec<usize>>,
}

impl Nodes {
    fn new(model: &LoadModel) -> Self {
        let mut names: Vec<usize> = model.pes().iter().map(|pe| pe.node).collect();
        names.sort_unstable();
        names.dedup();
        let mut members = vec![vec![]; names.len()];
        let (mut of_pe, mut local) = (vec![], vec![]);
        for (pe, Pe { node, .. }) in model.pes().iter().enumerate() {
            let node = names.partition_point(|it| it < node);
            of_pe.push(node);
            local.push(members[node].len());
            members[node].push(pe);
        }
        Self { of_pe, local, members }
    }

    /// The objects that change node, heaviest first, each with its new node.
    fn between(&self, model: &LoadModel, strategy: &str, seed: u64) -> Vec<(usize, usize)> {
        let as_pe = |pes: &Vec<usize>| {
            let members = || pes.iter().map(|&pe| &model.pes()[pe]);
            let speed: f64 = members().map(|pe| pe.speed).sum();
            let work: f64 = members().map(|pe| pe.background * pe.speed).sum();
            Pe { speed, background: work / speed, ..Pe::default() }
        };
        let objects = model.objects().iter().map(|it| Object { pe: self.of_pe[it.pe], ..*it });
        let on_nodes = model_of(
            model,
            self.members.iter().map(as_pe).collect(),
            objects.collect(),
            model.edges().to_vec(),
        );
        let nodes = run(strategy, Some(BETWEEN_TOLERANCE), &on_nodes, seed);
        let home = |object: u32| self.of_pe[model.objects()[object as usize].pe];
        let arrivals = (0..nodes.len() as u32).filter(|&it| nodes[it as usize] != home(it));
        let arrivals = heaviest_first(model, arrivals).into_iter();
        arrivals.map(|it| (it as usize, nodes[it as usize])).collect()
    }

    /// Gives each arriving object the PE of its node that would finish it first.
    fn settle(&self, model: &LoadModel, arrivals: Vec<(usize, usize)>, pes: &mut [usize]) {
        let mut loads = pe_loads(model, pes);
        for &(object, _) in &arrivals {
            let left = loads[pes[object]] - model.seconds_on(object, pes[object]);
            loads[pes[object]] = left.max(0.0);
        }
        let threads = parallel::threads(arrivals.len());
        let mut by_node = vec![vec![]; self.members.len()];
        for (object, node) in arrivals {
            by_node[node].push(object);
        }
        let nodes = self.members.iter().zip(by_node);
        let placed = parallel::each(threads, nodes, |(members, arrivals)| {
            let as_now = members.iter().map(|&pe| (model.pes()[pe].speed, loads[pe]));
            let mut finish = PeFinish::of(as_now);
            let place = |object: usize| {
                let work = model.objects()[object].load;
                let (local, _) = finish.earliest(work);
                finish.add(local, work);
                (object, members[local])
            };
            arrivals.into_iter().map(place).collect::<Vec<_>>()
        });
        for (object, pe) in placed.into_iter().flatten() {
            pes[object] = pe;
        }
    }

    /// Runs `strategy` within each node.
    fn within(&self, model: &LoadModel, strategy: &str, seed: u64, pes: &mut [usize]) {
        let mut residents = vec![vec![]; self.members.len()];
        let mut index = vec![0; pes.len()];
        for (object, &pe) in pes.iter().enumerate() {
            let residents = &mut residents[self.of_pe[pe]];
            index[object] = residents.len();
            residents.push(object);
        }
        let mut edges = vec![vec![]; self.members.len()];
        for edge in model.edges() {
            let node = self.of_pe[pes[edge.from]];
            if node == self.of_pe[pes[edge.to]] {
                edges[node].push(Edge { from: index[edge.from], to: index[edge.to], ..*edge });
            }
        }
        let here = &*pes;
        let parts = residents.into_iter().zip(edges).enumerate();
        let several = parts.filter(|&(node, _)| self.members[node].len() > 1);
        let placed = parallel::each(parallel::threads(here.len()), several, |(node, part)| {
            let (residents, edges): (Vec<usize>, _) = part;
            let objects = residents
                .iter()
                .map(|&object| Object { pe: self.local[here[object]], ..model.objects()[object] });
            let members = self.members[node].iter().map(|&pe| model.pes()[pe]);
            let on_pes = model_of(model, members.collect(), objects.collect(), edges);
            let placed = run(strategy, None, &on_pes, seed.wrapping_add(node as u64));
            (node, residents, placed)
        });
        for (node, residents, placed) in placed {
            for (object, local) in residents.into_iter().zip(placed) {
                pes[object] = self.members[node][local];
            }
        }
    }
}

/// A part of `model`.
fn model_of(model: &LoadModel, pes: Vec<Pe>, objects: Vec<Object>, edges: Vec<Edge>) -> LoadModel {
    LoadModel::new(pes, objects, edges)
        .and_then(|part| part.with_move_cost(model.move_cost()))
        .expect("a part of a sound model is sound")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::create;

    #[test]
    fn few_objects_change_node() {
        // Node 0 has 24 objects on its first PE, node 7 has 16 on one.
        let pe = |node| Pe { node, ..Pe::default() };
        let pes = vec![pe(0), pe(7), pe(0), pe(7)];
        let mut objects = vec![Object::new(1.0, 0); 24];
        objects.extend([Object::new(1.0, 3); 16]);
        let model = LoadModel::new(pes, objects, vec![]).expect("sound");
        let placed = create::<&str, &str>("hierarchical", &[]).expect("exists").assign(&model, 0);
        assert!(placed.max_load(&model) <= 11.0);
        let node = |pe: usize| model.pes()[pe].node;
        let between = placed.moves(&model).filter(|it| node(it.from) != node(it.to)).count();
        assert!(between <= 4, "{between}");
    }

    #[test]
    fn a_strategy_that_is_registered_can_be_called_for_nodes() {
        for name in ["greedy", "gossip"] {
            assert!(INNER.contains(&name));
            assert!(create("hierarchical", &[("between", name), ("within", name)]).is_ok());
        }
        for name in ["hierarchical", "random", "gready"] {
            assert!(create("hierarchical", &[("within", name)]).is_err());
        }
    }
}
