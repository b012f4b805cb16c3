//! What options say about networks: the protocol of sparse exchanges, the network for which it is chosen, and the
//! address of the running job's page.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;

use lb_strategies::did_you_mean;
use vrt_core::exchange::{Exchanges, LogGp, Protocol};
use vrt_core::options::ConfigError;

/// The protocol of `--exchange`.
pub(super) fn protocol(name: &str) -> Result<Protocol, ConfigError> {
    name.parse().map_err(|error| {
        let meant = did_you_mean(name, Protocol::all().map(Protocol::name));
        ConfigError::Option(format!("--exchange: {error}{meant}"))
    })
}

/// Exchanges by a protocol that is chosen for the network in the file of `--loggp`.
pub(super) fn exchanges(protocol: Protocol, file: Option<&Path>) -> Result<Exchanges, ConfigError> {
    Ok(Exchanges { protocol, model: file.map_or(Ok(LogGp::RANKS), read_network)? })
}

/// The parameters in a file written by `sparse-mini loggp`.
fn read_network(file: &Path) -> Result<LogGp, ConfigError> {
    let wrong = |error: &dyn std::error::Error| {
        ConfigError::Option(format!("--loggp: {}: {error}", file.display()))
    };
    let text = LogGp::read_text(file).map_err(|error| wrong(&error))?;
    let network = parse_network(&text).map_err(|error| wrong(&*error))?;
    network.check().map_err(|error| wrong(&error))
}

fn parse_network(text: &str) -> Result<LogGp, Box<dyn std::error::Error>> {
    /// The part of `sparse-mini loggp`'s output that is read.
    #[derive(serde::Deserialize)]
    struct MeasuredNetwork {
        parameters: LogGp,
    }
    let network: MeasuredNetwork = vrt_balance::json::read(text)?;
    Ok(network.parameters)
}

/// The address of the page: a port, or an address of this machine with a port.
pub(super) fn page_address(text: &str) -> Result<SocketAddr, ConfigError> {
    let wrong = |why: &str| {
        ConfigError::Option(format!(
            "--monitor {text}: {why}; a port such as 8080 is allowed (0: any that is free), also behind \
             an address of this machine's own, such as 127.0.0.1:8080"
        ))
    };
    let address = match text.parse::<u16>() {
        Ok(port) => SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port),
        Err(_) => {
            let numbers = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
            let numbers = numbers.as_deref().unwrap_or(text);
            numbers.parse().map_err(|_| wrong("it is no address with a port"))?
        }
    };
    if !address.ip().is_loopback() {
        return Err(wrong("others could reach the page there"));
    }
    Ok(address)
}

#[cfg(test)]
mod tests {
    use super::page_address;

    #[test]
    fn only_this_machine_is_listened_to() {
        for (text, address) in [
            ("8080", "127.0.0.1:8080"),
            ("localhost:0", "127.0.0.1:0"),
            ("127.0.0.2:1", "127.0.0.2:1"),
            ("[::1]:9", "[::1]:9"),
        ] {
            assert_eq!(page_address(text).unwrap().to_string(), address);
        }
        for text in ["", "here", "99999", "127.0.0.1", "0.0.0.0:80", "[::]:80", "10.0.0.1:80"] {
            let why = page_address(text).unwrap_err().to_string();
            assert!(why.starts_with(&format!("--monitor {text}: ")), "{why}");
        }
    }
}
