//! The methods that set options: one for each flag, of the same name.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use vrt_balance::{LbReport, MovePinned};
use crate::config::values::Watch;
use crate::config::{Config, Core, Net};
use vrt_core::exchange::Protocol;
use vrt_core::migrate::MoveBy;

impl Config {
    /// Sets the number of PEs; 0 means one per available core.
    #[must_use]
    pub fn with_pes(self, pes: u32) -> Config {
        Config { pes: NonZeroU32::new(pes), ..self }
    }

    /// Sets the number of ranks; 0 means 4 per PE.
    #[must_use]
    pub fn with_ranks(self, ranks: u32) -> Config {
        Config { ranks: NonZeroU32::new(ranks), ..self }
    }

    /// Sets the number of PEs that make a node; 0 means that all PEs are one.
    #[must_use]
    pub fn with_node_size(self, pes: u32) -> Config {
        Config { node_size: NonZeroU32::new(pes), ..self }
    }

    /// Sets the stack of a rank, in bytes.
    #[must_use]
    pub fn with_stack(self, bytes: usize) -> Config {
        Config { stack: Some(bytes), ..self }
    }

    /// Sets the address space for the heap of a rank, in bytes.
    #[must_use]
    pub fn with_slot(self, bytes: usize) -> Config {
        Config { slot: Some(bytes), ..self }
    }

    /// Sets the longest message, in bytes, that is sent before its receive is known.
    #[must_use]
    pub fn with_eager(self, bytes: usize) -> Config {
        Config { eager: Some(bytes), ..self }
    }

    /// Sets how much memory, in bytes, messages to a rank may take for which it has no receive.
    /// Further sends to it then wait for their receives.
    #[must_use]
    pub fn with_unexpected(self, bytes: usize) -> Config {
        Config { unexpected: Some(bytes), ..self }
    }

    /// Sets the strategy that moves ranks while the job runs.
    #[must_use]
    pub fn with_lb(self, name: impl Into<String>) -> Config {
        Config { lb: Some(name.into()), ..self }
    }

    /// Sets what carries messages between PEs.
    #[must_use]
    pub fn with_net(self, net: Net) -> Config {
        Config { net: Some(net), ..self }
    }

    /// Sets how ranks move.
    #[must_use]
    pub fn with_move(self, move_by: MoveBy) -> Config {
        Config { move_by: Some(move_by), ..self }
    }

    /// Sets the time between two balancing steps.
    #[must_use]
    pub fn with_lb_period(self, period: Duration) -> Config {
        Config { lb_period: Some(period), ..self }
    }

    /// Sets what is said about balancing.
    #[must_use]
    pub fn with_lb_report(self, report: LbReport) -> Config {
        Config { lb_report: Some(report), ..self }
    }

    /// Sets how sparse exchanges find out who receives from whom.
    #[must_use]
    pub fn with_exchange(self, protocol: Protocol) -> Config {
        Config { exchange: Some(protocol.name().to_owned()), ..self }
    }

    /// Adds a parameter of the strategy, such as `home-bias=0.1`.
    #[must_use]
    pub fn with_lb_arg(mut self, argument: impl Into<String>) -> Config {
        self.lb_arg.push(argument.into());
        self
    }

    /// Sets how loads are predicted from earlier ones: `last`, `mean`, `median` or `linear`, with
    /// arguments behind a colon, such as `median:n=5`.
    #[must_use]
    pub fn with_lb_predict(self, name: impl Into<String>) -> Config {
        Config { lb_predict: Some(name.into()), ..self }
    }

    /// Sets the file that the loads of all steps are written to, as `FILE.PE.json`.
    #[must_use]
    pub fn with_lb_dump(self, file: impl Into<PathBuf>) -> Config {
        Config { lb_dump: Some(file.into()), ..self }
    }

    /// Sets what to do when ranks cannot be moved.
    #[must_use]
    pub fn with_move_pinned(self, what: MovePinned) -> Config {
        Config { move_pinned: Some(what), ..self }
    }

    /// Keeps to pages of 4 KiB, or does not.
    #[must_use]
    pub fn with_no_huge_pages(self, yes: bool) -> Config {
        Config { no_huge_pages: yes, ..self }
    }

    /// Sets the file with the network for which exchange protocols are chosen.
    #[must_use]
    pub fn with_loggp(self, file: impl Into<PathBuf>) -> Config {
        Config { loggp: Some(file.into()), ..self }
    }

    /// Leaves PEs unbound, or binds them to cores.
    #[must_use]
    pub fn with_no_pin(self, yes: bool) -> Config {
        Config { no_pin: yes, ..self }
    }

    /// Sets what core files of crashed PEs have beside what every core file has.
    #[must_use]
    pub fn with_core(self, what: Core) -> Config {
        Config { core: Some(what), ..self }
    }

    /// Reports what ranks leave behind in their heaps, or does not.
    #[must_use]
    pub fn with_check_leaks(self, yes: bool) -> Config {
        Config { check_leaks: yes, ..self }
    }

    /// Looks for pointers into a PE's heap on the stacks of suspended ranks, or does not.
    #[must_use]
    pub fn with_check_stacks(self, yes: bool) -> Config {
        Config { check_stacks: yes, ..self }
    }

    /// Searches all memory of a rank before each move, or does not.
    #[must_use]
    pub fn with_check_moves(self, yes: bool) -> Config {
        Config { check_moves: yes, ..self }
    }

    /// Sets the time after which a rank that keeps its PE's thread from others is named; `None`:
    /// never.
    #[must_use]
    pub fn with_watchdog(self, period: Option<Duration>) -> Config {
        Config { watchdog: Some(Watch(period)), ..self }
    }

    /// Prints what each PE has done when the job ends, or does not.
    #[must_use]
    pub fn with_statistics(self, yes: bool) -> Config {
        Config { statistics: yes, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Args, Command};
    use std::collections::BTreeSet;
    use std::ffi::OsString;

    type Set = fn(Config) -> Config;

    /// Each option: flag, a value as it is written (none: a switch), the same said by the method, and
    /// as the environment says it.
    #[rustfmt::skip]
    const OPTIONS: &[(&str, Option<&str>, Set, &str)] = &[
        ("pes", Some("3"), |c| c.with_pes(3), "3"),
        ("ranks", Some("12"), |c| c.with_ranks(12), "12"),
        ("node-size", Some("2"), |c| c.with_node_size(2), "2"),
        ("net", Some("local"), |c| c.with_net(Net::Local), "local"),
        ("stack", Some("64K"), |c| c.with_stack(64 << 10), "65536"),
        ("slot", Some("2g"), |c| c.with_slot(2 << 30), "2147483648"),
        ("eager", Some("1K"), |c| c.with_eager(1024), "1024"),
        ("unexpected", Some("64M"), |c| c.with_unexpected(64 << 20), "67108864"),
        ("lb", Some("greedy"), |c| c.with_lb("greedy"), "greedy"),
        ("lb-arg", Some("a=1"), |c| c.with_lb_arg("a=1"), "a=1"),
        ("lb-period", Some("5ms"), |c| c.with_lb_period(Duration::from_millis(5)), "5000us"),
        ("lb-predict", Some("mean:n=4"), |c| c.with_lb_predict("mean:n=4"), "mean:n=4"),
        ("lb-dump", Some("f"), |c| c.with_lb_dump("f"), "f"),
        ("lb-report", Some("steps"), |c| c.with_lb_report(LbReport::Steps), "steps"),
        ("move", Some("state"), |c| c.with_move(MoveBy::State), "state"),
        ("move-pinned", Some("error"), |c| c.with_move_pinned(MovePinned::Error), "error"),
        ("no-huge-pages", None, |c| c.with_no_huge_pages(true), "true"),
        ("exchange", Some("nbx"), |c| c.with_exchange(Protocol::Nbx), "nbx"),
        ("loggp", Some("f"), |c| c.with_loggp("f"), "f"),
        ("no-pin", None, |c| c.with_no_pin(true), "true"),
        ("core", Some("rank"), |c| c.with_core(Core::Rank), "rank"),
        ("check-leaks", None, |c| c.with_check_leaks(true), "true"),
        ("check-stacks", None, |c| c.with_check_stacks(true), "true"),
        ("check-moves", None, |c| c.with_check_moves(true), "true"),
        ("watchdog", Some("2s"), |c| c.with_watchdog(Some(Duration::from_secs(2))), "2000000us"),
        ("statistics", None, |c| c.with_statistics(true), "true"),
    ];

    fn command() -> Command {
        Config::augment_args(Command::new("test"))
    }

    fn variable(flag: &str) -> String {
        format!("VRT_{}", flag.replace('-', "_").to_uppercase())
    }

    #[test]
    fn every_flag_has_a_variable_and_a_method_that_say_the_same() {
        let flags: BTreeSet<String> =
            command().get_arguments().filter_map(|arg| arg.get_long()).map(String::from).collect();
        let here: BTreeSet<String> = OPTIONS.iter().map(|option| option.0.to_owned()).collect();
        assert_eq!(flags, here, "flags of the command, and of this table");
        for arg in command().get_arguments() {
            let flag = arg.get_long().unwrap();
            assert_eq!(arg.get_env().unwrap().to_str(), Some(&*variable(flag)));
        }
        for (flag, value, set, said) in OPTIONS {
            let arguments = [Some(format!("--{flag}")), value.map(String::from)];
            let parsed =
                Config::from_arguments(arguments.into_iter().flatten().map(OsString::from))
                    .unwrap();
            let built = set(Config::default());
            assert_eq!(parsed, built, "--{flag}");
            assert_ne!(built, Config::default(), "--{flag}");
            let env = built.to_env();
            let env: Vec<_> = env.iter().map(|(name, value)| (*name, value.as_str())).collect();
            assert_eq!(env, [(&*variable(flag), *said)], "--{flag}");
        }
    }

    #[test]
    fn the_readme_has_every_option_and_no_other() {
        let readme = include_str!("../../../README.md");
        let rows = readme.lines().filter_map(|line| line.strip_prefix("| `--"));
        let rows: BTreeSet<(&str, &str)> = rows
            .filter_map(|row| {
                let (flag, rest) = row.split_once('`')?;
                let variable = rest.split('`').nth(1)?;
                Some((flag.split(' ').next()?, variable))
            })
            .collect();
        let variables: Vec<String> = OPTIONS.iter().map(|option| variable(option.0)).collect();
        let here = OPTIONS.iter().zip(&variables).map(|(option, name)| (option.0, name.as_str()));
        assert_eq!(rows, here.collect(), "README's table, and the options");
    }

    #[test]
    fn a_program_that_flattens_options_keeps_its_own_description() {
        assert_eq!(command().get_about(), None);
        assert_eq!(command().get_long_about(), None);
        let described = Config::augment_args(Command::new("test").about("mine"));
        assert_eq!(described.get_about().unwrap().to_string(), "mine");
    }
}
