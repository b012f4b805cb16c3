//! What a protocol needs from the participants in an exchange.

use std::future::Future;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::exchange::LogGp;

/// A message that was taken out of matching and must be received.
#[derive(Debug)]
#[must_use = "a message that was found has to be taken"]
pub struct Found {
    /// The sender's number.
    pub source: usize,
    /// Its length.
    pub bytes: usize,
    /// Its number at the receiver.
    pub number: u32,
}

/// How a message is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// Done when its bytes are no longer needed.
    Standard,
    /// Done when its receive has begun.
    Synchronous,
}

/// A participant in an exchange, such as a rank of a communicator.
///
/// A party is made for one exchange and keeps its messages separate from those of every other
/// exchange. `step` separates messages of one exchange that must not be mixed. Collective
/// operations are called by all participants in the same order.
pub trait Party {
    /// A send in flight: it started when the future was made, whether or not the future is polled.
    type Sending<'a>: Future<Output = ()> + Unpin;
    /// A receive in flight, likewise.
    type Receiving<'a>: Future<Output = ()> + Unpin;

    /// The number of this participant.
    fn me(&self) -> usize;

    /// Number of participants.
    fn size(&self) -> usize;

    /// Parameters of the network between the participants.
    fn parameters(&self) -> LogGp;

    /// The current node of another participant, as far as is known here. Participants may disagree.
    fn node_of(&self, other: usize) -> usize;

    /// Number of nodes, the same for all participants.
    fn nodes(&self) -> usize;

    /// Starts sending a message.
    fn send<'a>(&self, step: u32, to: usize, data: &'a [u8], how: Sent) -> Self::Sending<'a>;

    /// Starts receiving a message that is exactly as long as `room`.
    fn receive<'a>(
        &self,
        step: u32,
        from: usize,
        room: &'a mut [MaybeUninit<u8>],
    ) -> Self::Receiving<'a>;

    /// Waits for a message, from any participant if `from` is `None`. A dropped future has not
    /// claimed a message.
    fn find(&self, step: u32, from: Option<usize>) -> impl Future<Output = Found>;

    /// Receives a found message into `room`, which has the message's length.
    fn take(&self, found: Found, room: &mut [MaybeUninit<u8>]) -> impl Future<Output = ()>;

    /// Sends one number to each participant and receives one from each.
    fn all_to_all(&self, numbers: &[u64]) -> impl Future<Output = Vec<u64>>;

    /// Sends one number to each participant and returns the sum of the numbers received.
    fn reduce_scatter(&self, numbers: &[u32]) -> impl Future<Output = u32>;

    /// The largest of all participants' numbers.
    fn maximum(&self, number: u64) -> impl Future<Output = u64>;

    /// Waits until all participants have reached the barrier.
    fn barrier(&self) -> impl Future<Output = ()>;

    /// Increases other participants' counters for this exchange; completes when all are increased.
    fn count_up(&self, others: impl Iterator<Item = (usize, u64)>) -> impl Future<Output = ()>;

    /// The sum that other participants have added to this one's counter.
    fn counted(&self) -> u64;
}

/// The destination of received messages.
pub trait Inbox {
    /// Room for messages with these sources and lengths. Each room must be filled.
    ///
    /// # Safety
    /// Only initialised bytes are written to a room.
    unsafe fn rooms(&mut self, messages: &[(usize, usize)]) -> Vec<&mut [MaybeUninit<u8>]>;

    /// Room for one message.
    ///
    /// # Safety
    /// As for [`rooms`](Self::rooms).
    unsafe fn room(&mut self, source: usize, bytes: usize) -> &mut [MaybeUninit<u8>] {
        // SAFETY: the same promise.
        match unsafe { self.rooms(&[(source, bytes)]) }.pop() {
            Some(room) => room,
            None => unreachable!("there is a room for each message"),
        }
    }

    /// Puts a message into a room of its own.
    fn put(&mut self, source: usize, data: &[u8]) {
        // SAFETY: `data` is initialised.
        let room = unsafe { self.room(source, data.len()) };
        for (to, byte) in room.iter_mut().zip(data) {
            to.write(*byte);
        }
    }
}

/// Messages as their bytes, with their sources.
#[derive(Debug, Default)]
pub struct Bytes(pub Vec<(usize, Vec<u8>)>);

impl Inbox for Bytes {
    unsafe fn rooms(&mut self, messages: &[(usize, usize)]) -> Vec<&mut [MaybeUninit<u8>]> {
        let before = self.0.len();
        self.0.extend(messages.iter().map(|(source, bytes)| (*source, vec![0; *bytes])));
        let new = self.0[before..].iter_mut();
        // SAFETY: initialised bytes stay so, says the caller.
        new.map(|(_, bytes)| unsafe {
            std::slice::from_raw_parts_mut(bytes.as_mut_ptr().cast(), bytes.len())
        })
        .collect()
    }
}

/// Awaits all of several futures.
#[derive(Debug)]
pub struct All<F>(pub Vec<F>);

impl<F: Future<Output = ()> + Unpin> Future for All<F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.0.retain_mut(|future| Pin::new(future).poll(context).is_pending());
        if self.0.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    }
}

/// Awaits a message or the end, the message if both are there.
pub(crate) async fn found_before(
    find: impl Future<Output = Found>,
    mut end: Pin<&mut impl Future<Output = ()>>,
) -> Option<Found> {
    let mut find = std::pin::pin!(find);
    std::future::poll_fn(|context| {
        if let Poll::Ready(found) = find.as_mut().poll(context) {
            return Poll::Ready(Some(found));
        }
        end.as_mut().poll(context).map(|()| None)
    })
    .await
}
