//! A program whose global allocator does not use `malloc`: its ranks cannot move, and say so.

use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use vrt::traits::*;

/// Hands out the bytes of a static, one after the other, and takes none back.
struct Bump;

const BYTES: usize = 256 << 20;

#[repr(align(4096))]
struct Memory(std::cell::UnsafeCell<[u8; BYTES]>);

// SAFETY: each byte is handed out once.
unsafe impl Sync for Memory {}

static MEMORY: Memory = Memory(std::cell::UnsafeCell::new([0; BYTES]));
static USED: AtomicUsize = AtomicUsize::new(0);

// SAFETY: blocks are disjoint parts of the static, aligned as asked for; null when it is used up.
unsafe impl GlobalAlloc for Bump {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let room = layout.size() + layout.align();
        let from = USED.fetch_add(room, Ordering::Relaxed);
        if from + room > BYTES {
            return std::ptr::null_mut();
        }
        let at = MEMORY.0.get().cast::<u8>().wrapping_add(from);
        at.wrapping_add(at.align_offset(layout.align()))
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

#[global_allocator]
static ALLOCATOR: Bump = Bump;

#[vrt::main]
fn main() {
    let world = vrt::initialize().map(|universe| universe.world());
    let Some(world) = world else { return };
    let mine: Vec<u64> = (0..1000).map(|n| n * world.rank() as u64).collect();
    let home = vrt::statistics().pe;
    let began = Instant::now();
    let mut go_on = true;
    while go_on {
        for _ in 0..20 {
            world.barrier();
        }
        go_on = began.elapsed() < Duration::from_millis(300);
        world.process_at_rank(0).broadcast_into(&mut go_on);
    }
    assert_eq!(vrt::statistics().pe, home);
    let right = mine.iter().enumerate().all(|(n, value)| *value == n as u64 * world.rank() as u64);
    assert!(right, "rank {} has lost what it had", world.rank());
    if world.rank() == 0 {
        println!("{}, ok", vrt::pinned().unwrap_or("not pinned"));
    }
}
