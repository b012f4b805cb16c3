//! Sending and receiving in one call (MPI-4.1 section 3.11).

use std::mem::MaybeUninit;

use crate::Tag;
use crate::datatype::{Buffer, BufferMut, Equivalence, wire};
use crate::error::{At, OrRefuse};
use crate::operation::{self, Site, may_block, site};
use crate::point_to_point::{
    Destination, Source, Status, ToSend, address, expect_one, pattern, room_for, to_send,
};
use vrt_core::mailbox::Pattern;
use vrt_core::pe::{Mode, Outbound, Room};

/// Sends one value with a tag and receives one with another.
///
/// # Panics
/// When the message received is not one value of this type.
///
/// # Examples
///
/// ```
/// use vrt::point_to_point::send_receive_with_tags;
/// use vrt::traits::*;
///
/// vrt::run_local(2, |world| {
///     let (me, other) = (world.rank(), world.process_at_rank(1 - world.rank()));
///     // Rank 0 sends with tag 0, rank 1 with tag 1.
///     let (theirs, _): (i32, _) = send_receive_with_tags(&me, &other, me, &other, other.rank());
///     assert_eq!(theirs, other.rank());
/// });
/// ```
#[track_caller]
#[inline(always)]
pub fn send_receive_with_tags<M, D, R, S>(
    msg: &M,
    destination: &D,
    sendtag: Tag,
    source: &S,
    receivetag: Tag,
) -> (R, Status)
where
    M: Equivalence,
    D: Destination,
    R: Equivalence,
    S: Source,
{
    let site = site!("send_receive");
    let address = address(destination, sendtag, site).or_refuse();
    let message = to_send(destination, address, msg, Mode::Standard);
    one(message, pattern(source, Some(receivetag), site).or_refuse(), site)
}

/// Sends one value and receives one.
///
/// # Panics
/// When the message received is not one value of this type.
///
/// # Examples
///
/// ```
/// use vrt::point_to_point::send_receive;
/// use vrt::traits::*;
///
/// vrt::run_local(3, |world| {
///     let (me, n) = (world.rank(), world.size());
///     let right = world.process_at_rank((me + 1) % n);
///     let left = world.process_at_rank((me + n - 1) % n);
///     let (theirs, _) = send_receive::<i32, _, _, _>(&me, &right, &left);
///     assert_eq!(theirs, left.rank());
/// });
/// ```
#[track_caller]
#[inline(always)]
pub fn send_receive<R, M, D, S>(msg: &M, destination: &D, source: &S) -> (R, Status)
where
    M: Equivalence,
    D: Destination,
    R: Equivalence,
    S: Source,
{
    let site = site!("send_receive");
    let address = address(destination, Tag::default(), site).or_refuse();
    let message = to_send(destination, address, msg, Mode::Standard);
    one(message, pattern(source, None, site).or_refuse(), site)
}

/// Sends a buffer with a tag and receives into another with another tag.
///
/// # Panics
/// When the message received is longer than the buffer, or of another type.
///
/// # Examples
///
/// ```
/// use vrt::point_to_point::send_receive_into_with_tags;
/// use vrt::traits::*;
///
/// vrt::run_local(2, |world| {
///     let (me, other) = (world.rank(), world.process_at_rank(1 - world.rank()));
///     let (mine, mut theirs) = ([me; 2], [0; 2]);
///     send_receive_into_with_tags(&mine, &other, me, &mut theirs, &other, other.rank());
///     assert_eq!(theirs, [other.rank(); 2]);
/// });
/// ```
#[track_caller]
#[inline(always)]
pub fn send_receive_into_with_tags<M, D, B, S>(
    msg: &M,
    destination: &D,
    sendtag: Tag,
    buf: &mut B,
    source: &S,
    receivetag: Tag,
) -> Status
where
    M: Buffer + ?Sized,
    D: Destination,
    B: BufferMut + ?Sized,
    S: Source,
{
    let site = site!("send_receive_into");
    let address = address(destination, sendtag, site).or_refuse();
    let message = to_send(destination, address, msg, Mode::Standard);
    let pattern = pattern(source, Some(receivetag), site).or_refuse();
    into(message, pattern, buf, site)
}

/// Sends a buffer and receives into another.
///
/// # Panics
/// When the message received is longer than the buffer, or of another type.
///
/// # Examples
///
/// ```
/// use vrt::point_to_point::send_receive_into;
/// use vrt::traits::*;
///
/// vrt::run_local(3, |world| {
///     let (me, n) = (world.rank(), world.size());
///     let right = world.process_at_rank((me + 1) % n);
///     let left = world.process_at_rank((me + n - 1) % n);
///     let (mine, mut theirs) = ([me; 2], [0; 2]);
///     send_receive_into(&mine, &right, &mut theirs, &left);
///     assert_eq!(theirs, [left.rank(); 2]);
/// });
/// ```
#[track_caller]
#[inline(always)]
pub fn send_receive_into<M, D, B, S>(msg: &M, destination: &D, buf: &mut B, source: &S) -> Status
where
    M: Buffer + ?Sized,
    D: Destination,
    B: BufferMut + ?Sized,
    S: Source,
{
    let site = site!("send_receive_into");
    let address = address(destination, Tag::default(), site).or_refuse();
    let message = to_send(destination, address, msg, Mode::Standard);
    into(message, pattern(source, None, site).or_refuse(), buf, site)
}

/// Sends a buffer with a tag and receives into the same buffer with another tag.
///
/// # Panics
/// When the message received is longer than the buffer, or of another type.
///
/// # Examples
///
/// ```
/// use vrt::point_to_point::send_receive_replace_into_with_tags;
/// use vrt::traits::*;
///
/// vrt::run_local(2, |world| {
///     let (me, other) = (world.rank(), world.process_at_rank(1 - world.rank()));
///     let mut numbers = [me; 2];
///     send_receive_replace_into_with_tags(&mut numbers, &other, me, &other, other.rank());
///     assert_eq!(numbers, [other.rank(); 2]);
/// });
/// ```
#[track_caller]
#[inline(always)]
pub fn send_receive_replace_into_with_tags<B, D, S>(
    buf: &mut B,
    destination: &D,
    sendtag: Tag,
    source: &S,
    receivetag: Tag,
) -> Status
where
    B: BufferMut + Buffer + ?Sized,
    D: Destination,
    S: Source,
{
    let site = site!("send_receive_replace_into");
    let address = address(destination, sendtag, site).or_refuse();
    let message = to_send(destination, address, buf, Mode::Buffered);
    let pattern = pattern(source, Some(receivetag), site).or_refuse();
    into(message, pattern, buf, site)
}

/// Sends a buffer and receives into the same buffer.
///
/// # Panics
/// When the message received is longer than the buffer, or of another type.
///
/// # Examples
///
/// ```
/// use vrt::point_to_point::send_receive_replace_into;
/// use vrt::traits::*;
///
/// vrt::run_local(3, |world| {
///     let (me, n) = (world.rank(), world.size());
///     let right = world.process_at_rank((me + 1) % n);
///     let left = world.process_at_rank((me + n - 1) % n);
///     let mut numbers = [me; 2];
///     send_receive_replace_into(&mut numbers, &right, &left);
///     assert_eq!(numbers, [left.rank(); 2]);
/// });
/// ```
#[track_caller]
#[inline(always)]
pub fn send_receive_replace_into<B, D, S>(buf: &mut B, destination: &D, source: &S) -> Status
where
    B: BufferMut + Buffer + ?Sized,
    D: Destination,
    S: Source,
{
    let site = site!("send_receive_replace_into");
    // The message is copied before anything can be received into its place.
    let address = address(destination, Tag::default(), site).or_refuse();
    let message = to_send(destination, address, buf, Mode::Buffered);
    into(message, pattern(source, None, site).or_refuse(), buf, site)
}

#[inline(always)]
fn one<R: Equivalence>(message: ToSend, pattern: Pattern, site: Site) -> (R, Status) {
    let mut value = MaybeUninit::<R>::uninit();
    let mut room = room_for(&mut value);
    // SAFETY: message and value outlive the blocking call.
    let status = unsafe { exchange_blocking(message.outbound, pattern, room.room(), site) };
    expect_one(status, room.len).at(site).or_refuse();
    room.finish_all().at(site).or_refuse();
    // SAFETY: all bytes of the value have come, from a value of an equivalent type.
    (unsafe { value.assume_init() }, status)
}

#[inline(always)]
fn into<B: BufferMut + ?Sized>(
    message: ToSend,
    pattern: Pattern,
    buf: &mut B,
    site: Site,
) -> Status {
    let mut room = wire::incoming(buf);
    // SAFETY: message and buffer are borrowed for the blocking call.
    let status = unsafe { exchange_blocking(message.outbound, pattern, room.room(), site) };
    room.finish(status.bytes() as usize).at(site).or_refuse();
    status
}

/// [`exchange`](operation::exchange), without a future.
///
/// # Safety
/// The message's data is readable and the buffer writable during the call.
#[inline(always)]
unsafe fn exchange_blocking(message: Outbound, pattern: Pattern, room: Room, site: Site) -> Status {
    let may_block = may_block(site);
    // SAFETY: as the caller promises. A replaced buffer is copied by the send.
    let outcome =
        unsafe { operation::block_on_exchange(may_block, &message, pattern, room, &site) };
    Status::of(outcome, site).or_refuse()
}
