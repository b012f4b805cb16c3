//! The things that a rank can hold and that cannot move with it: how each is taken, and let go of.

use std::ffi::{c_int, c_long, c_void};
use std::mem::MaybeUninit;
use std::process::{Command, Stdio};
use std::ptr::{null, null_mut};

/// What lets go of a thing.
pub(crate) type Release = Box<dyn FnOnce() + Send>;
/// A thing: its name, words of the reason, and how it is taken.
pub(crate) type Thing = (&'static str, &'static str, fn() -> Release);

const DESCRIPTOR: &str = "descriptor open";
const STREAM: &str = "stream of C";
const MEMORY: &str = "mmap";
const PROTECTION: &str = "mprotect";
const CHILD: &str = "not waited";
pub(crate) const LOCK: &str = "lock";

unsafe extern "C" {
    // What takes numbers alone, and neither closes nor replaces anything.
    safe fn dup(fd: c_int) -> c_int;
    safe fn eventfd(count: libc::c_uint, flags: c_int) -> c_int;
    safe fn epoll_create(size: c_int) -> c_int;
    safe fn epoll_create1(flags: c_int) -> c_int;
    safe fn timerfd_create(clock: c_int, flags: c_int) -> c_int;
    safe fn inotify_init() -> c_int;
    safe fn posix_openpt(flags: c_int) -> c_int;
    safe fn getpt() -> c_int;
    fn closefrom(first: c_int);
    fn fts_open(paths: *const *mut libc::c_char, options: c_int, order: usize) -> *mut c_void;
    fn fts_close(walk: *mut c_void) -> c_int;
    fn mtx_init(mutex: *mut c_void, kind: c_int) -> c_int;
    fn mtx_lock(mutex: *mut c_void) -> c_int;
    fn mtx_unlock(mutex: *mut c_void) -> c_int;
    fn fopencookie(cookie: *mut c_void, mode: *const libc::c_char, f: Cookie) -> *mut libc::FILE;
    fn flockfile(stream: *mut libc::FILE);
    fn funlockfile(stream: *mut libc::FILE);
    static stdout: *mut libc::FILE;
}

/// The functions of a stream.
#[repr(C)]
struct Cookie([usize; 4]);

/// Closes a descriptor that a call has returned.
fn descriptor(fd: c_int) -> Release {
    assert!(fd >= 0, "{}", std::io::Error::last_os_error());
    // SAFETY: ours.
    Box::new(move || assert_eq!(unsafe { libc::close(fd) }, 0))
}

fn descriptors(fds: [c_int; 2]) -> Release {
    let [one, other] = fds.map(descriptor);
    Box::new(move || {
        one();
        other();
    })
}

/// Closes a stream.
fn stream(file: *mut libc::FILE) -> Release {
    assert!(!file.is_null(), "{}", std::io::Error::last_os_error());
    let file = file as usize;
    // SAFETY: ours.
    Box::new(move || assert_eq!(unsafe { libc::fclose(file as *mut _) }, 0))
}

/// Releases a handle.
fn handle(handle: *mut c_void, release: impl FnOnce(*mut c_void) + Send + 'static) -> Release {
    assert!(!handle.is_null() && handle as isize != -1, "{}", std::io::Error::last_os_error());
    let handle = handle as usize;
    Box::new(move || release(handle as *mut c_void))
}

fn mapped(len: usize) -> *mut c_void {
    let (protection, flags) = (libc::PROT_READ, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: new memory.
    let at = unsafe { libc::mmap(null_mut(), len, protection, flags, -1, 0) };
    assert_ne!(at, libc::MAP_FAILED);
    at
}

fn unmap(at: *mut c_void, len: usize) -> Release {
    let at = at as usize;
    // SAFETY: ours.
    Box::new(move || assert_eq!(unsafe { libc::munmap(at as *mut c_void, len) }, 0))
}

/// Pages of the rank's heap.
fn pages(count: usize) -> *mut u8 {
    // SAFETY: the layout has a size.
    let at = unsafe { std::alloc::alloc(layout_of_pages(count)) };
    assert!(!at.is_null(), "no memory");
    at
}

fn layout_of_pages(count: usize) -> std::alloc::Layout {
    std::alloc::Layout::from_size_align(count * 4096, 4096).expect("a power of two")
}

/// Lets pages be written and read again, in so many steps, and frees them.
fn unprotect(at: *mut u8, count: usize, steps: usize) -> Release {
    let at = at as usize;
    Box::new(move || {
        let len = count * 4096 / steps;
        for step in 0..steps {
            let part = (at + step * len) as *mut c_void;
            // SAFETY: pages of ours.
            unsafe { assert_eq!(libc::mprotect(part, len, libc::PROT_READ | libc::PROT_WRITE), 0) };
        }
        // SAFETY: made by `pages`, of as many, and nobody refers into them.
        unsafe { std::alloc::dealloc(at as *mut u8, layout_of_pages(count)) };
    })
}

/// A mutex of the process.
struct Shared<T>(std::cell::UnsafeCell<T>);
// SAFETY: only libc's functions, which synchronise, use what is in it.
unsafe impl<T> Sync for Shared<T> {}

static MUTEX: Shared<libc::pthread_mutex_t> =
    Shared(std::cell::UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER));
static RWLOCK: Shared<libc::pthread_rwlock_t> =
    Shared(std::cell::UnsafeCell::new(libc::PTHREAD_RWLOCK_INITIALIZER));
static SPIN: Shared<c_int> = Shared(std::cell::UnsafeCell::new(1));
static MANY: [Shared<libc::pthread_mutex_t>; 40] =
    [const { Shared(std::cell::UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER)) }; 40];

/// Takes a lock by a call; gives it back by another.
macro_rules! lock {
    ($lock:expr, $take:ident, $release:ident) => {{
        // SAFETY: a lock that lives as long as the process.
        assert_eq!(unsafe { libc::$take($lock) }, 0);
        // SAFETY: it is locked.
        Box::new(|| assert_eq!(unsafe { libc::$release($lock) }, 0))
    }};
}

const FILE: *const libc::c_char = c"/proc/self/exe".as_ptr();
const READ: *const libc::c_char = c"r".as_ptr();

/// A path for `mkstemp` and its kind.
fn template(suffix: &str) -> Vec<u8> {
    let mut path =
        std::env::temp_dir().join("vrt-holds-XXXXXX").into_os_string().into_encoded_bytes();
    path.extend_from_slice(suffix.as_bytes());
    path.push(0);
    path
}

fn temporary(suffix: &str, make: impl FnOnce(*mut libc::c_char) -> c_int) -> Release {
    let mut path = template(suffix);
    let fd = make(path.as_mut_ptr().cast());
    // SAFETY: a path that ends with NUL.
    unsafe { libc::unlink(path.as_ptr().cast()) };
    descriptor(fd)
}

/// A system call by number that returns a descriptor.
fn by_number(number: c_long, a: usize, b: usize, c: usize, d: usize) -> Release {
    // SAFETY: calls that take words and valid pointers, and make a descriptor.
    descriptor(unsafe { libc::syscall(number, a, b, c, d) } as c_int)
}

fn started(program: &str) -> std::process::Child {
    let mut command = Command::new(program);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("it starts")
}

fn spawned() -> libc::pid_t {
    let arguments = [c"true".as_ptr().cast_mut(), null_mut()];
    let mut child = 0;
    // SAFETY: all strings and lists end.
    let status = unsafe {
        libc::posix_spawn(
            &mut child,
            c"/bin/true".as_ptr(),
            null(),
            null(),
            arguments.as_ptr(),
            [null_mut()].as_ptr(),
        )
    };
    assert_eq!(status, 0);
    child
}

/// Waits by a call for a child that has been spawned.
fn child(wait: impl FnOnce(libc::pid_t) + Send + 'static) -> Release {
    let child = spawned();
    Box::new(move || wait(child))
}

pub(crate) const THINGS: &[Thing] = &[
    // SAFETY: a path that ends with NUL, and no mode to give, as nothing is created.
    ("open", DESCRIPTOR, || unsafe { descriptor(libc::open(FILE, 0)) }),
    ("File", DESCRIPTOR, || {
        let file = std::fs::File::open("/proc/self/exe").expect("it opens");
        Box::new(move || drop(file))
    }),
    // SAFETY: a path that ends with NUL; no mode to give.
    ("openat", DESCRIPTOR, || unsafe { descriptor(libc::openat(libc::AT_FDCWD, FILE, 0)) }),
    ("socketpair", DESCRIPTOR, || {
        let pair = std::os::unix::net::UnixStream::pair().expect("it opens");
        Box::new(move || drop(pair))
    }),
    ("accept", DESCRIPTOR, || {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("it opens");
        let at = listener.local_addr().expect("it is bound");
        let client = std::net::TcpStream::connect(at).expect("it connects");
        let server = listener.accept().expect("it accepts");
        drop((listener, client));
        Box::new(move || drop(server))
    }),
    ("dup", DESCRIPTOR, || descriptor(dup(2))),
    // SAFETY: nothing is open at 90 that it would close.
    ("dup2", DESCRIPTOR, || unsafe { descriptor(libc::dup2(2, 90)) }),
    // SAFETY: nothing is open at 91 that it would close.
    ("dup3", DESCRIPTOR, || unsafe { descriptor(libc::dup3(2, 91, libc::O_CLOEXEC)) }),
    // SAFETY: what is closed by it is `fd`, opened here and known to nobody else.
    ("dup2 onto an open one", DESCRIPTOR, || unsafe {
        let fd = libc::open(FILE, 0);
        assert_eq!(libc::dup2(2, fd), fd);
        descriptor(fd)
    }),
    // SAFETY: standard input is nobody's here; `before` and `other` are made here, and each
    // closed once.
    ("dup2 onto standard input", DESCRIPTOR, || unsafe {
        let before = libc::dup(0);
        let other = libc::open(FILE, 0);
        libc::dup2(other, 0);
        libc::close(other);
        // To put it back leaves nothing.
        Box::new(move || {
            assert_eq!(libc::dup2(before, 0), 0);
            libc::close(before);
        })
    }),
    // SAFETY: this command takes a number and changes nothing that is open.
    ("F_DUPFD", DESCRIPTOR, || unsafe { descriptor(libc::fcntl(2, libc::F_DUPFD_CLOEXEC, 80)) }),
    // SAFETY: `limit` is a valid `rlimit` (numbers alone, so zeros are one) and outlives
    // both calls; nothing is open at so large a number.
    ("a large number", DESCRIPTOR, || unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit);
        limit.rlim_cur = limit.rlim_max;
        libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
        let number = if limit.rlim_max > 70_000 { 70_000 } else { 1000 };
        descriptor(libc::dup2(2, number))
    }),
    // SAFETY: `ends` has room for the two descriptors.
    ("pipe", DESCRIPTOR, || unsafe {
        let mut ends = [0; 2];
        assert_eq!(libc::pipe(ends.as_mut_ptr()), 0);
        descriptors(ends)
    }),
    ("eventfd", DESCRIPTOR, || descriptor(eventfd(0, 0))),
    ("epoll_create", DESCRIPTOR, || descriptor(epoll_create(1))),
    ("epoll_create1", DESCRIPTOR, || descriptor(epoll_create1(0))),
    ("timerfd_create", DESCRIPTOR, || descriptor(timerfd_create(1, 0))),
    // SAFETY: a name that ends with NUL.
    ("memfd_create", DESCRIPTOR, || unsafe { descriptor(libc::memfd_create(c"x".as_ptr(), 0)) }),
    ("inotify_init", DESCRIPTOR, || descriptor(inotify_init())),
    // SAFETY: `set` is made a set by `sigemptyset` before it is read, and outlives the
    // calls.
    ("signalfd", DESCRIPTOR, || unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        let fd = libc::signalfd(-1, &set, 0);
        // The same one, with other signals.
        assert_eq!(libc::signalfd(fd, &set, 0), fd);
        descriptor(fd)
    }),
    // SAFETY: a name that ends with NUL; a mode, as it is created.
    ("shm_open", DESCRIPTOR, || unsafe {
        let name = c"/vrt-holds".as_ptr();
        let fd = libc::shm_open(name, libc::O_CREAT | libc::O_RDWR, 0o600 as libc::mode_t);
        libc::shm_unlink(name);
        descriptor(fd)
    }),
    ("posix_openpt", DESCRIPTOR, || descriptor(posix_openpt(libc::O_RDWR))),
    ("getpt", DESCRIPTOR, || descriptor(getpt())),
    // SAFETY: both descriptors have a place; the rest may be null.
    ("openpty", DESCRIPTOR, || unsafe {
        let (mut one, mut other) = (0, 0);
        assert_eq!(libc::openpty(&mut one, &mut other, null_mut(), null_mut(), null_mut()), 0);
        descriptors([one, other])
    }),
    // SAFETY: `temporary` gives a template of its own that ends with NUL and may be written.
    ("mkstemp", DESCRIPTOR, || temporary("", |path| unsafe { libc::mkstemp(path) })),
    // SAFETY: as above, with a suffix of two bytes.
    ("mkostemps", DESCRIPTOR, || temporary(".x", |path| unsafe { libc::mkostemps(path, 2, 0) })),
    // SAFETY: it asks for nothing.
    ("SCM_RIGHTS", DESCRIPTOR, || unsafe { descriptor(received_descriptor()) }),
    // SAFETY: nothing is open at 95 but what was made here.
    ("close_range", DESCRIPTOR, || unsafe {
        let fd = libc::dup2(2, 95);
        assert_eq!(fd, 95);
        Box::new(|| assert_eq!(libc::close_range(95, 95, 0), 0))
    }),
    // SAFETY: `limit` is a valid `rlimit`; the last number that there can be is ours alone,
    // so nothing else is closed.
    ("closefrom", DESCRIPTOR, || unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit);
        let fd = limit.rlim_cur as c_int - 1;
        assert_eq!(libc::dup2(2, fd), fd);
        Box::new(move || closefrom(fd))
    }),
    ("by number: openat", DESCRIPTOR, || {
        by_number(libc::SYS_openat, libc::AT_FDCWD as usize, FILE as usize, 0, 0)
    }),
    ("by number: pidfd_open", DESCRIPTOR, || {
        by_number(libc::SYS_pidfd_open, std::process::id() as usize, 0, 0, 0)
    }),
    ("by number: memfd_create", DESCRIPTOR, || {
        by_number(libc::SYS_memfd_create, c"x".as_ptr() as usize, 0, 0, 0)
    }),
    // SAFETY: `fd` was made here, and is closed once.
    ("by number: close", DESCRIPTOR, || unsafe {
        let fd = libc::dup(2);
        Box::new(move || assert_eq!(libc::syscall(libc::SYS_close, fd), 0))
    }),
    ("by number: dup3", DESCRIPTOR, || by_number(libc::SYS_dup3, 2, 92, 0, 0)),
    // SAFETY: `ends` has room for the two descriptors that the call writes.
    ("by number: pipe2", DESCRIPTOR, || unsafe {
        let mut ends = [0; 2];
        assert_eq!(libc::syscall(libc::SYS_pipe2, ends.as_mut_ptr(), 0), 0);
        descriptors(ends)
    }),
    ("read_dir", DESCRIPTOR, || {
        let mut entries = std::fs::read_dir("/proc/self").expect("it opens");
        assert!(entries.next().is_some());
        Box::new(move || drop(entries))
    }),
    // SAFETY: the stream takes over `fd`, made here; it is closed once, by the closure that
    // alone knows it.
    ("fdopendir", DESCRIPTOR, || unsafe {
        let fd = libc::open(c"/proc/self".as_ptr(), libc::O_DIRECTORY);
        let directory = libc::fdopendir(fd) as usize;
        Box::new(move || assert_eq!(libc::closedir(directory as *mut _), 0))
    }),
    // SAFETY: strings that end with NUL.
    ("fopen", DESCRIPTOR, || unsafe { stream(libc::fopen(FILE, READ)) }),
    // SAFETY: the stream is ours; it is closed once, and nobody opens a descriptor between
    // that could take the number of the one closed here.
    ("fopen, its descriptor closed", STREAM, || unsafe {
        let file = libc::fopen(FILE, READ);
        libc::close(libc::fileno(file));
        let file = file as usize;
        Box::new(move || assert_eq!(libc::fclose(file as *mut _), -1))
    }),
    // SAFETY: strings that end with NUL; the stream takes over the descriptor, made here.
    ("fdopen", DESCRIPTOR, || unsafe { stream(libc::fdopen(libc::open(FILE, 0), READ)) }),
    // SAFETY: strings that end with NUL; `file` is ours, and not used after `freopen` has
    // taken it.
    ("freopen", DESCRIPTOR, || unsafe {
        let file = libc::fopen(FILE, READ);
        stream(libc::freopen(c"/proc/self/maps".as_ptr(), READ, file))
    }),
    // SAFETY: as above; that it fails closes the stream, too, so nothing is left to close.
    ("freopen that fails", DESCRIPTOR, || unsafe {
        let file = libc::fopen(FILE, READ) as usize;
        Box::new(move || {
            let none = c"/nowhere/at/all".as_ptr();
            assert!(libc::freopen(none, READ, file as *mut _).is_null());
        })
    }),
    // SAFETY: it takes nothing.
    ("tmpfile", DESCRIPTOR, || unsafe { stream(libc::tmpfile()) }),
    // SAFETY: strings that end with NUL; the stream is closed once, by the closure that
    // alone knows it.
    ("popen", DESCRIPTOR, || unsafe {
        let file = libc::popen(c"true".as_ptr(), READ) as usize;
        assert_ne!(file, 0);
        Box::new(move || assert_eq!(libc::pclose(file as *mut _), 0))
    }),
    // SAFETY: without a buffer it makes one; the mode ends with NUL.
    ("fmemopen", STREAM, || unsafe { stream(libc::fmemopen(null_mut(), 100, c"w+".as_ptr())) }),
    // SAFETY: without functions there is none to call with the cookie, which may be null;
    // the mode ends with NUL.
    ("fopencookie", STREAM, || unsafe {
        stream(fopencookie(null_mut(), c"w".as_ptr(), Cookie([0; 4])))
    }),
    ("mmap", MEMORY, || unmap(mapped(8192), 8192)),
    ("mmap by a thread", MEMORY, || {
        let mapped = std::thread::spawn(|| mapped(8192) as usize).join().expect("it maps");
        unmap(mapped as *mut c_void, 8192)
    }),
    // SAFETY: new memory at a place that the system chooses; it is nobody's.
    ("mmap64", MEMORY, || unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        unmap(libc::mmap64(null_mut(), 8192, 0, flags, -1, 0), 8192)
    }),
    // SAFETY: both mappings are made here and nobody refers into them; the old place is not
    // used after.
    ("mremap to another place", MEMORY, || unsafe {
        let (at, neighbour) = (mapped(8192), mapped(8192));
        let moved = libc::mremap(at, 8192, 1 << 24, libc::MREMAP_MAYMOVE);
        assert_ne!(moved, libc::MAP_FAILED);
        assert_eq!(libc::munmap(neighbour, 8192), 0);
        unmap(moved, 1 << 24)
    }),
    // SAFETY: nobody refers into the mapping, made here; its end is not used after.
    ("mremap that shrinks", MEMORY, || unsafe {
        let at = mapped(1 << 20);
        unmap(libc::mremap(at, 1 << 20, 4096, 0), 4096)
    }),
    // SAFETY: all parts are of the mapping made here, into which nobody refers; each is
    // unmapped once.
    ("munmap of the middle", MEMORY, || unsafe {
        let at = mapped(5 * 4096);
        assert_eq!(libc::munmap(at.add(2 * 4096), 4096), 0);
        let (first, second) = (unmap(at, 2 * 4096), unmap(at.add(3 * 4096), 2 * 4096));
        Box::new(|| {
            first();
            second();
        })
    }),
    // SAFETY: as above.
    ("munmap in two steps", MEMORY, || unsafe {
        let at = mapped(8192);
        assert_eq!(libc::munmap(at, 4096), 0);
        unmap(at.add(4096), 4096)
    }),
    // SAFETY: what it replaces is the second page of the mapping made here, into which
    // nobody refers.
    ("mmap over a mapping", MEMORY, || unsafe {
        let at = mapped(4 * 4096);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
        assert_eq!(libc::mmap(at.add(4096), 4096, libc::PROT_READ, flags, -1, 0), at.add(4096));
        unmap(at, 4 * 4096)
    }),
    // SAFETY: pages made here, into which nobody refers.
    ("mprotect", PROTECTION, || unsafe {
        let at = pages(2);
        assert_eq!(libc::mprotect(at.cast(), 8192, libc::PROT_READ), 0);
        unprotect(at, 2, 1)
    }),
    // SAFETY: as above.
    ("mprotect of the middle", PROTECTION, || unsafe {
        let at = pages(6);
        let all = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
        assert_eq!(libc::mprotect(at.add(4096).cast(), 4 * 4096, all), 0);
        assert_eq!(libc::mprotect(at.add(2 * 4096).cast(), 4096, libc::PROT_NONE), 0);
        unprotect(at, 6, 3)
    }),
    // SAFETY: as above.
    ("by number: mprotect", PROTECTION, || unsafe {
        let at = pages(1);
        assert_eq!(libc::syscall(libc::SYS_mprotect, at, 4096usize, libc::PROT_NONE as usize), 0);
        unprotect(at, 1, 1)
    }),
    // SAFETY: a segment made here, at a place that the system chooses; detached once.
    ("shmat", MEMORY, || unsafe {
        let segment = libc::shmget(libc::IPC_PRIVATE, 4096, 0o600);
        let at = libc::shmat(segment, null(), 0);
        libc::shmctl(segment, libc::IPC_RMID, null_mut());
        handle(at, |at| assert_eq!(libc::shmdt(at), 0))
    }),
    // SAFETY: new memory at a place that the system chooses; it is nobody's.
    ("by number: mmap", MEMORY, || unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let at = libc::syscall(
            libc::SYS_mmap,
            0usize,
            8192usize,
            0usize,
            flags as usize,
            usize::MAX,
            0usize,
        );
        unmap(at as *mut c_void, 8192)
    }),
    ("thread", "thread that it started", || {
        let (done, wait) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || wait.recv());
        Box::new(move || {
            drop(done);
            let _ = thread.join().expect("it ends");
        })
    }),
    ("Command", CHILD, || {
        let mut child = started("true");
        Box::new(move || assert!(child.wait().expect("it ends").success()))
    }),
    ("Command, with try_wait", CHILD, || {
        let mut child = started("true");
        Box::new(move || while child.try_wait().expect("it can be asked").is_none() {})
    }),
    ("Command with pipes", "descriptor", || {
        let child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let child = child.expect("it starts");
        Box::new(move || assert!(child.wait_with_output().expect("it ends").status.success()))
    }),
    ("posix_spawn, waitpid", CHILD, || {
        // SAFETY: a child of ours that nobody else waits for; it may be asked without a
        // place for its status.
        child(|child| unsafe { assert_eq!(libc::waitpid(child, null_mut(), 0), child) })
    }),
    ("posix_spawn, wait", CHILD, || {
        // SAFETY: it may be asked without a place for the status.
        child(|child| unsafe { assert_eq!(libc::wait(null_mut()), child) })
    }),
    ("posix_spawn, waitid", CHILD, || {
        // SAFETY: `info` is valid (numbers alone, and a union of such) and outlives both
        // calls.
        child(|child| unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            let ended = libc::WEXITED;
            // To look is not to wait.
            let status = libc::waitid(libc::P_PID, child as u32, &mut info, ended | libc::WNOWAIT);
            assert_eq!(status, 0);
            assert_eq!(libc::waitid(libc::P_PID, child as u32, &mut info, ended), 0);
        })
    }),
    ("pthread_mutex_lock", LOCK, || lock!(MUTEX.0.get(), pthread_mutex_lock, pthread_mutex_unlock)),
    ("pthread_mutex_trylock", LOCK, || {
        lock!(MUTEX.0.get(), pthread_mutex_trylock, pthread_mutex_unlock)
    }),
    // SAFETY: the mutex is a static, initialised; `until` outlives the call. It is unlocked
    // once, when locked.
    ("pthread_mutex_timedlock", LOCK, || unsafe {
        let until = libc::timespec { tv_sec: libc::time_t::MAX, tv_nsec: 0 };
        assert_eq!(libc::pthread_mutex_timedlock(MUTEX.0.get(), &until), 0);
        Box::new(|| assert_eq!(libc::pthread_mutex_unlock(MUTEX.0.get()), 0))
    }),
    // SAFETY: the mutex is a static, initialised, and locked by us while we wait; nobody
    // else knows the condition, which outlives the wait.
    ("pthread_mutex_lock, with a wait for a condition", LOCK, || unsafe {
        let mutex = MUTEX.0.get();
        assert_eq!(libc::pthread_mutex_lock(mutex), 0);
        let mut condition = libc::PTHREAD_COND_INITIALIZER;
        let past = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let status = libc::pthread_cond_timedwait(&mut condition, mutex, &past);
        assert_eq!(status, libc::ETIMEDOUT);
        Box::new(|| assert_eq!(libc::pthread_mutex_unlock(MUTEX.0.get()), 0))
    }),
    // SAFETY: all are statics, initialised; each is unlocked once, when locked.
    ("forty mutexes", LOCK, || unsafe {
        MANY.iter().for_each(|mutex| assert_eq!(libc::pthread_mutex_lock(mutex.0.get()), 0));
        Box::new(|| {
            MANY.iter().for_each(|mutex| assert_eq!(libc::pthread_mutex_unlock(mutex.0.get()), 0));
        })
    }),
    // SAFETY: the kind is initialised before it is set and read, the mutex before it is
    // locked; it was leaked, so that it stays until `from_raw`, after the last use, takes it
    // back.
    ("mutex that is its own", LOCK, || unsafe {
        let mutex = Box::leak(Box::new(MaybeUninit::<libc::pthread_mutex_t>::zeroed()));
        let mut kind = MaybeUninit::<libc::pthread_mutexattr_t>::zeroed();
        libc::pthread_mutexattr_init(kind.as_mut_ptr());
        libc::pthread_mutexattr_settype(kind.as_mut_ptr(), libc::PTHREAD_MUTEX_RECURSIVE);
        libc::pthread_mutex_init(mutex.as_mut_ptr(), kind.as_ptr());
        (0..3).for_each(|_| assert_eq!(libc::pthread_mutex_lock(mutex.as_mut_ptr()), 0));
        Box::new(|| {
            let mutex = mutex.as_mut_ptr();
            for _ in 0..3 {
                assert!(vrt::pinned().is_some_and(|why| why.contains(LOCK)));
                assert_eq!(libc::pthread_mutex_unlock(mutex), 0);
            }
            // It is not ours any more.
            assert_eq!(libc::pthread_mutex_unlock(mutex), libc::EPERM);
            drop(Box::from_raw(mutex));
        })
    }),
    ("pthread_rwlock_rdlock", LOCK, || {
        lock!(RWLOCK.0.get(), pthread_rwlock_rdlock, pthread_rwlock_unlock)
    }),
    ("pthread_rwlock_wrlock", LOCK, || {
        lock!(RWLOCK.0.get(), pthread_rwlock_wrlock, pthread_rwlock_unlock)
    }),
    ("pthread_rwlock_tryrdlock", LOCK, || {
        lock!(RWLOCK.0.get(), pthread_rwlock_tryrdlock, pthread_rwlock_unlock)
    }),
    ("pthread_spin_lock", LOCK, || lock!(SPIN.0.get(), pthread_spin_lock, pthread_spin_unlock)),
    // SAFETY: a `mtx_t` is as large and aligned as a mutex of pthread in this libc; it is a
    // static, not locked, and initialised before it is.
    ("mtx_lock", LOCK, || unsafe {
        let mutex = MANY[0].0.get().cast::<c_void>();
        assert_eq!(mtx_init(mutex, 0), 0);
        assert_eq!(mtx_lock(mutex), 0);
        Box::new(|| assert_eq!(mtx_unlock(MANY[0].0.get().cast()), 0))
    }),
    // SAFETY: standard output of C is a stream from start to end; it is unlocked once, when
    // locked.
    ("flockfile", LOCK, || unsafe {
        flockfile(stdout);
        Box::new(|| funlockfile(stdout))
    }),
    // SAFETY: names that end with NUL; a library of libc that runs no code when it is
    // loaded. It is closed once.
    ("dlopen", "loaded a library", || unsafe {
        let library = libc::dlopen(c"libBrokenLocale.so.1".as_ptr(), libc::RTLD_NOW);
        assert!(!libc::dlopen(null(), libc::RTLD_NOW).is_null());
        handle(library, |library| assert_eq!(libc::dlclose(library), 0))
    }),
    // SAFETY: as above, closed as often as opened.
    ("dlopen, twice", "loaded a library", || unsafe {
        let name = c"libBrokenLocale.so.1".as_ptr();
        let library = libc::dlopen(name, libc::RTLD_NOW);
        assert_eq!(libc::dlopen(name, libc::RTLD_NOW), library);
        assert_eq!(libc::dlclose(library), 0);
        handle(library, |library| assert_eq!(libc::dlclose(library), 0))
    }),
    // SAFETY: names that end with NUL; what it returns is closed once.
    ("iconv_open", "conversion", || unsafe {
        let conversion = libc::iconv_open(c"UTF-16".as_ptr(), c"UTF-8".as_ptr());
        handle(conversion, |conversion| assert_eq!(libc::iconv_close(conversion), 0))
    }),
    // SAFETY: a name that ends with NUL and no base; no thread uses the locale when it is
    // freed.
    ("newlocale", "locale", || unsafe {
        let locale = libc::newlocale(libc::LC_ALL_MASK, c"C.UTF-8".as_ptr(), null_mut());
        handle(locale, |locale| libc::freelocale(locale))
    }),
    // SAFETY: the list ends with null, its paths with NUL, and no order is asked for; what
    // it returns is closed once.
    ("fts_open", "directories", || unsafe {
        let paths = [c"/proc/self".as_ptr().cast_mut(), null_mut()];
        handle(fts_open(paths.as_ptr(), 0x10, 0), |walk| assert_eq!(fts_close(walk), 0))
    }),
    // SAFETY: names that end with NUL; a mode and a value, as it is created. It is closed
    // once.
    ("sem_open", "semaphore", || unsafe {
        let name = c"/vrt-holds".as_ptr();
        let semaphore = libc::sem_open(name, libc::O_CREAT, 0o600 as libc::mode_t, 1u32);
        libc::sem_unlink(name);
        handle(semaphore.cast(), |semaphore| assert_eq!(libc::sem_close(semaphore.cast()), 0))
    }),
    // SAFETY: `event` is valid (zeros are, with a way to tell set after) and outlives the
    // call; the timer is deleted once.
    ("timer_create", "timer of the system", || unsafe {
        let mut timer = null_mut();
        let mut event: libc::sigevent = std::mem::zeroed();
        event.sigev_notify = libc::SIGEV_NONE;
        assert_eq!(libc::timer_create(libc::CLOCK_MONOTONIC, &mut event, &mut timer), 0);
        let timer = timer as usize;
        Box::new(move || assert_eq!(libc::timer_delete(timer as *mut c_void), 0))
    }),
    // SAFETY: an address that ends with NUL, and a place for the list, which is freed once.
    ("getaddrinfo", "getaddrinfo", || unsafe {
        let mut list = null_mut();
        assert_eq!(libc::getaddrinfo(c"127.0.0.1".as_ptr(), null(), null(), &mut list), 0);
        handle(list.cast(), |list| libc::freeaddrinfo(list.cast()))
    }),
    // SAFETY: the entry, which the next call writes over, is only compared with null; no
    // other thread reads the list.
    ("list", "getpwent", || unsafe {
        assert!(!libc::getpwent().is_null());
        Box::new(|| libc::endpwent())
    }),
];

/// Sends a descriptor to oneself. Leaves only what was received.
unsafe fn received_descriptor() -> c_int {
    // SAFETY: the buffers are long enough and aligned, and outlive the calls.
    unsafe {
        let mut ends = [0; 2];
        assert_eq!(libc::socketpair(libc::AF_UNIX, libc::SOCK_STREAM, 0, ends.as_mut_ptr()), 0);
        let mut byte = [1u8];
        let mut data = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
        let mut control = [0u64; 8];
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &mut data;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = libc::CMSG_SPACE(4) as _;
        let head = libc::CMSG_FIRSTHDR(&message);
        (*head).cmsg_level = libc::SOL_SOCKET;
        (*head).cmsg_type = libc::SCM_RIGHTS;
        (*head).cmsg_len = libc::CMSG_LEN(4) as _;
        libc::CMSG_DATA(head).cast::<c_int>().write_unaligned(2);
        assert_eq!(libc::sendmsg(ends[0], &message, 0), 1);
        assert_eq!(libc::recvmsg(ends[1], &mut message, 0), 1);
        let fd = libc::CMSG_DATA(libc::CMSG_FIRSTHDR(&message)).cast::<c_int>().read_unaligned();
        ends.into_iter().for_each(|end| _ = libc::close(end));
        fd
    }
}
