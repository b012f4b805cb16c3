//! Resolves references to definitions.
//!
//! Definitions are searched in this order: the module itself if the symbol is not visible outside it, the program, its
//! private libraries in the order in which they were found except libc, the caller, a private libc, the process except
//! libraries that the caller refuses. Within a library versions decide, by the rules of the system's loader:
//!
//! | reference | definition that it gets |
//! |---|---|
//! | with a version | the one with this version; otherwise one without a version that is not hidden |
//! | without | one without a version or with the oldest one; otherwise the only one that is not hidden |
//!
//! Weak definitions count like others, and all modules use the first definition of a GNU_UNIQUE symbol: so there is one
//! for each image.

use std::os::unix::ffi::OsStrExt;

use object::elf;
use object::read::elf::Sym;
use rustc_hash::FxHashMap;

use crate::elf::{ENDIAN, Elf, Symbol, Version};
use crate::{LoadError, MissingSymbol, Options, process, thread_pointer};

/// A definition in a private module.
#[derive(Clone, Copy)]
pub(crate) struct Definition<'data> {
    pub module: usize,
    pub symbol: &'data Symbol,
}

/// What a reference is bound to.
#[derive(Clone, Copy)]
pub(crate) enum Bound<'data> {
    /// Something in the image.
    Private(Definition<'data>),
    /// An address that is the same for all images.
    Process(usize),
    /// A weak reference without a definition.
    Nothing,
}

/// Whether the program's own definition counts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// It does.
    Reference,
    /// It does not: the program wants a copy of another module's variable.
    Copy,
}

/// The definitions of all private modules.
pub(crate) struct Scope<'a, 'data> {
    modules: &'a [Elf<'data>],
    options: &'a Options<'a>,
    /// By module, whether it is a part of libc.
    is_libc: Vec<bool>,
    /// By name, the first candidate of a chain through `candidates`.
    first: FxHashMap<&'data [u8], u32>,
    /// In the order of modules; symbols with the same name are linked.
    candidates: Vec<Candidate>,
    /// The results for references, by module and symbol number.
    known: FxHashMap<(usize, usize), Bound<'data>>,
    missing: Vec<MissingSymbol>,
}

struct Candidate {
    module: u32,
    symbol: u32,
    next: u32,
}

const NO_CANDIDATE: u32 = u32::MAX;

impl<'a, 'data> Scope<'a, 'data> {
    pub(crate) fn new(
        modules: &'a [Elf<'data>],
        options: &'a Options<'a>,
    ) -> Result<Scope<'a, 'data>, LoadError> {
        let mut scope = Scope {
            modules,
            options,
            is_libc: modules.iter().map(is_libc).collect(),
            first: FxHashMap::default(),
            candidates: Vec::new(),
            known: FxHashMap::default(),
            missing: Vec::new(),
        };
        // From the end, so that each chain begins with the first module.
        for (number, module) in modules.iter().enumerate().rev() {
            for (index, symbol) in module.symbols().iter().enumerate().rev() {
                if !is_definition(symbol) {
                    continue;
                }
                let this = scope.candidates.len() as u32;
                let next = scope.first.insert(module.name(symbol)?, this).unwrap_or(NO_CANDIDATE);
                scope.candidates.push(Candidate {
                    module: number as u32,
                    symbol: index as u32,
                    next,
                });
            }
        }
        Ok(scope)
    }

    /// What a module's reference to the symbol with this number is bound to.
    pub(crate) fn bind(
        &mut self,
        module: usize,
        index: usize,
        kind: Use,
    ) -> Result<Bound<'data>, LoadError> {
        if kind == Use::Copy {
            return self.look_up(module, index, kind);
        }
        if let Some(bound) = self.known.get(&(module, index)) {
            return Ok(*bound);
        }
        let bound = self.look_up(module, index, kind)?;
        self.known.insert((module, index), bound);
        Ok(bound)
    }

    /// Fails if a symbol was not defined anywhere.
    pub(crate) fn finish(mut self) -> Result<(), LoadError> {
        if self.missing.is_empty() {
            return Ok(());
        }
        self.missing.sort();
        self.missing.dedup();
        Err(LoadError::MissingSymbols { symbols: self.missing })
    }

    fn look_up(
        &mut self,
        number: usize,
        index: usize,
        kind: Use,
    ) -> Result<Bound<'data>, LoadError> {
        let module = &self.modules[number];
        let symbol = module.symbol(index)?;
        let own = Definition { module: number, symbol };
        if index == 0 || (is_bound_locally(symbol) && kind == Use::Reference) {
            return Ok(Bound::Private(own));
        }
        let name = module.name(symbol)?;
        let version = module.version(index).name;
        if kind == Use::Reference && is_symbolic(module) && is_definition(symbol) {
            return Ok(Bound::Private(own));
        }
        let skipped = (kind == Use::Copy).then_some(number);
        let definition = self.definition(name, version, skipped);
        if let Some(definition) = definition.filter(|found| !self.is_libc[found.module]) {
            return Ok(Bound::Private(definition));
        }
        if let Some(address) = provided(self.options, name) {
            return Ok(Bound::Process(address));
        }
        if let Some(definition) = definition {
            return Ok(Bound::Private(definition));
        }
        if let Some(address) = process::symbol(name, version)
            && !is_refused(self.options, address)
        {
            return Ok(Bound::Process(address));
        }
        // Its own definition has a version that nobody may ask for.
        if is_definition(symbol) && kind == Use::Reference {
            return Ok(Bound::Private(own));
        }
        if symbol.st_bind() != elf::STB_WEAK {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            self.missing.push(MissingSymbol {
                name: text(name),
                version: version.map(text),
                needed_by: module.path().to_path_buf(),
            });
        }
        Ok(Bound::Nothing)
    }

    /// The first definition for a reference in the private modules.
    pub(crate) fn definition(
        &self,
        name: &[u8],
        version: Option<&[u8]>,
        skipped: Option<usize>,
    ) -> Option<Definition<'data>> {
        let mut next = self.first.get(name).copied();
        let mut fallback: Option<(Definition<'data>, usize)> = None;
        while let Some(candidate) = next.and_then(|at| self.candidates.get(at as usize)) {
            next = Some(candidate.next);
            let (number, index) = (candidate.module as usize, candidate.symbol as usize);
            if skipped == Some(number) {
                continue;
            }
            // A module is left: of what it had to offer, the only one fits.
            match fallback {
                Some((definition, 1)) if definition.module != number => return Some(definition),
                Some((definition, _)) if definition.module != number => fallback = None,
                _ => {}
            }
            let module = &self.modules[number];
            let definition = Definition { module: number, symbol: &module.symbols()[index] };
            match fit(version, module.version(index), module.is_versioned()) {
                Fit::Exact => return Some(definition),
                Fit::IfAlone => {
                    fallback = match fallback {
                        None => Some((definition, 1)),
                        Some((first, count)) => Some((first, count + 1)),
                    };
                }
                Fit::Not => {}
            }
        }
        fallback.filter(|(_, count)| *count == 1).map(|(definition, _)| definition)
    }
}

/// How well a definition fits a reference.
enum Fit {
    Exact,
    /// It fits if the module has no other one that does.
    IfAlone,
    Not,
}

/// The oldest version of a library.
const OLDEST: u16 = 2;

fn fit(wanted: Option<&[u8]>, offered: Version, is_versioned: bool) -> Fit {
    let fits = |fits| if fits { Fit::Exact } else { Fit::Not };
    match wanted {
        _ if !is_versioned => Fit::Exact,
        Some(_) if offered.name.is_some() => fits(offered.name == wanted),
        Some(_) => fits(!offered.is_hidden),
        None if offered.index <= OLDEST => Fit::Exact,
        None if offered.is_hidden => Fit::Not,
        None => Fit::IfAlone,
    }
}

/// Whether `symbol`, found by name for the caller, is the one that is meant without a version: the default one.
pub(crate) fn is_default(symbol: &Symbol, version: Version) -> bool {
    is_definition(symbol) && !version.is_hidden
}

/// Whether a symbol represents a position in the image.
pub(crate) fn is_in_image(symbol: &Symbol) -> bool {
    let has_place = symbol.st_shndx(ENDIAN) != elf::SHN_ABS && symbol.st_type() != elf::STT_TLS;
    is_definition(symbol) && has_place
}

/// Whether others can be bound to a symbol.
fn is_definition(symbol: &Symbol) -> bool {
    let kind = symbol.st_type();
    let has_place = symbol.st_value(ENDIAN) != 0
        || kind == elf::STT_TLS
        || symbol.st_shndx(ENDIAN) == elf::SHN_ABS;
    let is_kind = matches!(
        kind,
        elf::STT_NOTYPE
            | elf::STT_OBJECT
            | elf::STT_FUNC
            | elf::STT_COMMON
            | elf::STT_TLS
            | elf::STT_GNU_IFUNC
    );
    symbol.st_shndx(ENDIAN) != elf::SHN_UNDEF
        && has_place
        && is_kind
        && symbol.st_bind() != elf::STB_LOCAL
        && !matches!(symbol.st_visibility(), elf::STV_HIDDEN | elf::STV_INTERNAL)
}

/// Whether a reference refers to the module's own symbol, whichever others define the name.
fn is_bound_locally(symbol: &Symbol) -> bool {
    let is_local = symbol.st_bind() == elf::STB_LOCAL;
    let is_defined = symbol.st_shndx(ENDIAN) != elf::SHN_UNDEF;
    is_defined && (is_local || symbol.st_visibility() != elf::STV_DEFAULT)
}

/// Whether a module was linked with `-Bsymbolic`: its references refer to its own definitions.
fn is_symbolic(module: &Elf) -> bool {
    module.value(elf::DT_SYMBOLIC).is_some() || module.has_flag(elf::DF_SYMBOLIC)
}

/// Whether a module is libc, or one of the libraries that used to be parts of it.
fn is_libc(module: &Elf) -> bool {
    const PARTS: [&[u8]; 4] = [b"libc.so", b"libpthread.so", b"libdl.so", b"librt.so"];
    let name = module.path().file_name().map(OsStrExt::as_bytes).unwrap_or_default();
    PARTS.iter().any(|part| name.starts_with(part))
}

/// What the caller provides, and what relocations of thread-locals require.
fn provided(options: &Options, name: &[u8]) -> Option<usize> {
    let name = std::str::from_utf8(name).ok()?;
    (options.provided)(name).or_else(|| {
        (name == "__tls_get_addr").then_some(thread_pointer::tls_get_addr as *const () as usize)
    })
}

/// Whether an address of the process is in a library that images must not have: the process may have it for itself.
fn is_refused(options: &Options, address: usize) -> bool {
    process::library_at(address).is_some_and(|library| (options.refused)(&library).is_some())
}

/// Whether a library that the process is to share refers to a symbol that it would get from a library that images must
/// not have.
pub(crate) fn refers_to_refused(library: &Elf, options: &Options) -> Result<bool, LoadError> {
    for symbol in library.symbols().iter().filter(|symbol| is_reference(symbol)) {
        let of_process = process::symbol(library.name(symbol)?, None);
        if of_process.is_some_and(|address| is_refused(options, address)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a symbol is one that another module defines.
pub(crate) fn is_reference(symbol: &Symbol) -> bool {
    symbol.st_shndx(ENDIAN) == elf::SHN_UNDEF && symbol.st_bind() != elf::STB_LOCAL
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered(index: u16, is_hidden: bool, name: Option<&'static [u8]>) -> Version<'static> {
        Version { index, is_hidden, name }
    }

    #[test]
    fn a_version_is_what_was_asked_for() {
        let v1 = offered(2, true, Some(b"V1"));
        let v2 = offered(3, false, Some(b"V2"));
        let plain = offered(1, false, None);
        let is_exact = |wanted, offered| matches!(fit(wanted, offered, true), Fit::Exact);
        assert!(is_exact(Some(b"V1"), v1));
        assert!(!is_exact(Some(b"V1"), v2));
        assert!(is_exact(Some(b"V1"), plain));
        // Without a version: the oldest, as for a program that was linked before there were
        // versions.
        assert!(is_exact(None, v1));
        assert!(matches!(fit(None, v2, true), Fit::IfAlone));
        assert!(matches!(fit(None, offered(3, true, Some(b"V2")), true), Fit::Not));
        assert!(matches!(fit(Some(b"V9"), plain, false), Fit::Exact));
    }
}
