//! The processor on which figures were measured.

use std::fmt;
use std::path::Path;

use serde::Serialize;

/// The system's name of its processor.
pub(crate) fn name() -> String {
    Processor::of_this_machine().model.unwrap_or_else(|| "an unnamed processor".to_owned())
}

/// The properties of this machine's processor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Processor {
    /// Its model, as reported by Linux.
    pub model: Option<String>,
    /// Cores that this process may use.
    pub cores: usize,
    /// The size of a core's second-level cache in bytes.
    pub l2_bytes: Option<u64>,
}

impl Processor {
    /// That of this machine.
    pub fn of_this_machine() -> Self {
        let about = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        Self {
            model: model(&about),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            l2_bytes: l2_bytes(Path::new("/sys/devices/system/cpu/cpu0/cache")),
        }
    }
}

impl fmt::Display for Processor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let model = self.model.as_deref().unwrap_or("unknown model");
        write!(f, "processor: {model}, {} cores", self.cores)?;
        match self.l2_bytes {
            Some(bytes) => write!(f, ", L2 {} KiB", bytes / 1024),
            None => write!(f, ", L2 unknown"),
        }
    }
}

/// The first model name in the text of `/proc/cpuinfo`; some architectures have none.
fn model(cpuinfo: &str) -> Option<String> {
    let mut fields = cpuinfo.lines().filter_map(|line| line.split_once(':'));
    let model = fields.find(|(name, _)| name.trim() == "model name")?.1.trim();
    (!model.is_empty()).then(|| model.to_owned())
}

/// The size in the directory `index*` of the level 2 cache.
fn l2_bytes(caches: &Path) -> Option<u64> {
    let read = |path: &Path, file: &str| std::fs::read_to_string(path.join(file)).ok();
    (std::fs::read_dir(caches).ok()?.flatten())
        .map(|entry| entry.path())
        .find(|path| read(path, "level").is_some_and(|level| level.trim() == "2"))
        .and_then(|path| bytes(read(&path, "size")?.trim()))
}

/// A size in Linux's notation: `2048K`.
fn bytes(size: &str) -> Option<u64> {
    let number = size.strip_suffix('K')?;
    number.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_is_found_among_the_fields() {
        let text = "processor\t: 0\nmodel\t\t: 167\nmodel name\t: Some(R) CPU @ 2.6: fast\nflags : fpu\n\n\
                    processor\t: 1\nmodel name\t: Other\n";
        assert_eq!(model(text).as_deref(), Some("Some(R) CPU @ 2.6: fast"));
        assert_eq!(model("processor : 0\nBogoMIPS : 50\n"), None);
        assert_eq!(model(""), None);
    }

    #[test]
    fn the_second_level_is_found_among_the_caches() {
        let folder = tempfile::tempdir().unwrap();
        for (index, level, size) in [("index0", "1\n", "48K\n"), ("index2", "2\n", "2048K\n")] {
            let path = folder.path().join(index);
            std::fs::create_dir(&path).unwrap();
            std::fs::write(path.join("level"), level).unwrap();
            std::fs::write(path.join("size"), size).unwrap();
        }
        std::fs::write(folder.path().join("uevent"), "").unwrap();
        assert_eq!(l2_bytes(folder.path()), Some(2 << 20));
        assert_eq!(l2_bytes(&folder.path().join("index0")), None);
        assert_eq!(bytes("2M"), None);
    }

    #[test]
    fn what_is_unknown_is_said_to_be() {
        let known = Processor { model: Some("Fast".to_owned()), cores: 2, l2_bytes: Some(1 << 20) };
        assert_eq!(known.to_string(), "processor: Fast, 2 cores, L2 1024 KiB");
        let unknown = Processor { model: None, l2_bytes: None, ..known };
        assert_eq!(unknown.to_string(), "processor: unknown model, 2 cores, L2 unknown");
    }
}
