//! The reports of a PE: what its ranks wait for, and what it has done.

use std::time::Duration;

use bytesize::ByteSize;

use crate::cycles::{self, cycles_per_second};
use crate::mailbox::ANY;
use crate::pe::core::Core;
use crate::pe::rank_state::Status;
use crate::pe::usage::Usage;
use crate::pe::{shares, thread};
use vrt_slot::report;

/// From this time on the rate of the cycle counter is seen well enough without measuring it.
const LONG: Duration = Duration::from_millis(10);

/// What each rank of this PE waits for, one per line, after its loop has ended.
pub fn waits() -> Vec<String> {
    thread::while_stopped(|pe| pe.engine.waits())
}

impl Core {
    pub(super) fn waits(&self) -> Vec<String> {
        let waiting = self.ranks.iter().enumerate().filter_map(|(rank, state)| {
            let state = state.as_deref()?;
            (state.status == Status::Waiting).then_some((rank, state))
        });
        waiting
            .map(|(rank, state)| {
                let wait = state.waits_for();
                let call = if wait.site.call.is_empty() { "something" } else { wait.site.call };
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
                if let Some(location) = wait.site.location {
                    row += &format!(" at {}:{}", location.file(), location.line());
                }
                match state.unexpected.len() {
                    0 => {}
                    n => {
                        let came = report::count(n, "message");
                        row += &format!("; {came} came that it has not asked for");
                    }
                }
                if state.flow.held {
                    row += &format!(
                        ", {}, more than --unexpected (VRT_UNEXPECTED) allows: sends to it wait \
                         for their receives",
                        ByteSize(state.unexpected_bytes() as u64)
                    );
                }
                row
            })
            .collect()
    }

    /// The frequency of the cycle counter.
    pub fn cycles_per_second(&self) -> f64 {
        let (cycles, time) = self.began;
        let elapsed = time.elapsed();
        if elapsed < LONG {
            return cycles_per_second();
        }
        cycles::now().wrapping_sub(cycles) as f64 / elapsed.as_secs_f64()
    }

    /// Prints two lines on stderr: time in ranks, in the runtime, idle; and what ranks have used.
    /// `groups` is the number of remaining groups of communicators that ranks have made.
    pub fn print_statistics(&self, groups: usize) {
        let job = self.shared.job();
        let total = (self.idle + self.busy).max(1) as f64;
        let own = shares::of_runtime() * self.busy as f64;
        report::say(format_args!(
            "PE {}: in ranks {:.1}%, idle {:.1}%, the runtime's own {:.1}% of {:.3} s ({}), {}; \
             in the job {} kept because of {} left in them",
            self.id,
            100.0 * (self.busy as f64 - own) / total,
            100.0 * self.idle as f64 / total,
            100.0 * own / total,
            total / self.cycles_per_second(),
            report::count(shares::looks(), "look"),
            report::count(self.switches.load(std::sync::atomic::Ordering::Relaxed), "switch"),
            report::count(job.retired.load(std::sync::atomic::Ordering::Relaxed), "slot"),
            report::count(job.retired_blocks.load(std::sync::atomic::Ordering::Relaxed), "block"),
        ));
        let Usage { heap, unexpected, made, left } = self.used;
        let most = |what: &str, (bytes, rank): (usize, u32)| {
            format!("{what} {} (rank {rank})", ByteSize(bytes as u64))
        };
        report::say(format_args!(
            "PE {}: {}, {}; {} communicators and {} windows made, {} and {} not dropped; {groups} \
             groups of ranks are left",
            self.id,
            most("largest heap", heap),
            most("unexpected messages of a rank took", unexpected),
            made.communicators,
            made.windows,
            left.communicators,
            left.windows,
        ));
    }
}
