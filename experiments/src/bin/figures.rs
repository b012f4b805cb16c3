//! The program behind `scripts/figures`: it measures, with a record of the machine, and fills the results into
//! documents.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use clap::{Parser, Subcommand};
use experiments::document::{self, DocumentError, Record};
use vrt_cli::{Machine, Others};

/// Measure, and fill the results into documents.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: What,
}

#[derive(Subcommand)]
enum What {
    /// Run a command and keep its output, with a record of the machine
    Measure {
        /// The directory for the results; in the command, `{out}` stands for it, and `{tmp}` for one that is removed afterwards
        folder: PathBuf,
        /// The command and its arguments
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<String>,
    },
    /// Fill results into the blocks of documents
    FillIn {
        /// The directory with the results of all measurements
        results: PathBuf,
        /// The documents
        #[arg(required = true)]
        documents: Vec<PathBuf>,
    },
}

/// Why there are no figures.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("{}: {why}", .file.display())]
    File { file: PathBuf, why: std::io::Error },
    #[error("{command}: {why}")]
    Start { command: String, why: std::io::Error },
    #[error("{command} has failed: {status}; it printed:\n{printed}")]
    Failed { command: String, status: std::process::ExitStatus, printed: String },
    #[error("{}: {why}", .file.display())]
    Document { file: PathBuf, why: DocumentError },
}

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        What::Measure { folder, command } => measure(&folder, &command),
        What::FillIn { results, documents } => {
            documents.iter().try_for_each(|document| fill_in(&results, document))
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("figures: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(folder: &Path, command: &[String]) -> Result<(), Error> {
    let file_error = |file: &Path| {
        let file = file.to_owned();
        move |why| Error::File { file, why }
    };
    fs::create_dir_all(folder).map_err(file_error(folder))?;
    let machine = Machine::now();
    if let Some(note) = Others::now().and_then(|others| others.note()) {
        eprintln!("figures: {note}");
    }
    let out = folder.display().to_string();
    let temporary = std::env::temp_dir().join(format!("vrt-figures-{}", std::process::id()));
    fs::create_dir_all(&temporary).map_err(file_error(&temporary))?;
    let other = temporary.display().to_string();
    let filled = |word: &String| word.replace("{out}", &out).replace("{tmp}", &other);
    let words: Vec<String> = command.iter().map(filled).collect();
    let shown = command.join(" ");
    let (began, others) = (Instant::now(), Others::watch());
    let mut child = Command::new(&words[0]);
    let output = child.args(&words[1..]).stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    // What is left there is nothing that the documents show.
    let _ = fs::remove_dir_all(&temporary);
    let output = output.map_err(|why| Error::Start { command: shown.clone(), why })?;
    let printed = String::from_utf8_lossy(&output.stdout).replace(&format!("{other}/"), "");
    if !output.status.success() {
        let status = output.status;
        return Err(Error::Failed { command: shown, status, printed });
    }
    let seconds = began.elapsed().as_secs_f64();
    let others = others.and_then(|others| others.cores());
    let record = Record { machine, others, commit: commit(), command: shown, seconds };
    // Strings and numbers can be written as JSON.
    let record = format!("{:#}\n", serde_json::json!(record));
    for (name, text) in [("printed.txt", &*printed), (Record::FILE, &*record)] {
        let file = folder.join(name);
        fs::write(&file, text).map_err(file_error(&file))?;
    }
    print!("{printed}");
    Ok(())
}

/// The version of the source that is measured. What the results are filled into does not belong to it.
fn commit() -> String {
    let printed = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        output.status.success().then_some(text)
    };
    let Some(commit) = printed(&["describe", "--always"]) else { return "unknown".to_owned() };
    let paths = ["--", ".", ":!docs", ":!README.md"];
    match printed(&[&["status", "--porcelain", "--untracked-files=no"], &paths[..]].concat()) {
        Some(changed) if changed.is_empty() => commit,
        _ => commit + "-dirty",
    }
}

fn fill_in(results: &Path, document: &Path) -> Result<(), Error> {
    let file_error = |why| Error::File { file: document.to_owned(), why };
    let text = fs::read_to_string(document).map_err(file_error)?;
    let filled = document::fill_in(&text, |name| document::of_results(results, name))
        .map_err(|why| Error::Document { file: document.to_owned(), why })?;
    if filled != text {
        fs::write(document, filled).map_err(file_error)?;
        println!("{}", document.display());
    }
    Ok(())
}
