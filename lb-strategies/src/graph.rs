//! The communication graph: the partners of each object, in both directions.

use crate::{
    config::{Domain, Parameter},
    model::LoadModel,
};

/// The parameter of all strategies that weigh communication.
pub(crate) const MESSAGE_BYTES: Parameter = Parameter {
    name: "message-bytes",
    help: "a message costs as much as this many bytes, beside its own",
    domain: Domain::Number { default: 1000.0, range: 0.0..=1e12 },
};

/// The communication of a model as an undirected graph: for each object, its partners.
///
/// Two objects with several edges between them are partners several times.
pub(crate) struct Graph {
    starts: Vec<usize>,
    partners: Vec<Partner>,
}

/// An object at the other end of an edge.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Partner {
    pub(crate) object: u32,
    /// Bytes that the edge represents.
    pub(crate) weight: f32,
}

impl Graph {
    /// The graph of `model`, in which each message counts `message_bytes` in addition to its own
    /// bytes.
    pub(crate) fn new(model: &LoadModel, message_bytes: f64) -> Self {
        let edges = || model.edges().iter().filter(|edge| edge.from != edge.to);
        let mut starts = vec![0; model.objects().len() + 1];
        for edge in edges() {
            starts[edge.from + 1] += 1;
            starts[edge.to + 1] += 1;
        }
        for object in 1..starts.len() {
            starts[object] += starts[object - 1];
        }
        let mut next = starts.clone();
        let mut partners = vec![Partner::default(); starts[starts.len() - 1]];
        for edge in edges() {
            let weight = (edge.bytes as f64 + message_bytes * edge.messages as f64) as f32;
            for (this, other) in [(edge.from, edge.to), (edge.to, edge.from)] {
                partners[next[this]] = Partner { object: other as u32, weight };
                next[this] += 1;
            }
        }
        Self { starts, partners }
    }

    /// The partners of `object`.
    pub(crate) fn of(&self, object: usize) -> &[Partner] {
        &self.partners[self.starts[object]..self.starts[object + 1]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Edge, Object, Pe};

    #[test]
    fn both_ends_of_an_edge_are_partners() {
        let edge = |from, to, bytes| Edge { from, to, messages: 2, bytes };
        let edges = vec![edge(0, 1, 10), edge(1, 0, 5), edge(2, 2, 7)];
        let objects = vec![Object::new(1.0, 0); 3];
        let model = LoadModel::new(vec![Pe::default()], objects, edges).expect("sound");
        let graph = Graph::new(&model, 1.0);
        let partner = |object, weight| Partner { object, weight };
        assert_eq!(graph.of(0), [partner(1, 12.0), partner(1, 7.0)]);
        assert_eq!(graph.of(1), [partner(0, 12.0), partner(0, 7.0)]);
        assert_eq!(graph.of(2), []);
    }
}
