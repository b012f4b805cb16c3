//! Enters a program as the kernel would.

use std::ffi::c_char;

/// The auxiliary vector, which a program finds on its stack after its arguments and environment:
/// pairs of a key and a value.
pub(crate) struct Auxiliary {
    words: [u64; 2 * PAIRS],
    len: usize,
}

const PAIRS: usize = 24;

/// Entries that are the same for the program as for the process. Missing ones are left out.
const OF_PROCESS: [libc::c_ulong; 14] = [
    libc::AT_PAGESZ,
    libc::AT_UID,
    libc::AT_EUID,
    libc::AT_GID,
    libc::AT_EGID,
    libc::AT_SECURE,
    libc::AT_RANDOM,
    libc::AT_HWCAP,
    libc::AT_HWCAP2,
    libc::AT_CLKTCK,
    libc::AT_PLATFORM,
    libc::AT_SYSINFO_EHDR,
    libc::AT_MINSIGSTKSZ,
    libc::AT_FLAGS,
];

impl Auxiliary {
    /// The vector for a program with these program headers and this entry.
    pub(crate) fn new(
        program_headers: Option<(usize, usize)>,
        entry: usize,
        name: *const c_char,
    ) -> Auxiliary {
        let mut auxiliary = Auxiliary { words: [0; 2 * PAIRS], len: 0 };
        if let Some((at, count)) = program_headers {
            let size = size_of::<crate::elf::Segment>();
            auxiliary.push(libc::AT_PHDR, at as u64);
            auxiliary.push(libc::AT_PHENT, size as u64);
            auxiliary.push(libc::AT_PHNUM, count as u64);
        }
        auxiliary.push(libc::AT_ENTRY, entry as u64);
        // No loader has been at work that the program could ask.
        auxiliary.push(libc::AT_BASE, 0);
        if !name.is_null() {
            auxiliary.push(libc::AT_EXECFN, name as u64);
        }
        for key in OF_PROCESS {
            // SAFETY: reads what the kernel gave the process.
            let value = unsafe { libc::getauxval(key) };
            if value != 0 {
                auxiliary.push(key, value);
            }
        }
        auxiliary.push(libc::AT_NULL, 0);
        auxiliary
    }

    fn push(&mut self, key: libc::c_ulong, value: u64) {
        self.words[self.len..self.len + 2].copy_from_slice(&[key, value]);
        self.len += 2;
    }

    fn words(&self) -> &[u64] {
        &self.words[..self.len]
    }
}

/// Enters a program at `entry`, with a thread pointer, on the current stack. Below the frames in
/// use, from the new stack pointer on, are the number of arguments, the arguments, zero, the
/// environment, zero, and the auxiliary vector (System V ABI for x86-64, section 3.4.1).
///
/// No memory is allocated, because nothing could free it.
///
/// # Safety
/// The program is complete and can be run now; strings live as long as it does.
#[cfg(target_arch = "x86_64")]
pub(crate) unsafe fn enter(
    entry: usize,
    thread_pointer: usize,
    arguments: &[*mut c_char],
    environment: &[*const c_char],
    auxiliary: &Auxiliary,
) -> ! {
    let auxiliary = auxiliary.words();
    let words = 1 + arguments.len() + 1 + environment.len() + 1 + auxiliary.len();
    // SAFETY: the stack is written below what is in use, and left for ever. Registers are as the
    // ABI wants them: no function to call at the end, no frame above.
    unsafe {
        crate::thread_pointer::set(thread_pointer);
        std::arch::asm!(
            "sub rsp, rax",
            "and rsp, -16",
            "mov rdi, rsp",
            "mov rax, r9",
            "stosq",
            "mov rsi, r8",
            "mov rcx, r9",
            "rep movsq",
            "xor eax, eax",
            "stosq",
            "mov rsi, r10",
            "mov rcx, r11",
            "rep movsq",
            "stosq",
            "mov rsi, r12",
            "mov rcx, r13",
            "rep movsq",
            "xor edx, edx",
            "xor ebp, ebp",
            "jmp r14",
            in("rax") words * size_of::<u64>(),
            in("r8") arguments.as_ptr(),
            in("r9") arguments.len(),
            in("r10") environment.as_ptr(),
            in("r11") environment.len(),
            in("r12") auxiliary.as_ptr(),
            in("r13") auxiliary.len(),
            in("r14") entry,
            options(noreturn)
        )
    }
}

/// Plans cannot be made on this processor, so nothing can be entered.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) unsafe fn enter(
    _entry: usize,
    _thread_pointer: usize,
    _arguments: &[*mut c_char],
    _environment: &[*const c_char],
    auxiliary: &Auxiliary,
) -> ! {
    let _ = auxiliary.words();
    std::process::abort()
}
