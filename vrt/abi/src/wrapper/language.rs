//! What a wrapper compiles.

use std::fmt;

/// What a wrapper compiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// C, by `vrtcc`.
    C,
    /// C++, by `vrtcxx`.
    Cxx,
}

impl Language {
    /// The wrapper's name.
    pub fn wrapper(self) -> &'static str {
        match self {
            Language::C => "vrtcc",
            Language::Cxx => "vrtcxx",
        }
    }

    /// The environment variable that names the compiler.
    pub fn variable(self) -> &'static str {
        match self {
            Language::C => "VRT_CC",
            Language::Cxx => "VRT_CXX",
        }
    }

    /// The compiler that is used if the variable is not set.
    pub fn compiler(self) -> &'static str {
        match self {
            Language::C => "cc",
            Language::Cxx => "c++",
        }
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Language::C => "C",
            Language::Cxx => "C++",
        })
    }
}
