//! Images: if ranks run a program that was not written for them, each has its own copy of the program and its
//! libraries, so that globals and thread-locals are the rank's own and move with it.
//!
//! The contents and costs of an image are known to [`vrt_load`]; here it is a third range of the rank's slot:
//!
//! | part of an image | memory | when the rank moves |
//! |---|---|---|
//! | code, constants | the file's, mapped once for each rank in all PEs before they are forked | nothing to do |
//! | the same, if so many mappings are not allowed | the slot's, copied when the rank begins | moves |
//! | data, the thread block | the slot's | moves, as far as it was ever touched |
//!
//! Ranks run with them, and with thread pointers of their own, as [`image_switch`](crate::run::image_switch) says.

use std::cell::Cell;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use vrt_load::{Entry, Module, Plan};

use crate::arena::resident::resident;
use crate::arena::{Arena, SlotHeader, SlotId};
use crate::{heap_word, pages};

/// The program whose images ranks run.
static PLAN: OnceLock<&'static Plan> = OnceLock::new();
static HAS_LIBC: AtomicBool = AtomicBool::new(false);
/// Images have no program: they are thread blocks of ranks that run the process's own.
static IS_OF_PROCESS: AtomicBool = AtomicBool::new(false);
/// Code is copied, because so many mappings are not allowed, or would cost more.
static IS_COPIED: AtomicBool = AtomicBool::new(false);

/// Sets the program whose images ranks run, before an arena is reserved.
pub fn install(plan: &'static Plan) {
    let _: &&Plan = PLAN.get_or_init(|| plan);
    HAS_LIBC.store(plan.has_private("libc.so"), Ordering::Relaxed);
    IS_OF_PROCESS.store(plan.entry() == Entry::OfProcess, Ordering::Relaxed);
}

/// The program whose images ranks run, if it is not the process's own.
pub(crate) fn program() -> Option<&'static Plan> {
    plan().filter(|_| !has_own_thread_locals())
}

/// Whether ranks run the process's program with [thread-locals of their own](crate::run::own_thread_locals).
#[inline(always)]
pub(crate) fn has_own_thread_locals() -> bool {
    IS_OF_PROCESS.load(Ordering::Relaxed)
}

/// Whether an address is one of the running rank's own thread-locals.
pub(crate) fn is_in_own_locals(address: usize) -> bool {
    let (Some(plan), Some(base)) = (plan(), base_of_running()) else { return false };
    let Some(offset) = address.checked_sub(base).filter(|it| *it < plan.size()) else {
        return false;
    };
    !plan.is_of_process(offset)
}

/// The program whose images ranks run.
#[inline]
pub fn plan() -> Option<&'static Plan> {
    PLAN.get().copied()
}

/// The files that images consist of, the program first, and the position of each in an image.
pub fn files() -> impl Iterator<Item = (&'static std::path::Path, Range<usize>)> {
    let modules = plan().map_or(&[][..], Plan::modules);
    modules.iter().map(|module| (module.path.as_path(), module.span.clone()))
}

/// Whether images have copies of their code.
pub(crate) fn is_copied() -> bool {
    IS_COPIED.load(Ordering::Relaxed)
}

/// Whether each rank has its own libc.
#[inline(always)]
pub(crate) fn has_libc() -> bool {
    HAS_LIBC.load(Ordering::Relaxed)
}

/// Blocks and bytes of the running rank's heap.
fn heap_now() -> Option<(usize, usize)> {
    let slot = heap_word::running()?;
    // SAFETY: S3 and S2: nobody else uses the heap of the rank that calls this.
    let heap = unsafe { &*slot.heap.get() };
    Some((heap.blocks, heap.bytes))
}

/// Does work that leaves blocks in the running rank's heap that are not its program's: they do not count as leaks of
/// the program.
pub fn beside_program<T>(work: impl FnOnce() -> T) -> T {
    let before = heap_now();
    let done = work();
    if let (Some(before), Some(now), Some(slot)) = (before, heap_now(), heap_word::running()) {
        let (blocks, bytes) = slot.usual.get();
        let more = |now: usize, before: usize| now.saturating_sub(before);
        slot.usual.set((blocks + more(now.0, before.0), bytes + more(now.1, before.1)));
    }
    done
}

/// The program of the running rank's image begins: the current contents of its heap belong to its libraries.
pub fn program_begins() {
    if let (Some(now), Some(slot)) = (heap_now(), heap_word::running()) {
        slot.usual.set(now);
    }
}

thread_local! {
    /// The address of the image that this thread runs; 0 if a rank has not started it.
    static OF_THREAD: Cell<usize> = const { Cell::new(0) };
    /// The thread pointer by which the process knows this thread; 0 if a rank has not started it.
    static IDENTITY: Cell<usize> = const { Cell::new(0) };
}

/// The address of the image that this thread runs, if a rank has started it.
#[inline]
pub(crate) fn base_of_thread() -> Option<usize> {
    Some(OF_THREAD.get()).filter(|base| *base != 0)
}

/// The identity by which others know this thread, if a rank has started it; or 0.
pub(crate) fn identity_of_thread() -> usize {
    IDENTITY.get()
}

/// This thread runs an image from now on, or none any more (0).
pub(crate) fn set_of_thread(base: usize, identity: usize) {
    OF_THREAD.set(base);
    IDENTITY.set(identity);
}

/// The address of the image of the rank that runs here, or has started this thread, if it has one.
#[inline]
pub fn base_of_running() -> Option<usize> {
    let Some(slot) = heap_word::running() else { return base_of_thread() };
    if slot.thread_pointer.get() != 0 { base(slot.id()) } else { None }
}

/// The module of an image that contains an address, and the address of the image.
pub fn module_at(address: usize) -> Option<(usize, &'static Module)> {
    let (arena, plan) = (Arena::current()?, plan()?);
    if !Arena::contains(address) || arena.layout.outside_at(address).is_some() {
        return None;
    }
    let base = arena.layout.image(arena.slot_at(address));
    Some((base, plan.find_module(address.checked_sub(base)?)?))
}

/// The file of the code at an address of an image, and its address there.
pub fn locate(address: usize) -> Option<(&'static std::path::Path, u64)> {
    let (base, module) = module_at(address)?;
    Some((&module.path, (address - base).wrapping_sub(module.bias) as u64))
}

/// The distance between two consecutive images in bytes; 0 without images.
pub fn size() -> usize {
    plan().map_or(0, |plan| plan.size().next_multiple_of(plan.alignment()))
}

/// The address of the image of a slot's rank.
pub fn base(slot: SlotId) -> Option<usize> {
    Some(Arena::current().filter(|_| plan().is_some())?.layout.image(slot))
}

/// Maps the code of the images of this many ranks, or prepares their memory for copies of it.
///
/// # Errors
/// The system does not let memory of the arena be executed.
///
/// # Safety
/// No rank has begun in these slots of the arena.
pub unsafe fn map(arena: &Arena, ranks: usize, pes: usize) -> std::io::Result<()> {
    let Some(plan) = program() else { return Ok(()) };
    if plan.runs_code_on_stack() {
        // One piece of memory, with the heaps between the stacks: each by itself would be a mapping.
        let start = |rank: usize| arena.layout.guard_of(SlotId(rank as u32)).0;
        // SAFETY: the ranges of slots in which no rank has begun, says the caller.
        unsafe { allow_execution(start(0), start(ranks))? };
    }
    let image = |rank: usize| arena.layout.image(SlotId(rank as u32));
    let mappings = ranks.saturating_mul(plan.mappings());
    if mappings < most_mappings() && mappings.saturating_mul(pes) < MOST_IN_JOB {
        // SAFETY: the image of a slot in which no rank has begun, says the caller.
        return (0..ranks).try_for_each(|rank| unsafe { plan.map_code(image(rank)) });
    }
    IS_COPIED.store(true, Ordering::Relaxed);
    // SAFETY: the images of slots in which no rank has begun, says the caller.
    unsafe { allow_execution(image(0), image(ranks)) }
}

/// Makes memory executable as well.
///
/// # Safety
/// It is mapped, and its contents may be written.
pub(crate) unsafe fn allow_execution(start: usize, end: usize) -> std::io::Result<()> {
    let all = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
    // SAFETY: memory that is mapped and may be written, says the caller, stays so.
    match unsafe { libc::mprotect(start as *mut libc::c_void, end - start, all) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// The most mappings for the images of all PEs of a job together: the system keeps about 250 bytes for each, and takes
/// a microsecond or more to create it when a PE is forked.
const MOST_IN_JOB: usize = 1 << 20;

/// How many mappings images may have: what the system allows, minus what a process needs otherwise.
fn most_mappings() -> usize {
    const DEFAULT: usize = 65_530;
    let text = std::fs::read_to_string("/proc/sys/vm/max_map_count").unwrap_or_default();
    let allowed: usize = text.trim().parse().unwrap_or(DEFAULT);
    allowed.saturating_sub(4096)
}

/// The parts of a slot's image that move with its rank: pages that were ever touched.
pub(crate) fn touched(slot: &SlotHeader) -> Vec<Range<usize>> {
    let has_image = slot.thread_pointer.get() != 0;
    let (Some(plan), Some(base), true) = (plan(), base(slot.id()), has_image) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    if is_copied() {
        resident(base..base + plan.size(), &mut found);
    } else {
        plan.data().iter().for_each(|at| resident(base + at.start..base + at.end, &mut found));
    }
    found
}

/// The writable parts of a slot's image.
pub(crate) fn written(slot: SlotId) -> Vec<Range<usize>> {
    let (Some(plan), Some(base)) = (plan(), base(slot)) else { return Vec::new() };
    if is_copied() {
        return std::iter::once(base..base + plan.size()).collect();
    }
    plan.data().iter().map(|part| base + part.start..base + part.end).collect()
}

/// Whether a range of slot memory contains a part of an image other than data.
pub(crate) fn has_code(at: Range<usize>) -> bool {
    let (Some(plan), Some(arena)) = (plan(), Arena::current()) else { return false };
    let base = arena.layout.image(arena.slot_at(at.start));
    let is_inside =
        |part: &Range<usize>| base + part.start <= at.start && at.end <= base + part.end;
    at.start < base + plan.size() && base < at.end && !plan.data().iter().any(is_inside)
}

/// Permissions that slot memory needs besides reading and writing, in terms of `mmap`.
pub(crate) fn protection_of_code() -> i32 {
    let is_run = is_copied() || plan().is_some_and(Plan::runs_code_on_stack);
    if is_run { libc::PROT_EXEC } else { 0 }
}

/// The program's part of these ranges: everything except copies of the PE's data.
pub(crate) fn of_program(slot: &SlotHeader) -> Vec<Range<usize>> {
    let mut parts = touched(slot);
    let (Some(plan), Some(base)) = (plan(), base(slot.id())) else { return parts };
    for hole in plan.of_process() {
        let hole = base + hole.start..base + hole.end;
        parts = parts
            .into_iter()
            .flat_map(|part| {
                [part.start..part.end.min(hole.start), part.start.max(hole.end)..part.end]
            })
            .filter(|part| !part.is_empty())
            .collect();
    }
    parts
}

/// Returns the memory of a slot's image to the system; its contents become zero.
///
/// # Safety
/// The image is not used any more.
pub(crate) unsafe fn discard(arena: &Arena, slot: SlotId) {
    let Some(plan) = plan() else { return };
    let base = arena.layout.image(slot);
    let give_back = |range: Range<usize>| {
        // SAFETY: `Plan` gives each part pages of its own; the image is not used any more, says the caller.
        unsafe { pages::give_back(base + range.start, range.len()) };
    };
    if is_copied() {
        give_back(0..plan.size());
    } else {
        plan.data().iter().cloned().for_each(give_back);
    }
}

impl Arena {
    /// Returns the pages of a slot to the system; its contents become zero.
    ///
    /// # Safety
    /// The slot is not used any more: its rank has ended and no live block is left in its heap.
    pub unsafe fn discard(&self, slot: SlotId) {
        let (near, far) = self.layout.used_ranges(slot);
        // SAFETY: `Layout` gives slots pages of their own, and this one is not used any more, says the caller.
        unsafe {
            for (start, len) in [near, far] {
                pages::give_back(start, len);
            }
            discard(self, slot);
        }
    }
}
