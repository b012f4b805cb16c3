//! The values of options: how each kind is written, on a command line or in a variable.
//!
//! A module whose options have their own kind of value defines its syntax here, with [`choices!`](crate::choices!) if
//! the values are names; `config` combines the options of all modules.

mod choices;

use std::ffi::OsStr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

/// A value of an option.
pub trait Value: Sized {
    /// All values, if they have names.
    const CHOICES: &'static [Choice] = &[];

    /// Parses a value.
    fn read(text: &OsStr) -> Result<Self, ValueError>;

    /// The value's text.
    fn write(&self) -> String;
}

/// A name that is a value of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Its spelling for users.
    pub name: &'static str,
    /// Its meaning.
    pub help: &'static str,
}

/// A text that is not a value of its option; the error tells what would be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// It is not a whole number of at least 1.
    #[error("a whole number from 1 up is allowed")]
    Count,
    /// It is not a number of bytes.
    #[error("a number of bytes is allowed, with K, M, G or T behind it if you like")]
    Size,
    /// It is not a number with a unit of time.
    #[error("a number with us, ms or s behind it is allowed, such as 500ms")]
    Time,
    /// It is a time that is too short or too long.
    #[error("1us to 1000000s are allowed")]
    TimeOutOfRange,
    /// It is neither `off` nor a time, for the reason inside.
    #[error("`off` is allowed, or a time: {0}")]
    Watch(Box<ValueError>),
    /// It is not a word for on or off.
    #[error("true, yes, on or 1 is allowed, or false, no, off or 0")]
    Switch,
    /// It is not UTF-8.
    #[error("text in UTF-8 is allowed")]
    Text,
    /// It is empty instead of the name of a file.
    #[error("the name of a file is allowed")]
    File,
    /// It is none of these names.
    #[error("[possible values: {}]", .0.iter().map(|choice| choice.name).collect::<Vec<_>>().join(", "))]
    Choice(&'static [Choice]),
}

/// An invalid configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The command line or an environment variable is wrong; the text names it.
    #[error("{0}")]
    Option(String),
    /// A number is out of range.
    #[error("{option} {value} is out of range: 1 to {max} are allowed")]
    Range {
        /// The option.
        option: &'static str,
        /// Its value.
        value: u32,
        /// The largest one allowed.
        max: u32,
    },
}

impl Value for NonZeroU32 {
    fn read(text: &OsStr) -> Result<NonZeroU32, ValueError> {
        text.to_str().and_then(|text| text.parse().ok()).ok_or(ValueError::Count)
    }

    fn write(&self) -> String {
        self.to_string()
    }
}

/// A size in bytes; the suffixes K, M, G and T are powers of 1024.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(pub usize);

impl Value for Size {
    fn read(text: &OsStr) -> Result<Size, ValueError> {
        let upper = text.to_str().ok_or(ValueError::Size)?.trim().to_ascii_uppercase();
        let digits = upper.trim_end_matches(|c: char| !c.is_ascii_digit());
        let shift = match &upper[digits.len()..] {
            "" | "B" => 0,
            "K" | "KB" | "KIB" => 10,
            "M" | "MB" | "MIB" => 20,
            "G" | "GB" | "GIB" => 30,
            "T" | "TB" | "TIB" => 40,
            _ => return Err(ValueError::Size),
        };
        let number: usize = digits.parse().map_err(|_| ValueError::Size)?;
        number.checked_mul(1 << shift).map(Size).ok_or(ValueError::Size)
    }

    fn write(&self) -> String {
        self.0.to_string()
    }
}

/// A time with its unit: us, ms or s.
impl Value for Duration {
    fn read(text: &OsStr) -> Result<Duration, ValueError> {
        let text = text.to_str().ok_or(ValueError::Time)?.trim();
        let end = text.find(|c: char| c.is_ascii_alphabetic()).ok_or(ValueError::Time)?;
        let number: f64 = text[..end].trim().parse().map_err(|_| ValueError::Time)?;
        let unit = match &text[end..] {
            "us" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            _ => return Err(ValueError::Time),
        };
        let seconds = number * unit;
        if !(1e-6..=1e6).contains(&seconds) {
            return Err(ValueError::TimeOutOfRange);
        }
        Ok(Duration::from_secs_f64(seconds))
    }

    fn write(&self) -> String {
        format!("{}us", self.as_micros())
    }
}

/// A time, or `off`: never.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watch(pub Option<Duration>);

impl Value for Watch {
    fn read(text: &OsStr) -> Result<Watch, ValueError> {
        if text.to_str().is_some_and(|text| text.trim() == "off") {
            return Ok(Watch(None));
        }
        let period = Duration::read(text).map_err(|error| ValueError::Watch(Box::new(error)))?;
        Ok(Watch(Some(period)))
    }

    fn write(&self) -> String {
        self.0.map_or_else(|| "off".to_owned(), |period| period.write())
    }
}

/// The value of a switch in a variable.
impl Value for bool {
    fn read(text: &OsStr) -> Result<bool, ValueError> {
        match text.to_str().map(str::to_lowercase).as_deref() {
            Some("true" | "yes" | "on" | "1" | "t" | "y") => Ok(true),
            Some("false" | "no" | "off" | "0" | "f" | "n") => Ok(false),
            _ => Err(ValueError::Switch),
        }
    }

    fn write(&self) -> String {
        self.to_string()
    }
}

impl Value for String {
    fn read(text: &OsStr) -> Result<String, ValueError> {
        text.to_str().map(str::to_owned).ok_or(ValueError::Text)
    }

    fn write(&self) -> String {
        self.clone()
    }
}

impl Value for PathBuf {
    fn read(text: &OsStr) -> Result<PathBuf, ValueError> {
        if text.is_empty() { Err(ValueError::File) } else { Ok(PathBuf::from(text)) }
    }

    fn write(&self) -> String {
        self.display().to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<T: Value>(text: &str) -> Result<T, ValueError> {
        T::read(text.as_ref())
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(read("64"), Ok(Size(64)));
        assert_eq!(read(" 64KiB "), Ok(Size(64 << 10)));
        assert_eq!(read("3t"), Ok(Size(3 << 40)));
        for wrong in ["", "K", "8X", "1.5M", "-1", "99999999T"] {
            let error = read::<Size>(wrong).unwrap_err().to_string();
            assert!(error.contains("K, M, G or T"), "{wrong}");
        }
    }

    #[test]
    fn times_have_units() {
        assert_eq!(read("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(read("1.5 s"), Ok(Duration::from_millis(1500)));
        for wrong in ["", "5", "ms", "5m", "1e9s", "0us", "-1s"] {
            assert!(read::<Duration>(wrong).is_err(), "{wrong}");
        }
        assert_eq!(read("off"), Ok(Watch(None)));
        let wrong = read::<Watch>("of").unwrap_err().to_string();
        assert!(wrong.contains("`off`") && wrong.contains("500ms"), "{wrong}");
    }

    #[test]
    fn switches_are_said_in_several_words() {
        for (text, value) in [("1", true), ("YES", true), ("on", true), ("off", false)] {
            assert_eq!(read(text), Ok(value));
        }
        assert_eq!(read::<bool>("maybe"), Err(ValueError::Switch));
    }

    #[test]
    fn what_is_written_is_read_as_the_same() {
        fn returns<T: Value + PartialEq + std::fmt::Debug>(value: T) {
            assert_eq!(T::read(value.write().as_ref()), Ok(value));
        }
        returns(NonZeroU32::MIN);
        returns(Size(3 << 40));
        returns(Duration::from_micros(1500));
        returns(Watch(None));
        returns(Watch(Some(Duration::from_secs(2))));
        returns(true);
        returns("median:n=5".to_owned());
        returns(PathBuf::from("a file"));
    }
}
