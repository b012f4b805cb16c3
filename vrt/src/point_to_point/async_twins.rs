//! The async twins of the blocking calls.
//!
//! Each returns a future that does nothing before it is polled, and goes on only while it is polled:
//! what has to happen at the same time is joined. Each can be dropped at any time, in a `select!` or
//! by [`timeout`](crate::timeout). A receive is taken back then, and its message, if one has come, is
//! there for the next receive. A send that has begun goes on, with the data that it had.
//!
//! The data of a long message that is not received at once is copied, because a future can be
//! forgotten, and what it borrows is anybody's then. [`AsyncDestination::send_vec_async`] does
//! without: its future has the data.

use std::future::Future;
use std::mem::MaybeUninit;

use serde::{Serialize, de::DeserializeOwned};

use crate::datatype::{Buffer, BufferMut, Equivalence, wire};
use crate::operation::{self, OrRefuse};
use crate::point_to_point::{
    Destination, Message, Source, Status, expect_one, message, room_for, site,
};
use crate::{Tag, encoding};
use vrt_core::pe::Mode;

/// Async twins of [`Source`].
pub trait AsyncSource: Source {
    /// Receives one value; with `tag` `None`, with any tag.
    ///
    /// # Panics
    /// When the message is not one value of this type.
    #[track_caller]
    fn receive_async<Msg: Equivalence>(
        &self,
        tag: Option<Tag>,
    ) -> impl Future<Output = (Msg, Status)> {
        let (pattern, site) = (self.pattern(tag), site!("receive_async"));
        async move {
            let mut value = MaybeUninit::<Msg>::uninit();
            let mut room = room_for(&mut value);
            // SAFETY: the value lives in this future, which does not move once it was polled.
            let outcome =
                unsafe { operation::land(pattern, room.room(), site) }.await.or_refuse(site);
            let status = Status::of(outcome, site);
            expect_one(status, room.len, site);
            room.finish_all();
            // SAFETY: all bytes of the value have come, from a value of an equivalent type.
            (unsafe { value.assume_init() }, status)
        }
    }

    /// Receives into a buffer.
    ///
    /// # Panics
    /// When the message is longer than the buffer.
    #[track_caller]
    fn receive_into_async<Buf: BufferMut + ?Sized>(
        &self,
        buf: &mut Buf,
        tag: Option<Tag>,
    ) -> impl Future<Output = Status> {
        let (pattern, site) = (self.pattern(tag), site!("receive_into_async"));
        async move {
            let mut room = wire::incoming(buf);
            // SAFETY: the future borrows the buffer, so it is there whenever it is polled.
            let outcome =
                unsafe { operation::land(pattern, room.room(), site) }.await.or_refuse(site);
            let status = Status::of(outcome, site);
            room.finish(status.bytes() as usize);
            status
        }
    }

    /// Receives a message of any length.
    #[track_caller]
    fn receive_vec_async<Msg: Equivalence>(
        &self,
        tag: Option<Tag>,
    ) -> impl Future<Output = (Vec<Msg>, Status)> {
        message::receive_vec(self.pattern(tag), site!("receive_vec_async"))
    }

    /// Receives a serde value; an error says that the bytes are no encoding of this type.
    #[track_caller]
    fn receive_value_async<T: DeserializeOwned>(
        &self,
        tag: Option<Tag>,
    ) -> impl Future<Output = Result<(T, Status), encoding::DecodeError>> {
        message::receive_value(self.pattern(tag), site!("receive_value_async"))
    }

    /// Waits for a message and describes it.
    #[track_caller]
    fn probe_async(&self, tag: Option<Tag>) -> impl Future<Output = Status> {
        let probe = operation::probe(self.pattern(tag), site!("probe_async"));
        async move { Status::of_probe(probe.await) }
    }

    /// Receives a message that a matched probe reserved into a buffer.
    ///
    /// # Panics
    /// When the message is longer than the buffer.
    #[track_caller]
    fn matched_receive_into_async<Buf: BufferMut + ?Sized>(
        &self,
        message: Message,
        buf: &mut Buf,
    ) -> impl Future<Output = Status> {
        let site = site!("matched_receive_into_async");
        async move {
            let mut room = wire::incoming(buf);
            // SAFETY: as in `receive_into_async`.
            let receive =
                unsafe { operation::receive_matched(message.into_ticket(), room.room(), site) };
            let status = Status::of(receive.await.or_refuse(site), site);
            room.finish(status.bytes() as usize);
            status
        }
    }
}

impl<S: Source> AsyncSource for S {}

/// Async twins of [`Destination`].
pub trait AsyncDestination: Destination {
    /// Sends a buffer with a tag.
    #[track_caller]
    fn send_async<Buf: Buffer + ?Sized>(&self, buf: &Buf, tag: Tag) -> impl Future<Output = ()> {
        let message = self.outbound(buf, tag, Mode::Copied);
        let site = site!("send_async");
        async move {
            // Holds the borrow until the engine has read the buffer.
            let (_borrowed, message) = (buf, message);
            // SAFETY: the future borrows the buffer.
            unsafe { operation::send_copied(message.outbound, site) }.await.or_refuse(site);
        }
    }

    /// Sends values with a tag and gives them back when the receiver has them. Nothing is copied on
    /// the way that a blocking send would not copy.
    #[track_caller]
    fn send_vec_async<Msg: Equivalence + 'static>(
        &self,
        values: Vec<Msg>,
        tag: Tag,
    ) -> impl Future<Output = Vec<Msg>> {
        let message = self.outbound(&values[..], tag, Mode::Standard);
        let site = site!("send_vec_async");
        operation::background(async move {
            // What the values were packed into, if they were, stays as long as they do.
            let (values, message) = (values, message);
            // SAFETY: values and bytes live in the heap until the future is over: it goes on when it
            // is dropped, and who forgets it forgets them, too.
            unsafe { operation::send(message.outbound, site) }.await.or_refuse(site);
            values
        })
    }

    /// Sends a buffer with a tag and waits until its receive has begun.
    #[track_caller]
    fn synchronous_send_async<Buf: Buffer + ?Sized>(
        &self,
        buf: &Buf,
        tag: Tag,
    ) -> impl Future<Output = ()> {
        let message = self.outbound(buf, tag, Mode::CopiedSynchronous);
        let site = site!("synchronous_send_async");
        async move {
            let (_borrowed, message) = (buf, message);
            // SAFETY: as in `send_async`.
            unsafe { operation::send_copied(message.outbound, site) }.await.or_refuse(site);
        }
    }

    /// Sends any serde value with a tag; an error says that it cannot be encoded.
    #[track_caller]
    fn send_value_async<T: Serialize + ?Sized>(
        &self,
        value: &T,
        tag: Tag,
    ) -> impl Future<Output = Result<(), encoding::EncodeError>> {
        let site = site!("send_value_async");
        async move {
            let bytes = encoding::encode(value)?;
            let message = self.outbound_value(&bytes, tag).outbound;
            operation::background(async move {
                let (_bytes, message) = (bytes, message);
                // SAFETY: as in `send_vec_async`.
                unsafe { operation::send(message, site) }.await.or_refuse(site);
            })
            .await;
            Ok(())
        }
    }
}

impl<D: Destination> AsyncDestination for D {}
