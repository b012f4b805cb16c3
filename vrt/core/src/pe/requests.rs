//! Requests: incomplete operations of a rank, their memory, and their outcomes.

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::layout::Signature;
use crate::mailbox::Pattern;
use crate::net::Packet;
use vrt_slot::Arena;

/// An operation of a rank that is incomplete, or whose outcome was not taken yet.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Request {
    /// The number is taken, until somebody takes the outcome.
    pub(crate) in_use: bool,
    /// The outcome is there.
    pub(crate) done: bool,
    /// Memory that only the process where the operation began uses.
    pub outside: bool,
    /// `buffer` is a copy of what is sent, freed when it is no longer needed.
    pub copy: bool,
    /// A receive without a buffer so far: its message is reserved for it (`reserve`).
    pub reserves: bool,
    /// A transfer reads or writes the message's memory, so the rank is pinned.
    pub direct: bool,
    /// The element type that a receive expects.
    pub signature: Signature,
    /// The receive's buffer.
    #[serde(with = "crate::net::address")]
    pub buffer: *mut u8,
    /// What its rank gets; before it is done, `capacity` is the length of a receive's buffer.
    pub(crate) outcome: Completion,
    /// Bytes of a staged message that have arrived.
    pub received: u64,
    /// The pattern of a posted receive, or of a send that waits for its receive.
    pub pattern: Option<Pattern>,
    /// The destination (rank of the job) of a send whose data may still be in the sender's memory.
    pub to: Option<u32>,
}

impl Request {
    /// A send that is not done.
    pub(crate) fn send() -> Request {
        Request {
            in_use: true,
            done: false,
            outside: false,
            copy: false,
            reserves: false,
            direct: false,
            signature: Signature::ANY,
            buffer: std::ptr::null_mut(),
            outcome: Completion::default(),
            received: 0,
            pattern: None,
            to: None,
        }
    }

    /// A send whose data is not with its receiver yet: whoever has it, or it goes with its rank's memory.
    pub(crate) fn is_owed(&self) -> bool {
        self.in_use && !self.done && (self.copy || self.to.is_some())
    }

    /// A send that is done when its receive is there: until then it can be withdrawn.
    pub(crate) fn unmatched(packet: &Packet) -> Request {
        let Packet { context, source, tag, to, .. } = *packet;
        let pattern = Some(Pattern { context, source, tag });
        Request { pattern, to: Some(to), ..Request::send() }
    }

    /// A receive into `room` that is not done; one that is posted says its pattern.
    pub(crate) fn receive(room: Room, pattern: Option<Pattern>) -> Request {
        let Room { buffer, capacity, signature } = room;
        let outcome = Completion { capacity: capacity as u64, ..Completion::default() };
        let outside = capacity > 0 && !Arena::contains(buffer as usize);
        Request { buffer, outcome, pattern, outside, signature, ..Request::send() }
    }

    /// How many bytes of a message of this length go into the buffer: none if the message has another type, which is
    /// recorded.
    #[inline(always)]
    pub fn room_for(&mut self, len: u64, theirs: Signature) -> usize {
        if !self.signature.fits(theirs, len) {
            return self.refuse(theirs);
        }
        len.min(self.outcome.capacity) as usize
    }

    #[cold]
    fn refuse(&mut self, theirs: Signature) -> usize {
        let (theirs, own) = (u64::from(theirs.number()), u64::from(self.signature.number()));
        self.outcome.ended = RequestEnd::OtherType;
        self.outcome.capacity = theirs | own << 16;
        0
    }
}

/// The destination of a receive.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// The address for the message's bytes; null only if `capacity` is 0.
    pub buffer: *mut u8,
    /// Its length in bytes.
    pub capacity: usize,
    /// The element type of the receive.
    pub signature: Signature,
}

impl Room {
    /// Room for data that the runtime itself sends.
    pub fn untyped(buffer: *mut u8, capacity: usize) -> Room {
        Room { buffer, capacity, signature: Signature::ANY }
    }
}

/// The outcome of a request. For a send only its completion matters.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Completion {
    /// Rank in the communicator.
    pub source: i32,
    /// Tag of the message.
    pub tag: i32,
    /// Length of the message, which may exceed the buffer's.
    pub bytes: u64,
    /// Length of the receive's buffer. If it ended with a message of another type, the signatures of both instead: see
    /// [`types`](Completion::types).
    pub capacity: u64,
    /// Whether it was done, withdrawn or refused.
    pub(crate) ended: RequestEnd,
}

/// How a request ended. As wide as its neighbours: PEs write completions into ranks' frames, and padding would carry
/// along leftovers from the PE's registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[repr(u64)]
pub enum RequestEnd {
    /// As requested.
    #[default]
    Normally,
    /// It was withdrawn, or refused by another PE: ranks disagree, or a window does not contain the place.
    Cancelled,
    /// The message's type differs from the receive's: nothing was received.
    OtherType,
}

// Two halves and three whole words, and the option's flag is one of `ended`'s other values.

const _: () = assert!(size_of::<Option<Completion>>() == 4 * size_of::<u64>());

impl Completion {
    /// The operation was cancelled, or cannot be done.
    pub fn is_cancelled(&self) -> bool {
        self.ended == RequestEnd::Cancelled
    }

    /// For a receive that ended with a message of another type: the message's and its own.
    pub fn types(&self) -> Option<(Signature, Signature)> {
        let of = |shift: u32| Signature::from_number((self.capacity >> shift) as u16);
        (self.ended == RequestEnd::OtherType).then(|| (of(0), of(16)))
    }

    /// The message was longer than the buffer.
    #[inline]
    pub(crate) fn is_truncated(&self) -> bool {
        self.bytes > self.capacity
    }

    /// The outcome of a receive, unless its message did not fit.
    ///
    /// # Errors
    /// The message is longer than the buffer, or of another type.
    #[inline(always)]
    pub fn fitting(self) -> Result<Completion, Error> {
        let Completion { source, tag, bytes, capacity, ended } = self;
        if ended == RequestEnd::OtherType || self.is_truncated() {
            return Err(Self::misfit((source, tag), bytes, capacity, ended));
        }
        Ok(self)
    }

    /// Why the message of a receive does not fit it. (In parts, so that a completion need not be in memory.)
    #[cold]
    #[inline(never)]
    fn misfit((source, tag): (i32, i32), bytes: u64, capacity: u64, ended: RequestEnd) -> Error {
        let outcome = Completion { source, tag, bytes, capacity, ended };
        match outcome.types() {
            Some((sent, received)) => {
                Error::MessageType { source_rank: source, tag, bytes, sent, received }
            }
            None => Error::Truncated { source_rank: source, tag, bytes, capacity },
        }
    }
}

/// The state of an operation that was just started.
#[derive(Clone, Copy, Debug)]
pub enum Started {
    /// It is done.
    Done(Completion),
    /// It continues under this request number. The rest is zeros, so that no leftovers of the PE get into ranks'
    /// frames.
    Pending(u32, [u32; 5]),
}

impl Started {
    /// An operation that had nothing to wait for.
    #[inline(always)]
    pub fn done() -> Started {
        Started::Done(Completion::default())
    }

    /// An operation that continues under a request number.
    #[inline(always)]
    pub fn pending(request: u32) -> Started {
        Started::Pending(request, [0; 5])
    }
}

const _: () = assert!(size_of::<Started>() == size_of::<Completion>());

/// Copies bytes that are most often one number.
///
/// # Safety
/// Both are valid for `len` bytes. They may overlap: a message to oneself.
#[inline(always)]
pub(crate) unsafe fn copy_short(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: as the caller promises.
    unsafe {
        if len == 8 {
            to.cast::<u64>().write_unaligned(from.cast::<u64>().read_unaligned());
        } else if len > 0 {
            std::ptr::copy(from, to, len);
        }
    }
}
