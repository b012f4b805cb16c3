//! All ranks run the tasks of a graph, as Task Bench's program for MPI does (`mpi/nonblock.cc`): the twin of
//! `c/metg.c`.
//!
//! | file | subject |
//! |---|---|
//! | `graph` | the tasks, and what each needs |
//! | `kernel` | what a task computes |
//! | `share` | the columns of a rank, and the messages of its tasks |

mod graph;
mod kernel;
mod share;

use std::time::Instant;

use mpi::collective::SystemOperation;
use mpi::topology::SimpleCommunicator;
use mpi::traits::*;

pub use graph::{Graph, Pattern};
pub use kernel::flops;

use super::Error;
use crate::measure::Measured;
use share::Share;

/// The tasks of a graph, and how often it is run.
#[derive(Clone, Debug, PartialEq, Eq, clap::Args)]
pub struct Settings {
    /// Which tasks need which
    #[arg(long, value_name = "PATTERN", default_value = "stencil")]
    pub pattern: Pattern,

    /// Columns of tasks, of which each rank has a block [default: one per rank]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub width: Option<u32>,

    /// Timesteps
    #[arg(long, value_name = "COUNT", default_value_t = 1000, value_parser = vrt_cli::positive::<u32>)]
    pub steps: u32,

    /// Iterations of each task's kernel; the graph is run with each of these numbers in order, and each prints a line
    #[arg(long, value_name = "COUNTS", default_value = "64", value_delimiter = ',')]
    pub iterations: Vec<u32>,

    /// Bytes that a task passes on to each task that needs it, a multiple of 16
    #[arg(long, value_name = "COUNT", default_value = "16", value_parser = whole_pairs)]
    pub bytes: u32,

    /// Let the other ranks of the PE run after each timestep
    #[arg(long)]
    pub give_way: bool,

    /// Repetitions; their median is printed
    #[arg(long, value_name = "COUNT", default_value_t = 5, value_parser = vrt_cli::positive::<u32>)]
    pub repetitions: u32,
}

/// A number of bytes that consists of pairs of words.
pub(crate) fn whole_pairs(text: &str) -> Result<u32, String> {
    let bytes: u32 = text.parse().map_err(|error| format!("{error}"))?;
    let is_right = bytes > 0 && bytes.is_multiple_of(16) && bytes <= 1 << 30;
    if is_right { Ok(bytes) } else { Err("expected a multiple of 16 up to 2^30".to_owned()) }
}

/// The most columns of a rank: a tag contains two of them, and MPI guarantees only 15 bits.
pub const MOST_COLUMNS: usize = 128;

/// Seconds of a run through the graph, for each number of iterations.
///
/// # Errors
///
/// If a task receives a wrong input, or a rank has too many columns.
pub fn metg(world: &SimpleCommunicator, settings: &Settings) -> Result<Vec<Measured>, Error> {
    let width = settings.width.map_or(world.size() as usize, |width| width as usize);
    let graph = Graph { pattern: settings.pattern, width, steps: settings.steps as usize };
    let columns = width.div_ceil(world.size() as usize);
    if columns > MOST_COLUMNS {
        return Err(Error::Columns { found: columns, most: MOST_COLUMNS });
    }
    let mut share = Share::new(world, graph, settings.bytes as usize);
    let mut all = Vec::new();
    for &iterations in &settings.iterations {
        let mut seconds = Vec::with_capacity(settings.repetitions as usize);
        let mut checksum = 0;
        for repetition in 0..=settings.repetitions {
            world.barrier();
            let start = Instant::now();
            checksum = share.run(iterations, settings.give_way)?;
            world.barrier();
            if repetition > 0 {
                seconds.push(start.elapsed().as_secs_f64());
            }
        }
        let mut total = 0_u64;
        world.all_reduce_into(&checksum, &mut total, SystemOperation::sum());
        let mut measured = Measured::from_repetitions("metg", &seconds);
        measured.checksum = Some(format!("{total:016x}"));
        all.push(measured);
    }
    if world.rank() != 0 {
        all.clear();
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(pattern: Pattern, width: u32) -> Settings {
        Settings {
            give_way: width.is_multiple_of(2),
            pattern,
            width: Some(width),
            steps: 30,
            iterations: vec![3, 0],
            bytes: 32,
            repetitions: 1,
        }
    }

    #[test]
    fn blocks_of_columns_give_what_the_graph_says() {
        for pattern in Pattern::ALL {
            for (ranks, width) in [(1, 1), (1, 7), (3, 3), (4, 9), (5, 3), (16, 16)] {
                let graph = Graph { pattern, width: width as usize, steps: 30 };
                mpi::run_local(ranks, move |world: &SimpleCommunicator| {
                    let settings = settings(pattern, width);
                    let measured = metg(world, &settings).unwrap();
                    if world.rank() == 0 {
                        let sums: Vec<_> =
                            measured.into_iter().map(|it| it.checksum.unwrap()).collect();
                        let expected = [3, 0].map(|it| format!("{:016x}", graph.checksum(it)));
                        assert_eq!(sums, expected, "{graph:?} {ranks}");
                    }
                });
            }
        }
    }

    #[test]
    fn too_many_columns_are_refused() {
        mpi::run_local(2, |world: &SimpleCommunicator| {
            let settings = settings(Pattern::Tree, 1000);
            assert_eq!(metg(world, &settings), Err(Error::Columns { found: 500, most: 128 }));
        });
    }

    #[test]
    fn bytes_are_whole_pairs() {
        assert_eq!(whole_pairs("48"), Ok(48));
        for wrong in ["0", "8", "-16", "many", "2147483648"] {
            assert!(whole_pairs(wrong).is_err(), "{wrong}");
        }
    }
}
