//! Requests that the program itself completes (MPI-4.1 section 13.2).

use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};

use crate::operation::site;
use crate::request::{Request, StaticScope, immediate};

#[derive(Debug, Default)]
struct Completion {
    done: bool,
    waker: Option<Waker>,
}

/// Completes a generalized request, from anywhere: the rank itself, a thread, an async task.
///
/// # Examples
///
/// ```
/// use vrt::request::{Completer, generalized};
///
/// fn work(completer: Completer) -> u64 {
///     let sum = (0..1000).sum();
///     completer.complete();
///     sum
/// }
///
/// vrt::run_local(1, |_| {
///     let (completer, request) = generalized();
///     let thread = std::thread::spawn(|| work(completer));
///     request.wait();
///     assert_eq!(thread.join().unwrap(), 499_500);
/// });
/// ```
#[derive(Debug)]
pub struct Completer(Arc<Mutex<Completion>>);

impl Completer {
    /// The request is done (`MPI_Grequest_complete`).
    ///
    /// # Examples
    ///
    /// ```
    /// vrt::run_local(1, |_| {
    ///     let (completer, request) = vrt::request::generalized();
    ///     let request = request.test().unwrap_err();
    ///     completer.complete();
    ///     request.wait();
    /// });
    /// ```
    pub fn complete(self) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.done = true;
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
    }
}

/// A request that is done when the program says so (`MPI_Grequest_start`). While the rank waits
/// for it, the rank stays on its PE: who completes it is outside of `vrt`.
///
/// # Panics
/// Outside of a rank.
///
/// # Examples
///
/// ```
/// vrt::run_local(1, |_| {
///     let (completer, request) = vrt::request::generalized();
///     let thread = std::thread::spawn(|| completer.complete());
///     request.wait();
///     thread.join().unwrap();
/// });
/// ```
#[track_caller]
pub fn generalized() -> (Completer, Request<'static, ()>) {
    let state = Arc::new(Mutex::new(Completion::default()));
    let seen = Arc::clone(&state);
    let future = poll_fn(move |context| {
        let mut state = seen.lock().unwrap_or_else(PoisonError::into_inner);
        if state.done {
            return Poll::Ready(Ok(()));
        }
        state.waker = Some(context.waker().clone());
        Poll::Pending
    });
    let site = site!("generalized");
    // SAFETY: there is no buffer.
    let request = unsafe { immediate(StaticScope, &(), future, site) };
    (Completer(state), request)
}
