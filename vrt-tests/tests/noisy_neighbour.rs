//! Other programs run beside a PE for a while: ranks leave that PE, and come back.
//!
//! What is expected does not depend on what else the machine does: the kernel says how much of the
//! time in which each PE could run it did run, and the ranks have to be shared out accordingly. So
//! many programs of more weight are put beside PE 1 as it takes to make a difference. Where the
//! machine is so busy that this is in vain the test fails, so `scripts/test --all` asks for it and
//! other runs do not; how a PE measures its share is tested beside that code.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use vrt_tests::job;
use vrt_tests::running::until;

const BUSY_RANKS: &str = env!("CARGO_BIN_EXE_busy_ranks");
const RANKS: f64 = 16.0;

/// The cores that PEs are bound to, in order.
fn cores() -> Vec<usize> {
    // SAFETY: the set is written by the call before it is read.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        assert_eq!(libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set), 0);
        (0..libc::CPU_SETSIZE as usize).filter(|core| libc::CPU_ISSET(*core, &set)).collect()
    }
}

/// A process that ends with the test.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn disturb(core: usize) -> Ends {
    let core = core.to_string();
    Ends(job::unlimited(BUSY_RANKS).args(["--disturb", &core, "--seconds", "600"]).spawn().unwrap())
}

/// What was seen in some seconds.
#[derive(Debug)]
struct Seen {
    /// Ranks on PE 1, on average over the later half.
    ranks: f64,
    /// Those that belong there by the shares of their cores that the two PEs had.
    due: f64,
}

/// A job that says all the time where its ranks are.
struct Job {
    process: Ends,
    lines: Lines<BufReader<ChildStdout>>,
    pes: Vec<i32>,
}

impl Job {
    fn start() -> Job {
        let arguments = "--pes 2 --ranks 16 --seconds 600 --report 100 --lb greedy-refine \
                         --lb-period 200ms --lb-report off";
        let mut process = job::unlimited(BUSY_RANKS)
            .args(arguments.split_whitespace())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        lines.next().unwrap().unwrap();
        // It runs, so its PEs are there.
        let children = format!("/proc/{0}/task/{0}/children", process.id());
        let pes = || -> Vec<i32> {
            let text = std::fs::read_to_string(&children).unwrap();
            text.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
        };
        until("two PEs", || pes().len() == 2);
        let pes = pes();
        Job { process: Ends(process), lines, pes }
    }

    /// Nanoseconds that a PE has run, and has waited for its core.
    fn ran_and_waited(&self, pe: usize) -> (f64, f64) {
        let text = std::fs::read_to_string(format!("/proc/{}/schedstat", self.pes[pe])).unwrap();
        let mut words = text.split_whitespace().map(|word| word.parse::<f64>().unwrap());
        (words.next().unwrap(), words.next().unwrap())
    }

    fn watch(&mut self, time: Duration) -> Seen {
        let began = Instant::now();
        let before = [self.ran_and_waited(0), self.ran_and_waited(1)];
        let mut later = Vec::new();
        while began.elapsed() < time || later.is_empty() {
            let line = self.lines.next().expect("the job goes on").unwrap();
            let (_, counts) = line.split_once(" s: ").unwrap();
            if began.elapsed() > time / 2 {
                later.push(counts.split(' ').nth(1).unwrap().parse::<f64>().unwrap());
            }
        }
        let share = |pe: usize| {
            let (ran, waited) = self.ran_and_waited(pe);
            let (ran, waited) = (ran - before[pe].0, waited - before[pe].1);
            ran / (ran + waited)
        };
        let (of_0, of_1) = (share(0), share(1));
        Seen {
            ranks: later.iter().sum::<f64>() / later.len() as f64,
            due: RANKS * of_1 / (of_0 + of_1),
        }
    }
}

#[test]
#[ignore = "needs two cores that are not busy"]
fn ranks_leave_a_pe_beside_which_other_programs_run_and_come_back() {
    let cores = cores();
    // With one, PEs are not bound, and what runs beside one runs beside both.
    assert!(cores.len() > 1, "this test needs two cores, and may use {} here", cores.len());
    let (window, limit) = (Duration::from_secs(3), Duration::from_secs(120));
    let mut job = Job::start();
    let mut all = vec![job.watch(window)];

    // The others weigh ten times as much.
    // SAFETY: a plain system call on a process of ours.
    let lighter = unsafe { libc::setpriority(libc::PRIO_PROCESS, job.pes[1] as u32, 10) };
    assert_eq!(lighter, 0, "{}", std::io::Error::last_os_error());
    let mut neighbours = vec![disturb(cores[1])];
    let began = Instant::now();
    let left = loop {
        let seen = job.watch(window);
        let makes_a_difference = seen.due < 0.35 * RANKS;
        let left = makes_a_difference && seen.ranks < seen.due + 2.0;
        all.push(seen);
        if left {
            break all.last().unwrap().ranks;
        }
        assert!(
            began.elapsed() < limit,
            "beside {} neighbours ranks stay: {all:#?}",
            neighbours.len()
        );
        if !makes_a_difference && neighbours.len() < 32 {
            (0..neighbours.len()).for_each(|_| neighbours.push(disturb(cores[1])));
        }
    };

    drop(neighbours);
    let began = Instant::now();
    loop {
        let seen = job.watch(window);
        let came_back = seen.ranks > left + 1.0 && seen.ranks > seen.due - 2.0;
        all.push(seen);
        if came_back {
            break;
        }
        assert!(began.elapsed() < limit, "alone again, ranks stay away: {all:#?}");
    }
    println!("{all:#?}");
    assert!(job.process.0.try_wait().unwrap().is_none(), "the job ended: {all:#?}");
}
