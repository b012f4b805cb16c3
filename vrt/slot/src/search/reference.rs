//! What a search finds: a reference that keeps a rank where it is.

use std::fmt;

/// Why a rank must stay: a reference that would become invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Its position.
    pub(super) from: Holder,
    /// Its target.
    pub(super) to: Target,
}

/// The position of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holder {
    /// On the rank's stack, this many bytes above its end.
    Stack(usize),
    /// In its heap.
    Heap(usize),
    /// In the data of its image.
    Image(usize),
    /// In a static or thread-local variable, or in memory that one of these refers to.
    Static,
    /// In the memory of another rank of the PE.
    Rank(u32),
    /// Possibly in the registers or on the stack of a thread.
    Thread,
    /// In the program's code, which does not show which rank has run it.
    Code,
}

/// The target of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// Memory of another rank.
    Rank(u32),
    /// Memory of a PE, outside of ranks.
    Outside(u32),
    /// A thread-local variable, with its name, if known.
    ThreadLocal(&'static str),
    /// A locked lock of the PE's, with its name, if known.
    Lock(&'static str),
    /// Memory of the rank itself that a thread-local variable refers to.
    Shared,
    /// Memory of the rank itself.
    Own,
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.from {
            Holder::Stack(at) => write!(f, "its stack ({at} bytes above its end) refers to ")?,
            Holder::Heap(at) => write!(f, "its heap (at {at:#x}) refers to ")?,
            Holder::Image(at) => write!(f, "a global variable (at {at:#x}) refers to ")?,
            Holder::Static => {
                write!(f, "a static or thread-local variable of the program refers to ")?
            }
            Holder::Rank(rank) => write!(f, "rank {rank} refers to ")?,
            Holder::Thread => f.write_str("perhaps a thread of its PE refers to ")?,
            Holder::Code => f.write_str("perhaps it has taken ")?,
        }
        match self.to {
            Target::Rank(rank) => write!(f, "memory of rank {rank}"),
            Target::Outside(pe) => {
                write!(f, "memory that a thread, a task or the system library of PE {pe} allocated")
            }
            Target::ThreadLocal(name) => write!(f, "the thread-local variable {name} of its PE"),
            Target::Lock("") => f.write_str("a lock of its PE that is locked"),
            Target::Lock(name) => write!(f, "the lock {name} of its PE, which is locked"),
            Target::Shared => {
                f.write_str("memory that it shares with a thread-local variable of its PE")
            }
            Target::Own => f.write_str("its memory"),
        }
    }
}
