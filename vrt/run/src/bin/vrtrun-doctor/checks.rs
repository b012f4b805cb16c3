//! What is examined, and what each result means for a job.

use bytesize::ByteSize;
use vrt_cli::Others;

use crate::probe;

/// How good a result is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Nothing is restricted.
    Good,
    /// Jobs run, but something is slower, smaller or missing.
    Limited,
    /// Jobs cannot run.
    Bad,
}

impl State {
    pub(crate) fn name(self) -> &'static str {
        match self {
            State::Good => "ok",
            State::Limited => "limited",
            State::Bad => "problem",
        }
    }
}

/// The result of a check.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    pub subject: &'static str,
    pub state: State,
    pub found: String,
    /// What it means for jobs.
    pub consequence: Option<String>,
    /// How to change it.
    pub remedy: Option<String>,
}

impl Finding {
    fn good(subject: &'static str, found: impl Into<String>) -> Finding {
        Finding {
            subject,
            state: State::Good,
            found: found.into(),
            consequence: None,
            remedy: None,
        }
    }

    /// Jobs run, with this limitation.
    fn limited(
        subject: &'static str,
        found: impl Into<String>,
        consequence: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Finding {
        Finding {
            state: State::Limited,
            consequence: Some(consequence.into()),
            remedy: Some(remedy.into()),
            ..Finding::good(subject, found)
        }
    }

    fn bad(
        subject: &'static str,
        found: impl Into<String>,
        consequence: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Finding {
        Finding { state: State::Bad, ..Finding::limited(subject, found, consequence, remedy) }
    }
}

/// All results, most important first.
pub(crate) fn all() -> Vec<Finding> {
    vec![
        system(),
        cores(),
        other_programs(),
        memory(),
        shared_memory(),
        address_space(),
        huge_pages(),
        guards(),
        mappings(),
        descriptors(),
        wake_ups(),
        thread_pointer(),
        fixed_addresses(),
        core_files(),
        debugger(),
        compilers(),
        mpi(),
    ]
}

fn system() -> Finding {
    let (release, machine) = probe::kernel();
    let found = format!("Linux {release}, {machine}, glibc {}", probe::glibc());
    match (machine.as_str(), probe::kernel_version(&release)) {
        ("x86_64", Some(version)) if version < (5, 9) => Finding::limited(
            "system",
            found,
            "vrt is tested on newer kernels; programs cannot set their thread pointer themselves",
            "Linux 5.9 or later",
        ),
        ("x86_64", _) => Finding::good("system", found),
        ("aarch64", _) => Finding::limited(
            "system",
            found,
            "only Rust programs run on this architecture, and they are not tested on it",
            "a machine with an x86-64 processor",
        ),
        _ => Finding::bad("system", found, "there are no stacks for ranks on it", "x86-64"),
    }
}

fn cores() -> Finding {
    let there = probe::processors();
    let usable = std::thread::available_parallelism().map_or(1, usize::from);
    let quota = probe::processor_quota();
    let found = match quota {
        Some(quota) => format!("{usable} of {there} usable, time of {quota:.1} allowed"),
        None => format!("{usable} of {there} usable"),
    };
    match quota {
        Some(quota) if quota + 0.05 < usable as f64 => Finding::limited(
            "cores",
            found,
            format!(
                "with more than {} PEs, all of them are stopped for part of the time",
                quota.floor().max(1.0)
            ),
            "raise the container's limit (docker run --cpus), or give --pes",
        ),
        _ => Finding::good("cores", found),
    }
}

fn other_programs() -> Finding {
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as f64;
    match Others::now().and_then(|others| others.cores()) {
        None => Finding::limited(
            "other programs",
            "unknown: /proc cannot be read",
            "the effect of other programs cannot be seen in advance",
            "mount /proc",
        ),
        Some(used) if used > cores * 0.25 => Finding::limited(
            "other programs",
            format!("they use {used:.1} cores"),
            "times of jobs will vary, and PEs wait for each other",
            "wait until they have ended, or give fewer --pes",
        ),
        Some(used) => Finding::good("other programs", format!("they use {used:.1} cores")),
    }
}

fn memory() -> Finding {
    let free = probe::memory("MemAvailable");
    let quota = probe::memory_quota().map(|it| it as u64);
    match (free, quota) {
        (None, None) => Finding::limited(
            "memory",
            "unknown: /proc/meminfo cannot be read",
            "the default limit of unexpected messages goes by a guess",
            "mount /proc, or give --unexpected",
        ),
        (Some(free), Some(quota)) if quota < free => Finding::limited(
            "memory",
            format!("{} available, {} allowed", ByteSize(free), ByteSize(quota)),
            "a job that needs more is killed by the system",
            "raise the container's limit (docker run --memory)",
        ),
        (free, quota) => {
            let most = ByteSize(free.or(quota).unwrap_or_default());
            Finding::good("memory", format!("{most} available"))
        }
    }
}

fn shared_memory() -> Finding {
    match probe::has_memfd() {
        true => Finding::good("shared memory", "files without a name (memfd)"),
        false => Finding::bad(
            "shared memory",
            "memfd_create is refused",
            "PEs cannot share memory",
            "allow memfd_create in the container's seccomp profile",
        ),
    }
}

fn address_space() -> Finding {
    const TIB: usize = 1 << 40;
    match probe::limit(libc::RLIMIT_AS) {
        Some(limit) => Finding::limited(
            "address space",
            format!("limited to {}", ByteSize(limit)),
            "few ranks fit, with small heaps; see --slot and --stack",
            "ulimit -v unlimited",
        ),
        None if probe::can_reserve(TIB) => Finding::good("address space", "unlimited"),
        None => Finding::limited(
            "address space",
            "1 TiB cannot be reserved",
            "ranks have smaller heaps; see --slot",
            "sysctl vm.overcommit_memory=0 or 1",
        ),
    }
}

fn huge_pages() -> Finding {
    match vrt_slot::can_have_huge_pages() {
        true => Finding::good("pages of 2 MiB", "on request"),
        false => Finding::limited(
            "pages of 2 MiB",
            "not for shared memory",
            "ranks with large heaps move and copy more slowly",
            "allow user namespaces (sysctl kernel.unprivileged_userns_clone=1), or\n\
             echo advise > /sys/kernel/mm/transparent_hugepage/shmem_enabled",
        ),
    }
}

fn guards() -> Finding {
    match probe::has_light_guards() {
        true => Finding::good("guards of stacks", "without mappings of their own"),
        false => Finding::limited(
            "guards of stacks",
            "each is a mapping",
            "a PE can have guards for about as many ranks as half of vm.max_map_count",
            "Linux 6.15 or later; matters with more than 30,000 ranks only",
        ),
    }
}

fn mappings() -> Finding {
    const NAME: &str = "/proc/sys/vm/max_map_count";
    match probe::number_in(NAME) {
        None => Finding::limited(
            "mappings",
            format!("unknown: {NAME} cannot be read"),
            "C programs with very many ranks may not start",
            "mount /proc",
        ),
        Some(count) if count < 65_530 => Finding::limited(
            "mappings",
            format!("{count} for a process"),
            format!("a PE can load a C program for about {} ranks", count / 8),
            "sysctl vm.max_map_count=1048576",
        ),
        Some(count) => Finding::good("mappings", format!("{count} for a process")),
    }
}

fn descriptors() -> Finding {
    match probe::limit(libc::RLIMIT_NOFILE) {
        Some(limit) if limit < 1024 => Finding::limited(
            "descriptors",
            format!("{limit} for a process"),
            "ranks of a PE share them: programs that open files may run out",
            "ulimit -n 4096",
        ),
        Some(limit) => Finding::good("descriptors", format!("{limit} for a process")),
        None => Finding::good("descriptors", "unlimited"),
    }
}

fn wake_ups() -> Finding {
    match probe::has_membarrier() {
        true => Finding::good("wake-ups", "membarrier"),
        false => Finding::limited(
            "wake-ups",
            "no membarrier",
            "every message to a PE that may sleep costs a full fence",
            "allow membarrier in the container's seccomp profile",
        ),
    }
}

fn thread_pointer() -> Finding {
    match probe::has_fsgsbase() {
        true => Finding::good("thread pointer", "set by an instruction (FSGSBASE)"),
        false => Finding::limited(
            "thread pointer",
            "set by a system call",
            "ranks of C programs switch several times more slowly",
            "Linux 5.9 or later on a processor with FSGSBASE",
        ),
    }
}

fn fixed_addresses() -> Finding {
    match probe::can_fix_addresses() {
        true => Finding::good("fixed addresses", "allowed"),
        false => Finding::limited(
            "fixed addresses",
            "personality(ADDR_NO_RANDOMIZE) is refused",
            "under mpirun, ranks move between PEs by their state only; jobs of vrtrun alone are not concerned",
            "allow personality in the container's seccomp profile, or sysctl kernel.randomize_va_space=0",
        ),
    }
}

fn core_files() -> Finding {
    let pattern = probe::line_of("/proc/sys/kernel/core_pattern").unwrap_or_default();
    let limit = probe::limit(libc::RLIMIT_CORE);
    let goes_to = if pattern.is_empty() { "unknown place" } else { &pattern };
    match limit {
        Some(0) if !pattern.starts_with('|') => Finding::limited(
            "core files",
            "limited to 0",
            "a crash leaves no core; backtraces are printed all the same",
            "ulimit -c unlimited; --core rank raises the limit itself where it may",
        ),
        _ => Finding::good("core files", goes_to),
    }
}

fn debugger() -> Finding {
    let scope = probe::number_in("/proc/sys/kernel/yama/ptrace_scope");
    match scope {
        Some(scope) if scope > 0 => Finding::limited(
            "debugger",
            format!("ptrace_scope is {scope}"),
            "--gdb prints a command that only root may run",
            "sysctl kernel.yama.ptrace_scope=0",
        ),
        _ => Finding::good("debugger", "may attach to own processes"),
    }
}

fn compilers() -> Finding {
    let name = |variable: &str, usual: &str| {
        std::env::var(variable).ok().filter(|it| !it.is_empty()).unwrap_or_else(|| usual.to_owned())
    };
    let (c, cpp) = (name("VRT_CC", "cc"), name("VRT_CXX", "c++"));
    match (probe::version(&c), probe::version(&cpp)) {
        (Some(version), Some(_)) => Finding::good("compilers", format!("{c}, {cpp}: {version}")),
        (Some(version), None) => Finding::limited(
            "compilers",
            format!("{c}: {version}; no {cpp}"),
            "vrtcxx cannot compile",
            "install g++, or let VRT_CXX name a compiler",
        ),
        (None, _) => Finding::limited(
            "compilers",
            format!("no {c}"),
            "vrtcc cannot compile; programs that are compiled already run",
            "install gcc, or let VRT_CC name a compiler",
        ),
    }
}

fn mpi() -> Finding {
    let library = probe::version("mpirun").or_else(|| probe::version("mpiexec"));
    let built = cfg!(feature = "mpi");
    match (built, library) {
        (true, Some(version)) => Finding::good("several machines", version),
        (true, None) => Finding::limited(
            "several machines",
            "no mpirun",
            "jobs run on this machine only",
            "install the MPI library that vrtrun was built with",
        ),
        (false, library) => Finding::limited(
            "several machines",
            match library {
                Some(version) => format!("{version}; this vrtrun was built without MPI"),
                None => "this vrtrun was built without MPI".to_owned(),
            },
            "jobs run on this machine only",
            "MPICC=mpicc cargo install --path vrt/run --features mpi",
        ),
    }
}
