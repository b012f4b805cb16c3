//! The findings of `--lb auto` for a job, kept in a file for the next run of the same job.
//!
//! A job is identified by its program's name and all its arguments. A file may contain many jobs; for each it keeps the
//! findings of its last run.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::json;

/// The findings for a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Learned {
    /// Ranks and PEs of the job.
    pub ranks: usize,
    pub pes: usize,
    /// Length of a sample in seconds.
    pub interval: f64,
    /// The last PE of each rank, if trials had helped.
    pub placement: Option<Vec<u32>>,
    /// The strategy that found it, and its gain over the previous placement, as a part.
    pub strategy: Option<String>,
    pub gain: f64,
}

/// Why the findings cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LearnError {
    /// The system reported an error.
    #[error("{0}: {1}")]
    File(PathBuf, #[source] io::Error),
    /// It is not such a file.
    #[error("{0} is not a file of --lb-learn: {1}")]
    Malformed(PathBuf, #[source] json::ParseError),
}

#[derive(Default, Serialize, Deserialize)]
struct File {
    jobs: BTreeMap<String, Learned>,
}

impl File {
    /// The contents; empty if the file does not exist yet.
    fn read(path: &Path) -> Result<File, LearnError> {
        match std::fs::read_to_string(path) {
            Ok(text) => {
                json::read(&text).map_err(|error| LearnError::Malformed(path.to_owned(), error))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(File::default()),
            Err(error) => Err(LearnError::File(path.to_owned(), error)),
        }
    }

    /// Writes atomically: another job may read it meanwhile.
    fn write(&self, path: &Path) -> Result<(), LearnError> {
        let wrong = |error| LearnError::File(path.to_owned(), error);
        let text = json::text(self).map_err(|error| wrong(io::Error::other(error)))?;
        let mut new = path.as_os_str().to_owned();
        new.push(format!(".{}", std::process::id()));
        std::fs::write(&new, text).map_err(wrong)?;
        std::fs::rename(&new, path).map_err(wrong)
    }
}

/// Checks that a file can be read and written.
///
/// # Errors
/// It cannot, or is not such a file.
pub(crate) fn check(path: &Path) -> Result<(), LearnError> {
    File::read(path)?.write(path)
}

/// The findings for a job.
///
/// # Errors
/// As for [`check`].
pub(crate) fn recall(path: &Path, job: &str) -> Result<Option<Learned>, LearnError> {
    Ok(File::read(path)?.jobs.remove(job))
}

/// Keeps the findings for a job.
///
/// # Errors
/// As for [`check`].
pub(crate) fn keep(path: &Path, job: String, learned: Learned) -> Result<(), LearnError> {
    let mut file = File::read(path)?;
    file.jobs.insert(job, learned);
    file.write(path)
}

/// The identity of this process's job.
pub(crate) fn name_of_job() -> String {
    let mut arguments = std::env::args_os();
    let program = arguments.next().unwrap_or_default();
    let program = Path::new(&program).file_name().unwrap_or_default().to_os_string();
    let all = std::iter::once(program).chain(arguments);
    let words: Vec<String> = all.map(|it| it.to_string_lossy().into_owned()).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_kept_apart_and_other_files_are_refused() {
        let path = std::env::temp_dir().join(format!("vrt-learn-{}", std::process::id()));
        assert_eq!(recall(&path, "a \"1\" \\ \u{e9}").unwrap(), None);
        check(&path).unwrap();
        let learned = |ranks| Learned {
            ranks,
            pes: 2,
            interval: 0.01,
            placement: Some(vec![0; ranks]),
            strategy: Some("greedy".to_owned()),
            gain: 0.25,
        };
        keep(&path, "a \"1\" \\ \u{e9}".to_owned(), learned(4)).unwrap();
        keep(&path, "a 2".to_owned(), learned(5)).unwrap();
        keep(&path, "a \"1\" \\ \u{e9}".to_owned(), learned(6)).unwrap();
        assert_eq!(recall(&path, "a \"1\" \\ \u{e9}").unwrap(), Some(learned(6)));
        assert_eq!(recall(&path, "a 2").unwrap(), Some(learned(5)));
        std::fs::write(&path, "loads").unwrap();
        let error = recall(&path, "a \"1\" \\ \u{e9}").unwrap_err().to_string();
        assert!(error.contains("is not a file of --lb-learn"), "{error}");
        std::fs::remove_file(&path).unwrap();
    }
}
