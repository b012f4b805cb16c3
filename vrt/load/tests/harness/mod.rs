//! Compiles programs, and runs images of them on separate threads.
//!
//! Functions here that programs call run with the image's thread pointer, where Rust's
//! thread-locals are stale copies. So these functions only write to a [`Run`], which they find by
//! the thread pointer.
#![allow(dead_code, unused_imports, reason = "each test uses a part of it")]
#![allow(clippy::unwrap_used, reason = "where a test cannot go on, it fails")]

mod compile;
mod provided;
mod run;

pub(crate) use compile::Workshop;
pub(crate) use provided::provided;
pub(crate) use run::{Memory, Outcome, in_image, on_stack, run};

use vrt_load::{LoadError, Options, Plan, thread_reserve};

/// Libraries that belong to the process in most tests.
pub(crate) const LIBC: &[&str] = &["libc.so", "libm.so", "libgcc_s.so"];

/// Opens a program; libraries whose names begin with one of `shared` belong to the process.
pub(crate) fn open(program: &std::path::Path, shared: &[&str]) -> Plan {
    match try_open(program, shared) {
        Ok(plan) => plan,
        Err(error) => panic!("{error}"),
    }
}

pub(crate) fn try_open(program: &std::path::Path, shared: &[&str]) -> Result<Plan, LoadError> {
    let shared = |name: &str| shared.iter().any(|prefix| name.starts_with(prefix));
    let options = Options {
        provided: &provided,
        is_provided: &|name| name.starts_with("libruntime"),
        refused: &|name| {
            name.starts_with("libmpi.so").then(|| "it is another MPI's; compile with vrtcc".into())
        },
        shared: &shared,
        thread_reserve: thread_reserve().unwrap(),
    };
    Plan::open(program, &options)
}
