//! A rank copies its process, in a way chosen by name: that is refused. Or it starts a program.

use std::ffi::{c_int, c_void};
use std::process::ExitCode;
use std::ptr::null_mut;

use clap::{Parser, ValueEnum};
use vrt::traits::*;

#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    vrt: vrt::Config,
    /// How
    how: How,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum How {
    Fork,
    UnderscoreFork,
    Vfork,
    Daemon,
    Forkpty,
    Clone,
    ForkByNumber,
    VforkByNumber,
    CloneByNumber,
    Clone3ByNumber,
    /// What is not refused
    Spawn,
    /// A thread of a rank may fork: its stack is not in the slot
    InThread,
}

unsafe extern "C" {
    fn _Fork() -> c_int;
    fn vfork() -> c_int;
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    vrt::launch(arguments.vrt, move || run(arguments.how))
}

extern "C" fn nothing(_: *mut c_void) -> c_int {
    0
}

fn run(how: How) {
    let world = vrt::initialize().expect("in a rank").world();
    world.barrier();
    if world.rank() == 1 {
        // SAFETY: all of these are refused before anything happens, but the last two.
        let got = unsafe {
            match how {
                How::Fork => libc::fork(),
                How::UnderscoreFork => _Fork(),
                How::Vfork => vfork(),
                How::Daemon => libc::daemon(1, 1),
                How::Forkpty => {
                    let mut fd = 0;
                    libc::forkpty(&mut fd, null_mut(), null_mut(), null_mut())
                }
                How::Clone => {
                    let stack = Box::leak(vec![0u64; 8192].into_boxed_slice()).as_mut_ptr_range();
                    let flags = libc::CLONE_VM | libc::SIGCHLD;
                    libc::clone(nothing, stack.end.cast(), flags, null_mut())
                }
                How::ForkByNumber => libc::syscall(libc::SYS_fork) as c_int,
                How::VforkByNumber => libc::syscall(libc::SYS_vfork) as c_int,
                How::CloneByNumber => {
                    libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0usize, 0usize, 0usize, 0usize)
                        as c_int
                }
                How::Clone3ByNumber => {
                    let arguments = [0u64; 11];
                    libc::syscall(libc::SYS_clone3, arguments.as_ptr(), 88usize) as c_int
                }
                How::Spawn => started(),
                How::InThread => {
                    let file = std::fs::File::open("/proc/self/exe").expect("it opens");
                    let status = std::thread::spawn(forked).join().expect("it ends");
                    let pinned = vrt::pinned();
                    assert!(pinned.is_some_and(|why| why.contains("descriptor")), "{pinned:?}");
                    drop(file);
                    status
                }
            }
        };
        if got == 0 {
            println!("rank 1 goes on, {:?}", vrt::pinned());
        } else {
            println!("rank 1 has copied itself ({got})");
        }
    }
    world.barrier();
}

/// Runs programs; 0 if they end well.
fn started() -> c_int {
    let status = std::process::Command::new("true").status().expect("it runs");
    // SAFETY: a valid command.
    let system = unsafe { libc::system(c"true".as_ptr()) };
    status.code().unwrap_or(1) + system
}

/// Forks; the child closes what the rank has open, which stays its own.
fn forked() -> c_int {
    let blocks =
        |byte: u8| -> Vec<Box<[u8; 64]>> { (0..100).map(|_| Box::new([byte; 64])).collect() };
    let kept = blocks(1);
    // SAFETY: no other thread of the process holds a lock of the allocator's: the ranks wait.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            (3..100).for_each(|fd| _ = libc::close(fd));
            // What it frees stays its parent's, which must not get it again, and what it allocates
            // is its own.
            drop(kept);
            let mut text = blocks(3);
            text.iter_mut().for_each(|block| block[0] = 4);
            libc::_exit(c_int::from(text.iter().any(|block| block[0] != 4 || block[63] != 3)));
        }
        let mut status = 1;
        assert_eq!(libc::waitpid(child, &mut status, 0), child);
        let others = blocks(2);
        let is = |byte: u8, blocks: &[Box<[u8; 64]>]| blocks.iter().all(|b| **b == [byte; 64]);
        assert!(is(1, &kept) && is(2, &others), "the child has changed its parent's memory");
        status
    }
}
