//! The constants of the interface, under their names in C.
//!
//! What stands in the place of a callback is a `usize`: it is no function, and Rust must not think
//! that it were one.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;

use crate::types::*;

include!(concat!(env!("OUT_DIR"), "/constants.rs"));
