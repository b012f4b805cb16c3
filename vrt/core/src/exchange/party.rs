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
    /// A message under way: it was started when it was made, whether or not this is polled.
    type Sending<'a>: Future<Output = ()> + Unpin;
    /// A receive under way, likewise.
    type Receiving<'a>: Future<Output = ()> + Unpin;

    /// Its number.
    fn me(&self) -> usize;

    /// How many take part.
    fn size(&self) -> usize;

    /// Parameters of the network between them.
    fn parameters(&self) -> LogGp;

    /// The node where another one is now, as far as is known here. Others may know otherwise.
    fn node_of(&self, other: usize) -> usize;

    /// Number of nodes, the same for all.
    fn nodes(&self) -> usize;

    /// Starts to send a message.
    fn send<'a>(&self, step: u32, to: usize, data: &'a [u8], how: Sent) -> Self::Sending<'a>;

    /// Starts to receive a message that is exactly as long as its room.
    fn receive<'a>(
        &self,
        step: u32,
        from: usize,
        room: &'a mut [MaybeUninit<u8>],
    ) -> Self::Receiving<'a>;

    /// Waits for a message, from anyone if `from` is `None`. A future that was dropped has found
    /// nothing.
    fn find(&self, step: u32, from: Option<usize>) -> impl Future<Output = Found>;

    /// Receives what was found into a room that is as long.
    fn take(&self, found: Found, room: &mut [MaybeUninit<u8>]) -> impl Future<Output = ()>;

    /// Gives one number to each, and gets one from each.
    fn all_to_all(&self, numbers: &[u64]) -> impl Future<Output = Vec<u64>>;

    /// Gives one number to each, and gets the sum of those that all gave it.
    fn reduce_scatter(&self, numbers: &[u32]) -> impl Future<Output = u32>;

    /// The largest of the numbers of all.
    fn maximum(&self, number: u64) -> impl Future<Output = u64>;

    /// Waits until all have come here.
    fn barrier(&self) -> impl Future<Output = ()>;

    /// Increases the counters of others for this exchange; done when all have been increased.
    fn count_up(&self, others: impl Iterator<Item = (usize, u64)>) -> impl Future<Output = ()>;

    /// What others have added to this one's counter.
    fn counted(&self) -> u64;
}

/// The destination of received messages.
pub trait Inbox {
    /// Room for messages, given by their sources and lengths. Each room has to be filled.
    fn rooms(&mut self, messages: &[(usize, usize)]) -> Vec<&mut [MaybeUninit<u8>]>;

    /// Room for one message.
    fn room(&mut self, source: usize, bytes: usize) -> &mut [MaybeUninit<u8>] {
        match self.rooms(&[(source, bytes)]).pop() {
            Some(room) => room,
            None => unreachable!("there is a room for each message"),
        }
    }

    /// Puts a message into a room of its own.
    fn put(&mut self, source: usize, data: &[u8]) {
        for (to, byte) in self.room(source, data.len()).iter_mut().zip(data) {
            to.write(*byte);
        }
    }
}

/// Messages as their bytes, with their sources.
#[derive(Debug, Default)]
pub struct Bytes(pub Vec<(usize, Vec<u8>)>);

impl Inbox for Bytes {
    fn rooms(&mut self, messages: &[(usize, usize)]) -> Vec<&mut [MaybeUninit<u8>]> {
        let before = self.0.len();
        self.0.extend(messages.iter().map(|(source, bytes)| (*source, vec![0; *bytes])));
        let new = self.0[before..].iter_mut();
        // SAFETY: initialised bytes stay so: rooms are written to only.
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
