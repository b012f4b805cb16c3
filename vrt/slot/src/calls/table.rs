//! The table of the libc calls that are interposed in front of libc's, each with its meaning.
//!
//! `= meaning(arguments)` names what is done around libc's own function: see the modules of
//! [`external`](crate::external) for what ranks hold outside their slots, [`answers`](super::answers) for results of
//! libc in memory of the process, [`process_wide`] for state that a process keeps. Variable arguments (of `open`,
//! `fcntl`, `mremap`, `clone`) are passed like the fixed ones that are declared here. `or` gives the return value if
//! libc does not have the function: programs may look it up by name, and find this one.
//!
//! Functions that need more are in `hooks` (the allocator), `exit_guard` (`exit`), `answers`
//! (`strtok`), `external::threads` (`pthread_create`), `external::processes` (`vfork`) and
//! `external::system_calls` (`syscall`).

use std::ffi::{c_char, c_int, c_uint, c_ulong, c_void};

use libc::{FILE, mode_t, off_t, pid_t, size_t, ssize_t};

use crate::calls::answers::*;
use crate::calls::fork;
use crate::external::descriptors::*;
use crate::external::handles::{acquires, acquires_at, acquires_from, loads, releases};
use crate::external::locks::*;
use crate::external::mappings::*;
use crate::external::processes::*;
use crate::external::system_calls::two;
use crate::external::threads::lets_go_of;
use crate::heap_word::in_rank;
use crate::held::Kind;
use crate::posix::errno::of_process;
use crate::posix::interpose::{InFront, Real, c_name, process_wide};
use crate::posix::{folders, image_thread, signals, timers};
use crate::run::own_thread_locals::destroys_thread_local;
use crate::run::thread::is_rank as is_thread;

/// The functions of this crate that are interposed in front of libc's, for code that binds programs
/// to them.
pub fn in_front() -> impl Iterator<Item = &'static InFront> {
    macro_rules! functions {
        ($meaning:literal: $($module:ident::$name:ident),*) => {
            &[$(InFront {
                name: stringify!($name),
                meaning: $meaning,
                address: crate::calls::$module::$name as *const (),
            }),*]
        };
    }
    static MEMORY: &[InFront] = functions!(
        "allocates": hooks::malloc, hooks::calloc, hooks::realloc, hooks::reallocarray, hooks::free,
        hooks::memalign, hooks::posix_memalign, hooks::aligned_alloc, hooks::valloc, hooks::pvalloc,
        hooks::malloc_usable_size
    );
    static ANSWERS: &[InFront] = functions!("answers": answers::strtok);
    static OTHERS: &[InFront] = &[
        InFront { name: "vfork", meaning: "is_refused", address: vfork as *const () },
        InFront {
            name: "pthread_create",
            meaning: "starts_thread",
            address: crate::external::threads::pthread_create as *const (),
        },
        InFront {
            name: "thrd_create",
            meaning: "starts_thread",
            address: crate::external::threads::thrd_create as *const (),
        },
    ];
    TABLE.iter().chain(MEMORY).chain(ANSWERS).chain(OTHERS)
}

/// The replacement for a libc function that only ranks with images use.
pub fn for_images(name: &str) -> Option<*const ()> {
    image_thread::provided(name)
        .or_else(|| signals::provided(name))
        .or_else(|| folders::provided(name))
        .or_else(|| timers::provided(name))
        .or_else(|| fork::provided(name))
}

macro_rules! calls {
    ($(
        fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)?
            = $meaning:ident($($what:expr),*) $(or $missing:expr)?;
    )*) => {$(
        #[doc = concat!("C `", stringify!($name), "`: ", stringify!($meaning), ".")]
        ///
        /// # Safety
        /// As in C.
        #[cfg_attr(not(miri), unsafe(no_mangle))]
        pub(crate) unsafe extern "C" fn $name($($arg: $ty),*) $(-> $ret)? {
            static REAL: Real = Real::new(c_name(concat!(stringify!($name), "\0")));
            type Function = unsafe extern "C" fn($($ty),*) $(-> $ret)?;
            $(
                if !REAL.exists() {
                    return $missing;
                }
            )?
            // SAFETY: S4; and so what is done around it may rely on C's contract, too.
            #[allow(unused_unsafe, reason = "not every meaning is unsafe")]
            unsafe {
                $meaning(
                    $($what,)*
                    || std::mem::transmute::<*mut c_void, Function>(REAL.get())($($arg),*),
                )
            }
        }
    )*
        /// The calls of the table: name, meaning, and the function here.
        pub(crate) const TABLE: &[InFront] = &[$(
            InFront {
                name: stringify!($name),
                meaning: stringify!($meaning),
                address: $name as *const (),
            },
        )*];
    };
}

type Mutex = *mut libc::pthread_mutex_t;
type RwLock = *mut libc::pthread_rwlock_t;
type Spin = *mut libc::pthread_spinlock_t;
type Time = *const libc::timespec;
type SocketAddress = *mut libc::sockaddr;
type Text = *const c_char;

/// The functions of a user-defined stream.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Cookie([usize; 4]);

/// The lists of libc with one position for the whole process.
const USERS: usize = 1;
const GROUPS: usize = 2;

calls! {
    // Descriptors.
    fn open(path: Text, flags: c_int, mode: mode_t) -> c_int = opens_file();
    fn open64(path: Text, flags: c_int, mode: mode_t) -> c_int = opens_file();
    fn openat(at: c_int, path: Text, flags: c_int, mode: mode_t) -> c_int = opens_file();
    fn openat64(at: c_int, path: Text, flags: c_int, mode: mode_t) -> c_int = opens_file();
    fn __open_2(path: Text, flags: c_int) -> c_int = opens_file();
    fn __open64_2(path: Text, flags: c_int) -> c_int = opens_file();
    fn __openat_2(at: c_int, path: Text, flags: c_int) -> c_int = opens_file();
    fn __openat64_2(at: c_int, path: Text, flags: c_int) -> c_int = opens_file();
    fn creat(path: Text, mode: mode_t) -> c_int = opens_file();
    fn creat64(path: Text, mode: mode_t) -> c_int = opens_file();
    fn open_by_handle_at(mount: c_int, handle: *mut c_void, flags: c_int) -> c_int = opens();
    fn shm_open(name: Text, flags: c_int, mode: mode_t) -> c_int = opens_file();
    fn mq_open(name: Text, flags: c_int, mode: mode_t, attributes: *mut c_void) -> c_int = opens();
    fn mkstemp(template: *mut c_char) -> c_int = opens_file();
    fn mkstemp64(template: *mut c_char) -> c_int = opens_file();
    fn mkostemp(template: *mut c_char, flags: c_int) -> c_int = opens_file();
    fn mkostemp64(template: *mut c_char, flags: c_int) -> c_int = opens_file();
    fn mkstemps(template: *mut c_char, suffix: c_int) -> c_int = opens_file();
    fn mkstemps64(template: *mut c_char, suffix: c_int) -> c_int = opens_file();
    fn mkostemps(template: *mut c_char, suffix: c_int, flags: c_int) -> c_int = opens_file();
    fn mkostemps64(template: *mut c_char, suffix: c_int, flags: c_int) -> c_int = opens_file();
    fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int = opens_file();
    fn accept(fd: c_int, name: SocketAddress, len: *mut libc::socklen_t) -> c_int = opens_file();
    fn accept4(fd: c_int, name: SocketAddress, len: *mut libc::socklen_t, flags: c_int) -> c_int
        = opens_file();
    fn dup(fd: c_int) -> c_int = opens_file();
    fn eventfd(value: c_uint, flags: c_int) -> c_int = opens();
    fn epoll_create(size: c_int) -> c_int = opens();
    fn epoll_create1(flags: c_int) -> c_int = opens();
    fn timerfd_create(clock: c_int, flags: c_int) -> c_int = opens();
    fn memfd_create(name: Text, flags: c_uint) -> c_int = opens_file();
    fn inotify_init() -> c_int = opens();
    fn inotify_init1(flags: c_int) -> c_int = opens();
    fn fanotify_init(flags: c_uint, events: c_uint) -> c_int = opens();
    fn pidfd_open(process: pid_t, flags: c_uint) -> c_int = opens() or no_such_call();
    fn pidfd_getfd(process: c_int, fd: c_int, flags: c_uint) -> c_int = opens() or no_such_call();
    fn fsopen(name: Text, flags: c_uint) -> c_int = opens() or no_such_call();
    fn fsmount(fd: c_int, flags: c_uint, attributes: c_uint) -> c_int = opens() or no_such_call();
    fn fspick(at: c_int, path: Text, flags: c_uint) -> c_int = opens() or no_such_call();
    fn open_tree(at: c_int, path: Text, flags: c_uint) -> c_int = opens() or no_such_call();
    fn posix_openpt(flags: c_int) -> c_int = opens();
    fn getpt() -> c_int = opens();
    fn signalfd(fd: c_int, mask: *const libc::sigset_t, flags: c_int) -> c_int = opens_if(fd == -1);
    fn fcntl(fd: c_int, command: c_int, argument: usize) -> c_int = controls(fd, command, argument);
    fn fcntl64(fd: c_int, command: c_int, argument: usize) -> c_int = controls(fd, command, argument);
    fn pipe(ends: *mut c_int) -> c_int = opens_files_at(two(ends as usize));
    fn pipe2(ends: *mut c_int, flags: c_int) -> c_int = opens_files_at(two(ends as usize));
    fn socketpair(domain: c_int, kind: c_int, protocol: c_int, ends: *mut c_int) -> c_int
        = opens_files_at(two(ends as usize));
    fn openpty(
        one: *mut c_int,
        other: *mut c_int,
        name: *mut c_char,
        terminal: *const c_void,
        window: *const c_void,
    ) -> c_int = opens_at([one, other]);
    fn recvmsg(fd: c_int, message: *mut libc::msghdr, flags: c_int) -> ssize_t = receives(message);
    fn recvmmsg(
        fd: c_int,
        messages: *mut libc::mmsghdr,
        count: c_uint,
        flags: c_int,
        time: *mut libc::timespec,
    ) -> c_int = receives_many(messages);
    fn ioctl(fd: c_int, request: c_ulong, argument: usize) -> c_int = requests(fd, request);
    fn lockf(fd: c_int, command: c_int, len: off_t) -> c_int = locks_file();
    fn lockf64(fd: c_int, command: c_int, len: off_t) -> c_int = locks_file();
    fn dup2(old: c_int, new: c_int) -> c_int = duplicates_onto(old, new);
    fn dup3(old: c_int, new: c_int, flags: c_int) -> c_int = duplicates_onto(old, new);
    fn close(fd: c_int) -> c_int = closes(fd);
    fn mq_close(fd: c_int) -> c_int = closes(fd);
    fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int
        = closes_range(first, last, flags as c_uint) or no_such_call();
    fn closefrom(first: c_int) = closes_from(first);

    // Streams and directories.
    fn fopen(path: Text, mode: Text) -> *mut FILE = opens_file_stream(mode);
    fn fopen64(path: Text, mode: Text) -> *mut FILE = opens_file_stream(mode);
    fn popen(command: Text, mode: Text) -> *mut FILE = opens_pipe();
    fn tmpfile() -> *mut FILE = opens_file_stream(c"w+".as_ptr());
    fn tmpfile64() -> *mut FILE = opens_file_stream(c"w+".as_ptr());
    fn setmntent(path: Text, mode: Text) -> *mut FILE = opens_stream();
    fn fmemopen(buffer: *mut c_void, size: size_t, mode: Text) -> *mut FILE = adopts_by_stream();
    fn open_memstream(place: *mut *mut c_char, size: *mut size_t) -> *mut FILE
        = adopts_by_stream();
    fn open_wmemstream(place: *mut *mut libc::wchar_t, size: *mut size_t) -> *mut FILE
        = adopts_by_stream();
    fn fopencookie(cookie: *mut c_void, mode: Text, functions: Cookie) -> *mut FILE
        = adopts_by_stream();
    fn fdopen(fd: c_int, mode: Text) -> *mut FILE = adopts_by_stream();
    fn freopen(path: Text, mode: Text, stream: *mut FILE) -> *mut FILE = reopens_stream(stream);
    fn freopen64(path: Text, mode: Text, stream: *mut FILE) -> *mut FILE = reopens_stream(stream);
    fn fclose(stream: *mut FILE) -> c_int = closes_stream(stream);
    fn pclose(stream: *mut FILE) -> c_int = closes_stream(stream);
    fn endmntent(stream: *mut FILE) -> c_int = closes_stream(stream);
    fn opendir(path: Text) -> *mut libc::DIR = opens_directory();
    fn closedir(directory: *mut libc::DIR) -> c_int = closes_directory(directory);

    // Memory.
    fn mmap(at: *mut c_void, len: usize, prot: c_int, flags: c_int, fd: c_int, from: off_t)
        -> *mut c_void = maps(len);
    fn mmap64(at: *mut c_void, len: usize, prot: c_int, flags: c_int, fd: c_int, from: off_t)
        -> *mut c_void = maps(len);
    fn mremap(at: *mut c_void, old: usize, new: usize, flags: c_int, to: *mut c_void)
        -> *mut c_void = remaps(at, (old, new), flags);
    fn munmap(at: *mut c_void, len: usize) -> c_int = unmaps(at, len);
    fn mprotect(at: *mut c_void, len: usize, protection: c_int) -> c_int
        = protects(at, len, protection);
    fn pkey_mprotect(at: *mut c_void, len: usize, protection: c_int, key: c_int) -> c_int
        = protects_with_key(at, len, protection, key) or no_such_call();
    fn shmat(segment: c_int, at: *const c_void, flags: c_int) -> *mut c_void = attaches();
    fn shmdt(at: *const c_void) -> c_int = detaches(at);

    // Processes.
    fn posix_spawn(
        child: *mut pid_t,
        path: Text,
        actions: *const c_void,
        attributes: *const c_void,
        arguments: *const *mut c_char,
        environment: *const *mut c_char,
    ) -> c_int = starts_child(child);
    fn posix_spawnp(
        child: *mut pid_t,
        file: Text,
        actions: *const c_void,
        attributes: *const c_void,
        arguments: *const *mut c_char,
        environment: *const *mut c_char,
    ) -> c_int = starts_child(child);
    fn pidfd_spawn(
        child: *mut c_int,
        path: Text,
        actions: *const c_void,
        attributes: *const c_void,
        arguments: *const *mut c_char,
        environment: *const *mut c_char,
    ) -> c_int = opens_at([child]) or libc::ENOSYS;
    fn pidfd_spawnp(
        child: *mut c_int,
        file: Text,
        actions: *const c_void,
        attributes: *const c_void,
        arguments: *const *mut c_char,
        environment: *const *mut c_char,
    ) -> c_int = opens_at([child]) or libc::ENOSYS;
    fn fork() -> pid_t = copies("fork()");
    fn _Fork() -> pid_t = copies("_Fork()") or no_such_call();
    fn daemon(stay: c_int, keep: c_int) -> c_int = is_refused("daemon()");
    fn forkpty(
        fd: *mut c_int,
        name: *mut c_char,
        terminal: *const c_void,
        window: *const c_void,
    ) -> pid_t = copies("forkpty()");
    fn clone(
        start: *mut c_void,
        stack: *mut c_void,
        flags: c_int,
        argument: *mut c_void,
        parent: *mut pid_t,
        storage: *mut c_void,
        child: *mut pid_t,
    ) -> c_int = is_refused("clone()");

    // Locks.
    fn pthread_mutex_lock(mutex: Mutex) -> c_int = locks(mutex);
    fn pthread_mutex_trylock(mutex: Mutex) -> c_int = locks(mutex);
    fn pthread_mutex_timedlock(mutex: Mutex, until: Time) -> c_int = locks(mutex);
    fn pthread_mutex_clocklock(mutex: Mutex, clock: c_int, until: Time) -> c_int = locks(mutex);
    fn pthread_mutex_unlock(mutex: Mutex) -> c_int = unlocks(mutex);
    fn pthread_rwlock_rdlock(lock: RwLock) -> c_int = locks(lock);
    fn pthread_rwlock_wrlock(lock: RwLock) -> c_int = locks(lock);
    fn pthread_rwlock_tryrdlock(lock: RwLock) -> c_int = locks(lock);
    fn pthread_rwlock_trywrlock(lock: RwLock) -> c_int = locks(lock);
    fn pthread_rwlock_timedrdlock(lock: RwLock, until: Time) -> c_int = locks(lock);
    fn pthread_rwlock_timedwrlock(lock: RwLock, until: Time) -> c_int = locks(lock);
    fn pthread_rwlock_clockrdlock(lock: RwLock, clock: c_int, until: Time) -> c_int = locks(lock);
    fn pthread_rwlock_clockwrlock(lock: RwLock, clock: c_int, until: Time) -> c_int = locks(lock);
    fn pthread_rwlock_unlock(lock: RwLock) -> c_int = unlocks(lock);
    fn pthread_spin_lock(lock: Spin) -> c_int = locks(lock);
    fn pthread_spin_trylock(lock: Spin) -> c_int = locks(lock);
    fn pthread_spin_unlock(lock: Spin) -> c_int = unlocks(lock);
    fn mtx_lock(mutex: Mutex) -> c_int = locks(mutex);
    fn mtx_trylock(mutex: Mutex) -> c_int = locks(mutex);
    fn mtx_timedlock(mutex: Mutex, until: Time) -> c_int = locks(mutex);
    fn mtx_unlock(mutex: Mutex) -> c_int = unlocks(mutex);
    fn flockfile(stream: *mut FILE) = locks_surely(stream);
    fn ftrylockfile(stream: *mut FILE) -> c_int = locks(stream);
    fn funlockfile(stream: *mut FILE) = unlocks_surely(stream);

    // Threads; `pthread_join` is in `blocking`.
    fn pthread_detach(thread: libc::pthread_t) -> c_int = lets_go_of(thread);
    fn pthread_tryjoin_np(thread: libc::pthread_t, result: *mut *mut c_void) -> c_int
        = lets_go_of(thread);
    fn pthread_timedjoin_np(thread: libc::pthread_t, result: *mut *mut c_void, until: Time) -> c_int
        = lets_go_of(thread);
    fn pthread_clockjoin_np(
        thread: libc::pthread_t,
        result: *mut *mut c_void,
        clock: c_int,
        until: Time,
    ) -> c_int = lets_go_of(thread);
    fn thrd_join(thread: libc::pthread_t, result: *mut c_int) -> c_int = lets_go_of(thread);
    fn thrd_detach(thread: libc::pthread_t) -> c_int = lets_go_of(thread);
    fn sigaltstack(new: *const libc::stack_t, old: *mut libc::stack_t) -> c_int
        = keeps_signal_stack(new, old);

    // Handles of libc.
    fn dlopen(file: Text, flags: c_int) -> *mut c_void = loads(file);
    fn dlmopen(list: isize, file: Text, flags: c_int) -> *mut c_void = loads(file);
    fn dlclose(handle: *mut c_void) -> c_int = releases(Kind::Library, handle);
    fn iconv_open(to: Text, from: Text) -> *mut c_void = acquires(Kind::Conversion);
    fn iconv_close(conversion: *mut c_void) -> c_int = releases(Kind::Conversion, conversion);
    fn newlocale(mask: c_int, name: Text, base: *mut c_void) -> *mut c_void
        = acquires_from(Kind::Locale, base);
    fn duplocale(locale: *mut c_void) -> *mut c_void = acquires(Kind::Locale);
    fn freelocale(locale: *mut c_void) = releases(Kind::Locale, locale);
    fn catopen(name: Text, flags: c_int) -> *mut c_void = acquires(Kind::Catalogue);
    fn catclose(catalogue: *mut c_void) -> c_int = releases(Kind::Catalogue, catalogue);
    fn fts_open(paths: *const *mut c_char, options: c_int, order: *mut c_void) -> *mut c_void
        = acquires(Kind::Directories);
    fn fts_close(walk: *mut c_void) -> c_int = releases(Kind::Directories, walk);
    fn sem_open(name: Text, flags: c_int, mode: mode_t, value: c_uint) -> *mut c_void
        = acquires(Kind::Semaphore);
    fn sem_close(semaphore: *mut c_void) -> c_int = releases(Kind::Semaphore, semaphore);
    fn timer_create(clock: c_int, event: *mut c_void, timer: *mut *mut c_void) -> c_int
        = acquires_at(Kind::Timer, timer);
    fn timer_delete(timer: *mut c_void) -> c_int = releases(Kind::Timer, timer);
    fn getaddrinfo(
        node: Text,
        service: Text,
        hints: *const c_void,
        out: *mut *mut c_void,
    ) -> c_int = acquires_at(Kind::Addresses, out);
    fn freeaddrinfo(list: *mut c_void) = releases(Kind::Addresses, list);

    // Answers in memory of the process.
    fn localtime(time: *const libc::time_t) -> *mut libc::tm = answers(("localtime", 0));
    fn gmtime(time: *const libc::time_t) -> *mut libc::tm = answers(("gmtime", 0));
    fn asctime(time: *const libc::tm) -> *mut c_char = answers(("asctime", 0));
    fn ctime(time: *const libc::time_t) -> *mut c_char = answers(("ctime", 0));
    fn strerror(error: c_int) -> *mut c_char = answers(("strerror", error as usize));
    fn strsignal(signal: c_int) -> *mut c_char = answers(("strsignal", signal as usize));
    fn dlerror() -> *mut c_char = answers(("dlerror", 0));
    fn setlocale(category: c_int, locale: Text) -> *mut c_char
        = answers(("setlocale", category as usize));
    fn inet_ntoa(address: u32) -> *mut c_char = answers(("inet_ntoa", 0));
    fn ttyname(fd: c_int) -> *mut c_char = answers(("ttyname", 0));
    fn ptsname(fd: c_int) -> *mut c_char = answers(("ptsname", 0));
    fn getlogin() -> *mut c_char = answers(("getlogin", 0));
    fn ctermid(buffer: *mut c_char) -> *mut c_char = answers_unless_given(buffer, "ctermid");
    fn tmpnam(buffer: *mut c_char) -> *mut c_char = answers_unless_given(buffer, "tmpnam");
    fn getpwnam(name: Text) -> *mut libc::passwd = answers(("getpwnam", 0));
    fn getpwuid(user: libc::uid_t) -> *mut libc::passwd = answers(("getpwuid", 0));
    fn getgrnam(name: Text) -> *mut libc::group = answers(("getgrnam", 0));
    fn getgrgid(group: libc::gid_t) -> *mut libc::group = answers(("getgrgid", 0));
    fn getpwent() -> *mut libc::passwd = reads_list(USERS, "getpwent");
    fn setpwent() = ends_list(USERS);
    fn endpwent() = ends_list(USERS);
    fn getgrent() -> *mut libc::group = reads_list(GROUPS, "getgrent");
    fn setgrent() = ends_list(GROUPS);
    fn endgrent() = ends_list(GROUPS);
    fn gethostbyname(name: Text) -> *mut libc::hostent = answers(("gethostbyname", 0));
    fn gethostbyname2(name: Text, family: c_int) -> *mut libc::hostent
        = answers(("gethostbyname2", 0));
    fn gethostbyaddr(address: *const c_void, len: libc::socklen_t, family: c_int)
        -> *mut libc::hostent = answers(("gethostbyaddr", 0));
    fn getservbyname(name: Text, protocol: Text) -> *mut libc::servent
        = answers(("getservbyname", 0));
    fn getservbyport(port: c_int, protocol: Text) -> *mut libc::servent
        = answers(("getservbyport", 0));
    fn getprotobyname(name: Text) -> *mut libc::protoent = answers(("getprotobyname", 0));
    fn getprotobynumber(protocol: c_int) -> *mut libc::protoent
        = answers(("getprotobynumber", 0));

    // What the process keeps: environment, time zone, locale, destructors of thread-locals (but of a
    // rank's own).
    fn setenv(name: Text, value: Text, overwrite: c_int) -> c_int = process_wide();
    fn unsetenv(name: Text) -> c_int = process_wide();
    fn putenv(string: *mut c_char) -> c_int = process_wide();
    fn clearenv() -> c_int = process_wide();
    fn tzset() = process_wide();
    fn localtime_r(time: *const libc::time_t, out: *mut libc::tm) -> *mut libc::tm
        = process_wide();
    fn mktime(time: *mut libc::tm) -> libc::time_t = process_wide();
    fn __cxa_thread_atexit_impl(
        destructor: unsafe extern "C" fn(*mut c_void),
        object: *mut c_void,
        library: *mut c_void,
    ) -> c_int = destroys_thread_local(destructor, object);
}

/// The result of a call that libc does not have.
fn no_such_call() -> c_int {
    of_process().set(libc::ENOSYS);
    -1
}

/// `sigaltstack`: a rank does not give its thread another signal stack. One in the rank's memory would still be used by
/// the thread after the rank has left; the PE's is large enough for backtraces, too.
///
/// # Safety
/// As in C.
unsafe fn keeps_signal_stack(
    new: *const libc::stack_t,
    old: *mut libc::stack_t,
    real: impl FnOnce() -> c_int,
) -> c_int {
    if new.is_null() || !in_rank() || is_thread() {
        return real();
    }
    // It only asks, so it does not come back here.
    // SAFETY: `old` is null or writable, by C's contract.
    unsafe { libc::sigaltstack(std::ptr::null(), old) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::TABLE;

    #[test]
    fn each_call_stands_in_the_table_once() {
        let names: BTreeSet<&str> = TABLE.iter().map(|call| call.name).collect();
        assert_eq!(names.len(), TABLE.len());
        let means = |name| TABLE.iter().find(|call| call.name == name).map(|call| call.meaning);
        assert_eq!(
            (means("fopen"), means("dup2")),
            (Some("opens_file_stream"), Some("duplicates_onto"))
        );
    }
}
