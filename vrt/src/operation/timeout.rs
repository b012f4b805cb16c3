//! Giving up after a time.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::operation::{At, OrRefuse, Site, site};
use vrt_core::operation::Sleep;

/// The time of a [`timeout`] was over before its future was ready.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// use vrt::Elapsed;
///
/// vrt::run_local(1, |_| {
///     let time = Duration::from_millis(1);
///     let outcome = vrt::block_on(vrt::timeout(time, std::future::pending::<()>()));
///     assert_eq!(outcome, Err(Elapsed(time)));
/// });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not done within {0:?}")]
pub struct Elapsed(pub Duration);

/// Waits for a future for some time at most.
///
/// When the time is over the future is dropped. What that means for `vrt`'s own futures:
///
/// - a receive is withdrawn: no message is lost, and a message that has come for it is there for
///   the next one;
/// - a send that has begun goes on: the message is received once, with the data that it had;
/// - a part in a collective operation goes on, as others wait for it: its result is dropped, and
///   the next operation on the communicator is the next for all ranks;
/// - an access to a window is done, or done in part.
///
/// The timer is `vrt`'s own, so the rank can be moved meanwhile. The time counts from the first
/// poll.
///
/// # Errors
/// The result is [`Elapsed`] when the time was over first.
///
/// # Panics
/// Outside of a rank, when it is awaited.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// use vrt::traits::*;
///
/// vrt::run_local(2, |world| {
///     let other = world.process_at_rank(1 - world.rank());
///     vrt::block_on(async {
///         let nothing = vrt::timeout(Duration::from_millis(1), other.receive_with_tag_async::<u8>(1));
///         assert!(nothing.await.is_err());
///         world.barrier_async().await;
///         other.send_with_tag_async(&7u8, 1).await;
///         let came = vrt::timeout(Duration::from_secs(60), other.receive_with_tag_async::<u8>(1));
///         assert_eq!(came.await.map(|(value, _)| value), Ok(7));
///     });
/// });
/// ```
#[track_caller]
pub fn timeout<F: Future>(duration: Duration, future: F) -> Timeout<F> {
    let site = site!("timeout");
    Timeout { future, sleep: Sleep::new(duration, site), duration, site }
}

/// The future of [`timeout`].
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// use vrt::Timeout;
///
/// fn within_a_minute<F: Future>(future: F) -> Timeout<F> {
///     vrt::timeout(Duration::from_secs(60), future)
/// }
///
/// vrt::run_local(1, |_| assert_eq!(vrt::block_on(within_a_minute(async { 7 })), Ok(7)));
/// ```
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct Timeout<F> {
    future: F,
    sleep: Sleep,
    duration: Duration,
    site: Site,
}

impl<F: Future> Future for Timeout<F> {
    type Output = Result<F::Output, Elapsed>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: the future is not moved out of this, which is pinned and has no `Drop`; it is
        // `Unpin` only if the future is.
        let (future, sleep, duration, site) = unsafe {
            let this = self.get_unchecked_mut();
            (Pin::new_unchecked(&mut this.future), &mut this.sleep, this.duration, this.site)
        };
        if let Poll::Ready(output) = future.poll(context) {
            return Poll::Ready(Ok(output));
        }
        Pin::new(sleep).poll(context).map(|over| {
            over.at(site).or_refuse();
            Err(Elapsed(duration))
        })
    }
}
