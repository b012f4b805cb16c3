//! Collective operations, in all their forms.

use std::collections::BTreeSet;

use vrt_trace::read::{Trace, What};

use crate::program::Program;

const COLLECTIVES: Program = Program::new("collectives.c");

in_places! { COLLECTIVES, 7 }

/// In a trace, an operation between two groups lasts until it has finished on the rank: it includes what the rank does
/// for it within its own group.
#[test]
fn operations_between_groups_have_a_length() {
    const BETWEEN: Program = Program::new("between.c");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trace");
    let _ = BETWEEN.run(&format!("--pes 1 --ranks 4 --trace {}", file.display())).is_right();
    let trace = Trace::read(&file).unwrap();
    // What is open: rank, context, and whether another one has begun on the rank since.
    let (mut open, mut nested) = (Vec::<(u32, u32, bool)>::new(), BTreeSet::new());
    for event in &trace.records[0].events {
        match event.what {
            What::CollectiveBegins { rank, context, .. } => {
                for outer in open.iter_mut().filter(|outer| outer.0 == rank) {
                    outer.2 = true;
                }
                open.push((rank, context, false));
            }
            What::CollectiveEnds { rank, call, context } => {
                let at = open.iter().rposition(|it| (it.0, it.1) == (rank, context));
                if open.remove(at.unwrap()).2 {
                    nested.insert(trace.names[call as usize].as_str());
                }
            }
            _ => {}
        }
    }
    assert!(open.is_empty(), "{open:?}");
    for call in
        ["Barrier", "Ibarrier", "Bcast", "Allgather", "Reduce", "Allreduce", "Reduce_scatter_block"]
    {
        assert!(nested.contains(format!("MPI_{call}").as_str()), "{call}: {nested:?}");
    }
}

const WIDE: Program = Program::new("wide.c");

/// The output of a job of 70 ranks, sorted, since ranks print in any order.
fn wide(options: &str) -> Vec<String> {
    let job = WIDE.run(&format!("{options} --ranks 70")).is_right();
    let mut lines: Vec<String> = job.out.lines().map(str::to_owned).collect();
    lines.sort_unstable();
    lines
}

/// With many PEs, they do not exchange directly, but over one or several levels of their tree; with few, over none.
#[test]
fn many_pes_have_the_same_results_to_the_last_bit() {
    let alone = wide("--pes 1");
    assert_eq!(alone.len(), 3 * 3 + 1);
    for options in ["--pes 16", "--pes 17", "--pes 35", "--pes 20 --lb random --lb-period 5ms"] {
        assert_eq!(wide(options), alone, "{options}");
    }
}

#[test]
fn ranks_of_many_pes_that_mean_different_operations_are_told() {
    for pes in [2, 20] {
        let job = Program { arguments: "differ", ..WIDE }.run(&format!("--pes {pes} --ranks 40"));
        assert!(!matches!(job.status, Some(0 | 124)), "{job}");
        assert!(job.err.contains("MPI_Allreduce") && !job.err.contains("deadlock"), "{job}");
    }
}
