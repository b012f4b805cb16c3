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
use std::mem::MaybeUninit;
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use super::{descriptors, held_by, owner, register};
use crate::held::{Held, Kind};
use crate::{SlotHeader, forked, image};

/// Numbers of descriptors end here for programs that use `select`.
const MOST: usize = libc::FD_SETSIZE;
/// With fewer numbers there is no range; nor if PEs themselves need many of those below it.
const FEWEST: usize = 128;
const FOR_A_PE: usize = 4;
/// The most descriptors that the kernel passes with a message.
const MOST_OF_RANK: usize = 253;
/// Bytes of a message: a header, numbers with flags, addresses of streams.
const MOST_BYTES: usize = 64 << 10;

const NOT_CARRIED: &str = Kind::Descriptor.reason();
const LOCKED: &str =
    "a rank of its PE, or of the other one, has locked a file (fcntl, lockf): locks would end";
const NOT_FREE: &str = "the number of a descriptor that it has open is not free on the other PE";
const NOT_SENT: &str = "the system does not pass its descriptors on now";

/// What the PEs of a node share.
struct Node {
    /// The first of its PEs, and the number of PEs before this one.
    first: u32,
    own: usize,
    /// For each number of the range, the slot, plus 1, of the rank that has claimed it, or 0.
    claims: &'static [AtomicU32],
    /// The processes of its PEs.
    processes: &'static [AtomicU32],
    /// For each of its PEs, whether a rank has taken a lock there that belongs to the process.
    locks: &'static [AtomicU32],
    /// For each of its PEs, the socket's two ends: where it receives, and where others send.
    sockets: Vec<[OwnedFd; 2]>,
    /// The numbers.
    range: Range<usize>,
}

static NODE: OnceLock<Node> = OnceLock::new();
/// Ranks share a library.
static IS_SHARED: AtomicBool = AtomicBool::new(false);

/// Messages for ranks whose parcels have not arrived.
static EARLY: Mutex<VecDeque<Message>> = Mutex::new(VecDeque::new());

struct Message {
    rank: u32,
    /// Numbers, close-on-exec flags, and the descriptors.
    descriptors: Vec<(c_int, bool, OwnedFd)>,
    streams: Vec<usize>,
}

/// Ranks of the job share a library, which may open descriptors.
pub fn set_shared() {
    IS_SHARED.store(true, Ordering::Relaxed);
}

/// A node prepared by the supervisor, which then forks its PEs.
pub struct Prepared(Option<Node>);

impl Prepared {
    /// Prepares what the PEs of a node, which are about to be forked, need to move descriptors between them. If that
    /// fails, descriptors pin ranks.
    pub fn new(pes: Range<u32>) -> Prepared {
        let range = range();
        let has_room = range.len() >= FEWEST && pes.len() * FOR_A_PE <= range.start;
        let may_be = image::has_libc() && !IS_SHARED.load(Ordering::Relaxed);
        match pes.len() > 1 && has_room && may_be {
            true => Prepared(Node::new(pes, range).ok()),
            false => Prepared(None),
        }
    }

    /// This process is a PE of that node.
    pub fn begin(self, pe: u32) {
        if let Some(node) = self.0 {
            let own = (pe - node.first) as usize;
            node.processes[own].store(std::process::id(), Ordering::Release);
            let _ = NODE.set(Node { own, ..node });
        }
    }
}

/// The upper half of the numbers that a process may have, as far as `select` supports them.
fn range() -> Range<usize> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the call fills the structure.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) };
    let end = usize::try_from(limit.rlim_cur).unwrap_or(MOST).min(MOST);
    end / 2..end
}

fn pair() -> io::Result<[OwnedFd; 2]> {
    let mut ends = [0; 2];
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: the call fills both; they are ours.
    unsafe {
        match libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) {
            0 => Ok(ends.map(|end| OwnedFd::from_raw_fd(end))),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Zeroed words that are shared with processes forked from this one. They are never freed.
fn shared_words(count: usize) -> io::Result<&'static [AtomicU32]> {
    let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
    let (len, access) = (count * size_of::<AtomicU32>(), libc::PROT_READ | libc::PROT_WRITE);
    // SAFETY: new memory, which is never unmapped, and zeros are valid atomics.
    unsafe {
        let memory = libc::mmap(std::ptr::null_mut(), len, access, flags, -1, 0);
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(std::slice::from_raw_parts(memory.cast(), count))
    }
}

impl Node {
    fn new(pes: Range<u32>, range: Range<usize>) -> io::Result<Node> {
        Ok(Node {
            first: pes.start,
            own: 0,
            claims: shared_words(range.len())?,
            processes: shared_words(pes.len())?,
            locks: shared_words(pes.len())?,
            sockets: pes.map(|_| pair()).collect::<io::Result<_>>()?,
            range,
        })
    }

    fn has_locks(&self, pe: usize) -> bool {
        self.locks[pe].load(Ordering::Acquire) != 0
    }

    fn claim(&self, number: usize) -> Option<&AtomicU32> {
        self.claims.get(number.checked_sub(self.range.start)?)
    }

    /// Gives a descriptor that a rank has just opened a number of the range, and closes the original; `None` if no
    /// number is free.
    fn renumber(&self, descriptor: c_int, slot: u32) -> Option<c_int> {
        let len = self.claims.len();
        // SAFETY: a plain system call.
        let flags = unsafe { libc::fcntl(descriptor, libc::F_GETFD) };
        let command = match flags & libc::FD_CLOEXEC {
            0 => libc::F_DUPFD,
            _ => libc::F_DUPFD_CLOEXEC,
        };
        // Ranks begin at different places.
        for index in (0..len).map(|at| (slot as usize * 8 + at) % len) {
            let claim = &self.claims[index];
            let free = claim.load(Ordering::Relaxed) == 0
                && claim.compare_exchange(0, slot + 1, Ordering::AcqRel, Ordering::Relaxed).is_ok();
            if !free {
                continue;
            }
            let wanted = (self.range.start + index) as c_int;
            // SAFETY: plain system calls; what was made here is closed here.
            let made = unsafe { duplicate(descriptor, command, wanted) };
            if made == wanted {
                // SAFETY: nobody knows it yet.
                unsafe { libc::close(descriptor) };
                return Some(made);
            }
            // Something of this process has the number.
            claim.store(0, Ordering::Release);
            if made < 0 {
                return None;
            }
            // SAFETY: it was just made.
            unsafe { libc::close(made) };
        }
        None
    }
}

/// libc's own `fcntl`, bypassing the interposed one, which would give the result another number.
///
/// # Safety
/// As in C.
unsafe fn duplicate(descriptor: c_int, command: c_int, least: c_int) -> c_int {
    type Function = unsafe extern "C" fn(c_int, c_int, c_int) -> c_int;
    static REAL: crate::interpose::Real = crate::interpose::Real::new(c"fcntl");
    // SAFETY: libc's function of this name takes these with such a command.
    unsafe {
        std::mem::transmute::<*mut libc::c_void, Function>(REAL.of_process())(
            descriptor, command, least,
        )
    }
}

/// The number for a descriptor that was just opened by a call whose descriptors mean the same in all processes: another
/// one if it belongs to a rank.
pub(super) fn carry(descriptor: c_int) -> c_int {
    carry_from(descriptor, 0)
}

/// The same if the program requests a minimum number.
pub(super) fn carry_from(descriptor: c_int, least: usize) -> c_int {
    let Some(node) = NODE.get().filter(|node| least <= node.range.start) else { return descriptor };
    // Who opens after having closed a standard descriptor wants that number.
    if descriptor <= libc::STDERR_FILENO || forked::is_copy() || node.has_locks(node.own) {
        return descriptor;
    }
    let Some(slot) = owner() else { return descriptor };
    // SAFETY: this thread's own error number is kept.
    unsafe {
        descriptors::keeping_error(|| match is_same_everywhere(descriptor) {
            true => node.renumber(descriptor, slot).unwrap_or(descriptor),
            false => descriptor,
        })
    }
}

/// Whether a descriptor means the same in every process.
fn is_same_everywhere(descriptor: c_int) -> bool {
    const NULL: (u32, u32) = (1, 3);
    const ZERO: (u32, u32) = (1, 5);
    const RANDOM: [(u32, u32); 2] = [(1, 8), (1, 9)];
    // SAFETY: zeros are valid, and the calls fill the structures.
    unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        let mut system: libc::statfs = std::mem::zeroed();
        if libc::fstat(descriptor, &mut stat) != 0 {
            return false;
        }
        match stat.st_mode & libc::S_IFMT {
            libc::S_IFIFO | libc::S_IFSOCK => true,
            libc::S_IFREG | libc::S_IFDIR => {
                libc::fstatfs(descriptor, &mut system) == 0
                    && system.f_type != libc::PROC_SUPER_MAGIC
            }
            libc::S_IFCHR => {
                let device = (libc::major(stat.st_rdev), libc::minor(stat.st_rdev));
                device == NULL || device == ZERO || RANDOM.contains(&device)
            }
            _ => false,
        }
    }
}

/// Whether the rank of a slot has claimed a number.
pub(super) fn is_claimed(descriptor: c_int, slot: u32) -> bool {
    let claim = || NODE.get()?.claim(usize::try_from(descriptor).ok()?);
    claim().is_some_and(|claim| claim.load(Ordering::Relaxed) == slot + 1)
}

/// A descriptor of the rank of a slot is closed: its number is released.
pub(super) fn let_go(descriptor: c_int, slot: u32) {
    if let (Some(node), Ok(number)) = (NODE.get(), usize::try_from(descriptor))
        && let Some(claim) = node.claim(number)
    {
        let _ = claim.compare_exchange(slot + 1, 0, Ordering::AcqRel, Ordering::Relaxed);
    }
}

/// A call may give the process a lock.
pub(super) fn takes_lock() {
    if let Some(node) = NODE.get()
        && !forked::is_copy()
    {
        node.locks[node.own].store(1, Ordering::Release);
    }
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
    if !is_all || numbers.len() > MOST_OF_RANK || !numbers.iter().all(of_rank) {
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
    // SAFETY: a plain system call.
    let closes = |number: c_int| unsafe { libc::fcntl(number, libc::F_GETFD) } & libc::FD_CLOEXEC;
    words.extend(numbers.iter().map(|n| ((*n as usize) << 1) | usize::from(closes(*n) != 0)));
    words.extend(&streams);
    if size_of_val(&words[..]) > MOST_BYTES {
        return Err(NOT_SENT);
    }
    pass(node.sockets[other][1].as_raw_fd(), &words, &numbers).map_err(|_| NOT_SENT)?;
    for number in numbers {
        descriptors::moves_out(number);
        // SAFETY: the rank's, which is not here any more.
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
        // SAFETY: plain system calls; the number is free, or nothing is done.
        unsafe {
            if libc::fcntl(number, libc::F_GETFD) >= 0 {
                return Err(format!("number {number} is in use on this PE"));
            }
            if libc::dup3(descriptor.as_raw_fd(), number, flags) != number {
                return Err(format!("number {number}: {}", io::Error::last_os_error()));
            }
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

/// Room for the control data of a message of this module.
type Control = [usize; 16 + MOST_OF_RANK / 2];

/// Sends words with descriptors.
fn pass(socket: RawFd, words: &[usize], numbers: &[c_int]) -> io::Result<()> {
    let mut control: Control = [0; _];
    let mut data =
        libc::iovec { iov_base: words.as_ptr().cast_mut().cast(), iov_len: size_of_val(words) };
    // SAFETY: a message whose parts are here and as long as it says; the control buffer has room for one
    // header and as many descriptors as are sent at most.
    let sent = unsafe {
        let mut message: libc::msghdr = MaybeUninit::zeroed().assume_init();
        message.msg_iov = &mut data;
        message.msg_iovlen = 1;
        if !numbers.is_empty() {
            let len = size_of_val(numbers) as u32;
            message.msg_control = control.as_mut_ptr().cast();
            message.msg_controllen = libc::CMSG_SPACE(len) as _;
            let header = libc::CMSG_FIRSTHDR(&message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(len) as _;
            let to = libc::CMSG_DATA(header).cast::<c_int>();
            std::ptr::copy_nonoverlapping(numbers.as_ptr(), to, numbers.len());
        }
        libc::sendmsg(socket, &message, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL)
    };
    match usize::try_from(sent) {
        Ok(sent) if sent == size_of_val(words) => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Takes the next message.
fn take(socket: RawFd) -> io::Result<Message> {
    let mut words = vec![0usize; MOST_BYTES / size_of::<usize>()];
    let mut control: Control = [0; _];
    let mut data =
        libc::iovec { iov_base: words.as_mut_ptr().cast(), iov_len: size_of_val(&words[..]) };
    let mut came = Vec::new();
    // SAFETY: a message whose parts are here and as long as it says; what the kernel has written is read, and
    // the descriptors that have come are ours.
    unsafe {
        let mut message: libc::msghdr = MaybeUninit::zeroed().assume_init();
        message.msg_iov = &mut data;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&control) as _;
        let received =
            libc::recvmsg(socket, &mut message, libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC);
        let Ok(received) = usize::try_from(received) else {
            return Err(io::Error::last_os_error());
        };
        words.truncate(received / size_of::<usize>());
        let header = libc::CMSG_FIRSTHDR(&message);
        if !header.is_null() {
            let bytes = (*header).cmsg_len as usize - libc::CMSG_LEN(0) as usize;
            let from = libc::CMSG_DATA(header).cast::<c_int>();
            let number = |i| OwnedFd::from_raw_fd(from.add(i).read());
            came.extend((0..bytes / size_of::<c_int>()).map(number));
        }
    }
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

/// One more descriptor of the rank of a slot, or one less, can move along.
pub(super) fn count(slot: u32, more: bool) {
    if let Some(held) = held_by(slot) {
        held.count_carried(more);
    }
}
