//! A rank's memory, and the mechanism that suspends and resumes it; independent of all layers above.
//!
//! The arena is one address range, mapped at the same address in every PE of a node, in which every rank has a *slot*
//! with its stack and its heap.
//!
//! Invariants, which SAFETY comments of this crate name by number:
//! - S1. The arena is reserved before PEs are forked; its base and layout never change in them ([`Arena::reserve`]). An
//!   address in it means the same in every PE. Headers of slots are valid even when zeroed. A process that is not a PE
//!   may release the arena when it is empty ([`Arena::release`]), and reserve another one: for its next job, or for more
//!   ranks of its own (`run_local`).
//! - S2. A slot is touched only by the PE that owns it ([`SlotHeader::owner`], [`hooks::own`]), on the PE's rank thread
//!   ([`hooks::set_pe_of_thread`]), with three exceptions: another PE frees a block through the slot's remote-free list;
//!   the receiver of a large message reads the sender's buffer while the sender waits; the crash handler reads anything.
//!   Of a header others read and change atomics only.
//! - S3. The heap in use ([`hooks::heap_in_use`]) is null or the slot of the rank that runs on this thread, which the
//!   thread's PE owns: [`hooks::use_heap`].
//! - S4. libc's function of a name, as [`interpose::Real`] finds it, has C's type; whoever calls the function in front of
//!   it keeps C's contract.
//! - S5. The kernel gives a handler a description of the signal, and the registers of the code that it has interrupted.
//!
//! Modules have lists of their own, with other letters: H (`heap`), T (`stack`), M (`hooks`), I (`image_switch`), P
//! (`signals`), R (`search`). The kernel provides pages lazily; a slot's are returned when its rank has ended.
//!
//! The layers are in `docs/ARCHITECTURE.md`; each folder says what is in its files.
//!
//! | folder or file | subject |
//! |---|---|
//! | `heap` | dlmalloc over a slot's two ranges |
//! | `arena` | the positions of slots, their headers, how the arena is mapped |
//! | `heap_word`, `owner` | which rank the calling thread runs, or works for |
//! | `held`, `register` | what a rank holds outside its slot: numbers in its header, and an entry for each thing |
//! | `outside` | the heap for allocations outside of ranks: threads, tokio |
//! | `stack` | switching stacks; what is on that of a suspended rank |
//! | `image` | the program that a rank runs, if each has its own copy |
//! | `posix` | signals, timers, threads, directories of ranks that run images; how functions stand in front of libc's |
//! | `run` | ranks: how they begin, suspend, go on and end |
//! | `external` | external resources: what a rank holds outside its slot, and so cannot move with it |
//! | `calls` | the functions that stand in front of libc's |
//! | `live` | the parts of a slot that must move to another node |
//! | `search` | references of ranks and statics that prevent a move |
//! | `forked` | whether this process is a copy of one with ranks |
//! | `report` | printing a line, and ending the job, from anywhere |
//! | `sys` | calls of the system as safe functions |

#![allow(rustdoc::private_intra_doc_links, reason = "its readers work on it, and see all of it")]

#[cfg(not(all(
    target_os = "linux",
    target_env = "gnu",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
compile_error!(
    "vrt needs Linux with glibc, on x86_64 or aarch64: it defines functions in front of glibc's, shares \
     memory between processes as Linux does, and knows the registers of these processors"
);

mod arena;
mod calls;
pub mod children;
pub mod external;
mod floating_point;
mod forked;
pub mod heap;
mod heap_word;
mod held;
pub mod image;
pub mod live;
pub mod outside;
mod owner;
mod pages;
mod posix;
mod register;
pub mod report;
mod run;
mod runtime;
pub mod search;
mod stack;
pub mod sys;
mod wipe;

pub use arena::{
    Arena, ArenaError, Layout, LayoutError, Place, SlotHeader, SlotId, SlotSizes,
    TOUCHED_BY_SWITCH, can_have_huge_pages, make_long,
};
pub use calls::{answers, exit_guard, for_images, for_own_libc, fork, hooks, in_front};
pub use external::foreign;
pub use held::Held;
pub use pages::{HUGE_PAGE, has_huge_pages, machine_memory, want_huge_pages};
pub use posix::libc_threads::of_libc_threads;
pub use posix::{image_thread, interpose, signals};
pub use run::{allocator, gone_locals, image_switch, locals, own_thread_locals, rank, thread};
pub use stack::check;

/// Prefetches a cache line. Any address is allowed.
#[inline(always)]
pub fn fetch(at: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the instruction reads nothing and does not fault, whatever the address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(at as *const i8);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}
