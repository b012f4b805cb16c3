//! The machine that a program runs on, and what other programs do there: what a measurement has to say of its
//! surroundings.

use std::fmt;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// Where and when something was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// The machine's name in the network.
    pub host: String,
    /// What the processor calls itself, with its family and model, as many of a kind have the same name.
    pub processor: String,
    /// Cores that this process may use.
    pub cores: usize,
    /// Bytes of memory.
    pub memory: u64,
    /// The kernel's name and release.
    pub system: String,
    /// When, in UTC: `2026-11-28T10:30:00Z`.
    pub date: String,
    /// Processes that ran or waited for a core in the last minute, on average, before the measurement began.
    pub load: Option<f64>,
}

impl Machine {
    /// This machine, now.
    #[must_use]
    pub fn now() -> Machine {
        let now = jiff::Timestamp::now().round(jiff::Unit::Second);
        Machine {
            host: line_of("/proc/sys/kernel/hostname").unwrap_or_else(|| "unknown".to_owned()),
            processor: processor().unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory: memory().unwrap_or_default(),
            system: format!("Linux {}", line_of("/proc/sys/kernel/osrelease").unwrap_or_default()),
            date: now.map(|it| it.to_string()).unwrap_or_default(),
            load: load(),
        }
    }

    /// This machine when it was first asked for: programs do so before they use it themselves.
    pub fn at_start() -> &'static Machine {
        static AT_START: OnceLock<Machine> = OnceLock::new();
        AT_START.get_or_init(Machine::now)
    }

    /// What stands below a figure: the processor, its cores, and the day.
    #[must_use]
    pub fn brief(&self) -> String {
        let Machine { processor, cores, date, .. } = self;
        let (day, s) = (date.split('T').next().unwrap_or(date), if *cores == 1 { "" } else { "s" });
        format!("{processor}, {cores} core{s}, {day}")
    }
}

/// What other programs use of the cores that this process may use.
///
/// The load average is no measure of it: a minute after a build it still shows the build.
#[derive(Clone, Copy, Debug)]
pub struct Others {
    began: Instant,
    /// Seconds that the cores had worked, for whomever.
    busy: f64,
    /// Seconds that they had worked for this process and for its children that have ended.
    own: f64,
}

impl Others {
    /// The share of a core, for each core, above which times are unreliable.
    const TOO_MUCH: f64 = 0.1;

    /// Begins to watch; `None` where the kernel does not say what the cores do.
    #[must_use]
    pub fn watch() -> Option<Others> {
        Some(Others { began: Instant::now(), busy: busy()?, own: processor_seconds()? })
    }

    /// Watches for a quarter of a second, in which this process should do nothing. If others work, it watches again, up
    /// to a second in all: a program that has just ended may still be giving back its memory.
    #[must_use]
    pub fn now() -> Option<Others> {
        let look = || {
            let others = Others::watch();
            std::thread::sleep(Duration::from_millis(250));
            others
        };
        let mut others = look();
        for _ in 0..3 {
            if others.as_ref().is_none_or(|others| others.note().is_none()) {
                break;
            }
            others = look();
        }
        others
    }

    /// The number of cores that they used on average since then. What children of this process used counts as theirs
    /// until the child was waited for.
    #[must_use]
    pub fn cores(&self) -> Option<f64> {
        let used = (busy()? - self.busy) - (processor_seconds()? - self.own);
        Some((used / self.began.elapsed().as_secs_f64()).max(0.0))
    }

    /// What to tell who measures here, if they used a good part of the cores.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        note(self.cores()?, cores)
    }
}

fn note(used: f64, cores: usize) -> Option<String> {
    let s = if cores == 1 { "" } else { "s" };
    (used > Others::TOO_MUCH * cores as f64).then(|| {
        format!("other programs use {used:.1} of {cores} core{s} here: times are unreliable")
    })
}

/// The unit of times in `/proc`, `USER_HZ`, in seconds: the kernel's interface has it at 100 everywhere but on Alpha.
const TICK: f64 = 0.01;

/// Seconds that the cores that this process may use have worked, also for other guests of the same host.
fn busy() -> Option<f64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    let allowed: Vec<(u32, u32)> = allowed
        .trim()
        .split(',')
        .map(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            Some((first.parse().ok()?, last.parse().ok()?))
        })
        .collect::<Option<_>>()?;
    let cores = fs::read_to_string("/proc/stat").ok()?;
    let mut ticks = 0;
    for line in cores.lines() {
        let mut fields = line.split_whitespace();
        let number = fields.next().and_then(|name| name.strip_prefix("cpu")?.parse::<u32>().ok());
        let Some(number) = number else { continue };
        if allowed.iter().any(|(first, last)| (*first..=*last).contains(&number)) {
            let of: Vec<u64> = fields.map(|field| field.parse().ok()).collect::<Option<_>>()?;
            // user, nice, system, idle, waiting for disks, interrupts of two kinds, stolen; guests are in the first two.
            let [user, nice, system, _, _, interrupts, late, stolen, ..] = of[..] else {
                return None;
            };
            ticks += user + nice + system + interrupts + late + stolen;
        }
    }
    Some(ticks as f64 * TICK)
}

/// Seconds of a core that this process and its children that have ended have used.
#[must_use]
pub fn processor_seconds() -> Option<f64> {
    let text = fs::read_to_string("/proc/self/stat").ok()?;
    // The name, in brackets, may contain anything; the state is the third field.
    let (_, fields) = text.rsplit_once(')')?;
    let times = fields.split_whitespace().skip(14 - 3).take(4);
    let ticks: u64 = times.map(|field| field.parse::<u64>().ok()).sum::<Option<u64>>()?;
    Some(ticks as f64 * TICK)
}

/// One line: `host: 2 cores of AMD EPYC (family 25, model 1), 23 GiB, Linux 6.18, 2026-11-28T10:30:00Z, load 0.1`.
impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Machine { host, processor, cores, memory, system, date, load } = self;
        let s = if *cores == 1 { "" } else { "s" };
        write!(
            f,
            "{host}: {cores} core{s} of {processor}, {} GiB, {system}, {date}",
            memory >> 30
        )?;
        match load {
            Some(load) => write!(f, ", load {load:.2}"),
            None => Ok(()),
        }
    }
}

fn line_of(path: &str) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim_end().to_owned())
}

fn processor() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let field = |name: &str| {
        let of = |line: &str| {
            let (key, value) = line.split_once(':')?;
            (key.trim_end() == name).then(|| value.trim().to_owned())
        };
        text.lines().find_map(of)
    };
    let name = field("model name")?;
    match (field("cpu family"), field("model")) {
        (Some(family), Some(model)) => Some(format!("{name} (family {family}, model {model})")),
        _ => Some(name),
    }
}

fn memory() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    Some(total.trim().trim_end_matches(" kB").parse::<u64>().ok()? << 10)
}

fn load() -> Option<f64> {
    fs::read_to_string("/proc/loadavg").ok()?.split_whitespace().next()?.parse().ok()
}

/// The size of a core's second-level cache in bytes, if the kernel reports it.
#[must_use]
pub fn second_level_cache() -> Option<u64> {
    second_level_in(Path::new("/sys/devices/system/cpu/cpu0/cache"))
}

fn second_level_in(caches: &Path) -> Option<u64> {
    let read = |path: &Path, file: &str| fs::read_to_string(path.join(file)).ok();
    (fs::read_dir(caches).ok()?.flatten())
        .map(|entry| entry.path())
        .find(|path| read(path, "level").is_some_and(|level| level.trim() == "2"))
        .and_then(|path| read(&path, "size")?.trim().strip_suffix('K')?.parse::<u64>().ok())
        .map(|kibibytes| kibibytes << 10)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_cores_and_a_date() {
        let machine = Machine::now();
        assert!(machine.cores > 0 && machine.memory > 1 << 28, "{machine:?}");
        assert!(machine.date.starts_with("20") && machine.date.ends_with('Z'), "{machine:?}");
        let text = machine.to_string();
        assert!(text.contains(&machine.processor) && !text.contains('\n'), "{text}");
        let machine = Machine {
            processor: "P".to_owned(),
            cores: 1,
            date: "2026-11-28T10:30:00Z".to_owned(),
            ..machine
        };
        assert_eq!(machine.brief(), "P, 1 core, 2026-11-28");
    }

    #[test]
    fn what_children_use_is_not_others_but_what_others_use_is() {
        let others = Others::watch().unwrap();
        let spin = || {
            let script = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
            std::process::Command::new("sh").args(["-c", script]).spawn().unwrap()
        };
        let began = others.own;
        assert!(spin().wait().unwrap().success());
        let own = processor_seconds().unwrap() - began;
        assert!(own > 0.0, "{own}");
        // Running, a child is one of the others.
        let watched = Others::watch().unwrap();
        let mut child = spin();
        std::thread::sleep(Duration::from_millis(100));
        let meanwhile = watched.cores().unwrap();
        assert!(child.wait().unwrap().success());
        assert!(meanwhile > 0.0, "{meanwhile}");
    }

    #[test]
    fn others_are_told_when_they_matter() {
        assert_eq!(note(0.1, 2), None);
        let told = "other programs use 0.5 of 2 cores here: times are unreliable";
        assert_eq!(note(0.5, 2).as_deref(), Some(told));
        assert!(note(0.5, 1).is_some_and(|it| it.contains("0.5 of 1 core here")));
    }

    #[test]
    fn the_second_level_is_found_among_the_caches() {
        let folder = std::env::temp_dir().join(format!("vrt-caches-{}", std::process::id()));
        for (index, level, size) in [("index0", "1\n", "48K\n"), ("index2", "2\n", "2048K\n")] {
            let path = folder.join(index);
            fs::create_dir_all(&path).unwrap();
            fs::write(path.join("level"), level).unwrap();
            fs::write(path.join("size"), size).unwrap();
        }
        let [found, none] = [second_level_in(&folder), second_level_in(&folder.join("index0"))];
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!((found, none), (Some(2 << 20), None));
    }
}
