//! The part of a job's configuration that concerns balancing.

use std::path::{Path, PathBuf};
use std::time::Duration;

use lb_strategies::predict::Forecast;
use lb_strategies::{Config, Strategy, auto};

use crate::{dump, learn};
use vrt_core::choices;
use vrt_core::migrate::MoveBy;
use vrt_core::options::ConfigError;

/// How a job balances its load.
#[derive(Clone)]
pub struct Balancing {
    /// Decides which rank goes to which PE, from the measurements of a step.
    pub strategy: &'static dyn Strategy,
    /// The parameters of the strategy.
    pub config: Config,
    /// The strategies to choose from by their measured gain, instead of `strategy`.
    pub auto: Option<Vec<&'static dyn Strategy>>,
    /// Time between two steps; `None`: `auto` decides, and any other strategy runs when all ranks call `migrate`.
    pub period: Option<Duration>,
    /// How ranks move: with their memory, or by the state that they give to `migrate`.
    pub move_by: MoveBy,
    /// What the balancer does about ranks that cannot be moved.
    pub move_pinned: MovePinned,
    /// How the balancer predicts a rank's next load from the measured ones.
    pub forecast: Forecast,
    /// The name of the files that the loads are written to.
    pub dump: Option<PathBuf>,
    /// The file in which `auto` keeps its findings, for the next run of the job.
    pub learn: Option<PathBuf>,
    /// What the balancer reports on stderr.
    pub report: LbReport,
}

choices! {
    /// What is reported about balancing, on stderr.
    pub enum LbReport {
        /// A line for each step, and a summary when the job ends
        Steps = "steps",
        /// A summary when the job ends
        End = "end",
        /// Nothing
        Off = "off",
    }
    default End;
}

choices! {
    /// What to do about ranks that cannot be moved.
    pub enum MovePinned {
        /// Say so once on each PE; they are load that stays
        Warn = "warn",
        /// End the job
        Error = "error",
    }
    default Warn;
}

impl Balancing {
    /// Whether steps are taken by time, instead of when all ranks call `migrate`.
    pub fn is_periodic(&self) -> bool {
        self.period.is_some() || self.auto.is_some()
    }

    /// The users' name for the balancer.
    pub(crate) fn name(&self) -> &'static str {
        if self.auto.is_some() { auto::NAME } else { self.strategy.name() }
    }
}

/// The strategy of `--lb`, with the parameters of `--lb-arg`.
pub struct Chosen {
    /// The strategy that decides, or that `auto` begins with.
    pub strategy: &'static dyn Strategy,
    /// Its parameters.
    pub config: Config,
    /// The strategies that `auto` chooses from.
    pub auto: Option<Vec<&'static dyn Strategy>>,
}

/// The strategy of `--lb`, with the parameters of `--lb-arg`.
pub fn strategy(name: &str, arguments: &[String]) -> Result<Chosen, ConfigError> {
    let wrong = |error: &dyn std::fmt::Display| {
        ConfigError::Option(format!("--lb-arg for {name}: {error}"))
    };
    if name == auto::NAME {
        let strategies = auto::parse(arguments).map_err(|error| wrong(&error))?;
        let strategy = strategies[0];
        return Ok(Chosen { strategy, config: Config::new(strategy), auto: Some(strategies) });
    }
    let strategy = lb_strategies::find(name).map_err(|error| {
        let hint = match name.contains('/') {
            true => "; between `--lb` and a program stands `auto`, or another option",
            false => "",
        };
        ConfigError::Option(format!("--lb: {}{hint}", error.or(auto::NAME)))
    })?;
    let config = Config::parse(strategy, &arguments.join(",")).map_err(|error| wrong(&error))?;
    Ok(Chosen { strategy, config, auto: None })
}

/// The predictor of `--lb-predict`: its name, and arguments after a colon.
pub fn forecast(text: &str) -> Result<Forecast, ConfigError> {
    let (name, arguments) = text.split_once(':').unwrap_or((text, ""));
    let arguments: Vec<(&str, &str)> = arguments
        .split(',')
        .filter(|argument| !argument.is_empty())
        .map(|argument| argument.split_once('=').unwrap_or((argument, "")))
        .collect();
    lb_strategies::predict::create(name, &arguments)
        .map_err(|error| ConfigError::Option(format!("--lb-predict {text}: {error}")))
}

/// Refuses `--lb-dump` if there will be no loads, or no file for them.
pub fn expect_dumps_to(name: &Path, balances: bool) -> Result<(), ConfigError> {
    if !balances {
        let text = "--lb-dump needs --lb; `--lb null` measures and moves nothing";
        return Err(ConfigError::Option(text.to_owned()));
    }
    let file = dump::file_of(name, 0);
    std::fs::File::create(&file).map(drop).map_err(|error| {
        ConfigError::Option(format!("--lb-dump: cannot write {}: {error}", file.display()))
    })
}

/// Refuses `--lb-learn` if nothing will be learned, or the file has another format.
pub fn expect_learned(file: &Path, strategy: Option<&str>) -> Result<(), ConfigError> {
    if strategy != Some(auto::NAME) {
        return Err(ConfigError::Option("--lb-learn needs --lb auto".to_owned()));
    }
    learn::check(file).map_err(|error| ConfigError::Option(format!("--lb-learn: {error}")))
}

impl std::fmt::Debug for Balancing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.period {
            Some(period) => write!(f, "{} every {period:?}", self.name()),
            None => write!(f, "{} at migrate", self.name()),
        }
    }
}
