//! Imports between the modules of `vrt` go one way: down the table of layers in docs/ARCHITECTURE.md.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

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

/// The layer of each module, from below, as the table between two marks in the document says.
fn layers(document: &str) -> HashMap<String, usize> {
    let table = document.split("<!-- layers -->").nth(1).unwrap();
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

#[test]
fn imports_go_down() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let layers = layers(&std::fs::read_to_string(top.join("docs/ARCHITECTURE.md")).unwrap());
    let source = top.join("vrt/src");
    let (mut files, mut wrong, mut seen) = (Vec::new(), Vec::new(), BTreeSet::new());
    rust_files(&source, &mut files);
    for file in &files {
        let name = file.strip_prefix(&source).unwrap();
        let module = Path::new(name.iter().next().unwrap()).file_stem().unwrap();
        let module = module.to_str().unwrap();
        if matches!(module, "lib" | "bin") {
            continue;
        }
        seen.insert(module.to_owned());
        let Some(layer) = layers.get(module) else {
            wrong.push(format!("{}: `{module}` is in no layer", name.display()));
            continue;
        };
        for other in named_in(&std::fs::read_to_string(file).unwrap()) {
            if let Some(of) = layers.get(&other)
                && other != module
                && of >= layer
            {
                wrong.push(format!(
                    "{}: `{module}` imports `{other}`, which is not below it",
                    name.display()
                ));
            }
        }
    }
    let gone: Vec<_> = layers.keys().filter(|module| !seen.contains(*module)).collect();
    assert!(gone.is_empty(), "docs/ARCHITECTURE.md names modules that are not there: {gone:?}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen.len() > 20, "{seen:?}");
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
