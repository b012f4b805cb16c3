//! MPI for unmodified programs: C and C++ programs as virtual ranks.
//!
//! [`run`] loads a program that was compiled against the MPI ABI (by `vrtcc` or `vrtcxx`) once for each rank, with its
//! libraries, and binds it to the functions here: each rank has its own globals, and moves like any other rank. The
//! functions are built on the untyped engine ([`vrt_core`]), like the Rust API.
//!
//! | file | subject |
//! |---|---|
//! | `program`, `life`, `thread_exit`, `abort` | running a program as ranks; how each rank begins and ends |
//! | `libraries`, `symbols` | what a rank looks up in its image, and what images are bound to |
//! | `call`, `fault`, `errhandler` | the entry of functions, and error handling |
//! | `process`, `handles` | a rank's MPI state: tables of handles |
//! | `object` | what is in these tables, and the buffers that messages come from and go to |
//! | `numbers`, `text` | arguments of programs: counts, strings |
//! | `send`, `receive`, `exchange`, `probe`, `request`, `generalized`, `status` | point-to-point (MPI-4.1 chapter 3) |
//! | `datatype` | chapter 5 |
//! | `collective`, `op` | chapter 6 |
//! | `communicator`, `group`, `attribute` | chapter 7 |
//! | `topology` | chapter 8 |
//! | `environment`, `info`, `session` | chapters 9 to 11 |
//! | `window` | chapter 12 |
//!
//! Imports go one way, down the table of layers in docs/ARCHITECTURE.md.

#![cfg_attr(
    not(test),
    warn(
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss
    )
)]
#![allow(clippy::too_many_arguments, reason = "MPI's functions have so many")]

mod abort;
mod attribute;
mod call;
mod collective;
mod communicator;
mod conversions;
mod datatype;
mod debugger;
mod environment;
mod errhandler;
mod exchange;
mod fault;
mod generalized;
mod group;
mod handles;
mod info;
mod libraries;
mod life;
mod numbers;
mod object;
mod op;
mod probe;
mod process;
mod program;
mod receive;
mod request;
mod send;
mod session;
mod settings;
mod status;
mod symbols;
mod text;
mod thread_exit;
mod topology;
mod window;

pub use program::{Program, ProgramError, has_function, run};
pub use vrt_load::LoadError;
