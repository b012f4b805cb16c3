//! Values that are names: enums, each defined once with the names and what they mean.

/// A name that an option's value may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) name: &'static str,
    /// What it means.
    #[cfg_attr(not(feature = "cli"), allow(dead_code, reason = "help is for command lines"))]
    pub(crate) help: &'static str,
}

#[cfg(feature = "cli")]
impl Choice {
    /// The same for a command line.
    pub(crate) fn possible_value(&self) -> clap::builder::PossibleValue {
        clap::builder::PossibleValue::new(self.name).help(self.help)
    }
}

/// Defines an enum whose variants are values of an option. The documentation of a variant is its help.
///
/// `Variant = "name"` is what it is called, `default Variant;` makes one the default.
macro_rules! choices {
    (
        $(#[$attribute:meta])*
        pub enum $Enum:ident {
            $( $(#[doc = $help:literal])+ $Variant:ident = $name:literal, )+
        }
        $(default $Default:ident;)?
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $Enum {
            $( $(#[doc = $help])+ $Variant, )+
        }

        impl $crate::options::Value for $Enum {
            const CHOICES: &'static [$crate::options::Choice] = &[
                $( $crate::options::Choice {
                    name: $name,
                    // Each line begins with a space.
                    help: concat!($($help),+).trim_ascii(),
                }, )+
            ];

            fn read(text: &std::ffi::OsStr) -> Result<$Enum, $crate::options::ValueError> {
                match text.to_str() {
                    $( Some($name) => Ok($Enum::$Variant), )+
                    _ => Err($crate::options::ValueError::Choice(Self::CHOICES)),
                }
            }

            fn write(&self) -> String {
                match self {
                    $( $Enum::$Variant => $name.to_owned(), )+
                }
            }
        }

        $(
            impl Default for $Enum {
                fn default() -> $Enum {
                    $Enum::$Default
                }
            }
        )?

        #[cfg(feature = "cli")]
        impl clap::ValueEnum for $Enum {
            fn value_variants<'a>() -> &'a [$Enum] {
                &[$( $Enum::$Variant ),+]
            }

            fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
                let name = $crate::options::Value::write(self);
                let choices = <$Enum as $crate::options::Value>::CHOICES;
                Some(choices.iter().find(|choice| choice.name == name)?.possible_value())
            }
        }
    };
}
pub(crate) use choices;

#[cfg(test)]
mod tests {
    use crate::options::{Value, ValueError};

    choices! {
        /// A value in two ways.
        pub enum Way {
            /// As it is,
            /// untouched
            Plain = "plain",
            /// In a box
            InBox = "in-box",
        }
        default InBox;
    }

    #[test]
    fn a_name_stands_for_its_variant() {
        assert_eq!(Way::read("plain".as_ref()), Ok(Way::Plain));
        assert_eq!((Way::InBox.write().as_str(), Way::default()), ("in-box", Way::InBox));
        assert_eq!(Way::CHOICES[0].help, "As it is, untouched");
        let error = Way::read("Plain".as_ref()).unwrap_err();
        assert_eq!(error, ValueError::Choice(Way::CHOICES));
        assert_eq!(error.to_string(), "[possible values: plain, in-box]");
    }

    #[cfg(feature = "cli")]
    #[test]
    fn a_command_line_offers_the_names() {
        let offered: Vec<_> = <Way as clap::ValueEnum>::value_variants()
            .iter()
            .filter_map(clap::ValueEnum::to_possible_value)
            .map(|value| value.get_name().to_owned())
            .collect();
        assert_eq!(offered, ["plain", "in-box"]);
    }
}
