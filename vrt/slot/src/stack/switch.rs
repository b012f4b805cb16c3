//! The switch between two stacks: a rank's and its PE's.
//!
//! A switch saves on its own stack the registers that the compiler does not save by itself and the address at which to
//! continue, stores where that stack ends now, and continues where the other side has stopped:
//!
//! ```text
//!            rank's stack                        PE's stack
//! suspended  .. frames, base pointers, address   in use
//! running    in use                              .. frames, base pointers, address
//! ```
//!
//! Both sides jump. If the switch were a call that ends with a return on the other stack, as is common, the processor
//! would predict every return to go where the last call on either stack came from: two mispredictions per switch, which
//! take as long as all the rest of it. With jumps, predictions are correct as long as consecutive ranks suspend in the
//! same places.
//!
//! Nothing unwinds from one stack into the other: the frame below a rank's first one is the last that an unwinder
//! finds.

use std::arch::{asm, naked_asm};

/// Runs on a new stack, with the message of the first switch to it. It ends with a switch, and never returns.
pub(crate) type Begin = unsafe extern "C" fn(message: usize) -> !;

/// Bytes at the end of a stack that is not in use: the registers saved by the switch, and the address at which to
/// continue.
pub(crate) const SAVED: usize = if cfg!(target_arch = "x86_64") { 24 } else { 32 };

/// Prepares a new stack, on which a switch to it begins with `begin`. Returns its end.
///
/// # Safety
/// There is room for [`SAVED`] bytes below `top`, a multiple of 16, and for what `begin` does.
pub(crate) unsafe fn prepare(top: usize, begin: Begin) -> usize {
    let end = top - SAVED;
    let words = end as *mut usize;
    // SAFETY: `SAVED` bytes below `top` are room, says the caller.
    unsafe {
        words.write_bytes(0, SAVED / size_of::<usize>());
        words.write(first_frame as *const () as usize);
        words.add(1).write(begin as *const () as usize);
    }
    end
}

/// Continues the other side, on the stack that ends at `other`, after storing the end of this one in `own`. Returns
/// with the message of the switch that comes back.
///
/// # Safety
/// At `other` is the end of a stack that is not in use, stored by [`prepare`] or a switch, and everything borrowed
/// there is still valid.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) unsafe fn switch(own: *mut usize, other: *const usize, message: usize) -> usize {
    let answer;
    // SAFETY: T1, says the caller: at the other stack's end lies an address, and below that what is taken there. All
    // registers that are not saved are said to be lost.
    unsafe {
        asm!(
            "lea rax, [rip + 2f]",
            "push rbp",
            "push rbx",
            "push rax",
            "mov [rcx], rsp",
            "mov rsp, [rdx]",
            "pop rax",
            "jmp rax",
            "2:",
            "pop rbx",
            "pop rbp",
            inout("rcx") own => _,
            inout("rdx") other => _,
            inout("rdi") message => answer,
            out("rax") _, out("r12") _, out("r13") _, out("r14") _, out("r15") _,
            clobber_abi("sysv64"),
        );
    }
    answer
}

/// The frame below the first one of a rank: the end of its stack, for unwinders and code that follows base pointers.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C" fn first_frame() {
    naked_asm!(
        ".cfi_startproc",
        ".cfi_undefined rip",
        "pop rax",
        "sub rsp, 8",
        "xor ebp, ebp",
        "xor ebx, ebx",
        "xor r12d, r12d",
        "xor r13d, r13d",
        "xor r14d, r14d",
        "xor r15d, r15d",
        "call rax",
        "ud2",
        ".cfi_endproc",
    )
}

/// Makes the side that suspended at this end of a stack run a function first when it continues. Returns the stack's new
/// end.
///
/// # Safety
/// A switch has stored the end; and there is room for the function's frames.
#[cfg(target_arch = "x86_64")]
pub(crate) unsafe fn run_first(end: usize, function: extern "C-unwind" fn()) -> usize {
    let words = end as *mut usize;
    // SAFETY: T1: what is below the end of a stack that is not in use is free; and there is room, says the caller.
    unsafe {
        words.sub(1).write(function as *const () as usize);
        words.sub(2).write(call_first as *const () as usize);
        words.sub(2) as usize
    }
}

/// The switch continues here then: calls the function below, and continues where the rank has stopped, taking its base
/// pointers from the stack.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C" fn call_first() {
    naked_asm!(
        ".cfi_startproc",
        ".cfi_undefined rip",
        "pop rax",
        "push rdi",
        "mov rbx, rsp",
        "and rsp, -16",
        "call rax",
        "mov rsp, rbx",
        "pop rdi",
        "pop rax",
        "jmp rax",
        ".cfi_endproc",
    )
}

/// Not needed: only ranks that run images use it, which this processor does not support.
///
/// # Safety
/// None is needed.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) unsafe fn run_first(end: usize, _: extern "C-unwind" fn()) -> usize {
    end
}

/// Calls `function` with `argument` on the stack that ends at `end`, and returns.
///
/// # Safety
/// That stack is not in use and has room for `function`.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn call_on(
    end: usize,
    function: unsafe extern "C" fn(*mut u8),
    argument: *mut u8,
) {
    naked_asm!(
        ".cfi_startproc",
        "push rbp",
        ".cfi_def_cfa_offset 16",
        ".cfi_offset rbp, -16",
        "mov rbp, rsp",
        ".cfi_def_cfa_register rbp",
        "mov rsp, rdi",
        "and rsp, -16",
        "mov rdi, rdx",
        "call rsi",
        "mov rsp, rbp",
        "pop rbp",
        ".cfi_def_cfa rsp, 8",
        "ret",
        ".cfi_endproc",
    )
}

/// As on the other processor.
#[cfg(target_arch = "aarch64")]
#[inline(always)]
pub(crate) unsafe fn switch(own: *mut usize, other: *const usize, message: usize) -> usize {
    let answer;
    // SAFETY: T1, says the caller; what is not saved is said to be lost.
    unsafe {
        asm!(
            "adr x9, 2f",
            "sub sp, sp, #32",
            "str x9, [sp]",
            "stp x19, x29, [sp, #16]",
            "mov x9, sp",
            "str x9, [x1]",
            "ldr x9, [x2]",
            "mov sp, x9",
            "ldr x9, [sp]",
            "br x9",
            "2:",
            "ldp x19, x29, [sp, #16]",
            "add sp, sp, #32",
            inout("x1") own => _,
            inout("x2") other => _,
            inout("x0") message => answer,
            out("x9") _, out("x20") _, out("x21") _, out("x22") _, out("x23") _, out("x24") _,
            out("x25") _, out("x26") _, out("x27") _, out("x28") _, out("lr") _,
            out("d8") _, out("d9") _, out("d10") _, out("d11") _, out("d12") _, out("d13") _, out("d14") _,
            out("d15") _,
            clobber_abi("C"),
        );
    }
    answer
}

#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
unsafe extern "C" fn first_frame() {
    naked_asm!(
        ".cfi_startproc",
        ".cfi_undefined lr",
        "ldr x9, [sp, #8]",
        "mov x29, xzr",
        "mov lr, xzr",
        "blr x9",
        "brk #1",
        ".cfi_endproc",
    )
}

/// As on the other processor.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn call_on(
    end: usize,
    function: unsafe extern "C" fn(*mut u8),
    argument: *mut u8,
) {
    naked_asm!(
        ".cfi_startproc",
        "stp x29, x30, [sp, #-16]!",
        ".cfi_def_cfa_offset 16",
        ".cfi_offset x29, -16",
        ".cfi_offset x30, -8",
        "mov x29, sp",
        ".cfi_def_cfa x29, 16",
        "and x9, x0, #-16",
        "mov sp, x9",
        "mov x0, x2",
        "blr x1",
        "mov sp, x29",
        "ldp x29, x30, [sp], #16",
        ".cfi_def_cfa sp, 0",
        "ret",
        ".cfi_endproc",
    )
}

#[cfg(test)]
mod tests {
    use std::backtrace::Backtrace;
    use std::cell::Cell;
    use std::panic::catch_unwind;

    use super::*;

    thread_local! {
        static OWN: Cell<usize> = const { Cell::new(0) };
        static OTHER: Cell<usize> = const { Cell::new(0) };
    }

    fn into_other(message: usize) -> usize {
        // SAFETY: of the two sides of this thread this one runs, and `prepare` or `back` has stored the other's end.
        unsafe { switch(OWN.with(Cell::as_ptr), OTHER.with(Cell::as_ptr), message) }
    }

    fn back(message: usize) -> usize {
        // SAFETY: the other way round.
        unsafe { switch(OTHER.with(Cell::as_ptr), OWN.with(Cell::as_ptr), message) }
    }

    fn with_new_stack(begin: Begin) {
        const WORDS: usize = 32 << 10;
        let stack = vec![0u128; WORDS / 2].leak();
        // SAFETY: the stack is new, long enough, and never freed.
        OTHER.set(unsafe { prepare(stack.as_mut_ptr_range().end.addr(), begin) });
    }

    #[test]
    fn what_either_side_holds_survives() {
        unsafe extern "C" fn begin(message: usize) -> ! {
            extern "C" fn halve(value: *mut u8) {
                // SAFETY: `call_on` is given `weight` below.
                unsafe { *value.cast::<f64>() /= 2.0 };
            }
            let (mut sum, mut weight) = (message, 1.0f64);
            loop {
                sum += back(sum + (weight * 100.0) as usize);
                // SAFETY: the other side waits, and its stack is long enough.
                unsafe { call_on(OWN.get(), halve, (&raw mut weight).cast()) };
            }
        }
        with_new_stack(begin);
        let factors = [1.5f64, 2.5, 3.5, 4.5];
        let answers = [1, 2, 3, 4].map(|number| (number, factors[number - 1], into_other(number)));
        let expected = [(1, 1.5, 101), (2, 2.5, 53), (3, 3.5, 31), (4, 4.5, 22)];
        assert_eq!(answers, expected);
    }

    #[test]
    fn a_stack_ends_where_it_begins() {
        unsafe extern "C" fn begin(_: usize) -> ! {
            let trace = format!("{:?}", Backtrace::force_capture());
            let caught = catch_unwind(|| std::panic::resume_unwind(Box::new(7)));
            let is_right = caught.is_err_and(|payload| payload.downcast_ref() == Some(&7));
            let ends = trace.contains("begin") && !trace.contains("with_new_stack");
            loop {
                back(usize::from(is_right && ends && !trace.contains("run_test")));
            }
        }
        with_new_stack(begin);
        assert_eq!(into_other(0), 1);
    }
}
