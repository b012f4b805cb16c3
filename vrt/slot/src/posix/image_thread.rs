//! Threads that ranks with images start: each gets its own thread block, in which the program's code finds its
//! thread-locals, and leaves it when it ends.
//!
//! ```text
//! pthread_create, the process's --> run_thread: block made, thread pointer set --> the program's function
//!     process's thread pointer again, block freed <-- destructors: thread-locals, then keys <--'
//! ```
//!
//! The thread's identity (`pthread_self`) is that of the process's block, by which others know it. Its cancellation
//! state is in its own block, as is its result, until it ends.

use std::cell::{Cell, RefCell};
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use vrt_load::{Plan, Specific, thread_pointer};

use crate::arena::{Arena, SlotId};
use crate::heap_word::{running, runtime_heap};
use crate::posix::errno::of_process;
use crate::posix::interpose::{c_name, real};
use crate::posix::signals::tables::{ThreadSignals, exchange_of_thread};
use crate::posix::signals::threads::thread_ends;
use crate::{image, sys};

/// A function that is called when a thread ends, with its argument.
type Destructor = (unsafe extern "C" fn(*mut c_void), *mut c_void);

thread_local! {
    /// The memory of this thread's block.
    static BLOCK: Cell<*mut c_void> = const { Cell::new(std::ptr::null_mut()) };
    /// Destructors of the program's thread-locals.
    static AT_END: RefCell<Vec<Destructor>> = const { RefCell::new(Vec::new()) };
}

/// Registers a function to be called when this thread ends; returns false if no rank has started it.
///
/// # Safety
/// The function may be called then, with this argument.
pub unsafe fn at_end(function: unsafe extern "C" fn(*mut c_void), argument: *mut c_void) -> bool {
    let is_ours = image::base_of_thread().is_some();
    if is_ours {
        runtime_heap(|| AT_END.with_borrow_mut(|all| all.push((function, argument))));
    }
    is_ours
}

/// The number of the call by which a thread waits for a word.
const FUTEX: &str = if libc::SYS_futex == 202 { "202" } else { "98" };
const _: () = assert!(libc::SYS_futex == 202 || libc::SYS_futex == 98);

/// The threads that run in images: their identities and their thread pointers.
static THREADS: Mutex<Vec<(libc::pthread_t, usize)>> = Mutex::new(Vec::new());

fn threads() -> MutexGuard<'static, Vec<(libc::pthread_t, usize)>> {
    THREADS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes the stack of the calling thread, of the process, executable.
fn allow_execution_of_stack() {
    if let Some(stack) = sys::stack_of_thread() {
        // Where it is refused, a function that needs it says so by a fault.
        // SAFETY: the stack on which this runs.
        let _ = unsafe { image::allow_execution(stack.start, stack.end) };
    }
}

/// Number of threads that ranks have started, in images or not, and that have not ended.
static NUMBER: AtomicUsize = AtomicUsize::new(0);

/// A thread that a rank starts, from the moment of the call.
pub(crate) struct CountedThread(());

impl CountedThread {
    pub(crate) fn new() -> CountedThread {
        NUMBER.fetch_add(1, Ordering::Relaxed);
        CountedThread(())
    }
}

impl Drop for CountedThread {
    fn drop(&mut self) {
        NUMBER.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Whether this process has threads that ranks with images have started.
#[inline]
pub fn are_there() -> bool {
    NUMBER.load(Ordering::Relaxed) > 0 && image::program().is_some()
}

/// Whether one of them does something, or will by itself: it does not wait, without a time limit, for another thread to
/// wake it. If the system does not report it, none does.
pub fn act() -> bool {
    let own = sys::gettid().to_string();
    runtime_heap(|| {
        let Ok(threads) = std::fs::read_dir("/proc/self/task") else { return false };
        threads.flatten().filter(|thread| thread.file_name() != *own).any(|thread| {
            let read = |file: &str| std::fs::read_to_string(thread.path().join(file));
            // The runtime's own look at the clock all the time.
            let is_of_rank = read("comm").is_ok_and(|name| !name.starts_with("vrt-"));
            is_of_rank && read("syscall").is_ok_and(|call| !is_endless_wait(&call))
        })
    })
}

/// Whether a thread waits for a futex without a time limit, according to the system's description of its call.
fn is_endless_wait(call: &str) -> bool {
    let mut words = call.split_whitespace();
    let is_futex = words.next() == Some(FUTEX);
    // Behind the address, what is to be done, and the value.
    is_futex && words.nth(3) == Some("0x0")
}

/// A thread in an image.
pub(crate) struct InImage {
    plan: &'static Plan,
    own: usize,
    pointer: usize,
    base: usize,
}

impl InImage {
    /// Lets the calling thread, which a rank has started, run in the image of that rank's slot, if it has one.
    ///
    /// # Safety
    /// The rank of the slot has started this thread, for which `thread_is_made` has made these signals.
    #[inline(never)]
    pub(crate) unsafe fn enter(slot: u32, signals: *mut ThreadSignals) -> Option<InImage> {
        let plan = image::program()?;
        let base = image::base(SlotId(slot))?;
        let (own, len) = (thread_pointer::get(), plan.thread_block_size());
        if plan.runs_code_on_stack() {
            runtime_heap(allow_execution_of_stack);
        }
        // SAFETY: `malloc` takes any length.
        let block = runtime_heap(|| unsafe { libc::malloc(len) });
        if block.is_null() {
            return None;
        }
        BLOCK.set(block);
        // The block has copies of these.
        image::set_of_thread(base, own);
        // SAFETY: the block is new and long enough; `image_switch::begin` has filled the image of the rank that has
        // started this thread. No reference to a thread-local is kept here.
        let pointer = unsafe {
            // From then on it is cancelled there.
            let mut threads = threads();
            let pointer = plan.fill_thread_block(base, block as usize, own);
            runtime_heap(|| threads.push((own as libc::pthread_t, pointer)));
            drop(threads);
            thread_pointer::set(pointer);
            pointer
        };
        // SAFETY: these signals are this thread's, says the caller.
        unsafe { exchange_of_thread(signals) };
        if let Some(offset) = plan.symbol_in("libc.so", "__ctype_init") {
            // SAFETY: libc's function of this name has this type, and each thread calls it when it begins.
            unsafe {
                let function = (base + offset) as *const ();
                std::mem::transmute::<*const (), unsafe extern "C" fn()>(function)();
            }
        }
        Some(InImage { plan, own, pointer, base })
    }

    /// Runs the destructors at the end of a thread of the image.
    #[inline(never)]
    fn call_destructors(&self) {
        while let Some((function, argument)) = AT_END.with_borrow_mut(Vec::pop) {
            // SAFETY: it may be called now, says the caller of `at_end`.
            unsafe { function(argument) };
        }
        // SAFETY: this thread's block; its program has returned.
        unsafe { call_key_destructors(self.plan, self.base, self.pointer) };
        // SAFETY: what `enter` has put there, which nobody uses after this thread.
        unsafe { thread_ends(exchange_of_thread(std::ptr::null_mut())) };
        runtime_heap(|| threads().retain(|(_, pointer)| *pointer != self.pointer));
    }

    /// The thread has its own thread pointer again.
    #[inline(never)]
    fn has_left(&self) {
        // SAFETY: `enter` has read `own` from the thread pointer, and filled the block of `pointer`, which is there still.
        unsafe { self.plan.copy_thread_result(self.own, self.pointer) };
        image::set_of_thread(0, self.own);
    }
}

/// The running rank's own thread ends: calls the destructors of keys with its values.
///
/// # Safety
/// The program does not use the values any more on this thread.
pub unsafe fn end_specific_of_rank() {
    if let (Some(plan), Some(base)) = (image::program(), image::base_of_running()) {
        // SAFETY: the rank's own block; the rest says the caller.
        unsafe { call_key_destructors(plan, base, plan.thread_pointer(base)) };
    }
}

/// Calls the destructors of keys with the values in the block of a thread pointer.
///
/// # Safety
/// The block is the calling thread's, in the image at `base`, and its program does not use the values any more.
unsafe fn call_key_destructors(plan: &Plan, base: usize, pointer: usize) {
    /// The number of rounds that POSIX requires, as destructors may set values.
    const ROUNDS: usize = 4;
    /// Libc's keys: an array of these.
    #[repr(C)]
    struct Key {
        sequence: usize,
        destructor: Option<unsafe extern "C" fn(usize)>,
    }
    let Some(keys) = plan.symbol_in("libc.so", "__pthread_keys") else { return };
    for _ in 0..ROUNDS {
        // SAFETY: the calling thread's block, says the caller.
        let taken = unsafe { plan.take_specific(pointer) };
        if taken.is_empty() {
            return;
        }
        for (key, Specific { sequence, value }) in taken {
            // SAFETY: libc's array is as long as numbers of keys go; with this sequence number the destructor is the one
            // that the program has given for the value.
            unsafe {
                let key = ((base + keys) as *const Key).add(key);
                if let (true, Some(destructor)) = ((*key).sequence == sequence, (*key).destructor) {
                    destructor(value);
                }
            }
        }
    }
}

impl Drop for InImage {
    fn drop(&mut self) {
        self.call_destructors();
        // SAFETY: `enter` has read it on this thread; here no thread-local is used, and the functions are not inlined.
        unsafe { thread_pointer::set(self.own) };
        self.has_left();
    }
}

/// Frees the memory of this thread's block, at its very end: `pthread_exit` unwinds using its contents.
pub(crate) fn release() {
    let block = BLOCK.replace(std::ptr::null_mut());
    // SAFETY: null, or what `enter` has allocated; `has_left` came before.
    runtime_heap(|| unsafe { libc::free(block) });
}

/// POSIX `pthread_self`: the identity by which others know a thread.
pub extern "C" fn pthread_self() -> libc::pthread_t {
    match image::identity_of_thread() {
        // libc's identity of a thread is its thread pointer.
        0 => thread_pointer::get() as libc::pthread_t,
        own => own as libc::pthread_t,
    }
}

/// POSIX `pthread_cancel`: the block in which the thread runs holds the cancellation state.
///
/// # Safety
/// As in C.
pub unsafe extern "C" fn pthread_cancel(thread: libc::pthread_t) -> c_int {
    let real = real!(c"pthread_cancel", unsafe extern "C" fn(libc::pthread_t) -> c_int);
    // The thread does not give its block back meanwhile.
    let threads = threads();
    let known = threads.iter().find(|(own, _)| *own == thread);
    let thread = known.map_or(thread, |(_, pointer)| *pointer as libc::pthread_t);
    // SAFETY: S4; a thread block looks like a thread of libc's, and `threads` keeps it.
    unsafe { real(thread) }
}

/// `pthread_getattr_np`, which knows the stack of a rank.
///
/// # Safety
/// As in C.
pub unsafe extern "C" fn pthread_getattr_np(
    thread: libc::pthread_t,
    attributes: *mut libc::pthread_attr_t,
) -> c_int {
    type Attributes = *mut libc::pthread_attr_t;
    type Get = unsafe extern "C" fn(libc::pthread_t, Attributes) -> c_int;
    type Init = unsafe extern "C" fn(Attributes) -> c_int;
    type SetStack = unsafe extern "C" fn(Attributes, *mut c_void, libc::size_t) -> c_int;
    // SAFETY: S4.
    unsafe {
        match (Arena::current(), running()) {
            (Some(arena), Some(slot)) if thread == pthread_self() => {
                let id = slot.id();
                let (start, end) = (arena.layout.stack_limit(id), arena.layout.top(id));
                let init = real!(c"pthread_attr_init", Init)(attributes);
                let set = real!(c"pthread_attr_setstack", SetStack);
                if init != 0 { init } else { set(attributes, start as *mut c_void, end - start) }
            }
            _ => real!(c"pthread_getattr_np", Get)(thread, attributes),
        }
    }
}

/// Functions that query or set the kernel's data about a thread. Libc uses the number in the thread's block; a rank's
/// number belongs to the rank, moves with it and is not that of any kernel thread. So for a thread that refers to
/// itself the kernel is given the calling thread, and the results for a rank are those of its PE.
macro_rules! of_the_caller {
    ($(fn $name:ident($($argument:ident: $type:ty),*) = $ask:expr;)*) => {
        $(
            unsafe extern "C" fn $name(thread: libc::pthread_t, $($argument: $type),*) -> c_int {
                type Function = unsafe extern "C" fn(libc::pthread_t, $($type),*) -> c_int;
                // SAFETY: S4, also for what is asked instead, which takes the same places.
                unsafe {
                    if thread == pthread_self() {
                        return status_of($ask);
                    }
                    real!(c_name(concat!(stringify!($name), "\0")), Function)(thread, $($argument),*)
                }
            }
        )*

        /// The function of this name among these.
        fn of_the_caller(name: &str) -> Option<*const ()> {
            match name {
                $(stringify!($name) => Some($name as *const ()),)*
                _ => None,
            }
        }
    };
}

of_the_caller! {
    fn pthread_getaffinity_np(size: libc::size_t, set: *mut libc::cpu_set_t)
        = libc::sched_getaffinity(CALLER, size, set);
    fn pthread_setaffinity_np(size: libc::size_t, set: *const libc::cpu_set_t)
        = libc::sched_setaffinity(CALLER, size, set);
    fn pthread_getschedparam(policy: *mut c_int, parameters: *mut libc::sched_param)
        = match libc::sched_getscheduler(CALLER) {
            -1 => -1,
            now => {
                policy.write(now);
                libc::sched_getparam(CALLER, parameters)
            }
        };
    fn pthread_setschedparam(policy: c_int, parameters: *const libc::sched_param)
        = libc::sched_setscheduler(CALLER, policy, parameters);
    fn pthread_getcpuclockid(clock: *mut libc::clockid_t) = {
        clock.write(libc::CLOCK_THREAD_CPUTIME_ID);
        0
    };
}

/// The calling thread, for the kernel.
const CALLER: libc::pid_t = 0;

/// The return value of functions on threads: the error number.
fn status_of(result: c_int) -> c_int {
    match result {
        -1 => of_process().get(),
        _ => 0,
    }
}

/// The replacement for libc's function of this name.
pub(crate) fn provided(name: &str) -> Option<*const ()> {
    Some(match name {
        "pthread_self" | "thrd_current" => pthread_self as *const (),
        "pthread_cancel" => pthread_cancel as *const (),
        "pthread_getattr_np" => pthread_getattr_np as *const (),
        _ => return of_the_caller(name),
    })
}
