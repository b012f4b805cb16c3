//! Ranks of a communicator as those who exchange.
//!
//! Exchanges have contexts of their own beside those of their communicator, and each has a number
//! that all its messages bear: neither the program's messages nor those of another exchange are
//! ever taken for its own. The number is counted where the rank's collective operations are, so it
//! goes with the rank however it moves.

use std::future::Future;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::Rank;
use crate::collective::SystemOperation;
use crate::collective::operation::sealed::Applies;
use crate::collective::reduce_op::reduce_op;
use crate::datatype::wire::{self, Incoming};
use crate::datatype::{Equivalence, Signature, UncommittedDatatype};
use crate::operation::Status;
use crate::operation::{self, At, OrRefuse, Pending, Site, Ticket};
use vrt_core::comm::algorithms::{Collective, In, Out};
use vrt_core::comm::create;
use vrt_core::comm::handle::CommunicatorHandle;
use vrt_core::comm::records::exchange_half;
use vrt_core::exchange::party::{All, Found, Inbox, Party, Sent};
use vrt_core::exchange::{Exchanges, LogGp, counter};
use vrt_core::mailbox::{ANY, Pattern};
use vrt_core::pe::{self, Mode, Outbound, Room, Started};
use vrt_slot::report::count;

/// The communicator's ranks in the contexts of its exchanges.
async fn exchange_communicator(comm: &CommunicatorHandle, site: Site) -> CommunicatorHandle {
    if let Some(known) = comm.exchange.get() {
        return known.clone();
    }
    let own = create::finish(exchange_half(comm), site).await.at(site).or_refuse();
    comm.exchange.get_or_init(|| own).clone()
}

/// One rank in one exchange.
#[derive(Debug)]
pub(super) struct RankParty {
    comm: CommunicatorHandle,
    /// Number of the exchange.
    number: u32,
    /// What the elements of its messages are.
    signature: Signature,
    site: Site,
}

impl RankParty {
    /// Begins an exchange of the calling rank. All ranks of the communicator do so.
    pub(super) async fn begin(
        comm: &CommunicatorHandle,
        signature: Signature,
        site: Site,
    ) -> RankParty {
        let comm = exchange_communicator(comm, site).await;
        let context = comm.context;
        let number = pe::with(|pe| pe.engine.running().collectives.next(context));
        RankParty { comm, number, signature, site }
    }

    /// Messages have the number of their exchange and their step for a tag. Numbers come again
    /// after 4 million exchanges; no rank is more than one ahead of another.
    fn tag(&self, step: u32) -> i32 {
        (((self.number & 0x3f_ffff) << 8) | (step & 0xff)) as i32
    }

    fn pattern(&self, step: u32, from: Option<usize>) -> Pattern {
        let source = from.map_or(ANY, |from| from as i32);
        Pattern { context: self.comm.context, source, tag: self.tag(step) }
    }

    fn room(&self, room: &mut [MaybeUninit<u8>]) -> Room {
        let (buffer, capacity) = (room.as_mut_ptr().cast(), room.len());
        Room { buffer, capacity, signature: self.signature }
    }

    fn collective(&self) -> Collective {
        Collective::begin(&self.comm, self.site)
    }

    async fn reduce<T: Equivalence>(
        &self,
        numbers: &[T],
        out: &mut [T],
        op: SystemOperation,
        all: bool,
    ) {
        let datatype = T::equivalent_datatype().datatype_ref().to_owned_type();
        let op = reduce_op(op.function(), &datatype).at(self.site).or_refuse();
        let (from, to) = (wire::outgoing(numbers), wire::incoming(out));
        let (from, to) = (from.input(), to.out());
        let collective = self.collective();
        // SAFETY: both are borrowed until the future is ready.
        unsafe {
            if all {
                collective.reduce(None, &op, from, Some(to)).await
            } else {
                let lengths = vec![to.1; self.size()];
                collective.reduce_scatter(&op, from, &lengths, to).await
            }
        }
        .at(self.site)
        .or_refuse();
    }
}

/// A request that uses memory borrowed for `'a` until it is done.
#[derive(Debug)]
pub(super) struct Using<'a>(Option<Pending>, Site, PhantomData<&'a [u8]>);

impl Using<'_> {
    fn new(started: Started, site: Site, pattern: Pattern) -> Self {
        match started {
            Started::Done(outcome) => {
                Status::of(outcome, site).or_refuse();
                Using(None, site, PhantomData)
            }
            Started::Pending(request, _) => {
                Using(Some(Pending::new(request, site, Some(pattern))), site, PhantomData)
            }
        }
    }
}

impl Future for Using<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let site = self.1;
        match &mut self.0 {
            None => Poll::Ready(()),
            Some(pending) => Pin::new(pending).poll(context).map(|outcome| {
                Status::of(outcome.at(site).or_refuse(), site).or_refuse();
            }),
        }
    }
}

impl Party for RankParty {
    type Sending<'a> = Using<'a>;
    type Receiving<'a> = Using<'a>;

    fn me(&self) -> usize {
        self.comm.rank as usize
    }

    fn size(&self) -> usize {
        self.comm.size as usize
    }

    fn parameters(&self) -> LogGp {
        pe::with(|pe| pe.engine.extension::<Exchanges>().model)
    }

    fn node_of(&self, other: usize) -> usize {
        let rank = self.comm.members.get(other);
        pe::with(|pe| {
            let shared = pe.engine.shared();
            let pe = shared.location_of(rank).and_then(|place| place.pe());
            pe.map_or(0, |pe| shared.node_of(pe))
        })
    }

    fn nodes(&self) -> usize {
        pe::with(|pe| pe.engine.shared().nodes())
    }

    fn send<'a>(&self, step: u32, to: usize, data: &'a [u8], how: Sent) -> Using<'a> {
        let message = Outbound {
            context: self.comm.context,
            to: self.comm.members.get(to),
            source: self.comm.rank,
            tag: self.tag(step),
            data: data.as_ptr(),
            len: data.len(),
            mode: match how {
                Sent::Standard => Mode::Standard,
                Sent::Synchronous => Mode::Synchronous,
            },
            signature: self.signature,
        };
        // SAFETY: the result borrows the data; it cannot be dropped before it is done.
        let started = pe::with(|pe| unsafe { pe.engine.send(&message) });
        Using::new(started, self.site, operation::sent_to(&message))
    }

    fn receive<'a>(&self, step: u32, from: usize, room: &'a mut [MaybeUninit<u8>]) -> Using<'a> {
        let (pattern, room) = (self.pattern(step, Some(from)), self.room(room));
        // SAFETY: the result borrows the room; dropping it takes the receive back.
        let started = pe::with(|pe| unsafe { pe.engine.receive(pattern, room) });
        Using::new(started, self.site, pattern)
    }

    async fn find(&self, step: u32, from: Option<usize>) -> Found {
        let (number, probed) = operation::matched_probe(self.pattern(step, from), self.site).await;
        Found { source: probed.source as usize, bytes: probed.bytes as usize, number }
    }

    async fn take(&self, found: Found, room: &mut [MaybeUninit<u8>]) {
        let room = self.room(room);
        // SAFETY: the future borrows the room.
        let outcome =
            unsafe { operation::receive_matched(Ticket::new(found.number), room, self.site) }.await;
        Status::of(outcome.at(self.site).or_refuse(), self.site).or_refuse();
    }

    async fn all_to_all(&self, numbers: &[u64]) -> Vec<u64> {
        let mut theirs = vec![0u64; numbers.len()];
        let bytes = size_of_val(numbers);
        let from = In(numbers.as_ptr().cast(), bytes, Signature::ANY);
        let to = Out(theirs.as_mut_ptr().cast(), bytes, Signature::ANY);
        let collective = self.collective();
        // SAFETY: both live until the future is ready.
        unsafe { collective.all_to_all(from, to) }.await.at(self.site).or_refuse();
        theirs
    }

    async fn reduce_scatter(&self, numbers: &[u32]) -> u32 {
        let mut sum = [0u32];
        self.reduce(numbers, &mut sum, SystemOperation::sum(), false).await;
        sum[0]
    }

    async fn maximum(&self, number: u64) -> u64 {
        let mut maximum = [0u64];
        self.reduce(&[number], &mut maximum, SystemOperation::max(), true).await;
        maximum[0]
    }

    async fn barrier(&self) {
        let collective = self.collective();
        collective.barrier().await.at(self.site).or_refuse();
    }

    async fn count_up(&self, others: impl Iterator<Item = (usize, u64)>) {
        let start = |(other, amount)| {
            let (rank, counter) = (self.comm.members.get(other), (self.comm.context, self.number));
            let started = pe::with(|pe| counter::count_up(&mut pe.engine, rank, counter, amount));
            Using::new(started, self.site, self.pattern(0, Some(other)))
        };
        All(others.map(start).collect()).await;
    }

    fn counted(&self) -> u64 {
        let counter = (self.comm.context, self.number);
        pe::with(|pe| pe.engine.running().counters_of_exchanges.remove(&counter))
            .unwrap_or_default()
    }
}

/// Messages of values, with their sources.
pub(super) struct Values<T>(Vec<Received<T>>);

struct Received<T> {
    source: usize,
    /// Empty, with room for `count` values, which come through `room`.
    values: Vec<T>,
    count: usize,
    room: Incoming,
}

impl<T: Equivalence> Values<T> {
    pub(super) fn new() -> Values<T> {
        Values(Vec::new())
    }

    /// The messages, by source, those of one source in the order sent.
    ///
    /// # Safety
    /// All rooms have been filled with bytes of equivalent values.
    pub(super) unsafe fn into_messages(mut self, site: Site) -> Vec<(Rank, Vec<T>)> {
        self.0.sort_by_key(|received| received.source);
        let take = |received: Received<T>| {
            let Received { source, mut values, count, mut room } = received;
            room.finish_all().at(site).or_refuse();
            // SAFETY: as the caller promises.
            unsafe { values.set_len(count) };
            (source as Rank, values)
        };
        self.0.into_iter().map(take).collect()
    }
}

impl<T: Equivalence> Inbox for Values<T> {
    /// # Panics
    /// When a message is not made of whole values.
    unsafe fn rooms(&mut self, messages: &[(usize, usize)]) -> Vec<&mut [MaybeUninit<u8>]> {
        let datatype = T::equivalent_datatype();
        let datatype = datatype.datatype_ref();
        let each = datatype.size().max(1);
        let before = self.0.len();
        for (source, bytes) in messages {
            assert!(
                bytes.is_multiple_of(each),
                "the message from rank {source} has {}, no multiple of a value's {each}",
                count(*bytes, "byte")
            );
            let count = bytes / each;
            let mut values: Vec<T> = Vec::with_capacity(count);
            let at = values.as_mut_ptr().cast();
            // SAFETY: the vector has room for so many values, and its memory stays where it is.
            let room = unsafe { wire::incoming_elements(at, count, datatype, false) };
            self.0.push(Received { source: *source, values, count, room });
        }
        let new = self.0[before..].iter_mut();
        // SAFETY: each room is memory of its own, as long as it says.
        new.map(|Received { room, .. }| unsafe {
            std::slice::from_raw_parts_mut(room.at.cast(), room.len)
        })
        .collect()
    }
}
