//! The progress of a rank, and its contribution to the outcome.

use mpi::collective::SystemOperation;
use mpi::topology::SimpleCommunicator;
use mpi::traits::*;
use serde::{Deserialize, Serialize};

use super::block::Block;
use super::kernel::Change;
use super::{ProcessGrid, Run, Settings, Solution, cell_checksum};

/// The progress of a rank, without its cells.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct State {
    residuals: Vec<f64>,
    converged: bool,
    pub iterations: usize,
    squares: f64,
    pub compute_seconds: f64,
    pub start: f64,
}

impl State {
    /// The state at the beginning; all ranks are ready.
    pub(super) fn new() -> Self {
        Self {
            residuals: Vec::new(),
            converged: false,
            iterations: 0,
            squares: 0.0,
            compute_seconds: 0.0,
            start: mpi::time(),
        }
    }

    /// Whether nothing is left to do.
    pub(super) fn is_done(&self, settings: &Settings) -> bool {
        self.converged || self.iterations >= settings.max_iterations
    }

    /// Whether ranks offer themselves to be moved after this iteration.
    pub(super) fn may_move(&self, settings: &Settings) -> bool {
        settings.migrate_every > 0 && self.iterations.is_multiple_of(settings.migrate_every)
    }

    /// Adds a check: the changes of this rank, and the residual of all.
    pub(super) fn check(&mut self, settings: &Settings, change: &Change, residual: f64) {
        self.squares = change.squares();
        self.residuals.push(residual);
        self.converged = residual < settings.tolerance;
    }

    /// This rank's contribution at the end.
    pub(super) fn summary<'a>(
        &self,
        settings: &Settings,
        blocks: impl IntoIterator<Item = &'a Block>,
    ) -> Summary {
        let mut summary = Summary {
            checksum: 0,
            errors: 0.0,
            squares: self.squares,
            seconds: self.compute_seconds,
        };
        for block in blocks {
            block.for_each_cell(|number, node, value| {
                let error = (value - settings.problem.exact(node)).abs();
                summary.checksum = summary.checksum.wrapping_add(cell_checksum(number, value));
                summary.errors = summary.errors.max(error);
            });
        }
        summary
    }

    /// The outcome, from the contributions of all ranks.
    pub(super) fn outcome(
        self,
        settings: &Settings,
        grid: ProcessGrid,
        all: &Gathered,
        seconds: f64,
    ) -> Run {
        let column = |at: usize| all.numbers.as_chunks::<3>().0.iter().map(move |row| row[at]);
        Run {
            solution: Solution {
                l2: (column(1).sum::<f64>() / settings.problem.cells() as f64).sqrt(),
                cells: settings.problem.cells(),
                error: column(0).fold(0.0, f64::max),
                residuals: self.residuals,
                iterations: self.iterations,
                converged: self.converged,
                checksum: all.checksums.iter().copied().fold(0, u64::wrapping_add),
            },
            grid,
            seconds,
            compute_seconds: column(2).collect(),
        }
    }
}

/// A rank's contribution at the end.
pub(super) struct Summary {
    checksum: u64,
    errors: f64,
    squares: f64,
    seconds: f64,
}

/// The contributions of all ranks.
pub(super) struct Gathered {
    checksums: Vec<u64>,
    /// For each rank, its largest error, its sum of squares, and its seconds of computation.
    numbers: Vec<f64>,
}

impl Summary {
    /// Gathers those of all ranks.
    pub(super) fn gather(&self, world: &SimpleCommunicator) -> Gathered {
        let (mut all, row) = self.room(world);
        world.all_gather_into(&self.checksum, &mut all.checksums[..]);
        world.all_gather_into(&row[..], &mut all.numbers[..]);
        all
    }

    /// The async twin of [`Summary::gather`].
    pub(super) async fn gather_async(&self, world: &SimpleCommunicator) -> Gathered {
        let (mut all, row) = self.room(world);
        world.all_gather_into_async(&self.checksum, &mut all.checksums[..]).await;
        world.all_gather_into_async(&row[..], &mut all.numbers[..]).await;
        all
    }

    fn room(&self, world: &SimpleCommunicator) -> (Gathered, [f64; 3]) {
        let ranks = world.size() as usize;
        let all = Gathered { checksums: vec![0; ranks], numbers: vec![0.0; 3 * ranks] };
        (all, [self.errors, self.squares, self.seconds])
    }
}

/// The largest change of a cell of any rank.
pub(super) fn residual(world: &SimpleCommunicator, change: &Change) -> f64 {
    let mut residual = 0.0;
    world.all_reduce_into(&change.largest(), &mut residual, SystemOperation::max());
    residual
}
