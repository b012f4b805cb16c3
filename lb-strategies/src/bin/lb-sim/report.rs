//! Results as text, as JSON, and the table of all strategies on all cases.

use std::fmt::Write;

use bytesize::ByteSize;
use comfy_table::{CellAlignment, Table, presets};
use lb_strategies::{
    Config, LoadModel,
    cases::{self, Size},
    datafile::{DataFile, recorded},
    lower_bound, registry, strategies,
};
use serde_json::json;
use vrt_cli::quantity::seconds;

use crate::{
    input::Input,
    measure::{self, Measured, Outcome},
    options::Failure,
};

/// The list of strategies and cases.
pub(crate) fn list() -> String {
    let mut text = format!("strategies\n\n{}\ncases\n\n", registry::list());
    for case in cases::cases() {
        let _ = writeln!(text, "{:<25} {}", case.name, case.help);
    }
    text
}

/// A table of the results for a terminal.
pub(crate) fn text(input: &Input, today: &Outcome, results: &[Measured]) -> String {
    let model = &input.model;
    let mut text = format!(
        "{}: {} objects on {} PEs of {} nodes, {} edges\nno placement's busiest PE has less than \
         {}\n",
        input.title,
        model.objects().len(),
        model.pes().len(),
        nodes(model),
        model.edges().len(),
        seconds(lower_bound(model)),
    );
    if input.left_out > 0 {
        let _ = writeln!(
            text,
            "{} communications are left out: an end is no object that worked in the phase",
            input.left_out
        );
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header([
        "",
        "imbalance",
        "max load",
        "/ bound",
        "moves",
        "moved",
        "off PE",
        "off node",
        "time",
        "peak memory",
    ]);
    let row = |name: &str, it: &Outcome, time: String, memory: String| {
        [
            name.to_owned(),
            format!("{:.3}", it.imbalance),
            seconds(it.max_load),
            format!("{:.3}", it.over_bound),
            it.moves.to_string(),
            ByteSize(it.bytes_moved).to_string(),
            ByteSize(it.off_pe_bytes).to_string(),
            ByteSize(it.off_node_bytes).to_string(),
            time,
            memory,
        ]
    };
    table.add_row(row("before", today, String::new(), String::new()));
    for it in results {
        let memory = it.peak_bytes.map_or_else(|| "-".to_owned(), |it| ByteSize(it).to_string());
        table.add_row(row(it.strategy, &it.outcome, seconds(it.time.as_secs_f64()), memory));
    }
    table.column_iter_mut().skip(1).for_each(|it| it.set_cell_alignment(CellAlignment::Right));
    for line in table.lines() {
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn nodes(model: &LoadModel) -> usize {
    let mut nodes: Vec<usize> = model.pes().iter().map(|pe| pe.node).collect();
    nodes.sort_unstable();
    nodes.dedup();
    nodes.len()
}

/// The results as JSON.
pub(crate) fn json(input: &Input, today: &Outcome, results: &[Measured]) -> String {
    let model = &input.model;
    let value = json!({
        "input": input.title,
        "objects": model.objects().len(),
        "pes": model.pes().len(),
        "nodes": nodes(model),
        "edges": model.edges().len(),
        "communications_left_out": input.left_out,
        "lower_bound": lower_bound(model),
        "before": today,
        "results": results,
    });
    format!("{value:#}\n")
}

/// The file for the table's column `vt-file`.
const RECORDED: &str = include_str!("../../../tests/data/vt-layout.json");

/// The sizes of the table's cases.
const SIZE: Size = Size { objects: 1000, pes: 32, seed: 1 };

/// All strategies on all cases, in Markdown.
pub(crate) fn case_table() -> Result<String, Failure> {
    let mut models = vec![];
    for case in cases::cases() {
        models.push((case.name, case.model(SIZE)?));
    }
    let file = DataFile::parse("vt-layout.json", RECORDED.as_bytes())?;
    models.push(("vt-file", recorded(&[file], 3)?.model));

    let today: Vec<Outcome> = models.iter().map(|it| measure::today(&it.1)).collect();
    let mut rows: Vec<(&str, Vec<Outcome>)> = vec![];
    for strategy in strategies() {
        let assign = |model: &LoadModel| {
            let balancer = registry::create::<&str, &str>(strategy.name(), &[])?;
            debug_assert_eq!(balancer.config(), &Config::new(*strategy));
            Ok(measure::run(&balancer, model, SIZE.seed).outcome)
        };
        let outcomes: Result<_, Failure> = models.iter().map(|it| assign(&it.1)).collect();
        rows.push((strategy.name(), outcomes?));
    }

    let names: Vec<&str> = models.iter().map(|it| it.0).collect();
    let mut text = format!(
        "# Strategies on cases\n\nMade by `lb-sim --table`: {} objects on {} PEs, seed {}; \
         `vt-file` is a small file in\nthe layout of DARMA vt. Every strategy has its defaults; \
         `rotate` and `random` are for tests.\nCases are described by `lb-sim --case list`.\n",
        SIZE.objects, SIZE.pes, SIZE.seed
    );
    let mut section = |title: &str, columns: &[usize], cell: &Cell<'_>| {
        let row = |cells: &mut dyn Iterator<Item = String>| {
            cells.fold("\n|".to_owned(), |row, cell| row + " " + &cell + " |")
        };
        let header =
            std::iter::once(String::new()).chain(columns.iter().map(|&it| names[it].to_owned()));
        let _ = write!(text, "\n## {title}\n{}", row(&mut { header }));
        let _ = write!(text, "\n|---|{}", "---:|".repeat(columns.len()));
        let before = ("before", &today);
        for (name, outcomes) in std::iter::once(before).chain(rows.iter().map(|it| (it.0, &it.1))) {
            let cells = columns.iter().map(|&it| cell(&outcomes[it], it));
            text += &row(&mut std::iter::once(name.to_owned()).chain(cells));
        }
        text.push('\n');
    };
    let all: Vec<usize> = (0..models.len()).collect();
    let talking: Vec<usize> =
        all.iter().copied().filter(|&it| today[it].off_pe_bytes > 0).collect();
    section("Imbalance", &all, &|it, _| format!("{:.3}", it.imbalance));
    section("Load of the busiest PE over the lower bound", &all, &|it, _| {
        format!("{:.3}", it.over_bound)
    });
    section("Objects that move", &all, &|it, _| it.moves.to_string());
    section("Bytes between PEs, in percent of those before", &talking, &|it, column| {
        format!("{:.0}", it.off_pe_bytes as f64 * 100.0 / today[column].off_pe_bytes as f64)
    });
    Ok(text)
}

/// The text in a table's column for an outcome.
type Cell<'a> = dyn Fn(&Outcome, usize) -> String + 'a;
