//! What a job is: how many PEs and ranks, how large they are.
//!
//! Every option is defined once, by a field of [`Config`]: its flag, its environment variable, its
//! help and its checks come from there; `builder` has its method. Programs of their own flatten [`Config`] into their
//! command line; programs that parse arguments themselves are configured by the environment, which
//! `vrtrun` fills.

mod builder;
mod values;

use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use clap::Parser;
use lb_strategies::predict::Forecast;

use vrt_balance::{Balancing, LbReport, MovePinned};
use crate::config::values::{
    Watch, count, duration, expect_json, forecast, move_by, name_of, name_of_move, read_network,
    size, switch, variable, watch,
};
use vrt_core::exchange::{Exchanges, LogGp, Protocol};
use vrt_core::migrate::MoveBy;
use vrt_core::pe::Options;
use vrt_slot::SlotSizes;

// Documented where it is exported: a doc comment here would be the help of programs that flatten it
// into their command lines and have none of their own.
#[expect(missing_docs, reason = "see above")]
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args)]
#[command(next_help_heading = "Virtual ranks")]
pub struct Config {
    /// Processing elements: processes that run ranks [default: one per available core]
    #[arg(long, env = variable("VRT_PES"), value_name = "N", hide_env_values = true, value_parser = count)]
    pes: Option<NonZeroU32>,

    /// Virtual ranks in the job [default: 4 per PE]
    #[arg(long, env = variable("VRT_RANKS"), value_name = "N", hide_env_values = true, value_parser = count)]
    ranks: Option<NonZeroU32>,

    /// Treat every N PEs as a node that shares no memory with others [default: all PEs are one]
    #[arg(long, env = variable("VRT_NODE_SIZE"), value_name = "N", hide_env_values = true, value_parser = count)]
    node_size: Option<NonZeroU32>,

    /// What carries messages between PEs: shared memory on this machine, or also MPI between PEs that
    /// a launcher such as mpirun has started [default: MPI under such a launcher]
    #[arg(long, env = variable("VRT_NET"), value_name = "HOW", hide_env_values = true)]
    net: Option<Net>,

    /// Stack of a rank, such as 512K or 8M [default: 8M, less with over 4,000 ranks]
    #[arg(long, env = variable("VRT_STACK"), value_name = "SIZE", hide_env_values = true, value_parser = size)]
    stack: Option<usize>,

    /// Address space for the heap of a rank, such as 1G [default: as much as fits, up to 64G]
    #[arg(long, env = variable("VRT_SLOT"), value_name = "SIZE", hide_env_values = true, value_parser = size)]
    slot: Option<usize>,

    /// Longest message that is sent before its receive is known [default: 8K]
    #[arg(long, env = variable("VRT_EAGER"), value_name = "SIZE", hide_env_values = true, value_parser = size)]
    eager: Option<usize>,

    /// Memory that messages to a rank may take for which it has no receive, such as 64M; further
    /// sends to it then wait for their receives [default: a share of the machine's memory]
    #[arg(long, env = variable("VRT_UNEXPECTED"), value_name = "SIZE", hide_env_values = true, value_parser = size)]
    unexpected: Option<usize>,

    /// Move ranks by this strategy while the job runs, such as greedy-refine; `list` shows all
    #[arg(long, env = variable("VRT_LB"), value_name = "NAME", hide_env_values = true)]
    lb: Option<String>,

    /// A parameter of the strategy, such as home-bias=0.1; may be repeated
    #[arg(
        long,
        env = variable("VRT_LB_ARG"),
        value_name = "K=V",
        hide_env_values = true,
        value_delimiter = ','
    )]
    lb_arg: Vec<String>,

    /// Take a balancing step in every such time, such as 500ms, wherever ranks are suspended
    /// [default: steps are taken when all ranks call `migrate`]
    #[arg(long, env = variable("VRT_LB_PERIOD"), value_name = "TIME", hide_env_values = true, value_parser = duration)]
    lb_period: Option<Duration>,

    /// How ranks move: with their memory as it is, or by the state they give to `migrate`
    #[arg(long = "move", env = variable("VRT_MOVE"), value_name = "HOW", hide_env_values = true, value_parser = move_by)]
    move_by: Option<MoveBy>,

    /// Predict loads from earlier ones: last, mean, median or linear, with arguments behind a
    /// colon, such as median:n=5 [default: last]
    #[arg(long, env = variable("VRT_LB_PREDICT"), value_name = "NAME", hide_env_values = true)]
    lb_predict: Option<String>,

    /// Write the loads of all steps to FILE.PE.json, in the layout of DARMA vt's load data
    #[arg(long, env = variable("VRT_LB_DUMP"), value_name = "FILE", hide_env_values = true)]
    lb_dump: Option<PathBuf>,

    /// What to do when ranks cannot be moved because of what they hold: say so once, or end the job
    /// [default: warn]
    #[arg(long, env = variable("VRT_MOVE_PINNED"), value_name = "WHAT", hide_env_values = true)]
    move_pinned: Option<MovePinned>,

    /// What to say about balancing: a line for each step, a summary when the job ends, or nothing
    /// [default: end]
    #[arg(long, env = variable("VRT_LB_REPORT"), value_name = "WHEN", hide_env_values = true)]
    lb_report: Option<LbReport>,

    /// Keep to pages of 4 KiB; otherwise large heaps have pages of 2 MiB where the system gives them
    #[arg(long, env = variable("VRT_NO_HUGE_PAGES"), hide_env_values = true, value_parser = switch())]
    no_huge_pages: bool,

    /// How sparse exchanges find out who receives from whom: auto, pex, pcx, rsx, nbx or nbx-node;
    /// `list` explains them [default: auto]
    #[arg(long, env = variable("VRT_EXCHANGE"), value_name = "NAME", hide_env_values = true)]
    exchange: Option<String>,

    /// Choose exchange protocols for the network whose parameters `sparse-mini loggp` wrote to this
    /// file [default: this computer's, as measured once]
    #[arg(long, env = variable("VRT_LOGGP"), value_name = "FILE", hide_env_values = true)]
    loggp: Option<PathBuf>,

    /// Do not bind PEs to cores
    #[arg(long, env = variable("VRT_NO_PIN"), hide_env_values = true, value_parser = switch())]
    no_pin: bool,

    /// What core files of crashed PEs have beside what every core file has: `rank`: the stack and heap
    /// of the rank that crashed; a core is then written if the system allows it at all
    #[arg(long, env = variable("VRT_CORE"), value_name = "WHAT", hide_env_values = true)]
    core: Option<Core>,

    /// Report what ranks leave behind in their heaps
    #[arg(long, env = variable("VRT_CHECK_LEAKS"), hide_env_values = true, value_parser = switch())]
    check_leaks: bool,

    /// Look for pointers into a PE's heap on the stacks of suspended ranks (slow)
    #[arg(long, env = variable("VRT_CHECK_STACKS"), hide_env_values = true, value_parser = switch())]
    check_stacks: bool,

    /// Search all memory of a rank before each move, and say what it refers to that is not its own
    #[arg(long, env = variable("VRT_CHECK_MOVES"), hide_env_values = true, value_parser = switch())]
    check_moves: bool,

    /// Say which rank keeps its PE's thread for such a time while others wait for it, such as 2s; or
    /// `off` [default: 10s]
    #[arg(long, env = variable("VRT_WATCHDOG"), value_name = "TIME", hide_env_values = true, value_parser = watch)]
    watchdog: Option<Watch>,

    /// Print what each PE has done when the job ends
    #[arg(long, env = variable("VRT_STATISTICS"), hide_env_values = true, value_parser = switch())]
    statistics: bool,
}

/// What core files of crashed PEs have beside what every core file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Core {
    /// The stack and heap of the rank that crashed
    Rank,
}

/// What carries messages between PEs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Net {
    /// Shared memory; this process starts the PEs
    Local,
    /// MPI, and shared memory inside a machine; a launcher has started the PEs
    Mpi,
}

/// The most ranks that a job may have.
const MAX_RANKS: u32 = 1 << 24;
/// The most PEs that a job may have.
const MAX_PES: u32 = 1024;

/// A configuration that cannot be.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The command line or an environment variable is wrong; the text names it.
    #[error("{0}")]
    Option(String),
    /// A number is out of range.
    #[error("{option} {value} is out of range: 1 to {max} are allowed")]
    Range {
        /// The option.
        option: &'static str,
        /// Its value.
        value: u32,
        /// The largest one allowed.
        max: u32,
    },
}

#[derive(Parser)]
#[command(name = "vrt", no_binary_name = true)]
struct Alone {
    #[command(flatten)]
    config: Config,
}

impl Config {
    /// The configuration that the `VRT_*` environment variables describe.
    ///
    /// # Errors
    /// A variable has a value that it cannot have.
    pub fn from_env() -> Result<Config, ConfigError> {
        Config::from_arguments(std::iter::empty())
    }

    /// The configuration that flags, and the environment where they are silent, describe.
    ///
    /// # Errors
    /// A flag is unknown, or a flag or variable has a value that it cannot have.
    pub fn from_arguments(
        arguments: impl IntoIterator<Item = OsString>,
    ) -> Result<Config, ConfigError> {
        Alone::try_parse_from(arguments)
            .map(|alone| alone.config)
            .map_err(|error| ConfigError::Option(first_line(&error.to_string())))
    }

    /// This configuration, overridden by the `VRT_*` environment variables that are set.
    ///
    /// # Errors
    /// A variable has a value that it cannot have.
    pub fn overridden_by_env(self) -> Result<Config, ConfigError> {
        let env = Config::from_env()?;
        Ok(Config {
            pes: env.pes.or(self.pes),
            ranks: env.ranks.or(self.ranks),
            node_size: env.node_size.or(self.node_size),
            net: env.net.or(self.net),
            stack: env.stack.or(self.stack),
            slot: env.slot.or(self.slot),
            eager: env.eager.or(self.eager),
            unexpected: env.unexpected.or(self.unexpected),
            lb: env.lb.or(self.lb),
            lb_arg: if env.lb_arg.is_empty() { self.lb_arg } else { env.lb_arg },
            lb_period: env.lb_period.or(self.lb_period),
            move_by: env.move_by.or(self.move_by),
            move_pinned: env.move_pinned.or(self.move_pinned),
            lb_predict: env.lb_predict.or(self.lb_predict),
            lb_dump: env.lb_dump.or(self.lb_dump),
            lb_report: env.lb_report.or(self.lb_report),
            exchange: env.exchange.or(self.exchange),
            loggp: env.loggp.or(self.loggp),
            core: env.core.or(self.core),
            watchdog: env.watchdog.or(self.watchdog),
            no_pin: env.no_pin || self.no_pin,
            no_huge_pages: env.no_huge_pages || self.no_huge_pages,
            check_leaks: env.check_leaks || self.check_leaks,
            check_moves: env.check_moves || self.check_moves,
            check_stacks: env.check_stacks || self.check_stacks,
            statistics: env.statistics || self.statistics,
        })
    }

    /// After which time a rank that keeps its PE's thread from others is named; `None`: never.
    pub fn watchdog(&self) -> Option<Duration> {
        self.watchdog.map_or(Some(Duration::from_secs(10)), |watch| watch.0)
    }

    /// The number of PEs.
    pub fn pes(&self) -> u32 {
        self.pes.map_or_else(|| available_cores() as u32, NonZeroU32::get)
    }

    /// The number of ranks.
    pub fn ranks(&self) -> u32 {
        self.ranks.map_or_else(|| 4 * self.pes(), NonZeroU32::get)
    }

    /// The number of PEs that make a node.
    pub fn node_size(&self) -> u32 {
        self.node_size.map_or(self.pes(), |size| size.get().min(self.pes()))
    }

    /// This configuration where memory means something else on each PE: ranks move by their state or
    /// not at all. With what there is to say about that, if anything.
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

    /// What carries messages between PEs, if that was said.
    pub fn net(&self) -> Option<Net> {
        self.net
    }

    /// Whether the number of PEs that make a node was said.
    #[cfg(feature = "mpi")]
    pub(crate) fn chosen_node_size(&self) -> Option<u32> {
        self.node_size.map(NonZeroU32::get)
    }

    /// This configuration for as many PEs as a launcher has started.
    ///
    /// # Errors
    /// Another number was asked for.
    #[cfg(feature = "mpi")]
    pub(crate) fn for_started_pes(&self, started: u32) -> Result<Config, ConfigError> {
        match self.pes {
            Some(asked) if asked.get() != started => Err(ConfigError::Option(format!(
                "--pes {asked}: the launcher has started {started} processes, and each is a PE"
            ))),
            _ => Ok(self.clone().with_pes(started)),
        }
    }

    /// How sparse exchanges find out who receives from whom, if that was said.
    ///
    /// # Errors
    /// There is no such protocol.
    pub fn exchange(&self) -> Result<Option<Protocol>, ConfigError> {
        match &self.exchange {
            None => Ok(None),
            Some(_) => self.protocol().map(Some),
        }
    }

    /// Whether large heaps are to have 2 MiB pages where the system gives them.
    pub fn wants_huge_pages(&self) -> bool {
        !self.no_huge_pages
    }

    /// Whether PEs are bound to cores where there are enough.
    pub fn pins(&self) -> bool {
        !self.no_pin
    }

    /// What core files of crashed PEs have beside what every core file has, if that was said.
    pub fn core(&self) -> Option<Core> {
        self.core
    }

    /// Whether to look for pointers into a PE's heap on the stacks of suspended ranks.
    pub(crate) fn checks_stacks(&self) -> bool {
        self.check_stacks
    }

    /// Whether to print what each PE has done.
    pub fn prints_statistics(&self) -> bool {
        self.statistics
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        for (option, value, max) in
            [("--pes", self.pes(), MAX_PES), ("--ranks", self.ranks(), MAX_RANKS)]
        {
            if value > max {
                return Err(ConfigError::Range { option, value, max });
            }
        }
        if let Some(name) = &self.lb_dump {
            expect_json("--lb-dump", name)?;
            if self.lb.is_none() {
                let text = "--lb-dump needs --lb; `--lb null` measures and moves nothing";
                return Err(ConfigError::Option(text.to_owned()));
            }
            let file = vrt_balance::dump::file_of(name, 0);
            if let Err(error) = std::fs::File::create(&file) {
                let text = format!("--lb-dump: cannot write {}: {error}", file.display());
                return Err(ConfigError::Option(text));
            }
        }
        self.exchanges()?;
        self.balancing().map(|_| ())
    }

    /// Whether the user wants to see what can be given to `--exchange`.
    pub(crate) fn asks_for_protocols(&self) -> bool {
        self.exchange.as_deref() == Some("list")
    }

    /// How sparse exchanges go.
    pub(crate) fn exchanges(&self) -> Result<Exchanges, ConfigError> {
        Ok(Exchanges {
            protocol: self.protocol()?,
            model: self.loggp.as_deref().map_or(Ok(LogGp::RANKS), read_network)?,
        })
    }

    fn protocol(&self) -> Result<Protocol, ConfigError> {
        let Some(name) = &self.exchange else { return Ok(Protocol::Auto) };
        name.parse().map_err(|error| ConfigError::Option(format!("--exchange: {error}")))
    }

    /// Whether the user wants to see what can be given to `--lb`.
    pub(crate) fn asks_for_strategies(&self) -> bool {
        self.lb.as_deref() == Some("list")
    }

    /// The strategy that moves ranks, if there is one.
    pub(crate) fn balancing(&self) -> Result<Option<Balancing>, ConfigError> {
        let Some(name) = &self.lb else { return Ok(None) };
        let wrong = |error: &dyn std::error::Error| ConfigError::Option(format!("--lb: {error}"));
        let strategy = lb_strategies::find(name).map_err(|error| wrong(&error))?;
        let config = lb_strategies::Config::parse(strategy, &self.lb_arg.join(","))
            .map_err(|error| ConfigError::Option(format!("--lb-arg for {name}: {error}")))?;
        let move_by = self.move_by.unwrap_or(MoveBy::Memory);
        let move_pinned = self.move_pinned.unwrap_or_default();
        Ok(Some(Balancing {
            strategy,
            config,
            period: self.lb_period,
            move_by,
            move_pinned,
            forecast: match &self.lb_predict {
                Some(text) => forecast(text)?,
                None => Forecast::default(),
            },
            dump: self.lb_dump.clone(),
            report: self.lb_report.unwrap_or_default(),
        }))
    }

    /// Whether ranks move by their state.
    pub(crate) fn moves_by_state(&self) -> bool {
        self.move_by == Some(MoveBy::State)
    }

    pub(crate) fn slot_sizes(&self) -> SlotSizes {
        SlotSizes { stack: self.stack, heap: self.slot, pes: self.pes() as usize }
    }

    pub(crate) fn options(&self) -> Options {
        Options {
            eager: self.eager.unwrap_or(8 << 10),
            unexpected: self.unexpected.unwrap_or_else(|| share_of_memory(self.ranks())),
            local: false,
            oversubscribed: self.pes() as usize > available_cores(),
            memory_moves: true,
            check_leaks: self.check_leaks,
            check_moves: self.check_moves,
            check_stacks: self.check_stacks,
        }
    }

    /// The environment variables that say what this configuration says, for a program that is
    /// about to be started.
    pub fn to_env(&self) -> Vec<(&'static str, String)> {
        let numbers = [
            ("VRT_PES", self.pes.map(|n| n.get() as usize)),
            ("VRT_RANKS", self.ranks.map(|n| n.get() as usize)),
            ("VRT_NODE_SIZE", self.node_size.map(|n| n.get() as usize)),
            ("VRT_STACK", self.stack),
            ("VRT_SLOT", self.slot),
            ("VRT_EAGER", self.eager),
            ("VRT_UNEXPECTED", self.unexpected),
        ];
        let switches = [
            ("VRT_NO_PIN", self.no_pin),
            ("VRT_NO_HUGE_PAGES", self.no_huge_pages),
            ("VRT_CHECK_LEAKS", self.check_leaks),
            ("VRT_CHECK_MOVES", self.check_moves),
            ("VRT_CHECK_STACKS", self.check_stacks),
            ("VRT_STATISTICS", self.statistics),
        ];
        let numbers = numbers.into_iter().filter_map(|(k, v)| Some((k, v?.to_string())));
        let period = self.lb_period.map(|period| format!("{}us", period.as_micros()));
        let watchdog = |Watch(period)| match period {
            Some(period) => format!("{}us", Duration::as_micros(&period)),
            None => "off".to_owned(),
        };
        let texts = [
            ("VRT_WATCHDOG", self.watchdog.map(watchdog)),
            ("VRT_LB", self.lb.clone()),
            ("VRT_LB_ARG", (!self.lb_arg.is_empty()).then(|| self.lb_arg.join(","))),
            ("VRT_LB_PERIOD", period),
            ("VRT_EXCHANGE", self.exchange.clone()),
            ("VRT_LOGGP", self.loggp.as_ref().map(|name| name.display().to_string())),
            ("VRT_CORE", self.core.as_ref().and_then(name_of)),
            ("VRT_MOVE", self.move_by.map(name_of_move)),
            ("VRT_NET", self.net.as_ref().and_then(name_of)),
            ("VRT_MOVE_PINNED", self.move_pinned.as_ref().and_then(name_of)),
            ("VRT_LB_PREDICT", self.lb_predict.clone()),
            ("VRT_LB_REPORT", self.lb_report.as_ref().and_then(name_of)),
            ("VRT_LB_DUMP", self.lb_dump.as_ref().map(|name| name.display().to_string())),
        ];
        let texts = texts.into_iter().filter_map(|(k, v)| Some((k, v?)));
        let switches = switches.into_iter().filter(|s| s.1).map(|(k, _)| (k, "true".to_owned()));
        numbers.chain(texts).chain(switches).collect()
    }
}

/// Bytes that unexpected messages of each of so many ranks may take unless something else is said:
/// an eighth of the machine's memory for all of them, but enough for any rank to be useful.
fn share_of_memory(ranks: u32) -> usize {
    const LEAST: usize = 4 << 20;
    (vrt_slot::machine_memory() / 8 / ranks.max(1) as usize).max(LEAST)
}

/// Cores that this process could use when it first asked.
///
/// Asked once: a PE, which inherits the answer, is bound to one core and would count only that.
pub(crate) fn available_cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// What is wrong, without clap's usage block.
fn first_line(text: &str) -> String {
    let end = text.find("\n\n").unwrap_or(text.len());
    text[..end].trim_start_matches("error: ").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Config, ConfigError> {
        Config::from_arguments(arguments.iter().map(OsString::from))
    }

    #[test]
    fn flags_and_their_environment_say_the_same() {
        let config =
            parse(&["--pes", "3", "--ranks=12", "--stack", "64K", "--slot", "2g"]).unwrap();
        assert_eq!((config.pes(), config.ranks()), (3, 12));
        assert_eq!((config.stack, config.slot), (Some(64 << 10), Some(2 << 30)));
        let env = config.to_env();
        assert!(env.contains(&("VRT_STACK", "65536".to_owned())), "{env:?}");
    }

    #[test]
    fn wrong_values_are_named() {
        for (arguments, parts) in [
            (["--ranks", "0"], ["'0'", "--ranks"]),
            (["--pes", "two"], ["'two'", "--pes"]),
            (["--stack", "8X"], ["'8X'", "K, M, G or T"]),
            (["--rank", "3"], ["'--rank'", "unexpected"]),
        ] {
            let text = parse(&arguments).unwrap_err().to_string();
            assert!(parts.iter().all(|part| text.contains(part)), "{text}");
        }
        let unknown = parse(&["--exchange", "nbc"]).unwrap().check().unwrap_err().to_string();
        assert!(unknown.contains("`nbc`") && unknown.contains("nbx-node"), "{unknown}");
        let too_many = Config::default().with_pes(5000).check().unwrap_err().to_string();
        assert!(too_many.contains("5000") && too_many.contains("1024"), "{too_many}");
    }
}
