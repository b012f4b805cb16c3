//! The state of a job at one time, and rates since the previous snapshot.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize, Serializer};

use crate::waits;
use vrt_core::net::view::{Doing, PeView, RankView};
use vrt_core::pe::Looker;

/// How long PEs may take to answer.
const PATIENCE: Duration = Duration::from_millis(150);
/// The most ranks that are listed individually.
const RANKS: usize = 2000;
/// The number of moves that are kept.
const MOVES: usize = 200;

/// The state of a job at one time. Rates are since the previous look; for the first one, since the job began.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Snapshot {
    /// The supervisor.
    pub process: u32,
    /// The program with its arguments.
    pub command: String,
    /// Seconds since the PEs began.
    #[serde(serialize_with = "finite")]
    pub seconds: f64,
    /// All PEs, by number; for a job that a launcher has started, those of one node.
    pub pes: Vec<PeSeen>,
    /// Number of PEs of other nodes, which are not listed here, nor are their ranks.
    #[serde(default)]
    pub unseen_pes: usize,
    /// Ranks that have not ended, by number. If there are very many, those with the highest loads.
    pub ranks: Vec<RankSeen>,
    /// Number of ranks that have not ended and are not listed.
    pub left_out: usize,
    /// Number of ranks, including those that have ended.
    pub number_of_ranks: u32,
    /// How many of them have ended.
    pub ended: u32,
    /// Messages sent; of ranks that have ended, those up to the last look at them.
    pub messages: u64,
    /// Bytes in those.
    pub bytes: u64,
    /// Messages a second.
    #[serde(serialize_with = "finite")]
    pub message_rate: f64,
    /// How often ranks have moved.
    pub all_moves: u64,
    /// The last moves, newest first.
    pub moves: Vec<MoveSeen>,
}

/// A PE.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PeSeen {
    /// Its number.
    pub pe: u32,
    /// Its node.
    pub node: usize,
    /// Its process; 0 before it has first answered.
    pub process: u32,
    /// For how many seconds it has not answered, because a rank keeps its thread.
    #[serde(serialize_with = "finite")]
    pub silent: f64,
    /// Part of the time in ranks, including the runtime's own if that is not known.
    #[serde(serialize_with = "finite")]
    pub busy: f64,
    /// Part of the time asleep or polling.
    #[serde(serialize_with = "finite")]
    pub idle: f64,
    /// Part of the time in the runtime itself; `None`: not measured yet.
    pub overhead: Option<f64>,
    /// Number of its ranks.
    pub ranks: u32,
    /// Number of its ranks that run or are ready to run.
    pub ready: u32,
    /// Switches a second.
    #[serde(serialize_with = "finite")]
    pub switch_rate: f64,
}

/// A rank.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RankSeen {
    /// Its number.
    pub rank: u32,
    /// The PE that it is on.
    pub pe: u32,
    /// `runs`, `ready` or `waits`.
    pub state: String,
    /// What it waits for.
    pub wait: String,
    /// Part of the time for which it has run.
    #[serde(serialize_with = "finite")]
    pub load: f64,
    /// Live bytes of its heap.
    pub memory: u64,
    /// Messages that it has sent.
    pub messages: u64,
    /// Messages a second.
    #[serde(serialize_with = "finite")]
    pub message_rate: f64,
    /// Bytes a second.
    #[serde(serialize_with = "finite")]
    pub byte_rate: f64,
    /// How often it has moved.
    pub moves: u32,
}

/// A rank that was on another PE at the previous look.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct MoveSeen {
    /// When the move was seen, in seconds since PEs began.
    #[serde(serialize_with = "finite")]
    pub at: f64,
    /// The rank.
    pub rank: u32,
    /// The PE that it was on before.
    pub from: u32,
    /// The PE that it is on now.
    pub to: u32,
    /// How often it has moved in between.
    pub times: u32,
}

/// A rate of no time is none: JSON has no other numbers.
fn finite<S: Serializer>(number: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(if number.is_finite() { *number } else { 0.0 })
}

impl Snapshot {
    /// As JSON.
    #[must_use]
    pub fn json(&self) -> String {
        let text = vrt_balance::json::text(self).unwrap_or_default();
        String::from_utf8(text).unwrap_or_default()
    }

    /// Assigns each rank to the PE that has answered for it last. PEs answer one after the other, so their own counts
    /// would count a rank that moves meanwhile twice, or not at all.
    fn count_ranks_of_pes(&mut self) {
        for seen in &mut self.pes {
            let here = || self.ranks.iter().filter(|rank| rank.pe == seen.pe);
            seen.ranks = here().count() as u32;
            seen.ready = here().filter(|rank| rank.state != "waits").count() as u32;
        }
    }
}

/// The last look at a rank: its time, the state seen, and the rates computed.
struct Known {
    at: Instant,
    view: RankView,
    load: f64,
    message_rate: f64,
    byte_rate: f64,
}

/// Observes a job repeatedly.
pub(super) struct Looking {
    looker: Looker,
    process: u32,
    command: String,
    began: Instant,
    pes: Vec<(Instant, PeView, PeSeen)>,
    ranks: HashMap<u32, Known>,
    moves: VecDeque<MoveSeen>,
}

/// A duration as a part of another.
fn part(of: Duration, time: Duration) -> f64 {
    let time = time.as_secs_f64();
    if time > 0.0 { (of.as_secs_f64() / time).min(1.0) } else { 0.0 }
}

impl Looking {
    pub(super) fn at(looker: Looker, process: u32, command: String) -> Looking {
        let began = Instant::now();
        let seen = |pe: u32| PeSeen { pe, node: looker.node_of(pe), ..PeSeen::default() };
        let seen_here = (0..looker.pes() as u32).filter(|pe| looker.sees(*pe as usize));
        let pes = seen_here.map(|pe| (began, PeView::default(), seen(pe))).collect();
        let (ranks, moves) = (HashMap::new(), VecDeque::new());
        Looking { looker, process, command, began, pes, ranks, moves }
    }

    /// Takes a snapshot.
    pub(super) fn look(&mut self) -> Snapshot {
        let asked = self.looker.ask(PATIENCE);
        let now = Instant::now();
        for at in 0..self.pes.len() {
            self.look_at_pe(at, asked, now);
        }
        let ages = self.pes.iter().map(|(at, view, _)| view.age + now.duration_since(*at));
        let seconds = ages.max().unwrap_or_default().as_secs_f64();
        let mut shot = Snapshot {
            process: self.process,
            command: self.command.clone(),
            seconds,
            pes: self.pes.iter().map(|(.., seen)| seen.clone()).collect(),
            unseen_pes: self.looker.pes() - self.pes.len(),
            number_of_ranks: self.looker.ranks(),
            ..Snapshot::default()
        };
        for rank in 0..self.looker.ranks() {
            self.look_at_rank(rank, now, seconds, &mut shot);
        }
        shot.count_ranks_of_pes();
        shot.left_out = shot.ranks.len().saturating_sub(RANKS);
        if shot.left_out > 0 {
            shot.ranks.sort_by(|a, b| b.load.total_cmp(&a.load));
            shot.ranks.truncate(RANKS);
            shot.ranks.sort_by_key(|it| it.rank);
        }
        shot.moves = self.moves.iter().cloned().collect();
        shot
    }

    fn look_at_pe(&mut self, number: usize, asked: u32, now: Instant) {
        let (at, before, seen) = &mut self.pes[number];
        let pe = seen.pe as usize;
        let answered = self.looker.has_answered(pe, asked);
        let view = self.looker.pe(pe).filter(|view| answered && view.answered != before.answered);
        let Some(view) = view else {
            seen.silent = now.duration_since(*at).as_secs_f64();
            return;
        };
        let time = view.age.saturating_sub(before.age);
        seen.process = view.process;
        seen.silent = 0.0;
        let booked = part(view.busy.saturating_sub(before.busy), time);
        seen.idle = part(view.idle.saturating_sub(before.idle), time).min(1.0 - booked);
        let looks = view.looks.saturating_sub(before.looks);
        let own = view.own_looks.saturating_sub(before.own_looks) as f64 / looks.max(1) as f64;
        seen.busy = booked * (1.0 - own);
        // What is booked to nobody is the runtime's, too.
        seen.overhead = (looks > 0).then(|| (1.0 - seen.busy - seen.idle).max(0.0));
        let switches = view.switches.saturating_sub(before.switches) as f64;
        seen.switch_rate = switches / time.as_secs_f64().max(1e-9);
        (*at, *before) = (now, view);
    }

    fn look_at_rank(&mut self, rank: u32, now: Instant, seconds: f64, shot: &mut Snapshot) {
        let ended = self.looker.has_ended(rank);
        if let Some(view) = self.looker.rank(rank) {
            let (at, before) = match self.ranks.get(&rank) {
                Some(known) => (known.at, Some(&known.view)),
                // What it has done since the job began.
                None => {
                    (now.checked_sub(Duration::from_secs_f64(seconds)).unwrap_or(self.began), None)
                }
            };
            if before.is_none_or(|before| before.answered != view.answered) {
                let time = now.duration_since(at).as_secs_f64().max(1e-9);
                let (run, messages, bytes) =
                    before.map_or_else(Default::default, |it| (it.run, it.messages, it.bytes));
                let times = view.moves.wrapping_sub(before.map_or(view.moves, |it| it.moves));
                if let Some(before) = before.filter(|_| times > 0) {
                    let (from, to) = (before.pe, view.pe);
                    self.moves.push_front(MoveSeen { at: seconds, rank, from, to, times });
                    self.moves.truncate(MOVES);
                }
                let known = Known {
                    at: now,
                    load: part(view.run.saturating_sub(run), now.duration_since(at)),
                    message_rate: view.messages.saturating_sub(messages) as f64 / time,
                    byte_rate: view.bytes.saturating_sub(bytes) as f64 / time,
                    view,
                };
                self.ranks.insert(rank, known);
            }
        }
        shot.ended += u32::from(ended);
        let Some(known) = self.ranks.get(&rank) else { return };
        let view = &known.view;
        shot.messages += view.messages;
        shot.bytes += view.bytes;
        shot.all_moves += u64::from(view.moves);
        if ended {
            return;
        }
        shot.message_rate += known.message_rate;
        shot.ranks.push(RankSeen {
            rank,
            pe: view.pe,
            state: match view.doing {
                Doing::Waits => "waits",
                Doing::Ready => "ready",
                Doing::Runs => "runs",
            }
            .to_owned(),
            wait: if view.doing == Doing::Waits { waits::wait(view) } else { String::new() },
            load: known.load,
            memory: view.memory,
            messages: view.messages,
            message_rate: known.message_rate,
            byte_rate: known.byte_rate,
            moves: view.moves,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_can_be_read() {
        let rank = RankSeen {
            wait: "\"MPI_Recv\"\t\\ \u{1}\u{e9}".to_owned(),
            memory: u64::MAX,
            ..RankSeen::default()
        };
        let pe = PeSeen { pe: 1, busy: 0.25, overhead: Some(1e-9), ..PeSeen::default() };
        let shot = Snapshot {
            command: "a\nb".to_owned(),
            seconds: 1e21,
            message_rate: f64::NAN,
            pes: vec![pe, PeSeen::default()],
            ranks: vec![rank; 1000],
            moves: vec![MoveSeen::default()],
            ..Snapshot::default()
        };
        let read: Snapshot = vrt_balance::json::read(&shot.json()).unwrap();
        let seen = |shot: &Snapshot| format!("{shot:?}").replace("NaN", "0.0");
        assert_eq!(seen(&read), seen(&shot));
    }

    #[test]
    fn each_rank_is_counted_on_one_pe() {
        let pes = (0..2).map(|pe| PeSeen { pe, ..PeSeen::default() }).collect();
        let rank = |rank: u32| RankSeen {
            rank,
            pe: u32::from(rank > 4),
            state: if rank.is_multiple_of(2) { "waits" } else { "runs" }.to_owned(),
            ..RankSeen::default()
        };
        let mut shot = Snapshot { pes, ranks: (0..8).map(rank).collect(), ..Snapshot::default() };
        shot.count_ranks_of_pes();
        let counted: Vec<_> = shot.pes.iter().map(|pe| (pe.ranks, pe.ready)).collect();
        assert_eq!(counted, [(5, 2), (3, 2)]);
    }
}
