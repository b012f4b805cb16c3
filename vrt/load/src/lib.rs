//! Loads a program and its libraries many times into one process: each copy, called an *image*, has its own address,
//! globals and thread-locals.
//!
//! Programs are in the form that compilers produce by default: position independent executables for x86-64 Linux with
//! glibc, or shared objects with a function `main`. They need not be prepared for being images.
//!
//! Everything is computed once, in a [`Plan`]: which libraries there are, their positions in an image, and what each
//! reference is bound to. An image then consists of its code, mapped from the files so that all images share it, and a
//! copy of its initial data, with its address added to some words. Creating one takes microseconds, and no more memory
//! than the pages that are written.
//!
//! ```
//! # #[cfg(not(target_arch = "x86_64"))]
//! # fn main() {}
//! # #[cfg(target_arch = "x86_64")]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use vrt_load::{Entry, Options, Plan, thread_pointer, thread_reserve};
//!
//! // A program that counts in a global and in a thread-local.
//! let folder = tempfile::tempdir()?;
//! let (source, program) = (folder.path().join("count.c"), folder.path().join("count.so"));
//! std::fs::write(&source, "int a; __thread int b = 10; int main(void) { return ++a + ++b; }")?;
//! let mut compiler = std::process::Command::new("cc");
//! compiler.args(["-shared", "-fPIC", "-o"]).arg(&program).arg(&source);
//! assert!(compiler.status()?.success());
//!
//! let plan = Plan::open(&program, &Options {
//!     provided: &|_| None,
//!     is_provided: &|_| false,
//!     refused: &|library| library.starts_with("libmpi.so").then(|| "not this one".into()),
//!     shared: &|library| library.starts_with("libc.so"),
//!     thread_reserve: thread_reserve()?,
//! })?;
//! let Entry::Main(main) = plan.entry() else { unreachable!("it is a shared object") };
//!
//! // Memory for two images.
//! let size = plan.size().next_multiple_of(plan.alignment());
//! let memory = unsafe {
//!     libc::mmap(
//!         std::ptr::null_mut(),
//!         2 * size + plan.alignment(),
//!         libc::PROT_READ | libc::PROT_WRITE,
//!         libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
//!         -1,
//!         0,
//!     )
//! };
//! assert_ne!(memory, libc::MAP_FAILED);
//! let first = (memory as usize).next_multiple_of(plan.alignment());
//!
//! for image in [first, first + size] {
//!     // SAFETY: the memory is ours; code of an image runs with the image's thread pointer.
//!     unsafe {
//!         plan.map_code(image)?;
//!         plan.fill(image);
//!         let main = std::mem::transmute::<usize, extern "C" fn() -> i32>(image + main);
//!         let own = thread_pointer::get();
//!         thread_pointer::set(plan.thread_pointer(image));
//!         let counts = [main(), main()];
//!         thread_pointer::set(own);
//!         assert_eq!(counts, [12, 14]);
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Symbol resolution
//!
//! A reference is bound to the program's definition, otherwise to that of a private library, otherwise to what the
//! caller [provides](Options::provided), otherwise to libc's, private or the process's. Libraries are *private*, so
//! that each image has one, unless the caller wants them [shared](Options::shared). A caller that makes libc private
//! must also make libm private, as that sets libc's `errno`; and it must call `__libc_early_init(false)` of the private
//! libc before anything else in an image: with `true`, libc assumes that the process has no other threads, and loses
//! wake-ups of locks that it shares with the process's libc.
//!
//! What a runtime must provide, because it concerns one image and not the process:
//!
//! | symbol | because |
//! |---|---|
//! | `__libc_start_main` | programs call it at their entry: it calls constructors and `main` |
//! | `exit`, `__cxa_atexit`, `__cxa_finalize` | an image ends, not the process |
//! | `__cxa_thread_atexit_impl` | so do an image's threads |
//! | `_dl_find_object` | exceptions unwind through images ([`Plan::find_module`]) |
//! | `malloc` and the like | if memory is an image's own |
//!
//! The process's own libgcc also unwinds through images if the program that loads them defines `_dl_find_object`;
//! before GCC 12 it was `dl_iterate_phdr`. `__tls_get_addr` is bound to [`thread_pointer::tls_get_addr`] automatically.
//!
//! # Thread-locals
//!
//! Each image has a [thread block](Plan::thread_pointer), with which its code runs. It looks like that of the thread
//! that created it, so functions of the process can be called, but they see copies of their thread-locals: a runtime
//! restores the real thread pointer where that matters. The thread-locals of images are in room below the thread
//! pointer that the process does not use; see [`thread_reserve`].
//!
//! # What cannot be loaded
//!
//! Programs linked to fixed addresses or statically, thread-locals accessed through descriptors (`-mtls-dialect=gnu2`),
//! relocations in code: [`LoadError`] tells what to do. `dlopen` in an image is the process's, and does not make a
//! library private.

mod closure;
mod elf;
mod error;
mod file;
mod image;
mod layout;
mod lifecycle;
mod linkage;
mod memory;
mod objects;
mod options;
mod own_locals;
mod plan;
mod process;
mod process_thread;
mod relocate;
mod reserve;
mod resolvers;
mod search;
mod start;
mod symbols;
mod thread_block;
pub mod thread_pointer;

pub use error::{LoadError, MissingSymbol};
pub use layout::{Code, PAGE};
pub use objects::{LoadedObject, find_object, for_each_object, of_program};
pub use options::Options;
pub use plan::{Entry, Module, Plan};
pub use process_thread::Specific;
pub use reserve::{ReserveError, thread_reserve};
