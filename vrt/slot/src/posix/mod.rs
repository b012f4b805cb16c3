//! What POSIX gives to a process, for ranks that run images: signals, timers, threads, a working directory. And the
//! mechanism by which functions stand in front of libc's.
//!
//! | file | subject |
//! |---|---|
//! | `interpose` | functions in front of libc's |
//! | `errno` | the program's `errno` |
//! | `signals` | signals |
//! | `timer_table`, `timers` | a rank's timers; the calls for them |
//! | `folders` | the working directory |
//! | `image_thread` | threads in images |
//! | `libc_threads` | functions of a rank's own libc that would start a thread in it |

pub(crate) mod errno;
pub(crate) mod folders;
pub mod image_thread;
pub mod interpose;
pub(crate) mod libc_threads;
pub mod signals;
mod timer_table;
pub(crate) mod timers;
