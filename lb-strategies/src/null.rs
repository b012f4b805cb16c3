//! `null`: nothing moves. The baseline for other strategies.

use crate::{
    assignment::Assignment,
    config::{Config, Parameter},
    model::LoadModel,
    strategy::Strategy,
};

/// Leaves every object where it is.
#[derive(Clone, Copy, Debug)]
pub struct Null;

impl Strategy for Null {
    fn name(&self) -> &'static str {
        "null"
    }

    fn help(&self) -> &'static str {
        "leave every object where it is; costs of a balancing step without its benefit"
    }

    fn parameters(&self) -> &'static [Parameter] {
        &[]
    }

    fn propose(&self, model: &LoadModel, _config: &Config, _seed: u64) -> Vec<usize> {
        Assignment::today(model).pes().to_vec()
    }
}
