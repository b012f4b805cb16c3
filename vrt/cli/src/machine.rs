//! The machine that a program runs on, and what else it does: what a measurement has to say of its surroundings.

use std::fmt;
use std::fs;
use std::sync::OnceLock;

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

    /// What to tell who measures here, if other programs use the cores.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        let Machine { cores, load, .. } = self;
        let load = load.filter(|_| self.is_busy())?;
        let s = if *cores == 1 { "" } else { "s" };
        Some(format!(
            "other programs use this machine (load {load:.2} on {cores} core{s}): times are unreliable"
        ))
    }

    /// What stands below a figure: the processor, its cores, and the day.
    #[must_use]
    pub fn brief(&self) -> String {
        let Machine { processor, cores, date, .. } = self;
        let (day, s) = (date.split('T').next().unwrap_or(date), if *cores == 1 { "" } else { "s" });
        format!("{processor}, {cores} core{s}, {day}")
    }

    /// Whether other programs used the cores: then times say little.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.load.is_some_and(|load| load > 0.3 * self.cores as f64)
    }
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

#[cfg(test)]
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
    fn a_machine_with_other_programs_is_busy() {
        let of = |load| Machine { load, cores: 2, ..Machine::now() }.is_busy();
        assert!(of(Some(1.0)) && !of(Some(0.2)) && !of(None));
        let note =
            Machine { load: Some(1.0), cores: 2, ..Machine::now() }.note().unwrap_or_default();
        assert!(note.contains("load 1.00 on 2 cores"), "{note}");
    }
}
