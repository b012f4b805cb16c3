//! Ranks as a graph (MPI-4.1 sections 8.5.3 to 8.5.5).

use serde::{Deserialize, Serialize};

use crate::{Count, Rank};

/// A graph that every rank knows as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Graph {
    /// For each node, the number of edges of it and of all nodes before it.
    index: Vec<Count>,
    /// The other ends of all edges, by node.
    edges: Vec<Rank>,
}

/// What is no graph.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GraphError {
    /// More nodes than ranks.
    #[error("a graph of {nodes} nodes, the size of the communicator is {ranks}")]
    TooMany {
        /// Number of nodes.
        nodes: usize,
        /// Number of ranks.
        ranks: Rank,
    },
    /// Numbers of edges that are negative, or less than those of the nodes before.
    #[error("the index of a graph does not increase: {index:?}")]
    Index {
        /// The numbers.
        index: Vec<Count>,
    },
    /// Another number of edges than the index says.
    #[error("a graph has {given} edges, its index ends at {last}")]
    Edges {
        /// The number of edges.
        given: usize,
        /// The end of the index.
        last: Count,
    },
    /// An edge to no node.
    #[error("an edge to {edge}: the graph has {nodes} nodes")]
    Edge {
        /// Its other end.
        edge: Rank,
        /// Number of nodes.
        nodes: usize,
    },
}

impl Graph {
    /// A graph of some of `ranks` ranks, as `MPI_Graph_create` is given it.
    ///
    /// # Errors
    /// It is none.
    pub fn new(index: Vec<Count>, edges: Vec<Rank>, ranks: Rank) -> Result<Graph, GraphError> {
        let nodes = index.len();
        if Rank::try_from(nodes).is_ok_and(|nodes| nodes <= ranks) {
            let last = Graph::number_of_edges(&index)?;
            if usize::try_from(last) != Ok(edges.len()) {
                return Err(GraphError::Edges { given: edges.len(), last });
            }
            let is_node = |edge: &Rank| usize::try_from(*edge).is_ok_and(|edge| edge < nodes);
            return match edges.iter().find(|edge| !is_node(edge)) {
                Some(edge) => Err(GraphError::Edge { edge: *edge, nodes }),
                None => Ok(Graph { index, edges }),
            };
        }
        Err(GraphError::TooMany { nodes, ranks })
    }

    /// The number of edges that an index says.
    ///
    /// # Errors
    /// It does not increase.
    pub fn number_of_edges(index: &[Count]) -> Result<Count, GraphError> {
        let starts = index.first().is_none_or(|first| *first >= 0);
        match starts && index.is_sorted() {
            true => Ok(index.last().copied().unwrap_or_default()),
            false => Err(GraphError::Index { index: index.to_vec() }),
        }
    }

    /// For each node, the number of edges of it and of all nodes before it.
    pub fn index(&self) -> &[Count] {
        &self.index
    }

    /// The other ends of all edges, by node.
    pub fn edges(&self) -> &[Rank] {
        &self.edges
    }

    /// The other ends of a node's edges; `None` if there is no such node.
    pub fn neighbors(&self, node: Rank) -> Option<&[Rank]> {
        let at = |node: usize| self.index.get(node).and_then(|end| usize::try_from(*end).ok());
        let node = usize::try_from(node).ok()?;
        let begin = node.checked_sub(1).map_or(Some(0), at)?;
        self.edges.get(begin..at(node)?)
    }
}

/// A rank's edges in a graph of which each rank knows its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Adjacency {
    /// The ranks from which edges lead to it.
    pub sources: Vec<Rank>,
    /// The ranks to which edges lead from it.
    pub destinations: Vec<Rank>,
    /// The weights of these edges, if they have any.
    pub weights: Option<Weights>,
}

/// The weights of a rank's edges, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Weights {
    /// Of the edges to it.
    pub sources: Vec<Count>,
    /// Of the edges from it.
    pub destinations: Vec<Count>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_edges_of_a_node_are_between_two_ends() {
        let graph = Graph::new(vec![2, 2, 3], vec![1, 2, 0], 5).unwrap();
        let neighbors = [0, 1, 2, 3, -1].map(|node| graph.neighbors(node));
        assert_eq!(neighbors, [Some(&[1, 2][..]), Some(&[]), Some(&[0]), None, None]);
    }

    #[test]
    fn what_is_no_graph_is_refused() {
        let refused = |index: &[Count], edges: &[Rank]| {
            Graph::new(index.to_vec(), edges.to_vec(), 3).unwrap_err()
        };
        assert_eq!(refused(&[1, 1, 1, 1], &[0]), GraphError::TooMany { nodes: 4, ranks: 3 });
        assert_eq!(refused(&[2, 1], &[0]), GraphError::Index { index: vec![2, 1] });
        assert_eq!(refused(&[-1, 1], &[0]), GraphError::Index { index: vec![-1, 1] });
        assert_eq!(refused(&[1, 2], &[0]), GraphError::Edges { given: 1, last: 2 });
        assert_eq!(refused(&[0, 1], &[2]), GraphError::Edge { edge: 2, nodes: 2 });
        assert_eq!(refused(&[0, 1], &[-1]), GraphError::Edge { edge: -1, nodes: 2 });
    }
}
