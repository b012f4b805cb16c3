//! The coroutine in a slot.
//!
//! The coroutine never outlives its slot's memory and owns nothing that must be dropped: an abandoned
//! one is forgotten with the slot (no destructors run, as with `exec`).

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

use vrt_load::thread_pointer;

use crate::arena::{Arena, Body, SlotHeader, SlotId, Suspended};
use crate::heap_word::{self, LoopThread};
use crate::run::outcome::{Resumed, status_of};
use crate::run::{allocator, image_switch, locals, own_thread_locals, thread};
use crate::runtime::Program;
use crate::stack::switch;
use crate::{image, report};

impl Suspended {
    /// Lets the rank run until it suspends or returns.
    ///
    /// # Safety
    /// It is suspended in this slot, the calling PE owns that, and no rank runs on this thread.
    #[inline(always)]
    unsafe fn resume(this: *const Suspended, slot: *mut SlotHeader) -> Resumed {
        // SAFETY: the rank is suspended, says the caller: T1. Only raw pointers are kept, because the rank itself uses
        // these fields while it runs.
        unsafe {
            let (own, other) = ((*this).end_of_loop.as_ptr(), (*this).end.as_ptr());
            match switch::switch(own, other, slot as usize) {
                SUSPENDED => Resumed::Suspended,
                returned => Resumed::Returned(returned as u32 as i32),
            }
        }
    }

    /// Lets the loop of the PE continue.
    ///
    /// # Safety
    /// It is the running rank.
    #[inline(always)]
    unsafe fn suspend(&self, message: usize) {
        // SAFETY: the rank runs, says the caller, so the loop has resumed it: T1.
        unsafe { switch::switch(self.end.as_ptr(), self.end_of_loop.as_ptr(), message) };
    }
}

/// The messages of a rank to the loop: that it is suspended, or that it has returned, with its status in the lower
/// bits.
const SUSPENDED: usize = 0;
const RETURNED: usize = 1 << 32;

impl Body {
    /// Puts a program that has not begun into a prepared slot.
    ///
    /// # Safety
    /// The caller owns the slot, and its header is prepared.
    pub unsafe fn start(slot: *mut SlotHeader, id: SlotId, program: Program) {
        let Some(arena) = Arena::current() else { return };
        let top = arena.layout.top(id);
        // SAFETY: the stack is the caller's, and at least 64 KiB long (`SlotSizes`), above a guard (`install_guard`).
        let end = unsafe { switch::prepare(top, begin) };
        let suspended = Suspended {
            end: Cell::new(end),
            end_of_loop: Cell::new(0),
            program,
            is_async: Cell::new(false),
            first_frame: Cell::new(top),
            inner: RefCell::new(Vec::new()),
            has_inner: Cell::new(false),
        };
        // SAFETY: S2, T2.
        unsafe { (*slot).body.get().write(Body::Suspended(suspended)) };
    }

    /// Runs a rank without an image until it suspends or returns; it may get an image meanwhile.
    ///
    /// # Safety
    /// The calling PE owns the slot, no rank runs on this thread, and the body is suspended.
    #[inline]
    pub unsafe fn resume(slot: *mut SlotHeader) -> Resumed {
        // SAFETY: the promises of `Suspended::resume`, `use_heap` and `image_switch` are those of this caller. Only a raw
        // pointer to the coroutine is kept, because the rank itself reads the fields beside it while it runs.
        unsafe {
            let Some(coroutine) = Body::coroutine(slot) else { return Body::resume_thread(slot) };
            heap_word::use_heap(slot);
            let own = thread_pointer::get();
            let resumed = Suspended::resume(coroutine, slot);
            if (*slot).thread_pointer.get() != 0 {
                image_switch::stop(slot);
                image_switch::leave(slot, own);
            }
            heap_word::use_heap(std::ptr::null_mut());
            resumed
        }
    }

    /// [`resume`](Self::resume) for a rank with an image, after which `next` may name another one to run at once.
    /// Returns the last one that ran, and its result.
    ///
    /// `next` is called with the thread pointer of the rank that has suspended. Thread-locals are not used by name here
    /// at all (see [`thread_pointer`]).
    ///
    /// # Safety
    /// As for `resume`, and the rank [`has_image`](Body::has_image). The same holds for the ranks that `next` names.
    #[inline(never)]
    pub unsafe fn resume_images(
        first: *mut SlotHeader,
        mut next: impl FnMut() -> Option<*mut SlotHeader>,
    ) -> (*mut SlotHeader, Resumed) {
        let mut slot = first;
        // SAFETY: as in `resume`, for each rank that runs; between `enter` and `leave` no thread-local is used by name.
        unsafe {
            let Some(mut coroutine) = Body::coroutine(slot) else {
                return (slot, Body::resume_thread(slot));
            };
            let thread = LoopThread::find();
            image_switch::enter(slot, thread);
            loop {
                let resumed = Suspended::resume(coroutine, slot);
                let pointer = image_switch::stop(slot);
                let mut after = None;
                if resumed == Resumed::Suspended {
                    thread.use_heap(pointer, std::ptr::null_mut());
                    after = ask(&mut next);
                    thread.use_heap(pointer, slot);
                }
                if let Some(after) = after
                    && let Some(of_after) = Body::coroutine(after)
                {
                    image_switch::change(slot, after, thread);
                    (slot, coroutine) = (after, of_after);
                } else {
                    image_switch::leave(slot, thread.pointer);
                    thread.use_heap(thread.pointer, std::ptr::null_mut());
                    return (slot, resumed);
                }
            }
        }
    }

    /// The coroutine of a rank that has one.
    ///
    /// # Safety
    /// The calling PE owns the slot.
    #[inline(always)]
    unsafe fn coroutine(slot: *mut SlotHeader) -> Option<*const Suspended> {
        // SAFETY: S2, T2.
        match unsafe { &*(*slot).body.get() } {
            Body::Suspended(this) => Some(this),
            Body::None | Body::Thread(_) => None,
        }
    }

    /// # Safety
    /// As for `resume`.
    #[cold]
    unsafe fn resume_thread(slot: *mut SlotHeader) -> Resumed {
        // SAFETY: S2, T2; the loop of the rank's PE calls this, and no rank runs.
        unsafe {
            match &*(*slot).body.get() {
                Body::Thread(this) => this.resume(slot),
                _ => Resumed::Returned(0),
            }
        }
    }

    /// Whether the rank has an image.
    ///
    /// # Safety
    /// The calling PE owns the slot.
    #[inline(always)]
    pub unsafe fn has_image(slot: *mut SlotHeader) -> bool {
        // SAFETY: S2.
        unsafe { (*slot).thread_pointer.get() != 0 && Body::coroutine(slot).is_some() }
    }

    /// Whether the rank is a thread of the process.
    ///
    /// # Safety
    /// The calling PE owns the slot.
    pub unsafe fn is_thread(slot: *mut SlotHeader) -> bool {
        // SAFETY: S2, T2.
        matches!(unsafe { &*(*slot).body.get() }, Body::Thread(_))
    }
}

/// Never inlined: it uses the thread-locals of the current thread pointer.
#[inline(never)]
fn ask(next: &mut impl FnMut() -> Option<*mut SlotHeader>) -> Option<*mut SlotHeader> {
    next()
}

/// The first function on a rank's stack.
///
/// # Safety
/// Its PE, which owns the slot with this address, has switched to it.
unsafe extern "C" fn begin(slot: usize) -> ! {
    // SAFETY: S2, T2.
    if let Body::Suspended(this) = unsafe { &*(*(slot as *mut SlotHeader)).body.get() } {
        this.first_frame.set((&raw const slot).addr());
        allocator::look();
        let status = match image::has_own_thread_locals() {
            true => own_thread_locals::run(this.program),
            false => run_program(this.program),
        };
        // SAFETY: it is the rank that runs, and nobody resumes it any more.
        unsafe { this.suspend(RETURNED | status as u32 as usize) };
    }
    std::process::abort()
}

fn run_program(program: Program) -> i32 {
    status_of(catch_unwind(AssertUnwindSafe(|| {
        let status = program();
        // SAFETY: the program has ended.
        unsafe { locals::end() };
        status
    })))
}

/// The body of the rank that runs on this thread.
#[inline(always)]
fn current() -> Option<&'static Suspended> {
    // SAFETY: S3, T2.
    match unsafe { &*heap_word::running()?.body.get() } {
        Body::Suspended(this) => Some(this),
        Body::None | Body::Thread(_) => None,
    }
}

/// Whether the caller is a blocking rank.
#[inline(always)]
pub(crate) fn may_block() -> bool {
    current().map_or_else(thread::is_rank, |this| !this.is_async.get())
}

/// Makes the current rank an async one.
pub fn forbid_blocking() {
    if let Some(this) = current() {
        this.is_async.set(true);
    }
}

/// Records an executor inside the current rank, which is woken when the rank is resumed.
pub(crate) fn remember_inner(waker: &Waker) {
    if let Some(this) = current() {
        this.inner.borrow_mut().push(waker.clone());
        this.has_inner.set(true);
    } else if let Some(this) = thread::current() {
        this.remember_inner(waker);
    }
}

/// Wakes the executors inside the current rank.
#[inline(always)]
pub(crate) fn wake_inner() {
    match current() {
        Some(this) if this.has_inner.get() => wake_all_inner(this),
        Some(_) => {}
        None => {
            if let Some(this) = thread::current() {
                this.wake_inner();
            }
        }
    }
}

#[cold]
fn wake_all_inner(this: &Suspended) {
    this.has_inner.set(false);
    let wakers = std::mem::take(&mut *this.inner.borrow_mut());
    wakers.into_iter().for_each(Waker::wake);
}

/// Switches from the current rank to its PE.
#[inline]
pub(crate) fn suspend() {
    let Some(this) = current() else { return thread::suspend() };
    // SAFETY: S3: the rank that runs.
    unsafe { this.suspend(SUSPENDED) };
    forget_registers();
}

/// Runs `f`, which must not panic, on the stack of the PE's loop, for the current rank; `None` if the loop has no such
/// stack.
///
/// # Safety
/// `f` does not suspend the rank.
pub(crate) unsafe fn on_pe_stack<R>(f: impl FnOnce() -> R) -> Option<R> {
    struct Call<F, R>(Option<F>, Option<R>);
    unsafe extern "C" fn call<F: FnOnce() -> R, R>(call: *mut u8) {
        // SAFETY: `call_on` is given a `Call` below.
        let call = unsafe { &mut *call.cast::<Call<F, R>>() };
        call.1 = call.0.take().map(|f| f());
    }
    fn function<F: FnOnce() -> R, R>(_: &Call<F, R>) -> unsafe extern "C" fn(*mut u8) {
        call::<F, R>
    }
    let this = current()?;
    let mut call = Call(Some(f), None);
    this.end.set(stack_pointer() - switch::SAVED);
    // SAFETY: T1: the loop waits, and so it does until `f` has returned, which does not suspend the rank.
    unsafe { switch::call_on(this.end_of_loop.get(), function(&call), (&raw mut call).cast()) };
    call.1
}

/// The stack pointer. (The address of a local could be anywhere in the frame that this is inlined into, and a frame
/// that contains futures is long.)
#[inline(always)]
fn stack_pointer() -> usize {
    let address: usize;
    // SAFETY: reads a register.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        std::arch::asm!("mov {}, rsp", out(reg) address, options(nomem, nostack, preserves_flags));
        #[cfg(target_arch = "aarch64")]
        std::arch::asm!("mov {}, sp", out(reg) address, options(nomem, nostack, preserves_flags));
    }
    address
}

/// Clears the callee-saved registers, which contain the PE's values after a switch: the next function that saves them
/// would put pointers into the PE on the rank's stack.
#[inline(always)]
fn forget_registers() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the compiler knows that these registers are changed.
    unsafe {
        std::arch::asm!(
            "xor r12d, r12d", "xor r13d, r13d", "xor r14d, r14d", "xor r15d, r15d",
            out("r12") _, out("r13") _, out("r14") _, out("r15") _,
            options(nomem, nostack)
        );
    }
}

/// A rank that waits while it unwinds would leave `panicking()` set for its neighbours. One that is a thread has no
/// neighbours.
#[cold]
pub(crate) fn die_suspending_in_panic() {
    if thread::is_rank() {
        return;
    }
    let rank = heap_word::current_rank().unwrap_or_default();
    report::say(format_args!(
        "rank {rank} made a blocking call while it was panicking (in a Drop); the panic's message \
         is above"
    ));
    heap_word::runtime_heap(|| report::end_job(report::STATUS_PANIC))
}
