//! The table as Markdown, for README.md and the book.
//!
//! | file | rows |
//! |---|---|
//! | `summary.md` | the few rows that README.md shows |
//! | `speed.md` | messages, collective operations, one-sided access, moves, solvers, threads |
//! | `many.md` | starting, and many ranks |
//! | `c.md` | C programs |

use std::path::Path;

use experiments::Table;
use experiments::statistics::relative_spread;

use super::peers::{Peer, PeerRuns};
use super::report::{figure, shown_ratio};
use super::row::{Reference, Unit};
use super::rows::{self, Subject};
use super::run::Figures;
use crate::Error;
use crate::process::write_file;

/// The rows of README.md.
const SUMMARY: [&str; 5] =
    ["switch", "message-in-pe", "message-between-pes", "allreduce", "jacobi-96"];

/// Writes all files into a directory, which is created if necessary; files without rows are left
/// out.
///
/// # Errors
///
/// A file cannot be written.
pub(super) fn write(folder: &Path, all: &[Figures], peers: &[Peer]) -> Result<(), Error> {
    let error = |cause| Error::File { path: folder.to_owned(), cause };
    std::fs::create_dir_all(folder).map_err(error)?;
    let named = |names: &[&str]| -> Vec<&Figures> {
        names.iter().filter_map(|name| all.iter().find(|it| it.row.name == *name)).collect()
    };
    let of = |subject: Subject| -> Vec<&Figures> {
        all.iter().filter(|it| rows::subject_of(&it.row.name) == subject).collect()
    };
    for (name, rows) in [
        ("summary", named(&SUMMARY)),
        ("speed", of(Subject::Speed)),
        ("many", of(Subject::Many)),
        ("c", of(Subject::C)),
    ] {
        if !rows.is_empty() {
            write_file(&folder.join(format!("{name}.md")), &table(&rows, peers).to_string())?;
        }
    }
    Ok(())
}

/// A table of some rows, with a column for each system that any of them is compared with.
fn table(rows: &[&Figures], peers: &[Peer]) -> Table {
    let peers: Vec<Peer> = peers
        .iter()
        .copied()
        .filter(|peer| rows.iter().any(|row| of_peer(row, *peer).is_some()))
        .collect();
    let has_twins = rows.iter().any(|row| matches!(row.row.reference, Reference::Vrt(_)));
    let mut head = vec!["", "vrt", "spread"];
    if has_twins {
        head.extend(["compared with", "ratio"]);
    }
    head.extend(peers.iter().map(|peer| peer.name()));
    let mut table = Table::new(head);
    for row in rows {
        let unit = row.row.unit;
        let mut cells = vec![
            row.row.title.clone(),
            figure(unit, row.vrt_seconds()),
            format!("{:.0}%", 100.0 * relative_spread(&row.vrt)),
        ];
        if has_twins {
            let is_twin = matches!(row.row.reference, Reference::Vrt(_));
            let other = row.reference_seconds().filter(|_| is_twin);
            cells.push(other.map_or_else(String::new, |other| figure(unit, other)));
            cells.push(other.and(row.ratio()).map_or_else(String::new, |it| shown_ratio(unit, it)));
        }
        cells.extend(
            peers
                .iter()
                .map(|peer| of_peer(row, *peer).map_or_else(String::new, |runs| beside(row, runs))),
        );
        table.row(cells);
    }
    table
}

fn of_peer(row: &Figures, peer: Peer) -> Option<&PeerRuns> {
    row.peers.iter().find(|it| it.peer == peer && it.seconds().is_some())
}

/// Another MPI's figure, and its ratio to vrt's: `120 ns (1.9x)`. Above one, vrt is faster.
fn beside(row: &Figures, runs: &PeerRuns) -> String {
    let Some(seconds) = runs.seconds() else { return String::new() };
    let shown = figure(row.row.unit, seconds);
    match (row.row.unit, runs.ratio(&row.vrt)) {
        (Unit::Memory, _) | (_, None) => shown,
        (_, Some(ratio)) => format!("{shown} ({:.2}x)", 1.0 / ratio),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(name: &str, vrt: Vec<f64>, open_mpi: Vec<f64>) -> Figures {
        Figures {
            row: rows::all().into_iter().find(|row| row.name == name).unwrap(),
            vrt,
            vrt_reference: Vec::new(),
            peers: vec![PeerRuns { peer: Peer::OpenMpi, runs: open_mpi, failure: None }],
        }
    }

    #[test]
    fn tables_have_the_columns_that_they_need() {
        let folder = tempfile::tempdir().unwrap();
        let rows = [
            figures("switch", vec![20e-9, 22e-9, 24e-9], vec![]),
            figures("allreduce", vec![2e-6; 3], vec![4e-6; 3]),
            Figures { vrt_reference: vec![1.0], ..figures("c-jacobi-96", vec![1.5], vec![]) },
        ];
        write(folder.path(), &rows, &Peer::ALL).unwrap();
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!(
            read("summary.md"),
            "|  | vrt | spread | Open MPI |\n|---|---|---|---|\n\
             | switch between two ranks of a PE (yield) | 22 ns | 5% |  |\n\
             | allreduce of a double, 64 ranks on 2 PEs | 2 us | 0% | 4 us (2.00x) |\n"
        );
        assert_eq!(
            read("c.md"),
            "|  | vrt | spread | compared with | ratio |\n|---|---|---|---|---|\n\
             | C face: Jacobi, 96^3 cells, 16 ranks per PE | 1.5 s | 0% | 1 s | 1.500 |\n"
        );
        assert!(!folder.path().join("many.md").exists());
    }

    #[test]
    fn the_rows_of_the_readme_are_there() {
        for name in SUMMARY {
            assert!(rows::names().iter().any(|it| it == name), "{name}");
        }
    }
}
