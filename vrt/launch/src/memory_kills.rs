//! Whether the out-of-memory killer was active: a PE killed by SIGKILL may be its victim, which the kernel reports only
//! as a counter.

use std::path::{Path, PathBuf};

/// A counter of such kills, and its value when the job began.
#[derive(Debug)]
pub(super) struct MemoryKills {
    file: PathBuf,
    before: u64,
}

impl MemoryKills {
    /// The counter that concerns this process: its control group's, or else the whole system's.
    /// `None` if the system has neither.
    pub(super) fn watch() -> Option<MemoryKills> {
        let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        MemoryKills::watch_first_of(group_files(&groups).chain([PathBuf::from("/proc/vmstat")]))
    }

    fn watch_first_of(files: impl IntoIterator<Item = PathBuf>) -> Option<MemoryKills> {
        files.into_iter().find_map(|file| Some(MemoryKills { before: count(&file)?, file }))
    }

    /// Whether the out-of-memory killer has been active since.
    pub(super) fn have_risen(&self) -> bool {
        count(&self.file).is_some_and(|now| now > self.before)
    }
}

/// The files of a process's control groups that may have the counter, from its `/proc/self/cgroup`.
fn group_files(groups: &str) -> impl Iterator<Item = PathBuf> {
    groups.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        if controllers.is_empty() {
            return Some(format!("/sys/fs/cgroup{path}/memory.events").into());
        }
        let old = controllers.split(',').any(|controller| controller == "memory");
        old.then(|| format!("/sys/fs/cgroup/memory{path}/memory.oom_control").into())
    })
}

/// The count in a file of `name value` lines.
fn count(file: &Path) -> Option<u64> {
    let text = std::fs::read_to_string(file).ok()?;
    text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kill_for_memory_is_seen_in_the_count_of_the_group() {
        let file = std::env::temp_dir().join(format!("vrt-memory-events-{}", std::process::id()));
        std::fs::write(&file, "low 0\noom 7\noom_kill 3\noom_group_kill 0\n").unwrap();
        let absent = PathBuf::from("/nonexistent/memory.events");
        let kills = MemoryKills::watch_first_of([absent, file.clone()]).unwrap();
        assert_eq!(kills.before, 3, "the line `oom_kill`, not `oom`");
        assert!(!kills.have_risen());
        std::fs::write(&file, "low 0\noom 8\noom_kill 4\noom_group_kill 0\n").unwrap();
        assert!(kills.have_risen());
        std::fs::remove_file(&file).unwrap();
        assert!(!kills.have_risen(), "a group that is gone says nothing");
    }

    #[test]
    fn the_files_of_groups_are_found_in_both_layouts() {
        let files = |text| -> Vec<String> {
            group_files(text).map(|file| file.display().to_string()).collect()
        };
        let unified = files("0::/user.slice/job\n");
        assert_eq!(unified, ["/sys/fs/cgroup/user.slice/job/memory.events"]);
        let both = files("12:cpu,cpuacct:/a\n0::/x\n4:memory:/docker/1\n");
        let old = "/sys/fs/cgroup/memory/docker/1/memory.oom_control";
        assert_eq!(both, ["/sys/fs/cgroup/x/memory.events", old]);
    }
}
