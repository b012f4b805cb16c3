//! Queries to the system. What the system does not report is `None`, never a guess: `/proc` and `/sys` may be absent.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The contents of a kernel file, without the final newline.
pub(crate) fn line_of(path: &str) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim_end().to_owned())
}

pub(crate) fn number_in(path: &str) -> Option<u64> {
    line_of(path)?.parse().ok()
}

/// The kernel's release and the machine's architecture.
pub(crate) fn kernel() -> (String, String) {
    // SAFETY: zeros are a valid value, which the call fills in with strings that end with zeros.
    let name = unsafe {
        let mut name: libc::utsname = std::mem::zeroed();
        libc::uname(&raw mut name);
        name
    };
    let text = |field: &[libc::c_char]| -> String {
        field.iter().take_while(|it| **it != 0).map(|it| char::from(*it as u8)).collect()
    };
    (text(&name.release), text(&name.machine))
}

/// The release's first two numbers.
pub(crate) fn kernel_version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(['.', '-']).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

pub(crate) fn glibc() -> String {
    // SAFETY: the C library returns a constant string.
    let version = unsafe { std::ffi::CStr::from_ptr(libc::gnu_get_libc_version()) };
    version.to_string_lossy().into_owned()
}

/// A limit on this process; `None`: unlimited.
pub(crate) fn limit(which: libc::__rlimit_resource_t) -> Option<u64> {
    // SAFETY: zeros are a valid limit, which the call fills in.
    let limit = unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        libc::getrlimit(which, &raw mut limit);
        limit
    };
    (limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}

/// Number of processors of this machine.
pub(crate) fn processors() -> usize {
    // SAFETY: asks.
    let count = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    usize::try_from(count).unwrap_or(1)
}

/// The control group of this process (version 2).
fn control_group() -> Option<PathBuf> {
    let groups = line_of("/proc/self/cgroup")?;
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    Some(Path::new("/sys/fs/cgroup").join(path.trim_start_matches('/')))
}

/// The processor time per second that the control groups of this process may use, if limited.
pub(crate) fn processor_quota() -> Option<f64> {
    each_group(|group| {
        let text = fs::read_to_string(group.join("cpu.max")).ok()?;
        let mut numbers = text.split_whitespace().map(str::parse::<f64>);
        Some(numbers.next()?.ok()? / numbers.next()?.ok()?)
    })
}

/// Bytes that the control groups of this process may use, if limited.
pub(crate) fn memory_quota() -> Option<f64> {
    each_group(|group| fs::read_to_string(group.join("memory.max")).ok()?.trim_end().parse().ok())
}

/// The least value of the control group and its ancestors.
fn each_group(of: impl Fn(&Path) -> Option<f64>) -> Option<f64> {
    let group = control_group()?;
    group.ancestors().filter_map(of).reduce(f64::min)
}

/// A field of `/proc/meminfo`, in bytes.
pub(crate) fn memory(field: &str) -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
    Some(line.trim().trim_end_matches(" kB").parse::<u64>().ok()? << 10)
}

/// Whether this much address space can be reserved.
pub(crate) fn can_reserve(bytes: usize) -> bool {
    // SAFETY: a new mapping, which nobody uses, and which is taken away again.
    unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let at = libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_NONE, flags, -1, 0);
        at != libc::MAP_FAILED && libc::munmap(at, bytes) == 0
    }
}

/// Whether anonymous memory can be shared between processes.
pub(crate) fn has_memfd() -> bool {
    // SAFETY: a new descriptor, which is closed.
    unsafe {
        let file = libc::memfd_create(c"vrt-doctor".as_ptr(), libc::MFD_CLOEXEC);
        file >= 0 && libc::close(file) == 0
    }
}

/// Whether a guard page in shared memory needs no mapping of its own (`MADV_GUARD_INSTALL`, Linux 6.15).
pub(crate) fn has_light_guards() -> bool {
    const MADV_GUARD_INSTALL: libc::c_int = 102;
    const PAGE: usize = 4096;
    // SAFETY: a new mapping, which nobody uses, and which is taken away again.
    unsafe {
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        let at = libc::mmap(std::ptr::null_mut(), PAGE, libc::PROT_READ, flags, -1, 0);
        if at == libc::MAP_FAILED {
            return false;
        }
        let guarded = libc::madvise(at, PAGE, MADV_GUARD_INSTALL) == 0;
        libc::munmap(at, PAGE);
        guarded
    }
}

/// Whether a process may disable the randomisation of its addresses.
pub(crate) fn can_fix_addresses() -> bool {
    const NOW: libc::c_ulong = 0xffff_ffff;
    // SAFETY: changes what the next program of this process gets, and changes it back.
    unsafe {
        let before = libc::personality(NOW);
        let changed = libc::personality((before | libc::ADDR_NO_RANDOMIZE) as libc::c_ulong) >= 0;
        libc::personality(before as libc::c_ulong);
        changed
    }
}

/// Whether the kernel can execute fences on other processors (`membarrier`).
pub(crate) fn has_membarrier() -> bool {
    // SAFETY: asks.
    let commands = unsafe { libc::syscall(libc::SYS_membarrier, libc::MEMBARRIER_CMD_QUERY, 0, 0) };
    commands > 0 && commands & libc::c_long::from(libc::MEMBARRIER_CMD_GLOBAL_EXPEDITED) != 0
}

/// Whether a program may set its thread pointer itself.
pub(crate) fn has_fsgsbase() -> bool {
    // SAFETY: reads what the kernel gave the process.
    cfg!(target_arch = "x86_64") && unsafe { libc::getauxval(libc::AT_HWCAP2) } & 2 != 0
}

/// The first line of a program's version output.
pub(crate) fn version(program: &str) -> Option<String> {
    let output = Command::new(program).arg("--version").stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    output.status.success().then(|| text.lines().next().unwrap_or_default().trim().to_owned())
}
