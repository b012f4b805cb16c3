//! Commands: where programs are, and how their arguments are shown.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Where a program is: as it is, or where `PATH` says.
pub(super) fn find_program(name: &Path) -> Option<PathBuf> {
    if name.components().count() > 1 {
        return name.exists().then(|| name.to_owned());
    }
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|directory| directory.join(name)).find(|path| path.is_file())
}

/// Arguments in a line, in quotation marks where a blank or another letter needs them. The marks
/// begin behind the option, as build systems expect it: `-I"/a b"`.
pub(super) fn shown(arguments: &[OsString]) -> String {
    let quoted = arguments.iter().map(|argument| {
        let argument = argument.to_string_lossy();
        let plain = |c: char| c.is_alphanumeric() || "-_=+.,:/@%".contains(c);
        if !argument.is_empty() && argument.chars().all(plain) {
            return argument.into_owned();
        }
        let options = ["-I", "-L", "-Wl,"];
        let option = options.into_iter().find(|option| argument.starts_with(option));
        let (option, value) = argument.split_at(option.map_or(0, str::len));
        let mut quoted = format!("{option}\"");
        for c in value.chars() {
            if matches!(c, '"' | '\\' | '$' | '`') {
                quoted.push('\\');
            }
            quoted.push(c);
        }
        quoted.push('"');
        quoted
    });
    quoted.collect::<Vec<_>>().join(" ")
}
