//! The columns of a rank, and a run through their tasks: in each timestep the rank posts all receives and sends of the
//! step, waits for them together, and then runs its tasks.

use std::ops::Range;

use mpi::request::{self, LocalScope, Request};
use mpi::topology::{Process, SimpleCommunicator};
use mpi::traits::*;

use super::graph::{Graph, edge_word, task_word};
use super::kernel;
use crate::programs::Error;

/// A rank's part of a graph.
pub(super) struct Share<'w> {
    graph: Graph,
    columns: Range<usize>,
    /// The edges of each set.
    sets: Vec<Edges<'w>>,
    /// The result of each column's last task: its timestep and column, repeatedly.
    outputs: Vec<i64>,
    /// The inputs of the tasks of a timestep, a place for each edge.
    inputs: Vec<i64>,
    /// Words per message.
    words: usize,
}

struct Edges<'w> {
    incoming: Vec<Incoming<'w>>,
    outgoing: Vec<Outgoing<'w>>,
}

/// An edge to a column of this rank.
struct Incoming<'w> {
    column: usize,
    source: usize,
    /// The source, if it is on another rank.
    from: Option<(Process<'w>, i32)>,
}

/// An edge to a column of another rank.
struct Outgoing<'w> {
    column: usize,
    target: usize,
    to: (Process<'w>, i32),
}

impl<'w> Share<'w> {
    /// The part of this rank, with messages of this many bytes.
    pub(super) fn new(world: &'w SimpleCommunicator, graph: Graph, bytes: usize) -> Self {
        let ranks = world.size() as usize;
        let block = |rank: usize| rank * graph.width / ranks..(rank + 1) * graph.width / ranks;
        let columns = block(world.rank() as usize);
        // The last rank whose block begins no later than the column.
        let owner = |column: usize| ((column + 1) * ranks - 1) / graph.width;
        let place = |column: usize| (column - block(owner(column)).start) as i32;
        let partner = |other: usize, source: usize, target: usize| {
            let tag = place(source) << 7 | place(target);
            (world.process_at_rank(owner(other) as i32), tag)
        };
        let edges = |set: usize| Edges {
            incoming: (columns.clone())
                .flat_map(|column| {
                    graph.sources(set, column).into_iter().map(move |it| (it, column))
                })
                .map(|(source, column)| Incoming {
                    column,
                    source,
                    from: (!columns.contains(&source)).then(|| partner(source, source, column)),
                })
                .collect(),
            outgoing: (columns.clone())
                .flat_map(|column| {
                    graph.targets(set, column).into_iter().map(move |it| (column, it))
                })
                .filter(|(_, target)| !columns.contains(target))
                .map(|(column, target)| Outgoing {
                    column,
                    target,
                    to: partner(target, column, target),
                })
                .collect(),
        };
        let sets: Vec<_> = (0..graph.sets()).map(edges).collect();
        let words = bytes / size_of::<i64>();
        let most = sets.iter().map(|set| set.incoming.len()).max().unwrap_or_default();
        Self {
            outputs: vec![0; words * columns.len()],
            inputs: vec![0; words * most],
            graph,
            columns,
            sets,
            words,
        }
    }

    /// Runs all tasks of this rank, and lets others run between timesteps if requested; returns its part of the
    /// checksum.
    ///
    /// # Errors
    ///
    /// If a task receives a wrong input.
    pub(super) fn run(&mut self, iterations: u32, give_way: bool) -> Result<u64, Error> {
        let mut checksum = 0_u64;
        let mut before = 0..0;
        for step in 0..self.graph.steps {
            let now = self.graph.active(step);
            let set = self.graph.set_of(step);
            self.exchange(set, &before, &now);
            checksum = checksum.wrapping_add(self.work(set, step, &before, &now, iterations)?);
            before = now;
            // A rank whose messages are there is suspended now and then only when it waits for them, and one that nobody
            // holds up runs ahead of those who wait for what it will send.
            if give_way {
                mpi::yield_now();
            }
        }
        Ok(checksum)
    }

    /// Brings the inputs of a timestep's tasks to their places.
    fn exchange(&mut self, set: usize, before: &Range<usize>, now: &Range<usize>) {
        let Self { sets, columns, outputs, inputs, words, .. } = self;
        let (edges, words) = (&sets[set], *words);
        let output = |column: usize| &outputs[(column - columns.start) * words..][..words];
        request::scope(|scope: &LocalScope<'_>| {
            let mut requests: Vec<Request<'_, [i64], _>> =
                Vec::with_capacity(edges.incoming.len() + edges.outgoing.len());
            for (edge, input) in edges.incoming.iter().zip(inputs.chunks_exact_mut(words)) {
                if !now.contains(&edge.column) || !before.contains(&edge.source) {
                    continue;
                }
                match &edge.from {
                    None => input.copy_from_slice(output(edge.source)),
                    Some((process, tag)) => {
                        requests.push(process.immediate_receive_into_with_tag(scope, input, *tag));
                    }
                }
            }
            for edge in &edges.outgoing {
                if before.contains(&edge.column) && now.contains(&edge.target) {
                    let (process, tag) = &edge.to;
                    let output = output(edge.column);
                    requests.push(process.immediate_send_with_tag(scope, output, *tag));
                }
            }
            requests.into_iter().for_each(Request::wait_without_status);
        });
    }

    /// Runs the tasks of a timestep.
    fn work(
        &mut self,
        set: usize,
        step: usize,
        before: &Range<usize>,
        now: &Range<usize>,
        iterations: u32,
    ) -> Result<u64, Error> {
        let mut checksum = 0_u64;
        let inputs = self.inputs.chunks_exact(self.words);
        for (edge, input) in self.sets[set].incoming.iter().zip(inputs) {
            let Incoming { column, source, .. } = *edge;
            if !now.contains(&column) || !before.contains(&source) {
                continue;
            }
            let expected = [step as i64 - 1, source as i64];
            if input.chunks_exact(2).any(|pair| pair != expected) {
                return Err(Error::WrongInput { step, column, from: source });
            }
            checksum = checksum.wrapping_add(edge_word(step, column, source));
        }
        let outputs = self.outputs.chunks_exact_mut(self.words);
        for (column, output) in self.columns.clone().zip(outputs) {
            if now.contains(&column) {
                for pair in output.chunks_exact_mut(2) {
                    pair.copy_from_slice(&[step as i64, column as i64]);
                }
                checksum = checksum.wrapping_add(task_word(kernel::compute(iterations)));
            }
        }
        Ok(checksum)
    }
}
