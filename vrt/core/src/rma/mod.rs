//! One-sided access to the memory of other ranks (MPI-4.1 chapter 12).
//!
//! Inside a node an access consists of loads, stores and atomics on the other rank's slot; to another node it is a
//! message to the rank, whose PE does the same there and answers. Either way it is complete when the call returns.
//!
//! | file | subject |
//! |---|---|
//! | `access` | reading, writing, folding the memory of another rank of the node |
//! | `control` | the words by which a rank's part of a window is locked |
//! | `epoch` | when a rank may access the memory of others, and they its own: a state machine |
//! | `remote` | the same for a rank on another node |
//! | `window` | windows: parts, synchronisation |
//!
//! Invariants:
//! - W1. A rank's part of a window, and its [`Control`](control::Control), stay until all ranks have freed the window. They
//!   are in this node while the rank is leased (`Window::lease`), or on this PE.
//! - W2. Parts are read and written by atomics only (`access`).

#![cfg_attr(
    not(test),
    warn(
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss
    )
)]

pub mod access;
pub mod control;
pub mod epoch;
pub mod remote;
pub mod window;

use crate::net::Kind;
use crate::pe::{Extension, Handlers};

/// The part of a PE that gives ranks of other nodes access to the windows of its own.
#[derive(Debug)]
pub struct Windows;

impl Extension for Windows {
    const INDEX: usize = 3;
    const HANDLERS: Handlers =
        Handlers { packets: &[(Kind::Access, remote::access_came)], ..Handlers::NONE };
}
