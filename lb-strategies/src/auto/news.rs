//! What there is to say about a trial, and how it is said.

use std::fmt;

use super::compare::Change;

/// What has become of a trial, or that one begins.
#[derive(Clone, Debug, PartialEq)]
pub enum News {
    /// A placement is tried, which promises so much.
    Tries {
        /// Who has found it.
        name: String,
        /// The promised gain.
        promised: f64,
    },
    /// A placement stays: it is better by so much.
    Keeps {
        /// Who has found it.
        name: String,
        /// What was measured.
        change: Change,
    },
    /// Nothing is gained by a placement that could be told from noise.
    NoGain {
        /// Who has found it.
        name: String,
        /// What was measured.
        change: Change,
        /// It seems no worse, and stays; else all go back.
        stays: bool,
    },
    /// Nothing was done before or since, so nobody can tell; all stay where they are.
    CannotTell {
        /// Who has found the placement.
        name: String,
    },
    /// A placement was worse by so much: all go back.
    TakesBack {
        /// Who had found it.
        name: String,
        /// What was measured.
        change: Change,
    },
}

impl fmt::Display for News {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |part: f64| 100.0 * part;
        match self {
            Self::Tries { name, promised } => {
                write!(f, "tries {name}, which promises {:+.1}%", percent(*promised))
            }
            Self::Keeps { name, change } => {
                let Change { gain, spread } = change;
                write!(f, "keeps {name}: {:+.1}% +- {:.1}", percent(*gain), percent(*spread))
            }
            Self::NoGain { name, change, stays } => {
                let Change { gain, spread } = change;
                let (gain, spread) = (percent(*gain), percent(*spread));
                let goes = if *stays { "" } else { ", and goes back" };
                write!(
                    f,
                    "no gain by {name} that can be told from noise: {gain:+.1}% +- {spread:.1}{goes}"
                )
            }
            Self::CannotTell { name } => {
                write!(
                    f,
                    "no gain by {name} that can be told, as the job has done nothing meanwhile"
                )
            }
            Self::TakesBack { name, change } => {
                let Change { gain, spread } = change;
                write!(f, "takes {name} back: {:+.1}% +- {:.1}", percent(*gain), percent(*spread))
            }
        }
    }
}
