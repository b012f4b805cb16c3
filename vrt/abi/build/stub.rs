//! The source of the stub library: its fixed part is `stub.c`, and a line for each function.

use std::fmt::Write;

use crate::Error;
use crate::table::{Function, Table};

/// With one of these a program begins: it is started again under `vrtrun`.
const FIRST: [&str; 4] = ["MPI_Init", "MPI_Init_thread", "MPI_Session_init", "MPI_T_init_thread"];

/// The functions that the runtime does not have, with their forms for large counts. A program that needs one is
/// not linked, so that those who configure it notice.
pub(crate) struct Missing<'a>(Vec<&'a str>);

impl<'a> Missing<'a> {
    /// Those of a text with a name in each line.
    pub(crate) fn of(table: &'a Table, text: &str) -> Result<Missing<'a>, Error> {
        let known = |name: &str| table.functions().any(|function| function.name == name);
        if let Some(name) = text.lines().find(|name| !known(name)) {
            return Err(Error::entry("missing.txt", format!("names {name}, which is no function")));
        }
        let base = |function: &'a Function| {
            if function.is_large() { function.name.trim_end_matches("_c") } else { &function.name }
        };
        let names =
            table.functions().filter(|function| text.lines().any(|it| it == base(function)));
        Ok(Missing(names.map(|function| function.name.as_str()).collect()))
    }

    pub(crate) fn names(&self) -> &[&'a str] {
        &self.0
    }
}

/// The whole source. What is missing is in it where `VRT_ALL` is defined.
pub(crate) fn text(table: &Table, missing: &Missing) -> String {
    let mut text = include_str!("stub.c").to_owned();
    let version = |name| {
        let known = table.versions.iter().find(|(known, _)| known == name);
        known.map_or(0, |(_, value)| *value)
    };
    for function in table.functions() {
        let name = function.name.as_str();
        // What a program may ask before it begins has an answer.
        let line = match name {
            "MPI_Initialized" | "MPI_Finalized" => format!("NUMBER({name}, 0)"),
            "MPI_Get_version" => {
                let (first, second) = (version("MPI_VERSION"), version("MPI_SUBVERSION"));
                format!("NUMBERS({name}, {first}, {second})")
            }
            "MPI_Abi_get_version" => {
                let (first, second) = (version("MPI_ABI_VERSION"), version("MPI_ABI_SUBVERSION"));
                format!("NUMBERS({name}, {first}, {second})")
            }
            "MPI_Get_library_version" => {
                let version = env!("CARGO_PKG_VERSION");
                format!("TEXT({name}, \"vrt {version}, not yet started by vrtrun\")")
            }
            _ if FIRST.contains(&name) => format!("FIRST({name})"),
            _ => format!("FUNCTION({name})"),
        };
        let _ = match missing.names().contains(&name) {
            true => writeln!(text, "#ifdef VRT_ALL\n{line};\n#endif"),
            false => writeln!(text, "{line};"),
        };
    }
    text
}
