//! The partial result of an interrupted run.
//!
//! When a job is interrupted, its PEs are ended at once. So each rank writes its results to its place in an anonymous
//! file a few times a second; the file is created before the PEs exist, and the supervisor reads it afterwards. The
//! ranks of a job on several machines do not share the file: then there is no partial result.

use std::{
    fs::File,
    os::unix::fs::FileExt,
    sync::Arc,
    time::{Duration, Instant},
};

use uts::{
    parallel::Progress,
    statistics::{RankStatistics, Times},
};

const PERIOD: Duration = Duration::from_millis(100);
const BYTES: usize = 8 * RankStatistics::WORDS;

/// The file.
#[derive(Clone, Debug)]
pub(crate) struct Board(Option<Arc<File>>);

impl Board {
    /// A new one. If there is no place for temporary files, there is no file and no partial result.
    pub(crate) fn new() -> Self {
        Self(tempfile::tempfile().ok().map(Arc::new))
    }

    /// A writer for a rank. It borrows: a rank with a clone of something that existed before it could not move.
    pub(crate) fn note(&self, rank: usize) -> Note<'_> {
        Note { file: self.0.as_deref(), place: (rank * BYTES) as u64, last: None }
    }

    /// What this many ranks have written; `None` if no rank has.
    pub(crate) fn read(&self, ranks: usize) -> Option<Vec<RankStatistics>> {
        let file = self.0.as_ref()?;
        let mut any = false;
        let all = (0..ranks).map(|rank| {
            let mut bytes = [0; BYTES];
            // What is missing at the end of the file are ranks that have done nothing.
            any |= file.read_exact_at(&mut bytes, (rank * BYTES) as u64).is_ok();
            let mut words = [0; RankStatistics::WORDS];
            for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
                *word = u64::from_le_bytes(*bytes);
            }
            RankStatistics::from_words(words)
        });
        let all = all.collect();
        any.then_some(all)
    }
}

/// Where a rank writes.
#[derive(Debug)]
pub(crate) struct Note<'b> {
    file: Option<&'b File>,
    place: u64,
    last: Option<Instant>,
}

impl Note<'_> {
    /// Writes what was done so far, if it is time to.
    pub(crate) fn write(&mut self, Progress { counts, traffic }: Progress) {
        let Some(file) = self.file else { return };
        if self.last.is_some_and(|it| it.elapsed() < PERIOD) {
            return;
        }
        self.last = Some(Instant::now());
        let times = Times::default();
        let words = RankStatistics { counts, traffic, times }.to_words();
        let bytes: Vec<u8> = words.iter().flat_map(|it| it.to_le_bytes()).collect();
        // A result that cannot be kept is not there when the run is interrupted.
        let _ = file.write_all_at(&bytes, self.place);
    }
}
