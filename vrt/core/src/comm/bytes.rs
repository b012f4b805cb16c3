//! Ranges of bytes that algorithms read and write, without lifetimes: the caller that starts an
//! operation keeps its buffers until it is done.

#![cfg_attr(
    not(test),
    expect(
        clippy::arithmetic_side_effects,
        reason = "places in buffers that are there, and ranks below their number"
    )
)]

use crate::error::Error;
use crate::layout::Signature;
use crate::pe::Room;

/// Bytes to read from, with their element type.
#[derive(Clone, Copy, Debug)]
pub struct In(pub *const u8, pub usize, pub Signature);

/// Bytes to write to, with their element type.
#[derive(Clone, Copy, Debug)]
pub struct Out(pub *mut u8, pub usize, pub Signature);

impl In {
    /// No bytes, matching every type; the address is null.
    pub const NOTHING: In = In(std::ptr::null(), 0, Signature::ANY);

    pub(super) fn of_slice(bytes: &[u8], signature: Signature) -> In {
        In(bytes.as_ptr(), bytes.len(), signature)
    }

    /// The bytes.
    ///
    /// # Safety
    /// They are readable as long as the result lives.
    pub(super) unsafe fn slice<'a>(self) -> &'a [u8] {
        // SAFETY: readable, says the caller.
        if self.1 == 0 { &[] } else { unsafe { std::slice::from_raw_parts(self.0, self.1) } }
    }

    /// Equal parts.
    pub fn parts(self, n: usize) -> Vec<In> {
        let each = self.1 / n.max(1);
        (0..n).map(|i| In(self.0.wrapping_add(i * each), each, self.2)).collect()
    }

    pub(super) fn range(self, at: usize, len: usize) -> In {
        In(self.0.wrapping_add(at), len, self.2)
    }
}

impl Out {
    /// No bytes, matching every type; the address is null.
    pub const NOTHING: Out = Out(std::ptr::null_mut(), 0, Signature::ANY);

    pub(super) fn of_slice(bytes: &mut [u8], signature: Signature) -> Out {
        Out(bytes.as_mut_ptr(), bytes.len(), signature)
    }

    /// Equal parts.
    pub fn parts(self, n: usize) -> Vec<Out> {
        let each = self.1 / n.max(1);
        (0..n).map(|i| Out(self.0.wrapping_add(i * each), each, self.2)).collect()
    }

    pub(super) fn range(self, at: usize, len: usize) -> Out {
        Out(self.0.wrapping_add(at), len, self.2)
    }

    /// The bytes as the room of a receive.
    pub fn room(self) -> Room {
        Room { buffer: self.0, capacity: self.1, signature: self.2 }
    }

    pub(super) fn read(self) -> In {
        In(self.0, self.1, self.2)
    }

    /// # Safety
    /// Both are valid for the length of `from`, which is not longer. They may be the same.
    pub(super) unsafe fn copy_from(self, from: In) {
        debug_assert!(from.1 <= self.1);
        if from.1 > 0 {
            // SAFETY: both have `from.1` bytes, says the caller.
            unsafe { std::ptr::copy(from.0, self.0, from.1) };
        }
    }
}

/// Zeros, as many as a program asks for.
///
/// # Errors
/// There is no memory for them.
pub fn zeroed(bytes: usize) -> Result<Vec<u8>, Error> {
    let none = Error::NoMemory { bytes };
    let Ok(layout) = std::alloc::Layout::array::<u8>(bytes) else { return Err(none) };
    if bytes == 0 {
        return Ok(Vec::new());
    }
    // SAFETY: the layout is not empty, and is that of a vector of so many bytes, all of which `alloc_zeroed` has written.
    unsafe {
        let at = std::alloc::alloc_zeroed(layout);
        match at.is_null() {
            true => Err(none),
            false => Ok(Vec::from_raw_parts(at, bytes, bytes)),
        }
    }
}

/// Checks that the element type of `bytes` bytes of one buffer matches that of the other.
///
/// # Errors
/// It does not.
#[inline]
pub fn expect_type(sent: Signature, received: Signature, bytes: usize) -> Result<(), Error> {
    match sent.fits(received, bytes as u64) {
        true => Ok(()),
        false => Err(Error::BufferTypes { sent, received }),
    }
}
