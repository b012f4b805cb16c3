//! Descriptors, and C's streams, which have one each.

use std::ffi::{CStr, c_char, c_int, c_uint, c_ulong};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use super::claims;
use crate::heap_word::runtime_heap;
use crate::held::Kind;
use crate::owner::{self, held_by};
use crate::posix::errno::keeping_error;
use crate::{forked, register, sys};

/// Only descriptors below this have entries in the table.
const DESCRIPTORS: usize = 1 << 16;
/// The slot, plus 1, of the rank that opened each descriptor; 0: none. Created with the first one, and not part of the
/// program's data, which is searched when ranks leave a node.
static OPENED_BY: OnceLock<Box<[AtomicU32]>> = OnceLock::new();

fn openers() -> &'static [AtomicU32] {
    runtime_heap(|| OPENED_BY.get_or_init(|| (0..DESCRIPTORS).map(|_| AtomicU32::new(0)).collect()))
}

/// In place of a slot: a thread of the PE's tokio runtime has opened it, on behalf of any rank.
const OF_TOKIO: u32 = u32::MAX;
/// How many of these are open.
static OPENED_BY_TOKIO: AtomicUsize = AtomicUsize::new(0);

/// Whether a thread of this process's tokio runtime has opened descriptors that are still open. Any rank may use them.
pub(super) fn any_of_tokio() -> bool {
    OPENED_BY_TOKIO.load(Ordering::Acquire) > 0
}

/// There is a new descriptor: it belongs to the running rank, if one runs, or to the rank that has started this thread.
pub(super) fn opened(descriptor: c_int) {
    if descriptor < 0 || forked::is_copy() {
        return;
    }
    // A number that is given out is free: an entry of it is of one that was closed unseen.
    closed(descriptor);
    let owner = owner::owner();
    let is_tokios = owner.is_none() && owner::is_tokios();
    let entry = match owner {
        None if !is_tokios => return,
        _ => openers().get(descriptor as usize),
    };
    match (entry, owner) {
        (Some(entry), Some(slot)) => {
            if let Some(held) = held_by(slot) {
                held.more(Kind::Descriptor);
                if claims::is_claimed(descriptor, slot) {
                    claims::count(slot, true);
                }
                entry.store(slot + 1, Ordering::Relaxed);
            }
        }
        (None, Some(slot)) => register::add(Kind::Descriptor, descriptor as usize, 0, slot),
        (Some(entry), None) => {
            OPENED_BY_TOKIO.fetch_add(1, Ordering::AcqRel);
            entry.store(OF_TOKIO, Ordering::Relaxed);
        }
        (None, None) => {}
    }
}

/// A descriptor is about to be closed, or has been.
pub(super) fn closed(descriptor: c_int) {
    let Ok(number) = usize::try_from(descriptor) else { return };
    if number >= DESCRIPTORS {
        register::take(Kind::Descriptor, number);
        return;
    }
    let Some(entry) = OPENED_BY.get().map(|entries| &entries[number]) else { return };
    if entry.load(Ordering::Relaxed) == 0 || forked::is_copy() {
        return;
    }
    match entry.swap(0, Ordering::Relaxed) {
        0 => {}
        OF_TOKIO => _ = OPENED_BY_TOKIO.fetch_sub(1, Ordering::AcqRel),
        slot => {
            let slot = slot - 1;
            if let Some(held) = held_by(slot) {
                if claims::is_claimed(descriptor, slot) {
                    claims::count(slot, false);
                    claims::let_go(descriptor, slot);
                }
                held.less(Kind::Descriptor);
            }
        }
    }
}

/// Whether a descriptor is known to belong to the rank of a slot.
pub(super) fn is_of(descriptor: c_int, slot: u32) -> bool {
    let entry = usize::try_from(descriptor).ok().and_then(|number| OPENED_BY.get()?.get(number));
    entry.is_some_and(|entry| entry.load(Ordering::Relaxed) == slot + 1)
}

/// A descriptor moves to another process with its rank, which continues to hold it.
pub(super) fn moves_out(descriptor: c_int) {
    if let (Some(all), Ok(number)) = (OPENED_BY.get(), usize::try_from(descriptor)) {
        all[number].store(0, Ordering::Relaxed);
    }
}

/// A descriptor has arrived from another process with the rank of a slot.
pub(super) fn moves_in(descriptor: c_int, slot: u32) {
    // An entry of a number that was free is of one that was closed unseen.
    closed(descriptor);
    if let Ok(number) = usize::try_from(descriptor) {
        openers()[number].store(slot + 1, Ordering::Relaxed);
    }
}

/// A rank has ended: its open descriptors belong to no rank any more.
pub(super) fn forget_of(slot: u32) {
    for entry in OPENED_BY.get().into_iter().flatten() {
        let _ = entry.compare_exchange(slot + 1, 0, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// In a child that the rank of a slot has forked: closes the descriptors of others.
pub(crate) fn close_those_of_others(slot: u32) {
    for (descriptor, entry) in OPENED_BY.get().into_iter().flatten().enumerate() {
        let of = entry.load(Ordering::Relaxed);
        if of != 0 && of != slot + 1 {
            // SAFETY: a descriptor of another rank, which does not run in this child.
            unsafe { libc::close(descriptor as c_int) };
        }
    }
}

/// The call returns a new descriptor.
pub(crate) fn opens(call: impl FnOnce() -> c_int) -> c_int {
    let descriptor = call();
    opened(descriptor);
    descriptor
}

/// The call returns a new descriptor of something that means the same in other processes: it gets another number if it
/// belongs to a rank that may move (see `carried`).
pub(crate) fn opens_file(call: impl FnOnce() -> c_int) -> c_int {
    let descriptor = claims::carry(call());
    opened(descriptor);
    descriptor
}

/// The call returns a new descriptor if `is_new`.
pub(crate) fn opens_if(is_new: bool, call: impl FnOnce() -> c_int) -> c_int {
    if is_new { opens(call) } else { call() }
}

/// The call returns 0 when it has stored new descriptors at all of these places.
///
/// # Safety
/// It does.
pub(crate) unsafe fn opens_at<const N: usize>(
    places: [*mut c_int; N],
    call: impl FnOnce() -> c_int,
) -> c_int {
    let status = call();
    if status == 0 {
        // SAFETY: the call has stored descriptors there, says the caller.
        places.into_iter().for_each(|place| opened(unsafe { place.read() }));
    }
    status
}

/// The same for two descriptors of something that means the same in other processes.
///
/// # Safety
/// As for [`opens_at`].
pub(crate) unsafe fn opens_files_at(
    places: [*mut c_int; 2],
    call: impl FnOnce() -> c_int,
) -> c_int {
    let status = call();
    if status == 0 {
        for place in places {
            // SAFETY: the call has stored descriptors there, says the caller.
            unsafe {
                place.write(claims::carry(place.read()));
                opened(place.read());
            }
        }
    }
    status
}

/// The call closes a descriptor, whatever it returns.
pub(crate) fn closes<R>(descriptor: c_int, call: impl FnOnce() -> R) -> R {
    closed(descriptor);
    call()
}

/// The call closes the descriptors of a range unless it fails.
pub(crate) fn closes_range(
    first: c_uint,
    last: c_uint,
    flags: c_uint,
    call: impl FnOnce() -> c_int,
) -> c_int {
    let status = call();
    if status == 0 && flags & libc::CLOSE_RANGE_CLOEXEC == 0 {
        closed_range(first as usize, last as usize);
    }
    status
}

/// The call closes all descriptors from one on.
pub(crate) fn closes_from(first: c_int, call: impl FnOnce()) {
    closed_range(first.max(0) as usize, c_int::MAX as usize);
    call();
}

fn closed_range(first: usize, last: usize) {
    for number in first..DESCRIPTORS.min(last.saturating_add(1)) {
        closed(number as c_int);
    }
    register::take_all(Kind::Descriptor, |number, _, _| (first..=last).contains(&number));
}

/// The call makes a number a copy of a descriptor, which closes what it was before.
pub(crate) fn duplicates_onto(old: c_int, new: c_int, call: impl FnOnce() -> c_int) -> c_int {
    let original = original_of(new);
    let descriptor = call();
    if descriptor >= 0 && old != new {
        closed(new);
        if original.is_none() || file_of(new) != original {
            opened(new);
        }
    }
    descriptor
}

/// A file: device and number.
type File = Option<(u64, u64)>;

fn file_of(descriptor: c_int) -> File {
    sys::status_of(descriptor).map(|file| (file.st_dev, file.st_ino))
}

/// What the standard descriptor with a number was before any rank replaced it: restoring it does not count as holding
/// something.
fn original_of(descriptor: c_int) -> File {
    static ORIGINALS: [OnceLock<File>; 3] = [const { OnceLock::new() }; 3];
    *ORIGINALS.get(usize::try_from(descriptor).ok()?)?.get_or_init(|| file_of(descriptor))
}

/// The call is `fcntl` with a command and an argument, which is the least number for new descriptors.
pub(crate) fn controls(
    descriptor: c_int,
    command: c_int,
    argument: usize,
    call: impl FnOnce() -> c_int,
) -> c_int {
    /// Linux's command for notifications of changes in a directory.
    const F_NOTIFY: c_int = 1026;
    /// Linux's command, which the crate defines only for some systems.
    const F_SETSIG: c_int = 10;
    match command {
        libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => {
            let descriptor = claims::carry_from(call(), argument);
            opened(descriptor);
            descriptor
        }
        libc::F_SETLK | libc::F_SETLKW => locks_file(call),
        libc::F_SETOWN | F_SETSIG | F_NOTIFY | libc::F_SETLEASE => stays(descriptor, call),
        _ => call(),
    }
}

/// The call is `ioctl` with a request; some requests set the destination of signals.
pub(crate) fn requests(descriptor: c_int, request: c_ulong, call: impl FnOnce() -> c_int) -> c_int {
    const FIOSETOWN: c_ulong = 0x8901;
    const SIOCSPGRP: c_ulong = 0x8902;
    match request {
        FIOSETOWN | SIOCSPGRP => stays(descriptor, call),
        _ => call(),
    }
}

/// The call takes a file lock for the process, which ends when any descriptor of the file is closed.
pub(crate) fn locks_file(call: impl FnOnce() -> c_int) -> c_int {
    if owner::owner().is_some() {
        claims::takes_lock();
    }
    call()
}

/// From this call on a descriptor has a meaning specific to this process: signals are sent to it.
pub(crate) fn stays(descriptor: c_int, call: impl FnOnce() -> c_int) -> c_int {
    if let Some(slot) = owner::owner()
        && !forked::is_copy()
        && is_of(descriptor, slot)
        && claims::is_claimed(descriptor, slot)
    {
        claims::count(slot, false);
        claims::let_go(descriptor, slot);
    }
    call()
}

/// The call receives a message, which may contain descriptors.
///
/// # Safety
/// The call fills the message unless it returns a negative number.
pub(crate) unsafe fn receives(
    message: *const libc::msghdr,
    call: impl FnOnce() -> libc::ssize_t,
) -> libc::ssize_t {
    let received = call();
    if received >= 0 {
        // SAFETY: the call has filled it, says the caller.
        unsafe { received_with(message) };
    }
    received
}

/// The call receives several messages.
///
/// # Safety
/// The call fills as many of the messages as it returns.
pub(crate) unsafe fn receives_many(
    messages: *const libc::mmsghdr,
    call: impl FnOnce() -> c_int,
) -> c_int {
    let received = call();
    for i in 0..usize::try_from(received).unwrap_or(0) {
        // SAFETY: the call has filled it, says the caller.
        unsafe { received_with(&raw const (*messages.add(i)).msg_hdr) };
    }
    received
}

/// Records the descriptors received with a message.
///
/// # Safety
/// The message was filled by the kernel.
unsafe fn received_with(message: *const libc::msghdr) {
    // SAFETY: the kernel has filled the buffer, says the caller, and the macros stay inside it.
    unsafe {
        if (*message).msg_controllen == 0 {
            return;
        }
        let mut control = libc::CMSG_FIRSTHDR(message);
        while !control.is_null() {
            if (*control).cmsg_level == libc::SOL_SOCKET && (*control).cmsg_type == libc::SCM_RIGHTS
            {
                let data = libc::CMSG_DATA(control);
                let end = control.cast::<u8>().add((*control).cmsg_len);
                let count = (end as usize - data as usize) / size_of::<c_int>();
                (0..count).for_each(|i| opened(data.cast::<c_int>().add(i).read_unaligned()));
            }
            control = libc::CMSG_NXTHDR(message, control);
        }
    }
}

/// The call returns a stream that has opened its descriptor, if it has one.
///
/// # Safety
/// It returns null, or an open stream.
pub(crate) unsafe fn opens_stream(call: impl FnOnce() -> *mut libc::FILE) -> *mut libc::FILE {
    let stream = adopts_by_stream(call);
    if !stream.is_null() {
        // SAFETY: an open stream, says the caller.
        opened(unsafe { descriptor_of(stream) });
    }
    stream
}

/// The same for a file, which means the same in other processes, unless libc keeps more for a stream with this mode: a
/// mapping, a character conversion.
///
/// # Safety
/// As for [`opens_stream`]; the stream is glibc's, and the mode a C string.
pub(crate) unsafe fn opens_file_stream(
    mode: *const c_char,
    call: impl FnOnce() -> *mut libc::FILE,
) -> *mut libc::FILE {
    /// The offset of the number in glibc's stream, which is part of its binary interface.
    const NUMBER: usize = 112;
    let stream = adopts_by_stream(call);
    if stream.is_null() {
        return stream;
    }
    let place = stream.cast::<c_int>().wrapping_byte_add(NUMBER);
    // SAFETY: a C string, says the caller.
    let mode = unsafe { CStr::from_ptr(mode) }.to_bytes();
    let is_plain = mode.iter().all(|letter| b"rwabxce+".contains(letter));
    // SAFETY: an open stream of glibc's, which is longer than that. It is new: nobody else uses it.
    unsafe {
        let mut descriptor = descriptor_of(stream);
        if is_plain && place.read() == descriptor {
            descriptor = claims::carry(descriptor);
            place.write(descriptor);
        }
        opened(descriptor);
    }
    stream
}

/// The same for one end of a pipe to a program: programs started by other ranks do not inherit it, as they would not in
/// other processes; otherwise the reader of the other end would wait for them.
///
/// # Safety
/// As for [`opens_stream`].
pub(crate) unsafe fn opens_pipe(call: impl FnOnce() -> *mut libc::FILE) -> *mut libc::FILE {
    // SAFETY: null, or an open stream, says the caller; this command takes a number.
    unsafe {
        let stream = opens_stream(call);
        if !stream.is_null() && owner::owner().is_some() {
            libc::fcntl(descriptor_of(stream), libc::F_SETFD, libc::FD_CLOEXEC);
        }
        stream
    }
}

/// The call returns a stream for an existing descriptor.
pub(crate) fn adopts_by_stream(call: impl FnOnce() -> *mut libc::FILE) -> *mut libc::FILE {
    let stream = call();
    if !stream.is_null()
        && let Some(slot) = owner::owner()
    {
        register::add(Kind::Stream, stream as usize, 0, slot);
    }
    stream
}

/// The call gives a stream another file; if it fails the stream is closed.
///
/// # Safety
/// The stream is open, and the call returns null or an open stream.
pub(crate) unsafe fn reopens_stream(
    stream: *mut libc::FILE,
    call: impl FnOnce() -> *mut libc::FILE,
) -> *mut libc::FILE {
    // SAFETY: it is open, says the caller.
    let before = unsafe { descriptor_of(stream) };
    let original = original_of(before);
    let result = call();
    closed(before);
    if result.is_null() {
        register::take(Kind::Stream, stream as usize);
        return result;
    }
    // SAFETY: open, says the caller.
    let now = unsafe { descriptor_of(result) };
    if original.is_none() || now != before || file_of(now) != original {
        opened(now);
    }
    result
}

/// The call closes a stream with its descriptor.
///
/// # Safety
/// The stream is open, or null.
pub(crate) unsafe fn closes_stream<R>(stream: *mut libc::FILE, call: impl FnOnce() -> R) -> R {
    if !stream.is_null() {
        // SAFETY: it is open, says the caller.
        closed(unsafe { descriptor_of(stream) });
        register::take(Kind::Stream, stream as usize);
    }
    call()
}

/// A stream's descriptor, or -1.
///
/// # Safety
/// The stream is open.
unsafe fn descriptor_of(stream: *mut libc::FILE) -> c_int {
    // SAFETY: it is open, says the caller.
    keeping_error(|| unsafe { libc::fileno(stream) })
}

/// The call opens a directory.
///
/// # Safety
/// It returns null, or an open directory.
pub(crate) unsafe fn opens_directory(call: impl FnOnce() -> *mut libc::DIR) -> *mut libc::DIR {
    let directory = call();
    if !directory.is_null() {
        // SAFETY: it is open, says the caller.
        opened(unsafe { libc::dirfd(directory) });
    }
    directory
}

/// The call closes a directory.
///
/// # Safety
/// The directory is open, or null.
pub(crate) unsafe fn closes_directory(
    directory: *mut libc::DIR,
    call: impl FnOnce() -> c_int,
) -> c_int {
    if !directory.is_null() {
        // SAFETY: it is open, says the caller.
        closed(keeping_error(|| unsafe { libc::dirfd(directory) }));
    }
    call()
}
