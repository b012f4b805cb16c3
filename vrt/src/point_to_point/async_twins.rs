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
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let other = world.process_at_rank(1 - world.rank());
    ///     vrt::block_on(async {
    ///         other.send_async(&world.rank()).await;
    ///         assert_eq!(other.receive_async::<i32>().await.0, other.rank());
    ///     });
    /// });
    /// ```
    #[track_caller]
    fn receive_async<Msg: Equivalence>(&self) -> impl Future<Output = (Msg, Status)> {
        receive_one(self, None, site!("receive_async"))
    }

    /// Receives one value with a tag.
    ///
    /// # Panics
    /// When the message is not one value of this type.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let other = world.process_at_rank(1 - world.rank());
    ///     vrt::block_on(async {
    ///         other.send_with_tag_async(&7u64, 1).await;
    ///         other.send_with_tag_async(&2.5, 2).await;
    ///         assert_eq!(other.receive_with_tag_async::<f64>(2).await.0, 2.5);
    ///         assert_eq!(other.receive_with_tag_async::<u64>(1).await.0, 7);
    ///     });
    /// });
    /// ```
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
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let other = world.process_at_rank(1 - world.rank());
    ///     vrt::block_on(async {
    ///         let mut theirs = [0; 2];
    ///         other.send_async(&[world.rank(); 2]).await;
    ///         other.receive_into_async(&mut theirs).await;
    ///         assert_eq!(theirs, [other.rank(); 2]);
    ///     });
    /// });
    /// ```
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
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let other = world.process_at_rank(1 - world.rank());
    ///     vrt::block_on(async {
    ///         let mut numbers = [0; 4];
    ///         other.send_with_tag_async(&[1, 2], 7).await;
    ///         let status = other.receive_into_with_tag_async(&mut numbers, 7).await;
    ///         assert_eq!(status.count(i32::equivalent_datatype()), 2);
    ///         assert_eq!(numbers, [1, 2, 0, 0]);
    ///     });
    /// });
    /// ```
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
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let other = world.process_at_rank(1 - world.rank());
    ///     vrt::block_on(async {
    ///         other.send_async(&[1, 2, 3]).await;
    ///         assert_eq!(other.receive_vec_async::<i32>().await.0, [1, 2, 3]);
    ///     });
    /// });
    /// ```
    #[track_caller]
    fn receive_vec_async<Msg: Equivalence>(&self) -> impl Future<Output = (Vec<Msg>, Status)> {
        receive_vec(self, None, site!("receive_vec_async"))
    }

    /// Receives a message of any length with a tag.
    ///
    /// # Panics
    /// When the message is of another type, or does not consist of whole values.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let other = world.process_at_rank(1 - world.rank());
    ///     vrt::block_on(async {
    ///         other.send_with_tag_async(&[1.5, 2.5], 3).await;
    ///         assert_eq!(other.receive_vec_with_tag_async::<f64>(3).await.0, [1.5, 2.5]);
    ///     });
    /// });
    /// ```
    #[track_caller]
    fn receive_vec_with_tag_async<Msg: Equivalence>(
        &self,
        tag: Tag,
    ) -> impl Future<Output = (Vec<Msg>, Status)> {
        receive_vec(self, Some(tag), site!("receive_vec_async"))
    }

    /// Receives a serde value; an error says that the bytes are no encoding of this type.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let other = world.process_at_rank(1 - world.rank());
    ///     vrt::block_on(async {
    ///         other.send_value_async("seven").await.unwrap();
    ///         assert_eq!(other.receive_value_async::<String>().await.unwrap().0, "seven");
    ///     });
    /// });
    /// ```
    #[track_caller]
    fn receive_value_async<T: DeserializeOwned>(
        &self,
    ) -> impl Future<Output = Result<(T, Status), DecodeError>> {
        receive_value(self, None, site!("receive_value_async"))
    }

    /// Receives a serde value with a tag; an error says that the bytes are no encoding of this type.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let other = world.process_at_rank(1 - world.rank());
    ///     vrt::block_on(async {
    ///         other.send_value_with_tag_async(&("step", 3), 1).await.unwrap();
    ///         let received = other.receive_value_with_tag_async::<(String, i32)>(1).await;
    ///         assert_eq!(received.unwrap().0, ("step".to_owned(), 3));
    ///     });
    /// });
    /// ```
    #[track_caller]
    fn receive_value_with_tag_async<T: DeserializeOwned>(
        &self,
        tag: Tag,
    ) -> impl Future<Output = Result<(T, Status), DecodeError>> {
        receive_value(self, Some(tag), site!("receive_value_async"))
    }

    /// Waits for a message and describes it.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let other = world.process_at_rank(1 - world.rank());
    ///     vrt::block_on(async {
    ///         other.send_async(&[1.5, 2.5]).await;
    ///         let count = other.probe_async().await.count(f64::equivalent_datatype());
    ///         let mut numbers = vec![0.0; count as usize];
    ///         other.receive_into_async(&mut numbers).await;
    ///         assert_eq!(numbers, [1.5, 2.5]);
    ///     });
    /// });
    /// ```
    #[track_caller]
    fn probe_async(&self) -> impl Future<Output = Status> {
        probe(self, None, site!("probe_async"))
    }

    /// Waits for a message with a tag and describes it.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let other = world.process_at_rank(1 - world.rank());
    ///     vrt::block_on(async {
    ///         other.send_with_tag_async(&[1u8, 2, 3], 7).await;
    ///         assert_eq!(other.probe_with_tag_async(7).await.bytes(), 3);
    ///         assert_eq!(other.receive_vec_async::<u8>().await.0, [1, 2, 3]);
    ///     });
    /// });
    /// ```
    #[track_caller]
    fn probe_with_tag_async(&self, tag: Tag) -> impl Future<Output = Status> {
        probe(self, Some(tag), site!("probe_async"))
    }

    /// Waits for a message and reserves it.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let other = world.process_at_rank(1 - world.rank());
    ///     vrt::block_on(async {
    ///         other.send_async(&[1u8, 2, 3]).await;
    ///         let (message, status) = other.matched_probe_async().await;
    ///         let mut bytes = vec![0u8; status.bytes() as usize];
    ///         message.matched_receive_into_async(&mut bytes).await;
    ///         assert_eq!(bytes, [1, 2, 3]);
    ///     });
    /// });
    /// ```
    #[track_caller]
    fn matched_probe_async(&self) -> impl Future<Output = (Message, Status)> {
        matched_probe(self, None, site!("matched_probe_async"))
    }

    /// Waits for a message with a tag and reserves it.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let other = world.process_at_rank(1 - world.rank());
    ///     vrt::block_on(async {
    ///         other.send_with_tag_async(&[1, 2], 7).await;
    ///         let (message, _) = other.matched_probe_with_tag_async(7).await;
    ///         let mut numbers = [0; 2];
    ///         message.matched_receive_into_async(&mut numbers).await;
    ///         assert_eq!(numbers, [1, 2]);
    ///     });
    /// });
    /// ```
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
///
/// # Examples
///
/// ```
/// use vrt::traits::*;
///
/// vrt::run_local(2, |world| {
///     let (me, other) = (world.rank(), world.process_at_rank(1 - world.rank()));
///     vrt::block_on(async {
///         // Neither future waits for the other: both are polled.
///         let (mine, (theirs, _)) =
///             tokio::join!(other.send_vec_async(vec![me; 3]), other.receive_vec_async::<i32>());
///         assert_eq!((mine, theirs), (vec![me; 3], vec![other.rank(); 3]));
///     });
/// });
/// ```
pub trait AsyncDestination: Destination {
    /// Sends a buffer.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let other = world.process_at_rank(1 - world.rank());
    ///     vrt::block_on(async {
    ///         other.send_async(&[1.5, 2.5]).await;
    ///         assert_eq!(other.receive_vec_async::<f64>().await.0, [1.5, 2.5]);
    ///     });
    /// });
    /// ```
    #[track_caller]
    fn send_async<Buf: Buffer + ?Sized>(&self, buf: &Buf) -> impl Future<Output = ()> {
        send(self, buf, Tag::default(), Mode::Copied, site!("send_async"))
    }

    /// Sends a buffer with a tag.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let other = world.process_at_rank(1 - world.rank());
    ///     vrt::block_on(async {
    ///         other.send_with_tag_async(&[1, 2], 7).await;
    ///         let (numbers, status) = other.receive_vec_async::<i32>().await;
    ///         assert_eq!((numbers, status.tag()), (vec![1, 2], 7));
    ///     });
    /// });
    /// ```
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
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let other = world.process_at_rank(1 - world.rank());
    ///     vrt::block_on(async {
    ///         let (send, receive) = (other.send_vec_async(vec![1, 2]), other.receive_vec_async::<i32>());
    ///         let (sent, (received, _)) = tokio::join!(send, receive);
    ///         assert_eq!((sent, received), (vec![1, 2], vec![1, 2]));
    ///     });
    /// });
    /// ```
    #[track_caller]
    fn send_vec_async<Msg: Equivalence + 'static>(
        &self,
        values: Vec<Msg>,
    ) -> impl Future<Output = Vec<Msg>> {
        send_vec(self, values, Tag::default(), site!("send_vec_async"))
    }

    /// Sends values with a tag and gives them back when the receiver has them, as
    /// [`send_vec_async`](Self::send_vec_async).
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let other = world.process_at_rank(1 - world.rank());
    ///     vrt::block_on(async {
    ///         let send = other.send_vec_with_tag_async(vec![1, 2], 7);
    ///         let (sent, (received, _)) = tokio::join!(send, other.receive_vec_with_tag_async::<i32>(7));
    ///         assert_eq!((sent, received), (vec![1, 2], vec![1, 2]));
    ///     });
    /// });
    /// ```
    #[track_caller]
    fn send_vec_with_tag_async<Msg: Equivalence + 'static>(
        &self,
        values: Vec<Msg>,
        tag: Tag,
    ) -> impl Future<Output = Vec<Msg>> {
        send_vec(self, values, tag, site!("send_vec_async"))
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
    ///     vrt::block_on(async {
    ///         let (send, receive) = (other.synchronous_send_async(&7), other.receive_async::<i32>());
    ///         let ((), (received, _)) = tokio::join!(send, receive);
    ///         assert_eq!(received, 7);
    ///     });
    /// });
    /// ```
    #[track_caller]
    fn synchronous_send_async<Buf: Buffer + ?Sized>(&self, buf: &Buf) -> impl Future<Output = ()> {
        let site = site!("synchronous_send_async");
        send(self, buf, Tag::default(), Mode::CopiedSynchronous, site)
    }

    /// Sends a buffer with a tag and waits until its receive has begun.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let other = world.process_at_rank(1 - world.rank());
    ///     vrt::block_on(async {
    ///         let send = other.synchronous_send_with_tag_async(&7, 3);
    ///         let ((), (received, _)) = tokio::join!(send, other.receive_with_tag_async::<i32>(3));
    ///         assert_eq!(received, 7);
    ///     });
    /// });
    /// ```
    #[track_caller]
    fn synchronous_send_with_tag_async<Buf: Buffer + ?Sized>(
        &self,
        buf: &Buf,
        tag: Tag,
    ) -> impl Future<Output = ()> {
        send(self, buf, tag, Mode::CopiedSynchronous, site!("synchronous_send_async"))
    }

    /// Sends any serde value; an error says that it cannot be encoded.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let other = world.process_at_rank(1 - world.rank());
    ///     vrt::block_on(async {
    ///         other.send_value_async(&[Some("text"), None]).await.unwrap();
    ///         let received = other.receive_value_async::<[Option<String>; 2]>().await;
    ///         assert_eq!(received.unwrap().0, [Some("text".to_owned()), None]);
    ///     });
    /// });
    /// ```
    #[track_caller]
    fn send_value_async<T: Serialize + ?Sized>(
        &self,
        value: &T,
    ) -> impl Future<Output = Result<(), EncodeError>> {
        send_value(self, value, Tag::default(), site!("send_value_async"))
    }

    /// Sends any serde value with a tag; an error says that it cannot be encoded.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let other = world.process_at_rank(1 - world.rank());
    ///     vrt::block_on(async {
    ///         other.send_value_with_tag_async(&("step", 3), 1).await.unwrap();
    ///         let received = other.receive_value_with_tag_async::<(String, i32)>(1).await;
    ///         assert_eq!(received.unwrap().0, ("step".to_owned(), 3));
    ///     });
    /// });
    /// ```
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
