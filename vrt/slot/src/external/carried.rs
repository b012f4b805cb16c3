//! Descriptors that move along when a rank with an image moves to another PE of its node.
//!
//! ```text
//! PE A                                              PE B
//!   numbers, flags and streams, with the
//!   descriptors themselves (SCM_RIGHTS) -- socket ->
//!   closes its own
//!   the rank's parcel ------------------- ring ---> takes the message of that rank, puts each descriptor
//!                                                   at its number; only then the rank can run
//! ```
//!
//! A descriptor keeps its number, so that must be free on each PE where the rank may go. The kernel assigns the lowest
//! free numbers, which are therefore the same on several PEs. So a descriptor that a rank opens is given another
//! number, from a range above those, which it *claims* in memory of the node; a stream's number is changed with it. The
//! range ends where the sets of `select` do.
//!
//! Invariants:
//! - A number of the range is claimed by at most one rank of the node, from before the descriptor gets it until it is
//!   closed. A rank can be moved only while all its descriptors have claimed numbers.
//! - Descriptors that are meaningful only in one process are not claimed: epoll, inotify, io_uring, signalfd, devices
//!   with a few exceptions, `/proc`. Neither is a number that the program has chosen (`dup2`), nor a standard one. A
//!   claim ends when a descriptor gets a meaning specific to this process: when signals are requested (`F_SETOWN`,
//!   leases).
//! - A message is in the socket before the parcel is in the ring, and both are taken by the same PE; messages of other
//!   ranks that arrive first are kept until their parcels arrive.
//! - Locks of `fcntl` belong to the process, which loses them when it closes any descriptor of the file. Both a new
//!   number and a move close one: once a rank has taken a lock on a PE, no descriptor gets a number of the range there,
//!   and none leaves that PE or arrives at it.
//!
//! None of this applies if ranks do not move, have no libc of their own or share a library, which may keep its
//! descriptors on behalf of any rank; or if the PEs were not forked by a supervisor.

use std::collections::VecDeque;
use std::ffi::c_int;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

use super::claims::NODE;
pub use super::claims::{Prepared, set_shared};
use super::descriptors;
use crate::arena::SlotHeader;
use crate::held::{Held, Kind};
use crate::{register, sys};

/// Bytes of a message: a header, numbers with flags, addresses of streams.
const MOST_BYTES: usize = 64 << 10;

const NOT_CARRIED: &str = Kind::Descriptor.reason();
const LOCKED: &str =
    "a rank of its PE, or of the other one, has locked a file (fcntl, lockf): locks would end";
const NOT_FREE: &str = "the number of a descriptor that it has open is not free on the other PE";
const NOT_SENT: &str = "the system does not pass its descriptors on now";

/// Messages for ranks whose parcels have not arrived.
static EARLY: Mutex<VecDeque<Message>> = Mutex::new(VecDeque::new());

struct Message {
    rank: u32,
    /// Numbers, close-on-exec flags, and the descriptors.
    descriptors: Vec<(c_int, bool, OwnedFd)>,
    streams: Vec<usize>,
}

/// Why a rank's open descriptors cannot move along to another PE of the node, if so.
pub(super) fn pin(held: &Held) -> Option<&'static str> {
    let kind = [Kind::Descriptor, Kind::Stream].into_iter().find(|kind| held.has(*kind))?;
    let Some(node) = NODE.get().filter(|_| held.has_only_carried()) else {
        return Some(kind.reason());
    };
    (kind == Kind::Descriptor && node.has_locks(node.own)).then_some(LOCKED)
}

/// Sends the open descriptors of the rank of a slot to its new PE of the node; returns whether there were any. If it
/// fails, with the reason, nothing has changed.
///
/// # Errors
/// The rank must stay.
pub fn send(slot: &SlotHeader, to: u32) -> Result<bool, &'static str> {
    let held = &slot.held;
    if !held.has(Kind::Descriptor) && !held.has(Kind::Stream) {
        return Ok(false);
    }
    if let Some(why) = pin(held) {
        return Err(why);
    }
    let Some(node) = NODE.get() else { return Err(NOT_CARRIED) };
    let owner = slot.id().0 + 1;
    let claimed = node.claims.iter().enumerate();
    let claimed = claimed.filter(|(_, claim)| claim.load(Ordering::Relaxed) == owner);
    let numbers: Vec<c_int> =
        claimed.map(|(index, _)| (node.range.start + index) as c_int).collect();
    let of_rank = |number: &c_int| descriptors::is_of(*number, owner - 1);
    let is_all = numbers.len() == held.count(Kind::Descriptor);
    if !is_all || numbers.len() > sys::MOST_PASSED || !numbers.iter().all(of_rank) {
        return Err(NOT_CARRIED);
    }
    let other = (to - node.first) as usize;
    if !numbers.is_empty() && node.has_locks(other) {
        return Err(LOCKED);
    }
    let process = node.processes[other].load(Ordering::Acquire);
    let is_free = |number: &c_int| {
        let path = format!("/proc/{process}/fd/{number}");
        std::fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    };
    if process == 0 || !numbers.iter().all(is_free) {
        return Err(NOT_FREE);
    }
    let streams = register::keys_of(Kind::Stream, owner - 1);
    let mut words: Vec<usize> = vec![slot.rank.get() as usize, numbers.len()];
    let closes = |number: c_int| sys::flags_of(number) & libc::FD_CLOEXEC;
    words.extend(numbers.iter().map(|n| ((*n as usize) << 1) | usize::from(closes(*n) != 0)));
    words.extend(&streams);
    if size_of_val(&words[..]) > MOST_BYTES {
        return Err(NOT_SENT);
    }
    sys::pass(node.sockets[other][1].as_raw_fd(), &words, &numbers).map_err(|_| NOT_SENT)?;
    for number in numbers {
        descriptors::moves_out(number);
        // SAFETY: a descriptor of the rank, which has left with a copy of it.
        unsafe { libc::close(number) };
    }
    register::move_out(Kind::Stream, owner - 1);
    Ok(true)
}

/// Takes the open descriptors of the rank of a slot, which has arrived at this PE, before it runs here.
///
/// # Errors
/// It cannot continue: something is missing, or a number is in use.
pub fn receive(slot: &SlotHeader) -> Result<(), String> {
    let Some(node) = NODE.get() else { return Err("there is no socket for them".to_owned()) };
    let socket = node.sockets[node.own][0].as_raw_fd();
    let rank = slot.rank.get();
    let mut early = EARLY.lock().unwrap_or_else(PoisonError::into_inner);
    let message = loop {
        if let Some(at) = early.iter().position(|message| message.rank == rank)
            && let Some(message) = early.remove(at)
        {
            break message;
        }
        early.push_back(take(socket).map_err(|error| error.to_string())?);
    };
    drop(early);
    for (number, closes, descriptor) in message.descriptors {
        let flags = if closes { libc::O_CLOEXEC } else { 0 };
        if sys::flags_of(number) >= 0 {
            return Err(format!("number {number} is in use on this PE"));
        }
        // SAFETY: the number is free, so nothing is closed.
        if unsafe { libc::dup3(descriptor.as_raw_fd(), number, flags) } != number {
            return Err(format!("number {number}: {}", io::Error::last_os_error()));
        }
        descriptors::moves_in(number, slot.id().0);
        if node.has_locks(node.own) {
            // Taken since it was sent, perhaps of this file: what is closed now would end it.
            std::mem::forget(descriptor);
        }
    }
    for stream in message.streams {
        register::move_in(Kind::Stream, stream, slot.id().0);
    }
    Ok(())
}

/// Takes the next message.
fn take(socket: RawFd) -> io::Result<Message> {
    let mut words = vec![0usize; MOST_BYTES / size_of::<usize>()];
    let (received, came) = sys::take(socket, &mut words)?;
    words.truncate(received);
    let lost = || io::Error::other("descriptors were lost on their way");
    let [rank, count, rest @ ..] = &words[..] else { return Err(lost()) };
    if came.len() != *count || rest.len() < *count {
        return Err(lost());
    }
    let (numbers, streams) = rest.split_at(*count);
    let descriptors =
        numbers.iter().zip(came).map(|(word, came)| ((word >> 1) as c_int, word & 1 != 0, came));
    Ok(Message {
        rank: *rank as u32,
        descriptors: descriptors.collect(),
        streams: streams.to_vec(),
    })
}
