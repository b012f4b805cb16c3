//! Time steps: what a block does, and when it needs its neighbours.

use super::block::Block;
use super::{Error, Settings};

/// The blocks around a block.
pub trait Neighbours {
    /// Fills the ghost cells of `block` across x, then across z, including those at the ends of the
    /// domain.
    fn fill(&mut self, block: &mut Block);

    /// The maximum over the values of all blocks.
    fn largest(&mut self, value: f64) -> f64;
}

/// The progress of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Clock {
    /// Number of steps.
    pub steps: usize,
    /// The time reached.
    pub time: f64,
}

/// Makes a step, as long as stability and the end of the run allow.
///
/// # Errors
///
/// [`Error::BlownUp`], for all blocks at once, if the state of some cell is not a gas.
pub fn step(
    block: &mut Block,
    neighbours: &mut impl Neighbours,
    settings: &Settings,
    clock: &mut Clock,
) -> Result<(), Error> {
    neighbours.fill(block);
    block.burn(clock.time);
    let fastest = fastest(block, neighbours, clock)?;
    let rest = settings.end_time - clock.time;
    let stable = settings.cfl / fastest;
    let is_last = rest <= stable;
    let dt = if is_last { rest } else { stable };
    block.begin_step();
    block.stage(dt, false);
    neighbours.fill(block);
    block.stage(dt, true);
    clock.steps += 1;
    clock.time = if is_last { settings.end_time } else { clock.time + dt };
    if is_last {
        self::fastest(block, neighbours, clock)?;
    }
    Ok(())
}

/// The greatest rate at which waves cross a cell of any block, if the states of all cells are gas.
fn fastest(block: &Block, neighbours: &mut impl Neighbours, clock: &Clock) -> Result<f64, Error> {
    let fastest = neighbours.largest(block.fastest());
    if fastest.is_finite() {
        Ok(fastest)
    } else {
        Err(Error::BlownUp { step: clock.steps, time: clock.time })
    }
}

/// The neighbour of a block that is the whole domain: itself, where the domain is periodic.
pub struct Alone;

impl Neighbours for Alone {
    fn fill(&mut self, block: &mut Block) {
        for axis in [0, 2] {
            if block.is_periodic(axis) {
                let mut lent = Vec::new();
                for side in [0, 1] {
                    block.lend(axis, 1 - side, &mut lent);
                    block.borrow(axis, side, &lent);
                }
            }
            block.fill_boundary(axis);
        }
    }

    fn largest(&mut self, value: f64) -> f64 {
        value
    }
}
