//! A job whose ranks call what blocks a thread: what each does is chosen by name.

use std::process::ExitCode;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Barrier, Condvar, LazyLock, Mutex, OnceLock, RwLock};
use std::time::{Duration, Instant};

use clap::{Parser, ValueEnum};
use vrt::topology::SimpleCommunicator;
use vrt::traits::*;

#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    vrt: vrt::Config,
    /// What blocks
    what: What,
    /// A rank has started a thread that lives as long as the job
    #[arg(long)]
    beside_a_thread: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum What {
    /// Each rank sleeps 0.3 s by `thread::sleep`
    Sleep,
    /// The same in async ranks, each of which awaits a message that comes meanwhile
    SleepAsync,
    /// The same by each call of C's
    SleepCalls,
    /// A rank sleeps while it moves
    SleepMoving,
    /// A rank holds a lock over a barrier that its neighbours want
    Mutex,
    /// The same with a lock for readers and writers
    RwLock,
    /// Ranks wait for a condition that another one makes true
    Condvar,
    /// Ranks wait for one until it gives up
    CondvarTimeout,
    /// The ranks of a PE meet at a barrier of the standard library's
    Barrier,
    /// A static is made by a rank that waits for messages meanwhile
    Once,
    /// Ranks wait for threads of their own, which wait for each other
    Scope,
    Join,
    /// Ranks park, and are unparked by threads or by a rank
    Park,
    ParkTimeout,
    /// Threads give ranks messages by a channel
    Channel,
    /// Ranks use rayon at the same time
    Rayon,
    /// Ranks run tokio runtimes of their own that sleep
    Tokio,
    /// Two ranks of a PE take two locks in the opposite order
    Deadlock,
    /// A lock is dropped by threads and ranks again and again
    Stress,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let what = arguments.what;
    if let What::SleepAsync = what {
        return vrt::launch_async(arguments.vrt, sleep_async);
    }
    let beside = arguments.beside_a_thread;
    vrt::launch(arguments.vrt, move || {
        let world = vrt::initialize().expect("in a rank").world();
        static THREAD: OnceLock<()> = OnceLock::new();
        if beside {
            THREAD.get_or_init(|| drop(std::thread::spawn(std::thread::park)));
        }
        world.barrier();
        block(what, &world);
        world.barrier();
        if world.rank() == 0 {
            println!("all is well");
        }
    })
}

/// Ranks of this process.
fn neighbours(world: &SimpleCommunicator) -> u32 {
    static HERE: AtomicU32 = AtomicU32::new(0);
    HERE.fetch_add(1, Ordering::Relaxed);
    world.barrier();
    HERE.load(Ordering::Relaxed)
}

fn block(what: What, world: &SimpleCommunicator) {
    let began = Instant::now();
    match what {
        What::Sleep => {
            std::thread::sleep(Duration::from_millis(300));
            say_time(world, began);
        }
        What::SleepAsync => {}
        What::SleepCalls => sleep_calls(world),
        What::SleepMoving => sleep_moving(world),
        What::Mutex => lock_over_barrier(world),
        What::RwLock => read_and_write(world),
        What::Condvar => wait_for_condition(world),
        What::CondvarTimeout => give_up(),
        What::Barrier => meet(world),
        What::Once => make_once(world),
        What::Scope => scope(),
        What::Join => join(world),
        What::Park => park(world),
        What::ParkTimeout => park_for_a_while(),
        What::Channel => receive_from_threads(world),
        What::Rayon => sum_with_rayon(),
        What::Tokio => own_runtime(),
        What::Deadlock => deadlock(world),
        What::Stress => stress(world),
    }
}

/// The longest time that a rank took.
fn say_time(world: &SimpleCommunicator, began: Instant) {
    let mine = began.elapsed().as_millis() as u64;
    assert!(mine >= 300, "a sleep of 300 ms took {mine} ms");
    let mut most = 0u64;
    world.all_reduce_into(&mine, &mut most, vrt::collective::SystemOperation::max());
    if world.rank() == 0 {
        println!("slept {most} ms");
    }
}

async fn sleep_async() {
    use vrt::point_to_point::{AsyncDestination, AsyncSource};
    let world = vrt::initialize().expect("in a rank").world();
    let (me, size) = (world.rank(), world.size());
    let began = Instant::now();
    // Polled before the sleep, and done during it: the rank has to look again by itself.
    let receive = async {
        let (next, from) = ((me + 1) % size, (me + size - 1) % size);
        world.process_at_rank(next).send_async(&me).await;
        let (got, _) = world.process_at_rank(from).receive_async::<i32>().await;
        assert_eq!(got, from);
    };
    let sleep = async { std::thread::sleep(Duration::from_millis(300)) };
    tokio::join!(receive, sleep);
    let time = began.elapsed();
    assert!(time >= Duration::from_millis(300), "a sleep of 300 ms took {time:?}");
    println!("slept {} ms", time.as_millis());
}

fn sleep_calls(world: &SimpleCommunicator) {
    let time = libc::timespec { tv_sec: 0, tv_nsec: 20_000_000 };
    let null = std::ptr::null_mut::<libc::timespec>();
    let calls: [(&str, &dyn Fn() -> i32); 9] = [
        // SAFETY: each gets valid times, and null where that is allowed.
        ("nanosleep", &|| unsafe { libc::nanosleep(&time, null) }),
        // SAFETY: as above.
        ("clock_nanosleep", &|| unsafe {
            libc::clock_nanosleep(libc::CLOCK_REALTIME, 0, &time, null)
        }),
        ("clock_nanosleep until", &|| {
            let mut until = time;
            // SAFETY: as above.
            unsafe {
                libc::clock_gettime(libc::CLOCK_BOOTTIME, &mut until);
                until.tv_sec += 1;
                libc::clock_nanosleep(libc::CLOCK_BOOTTIME, libc::TIMER_ABSTIME, &until, null)
            }
        }),
        // SAFETY: as above.
        ("usleep", &|| unsafe { libc::usleep(20_000) }),
        // SAFETY: as above.
        ("sleep", &|| unsafe { libc::sleep(1) as i32 }),
        // SAFETY: as above.
        ("poll", &|| unsafe { libc::poll(std::ptr::null_mut(), 0, 20) }),
        // SAFETY: as above.
        ("ppoll", &|| unsafe { libc::ppoll(std::ptr::null_mut(), 0, &time, std::ptr::null()) }),
        ("select", &|| {
            let (none, mut time) =
                (std::ptr::null_mut(), libc::timeval { tv_sec: 0, tv_usec: 20_000 });
            // SAFETY: as above.
            unsafe { libc::select(0, none, none, none, &mut time) }
        }),
        ("pselect", &|| {
            let none = std::ptr::null_mut();
            // SAFETY: as above.
            unsafe { libc::pselect(0, none, none, none, &time, std::ptr::null()) }
        }),
    ];
    static RUNS: AtomicU32 = AtomicU32::new(0);
    for (name, call) in calls {
        let began = Instant::now();
        // How many of the ranks of this process are inside the call at the same time.
        let inside = RUNS.fetch_add(1, Ordering::Relaxed) + 1;
        assert_eq!(call(), 0, "{name}");
        RUNS.fetch_sub(1, Ordering::Relaxed);
        assert!(began.elapsed() >= Duration::from_millis(19), "{name}: {:?}", began.elapsed());
        let mut most = 0;
        world.all_reduce_into(&inside, &mut most, vrt::collective::SystemOperation::max());
        assert!(most > 1, "{name} stops the neighbours");
    }
    let wrong = libc::timespec { tv_sec: 0, tv_nsec: 1_000_000_000 };
    // SAFETY: a readable time that is none.
    assert_eq!(unsafe { libc::nanosleep(&wrong, null) }, -1);
    assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::EINVAL));
}

fn sleep_moving(world: &SimpleCommunicator) {
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(500) {
        let one = Instant::now();
        std::thread::sleep(Duration::from_millis(5));
        assert!(one.elapsed() >= Duration::from_millis(5));
    }
    // A count that can only be right if all have slept and gone on, wherever they were.
    let mut all = 0;
    world.all_reduce_into(&1, &mut all, vrt::collective::SystemOperation::sum());
    assert_eq!(all, world.size());
}

fn lock_over_barrier(world: &SimpleCommunicator) {
    static LOCK: Mutex<Vec<i32>> = Mutex::new(Vec::new());
    for round in 0..20 {
        if world.rank() % 2 == round % 2 {
            let mut held = LOCK.lock().expect("nobody panics");
            // Others run, and want it.
            vrt::yield_now();
            vrt::sleep(Duration::from_micros(100));
            held.push(world.rank());
        } else {
            LOCK.lock().expect("nobody panics").push(world.rank());
        }
    }
    let here = neighbours(world) as usize;
    assert_eq!(LOCK.lock().expect("nobody panics").len(), 20 * here);
    world.barrier();
    LOCK.lock().expect("nobody panics").clear();
}

fn read_and_write(world: &SimpleCommunicator) {
    static LOCK: RwLock<u32> = RwLock::new(0);
    let here = neighbours(world);
    for _ in 0..20 {
        {
            let before = LOCK.read().expect("nobody panics");
            vrt::sleep(Duration::from_micros(50));
            assert!(*before <= 20 * here);
        }
        let mut count = LOCK.write().expect("nobody panics");
        vrt::sleep(Duration::from_micros(50));
        *count += 1;
    }
    world.barrier();
    assert_eq!(*LOCK.read().expect("nobody panics"), 20 * here);
}

fn wait_for_condition(world: &SimpleCommunicator) {
    static STATE: (Mutex<u32>, Condvar) = (Mutex::new(0), Condvar::new());
    let here = neighbours(world);
    let (count, changed) = &STATE;
    // Each waits for its turn, and the last one to come has the first.
    static ORDER: AtomicU32 = AtomicU32::new(0);
    let turn = here - 1 - ORDER.fetch_add(1, Ordering::Relaxed);
    let guard = count.lock().expect("nobody panics");
    let mut guard = changed.wait_while(guard, |count| *count != turn).expect("nobody panics");
    *guard += 1;
    changed.notify_all();
}

fn give_up() {
    let (lock, never) = (Mutex::new(()), Condvar::new());
    let began = Instant::now();
    let guard = lock.lock().expect("nobody panics");
    let time = Duration::from_millis(300);
    let (_guard, end) = never.wait_timeout_while(guard, time, |()| true).expect("nobody panics");
    assert!(end.timed_out() && began.elapsed() >= time);
    assert!(began.elapsed() < 3 * time, "{:?}: the waits add up", began.elapsed());
}

fn meet(world: &SimpleCommunicator) {
    static MEETING: OnceLock<Barrier> = OnceLock::new();
    let here = neighbours(world) as usize;
    let meeting = MEETING.get_or_init(|| Barrier::new(here));
    for _ in 0..10 {
        meeting.wait();
    }
}

fn make_once(world: &SimpleCommunicator) {
    static MADE: AtomicU32 = AtomicU32::new(0);
    static VALUE: LazyLock<u32> = LazyLock::new(|| {
        // The others of the PE come here meanwhile.
        vrt::sleep(Duration::from_millis(20));
        MADE.fetch_add(1, Ordering::Relaxed) + 7
    });
    assert_eq!(*VALUE, 7);
    world.barrier();
    assert_eq!(MADE.load(Ordering::Relaxed), 1);
}

fn scope() {
    // The threads of all ranks of the PE have to run at the same time.
    static RUNNING: AtomicU32 = AtomicU32::new(0);
    std::thread::scope(|scope| {
        let two = [1, 2].map(|n| {
            scope.spawn(move || {
                RUNNING.fetch_add(1, Ordering::SeqCst);
                while RUNNING.load(Ordering::SeqCst) < 4 {
                    std::thread::sleep(Duration::from_millis(1));
                }
                n
            })
        });
        let _ = two;
    });
}

fn join(world: &SimpleCommunicator) {
    // A rank's thread ends when its neighbour has sent something, which it does after this one has
    // begun to wait.
    static OPEN: AtomicU32 = AtomicU32::new(0);
    let here = neighbours(world);
    let thread = std::thread::spawn(move || {
        while OPEN.load(Ordering::SeqCst) < here {
            std::thread::sleep(Duration::from_millis(1));
        }
        here
    });
    OPEN.fetch_add(1, Ordering::SeqCst);
    if OPEN.load(Ordering::SeqCst) < here {
        assert_eq!(thread.join().expect("it does not panic"), here);
    } else {
        vrt::sleep(Duration::from_millis(5));
        assert_eq!(thread.join().expect("it does not panic"), here);
    }
}

fn park(world: &SimpleCommunicator) {
    let here = neighbours(world);
    // By threads: each rank waits for a flag of its own.
    let flags: Vec<Arc<AtomicU32>> = (0..3).map(|_| Arc::new(AtomicU32::new(0))).collect();
    let this = std::thread::current();
    let threads: Vec<_> = flags
        .iter()
        .enumerate()
        .map(|(i, flag)| {
            let (flag, this) = (Arc::clone(flag), this.clone());
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(5 * (i as u64 + 1)));
                flag.store(1, Ordering::SeqCst);
                this.unpark();
            })
        })
        .collect();
    for flag in &flags {
        while flag.load(Ordering::SeqCst) == 0 {
            std::thread::park();
        }
    }
    threads.into_iter().for_each(|thread| thread.join().expect("it does not panic"));
    // By the last rank to come here.
    static COME: AtomicU32 = AtomicU32::new(0);
    if COME.fetch_add(1, Ordering::SeqCst) + 1 == here {
        std::thread::current().unpark();
    }
    while COME.load(Ordering::SeqCst) < here {
        std::thread::park();
    }
}

fn park_for_a_while() {
    let began = Instant::now();
    let time = Duration::from_millis(300);
    while began.elapsed() < time {
        std::thread::park_timeout(time - began.elapsed());
    }
    assert!(began.elapsed() < 3 * time, "{:?}: the waits add up", began.elapsed());
}

fn receive_from_threads(world: &SimpleCommunicator) {
    let (give, take) = std::sync::mpsc::channel();
    let me = world.rank();
    let thread = std::thread::spawn(move || {
        for n in 0..20 {
            std::thread::sleep(Duration::from_millis(2));
            give.send(me * 100 + n).expect("somebody listens");
        }
    });
    let got: Vec<i32> = take.iter().collect();
    assert_eq!(got, (0..20).map(|n| me * 100 + n).collect::<Vec<_>>());
    thread.join().expect("it does not panic");
}

fn sum_with_rayon() {
    use rayon::prelude::*;
    for round in 0..20u64 {
        let sum: u64 = (0..1000u64)
            .into_par_iter()
            .map(|n| {
                if n % 100 == 0 {
                    std::thread::sleep(Duration::from_micros(500));
                }
                n + round
            })
            .sum();
        assert_eq!(sum, 499_500 + 1000 * round);
    }
}

fn own_runtime() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime can be made");
    for _ in 0..5 {
        let slept = runtime.block_on(async {
            // Both are inside a runtime's `block_on`, which counts on its thread.
            std::thread::sleep(Duration::from_millis(2));
            tokio::spawn(tokio::time::sleep(Duration::from_millis(10))).await
        });
        assert!(slept.is_ok());
    }
    runtime.shutdown_background();
}

fn deadlock(world: &SimpleCommunicator) {
    static LOCKS: [Mutex<()>; 2] = [Mutex::new(()), Mutex::new(())];
    let me = world.rank() as usize;
    let (first, second) = (me % 2, (me + 1) % 2);
    if me < 2 {
        let _first = LOCKS[first].lock();
        vrt::sleep(Duration::from_millis(20));
        let _second = LOCKS[second].lock();
    }
}

fn stress(world: &SimpleCommunicator) {
    static COUNT: Mutex<u64> = Mutex::new(0);
    static CHANGED: Condvar = Condvar::new();
    let here = u64::from(neighbours(world));
    let rounds = 2_000;
    let thread = std::thread::spawn(move || {
        for _ in 0..rounds {
            *COUNT.lock().expect("nobody panics") += 1;
            CHANGED.notify_one();
        }
    });
    for round in 0..rounds {
        let mut count = COUNT.lock().expect("nobody panics");
        if round % 64 == 0 {
            vrt::yield_now();
        }
        *count += 1;
        drop(count);
        CHANGED.notify_one();
    }
    // Everybody waits for the last one, woken one by one.
    let all = 2 * rounds * here;
    let guard = COUNT.lock().expect("nobody panics");
    drop(CHANGED.wait_while(guard, |count| *count < all));
    CHANGED.notify_one();
    thread.join().expect("it does not panic");
}
