//! Load-balancing strategies: a load model in, an assignment out.
//!
//! A [`LoadModel`] contains the measurements: how many seconds each *object* (in `vrt`, a virtual rank) computed, which
//! PE it is on, what it sent to whom, and how fast the PEs are. A [`Strategy`] answers with an [`Assignment`], a PE for
//! each object. Strategies are pure: they measure nothing, move nothing and know no runtime, so that the same code
//! decides in a running job, in a replay of a recorded one, and in a test.
//!
//! | strategy | what it does | cost for `n` objects, `e` edges, `p` PEs |
//! |---|---|---|
//! | [`null`](null::Null) | leaves everything where it is | `n` |
//! | [`rotate`](chaos::Rotate) | everything to the next PE; for tests | `n` |
//! | [`random`](chaos::Random) | everything to a PE drawn at random; for tests | `n` |
//! | [`pile`](chaos::Pile) | everything to the first PE; for tests | `n` |
//! | [`greedy`](greedy::Greedy) | heaviest object first, to the PE that finishes it first | `n log n` |
//! | [`greedy-refine`](greedy_refine::GreedyRefine) | the same, but objects stay while balance allows | `n log n` |
//! | [`refine`](refine::Refine) | overloaded PEs give away as little as possible | `n log n` |
//! | [`greedy-comm`](greedy_comm::GreedyComm) | greedy that puts objects beside their partners | `n log n + e log e` |
//! | [`graph-bisection`](graph_bisection::GraphBisection) | halves the communication graph recursively | `(n + e) log p` |
//! | [`orb`](orb::Orb) | halves space recursively | `n log n log p` |
//! | [`hilbert`](hilbert::Hilbert) | cuts a space-filling curve | `n log n` |
//! | [`diffusion`](diffusion::Diffusion) | load flows between neighbours | `p rounds + n log n` a sweep |
//! | [`gossip`](gossip::Gossip) | PEs spread rumours of lightly loaded PEs (TemperedLB) | `p rounds + n log n` an iteration |
//! | [`hierarchical`](hierarchical::Hierarchical) | nodes first, then their PEs | that of its two strategies |
//! | `metis`, with the crate feature of that name | METIS partitions the communication graph | `(n + e) log p` |
//!
//! For models of many objects, strategies use as many threads as the process may run at once. The assignment does not
//! depend on their number.
//!
//! [`auto`] chooses among strategies by the measured gains of their placements, and undoes those that gain nothing;
//! [`replay`] computes what each would have done with a recorded job.
//!
//! Loads of the next period are [predicted](predict) from past ones; the [`Gain`] of an assignment shows whether it is
//! worth its moves.
//!
//! The program `lb-sim` (crate feature `sim`) runs strategies side by side on generated loads ([`cases`]) or on
//! recorded ones (feature `datafile`, in the layout of DARMA vt's LB data files), and measures them. `CASES.md` has the
//! results of all strategies on all cases.
//!
//! ```text
//! lb-sim --case grid --objects 100000 --pes 1000
//! lb-sim data.*.json --phase 3 --lb greedy-refine,refine --svg loads.svg
//! ```
//!
//! # Example
//!
//! Four PEs, one of them twice as fast; eight objects, all on PE 0, one of which cannot move.
//!
//! ```
//! use lb_strategies::{Assignment, LoadModel, Object, Pe, create};
//!
//! let mut pes = vec![Pe::default(); 4];
//! pes[3].speed = 2.0;
//! let mut objects: Vec<Object> =
//!     (1..=8).map(|i| Object::new(f64::from(i), 0).with_bytes(1 << 20)).collect();
//! objects[0] = objects[0].pinned();
//! let model = LoadModel::new(pes, objects, vec![])?;
//!
//! let strategy = create("greedy", &[("home-bias", "0.05"), ("minimum-gain", "0.1")])?;
//! let assignment = strategy.assign(&model, 0);
//!
//! let today = Assignment::today(&model);
//! assert_eq!(today.max_load(&model), 36.0);
//! assert_eq!(today.imbalance(&model), 3.0);
//! assert!(assignment.max_load(&model) <= 9.0);
//! assert!(assignment.imbalance(&model) < 0.3);
//! assert_eq!(assignment.pes()[0], 0);
//! for change in assignment.moves(&model) {
//!     println!("object {} from PE {} to PE {}", change.object, change.from, change.to);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod assignment;
pub mod auto;
pub mod bounds;
pub mod cases;
pub mod chaos;
pub mod config;
pub mod datafile;
pub mod diffusion;
mod finish;
pub mod gain;
pub mod gossip;
mod graph;
pub mod graph_bisection;
pub mod greedy;
pub mod greedy_comm;
pub mod greedy_refine;
mod halving;
pub mod hierarchical;
pub mod hilbert;
mod least;
#[cfg(feature = "metis")]
pub mod metis;
pub mod model;
pub mod null;
pub mod orb;
mod order;
mod parallel;
pub mod predict;
mod random;
pub mod refine;
pub mod registry;
pub mod replay;
pub mod scale;
mod similar;
pub mod strategy;
mod ties;

pub use assignment::{Assignment, AssignmentError, Move};
pub use bounds::lower_bound;
pub use config::{Config, ConfigError, Domain, Parameter};
pub use gain::{Gain, gain};
pub use model::{Edge, LoadModel, LoadModelError, MoveCost, Object, Pe};
pub use registry::{Balancer, CreateError, UnknownStrategy, create, find, list, strategies};
pub use similar::{did_you_mean, similar};
pub use strategy::Strategy;
