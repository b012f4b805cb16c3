//! Messages reserved by a matched probe, and receives of unknown length, which use them.

use std::future::Future;
use std::mem::ManuallyDrop;

use serde::de::DeserializeOwned;

use crate::datatype::wire::{self, Incoming};
use crate::datatype::{BufferMut, Equivalence, Signature, UncommittedDatatype};
use crate::error::{At, Error, ErrorKind, OrRefuse};
use crate::operation::{self, Site, Status, Ticket, block_on_at, may_block, site};
use crate::point_to_point::{expect_one, keep_incoming, room_for};
use crate::request::{Request, Scope};
use vrt_core::encoding::{self, DecodeError};
use vrt_core::mailbox::Pattern;
use vrt_core::pe::{self, Probed, Room};

/// A message that has come and was reserved for this receive (MPI-4.1 section 3.8.2).
///
/// # Examples
///
/// ```
/// use vrt::traits::*;
///
/// vrt::run_local(2, |world| {
///     let other = world.process_at_rank(1 - world.rank());
///     other.send(&[1u8, 2, 3]);
///     // The length is known before there is a buffer, and no other receive gets the message.
///     let (message, status) = other.matched_probe();
///     let mut buffer = vec![0u8; status.bytes() as usize];
///     message.matched_receive_into(&mut buffer[..]);
///     assert_eq!(buffer, [1, 2, 3]);
/// });
/// ```
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a reserved message has to be received"]
pub struct Message {
    /// Its number in the rank's mailbox.
    ticket: Ticket,
    /// What its elements are, and how many bytes these have.
    signature: Signature,
    bytes: u64,
}

impl Message {
    /// Whether it came from no process. There is no such source here.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let other = world.process_at_rank(1 - world.rank());
    ///     other.send(&7);
    ///     let (message, _) = other.matched_probe();
    ///     assert!(!message.is_no_proc());
    ///     assert_eq!(message.matched_receive::<i32>().0, 7);
    /// });
    /// ```
    pub fn is_no_proc(&self) -> bool {
        false
    }

    /// Receives it as one value.
    ///
    /// # Panics
    /// When it is not one value of this type.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let other = world.process_at_rank(1 - world.rank());
    ///     other.send(&2.5);
    ///     let (message, _) = other.matched_probe();
    ///     assert_eq!(message.matched_receive::<f64>().0, 2.5);
    /// });
    /// ```
    #[track_caller]
    pub fn matched_receive<Msg: Equivalence>(self) -> (Msg, Status) {
        let site = site!("matched_receive");
        let mut value = std::mem::MaybeUninit::<Msg>::uninit();
        let mut room = room_for(&mut value);
        // SAFETY: the value outlives the blocking call.
        let status = unsafe { self.receive_at(room.room(), site) }.or_refuse();
        expect_one(status, room.len).at(site).or_refuse();
        room.finish_all().at(site).or_refuse();
        // SAFETY: all bytes of the value have come, from a value of an equivalent type.
        (unsafe { value.assume_init() }, status)
    }

    /// Receives it into a buffer.
    ///
    /// # Panics
    /// When it is longer than the buffer, or of another type.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let other = world.process_at_rank(1 - world.rank());
    ///     other.send(&[1, 2]);
    ///     let (message, _) = other.matched_probe();
    ///     let mut numbers = [0; 2];
    ///     message.matched_receive_into(&mut numbers);
    ///     assert_eq!(numbers, [1, 2]);
    /// });
    /// ```
    #[track_caller]
    pub fn matched_receive_into<Buf: BufferMut + ?Sized>(self, buf: &mut Buf) -> Status {
        let site = site!("matched_receive_into");
        block_on_at(self.into_buffer(buf, site), site).or_refuse()
    }

    /// The async twin of [`matched_receive_into`](Self::matched_receive_into).
    ///
    /// # Panics
    /// When it is longer than the buffer, or of another type.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let other = world.process_at_rank(1 - world.rank());
    ///     other.send(&[1, 2]);
    ///     vrt::block_on(async {
    ///         let (message, _) = other.matched_probe_async().await;
    ///         let mut numbers = [0; 2];
    ///         message.matched_receive_into_async(&mut numbers).await;
    ///         assert_eq!(numbers, [1, 2]);
    ///     });
    /// });
    /// ```
    #[track_caller]
    pub fn matched_receive_into_async<Buf: BufferMut + ?Sized>(
        self,
        buf: &mut Buf,
    ) -> impl Future<Output = Status> {
        let site = site!("matched_receive_into_async");
        async move { self.into_buffer(buf, site).await.or_refuse() }
    }

    /// Begins to receive it into a buffer.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let other = world.process_at_rank(1 - world.rank());
    ///     other.send(&[1, 2]);
    ///     let ((message, _), mut numbers) = (other.matched_probe(), [0; 2]);
    ///     vrt::request::scope(|scope| {
    ///         let receive = message.immediate_matched_receive_into(scope, &mut numbers);
    ///         receive.wait();
    ///     });
    ///     assert_eq!(numbers, [1, 2]);
    /// });
    /// ```
    #[track_caller]
    pub fn immediate_matched_receive_into<'a, Sc, Buf>(
        self,
        scope: Sc,
        buf: &'a mut Buf,
    ) -> Request<'a, Buf, Sc>
    where
        Buf: 'a + BufferMut + ?Sized,
        Sc: Scope<'a>,
    {
        let room = wire::incoming(buf);
        let site = site!("immediate_matched_receive_into");
        let number = self.into_ticket().number(site).at(site).or_refuse();
        // SAFETY: the request borrows the buffer until it is done.
        let started = pe::with(|pe| unsafe { pe.engine.receive_matched(number, room.room()) });
        let kept = keep_incoming(room);
        Request::with_buffers(started, buf, scope, site, None, kept)
    }

    async fn into_buffer<Buf: BufferMut + ?Sized>(
        self,
        buf: &mut Buf,
        site: Site,
    ) -> Result<Status, Error> {
        let mut room = wire::incoming(buf);
        // SAFETY: the future borrows the buffer, so it is there whenever it is polled.
        let receive = unsafe { operation::receive_matched(self.into_ticket(), room.room(), site) };
        let status = Status::of(receive.await.at(site)?, site)?;
        room.finish(status.bytes() as usize).at(site)?;
        Ok(status)
    }

    /// # Safety
    /// The room is writable during the call.
    unsafe fn receive_at(self, room: Room, site: Site) -> Result<Status, Error> {
        // SAFETY: as the caller promises.
        let receive = unsafe { operation::receive_matched(self.into_ticket(), room, site) };
        Status::of(block_on_at(receive, site).at(site)?, site)
    }

    /// It is received by its number from now on.
    pub(crate) fn into_ticket(self) -> Ticket {
        ManuallyDrop::new(self).ticket
    }

    fn new(number: u32, probed: &Probed) -> Message {
        let Probed { signature, bytes, .. } = *probed;
        Message { ticket: Ticket::new(number), signature, bytes }
    }
}

impl Drop for Message {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("a matched message was dropped without being received");
        }
    }
}

/// Receiving a reserved message of any length.
///
/// # Examples
///
/// ```
/// use vrt::traits::*;
///
/// vrt::run_local(2, |world| {
///     let other = world.process_at_rank(1 - world.rank());
///     other.send(&[1, 2, 3]);
///     let (numbers, status) = other.matched_probe().matched_receive_vec::<i32>();
///     assert_eq!((numbers, status.source_rank()), (vec![1, 2, 3], other.rank()));
/// });
/// ```
pub trait MatchedReceiveVec {
    /// Receives it.
    ///
    /// # Panics
    /// When it is of another type, or not of whole values.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let other = world.process_at_rank(1 - world.rank());
    ///     other.send_with_tag(&[1.5, 2.5], 3);
    ///     let reserved = world.any_process().matched_probe_with_tag(3);
    ///     assert_eq!(reserved.matched_receive_vec::<f64>().0, [1.5, 2.5]);
    /// });
    /// ```
    fn matched_receive_vec<Msg: Equivalence>(self) -> (Vec<Msg>, Status);
}

impl MatchedReceiveVec for (Message, Status) {
    #[track_caller]
    fn matched_receive_vec<Msg: Equivalence>(self) -> (Vec<Msg>, Status) {
        let site = site!("matched_receive_vec");
        let (message, status) = self;
        let envelope = (message.signature, message.bytes);
        let (mut values, count, mut room) = vec_for::<Msg>(status, envelope).at(site).or_refuse();
        // SAFETY: the vector has room for all values and outlives the blocking call.
        let status = unsafe { message.receive_at(room.room(), site) }.or_refuse();
        room.finish_all().at(site).or_refuse();
        // SAFETY: the message, whose length was asked, has that many values.
        unsafe { values.set_len(count) };
        (values, status)
    }
}

/// An empty vector with room for a message of some elements and bytes, the number of values in it,
/// and the room. The status is for people.
///
/// # Errors
/// The message is of another type, or does not consist of whole values.
fn vec_for<Msg: Equivalence>(
    status: Status,
    (sent, bytes): (Signature, u64),
) -> Result<(Vec<Msg>, usize, Incoming), ErrorKind> {
    let datatype = Msg::equivalent_datatype();
    let datatype = datatype.datatype_ref();
    let Status { source: source_rank, tag, .. } = status;
    let received = datatype.signature();
    if !received.fits(sent, bytes) {
        return Err(ErrorKind::MessageType { source_rank, tag, bytes, sent, received });
    }
    let value = datatype.size().max(1);
    if !bytes.is_multiple_of(value as u64) {
        return Err(ErrorKind::NotWholeValues { source_rank, tag, bytes, value });
    }
    let count = bytes as usize / value;
    let mut values: Vec<Msg> = Vec::with_capacity(count);
    // SAFETY: the vector has room for so many values, and its memory stays where it is.
    let room =
        unsafe { wire::incoming_elements(values.as_mut_ptr().cast(), count, datatype, false) };
    Ok((values, count, room))
}

pub(crate) async fn matched_probe(pattern: Pattern, site: Site) -> (Message, Status) {
    let (number, probed) = operation::matched_probe(pattern, site).await;
    (Message::new(number, &probed), Status::of_probe(probed))
}

pub(crate) fn immediate_matched_probe(pattern: Pattern, site: Site) -> Option<(Message, Status)> {
    let found = operation::look(may_block(site), |engine| engine.matched_probe(pattern));
    found.map(|(number, probed)| (Message::new(number, &probed), Status::of_probe(probed)))
}

/// Receives a message of any length. One that does not fit the type is received all the same, and
/// dropped.
pub(crate) async fn receive_vec<Msg: Equivalence>(
    pattern: Pattern,
    site: Site,
) -> Result<(Vec<Msg>, Status), Error> {
    let (number, probed) = operation::matched_probe(pattern, site).await;
    let (status, ticket) = (Status::of_probe(probed), Ticket::new(number));
    let (mut values, count, mut room) =
        match vec_for::<Msg>(status, (probed.signature, probed.bytes)) {
            Ok(fitting) => fitting,
            Err(kind) => {
                let nothing = Room::untyped(std::ptr::null_mut(), 0);
                // SAFETY: there is no buffer.
                unsafe { operation::receive_matched(ticket, nothing, site) }.await.at(site)?;
                return Err(kind).at(site);
            }
        };
    // SAFETY: the vector has room for all values and is there when this future is polled.
    let receive = unsafe { operation::receive_matched(ticket, room.room(), site) };
    let outcome = receive.await.at(site)?;
    room.finish_all().at(site)?;
    // SAFETY: that many values have come.
    unsafe { values.set_len(count) };
    Ok((values, Status::of(outcome, site)?))
}

/// Receives an encoded value. A message that is none is an error, and received all the same.
pub(crate) async fn receive_value<T: DeserializeOwned>(
    pattern: Pattern,
    site: Site,
) -> Result<(T, Status), DecodeError> {
    let (number, Probed { bytes, signature, .. }) = operation::matched_probe(pattern, site).await;
    let mut encoded = vec![0u8; bytes as usize];
    let room = Room::untyped(encoded.as_mut_ptr(), encoded.len());
    // SAFETY: the bytes are there when this future is polled.
    let outcome = unsafe { operation::receive_matched(Ticket::new(number), room, site) }
        .await
        .at(site)
        .or_refuse();
    if signature != Signature::VALUE {
        let (what, found) = (std::any::type_name::<T>(), signature.to_string());
        return Err(DecodeError::NoValue { what, found, len: encoded.len() });
    }
    Ok((encoding::decode(&encoded)?, Status::of(outcome, site).or_refuse()))
}
