//! Receiving: the face of a process that messages come from.
//!
//! The blocking receives are inlined into the program. A rank that waits is resumed by another call than
//! the one in which it began to wait, so the processor foretells each `ret` wrongly that leads from there
//! back into the program, at some 8 ns: a fifth of a message between two ranks of a PE.

use std::fmt;
use std::mem::{ManuallyDrop, MaybeUninit};

use serde::de::DeserializeOwned;

use crate::datatype::wire::{self, Incoming, Outgoing};
use crate::datatype::{BufferMut, Equivalence, UncommittedDatatype};
use crate::operation::block_on_at;
use crate::operation::site;
use crate::operation::{self, Site, may_block};
use crate::point_to_point::{Message, Status, checked_tag, message};
use crate::request::{Kept, PersistentRequest, Request, Scope, StaticScope};
use crate::topology::sealed::AsHandle;
use crate::topology::{AnyProcess, AsCommunicator, Process};
use crate::{Rank, Tag, encoding};
use vrt_core::mailbox::{ANY, Pattern};
use vrt_core::pe;
use vrt_slot::report::count;

/// A process that messages can be received from: one, or any.
pub trait Source: AsCommunicator {
    /// Its rank; -1 stands for any.
    fn source_rank(&self) -> Rank;

    /// What a receive with this tag asks for.
    #[doc(hidden)]
    #[track_caller]
    fn pattern(&self, tag: Option<Tag>) -> Pattern {
        let comm = self.as_communicator().as_handle();
        let tag = match tag {
            None => ANY,
            Some(tag) => checked_tag(tag, comm),
        };
        Pattern { context: comm.context, source: self.source_rank(), tag }
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
    #[inline(always)]
    fn receive_with_tag<Msg: Equivalence>(&self, tag: Tag) -> (Msg, Status) {
        receive_one_at(self.pattern(Some(tag)), site!("receive"))
    }

    /// Receives one value.
    ///
    /// # Panics
    /// When the message is not one value of this type.
    #[track_caller]
    #[inline(always)]
    fn receive<Msg: Equivalence>(&self) -> (Msg, Status) {
        receive_one_at(self.pattern(None), site!("receive"))
    }

    /// Receives a message with a tag into a buffer.
    ///
    /// # Panics
    /// When the message is longer than the buffer.
    #[track_caller]
    #[inline(always)]
    fn receive_into_with_tag<Buf: BufferMut + ?Sized>(&self, buf: &mut Buf, tag: Tag) -> Status {
        receive_into_at(self.pattern(Some(tag)), buf, site!("receive_into"))
    }

    /// Receives a message into a buffer.
    ///
    /// # Panics
    /// When the message is longer than the buffer.
    #[track_caller]
    #[inline(always)]
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

    /// A receive with a tag to be started again and again (section 3.9).
    #[track_caller]
    fn persistent_receive_into_with_tag<'a, Buf: BufferMut + ?Sized>(
        &self,
        buf: &'a mut Buf,
        tag: Tag,
    ) -> PersistentRequest<'a, (), &'a mut Buf> {
        persistent_receive(self.pattern(Some(tag)), buf, site!("persistent_receive_into"))
    }

    /// A receive to be started again and again.
    #[track_caller]
    fn persistent_receive_into<'a, Buf: BufferMut + ?Sized>(
        &self,
        buf: &'a mut Buf,
    ) -> PersistentRequest<'a, (), &'a mut Buf> {
        persistent_receive(self.pattern(None), buf, site!("persistent_receive_into"))
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
    let probed = block_on_at(operation::probe(pattern, site), site);
    Status::of_probe(probed)
}

fn immediate_probe_at(pattern: Pattern, site: Site) -> Option<Status> {
    let found = operation::look(may_block(site), |engine| engine.probe(pattern));
    found.map(Status::of_probe)
}

#[inline(always)]
fn receive_one_at<Msg: Equivalence>(pattern: Pattern, site: Site) -> (Msg, Status) {
    let mut value = MaybeUninit::<Msg>::uninit();
    let mut room = room_for(&mut value);
    let may_block = may_block(site);
    // SAFETY: the value outlives the blocking call.
    let outcome = unsafe { operation::block_on_receive(may_block, pattern, room.room(), &site) };
    let status = Status::of(outcome, site);
    expect_one(status, room.len, site);
    room.finish_all();
    // SAFETY: all of the value has come, from a value of an equivalent type.
    (unsafe { value.assume_init() }, status)
}

/// Room for the bytes of a value that is not there yet.
pub(crate) fn room_for<Msg: Equivalence>(value: &mut MaybeUninit<Msg>) -> Incoming {
    let datatype = Msg::equivalent_datatype();
    // SAFETY: one value can be written there; callers keep it in its place meanwhile.
    unsafe { wire::incoming_elements(value.as_mut_ptr().cast(), 1, datatype.datatype_ref(), false) }
}

/// Checks that a message is one value of `size` bytes.
pub(crate) fn expect_one(status: Status, size: usize, site: Site) {
    if status.bytes != size as u64 {
        let rank = pe::current_rank().unwrap_or_default();
        panic!(
            "rank {rank} in {}: the message from rank {} with tag {} has {}, one value has {size}",
            site,
            status.source,
            status.tag,
            count(status.bytes, "byte"),
        );
    }
}

#[inline(always)]
fn receive_into_at<Buf: BufferMut + ?Sized>(pattern: Pattern, buf: &mut Buf, site: Site) -> Status {
    let mut room = wire::incoming(buf);
    let may_block = may_block(site);
    // SAFETY: the buffer is borrowed for the blocking call.
    let outcome = unsafe { operation::block_on_receive(may_block, pattern, room.room(), &site) };
    let status = Status::of(outcome, site);
    room.finish(status.bytes as usize);
    status
}

fn receive_value_at<T: DeserializeOwned>(
    pattern: Pattern,
    site: Site,
) -> Result<(T, Status), encoding::DecodeError> {
    block_on_at(message::receive_value(pattern, site), site)
}

fn immediate_receive_at<'a, Sc: Scope<'a>, Buf: BufferMut + ?Sized>(
    pattern: Pattern,
    scope: Sc,
    buf: &'a mut Buf,
    site: Site,
) -> Request<'a, Buf, Sc> {
    let room = wire::incoming(buf);
    // SAFETY: the request borrows the buffer until it is done.
    let started = pe::with(|pe| unsafe { pe.engine.begin_receive(pattern, room.room()) });
    Request::with_buffers(started, buf, scope, site, Some(pattern), keep_incoming(room))
}

/// What has to be kept of a buffer that is received into.
pub(crate) fn keep_incoming(incoming: Incoming) -> Option<Box<Kept>> {
    incoming.is_staged().then(|| Box::new(Kept { outgoing: Outgoing::nothing(), incoming }))
}

fn persistent_receive<'a, Buf: BufferMut + ?Sized>(
    pattern: Pattern,
    buf: &'a mut Buf,
    site: Site,
) -> PersistentRequest<'a, (), &'a mut Buf> {
    PersistentRequest::message((), buf, site, move |_, buf| {
        let incoming = wire::incoming_staged(&mut **buf);
        let room = incoming.room();
        // SAFETY: what is received lies apart, and is kept until the request is done; only the
        // request's owner, who has the buffer, puts it there.
        let started = pe::with(|pe| unsafe { pe.engine.begin_receive(pattern, room) });
        (started, Box::new(Kept { outgoing: Outgoing::nothing(), incoming }), Some(pattern))
    })
}

/// A value that is being received.
pub struct ReceiveFuture<T: 'static> {
    /// Leaked with the request if that is dropped and cannot be taken back.
    value: ManuallyDrop<Box<MaybeUninit<T>>>,
    request: Request<'static, (), StaticScope>,
}

impl<T> fmt::Debug for ReceiveFuture<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReceiveFuture").field("request", &self.request).finish_non_exhaustive()
    }
}

impl<T: Equivalence> ReceiveFuture<T> {
    fn start(pattern: Pattern, site: Site) -> ReceiveFuture<T> {
        let mut value = Box::<T>::new_uninit();
        let room = room_for(&mut value);
        // SAFETY: the box lives, and is not looked at, until the request is done; it is leaked if
        // that is never waited for.
        let started = pe::with(|pe| unsafe { pe.engine.begin_receive(pattern, room.room()) });
        let (pattern, kept) = (Some(pattern), keep_incoming(room));
        let request = Request::with_buffers(started, &(), StaticScope, site, pattern, kept);
        ReceiveFuture { value: ManuallyDrop::new(value), request }
    }

    /// Waits for the value.
    ///
    /// # Panics
    /// When the message is not one value of this type.
    pub fn get(self) -> (T, Status) {
        let site = self.request.site();
        let status = self.request.wait();
        let value = ManuallyDrop::into_inner(self.value);
        expect_one(status, T::equivalent_datatype().datatype_ref().size(), site);
        // SAFETY: all bytes of the value have come, from a value of an equivalent type.
        (*unsafe { value.assume_init() }, status)
    }

    /// The value if it has come, otherwise itself.
    ///
    /// # Errors
    /// Itself, when the message has not come.
    ///
    /// # Panics
    /// When the message is not one value of this type.
    pub fn r#try(self) -> Result<(T, Status), Self> {
        let site = self.request.site();
        match self.request.test() {
            Ok(status) => {
                let value = ManuallyDrop::into_inner(self.value);
                expect_one(status, T::equivalent_datatype().datatype_ref().size(), site);
                // SAFETY: as in `get`.
                Ok((*unsafe { value.assume_init() }, status))
            }
            Err(request) => Err(ReceiveFuture { request, ..self }),
        }
    }
}
