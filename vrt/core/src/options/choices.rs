//! Values that are names: enums, each defined once with the names and their meanings.

/// Defines an enum whose variants are values of an option. The documentation of a variant is its help.
///
/// `Variant = "name"` gives its name, `default Variant;` makes one the default.
#[macro_export]
macro_rules! choices {
    (
        $(#[$attribute:meta])*
        $visibility:vis enum $Enum:ident {
            $( $(#[doc = $help:literal])+ $Variant:ident = $name:literal, )+
        }
        $(default $Default:ident;)?
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $visibility enum $Enum {
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

        impl std::str::FromStr for $Enum {
            type Err = $crate::options::ValueError;

            fn from_str(text: &str) -> Result<$Enum, Self::Err> {
                $crate::options::Value::read(text.as_ref())
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use crate::options::{Value, ValueError};

    crate::choices! {
        /// A value in two ways.
        enum Way {
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
        assert_eq!("in-box".parse(), Ok(Way::InBox));
        assert_eq!((Way::InBox.write().as_str(), Way::default()), ("in-box", Way::InBox));
        assert_eq!(Way::CHOICES[0].help, "As it is, untouched");
        let error = Way::read("Plain".as_ref()).unwrap_err();
        assert_eq!(error, ValueError::Choice(Way::CHOICES));
        assert_eq!(error.to_string(), "[possible values: plain, in-box]");
    }
}
