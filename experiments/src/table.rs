//! A table in Markdown.

use std::fmt;

/// A table, to which rows are added; displayed as Markdown.
///
/// ```
/// let mut table = experiments::Table::new(["ranks", "seconds"]);
/// table.row([16.to_string(), format!("{:.1}", 0.25)]);
/// assert_eq!(table.to_string(), "| ranks | seconds |\n|---|---|\n| 16 | 0.2 |\n");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table(String);

impl Table {
    /// A table with these headings.
    pub fn new(head: impl IntoIterator<Item: fmt::Display>) -> Self {
        let mut table = Self(String::new());
        let columns = table.add(head);
        table.0 += &format!("|{}\n", "---|".repeat(columns));
        table
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item: fmt::Display>) {
        self.add(cells);
    }

    fn add(&mut self, cells: impl IntoIterator<Item: fmt::Display>) -> usize {
        let cells: Vec<String> = cells.into_iter().map(|it| it.to_string()).collect();
        self.0 += &format!("| {} |\n", cells.join(" | "));
        cells.len()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A cell with a value that may be missing.
pub fn cell<T>(value: Option<T>, shown: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), shown)
}
