//! Load-balancing strategies: a load model in, an assignment out.
//!
//! A [`LoadModel`] says what was measured: how many seconds each *object* (in `vrt`, a virtual
//! rank) computed, on which PE it is, what it sent to whom, and how fast the PEs are. A
//! [`Strategy`] answers with an [`Assignment`], a PE for each object. Strategies are pure: they
//! measure nothing, move nothing and know no runtime, so that the same code decides in a running
//! job, in a replay of a recorded one, and in a test.
//!
//! | strategy | what it does | cost for `n` objects |
//! |---|---|---|
//! | [`null`](null::Null) | leaves everything where it is | `n` |
//! | [`greedy`](greedy::Greedy) | heaviest object first, to the PE that finishes it first | `n log n` |
//!
//! # Example
//!
//! Four PEs, one of them twice as fast; eight objects, all on PE 0, one of which cannot move.
//!
//! ```
//! use lb_strategies::{Assignment, Config, LoadModel, Object, Pe, find};
//!
//! let mut pes = vec![Pe::default(); 4];
//! pes[3].speed = 2.0;
//! let mut objects: Vec<Object> =
//!     (1..=8).map(|i| Object::new(f64::from(i), 0).with_bytes(1 << 20)).collect();
//! objects[0] = objects[0].pinned();
//! let model = LoadModel::new(pes, objects, vec![])?;
//!
//! let strategy = find("greedy")?;
//! let config = Config::parse(strategy, "home-bias=0.05,minimum-gain=0.1")?;
//! let assignment = strategy.assign(&model, &config, 0);
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
pub mod greedy;
pub mod model;
pub mod null;
pub mod registry;
pub mod strategy;

pub use assignment::{Assignment, AssignmentError, Move};
pub use model::{Edge, LoadModel, LoadModelError, Object, Pe};
pub use registry::{UnknownStrategy, find, strategies};
pub use strategy::{Config, ConfigError, Parameter, Strategy};
