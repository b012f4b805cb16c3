//! The recorded costs of ranks in each period of a run: how close the run came to the ideal, and what other balancers
//! would have achieved.

use std::path::{Path, PathBuf};

use lb_strategies::auto::{self, Auto};
use lb_strategies::datafile::{DataFile, DataFileError};
use lb_strategies::replay::{self, Decider, RecordedPhase};
use lb_strategies::{LoadModelError, create, strategies};

/// The periods of a run, between the balancer's measurements of the costs of ranks.
#[derive(Clone, Debug, Default)]
pub(super) struct Loads(Vec<RecordedPhase>);

/// A balancer, and the result that it would have had.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Replay {
    /// The balancer.
    pub name: &'static str,
    /// Seconds of all periods.
    pub seconds: f64,
    /// Ranks moved.
    pub moves: usize,
}

/// How well load was balanced again after it had shifted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Recovery {
    /// The median part of the ideal over all periods except the first two.
    pub median: f64,
    /// The part of these periods that reached [`NEAR`] of the ideal.
    pub near: f64,
    /// The greatest number of consecutive periods that did not.
    pub longest: usize,
}

/// The goal, as a part of the ideal.
pub(super) const NEAR: f64 = 0.9;

impl Loads {
    /// Reads the output of `--lb-dump NAME`, and removes it: otherwise it would be taken for that of the next run.
    pub(super) fn take(name: &Path) -> Result<Loads, DataFileError> {
        let file_of = |pe: usize| -> PathBuf {
            let mut file = name.as_os_str().to_owned();
            file.push(format!(".{pe}.json"));
            file.into()
        };
        let paths: Vec<PathBuf> = (0..).map(file_of).take_while(|path| path.exists()).collect();
        let files: Result<Vec<DataFile>, _> = paths.iter().map(DataFile::read).collect();
        for path in &paths {
            let _ = std::fs::remove_file(path);
        }
        Ok(Loads(replay::phases(&files?)?))
    }

    /// The middle of each period in seconds, and the part of the time of PEs in which ranks worked: the throughput
    /// there, relative to that of PEs that never wait.
    pub(super) fn efficiencies(&self) -> Vec<(f64, f64)> {
        let mut begin = 0.0;
        let point = |phase: &RecordedPhase| {
            let middle = begin + 0.5 * phase.seconds;
            begin += phase.seconds;
            (middle, phase.efficiency())
        };
        self.0.iter().map(point).collect()
    }

    /// The same, for all periods together; `None` if there are none.
    pub(super) fn of_ideal(&self) -> Option<f64> {
        let seconds: f64 = self.0.iter().map(|phase| phase.seconds).sum();
        let worked: f64 = self.0.iter().map(|phase| phase.seconds * phase.efficiency()).sum();
        (seconds > 0.0).then(|| worked / seconds)
    }

    /// The recovery after the first two periods; `None` if there are no others.
    pub(super) fn recovery(&self) -> Option<Recovery> {
        let later: Vec<f64> = self.0.iter().skip(2).map(RecordedPhase::efficiency).collect();
        let median = experiments::Spread::of(later.iter().copied())?.median;
        let is_near = |efficiency: &f64| *efficiency >= NEAR;
        let near = later.iter().filter(|it| is_near(it)).count() as f64 / later.len() as f64;
        let longest = later.split(is_near).map(<[f64]>::len).max().unwrap_or(0);
        Some(Recovery { median, near, longest })
    }

    /// The results that each strategy, deciding after each period, and `auto` would have had, fastest first.
    pub(super) fn replays(&self) -> Result<Vec<Replay>, LoadModelError> {
        let mut replays = Vec::new();
        let mut add = |name, decider| {
            let replayed = replay::replay(&self.0, decider)?;
            replays.push(Replay { name, seconds: replayed.seconds, moves: replayed.moves });
            Ok::<(), LoadModelError>(())
        };
        add("nobody moves", Decider::Nobody)?;
        let usual: Vec<_> =
            auto::USUAL.iter().filter_map(|name| lb_strategies::find(name).ok()).collect();
        // Periods are as long as they are.
        let longest = self.0.iter().map(|phase| phase.seconds).fold(0.0, f64::max);
        add(auto::NAME, Decider::Auto(Box::new(Auto::new(&usual, Some(longest)))))?;
        for strategy in strategies().iter().filter(|it| !it.is_chaos()) {
            // Each has defaults for what it can be told.
            let Ok(balancer) = create::<&str, &str>(strategy.name(), &[]) else { continue };
            add(strategy.name(), Decider::Strategy(balancer, 1))?;
        }
        replays.retain(|it| it.name != "null");
        replays.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        Ok(replays)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use lb_strategies::auto::{MessageCost, PeState};
    use lb_strategies::{LoadModel, Object, Pe};

    use super::*;

    /// Periods of one second on two PEs, with these loads of the ranks on the first and the second PE.
    pub(crate) fn loads(periods: &[[f64; 2]]) -> Loads {
        let phase = |each: &[f64; 2]| {
            let objects = (0..8).map(|id| Object::new(each[id / 4] / 4.0, id / 4)).collect();
            RecordedPhase {
                model: LoadModel::new(vec![Pe::default(); 2], objects, vec![]).unwrap(),
                ids: (0..8).collect(),
                seconds: 1.0,
                pes: vec![PeState::default(); 2],
                message_cost: MessageCost::default(),
            }
        };
        Loads(periods.iter().map(phase).collect())
    }

    #[test]
    fn a_period_is_as_near_to_the_ideal_as_pes_work() {
        let loads = loads(&[[1.0, 0.2], [1.0, 0.4], [1.0, 0.9], [1.0, 0.5], [0.91, 0.91]]);
        let efficiencies = loads.efficiencies();
        let (time, part) = efficiencies[1];
        assert!(efficiencies.len() == 5 && time == 1.5 && (part - 0.7).abs() < 1e-9, "{part}");
        assert!((loads.of_ideal().unwrap() - 0.782).abs() < 1e-9);
        let Recovery { median, near, longest } = loads.recovery().unwrap();
        assert!((median - 0.91).abs() < 1e-9 && longest == 1, "{median} {longest}");
        assert!((near - 2.0 / 3.0).abs() < 1e-9);
        assert_eq!(Loads::default().recovery(), None);
        assert_eq!(Loads::default().of_ideal(), None);
    }

    #[test]
    fn what_balancers_would_have_made_of_it_is_in_order() {
        let replays = loads(&[[1.0, 0.2]; 20]).replays().unwrap();
        assert_eq!(replays.last().map(|it| (it.name, it.moves)), Some(("nobody moves", 0)));
        let best = &replays[0];
        assert!(best.seconds < 14.0 && best.moves > 0, "{best:?}");
        assert!(replays.iter().any(|it| it.name == "auto"));
    }
}
