//! Reads an ELF file as the system's loader does: by program headers and the dynamic section.
//!
//! Section headers are not used, so stripped files work as well as others. All information in the
//! file is checked when it is used; inconsistencies are [`LoadError::Malformed`].

use std::path::Path;

use object::LittleEndian;
use object::elf;
use object::pod::{self, Pod};
use object::read::elf::{
    Dyn, FileHeader, GnuHashTable, HashTable, ProgramHeader, RelrIterator, Sym,
};

use crate::LoadError;
use crate::file::MappedFile;

/// The address of the packed table of relative relocations, and its length in bytes.
const DT_RELR: u32 = 36;
const DT_RELRSZ: u32 = 35;

/// The byte order of all files that can be loaded.
pub(crate) const ENDIAN: LittleEndian = LittleEndian;

type Header = elf::FileHeader64<LittleEndian>;
pub(crate) type Segment = elf::ProgramHeader64<LittleEndian>;
pub(crate) type Symbol = elf::Sym64<LittleEndian>;
pub(crate) type Relocation = elf::Rela64<LittleEndian>;

/// A program or shared object.
pub(crate) struct Elf<'data> {
    file: &'data MappedFile,
    header: &'data Header,
    segments: &'data [Segment],
    dynamic: &'data [elf::Dyn64<LittleEndian>],
    strings: &'data [u8],
    symbols: &'data [Symbol],
    /// The version of each symbol as an index into `versions`, with the bit that hides it.
    version_indices: &'data [elf::Versym<LittleEndian>],
    /// Names of versions, of both definitions and references; empty where an index has none.
    versions: Vec<&'data [u8]>,
}

impl<'data> Elf<'data> {
    /// Whether it requests an executable stack.
    pub(crate) fn runs_code_on_stack(&self) -> bool {
        let stack = self.segment(elf::PT_GNU_STACK);
        stack.is_some_and(|stack| stack.p_flags(ENDIAN) & elf::PF_X != 0)
    }

    /// Parses the file.
    pub(crate) fn parse(file: &'data MappedFile) -> Result<Elf<'data>, LoadError> {
        let header = header(file)?;
        let malformed = |what: &str| malformed(file, what);
        let segments = header
            .program_headers(ENDIAN, file.bytes())
            .map_err(|_| malformed("its program headers are outside of the file"))?;
        let mut elf = Elf {
            file,
            header,
            segments,
            dynamic: &[],
            strings: &[],
            symbols: &[],
            version_indices: &[],
            versions: Vec::new(),
        };
        elf.check_kind()?;
        let dynamic = elf
            .segment(elf::PT_DYNAMIC)
            .and_then(|segment| segment.dynamic(ENDIAN, file.bytes()).transpose());
        let Some(dynamic) = dynamic else {
            return Err(LoadError::Static { path: file.path().to_path_buf() });
        };
        let dynamic = dynamic.map_err(|_| malformed("its dynamic section is not in the file"))?;
        let end = dynamic.iter().position(|entry| entry.d_tag(ENDIAN) == u64::from(elf::DT_NULL));
        elf.dynamic = &dynamic[..end.unwrap_or(dynamic.len())];
        if let Some(at) = elf.value(elf::DT_STRTAB) {
            elf.strings = elf.bytes(at, elf.value(elf::DT_STRSZ).unwrap_or(0))?;
        }
        elf.read_symbols()?;
        elf.read_versions()?;
        Ok(elf)
    }

    pub(crate) fn path(&self) -> &'data Path {
        self.file.path()
    }

    /// The whole contents of the file.
    pub(crate) fn file_bytes(&self) -> &'data [u8] {
        self.file.bytes()
    }

    pub(crate) fn malformed(&self, what: impl AsRef<str>) -> LoadError {
        malformed(self.file, what.as_ref())
    }

    /// The first segment of a kind.
    pub(crate) fn segment(&self, kind: u32) -> Option<&'data Segment> {
        self.segments.iter().find(|segment| segment.p_type(ENDIAN) == kind)
    }

    /// The segments that are loaded into memory.
    pub(crate) fn loaded(&self) -> impl Iterator<Item = &'data Segment> + use<'data> {
        self.segments.iter().filter(|segment| segment.p_type(ENDIAN) == elf::PT_LOAD)
    }

    /// The address of the program headers, if they are in memory, and their number.
    pub(crate) fn program_headers(&self) -> (Option<u64>, usize) {
        let offset = self.header.e_phoff.get(ENDIAN);
        let address = self.loaded().find_map(|segment| {
            let within = offset.checked_sub(segment.p_offset(ENDIAN))?;
            let is_inside = within < segment.p_filesz(ENDIAN);
            is_inside.then_some(segment.p_vaddr(ENDIAN) + within)
        });
        (address, self.segments.len())
    }

    /// Where execution of a program begins.
    pub(crate) fn entry(&self) -> u64 {
        self.header.e_entry.get(ENDIAN)
    }

    /// Whether the file is a program, not a library: it names the loader that starts it.
    pub(crate) fn is_program(&self) -> bool {
        self.segment(elf::PT_INTERP).is_some()
    }

    /// The last value of a tag in the dynamic section.
    pub(crate) fn value(&self, tag: u32) -> Option<u64> {
        self.values(tag).last()
    }

    fn values(&self, tag: u32) -> impl Iterator<Item = u64> + use<'_, 'data> {
        let tag = u64::from(tag);
        self.dynamic
            .iter()
            .filter(move |entry| entry.d_tag(ENDIAN) == tag)
            .map(|entry| entry.d_val(ENDIAN))
    }

    /// Whether a bit of `DT_FLAGS` is set.
    pub(crate) fn has_flag(&self, flag: u32) -> bool {
        self.value(elf::DT_FLAGS).unwrap_or(0) & u64::from(flag) != 0
    }

    /// Whether a bit of `DT_FLAGS_1` is set.
    pub(crate) fn has_flag_1(&self, flag: u32) -> bool {
        self.value(elf::DT_FLAGS_1).unwrap_or(0) & u64::from(flag) != 0
    }

    /// The strings of a tag.
    pub(crate) fn named(&self, tag: u32) -> Result<Vec<String>, LoadError> {
        let text = |at| Ok(String::from_utf8_lossy(self.string(at)?).into_owned());
        self.values(tag).map(text).collect()
    }

    /// A string of the dynamic section.
    pub(crate) fn string(&self, at: u64) -> Result<&'data [u8], LoadError> {
        let rest = usize::try_from(at).ok().and_then(|at| self.strings.get(at..));
        let end = rest.and_then(|rest| rest.iter().position(|byte| *byte == 0));
        match (rest, end) {
            (Some(rest), Some(end)) => Ok(&rest[..end]),
            _ => Err(self.malformed(format!("there is no string at {at:#x}"))),
        }
    }

    /// The file's bytes for an address range.
    pub(crate) fn bytes(&self, address: u64, len: u64) -> Result<&'data [u8], LoadError> {
        self.bytes_from(address)
            .and_then(|bytes| bytes.get(..usize::try_from(len).ok()?))
            .ok_or_else(|| self.malformed(format!("it has no {len} bytes at {address:#x}")))
    }

    /// All bytes of the file from an address to the end of its segment.
    fn bytes_from(&self, address: u64) -> Option<&'data [u8]> {
        self.loaded().find_map(|segment| {
            let within = address.checked_sub(segment.p_vaddr(ENDIAN))?;
            let bytes = segment.data(ENDIAN, self.file.bytes()).ok()?;
            bytes.get(usize::try_from(within).ok()?..).filter(|rest| !rest.is_empty())
        })
    }

    fn array<T: Pod>(&self, address: u64, bytes: u64) -> Result<&'data [T], LoadError> {
        pod::slice_from_all_bytes(self.bytes(address, bytes)?)
            .map_err(|()| self.malformed(format!("the table at {address:#x} is cut off")))
    }

    /// An array described by two tags: its address and its length in bytes.
    fn table<T: Pod>(&self, address: u32, bytes: u32) -> Result<&'data [T], LoadError> {
        match (self.value(address), self.value(bytes)) {
            (Some(address), Some(bytes)) if bytes > 0 => self.array(address, bytes),
            _ => Ok(&[]),
        }
    }

    /// The tables of relocations: those of data, and those of the procedure linkage table.
    pub(crate) fn relocations(&self) -> Result<[&'data [Relocation]; 2], LoadError> {
        let other = self.value(elf::DT_PLTREL).is_some_and(|kind| kind != u64::from(elf::DT_RELA));
        if other || self.value(elf::DT_REL).is_some() {
            return Err(self.malformed("it has relocations without addends, unlike x86-64"));
        }
        Ok([
            self.table(elf::DT_RELA, elf::DT_RELASZ)?,
            self.table(elf::DT_JMPREL, elf::DT_PLTRELSZ)?,
        ])
    }

    /// Addresses of words to which the module's own address is added (`DT_RELR`).
    pub(crate) fn packed_relative(
        &self,
    ) -> Result<impl Iterator<Item = u64> + use<'data>, LoadError> {
        let table = self.table(DT_RELR, DT_RELRSZ)?;
        Ok(RelrIterator::<Header>::new(ENDIAN, table))
    }

    /// The symbols of the dynamic section.
    pub(crate) fn symbols(&self) -> &'data [Symbol] {
        self.symbols
    }

    /// A symbol by its number.
    pub(crate) fn symbol(&self, index: usize) -> Result<&'data Symbol, LoadError> {
        self.symbols
            .get(index)
            .ok_or_else(|| self.malformed(format!("there is no symbol of number {index}")))
    }

    /// The name of a symbol.
    pub(crate) fn name(&self, symbol: &Symbol) -> Result<&'data [u8], LoadError> {
        self.string(u64::from(symbol.st_name(ENDIAN)))
    }

    /// Whether symbols have versions.
    pub(crate) fn is_versioned(&self) -> bool {
        !self.version_indices.is_empty()
    }

    /// The version of a symbol.
    pub(crate) fn version(&self, index: usize) -> Version<'data> {
        let versym = self.version_indices.get(index);
        let bits = versym.map_or(elf::VER_NDX_GLOBAL, |version| version.0.get(ENDIAN));
        let index = bits & elf::VERSYM_VERSION;
        let name = self.versions.get(usize::from(index)).copied().filter(|name| !name.is_empty());
        Version { index, is_hidden: bits & elf::VERSYM_HIDDEN != 0, name }
    }

    /// Programs and shared objects for this processor, position independent.
    fn check_kind(&self) -> Result<(), LoadError> {
        let path = || self.path().to_path_buf();
        let machine = self.header.e_machine(ENDIAN);
        if machine != elf::EM_X86_64 {
            return Err(LoadError::OtherMachine { path: path(), machine });
        }
        let is_dynamic = self.segment(elf::PT_DYNAMIC).is_some();
        match self.header.e_type(ENDIAN) {
            elf::ET_DYN if is_dynamic => Ok(()),
            elf::ET_EXEC if is_dynamic => Err(LoadError::FixedAddress { path: path() }),
            elf::ET_DYN | elf::ET_EXEC => Err(LoadError::Static { path: path() }),
            kind => Err(LoadError::NotLinked { path: path(), kind }),
        }
    }

    /// Finds the symbol table. The number of symbols is not stored anywhere: it is the number that
    /// the hash table covers, or, where that covers only definitions, the number that relocations
    /// refer to.
    fn read_symbols(&mut self) -> Result<(), LoadError> {
        let Some(at) = self.value(elf::DT_SYMTAB) else { return Ok(()) };
        let mut count = 0;
        if let Some(table) = self.value(elf::DT_GNU_HASH).and_then(|at| self.bytes_from(at)) {
            let table = GnuHashTable::<Header>::parse(ENDIAN, table)
                .map_err(|_| self.malformed("its GNU hash table is cut off"))?;
            count = table.symbol_table_length(ENDIAN).unwrap_or(table.symbol_base());
        }
        if let Some(table) = self.value(elf::DT_HASH).and_then(|at| self.bytes_from(at)) {
            let table = HashTable::<Header>::parse(ENDIAN, table)
                .map_err(|_| self.malformed("its hash table is cut off"))?;
            count = count.max(table.symbol_table_length());
        }
        let used = self.relocations()?.into_iter().flatten();
        let used = used.map(|entry| u64::from(entry.r_sym(ENDIAN, false)) + 1);
        let count = used.max().unwrap_or(0).max(u64::from(count));
        self.symbols = self.array(at, count * size_of::<Symbol>() as u64)?;
        Ok(())
    }

    /// Finds the names of versions, which are chains of entries linked by distances.
    fn read_versions(&mut self) -> Result<(), LoadError> {
        let Some(at) = self.value(elf::DT_VERSYM) else { return Ok(()) };
        self.version_indices = self.array(at, self.symbols.len() as u64 * 2)?;
        let mut names: Vec<(u16, &'data [u8])> = Vec::new();
        if let Some(mut at) = self.value(elf::DT_VERDEF) {
            for _ in 0..self.value(elf::DT_VERDEFNUM).unwrap_or(0) {
                let entry: &elf::Verdef<LittleEndian> = self.entry_at(at)?;
                let auxiliary = at + u64::from(entry.vd_aux.get(ENDIAN));
                // The first one names the library, not a version.
                if entry.vd_flags.get(ENDIAN) & elf::VER_FLG_BASE == 0 {
                    let name: &elf::Verdaux<LittleEndian> = self.entry_at(auxiliary)?;
                    let name = self.string(u64::from(name.vda_name.get(ENDIAN)))?;
                    names.push((entry.vd_ndx.get(ENDIAN), name));
                }
                match entry.vd_next.get(ENDIAN) {
                    0 => break,
                    next => at += u64::from(next),
                }
            }
        }
        if let Some(mut at) = self.value(elf::DT_VERNEED) {
            for _ in 0..self.value(elf::DT_VERNEEDNUM).unwrap_or(0) {
                let entry: &elf::Verneed<LittleEndian> = self.entry_at(at)?;
                let mut auxiliary = at + u64::from(entry.vn_aux.get(ENDIAN));
                for _ in 0..entry.vn_cnt.get(ENDIAN) {
                    let need: &elf::Vernaux<LittleEndian> = self.entry_at(auxiliary)?;
                    let name = self.string(u64::from(need.vna_name.get(ENDIAN)))?;
                    names.push((need.vna_other.get(ENDIAN), name));
                    match need.vna_next.get(ENDIAN) {
                        0 => break,
                        next => auxiliary += u64::from(next),
                    }
                }
                match entry.vn_next.get(ENDIAN) {
                    0 => break,
                    next => at += u64::from(next),
                }
            }
        }
        for (index, name) in names {
            let index = usize::from(index & elf::VERSYM_VERSION);
            if self.versions.len() <= index {
                self.versions.resize(index + 1, &[]);
            }
            self.versions[index] = name;
        }
        Ok(())
    }

    fn entry_at<T: Pod>(&self, at: u64) -> Result<&'data T, LoadError> {
        let bytes = self.bytes(at, size_of::<T>() as u64)?;
        match pod::from_bytes(bytes) {
            Ok((entry, _)) => Ok(entry),
            Err(()) => Err(self.malformed(format!("a version at {at:#x} is cut off"))),
        }
    }
}

/// The version of a symbol: the one that a definition has, or that a reference requires.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Version<'data> {
    /// 0 and 1 stand for none, 2 is a library's oldest.
    pub index: u16,
    /// A definition that is only used for references with this version.
    pub is_hidden: bool,
    pub name: Option<&'data [u8]>,
}

fn malformed(file: &MappedFile, what: &str) -> LoadError {
    LoadError::Malformed { path: file.path().to_path_buf(), what: what.to_string() }
}

fn header(file: &MappedFile) -> Result<&Header, LoadError> {
    let path = || file.path().to_path_buf();
    let bytes = file.bytes();
    if !bytes.starts_with(&elf::ELFMAG) {
        return Err(LoadError::NotElf { path: path() });
    }
    match bytes.get(4) {
        Some(&elf::ELFCLASS32) => Err(LoadError::ThirtyTwoBit { path: path() }),
        _ => match Header::parse(bytes) {
            Ok(header) if bytes[5] == elf::ELFDATA2LSB => Ok(header),
            Ok(_) => Err(malformed(file, "its byte order is not that of x86-64")),
            Err(_) => Err(malformed(file, "its header is cut off")),
        },
    }
}
