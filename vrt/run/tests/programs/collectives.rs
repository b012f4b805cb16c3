//! Collective operations, in all their forms.

use std::collections::BTreeSet;

use vrt_trace::read::{Trace, What};

use crate::program::Program;

const COLLECTIVES: Program = Program::new("collectives.c");

in_places! { COLLECTIVES, 7 }

/// In a trace an operation between two groups lasts until it is over on the rank: what the rank does for it within its
/// own group comes in between.
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
