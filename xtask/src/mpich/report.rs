//! The table of what passed, and lists of what did not.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use super::judge::Verdict;
use super::lines::Line;
use super::{Mode, Ran};
use crate::job::regex;

/// What became of a line.
pub(super) enum Fate {
    /// It is left out, for this reason.
    LeftOut(String),
    /// Its program is not built, because of this error.
    NotBuilt(String),
    /// It was run.
    Ran(Vec<Ran>),
}

/// The columns of the table after the directory.
#[derive(Clone, Copy)]
enum Column {
    Lines,
    Still,
    Moving,
    TooShort,
    Known,
    Unknown,
    NotBuilt,
    LeftOut,
}

/// The lists below the table.
const LISTS: [&str; 6] = [
    "Failed, no reason known",
    "Not built",
    "Failed, reason known",
    "Right, but too short for a move",
    "Left out",
    "Passed, though a reason for their failure is known",
];

/// Why some lines fail: of a program, perhaps with its ranks, perhaps with its arguments.
pub(super) struct Reasons(HashMap<String, String>);

impl Reasons {
    /// Reads a file; without it no reasons are known.
    pub(super) fn read(file: &Path) -> Reasons {
        let text = fs::read_to_string(file).unwrap_or_default();
        let reason = regex(r"(?m)^([^#:\s][^:\n]*[^:\s]):[ \t]+(.*)$");
        Reasons(reason.captures_iter(&text).map(|it| (it[1].into(), it[2].into())).collect())
    }

    /// The most exact one.
    fn of(&self, line: &Line) -> Option<&str> {
        let Line { program, ranks, .. } = line;
        let keys = [line.name(), format!("{program} {ranks}"), program.clone()];
        keys.iter().find_map(|key| self.0.get(key)).map(String::as_str)
    }
}

/// The results of all lines.
#[derive(Default)]
pub(super) struct Report {
    /// By directory, in the order in which they were added.
    rows: Vec<(String, [usize; 8])>,
    lists: [String; 6],
    /// How many lines for MPICH were run, and passed still and moving.
    own: [usize; 3],
    jobs_moved: usize,
    /// Whether something fails without a known reason.
    pub(super) is_bad: bool,
}

impl Report {
    /// Adds a line. Those for MPICH only have a place in the columns of failures.
    pub(super) fn add(&mut self, line: &Line, fate: &Fate, reasons: &Reasons) {
        if self.rows.last().is_none_or(|(directory, _)| directory != line.directory()) {
            self.rows.push((line.directory().to_owned(), [0; 8]));
        }
        let row = &mut self.rows.last_mut().expect("a row was just added").1;
        let regular = usize::from(!line.is_for_mpich);
        let (name, reason) = (line.name(), reasons.of(line));
        row[Column::Lines as usize] += regular;
        let runs = match fate {
            Fate::LeftOut(why) => {
                row[Column::LeftOut as usize] += regular;
                self.lists[4] += &format!("- `{name}`: {why}\n");
                return;
            }
            Fate::NotBuilt(error) => {
                row[Column::NotBuilt as usize] += regular;
                self.is_bad |= reason.is_none();
                let reason = reason.map(|it| format!("{it}; ")).unwrap_or_default();
                self.lists[1] += &format!("- `{name}`: {reason}`{}`\n", code(error));
                return;
            }
            Fate::Ran(runs) => runs,
        };
        self.own[0] += 1 - regular;
        let mut wrong = Vec::new();
        for run in runs {
            self.jobs_moved += usize::from(run.moved > 0);
            match run.verdict {
                Verdict::Passed if line.is_for_mpich => self.own[1 + run.mode as usize] += 1,
                Verdict::Passed => row[Column::Still as usize + run.mode as usize] += 1,
                Verdict::TooShort(_) => {
                    row[Column::TooShort as usize] += regular;
                    self.lists[3] += &format!("- `{name}`\n");
                }
                Verdict::Wrong(_) => wrong.push(run),
            }
        }
        let expected = line.expected_failure.as_ref();
        let expected = expected.map(|why| format!("MPICH expects that it fails: {why}"));
        let modes: Vec<&str> = wrong.iter().map(|run| run.mode.name()).collect();
        let modes = modes.join(" and ");
        match (wrong.first(), reason.or(expected.as_deref())) {
            (None, Some(reason)) if expected.is_none() => {
                self.lists[5] += &format!("- `{name}`: {reason}\n");
            }
            (None, _) => {}
            (Some(_), Some(reason)) => {
                row[Column::Known as usize] += 1;
                self.lists[2] += &format!("- `{name}` ({modes}): {reason}\n");
            }
            (Some(run), None) => {
                row[Column::Unknown as usize] += 1;
                self.is_bad = true;
                let words = if run.words.is_empty() {
                    String::new()
                } else {
                    format!(": `{}`", code(&run.words))
                };
                self.lists[0] += &format!("- `{name}` ({modes}): {}{words}\n", run.verdict);
            }
        }
    }

    /// The report, of jobs with so many PEs; so many lines repeat others for MPICH.
    pub(super) fn text(&self, pes: u32, modes: &[Mode], repeats: usize) -> String {
        let mut text = format!(
            "# MPICH's tests on vrt\n\n\
             Jobs of {pes} PEs with as many ranks as each line says. Moving: ranks are moved at random each millisecond, \
             and a line has passed only if some were, which {} jobs say.\n\n\
             | directory | lines | passed still | | passed moving | of the others | too short for a move | \
             failed, reason known | failed, no reason | not built | left out |\n\
             |---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
            self.jobs_moved
        );
        let mut sums = [0; 8];
        for (directory, row) in &self.rows {
            text += &row_of(directory, row, modes);
            (0..8).for_each(|at| sums[at] += row[at]);
        }
        if self.rows.len() > 1 {
            text += &row_of("together", &sums, modes);
        }
        let [run, still, moving] = self.own;
        text += &format!(
            "\nBeside these, {} lines set variables that only MPICH has. They repeat the others except for {run}, \
             which were run without: {still} passed still, {moving} moving.\n",
            repeats + run
        );
        for (title, list) in LISTS.iter().zip(&self.lists).filter(|(_, list)| !list.is_empty()) {
            text += &format!("\n## {title}\n\n{list}");
        }
        text
    }
}

/// A row of the table.
fn row_of(directory: &str, row: &[usize; 8], modes: &[Mode]) -> String {
    let of = |column: Column| row[column as usize];
    // How many, and in percent of how many: nothing if the mode was not run.
    let share = |part: usize, whole: usize, mode: Mode| match modes.contains(&mode) {
        true if whole > 0 => format!("{part} | {:.1}%", (1000 * part / whole) as f64 / 10.0),
        true => format!("{part} | "),
        false => " | ".to_owned(),
    };
    let lines = of(Column::Lines);
    let still = share(of(Column::Still), lines, Mode::Still);
    let moving = share(of(Column::Moving), lines - of(Column::TooShort), Mode::Moving);
    let rest: Vec<String> = row[Column::TooShort as usize..].iter().map(usize::to_string).collect();
    format!("| {directory} | {lines} | {still} | {moving} | {} |\n", rest.join(" | "))
}

/// What programs and compilers say is shown as code, which a backquote would end.
fn code(text: &str) -> String {
    text.replace('`', "'")
}
