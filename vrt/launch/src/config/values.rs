//! What the values of options are written like.

use std::num::NonZeroU32;
use std::path::Path;
use std::time::Duration;

use clap::ValueEnum;
use clap::builder::BoolishValueParser;
use lb_strategies::predict::Forecast;

use vrt_core::migrate::MoveBy;

use crate::config::ConfigError;
use vrt_core::exchange::LogGp;

/// The name of a choice on the command line.
pub(super) fn name_of(choice: &impl ValueEnum) -> Option<String> {
    Some(choice.to_possible_value()?.get_name().to_owned())
}

const MOVES: [(&str, MoveBy); 3] =
    [("memory", MoveBy::Memory), ("state", MoveBy::State), ("in-place", MoveBy::InPlace)];

/// Parses how ranks move.
pub(super) fn move_by(text: &str) -> Result<MoveBy, String> {
    let found = MOVES.iter().find(|(name, _)| *name == text);
    found.map(|(_, how)| *how).ok_or_else(|| "memory, state or in-place is allowed".to_owned())
}

/// How ranks move, as it is written.
pub(super) fn name_of_move(how: MoveBy) -> String {
    MOVES.iter().find(|(_, known)| *known == how).map_or("memory", |(name, _)| name).to_owned()
}

/// The environment variable of an option, unless it is set to nothing: that means unset.
pub(super) fn variable(name: &'static str) -> Option<&'static str> {
    std::env::var_os(name).is_none_or(|value| !value.is_empty()).then_some(name)
}

pub(super) fn count(text: &str) -> Result<NonZeroU32, String> {
    text.parse().map_err(|_| "a whole number from 1 up is allowed".to_owned())
}

/// An environment variable for a switch may say 1, yes, on or true.
pub(super) fn switch() -> BoolishValueParser {
    BoolishValueParser::new()
}

/// Parses a size in bytes with an optional suffix K, M, G or T (powers of 1024).
pub(super) fn size(text: &str) -> Result<usize, String> {
    let wrong =
        || "a number of bytes is allowed, with K, M, G or T behind it if you like".to_owned();
    let upper = text.trim().to_ascii_uppercase();
    let digits = upper.trim_end_matches(|c: char| !c.is_ascii_digit());
    let shift = match &upper[digits.len()..] {
        "" | "B" => 0,
        "K" | "KB" | "KIB" => 10,
        "M" | "MB" | "MIB" => 20,
        "G" | "GB" | "GIB" => 30,
        "T" | "TB" | "TIB" => 40,
        _ => return Err(wrong()),
    };
    let number: usize = digits.parse().map_err(|_| wrong())?;
    number.checked_mul(1 << shift).ok_or_else(wrong)
}

/// Parses a time with its unit: us, ms or s.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || "a number with us, ms or s behind it is allowed, such as 500ms".to_owned();
    let text = text.trim();
    let end = text.find(|c: char| c.is_ascii_alphabetic()).ok_or_else(wrong)?;
    let number: f64 = text[..end].trim().parse().map_err(|_| wrong())?;
    let unit = match &text[end..] {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        _ => return Err(wrong()),
    };
    let seconds = number * unit;
    if !(1e-6..=1e6).contains(&seconds) {
        return Err("1us to 1000000s are allowed".to_owned());
    }
    Ok(Duration::from_secs_f64(seconds))
}

/// How long a rank may keep its PE's thread from others before that is said; `None`: for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Watch(pub(super) Option<Duration>);

/// Parses a time with its unit, or `off`.
pub(super) fn watch(text: &str) -> Result<Watch, String> {
    match text.trim() {
        "off" => Ok(Watch(None)),
        text => match duration(text) {
            Ok(period) => Ok(Watch(Some(period))),
            Err(error) => Err(format!("`off` is allowed, or a time: {error}")),
        },
    }
}

/// Parses a predictor: its name, and arguments behind a colon.
pub(super) fn forecast(text: &str) -> Result<Forecast, ConfigError> {
    let (name, arguments) = text.split_once(':').unwrap_or((text, ""));
    let arguments: Vec<(&str, &str)> = arguments
        .split(',')
        .filter(|argument| !argument.is_empty())
        .map(|argument| argument.split_once('=').unwrap_or((argument, "")))
        .collect();
    lb_strategies::predict::create(name, &arguments)
        .map_err(|error| ConfigError::Option(format!("--lb-predict {text}: {error}")))
}

/// Refuses an option that names a file in JSON if this program cannot have such.
pub(super) fn expect_json(option: &str, file: &Path) -> Result<(), ConfigError> {
    if cfg!(feature = "json") {
        return Ok(());
    }
    Err(ConfigError::Option(format!(
        "{option} {}: this program was built without the feature `json` of `vrt`",
        file.display()
    )))
}

/// The parameters in a file that `sparse-mini loggp` has written.
pub(super) fn read_network(file: &Path) -> Result<LogGp, ConfigError> {
    expect_json("--loggp", file)?;
    let wrong = |error: &dyn std::error::Error| {
        ConfigError::Option(format!("--loggp: {}: {error}", file.display()))
    };
    let text = LogGp::read_text(file).map_err(|error| wrong(&error))?;
    let network = parse_network(&text).map_err(|error| wrong(&*error))?;
    network.check().map_err(|error| wrong(&error))
}

#[cfg(feature = "json")]
fn parse_network(text: &str) -> Result<LogGp, Box<dyn std::error::Error>> {
    /// What `sparse-mini loggp` writes, of which this is read.
    #[derive(serde::Deserialize)]
    struct MeasuredNetwork {
        parameters: LogGp,
    }
    let network: MeasuredNetwork = serde_json::from_str(text)?;
    Ok(network.parameters)
}

#[cfg(not(feature = "json"))]
fn parse_network(_: &str) -> Result<LogGp, Box<dyn std::error::Error>> {
    unreachable!("such files were refused")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(size("64"), Ok(64));
        assert_eq!(size(" 64KiB "), Ok(64 << 10));
        assert_eq!(size("3t"), Ok(3 << 40));
        for wrong in ["", "K", "8X", "1.5M", "-1", "99999999T"] {
            assert!(size(wrong).unwrap_err().contains("K, M, G or T"), "{wrong}");
        }
    }

    #[test]
    fn times_have_units() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("1.5 s"), Ok(Duration::from_millis(1500)));
        for wrong in ["", "5", "ms", "5m", "1e9s", "0us", "-1s"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
