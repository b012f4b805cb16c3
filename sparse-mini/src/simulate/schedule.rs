//! Collective operations as the libraries of the time implemented them for short data: who sends
//! how much to whom in which step.

/// A collective operation among all processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Schedule {
    /// A barrier by dissemination (Hensgen, Finkel, Manber 1988), as in LibNBC.
    Dissemination,
    /// An all-to-all with this many bytes per process, by Bruck's algorithm, as MPICH and Open MPI
    /// implement it for short entries.
    Bruck { entry: usize },
    /// A reduce-scatter with the same sizes, by recursive halving, as both implement it for vectors
    /// of this length. If the number of processes is not a power of two, some first fold theirs
    /// into a neighbour's and get their result from it at the end.
    Halving { entry: usize },
}

/// What a process does in a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Step {
    /// The destination and the number of bytes that it sends.
    pub(super) sends: Option<(usize, usize)>,
    /// Whether it receives a message.
    pub(super) receives: bool,
    /// Entries that it adds to its own, or copies.
    pub(super) entries: usize,
}

/// ⌊log2 n⌋.
fn log2(n: usize) -> usize {
    n.max(1).ilog2() as usize
}

impl Schedule {
    /// Number of steps among this many processes.
    pub(super) fn steps(self, processes: usize) -> usize {
        match self {
            Schedule::Halving { .. } => {
                let halvings = log2(processes);
                if processes.is_power_of_two() { halvings } else { halvings + 2 }
            }
            Schedule::Dissemination | Schedule::Bruck { .. } => log2(processes.next_power_of_two()),
        }
    }

    /// What a process does in a step.
    pub(super) fn step(self, processes: usize, me: usize, step: usize) -> Step {
        match self {
            Schedule::Dissemination => Step {
                sends: Some(((me + (1 << step)) % processes, 1)),
                receives: true,
                entries: 0,
            },
            Schedule::Bruck { entry } => {
                let distance = 1usize << step;
                // Entries for processes at distances that have this bit.
                let whole = processes / (2 * distance) * distance;
                let rest = (processes % (2 * distance)).saturating_sub(distance);
                let entries = whole + rest;
                Step {
                    sends: Some(((me + distance) % processes, entry * entries)),
                    receives: true,
                    // Packed before, unpacked afterwards.
                    entries: 2 * entries,
                }
            }
            Schedule::Halving { entry } => halving(entry, processes, me, step),
        }
    }
}

fn halving(entry: usize, processes: usize, me: usize, step: usize) -> Step {
    let halvings = log2(processes);
    let active = 1usize << halvings;
    let folded = processes - active;
    // The first 2 * folded processes are pairs of which the odd one works for both.
    let in_pair = me < 2 * folded;
    let works = !in_pair || me % 2 == 1;
    let step = match (folded, step) {
        (0, step) => step,
        (_, 0) => {
            return match (in_pair, works) {
                (false, _) => Step::default(),
                (true, false) => {
                    Step { sends: Some((me + 1, entry * processes)), ..Step::default() }
                }
                (true, true) => Step { receives: true, entries: processes, sends: None },
            };
        }
        (_, step) if step == halvings + 1 => {
            return match (in_pair, works) {
                (false, _) => Step::default(),
                (true, false) => Step { receives: true, ..Step::default() },
                (true, true) => Step { sends: Some((me - 1, entry)), ..Step::default() },
            };
        }
        (_, step) => step - 1,
    };
    if !works {
        return Step::default();
    }
    let number = if in_pair { me / 2 } else { me - folded };
    let partner = number ^ (active >> (step + 1));
    let partner = if partner < folded { 2 * partner + 1 } else { partner + folded };
    let entries = processes >> (step + 1);
    Step { sends: Some((partner, entry * entries)), receives: true, entries }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_receives_what_is_sent_to_it() {
        for schedule in
            [Schedule::Dissemination, Schedule::Bruck { entry: 8 }, Schedule::Halving { entry: 4 }]
        {
            for processes in [2, 3, 5, 8, 12, 64, 100] {
                for step in 0..schedule.steps(processes) {
                    let mut comes = vec![false; processes];
                    for me in 0..processes {
                        if let Some((to, _)) = schedule.step(processes, me, step).sends {
                            assert!(to != me && !comes[to], "{schedule:?} {processes} {step}");
                            comes[to] = true;
                        }
                    }
                    for (me, comes) in comes.into_iter().enumerate() {
                        let receives = schedule.step(processes, me, step).receives;
                        assert_eq!(receives, comes, "{schedule:?} {processes} {me} {step}");
                    }
                }
            }
        }
    }

    #[test]
    fn everybody_hears_of_everybody() {
        for schedule in
            [Schedule::Dissemination, Schedule::Bruck { entry: 8 }, Schedule::Halving { entry: 4 }]
        {
            for processes in [2usize, 3, 5, 8, 12, 33] {
                let mut known: Vec<u64> = (0..processes).map(|me| 1 << me).collect();
                for step in 0..schedule.steps(processes) {
                    let before = known.clone();
                    for (me, known_there) in before.iter().enumerate() {
                        if let Some((to, _)) = schedule.step(processes, me, step).sends {
                            known[to] |= known_there;
                        }
                    }
                }
                assert!(known.iter().all(|known| *known == (1 << processes) - 1), "{schedule:?}");
            }
        }
    }

    #[test]
    fn bruck_sends_half_of_all_entries_in_a_step() {
        let schedule = Schedule::Bruck { entry: 8 };
        for step in 0..6 {
            assert_eq!(schedule.step(64, 5, step).sends.map(|(_, bytes)| bytes), Some(8 * 32));
        }
        // Among 5: distances 1 and 3, then 2 and 3, then 4.
        let entries = [2, 2, 1].map(|n| Some(8 * n));
        assert_eq!([0, 1, 2].map(|s| schedule.step(5, 0, s).sends.map(|(_, b)| b)), entries);
    }
}
