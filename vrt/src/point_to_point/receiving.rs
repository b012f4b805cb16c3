//! Receiving one value: room for it, and a receive that owns it.

use std::fmt;
use std::mem::{ManuallyDrop, MaybeUninit};

use crate::datatype::wire::{self, Incoming, Outgoing};
use crate::datatype::{Equivalence, UncommittedDatatype};
use crate::error::{At, ErrorKind, OrRefuse};
use crate::operation::{Site, Status};
use crate::request::{Kept, Request, StaticScope};
use vrt_core::mailbox::Pattern;
use vrt_core::pe;

/// Room for the bytes of a value that is not there yet.
pub(crate) fn room_for<Msg: Equivalence>(value: &mut MaybeUninit<Msg>) -> Incoming {
    let datatype = Msg::equivalent_datatype();
    // SAFETY: one value can be written there; callers keep it in its place meanwhile.
    unsafe { wire::incoming_elements(value.as_mut_ptr().cast(), 1, datatype.datatype_ref(), false) }
}

/// Checks that a message is one value of `value` bytes.
#[inline]
pub(crate) fn expect_one(status: Status, value: usize) -> Result<(), ErrorKind> {
    let Status { source: source_rank, tag, bytes, .. } = status;
    match bytes == value as u64 {
        true => Ok(()),
        false => Err(ErrorKind::NotOneValue { source_rank, tag, bytes, value }),
    }
}

/// What has to be kept of a buffer that is received into.
pub(crate) fn keep_incoming(incoming: Incoming) -> Option<Box<Kept>> {
    incoming.is_staged().then(|| Box::new(Kept { outgoing: Outgoing::nothing(), incoming }))
}

/// A value that is being received.
///
/// # Examples
///
/// ```
/// use vrt::point_to_point::ReceiveFuture;
/// use vrt::traits::*;
///
/// vrt::run_local(2, |world| {
///     // Both values are received at the same time, in whichever order they arrive.
///     let from_each: [ReceiveFuture<i32>; 2] =
///         [0, 1].map(|rank| world.process_at_rank(rank).immediate_receive());
///     (0..2).for_each(|rank| world.process_at_rank(rank).send(&world.rank()));
///     assert_eq!(from_each.map(|receive| receive.get().0), [0, 1]);
/// });
/// ```
pub struct ReceiveFuture<T: 'static> {
    /// Leaked with the request if that is dropped and cannot be withdrawn.
    value: ManuallyDrop<Box<MaybeUninit<T>>>,
    request: Request<'static, (), StaticScope>,
}

impl<T> fmt::Debug for ReceiveFuture<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReceiveFuture").field("request", &self.request).finish_non_exhaustive()
    }
}

impl<T: Equivalence> ReceiveFuture<T> {
    pub(super) fn start(pattern: Pattern, site: Site) -> ReceiveFuture<T> {
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
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let other = world.process_at_rank(1 - world.rank());
    ///     let receive = other.immediate_receive::<f64>();
    ///     other.send(&2.5);
    ///     let (value, status) = receive.get();
    ///     assert_eq!((value, status.source_rank()), (2.5, other.rank()));
    /// });
    /// ```
    pub fn get(self) -> (T, Status) {
        let site = self.request.site();
        let status = self.request.wait();
        let value = ManuallyDrop::into_inner(self.value);
        let size = T::equivalent_datatype().datatype_ref().size();
        expect_one(status, size).at(site).or_refuse();
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
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let other = world.process_at_rank(1 - world.rank());
    ///     let mut receive = other.immediate_receive::<i32>();
    ///     other.send(&7);
    ///     let (value, _) = loop {
    ///         // Here a rank does a part of its work.
    ///         match receive.r#try() {
    ///             Ok(received) => break received,
    ///             Err(pending) => receive = pending,
    ///         }
    ///     };
    ///     assert_eq!(value, 7);
    /// });
    /// ```
    pub fn r#try(self) -> Result<(T, Status), Self> {
        let site = self.request.site();
        match self.request.test() {
            Ok(status) => {
                let value = ManuallyDrop::into_inner(self.value);
                let size = T::equivalent_datatype().datatype_ref().size();
                expect_one(status, size).at(site).or_refuse();
                // SAFETY: as in `get`.
                Ok((*unsafe { value.assume_init() }, status))
            }
            Err(request) => Err(ReceiveFuture { request, ..self }),
        }
    }
}
