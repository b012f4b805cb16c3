//! Messages reserved by a matched probe, and receives of unknown length, which use them.

use std::mem::ManuallyDrop;

use serde::de::DeserializeOwned;

use crate::datatype::wire::{self, Incoming};
use crate::datatype::{BufferMut, Equivalence, Signature, UncommittedDatatype};
use crate::operation::block_on_at;
use crate::operation::{self, Site, Ticket, may_block};
use crate::operation::{Error, OrRefuse, Status, refuse, site, try_block_on};
use crate::point_to_point::{expect_one, keep_incoming, room_for};
use crate::request::{Request, Scope};
use vrt_core::encoding::{self, DecodeError};
use vrt_core::mailbox::Pattern;
use vrt_core::pe::{self, Probed, Room};
use vrt_slot::report::count;

/// A message that has come and was reserved for this receive (MPI-4.1 section 3.8.2).
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
    pub fn is_no_proc(&self) -> bool {
        false
    }

    /// Receives it as one value.
    ///
    /// # Panics
    /// When it is not one value of this type.
    #[track_caller]
    pub fn matched_receive<Msg: Equivalence>(self) -> (Msg, Status) {
        let site = site!("matched_receive");
        let mut value = std::mem::MaybeUninit::<Msg>::uninit();
        let mut room = room_for(&mut value);
        // SAFETY: the value outlives the blocking call.
        let status = unsafe { self.receive_at(room.room(), site) };
        expect_one(status, room.len, site);
        room.finish_all();
        // SAFETY: all bytes of the value have come, from a value of an equivalent type.
        (unsafe { value.assume_init() }, status)
    }

    /// Receives it into a buffer.
    ///
    /// # Panics
    /// When it is longer than the buffer.
    #[track_caller]
    pub fn matched_receive_into<Buf: BufferMut + ?Sized>(self, buf: &mut Buf) -> Status {
        let mut room = wire::incoming(buf);
        // SAFETY: the buffer is borrowed for the blocking call.
        let status = unsafe { self.receive_at(room.room(), site!("matched_receive_into")) };
        room.finish(status.bytes() as usize);
        status
    }

    /// Begins to receive it into a buffer.
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
        let number = self.into_ticket().number(site).or_refuse(site);
        // SAFETY: the request borrows the buffer until it is done.
        let started = pe::with(|pe| unsafe { pe.engine.receive_matched(number, room.room()) });
        let kept = keep_incoming(room);
        Request::with_buffers(started, buf, scope, site, None, kept)
    }

    /// # Safety
    /// The room is writable during the call.
    unsafe fn receive_at(self, room: Room, site: Site) -> Status {
        // SAFETY: as the caller promises.
        let receive = unsafe { operation::receive_matched(self.into_ticket(), room, site) };
        Status::of(try_block_on(receive, site), site)
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
pub trait MatchedReceiveVec {
    /// Receives it.
    fn matched_receive_vec<Msg: Equivalence>(self) -> (Vec<Msg>, Status);
}

impl MatchedReceiveVec for (Message, Status) {
    #[track_caller]
    fn matched_receive_vec<Msg: Equivalence>(self) -> (Vec<Msg>, Status) {
        let site = site!("matched_receive_vec");
        let (message, status) = self;
        let envelope = (message.signature, message.bytes);
        let (mut values, count, mut room) = vec_for::<Msg>(status, envelope, site);
        // SAFETY: the vector has room for all values and outlives the blocking call.
        let status = unsafe { message.receive_at(room.room(), site) };
        room.finish_all();
        // SAFETY: the message, whose length was asked, has that many values.
        unsafe { values.set_len(count) };
        (values, status)
    }
}

/// An empty vector with room for a message of some elements and bytes, the number of values in it,
/// and the room. The status is for people.
///
/// # Panics
/// When the message is of another type, or not made of whole values.
fn vec_for<Msg: Equivalence>(
    status: Status,
    (theirs, bytes): (Signature, u64),
    site: Site,
) -> (Vec<Msg>, usize, Incoming) {
    let datatype = Msg::equivalent_datatype();
    let datatype = datatype.datatype_ref();
    if !datatype.signature().fits(theirs, bytes) {
        let (source_rank, tag, bytes) = (status.source, status.tag, status.bytes);
        let (sent, received) = (theirs, datatype.signature());
        refuse(&Error::MessageType { source_rank, tag, bytes, sent, received }, site);
    }
    let (bytes, each) = (bytes as usize, datatype.size().max(1));
    if !bytes.is_multiple_of(each) {
        panic!(
            "{}: the message from rank {} with tag {} has {}, no multiple of a value's {each}",
            site,
            status.source_rank(),
            status.tag(),
            count(bytes, "byte")
        );
    }
    let count = bytes / each;
    let mut values: Vec<Msg> = Vec::with_capacity(count);
    // SAFETY: the vector has room for so many values, and its memory stays where it is.
    let room =
        unsafe { wire::incoming_elements(values.as_mut_ptr().cast(), count, datatype, false) };
    (values, count, room)
}

pub(crate) fn matched_probe_at(pattern: Pattern, site: Site) -> (Message, Status) {
    let probe = operation::matched_probe(pattern, site);
    let (number, probed) = block_on_at(probe, site);
    (Message::new(number, &probed), Status::of_probe(probed))
}

pub(crate) fn immediate_matched_probe_at(
    pattern: Pattern,
    site: Site,
) -> Option<(Message, Status)> {
    let found = operation::look(may_block(site), |engine| engine.matched_probe(pattern));
    found.map(|(number, probed)| (Message::new(number, &probed), Status::of_probe(probed)))
}

pub(crate) fn receive_vec_at<Msg: Equivalence>(pattern: Pattern, site: Site) -> (Vec<Msg>, Status) {
    block_on_at(receive_vec(pattern, site), site)
}

pub(crate) async fn receive_vec<Msg: Equivalence>(
    pattern: Pattern,
    site: Site,
) -> (Vec<Msg>, Status) {
    let (number, probed) = operation::matched_probe(pattern, site).await;
    let status = Status::of_probe(probed);
    let (mut values, count, mut room) =
        vec_for::<Msg>(status, (probed.signature, probed.bytes), site);
    // SAFETY: the vector has room for all values and is there when this future is polled.
    let receive = unsafe { operation::receive_matched(Ticket::new(number), room.room(), site) };
    let outcome = receive.await.or_refuse(site);
    room.finish_all();
    // SAFETY: that many values have come.
    unsafe { values.set_len(count) };
    (values, Status::of(outcome, site))
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
        .or_refuse(site);
    if signature != Signature::VALUE {
        let (what, found) = (std::any::type_name::<T>(), signature.to_string());
        return Err(DecodeError::NoValue { what, found, len: encoded.len() });
    }
    Ok((encoding::decode(&encoded)?, Status::of(outcome, site)))
}
