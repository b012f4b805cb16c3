//! Describes a job: how many PEs and ranks, and how large they are.
//!
//! Every option is an entry of one `table`, which yields its field of [`Config`], its flag, its environment variable,
//! its help and its method. A program can flatten [`Config`] into its own command line (`cli`); programs that parse
//! arguments themselves are configured by the environment, which `vrtrun` fills. The syntax of a value, and what it
//! means, are defined by the module that owns its type ([`vrt_core::options`]); this module passes values on.

mod choices;
#[cfg(feature = "cli")]
mod cli;
mod entry;
mod network;
mod notes;
mod table;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use entry::Entry;
use table::OPTIONS;
use vrt_balance::{Balancing, Chosen};
use vrt_core::exchange::{Exchanges, Protocol};
use vrt_core::migrate::MoveBy;
use vrt_core::options::Size;
use vrt_core::pe::Options;
use vrt_slot::SlotSizes;

pub use choices::{Core, Net};
pub use table::Config;
pub use vrt_core::options::ConfigError;

/// The most ranks that a job may have.
const MAX_RANKS: u32 = 1 << 24;
/// The most PEs that a job may have.
const MAX_PES: u32 = 1024;

impl Config {
    /// The configuration that the `VRT_*` environment variables describe.
    ///
    /// # Errors
    /// A variable has an invalid value.
    pub fn from_env() -> Result<Config, ConfigError> {
        Config::default().overridden_by_env()
    }

    /// This configuration, overridden by the `VRT_*` environment variables that are set.
    ///
    /// # Errors
    /// A variable has an invalid value.
    pub fn overridden_by_env(self) -> Result<Config, ConfigError> {
        self.overridden_by(|name| std::env::var_os(name))
    }

    fn overridden_by(
        mut self,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Config, ConfigError> {
        for option in OPTIONS {
            option.read_variable(&mut self, &variable)?;
        }
        Ok(self)
    }

    /// The environment variables that express this configuration, for a program that is about to be started.
    pub fn to_env(&self) -> Vec<(&'static str, String)> {
        let said = |option: &Entry<Config>| Some((option.variable, (option.write)(self)?));
        OPTIONS.iter().filter_map(said).collect()
    }

    /// The time after which the watchdog names a rank that keeps its PE's thread from others; `None`: never.
    pub fn watchdog(&self) -> Option<Duration> {
        self.watchdog.map_or(Some(Duration::from_secs(10)), |watch| watch.0)
    }

    /// The number of PEs: by default one per available core, but no more than ranks.
    pub fn pes(&self) -> u32 {
        let usual = || {
            let cores = available_cores() as u32;
            self.ranks.map_or(cores, |ranks| ranks.get().min(cores))
        };
        self.pes.map_or_else(usual, NonZeroU32::get)
    }

    /// The number of ranks.
    pub fn ranks(&self) -> u32 {
        self.ranks.map_or_else(|| 4 * self.pes(), NonZeroU32::get)
    }

    /// The number of PEs per node.
    pub fn node_size(&self) -> u32 {
        self.node_size.map_or(self.pes(), |size| size.get().min(self.pes()))
    }

    /// This configuration for PEs whose memory differs: ranks move by their state or not at all. Returns also the
    /// message to print, if any.
    #[cfg(feature = "mpi")]
    pub(crate) fn without_moves_by_memory(self) -> (Config, Option<&'static str>) {
        match (&self.lb, self.move_by) {
            (_, Some(MoveBy::State)) => (self, None),
            (None, _) => (self, Some("ranks can move by their state only (--move state)")),
            (Some(_), _) => {
                let config = Config { lb: None, ..self };
                (config, Some("no balancing: ranks could move by their state only (--move state)"))
            }
        }
    }

    /// What carries messages between PEs, if that was given.
    pub fn net(&self) -> Option<Net> {
        self.net
    }

    /// Whether the number of PEs per node was given.
    #[cfg(feature = "mpi")]
    pub(crate) fn chosen_node_size(&self) -> Option<u32> {
        self.node_size.map(NonZeroU32::get)
    }

    /// This configuration for as many PEs as a launcher has started.
    ///
    /// # Errors
    /// The configuration asks for another number.
    #[cfg(feature = "mpi")]
    pub(crate) fn for_started_pes(&self, started: u32) -> Result<Config, ConfigError> {
        match self.pes {
            Some(asked) if asked.get() != started => Err(ConfigError::Option(format!(
                "--pes {asked}: the launcher has started {started} processes, and each is a PE"
            ))),
            _ => Ok(self.clone().with_pes(started)),
        }
    }

    /// How sparse exchanges find out who receives from whom, if that was given.
    ///
    /// # Errors
    /// No protocol has this name.
    pub fn exchange(&self) -> Result<Option<Protocol>, ConfigError> {
        self.exchange.as_deref().map(network::protocol).transpose()
    }

    /// Whether each rank gets its own thread-locals.
    pub(crate) fn has_private_thread_locals(&self) -> bool {
        self.private_thread_locals
    }

    /// Whether large heaps use 2 MiB pages where the system provides them.
    pub fn wants_huge_pages(&self) -> bool {
        !self.no_huge_pages
    }

    /// Whether PEs are bound to cores if there are enough cores.
    pub fn pins(&self) -> bool {
        !self.no_bind
    }

    /// What core files of crashed PEs contain in addition to the usual contents, if that was given.
    pub fn core(&self) -> Option<Core> {
        self.core
    }

    /// Whether to report what ranks leave in their heaps.
    pub fn checks_leaks(&self) -> bool {
        self.check_leaks
    }

    /// Whether to search for pointers into a PE's heap on the stacks of suspended ranks.
    pub(crate) fn checks_stacks(&self) -> bool {
        self.check_stacks
    }

    /// Whether to print statistics of each PE.
    pub fn prints_statistics(&self) -> bool {
        self.statistics
    }

    /// Checks all values, and that the files named by options can be written.
    ///
    /// # Errors
    /// The first option that cannot have its value.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.trace.is_some() && !vrt_core::pe::CAN_BE_OBSERVED {
            let text = "--trace: this program was built with --cfg vrt_unobserved, so that nothing can be recorded";
            return Err(ConfigError::Option(text.to_owned()));
        }
        if self.trace_limit.is_some() && self.trace.is_none() {
            let text = "--trace-limit: it limits what --trace FILE records, which is not given";
            return Err(ConfigError::Option(text.to_owned()));
        }
        for (option, value, max) in
            [("--pes", self.pes(), MAX_PES), ("--ranks", self.ranks(), MAX_RANKS)]
        {
            if value > max {
                return Err(ConfigError::Range { option, value, max });
            }
        }
        if let Some(file) = &self.lb_dump {
            vrt_balance::expect_dumps_to(file, self.lb.is_some())?;
        }
        if let Some(file) = &self.lb_learn {
            vrt_balance::expect_learned(file, self.lb.as_deref())?;
        }
        if let Some(address) = &self.monitor {
            network::page_address(address)?;
        }
        self.exchanges()?;
        self.balancing().map(|_| ())
    }

    /// The list of valid values for an option whose value is `list`, if there is one.
    pub fn asked_list(&self) -> Option<String> {
        let asks = |option: &Option<String>| option.as_deref() == Some("list");
        if asks(&self.lb) {
            return Some(lb_strategies::registry::list());
        }
        if asks(&self.lb_predict) {
            return Some(lb_strategies::predict::list());
        }
        asks(&self.exchange).then(vrt_core::exchange::list)
    }

    /// How sparse exchanges are done.
    pub(crate) fn exchanges(&self) -> Result<Exchanges, ConfigError> {
        let protocol = self.exchange()?.unwrap_or_default();
        network::exchanges(protocol, self.loggp.as_deref())
    }

    /// Whether ranks are moved by a strategy.
    pub fn balances(&self) -> bool {
        self.lb.is_some()
    }

    /// The strategy that moves ranks, if there is one.
    pub(crate) fn balancing(&self) -> Result<Option<Balancing>, ConfigError> {
        let Some(name) = &self.lb else { return Ok(None) };
        let Chosen { strategy, config, auto } = vrt_balance::strategy(name, &self.lb_arg)?;
        let forecast = self.lb_predict.as_deref().map(vrt_balance::forecast).transpose()?;
        Ok(Some(Balancing {
            strategy,
            config,
            auto,
            period: self.lb_period,
            move_by: self.move_by.unwrap_or(MoveBy::Memory),
            move_pinned: self.move_pinned.unwrap_or_default(),
            forecast: forecast.unwrap_or_default(),
            dump: self.lb_dump.clone(),
            learn: self.lb_learn.clone(),
            report: self.lb_report.unwrap_or_default(),
        }))
    }

    /// The file that the trace is written to, if one was requested.
    pub fn trace(&self) -> Option<&Path> {
        self.trace.as_deref()
    }

    /// The address of the web page that shows the running job, if one was requested.
    ///
    /// # Errors
    /// It is not an address of this machine.
    pub fn monitor(&self) -> Result<Option<SocketAddr>, ConfigError> {
        self.monitor.as_deref().map(network::page_address).transpose()
    }

    /// Whether a monitor will observe the job, as far as is known now.
    pub(super) fn has_monitor(&self) -> bool {
        self.monitor.is_some()
    }

    /// How many bytes of trace all PEs together record.
    pub(crate) fn trace_limit(&self) -> u64 {
        self.trace_limit.map_or(1 << 30, |size| size.0 as u64)
    }

    /// Whether ranks move by their state.
    pub(crate) fn moves_by_state(&self) -> bool {
        self.move_by == Some(MoveBy::State)
    }

    pub(crate) fn slot_sizes(&self) -> SlotSizes {
        let bytes = |size: Option<Size>| size.map(|Size(bytes)| bytes);
        let (pes, image) = (self.pes() as usize, vrt_slot::image::size());
        SlotSizes { stack: bytes(self.stack), heap: bytes(self.slot), pes, image }
    }

    pub(crate) fn options(&self) -> Options {
        Options {
            eager: self.eager.map(|size| size.0),
            unexpected: self
                .unexpected
                .map_or_else(|| share_of_memory(self.ranks()), |size| size.0),
            local: false,
            oversubscribed: self.pes() as usize > available_cores(),
            memory_moves: true,
            check_leaks: self.check_leaks,
            check_moves: self.check_moves,
            check_stacks: self.check_stacks,
        }
    }
}

/// The default limit, in bytes, for the unexpected messages of each of this many ranks: together an
/// eighth of the machine's memory, but at least enough for any rank to be useful.
fn share_of_memory(ranks: u32) -> usize {
    const LEAST: usize = 4 << 20;
    (vrt_slot::machine_memory() / 8 / ranks.max(1) as usize).max(LEAST)
}

/// Cores that this process could use when it first asked.
///
/// Determined once: a PE, which inherits the answer, is bound to one core and would count only that
/// core.
pub(crate) fn available_cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::entry::Shape;
    use std::collections::BTreeSet;

    fn from_variables(set: &[(&str, &str)]) -> Result<Config, ConfigError> {
        overriding(Config::default(), set)
    }

    fn overriding(config: Config, set: &[(&str, &str)]) -> Result<Config, ConfigError> {
        let find = |name: &str| set.iter().find(|(variable, _)| *variable == name);
        config.overridden_by(|name| find(name).map(|(_, text)| OsString::from(text)))
    }

    #[test]
    fn an_option_is_called_the_same_everywhere() {
        for option in OPTIONS {
            let variable = format!("VRT_{}", option.name().replace('-', "_").to_uppercase());
            assert_eq!(option.variable, variable);
            assert!(option.usage.starts_with("--"), "{}", option.usage);
            assert_eq!(option.value_name().is_none(), option.shape == Shape::Switch);
        }
        let names: BTreeSet<_> = OPTIONS.iter().map(Entry::name).collect();
        assert_eq!(names.len(), OPTIONS.len());
    }

    /// The table of `docs/options.md`: a row for each option.
    fn documented() -> String {
        let mut rows = String::from("| flag | variable | meaning | default |\n|---|---|---|---|\n");
        for option in OPTIONS {
            let (meaning, default) = match option.help.split_once(" [default: ") {
                Some((meaning, default)) => (meaning, default.trim_end_matches(']')),
                None => (option.help, ""),
            };
            let choices =
                option.choices.iter().map(|choice| format!("`{}`: {}", choice.name, choice.help));
            let choices = choices.collect::<Vec<_>>().join("; ");
            let meaning = if choices.is_empty() {
                meaning.to_owned()
            } else {
                format!("{meaning}. {choices}")
            };
            rows += &format!(
                "| `{}` | `{}` | {meaning} | {default} |\n",
                option.usage, option.variable
            );
        }
        rows
    }

    #[test]
    fn the_page_of_options_has_all_of_them() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/options.md");
        let page = std::fs::read_to_string(path).unwrap();
        let (before, rest) = page.split_once("<!-- options").unwrap();
        let (head, rest) = rest.split_once("-->\n").unwrap();
        let (table, after) = rest.split_once("<!-- end of options -->").unwrap();
        if std::env::var_os("VRT_WRITE_OPTIONS").is_some() {
            let page = format!(
                "{before}<!-- options{head}-->\n{}<!-- end of options -->{after}",
                documented()
            );
            std::fs::write(path, page).unwrap();
        } else {
            assert_eq!(
                table,
                documented(),
                "VRT_WRITE_OPTIONS=1 cargo test -p vrt-launch writes it"
            );
        }
    }

    #[test]
    fn methods_set_what_variables_say() {
        let methods = Config::default()
            .with_pes(3)
            .with_stack(64 << 10)
            .with_lb_arg("a=1")
            .with_lb_arg("b=2")
            .with_lb_period(Duration::from_millis(5))
            .with_move(MoveBy::InPlace)
            .with_exchange(Protocol::NbxByNode)
            .with_watchdog(None)
            .with_no_bind(true);
        let said = [
            ("VRT_PES", "3"),
            ("VRT_STACK", "64K"),
            ("VRT_LB_ARG", "a=1,b=2"),
            ("VRT_LB_PERIOD", "5ms"),
            ("VRT_MOVE", "in-place"),
            ("VRT_EXCHANGE", "nbx-node"),
            ("VRT_WATCHDOG", "off"),
            ("VRT_NO_BIND", "yes"),
        ];
        assert_eq!(from_variables(&said).unwrap(), methods);
        assert_eq!(Config::default().with_pes(3).with_pes(0), Config::default());
    }

    #[test]
    fn what_is_written_for_a_program_is_what_it_reads() {
        // A value for each kind; the last one is for options that take any text.
        let values = ["3", "64K", "5ms", "on", "a=1,b=2"];
        for option in OPTIONS {
            let names = option.choices.iter().map(|choice| choice.name);
            let config = names
                .chain(values)
                .find_map(|value| from_variables(&[(option.variable, value)]).ok())
                .unwrap();
            let env = config.to_env();
            let [(variable, text)] = &env[..] else { panic!("{env:?}") };
            assert_eq!(*variable, option.variable);
            assert_eq!(from_variables(&[(variable, text)]).unwrap(), config, "{text}");
        }
    }

    #[test]
    fn variables_that_are_set_override() {
        let built = Config::default().with_ranks(5).with_lb_arg("a=1").with_no_bind(true);
        let set = [("VRT_RANKS", "7"), ("VRT_LB_ARG", ""), ("VRT_NO_BIND", "off")];
        let config = overriding(built.clone(), &set).unwrap();
        assert_eq!(config, built.with_ranks(7).with_no_bind(false));
    }

    #[test]
    fn wrong_values_are_named() {
        for (variable, text, words) in [
            ("VRT_RANKS", "0", "invalid value '0' for '--ranks <N>': a whole number from 1 up"),
            ("VRT_STACK", "8X", "invalid value '8X' for '--stack <SIZE>': a number of bytes"),
            ("VRT_NO_BIND", "maybe", "invalid value 'maybe' for '--no-bind': true, yes, on or 1"),
            ("VRT_MOVE", "by-foot", "invalid value 'by-foot' for '--move <HOW>'\n  [possible"),
            (
                "VRT_MOVE",
                "stat",
                "invalid value 'stat' for '--move <HOW>'\n  [possible values: memory, state, in-place]\n  tip: a similar value exists: 'state'",
            ),
        ] {
            let refused = from_variables(&[(variable, text)]).unwrap_err().to_string();
            assert!(refused.starts_with(words), "{refused}");
        }
        let unknown = from_variables(&[("VRT_EXCHANGE", "nbc")]).unwrap();
        let unknown = unknown.check().unwrap_err().to_string();
        assert!(unknown.contains("`nbc`") && unknown.contains("nbx-node"), "{unknown}");
        let too_many = Config::default().with_pes(5000).check().unwrap_err().to_string();
        assert!(too_many.contains("5000") && too_many.contains("1024"), "{too_many}");
    }
}
