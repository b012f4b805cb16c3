//! What the command lines of all programs have in common: manual pages and completions, the [`Machine`] that
//! results have to name, [`statistics`] of repeated measurements, [`quantity`] for people, the line that shows [`Progress`], and
//! programs that run within a time limit (`job`).
//!
//! Each program can print its own manual page and its completion for a shell, so that both always fit the program
//! that is installed: `VRT_PRINT=man uts > uts.1`, `VRT_PRINT=bash uts > completions/uts`. `scripts/install` and
//! `scripts/package` do that for all programs.

#[cfg(feature = "figure")]
pub mod figure;
#[cfg(feature = "job")]
pub mod job;
pub mod machine;
mod progress;
pub mod quantity;
pub mod statistics;

use std::io::{self, Write};
use std::path::Path;
use std::str::FromStr;

use clap::Command;
use clap_complete::Shell;

pub use machine::{Machine, Others};
pub use progress::Progress;

/// Parses the value of an option that counts something.
///
/// # Errors
/// It is no whole number, 0, or more than `T` can hold.
pub fn positive<T: FromStr + PartialOrd + From<u8>>(text: &str) -> Result<T, &'static str> {
    let number = text.parse().ok().filter(|number| *number >= T::from(1));
    number.ok_or("a whole number from 1 up is allowed")
}

/// The variable that asks for a page or a completion instead of what the program does.
pub const VARIABLE: &str = "VRT_PRINT";

/// What can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Man,
    Completion(Shell),
}

impl Asked {
    const ALL: [(&'static str, Asked); 4] = [
        ("man", Asked::Man),
        ("bash", Asked::Completion(Shell::Bash)),
        ("zsh", Asked::Completion(Shell::Zsh)),
        ("fish", Asked::Completion(Shell::Fish)),
    ];

    fn read(text: &str) -> Option<Asked> {
        Asked::ALL.iter().find(|(name, _)| *name == text).map(|(_, asked)| *asked)
    }
}

/// Prints the page or the completion that the environment asks for, and ends the process then.
///
/// To be called first in `main`, with the program's command line.
pub fn print_if_asked(command: impl FnOnce() -> Command) {
    let Some(text) = std::env::var_os(VARIABLE).filter(|text| !text.is_empty()) else { return };
    let Some(asked) = text.to_str().and_then(Asked::read) else {
        let allowed = Asked::ALL.map(|(name, _)| name).join(", ");
        eprintln!("{VARIABLE}={}: {allowed} are allowed", text.display());
        std::process::exit(2);
    };
    let name = std::env::args_os().next().unwrap_or_default();
    let name = Path::new(&name).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let written = print(asked, &name, command(), &mut io::stdout().lock());
    std::process::exit(i32::from(written.is_err()));
}

/// Writes what is asked for; `name` is the program's file.
fn print(asked: Asked, name: &str, command: Command, to: &mut dyn Write) -> io::Result<()> {
    match asked {
        Asked::Completion(shell) => {
            let mut command = command.bin_name(name.to_owned());
            clap_complete::generate(shell, &mut command, name, to);
            Ok(())
        }
        Asked::Man => {
            let title = name.to_uppercase();
            let page =
                clap_mangen::Man::new(command.name(name.to_owned()).bin_name(name.to_owned()));
            page.title(title).manual("vrt").render(to)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command() -> Command {
        Command::new("sample run")
            .about("Shows what is asked for")
            .arg(clap::Arg::new("ranks").long("ranks").help("Virtual ranks"))
    }

    fn printed(asked: Asked) -> String {
        let mut text = Vec::new();
        print(asked, "sample-run", command(), &mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn a_page_and_completions_name_the_file_and_its_options() {
        let page = printed(Asked::Man);
        assert!(page.contains(".TH SAMPLE-RUN 1"), "{page}");
        assert!(page.contains("Shows what is asked for") && page.contains("\\-\\-ranks"), "{page}");
        for (name, asked) in Asked::ALL.into_iter().skip(1) {
            let text = printed(asked);
            assert!(text.contains("sample-run") && text.contains("ranks"), "{name}: {text}");
        }
    }

    #[test]
    fn counts_begin_at_one() {
        assert_eq!(positive::<u32>("4294967295"), Ok(u32::MAX));
        for wrong in ["0", "-1", "1.0", "", "4294967296"] {
            assert!(positive::<u32>(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn names_are_what_can_be_asked_for() {
        assert_eq!(Asked::read("man"), Some(Asked::Man));
        assert_eq!(Asked::read("Man"), None);
    }
}
