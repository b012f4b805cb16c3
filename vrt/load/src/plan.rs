//! The plan: everything that is computed once, and the operations that make images from it.

use std::ffi::c_char;
use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use object::elf;
use object::read::elf::{ProgramHeader, Sym};

use crate::closure::Closure;
use crate::elf::{ENDIAN, Elf};
use crate::file::MappedFile;
use crate::image::{self, Shape, Written};
use crate::layout::{Code, Layout, Place, joined};
use crate::lifecycle::Lifecycle;
use crate::linkage::Linkage;
use crate::memory::Template;
use crate::options::Options;
use crate::own_locals::OwnLocals;
use crate::process_thread::{ProcessThread, Specific};
use crate::relocate::Relocated;
use crate::thread_block::{ThreadBlock, ThreadLocals};
use crate::{LoadError, resolvers, start, symbols};

/// How a program is entered. Offsets are relative to the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A program: [`Plan::start`] jumps there. It will call `__libc_start_main`.
    Start(usize),
    /// A shared object: its function `main`, to be called like any other.
    Main(usize),
    /// There is no program other than the process's own.
    OfProcess,
}

/// A program or library of which each image has a copy. Offsets are relative to the image.
#[derive(Clone, Debug)]
pub struct Module {
    /// Its file.
    pub path: PathBuf,
    /// Its name: its own (`DT_SONAME`), otherwise that of its file.
    pub name: String,
    /// Its position.
    pub span: Range<usize>,
    /// The difference between an offset and an address in its file, modulo 2^64. It is the beginning of its span,
    /// except for libraries that are linked to addresses of their own.
    pub bias: usize,
    /// The offset of its program headers, if they are in memory, and their number.
    pub program_headers: Option<(usize, usize)>,
    /// Its table for unwinding (`.eh_frame_hdr`).
    pub unwind_table: Option<usize>,
}

/// A program with its private libraries, ready to be made into images.
///
/// An image is made in the caller's memory, in this order: [`map_code`](Plan::map_code) or
/// [`copy_code`](Plan::copy_code), [`fill`](Plan::fill), then with its thread pointer the
/// [`constructors`](Plan::constructors), and its [`entry`](Plan::entry). The plan is immutable, and any thread may use
/// it.
pub struct Plan {
    files: Vec<MappedFile>,
    modules: Vec<Module>,
    shape: Shape,
    /// Pages that are written.
    data: Vec<Range<usize>>,
    /// Pages that are written when an image is made.
    written: Written,
    lifecycle: Lifecycle,
    entry: Entry,
    runs_code_on_stack: bool,
}

impl Plan {
    /// Reads a program and its libraries, binds all references, and runs the resolvers of indirect functions.
    ///
    /// Libraries that the process shares are loaded into it now, so later changes of the process's libraries have no
    /// effect. Whatever is provided must stay at its address as long as images are made.
    ///
    /// # Errors
    /// The program cannot be loaded; see [`LoadError`].
    pub fn open(program: &Path, options: &Options) -> Result<Plan, LoadError> {
        if !cfg!(target_arch = "x86_64") {
            let architecture = std::env::consts::ARCH;
            return Err(LoadError::UnsupportedArchitecture { architecture });
        }
        let closure = Closure::open(program, options)?;
        let elves = closure.files.iter().map(Elf::parse).collect::<Result<Vec<_>, _>>()?;
        let locals = ThreadLocals::new(&elves, options.thread_reserve)?;
        let block = ThreadBlock::new(ProcessThread::measure(), options.thread_reserve, &locals);
        let (layout, thread_pointer, len) = block.with(|start| Layout::new(&elves, start))?;
        let entry = entry(&elves[0], &layout.places[0])?;
        let mut relocated = Relocated::new(&elves, &layout, &locals, &block, options)?;
        let order = closure.initialization_order();
        let lifecycle = Lifecycle::new(&elves, &layout.places, &order)?;
        let template = Template::default();
        let mut shape = Shape { layout, block, thread_pointer, len, template };
        shape.set_memory(&relocated, &elves)?;
        if resolvers::run(&shape, &closure.files, &order, &mut relocated)? {
            shape.set_memory(&relocated, &elves)?;
        }
        let data = shape.layout.data.iter().cloned().chain(shape.block.pages(thread_pointer));
        let data = joined(data.collect());
        let modules = elves.iter().zip(&closure.linkages).zip(&shape.layout.places);
        let modules = modules.map(|((elf, linkage), place)| Module::new(elf, linkage, place));
        let modules = modules.collect();
        let written = shape.written();
        let runs_code_on_stack = elves.iter().any(Elf::runs_code_on_stack);
        let files = closure.files;
        Ok(Plan { files, modules, shape, data, written, lifecycle, entry, runs_code_on_stack })
    }

    /// Images without a program: thread blocks with which code of the process's own program runs. They have their own
    /// copies of that program's thread-locals for whose symbol's name `is_own` returns true; the others are copies of
    /// the thread's, as in all images.
    ///
    /// # Errors
    /// The positions of the program's thread-locals are unknown, as it has no symbols; or this processor is not
    /// supported.
    pub fn of_thread_locals(is_own: &dyn Fn(&str) -> bool) -> Result<Plan, LoadError> {
        if !cfg!(target_arch = "x86_64") {
            let architecture = std::env::consts::ARCH;
            return Err(LoadError::UnsupportedArchitecture { architecture });
        }
        let layout = Layout::new(&[], 0)?;
        let block = ThreadBlock::of_process(ProcessThread::measure(), OwnLocals::find(is_own)?);
        let (thread_pointer, len) = block.behind(0);
        let shape = Shape { layout, block, thread_pointer, len, template: Template::default() };
        Ok(Plan {
            files: Vec::new(),
            modules: Vec::new(),
            data: shape.block.pages(thread_pointer),
            written: shape.written(),
            lifecycle: Lifecycle::default(),
            entry: Entry::OfProcess,
            runs_code_on_stack: false,
            shape,
        })
    }

    /// Bytes of one image, including its thread block: whole pages.
    pub fn size(&self) -> usize {
        self.shape.len
    }

    /// The address of an image must be a multiple of this: a page, or what the program's data requires, up to 64 KiB.
    pub fn alignment(&self) -> usize {
        self.shape.layout.alignment
    }

    /// The pieces of code, in ascending order. They are equal in all images.
    pub fn code(&self) -> &[Code] {
        &self.shape.layout.code
    }

    /// The pages that are written: data with relocations, zero-initialised data, and the thread block except for the
    /// unused part of its reserve. They are what differs between images. What is in neither [`code`](Self::code) nor
    /// here is unused.
    pub fn data(&self) -> &[Range<usize>] {
        &self.data
    }

    /// The modules: the program, then its private libraries in the order in which they were found, in ascending order.
    pub fn modules(&self) -> &[Module] {
        &self.modules
    }

    /// Whether the program or a private library requires executable stacks, as compilers do for nested functions whose
    /// addresses are taken.
    pub fn runs_code_on_stack(&self) -> bool {
        self.runs_code_on_stack
    }

    /// Whether images have their own copy of a library whose name begins with `prefix`.
    pub fn has_private(&self, prefix: &str) -> bool {
        self.modules.iter().skip(1).any(|module| module.name.starts_with(prefix))
    }

    /// The number of mappings per image whose code is mapped, including those between pieces of code. An image whose
    /// code is copied needs none.
    pub fn mappings(&self) -> usize {
        self.shape.layout.mappings(self.shape.len)
    }

    /// The number of words of an image that hold addresses in it.
    pub fn address_count(&self) -> usize {
        self.shape.template.address_count()
    }

    /// Maps the code of an image from the files, readable and executable.
    ///
    /// # Errors
    /// The system refuses; most likely the process has reached the limit of mappings, `vm.max_map_count`. Some of the
    /// code may be mapped then.
    ///
    /// # Safety
    /// `[base, base + size)` belongs to the caller, and `base` is a multiple of the alignment. Anything mapped in place
    /// of code is replaced.
    pub unsafe fn map_code(&self, base: usize) -> io::Result<()> {
        // SAFETY: as the caller promises.
        unsafe { self.shape.map_code(&self.files, base) }
    }

    /// Asks the system for all pages of an image that are about to be written: a fault for each takes twice as long.
    pub fn populate(&self, base: usize, with_code: bool) {
        let Written { data, all } = &self.written;
        image::populate(if with_code { all } else { data }, base);
    }

    /// Copies the code of an image.
    ///
    /// # Safety
    /// `[base, base + size)` belongs to the caller and is writable, and `base` is a multiple of the alignment. To be
    /// run, it must be executable.
    pub unsafe fn copy_code(&self, base: usize) {
        // SAFETY: as the caller promises.
        unsafe { self.shape.copy_code(&self.files, base) }
    }

    /// Writes the data of an image, and its thread block as a copy of the calling thread's. Zero pages are not touched.
    ///
    /// # Safety
    /// `[base, base + size)` belongs to the caller, its data is writable and zero, and `base` is a multiple of the
    /// alignment.
    pub unsafe fn fill(&self, base: usize) {
        // SAFETY: as the caller promises.
        unsafe { self.shape.fill(base) }
    }

    /// The thread pointer with which an image runs.
    pub fn thread_pointer(&self, base: usize) -> usize {
        base + self.shape.thread_pointer
    }

    /// Sets the number that identifies the image's thread to its libc: locks know their owner by it. Initially it is
    /// that of the thread that filled the image.
    ///
    /// # Safety
    /// The image was filled.
    pub unsafe fn set_thread_number(&self, base: usize, number: i32) {
        // SAFETY: as the caller promises.
        unsafe { self.shape.block.process().set_number(self.thread_pointer(base), number) }
    }

    /// Adapts the thread block of an image to another thread that continues it, in this process or in another: takes
    /// over the process's thread-locals, and its table of dynamic thread-locals. The image's own thread-locals are
    /// kept, and so are the stack protector's canary, the key of saved pointers and the thread's number.
    ///
    /// # Safety
    /// The image was filled and does not run; `from` is the thread pointer of a thread of this process that does not
    /// end meanwhile, and not that of an image.
    pub unsafe fn refresh_thread_block(&self, base: usize, from: usize) {
        // SAFETY: as the caller promises.
        unsafe { self.shape.block.refresh(self.thread_pointer(base), from) }
    }

    /// The parts of an image that concern the process and not the program: copies of thread-locals, which
    /// [`refresh_thread_block`](Self::refresh_thread_block) replaces, and the control block.
    pub fn of_process(&self) -> Vec<Range<usize>> {
        let pointer = self.shape.thread_pointer;
        self.shape
            .block
            .process_locals(pointer)
            .chain(std::iter::once(pointer..self.shape.len))
            .collect()
    }

    /// Whether an offset of an image is in one of [these](Self::of_process).
    pub fn is_of_process(&self, offset: usize) -> bool {
        let pointer = self.shape.thread_pointer;
        let mut copies = self.shape.block.process_locals(pointer);
        offset >= pointer || copies.any(|part| part.contains(&offset))
    }

    /// Bytes of a thread block for another thread of an image.
    pub fn thread_block_size(&self) -> usize {
        self.shape.block.size()
    }

    /// Makes a thread block for another thread of an image, with new thread-locals. Returns its thread pointer.
    ///
    /// # Safety
    /// The image was filled. The memory at `at` belongs to the caller, is writable, and
    /// [`thread_block_size`](Self::thread_block_size) bytes long. `from` is the thread pointer of a thread of this
    /// process that does not end meanwhile, and not that of an image.
    pub unsafe fn fill_thread_block(&self, base: usize, at: usize, from: usize) -> usize {
        // SAFETY: as the caller promises.
        unsafe { self.shape.block.make(base, at, from) }
    }

    /// Takes thread-specific data out of the block of a thread pointer: the number of each key, and its value. For a
    /// caller that ends a thread and calls the destructors of the keys.
    ///
    /// # Safety
    /// The thread pointer is one of [`thread_pointer`](Self::thread_pointer) or
    /// [`fill_thread_block`](Self::fill_thread_block), and its thread is the caller or does not run.
    pub unsafe fn take_specific(&self, pointer: usize) -> Vec<(usize, Specific)> {
        // SAFETY: as the caller promises.
        unsafe { self.shape.block.process().take_specific(pointer) }
    }

    /// Copies the result of a thread, which the joining thread receives, from the block of one thread pointer to that
    /// of another.
    ///
    /// # Safety
    /// Both are thread pointers: of a thread of the process, or as for
    /// [`take_specific`](Self::take_specific).
    pub unsafe fn copy_thread_result(&self, to: usize, from: usize) {
        // SAFETY: as the caller promises.
        unsafe { self.shape.block.process().copy_result(to, from) }
    }

    /// Addresses of the functions that run before the program, in order: dependencies first. They are called with the
    /// thread pointer set, and with the number of arguments, the arguments, and the environment.
    ///
    /// # Safety
    /// The image was filled, and stays as long as the iterator is used.
    pub unsafe fn constructors(&self, base: usize) -> impl Iterator<Item = usize> + use<'_> {
        // SAFETY: as the caller promises.
        unsafe { self.lifecycle.constructors(base) }
    }

    /// Addresses of the functions that run after the program, in order, which is the reverse. They are called without
    /// arguments.
    ///
    /// # Safety
    /// As [`constructors`](Self::constructors).
    pub unsafe fn destructors(&self, base: usize) -> impl Iterator<Item = usize> + use<'_> {
        // SAFETY: as the caller promises.
        unsafe { self.lifecycle.destructors(base) }
    }

    /// How the program is entered.
    pub fn entry(&self) -> Entry {
        self.entry
    }

    /// Enters a program as the kernel would, with the image's thread pointer, on the current stack. If the entry is
    /// that of a shared object, the process aborts.
    ///
    /// # Safety
    /// The image is complete, and the strings live as long as it does. `environment` ends with a null pointer. The
    /// call does not return, and nothing waits for it to return.
    pub unsafe fn start(
        &self,
        base: usize,
        arguments: &[*mut c_char],
        environment: *const *const c_char,
    ) -> ! {
        let Entry::Start(entry) = self.entry else { std::process::abort() };
        let headers = self.modules[0].program_headers;
        let headers = headers.map(|(offset, count)| (base + offset, count));
        let name = arguments.first().map_or(std::ptr::null(), |name| name.cast_const());
        let auxiliary = start::Auxiliary::new(headers, base + entry, name);
        let mut count = 0;
        // SAFETY: as the caller promises.
        unsafe {
            while !(*environment.add(count)).is_null() {
                count += 1;
            }
            let environment = std::slice::from_raw_parts(environment, count);
            let thread_pointer = self.thread_pointer(base);
            start::enter(base + entry, thread_pointer, arguments, environment, &auxiliary)
        }
    }

    /// Whether the program or a private library refers to a function of one of these names.
    pub fn refers_to_any(&self, names: &[&str]) -> bool {
        let refers = |elf: &Elf| {
            let mut references =
                elf.symbols().iter().filter(|symbol| symbols::is_reference(symbol));
            references.any(|symbol| {
                elf.name(symbol).is_ok_and(|name| names.iter().any(|it| it.as_bytes() == name))
            })
        };
        self.files.iter().any(|file| Elf::parse(file).is_ok_and(|elf| refers(&elf)))
    }

    /// The offset of a symbol that a private module defines, in its default version; if several do, that of the first
    /// module. Thread-locals and indirect functions have none. It is looked up in tables of thousands of symbols, so
    /// keep the result.
    pub fn symbol(&self, name: &str) -> Option<usize> {
        (0..self.modules.len()).find_map(|module| self.symbol_of(module, name))
    }

    /// The same for the private library whose name begins with `prefix`: `libc.so` for a private libc.
    pub fn symbol_in(&self, prefix: &str, name: &str) -> Option<usize> {
        let modules = self.modules.iter().enumerate().skip(1);
        let mut modules = modules.filter(|(_, module)| module.name.starts_with(prefix));
        modules.find_map(|(number, _)| self.symbol_of(number, name))
    }

    fn symbol_of(&self, module: usize, name: &str) -> Option<usize> {
        let elf = Elf::parse(&self.files[module]).ok()?;
        let value = default_symbol(&elf, name.as_bytes())?;
        Some(self.shape.layout.places[module].offset(value))
    }

    /// The symbol to which an offset of the image belongs: its name, and where it begins. Only symbols that others can
    /// be bound to count.
    pub fn symbol_at(&self, offset: usize) -> Option<(String, usize)> {
        let number = self.modules.iter().position(|module| module.span.contains(&offset))?;
        let elf = Elf::parse(&self.files[number]).ok()?;
        let place = &self.shape.layout.places[number];
        let symbols = elf.symbols().iter().filter(|symbol| symbols::is_in_image(symbol));
        let (symbol, start) = symbols
            .map(|symbol| (symbol, place.offset(symbol.st_value(ENDIAN))))
            .filter(|(symbol, start)| {
                let len = (symbol.st_size(ENDIAN) as usize).max(1);
                (*start..start.saturating_add(len)).contains(&offset)
            })
            .max_by_key(|(_, start)| *start)?;
        Some((String::from_utf8_lossy(elf.name(symbol).ok()?).into_owned(), start))
    }

    /// The module that contains an offset of the image, for unwinding stacks.
    pub fn find_module(&self, offset: usize) -> Option<&Module> {
        let behind = self.modules.partition_point(|module| module.span.start <= offset);
        self.modules[..behind].last().filter(|module| module.span.contains(&offset))
    }
}

impl fmt::Debug for Plan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.modules.iter().map(|module| &module.name).collect();
        formatter
            .debug_struct("Plan")
            .field("modules", &names)
            .field("size", &self.size())
            .finish_non_exhaustive()
    }
}

/// The entry of a program.
fn entry(program: &Elf, place: &Place) -> Result<Entry, LoadError> {
    let path = || program.path().to_path_buf();
    if program.is_program() {
        return Ok(Entry::Start(place.offset(program.entry())));
    }
    if program.has_flag_1(elf::DF_1_PIE) {
        return Err(LoadError::StaticPie { path: path() });
    }
    match default_symbol(program, b"main") {
        Some(main) => Ok(Entry::Main(place.offset(main))),
        None => Err(LoadError::NoMain { path: path() }),
    }
}

/// The address of a module's own symbol, in its default version.
fn default_symbol(module: &Elf, name: &[u8]) -> Option<u64> {
    let symbols = module.symbols().iter().enumerate();
    let mut symbols = symbols.filter(|(index, symbol)| {
        let is_other = matches!(symbol.st_type(), elf::STT_TLS | elf::STT_GNU_IFUNC);
        symbols::is_default(symbol, module.version(*index)) && !is_other
    });
    let found = symbols.find(|(_, symbol)| module.name(symbol).is_ok_and(|own| own == name));
    found.map(|(_, symbol)| symbol.st_value(ENDIAN))
}

impl Shape {
    /// Stores the computed memory.
    fn set_memory(&mut self, relocated: &Relocated, modules: &[Elf]) -> Result<(), LoadError> {
        let (memory, locals) = relocated.memory(modules, &self.layout)?;
        self.template = memory.template();
        self.block.set_initial(locals.template());
        Ok(())
    }
}

impl Module {
    fn new(module: &Elf, linkage: &Linkage, place: &Place) -> Module {
        let path = linkage.path.clone();
        let file_name = || path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let name = match linkage.name.is_empty() {
            true => file_name(),
            false => linkage.name.clone(),
        };
        let within = |address| Some(place.offset(address)).filter(|at| place.span.contains(at));
        let (headers, count) = module.program_headers();
        let unwind_table = module.segment(elf::PT_GNU_EH_FRAME);
        Module {
            name,
            path,
            span: place.span.clone(),
            bias: place.bias,
            program_headers: headers.and_then(within).map(|offset| (offset, count)),
            unwind_table: unwind_table.and_then(|segment| within(segment.p_vaddr(ENDIAN))),
        }
    }
}
