//! Message-passing programs as many *virtual ranks* on a few processes.
//!
//! A virtual rank calls `send`, `receive`, `barrier` like an MPI process, and while it waits, its
//! processor runs another rank. The face has the names, types and traits of the `mpi` crate
//! (rsmpi): a program written for that crate is ported by its dependency line,
//! `mpi = { package = "virtual-ranks", .. }`, and `#[mpi::main]` above its `main`. (Beside it stands a
//! crate `mpi` for `[patch.crates-io]`.)
//!
//! ```no_run
//! use vrt::collective::SystemOperation;
//! use vrt::traits::*;
//!
//! #[vrt::main]
//! fn main() {
//!     let universe = vrt::initialize().expect("main is a rank's program");
//!     let world = universe.world();
//!     let (rank, size) = (world.rank(), world.size());
//!
//!     // A message around the ring of ranks; each waits for it, and meanwhile others run.
//!     let (next, previous) = ((rank + 1) % size, (rank + size - 1) % size);
//!     if rank == 0 {
//!         world.process_at_rank(next).send(&[1u64, 2, 3][..]);
//!     }
//!     let (token, status) = world.process_at_rank(previous).receive_vec::<u64>();
//!     assert_eq!((token.len(), status.source_rank()), (3, previous));
//!     if rank != 0 {
//!         world.process_at_rank(next).send(&token);
//!     }
//!
//!     let mut sum = 0;
//!     world.all_reduce_into(&rank, &mut sum, SystemOperation::sum());
//!     if rank == 0 {
//!         println!("the ranks add up to {sum}");
//!     }
//! }
//! ```
//!
//! `VRT_PES=2 VRT_RANKS=16 ./program` runs it as 16 ranks on 2 processes; all options are fields
//! of [`Config`]. The folder `examples` has a program for each chapter of the face. For tests and
//! documentation [`run_local`] runs ranks inside the calling thread:
//!
//! ```
//! use vrt::traits::*;
//!
//! vrt::run_local(4, |world| {
//!     let mut from_root = if world.rank() == 2 { 42 } else { 0 };
//!     world.process_at_rank(2).broadcast_into(&mut from_root);
//!     assert_eq!(from_root, 42);
//! });
//! ```
//!
//! # What linking it replaces
//!
//! A program that links `vrt` has some functions of libc's from here, for all of the process: `malloc`
//! and its family, `exit`, `fork`, `pthread_create`, the calls that open, close, map and duplicate
//! (`open`, `socket`, `mmap`, `dup`, ...), those that wait (`nanosleep`, `poll`, the futexes of locks),
//! and those that answer in memory of their own (`localtime`, `getpwnam`, ...). Outside of ranks they do
//! what libc's do. It works on Linux with glibc, on x86_64 and aarch64, and does not compile elsewhere.
//!
//! # Words
//!
//! A *rank* is a virtual rank. A *PE* is a process whose thread runs ranks. The *supervisor* is the
//! parent of the PEs. Each rank's stack and heap lie in its *slot* of the *arena*, memory that all
//! PEs share at the same addresses.
//!
//! # Sparse exchange
//!
//! Where ranks send to a few others and do not know who will send to them, a
//! [`sparse_exchange`](exchange::SparseExchange::sparse_exchange) takes the place of an all-to-all
//! of sizes and one of data: its cost grows with the messages.
//!
//! # Async ranks
//!
//! Above an `async fn main()` the attribute makes async ranks; they await the twins of the
//! blocking calls ([`point_to_point::AsyncSource`] and so on). Blocking ranks can await too, with
//! [`block_on`]: `vrt`'s timers, or tokio's timers, sockets and files.
//!
//! A future does nothing before it is polled, and goes on only while it is polled: what has to
//! happen at the same time, such as a receive and the send that it answers, is joined. It can be
//! dropped at any time, in a `select!` or by [`timeout`], which tells what that means for each, and it
//! can be forgotten: the runtime uses no memory that it borrows while it waits. That costs a copy of
//! what a collective operation uses, and of a long message that is sent and not received at once;
//! [`send_vec_async`](point_to_point::AsyncDestination::send_vec_async), which has its data, needs
//! none.
//!
//! # What a rank may not do
//!
//! It must not call `fork`, block its thread for long (its neighbours wait with it), or keep
//! messages' buffers alive elsewhere. Sleeping (`thread::sleep`), waiting for the standard library's
//! locks and conditions, and joining a thread do not block the thread: they suspend the rank. A
//! `std::sync::mpsc` channel between ranks of one PE does not wake its receiver, because it takes
//! both for one thread; ranks have messages for that. Statics and thread-locals belong to the PE and
//! are seen by all of its ranks.
//!
//! With `--private-thread-locals` (on x86-64, for programs with symbols) each rank has thread-locals of its own,
//! as a thread has: those of `thread_local!` in the program, in the standard library and in all crates but vrt's
//! and tokio's. They begin anew, move with the rank and are destroyed when its program is over. A rank is a thread
//! then to the standard library and to locks, so that channels between ranks work. A switch between ranks takes
//! some 20 ns longer. What the PE calls for a rank (operations of reductions, serialization of its state) and
//! C code see the PE's.
//!
//! # Safety
//!
//! Safe programs are right wherever their ranks are moved, or a rank stays and says why
//! ([`pinned`], the balancer's note, `--move-pinned error`). A rank that moves takes its stack and its
//! heap along, at the same addresses; before that it is looked at what else it refers to.
//!
//! | a rank holds | to another PE of the node | to another node |
//! |---|---|---|
//! | memory it has allocated itself | moves | moves |
//! | memory that a thread, a task of tokio or a pool has allocated | moves | stays |
//! | memory of another rank | moves, and shares it | stays |
//! | an `Rc` or a reference that a thread-local variable has, too | stays; moves if that is its own | the same |
//! | a borrow of a thread-local variable of the program | stays; moves if that is its own | the same |
//! | memory of its own to which a static refers, or which another rank holds | moves | stays |
//! | memory of its own to which it does not refer any more, while threads run that may | moves | stays |
//! | a static, or what was allocated before there were ranks | moves, and then means that of the other PE | the same |
//! | an open file, a socket, a thread that runs or is not joined, a mapping, a lock, a timer of tokio | stays | stays |
//! | a clone of an `Arc` that `main` has, a span of `tracing`, a handle of its thread (`std::thread::scope`) | stays | stays |
//!
//! Ranks of a program whose `#[global_allocator]` takes memory from elsewhere than `malloc` stay.
//!
//! Messages carry 16 bits of what their elements are. Built-in types, encoded values and all types that one process
//! has made are told apart exactly. Two structures that lie in different processes only, and one of which is
//! received as the other, are taken for each other once in 32,768 pairs; if that gives a `bool` or an enum a value
//! that is none, it is undefined behaviour.
//!
//! A rank that moves by its state drops all its memory; it stays if others refer to that, or threads
//! may, and for what the last row names. `--check-moves` searches everything at every move and says for
//! each rank what it refers to and where: so a program that is being ported shows what it shares.
//!
//! The search is conservative: every word that is an address is a reference. A rank may stay for
//! what an earlier call has left on its stack; it is looked at again when it is to move the next
//! time. Not found, and so to be kept in mind, is:
//!
//! - a reference that is no address, such as a difference of addresses or one with other bits set
//!   in its upper half: `let hidden = !(&raw const *shared as usize);`
//! - what only memory from before the ranks refers to: a table that `main` has made before
//!   [`launch`], to which ranks add references to their own memory and then leave the node;
//! - what only memory refers to that a thread or a task has allocated: a list in a static whose buffer a
//!   thread has reserved, to which ranks add an `Arc` each and then leave the node;
//! - what only a thread refers to, in its registers or on its stack, and of which an earlier call has
//!   left the address on the rank's stack: it seems to be the rank's alone;
//! - a mapping that another rank's pool of threads has made for a rank;
//! - what a rank has taken, or cloned, out of a static or a table that `main` has filled: each PE has
//!   its own, and the rank has that of the PE it is on;
//! - inside a node, a lock or a channel in memory that ranks of two PEs share and that sleeps and wakes
//!   by other means than futexes, such as `std::sync::mpsc`, or that has a queue in each process, as those of
//!   `parking_lot_core` have (`dashmap`): it wakes nobody in the other PE;
//! - a lock that is none of pthreads, the standard library or `parking_lot` in a static of the
//!   program (such as `tokio::sync::Mutex`), and that is held over a move; or whose guard is not on the rank's stack, but in its heap
//!   (as those of async ranks are), where no code of the program names the static: the other PE's is
//!   not locked;
//! - in an optimised program, which has no address of a static on its stack: the guard of a lock of
//!   `parking_lot` in a static where the program has no table of symbols; and that of any lock in a static on
//!   another architecture than x86_64, or where the program's own code does not lock it by its place
//!   (in a shared library, or in a program that is built to lie at a fixed address).
//!
//! While a lock in a static of the program is taken, as the program's code shows on x86_64, no rank
//! leaves its PE: each of them may have its guard. What is compared and exchanged as a lock is, such as an
//! `AtomicU32` inside a longer static, may be taken for one; where a program has no table of symbols, any
//! such variable.
//!
//! *Who is trusted.* PEs of a node are processes of one user that share memory which each of them
//! can write; one that is made to do wrong can do wrong to all. Between nodes what comes is checked
//! to be well-formed only so far as a fault must not become a wrong result. Other users of the
//! machine have no access: the shared memory has no name. A process that a rank's thread has forked
//! shares what the rank's PE and its threads have allocated: what it writes there, its parent sees. It
//! should start a program, or end.

// The derive macro names this crate by its own name, also inside of it.
extern crate self as vrt;

pub mod attribute;
pub mod collective;
pub mod datatype;
pub mod environment;
pub mod exchange;
pub mod ffi;
mod launch;
mod operation;
pub mod point_to_point;
pub mod raw;
pub mod request;
mod statistics;
pub mod topology;
pub mod trace;
pub mod window;

pub use environment::{
    Threading, Universe, initialize, initialize_with_threading, time, time_resolution,
};
pub use launch::{launch, launch_async, run_local};
pub use vrt_core::encoding;
pub use vrt_core::migrate::MoveBy;
/// The configuration of a job.
///
/// With the feature `cli`, a default, it is a `clap::Args`: a program flattens it into its own command
/// line.
///
/// # Examples
///
/// ```
/// let config = vrt::Config::default().with_pes(2).with_ranks(16).with_stack(1 << 20);
/// assert_eq!(config.ranks(), 16);
/// ```
pub use vrt_launch::Config;
pub use vrt_launch::{ConfigError, Core, Net};
pub use vrt_launch::{LaunchError, report_usage_error};
pub use vrt_launch::{LbReport, MovePinned};

pub use operation::{
    Elapsed, Timeout, block_on, sleep, sleep_async, timeout, when_idle, yield_now, yield_now_async,
};
pub use vrt_slot::check::stack_words_found;

pub use statistics::{Statistics, pinned, statistics};
pub use topology::CannotMove;
pub use trace::{Region, region};
pub use vrt_derive::main;

pub use vrt_core::{Count, Rank, Tag};
/// A distance between addresses, in bytes.
pub type Address = isize;
/// The number of an error in MPI. Wrong use panics here.
pub type Error = i32;

/// What can fail without a panic.
#[derive(Debug, thiserror::Error)]
pub enum MpiError {
    /// Processes could not be started.
    #[error("cannot start {1} processes, {0} of them not at all: a job's ranks are fixed")]
    Spawn(Rank, Rank),
    /// A text cannot be given to the system.
    #[error("a text with a zero byte inside")]
    StringNul(#[from] std::ffi::NulError),
}

/// All traits of the face.
pub mod traits {
    pub use crate::{
        attribute::traits::*, collective::traits::*, datatype::traits::*, exchange::SparseExchange,
        point_to_point::traits::*, raw::traits::*, topology::traits::*, window::traits::*,
    };
}
