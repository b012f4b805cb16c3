//! Waiting for a word of memory to change, in a rank.
//!
//! The kernel's futex lets a thread sleep until another one wakes it at an address. A rank has no thread of its own, so
//! waiting ranks are entered in a table of the process, by address, and suspended. A waker of an address, rank or
//! thread, first finds the ranks in the table and has the kernel wake the remaining waiters. Only process-private
//! futexes are handled here; others are left to the kernel.
//!
//! **No wake-up is lost.** The usual argument for futexes applies:
//!
//! ```text
//! waiter                                   waker
//!   WAITING += 1                             change the word
//!   fence                                    fence
//!   lock the table                           WAITING == 0 ? nobody to wake
//!     word == expected ? enter : EAGAIN      lock the table, take those at the address out, unlock
//!   unlock; suspend until taken out          have their PEs resume them
//! ```
//!
//! Because of the fences, either the waker sees the waiter's count or the waiter sees the new word; the table's lock
//! orders the rest.
//!
//! **Other PEs of the node.** Ranks may carry a lock of theirs, in the arena, to several PEs. Each of these has its own
//! table, so a rank that waits for a word of the arena is counted in the block of its PE before it reads the word; a
//! waker of the word signals the other PEs that have such a count ([`pe::wake_elsewhere`]). In that case the kernel,
//! too, is asked for waiters of all processes.
//!
//! **When a rank is suspended.** The waker can be a thread or a rank. Code that is woken by threads is faster, and
//! safer, if the thread really waits: it may rely on no other code using its thread-locals meanwhile (rayon gives a
//! thread outside its pool a single latch, and takes a worker's lock between setting it up and waiting for it). So, if
//! there are threads beside the PE's, the rank first waits in the kernel, for [`PATIENCE`], extended up to
//! [`MORE_PATIENCE`] as long as one of them runs or is runnable, such as one that was preempted while it held a lock;
//! then the rank is suspended. At words where a rank was seen to wake a rank, it is suspended at once.
//!
//! **`park`.** All ranks of a PE share one `Thread`, and so one word for `park` and `unpark`: 0 empty, 1 notified, -1
//! parked. An `unpark` is therefore assumed to be for every parked rank; each is resumed with the word set to 1, as if
//! it had been meant for it alone, and checks its own condition, as any caller of `park` must. A rank that leaves sets
//! the word to 0 although others are still parked, and then an `unpark` wakes nothing; so an idle PE corrects the word
//! (`before_sleep`), and parked ranks poll by themselves, less and less often.

use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::ffi::{c_int, c_long};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering, fence};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustc_hash::FxBuildHasher;

use crate::blocking::suspend::{may_suspend, suspend_until};
use crate::blocking::system::{errno, nanoseconds, real_syscall};
use crate::blocking::{parking, states};
use crate::pe::{self, Locks};
use vrt_slot::Arena;
use vrt_slot::foreign::{has_foreign_threads, is_thread_local, others_run};
use vrt_slot::hooks;
use vrt_slot::search;
use vrt_slot::signals;

/// How long a rank waits in the kernel for a thread, in nanoseconds.
const PATIENCE: u64 = 1_000_000;
/// How long it does so while one of them runs, in nanoseconds: many time slices of a busy machine.
const MORE_PATIENCE: u64 = 200_000_000;
/// When a parked rank looks again, in nanoseconds; each time twice as late, to the limit.
const FIRST_LOOK: u64 = 10_000_000;
const LAST_LOOK: u64 = 1_000_000_000;
/// How often it does so where no thread could have woken it.
const LOOKS_ALONE: u32 = 3;
/// Words remembered at which ranks wake each other.
const WORDS: usize = 256;

/// The values of the word of `park`.
const NOTIFIED: u32 = 1;
const PARKED: u32 = u32::MAX;
const EMPTY: u32 = 0;

/// A rank that waits.
#[derive(Clone, Copy, Debug)]
struct Waiter {
    ticket: u64,
    bits: u32,
    pe: u32,
    rank: u32,
    /// It is woken with all others at its address, whichever the wake-up is for.
    parked: bool,
}

struct WaitTable {
    waiters: HashMap<usize, VecDeque<Waiter>, FxBuildHasher>,
    tickets: u64,
    /// The most recent words at which ranks have woken ranks.
    between_ranks: VecDeque<usize>,
}

static TABLE: Mutex<WaitTable> = Mutex::new(WaitTable {
    waiters: HashMap::with_hasher(FxBuildHasher),
    tickets: 0,
    between_ranks: VecDeque::new(),
});

/// Ranks in the table, or about to be.
static WAITING: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The word of this PE's `park`, or 0.
    static PARKER: Cell<usize> = const { Cell::new(0) };
    /// The next futex that this thread waits for is that word.
    static LEARNING: Cell<bool> = const { Cell::new(false) };
}

/// Runs `f` on the table, on the process's heap.
fn table<R>(f: impl FnOnce(&mut WaitTable) -> R) -> R {
    hooks::runtime_heap(|| f(&mut TABLE.lock().unwrap_or_else(PoisonError::into_inner)))
}

/// Whether a word is of the table's own lock, which is the kernel's alone.
fn is_of_table(address: usize) -> bool {
    let start = (&raw const TABLE) as usize;
    (start..start + size_of_val(&TABLE)).contains(&address)
}

/// What the kernel is asked: the arguments of the system call, as [`futex`] was given them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    pub(super) address: usize,
    pub(super) operation: c_int,
    pub(super) value: u32,
    /// A time, or a second number.
    pub(super) time: usize,
    pub(super) second: usize,
    pub(super) third: u32,
}

impl Call {
    /// Asks the kernel. Words in the arena may be waited for in another PE of the node, to which a
    /// rank has taken them.
    fn kernel(self) -> c_long {
        let private = if Arena::contains(self.address) { libc::FUTEX_PRIVATE_FLAG } else { 0 };
        let arguments = [
            self.address,
            (self.operation & !private) as usize,
            self.value as usize,
            self.time,
            self.second,
            self.third as usize,
        ];
        // SAFETY: addresses that the caller of `futex` has given, or of a time on this stack.
        unsafe { real_syscall(libc::SYS_futex, arguments) }
    }

    fn is_private(self) -> bool {
        self.operation & libc::FUTEX_PRIVATE_FLAG != 0 && !is_of_table(self.address)
    }

    /// Until when a wait lasts, by [`pe::monotonic`]; `None`: for ever.
    fn deadline(self) -> Option<u64> {
        if self.time == 0 {
            return None;
        }
        // SAFETY: the caller of `futex` gives a time for a wait, or null.
        let time = unsafe { *(self.time as *const libc::timespec) };
        let now = pe::monotonic();
        let left = if self.operation & libc::FUTEX_CMD_MASK == libc::FUTEX_WAIT {
            nanoseconds(&time)
        } else if self.operation & libc::FUTEX_CLOCK_REALTIME != 0 {
            nanoseconds(&time).saturating_sub(clock(libc::CLOCK_REALTIME))
        } else {
            nanoseconds(&time).saturating_sub(now)
        };
        Some(now.saturating_add(left))
    }
}

/// What a clock says, in nanoseconds; 0 where there is no such clock.
pub(super) fn clock(which: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable.
    unsafe { libc::clock_gettime(which, &mut time) };
    nanoseconds(&time)
}

fn fail(error: c_int) -> c_long {
    signals::errno_of_process().set(error);
    -1
}

/// The system call `futex`.
///
/// # Safety
/// As for the kernel's; the word is aligned, changed atomically, and stays while somebody waits for it.
pub(super) unsafe fn futex(call: Call) -> c_long {
    if !call.is_private() {
        return call.kernel();
    }
    match call.operation & libc::FUTEX_CMD_MASK {
        libc::FUTEX_WAIT => wait(call, u32::MAX),
        libc::FUTEX_WAIT_BITSET => wait(call, call.third),
        libc::FUTEX_WAKE => wake(call, u32::MAX),
        libc::FUTEX_WAKE_BITSET => wake(call, call.third),
        libc::FUTEX_REQUEUE | libc::FUTEX_CMP_REQUEUE | libc::FUTEX_WAKE_OP => {
            // Ranks that wait are woken, instead of being moved to the other word: a wait may end
            // for no reason. So are those at a word that is to be woken under a condition.
            let status = call.kernel();
            if status < 0 {
                return status;
            }
            let mut count = resume(take_out(call.address, usize::MAX, u32::MAX));
            if call.operation & libc::FUTEX_CMD_MASK == libc::FUTEX_WAKE_OP {
                count += resume(take_out(call.second, usize::MAX, u32::MAX));
                signal_elsewhere(call.second);
            }
            signal_elsewhere(call.address);
            status + count as c_long
        }
        _ => call.kernel(),
    }
}

/// The word at an address that a program waits at.
fn word(address: usize) -> &'static AtomicU32 {
    // SAFETY: the caller of `futex` gives the address of such a word, or `PARKER` is one: the thread's own.
    unsafe { &*(address as *const AtomicU32) }
}

fn wait(call: Call, bits: u32) -> c_long {
    if LEARNING.get() {
        PARKER.set(call.address);
    }
    if states::is_answered() {
        return 0;
    }
    let aligned = call.address.is_multiple_of(align_of::<AtomicU32>()) && call.address != 0;
    if !pe::in_rank() || !aligned || bits == 0 {
        return call.kernel();
    }
    let parked = call.address == PARKER.get() && call.value == PARKED;
    if parked && !set_parked(call.address) {
        return 0;
    }
    let deadline = call.deadline();
    if word(call.address).load(Ordering::SeqCst) != call.value {
        return fail(libc::EAGAIN);
    }
    if is_thread_local(call.address) {
        parking::refuse_without_threads(deadline);
        return call.kernel();
    }
    if has_foreign_threads()
        && !table(|table| table.between_ranks.contains(&call.address))
        && let Some(status) = wait_in_kernel(call, bits, deadline)
    {
        return status;
    }
    if !may_suspend() {
        return call.kernel();
    }
    suspend_at(call, bits, deadline, parked)
}

/// Waits for a thread, for a while. `None`: the time has passed.
fn wait_in_kernel(call: Call, bits: u32, deadline: Option<u64>) -> Option<c_long> {
    let end = pe::monotonic() + MORE_PATIENCE;
    loop {
        let status = wait_briefly(call, bits, deadline);
        if status.is_some() || pe::monotonic() >= end || !others_run() {
            return status;
        }
    }
}

/// Waits for [`PATIENCE`], or until the deadline. `None`: the time has passed, and there is more.
fn wait_briefly(call: Call, bits: u32, deadline: Option<u64>) -> Option<c_long> {
    let patient_until = pe::monotonic() + PATIENCE;
    let is_last = deadline.is_some_and(|deadline| deadline <= patient_until);
    let until = Duration::from_nanos(deadline.map_or(patient_until, |at| at.min(patient_until)));
    let time = libc::timespec {
        tv_sec: until.as_secs() as libc::time_t,
        tv_nsec: until.subsec_nanos().into(),
    };
    // With a time of the clock, as a wait begins several times.
    let status = Call {
        operation: libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG,
        time: (&raw const time) as usize,
        third: bits,
        ..call
    }
    .kernel();
    (is_last || status == 0 || errno() != libc::ETIMEDOUT).then_some(status)
}

/// Suspends the rank until somebody wakes the word.
fn suspend_at(call: Call, bits: u32, deadline: Option<u64>, parked: bool) -> c_long {
    let Some((pe, rank)) = hooks::running_rank() else { return call.kernel() };
    count_waiting(call.address, |n| n.fetch_add(1, Ordering::SeqCst));
    WAITING.fetch_add(1, Ordering::SeqCst);
    fence(Ordering::SeqCst);
    let ticket = table(|table| {
        if word(call.address).load(Ordering::SeqCst) != call.value {
            return None;
        }
        table.tickets += 1;
        let waiter = Waiter { ticket: table.tickets, bits, pe, rank, parked };
        table.waiters.entry(call.address).or_default().push_back(waiter);
        Some(waiter.ticket)
    });
    let Some(ticket) = ticket else {
        WAITING.fetch_sub(1, Ordering::SeqCst);
        count_waiting(call.address, |n| n.fetch_sub(1, Ordering::SeqCst));
        return fail(libc::EAGAIN);
    };
    if Arena::contains(call.address) {
        pe::with(|pe| pe.engine.injected.tell_waiting(call.address));
    }
    let look_again = if parked { next_look() } else { None };
    let until = [deadline, look_again].into_iter().flatten().min();
    pe::with(|pe| {
        pe.engine.at_locks.blocked += 1;
        pe.engine.at_locks.parked += u32::from(parked);
    });
    let is_gone = |table: &mut WaitTable| {
        let there = table.waiters.get(&call.address);
        !there.is_some_and(|there| there.iter().any(|waiter| waiter.ticket == ticket))
    };
    let woken = suspend_until("a lock", Some(call.address), until, || table(is_gone))
        // Woken at the last moment: whoever did so counts on it.
        || !table(|table| table.remove(call.address, ticket));
    pe::with(|pe| {
        pe.engine.at_locks.blocked -= 1;
        pe.engine.at_locks.parked -= u32::from(parked);
    });
    WAITING.fetch_sub(1, Ordering::SeqCst);
    count_waiting(call.address, |n| n.fetch_sub(1, Ordering::SeqCst));
    if parked {
        pe::with(|pe| {
            let spins = &mut pe.engine.running().blocked.spins;
            *spins = if woken { 0 } else { *spins + 1 };
        });
        return leave_park(call.address, woken, deadline);
    }
    if woken { 0 } else { fail(libc::ETIMEDOUT) }
}

/// Counts a rank of the calling PE that waits for a word of the arena, for the other PEs to see.
fn count_waiting(address: usize, count: impl Fn(&AtomicU32) -> u32) {
    if Arena::contains(address) {
        pe::with(|pe| {
            count(pe.engine.shared.waiting_in_node());
            count(&pe.engine.block().waiting[pe::bucket(address)]);
        });
    }
}

impl WaitTable {
    /// Takes a waiter out; false when somebody has done so.
    fn remove(&mut self, address: usize, ticket: u64) -> bool {
        let Some(there) = self.waiters.get_mut(&address) else { return false };
        let before = there.len();
        there.retain(|waiter| waiter.ticket != ticket);
        let found = there.len() < before;
        if there.is_empty() {
            self.waiters.remove(&address);
        }
        found
    }
}

/// The rank that was parked goes on: as if it had been woken, unless its own time has passed.
fn leave_park(address: usize, woken: bool, deadline: Option<u64>) -> c_long {
    if !woken && deadline.is_some_and(|deadline| deadline <= pe::monotonic()) {
        // What the standard library does then would take a wake-up of others away.
        resume(take_out(address, usize::MAX, u32::MAX));
        return fail(libc::ETIMEDOUT);
    }
    word(address).store(NOTIFIED, Ordering::SeqCst);
    0
}

/// Says in the word of `park` that somebody is parked; false when there is a notification.
fn set_parked(address: usize) -> bool {
    let word = word(address);
    let set = word.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |value| {
        (value != NOTIFIED).then_some(PARKED)
    });
    if set.is_err() {
        // It may be for any of them.
        resume(take_out(address, usize::MAX, u32::MAX));
    }
    set.is_ok()
}

/// When a rank that is about to park looks again.
fn next_look() -> Option<u64> {
    let spins = pe::with(|pe| pe.engine.running().blocked.spins);
    if spins >= LOOKS_ALONE && !has_foreign_threads() {
        return None;
    }
    let pause = FIRST_LOOK.checked_shl(spins.min(16)).unwrap_or(LAST_LOOK).min(LAST_LOOK);
    Some(pe::monotonic() + pause)
}

/// The table of waiters, for the loops of PEs.
pub struct Futexes;

impl Locks for Futexes {
    fn begin(&self) {
        // Which word does this thread's `park` wait at?
        PARKER.set(0);
        LEARNING.set(true);
        std::thread::park_timeout(Duration::from_nanos(1));
        if PARKER.get() == 0 {
            // There was a notification, which is not for us.
            std::thread::park_timeout(Duration::from_nanos(1));
            std::thread::current().unpark();
        }
        LEARNING.set(false);
        // Waits come here.
        if PARKER.get() != 0
            && !search::is_known()
            && let Some(found) = states::find()
        {
            search::know(found);
        }
        parking::wait_on_stacks();
    }

    fn end(&self, uid: u32) {
        let forgotten = table(|table| {
            let count =
                |table: &WaitTable| table.waiters.values().map(VecDeque::len).sum::<usize>();
            let before = count(table);
            table.waiters.values_mut().for_each(|there| there.retain(|waiter| waiter.pe != uid));
            table.waiters.retain(|_, there| !there.is_empty());
            before - count(table)
        });
        WAITING.fetch_sub(forgotten, Ordering::SeqCst);
    }

    fn before_sleep(&self, parked: u32) {
        let address = PARKER.get();
        if parked == 0 || address == 0 {
            return;
        }
        if word(address).load(Ordering::SeqCst) == EMPTY {
            let _ =
                word(address).compare_exchange(EMPTY, PARKED, Ordering::SeqCst, Ordering::SeqCst);
        }
        if word(address).load(Ordering::SeqCst) == NOTIFIED {
            resume(take_out(address, usize::MAX, u32::MAX));
        }
    }

    fn take_signalled(&self, uid: u32, words: u64) -> Vec<u32> {
        if words == 0 {
            return Vec::new();
        }
        table(|table| {
            let mut woken = Vec::new();
            table.waiters.retain(|address, there| {
                if Arena::contains(*address) && words & (1 << pe::bucket(*address)) != 0 {
                    there.retain(|waiter| {
                        let takes = waiter.pe == uid;
                        if takes {
                            woken.push(waiter.rank);
                        }
                        !takes
                    });
                }
                !there.is_empty()
            });
            woken
        })
    }
}

fn wake(call: Call, bits: u32) -> c_long {
    fence(Ordering::SeqCst);
    let count = wake_here(call, bits);
    if count < c_long::from(call.value.min(i32::MAX as u32)) {
        signal_elsewhere(call.address);
    }
    count
}

/// Has other PEs of the node wake their ranks that wait for a word of the arena.
fn signal_elsewhere(address: usize) {
    if Arena::contains(address) {
        pe::wake_elsewhere(address);
    }
}

/// Wakes ranks of this process, and what waits in the kernel.
fn wake_here(call: Call, bits: u32) -> c_long {
    if WAITING.load(Ordering::Relaxed) == 0 {
        return call.kernel();
    }
    let most = call.value.min(i32::MAX as u32) as usize;
    let woken = take_out(call.address, most, bits);
    if woken.is_empty() {
        return call.kernel();
    }
    if pe::in_rank() {
        table(|table| table.remember(call.address));
    }
    let for_all = woken.iter().any(|waiter| waiter.parked);
    let count = resume(woken);
    let rest = if for_all { most } else { most - count };
    if rest == 0 {
        return count as c_long;
    }
    let status = Call { value: rest as u32, ..call }.kernel();
    count as c_long + status.max(0)
}

impl WaitTable {
    /// Ranks wake each other at this address.
    fn remember(&mut self, address: usize) {
        if self.between_ranks.contains(&address) {
            return;
        }
        if self.between_ranks.len() == WORDS {
            self.between_ranks.pop_front();
        }
        self.between_ranks.push_back(address);
    }
}

/// Takes up to `most` waiters out; of parked ones all.
fn take_out(address: usize, most: usize, bits: u32) -> Vec<Waiter> {
    if WAITING.load(Ordering::SeqCst) == 0 {
        return Vec::new();
    }
    table(|table| {
        let Some(there) = table.waiters.get_mut(&address) else { return Vec::new() };
        let mut woken = Vec::new();
        there.retain(|waiter| {
            let takes = waiter.parked || (woken.len() < most && waiter.bits & bits != 0);
            if takes {
                woken.push(*waiter);
            }
            !takes
        });
        if there.is_empty() {
            table.waiters.remove(&address);
        }
        woken
    })
}

/// Has the PEs of ranks that were taken out resume them; returns how many these are.
fn resume(woken: Vec<Waiter>) -> usize {
    for waiter in &woken {
        pe::wake_from_outside(waiter.pe, waiter.rank);
    }
    woken.len()
}
