//! Prints one table, for files and pipes.

use comfy_table::{CellAlignment, Table, presets};
use vrt_launch::monitor::Snapshot;

use crate::order::{COLUMNS, Order, cells, headline, percent};

/// Prints a job.
pub(crate) fn table(shot: &Snapshot, order: Order) {
    for line in headline(shot) {
        println!("{line}");
    }
    let mut pes = empty(&["PE", "in ranks", "rest", "idle", "ranks", "ready", "switches/s"], &[]);
    for pe in &shot.pes {
        pes.add_row([
            pe.pe.to_string(),
            percent(pe.busy),
            pe.overhead.map_or("-".to_owned(), percent),
            percent(pe.idle),
            pe.ranks.to_string(),
            pe.ready.to_string(),
            format!("{:.0}", pe.switch_rate),
        ]);
    }
    println!("\n{pes}\n");
    let mut ranks = empty(&COLUMNS, &[2, 8]);
    for rank in order.of(shot) {
        ranks.add_row(cells(rank));
    }
    println!("{ranks}");
    if shot.left_out > 0 {
        println!("and {} more ranks with lower loads", shot.left_out);
    }
}

/// A table without lines, whose columns are right-aligned except those in `left`.
fn empty(heads: &[&str], left: &[usize]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(heads.iter().copied());
    for at in (0..heads.len()).filter(|at| !left.contains(at)) {
        if let Some(column) = table.column_mut(at) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}
