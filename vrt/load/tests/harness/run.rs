//! Runs images: memory for each, a thread, a stack, and the results.

use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::time::Duration;

use vrt_load::{Entry, Plan, thread_pointer};

/// Memory of an image, or a stack.
pub(crate) struct Memory {
    mapping: *mut c_void,
    len: usize,
    pub base: usize,
}

// SAFETY: plain memory; tests see to it that one thread uses it at a time.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// Zeroed memory that can be written and executed.
    pub(crate) fn map(len: usize, alignment: usize) -> Memory {
        let len = len + alignment;
        // SAFETY: a new mapping.
        let mapping = unsafe {
            libc::mmap(
                ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        assert_ne!(mapping, libc::MAP_FAILED);
        Memory { mapping, len, base: (mapping as usize).next_multiple_of(alignment) }
    }

    /// Memory with the code of an image in it.
    pub(crate) fn code(plan: &Plan, is_mapped: bool) -> Memory {
        let memory = Memory::map(plan.size(), plan.alignment());
        // SAFETY: fresh memory of the right length.
        unsafe {
            match is_mapped {
                true => plan.map_code(memory.base).unwrap(),
                false => plan.copy_code(memory.base),
            }
        }
        memory
    }

    /// Memory with an image in it, for the calling thread.
    pub(crate) fn image(plan: &Plan, is_mapped: bool) -> Memory {
        let memory = Memory::code(plan, is_mapped);
        // SAFETY: fresh memory of the right length.
        unsafe { plan.fill(memory.base) };
        memory
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the mapping that `map` made.
        unsafe { libc::munmap(self.mapping, self.len) };
    }
}

/// What an image reported, and how it ended.
#[derive(Debug, PartialEq)]
pub(crate) struct Outcome {
    pub status: i32,
    pub reports: Vec<(String, i64)>,
}

impl Outcome {
    /// The last value reported under a name.
    pub(crate) fn value(&self, name: &str) -> i64 {
        let found = self.reports.iter().rev().find(|(report, _)| report == name);
        found.unwrap_or_else(|| panic!("no {name} in {self:?}")).1
    }

    /// The values reported under a name, in order.
    pub(crate) fn values(&self, name: &str) -> Vec<i64> {
        let reports = self.reports.iter().filter(|(report, _)| report == name);
        reports.map(|(_, value)| *value).collect()
    }
}

#[derive(Clone, Copy)]
struct Report {
    name: [u8; 40],
    value: i64,
}

/// A run of an image, which code in the image finds by its thread pointer.
pub(super) struct Run {
    pub base: usize,
    pub len: usize,
    pub plan: *const Plan,
    pub own_thread_pointer: usize,
    /// The stack pointer at which the thread waits.
    context: usize,
    status: i32,
    reports: [Report; 256],
    report_count: usize,
    pub at_exit: [(usize, usize); 64],
    pub at_exit_count: usize,
    pub barrier: *const libc::pthread_barrier_t,
    /// The function that runs in it.
    task: Task<'static>,
}

type Task<'a> = &'a dyn Fn();

impl Run {
    pub(super) fn report(&mut self, name: &[u8], value: i64) {
        if let Some(report) = self.reports.get_mut(self.report_count) {
            let len = name.len().min(report.name.len());
            report.name[..len].copy_from_slice(&name[..len]);
            report.value = value;
            self.report_count += 1;
        }
    }

    /// Ends the run, whatever is on its stack.
    pub(super) fn leave(&mut self, status: i32) -> ! {
        self.status = status;
        // SAFETY: the thread's own block, and where it waits.
        unsafe {
            thread_pointer::set(self.own_thread_pointer);
            harness_leave(&self.context)
        }
    }
}

static RUNS: [AtomicPtr<Run>; 256] = [const { AtomicPtr::new(ptr::null_mut()) }; 256];

/// The run whose thread pointer is set; null outside of images.
pub(super) fn current() -> *mut Run {
    let pointer = thread_pointer::get();
    for run in &RUNS {
        let run = run.load(Ordering::Acquire);
        // SAFETY: a run is in the table as long as it lives; other threads read what does not
        // change.
        if !run.is_null() && unsafe { pointer.wrapping_sub((*run).base) < (*run).len } {
            return run;
        }
    }
    ptr::null_mut()
}

// Changes to another stack and back.
std::arch::global_asm!(
    ".globl harness_enter",
    "harness_enter:",
    "push rbx",
    "push rbp",
    "push r12",
    "push r13",
    "push r14",
    "push r15",
    "mov [rdi], rsp",
    "mov rsp, rsi",
    "mov rdi, rcx",
    "call rdx",
    "ud2",
    ".globl harness_leave",
    "harness_leave:",
    "mov rsp, [rdi]",
    "pop r15",
    "pop r14",
    "pop r13",
    "pop r12",
    "pop rbp",
    "pop rbx",
    "ret",
);

unsafe extern "C" {
    fn harness_enter(
        context: *mut usize,
        stack: usize,
        function: extern "C" fn(*mut c_void) -> !,
        run: *mut c_void,
    );
    fn harness_leave(context: *const usize) -> !;
}

extern "C" fn begin(run: *mut c_void) -> ! {
    let run = run.cast::<Run>();
    // SAFETY: the run that `on_stack` handed over.
    unsafe {
        ((*run).task)();
        (*run).leave(0)
    }
}

const STACK: usize = 1 << 20;

/// Runs a function on a separate stack for an image, until it returns or the image leaves.
pub(crate) fn on_stack(
    plan: &Plan,
    memory: &Memory,
    barrier: *const libc::pthread_barrier_t,
    task: Task,
) -> Outcome {
    let stack = Memory::map(STACK, 4096);
    let run = Box::new(Run {
        base: memory.base,
        len: plan.size(),
        plan,
        own_thread_pointer: thread_pointer::get(),
        context: 0,
        status: -1,
        reports: [Report { name: [0; 40], value: 0 }; 256],
        report_count: 0,
        at_exit: [(0, 0); 64],
        at_exit_count: 0,
        barrier,
        // SAFETY: the task is not used after this function, which `task` outlives.
        task: unsafe { std::mem::transmute::<Task<'_>, Task<'static>>(task) },
    });
    let run = Box::into_raw(run);
    let free = RUNS.iter().find(|place| {
        place.compare_exchange(ptr::null_mut(), run, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    });
    let free = free.expect("too many images at once");
    // SAFETY: a fresh stack, and a run that lives until below.
    let run = unsafe {
        harness_enter(&raw mut (*run).context, stack.base + STACK, begin, run.cast());
        Box::from_raw(run)
    };
    free.store(ptr::null_mut(), Ordering::Release);
    let reports = run.reports[..run.report_count].iter().map(|report| {
        let name = report.name.split(|byte| *byte == 0).next().unwrap();
        (String::from_utf8_lossy(name).into_owned(), report.value)
    });
    Outcome { status: run.status, reports: reports.collect() }
}

/// Calls a function with an image's thread pointer.
pub(crate) fn in_image<R>(plan: &Plan, base: usize, call: impl FnOnce() -> R) -> R {
    let own = thread_pointer::get();
    // SAFETY: the image was filled by this thread; what is called is code of images.
    unsafe {
        thread_pointer::set(plan.thread_pointer(base));
        let result = call();
        thread_pointer::set(own);
        result
    }
}

/// How long images may take after the last ones began.
const LIMIT: Duration = Duration::from_secs(300);

/// Runs images of a program at the same time, one on each of this many threads. The code of every
/// other image is mapped, that of the others is copied. The first argument is the image's number.
pub(crate) fn run(plan: &Plan, images: usize) -> Vec<Outcome> {
    // An image that waits for ever ends the tests.
    // SAFETY: nothing here handles the signal.
    unsafe { libc::alarm(LIMIT.as_secs() as u32) };
    // SAFETY: a barrier that is initialised here and outlives the threads.
    let mut barrier: libc::pthread_barrier_t = unsafe { std::mem::zeroed() };
    // SAFETY: as above.
    unsafe { libc::pthread_barrier_init(&mut barrier, ptr::null(), images as u32) };
    let barrier = &raw const barrier as usize;
    // What can fail comes first: images wait for each other.
    let memory: Vec<_> = (0..images).map(|number| Memory::code(plan, number % 2 == 0)).collect();
    std::thread::scope(|scope| {
        let start = |(number, memory): (usize, Memory)| {
            scope.spawn(move || {
                // SAFETY: fresh memory of the right length.
                unsafe { plan.fill(memory.base) };
                let barrier = barrier as *const libc::pthread_barrier_t;
                run_one(plan, &memory, barrier, number)
            })
        };
        let threads: Vec<_> = memory.into_iter().enumerate().map(start).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn run_one(
    plan: &Plan,
    memory: &Memory,
    barrier: *const libc::pthread_barrier_t,
    number: usize,
) -> Outcome {
    unsafe extern "C" {
        static environ: *const *const c_char;
    }
    let strings = ["program", &number.to_string()].map(|text| CString::new(text).unwrap());
    let pointers = strings.each_ref().map(|text| text.as_ptr().cast_mut());
    let base = memory.base;
    let early = plan.symbol_in("libc.so", "__libc_early_init");
    let task = || {
        if let Some(early) = early {
            // SAFETY: the private libc's function of this type.
            unsafe {
                let early: extern "C" fn(bool) = std::mem::transmute(base + early);
                // Not the process's first one, and there are threads: as if it were alone it would let go of locks
                // that it shares with others without waking who waits for them.
                in_image(plan, base, || early(false));
            }
        }
        match plan.entry() {
            // SAFETY: the image is complete, and the thread waits elsewhere.
            Entry::Start(_) => unsafe { plan.start(base, &pointers, environ) },
            Entry::OfProcess => unreachable!("a program was loaded"),
            Entry::Main(main) => {
                let argc = pointers.len() as c_int;
                let argv = [&pointers[..], &[ptr::null_mut()]].concat();
                // SAFETY: as above.
                unsafe {
                    thread_pointer::set(plan.thread_pointer(base));
                    super::provided::start_main(base + main, argc, argv.as_ptr(), environ)
                }
            }
        }
    };
    on_stack(plan, memory, barrier, &task)
}
