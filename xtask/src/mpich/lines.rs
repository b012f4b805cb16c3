//! MPICH's lists of tests: each line is a program with its ranks, its arguments, and how it has to end.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use regex::Regex;

use crate::steps::{Error, at};

/// A line of a list.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Line {
    /// The directory and the program.
    pub(super) program: String,
    pub(super) ranks: String,
    pub(super) arguments: String,
    /// `NAME=VALUE` each.
    pub(super) environment: Vec<String>,
    /// How its result is judged.
    pub(super) kind: String,
    /// Its own time limit in seconds.
    pub(super) limit: Option<u64>,
    /// Why MPICH expects that it fails.
    pub(super) expected_failure: Option<String>,
    /// Why it is not run.
    pub(super) left_out: Option<String>,
    /// Whether it sets what only MPICH has.
    pub(super) is_for_mpich: bool,
    /// The memory that it needs in GB.
    pub(super) memory: f64,
}

impl Line {
    /// Parses a line, unless it is a comment or a support routine that has to be built first.
    fn parse(directory: &str, text: &str, memory: f64) -> Option<Line> {
        let mut words = text.split('#').next()?.split_whitespace();
        let program = words.next().filter(|it| !it.starts_with('!'))?;
        let mut line = Line {
            program: format!("{directory}/{program}"),
            ranks: words.next().unwrap_or("2").to_owned(),
            kind: "TestNormal".to_owned(),
            ..Line::default()
        };
        let mut arguments = Vec::new();
        for word in words {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            match key {
                "arg" => arguments.push(value),
                "env" if !value.starts_with("MPIR_CVAR_") => {
                    line.environment.push(value.to_owned())
                }
                // The others are options of their launcher.
                "env" | "mpiexecarg" => line.is_for_mpich = true,
                "resultTest" => line.kind = value.to_owned(),
                "timeLimit" => line.limit = value.parse().ok(),
                "xfail" => line.expected_failure = Some(value.to_owned()),
                "strict" if value.eq_ignore_ascii_case("false") => {
                    line.left_out = Some("not of the MPI standard".to_owned());
                }
                "mem" => {
                    line.memory = value.parse().unwrap_or(0.0);
                    let is_too_much = line.memory > memory;
                    line.left_out =
                        is_too_much.then(|| format!("needs {value} GB")).or(line.left_out);
                }
                "hasgpu" => line.left_out = Some("needs a GPU".to_owned()),
                _ => {}
            }
        }
        line.arguments = arguments.join(" ");
        Some(line)
    }

    /// The program with its ranks and arguments.
    pub(super) fn name(&self) -> String {
        format!("{} {} {}", self.program, self.ranks, self.arguments).trim_end().to_owned()
    }

    /// The directory.
    pub(super) fn directory(&self) -> &str {
        self.program.split('/').next().unwrap_or_default()
    }
}

/// The lines of these directories, and the number of lines that repeat one of them: of those with the same name, the
/// first that sets nothing of MPICH's is run, else the first.
pub(super) fn lines(
    tests: &Path,
    directories: &[String],
    has_datatypes: bool,
    memory: f64,
    only: Option<&Regex>,
) -> Result<(Vec<Line>, usize), Error> {
    let (mut lines, mut seen, mut repeats) = (Vec::new(), HashSet::new(), 0);
    for directory in directories {
        // In a configured tree the one is made from the other.
        let files = ["testlist", "testlist.in"].map(|file| tests.join(directory).join(file));
        let file = files.iter().find(|file| file.is_file()).ok_or_else(|| {
            Error::Usage(format!("there is no list of tests in {}/{directory}", tests.display()))
        })?;
        let mut text = fs::read_to_string(file).map_err(at(file))?;
        if has_datatypes {
            let file = tests.join("maint/dtp-test-config.txt");
            let templates = fs::read_to_string(&file).map_err(at(&file))?;
            text += &format!("\n{}", datatype_lines(&templates, directory));
        }
        let parsed = text.lines().filter_map(|text| Line::parse(directory, text, memory));
        let mut wanted: Vec<Line> =
            parsed.filter(|line| only.is_none_or(|only| only.is_match(&line.name()))).collect();
        wanted.sort_by_key(|line| line.is_for_mpich);
        for line in wanted {
            match seen.insert(line.name()) {
                true => lines.push(line),
                false => repeats += 1,
            }
        }
    }
    Ok((lines, repeats))
}

/// What MPICH makes of its list of tests with generated datatypes, for the types it has by default.
fn datatype_lines(templates: &str, directory: &str) -> String {
    let (mut seed, mut lines) = (1, String::new());
    let number = |text: &str| text.parse::<u64>().unwrap_or(0);
    for template in templates.lines().filter(|it| !it.starts_with('#') && !it.trim().is_empty()) {
        let mut fields: Vec<&str> = template.split(':').collect();
        fields.resize(7, "");
        let (place, program) = fields[0].rsplit_once('/').unwrap_or(("", fields[0]));
        let (ranks, options, least) = (fields[4], fields[3], number(fields[5]));
        let most = if fields[6].is_empty() { least } else { number(fields[6]) };
        let more: String = fields[1].split_whitespace().map(|it| format!(" arg={it}")).collect();
        for kind in ["MPI_INT", "MPI_INT:4+MPI_DOUBLE:8"] {
            let (mut size, mut before) = (0, 0);
            for (at, count) in fields[2].split_whitespace().map(number).enumerate() {
                size = match size {
                    0 => most,
                    size => (size * before / count).max(least).min(most),
                };
                if at == 0 || size == most {
                    before = count;
                }
                let has_pairs = ["pt2pt", "part"].contains(&place);
                for factor in 1..=if has_pairs { 2 } else { 1 } {
                    let counts = match has_pairs {
                        true => format!("arg=-sendcnt={count} arg=-recvcnt={}", count * factor),
                        false => format!("arg=-count={count}"),
                    };
                    if place == directory {
                        lines += &format!(
                            "{program} {ranks} arg=-type={kind} {counts} arg=-seed={seed} \
                             arg=-testsize={size}{more} {options}\n"
                        );
                    }
                    seed += 1;
                }
            }
        }
    }
    lines
}
