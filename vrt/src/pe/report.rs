//! What a PE tells people: what its ranks wait for, and what it has done.

use crate::mailbox::ANY;
use crate::pe::{self, Engine, Status};

/// What each rank of this PE waits for, a line each.
pub(crate) fn waits() -> Vec<String> {
    pe::with_in_loop(|pe| pe.engine.waits())
}

impl Engine {
    fn waits(&self) -> Vec<String> {
        let waiting = self.ranks.iter().enumerate().filter_map(|(rank, state)| {
            let state = state.as_deref()?;
            (state.status == Status::Waiting).then_some((rank, state))
        });
        waiting
            .map(|(rank, state)| {
                let wait = state.waits_for();
                let call = if wait.call.is_empty() { "something" } else { wait.call };
                let mut row = match state.blocked.lock {
                    Some(word) => format!(
                        "rank {rank} (PE {}) waits for a lock or condition at {word:#x}",
                        self.id
                    ),
                    None => format!("rank {rank} (PE {}) waits in {call}", self.id),
                };
                if let Some(pattern) = wait.pattern {
                    let or_any = |n: i32| if n == ANY { "any".to_owned() } else { n.to_string() };
                    row += &format!(
                        " with rank {}, tag {}",
                        or_any(pattern.source),
                        or_any(pattern.tag)
                    );
                }
                if let Some(location) = wait.location {
                    row += &format!(" at {}:{}", location.file(), location.line());
                }
                match state.unexpected.len() {
                    0 => {}
                    n => row += &format!("; {n} messages came that it has not asked for"),
                }
                row
            })
            .collect()
    }

    /// How fast the cycle counter runs.
    pub(crate) fn cycles_per_second(&self) -> f64 {
        let (cycles, time) = self.began;
        let seconds = time.elapsed().as_secs_f64().max(1e-9);
        pe::cycle_counter().wrapping_sub(cycles) as f64 / seconds
    }

    /// One line on stderr: time in ranks, in the runtime, idle.
    pub(crate) fn print_statistics(&self) {
        let job = self.shared.job();
        let total = (self.idle + self.busy).max(1) as f64;
        crate::launch::crash::say(format_args!(
            "PE {}: in ranks {:.1}%, idle {:.1}%, {} switches; in the job {} slots were kept \
             because of {} blocks left in them",
            self.id,
            100.0 * self.busy as f64 / total,
            100.0 * self.idle as f64 / total,
            self.switches,
            job.retired.load(std::sync::atomic::Ordering::Relaxed),
            job.retired_blocks.load(std::sync::atomic::Ordering::Relaxed),
        ));
        crate::launch::crash::say(format_args!(
            "PE {}: {} groups of ranks are left",
            self.id,
            self.combining.groups.made()
        ));
    }
}
