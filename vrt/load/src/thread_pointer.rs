//! The thread pointer: where a thread's block ends and its control block begins (`fs` on x86-64).
//!
//! Code that runs with a thread pointer other than its thread's own sees other thread-locals, including libc's and
//! Rust's. So between [`set`] and setting it back, nothing may be called that could already have the address of a
//! thread-local at hand, and no signal handler may rely on one.
//!
//! The compiler assumes that the address of a thread-local is the same throughout a function, and keeps it in a
//! register across a [`set`]. So a function that sets the thread pointer, and everything inlined into it, may use
//! thread-locals only before or only after that; code that needs them on the other side is a function that is never
//! inlined, or computes their addresses itself from the thread pointer.

use std::ffi::c_void;
#[cfg(target_arch = "x86_64")]
use std::sync::atomic::{AtomicU8, Ordering};

/// The thread pointer of the calling thread.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn get() -> usize {
    let pointer: usize;
    // SAFETY: the first word of the control block is its own address, by the ABI.
    unsafe {
        std::arch::asm!(
            "mov {}, qword ptr fs:0",
            out(reg) pointer,
            options(nostack, preserves_flags, readonly)
        )
    }
    pointer
}

/// Whether `wrfsbase` is allowed: unknown, yes, or no.
#[cfg(target_arch = "x86_64")]
static DIRECT: AtomicU8 = AtomicU8::new(UNKNOWN);
#[cfg(target_arch = "x86_64")]
const UNKNOWN: u8 = 0;
#[cfg(target_arch = "x86_64")]
const YES: u8 = 1;
#[cfg(target_arch = "x86_64")]
const NO: u8 = 2;

/// Sets the thread pointer of the calling thread.
///
/// # Safety
/// It belongs to a thread block whose control block begins with its own address, and which lives as
/// long as the pointer is set; and see the head of this module.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub unsafe fn set(pointer: usize) {
    if DIRECT.load(Ordering::Relaxed) == YES {
        // SAFETY: the kernel said that the instruction is allowed; the rest is the caller's
        // promise.
        unsafe {
            std::arch::asm!("wrfsbase {}", in(reg) pointer, options(nostack, preserves_flags))
        }
    } else {
        // SAFETY: as the caller promises.
        unsafe { set_slowly(pointer) }
    }
}

#[cfg(target_arch = "x86_64")]
#[cold]
#[inline(never)]
unsafe fn set_slowly(pointer: usize) {
    /// The bit of `AT_HWCAP2` by which the kernel allows `wrfsbase`.
    const FSGSBASE: u64 = 2;
    const ARCH_SET_FS: usize = 0x1002;
    if DIRECT.load(Ordering::Relaxed) == UNKNOWN {
        // SAFETY: reads what the kernel gave the process.
        let capabilities = unsafe { libc::getauxval(libc::AT_HWCAP2) };
        let answer = if capabilities & FSGSBASE != 0 { YES } else { NO };
        DIRECT.store(answer, Ordering::Relaxed);
        if answer == YES {
            // SAFETY: as the caller promises.
            return unsafe { set(pointer) };
        }
    }
    // The system call is made here, as libc's function could want to set `errno`.
    // SAFETY: the system call changes the thread pointer and nothing else.
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") libc::SYS_arch_prctl as usize => _,
            in("rdi") ARCH_SET_FS,
            in("rsi") pointer,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack)
        )
    }
}

/// The thread pointer of the calling thread: unknown on this processor.
#[cfg(not(target_arch = "x86_64"))]
pub fn get() -> usize {
    0
}

/// Sets the thread pointer of the calling thread: does nothing on this processor.
///
/// # Safety
/// None is needed here, where plans cannot be made.
#[cfg(not(target_arch = "x86_64"))]
pub unsafe fn set(_pointer: usize) {}

/// The argument of [`tls_get_addr`] in compiled code: two words of a module's table, which
/// relocations fill.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ThreadLocal {
    /// For the system's loader, the module's number. In an image, the distance of the module's
    /// block from the thread pointer, modulo 2^64.
    pub module: usize,
    /// The variable's offset in its module's block.
    pub offset: usize,
}

/// `__tls_get_addr` for code of images: the address of a thread-local.
///
/// # Safety
/// The two words are those of an image, and its thread pointer, or that of another of its threads,
/// is set.
pub unsafe extern "C" fn tls_get_addr(place: *const ThreadLocal) -> *mut c_void {
    // SAFETY: as the caller promises.
    let ThreadLocal { module, offset } = unsafe { *place };
    get().wrapping_add(module).wrapping_add(offset) as *mut c_void
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn the_thread_pointer_can_be_set_to_what_it_is() {
        let pointer = get();
        for way in [UNKNOWN, YES, NO] {
            if way == YES && DIRECT.load(Ordering::Relaxed) == NO {
                continue;
            }
            DIRECT.store(way, Ordering::Relaxed);
            // SAFETY: the thread's own block.
            unsafe { set(pointer) };
            assert_eq!(get(), pointer);
        }
        DIRECT.store(UNKNOWN, Ordering::Relaxed);
    }

    #[test]
    fn threads_have_different_ones() {
        let other = std::thread::spawn(get).join().unwrap();
        assert_ne!(other, get());
    }
}
