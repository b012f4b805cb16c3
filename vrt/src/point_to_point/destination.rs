//! Sending: what can be done with a process that messages go to.

use serde::Serialize;

use crate::datatype::wire::{self, Incoming, Outgoing};
use crate::datatype::{Buffer, Signature};
use crate::error::{At, Error, OrRefuse};
use crate::operation::{self, Site, may_block, site};
use crate::point_to_point::checked_tag;
use crate::request::{Kept, PersistentRequest, Request, Scope};
use crate::topology::sealed::AsHandle;
use crate::topology::{AsCommunicator, Process};
use crate::{Rank, Tag};
use vrt_core::comm::CommunicatorHandle;
use vrt_core::encoding::{self, EncodeError};
use vrt_core::pe::{self, Mode, Outbound};

/// A process that messages can be sent to.
///
/// # Examples
///
/// ```
/// use vrt::traits::*;
///
/// vrt::run_local(2, |world| {
///     let other = world.process_at_rank(1 - world.rank());
///     other.send_with_tag(&[1.5, 2.5], 7);
///     other.send_value(&("any", Some("serde value"))).unwrap();
///
///     let (numbers, status) = other.receive_vec_with_tag::<f64>(7);
///     assert_eq!((numbers, status.tag()), (vec![1.5, 2.5], 7));
///     let ((first, second), _) = other.receive_value::<(String, Option<String>)>().unwrap();
///     assert_eq!((&*first, second.as_deref()), ("any", Some("serde value")));
/// });
/// ```
pub trait Destination: AsCommunicator {
    /// Its rank.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| assert_eq!(world.process_at_rank(1).destination_rank(), 1));
    /// ```
    fn destination_rank(&self) -> Rank;

    /// Sends a buffer with a tag (section 3.2.1). May return before the message is received.
    ///
    /// # Panics
    /// When the tag is negative.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let other = world.process_at_rank(1 - world.rank());
    ///     other.send_with_tag(&[1, 2], 7);
    ///     let (numbers, status) = other.receive_vec::<i32>();
    ///     assert_eq!((numbers, status.tag()), (vec![1, 2], 7));
    /// });
    /// ```
    #[track_caller]
    fn send_with_tag<Buf: Buffer + ?Sized>(&self, buf: &Buf, tag: Tag) {
        send_at(self, buf, tag, Mode::Standard, site!("send")).or_refuse();
    }

    /// [`send_with_tag`](Self::send_with_tag) that returns what was wrong.
    ///
    /// # Errors
    /// The tag is negative. Nothing was sent then.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let other = world.process_at_rank(1 - world.rank());
    ///     let error = other.try_send_with_tag(&1, -1).unwrap_err();
    ///     assert_eq!(error.class(), vrt::ErrorClass::Tag);
    ///
    ///     assert!(other.try_send_with_tag(&2, 1).is_ok());
    ///     assert_eq!(other.receive::<i32>().0, 2);
    /// });
    /// ```
    #[track_caller]
    fn try_send_with_tag<Buf: Buffer + ?Sized>(&self, buf: &Buf, tag: Tag) -> Result<(), Error> {
        send_at(self, buf, tag, Mode::Standard, site!("send"))
    }

    /// Sends a buffer.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let other = world.process_at_rank(1 - world.rank());
    ///     other.send(&[1.5, 2.5]);
    ///     assert_eq!(other.receive_vec::<f64>().0, [1.5, 2.5]);
    /// });
    /// ```
    #[track_caller]
    fn send<Buf: Buffer + ?Sized>(&self, buf: &Buf) {
        send_at(self, buf, Tag::default(), Mode::Standard, site!("send")).or_refuse();
    }

    /// [`send`](Self::send) that returns what was wrong.
    ///
    /// # Errors
    /// There is no such rank. Nothing was sent then. (A [`Process`] that
    /// [`process_at_rank`](crate::topology::Communicator::process_at_rank) has given is always one.)
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let send = |to| world.try_process_at_rank(to).and_then(|to| to.try_send(&7));
    ///     assert!(send(2).is_err());
    ///     assert!(send(1 - world.rank()).is_ok());
    ///     assert_eq!(world.any_process().receive::<i32>().0, 7);
    /// });
    /// ```
    #[track_caller]
    fn try_send<Buf: Buffer + ?Sized>(&self, buf: &Buf) -> Result<(), Error> {
        send_at(self, buf, Tag::default(), Mode::Standard, site!("send"))
    }

    /// Sends a copy of a buffer with a tag; never waits for the receiver (section 3.4).
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let other = world.process_at_rank(1 - world.rank());
    ///     // Both send first, and neither waits for the other.
    ///     other.buffered_send_with_tag(&vec![1.5; 100_000], 3);
    ///     assert_eq!(other.receive_vec_with_tag::<f64>(3).0.len(), 100_000);
    /// });
    /// ```
    #[track_caller]
    fn buffered_send_with_tag<Buf: Buffer + ?Sized>(&self, buf: &Buf, tag: Tag) {
        send_at(self, buf, tag, Mode::Buffered, site!("buffered_send")).or_refuse();
    }

    /// Sends a copy of a buffer; never waits for the receiver.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let other = world.process_at_rank(1 - world.rank());
    ///     // Both send first, and neither waits for the other.
    ///     other.buffered_send(&vec![1.5; 100_000]);
    ///     assert_eq!(other.receive_vec::<f64>().0.len(), 100_000);
    /// });
    /// ```
    #[track_caller]
    fn buffered_send<Buf: Buffer + ?Sized>(&self, buf: &Buf) {
        self.buffered_send_with_tag(buf, Tag::default());
    }

    /// Sends a buffer with a tag and waits until its receive has begun (section 3.4).
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let other = world.process_at_rank(1 - world.rank());
    ///     if world.rank() == 0 {
    ///         other.synchronous_send_with_tag(&7, 3);
    ///     } else {
    ///         assert_eq!(other.receive_with_tag::<i32>(3).0, 7);
    ///     }
    /// });
    /// ```
    #[track_caller]
    fn synchronous_send_with_tag<Buf: Buffer + ?Sized>(&self, buf: &Buf, tag: Tag) {
        send_at(self, buf, tag, Mode::Synchronous, site!("synchronous_send")).or_refuse();
    }

    /// Sends a buffer and waits until its receive has begun.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let other = world.process_at_rank(1 - world.rank());
    ///     if world.rank() == 0 {
    ///         other.synchronous_send(&7);
    ///         // Here the other rank is known to receive.
    ///     } else {
    ///         assert_eq!(other.receive::<i32>().0, 7);
    ///     }
    /// });
    /// ```
    #[track_caller]
    fn synchronous_send<Buf: Buffer + ?Sized>(&self, buf: &Buf) {
        self.synchronous_send_with_tag(buf, Tag::default());
    }

    /// Sends a buffer with a tag to a receive that is posted already (section 3.4).
    ///
    /// # Safety
    /// As in MPI the receive has to be posted. (Here nothing bad happens if it is not.)
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let other = world.process_at_rank(1 - world.rank());
    ///     let receive = other.immediate_receive_with_tag::<i32>(3);
    ///     world.barrier();
    ///     // SAFETY: the other rank has posted its receive before the barrier.
    ///     unsafe { other.ready_send_with_tag(&world.rank(), 3) };
    ///     assert_eq!(receive.get().0, other.rank());
    /// });
    /// ```
    #[track_caller]
    unsafe fn ready_send_with_tag<Buf: Buffer + ?Sized>(&self, buf: &Buf, tag: Tag) {
        send_at(self, buf, tag, Mode::Standard, site!("ready_send")).or_refuse();
    }

    /// Sends a buffer to a receive that is posted already.
    ///
    /// # Safety
    /// As [`ready_send_with_tag`](Self::ready_send_with_tag).
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let other = world.process_at_rank(1 - world.rank());
    ///     let receive = other.immediate_receive::<i32>();
    ///     world.barrier();
    ///     // SAFETY: the other rank has posted its receive before the barrier.
    ///     unsafe { other.ready_send(&world.rank()) };
    ///     assert_eq!(receive.get().0, other.rank());
    /// });
    /// ```
    #[track_caller]
    unsafe fn ready_send<Buf: Buffer + ?Sized>(&self, buf: &Buf) {
        // SAFETY: as the caller promises.
        unsafe { self.ready_send_with_tag(buf, Tag::default()) };
    }

    /// Sends any serde value with a tag, encoded by bincode.
    ///
    /// # Errors
    /// The value cannot be encoded.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let other = world.process_at_rank(1 - world.rank());
    ///     other.send_value_with_tag(&("step", 3), 1).unwrap();
    ///     let ((name, number), _) = other.receive_value_with_tag::<(String, i32)>(1).unwrap();
    ///     assert_eq!((&*name, number), ("step", 3));
    /// });
    /// ```
    #[track_caller]
    fn send_value_with_tag<T: Serialize + ?Sized>(
        &self,
        value: &T,
        tag: Tag,
    ) -> Result<(), EncodeError> {
        let (bytes, site) = (encoding::encode(value)?, site!("send_value"));
        send_now(outbound_value(self, &bytes, tag, site).or_refuse(), site);
        Ok(())
    }

    /// Sends any serde value, encoded by bincode.
    ///
    /// # Errors
    /// The value cannot be encoded.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let other = world.process_at_rank(1 - world.rank());
    ///     other.send_value(&[Some("text"), None]).unwrap();
    ///     let (texts, _) = other.receive_value::<[Option<String>; 2]>().unwrap();
    ///     assert_eq!(texts, [Some("text".to_owned()), None]);
    /// });
    /// ```
    #[track_caller]
    fn send_value<T: Serialize + ?Sized>(&self, value: &T) -> Result<(), EncodeError> {
        self.send_value_with_tag(value, Tag::default())
    }

    /// A send with a tag to be started again and again (section 3.9).
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let (other, mut number) = (world.process_at_rank(1 - world.rank()), 0);
    ///     let mut send = other.persistent_send_with_tag(&mut number, 3);
    ///     for step in 0..3 {
    ///         **send.send_data() = step;
    ///         send.start();
    ///         assert_eq!(other.receive_with_tag::<i32>(3).0, step);
    ///         send.wait();
    ///     }
    /// });
    /// ```
    #[track_caller]
    fn persistent_send_with_tag<'a, Buf: Buffer + ?Sized>(
        &self,
        buf: &'a mut Buf,
        tag: Tag,
    ) -> PersistentRequest<'a, &'a mut Buf, ()> {
        let site = site!("persistent_send");
        let address = address(self, tag, site).or_refuse();
        let outbound = to_send(self, address, &*buf, Mode::Copied).outbound;
        PersistentRequest::message(buf, (), site, move |buf, _| {
            let outgoing = wire::outgoing(&**buf);
            let Outgoing { at: data, len, signature, .. } = outgoing;
            let message = Outbound { data, len, signature, ..outbound };
            // SAFETY: the buffer is borrowed now, when what is sent is copied.
            let started = pe::with(|pe| unsafe { pe.engine.send(&message) });
            (started, Box::new(Kept { outgoing, incoming: Incoming::nothing() }), None)
        })
    }

    /// A send to be started again and again.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let (other, mut numbers) = (world.process_at_rank(1 - world.rank()), [0.0; 2]);
    ///     let mut send = other.persistent_send(&mut numbers);
    ///     for step in [0.5, 1.0] {
    ///         send.send_data().fill(step);
    ///         send.start();
    ///         assert_eq!(other.receive_vec::<f64>().0, [step; 2]);
    ///         send.wait();
    ///     }
    /// });
    /// ```
    #[track_caller]
    fn persistent_send<'a, Buf: Buffer + ?Sized>(
        &self,
        buf: &'a mut Buf,
    ) -> PersistentRequest<'a, &'a mut Buf, ()> {
        self.persistent_send_with_tag(buf, Tag::default())
    }

    /// Begins to send a buffer with a tag (section 3.7.2).
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let (me, other) = (world.rank(), world.process_at_rank(1 - world.rank()));
    ///     vrt::request::scope(|scope| {
    ///         let send = other.immediate_send_with_tag(scope, &me, 3);
    ///         assert_eq!(other.receive_with_tag::<i32>(3).0, other.rank());
    ///         send.wait();
    ///     });
    /// });
    /// ```
    #[track_caller]
    fn immediate_send_with_tag<'a, Sc: Scope<'a>, Buf: 'a + Buffer + ?Sized>(
        &self,
        scope: Sc,
        buf: &'a Buf,
        tag: Tag,
    ) -> Request<'a, Buf, Sc> {
        immediate_send_at(self, scope, buf, tag, Mode::Standard, site!("immediate_send"))
    }

    /// Begins to send a buffer.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let (me, other) = (world.rank(), world.process_at_rank(1 - world.rank()));
    ///     vrt::request::scope(|scope| {
    ///         let send = other.immediate_send(scope, &me);
    ///         assert_eq!(other.receive::<i32>().0, other.rank());
    ///         send.wait();
    ///     });
    /// });
    /// ```
    #[track_caller]
    fn immediate_send<'a, Sc: Scope<'a>, Buf: 'a + Buffer + ?Sized>(
        &self,
        scope: Sc,
        buf: &'a Buf,
    ) -> Request<'a, Buf, Sc> {
        self.immediate_send_with_tag(scope, buf, Tag::default())
    }

    /// Sends a copy of a buffer with a tag, as a request.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let (me, other) = (world.rank(), world.process_at_rank(1 - world.rank()));
    ///     vrt::request::scope(|scope| {
    ///         let send = other.immediate_buffered_send_with_tag(scope, &me, 3);
    ///         assert_eq!(other.receive_with_tag::<i32>(3).0, other.rank());
    ///         send.wait();
    ///     });
    /// });
    /// ```
    #[track_caller]
    fn immediate_buffered_send_with_tag<'a, Sc: Scope<'a>, Buf: 'a + Buffer + ?Sized>(
        &self,
        scope: Sc,
        buf: &'a Buf,
        tag: Tag,
    ) -> Request<'a, Buf, Sc> {
        let site = site!("immediate_buffered_send");
        immediate_send_at(self, scope, buf, tag, Mode::Buffered, site)
    }

    /// Sends a copy of a buffer, as a request.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let (me, other) = (world.rank(), world.process_at_rank(1 - world.rank()));
    ///     vrt::request::scope(|scope| {
    ///         let send = other.immediate_buffered_send(scope, &me);
    ///         assert_eq!(other.receive::<i32>().0, other.rank());
    ///         send.wait();
    ///     });
    /// });
    /// ```
    #[track_caller]
    fn immediate_buffered_send<'a, Sc: Scope<'a>, Buf: 'a + Buffer + ?Sized>(
        &self,
        scope: Sc,
        buf: &'a Buf,
    ) -> Request<'a, Buf, Sc> {
        self.immediate_buffered_send_with_tag(scope, buf, Tag::default())
    }

    /// Begins to send a buffer with a tag; done when its receive has begun.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let (me, other) = (world.rank(), world.process_at_rank(1 - world.rank()));
    ///     vrt::request::scope(|scope| {
    ///         let send = other.immediate_synchronous_send_with_tag(scope, &me, 3);
    ///         assert_eq!(other.receive_with_tag::<i32>(3).0, other.rank());
    ///         send.wait();
    ///     });
    /// });
    /// ```
    #[track_caller]
    fn immediate_synchronous_send_with_tag<'a, Sc: Scope<'a>, Buf: 'a + Buffer + ?Sized>(
        &self,
        scope: Sc,
        buf: &'a Buf,
        tag: Tag,
    ) -> Request<'a, Buf, Sc> {
        let site = site!("immediate_synchronous_send");
        immediate_send_at(self, scope, buf, tag, Mode::Synchronous, site)
    }

    /// Begins to send a buffer; done when its receive has begun.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let (me, other) = (world.rank(), world.process_at_rank(1 - world.rank()));
    ///     vrt::request::scope(|scope| {
    ///         let send = other.immediate_synchronous_send(scope, &me);
    ///         assert_eq!(other.receive::<i32>().0, other.rank());
    ///         send.wait();
    ///     });
    /// });
    /// ```
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
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let (me, other) = (world.rank(), world.process_at_rank(1 - world.rank()));
    ///     let receive = other.immediate_receive_with_tag::<i32>(3);
    ///     world.barrier();
    ///     vrt::request::scope(|scope| {
    ///         // SAFETY: the other rank has posted its receive before the barrier.
    ///         let send = unsafe { other.immediate_ready_send_with_tag(scope, &me, 3) };
    ///         assert_eq!(receive.get().0, other.rank());
    ///         send.wait();
    ///     });
    /// });
    /// ```
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
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let (me, other) = (world.rank(), world.process_at_rank(1 - world.rank()));
    ///     let receive = other.immediate_receive::<i32>();
    ///     world.barrier();
    ///     vrt::request::scope(|scope| {
    ///         // SAFETY: the other rank has posted its receive before the barrier.
    ///         let send = unsafe { other.immediate_ready_send(scope, &me) };
    ///         assert_eq!(receive.get().0, other.rank());
    ///         send.wait();
    ///     });
    /// });
    /// ```
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
pub(crate) struct ToSend {
    pub(crate) outbound: Outbound,
    pub(crate) bytes: Outgoing,
}

/// Where a message goes, by its rank in the job, and its tag.
#[derive(Clone, Copy)]
pub(crate) struct Address {
    to: u32,
    tag: Tag,
}

/// Checks where a message goes. Apart from [`to_send`], so that what that gives is not moved.
#[inline(always)]
pub(crate) fn address<D: Destination + ?Sized>(
    destination: &D,
    tag: Tag,
    site: Site,
) -> Result<Address, Error> {
    let comm = destination.as_communicator().as_handle();
    let to = comm.job_rank(destination.destination_rank()).at(site)?;
    Ok(Address { to, tag: checked_tag(tag).at(site)? })
}

/// What sending a buffer means to the engine, and the bytes that are sent.
#[inline(always)]
pub(crate) fn to_send<D: Destination + ?Sized, Buf: Buffer + ?Sized>(
    destination: &D,
    Address { to, tag }: Address,
    buf: &Buf,
    mode: Mode,
) -> ToSend {
    let comm: &CommunicatorHandle = destination.as_communicator().as_handle();
    let bytes = wire::outgoing(buf);
    let outbound = Outbound {
        context: comm.context,
        to,
        source: comm.rank,
        tag,
        data: bytes.at,
        len: bytes.len,
        mode,
        signature: bytes.signature,
    };
    ToSend { outbound, bytes }
}

/// What sending the bytes of an encoded value means to the engine.
pub(crate) fn outbound_value<D: Destination + ?Sized>(
    destination: &D,
    bytes: &[u8],
    tag: Tag,
    site: Site,
) -> Result<ToSend, Error> {
    let address = address(destination, tag, site)?;
    let mut message = to_send(destination, address, bytes, Mode::Standard);
    message.outbound.signature = Signature::VALUE;
    Ok(message)
}

#[inline(always)]
fn send_at<D: Destination + ?Sized, Buf: Buffer + ?Sized>(
    destination: &D,
    buf: &Buf,
    tag: Tag,
    mode: Mode,
    site: Site,
) -> Result<(), Error> {
    let address = address(destination, tag, site)?;
    send_now(to_send(destination, address, buf, mode), site);
    Ok(())
}

fn send_now(message: ToSend, site: Site) {
    let may_block = may_block(site);
    // SAFETY: the caller's buffer is borrowed for the blocking call.
    unsafe { operation::block_on_send(may_block, &message.outbound, &site) };
}

fn immediate_send_at<'a, D, Sc, Buf>(
    destination: &D,
    scope: Sc,
    buf: &'a Buf,
    tag: Tag,
    mode: Mode,
    site: Site,
) -> Request<'a, Buf, Sc>
where
    D: Destination + ?Sized,
    Sc: Scope<'a>,
    Buf: Buffer + ?Sized,
{
    let address = address(destination, tag, site).or_refuse();
    let message = to_send(destination, address, buf, mode);
    // SAFETY: the request borrows the buffer until it is done.
    let started = pe::with(|pe| unsafe { pe.engine.send(&message.outbound) });
    Request::with_buffers(started, buf, scope, site, None, keep_outgoing(message.bytes))
}

/// What has to be kept of a buffer that is sent.
fn keep_outgoing(outgoing: Outgoing) -> Option<Box<Kept>> {
    outgoing.is_packed().then(|| Box::new(Kept { outgoing, incoming: Incoming::nothing() }))
}
