//! Imports between the modules of a crate go one way: down the tables of layers in docs/ARCHITECTURE.md.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod imports;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use imports::{Crate, circles};
use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// The modules of `crate` that code names, outside of its unit tests.
fn named_modules(code: TokenStream, named: &mut BTreeSet<String>) {
    let tokens: Vec<TokenTree> = code.into_iter().collect();
    let ident = |at: usize| match tokens.get(at) {
        Some(TokenTree::Ident(ident)) => Some(ident.to_string()),
        _ => None,
    };
    let punct = |at: usize, what: char| matches!(tokens.get(at), Some(TokenTree::Punct(punct)) if punct.as_char() == what);
    let mut at = 0;
    while at < tokens.len() {
        if is_unit_tests(&tokens[at..]) {
            // `#`, `[cfg(test)]`, `mod`, its name, its body.
            at += 5;
            continue;
        }
        if ident(at).as_deref() == Some("crate") && punct(at + 1, ':') && punct(at + 2, ':') {
            match tokens.get(at + 3) {
                Some(TokenTree::Ident(module)) => {
                    named.insert(module.to_string());
                }
                Some(TokenTree::Group(group)) => first_of_each(group.stream(), named),
                _ => {}
            }
        }
        if let TokenTree::Group(group) = &tokens[at] {
            named_modules(group.stream(), named);
        }
        at += 1;
    }
}

/// Whether here begins `#[cfg(test)] mod name { .. }`.
fn is_unit_tests(tokens: &[TokenTree]) -> bool {
    let [TokenTree::Punct(hash), TokenTree::Group(attribute), TokenTree::Ident(what), ..] = tokens
    else {
        return false;
    };
    hash.as_char() == '#'
        && attribute.delimiter() == Delimiter::Bracket
        && attribute.stream().to_string().replace(' ', "") == "cfg(test)"
        && what == "mod"
}

/// The first name of each part of a list such as `a::b, c::{d, e}`.
fn first_of_each(list: TokenStream, named: &mut BTreeSet<String>) {
    let mut is_first = true;
    for token in list {
        match token {
            TokenTree::Ident(ident) if is_first => {
                named.insert(ident.to_string());
                is_first = false;
            }
            TokenTree::Punct(punct) if punct.as_char() == ',' => is_first = true,
            _ => {}
        }
    }
}

fn named_in(code: &str) -> BTreeSet<String> {
    let mut named = BTreeSet::new();
    named_modules(code.parse().unwrap(), &mut named);
    named
}

/// The layer of each module of a crate, from below, as the table between two marks in the document says.
fn layers(document: &str, name: &str) -> HashMap<String, usize> {
    let table = document.split(&format!("<!-- layers of {name} -->")).nth(1).unwrap_or_default();
    let rows = table.lines().filter(|line| line.starts_with("| `"));
    let modules = |row: &str| -> Vec<String> {
        let cell = row.split('|').nth(1).unwrap_or_default();
        cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    };
    rows.enumerate()
        .flat_map(|(layer, row)| modules(row).into_iter().map(move |module| (module, layer)))
        .collect()
}

fn rust_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// The crates of the runtime: a name, and the folder of its source.
const CRATES: [(&str, &str); 14] = [
    ("vrt-shm", "vrt/shm/src"),
    ("vrt-load", "vrt/load/src"),
    ("vrt-slot", "vrt/slot/src"),
    ("vrt-core", "vrt/core/src"),
    ("vrt-balance", "vrt/balance/src"),
    ("vrt-net-mpi", "vrt/net-mpi/src"),
    ("vrt-launch", "vrt/launch/src"),
    ("vrt", "vrt/src"),
    ("vrt-abi", "vrt/abi/src"),
    ("vrt-mpi", "vrt/mpi/src"),
    ("vrtrun", "vrt/run/src"),
    ("vrt-trace", "vrt/trace/src"),
    ("vrt-cli", "vrt/cli/src"),
    ("lb-strategies", "lb-strategies/src"),
];

fn top() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// The modules of a crate, and which others of it each imports.
fn imports(source: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let mut files = Vec::new();
    rust_files(source, &mut files);
    let mut imports: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in &files {
        let name = file.strip_prefix(source).unwrap();
        let module = Path::new(name.iter().next().unwrap()).file_stem().unwrap();
        let module = module.to_str().unwrap();
        if !matches!(module, "lib" | "bin") {
            let named = named_in(&std::fs::read_to_string(file).unwrap());
            imports.entry(module.to_owned()).or_default().extend(named);
        }
    }
    let modules: BTreeSet<String> = imports.keys().cloned().collect();
    for (module, named) in &mut imports {
        named.retain(|other| modules.contains(other) && other != module);
    }
    imports
}

/// All that a module imports, directly or not.
fn reached<'a>(
    from: &'a str,
    imports: &'a BTreeMap<String, BTreeSet<String>>,
    seen: &mut BTreeSet<&'a str>,
) {
    for other in &imports[from] {
        if seen.insert(other) {
            reached(other, imports, seen);
        }
    }
}

#[test]
fn imports_go_down() {
    let document = std::fs::read_to_string(top().join("docs/ARCHITECTURE.md")).unwrap();
    let mut wrong = Vec::new();
    for (name, folder) in CRATES {
        let layers = layers(&document, name);
        if layers.is_empty() {
            continue;
        }
        let imports = imports(&top().join(folder));
        for (module, others) in &imports {
            let Some(layer) = layers.get(module) else {
                wrong.push(format!("{name}: `{module}` is in no layer"));
                continue;
            };
            for other in
                others.iter().filter(|other| layers.get(*other).is_some_and(|of| of >= layer))
            {
                wrong.push(format!("{name}: `{module}` imports `{other}`, which is not below it"));
            }
        }
        let gone = layers.keys().filter(|module| !imports.contains_key(*module));
        wrong.extend(gone.map(|module| format!("{name}: there is no `{module}`")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let known =
        ["vrt-slot", "vrt-core", "vrt", "vrt-mpi"].map(|name| layers(&document, name).len());
    assert!(known.iter().all(|modules| *modules > 10), "{known:?}");
}

/// Folders in a circle: `auto` is one of the strategies by whose name it looks others up.
const FOLDERS: [(&str, &str); 1] = [("lb-strategies", "auto")];

#[test]
fn no_circle_goes_through_a_folder() {
    let mut wrong = Vec::new();
    for (name, folder) in CRATES {
        let source = top().join(folder);
        let imports = imports(&source);
        for module in imports.keys().filter(|module| source.join(module).is_dir()) {
            let mut seen = BTreeSet::new();
            reached(module, &imports, &mut seen);
            if seen.contains(module.as_str()) && !FOLDERS.contains(&(name, module)) {
                wrong.push(format!("{name}: `{module}` is in a circle of imports"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The circles of files that there are, each with its reason; those that are gone have to go from here, too.
const CIRCLES: &[(&str, &str, &[&str])] = &[
    (
        "vrt",
        "rsmpi's names: the trait gives a user-defined type for types that implement it",
        &["datatype.rs", "datatype/internal.rs", "datatype/user.rs"],
    ),
    (
        "vrt",
        "rsmpi's names: methods of the trait of all communicators make those of each kind",
        &[
            "topology.rs",
            "topology/cartesian.rs",
            "topology/communicator.rs",
            "topology/graph.rs",
            "topology/group.rs",
            "topology/inter.rs",
        ],
    ),
    (
        "lb-strategies",
        "two strategies choose others out of the list in which they are themselves",
        &[
            "auto/history.rs",
            "auto/interval.rs",
            "auto/mod.rs",
            "auto/predict.rs",
            "hierarchical.rs",
            "registry.rs",
        ],
    ),
    (
        "lb-strategies",
        "a strategy is called with its configuration, which knows the strategy's parameters",
        &["config.rs", "strategy.rs"],
    ),
    (
        "lb-strategies",
        "a file of loads is read into the model, whose errors name places of the file",
        &["datafile/model.rs", "datafile/read.rs"],
    ),
    (
        "lb-strategies",
        "rumours are spread by the rules of the strategy that hears them",
        &["gossip/mod.rs", "gossip/rumours.rs"],
    ),
];

#[test]
fn files_do_not_import_each_other() {
    let known: BTreeSet<(&str, BTreeSet<&str>)> =
        CIRCLES.iter().map(|(name, _, files)| (*name, files.iter().copied().collect())).collect();
    let mut wrong = Vec::new();
    let mut found = BTreeSet::new();
    for (name, folder) in CRATES {
        let all = Crate::read(&top().join(folder));
        let imports = all.imports();
        for circle in circles(&imports) {
            let is_known = known.contains(&(name, circle.clone()));
            found.insert((name, circle.iter().map(|file| (*file).to_owned()).collect::<Vec<_>>()));
            for file in circle.iter().filter(|_| !is_known) {
                let others: Vec<_> = imports[file].intersection(&circle).collect();
                wrong.push(format!("{name}: {file} imports {others:?}, and comes back from there"));
            }
        }
    }
    let gone = known.iter().filter(|(name, files)| {
        !found.contains(&(*name, files.iter().map(|file| (*file).to_owned()).collect::<Vec<_>>()))
    });
    wrong.extend(gone.map(|(name, files)| format!("{name}: this circle is gone: {files:?}")));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A circle by way of a re-export, and by a path in a macro, is found; a name that is only passed on is no import.
#[test]
fn circles_of_files_are_found() {
    let source = tempfile::tempdir().unwrap();
    let write = |file: &str, code: &str| {
        let path = source.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, code).unwrap();
    };
    write("lib.rs", "mod a; mod b; mod c; pub use a::deep::One; mod d;");
    write("a/mod.rs", "pub mod deep;");
    write("a/deep.rs", "pub struct One(Option<Box<crate::b::Two>>);");
    write("b.rs", "macro_rules! m { () => { $crate::One } } pub struct Two;");
    write("c.rs", "use super::d::Four; pub struct Three(Four);");
    write("d.rs", "pub struct Four; #[cfg(test)] mod tests { use crate::c::Three; }");
    let all = Crate::read(source.path());
    let imports = all.imports();
    assert_eq!(circles(&imports), [BTreeSet::from(["a/deep.rs", "b.rs"])]);
    assert_eq!(imports["c.rs"], BTreeSet::from(["d.rs"]));
    assert!(imports["lib.rs"].is_empty());
}

/// The types and traits that code defines, outside of unit tests and macros.
fn types_defined(code: TokenStream, defined: &mut Vec<String>) {
    let tokens: Vec<TokenTree> = code.into_iter().collect();
    let ident = |at: usize| match tokens.get(at) {
        Some(TokenTree::Ident(ident)) => ident.to_string(),
        _ => String::new(),
    };
    let mut at = 0;
    while at < tokens.len() {
        if is_unit_tests(&tokens[at..]) {
            at += 5;
            continue;
        }
        if ident(at) == "macro_rules" {
            // `!`, its name, its body.
            at += 4;
            continue;
        }
        if matches!(ident(at).as_str(), "struct" | "enum" | "trait" | "union") {
            defined.push(ident(at + 1));
        }
        if let TokenTree::Group(group) = &tokens[at]
            && group.delimiter() == Delimiter::Brace
        {
            types_defined(group.stream(), defined);
        }
        at += 1;
    }
}

/// One of them is compiled, as a feature says.
const EITHER: [(&str, &str); 6] = [
    ("vrt-balance", "Dump"),
    ("vrt-balance", "Learned"),
    ("vrt-balance", "LearnError"),
    ("vrt-launch", "Monitor"),
    ("vrt-launch", "SeenNode"),
    ("vrt-launch", "WaitingMonitor"),
];

#[test]
fn no_name_of_a_type_has_two_meanings_in_a_crate() {
    let mut wrong = Vec::new();
    for (name, folder) in CRATES {
        let (mut files, mut defined) = (Vec::new(), Vec::new());
        rust_files(&top().join(folder), &mut files);
        // (A program beside a library is a crate of its own.)
        for file in files.iter().filter(|file| file.iter().all(|folder| folder != "bin")) {
            types_defined(std::fs::read_to_string(file).unwrap().parse().unwrap(), &mut defined);
        }
        defined.sort();
        let twice = defined.chunk_by(|a, b| a == b).filter(|same| same.len() > 1);
        let twice = twice.map(|same| same[0].as_str());
        let twice = twice.filter(|of| !of.is_empty() && !EITHER.contains(&(name, of)));
        wrong.extend(twice.map(|of| format!("{name}: `{of}` is defined twice")));
        assert!(name == "vrtrun" || defined.len() > 3, "{name}: {defined:?}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn an_import_is_found_in_whatever_form() {
    let named = |code| Vec::from_iter(named_in(code));
    assert_eq!(named("use crate::pe::{self, Core};"), ["pe"]);
    assert_eq!(named("use crate::{Count, comm::{a, b}, net};"), ["Count", "comm", "net"]);
    assert_eq!(named("fn f() { g(|| crate::launch::end()); }"), ["launch"]);
    assert_eq!(named("macro_rules! m { () => { crate::operation::Site } }"), ["operation"]);
    assert!(named("// crate::pe\n/// [`crate::pe`]\nfn f() {}").is_empty());
    assert!(named("#[cfg(test)] mod tests { use crate::launch::run; }").is_empty());
    assert_eq!(named("#[cfg(test)] use crate::launch::run;"), ["launch"]);
}
