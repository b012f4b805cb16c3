//! The functions as data, and how many of them somebody has.

use std::fmt::Write;

/// A chapter of the standard, or a part of one.
#[derive(Debug, PartialEq, Eq)]
pub struct Chapter {
    /// Its key in the table: `point-to-point`.
    pub key: &'static str,
    /// Its title.
    pub title: &'static str,
}

/// A function of the interface. Each is there a second time with a `P` before its name.
#[derive(Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: &'static str,
    /// Where it belongs.
    pub chapter: &'static Chapter,
    /// Its declaration in C, without a semicolon.
    pub prototype: &'static str,
    /// Whether it is the form of another for counts of 64 bits; its name ends with `_c`.
    pub is_large: bool,
    /// Since which version of MPI it has been out of date.
    pub deprecated: Option<&'static str>,
}

mod list {
    #![allow(missing_docs)]
    use super::{Chapter, Function};
    include!(concat!(env!("OUT_DIR"), "/functions.rs"));
}

/// All chapters.
pub static CHAPTERS: &[Chapter] = list::CHAPTERS;

/// All functions, chapter by chapter; large-count forms are right behind what they are forms of.
pub static FUNCTIONS: &[Function] = list::FUNCTIONS;

/// The function of that name, which may begin with `PMPI_`.
pub fn function(name: &str) -> Option<&'static Function> {
    let name = match name.strip_prefix('P') {
        Some(rest) if rest.starts_with("MPI_") => rest,
        _ => name,
    };
    FUNCTIONS.iter().find(|function| function.name == name)
}

/// A Markdown table: of each chapter how many functions there are, how many of them `is_there`
/// knows, and the names of the others.
///
/// A form for large counts is not named where the function itself is missing too.
pub fn coverage_table(is_there: &dyn Fn(&str) -> bool) -> String {
    let mut text = String::from(
        "| chapter | functions | large-count | there | large-count | missing |\n\
         |---|---:|---:|---:|---:|---|\n",
    );
    let mut total = Coverage::default();
    for chapter in CHAPTERS {
        let mut coverage = Coverage::default();
        for function in FUNCTIONS.iter().filter(|function| function.chapter == chapter) {
            coverage.add(function, is_there(function.name));
        }
        coverage.row(&mut text, chapter.title);
        total.all = [total.all[0] + coverage.all[0], total.all[1] + coverage.all[1]];
        total.there = [total.there[0] + coverage.there[0], total.there[1] + coverage.there[1]];
    }
    total.row(&mut text, "**all**");
    text
}

/// Functions, and their forms for large counts.
#[derive(Default)]
struct Coverage {
    all: [usize; 2],
    there: [usize; 2],
    missing: Vec<&'static str>,
}

impl Coverage {
    fn add(&mut self, function: &'static Function, is_there: bool) {
        let form = usize::from(function.is_large);
        self.all[form] += 1;
        self.there[form] += usize::from(is_there);
        let base = function.name.strip_suffix("_c").filter(|_| function.is_large);
        if !is_there && (base.is_none() || base != self.missing.last().copied()) {
            self.missing.push(function.name);
        }
    }

    fn row(&self, text: &mut String, title: &str) {
        let missing = if self.missing.is_empty() {
            String::new()
        } else {
            format!("`{}`", self.missing.join("`, `"))
        };
        let ([all, all_large], [there, there_large]) = (self.all, self.there);
        // Writing to a text does not fail.
        let _ = writeln!(
            text,
            "| {title} | {all} | {all_large} | {there} | {there_large} | {missing} |"
        );
    }
}
