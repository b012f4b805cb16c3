//! What of a job's configuration is about balancing.

use lb_strategies::predict::Forecast;
use std::path::PathBuf;
use std::time::Duration;

use vrt_core::migrate::MoveBy;

/// How a job balances its load.
#[derive(Clone)]
pub struct Balancing {
    pub strategy: &'static dyn lb_strategies::Strategy,
    pub config: lb_strategies::Config,
    /// Time between two steps; `None`: they happen when all ranks call `migrate`.
    pub period: Option<Duration>,
    pub move_by: MoveBy,
    pub move_pinned: MovePinned,
    pub forecast: Forecast,
    /// The name of the files that the loads are written to.
    pub dump: Option<PathBuf>,
    pub report: LbReport,
}

/// What is said about balancing, on stderr.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum LbReport {
    /// A line for each step, and a summary when the job ends
    Steps,
    /// A summary when the job ends
    #[default]
    End,
    /// Nothing
    Off,
}

/// What to do about ranks that cannot be moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum MovePinned {
    /// Say so once on each PE; they are load that stays
    #[default]
    Warn,
    /// End the job
    Error,
}

impl std::fmt::Debug for Balancing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.period {
            Some(period) => write!(f, "{} every {period:?}", self.strategy.name()),
            None => write!(f, "{} at migrate", self.strategy.name()),
        }
    }
}
