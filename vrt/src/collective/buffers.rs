//! The buffers of a call, and their bytes.
//!
//! A caller gives a buffer by reference, or gives none ([`Given`]). What
//! an operation's description names as its bytes ([`Sent`], [`Room`]) says which buffers it takes:
//! whole ones, ones in parts, lists of them.
//!
//! The bytes of a call that borrows its buffers until the operation is done lie in the buffers, where
//! they can. Those of a call that may be forgotten lie apart from them: what is sent has been copied,
//! and what comes is put into its place by whoever has the buffer then.

use crate::Count;
use crate::datatype::wire::{self, Apart, Incoming, Outgoing};
use crate::datatype::{
    AsDatatype, Buffer, BufferMut, Datatype, DatatypeRef, DynBuffer, DynBufferMut, Equivalence,
    Partitioned, PartitionedBuffer, PartitionedBufferMut, Scalar, SystemDatatype,
    UncommittedDatatype,
};
use crate::error::ErrorKind;

/// A buffer as a caller gives it, or none.
pub(super) trait Given {
    type Buffer: ?Sized;

    fn given(&self) -> Option<&Self::Buffer>;
}

/// A buffer to receive into likewise.
pub(super) trait GivenMut: Given {
    fn given_mut(&mut self) -> Option<&mut Self::Buffer>;
}

/// What the elements of no buffer are.
pub(super) const NO_ELEMENTS: SystemDatatype = DatatypeRef::system(Scalar::U8);

/// The buffer of whoever gives none: there is no such value.
pub(super) enum Missing {}

impl Given for () {
    type Buffer = Missing;

    #[inline(always)]
    fn given(&self) -> Option<&Missing> {
        None
    }
}

impl GivenMut for () {
    #[inline(always)]
    fn given_mut(&mut self) -> Option<&mut Missing> {
        None
    }
}

impl<B: ?Sized> Given for &B {
    type Buffer = B;

    #[inline(always)]
    fn given(&self) -> Option<&B> {
        Some(self)
    }
}

impl<B: ?Sized> Given for &mut B {
    type Buffer = B;

    #[inline(always)]
    fn given(&self) -> Option<&B> {
        Some(self)
    }
}

impl<B: ?Sized> GivenMut for &mut B {
    #[inline(always)]
    fn given_mut(&mut self) -> Option<&mut B> {
        Some(self)
    }
}

// SAFETY: there is no value.
unsafe impl Equivalence for Missing {
    type Out = SystemDatatype;

    fn equivalent_datatype() -> SystemDatatype {
        NO_ELEMENTS
    }
}

impl Partitioned for Missing {
    fn counts(&self) -> &[Count] {
        match *self {}
    }

    fn displs(&self) -> &[Count] {
        match *self {}
    }
}

// SAFETY: it has no parts.
unsafe impl PartitionedBuffer for Missing {}
// SAFETY: as above.
unsafe impl PartitionedBufferMut for Missing {}

/// Where what comes apart from buffers is kept; `None` says that bytes lie in the buffers.
pub(super) type AllApart<'a> = Option<&'a mut Vec<Apart>>;

/// The bytes of a buffer, or of several.
pub(super) trait Bytes: 'static {
    /// Whether all lie in the buffers: nothing is left to do when the operation is over.
    fn lie_in_buffers(&self) -> bool;

    /// Puts what has come into its place.
    fn finish_all(&mut self) -> Result<(), ErrorKind> {
        Ok(())
    }
}

/// Where nothing is sent or received.
impl Bytes for () {
    #[inline(always)]
    fn lie_in_buffers(&self) -> bool {
        true
    }
}

impl<S: ?Sized> Sent<S> for () {
    type Elements = SystemDatatype;

    #[inline(always)]
    fn of(_: Option<&S>, _: bool) {}

    #[inline(always)]
    fn elements(_: Option<&S>) -> Option<SystemDatatype> {
        None
    }
}

impl<S: ?Sized, R: ?Sized> Room<S, R> for () {
    #[inline(always)]
    fn of(_: Option<&mut R>, _: Option<&S>, _: bool, _: AllApart<'_>) {}

    fn settle(_: &mut R, _: Vec<Apart>) -> Result<(), ErrorKind> {
        Ok(())
    }
}

/// Bytes to send, made from a buffer of type `S`; none of them if there is no buffer.
pub(super) trait Sent<S: ?Sized>: Bytes {
    type Elements: Datatype;

    fn of(buffer: Option<&S>, apart: bool) -> Self;

    /// The datatype of the buffer's elements, if all are of one.
    fn elements(buffer: Option<&S>) -> Option<Self::Elements>;
}

/// Room for bytes to receive, made from a buffer of type `R`; none if there is no buffer. `sent` is
/// the call's other buffer.
pub(super) trait Room<S: ?Sized, R: ?Sized>: Bytes {
    /// `filled`: what is in the buffer is sent, or a part of it is kept.
    fn of(buffer: Option<&mut R>, sent: Option<&S>, filled: bool, apart: AllApart<'_>) -> Self;

    /// Puts what has come apart into the buffer.
    fn settle(buffer: &mut R, came: Vec<Apart>) -> Result<(), ErrorKind>;
}

/// Room for the result of a reduction, which has the type of the contributions.
#[derive(Debug)]
pub(super) struct Folded(pub(super) Incoming);

#[inline(always)]
fn outgoing<B: Buffer + ?Sized>(buffer: &B, apart: bool) -> Outgoing {
    if apart { wire::outgoing_apart(buffer) } else { wire::outgoing(buffer) }
}

#[inline(always)]
fn incoming<B>(buffer: &mut B, filled: bool, apart: AllApart<'_>) -> Incoming
where
    B: BufferMut + ?Sized,
{
    match apart {
        None if filled => wire::incoming_filled(buffer),
        None => wire::incoming(buffer),
        Some(all) => keep(wire::incoming_apart(buffer, filled), all),
    }
}

fn keep((incoming, apart): (Incoming, Apart), all: &mut Vec<Apart>) -> Incoming {
    all.push(apart);
    incoming
}

impl<S: Buffer + ?Sized> Sent<S> for Outgoing {
    type Elements = S::Out;

    #[inline(always)]
    fn of(buffer: Option<&S>, apart: bool) -> Outgoing {
        buffer.map_or_else(Outgoing::nothing, |buffer| outgoing(buffer, apart))
    }

    #[inline(always)]
    fn elements(buffer: Option<&S>) -> Option<S::Out> {
        buffer.map(AsDatatype::as_datatype)
    }
}

impl<S: PartitionedBuffer + ?Sized> Sent<S> for Vec<Outgoing> {
    type Elements = S::Out;

    fn of(buffer: Option<&S>, apart: bool) -> Vec<Outgoing> {
        let Some(buffer) = buffer else { return Vec::new() };
        let (datatype, base) = (buffer.as_datatype(), buffer.pointer().cast::<u8>());
        let datatype = datatype.datatype_ref();
        let part = |(count, at): (&Count, &Count)| {
            let from = base.wrapping_offset(place(*at, datatype));
            // SAFETY: partitions check that their parts lie in their buffer.
            outgoing(&unsafe { DynBuffer::from_raw(from, *count, datatype) }, apart)
        };
        buffer.counts().iter().zip(buffer.displs()).map(part).collect()
    }

    fn elements(buffer: Option<&S>) -> Option<S::Out> {
        buffer.map(AsDatatype::as_datatype)
    }
}

impl Sent<[DynBuffer<'_>]> for Vec<Outgoing> {
    type Elements = SystemDatatype;

    fn of(buffers: Option<&[DynBuffer<'_>]>, apart: bool) -> Vec<Outgoing> {
        buffers.into_iter().flatten().map(|buffer| outgoing(buffer, apart)).collect()
    }

    fn elements(_: Option<&[DynBuffer<'_>]>) -> Option<SystemDatatype> {
        None
    }
}

impl<S: ?Sized, R: BufferMut + ?Sized> Room<S, R> for Incoming {
    #[inline(always)]
    fn of(buffer: Option<&mut R>, _: Option<&S>, filled: bool, apart: AllApart<'_>) -> Incoming {
        buffer.map_or_else(Incoming::nothing, |buffer| incoming(buffer, filled, apart))
    }

    fn settle(buffer: &mut R, came: Vec<Apart>) -> Result<(), ErrorKind> {
        came.into_iter().try_for_each(|apart| apart.settle(buffer))
    }
}

impl<S: Buffer + ?Sized, R: BufferMut + ?Sized> Room<S, R> for Folded {
    #[inline(always)]
    fn of(buffer: Option<&mut R>, sent: Option<&S>, _: bool, apart: AllApart<'_>) -> Folded {
        let (Some(buffer), Some(sent)) = (buffer, sent) else {
            return Folded(Incoming::nothing());
        };
        Folded(match apart {
            None => wire::incoming_result(sent, buffer, false),
            Some(all) => keep(wire::result_apart(sent, buffer), all),
        })
    }

    fn settle(buffer: &mut R, came: Vec<Apart>) -> Result<(), ErrorKind> {
        <Incoming as Room<S, R>>::settle(buffer, came)
    }
}

impl<S: ?Sized, R: PartitionedBufferMut + ?Sized> Room<S, R> for Vec<Incoming> {
    fn of(
        buffer: Option<&mut R>,
        _: Option<&S>,
        filled: bool,
        mut apart: AllApart<'_>,
    ) -> Vec<Incoming> {
        let mut all = Vec::new();
        if let Some(buffer) = buffer {
            each_part(buffer, |part| all.push(incoming(part, filled, apart.as_deref_mut())));
        }
        all
    }

    fn settle(buffer: &mut R, came: Vec<Apart>) -> Result<(), ErrorKind> {
        let (mut came, mut outcome) = (came.into_iter(), Ok(()));
        each_part(buffer, |part| {
            if let (Some(apart), Ok(())) = (came.next(), &outcome) {
                outcome = apart.settle(part);
            }
        });
        outcome
    }
}

impl<S: ?Sized> Room<S, [DynBufferMut<'_>]> for Vec<Incoming> {
    fn of(
        buffers: Option<&mut [DynBufferMut<'_>]>,
        _: Option<&S>,
        filled: bool,
        mut apart: AllApart<'_>,
    ) -> Vec<Incoming> {
        let room = |buffer| incoming(buffer, filled, apart.as_deref_mut());
        buffers.into_iter().flatten().map(room).collect()
    }

    fn settle(buffers: &mut [DynBufferMut<'_>], came: Vec<Apart>) -> Result<(), ErrorKind> {
        came.into_iter().zip(buffers).try_for_each(|(apart, buffer)| apart.settle(buffer))
    }
}

/// Calls `f` with each part of a buffer.
fn each_part<B>(buffer: &mut B, mut f: impl FnMut(&mut DynBufferMut<'_>))
where
    B: PartitionedBufferMut + ?Sized,
{
    let (datatype, base) = (buffer.as_datatype(), buffer.pointer_mut().cast::<u8>());
    let datatype = datatype.datatype_ref();
    for (count, at) in buffer.counts().iter().zip(buffer.displs()) {
        let to = base.wrapping_offset(place(*at, datatype));
        // SAFETY: partitions check that their parts lie in their buffer, which is borrowed.
        f(&mut unsafe { DynBufferMut::from_raw(to, *count, datatype) });
    }
}

fn place(displacement: Count, datatype: DatatypeRef<'_>) -> isize {
    displacement as isize * datatype.extent()
}

impl Bytes for Outgoing {
    #[inline(always)]
    fn lie_in_buffers(&self) -> bool {
        !self.is_packed()
    }
}

impl Bytes for Incoming {
    #[inline(always)]
    fn lie_in_buffers(&self) -> bool {
        !self.is_staged()
    }

    fn finish_all(&mut self) -> Result<(), ErrorKind> {
        Incoming::finish_all(self)
    }
}

impl Bytes for Folded {
    #[inline(always)]
    fn lie_in_buffers(&self) -> bool {
        self.0.lie_in_buffers()
    }

    fn finish_all(&mut self) -> Result<(), ErrorKind> {
        self.0.finish_all()
    }
}

impl Bytes for Vec<Outgoing> {
    fn lie_in_buffers(&self) -> bool {
        self.iter().all(Bytes::lie_in_buffers)
    }
}

impl Bytes for Vec<Incoming> {
    fn lie_in_buffers(&self) -> bool {
        self.iter().all(Bytes::lie_in_buffers)
    }

    fn finish_all(&mut self) -> Result<(), ErrorKind> {
        self.iter_mut().try_for_each(Incoming::finish_all)
    }
}
