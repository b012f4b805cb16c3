//! The async twins of the blocking calls.
//!
//! The twin of a call `x` is `x_async`: it takes the same arguments and gives a future of the same result.
//! Calls that return an error (`try_x`) have no twins. [`AsyncDestination::send_vec_async`] has no blocking
//! call beside it: a blocking send needs no data of its own.
//!
//! Each returns a future that does nothing before it is polled, and goes on only while it is polled:
//! what has to happen at the same time is joined. Each can be dropped at any time, in a `select!` or
//! by [`timeout`](crate::timeout). A receive is withdrawn then, and its message, if one has come, is
//! there for the next receive. A send that has begun goes on, with the data that it had.
//!
//! The data of a long message that is not received at once is copied, because a future can be
//! forgotten, and what it borrows is anybody's then. [`AsyncDestination::send_vec_async`] does
//! without: its future has the data.

use std::future::Future;
use std::mem::MaybeUninit;

use serde::{Serialize, de::DeserializeOwned};

use crate::Tag;
use crate::datatype::{Buffer, BufferMut, Equivalence, wire};
use crate::error::{At, OrRefuse};
use crate::operation::{self, Site};
use crate::point_to_point::{
    Destination, Message, Source, Status, address, expect_one, message, outbound_value, pattern,
    room_for, site, to_send,
};
use vrt_core::encoding::{self, DecodeError, EncodeError};
use vrt_core::pe::Mode;

/// Async twins of [`Source`].
///
/// # Examples
///
/// ```
/// use vrt::traits::*;
///
/// vrt::run_local(2, |world| {
///     let (me, other) = (world.rank(), world.process_at_rank(1 - world.rank()));
///     let (send, receive) = (other.send_with_tag_async(&me, 3), other.receive_with_tag_async::<i32>(3));
///     let ((), (theirs, _)) = vrt::block_on(async { tokio::join!(send, receive) });
///     assert_eq!(theirs, 1 - me);
/// });
/// ```
pub trait AsyncSource: Source {
    /// Receives one value.
    ///
    /// # Panics
    /// When the message is not one value of this type.
    #[track_caller]
    fn receive_async<Msg: Equivalence>(&self) -> impl Future<Output = (Msg, Status)> {
        receive_one(self, None, site!("receive_async"))
    }

    /// Receives one value with a tag.
    ///
    /// # Panics
    /// When the message is not one value of this type.
    #[track_caller]
    fn receive_with_tag_async<Msg: Equivalence>(
        &self,
        tag: Tag,
    ) -> impl Future<Output = (Msg, Status)> {
        receive_one(self, Some(tag), site!("receive_async"))
    }

    /// Receives into a buffer.
    ///
    /// # Panics
    /// When the message is longer than the buffer, or of another type.
    #[track_caller]
    fn receive_into_async<Buf: BufferMut + ?Sized>(
        &self,
        buf: &mut Buf,
    ) -> impl Future<Output = Status> {
        receive_into(self, None, buf, site!("receive_into_async"))
    }

    /// Receives a message with a tag into a buffer.
    ///
    /// # Panics
    /// When the message is longer than the buffer, or of another type.
    #[track_caller]
    fn receive_into_with_tag_async<Buf: BufferMut + ?Sized>(
        &self,
        buf: &mut Buf,
        tag: Tag,
    ) -> impl Future<Output = Status> {
        receive_into(self, Some(tag), buf, site!("receive_into_async"))
    }

    /// Receives a message of any length.
    ///
    /// # Panics
    /// When the message is of another type, or does not consist of whole values.
    #[track_caller]
    fn receive_vec_async<Msg: Equivalence>(&self) -> impl Future<Output = (Vec<Msg>, Status)> {
        receive_vec(self, None, site!("receive_vec_async"))
    }

    /// Receives a message of any length with a tag.
    ///
    /// # Panics
    /// When the message is of another type, or does not consist of whole values.
    #[track_caller]
    fn receive_vec_with_tag_async<Msg: Equivalence>(
        &self,
        tag: Tag,
    ) -> impl Future<Output = (Vec<Msg>, Status)> {
        receive_vec(self, Some(tag), site!("receive_vec_async"))
    }

    /// Receives a serde value; an error says that the bytes are no encoding of this type.
    #[track_caller]
    fn receive_value_async<T: DeserializeOwned>(
        &self,
    ) -> impl Future<Output = Result<(T, Status), DecodeError>> {
        receive_value(self, None, site!("receive_value_async"))
    }

    /// Receives a serde value with a tag; an error says that the bytes are no encoding of this type.
    #[track_caller]
    fn receive_value_with_tag_async<T: DeserializeOwned>(
        &self,
        tag: Tag,
    ) -> impl Future<Output = Result<(T, Status), DecodeError>> {
        receive_value(self, Some(tag), site!("receive_value_async"))
    }

    /// Waits for a message and describes it.
    #[track_caller]
    fn probe_async(&self) -> impl Future<Output = Status> {
        probe(self, None, site!("probe_async"))
    }

    /// Waits for a message with a tag and describes it.
    #[track_caller]
    fn probe_with_tag_async(&self, tag: Tag) -> impl Future<Output = Status> {
        probe(self, Some(tag), site!("probe_async"))
    }

    /// Waits for a message and reserves it.
    #[track_caller]
    fn matched_probe_async(&self) -> impl Future<Output = (Message, Status)> {
        matched_probe(self, None, site!("matched_probe_async"))
    }

    /// Waits for a message with a tag and reserves it.
    #[track_caller]
    fn matched_probe_with_tag_async(&self, tag: Tag) -> impl Future<Output = (Message, Status)> {
        matched_probe(self, Some(tag), site!("matched_probe_async"))
    }
}

impl<S: Source> AsyncSource for S {}

fn receive_one<S: Source + ?Sized, Msg: Equivalence>(
    source: &S,
    tag: Option<Tag>,
    site: Site,
) -> impl Future<Output = (Msg, Status)> {
    let pattern = pattern(source, tag, site).or_refuse();
    async move {
        let mut value = MaybeUninit::<Msg>::uninit();
        let mut room = room_for(&mut value);
        // SAFETY: the value lives in this future, which does not move once it was polled.
        let outcome = unsafe { operation::land(pattern, room.room(), site) }.await;
        let status = Status::of(outcome.at(site).or_refuse(), site).or_refuse();
        expect_one(status, room.len).at(site).or_refuse();
        room.finish_all().at(site).or_refuse();
        // SAFETY: all bytes of the value have come, from a value of an equivalent type.
        (unsafe { value.assume_init() }, status)
    }
}

fn receive_into<S: Source + ?Sized, Buf: BufferMut + ?Sized>(
    source: &S,
    tag: Option<Tag>,
    buf: &mut Buf,
    site: Site,
) -> impl Future<Output = Status> {
    let pattern = pattern(source, tag, site).or_refuse();
    async move {
        let mut room = wire::incoming(buf);
        // SAFETY: the future borrows the buffer, so it is there whenever it is polled.
        let outcome = unsafe { operation::land(pattern, room.room(), site) }.await;
        let status = Status::of(outcome.at(site).or_refuse(), site).or_refuse();
        room.finish(status.bytes() as usize).at(site).or_refuse();
        status
    }
}

fn receive_vec<S: Source + ?Sized, Msg: Equivalence>(
    source: &S,
    tag: Option<Tag>,
    site: Site,
) -> impl Future<Output = (Vec<Msg>, Status)> {
    let receive = message::receive_vec(pattern(source, tag, site).or_refuse(), site);
    async move { receive.await.or_refuse() }
}

fn receive_value<S: Source + ?Sized, T: DeserializeOwned>(
    source: &S,
    tag: Option<Tag>,
    site: Site,
) -> impl Future<Output = Result<(T, Status), DecodeError>> {
    message::receive_value(pattern(source, tag, site).or_refuse(), site)
}

fn probe<S: Source + ?Sized>(
    source: &S,
    tag: Option<Tag>,
    site: Site,
) -> impl Future<Output = Status> {
    let probe = operation::probe(pattern(source, tag, site).or_refuse(), site);
    async move { Status::of_probe(probe.await) }
}

fn matched_probe<S: Source + ?Sized>(
    source: &S,
    tag: Option<Tag>,
    site: Site,
) -> impl Future<Output = (Message, Status)> {
    message::matched_probe(pattern(source, tag, site).or_refuse(), site)
}

/// Async twins of [`Destination`], and [`send_vec_async`](Self::send_vec_async).
pub trait AsyncDestination: Destination {
    /// Sends a buffer.
    #[track_caller]
    fn send_async<Buf: Buffer + ?Sized>(&self, buf: &Buf) -> impl Future<Output = ()> {
        send(self, buf, Tag::default(), Mode::Copied, site!("send_async"))
    }

    /// Sends a buffer with a tag.
    #[track_caller]
    fn send_with_tag_async<Buf: Buffer + ?Sized>(
        &self,
        buf: &Buf,
        tag: Tag,
    ) -> impl Future<Output = ()> {
        send(self, buf, tag, Mode::Copied, site!("send_async"))
    }

    /// Sends values and gives them back when the receiver has them. Nothing is copied on the way that
    /// a blocking send would not copy.
    #[track_caller]
    fn send_vec_async<Msg: Equivalence + 'static>(
        &self,
        values: Vec<Msg>,
    ) -> impl Future<Output = Vec<Msg>> {
        send_vec(self, values, Tag::default(), site!("send_vec_async"))
    }

    /// Sends values with a tag and gives them back when the receiver has them, as
    /// [`send_vec_async`](Self::send_vec_async).
    #[track_caller]
    fn send_vec_with_tag_async<Msg: Equivalence + 'static>(
        &self,
        values: Vec<Msg>,
        tag: Tag,
    ) -> impl Future<Output = Vec<Msg>> {
        send_vec(self, values, tag, site!("send_vec_async"))
    }

    /// Sends a buffer and waits until its receive has begun.
    #[track_caller]
    fn synchronous_send_async<Buf: Buffer + ?Sized>(&self, buf: &Buf) -> impl Future<Output = ()> {
        let site = site!("synchronous_send_async");
        send(self, buf, Tag::default(), Mode::CopiedSynchronous, site)
    }

    /// Sends a buffer with a tag and waits until its receive has begun.
    #[track_caller]
    fn synchronous_send_with_tag_async<Buf: Buffer + ?Sized>(
        &self,
        buf: &Buf,
        tag: Tag,
    ) -> impl Future<Output = ()> {
        send(self, buf, tag, Mode::CopiedSynchronous, site!("synchronous_send_async"))
    }

    /// Sends any serde value; an error says that it cannot be encoded.
    #[track_caller]
    fn send_value_async<T: Serialize + ?Sized>(
        &self,
        value: &T,
    ) -> impl Future<Output = Result<(), EncodeError>> {
        send_value(self, value, Tag::default(), site!("send_value_async"))
    }

    /// Sends any serde value with a tag; an error says that it cannot be encoded.
    #[track_caller]
    fn send_value_with_tag_async<T: Serialize + ?Sized>(
        &self,
        value: &T,
        tag: Tag,
    ) -> impl Future<Output = Result<(), EncodeError>> {
        send_value(self, value, tag, site!("send_value_async"))
    }
}

impl<D: Destination> AsyncDestination for D {}

fn send<D: Destination + ?Sized, Buf: Buffer + ?Sized>(
    destination: &D,
    buf: &Buf,
    tag: Tag,
    mode: Mode,
    site: Site,
) -> impl Future<Output = ()> {
    let address = address(destination, tag, site).or_refuse();
    let message = to_send(destination, address, buf, mode);
    async move {
        // Holds the borrow until the engine has read the buffer.
        let (_borrowed, message) = (buf, message);
        // SAFETY: the future borrows the buffer.
        unsafe { operation::send_copied(message.outbound, site) }.await.at(site).or_refuse();
    }
}

fn send_vec<D: Destination + ?Sized, Msg: Equivalence + 'static>(
    destination: &D,
    values: Vec<Msg>,
    tag: Tag,
    site: Site,
) -> impl Future<Output = Vec<Msg>> {
    let address = address(destination, tag, site).or_refuse();
    let message = to_send(destination, address, &values[..], Mode::Standard);
    operation::background(async move {
        // What the values were packed into, if they were, stays as long as they do.
        let (values, message) = (values, message);
        // SAFETY: values and bytes live in the heap until the future is over: it goes on when it
        // is dropped, and who forgets it forgets them, too.
        unsafe { operation::send(message.outbound, site) }.await.at(site).or_refuse();
        values
    })
}

async fn send_value<D: Destination + ?Sized, T: Serialize + ?Sized>(
    destination: &D,
    value: &T,
    tag: Tag,
    site: Site,
) -> Result<(), EncodeError> {
    let bytes = encoding::encode(value)?;
    let message = outbound_value(destination, &bytes, tag, site).or_refuse().outbound;
    operation::background(async move {
        let (_bytes, message) = (bytes, message);
        // SAFETY: as in `send_vec`.
        unsafe { operation::send(message, site) }.await.at(site).or_refuse();
    })
    .await;
    Ok(())
}
