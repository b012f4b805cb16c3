//! Reports requests that have no effect, and why.

use std::ffi::OsString;

use lb_strategies::{auto, similar};
use vrt_balance::LbReport;
use vrt_slot::report::count;

use crate::config::Config;
use crate::config::entry::Entry;
use crate::config::table::OPTIONS;

/// The prefix of our variables.
const PREFIX: &str = "VRT_";

/// Our variables that are not options: those of the compilers, of processes that execute programs again, and of the
/// tests.
const OTHERS: [&str; 11] = [
    "VRT_CC",
    "VRT_CXX",
    "VRT_STARTED_AGAIN",
    "VRT_EXECUTED_AGAIN",
    "VRT_TEST_LIMIT",
    "VRT_TEST_ALL",
    "VRT_WRITE_COVERAGE",
    "VRT_SOAK_ROUNDS",
    "VRT_SOAK_SECONDS",
    "VRT_BENCH_RUN",
    "VRT_MPIRUN",
];

impl Config {
    /// Prints which parts of the configuration and the environment have no effect.
    pub(crate) fn tell_what_does_nothing(&self) {
        let names = std::env::vars_os().map(|(name, _)| name);
        for note in unknown_variables(names).into_iter().chain(self.what_does_nothing()) {
            vrt_slot::report::say(format_args!("note: {note}"));
        }
    }

    /// A line for each option that has no effect together with the others.
    fn what_does_nothing(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let (pes, ranks) = (self.pes(), self.ranks());
        if ranks < pes {
            notes.push(format!(
                "{} on {}: {} without one; --ranks sets how many there are",
                count(ranks, "rank"),
                count(pes, "PE"),
                if pes - ranks == 1 {
                    "1 PE is".to_owned()
                } else {
                    format!("{} PEs are", pes - ranks)
                }
            ));
        }
        let Some(strategy) = &self.lb else {
            let given = [
                ("--lb-arg", !self.lb_arg.is_empty()),
                ("--lb-period", self.lb_period.is_some()),
                ("--lb-predict", self.lb_predict.is_some()),
                ("--lb-report", self.lb_report.is_some_and(|it| it != LbReport::Off)),
                ("--move-pinned", self.move_pinned.is_some()),
            ];
            for (option, _) in given.iter().filter(|(_, is_given)| *is_given) {
                notes.push(format!(
                    "{option} does nothing without --lb: ranks stay where they are; --lb auto moves them"
                ));
            }
            return notes;
        };
        if strategy == auto::NAME && self.lb_predict.is_some() {
            notes.push(format!(
                "--lb-predict does nothing with --lb {strategy}, which goes by what it measured last"
            ));
        }
        let is_chaos = lb_strategies::find(strategy).is_ok_and(|it| it.is_chaos());
        if pes == 1 {
            notes.push(format!("--lb {strategy} does nothing: there is 1 PE, so no rank can move"));
        } else if ranks <= pes && !is_chaos && strategy != "null" {
            notes.push(format!(
                "--lb {strategy} has little to choose from: {} on {} PEs; give it several ranks per PE (--ranks)",
                count(ranks, "rank"),
                pes
            ));
        }
        notes
    }
}

/// A line for each variable that looks like one of ours but is not.
fn unknown_variables(names: impl Iterator<Item = OsString>) -> Vec<String> {
    let known = |name: &str| OTHERS.contains(&name) || OPTIONS.iter().any(|it| it.variable == name);
    let mut notes = Vec::new();
    for name in names {
        let Some(name) = name.to_str() else { continue };
        let Some(rest) = name.strip_prefix(PREFIX).filter(|_| !known(name)) else { continue };
        let variables = OPTIONS
            .iter()
            .filter_map(|option: &Entry<Config>| option.variable.strip_prefix(PREFIX));
        let meant = match similar(rest, variables) {
            Some(meant) => format!("; did you mean {PREFIX}{meant}?"),
            None => String::new(),
        };
        notes.push(format!("the environment has {name}, which is no variable of vrt's{meant}"));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use vrt_balance::MovePinned;

    fn job() -> Config {
        Config::default().with_pes(2).with_ranks(8)
    }

    #[test]
    fn what_does_nothing_is_told() {
        let period = Duration::from_millis(5);
        for (config, words) in [
            (job().with_lb_period(period), "--lb-period does nothing without --lb"),
            (job().with_lb_arg("a=1"), "--lb-arg does nothing without --lb"),
            (job().with_lb_predict("last"), "--lb-predict does nothing without --lb"),
            (job().with_lb_report(LbReport::Steps), "--lb-report does nothing without --lb"),
            (job().with_move_pinned(MovePinned::Warn), "--move-pinned does nothing without --lb"),
            (
                job().with_lb("auto").with_lb_predict("mean"),
                "--lb-predict does nothing with --lb auto",
            ),
            (job().with_ranks(1), "1 rank on 2 PEs: 1 PE is without one"),
            (job().with_pes(4).with_ranks(2), "2 ranks on 4 PEs: 2 PEs are without one"),
            (job().with_pes(1).with_lb("greedy"), "--lb greedy does nothing: there is 1 PE"),
            (job().with_ranks(2).with_lb("auto"), "--lb auto has little to choose from"),
        ] {
            let notes = config.what_does_nothing();
            assert!(notes.len() == 1 && notes[0].starts_with(words), "{words}: {notes:?}");
        }
        for config in [
            job(),
            job().with_lb("greedy").with_lb_period(period),
            job().with_lb("rotate").with_ranks(2),
        ] {
            assert_eq!(config.what_does_nothing(), Vec::<String>::new(), "{config:?}");
        }
    }

    #[test]
    fn as_many_pes_start_as_there_are_ranks_for_them() {
        assert_eq!(Config::default().with_ranks(1).pes(), 1);
        assert!(Config::default().with_ranks(1).what_does_nothing().is_empty());
        assert_eq!(Config::default().with_pes(3).with_ranks(1).pes(), 3);
    }

    #[test]
    fn variables_that_there_are_not_are_named_with_what_may_be_meant() {
        let told = |name: &str| unknown_variables([OsString::from(name)].into_iter());
        for (name, meant) in [
            ("VRT_RANK", Some("VRT_RANKS")),
            ("VRT_LB_STRATEGY", None),
            ("VRT_PE", Some("VRT_PES")),
            ("VRT_LBPERIOD", Some("VRT_LB_PERIOD")),
            ("VRT_", None),
        ] {
            let notes = told(name);
            assert!(notes.len() == 1 && notes[0].contains(&format!("has {name}, ")), "{notes:?}");
            if let Some(meant) = meant {
                assert!(notes[0].ends_with(&format!("; did you mean {meant}?")), "{notes:?}");
            }
        }
        for name in
            OPTIONS.iter().map(|option| option.variable).chain(OTHERS).chain(["VRTRUN", "HOME"])
        {
            assert_eq!(told(name), Vec::<String>::new());
        }
    }
}
