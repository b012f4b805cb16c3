//! The C program that does the same as a row's program on other MPIs.

use super::{Program, Reference, Row, Twin, program};
use crate::table::peers::Peer;

const ALL: &[Peer] = &Peer::ALL;
/// For ranks that share a core, or 100,000 of them: processes would not be comparable.
const ADAPTIVE: &[Peer] = &[Peer::AmpiThreads, Peer::AmpiProcesses];
/// For programs that ranks without shared memory can run, and processes cannot.
const ADAPTIVE_APART: &[Peer] = &[Peer::AmpiProcesses];
/// For ranks that share no memory.
const APART: &[Peer] = &[Peer::OpenMpi, Peer::AmpiProcesses];

impl Row {
    /// The C program that does the same on other MPIs: that of the reference, or one for a row that
    /// is compared with something else.
    pub fn twin(&self) -> Option<Twin> {
        let Reference::OpenMpi { program, processes } = &self.reference else {
            return twin_of(self.name);
        };
        let peers = if self.vrt.through_mpi { APART } else { ALL };
        Some(Twin { program: program.clone(), processes: *processes, pes: 2, peers })
    }
}

fn twin_of(row: &str) -> Option<Twin> {
    let twin = |program, processes, pes, peers| Some(Twin { program, processes, pes, peers });
    match row {
        "switch" => twin(program("yield 200000 21", "yield 50000 11"), 2, 1, ADAPTIVE),
        "message-in-pe" | "c-pingpong-8" => {
            twin(program("pingpong 8 50000 21", "pingpong 8 20000 11"), 2, 1, ADAPTIVE)
        }
        "c-ring-64" => twin(program("ring 100 5", "ring 50 3"), 64, 2, ALL),
        "ranks-per-pe-96" | "c-jacobi-96" => twin(JACOBI_96, 32, 2, ALL),
        "ranks-per-pe-192" => twin(program("jacobi 192 150 10", "jacobi 192 50 10"), 32, 2, ALL),
        "c-calls" => twin(program("calls 1000000 11", "calls 100000 5"), 1, 1, ALL),
        "barrier-many" => {
            let barrier = program("collective barrier 8 10 2", "collective barrier 8 5 2");
            twin(barrier, MANY, 2, ADAPTIVE)
        }
        "allreduce-many" => twin(program("allreduce 10 2", "allreduce 5 2"), MANY, 2, ADAPTIVE),
        "ring-many" => twin(program("ring 10 2", "ring 5 2"), MANY, 2, ADAPTIVE),
        "barrier-8192" => {
            let barrier = program("collective barrier 8 50 5", "collective barrier 8 10 3");
            twin(barrier, 8192, 2, ADAPTIVE)
        }
        "ring-8192" => twin(program("ring 50 5", "ring 10 3"), 8192, 2, ADAPTIVE),
        "hand-over" => twin(program("move 1024 100 11", "move 1024 20 5"), 2, 2, ADAPTIVE),
        "hand-over-1m" => twin(program("move 1048576 100 11", "move 1048576 20 5"), 2, 2, ADAPTIVE),
        "hand-over-16m" => {
            twin(program("move 16777216 20 11", "move 16777216 10 5"), 2, 2, ADAPTIVE)
        }
        "ship-1k" => twin(program("move 1024 100 11", "move 1024 20 5"), 2, 2, ADAPTIVE_APART),
        "ship-1m" => {
            twin(program("move 1048576 100 11", "move 1048576 20 5"), 2, 2, ADAPTIVE_APART)
        }
        "ship" => twin(program("move 16777216 20 11", "move 16777216 10 5"), 2, 2, ADAPTIVE_APART),
        _ => None,
    }
}

const JACOBI_96: Program = program("jacobi 96 1000 10", "jacobi 96 200 10");
const MANY: u32 = 100_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::rows::all;

    #[test]
    fn rows_without_a_reference_of_their_own_have_twins_too() {
        let twin = |name: &str| all().into_iter().find(|row| row.name == name).unwrap().twin();
        for name in ["c-pingpong-8", "c-ring-64", "c-jacobi-96", "c-calls", "ring-many"] {
            assert!(twin(name).is_some(), "{name}");
        }
        assert_eq!(twin("message-in-pe").unwrap().pes, 1);
        assert_eq!(twin("ranks-per-pe-96").unwrap().processes, 32);
        assert_eq!(twin("alltoall-4096-64").unwrap().processes, 64);
        assert!(twin("touch").is_none());
    }

    #[test]
    fn ranks_that_share_no_memory_are_not_compared_with_threads() {
        for row in all().into_iter().filter(|row| row.vrt.through_mpi) {
            assert!(!row.twin().unwrap().peers.contains(&Peer::AmpiThreads), "{}", row.name);
        }
    }

    #[test]
    fn twins_solve_what_the_row_solves() {
        for row in all().into_iter().filter(|row| row.name.contains("ranks-per-pe")) {
            let twin = row.twin().unwrap().program;
            for (ours, theirs) in [(row.vrt.full, twin.full), (row.vrt.quick, twin.quick)] {
                let words: Vec<&str> = theirs.split(' ').collect();
                let expected = format!("--size {} --iterations {}", words[1], words[2]);
                assert!(ours.ends_with(&expected), "{ours}: {theirs}");
            }
        }
    }
}
