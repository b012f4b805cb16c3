//! README.md and the book say what is so: links lead somewhere, every page is in the table of contents, and every
//! command runs as it is written, or says why a test does not run it. The documentation of the Rust API has an example of
//! every item.
//!
//! | in a page | means |
//! |---|---|
//! | a block `sh` | commands, which run in the order of the page, in a folder of the page's own |
//! | `<!-- not run: reason -->` before it | a test does not run it, for this reason |
//! | `<!-- long -->` before it | it runs where `VRT_TEST_ALL` is set: without optimisation it takes too long |
//! | a block `c file=NAME` (or another language) | a file of that folder |
//!
//! Every such folder has the files of the page Start, and `hello`, which that page compiles.
//!
//! The programs are those of the target folder that this test lies in, or of the folder that `VRT_BOOK_PROGRAMS` names.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use rayon::prelude::*;

/// The top folder of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
}

/// What a test looks at in a page.
#[derive(Default)]
struct Page {
    /// The names of its headings, as links have them.
    anchors: BTreeSet<String>,
    links: Vec<String>,
    blocks: Vec<Block>,
}

struct Block {
    /// What stands behind the fence: the language, and `file=NAME`.
    info: String,
    text: String,
    /// Why it is not run.
    not_run: Option<String>,
    /// Whether it is run by `scripts/test --all` only.
    is_long: bool,
}

impl Page {
    fn read(path: &Path) -> Page {
        let text = fs::read_to_string(path).unwrap();
        let mut page = Page::default();
        let mut heading: Option<String> = None;
        let mut block: Option<Block> = None;
        let mut not_run = None;
        let mut is_long = false;
        for event in Parser::new_ext(&text, Options::ENABLE_TABLES) {
            match event {
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => {
                    page.anchors.insert(anchor(&heading.take().unwrap_or_default()));
                }
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    page.links.push(dest_url.into_string());
                }
                Event::Html(html) | Event::InlineHtml(html) => {
                    is_long |= html.trim() == "<!-- long -->";
                    let reason = html.trim().strip_prefix("<!-- not run: ");
                    not_run =
                        reason.map(|it| it.trim_end_matches("-->").trim().to_owned()).or(not_run);
                }
                Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) => {
                    let not_run = not_run.take();
                    let (info, text) = (info.into_string(), String::new());
                    block = Some(Block { info, text, not_run, is_long });
                    is_long = false;
                }
                Event::End(TagEnd::CodeBlock) => page.blocks.extend(block.take()),
                Event::Text(text) if block.is_some() => {
                    block.as_mut().unwrap().text.push_str(&text);
                }
                Event::Text(text) | Event::Code(text) => {
                    if let Some(heading) = &mut heading {
                        heading.push_str(&text);
                    }
                }
                _ => {}
            }
        }
        page
    }

    /// The commands that run, each block with the number of its place.
    fn commands(&self) -> impl Iterator<Item = &Block> {
        self.blocks.iter().filter(|block| block.info == "sh" && block.not_run.is_none())
    }
}

/// The name by which a link finds a heading.
fn anchor(heading: &str) -> String {
    let lower = heading.to_lowercase();
    let kept = lower.chars().filter_map(|it| match it {
        ' ' => Some('-'),
        '-' | '_' => Some(it),
        _ => it.is_alphanumeric().then_some(it),
    });
    kept.collect()
}

/// README.md, CONTRIBUTING.md, CHANGELOG.md and all pages of the book.
fn pages() -> BTreeMap<PathBuf, Page> {
    let root = root();
    let mut paths: Vec<PathBuf> = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"]
        .iter()
        .map(|name| root.join(name))
        .collect();
    let book = fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    paths.extend(book.filter(|path| path.extension().is_some_and(|it| it == "md")));
    paths.into_iter().map(|path| (path.clone(), Page::read(&path))).collect()
}

#[test]
fn no_link_is_broken() {
    let pages = pages();
    let mut broken = Vec::new();
    for (path, page) in &pages {
        for link in page.links.iter().filter(|link| !link.contains("://")) {
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => path.clone(),
                _ => path.parent().unwrap().join(file),
            };
            let Ok(target) = target.canonicalize() else {
                broken.push(format!("{}: {link}: there is no such file", path.display()));
                continue;
            };
            let is_page = target.extension().is_some_and(|it| it == "md");
            if path.starts_with(root().join("docs")) && !target.starts_with(root().join("docs")) {
                broken.push(format!("{}: {link} leads out of the book", path.display()));
            }
            if !heading.is_empty() && is_page && !pages[&target].anchors.contains(heading) {
                broken.push(format!("{}: {link}: there is no such heading", path.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn every_page_is_in_the_table_of_contents() {
    let docs = root().join("docs");
    let listed: BTreeSet<PathBuf> =
        Page::read(&docs.join("SUMMARY.md")).links.iter().map(|link| docs.join(link)).collect();
    let there: BTreeSet<PathBuf> =
        pages().into_keys().filter(|path| path.starts_with(&docs)).collect();
    let there =
        there.into_iter().filter(|path| !path.ends_with("SUMMARY.md")).collect::<BTreeSet<_>>();
    assert_eq!(listed, there, "docs/SUMMARY.md, and the pages in docs");
}

#[test]
fn every_command_runs_as_it_is_written() {
    let programs = std::env::current_exe().unwrap();
    let programs = match std::env::var_os("VRT_BOOK_PROGRAMS") {
        Some(folder) => PathBuf::from(folder).canonicalize().unwrap(),
        None => programs.parent().and_then(Path::parent).unwrap().to_path_buf(),
    };
    let mut path = vec![programs.clone()];
    path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap()));
    let path = std::env::join_paths(path).unwrap();
    let all = std::env::var_os("VRT_TEST_ALL").is_some();
    let only = std::env::var("VRT_BOOK_PAGE").ok();
    let start = Page::read(&root().join("docs/start.md"));
    let pages: Vec<_> = pages()
        .into_iter()
        .map(|(path, page)| (path.file_name().unwrap().to_string_lossy().into_owned(), page))
        .filter(|(name, page)| {
            only.as_ref().is_none_or(|only| only == name) && page.commands().next().is_some()
        })
        .collect();
    // Each page has a folder of its own.
    let (ran, wrong): (Vec<usize>, Vec<Option<String>>) = pages
        .par_iter()
        .map(|(name, page)| {
            let folder = tempfile::tempdir().unwrap();
            for block in start.blocks.iter().chain(&page.blocks) {
                if let Some((_, file)) = block.info.split_once(" file=") {
                    fs::write(folder.path().join(file), &block.text).unwrap();
                }
            }
            let compiled = Command::new(programs.join("vrtcc"))
                .args(["hello.c", "-o", "hello"])
                .current_dir(folder.path())
                .status()
                .unwrap();
            assert!(compiled.success(), "hello.c of docs/start.md");
            let mut ran = 0;
            let wrong = page.commands().filter(|block| all || !block.is_long).find_map(|block| {
                ran += 1;
                run(name, block, &path, folder.path()).err()
            });
            (ran, wrong)
        })
        .unzip();
    let wrong: Vec<String> = wrong.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(ran.iter().sum::<usize>() > 0, "no command has run");
}

/// Runs the commands of a block of this page in this folder.
///
/// # Errors
///
/// What it printed, if it failed.
fn run(page: &str, block: &Block, path: &OsStr, folder: &Path) -> Result<(), String> {
    let mut job = Command::new("timeout");
    job.args(["--kill-after=5", "120", "bash", "-eu", "-c", &block.text]);
    let inherited = std::env::vars_os().map(|(variable, _)| variable);
    for variable in inherited.filter(|it| it.to_string_lossy().starts_with("VRT_")) {
        job.env_remove(variable);
    }
    let begin = Instant::now();
    let job = job.env("PATH", path).current_dir(folder).stdin(Stdio::null());
    let output = job.output().unwrap();
    println!("{page}: {:.1} s\n{}", begin.elapsed().as_secs_f64(), block.text);
    if output.status.success() {
        return Ok(());
    }
    let [printed, errors] =
        [output.stdout, output.stderr].map(|it| String::from_utf8_lossy(&it).into_owned());
    Err(format!("{page}: {}\n{}\n{printed}{errors}", output.status, block.text))
}

#[test]
fn every_command_that_is_not_run_says_why() {
    for (page, content) in pages() {
        for block in &content.blocks {
            if let Some(reason) = &block.not_run {
                assert!(reason.len() > 10, "{}: {reason:?}", page.display());
                println!("{}: {reason}\n{}", page.display(), block.text);
            }
        }
    }
}

/// The words that CONTRIBUTING.md has in code font as not to be written.
fn unwanted_words() -> Vec<String> {
    let text = fs::read_to_string(root().join("CONTRIBUTING.md")).unwrap();
    let table = text.split("| write | not |").nth(1).unwrap();
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let cells = rows.filter_map(|row| row.split('|').nth(2));
    cells.flat_map(|cell| cell.split('`').skip(1).step_by(2).map(str::to_owned)).collect()
}

/// The pages, and the doc comments of every crate, with the number of the line in its file.
fn texts() -> Vec<(PathBuf, Vec<(usize, String)>)> {
    let numbered = |text: &str| -> Vec<(usize, String)> {
        text.lines().enumerate().map(|(at, line)| (at + 1, line.to_owned())).collect()
    };
    let mut texts: Vec<_> = pages()
        .into_keys()
        .filter(|path| !path.ends_with("CONTRIBUTING.md"))
        .map(|path| (path.clone(), numbered(&fs::read_to_string(&path).unwrap())))
        .collect();
    let mut folders: Vec<PathBuf> = fs::read_dir(root())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| !path.ends_with("target") && !path.ends_with(".git"))
        .collect();
    while let Some(path) = folders.pop() {
        if path.is_dir() {
            folders.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.extension().is_some_and(|it| it == "rs") {
            let mut lines = numbered(&fs::read_to_string(&path).unwrap());
            lines.retain(|(_, line)| {
                line.trim_start().starts_with("///") || line.trim_start().starts_with("//!")
            });
            texts.push((path, lines));
        }
    }
    texts
}

#[test]
fn the_words_of_the_field_are_used() {
    let unwanted = unwanted_words();
    assert!(unwanted.len() > 5, "the word list of CONTRIBUTING.md");
    let mut found = Vec::new();
    for (path, lines) in texts() {
        for (at, line) in lines {
            let lower = line.to_lowercase();
            found.extend(
                unwanted
                    .iter()
                    .filter(|word| lower.contains(word.as_str()))
                    .map(|word| format!("{}:{at}: {word}: {}", path.display(), line.trim())),
            );
        }
    }
    assert!(found.is_empty(), "{}\n{} in all", found.join("\n"), found.len());
}

/// The public items of a file with documentation, each with it, and the number of its line; not those in modules of the
/// crate's own.
fn documented(text: &str) -> Vec<(usize, &str, String)> {
    const ITEMS: [&str; 8] = [
        "pub fn ",
        "pub const fn ",
        "pub async fn ",
        "pub unsafe fn ",
        "pub struct ",
        "pub enum ",
        "pub trait ",
        "pub type ",
    ];
    let mut items = Vec::new();
    let (mut comment, mut is_hidden, mut in_trait, mut is_own) =
        (String::new(), false, false, false);
    for (at, line) in text.lines().enumerate() {
        let trimmed = line.trim_start();
        if trimmed.starts_with("#[cfg(test)]") {
            break;
        }
        if let Some(text) = trimmed.strip_prefix("///") {
            comment += &format!("{text}\n");
            continue;
        }
        if trimmed.starts_with("#[") {
            is_hidden |= trimmed.contains("doc(hidden)");
            continue;
        }
        is_own =
            line != "}" && (is_own || line.starts_with("pub(crate) mod ") && line.ends_with('{'));
        in_trait = match line {
            "}" => false,
            _ => in_trait || line.starts_with("pub trait "),
        };
        let of_trait =
            in_trait && ["fn ", "async fn ", "unsafe fn "].iter().any(|it| trimmed.starts_with(it));
        let is_item = of_trait || ITEMS.iter().any(|item| trimmed.starts_with(item));
        if is_item && !is_own && !is_hidden && !comment.is_empty() {
            items.push((at + 1, trimmed, std::mem::take(&mut comment)));
        }
        comment.clear();
        is_hidden = false;
    }
    items
}

#[test]
fn every_item_of_the_rust_api_has_an_example() {
    let mut folders = vec![root().join("vrt/src")];
    let (mut without, mut items) = (Vec::new(), 0);
    // Modules of the crate's own.
    let own = [root().join("vrt/src/collective/reduce_op.rs")];
    while let Some(path) = folders.pop() {
        if path.is_dir() {
            folders.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            continue;
        }
        if own.contains(&path) {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        for (line, item, comment) in documented(&text) {
            items += 1;
            if !comment.contains("```") && !comment.contains("Example: [") {
                without.push(format!("{}:{line}: {item}", path.display()));
            }
        }
    }
    assert!(items > 300, "{items}");
    let what = "an example, or a link to one (`Example: [Type]`)";
    assert!(
        without.is_empty(),
        "{} of {items} lack {what}:\n{}",
        without.len(),
        without.join("\n")
    );
}
