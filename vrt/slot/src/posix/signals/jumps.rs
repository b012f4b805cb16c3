//! Jumps that restore a mask (`sigsetjmp`, `siglongjmp`): the rank's mask, which is not the kernel's.
//!
//! Libc keeps the kernel's mask in the buffer, with a flag that says whether it is valid. It uses only the first words
//! of the mask; the rank's is stored after them, with a word that marks it.

use std::ffi::{c_int, c_void};
use std::sync::atomic::Ordering;

use super::tables::{Caller, caller, existing};
use crate::posix::interpose::{Real, real};

/// A buffer, as laid out by glibc on this processor.
#[repr(C)]
struct Buffer {
    registers: [u64; 8],
    is_mask_saved: c_int,
    /// The part that libc uses, or may use.
    mask: [u64; 14],
    /// Marks that the buffer contains a mask of the rank, for this buffer.
    mark: u64,
    ranks_mask: u64,
}

/// A value that no program has there.
const MARK: u64 = 0x7672_7420_6d61_736b;

fn mark_of(buffer: *const Buffer) -> u64 {
    MARK ^ buffer as u64
}

/// Stores the rank's mask in a buffer, if requested. Returns libc's function.
#[cfg(target_arch = "x86_64")]
unsafe extern "C" fn save(buffer: *mut Buffer, saves_mask: c_int) -> *mut c_void {
    static REAL: Real = Real::new(c"__sigsetjmp");
    if saves_mask != 0 {
        let mask = existing().map_or(0, |caller| caller.thread.blocked.load(Ordering::SeqCst));
        // SAFETY: S4: a buffer, which is as long as `Buffer` on this processor.
        unsafe {
            (*buffer).mark = mark_of(buffer);
            (*buffer).ranks_mask = mask;
        }
    }
    REAL.get()
}

/// `sigsetjmp`. It returns twice, so libc's must be called by a jump, in the program's own frame.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C" fn sigsetjmp(buffer: *mut Buffer, saves_mask: c_int) -> c_int {
    std::arch::naked_asm!(
        ".cfi_startproc",
        "push rdi",
        ".cfi_adjust_cfa_offset 8",
        "push rsi",
        ".cfi_adjust_cfa_offset 8",
        "sub rsp, 8",
        ".cfi_adjust_cfa_offset 8",
        "call {save}",
        "add rsp, 8",
        ".cfi_adjust_cfa_offset -8",
        "pop rsi",
        ".cfi_adjust_cfa_offset -8",
        "pop rdi",
        ".cfi_adjust_cfa_offset -8",
        "jmp rax",
        ".cfi_endproc",
        save = sym save,
    )
}

/// BSD's `setjmp`, which always saves the mask.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C" fn setjmp(buffer: *mut Buffer) -> c_int {
    std::arch::naked_asm!("mov esi, 1", "jmp {sigsetjmp}", sigsetjmp = sym sigsetjmp)
}

/// Restores the rank's mask from a buffer, and delivers signals that become unblocked.
///
/// # Safety
/// As for C's `siglongjmp`.
unsafe fn restore(buffer: *const Buffer) {
    // SAFETY: the program gives a buffer that `sigsetjmp` has filled: C's contract.
    let (is_saved, mark, mask) =
        unsafe { ((*buffer).is_mask_saved, (*buffer).mark, (*buffer).ranks_mask) };
    if is_saved == 0 || mark != mark_of(buffer) {
        return;
    }
    let set = |caller: Caller| {
        caller.thread.blocked.store(mask, Ordering::SeqCst);
        caller.deliver(std::ptr::null_mut());
    };
    match mask {
        0 => existing().map(set),
        _ => caller().map(set),
    };
}

type Jump = unsafe extern "C-unwind" fn(*mut Buffer, c_int) -> !;

unsafe extern "C-unwind" fn longjmp(buffer: *mut Buffer, value: c_int) -> ! {
    // SAFETY: S4.
    unsafe {
        restore(buffer);
        real!(c"longjmp", Jump)(buffer, value)
    }
}

/// The function used by programs that were compiled with checks.
unsafe extern "C-unwind" fn longjmp_checked(buffer: *mut Buffer, value: c_int) -> ! {
    // SAFETY: S4.
    unsafe {
        restore(buffer);
        real!(c"__longjmp_chk", Jump)(buffer, value)
    }
}

/// The replacement for libc's function of this name.
pub(crate) fn provided(name: &str) -> Option<*const ()> {
    Some(match name {
        #[cfg(target_arch = "x86_64")]
        "__sigsetjmp" | "sigsetjmp" => sigsetjmp as *const (),
        #[cfg(target_arch = "x86_64")]
        "setjmp" => setjmp as *const (),
        "longjmp" | "siglongjmp" => longjmp as *const (),
        "__longjmp_chk" => longjmp_checked as *const (),
        _ => return None,
    })
}
