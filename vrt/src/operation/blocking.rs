//! Waiting on the stack of a blocking rank: what all blocking calls come down to.

use std::future::Future;
use std::panic::Location;
use std::time::Duration;

use vrt_core::operation::{self, MayBlock, Sleep};
use vrt_core::pe;

use crate::operation::{At, ErrorKind, OrRefuse, Site, site};

/// Runs a future on the stack of the current blocking rank, suspending the rank while the future
/// is pending.
///
/// The future may wait for anything: `vrt`'s own operations, or tokio's timers and sockets, which
/// pin the rank to its PE while they are pending.
///
/// # Panics
/// Outside of a rank, and in an async rank, whose code awaits the future instead.
///
/// # Examples
///
/// ```
/// use vrt::traits::*;
///
/// vrt::run_local(2, |world| {
///     let other = world.process_at_rank(1 - world.rank());
///     let (sent, (theirs, _)) = vrt::block_on(async {
///         tokio::join!(other.send_vec_async(vec![world.rank(); 3]), other.receive_vec_async::<i32>())
///     });
///     assert_eq!((sent, theirs), (vec![world.rank(); 3], vec![other.rank(); 3]));
/// });
/// ```
#[track_caller]
pub fn block_on<F: Future>(future: F) -> F::Output {
    block_on_at(future, site!("block_on"))
}

/// [`block_on`] for the blocking face: the site's call is named by the error in an async rank.
#[inline]
pub(crate) fn block_on_at<F: Future>(future: F, site: Site) -> F::Output {
    operation::drive(may_block(site), future)
}

/// [`block_on_at`] of an operation that may refuse its use.
///
/// # Panics
/// When it does.
#[inline]
pub(crate) fn block_on_or_refuse<T>(
    future: impl Future<Output = Result<T, ErrorKind>>,
    site: Site,
) -> T {
    block_on_at(future, site).at(site).or_refuse()
}

/// Checks that the caller is a blocking rank.
#[inline(always)]
pub(crate) fn may_block(site: Site) -> MayBlock {
    match MayBlock::here() {
        Some(may_block) => may_block,
        None => refuse_blocking(site.call, site.location),
    }
}

#[cold]
fn refuse_blocking(call: &str, location: Option<&Location<'_>>) -> ! {
    let at = location.map_or(String::new(), |location| format!(" at {location}"));
    match pe::current_rank() {
        None => panic!(
            "`{call}`{at} was called outside of a rank: it works in the program given to \
             `#[vrt::main]`, `launch` or `run_local`, on the rank's own thread"
        ),
        Some(rank) => panic!(
            "rank {rank} is async, so the blocking call `{call}`{at} would stop its whole PE: use its \
             async twin `{call}_async(..).await`"
        ),
    }
}

/// Lets other ranks of this PE run before this one goes on, if there are such or something has come.
///
/// # Panics
/// Outside of a rank, and in an async rank (which awaits [`yield_now_async`](super::yield_now_async)).
///
/// # Examples
///
/// ```
/// use std::sync::atomic::{AtomicBool, Ordering};
///
/// use vrt::traits::*;
///
/// let ready = AtomicBool::new(false);
/// vrt::run_local(2, |world| {
///     if world.rank() == 0 {
///         while !ready.load(Ordering::Relaxed) {
///             vrt::yield_now();
///         }
///     } else {
///         ready.store(true, Ordering::Relaxed);
///     }
/// });
/// ```
#[track_caller]
pub fn yield_now() {
    give_way(site!("yield_now"));
}

/// [`yield_now`] for calls that look for something which is not there yet.
#[inline]
pub(crate) fn give_way(site: Site) {
    operation::yield_now(may_block(site));
}

/// Suspends the rank for a time. Dropped early, it is over.
///
/// # Panics
/// Outside of a rank.
///
/// # Examples
///
/// ```
/// use std::time::{Duration, Instant};
///
/// vrt::run_local(1, |_| {
///     let (begin, time) = (Instant::now(), Duration::from_millis(5));
///     vrt::block_on(vrt::sleep_async(time));
///     assert!(begin.elapsed() >= time);
/// });
/// ```
#[track_caller]
pub fn sleep_async(duration: Duration) -> impl Future<Output = ()> {
    let site = site!("sleep");
    let sleep = Sleep::new(duration, site);
    async move { sleep.await.at(site).or_refuse() }
}

/// Suspends the rank for a time; others of its PE run meanwhile. Unlike a tokio timer it does not
/// pin the rank to its PE.
///
/// # Panics
/// Outside of a rank, and in an async rank (which awaits [`sleep_async`]).
///
/// # Examples
///
/// ```
/// use std::time::{Duration, Instant};
///
/// // The ranks sleep at the same time.
/// vrt::run_local(4, |_| {
///     let (begin, time) = (Instant::now(), Duration::from_millis(5));
///     vrt::sleep(time);
///     assert!(begin.elapsed() >= time);
/// });
/// ```
#[track_caller]
pub fn sleep(duration: Duration) {
    let site = site!("sleep");
    block_on_or_refuse(Sleep::new(duration, site), site);
}

/// Waits until this rank's PE has nothing else to do: no other rank there can go on, and nothing has come. Then one
/// rank that waits so goes on; the next one does if the PE has still nothing to do after that. Ends early if the rank
/// is moved. Dropped early, it is over.
///
/// It is for what a rank would do to help others, if that costs nobody anything: with several ranks on a PE, one
/// without work need not steal from far away while its neighbours have some. Unlike [`yield_now`] it does not come
/// back to look, which would cost a switch each time. A rank that goes on looking for something by itself (with
/// probes or tests, in a loop) is never idle, nor is its PE.
///
/// # Panics
/// Outside of a rank, when it is awaited.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// vrt::run_local(2, |_| {
///     vrt::block_on(vrt::when_idle());
///     let waits_no_longer = vrt::timeout(Duration::from_secs(60), vrt::when_idle());
///     assert!(vrt::block_on(waits_no_longer).is_ok());
/// });
/// ```
#[track_caller]
pub fn when_idle() -> impl Future<Output = ()> {
    let site = site!("when_idle");
    let sleep = Sleep::while_others_run(site);
    async move { sleep.await.at(site).or_refuse() }
}
