//! The relation of a communicator's ranks: a grid, or a graph (MPI-4.1 chapter 8).

use serde::{Deserialize, Serialize};

use crate::comm::graph::{Adjacency, Graph};
use crate::comm::grid::Grid;

/// The relation of a communicator's ranks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Shape {
    /// None that the communicator knows.
    Plain,
    /// A grid (MPI-4.1 section 8.5.1).
    Cartesian(Grid),
    /// A graph that every rank was given as a whole (section 8.5.3).
    Graph(Graph),
    /// A graph of which each rank knows its own edges (section 8.5.4).
    DistributedGraph(Adjacency),
}
