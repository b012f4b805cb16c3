//! Defines an option: an entry of the table, from which everything else about the option is made.
#![cfg_attr(not(feature = "cli"), allow(dead_code, reason = "help is for command lines"))]

use std::ffi::{OsStr, OsString};

use vrt_core::options::{Choice, ConfigError, Value, ValueError};

/// An option: a field of a configuration, and how it is written.
pub(super) struct Entry<C> {
    /// The name of the field.
    pub(super) field: &'static str,
    /// The flag, followed by its value's name unless it is a switch.
    pub(super) usage: &'static str,
    /// The environment variable.
    pub(super) variable: &'static str,
    pub(super) help: &'static str,
    pub(super) shape: Shape,
    /// The valid values, if they have names.
    pub(super) choices: &'static [Choice],
    /// Sets the field to the value of this text.
    pub(super) read: fn(&mut C, &OsStr) -> Result<(), ValueError>,
    /// The text of the field's value; `None`: the option was not given.
    pub(super) write: fn(&C) -> Option<String>,
}

/// How often an option may be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// It takes no value.
    Switch,
    One,
    /// Several values may also be given as one, separated by commas.
    Many,
}

/// A field of a configuration.
pub(super) trait Field: Sized {
    const SHAPE: Shape;
    const CHOICES: &'static [Choice];

    fn read(text: &OsStr) -> Result<Self, ValueError>;

    fn write(&self) -> Option<String>;
}

impl<T: Value> Field for Option<T> {
    const SHAPE: Shape = Shape::One;
    const CHOICES: &'static [Choice] = T::CHOICES;

    fn read(text: &OsStr) -> Result<Option<T>, ValueError> {
        T::read(text).map(Some)
    }

    fn write(&self) -> Option<String> {
        self.as_ref().map(T::write)
    }
}

impl Field for bool {
    const SHAPE: Shape = Shape::Switch;
    const CHOICES: &'static [Choice] = &[];

    fn read(text: &OsStr) -> Result<bool, ValueError> {
        Value::read(text)
    }

    fn write(&self) -> Option<String> {
        self.then(|| Value::write(self))
    }
}

impl Field for Vec<String> {
    const SHAPE: Shape = Shape::Many;
    const CHOICES: &'static [Choice] = &[];

    fn read(text: &OsStr) -> Result<Vec<String>, ValueError> {
        Ok(String::read(text)?.split(',').map(str::to_owned).collect())
    }

    fn write(&self) -> Option<String> {
        (!self.is_empty()).then(|| self.join(","))
    }
}

impl<C> Entry<C> {
    /// The flag without its dashes.
    pub(super) fn name(&self) -> &'static str {
        let flag = self.usage.split_once(' ').map_or(self.usage, |(flag, _)| flag);
        flag.trim_start_matches('-')
    }

    /// The name of its value.
    pub(super) fn value_name(&self) -> Option<&'static str> {
        Some(self.usage.split_once(' ')?.1)
    }

    /// Sets the field to the value of its variable. An empty variable counts as unset.
    pub(super) fn read_variable(
        &self,
        config: &mut C,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<(), ConfigError> {
        match variable(self.variable) {
            Some(text) if !text.is_empty() => {
                (self.read)(config, &text).map_err(|error| self.refuse(&text, &error))
            }
            _ => Ok(()),
        }
    }

    /// Words the error as a command line's parser does, whether the value came from a flag or from
    /// a variable.
    fn refuse(&self, text: &OsStr, error: &ValueError) -> ConfigError {
        let usage = match self.value_name() {
            Some(value) => format!("--{} <{value}>", self.name()),
            None => self.usage.to_owned(),
        };
        let between = if matches!(error, ValueError::Choice(_)) { "\n  " } else { ": " };
        let names = self.choices.iter().map(|choice| choice.name);
        let meant = text.to_str().and_then(|text| lb_strategies::similar(text, names));
        let tip = meant.map(|name| format!("\n  tip: a similar value exists: '{name}'"));
        let (text, tip) = (text.display(), tip.unwrap_or_default());
        ConfigError::Option(format!("invalid value '{text}' for '{usage}'{between}{error}{tip}"))
    }
}

/// Defines a configuration and the table of its options. Each option is described by its field:
///
/// ```text
/// field: Type {
///     "--flag VALUE" or "--switch", "VRT_VARIABLE";
///     "What it is for [default: what is so without it]";
///     /// Documentation of the method that sets it.
///     with_field(argument: Argument) = what the field is set to, or
///     with_field(argument: Argument) += what is added to it
/// }
/// ```
macro_rules! config_options {
    (
        $(#[$attribute:meta])*
        pub struct Config {
            $( $field:ident: $Type:ty {
                $usage:literal, $variable:literal;
                $help:literal;
                $(#[doc = $doc:literal])+
                $method:ident($argument:ident: $Argument:ty) $operator:tt $value:expr
            } )+
        }
    ) => {
        $(#[$attribute])*
        pub struct Config {
            $( pub(crate) $field: $Type, )+
        }

        impl Config {
            $(
                $(#[doc = $doc])+
                #[doc = concat!("\n\nThe same as the flag `", $usage, "` or the variable `", $variable, "`.")]
                #[must_use]
                pub fn $method(mut self, $argument: $Argument) -> Config {
                    config_options!(@set self.$field, $operator, $value);
                    self
                }
            )+
        }

        /// All options, in the order in which help shows them.
        pub(super) const OPTIONS: &[Entry<Config>] = &[
            $( Entry {
                field: stringify!($field),
                usage: $usage,
                variable: $variable,
                help: $help,
                shape: <$Type as Field>::SHAPE,
                choices: <$Type as Field>::CHOICES,
                read: |config, text| {
                    config.$field = Field::read(text)?;
                    Ok(())
                },
                write: |config| Field::write(&config.$field),
            }, )+
        ];
    };
    (@set $place:expr, =, $value:expr) => { $place = $value };
    (@set $place:expr, +=, $value:expr) => { $place.push($value) };
}
pub(super) use config_options;
