//! `null`: nothing moves. What other strategies are compared with.

use crate::{
    assignment::Assignment,
    model::LoadModel,
    strategy::{Config, Parameter, Strategy},
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

    fn assign(&self, model: &LoadModel, _config: &Config, _seed: u64) -> Assignment {
        Assignment::today(model)
    }
}
