//! Task graphs as in Task Bench (Slaughter et al., SC'20, and `core/core.cc` of its sources): columns of tasks, one
//! task per column and timestep, each of which needs some tasks of the previous timestep.

use std::ops::Range;

use super::kernel;

/// Which tasks of the previous timestep a task needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Pattern {
    /// Its own column and both neighbours (Task Bench's `stencil_1d`)
    Stencil,
    /// Its own column and columns at a distance of a power of two, a different one in each timestep (`fft`)
    Fft,
    /// Its own column and the left neighbour, while a diagonal front passes through the columns (`dom`)
    Sweep,
    /// The column with half its number; the number of tasks doubles in each timestep up to the width (`tree`)
    Tree,
}

impl Pattern {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Stencil, Self::Fft, Self::Sweep, Self::Tree];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stencil => "stencil",
            Self::Fft => "fft",
            Self::Sweep => "sweep",
            Self::Tree => "tree",
        }
    }
}

/// A graph of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Graph {
    /// The edges.
    pub pattern: Pattern,
    /// The columns.
    pub width: usize,
    /// The timesteps.
    pub steps: usize,
}

impl Graph {
    /// The columns that have a task in a timestep.
    pub fn active(&self, step: usize) -> Range<usize> {
        let Self { pattern, width, steps } = *self;
        match pattern {
            Pattern::Stencil | Pattern::Fft => 0..width,
            Pattern::Sweep => {
                let first = (step + width).saturating_sub(steps);
                first..first + width.min(step + 1).min(steps - step)
            }
            Pattern::Tree => 0..width.min(1 << step.min(62)),
        }
    }

    /// The columns whose tasks are inputs of the tasks of a timestep: those of the previous one.
    pub fn active_before(&self, step: usize) -> Range<usize> {
        step.checked_sub(1).map_or(0..0, |before| self.active(before))
    }

    /// The number of timesteps after which the edges repeat.
    pub fn sets(&self) -> usize {
        match self.pattern {
            Pattern::Fft => (self.width.next_power_of_two().ilog2() as usize).max(1),
            Pattern::Stencil | Pattern::Sweep | Pattern::Tree => 1,
        }
    }

    /// Which of these sets of edges leads to a timestep.
    pub fn set_of(&self, step: usize) -> usize {
        (step + self.sets() - 1) % self.sets()
    }

    /// The columns that a column needs, by a set of edges; those without a task in the previous timestep are not
    /// inputs.
    pub fn sources(&self, set: usize, column: usize) -> Vec<usize> {
        match self.pattern {
            Pattern::Sweep => (column.saturating_sub(1)..=column).collect(),
            Pattern::Tree => vec![column / 2],
            Pattern::Stencil | Pattern::Fft => self.around(set, column),
        }
    }

    /// The columns that need a column: the same edges from the other end.
    pub fn targets(&self, set: usize, column: usize) -> Vec<usize> {
        let is_inside = |it: &usize| *it < self.width;
        match self.pattern {
            Pattern::Sweep => (column..=column + 1).filter(is_inside).collect(),
            Pattern::Tree => (2 * column..=2 * column + 1).filter(is_inside).collect(),
            Pattern::Stencil | Pattern::Fft => self.around(set, column),
        }
    }

    /// For the patterns that are the same from both ends.
    fn around(&self, set: usize, column: usize) -> Vec<usize> {
        let distance = if self.pattern == Pattern::Fft { 1 << set } else { 1 };
        let left = column.checked_sub(distance);
        let right = Some(column + distance).filter(|it| *it < self.width);
        [left, Some(column), right].into_iter().flatten().collect()
    }

    /// The number of tasks.
    pub fn tasks(&self) -> usize {
        (0..self.steps).map(|step| self.active(step).len()).sum()
    }

    /// The sum of the checksums of all ranks: from the graph alone, without messages.
    pub fn checksum(&self, iterations: u32) -> u64 {
        let sum = kernel::compute(iterations);
        let mut total = 0_u64;
        for step in 0..self.steps {
            let before = self.active_before(step);
            for column in self.active(step) {
                total = total.wrapping_add(task_word(sum));
                for source in self.sources(self.set_of(step), column) {
                    if before.contains(&source) {
                        total = total.wrapping_add(edge_word(step, column, source));
                    }
                }
            }
        }
        total
    }
}

/// A task's contribution to the checksum, from the result of its kernel.
pub(super) fn task_word(sum: f64) -> u64 {
    sum.to_bits()
}

/// An input's contribution: from the task that received it and the column that it is from.
pub(super) fn edge_word(step: usize, column: usize, source: usize) -> u64 {
    let place = (step as u64) << 32 | (column as u64) << 16 | source as u64;
    place.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(pattern: Pattern, width: usize, steps: usize) -> Graph {
        Graph { pattern, width, steps }
    }

    #[test]
    fn both_ends_of_an_edge_know_it() {
        for pattern in Pattern::ALL {
            for width in [1, 2, 3, 5, 8, 13] {
                let graph = graph(pattern, width, 20);
                for set in 0..graph.sets() {
                    let edges = |of: &dyn Fn(usize) -> Vec<(usize, usize)>| {
                        let mut edges: Vec<_> = (0..width).flat_map(of).collect();
                        edges.sort_unstable();
                        edges
                    };
                    let incoming = edges(&|to| {
                        graph.sources(set, to).into_iter().map(|from| (from, to)).collect()
                    });
                    let outgoing = edges(&|from| {
                        graph.targets(set, from).into_iter().map(|to| (from, to)).collect()
                    });
                    // Columns 0 and 1 of a tree have edges to themselves and each other.
                    assert_eq!(incoming, outgoing, "{pattern:?} {width} {set}");
                }
            }
        }
    }

    #[test]
    fn columns_have_tasks_as_in_task_bench() {
        let sweep: Vec<_> = (0..5).map(|step| graph(Pattern::Sweep, 3, 5).active(step)).collect();
        assert_eq!(sweep, [0..1, 0..2, 0..3, 1..3, 2..3]);
        let tree: Vec<_> = (0..4).map(|step| graph(Pattern::Tree, 6, 4).active(step)).collect();
        assert_eq!(tree, [0..1, 0..2, 0..4, 0..6]);
        assert_eq!(graph(Pattern::Sweep, 3, 5).tasks(), 9);
        assert_eq!(graph(Pattern::Stencil, 3, 5).active_before(0), 0..0);
    }

    #[test]
    fn a_butterfly_goes_through_all_distances() {
        let graph = graph(Pattern::Fft, 8, 9);
        let sources: Vec<_> = (1..5).map(|step| graph.sources(graph.set_of(step), 3)).collect();
        assert_eq!(sources, [vec![2, 3, 4], vec![1, 3, 5], vec![3, 7], vec![2, 3, 4]]);
    }
}
