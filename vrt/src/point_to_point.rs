//! Messages between two ranks (MPI-4.1 chapter 3).
//!
//! The names and traits of the `mpi` crate's `point_to_point` module. Each blocking call suspends
//! the rank until it is done, and other ranks of the PE run; its async twin ends in `_async`
//! ([`AsyncSource`], [`AsyncDestination`]). Beside them, any serde value can be sent with
//! `send_value` and received with `receive_value`.
//!
//! Errors in the use of messages (a rank or tag out of range, a message longer than its receive)
//! panic with the rank, the call and the values: nothing is ever cut off silently.

mod async_twins;
mod exchange;
mod message;

pub use async_twins::{AsyncDestination, AsyncSource};
pub(crate) use exchange::exchange;
pub use exchange::{
    send_receive, send_receive_into, send_receive_into_with_tags, send_receive_replace_into,
    send_receive_replace_into_with_tags, send_receive_with_tags,
};
pub use message::{MatchedReceiveVec, Message};

use std::fmt;
use std::mem::MaybeUninit;
use std::panic::Location;

use serde::{Serialize, de::DeserializeOwned};

use crate::datatype::{Buffer, BufferMut, Datatype, Equivalence};
use crate::mailbox::{ANY, Pattern};
use crate::operation::{self, Site};
use crate::pe::{self, Completion, Mode, Outbound, Probed};
use crate::rank::block_on_at;
use crate::request::{Request, Scope, StaticScope};
use crate::topology::sealed::AsHandle;
use crate::topology::{AnyProcess, AsCommunicator, CommunicatorHandle, Process};
use crate::{Count, Rank, Tag, encoding};

/// The traits of this module.
pub mod traits {
    pub use super::{AsyncDestination, AsyncSource, Destination, MatchedReceiveVec, Source};
}

/// What is known of a received message.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Status {
    source: Rank,
    tag: Tag,
    bytes: u64,
}

impl Status {
    /// The rank it came from.
    pub fn source_rank(&self) -> Rank {
        self.source
    }

    /// Its tag.
    pub fn tag(&self) -> Tag {
        self.tag
    }

    /// Its length in elements of a datatype.
    pub fn count<D: Datatype>(&self, datatype: D) -> Count {
        (self.bytes / datatype.as_ref().size() as u64) as Count
    }

    /// Its length in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn of_probe(probed: Probed) -> Status {
        Status { source: probed.source, tag: probed.tag, bytes: probed.bytes }
    }

    /// The status of a receive.
    ///
    /// # Panics
    /// When the message was longer than the buffer.
    pub(crate) fn of(outcome: Completion, site: Site) -> Status {
        let Completion { source, tag, bytes, capacity, .. } = outcome;
        if outcome.is_truncated() {
            panic!(
                "{} at {}: the message from rank {source} with tag {tag} has {bytes} bytes, the \
                 buffer only {capacity}",
                site.call, site.location
            );
        }
        Status { source, tag, bytes }
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Status")
            .field("source_rank", &self.source)
            .field("tag", &self.tag)
            .field("bytes", &self.bytes)
            .finish()
    }
}

/// Names the call, for errors and the table of a deadlock.
macro_rules! site {
    ($call:literal) => {
        crate::operation::Site { call: $call, location: Location::caller() }
    };
}
pub(crate) use site;

#[track_caller]
fn checked_tag(tag: Tag) -> Tag {
    if tag < 0 {
        panic!("tag {tag} is out of range: 0 to {} are allowed", Tag::MAX);
    }
    tag
}

/// A process that messages can be received from: one, or any.
pub trait Source: AsCommunicator {
    /// Its rank; -1 stands for any.
    fn source_rank(&self) -> Rank;

    /// What a receive with this tag asks for.
    #[doc(hidden)]
    #[track_caller]
    fn pattern(&self, tag: Option<Tag>) -> Pattern {
        let context = self.as_communicator().as_handle().context;
        Pattern { context, source: self.source_rank(), tag: tag.map_or(ANY, |t| checked_tag(t)) }
    }

    /// Waits for a message with a tag and describes it (section 3.8.1).
    #[track_caller]
    fn probe_with_tag(&self, tag: Tag) -> Status {
        probe_at(self.pattern(Some(tag)), site!("probe"))
    }

    /// Waits for a message and describes it.
    #[track_caller]
    fn probe(&self) -> Status {
        probe_at(self.pattern(None), site!("probe"))
    }

    /// Describes a message with a tag if there is one. When there is none, other ranks get a turn.
    #[track_caller]
    fn immediate_probe_with_tag(&self, tag: Tag) -> Option<Status> {
        immediate_probe_at(self.pattern(Some(tag)), site!("immediate_probe"))
    }

    /// Describes a message if there is one. When there is none, other ranks get a turn.
    #[track_caller]
    fn immediate_probe(&self) -> Option<Status> {
        immediate_probe_at(self.pattern(None), site!("immediate_probe"))
    }

    /// Waits for a message with a tag and reserves it (section 3.8.2).
    #[track_caller]
    fn matched_probe_with_tag(&self, tag: Tag) -> (Message, Status) {
        message::matched_probe_at(self.pattern(Some(tag)), site!("matched_probe"))
    }

    /// Waits for a message and reserves it.
    #[track_caller]
    fn matched_probe(&self) -> (Message, Status) {
        message::matched_probe_at(self.pattern(None), site!("matched_probe"))
    }

    /// Reserves a message with a tag if there is one.
    #[track_caller]
    fn immediate_matched_probe_with_tag(&self, tag: Tag) -> Option<(Message, Status)> {
        let site = site!("immediate_matched_probe");
        message::immediate_matched_probe_at(self.pattern(Some(tag)), site)
    }

    /// Reserves a message if there is one.
    #[track_caller]
    fn immediate_matched_probe(&self) -> Option<(Message, Status)> {
        let site = site!("immediate_matched_probe");
        message::immediate_matched_probe_at(self.pattern(None), site)
    }

    /// Receives one value with a tag.
    ///
    /// # Panics
    /// When the message is not one value of this type.
    #[track_caller]
    fn receive_with_tag<Msg: Equivalence>(&self, tag: Tag) -> (Msg, Status) {
        receive_one_at(self.pattern(Some(tag)), site!("receive"))
    }

    /// Receives one value.
    ///
    /// # Panics
    /// When the message is not one value of this type.
    #[track_caller]
    fn receive<Msg: Equivalence>(&self) -> (Msg, Status) {
        receive_one_at(self.pattern(None), site!("receive"))
    }

    /// Receives a message with a tag into a buffer.
    ///
    /// # Panics
    /// When the message is longer than the buffer.
    #[track_caller]
    fn receive_into_with_tag<Buf: BufferMut + ?Sized>(&self, buf: &mut Buf, tag: Tag) -> Status {
        receive_into_at(self.pattern(Some(tag)), buf, site!("receive_into"))
    }

    /// Receives a message into a buffer.
    ///
    /// # Panics
    /// When the message is longer than the buffer.
    #[track_caller]
    fn receive_into<Buf: BufferMut + ?Sized>(&self, buf: &mut Buf) -> Status {
        receive_into_at(self.pattern(None), buf, site!("receive_into"))
    }

    /// Receives a message of any length with a tag.
    #[track_caller]
    fn receive_vec_with_tag<Msg: Equivalence>(&self, tag: Tag) -> (Vec<Msg>, Status) {
        message::receive_vec_at(self.pattern(Some(tag)), site!("receive_vec"))
    }

    /// Receives a message of any length.
    #[track_caller]
    fn receive_vec<Msg: Equivalence>(&self) -> (Vec<Msg>, Status) {
        message::receive_vec_at(self.pattern(None), site!("receive_vec"))
    }

    /// Receives a serde value sent with `send_value_with_tag`.
    ///
    /// # Errors
    /// The bytes are not an encoding of this type.
    #[track_caller]
    fn receive_value_with_tag<T: DeserializeOwned>(
        &self,
        tag: Tag,
    ) -> Result<(T, Status), encoding::DecodeError> {
        receive_value_at(self.pattern(Some(tag)), site!("receive_value"))
    }

    /// Receives a serde value sent with `send_value`.
    ///
    /// # Errors
    /// The bytes are not an encoding of this type.
    #[track_caller]
    fn receive_value<T: DeserializeOwned>(&self) -> Result<(T, Status), encoding::DecodeError> {
        receive_value_at(self.pattern(None), site!("receive_value"))
    }

    /// Begins to receive a message with a tag into a buffer (section 3.7.2).
    #[track_caller]
    fn immediate_receive_into_with_tag<'a, Sc, Buf>(
        &self,
        scope: Sc,
        buf: &'a mut Buf,
        tag: Tag,
    ) -> Request<'a, Buf, Sc>
    where
        Buf: 'a + BufferMut + ?Sized,
        Sc: Scope<'a>,
    {
        immediate_receive_at(self.pattern(Some(tag)), scope, buf, site!("immediate_receive_into"))
    }

    /// Begins to receive a message into a buffer.
    #[track_caller]
    fn immediate_receive_into<'a, Sc, Buf>(
        &self,
        scope: Sc,
        buf: &'a mut Buf,
    ) -> Request<'a, Buf, Sc>
    where
        Buf: 'a + BufferMut + ?Sized,
        Sc: Scope<'a>,
    {
        immediate_receive_at(self.pattern(None), scope, buf, site!("immediate_receive_into"))
    }

    /// Begins to receive one value with a tag.
    #[track_caller]
    fn immediate_receive_with_tag<Msg: Equivalence>(&self, tag: Tag) -> ReceiveFuture<Msg> {
        ReceiveFuture::start(self.pattern(Some(tag)), site!("immediate_receive"))
    }

    /// Begins to receive one value.
    #[track_caller]
    fn immediate_receive<Msg: Equivalence>(&self) -> ReceiveFuture<Msg> {
        ReceiveFuture::start(self.pattern(None), site!("immediate_receive"))
    }
}

impl Source for AnyProcess<'_> {
    fn source_rank(&self) -> Rank {
        ANY
    }
}

impl Source for Process<'_> {
    fn source_rank(&self) -> Rank {
        self.rank()
    }
}

fn probe_at(pattern: Pattern, site: Site) -> Status {
    let probed = block_on_at(operation::probe(pattern, site), site.call, site.location);
    Status::of_probe(probed)
}

fn immediate_probe_at(pattern: Pattern, site: Site) -> Option<Status> {
    let found = pe::with(|pe| pe.engine.probe(pattern));
    if found.is_none() {
        let turn = crate::rank::yield_now_async();
        block_on_at(turn, site.call, site.location);
    }
    found.map(Status::of_probe)
}

fn receive_one_at<Msg: Equivalence>(pattern: Pattern, site: Site) -> (Msg, Status) {
    let mut value = MaybeUninit::<Msg>::uninit();
    let (at, len) = (value.as_mut_ptr().cast(), size_of::<Msg>());
    // SAFETY: the value outlives the blocking call.
    let start = |engine: &mut pe::Engine| unsafe { engine.receive(pattern, at, len) };
    let status = Status::of(operation::block_on_request(start, Some(pattern), site), site);
    expect_one::<Msg>(status, site);
    // SAFETY: all bytes of the value have come, from a value of an equivalent type.
    (unsafe { value.assume_init() }, status)
}

fn expect_one<Msg>(status: Status, site: Site) {
    if status.bytes != size_of::<Msg>() as u64 {
        panic!(
            "{} at {}: the message from rank {} with tag {} has {} bytes, one value has {}",
            site.call,
            site.location,
            status.source,
            status.tag,
            status.bytes,
            size_of::<Msg>()
        );
    }
}

fn receive_into_at<Buf: BufferMut + ?Sized>(pattern: Pattern, buf: &mut Buf, site: Site) -> Status {
    let (at, len) = (buf.pointer_mut().cast(), buf.len_in_bytes());
    // SAFETY: the buffer is borrowed for the blocking call.
    let start = |engine: &mut pe::Engine| unsafe { engine.receive(pattern, at, len) };
    Status::of(operation::block_on_request(start, Some(pattern), site), site)
}

fn receive_value_at<T: DeserializeOwned>(
    pattern: Pattern,
    site: Site,
) -> Result<(T, Status), encoding::DecodeError> {
    let (bytes, status) = message::receive_vec_at::<u8>(pattern, site);
    Ok((encoding::decode(&bytes)?, status))
}

fn immediate_receive_at<'a, Sc: Scope<'a>, Buf: BufferMut + ?Sized>(
    pattern: Pattern,
    scope: Sc,
    buf: &'a mut Buf,
    site: Site,
) -> Request<'a, Buf, Sc> {
    let (at, len) = (buf.pointer_mut().cast(), buf.len_in_bytes());
    // SAFETY: the request borrows the buffer until it is done.
    let started = pe::with(|pe| unsafe { pe.engine.receive(pattern, at, len) });
    Request::new(started, buf, scope, site, Some(pattern))
}

/// A process that messages can be sent to.
pub trait Destination: AsCommunicator {
    /// Its rank.
    fn destination_rank(&self) -> Rank;

    /// What sending this buffer means to the engine.
    #[doc(hidden)]
    #[track_caller]
    fn outbound<Buf: Buffer + ?Sized>(&self, buf: &Buf, tag: Tag, mode: Mode) -> Outbound {
        let comm: &CommunicatorHandle = self.as_communicator().as_handle();
        Outbound {
            context: comm.context,
            to: comm.job_rank(self.destination_rank()),
            source: comm.rank,
            tag: checked_tag(tag),
            data: buf.pointer().cast(),
            len: buf.len_in_bytes(),
            mode,
        }
    }

    /// Sends a buffer with a tag (section 3.2.1). May return before the message is received.
    #[track_caller]
    fn send_with_tag<Buf: Buffer + ?Sized>(&self, buf: &Buf, tag: Tag) {
        send_at(self.outbound(buf, tag, Mode::Standard), site!("send"));
    }

    /// Sends a buffer.
    #[track_caller]
    fn send<Buf: Buffer + ?Sized>(&self, buf: &Buf) {
        send_at(self.outbound(buf, Tag::default(), Mode::Standard), site!("send"));
    }

    /// Sends a copy of a buffer with a tag; never waits for the receiver (section 3.4).
    #[track_caller]
    fn buffered_send_with_tag<Buf: Buffer + ?Sized>(&self, buf: &Buf, tag: Tag) {
        send_at(self.outbound(buf, tag, Mode::Buffered), site!("buffered_send"));
    }

    /// Sends a copy of a buffer; never waits for the receiver.
    #[track_caller]
    fn buffered_send<Buf: Buffer + ?Sized>(&self, buf: &Buf) {
        self.buffered_send_with_tag(buf, Tag::default());
    }

    /// Sends a buffer with a tag and waits until its receive has begun (section 3.4).
    #[track_caller]
    fn synchronous_send_with_tag<Buf: Buffer + ?Sized>(&self, buf: &Buf, tag: Tag) {
        send_at(self.outbound(buf, tag, Mode::Synchronous), site!("synchronous_send"));
    }

    /// Sends a buffer and waits until its receive has begun.
    #[track_caller]
    fn synchronous_send<Buf: Buffer + ?Sized>(&self, buf: &Buf) {
        self.synchronous_send_with_tag(buf, Tag::default());
    }

    /// Sends a buffer with a tag to a receive that is posted already (section 3.4).
    ///
    /// # Safety
    /// As in MPI the receive has to be posted. (Here nothing bad happens if it is not.)
    #[track_caller]
    unsafe fn ready_send_with_tag<Buf: Buffer + ?Sized>(&self, buf: &Buf, tag: Tag) {
        send_at(self.outbound(buf, tag, Mode::Standard), site!("ready_send"));
    }

    /// Sends a buffer to a receive that is posted already.
    ///
    /// # Safety
    /// As [`ready_send_with_tag`](Self::ready_send_with_tag).
    #[track_caller]
    unsafe fn ready_send<Buf: Buffer + ?Sized>(&self, buf: &Buf) {
        // SAFETY: as the caller promises.
        unsafe { self.ready_send_with_tag(buf, Tag::default()) };
    }

    /// Sends any serde value with a tag, encoded by bincode.
    ///
    /// # Errors
    /// The value cannot be encoded.
    #[track_caller]
    fn send_value_with_tag<T: Serialize + ?Sized>(
        &self,
        value: &T,
        tag: Tag,
    ) -> Result<(), encoding::EncodeError> {
        let bytes = encoding::encode(value)?;
        send_at(self.outbound(&bytes, tag, Mode::Standard), site!("send_value"));
        Ok(())
    }

    /// Sends any serde value, encoded by bincode.
    ///
    /// # Errors
    /// The value cannot be encoded.
    #[track_caller]
    fn send_value<T: Serialize + ?Sized>(&self, value: &T) -> Result<(), encoding::EncodeError> {
        self.send_value_with_tag(value, Tag::default())
    }

    /// Begins to send a buffer with a tag (section 3.7.2).
    #[track_caller]
    fn immediate_send_with_tag<'a, Sc: Scope<'a>, Buf: 'a + Buffer + ?Sized>(
        &self,
        scope: Sc,
        buf: &'a Buf,
        tag: Tag,
    ) -> Request<'a, Buf, Sc> {
        immediate_send_at(
            self.outbound(buf, tag, Mode::Standard),
            scope,
            buf,
            site!("immediate_send"),
        )
    }

    /// Begins to send a buffer.
    #[track_caller]
    fn immediate_send<'a, Sc: Scope<'a>, Buf: 'a + Buffer + ?Sized>(
        &self,
        scope: Sc,
        buf: &'a Buf,
    ) -> Request<'a, Buf, Sc> {
        self.immediate_send_with_tag(scope, buf, Tag::default())
    }

    /// Sends a copy of a buffer with a tag, as a request.
    #[track_caller]
    fn immediate_buffered_send_with_tag<'a, Sc: Scope<'a>, Buf: 'a + Buffer + ?Sized>(
        &self,
        scope: Sc,
        buf: &'a Buf,
        tag: Tag,
    ) -> Request<'a, Buf, Sc> {
        let site = site!("immediate_buffered_send");
        immediate_send_at(self.outbound(buf, tag, Mode::Buffered), scope, buf, site)
    }

    /// Sends a copy of a buffer, as a request.
    #[track_caller]
    fn immediate_buffered_send<'a, Sc: Scope<'a>, Buf: 'a + Buffer + ?Sized>(
        &self,
        scope: Sc,
        buf: &'a Buf,
    ) -> Request<'a, Buf, Sc> {
        self.immediate_buffered_send_with_tag(scope, buf, Tag::default())
    }

    /// Begins to send a buffer with a tag; done when its receive has begun.
    #[track_caller]
    fn immediate_synchronous_send_with_tag<'a, Sc: Scope<'a>, Buf: 'a + Buffer + ?Sized>(
        &self,
        scope: Sc,
        buf: &'a Buf,
        tag: Tag,
    ) -> Request<'a, Buf, Sc> {
        let site = site!("immediate_synchronous_send");
        immediate_send_at(self.outbound(buf, tag, Mode::Synchronous), scope, buf, site)
    }

    /// Begins to send a buffer; done when its receive has begun.
    #[track_caller]
    fn immediate_synchronous_send<'a, Sc: Scope<'a>, Buf: 'a + Buffer + ?Sized>(
        &self,
        scope: Sc,
        buf: &'a Buf,
    ) -> Request<'a, Buf, Sc> {
        self.immediate_synchronous_send_with_tag(scope, buf, Tag::default())
    }

    /// Begins to send a buffer with a tag to a receive that is posted already.
    ///
    /// # Safety
    /// As [`ready_send_with_tag`](Self::ready_send_with_tag).
    #[track_caller]
    unsafe fn immediate_ready_send_with_tag<'a, Sc: Scope<'a>, Buf: 'a + Buffer + ?Sized>(
        &self,
        scope: Sc,
        buf: &'a Buf,
        tag: Tag,
    ) -> Request<'a, Buf, Sc> {
        self.immediate_send_with_tag(scope, buf, tag)
    }

    /// Begins to send a buffer to a receive that is posted already.
    ///
    /// # Safety
    /// As [`ready_send_with_tag`](Self::ready_send_with_tag).
    #[track_caller]
    unsafe fn immediate_ready_send<'a, Sc: Scope<'a>, Buf: 'a + Buffer + ?Sized>(
        &self,
        scope: Sc,
        buf: &'a Buf,
    ) -> Request<'a, Buf, Sc> {
        self.immediate_send(scope, buf)
    }
}

impl Destination for Process<'_> {
    fn destination_rank(&self) -> Rank {
        self.rank()
    }
}

fn send_at(message: Outbound, site: Site) {
    let pattern = operation::sent_to(&message);
    // SAFETY: the caller's buffer is borrowed for the blocking call.
    let start = |engine: &mut pe::Engine| unsafe { engine.send(&message) };
    operation::block_on_request(start, Some(pattern), site);
}

fn immediate_send_at<'a, Sc: Scope<'a>, Buf: Buffer + ?Sized>(
    message: Outbound,
    scope: Sc,
    buf: &'a Buf,
    site: Site,
) -> Request<'a, Buf, Sc> {
    // SAFETY: the request borrows the buffer until it is done.
    let started = pe::with(|pe| unsafe { pe.engine.send(&message) });
    Request::new(started, buf, scope, site, None)
}

/// A value that is being received.
pub struct ReceiveFuture<T: 'static> {
    value: Box<MaybeUninit<T>>,
    request: Request<'static, (), StaticScope>,
    site: Site,
}

impl<T> fmt::Debug for ReceiveFuture<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReceiveFuture").field("request", &self.request).finish_non_exhaustive()
    }
}

impl<T: Equivalence> ReceiveFuture<T> {
    fn start(pattern: Pattern, site: Site) -> ReceiveFuture<T> {
        let mut value = Box::<T>::new_uninit();
        let (at, len) = (value.as_mut_ptr().cast(), size_of::<T>());
        // SAFETY: the box lives, and is not looked at, until the request is done: a request that
        // is dropped before panics, and unwinding ends the job.
        let started = pe::with(|pe| unsafe { pe.engine.receive(pattern, at, len) });
        ReceiveFuture {
            value,
            request: Request::new(started, &(), StaticScope, site, Some(pattern)),
            site,
        }
    }

    /// Waits for the value.
    ///
    /// # Panics
    /// When the message is not one value of this type.
    pub fn get(self) -> (T, Status) {
        let status = self.request.wait();
        expect_one::<T>(status, self.site);
        // SAFETY: all bytes of the value have come, from a value of an equivalent type.
        (*unsafe { self.value.assume_init() }, status)
    }

    /// The value if it has come, otherwise itself.
    ///
    /// # Errors
    /// Itself, when the message has not come.
    ///
    /// # Panics
    /// When the message is not one value of this type.
    pub fn r#try(self) -> Result<(T, Status), Self> {
        match self.request.test() {
            Ok(status) => {
                expect_one::<T>(status, self.site);
                // SAFETY: as in `get`.
                Ok((*unsafe { self.value.assume_init() }, status))
            }
            Err(request) => Err(ReceiveFuture { request, ..self }),
        }
    }
}
