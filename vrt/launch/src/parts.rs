//! The extensions that work on each PE of a job, beside its core.

use crate::config::{Config, ConfigError};
use crate::trace::Trace;
use vrt_balance::{Balancer, Balancing};
use vrt_core::comm::Combining;
use vrt_core::exchange::Exchanges;
use vrt_core::migrate::{Migration, Rules};
use vrt_core::net::shared::Shared;
use vrt_core::pe::{Extensions, Observer};
use vrt_core::rma::Windows;

/// How the extensions of a job's PEs are configured.
pub(super) struct Parts {
    pub(super) balancing: Option<Balancing>,
    by_state: bool,
    exchanges: Exchanges,
    trace: Option<Trace>,
}

impl Parts {
    /// Of a job with this configuration.
    pub(super) fn of(config: &Config, trace: Option<Trace>) -> Result<Parts, ConfigError> {
        let (balancing, by_state) = (config.balancing()?, config.moves_by_state());
        Ok(Parts { balancing, by_state, exchanges: config.exchanges()?, trace })
    }

    /// Of a PE that is alone: its rank cannot move anywhere.
    pub(super) fn alone(config: &Config) -> Result<Parts, ConfigError> {
        let exchanges = config.exchanges()?;
        Ok(Parts { balancing: None, by_state: false, exchanges, trace: None })
    }

    /// The observer of a PE of this process, if one was requested.
    pub(super) fn observer(&self, id: u32, shared: &Shared) -> Option<Box<dyn Observer>> {
        self.trace.as_ref()?.observer(id, shared)
    }

    /// The extensions of a PE.
    pub(super) fn of_pe(&self, id: u32, shared: &Shared) -> Extensions {
        let balancing = self.balancing.as_ref();
        let rules = Rules {
            move_by: balancing.map(|it| it.move_by),
            periodic: balancing.is_some_and(Balancing::is_periodic),
            by_state: self.by_state,
        };
        let extensions = Extensions::none()
            .with(Migration::new(rules))
            .with(Combining::default())
            .with(Windows)
            .with(self.exchanges);
        match balancing {
            Some(balancing) => extensions.with(Balancer::new(balancing, id, shared)),
            None => extensions,
        }
    }
}
