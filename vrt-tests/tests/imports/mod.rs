//! Which files of a crate import which: whatever names an item of another file is an import of the file that defines
//! it, also by way of a re-export. A file that only passes names on (`pub use`) imports nothing by that.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// A crate, as its files.
#[derive(Debug, Default)]
pub(crate) struct Crate {
    /// By path of the module: what its file says.
    modules: BTreeMap<Vec<String>, Module>,
}

/// A module that is a file of its own.
#[derive(Debug, Default)]
struct Module {
    /// From the folder of the sources.
    file: String,
    /// What it imports: the name it has here, the path, and whether others get it from here.
    uses: Vec<Use>,
    /// The paths of several names in its code, outside of `use`.
    paths: BTreeSet<Vec<String>>,
    /// All names in its code, outside of `use`.
    names: BTreeSet<String>,
}

#[derive(Clone, Debug)]
struct Use {
    name: String,
    path: Vec<String>,
    is_public: bool,
}

/// Whether `#[cfg(test)] mod name { .. }` begins here.
fn is_unit_tests(tokens: &[TokenTree]) -> bool {
    matches!(tokens, [TokenTree::Punct(hash), TokenTree::Group(attribute), TokenTree::Ident(what), ..]
        if hash.as_char() == '#' && what == "mod"
            && attribute.stream().to_string().replace(' ', "") == "cfg(test)")
}

fn ident(token: Option<&TokenTree>) -> Option<String> {
    match token {
        Some(TokenTree::Ident(ident)) => Some(ident.to_string()),
        _ => None,
    }
}

fn is_punct(token: Option<&TokenTree>, what: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == what)
}

/// The names of a path that begins here, and how many tokens it has.
fn path_at(tokens: &[TokenTree]) -> (Vec<String>, usize) {
    let (mut path, mut at) = (Vec::new(), 0);
    while let Some(name) = ident(tokens.get(at)) {
        path.push(name);
        at += 1;
        if !(is_punct(tokens.get(at), ':') && is_punct(tokens.get(at + 1), ':')) {
            break;
        }
        at += 2;
    }
    (path, at)
}

/// The leaves of a tree of imports: name and path of each.
fn leaves(tree: TokenStream, before: &[String], all: &mut Vec<(String, Vec<String>)>) {
    let tokens: Vec<TokenTree> = tree.into_iter().collect();
    for part in tokens.split(|token| is_punct(Some(token), ',')).filter(|part| !part.is_empty()) {
        let from = part.iter().position(|token| ident(Some(token)).is_some());
        let (names, len) = from.map_or((Vec::new(), 0), |from| {
            let (names, len) = path_at(&part[from..]);
            (names, from + len)
        });
        let mut path = [before, &names].concat();
        match part.get(len) {
            Some(TokenTree::Group(group)) => leaves(group.stream(), &path, all),
            Some(token) if is_punct(Some(token), '*') => all.push(("*".to_owned(), path)),
            rest => {
                if path.last().is_some_and(|last| last == "self") {
                    path.pop();
                }
                let renamed = ident(rest).filter(|word| word == "as");
                let name = renamed.and_then(|_| ident(part.get(len + 1)));
                let last = path.last().cloned().unwrap_or_default();
                all.push((name.unwrap_or(last), path));
            }
        }
    }
}

impl Module {
    fn read(&mut self, code: TokenStream, children: &mut Vec<(String, Option<String>)>) {
        let tokens: Vec<TokenTree> = code.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            if is_unit_tests(&tokens[at..]) {
                at += 5;
                continue;
            }
            match ident(tokens.get(at)).as_deref() {
                Some("use") => at = self.read_use(&tokens, at),
                Some("mod") if is_punct(tokens.get(at + 2), ';') => {
                    children.push((ident(tokens.get(at + 1)).unwrap(), file_of(&tokens[..at])));
                    at += 3;
                }
                Some(_) => {
                    let (path, len) = path_at(&tokens[at..]);
                    self.names.extend(path.first().cloned());
                    if path.len() > 1 {
                        self.paths.insert(path);
                    }
                    at += len;
                }
                None => {
                    if let TokenTree::Group(group) = &tokens[at] {
                        self.read(group.stream(), children);
                    }
                    at += 1;
                }
            }
        }
    }

    /// Reads an import; returns where it ends.
    fn read_use(&mut self, tokens: &[TokenTree], at: usize) -> usize {
        let end = (at..tokens.len()).find(|end| is_punct(tokens.get(*end), ';'));
        let Some(end) = end else { return at + 1 };
        // `pub`, or `pub(crate)`.
        let is_public = ident(tokens.get(at.wrapping_sub(1))).as_deref() == Some("pub")
            || ident(tokens.get(at.wrapping_sub(2))).as_deref() == Some("pub")
                && matches!(&tokens[at - 1], TokenTree::Group(of) if of.delimiter() == Delimiter::Parenthesis);
        let mut found = Vec::new();
        leaves(tokens[at + 1..end].iter().cloned().collect(), &[], &mut found);
        self.uses.extend(found.into_iter().map(|(name, path)| Use { name, path, is_public }));
        end + 1
    }
}

/// The file that an attribute before `mod` names.
fn file_of(before: &[TokenTree]) -> Option<String> {
    let attribute = before.iter().rev().take(5).find_map(|token| match token {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket => Some(group.stream()),
        _ => None,
    })?;
    let attribute = attribute.to_string();
    let file = attribute.strip_prefix("path")?.trim_start().strip_prefix('=')?.trim();
    Some(file.trim_matches('"').to_owned())
}

impl Crate {
    /// The crate whose sources are in a folder.
    pub(crate) fn read(source: &Path) -> Crate {
        let mut all = Crate::default();
        let root = ["lib.rs", "main.rs"].map(|root| source.join(root));
        let root = root.iter().find(|root| root.exists()).unwrap();
        all.read_file(source, root, source, Vec::new());
        all
    }

    /// Reads a module, whose children are in `folder`.
    fn read_file(&mut self, source: &Path, file: &Path, folder: &Path, path: Vec<String>) {
        let code =
            std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{file:?}: {error}"));
        let mut module = Module {
            file: file.strip_prefix(source).unwrap().to_str().unwrap().to_owned(),
            ..Module::default()
        };
        let mut children = Vec::new();
        module.read(code.parse().unwrap(), &mut children);
        self.modules.insert(path.clone(), module);
        for (name, named) in children {
            let beside: PathBuf = folder.join(format!("{name}.rs"));
            let inside = folder.join(&name).join("mod.rs");
            let file = match named {
                Some(named) => file.parent().unwrap().join(named),
                None if beside.exists() => beside,
                None => inside,
            };
            // (What is in braces is part of this file.)
            if file.exists() {
                let folder = folder.join(&name);
                self.read_file(source, &file, &folder, [&path[..], &[name]].concat());
            }
        }
    }

    /// A path from the crate's root, as seen in a module; `None`: it leads to another crate.
    fn absolute(&self, from: &[String], path: &[String]) -> Option<Vec<String>> {
        let mut base = from.to_vec();
        let mut rest = path;
        match rest.first()?.as_str() {
            "crate" => (base, rest) = (Vec::new(), &rest[1..]),
            "self" => rest = &rest[1..],
            "super" => {
                while rest.first().is_some_and(|name| name == "super") {
                    base.pop();
                    rest = &rest[1..];
                }
            }
            first => {
                let child = [from, &[first.to_owned()]].concat();
                if !self.modules.contains_key(&child) {
                    let import =
                        self.modules[from].uses.iter().find(|import| import.name == first)?;
                    // A name that is imported as itself is a crate's.
                    if import.path == [first] {
                        return None;
                    }
                    let begin = self.absolute(from, &import.path)?;
                    return Some([&begin[..], &rest[1..]].concat());
                }
            }
        }
        Some([&base[..], rest].concat())
    }

    /// The module whose file defines what a path from the root leads to; `None` if that is a module, or not of this
    /// crate.
    fn defined_in(&self, path: &[String], depth: usize) -> Option<Vec<String>> {
        if depth == 0 || self.modules.contains_key(path) {
            return None;
        }
        let inside = (0..path.len()).rev().find(|len| self.modules.contains_key(&path[..*len]))?;
        let (module, rest) = path.split_at(inside);
        let uses = &self.modules[module].uses;
        // (Children also get names that are imported for the module itself.)
        if let Some(import) = uses.iter().find(|import| import.name == rest[0]) {
            let begin = self.absolute(module, &import.path)?;
            let further = [&begin[..], &rest[1..]].concat();
            if further != path {
                return self.defined_in(&further, depth - 1);
            }
        }
        for glob in uses.iter().filter(|import| import.name == "*" && import.is_public) {
            if let Some(begin) = self.absolute(module, &glob.path) {
                let further = [&begin[..], rest].concat();
                let names = self.modules.get(&begin);
                if names.is_some_and(|module| module.uses.iter().any(|of| of.name == rest[0])) {
                    return self.defined_in(&further, depth - 1);
                }
            }
        }
        Some(module.to_vec())
    }

    /// For each file, those that it imports.
    pub(crate) fn imports(&self) -> BTreeMap<&str, BTreeSet<&str>> {
        let mut all = BTreeMap::new();
        for (path, module) in &self.modules {
            let imported = module.uses.iter().filter(|import| {
                // What is only passed on is not used.
                !import.is_public || module.names.contains(&import.name)
            });
            let named = imported.map(|import| &import.path).chain(&module.paths);
            let files = named.filter_map(|named| {
                let defined = self.defined_in(&self.absolute(path, named)?, 16)?;
                (defined != *path).then(|| self.modules[&defined].file.as_str())
            });
            all.insert(module.file.as_str(), files.collect());
        }
        all
    }
}

/// The circles of a graph: the largest sets of several nodes each of which leads to all others.
pub(crate) fn circles<'a>(
    imports: &BTreeMap<&'a str, BTreeSet<&'a str>>,
) -> Vec<BTreeSet<&'a str>> {
    let reached: BTreeMap<&str, BTreeSet<&str>> = imports
        .keys()
        .map(|from| {
            let (mut seen, mut next) = (BTreeSet::new(), vec![*from]);
            while let Some(node) = next.pop() {
                next.extend(imports[node].iter().filter(|to| seen.insert(**to)));
            }
            (*from, seen)
        })
        .collect();
    let with = |node: &&'a str| -> BTreeSet<&'a str> {
        let back = reached[node].iter().filter(|other| reached[**other].contains(node));
        back.copied().collect()
    };
    let all: BTreeSet<BTreeSet<&str>> = imports.keys().map(with).collect();
    all.into_iter().filter(|circle| circle.len() > 1).collect()
}
