//! Thread-locals of images: in programs, in private libraries, and of the process.

mod harness;

use harness::{LIBC, Memory, Workshop, in_image, on_stack, open, run, try_open};
use vrt_load::{LoadError, PAGE, thread_pointer};

/// A program's thread-locals are accessed by distances in its code.
const LOCAL_EXEC: &str = r#"
#include <errno.h>
#include <stdlib.h>
__thread int a = 5;
__thread char big[3000];
static __thread long counter;
__thread int *mine = 0;
static int global;
__thread int *to_global = &global;
__thread char aligned[64] __attribute__((aligned(256))) = "aligned";
int main(int argc, char **argv) {
  int me = atoi(argv[1]);
  if (a != 5 || counter != 0 || big[2999] != 0 || to_global != &global) return 9;
  if ((unsigned long)aligned % 256 || aligned[0] != 'a') return 8;
  mine = &a;
  for (int round = 0; round < 50; round++) {
    a = 100 * me + round; big[2999] = me; errno = 1000 + me; global = me;
    meet();
    if (*mine != 100 * me + round || counter != round || big[2999] != me) return 1;
    if (errno != 1000 + me || *to_global != me) return 2;
    counter++;
    meet();
  }
  report("counter", counter);
  return 0;
}
"#;

#[test]
fn programs_have_their_own() {
    let workshop = Workshop::new();
    let plan = open(&workshop.program("local", LOCAL_EXEC, ""), LIBC);
    for outcome in run(&plan, 4) {
        assert_eq!((outcome.status, outcome.value("counter")), (0, 50));
    }
    assert_eq!(plan.thread_pointer(0) % 256, 0);
}

const LIBRARY: &str = r#"
static int target = 6;
__thread int shared_local = 7;
static __thread int *pointer = &target;
static __thread long array[100];
__attribute__((tls_model("initial-exec"))) __thread int early = 8;
int library_sum(int add) {
  shared_local += add; early += add; array[99] += add; *pointer += add;
  return shared_local + early + array[99] + target;
}
int *library_address(void) { return &shared_local; }
"#;

const USER: &str = r#"
#include <stdlib.h>
extern __thread int shared_local;
int library_sum(int add);
int *library_address(void);
#ifndef MODEL
#define MODEL
#endif
MODEL static __thread int own = 3;
MODEL static __thread int other = 4;
int use(int add) { own += add; other += add; return own + other; }
int main(int argc, char **argv) {
  int me = atoi(argv[1]);
  if (library_sum(0) != 21 || shared_local != 7 || &shared_local != library_address()) return 9;
  for (int round = 1; round <= 20; round++) {
    meet();
    if (library_sum(me) != 21 + 4 * me * round) return 1;
    if (use(me) != 7 + 2 * me * round || shared_local != 7 + me * round) return 2;
    meet();
  }
  report("end", shared_local);
  return 0;
}
"#;

fn check_user(flags: &str, is_program: bool) {
    let workshop = Workshop::new();
    workshop.library("liblocals.so", LIBRARY, flags);
    let libraries = format!("{flags} -L. -llocals -Wl,-rpath,$ORIGIN");
    let program = match is_program {
        true => workshop.program("user", USER, &libraries),
        false => workshop.library("user.so", USER, &libraries),
    };
    let plan = open(&program, LIBC);
    assert!(plan.has_private("liblocals.so"));
    for (number, outcome) in run(&plan, 4).into_iter().enumerate() {
        assert_eq!((outcome.status, outcome.value("end")), (0, 7 + 20 * number as i64));
    }
}

#[test]
fn libraries_have_their_own_by_general_dynamic_code() {
    check_user("-ftls-model=global-dynamic", true);
    check_user("-ftls-model=global-dynamic -O0", false);
}

#[test]
fn libraries_have_their_own_by_local_dynamic_code() {
    check_user("-DMODEL=__attribute__((tls_model(\"local-dynamic\")))", false);
}

#[test]
fn libraries_have_their_own_by_initial_exec_code() {
    check_user("-ftls-model=initial-exec", true);
    check_user("-ftls-model=initial-exec", false);
}

#[test]
fn private_libraries_reach_thread_locals_of_the_process() {
    let workshop = Workshop::new();
    let source = r#"
        #include <errno.h>
        #include <math.h>
        #include <stdlib.h>
        int main(int argc, char **argv) {
          volatile double minus = -1;
          errno = 0;
          meet();
          if (argv[1][0] % 2) (void)log(minus);
          meet();
          report("errno", errno);
          return 0;
        }"#;
    let program = workshop.program("errno", source, "-fno-builtin -Wl,--no-as-needed -lm");
    // libm has a reference to libc's variable.
    let plan = open(&program, &["libc.so"]);
    assert!(plan.has_private("libm.so"));
    for (number, outcome) in run(&plan, 4).into_iter().enumerate() {
        let expected = if number % 2 == 1 { libc::EDOM } else { 0 };
        assert_eq!(outcome.value("errno"), i64::from(expected));
    }
}

#[test]
fn what_does_not_fit_is_refused_with_both_sizes() {
    let workshop = Workshop::new();
    let source = "__thread char big[100000]; int main(void) { return big[5]; }";
    let program = workshop.program("toobig", source, "");
    match try_open(&program, LIBC).err() {
        Some(LoadError::ThreadLocalsTooLarge { needed, reserve, largest, largest_of, .. }) => {
            assert!(needed >= 100_000 && reserve == 65_536 && largest == needed);
            assert_eq!(largest_of, program.canonicalize().unwrap());
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_fills_the_reserve_to_the_last_byte_fits() {
    let workshop = Workshop::new();
    let source = r#"
        __thread char big[65536];
        int main(void) {
          for (int i = 0; i < 65536; i++) { if (big[i]) return 1; big[i] = 1; }
          report("written", 65536);
          return 0;
        }"#;
    let plan = open(&workshop.program("full", source, ""), LIBC);
    for outcome in run(&plan, 2) {
        assert_eq!((outcome.status, outcome.value("written")), (0, 65_536));
    }
}

/// Functions to be called in a shared object that is not running.
const STEPS: &str = r#"
#include <errno.h>
static int global = 1;
static __thread int local = 10;
static __thread int *address = &global;
static __thread long zero;
void *of_local(void) { return &local; }
int step(int by) { local += by; zero += by; return local + zero + *address; }
void set_errno(int value) { errno = value; }
int main(void) { return 0; }
"#;

#[test]
fn a_further_thread_begins_anew() {
    let workshop = Workshop::new();
    let plan = open(&workshop.library("steps.so", STEPS, ""), LIBC);
    let memory = Memory::image(&plan, true);
    // SAFETY: a function of the image, called with one of its thread pointers.
    let step = unsafe {
        let step = memory.base + plan.symbol("step").unwrap();
        std::mem::transmute::<usize, extern "C" fn(i32) -> i32>(step)
    };
    assert_eq!(in_image(&plan, memory.base, || step(5)), 21);
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let block = Memory::map(plan.thread_block_size(), PAGE);
            let own = thread_pointer::get();
            // SAFETY: memory of the right length, whatever was in it before.
            unsafe {
                (block.base as *mut u8).write_bytes(0x5a, plan.thread_block_size());
                let pointer = plan.fill_thread_block(memory.base, block.base, own);
                assert_eq!(pointer % 64, 0);
                thread_pointer::set(pointer);
                let results = [step(1), step(1)];
                thread_pointer::set(own);
                results
            }
        });
        assert_eq!(thread.join().unwrap(), [13, 15]);
    });
    assert_eq!(in_image(&plan, memory.base, || step(0)), 21);
}

/// The calling thread's number in its control block, where `plan` found it: glibc uses it for
/// `pthread_kill` and other functions.
fn number_in_block(pointer: usize, number: i32) -> bool {
    (0x40..1024).step_by(4).any(|offset| {
        // SAFETY: inside of a control block.
        unsafe { ((pointer + offset) as *const i32).read() == number }
    })
}

#[test]
fn an_image_goes_on_in_another_thread() {
    let workshop = Workshop::new();
    let plan = open(&workshop.library("steps.so", STEPS, ""), LIBC);
    let memory = Memory::image(&plan, false);
    // SAFETY: functions of the image, called with its thread pointer.
    let (step, set_errno) = unsafe {
        let address = |name| memory.base + plan.symbol(name).unwrap();
        (
            std::mem::transmute::<usize, extern "C" fn(i32) -> i32>(address("step")),
            std::mem::transmute::<usize, extern "C" fn(i32)>(address("set_errno")),
        )
    };
    assert_eq!(in_image(&plan, memory.base, || step(5)), 21);
    let word = |offset: usize| {
        // SAFETY: inside of the image's control block.
        unsafe { ((plan.thread_pointer(memory.base) + offset) as *const usize).read() }
    };
    let secrets = (word(0x28), word(0x30));
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            // SAFETY: a system call without arguments.
            let number = unsafe { libc::syscall(libc::SYS_gettid) } as i32;
            let pointer = plan.thread_pointer(memory.base);
            // SAFETY: writes this thread's variable.
            unsafe { *libc::__errno_location() = 77 };
            // SAFETY: the image does not run now.
            unsafe { plan.refresh_thread_block(memory.base, thread_pointer::get()) };
            // Locks that it holds are still its own.
            assert!(!number_in_block(pointer, number));
            // SAFETY: as above.
            unsafe { plan.set_thread_number(memory.base, number) };
            assert!(number_in_block(pointer, number));
            assert_eq!(in_image(&plan, memory.base, || step(1)), 23);
            // SAFETY: reads the block's variable: it came along with the thread's.
            let errno = || in_image(&plan, memory.base, || unsafe { *libc::__errno_location() });
            assert_eq!(errno(), 77);
            in_image(&plan, memory.base, || set_errno(78));
            assert_eq!(errno(), 78);
            // SAFETY: reads this thread's variable.
            assert_eq!(unsafe { *libc::__errno_location() }, 77);
        });
        thread.join().unwrap();
    });
    assert_eq!(secrets, (word(0x28), word(0x30)));
    assert_eq!((word(0), word(16)), (plan.thread_pointer(memory.base), word(0)));
}

#[test]
fn a_block_takes_part_of_the_thread_that_fills_it() {
    let workshop = Workshop::new();
    let plan = open(&workshop.library("steps.so", STEPS, ""), LIBC);
    // SAFETY: writes this thread's variable.
    unsafe { *libc::__errno_location() = 5 };
    let memory = Memory::image(&plan, true);
    // SAFETY: reads the block's variable.
    let read = || unsafe { *libc::__errno_location() };
    assert_eq!(in_image(&plan, memory.base, read), 5);
    // The processor that a stale copy names is not believed.
    // SAFETY: asks the system.
    let processor = in_image(&plan, memory.base, || unsafe { libc::sched_getcpu() });
    // SAFETY: as above.
    let count = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) } as i32;
    assert!((0..count).contains(&processor), "{processor}");
    let outcome = on_stack(&plan, &memory, std::ptr::null(), &|| {});
    assert_eq!(outcome.status, 0);
}
