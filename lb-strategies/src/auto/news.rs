//! Messages about trials, and their wording.

use std::fmt;

use super::compare::Change;

/// The result of a trial, or its beginning.
#[derive(Clone, Debug, PartialEq)]
pub enum News {
    /// A placement with this predicted gain is tried.
    Tries {
        /// The strategy that proposed it.
        name: String,
        /// The predicted gain.
        promised: f64,
    },
    /// A placement stays: it is better by this much.
    Keeps {
        /// The strategy that proposed it.
        name: String,
        /// The measured change.
        change: Change,
    },
    /// The placement's gain is within noise.
    NoGain {
        /// The strategy that proposed it.
        name: String,
        /// The measured change.
        change: Change,
        /// It seems no worse, and stays; otherwise all objects go back.
        stays: bool,
    },
    /// The job did nothing before or since, so the trial is undecided; all objects stay.
    CannotTell {
        /// The strategy that proposed the placement.
        name: String,
    },
    /// A placement was worse by this much: all objects go back.
    TakesBack {
        /// The strategy that proposed it.
        name: String,
        /// The measured change.
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
