//! Collective operations (MPI-4.1 chapter 6), each in three forms: blocking, immediate, persistent.
//!
//! An operation is written once, as a function that makes a future from its arguments: the blocking form drives it on
//! the rank's stack, the immediate one makes it a task of the rank, the persistent one makes a new one at each start.
//! Small operations on elements without gaps need no future (`Combined`). Elements with gaps are sent through packed
//! copies; intercommunicators have their own algorithms.
//!
//! | file | subject |
//! |---|---|
//! | `barrier` | barrier |
//! | `rooted` | broadcast, gather, scatter |
//! | `all_to_all` | allgather, alltoall |
//! | `reductions` | reduce, allreduce, reduce_scatter, scan |
//! | `neighbors` | among the neighbours of a topology |
//! | `form` | the three forms |
//! | `parts` | buffers with a part for each rank |
//! | `root` | the root from the point of view of a rank |
//! | `inter` | between two groups |

mod all_to_all;
mod barrier;
mod form;
mod inter;
mod neighbors;
mod parts;
mod reductions;
mod root;
mod rooted;

use crate::call::Export;

pub(crate) use barrier::barrier_of;

/// The functions of collective operations.
pub(crate) const ALL: [&[Export]; 5] = [
    barrier::EXPORTS,
    rooted::EXPORTS,
    all_to_all::EXPORTS,
    reductions::EXPORTS,
    neighbors::EXPORTS,
];
