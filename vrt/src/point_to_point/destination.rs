//! Sending: the face of a process that messages go to.

use serde::Serialize;

use crate::datatype::wire::{self, Incoming, Outgoing};
use crate::datatype::{Buffer, Signature};
use crate::operation::OrRefuse;
use crate::operation::site;
use crate::operation::{self, Site, may_block};
use crate::point_to_point::checked_tag;
use crate::request::{Kept, PersistentRequest, Request, Scope};
use crate::topology::sealed::AsHandle;
use crate::topology::{AsCommunicator, Process};
use crate::{Rank, Tag, encoding};
use vrt_core::comm::CommunicatorHandle;
use vrt_core::pe::{self, Mode, Outbound};

/// A process that messages can be sent to.
pub trait Destination: AsCommunicator {
    /// Its rank.
    fn destination_rank(&self) -> Rank;

    /// What sending this buffer means to the engine, and the bytes that are sent.
    #[doc(hidden)]
    #[inline(always)]
    #[track_caller]
    fn outbound<Buf: Buffer + ?Sized>(&self, buf: &Buf, tag: Tag, mode: Mode) -> ToSend {
        let comm: &CommunicatorHandle = self.as_communicator().as_handle();
        let bytes = wire::outgoing(buf);
        let outbound = Outbound {
            context: comm.context,
            to: comm.job_rank(self.destination_rank()).or_refuse(site!("")),
            source: comm.rank,
            tag: checked_tag(tag, comm),
            data: bytes.at,
            len: bytes.len,
            mode,
            signature: bytes.signature,
        };
        ToSend { outbound, bytes }
    }

    /// What sending the bytes of an encoded value means to the engine.
    #[doc(hidden)]
    #[track_caller]
    fn outbound_value(&self, bytes: &Vec<u8>, tag: Tag) -> ToSend {
        let mut message = self.outbound(bytes, tag, Mode::Standard);
        message.outbound.signature = Signature::VALUE;
        message
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
        send_at(self.outbound_value(&bytes, tag), site!("send_value"));
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

    /// A send with a tag to be started again and again (section 3.9).
    #[track_caller]
    fn persistent_send_with_tag<'a, Buf: Buffer + ?Sized>(
        &self,
        buf: &'a mut Buf,
        tag: Tag,
    ) -> PersistentRequest<'a, &'a mut Buf, ()> {
        let outbound = self.outbound(&*buf, tag, Mode::Copied).outbound;
        PersistentRequest::message(buf, (), site!("persistent_send"), move |buf, _| {
            let outgoing = wire::outgoing(&**buf);
            let Outgoing { at: data, len, signature, .. } = outgoing;
            let message = Outbound { data, len, signature, ..outbound };
            // SAFETY: the buffer is borrowed now, when what is sent is copied.
            let started = pe::with(|pe| unsafe { pe.engine.send(&message) });
            (started, Box::new(Kept { outgoing, incoming: Incoming::nothing() }), None)
        })
    }

    /// A send to be started again and again.
    #[track_caller]
    fn persistent_send<'a, Buf: Buffer + ?Sized>(
        &self,
        buf: &'a mut Buf,
    ) -> PersistentRequest<'a, &'a mut Buf, ()> {
        self.persistent_send_with_tag(buf, Tag::default())
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

/// A message to be sent, with its bytes.
#[derive(Debug)]
#[doc(hidden)]
pub struct ToSend {
    pub(crate) outbound: Outbound,
    pub(crate) bytes: Outgoing,
}

fn send_at(message: ToSend, site: Site) {
    let may_block = may_block(site);
    // SAFETY: the caller's buffer is borrowed for the blocking call.
    unsafe { operation::block_on_send(may_block, &message.outbound, &site) };
}

fn immediate_send_at<'a, Sc: Scope<'a>, Buf: Buffer + ?Sized>(
    message: ToSend,
    scope: Sc,
    buf: &'a Buf,
    site: Site,
) -> Request<'a, Buf, Sc> {
    // SAFETY: the request borrows the buffer until it is done.
    let started = pe::with(|pe| unsafe { pe.engine.send(&message.outbound) });
    Request::with_buffers(started, buf, scope, site, None, keep_outgoing(message.bytes))
}

/// What has to be kept of a buffer that is sent.
fn keep_outgoing(outgoing: Outgoing) -> Option<Box<Kept>> {
    outgoing.is_packed().then(|| Box::new(Kept { outgoing, incoming: Incoming::nothing() }))
}
