//! A job in which ranks crash, by name: each in a function of its own, called by another one.

use std::hint::black_box;
use std::process::ExitCode;
use std::sync::atomic::{AtomicPtr, Ordering};

use clap::{Parser, ValueEnum};
use vrt::traits::*;

#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    vrt: vrt::Config,
    /// What to do
    what: What,
    /// The ranks that do it
    #[arg(long, value_delimiter = ',', default_value = "5")]
    at: Vec<i32>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum What {
    /// Read through a null pointer
    Segv,
    /// Call a null pointer
    CallNull,
    /// Read an address that no program can have
    NoAddress,
    /// Read beyond the end of a mapped file
    Bus,
    /// An instruction that there is not
    Ill,
    /// Divide by zero
    Fpe,
    Abort,
    /// Free a block of libc's twice
    DoubleFree,
    Overflow,
    /// The same after giving the thread a signal stack that is too short for a backtrace
    OverflowOfSignals,
    Panic,
    /// Spoil the stack above the frame, then crash
    BrokenStack,
    /// Use the memory that there is
    Memory,
}

/// What the crashing rank has on its stack and in its heap, for a debugger.
#[repr(C)]
struct Evidence {
    rank: u64,
    first: *const u64,
    words: Vec<u64>,
}

/// The crashing rank's, found by its symbol: tests are compiled without types for debuggers.
#[unsafe(no_mangle)]
static EVIDENCE: AtomicPtr<Evidence> = AtomicPtr::new(std::ptr::null_mut());

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let what = arguments.what;
    let at = arguments.at;
    // A block of libc's heap, not of a rank's.
    let block = Box::into_raw(Box::new([0u8; 100])) as usize;
    vrt::launch(arguments.vrt, move || {
        let world = vrt::initialize().expect("in a rank").world();
        world.barrier();
        if at.contains(&world.rank()) {
            let words = vec![0x5eed_5eed; 100_000];
            let rank = world.rank() as u64;
            let evidence = Evidence { rank, first: words.as_ptr(), words };
            EVIDENCE.store((&raw const evidence).cast_mut(), Ordering::Relaxed);
            outer_function(what, &evidence, block);
        }
        world.barrier();
    })
}

#[inline(never)]
fn outer_function(what: What, evidence: &Evidence, block: usize) {
    inner_function(what, evidence, block);
    black_box(evidence);
}

#[inline(never)]
fn inner_function(what: What, evidence: &Evidence, block: usize) {
    black_box(evidence);
    // SAFETY: none; the job has to survive this, as a job.
    unsafe {
        match what {
            What::Segv => drop(black_box(std::ptr::null::<u8>()).read_volatile()),
            What::CallNull => {
                type Function = extern "C" fn();
                let nothing = black_box(0usize);
                let function: Function = *(&raw const nothing).cast::<Function>();
                function();
            }
            What::NoAddress => drop(black_box(0x8000_0000_0000_0000 as *const u8).read_volatile()),
            What::Bus => beyond_the_file(),
            What::Ill => illegal(),
            What::Fpe => divide(),
            What::Abort => std::process::abort(),
            What::DoubleFree => {
                libc::free(block as *mut libc::c_void);
                libc::free(block as *mut libc::c_void);
            }
            What::Overflow => drop(black_box(recurse(1))),
            What::OverflowOfSignals => {
                let short = vec![0u8; libc::MINSIGSTKSZ].leak().as_mut_ptr().cast();
                let stack = libc::stack_t { ss_sp: short, ss_flags: 0, ss_size: libc::MINSIGSTKSZ };
                assert_eq!(libc::sigaltstack(&raw const stack, std::ptr::null_mut()), 0);
                black_box(recurse(1));
            }
            What::Panic => panic!("this is what went wrong"),
            What::BrokenStack => spoil_and_crash(),
            What::Memory => {
                let mut all: Vec<Vec<u8>> = Vec::new();
                loop {
                    all.push(vec![1; 1 << 20]);
                }
            }
        }
    }
    black_box(evidence);
}

unsafe fn beyond_the_file() {
    // SAFETY: a mapping of an empty file, which may not be touched.
    unsafe {
        let file = libc::memfd_create(c"empty".as_ptr(), 0);
        let (read, shared) = (libc::PROT_READ, libc::MAP_SHARED);
        let at = libc::mmap(std::ptr::null_mut(), 4096, read, shared, file, 0);
        black_box(at.cast::<u8>().read_volatile());
    }
}

#[cfg(target_arch = "x86_64")]
unsafe fn illegal() {
    // SAFETY: none.
    unsafe { std::arch::asm!("ud2") }
}

#[cfg(target_arch = "x86_64")]
unsafe fn divide() {
    // SAFETY: none.
    unsafe {
        std::arch::asm!("xor edx, edx", "xor ecx, ecx", "mov eax, 1", "div ecx", out("eax") _, out("ecx") _, out("edx") _);
    }
}

#[cfg(not(target_arch = "x86_64"))]
unsafe fn illegal() {
    // SAFETY: a plain system call.
    unsafe { libc::raise(libc::SIGILL) };
}

#[cfg(not(target_arch = "x86_64"))]
unsafe fn divide() {
    // SAFETY: a plain system call.
    unsafe { libc::raise(libc::SIGFPE) };
}

#[inline(never)]
#[expect(unconditional_recursion, reason = "the stack has to overflow")]
fn recurse(n: u64) -> u64 {
    let frame = black_box([n; 64]);
    recurse(n + 1) + frame[(n % 64) as usize]
}

#[inline(never)]
unsafe fn spoil_and_crash() {
    let here = 0u64;
    let above = (&raw const here).cast_mut();
    // SAFETY: none: return addresses of the callers become addresses of nothing.
    unsafe {
        black_box(above).write_bytes(0xde, 200);
        black_box(std::ptr::null::<u8>()).read_volatile();
    }
}
