//! What a job does, as events in a file: recording, and (with the feature `tools`) reading.
//!
//! ```text
//! PE's thread                          a thread of the PE                      afterwards
//!   core tells its Observer   ring       takes, makes blocks        file
//!   Recorder: 4 words an event ---->     Writer                    ------->     Trace: summary, advise,
//!   (waits where the ring is full)       (every 50 ms, or a quarter full)       Perfetto, Paraver, CSV, HTML
//! ```
//!
//! PEs of a machine append whole blocks to one file, so that it can be read while the job runs and after a
//! PE was killed: up to what was written, which is at most 50 ms behind. PEs that a launcher has started
//! have a file each; they are read together.
//!
//! | file | subject |
//! |---|---|
//! | `format` | blocks and records |
//! | `ring` | events in memory |
//! | `record` | events become records |
//! | `write` | the thread that writes |
//! | `read` | a trace, put together again |
//! | `clocks` | cycle counters become one time |
//! | `statistics` | what a job has done, in numbers |
//! | `iterations` | what of that is about the program's iterations |
//! | `summary`, `advise`, `convert` | what `vrt-trace` says of it |
//! | `page` | what the pages of all programs have in common |

#[cfg(feature = "tools")]
pub mod advise;
#[cfg(feature = "tools")]
mod clocks;
#[cfg(feature = "tools")]
pub mod convert;
mod format;
#[cfg(feature = "tools")]
mod iterations;
pub mod page;
#[cfg(feature = "tools")]
pub mod read;
mod record;
mod ring;
#[cfg(feature = "tools")]
pub mod statistics;
#[cfg(feature = "tools")]
pub mod summary;
mod write;

pub use record::Recorder;
pub use write::{Job, TraceFile, WriteError, Writer};
