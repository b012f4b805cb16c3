//! Core files of crashed PEs.
//!
//! They do not contain the arena, which is far larger than its contents. With `--core rank` the stack and the heap of
//! the rank that crashed are included, so that a debugger shows where it was and its data.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::crash::fault::Fault;
use crate::crash::job::job;
use vrt_slot::Arena;
use vrt_slot::report::say;

/// Whether core files include the memory of the rank that crashed.
static WITH_RANK: AtomicBool = AtomicBool::new(false);

/// Where the kernel describes what it does with core files.
const PATTERN: &str = "/proc/sys/kernel/core_pattern";

/// Requests core files with the memory of the rank that crashes. To be called by a PE.
pub(crate) fn want_rank(pe: u32) {
    WITH_RANK.store(true, Ordering::Relaxed);
    // SAFETY: zeros are a valid limit, which the call fills in; the soft one may be raised.
    let limit = unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        libc::getrlimit(libc::RLIMIT_CORE, &raw mut limit);
        limit.rlim_cur = limit.rlim_max;
        libc::setrlimit(libc::RLIMIT_CORE, &raw const limit);
        limit.rlim_max
    };
    if limit == 0 && pe == 0 && !given_to_a_program(&pattern()) {
        say(format_args!(
            "note: --core rank: no core file will be written: their size is limited to 0 \
             (`ulimit -H -c`)"
        ));
    }
}

/// Called before a PE dies of a signal: whether it is the first of its job to do so, and may leave a core. Any other PE
/// leaves none, as its file could have the same name as the first one's.
pub(super) fn claim() -> bool {
    let Some(job) = job() else { return true };
    // SAFETY: plain system calls.
    unsafe {
        let first = job.claim_crash(libc::getpid() as u32);
        if !first {
            libc::prctl(libc::PR_SET_DUMPABLE, 0);
        }
        first
    }
}

/// Includes the memory of the rank on whose stack the fault happened in the core file; returns whether that was
/// requested, and with it a core.
pub(super) fn include_rank_of(fault: &Fault) -> bool {
    if !WITH_RANK.load(Ordering::Relaxed) {
        return false;
    }
    let (Some(arena), true) = (Arena::current(), Arena::contains(fault.sp)) else { return true };
    let slot = arena.slot_at(fault.sp);
    let (near, far) = arena.layout.used_ranges(slot);
    // SAFETY: the header is mapped; no reference is kept. Whatever it contains, ranges are cut to the
    // slot's own.
    let used = unsafe { (*(*arena.header(slot)).heap.get()).used() };
    let stack = fault.sp.clamp(near.0, near.0 + near.1)..near.0 + near.1;
    include(near, stack);
    include(far, used[1].clone());
    true
}

/// Includes the used part of a range of the arena in the core file.
fn include((start, len): (usize, usize), used: std::ops::Range<usize>) {
    const PAGE: usize = 4096;
    let begin = (used.start & !(PAGE - 1)).clamp(start, start + len);
    let end = used.end.next_multiple_of(PAGE).clamp(begin, start + len);
    // SAFETY: a range of our own mapping, of which only a flag changes.
    unsafe { libc::madvise(begin as *mut libc::c_void, end - begin, libc::MADV_DODUMP) };
}

fn pattern() -> String {
    std::fs::read_to_string(PATTERN).unwrap_or_default().trim_end().to_owned()
}

/// Whether cores are piped to a program instead of written to files.
fn given_to_a_program(pattern: &str) -> bool {
    pattern.starts_with('|')
}

/// Where the core of a process is, in words.
pub(crate) fn place_of(process: libc::pid_t, signal: i32) -> String {
    let pattern = pattern();
    if let Some(program) = pattern.strip_prefix('|') {
        let program = program.split_whitespace().next().unwrap_or_default();
        return format!("given to {program} (systemd's: see `coredumpctl`)");
    }
    let uses_pid = std::fs::read_to_string("/proc/sys/kernel/core_uses_pid").unwrap_or_default();
    let name = expand(&pattern, uses_pid.trim() == "1", process, signal);
    let path = std::env::current_dir().unwrap_or_default().join(name);
    match find(&path) {
        Some(path) => path.display().to_string(),
        None => format!("{} (or in the directory that the PE was in)", path.display()),
    }
}

/// The name that the kernel makes from its pattern; `*` stands for what is not known here.
fn expand(pattern: &str, uses_pid: bool, process: libc::pid_t, signal: i32) -> String {
    let mut name = String::new();
    let mut has_pid = false;
    let mut rest = pattern.chars();
    while let Some(c) = rest.next() {
        if c != '%' {
            name.push(c);
            continue;
        }
        match rest.next() {
            Some('%') => name.push('%'),
            Some('p') => {
                has_pid = true;
                name += &process.to_string();
            }
            Some('s') => name += &signal.to_string(),
            Some(_) => name.push('*'),
            None => {}
        }
    }
    if uses_pid && !has_pid {
        name += &format!(".{process}");
    }
    name
}

/// The most recent file whose name matches, where `*` in the last part stands for anything.
fn find(path: &Path) -> Option<PathBuf> {
    let wanted = path.file_name()?.to_str()?;
    let mut found: Vec<(std::time::SystemTime, PathBuf)> = std::fs::read_dir(path.parent()?)
        .ok()?
        .filter_map(Result::ok)
        .filter(|entry| entry.file_name().to_str().is_some_and(|name| fits(name, wanted)))
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    found.sort();
    found.pop().map(|(_, path)| path)
}

/// Whether a name matches a pattern in which `*` stands for anything.
fn fits(name: &str, pattern: &str) -> bool {
    match pattern.split_once('*') {
        None => name == pattern,
        Some((before, after)) => name.strip_prefix(before).is_some_and(|rest| {
            (0..=rest.len()).any(|at| rest.is_char_boundary(at) && fits(&rest[at..], after))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_core_follows_the_pattern() {
        for (pattern, uses_pid, name) in [
            ("core", false, "core"),
            ("core", true, "core.42"),
            ("core.%p", true, "core.42"),
            ("/var/%%/c-%e-%s-%p", false, "/var/%/c-*-11-42"),
        ] {
            assert_eq!(expand(pattern, uses_pid, 42, 11), name);
        }
    }

    #[test]
    fn a_star_stands_for_anything() {
        assert!(fits("core.sleep.42", "core.*.42") && fits("core", "core") && fits("x", "*"));
        assert!(!fits("core.sleep.43", "core.*.42") && !fits("core.1", "core"));
    }
}
