//! Unbalanced Tree Search: a benchmark of dynamic load balancing.
//!
//! The task is to count the nodes of a tree that is not stored anywhere. A node is a SHA-1 digest;
//! its children are the digests of it and their numbers; how many it has is drawn from its
//! digest. So each subtree can be searched anywhere, but nobody knows its size beforehand, and
//! sizes differ by orders of magnitude: work must be moved while it is being done (S. Olivier et
//! al., "UTS: An Unbalanced Tree Search Benchmark", LCPC 2006; J. Dinan et al., "Dynamic Load
//! Balancing of Unbalanced Computations Using Message Passing", IPDPS 2007).
//!
//! | module | |
//! |---|---|
//! | [`tree`] | parameters of a tree; how many children a node has |
//! | [`named`] | the trees with published sizes |
//! | [`rng`] | the digests, one at a time |
//! | [`lanes`] | the digests, sixteen at a time |
//! | [`thresholds`] | the geometric distribution as tables |
//! | [`frontier`] | the open nodes of a searcher: exploring, giving away |
//! | [`sequential`] | the search by one thread |
//! | [`searcher`] | the search by many ranks: who asks whom for work, when it has ended |
//! | [`parallel`] | the messages of that search |
//! | [`statistics`] | what was found, and who did it |
//!
//! ```
//! use uts::{lanes::Kernel, parallel, searcher::Sharing, statistics, tree::*};
//!
//! let parameters = Parameters { shape: Shape::Fixed, seed: 19, ..Parameters::default() };
//! let tree = Tree::new(parameters)?;
//! mpi::run_local(8, |world| {
//!     let kernel = Kernel::fastest();
//!     let mine = parallel::search(world, &tree, kernel, Sharing::default(), |_| {});
//!     if let Some(ranks) = statistics::gather(world, &mine) {
//!         let totals = statistics::Totals::new(&ranks);
//!         assert_eq!((totals.nodes, totals.depth, totals.leaves), (16_000, 6, 12_839));
//!     }
//! });
//! # Ok::<(), ParameterError>(())
//! ```

pub mod frontier;
pub mod lanes;
pub mod named;
pub mod parallel;
pub mod rng;
pub mod searcher;
pub mod sequential;
pub mod statistics;
pub mod thresholds;
pub mod tree;
