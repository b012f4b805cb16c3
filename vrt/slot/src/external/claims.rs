//! Numbers of descriptors that ranks claim in their node, so that each is free wherever the rank goes (see
//! [`carried`](super::carried)).

use std::ffi::c_int;
use std::io;
use std::ops::Range;
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::owner::{held_by, owner};
use crate::posix::errno::keeping_error;
use crate::posix::interpose::real;
use crate::{forked, image, sys};

/// Numbers of descriptors end here for programs that use `select`.
const MOST: usize = libc::FD_SETSIZE;
/// With fewer numbers there is no range; nor if PEs themselves need many of those below it.
const FEWEST: usize = 128;
const FOR_A_PE: usize = 4;

/// What the PEs of a node share.
pub(super) struct Node {
    /// The first of its PEs, and the number of PEs before this one.
    pub(super) first: u32,
    pub(super) own: usize,
    /// For each number of the range, the slot, plus 1, of the rank that has claimed it, or 0.
    pub(super) claims: &'static [AtomicU32],
    /// The processes of its PEs.
    pub(super) processes: &'static [AtomicU32],
    /// For each of its PEs, whether a rank has taken a lock there that belongs to the process.
    pub(super) locks: &'static [AtomicU32],
    /// For each of its PEs, the socket's two ends: where it receives, and where others send.
    pub(super) sockets: Vec<[OwnedFd; 2]>,
    /// The numbers.
    pub(super) range: Range<usize>,
}

pub(super) static NODE: OnceLock<Node> = OnceLock::new();
/// Ranks share a library.
static IS_SHARED: AtomicBool = AtomicBool::new(false);

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
    let limit = sys::limit(libc::RLIMIT_NOFILE).map_or(0, |limit| limit.rlim_cur);
    let end = usize::try_from(limit).unwrap_or(MOST).min(MOST);
    end / 2..end
}

fn pair() -> io::Result<[OwnedFd; 2]> {
    let mut ends = [0; 2];
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: there is room for both ends, which are new descriptors if the call has succeeded.
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
    // SAFETY: `mmap` gives new memory of zeros, as long as these words, which is never unmapped.
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

    pub(super) fn has_locks(&self, pe: usize) -> bool {
        self.locks[pe].load(Ordering::Acquire) != 0
    }

    fn claim(&self, number: usize) -> Option<&AtomicU32> {
        self.claims.get(number.checked_sub(self.range.start)?)
    }

    /// Gives a descriptor that a rank has just opened a number of the range, and closes the original; `None` if no
    /// number is free.
    fn renumber(&self, descriptor: c_int, slot: u32) -> Option<c_int> {
        let len = self.claims.len();
        let command = match sys::flags_of(descriptor) & libc::FD_CLOEXEC {
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
            // SAFETY: with these commands `fcntl` takes numbers only.
            let made = unsafe { duplicate(descriptor, command, wanted) };
            if made == wanted {
                // SAFETY: the call that has opened it has not returned: nobody knows it yet.
                unsafe { libc::close(descriptor) };
                return Some(made);
            }
            // Something of this process has the number.
            claim.store(0, Ordering::Release);
            if made < 0 {
                return None;
            }
            // SAFETY: just made: nobody knows it.
            unsafe { libc::close(made) };
        }
        None
    }
}

/// libc's own `fcntl`, bypassing the interposed one, which would give the result another number.
///
/// # Safety
/// With this command it takes a number.
unsafe fn duplicate(descriptor: c_int, command: c_int, least: c_int) -> c_int {
    type Function = unsafe extern "C" fn(c_int, c_int, ...) -> c_int;
    // SAFETY: S4; the command takes a number, says the caller.
    unsafe { real!(of_process c"fcntl", Function)(descriptor, command, least) }
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
    keeping_error(|| match is_same_everywhere(descriptor) {
        true => node.renumber(descriptor, slot).unwrap_or(descriptor),
        false => descriptor,
    })
}

/// Whether a descriptor means the same in every process.
fn is_same_everywhere(descriptor: c_int) -> bool {
    const NULL: (u32, u32) = (1, 3);
    const ZERO: (u32, u32) = (1, 5);
    const RANDOM: [(u32, u32); 2] = [(1, 8), (1, 9)];
    let Some(stat) = sys::status_of(descriptor) else { return false };
    match stat.st_mode & libc::S_IFMT {
        libc::S_IFIFO | libc::S_IFSOCK => true,
        libc::S_IFREG | libc::S_IFDIR => sys::file_system_of(descriptor)
            .is_some_and(|system| system.f_type != libc::PROC_SUPER_MAGIC),
        libc::S_IFCHR => {
            let device = (libc::major(stat.st_rdev), libc::minor(stat.st_rdev));
            device == NULL || device == ZERO || RANDOM.contains(&device)
        }
        _ => false,
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

/// One more descriptor of the rank of a slot, or one less, can move along.
pub(super) fn count(slot: u32, more: bool) {
    if let Some(held) = held_by(slot) {
        held.count_carried(more);
    }
}
