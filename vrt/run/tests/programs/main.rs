//! C and C++ programs as ranks: each checks its own results, wherever its ranks run.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[macro_use]
mod places;
mod program;

mod arithmetic;
mod asked;
mod collectives;
mod communicators;
mod cpp;
mod descriptors;
mod endings;
mod extremes;
mod faces;
mod globals;
mod libc_state;
mod linked;
mod looking;
mod messages;
mod misbehave;
mod one_sided;
mod own_library;
mod public_issues;
mod random;
mod signals;
mod stencil;
mod surroundings;
mod sweep;
mod thread_locals;
mod threads;
