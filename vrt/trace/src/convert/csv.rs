//! A trace as a table: a row for each event, in time order.

use std::io::Write;

use crate::read::{By, Then, Trace, What};

/// The columns.
const COLUMNS: [&str; 9] =
    ["time_s", "duration_s", "pe", "rank", "event", "partner", "bytes", "tag", "detail"];

/// Writes it.
///
/// # Errors
/// Those of the writer.
pub fn write(trace: &Trace, out: impl Write) -> Result<(), csv::Error> {
    let mut out = csv::Writer::from_writer(out);
    out.write_record(COLUMNS)?;
    let mut events: Vec<_> = trace.events().collect();
    events.sort_by_key(|(_, event)| event.began());
    for (pe, event) in events {
        let row = Row::of(trace, &event.what);
        let seconds = |nanoseconds: i64| format!("{:.9}", nanoseconds as f64 / 1e9);
        let number = |value: Option<i64>| value.map(|it| it.to_string()).unwrap_or_default();
        out.write_record([
            seconds(event.began()),
            seconds(event.at - event.began()),
            pe.to_string(),
            number(row.rank.map(i64::from)),
            row.event.to_owned(),
            number(row.partner),
            number(row.bytes.map(|bytes| bytes as i64)),
            number(row.tag.map(i64::from)),
            row.detail,
        ])?;
    }
    out.flush()?;
    Ok(())
}

#[derive(Default)]
struct Row {
    rank: Option<u32>,
    event: &'static str,
    partner: Option<i64>,
    bytes: Option<u64>,
    tag: Option<i32>,
    detail: String,
}

impl Row {
    fn of(trace: &Trace, what: &What) -> Row {
        let row = |event, rank| Row { event, rank: Some(rank), ..Row::default() };
        let name = |name| trace.name(name).to_owned();
        match *what {
            What::Ran { rank, then, .. } => {
                let (partner, detail) = match then {
                    Then::Ready => (None, "ready".to_owned()),
                    Then::Looks => (None, "looks".to_owned()),
                    Then::Waits(call, partner) => (partner, format!("waits in {}", name(call))),
                    Then::Over => (None, "over".to_owned()),
                };
                Row { partner: partner.map(i64::from), detail, ..row("run", rank) }
            }
            What::Idle { .. } => Row { event: "idle", ..Row::default() },
            What::Sent(it) => Row {
                partner: Some(it.to.into()),
                bytes: Some(it.bytes),
                tag: Some(it.tag),
                detail: it.sequence.to_string(),
                ..row("send", it.from)
            },
            What::Matched(it) => Row {
                partner: Some(it.from.into()),
                bytes: Some(it.bytes),
                tag: Some(it.tag),
                detail: it.sequence.to_string(),
                ..row("receive", it.to)
            },
            What::PutBack { rank } => row("put back", rank),
            What::CollectiveBegins { rank, call, context } => Row {
                tag: Some(context as i32),
                detail: name(call),
                ..row("collective begins", rank)
            },
            What::CollectiveEnds { rank, call, context } => Row {
                tag: Some(context as i32),
                detail: name(call),
                ..row("collective ends", rank)
            },
            What::Leaves { rank, to, bytes, by } => Row {
                partner: Some(to.into()),
                bytes: Some(bytes),
                detail: By::name(by).to_owned(),
                ..row("leaves", rank)
            },
            What::Comes { rank, from } => Row { partner: Some(from.into()), ..row("comes", rank) },
            What::Stays { rank, why } => Row { detail: name(why), ..row("stays", rank) },
            What::Step { number, strategy, .. } => Row {
                event: "step",
                partner: Some(number.into()),
                detail: name(strategy),
                ..Row::default()
            },
            What::Placed { rank, to, seconds, bytes, pinned, .. } => Row {
                partner: Some(to.into()),
                bytes: Some(bytes),
                detail: format!("{seconds} s{}", if pinned { ", pinned" } else { "" }),
                ..row("placed", rank)
            },
            What::RegionBegins { rank, name: region } => {
                Row { detail: name(region), ..row("region begins", rank) }
            }
            What::RegionEnds { rank } => row("region ends", rank),
            What::Over { rank, run, switches } => {
                let detail = format!("ran {} s, {switches} switches", run / 1e9);
                Row { detail, ..row("over", rank) }
            }
            What::OverSent { rank, messages, bytes } => Row {
                bytes: Some(bytes),
                detail: format!("sent {messages} messages"),
                ..row("over sent", rank)
            },
        }
    }
}
