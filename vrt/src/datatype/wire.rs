//! The bytes of a buffer on their way out and in.
//!
//! Elements that lie in memory as they are sent are used where they are. Others are packed into a
//! block of the rank's heap, which goes with the operation: an outgoing block is dropped when the
//! operation is over, an incoming one is unpacked first.
//!
//! An operation that may outlive the borrow of its buffers, because whoever waits for it can be
//! dropped or forgotten, has all its bytes *apart*, in such blocks: what has come is put into the
//! buffer by its borrower.

use std::cell::RefCell;
use std::rc::Rc;

use crate::datatype::{
    AsDatatype, Buffer, BufferMut, DatatypeRef, Kind, OwnedDatatype, Scalar, Signature,
    UncommittedDatatype,
};
use crate::error::ErrorKind;
use vrt_core::comm::bytes::{In, Out};
use vrt_core::pe::Room;

/// Bytes to send. They stay where they are as long as this and the buffer live.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) at: *const u8,
    pub(crate) len: usize,
    pub(crate) signature: Signature,
    packed: Option<Vec<u8>>,
}

/// Room for bytes to receive. It stays where it is as long as this and the buffer live.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) at: *mut u8,
    pub(crate) len: usize,
    pub(crate) signature: Signature,
    staged: Option<Box<Staged>>,
}

/// Packed bytes that are to be unpacked into a buffer.
#[derive(Debug)]
struct Staged {
    bytes: Vec<u8>,
    to: *mut u8,
    count: usize,
    datatype: OwnedDatatype,
    /// The bytes are integers of another kind than the buffer's.
    other: Option<Scalar>,
    /// Who puts them into the buffer, if that is not for the operation to do.
    apart: Option<Arrived>,
}

/// Bytes that have come, and how many.
type Arrived = Rc<RefCell<Option<(Box<Staged>, usize)>>>;

/// What comes for a buffer that is not touched until it has.
#[derive(Debug)]
pub(crate) struct Apart(Arrived);

impl Apart {
    /// Puts what has come, if all has, into the buffer that this was made for.
    ///
    /// # Errors
    /// As [`Incoming::finish`].
    pub(crate) fn settle<B: BufferMut + ?Sized>(self, buffer: &mut B) -> Result<(), ErrorKind> {
        let Some((mut staged, len)) = self.0.take() else { return Ok(()) };
        assert!(staged.count <= buffer.len_in_elements(), "the buffer has become shorter");
        staged.to = buffer.pointer_mut().cast();
        staged.unpack(len)
    }
}

/// The bytes of `count` elements.
///
/// # Safety
/// The elements are readable while the result is used.
#[inline(always)]
pub(crate) unsafe fn outgoing_elements(
    from: *const u8,
    count: usize,
    datatype: DatatypeRef<'_>,
) -> Outgoing {
    match datatype.0 {
        Kind::System(scalar) if scalar.is_dense() => {
            let signature = Signature::of_scalar(scalar);
            Outgoing { at: from, len: count * scalar.size(), signature, packed: None }
        }
        // SAFETY: as the caller promises.
        _ => unsafe { pack(from, count, datatype) },
    }
}

unsafe fn pack(from: *const u8, count: usize, datatype: DatatypeRef<'_>) -> Outgoing {
    let (size, direct, signature) =
        datatype.with_layout(|layout| (layout.size(), layout.direct(count), layout.signature()));
    let len = size * count;
    if let Some(offset) = direct {
        return Outgoing { at: from.wrapping_offset(offset), len, signature, packed: None };
    }
    let mut packed: Vec<u8> = Vec::with_capacity(len);
    let to = packed.as_mut_ptr();
    // SAFETY: the elements are readable, says the caller; the block has room for all of them.
    unsafe {
        datatype.with_layout(|layout| layout.pack(from, count, to));
        packed.set_len(len);
    }
    Outgoing { at: packed.as_ptr(), len, signature, packed: Some(packed) }
}

/// The bytes of a buffer to send from.
#[inline]
pub(crate) fn outgoing<B: Buffer + ?Sized>(buffer: &B) -> Outgoing {
    let datatype = buffer.as_datatype();
    let count = buffer.len_in_elements();
    // SAFETY: the buffer promises its elements; callers keep it borrowed.
    unsafe { outgoing_elements(buffer.pointer().cast(), count, datatype.datatype_ref()) }
}

/// Room for `count` elements. `filled` says that what is there is to be sent or kept: then a
/// staged block begins as a copy of it.
///
/// # Safety
/// The elements are writable (and readable, if `filled`) while the result is used.
#[inline(always)]
pub(crate) unsafe fn incoming_elements(
    to: *mut u8,
    count: usize,
    datatype: DatatypeRef<'_>,
    filled: bool,
) -> Incoming {
    match datatype.0 {
        Kind::System(scalar) if scalar.is_dense() => {
            let signature = Signature::of_scalar(scalar);
            Incoming { at: to, len: count * scalar.size(), signature, staged: None }
        }
        // SAFETY: as the caller promises.
        _ => unsafe { stage(to, count, datatype, filled) },
    }
}

unsafe fn stage(to: *mut u8, count: usize, datatype: DatatypeRef<'_>, filled: bool) -> Incoming {
    let (size, direct, signature) =
        datatype.with_layout(|layout| (layout.size(), layout.direct(count), layout.signature()));
    let len = size * count;
    if let Some(offset) = direct {
        return Incoming { at: to.wrapping_offset(offset), len, signature, staged: None };
    }
    let mut bytes = vec![0u8; len];
    let at = bytes.as_mut_ptr();
    if filled {
        // SAFETY: the elements are readable, says the caller; the block has room for all.
        datatype.with_layout(|layout| unsafe { layout.pack(to, count, at) });
    }
    let datatype = datatype.to_owned_type();
    let staged = Box::new(Staged { bytes, to, count, datatype, other: None, apart: None });
    Incoming { at, len, signature, staged: Some(staged) }
}

/// Room for the bytes of a buffer to receive into.
#[inline]
pub(crate) fn incoming<B: BufferMut + ?Sized>(buffer: &mut B) -> Incoming {
    let datatype = buffer.as_datatype();
    let count = buffer.len_in_elements();
    // SAFETY: the buffer promises its elements; callers keep it borrowed.
    unsafe { incoming_elements(buffer.pointer_mut().cast(), count, datatype.datatype_ref(), false) }
}

/// The same for a buffer of which a part, or nothing, may be written, or whose bytes are sent.
#[inline]
pub(crate) fn incoming_filled<B: BufferMut + ?Sized>(buffer: &mut B) -> Incoming {
    let datatype = buffer.as_datatype();
    let count = buffer.len_in_elements();
    // SAFETY: as in `incoming`; a buffer's elements are initialised.
    unsafe { incoming_elements(buffer.pointer_mut().cast(), count, datatype.datatype_ref(), true) }
}

/// The bytes of a buffer, which is not looked at again.
pub(crate) fn outgoing_apart<B: Buffer + ?Sized>(buffer: &B) -> Outgoing {
    let there = outgoing(buffer);
    if there.is_packed() {
        return there;
    }
    let packed = there.bytes().to_vec();
    Outgoing { at: packed.as_ptr(), packed: Some(packed), ..there }
}

/// Room apart from a buffer, for bytes that the operation's end puts into it.
pub(crate) fn incoming_staged<B: BufferMut + ?Sized>(buffer: &mut B) -> Incoming {
    stage_buffer(buffer, false)
}

/// Room apart from a buffer; what comes is put into it by [`Apart::settle`]. `filled` as in
/// [`incoming_filled`].
pub(crate) fn incoming_apart<B: BufferMut + ?Sized>(
    buffer: &mut B,
    filled: bool,
) -> (Incoming, Apart) {
    set_apart(stage_buffer(buffer, filled))
}

fn set_apart(mut incoming: Incoming) -> (Incoming, Apart) {
    let arrived = Arrived::default();
    if let Some(staged) = &mut incoming.staged {
        staged.apart = Some(Rc::clone(&arrived));
    }
    (incoming, Apart(arrived))
}

fn stage_buffer<B: BufferMut + ?Sized>(buffer: &mut B, filled: bool) -> Incoming {
    let datatype = buffer.as_datatype();
    let datatype = datatype.datatype_ref();
    let (count, to) = (buffer.len_in_elements(), buffer.pointer_mut().cast::<u8>());
    let (size, signature) = datatype.with_layout(|layout| (layout.size(), layout.signature()));
    let mut bytes = vec![0u8; size * count];
    let (at, len) = (bytes.as_mut_ptr(), bytes.len());
    if filled {
        // SAFETY: a buffer's elements are initialised; the block has room for all.
        datatype.with_layout(|layout| unsafe { layout.pack(to, count, at) });
    }
    let datatype = datatype.to_owned_type();
    let staged = Box::new(Staged { bytes, to, count, datatype, other: None, apart: None });
    Incoming { at, len, signature, staged: Some(staged) }
}

/// Room for the result of a reduction, which has the type of what was contributed. If the receive
/// buffer has as many integers of another size, they are converted at the end. (MPI forbids that,
/// and the `mpi` crate then writes behind the buffer; programs that get away with it are met.)
#[inline]
pub(crate) fn incoming_result<S, R>(contributed: &S, buffer: &mut R, filled: bool) -> Incoming
where
    S: Buffer + ?Sized,
    R: BufferMut + ?Sized,
{
    let (theirs, ours) = (contributed.as_datatype(), buffer.as_datatype());
    let (Kind::System(from), Kind::System(to)) = (theirs.datatype_ref().0, ours.datatype_ref().0)
    else {
        return if filled { incoming_filled(buffer) } else { incoming(buffer) };
    };
    let (count, contributions) = (buffer.len_in_elements(), contributed.len_in_elements());
    if from == to || from.size() == to.size() || count != contributions {
        return if filled { incoming_filled(buffer) } else { incoming(buffer) };
    }
    if !(from.is_integer() && to.is_integer()) {
        return incoming(buffer);
    }
    let mut bytes = vec![0u8; count * from.size()];
    let (at, len) = (bytes.as_mut_ptr(), bytes.len());
    let (datatype, to) = (OwnedDatatype::System(to), buffer.pointer_mut().cast());
    let staged = Box::new(Staged { bytes, to, count, datatype, other: Some(from), apart: None });
    Incoming { at, len, signature: Signature::of_scalar(from), staged: Some(staged) }
}

/// [`incoming_result`] apart from the buffer, as [`incoming_apart`].
pub(crate) fn result_apart<S, R>(contributed: &S, buffer: &mut R) -> (Incoming, Apart)
where
    S: Buffer + ?Sized,
    R: BufferMut + ?Sized,
{
    let incoming = incoming_result(contributed, buffer, false);
    if incoming.is_staged() { set_apart(incoming) } else { incoming_apart(buffer, false) }
}

/// Bytes that an element of a buffer has on its way.
pub(crate) fn element_size<B: AsDatatype + ?Sized>(buffer: &B) -> usize {
    buffer.as_datatype().datatype_ref().size()
}

impl Incoming {
    /// The room as algorithms want it.
    pub(crate) fn out(&self) -> Out {
        Out(self.at, self.len, self.signature)
    }

    /// The room as receives want it.
    #[inline(always)]
    pub(crate) fn room(&self) -> Room {
        Room { buffer: self.at, capacity: self.len, signature: self.signature }
    }

    /// No room.
    pub(crate) fn nothing() -> Incoming {
        Incoming { at: std::ptr::null_mut(), len: 0, signature: Signature::ANY, staged: None }
    }

    /// Puts what has come, `len` bytes, into the buffer.
    ///
    /// # Errors
    /// It is the result of a reduction, to be converted to integers that it does not fit.
    #[inline]
    pub(crate) fn finish(&mut self, len: usize) -> Result<(), ErrorKind> {
        match self.staged.take() {
            Some(staged) => staged.land(len),
            None => Ok(()),
        }
    }

    /// Puts everything into the buffer.
    ///
    /// # Errors
    /// As [`finish`](Self::finish).
    #[inline]
    pub(crate) fn finish_all(&mut self) -> Result<(), ErrorKind> {
        self.finish(self.len)
    }

    /// Whether anything is left to do at the end.
    pub(crate) fn is_staged(&self) -> bool {
        self.staged.is_some()
    }
}

impl Outgoing {
    /// The bytes as algorithms want them.
    pub(crate) fn input(&self) -> In {
        In(self.at, self.len, self.signature)
    }

    /// No bytes.
    pub(crate) fn nothing() -> Outgoing {
        Outgoing { at: std::ptr::null(), len: 0, signature: Signature::ANY, packed: None }
    }

    /// The bytes.
    ///
    /// They are readable as long as the buffer that this was made from is borrowed.
    pub(crate) fn bytes(&self) -> &[u8] {
        if self.len == 0 {
            return &[];
        }
        // SAFETY: whoever made this keeps the buffer borrowed while it is used.
        unsafe { std::slice::from_raw_parts(self.at, self.len) }
    }

    /// Whether the bytes are a copy of the buffer's.
    pub(crate) fn is_packed(&self) -> bool {
        self.packed.is_some()
    }
}

impl Staged {
    /// Puts what has come where it belongs; not inlined, because most buffers need none of it.
    #[inline(never)]
    fn land(mut self: Box<Self>, len: usize) -> Result<(), ErrorKind> {
        match self.apart.take() {
            Some(arrived) => {
                arrived.replace(Some((self, len)));
                Ok(())
            }
            None => self.unpack(len),
        }
    }

    fn unpack(&self, len: usize) -> Result<(), ErrorKind> {
        let len = len.min(self.bytes.len());
        if len == 0 {
            return Ok(());
        }
        let (from, to, count) = (self.bytes.as_ptr(), self.to, self.count);
        if let (Some(other), OwnedDatatype::System(scalar)) = (self.other, &self.datatype) {
            for (i, value) in self.bytes.chunks_exact(other.size()).enumerate().take(count) {
                let value = other.integer(value);
                let Some(bytes) = scalar.integer_bytes(value) else {
                    return Err(ErrorKind::ResultOverflow { value: value.to_string() });
                };
                let size = scalar.size();
                // SAFETY: element `i` of the buffer is writable and has this size.
                unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to.add(i * size), size) };
            }
            return Ok(());
        }
        self.datatype.datatype_ref().with_layout(|layout| match layout.direct(count) {
            // SAFETY: whoever made this promised that the elements are writable, and says the
            // layout that they lie there one behind the other.
            Some(offset) => unsafe {
                std::ptr::copy_nonoverlapping(from, to.wrapping_offset(offset), len);
            },
            // SAFETY: as above.
            None => unsafe { layout.unpack(from, len, to, count) },
        });
        Ok(())
    }
}
