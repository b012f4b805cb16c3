//! Draws the load of PEs in each phase, as recorded and with other balancers, as one page.

use std::path::Path;

use lb_strategies::replay::RecordedPhase;
use serde_json::json;
use vrt_trace::page;

use crate::{options::Failure, replays::Row};

const PAGE: &str = include_str!("page.html");
/// The place of the page's data.
const DATA: &str = "/*DATA*/null";

/// Writes the page.
pub(crate) fn write(path: &Path, phases: &[RecordedPhase], rows: &[Row]) -> Result<(), Failure> {
    let lengths: Vec<f64> = phases.iter().map(|it| it.seconds).collect();
    let rows: Vec<_> = rows
        .iter()
        .map(|row| {
            json!({
                "name": row.title(),
                "seconds": row.replayed.seconds,
                "move_seconds": row.replayed.move_seconds,
                "moves": row.replayed.moves,
                "off_pe_messages": row.replayed.off_pe_messages,
                "off_pe_bytes": row.replayed.off_pe_bytes,
                "loads": row.replayed.loads,
            })
        })
        .collect();
    let data = json!({ "phases": lengths, "rows": rows }).to_string();
    let page = page::of(PAGE).replacen(DATA, &page::in_script(&data), 1);
    let wrong = |error| Failure::Directory { file: path.display().to_string(), error };
    std::fs::write(path, page).map_err(wrong)
}
