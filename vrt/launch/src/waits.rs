//! What each rank of a running job waits for: SIGUSR1, sent to the supervisor or to a process that a launcher has
//! started, prints it.

use std::time::Duration;

use vrt_core::net::view::{Doing, RankView};
use vrt_core::pe::Looker;
use vrt_slot::report::{count, write_out};

/// How long PEs may take to answer.
const PATIENCE: Duration = Duration::from_millis(300);
/// The most ranks that are listed.
const ROWS: usize = 1000;
use vrt_core::mailbox::ANY;

/// Asks all PEs, and prints a line for each rank that waits.
pub(crate) fn print(looker: &Looker) {
    let asked = looker.ask(PATIENCE);
    write_out(table(looker, asked).as_bytes());
}

fn table(looker: &Looker, asked: u32) -> String {
    let mut rows = Vec::new();
    let (mut ready, mut ended) = (0, 0);
    for rank in 0..looker.ranks() {
        match looker.rank(rank) {
            _ if looker.has_ended(rank) => ended += 1,
            Some(view) if view.doing == Doing::Waits => rows.push(row(rank, &view)),
            Some(_) => ready += 1,
            None => {}
        }
    }
    let waits = if rows.len() == 1 { "waits" } else { "wait" };
    let have = if ended == 1 { "has" } else { "have" };
    let waiting = count(rows.len() as u64, "rank");
    let mut text = format!("vrt: {waiting} {waits}, {ready} run or could, {ended} {have} ended\n");
    for pe in (0..looker.pes()).filter(|pe| !looker.has_answered(*pe, asked)) {
        let before = if looker.pe(pe).is_some() {
            "what it said before is shown"
        } else {
            "nothing is known of its ranks"
        };
        text += &format!(
            "  PE {pe} does not answer: a rank there computes, or blocks the PE's thread; {before}\n"
        );
    }
    rows.iter().take(ROWS).for_each(|row| text += &format!("  {row}\n"));
    if rows.len() > ROWS {
        text += &format!("  ~ and {} more\n", count((rows.len() - ROWS) as u64, "rank"));
    }
    text
}

fn row(rank: u32, view: &RankView) -> String {
    format!("rank {rank} (PE {}) waits {}", view.pe, wait(view))
}

/// What a rank waits for, in words.
pub(crate) fn wait(view: &RankView) -> String {
    let mut text = match view.lock {
        0 if view.call.is_empty() => "in something".to_owned(),
        0 => format!("in {}", view.call),
        word => format!("for a lock or condition at {word:#x}"),
    };
    if let Some((source, tag)) = view.pattern {
        let or_any = |n: i32| if n == ANY { "any".to_owned() } else { n.to_string() };
        text += &format!(" with rank {}, tag {}", or_any(source), or_any(tag));
    }
    if !view.place.is_empty() {
        text += &format!(" at {}", view.place);
    }
    if view.unexpected > 0 {
        let messages = count(u64::from(view.unexpected), "message");
        text += &format!("; {messages} came that it has not asked for");
    }
    text
}
