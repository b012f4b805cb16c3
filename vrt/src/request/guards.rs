//! Guards that complete a request when they are dropped.

use crate::request::{Request, Scope, StaticScope};

/// Waits for its request when it is dropped.
///
/// # Examples
///
/// ```
/// use vrt::request::WaitGuard;
/// use vrt::traits::*;
///
/// vrt::run_local(2, |world| {
///     let (me, other) = (world.rank(), world.process_at_rank(1 - world.rank()));
///     vrt::request::scope(|scope| {
///         let _send = WaitGuard::from(other.immediate_send(scope, &me));
///         assert_eq!(other.receive::<i32>().0, other.rank());
///         // Here the guard waits for the send.
///     });
/// });
/// ```
#[derive(Debug)]
pub struct WaitGuard<'a, D: ?Sized, S: Scope<'a> = StaticScope>(Option<Request<'a, D, S>>);

impl<'a, D: ?Sized, S: Scope<'a>> Drop for WaitGuard<'a, D, S> {
    fn drop(&mut self) {
        match self.0.take() {
            Some(request) if std::thread::panicking() => request.abandon(),
            Some(request) => request.wait_without_status(),
            None => {}
        }
    }
}

impl<'a, D: ?Sized, S: Scope<'a>> From<Request<'a, D, S>> for WaitGuard<'a, D, S> {
    fn from(request: Request<'a, D, S>) -> Self {
        WaitGuard(Some(request))
    }
}

impl<'a, D: ?Sized, S: Scope<'a>> From<WaitGuard<'a, D, S>> for Request<'a, D, S> {
    fn from(mut guard: WaitGuard<'a, D, S>) -> Self {
        match guard.0.take() {
            Some(request) => request,
            None => unreachable!("a guard holds its request until it is dropped"),
        }
    }
}

/// Cancels its request, then waits for it, when it is dropped.
///
/// # Examples
///
/// ```
/// use vrt::request::CancelGuard;
/// use vrt::traits::*;
///
/// vrt::run_local(2, |world| {
///     let (other, mut theirs) = (world.process_at_rank(1 - world.rank()), 0);
///     vrt::request::scope(|scope| {
///         let receive = other.immediate_receive_into(scope, &mut theirs);
///         let _receive = CancelGuard::from(receive);
///         // No message is sent; here the guard cancels the receive.
///     });
///     assert_eq!(theirs, 0);
/// });
/// ```
#[derive(Debug)]
pub struct CancelGuard<'a, D: ?Sized, S: Scope<'a> = StaticScope>(WaitGuard<'a, D, S>);

impl<'a, D: ?Sized, S: Scope<'a>> Drop for CancelGuard<'a, D, S> {
    fn drop(&mut self) {
        if let Some(request) = &self.0.0 {
            request.cancel();
        }
    }
}

impl<'a, D: ?Sized, S: Scope<'a>> From<WaitGuard<'a, D, S>> for CancelGuard<'a, D, S> {
    fn from(guard: WaitGuard<'a, D, S>) -> Self {
        CancelGuard(guard)
    }
}

impl<'a, D: ?Sized, S: Scope<'a>> From<Request<'a, D, S>> for CancelGuard<'a, D, S> {
    fn from(request: Request<'a, D, S>) -> Self {
        CancelGuard(WaitGuard::from(request))
    }
}
