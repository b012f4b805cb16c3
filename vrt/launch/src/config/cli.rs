//! The options as flags of a command line: the table in `clap`'s terms.

use std::ffi::{OsStr, OsString};

use clap::builder::{
    OsStringValueParser, PossibleValue, PossibleValuesParser, TypedValueParser, ValueParser,
};
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Command, FromArgMatches, Id};

use crate::config::entry::{Entry, Shape};
use crate::config::table::OPTIONS;
use crate::config::{Config, ConfigError};

/// The heading of all options in help.
const HEADING: &str = "Virtual ranks";
/// The group of all options.
const GROUP: &str = "Config";

impl Config {
    /// The configuration that flags describe, and the environment where no flag is given.
    ///
    /// # Errors
    /// A flag is unknown, or a flag or variable has an invalid value.
    pub fn from_arguments(
        arguments: impl IntoIterator<Item = OsString>,
    ) -> Result<Config, ConfigError> {
        let alone = Command::new("vrt").no_binary_name(true);
        <Config as clap::Args>::augment_args(alone)
            .try_get_matches_from(arguments)
            .and_then(|matches| Config::from_arg_matches(&matches))
            .map_err(|error| ConfigError::Option(what_is_wrong(&error.to_string())))
    }
}

impl clap::Args for Config {
    fn augment_args(command: Command) -> Command {
        command
            .next_help_heading(HEADING)
            .group(
                ArgGroup::new(GROUP).multiple(true).args(OPTIONS.iter().map(|option| option.field)),
            )
            .args(OPTIONS.iter().map(Entry::<Config>::arg))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Config::augment_args(command)
    }

    fn group_id() -> Option<Id> {
        Some(Id::from(GROUP))
    }
}

impl FromArgMatches for Config {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Config, clap::Error> {
        let mut config = Config::default();
        config.update_from_arg_matches(matches)?;
        Ok(config)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for option in OPTIONS {
            let said = matches!(
                matches.value_source(option.field),
                Some(ValueSource::CommandLine | ValueSource::EnvVariable)
            );
            if said && let Some(values) = matches.get_raw(option.field) {
                let values: Vec<&OsStr> = values.collect();
                (option.read)(self, &values.join(OsStr::new(",")))
                    .map_err(|error| clap::Error::raw(ErrorKind::ValueValidation, error))?;
            }
        }
        Ok(())
    }
}

/// Flags that may be given without a value, and their value then.
const ALONE: [(&str, &str); 1] = [("lb", "auto")];

impl Entry<Config> {
    fn arg(&self) -> Arg {
        let variable = std::env::var_os(self.variable);
        // A variable that is set to nothing is unset.
        let is_empty = variable.is_some_and(|value| value.is_empty());
        let arg = Arg::new(self.field)
            .long(self.name())
            .env((!is_empty).then_some(self.variable))
            .hide_env_values(true)
            .help(self.help)
            .value_parser(self.parser());
        let arg = match self.value_name() {
            Some(name) => arg.value_name(name),
            None => arg,
        };
        let alone = ALONE.iter().find(|(name, _)| *name == self.name());
        let arg = match alone {
            Some((_, meaning)) => arg.num_args(0..=1).default_missing_value(*meaning),
            None => arg,
        };
        match self.shape {
            Shape::Switch => arg.action(ArgAction::SetTrue),
            Shape::One => arg.action(ArgAction::Set),
            Shape::Many => arg.action(ArgAction::Append).value_delimiter(','),
        }
    }

    /// Checks values at the point where `clap` can name the flag.
    fn parser(&self) -> ValueParser {
        if !self.choices.is_empty() {
            let names =
                self.choices.iter().map(|choice| PossibleValue::new(choice.name).help(choice.help));
            return PossibleValuesParser::new(names).into();
        }
        let read = self.read;
        OsStringValueParser::new()
            .try_map(move |text| read(&mut Config::default(), &text).map(|()| text))
            .into()
    }
}

/// What is wrong and what may have been meant, without the usage that `clap` prints after it.
fn what_is_wrong(text: &str) -> String {
    let mut parts = text.trim_start_matches("error: ").split("\n\n");
    let first = parts.next().unwrap_or_default().trim_end();
    let tips = parts.filter(|part| part.starts_with("  tip: a similar"));
    tips.fold(first.to_owned(), |all, tip| all + "\n" + tip.lines().next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Args;

    fn command() -> Command {
        Config::augment_args(Command::new("test"))
    }

    fn parse(arguments: &[&str]) -> Result<Config, ConfigError> {
        Config::from_arguments(arguments.iter().map(OsString::from))
    }

    /// A valid and an invalid value of an option.
    fn values(option: &Entry<Config>) -> (&'static str, Option<&'static str>) {
        match (option.shape, option.value_name()) {
            (Shape::Switch, _) => ("on", Some("maybe")),
            (_, Some("N")) => ("3", Some("two")),
            (_, Some("SIZE")) => ("64K", Some("8X")),
            (_, Some("TIME")) => ("5ms", Some("5")),
            _ if !option.choices.is_empty() => (option.choices[0].name, Some("by-foot")),
            _ => ("a=1", None),
        }
    }

    #[test]
    fn a_command_is_whole() {
        command().debug_assert();
    }

    #[test]
    fn flags_and_variables_say_the_same() {
        for option in OPTIONS {
            let (right, wrong) = values(option);
            let by_variable = |text: &str| {
                Config::default()
                    .overridden_by(|name| (name == option.variable).then(|| OsString::from(text)))
            };
            let flag = format!("--{}", option.name());
            let by_flag = |text| match option.shape {
                Shape::Switch => parse(&[&flag]),
                _ => parse(&[&flag, text]),
            };
            assert_eq!(by_flag(right).unwrap(), by_variable(right).unwrap(), "{flag}");
            if let (Some(wrong), Shape::One | Shape::Many) = (wrong, option.shape) {
                let texts = [by_flag(wrong), by_variable(wrong)]
                    .map(|refused| refused.unwrap_err().to_string());
                assert_eq!(texts[0], texts[1], "{flag}");
            }
        }
    }

    #[test]
    fn balancing_is_automatic_where_nobody_says_how() {
        let lb = |arguments: &[&str]| parse(arguments).unwrap().lb;
        assert_eq!(lb(&["--lb", "--ranks", "3"]).as_deref(), Some("auto"));
        assert_eq!(lb(&["--lb", "greedy"]).as_deref(), Some("greedy"));
        assert_eq!(lb(&["--ranks", "3"]), None);
    }

    #[test]
    fn wrong_values_are_named() {
        for (arguments, parts) in [
            (["--ranks", "0"], ["'0'", "--ranks"]),
            (["--pes", "two"], ["'two'", "--pes"]),
            (["--stack", "8X"], ["'8X'", "K, M, G or T"]),
            (["--rank", "3"], ["'--rank'", "'--ranks'"]),
            (["--move", "stat"], ["'stat'", "  tip: a similar value exists: 'state'"]),
        ] {
            let text = parse(&arguments).unwrap_err().to_string();
            assert!(parts.iter().all(|part| text.contains(part)), "{text}");
        }
    }

    #[test]
    fn parameters_may_be_repeated_or_written_as_one() {
        let config = parse(&["--lb-arg", "a=1,b=2", "--lb-arg", "c=3"]).unwrap();
        assert_eq!(config, parse(&["--lb-arg=a=1,b=2,c=3"]).unwrap());
        assert_eq!(config.lb_arg, ["a=1", "b=2", "c=3"]);
    }

    #[test]
    fn a_program_that_flattens_options_keeps_its_own_description() {
        assert_eq!(command().get_about(), None);
        assert_eq!(command().get_long_about(), None);
        let described = Config::augment_args(Command::new("test").about("mine"));
        assert_eq!(described.get_about().unwrap().to_string(), "mine");
    }
}
