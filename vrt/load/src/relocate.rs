//! Turns the relocations of all modules into the initial memory of an image.
//!
//! Nearly everything is known now: the value of a word in all images, or the offset of the image
//! whose address it is. Two things must wait until the rest is complete: functions that a resolver
//! chooses (IFUNC), and after these the copies of other modules' variables that the program wants,
//! and the initial values of thread-locals. [`Relocated::memory`] computes the latter two each
//! time.

use std::ops::Range;

use object::elf;
use object::read::elf::{ProgramHeader, Rela, Sym};

use crate::elf::{ENDIAN, Elf, Relocation, Symbol};
use crate::layout::{Code, Layout, Place};
use crate::memory::{Memory, WORD};
use crate::symbols::{Bound, Definition, Scope, Use};
use crate::thread_block::{ThreadBlock, ThreadLocals};
use crate::{LoadError, Options, process};

/// The known contents of an image's memory.
#[derive(Default)]
pub(crate) struct Relocated {
    memory: Memory,
    /// By module: words that hold the result of a resolver.
    pub resolved: Vec<Vec<Resolved>>,
    /// Variables that the program wants a copy of.
    copies: Vec<CopiedVariable>,
    /// The initial values of thread-locals: their position in the image, and their destination,
    /// relative to the lowest of the private thread-locals.
    thread_locals: Vec<(Range<usize>, usize)>,
}

/// A word that holds the address of a function chosen by a resolver.
#[derive(Clone, Copy)]
pub(crate) struct Resolved {
    pub at: usize,
    /// The offset of the resolver.
    pub resolver: usize,
    pub addend: i64,
}

/// A variable that is copied from one module of an image to another.
enum CopiedVariable {
    /// It is data.
    Within { from: Range<usize>, to: usize },
    /// It is constant, or belongs to the process.
    Bytes { bytes: Vec<u8>, to: usize },
}

impl Relocated {
    /// Processes the relocations of all modules.
    pub(crate) fn new(
        modules: &[Elf],
        layout: &Layout,
        locals: &ThreadLocals,
        block: &ThreadBlock,
        options: &Options,
    ) -> Result<Relocated, LoadError> {
        let scope = Scope::new(modules, options)?;
        let relocated = Relocated {
            resolved: modules.iter().map(|_| Vec::new()).collect(),
            ..Relocated::default()
        };
        let mut work = Work { modules, layout, locals, block, scope, relocated };
        for content in &layout.data_content {
            let bytes = &modules[content.module].file_bytes()[content.in_file.clone()];
            work.relocated.memory.write(content.offset, bytes);
        }
        for number in 0..modules.len() {
            work.module(number)?;
        }
        work.scope.finish()?;
        Ok(work.relocated)
    }

    /// Writes the result of a resolver: an offset of the image, or an address of the process.
    pub(crate) fn resolve(&mut self, word: &Resolved, chosen: Result<usize, usize>) {
        let add = |value: usize| value.wrapping_add_signed(word.addend as isize);
        self.write(word.at, chosen.map(add).map_err(add));
    }

    /// Writes a word: an offset of the image, or a value that is the same for all images.
    pub(crate) fn write(&mut self, at: usize, word: Result<usize, usize>) {
        match word {
            Ok(offset) => self.memory.write_address(at, offset),
            Err(value) => self.memory.write_word(at, value as u64),
        }
    }

    /// The memory of an image, and the private thread-locals.
    pub(crate) fn memory(
        &self,
        modules: &[Elf],
        layout: &Layout,
    ) -> Result<(Memory, Memory), LoadError> {
        let mut memory = self.memory.clone();
        for copy in &self.copies {
            match copy {
                CopiedVariable::Within { from, to } => memory.copy_within(from.clone(), *to),
                CopiedVariable::Bytes { bytes, to } => memory.write(*to, bytes),
            }
        }
        let mut locals = Memory::default();
        for (from, to) in &self.thread_locals {
            match constant(modules, layout, from)? {
                Some(bytes) => locals.write(*to, bytes),
                None => memory.copy_to(from.clone(), *to, &mut locals),
            }
        }
        Ok((memory, locals))
    }
}

/// The bytes of a range that is not data.
fn constant<'data>(
    modules: &[Elf<'data>],
    layout: &Layout,
    range: &Range<usize>,
) -> Result<Option<&'data [u8]>, LoadError> {
    let holds = |place: &Place| place.is_writable(range);
    if range.is_empty() || layout.places.iter().any(holds) {
        return Ok(None);
    }
    let module = layout.places.iter().position(|place| place.span.contains(&range.start));
    let Some(module) = module else { return Ok(None) };
    let address = range.start.wrapping_sub(layout.places[module].bias);
    modules[module].bytes(address as u64, range.len() as u64).map(Some)
}

struct Work<'a, 'data> {
    modules: &'a [Elf<'data>],
    layout: &'a Layout,
    locals: &'a ThreadLocals,
    block: &'a ThreadBlock,
    scope: Scope<'a, 'data>,
    relocated: Relocated,
}

impl<'data> Work<'_, 'data> {
    fn module(&mut self, number: usize) -> Result<(), LoadError> {
        let module = &self.modules[number];
        let place = &self.layout.places[number];
        if let Some(segment) = module.segment(elf::PT_TLS) {
            let start = place.offset(segment.p_vaddr(ENDIAN));
            let len = segment.p_filesz(ENDIAN) as usize;
            if len > segment.p_memsz(ENDIAN) as usize {
                return Err(module.malformed("its thread-locals begin with more than they are"));
            }
            let to = self.locals.len - self.locals.distances[number];
            self.relocated.thread_locals.push((start..start + len, to));
        }
        for address in module.packed_relative()? {
            let at = self.target(number, address, WORD)?;
            let value = self.relocated.memory.read_word(at) as usize;
            self.relocated.memory.write_address(at, place.bias.wrapping_add(value));
        }
        for relocation in module.relocations()?.into_iter().flatten() {
            self.relocate(number, relocation)?;
        }
        Ok(())
    }

    /// The offset to which a relocation writes.
    fn target(&self, number: usize, address: u64, len: usize) -> Result<usize, LoadError> {
        let at = self.layout.places[number].offset(address);
        let is_whole = at
            .checked_add(len)
            .is_some_and(|end| self.layout.places[number].is_writable(&(at..end)));
        if is_whole {
            return Ok(at);
        }
        let path = self.modules[number].path().to_path_buf();
        Err(LoadError::WritableCode { path, what: "it has relocations outside of its data" })
    }

    fn relocate(&mut self, number: usize, relocation: &Relocation) -> Result<(), LoadError> {
        let kind = relocation.r_type(ENDIAN, false);
        let index = relocation.r_sym(ENDIAN, false) as usize;
        let addend = relocation.r_addend(ENDIAN);
        let address = relocation.r_offset(ENDIAN);
        let bias = self.layout.places[number].bias;
        match kind {
            elf::R_X86_64_NONE => {}
            elf::R_X86_64_RELATIVE => {
                let at = self.target(number, address, WORD)?;
                let offset = bias.wrapping_add_signed(addend as isize);
                self.relocated.memory.write_address(at, offset);
            }
            elf::R_X86_64_64 => self.write_bound(number, address, index, addend)?,
            // The ABI has no addend for these two.
            elf::R_X86_64_GLOB_DAT | elf::R_X86_64_JUMP_SLOT => {
                self.write_bound(number, address, index, 0)?;
            }
            elf::R_X86_64_IRELATIVE => {
                let at = self.target(number, address, WORD)?;
                let resolver = bias.wrapping_add_signed(addend as isize);
                self.resolved(number, Resolved { at, resolver, addend: 0 })?;
            }
            elf::R_X86_64_COPY => self.copy(number, address, index)?,
            elf::R_X86_64_DTPMOD64 | elf::R_X86_64_DTPOFF64 | elf::R_X86_64_TPOFF64 => {
                self.write_thread_local(number, address, index, kind, addend)?;
            }
            elf::R_X86_64_TLSDESC => {
                let symbol = self.name_of(number, index)?;
                let path = self.modules[number].path().to_path_buf();
                return Err(LoadError::ThreadLocalDescriptor { path, symbol });
            }
            _ => {
                let symbol = self.name_of(number, index)?;
                let path = self.modules[number].path().to_path_buf();
                return Err(LoadError::UnknownRelocation { path, kind, symbol });
            }
        }
        Ok(())
    }

    fn name_of(&self, number: usize, index: usize) -> Result<String, LoadError> {
        let module = &self.modules[number];
        let name = match index {
            0 => return Ok("no symbol".into()),
            _ => module.name(module.symbol(index)?)?,
        };
        Ok(String::from_utf8_lossy(name).into_owned())
    }

    /// Writes the address that a reference is bound to.
    fn write_bound(
        &mut self,
        number: usize,
        address: u64,
        index: usize,
        addend: i64,
    ) -> Result<(), LoadError> {
        let at = self.target(number, address, WORD)?;
        let memory = &mut self.relocated.memory;
        match self.scope.bind(number, index, Use::Reference)? {
            Bound::Process(address) => {
                memory.write_word(at, (address as u64).wrapping_add_signed(addend));
            }
            Bound::Nothing => memory.write_word(at, 0u64.wrapping_add_signed(addend)),
            Bound::Private(Definition { module, symbol }) => {
                let value = symbol.st_value(ENDIAN);
                let offset = self.layout.places[module].offset(value);
                if symbol.st_shndx(ENDIAN) == elf::SHN_ABS {
                    memory.write_word(at, value.wrapping_add_signed(addend));
                } else if symbol.st_type() == elf::STT_GNU_IFUNC {
                    self.resolved(number, Resolved { at, resolver: offset, addend })?;
                } else if symbol.st_type() == elf::STT_TLS {
                    let what = "it takes the address of a thread-local as of a global";
                    return Err(self.modules[number].malformed(what));
                } else {
                    memory.write_address(at, offset.wrapping_add_signed(addend as isize));
                }
            }
        }
        Ok(())
    }

    /// Records a word that holds the result of a resolver.
    fn resolved(&mut self, number: usize, word: Resolved) -> Result<(), LoadError> {
        let is_inside =
            |code: &Code| (code.offset..code.offset + code.len).contains(&word.resolver);
        if !self.layout.code.iter().any(is_inside) {
            return Err(self.modules[number].malformed("a resolver is not in its code"));
        }
        self.relocated.resolved[number].push(word);
        Ok(())
    }

    /// Records a variable that the program has a copy of.
    fn copy(&mut self, number: usize, address: u64, index: usize) -> Result<(), LoadError> {
        let len = self.modules[number].symbol(index)?.st_size(ENDIAN) as usize;
        let to = self.target(number, address, len)?;
        let copy = match self.scope.bind(number, index, Use::Copy)? {
            Bound::Nothing => return Ok(()),
            Bound::Process(address) => {
                let len = process::len_of(address).unwrap_or(len).min(len);
                // SAFETY: a variable of the process, as long as its library says. Where that says
                // nothing, the program does, and the system's loader would rely on it, too.
                let bytes = unsafe { std::slice::from_raw_parts(address as *const u8, len) };
                CopiedVariable::Bytes { bytes: bytes.to_vec(), to }
            }
            Bound::Private(Definition { module, symbol }) => {
                let from = self.layout.places[module].offset(symbol.st_value(ENDIAN));
                let from = from..from + len.min(symbol.st_size(ENDIAN) as usize);
                match constant(self.modules, self.layout, &from)? {
                    Some(bytes) => CopiedVariable::Bytes { bytes: bytes.to_vec(), to },
                    None => CopiedVariable::Within { from, to },
                }
            }
        };
        self.relocated.copies.push(copy);
        Ok(())
    }

    /// Writes one of the words through which thread-locals are accessed. For [`tls_get_addr`], what
    /// the ABI calls a module's number is the distance of its block from the thread pointer.
    ///
    /// [`tls_get_addr`]: crate::thread_pointer::tls_get_addr
    fn write_thread_local(
        &mut self,
        number: usize,
        address: u64,
        index: usize,
        kind: u32,
        addend: i64,
    ) -> Result<(), LoadError> {
        let at = self.target(number, address, WORD)?;
        let own = |module, value| {
            let from_pointer = self.locals.offset(module, value);
            match kind {
                elf::R_X86_64_DTPMOD64 => self.locals.offset(module, 0),
                elf::R_X86_64_DTPOFF64 => value.wrapping_add_signed(addend),
                _ => from_pointer.wrapping_add_signed(addend),
            }
        };
        let value = match self.scope.bind(number, index, Use::Reference)? {
            // Without a symbol: the module's own block.
            Bound::Private(_) if index == 0 => own(number, 0),
            Bound::Private(Definition { module, symbol }) => {
                self.check_thread_local(number, module, symbol)?;
                own(module, symbol.st_value(ENDIAN))
            }
            Bound::Nothing => 0,
            Bound::Process(_) if kind == elf::R_X86_64_DTPMOD64 => 0,
            Bound::Process(address) => match self.block.offset_in_process(address) {
                Some(offset) => (offset as u64).wrapping_add_signed(addend),
                None => {
                    let symbol = self.name_of(number, index)?;
                    let path = self.modules[number].path().to_path_buf();
                    return Err(LoadError::ThreadLocalOfProcess { path, symbol });
                }
            },
        };
        self.relocated.memory.write_word(at, value);
        Ok(())
    }

    fn check_thread_local(
        &self,
        number: usize,
        module: usize,
        symbol: &Symbol,
    ) -> Result<(), LoadError> {
        let has_block = self.modules[module].segment(elf::PT_TLS).is_some();
        match symbol.st_type() {
            elf::STT_TLS if has_block => Ok(()),
            // A section's symbol, by which static thread-locals are reached.
            elf::STT_SECTION if has_block => Ok(()),
            _ => Err(self.modules[number].malformed("it reaches a global as a thread-local")),
        }
    }
}
