//! Stands for [`monitor`](super::monitor) where the feature `json` is off: nobody can look at the job, but
//! for the table that SIGUSR1 prints.

use crate::LaunchError;
use crate::config::Config;
use vrt_core::pe::Looker;

/// Nobody would wait to become a monitor.
#[cfg(feature = "mpi")]
pub(crate) struct WaitingMonitor;

#[cfg(feature = "mpi")]
impl WaitingMonitor {
    pub(crate) fn fork(_: &Config) -> Option<WaitingMonitor> {
        None
    }

    pub(crate) fn become_monitor(self, _: &SeenNode<'_>, _: &Config) -> Result<(), LaunchError> {
        Ok(())
    }
}

/// What it would have to know of a node.
#[cfg(feature = "mpi")]
pub(crate) struct SeenNode<'a> {
    pub sizes: (usize, usize, usize),
    pub number: usize,
    pub control: &'a std::os::fd::OwnedFd,
    pub events: &'a [i32],
    pub is_first: bool,
}

/// What somebody would use who looks.
pub(crate) struct Monitor {
    looker: Looker,
}

impl Monitor {
    pub(crate) fn begin(_: &Config, looker: Looker) -> Result<Monitor, LaunchError> {
        Ok(Monitor { looker })
    }

    pub(crate) fn listen(&mut self) {}

    pub(crate) fn somebody_looks(&mut self) {}

    pub(crate) fn looker(&self) -> &Looker {
        &self.looker
    }
}
