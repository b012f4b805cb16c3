//! The directory for results: a table (CSV) and a figure (SVG) of each experiment, and `report.md`.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use vrt_cli::Machine;

use crate::figure::{self, Axis, Labels, Series, Spreads};

/// A file or directory that cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {why}", .file.display())]
pub struct WriteError {
    file: PathBuf,
    why: String,
}

impl WriteError {
    fn new(file: &Path, why: &dyn Display) -> Self {
        Self { file: file.to_owned(), why: why.to_string() }
    }
}

/// The directory for results.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    report: String,
    machine: Machine,
}

impl Folder {
    /// Creates the directory if it does not exist.
    ///
    /// # Errors
    ///
    /// If it can neither be created nor used.
    pub fn create(path: &Path) -> Result<Self, WriteError> {
        std::fs::create_dir_all(path).map_err(|why| WriteError::new(path, &why))?;
        Ok(Self { path: path.to_owned(), report: String::new(), machine: Machine::now() })
    }

    /// Writes `NAME.csv`.
    ///
    /// # Errors
    ///
    /// If the file cannot be written, or the length of a row differs from that of the head.
    pub fn write_table<R>(
        &self,
        name: &str,
        head: &[&str],
        rows: impl IntoIterator<Item = R>,
    ) -> Result<(), WriteError>
    where
        R: IntoIterator<Item = String>,
    {
        let file = self.path.join(format!("{name}.csv"));
        let write = || -> Result<(), csv::Error> {
            let mut writer = csv::Writer::from_path(&file)?;
            writer.write_record(head)?;
            for row in rows {
                writer.write_record(row)?;
            }
            Ok(writer.flush()?)
        };
        write().map_err(|why| WriteError::new(&file, &why))
    }

    /// Writes `NAME.json`.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub fn write_json(&self, name: &str, numbers: &serde_json::Value) -> Result<(), WriteError> {
        self.write(&format!("{name}.json"), &format!("{numbers:#}\n"))
    }

    fn write(&self, name: &str, text: &str) -> Result<(), WriteError> {
        let file = self.path.join(name);
        std::fs::write(&file, text).map_err(|why| WriteError::new(&file, &why))
    }

    /// Draws `NAME.svg`.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub fn draw(
        &self,
        name: &str,
        labels: &Labels,
        lines: &[Series],
        axis: Axis,
    ) -> Result<(), WriteError> {
        self.draw_with_bars(name, labels, lines, &[], axis)
    }

    /// Draws `NAME.svg` with error bars, given for each line.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub fn draw_with_bars(
        &self,
        name: &str,
        labels: &Labels,
        lines: &[Series],
        bars: &[Spreads],
        axis: Axis,
    ) -> Result<(), WriteError> {
        let file = self.path.join(format!("{name}.svg"));
        figure::draw(&file, labels, (lines, bars), axis, &self.machine.brief())
            .map_err(|why| WriteError::new(&file, &why))
    }

    /// Prints a paragraph, which also becomes part of the report.
    pub fn add_paragraph(&mut self, text: impl Display) {
        println!("{text}");
        self.report += &format!("{text}\n");
    }

    /// Writes `report.md`.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub fn write_report(self) -> Result<(), WriteError> {
        self.write("report.md", &self.report)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn tables_figures_and_the_report_are_written() {
        let place = tempfile::tempdir().unwrap();
        let out = place.path().join("a/b");
        let read = |name: &str| std::fs::read_to_string(out.join(name)).unwrap();
        let mut folder = Folder::create(&out).unwrap();

        let rows = [["one, and a comma".to_owned(), "1".to_owned()]];
        folder.write_table("table", &["name", "value"], rows).unwrap();
        assert_eq!(read("table.csv"), "name,value\n\"one, and a comma\",1\n");

        let labels = Labels { title: "A title", x: "the x", y: "the y" };
        let lines = [("the line".to_owned(), vec![(1.0, 2.0), (2.0, 3.0), (64.0, 1.0)])];
        for axis in [Axis::FromZero, Axis::Listed, Axis::Span] {
            folder.draw("figure", &labels, &lines, axis).unwrap();
            let text = read("figure.svg");
            for part in ["A title", "the x", "the y", "the line", "polyline"] {
                assert!(text.contains(part), "{axis:?}: no {part} in {text}");
            }
        }

        folder.add_paragraph("First.");
        folder.add_paragraph("Second.");
        folder.write_report().unwrap();
        assert_eq!(read("report.md"), "First.\nSecond.\n");
    }

    #[test]
    fn what_cannot_be_written_is_named() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("file");
        std::fs::write(&file, "").unwrap();
        let error = Folder::create(&file).unwrap_err().to_string();
        assert!(error.starts_with(&format!("cannot write {}: ", file.display())), "{error}");
        let folder = Folder::create(place.path()).unwrap();
        let error = folder.write_table("no/table", &["x"], [["1".to_owned()]]).unwrap_err();
        assert!(error.to_string().contains("no/table.csv: "), "{error}");
        let labels = Labels { title: "", x: "", y: "" };
        let error = folder.draw("no/figure", &labels, &[], Axis::Span).unwrap_err();
        assert!(error.to_string().contains("no/figure.svg: "), "{error}");
    }
}
