//! How long requests may live.

use std::cell::Cell;
use std::marker::PhantomData;

/// What a request is registered with.
///
/// # Safety
/// An implementation detail of this module; not to be implemented elsewhere.
///
/// # Examples
///
/// ```
/// use vrt::request::{Request, Scope};
/// use vrt::topology::Process;
/// use vrt::traits::*;
///
/// // Begins to receive, in the scope of the caller.
/// fn begin<'a, S: Scope<'a>>(from: &Process<'_>, to: &'a mut [i32], scope: S) -> Request<'a, [i32], S> {
///     from.immediate_receive_into_with_tag(scope, to, 3)
/// }
///
/// vrt::run_local(2, |world| {
///     let (other, mut theirs) = (world.process_at_rank(1 - world.rank()), [0; 2]);
///     vrt::request::scope(|scope| {
///         let receive = begin(&other, &mut theirs, scope);
///         other.send_with_tag(&[1, 2], 3);
///         receive.wait();
///     });
///     assert_eq!(theirs, [1, 2]);
/// });
/// ```
pub unsafe trait Scope<'a> {
    /// Counts a request.
    fn register(&self);

    /// Counts it off.
    ///
    /// # Safety
    /// The request is completed, or registered elsewhere at once.
    unsafe fn unregister(&self);
}

/// The scope of requests whose buffers live for ever.
///
/// # Examples
///
/// ```
/// use vrt::request::StaticScope;
/// use vrt::traits::*;
///
/// vrt::run_local(2, |world| {
///     let other = world.process_at_rank(1 - world.rank());
///     let send = other.immediate_send(StaticScope, "always there".as_bytes());
///     assert_eq!(other.receive_vec::<u8>().0, b"always there");
///     send.wait();
/// });
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct StaticScope;

// SAFETY: buffers are `'static`: nothing has to be counted.
unsafe impl Scope<'static> for StaticScope {
    fn register(&self) {}

    unsafe fn unregister(&self) {}
}

/// A scope for requests whose buffers outlive `'a`, made by [`scope`].
///
/// When it ends with a request that was not completed, the process is aborted: the buffer would be
/// written to after its life. When it ends by a panic, receives that no message has come for are
/// withdrawn, and only what cannot be withdrawn (a send that is not done, a forgotten request)
/// ends the job.
///
/// # Examples
///
/// ```
/// use vrt::request::LocalScope;
/// use vrt::traits::*;
///
/// vrt::run_local(2, |world| {
///     let (other, mut theirs) = (world.process_at_rank(1 - world.rank()), 0);
///     vrt::request::scope(|scope: &LocalScope<'_>| {
///         let receive = other.immediate_receive_into(scope, &mut theirs);
///         other.send(&world.rank());
///         receive.wait();
///     });
///     assert_eq!(theirs, other.rank());
/// });
/// ```
#[derive(Debug)]
pub struct LocalScope<'a> {
    open: Cell<usize>,
    /// Makes `'a` invariant.
    phantom: PhantomData<Cell<&'a ()>>,
}

impl LocalScope<'_> {
    pub(crate) fn new() -> Self {
        LocalScope { open: Cell::new(0), phantom: PhantomData }
    }
}

impl Drop for LocalScope<'_> {
    fn drop(&mut self) {
        let open = self.open.get();
        if open == 0 {
            return;
        }
        if std::thread::panicking() {
            // Somebody may catch the panic.
            die_with_open_requests(open);
        }
        vrt_slot::report::say(format_args!(
            "a request scope ended with {open} requests that were not completed"
        ));
        std::process::abort();
    }
}

// SAFETY: dropping the scope with open requests ends the process, so buffers, which outlive `'a`,
// outlive their requests.
unsafe impl<'a> Scope<'a> for &LocalScope<'a> {
    fn register(&self) {
        self.open.set(self.open.get() + 1);
    }

    unsafe fn unregister(&self) {
        self.open.set(self.open.get().saturating_sub(1));
    }
}

/// Runs `f` with a scope for requests. Buffers have to exist outside of it.
///
/// # Examples
///
/// ```
/// use vrt::traits::*;
///
/// vrt::run_local(2, |world| {
///     let (mine, mut theirs) = (world.rank(), -1);
///     let other = world.process_at_rank(1 - world.rank());
///     vrt::request::scope(|scope| {
///         let receive = other.immediate_receive_into(scope, &mut theirs);
///         other.send(&mine);
///         receive.wait();
///     });
///     assert_eq!(theirs, 1 - world.rank());
/// });
/// ```
pub fn scope<'a, F, R>(f: F) -> R
where
    F: FnOnce(&LocalScope<'a>) -> R,
{
    f(&LocalScope::new())
}

/// A panic unwinds past requests whose buffers the runtime still uses.
#[cold]
pub(crate) fn die_with_open_requests(open: usize) -> ! {
    let rank = vrt_core::pe::current_rank().unwrap_or_default();
    vrt_slot::report::say(format_args!(
        "rank {rank}: a panic, whose message is above, leaves the scope of {open} requests that are \
         under way and cannot be taken back"
    ));
    vrt_slot::hooks::runtime_heap(|| vrt_slot::report::end_job(vrt_slot::report::STATUS_PANIC))
}
