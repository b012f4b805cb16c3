//! What each PE did, and when: read from the loads that a job recorded.

use std::path::Path;

use lb_strategies::datafile::{DataFile, DataFileError, Phase};

/// A PE between two balancing steps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    /// Seconds from the beginning of the job.
    pub(crate) from: f64,
    pub(crate) to: f64,
    /// Part of the time in which ranks ran.
    pub(crate) busy: f64,
    /// Ranks that were there.
    pub(crate) ranks: usize,
}

/// The spans of each PE.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timeline {
    pub(crate) pes: Vec<Vec<Span>>,
    moves: usize,
}

impl Timeline {
    /// Reads the files that a job of so many PEs has written.
    pub(crate) fn read(name: &Path, pes: usize) -> Result<Timeline, DataFileError> {
        let files = (0..pes)
            .map(|pe| {
                let mut file = name.as_os_str().to_owned();
                file.push(format!(".{pe}.json"));
                DataFile::read(Path::new(&file))
            })
            .collect::<Result<Vec<_>, _>>()?;
        let phases: Vec<&[Phase]> = files.iter().map(|file| &file.layout().phases[..]).collect();
        Ok(Timeline { pes: phases.iter().map(|it| spans(it)).collect(), moves: moves(&phases) })
    }

    /// When it ends.
    pub(crate) fn end(&self) -> f64 {
        let ends = self.pes.iter().filter_map(|spans| Some(spans.last()?.to));
        ends.fold(0.0, f64::max)
    }

    /// Part of all PEs' time in which ranks ran.
    pub(crate) fn busy(&self) -> f64 {
        let spans = self.pes.iter().flatten();
        let (busy, all) = spans.fold((0.0, 0.0), |(busy, all), span| {
            let len = span.to - span.from;
            (busy + span.busy * len, all + len)
        });
        if all > 0.0 { busy / all } else { 0.0 }
    }

    /// Ranks that were on another PE than at the step before.
    pub(crate) fn moves(&self) -> usize {
        self.moves
    }
}

fn spans(phases: &[Phase]) -> Vec<Span> {
    let mut from = 0.0;
    let mut spans = Vec::new();
    for phase in phases {
        let number = |name: &str| phase.user_defined.get(name).and_then(serde_json::Value::as_f64);
        let Some(seconds) = number("seconds").filter(|seconds| *seconds > 0.0) else { continue };
        let busy = number("busy_time").unwrap_or(0.0) / seconds;
        spans.push(Span {
            from,
            to: from + seconds,
            busy: busy.clamp(0.0, 1.0),
            ranks: phase.tasks.len(),
        });
        from += seconds;
    }
    spans
}

fn moves(phases: &[&[Phase]]) -> usize {
    let mut places = std::collections::HashMap::new();
    let steps = phases.iter().map(|phases| phases.len()).min().unwrap_or(0);
    let mut moves = 0;
    for step in 0..steps {
        for (pe, phases) in phases.iter().enumerate() {
            for task in &phases[step].tasks {
                let before = places.insert(task.entity.seq_id, pe);
                moves += usize::from(before.is_some_and(|before| before != pe));
            }
        }
    }
    moves
}
