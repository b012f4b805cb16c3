//! What a rank must not do, which ranks move, and what that guarantees.
//!
//! # What a rank must not do
//!
//! It must not call `fork`, block its thread for long (its neighbours wait as well), or keep the buffers of messages
//! alive elsewhere.
//!
//! Sleeping (`thread::sleep`), waiting for locks and conditions of the standard library, and joining a thread do not
//! block the thread: they suspend the rank. A `std::sync::mpsc` channel between ranks of one PE does not wake its
//! receiver, because the channel takes both for one thread; use messages.
//!
//! Statics and thread-locals belong to the PE and are seen by all of its ranks. With `--private-thread-locals` (on
//! x86-64, for programs with symbols) each rank has its own thread-locals, as a thread has: those of `thread_local!` in
//! the program, in the standard library and in all crates except vrt's and tokio's. They start uninitialized, move with
//! the rank, and are destroyed when its program ends. To the standard library and to locks such a rank is a thread, so
//! channels between ranks work. A switch takes longer. What the PE calls on behalf of a rank (operations of reductions,
//! serialization of its state) and C code see the PE's thread-locals.
//!
//! # What linking vrt replaces
//!
//! A program that links vrt gets some functions of the C library from vrt, for the whole process: `malloc` and its
//! family, `exit`, `fork`, `pthread_create`, calls that open, close, map and duplicate (`open`, `socket`, `mmap`, `dup`
//! and so on), calls that wait (`nanosleep`, `poll`, the futexes of locks), and calls that answer in memory of their own
//! (`localtime`, `getpwnam` and so on). Outside ranks they do what the C library does. vrt works on Linux with glibc, on
//! x86_64 and aarch64, and does not compile elsewhere.
//!
//! # Which ranks move
//!
//! A safe program computes the same wherever its ranks are moved, or a rank stays and says why
//! ([`pinned`](crate::pinned), the balancer's report, `--move-pinned error`). A rank that moves takes its stack and its
//! heap along, at the same addresses; before that, its memory is searched for references to anything else.
//!
//! | a rank holds | to another PE of the node | to another node |
//! |---|---|---|
//! | memory that it allocated itself | moves | moves |
//! | memory that a thread, a tokio task or a pool allocated | moves | stays |
//! | memory of another rank | moves, and shares it | stays |
//! | an `Rc` or a reference that a thread-local variable holds, too | stays; moves if the variable is its own | the same |
//! | a borrow of a thread-local variable of the program | stays; moves if the variable is its own | the same |
//! | memory of its own that a static or another rank refers to | moves | stays |
//! | memory of its own that it no longer refers to, while threads run that may | moves | stays |
//! | a static, or what was allocated before there were ranks | moves, and then means that of the other PE | the same |
//! | an open file, a socket, a thread that runs or is not joined, a mapping, a lock, a tokio timer | stays | stays |
//! | a clone of an `Arc` that `main` has, a `tracing` span, a handle of its thread (`std::thread::scope`) | stays | stays |
//!
//! Ranks of a program whose `#[global_allocator]` takes memory from elsewhere than `malloc` stay.
//!
//! A rank that moves by its state drops all its memory; it stays if others refer to that memory, or threads may, and for
//! what the last row names. `--check-moves` searches everything at every move and reports for each rank what it refers
//! to, and where: so a program that is being ported shows what it shares.
//!
//! The search is conservative: every word that is an address counts as a reference. A rank may stay because of what an
//! earlier call left on its stack; it is examined again when it is to move the next time.
//!
//! # What the search does not find
//!
//! - A reference that is no address, such as a difference of addresses, or one with other bits set in its upper half:
//!   `let hidden = !(&raw const *shared as usize);`
//! - What only memory from before the ranks refers to: a table that `main` made before [`launch`](crate::launch), to
//!   which ranks add references to their own memory before they leave the node.
//! - What only memory refers to that a thread or a task allocated: a list in a static whose buffer a thread reserved, to
//!   which ranks add an `Arc` each before they leave the node.
//! - What only a thread refers to, in its registers or on its stack, if an earlier call left the address on the rank's
//!   stack: it seems to be the rank's alone.
//! - A mapping that another rank's thread pool made for a rank.
//! - What a rank took, or cloned, out of a static or a table that `main` filled: each PE has its own, and the rank has
//!   that of the PE it is on.
//! - Inside a node: a lock or a channel in memory shared by ranks of two PEs that sleeps and wakes by other means than
//!   futexes, such as `std::sync::mpsc`, or that keeps a queue in each process, as those of `parking_lot_core` do
//!   (`dashmap`): it wakes nobody in the other PE.
//! - A lock in a static of the program that is neither of pthreads, the standard library nor `parking_lot` (such as
//!   `tokio::sync::Mutex`) and is held over a move; or whose guard is not on the rank's stack but in its heap (as guards of
//!   async ranks are), where no code of the program names the static: the other PE's is not locked.
//! - In an optimised program, which keeps no address of a static on its stack: the guard of a `parking_lot` lock in a
//!   static if the program has no symbol table; and the guard of any lock in a static on an architecture other than
//!   x86_64, or where the program's own code does not lock it by its address (in a shared library, or in a program that
//!   is built for a fixed address).
//!
//! While a lock in a static of the program is taken, as the program's code shows on x86_64, no rank leaves its PE: each
//! of them may have its guard. A variable that is compared and exchanged as a lock is, such as an `AtomicU32` inside a
//! longer static, may be mistaken for a lock; where a program has no symbol table, any such variable.
//!
//! # Types of messages
//!
//! Messages carry 16 bits that describe the types of their elements. Built-in types, encoded values and all types that one process
//! created are told apart exactly. Two structures that exist in different processes only, one received as the other, are
//! confused once in 32,768 pairs. If that gives a `bool` or an enum an invalid value, it is undefined behaviour.
//!
//! # Who is trusted
//!
//! PEs of a node are processes of one user that share writable memory; a compromised one can corrupt all. Between nodes,
//! arriving data is checked to be well-formed only so far that a fault does not become a wrong result. Other users of
//! the machine have no access: the shared memory has no name. A process that a rank's thread forked shares what the
//! rank's PE and its threads allocated: its parent sees what it writes there. It should exec or exit.
