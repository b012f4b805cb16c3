//! Events of a job in a file: recording, and (with the feature `tools`) reading.
//!
//! ```text
//! PE's thread                          a thread of the PE                      afterwards
//!   core tells its Observer   ring       takes, makes blocks        file
//!   Recorder: 4 words an event ---->     Writer                    ------->     Trace: summary, advise,
//!   (waits where the ring is full)       (every 50 ms, or a quarter full)       Perfetto, Paraver, CSV, HTML
//! ```
//!
//! PEs of a machine append complete blocks to one file, so that it can be read while the job runs and after a PE was
//! killed: up to the last write, which is at most 50 ms old. PEs that a launcher has started have one file each; these
//! are read together.
//!
//! | file | subject |
//! |---|---|
//! | `format` | blocks and records |
//! | `ring` | events in memory |
//! | `record` | turns events into records |
//! | `write` | the thread that writes |
//! | `read` | a trace, reassembled |
//! | `clocks` | converts cycle counters to a common time |
//! | `statistics` | numbers about a job |
//! | `iterations` | the part of a trace that is the program's iterations |
//! | `summary`, `advise`, `convert` | the output of `vrt-trace` |
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
