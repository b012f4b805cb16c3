//! Where thieves that found nothing wait: barriers that a released chunk cancels, and the end.
//!
//! There is one barrier for all processes (`shared-2006`), or one per group (`hierarchical`). In a full group the last
//! process becomes its *agent*: it alone looks at other groups, and counts its own as done when it has found nothing;
//! when all groups are done, the search has ended.

use super::{What, Where, World};
use crate::{frontier::OpenNodes, termination::Termination};

/// Nanoseconds of waiting after which a rank sleeps, of its shortest and its longest sleep, as in
/// [`crate::steal_stack::Patience`].
const YIELDING: f64 = 3e4;
const SLEEPS: [f64; 2] = [2e4, 6.4e5];

/// A barrier.
#[derive(Clone, Debug, Default)]
pub(super) struct Group {
    count: usize,
    cancelled: bool,
    closed: bool,
    /// Who waits, and since when, in order of arrival.
    waiting: Vec<(usize, f64)>,
}

impl<N: OpenNodes> World<N> {
    pub(super) fn wait_at_barrier(&mut self, rank: usize, at: f64) {
        let number = rank / self.group;
        let size = self.own_group(rank).len();
        let far = self.group > self.costs.group;
        let now = at + if far { self.far() } else { 2.0 * self.costs.access };
        if self.processes[rank].agent {
            return self.count_group(rank, now);
        }
        let sole = self.groups.len() == 1;
        let group = &mut self.groups[number];
        group.count += 1;
        if group.count == size {
            if sole {
                self.ended = Some(now + self.patience(SLEEPS[1]));
                return;
            }
            group.closed = true;
            self.processes[rank].agent = true;
            return self.events.push(now, rank, What::Scan(Where::Elsewhere, 0));
        }
        if group.cancelled {
            group.cancelled = false;
            group.count -= 1;
            return self.events.push(now, rank, What::Turn);
        }
        group.waiting.push((rank, now));
    }

    /// A chunk was released: one process that waits in the group may leave.
    pub(super) fn cancel(&mut self, group: usize, now: f64) {
        if self.groups[group].closed {
            self.groups[group].cancelled = true;
            return;
        }
        // It sleeps the shortest of all that wait, so it is the first that sees it.
        match self.groups[group].waiting.pop() {
            None => self.groups[group].cancelled = true,
            Some((rank, since)) => {
                self.groups[group].count -= 1;
                let at = now + self.patience(now - since) + 3.0 * self.costs.access;
                self.processes[rank].works = false;
                self.events.push(at, rank, What::Turn);
            }
        }
    }

    /// An agent has got work: the others of its group may leave again.
    pub(super) fn open_barrier(&mut self, rank: usize) {
        if std::mem::take(&mut self.processes[rank].agent) {
            let group = &mut self.groups[rank / self.group];
            group.closed = false;
            group.count -= 1;
        }
    }

    /// An agent has found nothing anywhere.
    fn count_group(&mut self, rank: usize, at: f64) {
        self.done += 1;
        let now = at + self.far();
        if self.done == self.groups.len() {
            self.ended = Some(now + self.far() + 2.0 * self.patience(SLEEPS[1]));
        } else {
            self.events.push(now, rank, What::Poll);
        }
    }

    pub(super) fn poll(&mut self, rank: usize, at: f64) {
        let (all, own) = (self.processes.len(), self.own_group(rank));
        let seen = self.victims.first(0, own.start).or_else(|| self.victims.first(own.end, all));
        let looked = at + self.far() * seen.unwrap_or(all) as f64;
        if seen.is_some() {
            self.done -= 1;
            self.events.push(looked + self.far(), rank, What::Scan(Where::Elsewhere, 0));
        } else {
            self.events.push(looked + self.patience(SLEEPS[1]), rank, What::Poll);
        }
    }

    /// The time from when there is no work until the last process knows it.
    pub(super) fn end(&self) -> f64 {
        let hop = self.costs.latency + 2.0 * self.costs.overhead;
        let processes = self.processes.len();
        match self.termination {
            Termination::Token => 3.5 * processes as f64 * hop,
            // Up and down twice for the counts, then for the drain.
            _ => 7.0 * f64::from(processes.ilog2() + 1) * hop,
        }
    }

    /// The mean time until a process that has waited this long looks again.
    pub(super) fn patience(&self, waited: f64) -> f64 {
        match waited {
            short if short < YIELDING => self.costs.turn,
            long => 0.5 * (0.5 * long).clamp(SLEEPS[0], SLEEPS[1]),
        }
    }
}
