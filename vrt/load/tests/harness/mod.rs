//! Compiles programs, and runs images of them on threads of their own.
//!
//! What programs call here runs with the image's thread pointer, where Rust's thread-locals are
//! stale copies. So these functions do nothing but write to a [`Run`], which they find by the
//! thread pointer.
#![allow(dead_code, unused_imports, reason = "each test uses a part of it")]
#![allow(clippy::unwrap_used, reason = "where a test cannot go on, it fails")]

mod compile;
mod provided;
mod run;

pub use compile::Workshop;
pub use provided::provided;
pub use run::{Memory, Outcome, in_image, on_stack, run};

use vrt_load::{LoadError, Options, Plan, thread_reserve};

/// Libraries that are the process's in most tests.
pub const LIBC: &[&str] = &["libc.so", "libm.so", "libgcc_s.so"];

/// Opens a program; libraries whose names begin as in `shared` are the process's.
pub fn open(program: &std::path::Path, shared: &[&str]) -> Plan {
    match try_open(program, shared) {
        Ok(plan) => plan,
        Err(error) => panic!("{error}"),
    }
}

pub fn try_open(program: &std::path::Path, shared: &[&str]) -> Result<Plan, LoadError> {
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
