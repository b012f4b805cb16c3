//! A function for each function of the interface, to be bound where a library has none of its own.
//!
//! Each calls one hook with its name, so that the program that calls it hears what is missing, and
//! programs that have it linked but do not call it run.

use std::ffi::c_int;
use std::sync::OnceLock;

/// What is called instead of a function that is not there, with the function's name. What it
/// returns is the function's result; functions whose result is no `int` return something undefined.
pub type Missing = fn(&'static str) -> c_int;

/// The hook that all of [`NOT_THERE`] call, which the runtime sets once. Without it they write
/// their name to standard error and end the process.
pub static MISSING: OnceLock<Missing> = OnceLock::new();

fn missing(name: &'static str) -> c_int {
    match MISSING.get() {
        Some(missing) => missing(name),
        None => {
            eprintln!("{name}: vrt does not have this function yet");
            std::process::exit(2)
        }
    }
}

/// A function and its name, as it can be bound: it looks at none of its arguments.
pub type NotThere = (&'static str, unsafe extern "C-unwind" fn() -> c_int);

macro_rules! not_there {
    { $($name:ident)* } => {
        /// A function for each of [`FUNCTIONS`](crate::FUNCTIONS), in the same order.
        pub static NOT_THERE: &[NotThere] = &[$({
            unsafe extern "C-unwind" fn not_there() -> c_int {
                missing(stringify!($name))
            }
            (stringify!($name), not_there)
        }),*];
    };
}

include!(concat!(env!("OUT_DIR"), "/not_there.rs"));
