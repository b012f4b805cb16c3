//! What the subcommands have in common: the lines and the end of a report.

use std::fmt::Display;
use std::path::Path;
use std::process::ExitCode;

use rocket_mini::picture::WriteError;

/// Prints a line of the report.
pub(crate) fn line(name: &str, value: impl Display) {
    println!("{name:<15}{value}");
}

/// Ends the report with the verdict: the status is 1 if something is wrong.
pub(crate) fn verdict<E: Display>(verdict: Result<(), E>) -> ExitCode {
    match verdict {
        Ok(()) => {
            line("verification", "ok");
            ExitCode::SUCCESS
        }
        Err(wrong) => {
            line("verification", format_args!("WRONG: {wrong}"));
            ExitCode::FAILURE
        }
    }
}

/// Creates a directory and writes pictures to it, or ends the job, as the other ranks would wait forever.
pub(crate) fn write_or_exit(folder: &Path, write: impl FnOnce() -> Result<(), WriteError>) {
    let made = std::fs::create_dir_all(folder).map_err(|error| WriteError::new(folder, error));
    if let Err(error) = made.and_then(|()| write()) {
        eprintln!("rocket-mini: {error}");
        std::process::exit(1);
    }
}

/// A number that is not negative, for options.
pub(crate) fn not_negative(text: &str) -> Result<f64, String> {
    (text.parse())
        .ok()
        .filter(|value: &f64| value.is_finite() && *value >= 0.0)
        .ok_or_else(|| "expected a number that is not negative".to_owned())
}

/// A number above zero, for options.
pub(crate) fn positive(text: &str) -> Result<f64, String> {
    (text.parse())
        .ok()
        .filter(|value: &f64| value.is_finite() && *value > 0.0)
        .ok_or_else(|| "expected a number above 0".to_owned())
}
