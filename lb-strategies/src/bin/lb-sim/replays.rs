//! Replays a recorded job with several balancers, side by side.

use bytesize::ByteSize;
use comfy_table::{CellAlignment, Table, presets};
use lb_strategies::{
    Balancer, LoadModelError,
    auto::{self, Auto},
    replay::{Decider, RecordedPhase, Replayed, replay},
};
use serde_json::{Value, json};
use vrt_cli::quantity::seconds;

/// A balancer and its result.
pub(crate) struct Row {
    name: String,
    /// The number of phases between decisions; 0 for balancers without such a number.
    every: usize,
    pub replayed: Replayed,
}

impl Row {
    /// The balancer's name, and how often it decides.
    pub(crate) fn title(&self) -> String {
        match self.every {
            0 | 1 => self.name.clone(),
            every => format!("{}, every {every} phases", self.name),
        }
    }
}

/// Runs all balancers, with each of these numbers of phases.
pub(crate) fn run(
    phases: &[RecordedPhase],
    balancers: Vec<Balancer>,
    every: &[usize],
) -> Result<Vec<Row>, LoadModelError> {
    let mut rows = vec![];
    let mut add = |name: &str, every, decider| {
        let replayed = replay(phases, decider)?;
        rows.push(Row { name: name.to_owned(), every, replayed });
        Ok::<(), LoadModelError>(())
    };
    add("as recorded", 0, Decider::Recorded)?;
    add("nobody moves", 0, Decider::Nobody)?;
    let usual: Vec<_> =
        auto::USUAL.iter().filter_map(|name| lb_strategies::find(name).ok()).collect();
    // Phases are as long as they are.
    let longest = phases.iter().map(|it| it.seconds).fold(0.0, f64::max);
    add(auto::NAME, 1, Decider::Auto(Box::new(Auto::new(&usual, Some(longest)))))?;
    for balancer in balancers {
        for every in every {
            let name = balancer.strategy().name();
            add(name, *every, Decider::Strategy(balancer.clone(), *every))?;
        }
    }
    Ok(rows)
}

/// Load of the busiest PE of each phase over the mean, minus 1, over all phases.
fn imbalance(replayed: &Replayed) -> f64 {
    let busiest = |loads: &Vec<f64>| loads.iter().copied().fold(0.0, f64::max);
    let mean = |loads: &Vec<f64>| loads.iter().sum::<f64>() / loads.len().max(1) as f64;
    let mean: f64 = replayed.loads.iter().map(mean).sum();
    if mean > 0.0 { replayed.loads.iter().map(busiest).sum::<f64>() / mean - 1.0 } else { 0.0 }
}

/// The rows as a table, fastest first.
pub(crate) fn text(phases: &[RecordedPhase], rows: &[Row]) -> String {
    let (objects, pes) = (phases[0].ids.len(), phases[0].model.pes().len());
    let mut text = format!("{} phases: {objects} objects on {pes} PEs\n\n", phases.len());
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["", "every", "time", "of it moves", "moves", "imbalance", "off PE", "bytes"]);
    let mut rows: Vec<&Row> = rows.iter().collect();
    rows.sort_by(|a, b| a.replayed.seconds.total_cmp(&b.replayed.seconds));
    for Row { name, every, replayed } in rows {
        table.add_row([
            name.clone(),
            if *every == 0 { String::new() } else { every.to_string() },
            seconds(replayed.seconds),
            seconds(replayed.move_seconds),
            replayed.moves.to_string(),
            format!("{:.3}", imbalance(replayed)),
            replayed.off_pe_messages.to_string(),
            ByteSize(replayed.off_pe_bytes).to_string(),
        ]);
    }
    table.column_iter_mut().skip(1).for_each(|it| it.set_cell_alignment(CellAlignment::Right));
    for line in table.lines() {
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// The rows as JSON.
pub(crate) fn json(rows: &[Row]) -> String {
    let rows: Vec<Value> = rows
        .iter()
        .map(|Row { name, every, replayed }| {
            json!({
                "balancer": name,
                "every": every,
                "seconds": replayed.seconds,
                "move_seconds": replayed.move_seconds,
                "moves": replayed.moves,
                "imbalance": imbalance(replayed),
                "off_pe_messages": replayed.off_pe_messages,
                "off_pe_bytes": replayed.off_pe_bytes,
            })
        })
        .collect();
    format!("{:#}\n", json!({ "replays": rows }))
}
