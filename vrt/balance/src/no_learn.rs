//! Replaces [`learn`](super::learn) if the feature `json` is off: nothing is kept.

use std::path::Path;

/// Never constructed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Learned {
    pub ranks: usize,
    pub pes: usize,
    pub interval: f64,
    pub placement: Option<Vec<u32>>,
    pub strategy: Option<String>,
    pub gain: f64,
}

/// Never happens: `--lb-learn` was refused.
#[derive(Debug, thiserror::Error)]
#[error("--lb-learn needs the feature json")]
pub struct LearnError;

pub(crate) fn check(_: &Path) -> Result<(), LearnError> {
    Err(LearnError)
}

pub(crate) fn recall(_: &Path, _: &str) -> Result<Option<Learned>, LearnError> {
    Err(LearnError)
}

pub(crate) fn keep(_: &Path, _: String, _: Learned) -> Result<(), LearnError> {
    Err(LearnError)
}

pub(crate) fn name_of_job() -> String {
    String::new()
}
