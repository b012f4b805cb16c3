//! Inspects a running job: `--monitor ADDRESS`, `vrtrun top`.
//!
//! A process beside the supervisor and the PEs, the *monitor*, asks PEs what they do ([`Looker`]) when a client asks
//! it, and computes rates from two answers. Without clients there is no monitor, except with `--monitor`; then it
//! sleeps.
//!
//! ```text
//! vrtrun top --- socket @vrt-job-PID ---.        (who connects wakes the supervisor by SIGIO,
//!                                        monitor   which then forks the monitor)
//! browser ------ 127.0.0.1:PORT/TOKEN/ -'   |
//!                                            `--- control memory --- PEs
//! ```
//!
//! Other users get nothing: the socket asks the system who has connected, and the web page's address contains a token
//! that only the job's messages show. The page is served only on this machine's own addresses.
//!
//! | file | subject |
//! |---|---|
//! | `snapshot` | what is observed, and how it is computed |
//! | `serve` | the monitor's process: its sockets and its answers |
//! | `http` | how answers are encoded |
//! | `client` | the other end of the socket; the list of jobs |
//! | `supervised` | the supervisor's side |
//! | `started` | the monitor of PEs that a launcher has started |
//! | `socket`, `web` | where clients find it |
//! | `page.html` | the web page |

mod client;
mod http;
mod serve;
mod snapshot;
mod socket;
#[cfg(feature = "mpi")]
mod started;
mod supervised;
mod web;

pub use client::{Connection, LookError, RunningJob, running_jobs};
#[cfg(feature = "mpi")]
pub(crate) use started::{SeenNode, WaitingMonitor};
pub(crate) use supervised::Monitor;

pub use snapshot::{MoveSeen, PeSeen, RankSeen, Snapshot};
