//! The machines of the paper: tables 1 and 2, and section 4 on their networks.

use mpi::exchange::LogGp;
use serde::{Deserialize, Serialize};

/// A machine whose network is simulated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Its name.
    pub name: String,
    /// The parameters of its network.
    pub parameters: LogGp,
    /// Processes that share a link into the network, on which their bytes are serialised.
    #[serde(default = "one")]
    pub processes_per_link: usize,
    /// Microseconds of a hardware barrier, from the last process's arrival to the release of all.
    #[serde(default)]
    pub hardware_barrier: Option<f64>,
    /// Microseconds per entry of the table that PEX and PCX send around: to fill it in, add it to
    /// another or copy it. Not a parameter of LogGP.
    #[serde(default)]
    pub entry: f64,
}

fn one() -> usize {
    1
}

impl Machine {
    /// A machine with this many processes, each with its own link.
    pub fn new(name: &str, parameters: LogGp) -> Machine {
        Machine {
            name: name.to_owned(),
            parameters,
            processes_per_link: 1,
            hardware_barrier: None,
            entry: 0.0,
        }
    }
}

/// The machines of the paper, each with 4 processes on a node.
///
/// Intrepid's nodes have six torus links for them, and a network for barriers that takes less than
/// a microsecond. The nodes of Jaguar and Big Red have one link each, and G is its whole rate:
/// SeaStar 2 takes 1.7 GB/s from a node, Myrinet 2000 0.24 GB/s. An entry of a table takes four
/// cycles (two loads, an addition, a store) at 0.85, 2.3 and 2.5 GHz.
pub fn machines() -> [Machine; 3] {
    let machine = |name: &str, [latency, overhead, gap, gap_per_byte, synchronous]: [f64; 5]| {
        let synchronous_latency = synchronous;
        let parameters = LogGp { latency, overhead, gap, gap_per_byte, synchronous_latency };
        Machine::new(name, parameters)
    };
    let shares_link = |cycles_per_microsecond: f64, machine: Machine| Machine {
        processes_per_link: 4,
        entry: 4.0 / cycles_per_microsecond,
        ..machine
    };
    [
        Machine {
            hardware_barrier: Some(1.0),
            entry: 4.0 / 850.0,
            ..machine("intrepid", [4.29, 2.87, 2.04, 0.00267, 5.04])
        },
        shares_link(2300.0, machine("jaguar", [9.90, 1.75, 3.40, 0.00058, 25.40])),
        shares_link(2500.0, machine("bigred", [7.08, 11.78, 4.19, 0.00414, 8.02])),
    ]
}
