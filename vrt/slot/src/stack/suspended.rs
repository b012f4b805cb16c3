//! Where a suspended rank is on its stack.

use std::ops::Range;

use super::switch;
use crate::arena::resident::resident;
use crate::arena::{Arena, Body, SlotHeader};
use crate::pages::PAGE;

/// The live part of a suspended rank's stack, without the frames of the switch; of a rank that runs, what it was when
/// that was suspended.
///
/// # Safety
/// The calling PE owns the slot.
pub unsafe fn live_stack(slot: *mut SlotHeader) -> Range<usize> {
    // SAFETY: S2, T2.
    let (body, id) = unsafe { (&*(*slot).body.get(), (*slot).id()) };
    let Body::Suspended(this) = body else { return 0..0 };
    let (pointer, end) = (this.end.get() + switch::SAVED, this.first_frame.get() & !15);
    let own = Arena::current().map(|arena| arena.layout.stack_limit(id)..end + 16);
    match own {
        // It runs on a stack of its program's (`swapcontext`), which lies in its heap; what its own
        // stack still has is not known, but for pages that it never used.
        Some(own) if !own.contains(&pointer) => {
            let mut used = Vec::new();
            resident(own.start.next_multiple_of(PAGE)..own.end & !(PAGE - 1), &mut used);
            used.first().map_or(own.end & !(PAGE - 1), |first| first.start)..end
        }
        _ => pointer..end,
    }
}

/// The real end of a suspended rank's stack, including what the switch has saved there; and the additional memory
/// that contains addresses of the rank.
///
/// # Safety
/// The calling PE owns the slot, and its rank is suspended or calls this.
pub(crate) unsafe fn saved(slot: *mut SlotHeader) -> (usize, Range<usize>) {
    // SAFETY: S2, T2.
    let Body::Suspended(this) = (unsafe { &*(*slot).body.get() }) else { return (0, 0..0) };
    let inner = this.inner.as_ptr() as usize;
    (this.end.get(), inner..inner + size_of_val(&this.inner))
}

/// Makes a suspended rank run a function first when it is resumed, on its own stack.
///
/// # Safety
/// The calling PE owns the slot and is about to resume its rank.
pub(crate) unsafe fn run_first(slot: &SlotHeader, function: extern "C-unwind" fn()) {
    // SAFETY: S2, T2, and T1: the rank is suspended, as it is about to be resumed.
    unsafe {
        if let Body::Suspended(this) = &*slot.body.get() {
            this.end.set(switch::run_first(this.end.get(), function));
        }
    }
}

/// Forgets a rank's stack without running destructors. Anything the rank holds outside its slot is not handled
/// here: that is the task of `external::abandon`.
///
/// # Safety
/// The calling PE owns the slot and will not resume the rank.
pub(crate) unsafe fn forget_stack(slot: *mut SlotHeader) {
    // SAFETY: S2; the rank is not resumed any more, says the caller: T2.
    unsafe { (*slot).body.get().write(Body::None) };
}
