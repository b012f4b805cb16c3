//! A rank's memory, and the mechanism that suspends and resumes it; independent of all layers above.
//!
//! The arena is one address range, mapped at the same address in every PE of a node, in which every rank has a *slot*
//! with its stack and its heap.
//!
//! Invariants:
//! - The arena is reserved before PEs are forked; its base and layout never change in them. An address in it means the
//!   same in every PE. A process that is not a PE may release it when it is empty, and reserve another one: for its
//!   next job, or for more ranks of its own (`run_local`).
//! - A slot is touched only by the PE that owns it ([`SlotHeader::owner`]), with three exceptions:
//!   another PE frees a block through the slot's remote-free list; the receiver of a large message
//!   reads the sender's buffer while the sender waits; the crash handler reads anything.
//! - The kernel provides pages lazily. A slot's pages are returned when its rank has ended.
//!
//! | file | subject |
//! |---|---|
//! | `backing` | the file behind the arena, with 2 MiB pages where possible |
//! | `layout` | the positions of slots, stacks and heaps, and the reasons |
//! | `slot` | the header of a slot: heap, owner, suspended rank |
//! | `live` | the parts of a slot that must move to another node |
//! | `heap` | dlmalloc over a slot's two ranges |
//! | `outside` | the heap for allocations outside of ranks: threads, tokio |
//! | `hooks` | `malloc` and its family: selection of the heap |
//! | `calls` | the table of the libc calls that are interposed in front of libc's |
//! | `interpose` | the mechanism for that, and `exit` |
//! | `signals`, `timers` | signals and timers of ranks that run images |
//! | `forked` | whether this process is a copy of one with ranks |
//! | `held` | what a rank holds outside its slot, as numbers in its header |
//! | `external` | external resources: what a rank holds outside its slot, and so cannot move with it |
//! | `answers` | results of libc in memory of the process: ranks get copies |
//! | `search` | references of ranks and statics that prevent a move |
//! | `exit_guard` | lets each rank of a PE call `std::process::exit` |
//! | `rank` | a rank: its life, and the services of the layer above for it |
//! | `coroutine` | the suspended program in a slot |
//! | `image` | the program that a rank runs, if each has its own copy |
//! | `thread` | a rank that is a thread of the process |
//! | `locals` | the runtime's data of a rank, in the rank's heap |
//! | `waker` | wakers of ranks |
//! | `check` | the checking mode for stacks |
//! | `report` | printing a line, and ending the job, from anywhere |

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

mod accounts;
pub mod allocator;
pub mod answers;
mod arena;
mod backing;
mod calls;
pub mod check;
pub mod children;
mod coroutine;
pub mod exit_guard;
pub mod external;
mod floating_point;
mod folders;
pub mod foreign;
pub mod fork;
mod forked;
pub mod gone_locals;
pub mod heap;
mod heap_word;
mod held;
pub mod hooks;
pub mod image;
pub mod image_thread;
pub mod interpose;
mod layout;
mod libc_threads;
pub mod live;
pub mod locals;
pub mod outside;
mod own_libc;
pub mod own_thread_locals;
mod pages;
mod prepare;
pub mod rank;
pub mod report;
mod resident;
mod runtime;
pub mod search;
pub mod signals;
mod slot;
mod switch;
pub mod thread;
mod timers;
mod waker;
mod wipe;

pub use arena::{Arena, ArenaError, Place, can_have_huge_pages, make_long};
pub use calls::{for_images, in_front};
pub use held::Held;
pub use layout::{Layout, LayoutError, SlotId, SlotSizes};
pub use libc_threads::of_libc_threads;
pub use own_libc::for_own_libc;
pub use pages::{HUGE_PAGE, has_huge_pages, machine_memory, want_huge_pages};
pub use slot::{SlotHeader, TOUCHED_BY_SWITCH};

/// Prefetches a cache line. Any address is allowed.
#[inline(always)]
pub fn fetch(at: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads nothing and cannot fault.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(at as *const i8);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}
