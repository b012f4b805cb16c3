//! What options say about sparse exchanges: the protocol, and the network that it is chosen for.

use std::fmt::Display;
use std::path::Path;

use vrt_core::exchange::{Exchanges, LogGp, Protocol};
use vrt_core::options::ConfigError;

/// The protocol of `--exchange`.
pub(super) fn protocol(name: &str) -> Result<Protocol, ConfigError> {
    name.parse().map_err(|error| ConfigError::Option(format!("--exchange: {error}")))
}

/// Exchanges by a protocol, which is chosen for the network in the file of `--loggp`.
pub(super) fn exchanges(protocol: Protocol, file: Option<&Path>) -> Result<Exchanges, ConfigError> {
    Ok(Exchanges { protocol, model: file.map_or(Ok(LogGp::RANKS), read_network)? })
}

/// Refuses an option with a value if it needs JSON, which this program cannot have.
pub(super) fn expect_json(option: &str, value: impl Display) -> Result<(), ConfigError> {
    if cfg!(feature = "json") {
        return Ok(());
    }
    Err(ConfigError::Option(format!(
        "{option} {value}: this program was built without the feature `json` of `vrt`"
    )))
}

/// The parameters in a file that `sparse-mini loggp` has written.
fn read_network(file: &Path) -> Result<LogGp, ConfigError> {
    expect_json("--loggp", file.display())?;
    let wrong = |error: &dyn std::error::Error| {
        ConfigError::Option(format!("--loggp: {}: {error}", file.display()))
    };
    let text = LogGp::read_text(file).map_err(|error| wrong(&error))?;
    let network = parse_network(&text).map_err(|error| wrong(&*error))?;
    network.check().map_err(|error| wrong(&error))
}

#[cfg(feature = "json")]
fn parse_network(text: &str) -> Result<LogGp, Box<dyn std::error::Error>> {
    /// What `sparse-mini loggp` writes, of which this is read.
    #[derive(serde::Deserialize)]
    struct MeasuredNetwork {
        parameters: LogGp,
    }
    let network: MeasuredNetwork = serde_json::from_str(text)?;
    Ok(network.parameters)
}

#[cfg(not(feature = "json"))]
fn parse_network(_: &str) -> Result<LogGp, Box<dyn std::error::Error>> {
    unreachable!("such files were refused")
}
