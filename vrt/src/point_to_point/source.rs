//! Receiving: what can be done with a process that messages come from.
//!
//! The blocking receives are inlined into the program. A rank that waits is resumed by another call than
//! the one in which it began to wait, so the processor mispredicts each `ret` that leads from there back
//! into the program, at about 8 ns: a fifth of a message between two ranks of a PE.

use std::mem::MaybeUninit;

use serde::de::DeserializeOwned;

use crate::datatype::wire::{self, Outgoing};
use crate::datatype::{BufferMut, Equivalence};
use crate::error::{At, Error, OrRefuse};
use crate::operation::{self, Site, block_on_at, may_block, site};
use crate::point_to_point::{
    Message, ReceiveFuture, Status, checked_tag, expect_one, keep_incoming, message, room_for,
};
use crate::request::{Kept, PersistentRequest, Request, Scope};
use crate::topology::sealed::AsHandle;
use crate::topology::{AnyProcess, AsCommunicator, Process};
use crate::{Rank, Tag};
use vrt_core::encoding::DecodeError;
use vrt_core::mailbox::{ANY, Pattern};
use vrt_core::pe;

/// A process that messages can be received from: one, or any.
///
/// # Examples
///
/// ```
/// use vrt::traits::*;
///
/// vrt::run_local(3, |world| {
///     if world.rank() > 0 {
///         return world.process_at_rank(0).send(&vec![world.rank(); world.rank() as usize]);
///     }
///     for _ in 1..world.size() {
///         // Of any length, from any rank.
///         let (values, status) = world.any_process().receive_vec::<i32>();
///         assert_eq!(values, vec![status.source_rank(); values.len()]);
///     }
/// });
/// ```
pub trait Source: AsCommunicator {
    /// Its rank; -1 stands for any.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     assert_eq!(world.process_at_rank(1).source_rank(), 1);
    ///     assert_eq!(world.any_process().source_rank(), -1);
    /// });
    /// ```
    fn source_rank(&self) -> Rank;

    /// Waits for a message with a tag and describes it (section 3.8.1).
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let other = world.process_at_rank(1 - world.rank());
    ///     other.send_with_tag(&[1u8, 2, 3], 7);
    ///     let status = other.probe_with_tag(7);
    ///     assert_eq!((status.source_rank(), status.bytes()), (other.rank(), 3));
    ///     assert_eq!(other.receive_vec::<u8>().0, [1, 2, 3]);
    /// });
    /// ```
    #[track_caller]
    fn probe_with_tag(&self, tag: Tag) -> Status {
        probe_at(self, Some(tag), site!("probe"))
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
    ///     other.send(&[1.5, 2.5]);
    ///     let count = other.probe().count(f64::equivalent_datatype());
    ///     let mut numbers = vec![0.0; count as usize];
    ///     other.receive_into(&mut numbers);
    ///     assert_eq!(numbers, [1.5, 2.5]);
    /// });
    /// ```
    #[track_caller]
    fn probe(&self) -> Status {
        probe_at(self, None, site!("probe"))
    }

    /// Describes a message with a tag if there is one. When there is none, other ranks get a turn.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(1, |world| {
    ///     let me = world.this_process();
    ///     me.send_with_tag(&7, 1);
    ///     assert!(me.immediate_probe_with_tag(2).is_none());
    ///     assert!(me.immediate_probe_with_tag(1).is_some());
    ///     assert_eq!(me.receive::<i32>().0, 7);
    /// });
    /// ```
    #[track_caller]
    fn immediate_probe_with_tag(&self, tag: Tag) -> Option<Status> {
        immediate_probe_at(self, Some(tag), site!("immediate_probe"))
    }

    /// Describes a message if there is one. When there is none, other ranks get a turn.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let other = world.process_at_rank(1 - world.rank());
    ///     other.send(&7);
    ///     while other.immediate_probe().is_none() {
    ///         // Here a rank does a part of its work.
    ///     }
    ///     assert_eq!(other.receive::<i32>().0, 7);
    /// });
    /// ```
    #[track_caller]
    fn immediate_probe(&self) -> Option<Status> {
        immediate_probe_at(self, None, site!("immediate_probe"))
    }

    /// Waits for a message with a tag and reserves it (section 3.8.2).
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let other = world.process_at_rank(1 - world.rank());
    ///     other.send_with_tag(&[1u8, 2, 3], 7);
    ///     let (message, status) = other.matched_probe_with_tag(7);
    ///     let mut bytes = vec![0u8; status.bytes() as usize];
    ///     message.matched_receive_into(&mut bytes);
    ///     assert_eq!(bytes, [1, 2, 3]);
    /// });
    /// ```
    #[track_caller]
    fn matched_probe_with_tag(&self, tag: Tag) -> (Message, Status) {
        matched_probe_at(self, Some(tag), site!("matched_probe"))
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
    ///     other.send(&7);
    ///     let (message, _) = other.matched_probe();
    ///     // This receive gets the message that was sent later.
    ///     other.send(&8);
    ///     assert_eq!(other.receive::<i32>().0, 8);
    ///     assert_eq!(message.matched_receive::<i32>().0, 7);
    /// });
    /// ```
    #[track_caller]
    fn matched_probe(&self) -> (Message, Status) {
        matched_probe_at(self, None, site!("matched_probe"))
    }

    /// Reserves a message with a tag if there is one.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(1, |world| {
    ///     let me = world.this_process();
    ///     me.send_with_tag(&7, 1);
    ///     assert!(me.immediate_matched_probe_with_tag(2).is_none());
    ///     let (message, _) = me.immediate_matched_probe_with_tag(1).unwrap();
    ///     assert_eq!(message.matched_receive::<i32>().0, 7);
    /// });
    /// ```
    #[track_caller]
    fn immediate_matched_probe_with_tag(&self, tag: Tag) -> Option<(Message, Status)> {
        let site = site!("immediate_matched_probe");
        immediate_matched_probe_at(self, Some(tag), site)
    }

    /// Reserves a message if there is one. If there is none, other ranks run.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let other = world.process_at_rank(1 - world.rank());
    ///     other.send(&7);
    ///     let (message, _) = loop {
    ///         // Here a rank does a part of its work.
    ///         if let Some(reserved) = other.immediate_matched_probe() {
    ///             break reserved;
    ///         }
    ///     };
    ///     assert_eq!(message.matched_receive::<i32>().0, 7);
    /// });
    /// ```
    #[track_caller]
    fn immediate_matched_probe(&self) -> Option<(Message, Status)> {
        let site = site!("immediate_matched_probe");
        immediate_matched_probe_at(self, None, site)
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
    ///     other.send_with_tag(&7u64, 1);
    ///     other.send_with_tag(&2.5, 2);
    ///     assert_eq!(other.receive_with_tag::<f64>(2).0, 2.5);
    ///     assert_eq!(other.receive_with_tag::<u64>(1).0, 7);
    /// });
    /// ```
    #[track_caller]
    #[inline(always)]
    fn receive_with_tag<Msg: Equivalence>(&self, tag: Tag) -> (Msg, Status) {
        receive_one_at(self, Some(tag), site!("receive")).or_refuse()
    }

    /// [`receive_with_tag`](Self::receive_with_tag) that returns what was wrong.
    ///
    /// # Errors
    /// The message is not one value of this type: it is gone then, and the next receive gets the next
    /// message. Or the tag is negative: nothing was received then.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let other = world.process_at_rank(1 - world.rank());
    ///     other.send_with_tag(&[1, 2], 3);
    ///     other.send_with_tag(&7, 3);
    ///     // Two values are not one.
    ///     assert!(other.try_receive_with_tag::<i32>(3).is_err());
    ///     let next = other.try_receive_with_tag::<i32>(3).map(|(value, _)| value);
    ///     assert_eq!(next, Ok(7));
    /// });
    /// ```
    #[track_caller]
    #[inline(always)]
    fn try_receive_with_tag<Msg: Equivalence>(&self, tag: Tag) -> Result<(Msg, Status), Error> {
        receive_one_at(self, Some(tag), site!("receive"))
    }

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
    ///     other.send(&world.rank());
    ///     let (theirs, status) = other.receive::<i32>();
    ///     assert_eq!((theirs, status.source_rank()), (other.rank(), other.rank()));
    /// });
    /// ```
    #[track_caller]
    #[inline(always)]
    fn receive<Msg: Equivalence>(&self) -> (Msg, Status) {
        receive_one_at(self, None, site!("receive")).or_refuse()
    }

    /// [`receive`](Self::receive) that returns what was wrong.
    ///
    /// # Errors
    /// As [`try_receive_with_tag`](Self::try_receive_with_tag).
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let other = world.process_at_rank(1 - world.rank());
    ///     other.send(&1.5);
    ///     let error = other.try_receive::<i64>().unwrap_err();
    ///     assert_eq!(error.class(), vrt::ErrorClass::Type);
    /// });
    /// ```
    #[track_caller]
    #[inline(always)]
    fn try_receive<Msg: Equivalence>(&self) -> Result<(Msg, Status), Error> {
        receive_one_at(self, None, site!("receive"))
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
    ///     other.send_with_tag(&[1, 2], 7);
    ///     let mut numbers = [0; 4];
    ///     let status = other.receive_into_with_tag(&mut numbers, 7);
    ///     assert_eq!(status.count(i32::equivalent_datatype()), 2);
    ///     assert_eq!(numbers, [1, 2, 0, 0]);
    /// });
    /// ```
    #[track_caller]
    #[inline(always)]
    fn receive_into_with_tag<Buf: BufferMut + ?Sized>(&self, buf: &mut Buf, tag: Tag) -> Status {
        receive_into_at(self, Some(tag), buf, site!("receive_into")).or_refuse()
    }

    /// [`receive_into_with_tag`](Self::receive_into_with_tag) that returns what was wrong.
    ///
    /// # Errors
    /// The message is longer than the buffer, or of another type: it is gone then, and the next receive
    /// gets the next message. The buffer may have the beginning of one that was too long. Or the tag is
    /// negative: nothing was received then.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let other = world.process_at_rank(1 - world.rank());
    ///     other.send_with_tag(&[1, 2, 3], 7);
    ///     let error = other.try_receive_into_with_tag(&mut [0; 2], 7).unwrap_err();
    ///     assert_eq!(error.class(), vrt::ErrorClass::Truncate);
    /// });
    /// ```
    #[track_caller]
    #[inline(always)]
    fn try_receive_into_with_tag<Buf: BufferMut + ?Sized>(
        &self,
        buf: &mut Buf,
        tag: Tag,
    ) -> Result<Status, Error> {
        receive_into_at(self, Some(tag), buf, site!("receive_into"))
    }

    /// Receives a message into a buffer.
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
    ///     let (mine, mut theirs) = ([world.rank(); 3], [0; 3]);
    ///     other.send(&mine);
    ///     other.receive_into(&mut theirs);
    ///     assert_eq!(theirs, [other.rank(); 3]);
    /// });
    /// ```
    #[track_caller]
    #[inline(always)]
    fn receive_into<Buf: BufferMut + ?Sized>(&self, buf: &mut Buf) -> Status {
        receive_into_at(self, None, buf, site!("receive_into")).or_refuse()
    }

    /// [`receive_into`](Self::receive_into) that returns what was wrong.
    ///
    /// # Errors
    /// As [`try_receive_into_with_tag`](Self::try_receive_into_with_tag).
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let other = world.process_at_rank(1 - world.rank());
    ///     let mut numbers = [0; 2];
    ///     other.send(&[1, 2, 3]);
    ///     other.send(&[7, 8]);
    ///     // The first message is too long, and is gone then.
    ///     assert!(other.try_receive_into(&mut numbers).is_err());
    ///     assert!(other.try_receive_into(&mut numbers).is_ok());
    ///     assert_eq!(numbers, [7, 8]);
    /// });
    /// ```
    #[track_caller]
    #[inline(always)]
    fn try_receive_into<Buf: BufferMut + ?Sized>(&self, buf: &mut Buf) -> Result<Status, Error> {
        receive_into_at(self, None, buf, site!("receive_into"))
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
    ///     other.send_with_tag(&vec![1.5; 1 + world.rank() as usize], 3);
    ///     let (theirs, _) = other.receive_vec_with_tag::<f64>(3);
    ///     assert_eq!(theirs, vec![1.5; 1 + other.rank() as usize]);
    /// });
    /// ```
    #[track_caller]
    fn receive_vec_with_tag<Msg: Equivalence>(&self, tag: Tag) -> (Vec<Msg>, Status) {
        receive_vec_at(self, Some(tag), site!("receive_vec")).or_refuse()
    }

    /// [`receive_vec_with_tag`](Self::receive_vec_with_tag) that returns what was wrong.
    ///
    /// # Errors
    /// The message is of another type, or does not consist of whole values: it is gone then, and the
    /// next receive gets the next message. Or the tag is negative: nothing was received then.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let other = world.process_at_rank(1 - world.rank());
    ///     other.send_with_tag(&[1.5, 2.5], 3);
    ///     let error = other.try_receive_vec_with_tag::<f32>(3).unwrap_err();
    ///     assert_eq!(error.class(), vrt::ErrorClass::Type);
    /// });
    /// ```
    #[track_caller]
    fn try_receive_vec_with_tag<Msg: Equivalence>(
        &self,
        tag: Tag,
    ) -> Result<(Vec<Msg>, Status), Error> {
        receive_vec_at(self, Some(tag), site!("receive_vec"))
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
    ///     other.send(&[1, 2, 3]);
    ///     assert_eq!(other.receive_vec::<i32>().0, [1, 2, 3]);
    /// });
    /// ```
    #[track_caller]
    fn receive_vec<Msg: Equivalence>(&self) -> (Vec<Msg>, Status) {
        receive_vec_at(self, None, site!("receive_vec")).or_refuse()
    }

    /// [`receive_vec`](Self::receive_vec) that returns what was wrong.
    ///
    /// # Errors
    /// As [`try_receive_vec_with_tag`](Self::try_receive_vec_with_tag).
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let other = world.process_at_rank(1 - world.rank());
    ///     other.send(&[1, 2, 3]);
    ///     other.send(&2.5);
    ///     let numbers = other.try_receive_vec::<i32>().map(|(numbers, _)| numbers);
    ///     assert_eq!(numbers, Ok(vec![1, 2, 3]));
    ///     assert!(other.try_receive_vec::<i32>().is_err());
    /// });
    /// ```
    #[track_caller]
    fn try_receive_vec<Msg: Equivalence>(&self) -> Result<(Vec<Msg>, Status), Error> {
        receive_vec_at(self, None, site!("receive_vec"))
    }

    /// Receives a serde value sent with `send_value_with_tag`.
    ///
    /// # Errors
    /// The bytes are not an encoding of this type.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let other = world.process_at_rank(1 - world.rank());
    ///     other.send_value_with_tag("seven", 7).unwrap();
    ///     let (text, status) = other.receive_value_with_tag::<String>(7).unwrap();
    ///     assert_eq!((&*text, status.tag()), ("seven", 7));
    /// });
    /// ```
    #[track_caller]
    fn receive_value_with_tag<T: DeserializeOwned>(
        &self,
        tag: Tag,
    ) -> Result<(T, Status), DecodeError> {
        receive_value_at(self, Some(tag), site!("receive_value"))
    }

    /// Receives a serde value sent with `send_value`.
    ///
    /// # Errors
    /// The bytes are not an encoding of this type.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let other = world.process_at_rank(1 - world.rank());
    ///     other.send_value("seven").unwrap();
    ///     assert_eq!(other.receive_value::<String>().unwrap().0, "seven");
    ///     // What `send` has sent is no encoded value.
    ///     other.send(&7);
    ///     assert!(other.receive_value::<i32>().is_err());
    /// });
    /// ```
    #[track_caller]
    fn receive_value<T: DeserializeOwned>(&self) -> Result<(T, Status), DecodeError> {
        receive_value_at(self, None, site!("receive_value"))
    }

    /// Begins to receive a message with a tag into a buffer (section 3.7.2).
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let (other, mut theirs) = (world.process_at_rank(1 - world.rank()), [0; 2]);
    ///     vrt::request::scope(|scope| {
    ///         let receive = other.immediate_receive_into_with_tag(scope, &mut theirs, 3);
    ///         other.send_with_tag(&[world.rank(); 2], 3);
    ///         receive.wait();
    ///     });
    ///     assert_eq!(theirs, [other.rank(); 2]);
    /// });
    /// ```
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
        immediate_receive_at(self, Some(tag), scope, buf, site!("immediate_receive_into"))
    }

    /// Begins to receive a message into a buffer.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let (other, mut theirs) = (world.process_at_rank(1 - world.rank()), [0; 2]);
    ///     vrt::request::scope(|scope| {
    ///         let receive = other.immediate_receive_into(scope, &mut theirs);
    ///         other.send(&[world.rank(); 2]);
    ///         receive.wait();
    ///     });
    ///     assert_eq!(theirs, [other.rank(); 2]);
    /// });
    /// ```
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
        immediate_receive_at(self, None, scope, buf, site!("immediate_receive_into"))
    }

    /// A receive with a tag to be started again and again (section 3.9).
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let (other, mut number) = (world.process_at_rank(1 - world.rank()), 0);
    ///     let mut receive = other.persistent_receive_into_with_tag(&mut number, 3);
    ///     for step in 0..3 {
    ///         receive.start();
    ///         other.send_with_tag(&step, 3);
    ///         receive.wait();
    ///         assert_eq!(**receive.receive_data(), step);
    ///     }
    /// });
    /// ```
    #[track_caller]
    fn persistent_receive_into_with_tag<'a, Buf: BufferMut + ?Sized>(
        &self,
        buf: &'a mut Buf,
        tag: Tag,
    ) -> PersistentRequest<'a, (), &'a mut Buf> {
        persistent_receive(self, Some(tag), buf, site!("persistent_receive_into"))
    }

    /// A receive to be started again and again.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let (other, mut numbers) = (world.process_at_rank(1 - world.rank()), [0.0; 2]);
    ///     let mut receive = other.persistent_receive_into(&mut numbers);
    ///     for step in [0.5, 1.0] {
    ///         receive.start();
    ///         other.send(&[step; 2]);
    ///         receive.wait();
    ///         assert_eq!(**receive.receive_data(), [step; 2]);
    ///     }
    /// });
    /// ```
    #[track_caller]
    fn persistent_receive_into<'a, Buf: BufferMut + ?Sized>(
        &self,
        buf: &'a mut Buf,
    ) -> PersistentRequest<'a, (), &'a mut Buf> {
        persistent_receive(self, None, buf, site!("persistent_receive_into"))
    }

    /// Begins to receive one value with a tag.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let other = world.process_at_rank(1 - world.rank());
    ///     let receive = other.immediate_receive_with_tag::<i32>(3);
    ///     other.send_with_tag(&world.rank(), 3);
    ///     assert_eq!(receive.get().0, other.rank());
    /// });
    /// ```
    #[track_caller]
    fn immediate_receive_with_tag<Msg: Equivalence>(&self, tag: Tag) -> ReceiveFuture<Msg> {
        start_receive(self, Some(tag), site!("immediate_receive"))
    }

    /// Begins to receive one value.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let other = world.process_at_rank(1 - world.rank());
    ///     let receive = other.immediate_receive::<i32>();
    ///     other.send(&world.rank());
    ///     assert_eq!(receive.get().0, other.rank());
    /// });
    /// ```
    #[track_caller]
    fn immediate_receive<Msg: Equivalence>(&self) -> ReceiveFuture<Msg> {
        start_receive(self, None, site!("immediate_receive"))
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

/// What a receive with this tag, or with any, asks for.
#[inline(always)]
pub(crate) fn pattern<S: Source + ?Sized>(
    source: &S,
    tag: Option<Tag>,
    site: Site,
) -> Result<Pattern, Error> {
    let context = source.as_communicator().as_handle().context;
    let tag = match tag {
        None => ANY,
        Some(tag) => checked_tag(tag).at(site)?,
    };
    Ok(Pattern { context, source: source.source_rank(), tag })
}

fn probe_at<S: Source + ?Sized>(source: &S, tag: Option<Tag>, site: Site) -> Status {
    let pattern = pattern(source, tag, site).or_refuse();
    let probed = block_on_at(operation::probe(pattern, site), site);
    Status::of_probe(probed)
}

#[inline(always)]
fn immediate_probe_at<S: Source + ?Sized>(
    source: &S,
    tag: Option<Tag>,
    site: Site,
) -> Option<Status> {
    let pattern = pattern(source, tag, site).or_refuse();
    let found = operation::look(may_block(site), |engine| engine.probe(pattern));
    found.map(Status::of_probe)
}

fn matched_probe_at<S: Source + ?Sized>(
    source: &S,
    tag: Option<Tag>,
    site: Site,
) -> (Message, Status) {
    let pattern = pattern(source, tag, site).or_refuse();
    block_on_at(message::matched_probe(pattern, site), site)
}

fn immediate_matched_probe_at<S: Source + ?Sized>(
    source: &S,
    tag: Option<Tag>,
    site: Site,
) -> Option<(Message, Status)> {
    message::immediate_matched_probe(pattern(source, tag, site).or_refuse(), site)
}

#[inline(always)]
fn receive_one_at<S: Source + ?Sized, Msg: Equivalence>(
    source: &S,
    tag: Option<Tag>,
    site: Site,
) -> Result<(Msg, Status), Error> {
    let pattern = pattern(source, tag, site)?;
    let mut value = MaybeUninit::<Msg>::uninit();
    let mut room = room_for(&mut value);
    let may_block = may_block(site);
    // SAFETY: the value outlives the blocking call.
    let outcome = unsafe { operation::block_on_receive(may_block, pattern, room.room(), &site) };
    let status = Status::of(outcome, site)?;
    expect_one(status, room.len).at(site)?;
    room.finish_all().at(site)?;
    // SAFETY: all of the value has come, from a value of an equivalent type.
    Ok((unsafe { value.assume_init() }, status))
}

#[inline(always)]
fn receive_into_at<S: Source + ?Sized, Buf: BufferMut + ?Sized>(
    source: &S,
    tag: Option<Tag>,
    buf: &mut Buf,
    site: Site,
) -> Result<Status, Error> {
    let pattern = pattern(source, tag, site)?;
    let mut room = wire::incoming(buf);
    let may_block = may_block(site);
    // SAFETY: the buffer is borrowed for the blocking call.
    let outcome = unsafe { operation::block_on_receive(may_block, pattern, room.room(), &site) };
    let status = Status::of(outcome, site)?;
    room.finish(status.bytes as usize).at(site)?;
    Ok(status)
}

fn receive_vec_at<S: Source + ?Sized, Msg: Equivalence>(
    source: &S,
    tag: Option<Tag>,
    site: Site,
) -> Result<(Vec<Msg>, Status), Error> {
    block_on_at(message::receive_vec(pattern(source, tag, site)?, site), site)
}

fn receive_value_at<S: Source + ?Sized, T: DeserializeOwned>(
    source: &S,
    tag: Option<Tag>,
    site: Site,
) -> Result<(T, Status), DecodeError> {
    let pattern = pattern(source, tag, site).or_refuse();
    block_on_at(message::receive_value(pattern, site), site)
}

fn immediate_receive_at<'a, S, Sc, Buf>(
    source: &S,
    tag: Option<Tag>,
    scope: Sc,
    buf: &'a mut Buf,
    site: Site,
) -> Request<'a, Buf, Sc>
where
    S: Source + ?Sized,
    Sc: Scope<'a>,
    Buf: BufferMut + ?Sized,
{
    let pattern = pattern(source, tag, site).or_refuse();
    let room = wire::incoming(buf);
    // SAFETY: the request borrows the buffer until it is done.
    let started = pe::with(|pe| unsafe { pe.engine.begin_receive(pattern, room.room()) });
    Request::with_buffers(started, buf, scope, site, Some(pattern), keep_incoming(room))
}

fn start_receive<S: Source + ?Sized, Msg: Equivalence>(
    source: &S,
    tag: Option<Tag>,
    site: Site,
) -> ReceiveFuture<Msg> {
    ReceiveFuture::start(pattern(source, tag, site).or_refuse(), site)
}

fn persistent_receive<'a, S: Source + ?Sized, Buf: BufferMut + ?Sized>(
    source: &S,
    tag: Option<Tag>,
    buf: &'a mut Buf,
    site: Site,
) -> PersistentRequest<'a, (), &'a mut Buf> {
    let pattern = pattern(source, tag, site).or_refuse();
    PersistentRequest::message((), buf, site, move |_, buf| {
        let incoming = wire::incoming_staged(&mut **buf);
        let room = incoming.room();
        // SAFETY: what is received lies apart, and is kept until the request is done; only the
        // request's owner, who has the buffer, puts it there.
        let started = pe::with(|pe| unsafe { pe.engine.begin_receive(pattern, room) });
        (started, Box::new(Kept { outgoing: Outgoing::nothing(), incoming }), Some(pattern))
    })
}
