//! The runtime's data of a rank, in the rank's heap: it moves with the slot, as addresses.
//!
//! There are two kinds: values that every call looks up by a number (the handles of the predefined
//! communicators), and tasks, operations that continue while the rank does something else. Tasks
//! are polled whenever the rank is about to wait and whenever it is resumed; while there are any,
//! every event of the rank wakes it.

use std::any::Any;
use std::cell::RefCell;
use std::ffi::c_void;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use crate::heap_word;
use crate::run::waker::rank_waker;

/// An operation that continues in the background.
pub type Task = Pin<Box<dyn Future<Output = ()>>>;

/// The runtime's data of a rank.
#[derive(Default)]
struct Locals {
    kept: RefCell<Vec<(u32, Rc<dyn Any>)>>,
    tasks: RefCell<Vec<Task>>,
    at_end: RefCell<Vec<Destructor>>,
}

/// The destructor of a thread-local, and the thread-local.
pub(crate) type Destructor = (unsafe extern "C" fn(*mut c_void), *mut c_void);

/// The running rank's locals, created on first use.
fn current() -> Option<&'static Locals> {
    let slot = heap_word::running()?;
    if slot.locals.get().is_null() {
        slot.locals.set(Box::into_raw(Box::<Locals>::default()).cast());
    }
    existing()
}

/// The running rank's locals, if there are any.
#[inline(always)]
fn existing() -> Option<&'static Locals> {
    let locals = heap_word::running()?.locals.get();
    // SAFETY: null, or what `current` has made for this rank, and `end` has not taken.
    unsafe { locals.cast::<Locals>().as_ref() }
}

/// The value kept under a number, created if it does not exist.
///
/// # Panics
/// Outside of a rank.
#[track_caller]
pub fn keep<T: 'static>(number: u32, make: impl FnOnce() -> T) -> Rc<T> {
    let Some(locals) = current() else {
        panic!("this was called outside of a rank: it works in the program of a rank only");
    };
    let kept = locals.kept.borrow().iter().find(|(n, _)| *n == number).map(|(_, v)| Rc::clone(v));
    match kept.and_then(|value| value.downcast::<T>().ok()) {
        Some(value) => value,
        None => {
            let value = Rc::new(make());
            locals.kept.borrow_mut().push((number, Rc::clone(&value) as Rc<dyn Any>));
            value
        }
    }
}

/// The value kept under a number, if it exists.
pub fn kept<T: 'static>(number: u32) -> Option<Rc<T>> {
    let kept = existing()?.kept.borrow();
    let (_, value) = kept.iter().find(|(n, _)| *n == number)?;
    Rc::clone(value).downcast::<T>().ok()
}

/// Has a task polled until it is done. It is polled once immediately.
pub fn spawn(mut task: Task) {
    let waker = rank_waker();
    if task.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
        adopt(task);
    }
}

/// Has a task that has begun polled until it is done, from when the rank next waits; the caller must make sure that a
/// suspended rank is woken.
pub fn adopt(task: Task) {
    if let Some(locals) = current() {
        locals.tasks.borrow_mut().push(task);
        set_has_tasks(true);
    }
}

/// Whether any task is in progress.
#[inline(always)]
pub fn has_tasks() -> bool {
    heap_word::running().is_some_and(|slot| slot.has_tasks.get())
}

/// Records it where it is checked. To be called whenever the list of tasks has changed.
fn set_has_tasks(has: bool) {
    if let Some(slot) = heap_word::running() {
        slot.has_tasks.set(has);
    }
}

/// Polls all tasks of the running rank. Returns whether one is done: then a waiting caller must
/// check again before the rank suspends.
#[inline(always)]
pub fn poll_tasks(context: &mut Context<'_>) -> bool {
    has_tasks() && poll_all(context)
}

#[cold]
fn poll_all(context: &mut Context<'_>) -> bool {
    let Some(locals) = existing() else { return false };
    // Taken out meanwhile: a task may complete something that asks for tasks.
    let mut tasks = std::mem::take(&mut *locals.tasks.borrow_mut());
    set_has_tasks(false);
    let before = tasks.len();
    tasks.retain_mut(|task| matches!(task.as_mut().poll(context), Poll::Pending));
    let one_is_done = tasks.len() < before;
    let mut now = locals.tasks.borrow_mut();
    tasks.append(&mut now);
    *now = tasks;
    set_has_tasks(!now.is_empty());
    one_is_done
}

/// Has a destructor called when the rank's program has ended.
///
/// # Safety
/// It may be called then, once, with the object.
pub(crate) unsafe fn at_end(destructor: unsafe extern "C" fn(*mut c_void), object: *mut c_void) {
    if let Some(locals) = current() {
        locals.at_end.borrow_mut().push((destructor, object));
    }
}

/// The next destructor to be called: last in, first out.
pub(crate) fn take_at_end() -> Option<Destructor> {
    existing()?.at_end.borrow_mut().pop()
}

/// Drops the running rank's locals.
///
/// # Safety
/// The rank's program has ended: no function of this module is running for it.
pub(super) unsafe fn end() {
    let Some(slot) = heap_word::running() else { return };
    let locals = slot.locals.replace(std::ptr::null_mut()).cast::<Locals>();
    slot.has_tasks.set(false);
    if !locals.is_null() {
        // SAFETY: the box that `current` has made, to which nothing refers, says the caller.
        drop(unsafe { Box::from_raw(locals) });
    }
}
