//! The state of PEs and ranks while the job runs: a process beside them asks, PEs answer ([`view`](crate::net::view)).

use std::os::fd::RawFd;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::cycles;
use crate::net::shared::Shared;
use crate::net::view::{Doing, PeView, RankView};
use crate::pe::inject::Neighbour;
use crate::pe::{Core, RankState, Status, shares};

/// How often it is looked whether PEs have answered.
const LOOK: Duration = Duration::from_micros(200);

/// An observer of a job: a process that maps its control memory and is not one of its PEs.
#[derive(Clone, Debug)]
pub struct Looker {
    shared: Shared,
    events: Vec<RawFd>,
}

impl Looker {
    /// For a job whose PEs, those of one node, share memory with this process and have these event descriptors (any
    /// number for a PE of another node).
    pub fn new(shared: Shared, events: Vec<RawFd>) -> Looker {
        Looker { shared, events }
    }

    /// Asks all PEs for their state, and waits until they have answered, up to a limit: a PE answers when the rank that
    /// runs there next waits or polls for messages. Returns the number of the request.
    pub fn ask(&self, longest: Duration) -> u32 {
        let asked = self.shared.job().asked.fetch_add(1, Ordering::SeqCst).wrapping_add(1);
        for pe in (0..self.shared.pes()).filter(|pe| self.sees(*pe)) {
            Neighbour { block: self.shared.pe(pe), event: self.events[pe] }.ask();
        }
        let began = Instant::now();
        let all = || (0..self.shared.pes()).all(|pe| self.has_answered(pe, asked));
        while !all() && began.elapsed() < longest {
            std::thread::sleep(LOOK);
        }
        asked
    }

    /// Wakes all sleeping PEs, so that they notice that the job has ended.
    pub fn wake_all(&self) {
        for pe in (0..self.shared.pes()).filter(|pe| self.sees(*pe)) {
            Neighbour { block: self.shared.pe(pe), event: self.events[pe] }.wake();
        }
    }

    /// Whether a PE has answered a request, or a later one.
    pub fn has_answered(&self, pe: usize, request: u32) -> bool {
        !self.sees(pe) || self.shared.pe_entry(pe).answered().wrapping_sub(request) as i32 >= 0
    }

    /// Whether a PE belongs to the observed node: nothing is known about others.
    pub fn sees(&self, pe: usize) -> bool {
        self.shared.is_near(pe as u32)
    }

    /// The last answer of a PE; `None`: none yet.
    pub fn pe(&self, pe: usize) -> Option<PeView> {
        self.shared.pe_entry(pe).read().filter(|view| view.answered != 0)
    }

    /// The last answer about a rank; `None`: none yet. The rank may have ended since then.
    pub fn rank(&self, rank: u32) -> Option<RankView> {
        let pe = self.shared.location(rank).pe();
        pe.is_none_or(|pe| self.sees(pe as usize)).then(|| self.shared.rank_entry(rank).read())?
    }

    /// Whether a rank has ended.
    pub fn has_ended(&self, rank: u32) -> bool {
        self.shared.location(rank).pe().is_none()
    }

    /// Number of PEs.
    pub fn pes(&self) -> usize {
        self.shared.pes()
    }

    /// Number of ranks, including those that have ended.
    pub fn ranks(&self) -> u32 {
        self.shared.ranks() as u32
    }

    /// The node of a PE.
    pub fn node_of(&self, pe: u32) -> usize {
        self.shared.node_of(pe)
    }
}

impl Core {
    /// Says what this PE and its ranks do.
    #[cold]
    #[inline(never)]
    pub(super) fn answer(&self) {
        shares::somebody_asks();
        let asked = self.shared.job().asked.load(Ordering::SeqCst);
        let rate = self.cycles_per_second();
        let time = |cycles: u64| Duration::from_secs_f64(cycles as f64 / rate);
        let mut ready = 0;
        let mut ranks = 0;
        for (rank, state) in self.ranks.iter().enumerate() {
            let Some(state) = state.as_deref().filter(|it| it.status != Status::Ended) else {
                continue;
            };
            let view = self.view_of(state, asked, time(state.counters.run));
            ranks += 1;
            ready += u32::from(view.doing != Doing::Waits);
            self.shared.rank_entry(rank as u32).write(&view);
        }
        let (began, _) = self.began;
        self.shared.pe_entry(self.id as usize).write(&PeView {
            process: std::process::id(),
            answered: asked,
            age: time(cycles::now().wrapping_sub(began)),
            busy: time(self.busy),
            idle: time(self.idle),
            switches: self.switches.load(Ordering::Relaxed),
            looks: shares::looks(),
            own_looks: shares::own_looks(),
            ranks,
            ready,
        });
    }

    fn view_of(&self, state: &RankState, answered: u32, run: Duration) -> RankView {
        let (messages, bytes) = state.peers.iter().fold((0, 0), |(messages, bytes), (_, peer)| {
            (messages + peer.messages, bytes + peer.bytes)
        });
        let doing = match state.status {
            Status::Waiting | Status::Ended => Doing::Waits,
            Status::Ready => Doing::Ready,
            Status::Running => Doing::Runs,
        };
        // SAFETY: the slot of a rank of this PE; a number is read, while at most the runtime works in it.
        let memory = unsafe { (*(*state.slot).heap.get()).bytes } as u64;
        let mut view = RankView {
            answered,
            pe: self.id,
            doing,
            run,
            messages,
            bytes,
            memory,
            unexpected: state.unexpected.len() as u32,
            moves: state.moves,
            ..RankView::default()
        };
        if doing == Doing::Waits {
            let wait = state.waits_for();
            view.call = wait.site.call.to_owned();
            view.place = wait
                .site
                .location
                .map(|it| format!("{}:{}", it.file(), it.line()))
                .unwrap_or_default();
            view.pattern = wait.pattern.map(|it| (it.source, it.tag));
            view.lock = state.blocked.lock.unwrap_or_default() as u64;
        }
        view
    }
}
