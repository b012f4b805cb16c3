//! A summary of a job, in a few tables.

use std::fmt::Write;

use vrt_core::count;

use crate::read::Trace;
use crate::statistics::{OfCall, OfPe, OfRank, Statistics};

/// Ranks and calls that are shown unless all are requested.
const ROWS: usize = 16;

/// The text of a trace's summary; with all ranks and calls, or only the most important.
pub fn text(trace: &Trace, statistics: &Statistics, all: bool) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write_to(&mut text, trace, statistics, all);
    text
}

fn write_to(out: &mut String, trace: &Trace, all: &Statistics, whole: bool) -> std::fmt::Result {
    writeln!(out, "{}", trace.command)?;
    writeln!(
        out,
        "{}, {}, {:.6} s; imbalance of the PEs {:.3}",
        count(trace.pes, "PE"),
        count(trace.ranks, "rank"),
        all.seconds,
        all.imbalance()
    )?;
    writeln!(
        out,
        "messages: {} sent ({}), {} matched, {} put back, {} between PEs",
        all.sent,
        count(all.bytes, "byte"),
        all.matched,
        all.put_back,
        all.between_pes
    )?;
    writeln!(
        out,
        "collective operations: {}; moves: {} ({} copied); balancing steps: {}",
        count(all.collectives, "part"),
        all.moves,
        count(all.moved_bytes, "byte"),
        all.steps
    )?;
    if trace.dropped() > 0 {
        writeln!(
            out,
            "incomplete: {} left out beyond --trace-limit",
            count(trace.dropped(), "event")
        )?;
    }
    if !trace.is_complete() {
        let ended = trace.records.iter().filter(|it| it.complete).count();
        let gaps: u64 = trace.records.iter().map(|it| it.gaps).sum();
        writeln!(
            out,
            "incomplete: {ended} of the traces of {} with an end, {} and {} lost",
            count(trace.pes, "PE"),
            count(gaps, "block"),
            count(trace.damaged, "byte")
        )?;
    }
    for it in trace.records.iter().filter(|it| it.preempted > 0.01 * all.seconds) {
        writeln!(
            out,
            "PE {} has waited {:.3} s for its core: that long what is busy was preempted",
            it.pe, it.preempted
        )?;
    }
    writeln!(
        out,
        "\n{:>6} {:>10} {:>7} {:>10} {:>7} {:>10} {:>7} {:>10} {:>10}",
        "PE", "busy s", "%", "idle s", "%", "overhead s", "%", "switches", "sent"
    )?;
    for (pe, OfPe { busy, idle, overhead, switches, sent }) in &all.pes {
        let part = |seconds: f64| 100.0 * seconds / all.seconds.max(f64::MIN_POSITIVE);
        writeln!(
            out,
            "{pe:>6} {busy:>10.6} {:>7.2} {idle:>10.6} {:>7.2} {overhead:>10.6} {:>7.2} {switches:>10} {sent:>10}",
            part(*busy),
            part(*idle),
            part(*overhead)
        )?;
    }
    let rows = |all: usize| if whole { all } else { all.min(ROWS) };
    let mut ranks: Vec<(&u32, &OfRank)> = all.ranks.iter().collect();
    if !whole {
        ranks.sort_by(|a, b| b.1.run.total_cmp(&a.1.run));
    }
    writeln!(
        out,
        "\n{:>6} {:>10} {:>10} {:>10} {:>10} {:>10} {:>12} {:>10} {:>6} {:>5}",
        "rank",
        "run s",
        "waited s",
        "ready s",
        "switches",
        "sent",
        "bytes",
        "received",
        "moves",
        "PE"
    )?;
    for (rank, it) in ranks.iter().take(rows(ranks.len())) {
        writeln!(
            out,
            "{rank:>6} {:>10.6} {:>10.6} {:>10.6} {:>10} {:>10} {:>12} {:>10} {:>6} {:>5}",
            it.run,
            it.waited,
            it.ready,
            it.switches,
            it.sent,
            it.bytes,
            it.matched.saturating_sub(it.put_back),
            it.moves,
            it.pe
        )?;
    }
    more(out, ranks.len() - rows(ranks.len()), "ranks that have run less")?;
    let mut waits: Vec<_> = all.waits.iter().collect();
    waits.sort_by(|a, b| b.1.seconds.total_cmp(&a.1.seconds));
    writeln!(
        out,
        "\n{:<28} {:>10} {:>12} {:>12}  longest",
        "waits in", "times", "s of ranks", "mean us"
    )?;
    for (call, OfCall { times, seconds, longest }) in waits.iter().take(rows(waits.len())) {
        let name = match trace.name(**call) {
            "" => "(something else)",
            name => name,
        };
        writeln!(
            out,
            "{name:<28} {times:>10} {seconds:>12.6} {:>12.2}  {:.6} s, rank {}, at {:.6} s",
            1e6 * seconds / *times as f64,
            longest.0,
            longest.1,
            longest.2 as f64 / 1e9
        )?;
    }
    more(out, waits.len() - rows(waits.len()), "calls")
}

fn more(out: &mut String, number: usize, what: &str) -> std::fmt::Result {
    match number {
        0 => Ok(()),
        number => writeln!(out, "   and {number} more {what} (--all shows them)"),
    }
}
