//! Finds libraries: the directories that the system's loader searches, in its order.
//!
//! These are `DT_RPATH` of the module that needs the library and of those that required it (unless
//! the module has a `DT_RUNPATH`), `LD_LIBRARY_PATH`, its `DT_RUNPATH`, `/etc/ld.so.cache`, and the
//! system's directories. Not supported are variants for newer processors (`glibc-hwcaps`) and
//! tokens other than `$ORIGIN`.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::LoadError;
use crate::elf::Elf;
use crate::file::MappedFile;
use crate::linkage::Linkage;
use crate::process;

/// Searched last, unless a module is linked with `-z nodefaultlib`.
const SYSTEM_FOLDERS: [&str; 6] = [
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
];

const CACHE: &str = "/etc/ld.so.cache";

/// The data of a search that are the same for all libraries.
pub(crate) struct Search {
    environment: Vec<PathBuf>,
    cache: Vec<u8>,
}

impl Search {
    /// Reads the environment and the cache. A system without a cache is searched without it.
    pub(crate) fn new() -> Search {
        let environment = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
        let folders = environment.as_bytes().split(|byte| matches!(byte, b':' | b';'));
        // An empty part stands for the current folder, but an empty variable for none.
        let environment = match environment.is_empty() {
            true => Vec::new(),
            false => folders.map(|folder| PathBuf::from(OsStr::from_bytes(folder))).collect(),
        };
        Search { environment, cache: std::fs::read(CACHE).unwrap_or_default() }
    }

    /// The file of a library that `needed_by` names; `chain` consists of that module and those that
    /// required it, up to the program.
    pub(crate) fn find(&self, library: &str, chain: &[&Linkage]) -> Result<MappedFile, LoadError> {
        let Some((needed_by, _)) = chain.split_first() else {
            return MappedFile::open(Path::new(library));
        };
        if library.contains('/') {
            return MappedFile::open(Path::new(library));
        }
        if process::must_be_its_own(library)
            && let Some(path) = process::file_of(library)
        {
            return MappedFile::open(&path);
        }
        let mut searched = Vec::new();
        if needed_by.run_path.is_empty() {
            for linkage in chain.iter().filter(|linkage| linkage.run_path.is_empty()) {
                searched.extend(linkage.expand(&linkage.old_run_path));
            }
        }
        searched.extend(self.environment.iter().cloned());
        searched.extend(needed_by.expand(&needed_by.run_path));
        for folder in &searched {
            if let Some(file) = open(&folder.join(library))? {
                return Ok(file);
            }
        }
        if !needed_by.without_system_folders {
            for path in cached(&self.cache, library) {
                if let Some(file) = open(&path)? {
                    return Ok(file);
                }
            }
            searched.push(PathBuf::from(CACHE));
            for folder in SYSTEM_FOLDERS.map(PathBuf::from) {
                if let Some(file) = open(&folder.join(library))? {
                    return Ok(file);
                }
                searched.push(folder);
            }
        }
        // A process that was started by a loader of its own has libraries in other folders.
        if let Some(path) = process::file_of(library)
            && let Some(file) = open(&path)?
        {
            return Ok(file);
        }
        Err(not_found(library, needed_by, searched))
    }
}

fn not_found(library: &str, needed_by: &Linkage, searched: Vec<PathBuf>) -> LoadError {
    let needed_by = needed_by.path.clone();
    LoadError::LibraryNotFound { library: library.to_string(), needed_by, searched }
}

/// Opens a library if it exists and is for this processor.
fn open(path: &Path) -> Result<Option<MappedFile>, LoadError> {
    let file = match MappedFile::open(path) {
        Ok(file) => file,
        Err(LoadError::Io { source, .. })
            if matches!(
                source.kind(),
                ErrorKind::NotFound | ErrorKind::PermissionDenied | ErrorKind::NotADirectory
            ) =>
        {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    match Elf::parse(&file) {
        Ok(_) => Ok(Some(file)),
        Err(LoadError::ThirtyTwoBit { .. } | LoadError::OtherMachine { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The files for a library in the cache of the system's loader.
///
/// The cache consists of a header of 48 bytes, entries of 24 bytes, and strings, whose offsets
/// count from the header. Systems before glibc 2.32 put an older table in front of it, with its own
/// magic word.
fn cached(cache: &[u8], library: &str) -> Vec<PathBuf> {
    const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
    const HEADER: usize = 48;
    const ENTRY: usize = 24;
    /// A glibc library for x86-64.
    const FLAGS: u32 = 0x0303;
    let Some(start) = cache.windows(MAGIC.len()).position(|window| window == MAGIC) else {
        return Vec::new();
    };
    let cache = &cache[start..];
    let word = |at: usize| {
        let bytes = cache.get(at..at + 4)?;
        Some(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    };
    let text = |at: u32| {
        let rest = cache.get(at as usize..)?;
        Some(&rest[..rest.iter().position(|byte| *byte == 0)?])
    };
    let entry = |number: usize| {
        let at = HEADER + number * ENTRY;
        let is_plain = word(at)? == FLAGS && word(at + 16)? == 0 && word(at + 20)? == 0;
        let is_it = is_plain && text(word(at + 4)?)? == library.as_bytes();
        is_it.then_some(PathBuf::from(OsStr::from_bytes(text(word(at + 8)?)?)))
    };
    let count = word(MAGIC.len()).unwrap_or(0) as usize;
    (0..count).filter_map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn linkage(path: &str) -> Linkage {
        Linkage { path: PathBuf::from(path), ..Linkage::default() }
    }

    #[test]
    fn a_run_path_is_relative_to_the_module() {
        let linkage = linkage("/opt/app/bin/program");
        let folders = linkage.expand(&["$ORIGIN/../lib:${ORIGIN}/plugins::/lib".to_string()]);
        let expected = ["/opt/app/bin/../lib", "/opt/app/bin/plugins", "/lib"];
        assert_eq!(folders, expected.map(PathBuf::from));
    }

    #[test]
    fn folders_are_searched_in_the_order_of_the_systems_loader() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| {
            let place = folder.path().join(name);
            std::fs::create_dir(&place).unwrap();
            std::fs::copy("/proc/self/exe", place.join("libx.so")).unwrap();
            place
        };
        let [old, environment, new, of_program] =
            ["old", "environment", "new", "of_program"].map(place);
        let text = |path: &PathBuf| vec![path.to_string_lossy().into_owned()];
        let search = Search { environment: vec![environment.clone()], cache: Vec::new() };
        let mut library = linkage("/lib/liby.so");
        let mut program = linkage("/bin/program");
        let find = |chain: &[&Linkage]| search.find("libx.so", chain).unwrap().path().to_path_buf();
        library.old_run_path = text(&old);
        program.old_run_path = text(&of_program);
        assert_eq!(find(&[&library, &program]), old.join("libx.so"));
        library.old_run_path.clear();
        assert_eq!(find(&[&library, &program]), of_program.join("libx.so"));
        // A new run path makes those before it void, and comes after the environment's.
        library.run_path = text(&new);
        assert_eq!(find(&[&library, &program]), environment.join("libx.so"));
        // What is for another processor does not count.
        std::fs::write(environment.join("libx.so"), b"\x7fELF\x01").unwrap();
        assert_eq!(find(&[&library, &program]), new.join("libx.so"));
        std::fs::write(environment.join("libx.so"), b"something else").unwrap();
        assert!(search.find("libx.so", &[&library]).is_err());
    }

    #[test]
    fn a_library_is_found_in_the_cache_behind_an_older_table() {
        let mut cache = b"ld.so-1.7.0\0\0\0\0\0something else ".to_vec();
        let mut table = b"glibc-ld.so.cache1.1".to_vec();
        let strings = 48 + 3 * 24;
        table.extend(3u32.to_le_bytes());
        table.resize(48, 0);
        // Of another kind, for newer processors only, and the one that fits.
        for (flags, name, path, hardware) in
            [(3u32, 0u32, 9u32, 0u64), (0x303, 0, 9, 1 << 62), (0x303, 0, 19, 0)]
        {
            for word in [flags, strings + name, strings + path, 0] {
                table.extend(word.to_le_bytes());
            }
            table.extend(hardware.to_le_bytes());
        }
        table.extend(b"libx.so.1\0/a/libx.so\0");
        table.extend(b"/b/libx.so\0");
        let path_at = |text: &[u8]| table.windows(text.len()).position(|part| part == text);
        let (first, second) = (path_at(b"/a/libx.so"), path_at(b"/b/libx.so"));
        let fix = |at: Option<usize>| (at.unwrap() as u32).to_le_bytes();
        let (first, second) = (fix(first), fix(second));
        table[48 + 8..48 + 12].copy_from_slice(&first);
        table[72 + 8..72 + 12].copy_from_slice(&first);
        table[96 + 8..96 + 12].copy_from_slice(&second);
        cache.extend(table);
        assert_eq!(cached(&cache, "libx.so.1"), [PathBuf::from("/b/libx.so")]);
        assert!(cached(&cache, "liby.so.1").is_empty());
        assert!(cached(&cache[..cache.len() - 4], "libx.so.1").is_empty());
        assert!(cached(b"", "libx.so.1").is_empty());
    }
}
