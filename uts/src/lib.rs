//! Unbalanced Tree Search: a benchmark of dynamic load balancing.
//!
//! The task is to count the nodes of a tree that is not stored anywhere. A node is a SHA-1 digest;
//! its children are the digests of it and their numbers; the number of children is drawn from its
//! digest. So each subtree can be searched anywhere, but its size is not known beforehand, and
//! sizes differ by orders of magnitude: work must be moved while it is being done (S. Olivier et
//! al., "UTS: An Unbalanced Tree Search Benchmark", LCPC 2006; J. Dinan et al., "Dynamic Load
//! Balancing of Unbalanced Computations Using Message Passing", IPDPS 2007).
//!
//! | module | |
//! |---|---|
//! | [`tree`] | parameters of a tree; the number of children of a node |
//! | [`named`] | the trees with published sizes |
//! | [`rng`] | the digests, one at a time |
//! | [`lanes`] | the digests, sixteen at a time |
//! | [`thresholds`] | the geometric distribution as tables |
//! | [`frontier`] | the open nodes of a searcher: exploring, giving away |
//! | [`sequential`] | the search by one thread |
//! | [`plan`] | the available algorithms, terminations and parameters |
//! | [`machine`] | what the algorithms that send messages have in common |
//! | [`searcher`] | work stealing: who asks whom for work |
//! | [`sharing`] | work sharing with a manager |
//! | [`fixed`] | no sharing at all |
//! | [`termination`] | detecting the end of the search |
//! | [`budget`] | a limit on the number of nodes, after which ranks stop |
//! | [`steal_stack`] | chunks that others can take one-sidedly |
//! | [`shared_2006`], [`hierarchical`] | the algorithms that use them |
//! | [`parallel`] | the search by many ranks: messages, and choice of the algorithm |
//! | [`simulation`] | the search on a simulated clock and network |
//! | [`costs`] | the cost of the parts of a search on this machine |
//! | [`estimate`] | node counts of trees that are too large to be searched here |
//! | [`statistics`] | the result, and each rank's part in it |
//!
//! ```
//! use uts::{lanes::Kernel, parallel, plan::Plan, statistics, tree::*};
//!
//! let parameters = Parameters { shape: Shape::Fixed, seed: 19, ..Parameters::default() };
//! let tree = Tree::new(parameters)?;
//! mpi::run_local(8, |world| {
//!     let kernel = Kernel::fastest();
//!     let mine = parallel::search(world, &tree, kernel, Plan::default(), |_| {});
//!     if let Some(ranks) = statistics::gather(world, &mine) {
//!         let totals = statistics::Totals::new(&ranks);
//!         assert_eq!((totals.nodes, totals.depth, totals.leaves), (16_000, 6, 12_839));
//!     }
//! });
//! # Ok::<(), ParameterError>(())
//! ```

pub mod budget;
pub mod costs;
pub mod estimate;
pub mod fixed;
pub mod frontier;
pub mod hierarchical;
pub mod lanes;
pub mod machine;
pub mod named;
pub mod parallel;
pub mod plan;
pub mod rng;
pub mod searcher;
pub mod sequential;
pub mod shared_2006;
pub mod sharing;
pub mod simulation;
pub mod statistics;
pub mod steal_stack;
pub mod termination;
pub mod thresholds;
pub mod tree;
