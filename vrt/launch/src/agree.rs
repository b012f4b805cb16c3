//! What PEs that are not forked from one process must have in common.
//!
//! | in common | or else |
//! |---|---|
//! | program (also the one whose images the ranks run), configuration | there is no job |
//! | addresses of program, libraries and thread-local variables; libraries in images; CPU features | ranks cannot move with their memory: their pointers would lead to nothing, or to other code |
//! | stack canary | every PE gets the same one: frames of C code on a rank's stack check it |
//!
//! Addresses are equal if the kernel does not randomise them, so a PE executes itself once more
//! without randomisation. The kernel or a container may refuse that.

use std::ffi::CStr;
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;

use vrt_slot::image;

use crate::config::Config;

/// Set in the environment of a process that has executed itself.
const AGAIN: &str = "VRT_EXECUTED_AGAIN";

/// Makes sure that addresses in this process are not randomised: executes the program once more,
/// unless that has been done or is not allowed.
pub(super) fn fix_addresses() {
    const NOW: libc::c_ulong = 0xffff_ffff;
    // SAFETY: asks, and changes what the next program of this process gets.
    let fixed = unsafe {
        let persona = libc::personality(NOW);
        let fixed = persona & libc::ADDR_NO_RANDOMIZE != 0;
        fixed || libc::personality((persona | libc::ADDR_NO_RANDOMIZE) as libc::c_ulong) < 0
    };
    if fixed || std::env::var_os(AGAIN).is_some() {
        return;
    }
    let mut arguments = std::env::args_os();
    let mut program = std::process::Command::new("/proc/self/exe");
    if let Some(name) = arguments.next() {
        program.arg0(name);
    }
    // Only returns when it fails; then addresses are as they are.
    let _ = program.args(arguments).env(AGAIN, "1").exec();
}

/// Identifies a process, in numbers that can be compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Fingerprint {
    program: u64,
    config: u64,
    addresses: u64,
    cpu: u64,
}

/// Numbers in a [`Fingerprint`].
pub(super) const WORDS: usize = 4;

impl Fingerprint {
    /// Of this process.
    pub(super) fn of_this_process(config: &Config) -> Fingerprint {
        let mut objects = Objects::default();
        // SAFETY: the callback below, with the data that it expects.
        unsafe { libc::dl_iterate_phdr(Some(look_at_object), (&raw mut objects).cast()) };
        let mut config_hash = DefaultHasher::new();
        format!("{config:?}").hash(&mut config_hash);
        let (mut program, mut addresses) = (objects.program, objects.addresses);
        for (number, (file, span)) in image::files().enumerate() {
            span.hash(&mut addresses);
            let hash = if number == 0 { &mut program } else { &mut addresses };
            hash_of_result(std::fs::read(file), hash);
        }
        (&raw const ANCHOR_IN_PROGRAM as usize).hash(&mut addresses);
        ANCHOR_OF_THREAD.with(|anchor| (std::ptr::from_ref(anchor) as usize).hash(&mut addresses));
        // Which of its variants of a function the C library has chosen for this CPU.
        for function in [libc::memchr as *const () as usize, libc::memcpy as *const () as usize] {
            function.hash(&mut addresses);
        }
        Fingerprint {
            program: program.finish(),
            config: config_hash.finish(),
            addresses: addresses.finish(),
            cpu: cpu_features(),
        }
    }

    pub(super) fn words(self) -> [u64; WORDS] {
        [self.program, self.config, self.addresses, self.cpu]
    }

    pub(super) fn from_words(words: &[u64]) -> Fingerprint {
        let word = |i: usize| words.get(i).copied().unwrap_or_default();
        Fingerprint { program: word(0), config: word(1), addresses: word(2), cpu: word(3) }
    }
}

/// Why these PEs cannot form a job, or `None` if they can.
pub(super) fn why_no_job(all: &[Fingerprint]) -> Option<String> {
    let differs = |what: fn(&Fingerprint) -> u64| first_unlike(all, what);
    if let Some(pe) = differs(|pe| pe.program) {
        return Some(format!(
            "PE {pe} runs another program, or another build of it, than PE 0; all PEs of a job \
             run the same one"
        ));
    }
    let pe = differs(|pe| pe.config)?;
    Some(format!(
        "PE {pe} has other options (flags or VRT_* variables) than PE 0; give all PEs the same"
    ))
}

/// Why ranks cannot move with their memory, or `None` if they can.
pub(super) fn why_no_moves(all: &[Fingerprint]) -> Option<String> {
    if let Some(pe) = first_unlike(all, |pe| pe.cpu) {
        return Some(format!("the CPU of PE {pe} has other features than that of PE 0"));
    }
    let pe = first_unlike(all, |pe| pe.addresses)?;
    Some(format!(
        "PE {pe} has its program or a library at other addresses than PE 0 (address randomisation \
         could not be switched off: containers often forbid personality(2); or libraries differ)"
    ))
}

fn first_unlike(all: &[Fingerprint], what: fn(&Fingerprint) -> u64) -> Option<usize> {
    let first = all.first().map(what)?;
    all.iter().position(|pe| what(pe) != first)
}

static ANCHOR_IN_PROGRAM: u8 = 0;
thread_local! {
    static ANCHOR_OF_THREAD: u8 = const { 0 };
}

/// What the loader has loaded.
#[derive(Default)]
struct Objects {
    program: DefaultHasher,
    addresses: DefaultHasher,
    seen: usize,
}

/// # Safety
/// Must be called by `dl_iterate_phdr`, with an `Objects` that nothing else uses.
unsafe extern "C" fn look_at_object(
    info: *mut libc::dl_phdr_info,
    _: libc::size_t,
    data: *mut libc::c_void,
) -> libc::c_int {
    // SAFETY: the loader passes a valid description, and `data` is what `dl_iterate_phdr` was given.
    unsafe {
        let (info, objects) = (&*info, &mut *data.cast::<Objects>());
        let name = CStr::from_ptr(info.dlpi_name);
        (name, info.dlpi_addr).hash(&mut objects.addresses);
        // The first is the program itself.
        if objects.seen == 0 {
            for i in 0..usize::from(info.dlpi_phnum) {
                let segment = &*info.dlpi_phdr.add(i);
                if segment.p_type == libc::PT_LOAD && segment.p_flags & libc::PF_X != 0 {
                    hash_of_file(segment.p_offset, segment.p_filesz, &mut objects.program);
                }
            }
        }
        objects.seen += 1;
    }
    0
}

/// Hashes a part of the program's file. Not of its memory, which network libraries patch.
fn hash_of_file(offset: u64, len: u64, hash: &mut DefaultHasher) {
    let mut bytes = vec![0; len as usize];
    let read = File::open("/proc/self/exe").and_then(|file| file.read_exact_at(&mut bytes, offset));
    hash_of_result(read.map(|()| bytes), hash);
}

/// Hashes the contents of a file. A program that has been replaced since it started has none.
fn hash_of_result(read: std::io::Result<Vec<u8>>, hash: &mut DefaultHasher) {
    match read {
        Ok(bytes) => hash.write(&bytes),
        Err(error) => error.to_string().hash(hash),
    }
}

fn cpu_features() -> u64 {
    let mut hash = DefaultHasher::new();
    // SAFETY: plain questions to the kernel.
    unsafe { (libc::getauxval(libc::AT_HWCAP), libc::getauxval(libc::AT_HWCAP2)).hash(&mut hash) };
    #[cfg(target_arch = "x86_64")]
    for leaf in [1, 7] {
        let answer = std::arch::x86_64::__cpuid_count(leaf, 0);
        // In leaf 1 the other words say which core this is.
        let base = if leaf == 7 { answer.ebx } else { 0 };
        (base, answer.ecx, answer.edx).hash(&mut hash);
    }
    hash.finish()
}

/// The value by which C frames of this process detect that their stack was overwritten.
pub(super) fn canary() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: reads a word of this thread's control block, where the x86_64 ABI puts the canary.
    unsafe {
        let canary: u64;
        std::arch::asm!("mov {}, fs:0x28", out(reg) canary, options(nostack, readonly));
        canary
    }
    #[cfg(not(target_arch = "x86_64"))]
    0
}

/// Gives this thread the job's canary.
///
/// # Safety
/// No function that is active on this thread's stack and checks the canary ever returns. Existing
/// threads keep their canary.
pub(super) unsafe fn set_canary(canary: u64) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: as the caller promises; Rust's own frames have no canary.
    unsafe {
        std::arch::asm!("mov fs:0x28, {}", in(reg) canary, options(nostack));
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = canary;
}

/// A number that identifies this machine, from its name and its boot.
pub(super) fn machine() -> u64 {
    let mut hash = DefaultHasher::new();
    for file in ["/proc/sys/kernel/hostname", "/proc/sys/kernel/random/boot_id"] {
        std::fs::read(file).unwrap_or_default().hash(&mut hash);
    }
    hash.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pe(program: u64, config: u64, addresses: u64, cpu: u64) -> Fingerprint {
        Fingerprint { program, config, addresses, cpu }
    }

    #[test]
    fn what_differs_is_named_with_its_pe() {
        let job = [pe(1, 2, 3, 4); 3];
        assert_eq!((why_no_job(&job), why_no_moves(&job)), (None, None));
        let unlike = |other| [pe(1, 2, 3, 4), pe(1, 2, 3, 4), other];
        let text = why_no_job(&unlike(pe(9, 2, 3, 4))).unwrap();
        assert!(text.contains("PE 2 runs another program"), "{text}");
        let text = why_no_job(&unlike(pe(1, 9, 3, 4))).unwrap();
        assert!(text.contains("PE 2 has other options"), "{text}");
        let text = why_no_moves(&unlike(pe(1, 2, 9, 4))).unwrap();
        assert!(text.contains("PE 2") && text.contains("randomisation"), "{text}");
        let text = why_no_moves(&unlike(pe(1, 2, 3, 9))).unwrap();
        assert!(text.contains("the CPU of PE 2"), "{text}");
    }

    #[test]
    fn a_process_is_like_itself() {
        let config = Config::default();
        let here = Fingerprint::of_this_process(&config);
        assert_eq!(here, Fingerprint::of_this_process(&config));
        assert_eq!(here, Fingerprint::from_words(&here.words()));
        assert_ne!(here.config, Fingerprint::of_this_process(&config.with_ranks(77)).config);
    }
}
