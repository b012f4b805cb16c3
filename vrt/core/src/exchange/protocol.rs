//! The protocols by name: one table, from which options are parsed and which `list` prints.

use std::fmt;
use std::fmt::Write as _;
use std::str::FromStr;

/// How a sparse exchange finds out who receives from whom.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// The fastest one as predicted from the measured LogGP parameters, the number of ranks and k.
    #[default]
    Auto,
    /// Personalized exchange: every rank tells every other how much it will send (all-to-all).
    Pex,
    /// Personalized census: every rank learns how many messages it will get (reduce-scatter).
    Pcx,
    /// Remote summation: senders increment one-sided message counters at the receivers.
    Rsx,
    /// Nonblocking consensus: synchronous sends, and a barrier that shows when all have arrived.
    Nbx,
    /// NBX with one message per node, from where it is passed on.
    NbxByNode,
}

/// What is known of a protocol.
struct ProtocolEntry {
    protocol: Protocol,
    name: &'static str,
    help: &'static str,
}

const PROTOCOLS: [ProtocolEntry; 6] = [
    ProtocolEntry {
        protocol: Protocol::Auto,
        name: "auto",
        help: "chosen by LogGP parameters, the number of ranks and of partners (--loggp)",
    },
    ProtocolEntry {
        protocol: Protocol::Pex,
        name: "pex",
        help: "personalized exchange: an all-to-all of sizes, then the messages; time and memory \
               grow with the ranks",
    },
    ProtocolEntry {
        protocol: Protocol::Pcx,
        name: "pcx",
        help: "personalized census: a reduce-scatter of message counts, then the messages; time \
               and memory grow with the ranks",
    },
    ProtocolEntry {
        protocol: Protocol::Rsx,
        name: "rsx",
        help: "remote summation: receivers' counters are increased one-sided, a barrier, then the \
               messages",
    },
    ProtocolEntry {
        protocol: Protocol::Nbx,
        name: "nbx",
        help: "nonblocking consensus: synchronous sends and a nonblocking barrier; time grows with \
               the logarithm of the ranks",
    },
    ProtocolEntry {
        protocol: Protocol::NbxByNode,
        name: "nbx-node",
        help: "nbx with one message for each node, from where its parts are passed on: fewer \
               messages between nodes",
    },
];

impl Protocol {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Protocol> {
        PROTOCOLS.iter().map(|entry| entry.protocol)
    }

    /// Its name in options.
    pub fn name(self) -> &'static str {
        PROTOCOLS.iter().find(|entry| entry.protocol == self).map_or("", |entry| entry.name)
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that no protocol has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no exchange protocol `{0}`; protocols: {names}", names = names())]
pub struct UnknownProtocol(String);

impl FromStr for Protocol {
    type Err = UnknownProtocol;

    fn from_str(name: &str) -> Result<Protocol, UnknownProtocol> {
        let entry = PROTOCOLS.iter().find(|entry| entry.name == name);
        entry.map(|entry| entry.protocol).ok_or_else(|| UnknownProtocol(name.to_owned()))
    }
}

fn names() -> String {
    PROTOCOLS.map(|entry| entry.name).join(", ")
}

/// The protocols and what they do, as text for a terminal.
#[must_use]
pub fn list() -> String {
    let mut text = String::new();
    for ProtocolEntry { name, help, .. } in &PROTOCOLS {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{name:<10}{help}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_protocol_is_found_by_its_name_and_listed() {
        for protocol in Protocol::all() {
            assert_eq!(protocol.name().parse(), Ok(protocol));
            assert!(list().lines().any(|line| line.starts_with(protocol.name())));
        }
        let error = "nbc".parse::<Protocol>().unwrap_err().to_string();
        assert!(error.contains("`nbc`") && error.contains("nbx-node"), "{error}");
    }
}
