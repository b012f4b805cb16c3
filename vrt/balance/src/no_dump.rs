//! Replaces [`dump`](super::dump) if the feature `json` is off: there are no dumps.

use std::path::{Path, PathBuf};

use lb_strategies::LoadModel;

use crate::measure::PeLoad;

/// Never constructed.
#[derive(Debug)]
pub(crate) enum Dump {}

/// Never happens.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DumpError {}

impl Dump {
    pub fn new(name: &Path) -> Dump {
        unreachable!("--lb-dump {} was refused", name.display())
    }

    pub fn add(
        &mut self,
        _: &LoadModel,
        _: &[u32],
        _: impl Fn(u32) -> u32,
        _: impl Iterator<Item = PeLoad>,
    ) {
        match *self {}
    }

    pub fn write(&self) -> Result<(), DumpError> {
        match *self {}
    }
}

/// The file of a PE.
pub(crate) fn file_of(name: &Path, _: usize) -> PathBuf {
    name.to_owned()
}
