//! The source of the stub library: its fixed part is `stub.c`, and a line for each function.

use std::fmt::Write;

use crate::table::Table;

/// With one of these a program begins: it is started again under `vrtrun`.
const FIRST: [&str; 4] = ["MPI_Init", "MPI_Init_thread", "MPI_Session_init", "MPI_T_init_thread"];

/// The whole source.
pub fn text(table: &Table) -> String {
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
        let _ = writeln!(text, "{line};");
    }
    text
}
