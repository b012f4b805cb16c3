//! The backtrace of a crash: functions, files and lines, from the registers at the fault.
//!
//! Reading a stack that may be corrupt, allocating in a heap that may be corrupt, and taking locks that the crashed
//! thread may hold can all fail. So a child process does this, a copy of the crashed one:
//!
//! ```text
//! handler: clone ---------------------------> child: unwinds from the signal frame
//!    | waits, TIME_LIMIT at most                     writes addresses into shared memory
//!    |                                               finds functions and lines, prints, ends
//!    `-- child failed: prints the addresses
//! ```
//!
//! The child's heap is the PE's pool in the arena, which is intact whatever happened to the heap of the rank or of
//! libc; without a PE it is libc's heap.

use std::ffi::c_void;
use std::fmt::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::crash::fault::{Fault, SIGNALS};
use vrt_slot::report::{say, write_out};
use vrt_slot::{hooks, image};

/// Number of frames kept from the crash outwards, and from the outermost inwards.
const INNER: usize = 64;
const OUTER: usize = 32;
/// The most frames of a stack.
const DEEPEST: usize = 1 << 20;

/// How long the child may take. A large program's debug information takes a second or two.
const TIME_LIMIT: Duration = Duration::from_secs(20);

/// The child's results, in memory that it shares with its parent.
#[repr(C)]
struct Frames {
    total: AtomicUsize,
    addresses: [AtomicUsize; INNER + OUTER],
}

static FRAMES: AtomicPtr<Frames> = AtomicPtr::new(std::ptr::null_mut());
/// How much is printed: a [`Style`].
static STYLE: AtomicU8 = AtomicU8::new(Style::Off as u8);

/// How much is printed, by `RUST_BACKTRACE`.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Style {
    /// `0`
    Off,
    /// Anything else: the frames down to the rank's program.
    Short,
    /// `full`: also the frames of the PE that resumed it.
    Full,
}

/// Prepares what a crash will need.
pub(super) fn prepare() {
    let style = match std::env::var_os("RUST_BACKTRACE") {
        Some(value) if value == "0" => Style::Off,
        Some(value) if value == "full" => Style::Full,
        _ => Style::Short,
    };
    STYLE.store(style as u8, Ordering::Relaxed);
    if !FRAMES.load(Ordering::Relaxed).is_null() {
        return;
    }
    // SAFETY: a fresh mapping; zeros are valid `Frames`.
    let memory = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            size_of::<Frames>(),
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if memory != libc::MAP_FAILED {
        FRAMES.store(memory.cast(), Ordering::Release);
    }
}

/// Prints where the fault happened. Called by the handler.
pub(super) fn print(fault: &Fault) {
    let style = STYLE.load(Ordering::Relaxed);
    // SAFETY: null, or the mapping of `prepare`, which stays.
    let Some(frames) = (unsafe { FRAMES.load(Ordering::Acquire).as_ref() }) else { return };
    if style == Style::Off as u8 {
        return;
    }
    let none: libc::c_long = 0;
    // Not by `fork`: what libraries have left to be called then is not for a crashed process.
    // SAFETY: a child with a copy of this process's memory, which ends by itself.
    let child = unsafe { libc::syscall(libc::SYS_clone, none, none, none, none, none) };
    if child == 0 {
        print_in_child(fault, frames, style == Style::Full as u8);
    }
    if child < 0 || !ends_well(child as libc::pid_t) {
        print_addresses(fault, frames);
    }
}

/// Waits for the child; returns whether it completed.
fn ends_well(child: libc::pid_t) -> bool {
    let begin = Instant::now();
    let none = std::ptr::null_mut::<c_void>();
    let mut status = 0i32;
    let mut wait = |how: i32| {
        // SAFETY: `status` is writable.
        unsafe { libc::syscall(libc::SYS_wait4, child, &raw mut status, how | libc::__WALL, none) }
    };
    loop {
        match wait(libc::WNOHANG) {
            0 if begin.elapsed() < TIME_LIMIT => {
                let moment = libc::timespec { tv_sec: 0, tv_nsec: 5_000_000 };
                // SAFETY: a valid time.
                unsafe { libc::syscall(libc::SYS_nanosleep, &raw const moment, none) };
            }
            0 => {
                // SAFETY: our child, not waited for yet.
                unsafe { libc::kill(child, libc::SIGKILL) };
                wait(0);
                return false;
            }
            ended => return ended == i64::from(child) && status == 0,
        }
    }
}

fn print_in_child(fault: &Fault, frames: &Frames, full: bool) -> ! {
    // SAFETY: plain system calls. A fault of the child is nobody's business.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::prctl(libc::PR_SET_DUMPABLE, 0);
        for signal in SIGNALS {
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
    }
    // SAFETY: the child is alone with its copy of what is mapped privately, and the parent waits for it.
    unsafe { hooks::use_heap(vrt_core::pe::pool_of_thread()) };
    // When something goes wrong here the parent prints addresses, and that is enough. (A thread that panics, as one
    // that has aborted in a panic, cannot say what is to be done when it does.)
    if !std::thread::panicking() {
        std::panic::set_hook(Box::new(|_| ()));
    }
    collect(fault, frames, full);
    write_out(describe(fault, frames, full).as_bytes());
    // SAFETY: ends the child only.
    unsafe { libc::_exit(0) }
}

/// Unwinds the stack from the fault: the rank's, or also that of the PE that resumed it.
fn collect(fault: &Fault, frames: &Frames, full: bool) {
    let stack = fault.stack_of_rank().filter(|_| !full).unwrap_or(0..usize::MAX);
    frames.keep_from(fault.pc, &stack);
    if frames.total.load(Ordering::Relaxed) <= 1 {
        // There is no function at the fault, as when a null pointer was called.
        frames.total.store(0, Ordering::Relaxed);
        frames.keep(fault.pc);
        // SAFETY: the registers of the fault; at worst the child ends here.
        frames.keep_from(unsafe { fault.return_from_nothing() }, &stack);
    }
}

impl Frames {
    /// Keeps the frames of one stack, outwards from the frame at an address.
    fn keep_from(&self, begin: usize, stack: &Range<usize>) {
        let mut begun = false;
        // SAFETY: this process has one thread.
        unsafe {
            backtrace::trace_unsynchronized(|frame| {
                let address = frame.ip() as usize;
                begun |= address == begin;
                let inside = stack.contains(&(frame.sp() as usize));
                // The outermost frame of a thread returns nowhere.
                if begun && inside && (address != 0 || address == begin) {
                    self.keep(address);
                }
                (inside || !begun) && self.total.load(Ordering::Relaxed) < DEEPEST
            });
        }
    }

    fn keep(&self, address: usize) {
        let total = self.total.load(Ordering::Relaxed);
        let at = if total < INNER { total } else { INNER + (total - INNER) % OUTER };
        self.addresses[at].store(address, Ordering::Relaxed);
        self.total.store(total + 1, Ordering::Relaxed);
    }

    /// The addresses that were kept, in order: the innermost ones, and the outermost ones if there
    /// are more.
    fn kept(&self) -> (impl Iterator<Item = usize>, impl Iterator<Item = usize>, usize) {
        let total = self.total.load(Ordering::Relaxed);
        let outer = total.saturating_sub(INNER).min(OUTER);
        let left_out = total.saturating_sub(INNER) - outer;
        let address = |at: usize| self.addresses[at].load(Ordering::Relaxed);
        let first = total - outer;
        (
            (0..total.min(INNER)).map(address),
            (first..total).map(move |n| address(INNER + (n - INNER) % OUTER)),
            left_out,
        )
    }
}

/// The backtrace as text.
fn describe(fault: &Fault, frames: &Frames, full: bool) -> String {
    let mut text = format!("vrt: backtrace of {fault}:\n");
    let (inner, outer, left_out) = frames.kept();
    let here = std::env::current_dir().unwrap_or_default();
    let last = (String::new(), 0);
    let (ended, images) = (false, Vec::new());
    let mut lines = Lines { text: &mut text, here, number: 0, last, full, ended, images };
    for (n, address) in inner.enumerate() {
        // Addresses but the first are those of instructions behind calls.
        lines.add(if n == 0 { address + 1 } else { address });
    }
    if left_out > 0 && !lines.ended {
        lines.end_repetition();
        let _ = writeln!(lines.text, "      ... {left_out} frames are left out ...");
        lines.number += left_out;
    }
    outer.for_each(|address| lines.add(address));
    lines.end_repetition();
    text
}

struct Lines<'a> {
    text: &'a mut String,
    here: PathBuf,
    number: usize,
    /// The last frame, and how often it has been repeated.
    last: (String, usize),
    full: bool,
    /// The frames that follow are not the program's.
    ended: bool,
    /// Files whose images ranks have.
    images: Vec<(PathBuf, addr2line::Loader)>,
}

impl Lines<'_> {
    fn add(&mut self, address: usize) {
        if self.ended {
            return;
        }
        let mut known = match image::locate(address) {
            Some((file, place)) => self.add_frames_of_image(file, place - 1),
            None => false,
        };
        // SAFETY: this process has one thread.
        unsafe {
            backtrace::resolve_unsynchronized(address as *mut c_void, |symbol| {
                known = true;
                self.add_symbol(address, symbol);
            });
        }
        if !known {
            self.add_line(format!("{:#x} (no symbol)", address.wrapping_sub(1)));
        }
    }

    /// Adds the functions at an address of a file (program or library) whose image a rank has; returns whether they are
    /// known.
    fn add_frames_of_image(&mut self, file: &Path, address: u64) -> bool {
        let known = self.images.iter().position(|(path, _)| path == file);
        let at = known.or_else(|| {
            let loader = addr2line::Loader::new(file).ok()?;
            self.images.push((file.to_path_buf(), loader));
            Some(self.images.len() - 1)
        });
        let Some((_, loader)) = at.map(|at| &self.images[at]) else { return false };
        let mut lines = Vec::new();
        if let Ok(mut frames) = loader.find_frames(address) {
            while let Ok(Some(frame)) = frames.next() {
                let Some(name) = frame.function else { continue };
                let name =
                    name.demangle().map_or_else(|_| "?".to_owned(), |name| name.into_owned());
                let place = frame.location.and_then(|place| Some((place.file?, place.line?)));
                let place = place.map(|(file, line)| {
                    let file = Path::new(file);
                    let file = file.strip_prefix(&self.here).unwrap_or(file);
                    format!("\n             at {}:{line}", file.display())
                });
                lines.push(name + &place.unwrap_or_default());
            }
        }
        if lines.is_empty()
            && let Some(symbol) = loader.find_symbol(address)
        {
            let name = addr2line::demangle_auto(symbol.into(), None);
            lines.push(format!("{name} (in {})", file.display()));
        }
        let is_known = !lines.is_empty();
        lines.into_iter().for_each(|line| self.add_line(line));
        is_known
    }

    fn add_symbol(&mut self, address: usize, symbol: &backtrace::Symbol) {
        let name = symbol.name().map(|name| format!("{name:#}"));
        let name = name.unwrap_or_else(|| format!("{:#x}", address.wrapping_sub(1)));
        const OURS: [&str; 6] = [
            "vrt::launch::launch",
            "vrt::launch::run_local",
            "vrt_launch::",
            "vrt_slot::run::coroutine::run_program",
            "vrt_slot::run::own_thread_locals::",
            "vrt_slot::stack::switch::",
        ];
        self.ended |= !self.full && OURS.iter().any(|ours| name.starts_with(ours));
        if self.ended {
            return;
        }
        let place = symbol.filename().zip(symbol.lineno()).map(|(file, line)| {
            let file = file.strip_prefix(&self.here).map_or(file, Path::new);
            format!("\n             at {}:{line}", file.display())
        });
        self.add_line(name + &place.unwrap_or_default());
    }

    fn add_line(&mut self, what: String) {
        if what == self.last.0 {
            self.last.1 += 1;
        } else {
            self.end_repetition();
            let _ = writeln!(self.text, "{:>4}: {what}", self.number);
            self.last.0 = what;
        }
        self.number += 1;
    }

    fn end_repetition(&mut self) {
        if self.last.1 > 0 {
            let _ = writeln!(self.text, "      ... and {} times more", self.last.1);
            self.last.1 = 0;
        }
    }
}

/// Prints the bare addresses after the child has failed.
fn print_addresses(fault: &Fault, frames: &Frames) {
    say(format_args!(
        "the backtrace of {fault} cannot be printed; addresses, from the crash outwards:"
    ));
    let (inner, _, _) = frames.kept();
    say(format_args!("{:>4}: {:#x}", 0, fault.pc));
    for (n, address) in inner.enumerate().skip(1) {
        say(format_args!("{n:>4}: {address:#x}"));
    }
}
