//! Measures the cost of images: `cargo run --release -p vrt-load --example measure [IMAGES]
//! [PROGRAM...]`.
//!
//! Without a program, small ones are compiled. Images are in shared memory, as in a runtime that
//! forks; code is mapped. Times are for one image, including the first touch of its pages (*fill*)
//! and without it (*again*); memory is what an image keeps resident besides its code.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;
use std::{io, ptr};

use vrt_load::{Options, PAGE, Plan, thread_pointer, thread_reserve};

const C: &str = "#include <stdio.h>\nint main(void) { printf(\"hello\\n\"); return 0; }";
const CPP: &str = "#include <iostream>\nint main() { std::cout << \"hello\\n\"; }";

/// The cases: a title, the program's source and compiler, libraries of the process.
const CASES: [(&str, &str, &str, &[&str]); 4] = [
    ("C", C, "cc", &["libc.so", "libm.so", "libgcc_s.so"]),
    ("C, own libc", C, "cc", &[]),
    ("C++, own libstdc++", CPP, "c++", &["libc.so", "libm.so", "libgcc_s.so"]),
    ("C++, own everything", CPP, "c++", &[]),
];

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let images = arguments.next().map_or(Ok(1000), |images| images.parse())?;
    println!(
        "{:<22} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>9} {:>9} {:>9}",
        "us, KiB, of an image",
        "open ms",
        "map",
        "fill",
        "again",
        "copy",
        "memory",
        "tables",
        "mappings",
        "addresses"
    );
    let programs: Vec<_> = arguments.map(PathBuf::from).collect();
    for program in &programs {
        let title = program.file_name().unwrap_or_default().to_string_lossy();
        measure(&title, program, &["libc.so", "libm.so", "libgcc_s.so"], images)?;
        measure(&format!("{title}, own libc"), program, &[], images)?;
    }
    if programs.is_empty() {
        let folder = tempfile::tempdir()?;
        for (title, source, compiler, shared) in CASES {
            let program = compile(folder.path(), compiler, source)?;
            measure(title, &program, shared, images)?;
        }
    }
    Ok(())
}

fn compile(folder: &Path, compiler: &str, source: &str) -> Result<PathBuf, Box<dyn Error>> {
    let (text, program) = (folder.join("program.cc"), folder.join("program"));
    std::fs::write(&text, source)?;
    let language = if compiler == "cc" { "c" } else { "c++" };
    let mut command = Command::new(compiler);
    command.args(["-O2", "-fPIE", "-pie", "-x", language]).arg(&text).arg("-o").arg(&program);
    match command.status()?.success() {
        true => Ok(program),
        false => Err(format!("{command:?} fails").into()),
    }
}

fn measure(
    title: &str,
    program: &Path,
    shared: &[&str],
    images: usize,
) -> Result<(), Box<dyn Error>> {
    let options = Options {
        provided: &|name| match name {
            // Nothing runs here, but it has to be bound.
            "__tls_get_addr" => Some(thread_pointer::tls_get_addr as *const () as usize),
            _ => None,
        },
        is_provided: &|_| false,
        refused: &|_| None,
        shared: &|name| shared.iter().any(|prefix| name.starts_with(prefix)),
        thread_reserve: thread_reserve()?,
    };
    let begun = Instant::now();
    let plan = Plan::open(program, &options)?;
    let open = begun.elapsed();
    let stride = plan.size().next_multiple_of(plan.alignment());
    let memory = Memory::map(images * stride + plan.alignment())?;
    let first = memory.start.next_multiple_of(plan.alignment());
    let bases = || (0..images).map(|image| first + image * stride);

    let before = [mappings()?, table_bytes()?];
    let begun = Instant::now();
    for base in bases() {
        // SAFETY: an image's part of the memory.
        unsafe { plan.map_code(base)? };
    }
    let map = begun.elapsed();
    let mapped = mappings()? - before[0];
    let [fill, again] = [(); 2].map(|()| {
        let begun = Instant::now();
        for base in bases() {
            // SAFETY: as above. The second time some words are wrong, but nothing runs.
            unsafe { plan.fill(base) };
        }
        begun.elapsed()
    });
    let tables = table_bytes()? - before[1];
    let resident = resident(&plan, first)?;

    let copies = images.min(100);
    let memory = Memory::map(stride)?;
    let begun = Instant::now();
    for _ in 0..copies {
        // SAFETY: memory for one image.
        unsafe { plan.copy_code(memory.start) };
    }
    let copy = begun.elapsed() / copies as u32;

    let each = |time: std::time::Duration| time.as_secs_f64() * 1e6 / images as f64;
    println!(
        "{:<22} {:>8.1} {:>8.1} {:>8.1} {:>8.1} {:>8.1} {:>8} {:>9.1} {:>9} {:>9}",
        title,
        open.as_secs_f64() * 1e3,
        each(map),
        each(fill),
        each(again),
        copy.as_secs_f64() * 1e6,
        resident >> 10,
        tables as f64 / images as f64 / 1024.0,
        format!("{}={}", plan.mappings(), mapped.div_ceil(images)),
        plan.address_count(),
    );
    Ok(())
}

/// Bytes of an image's data that are resident.
fn resident(plan: &Plan, base: usize) -> io::Result<usize> {
    let mut bytes = 0;
    for data in plan.data() {
        let mut pages = vec![0u8; data.len() / PAGE];
        let start = (base + data.start) as *mut libc::c_void;
        // SAFETY: a part of an image, and a byte for each of its pages.
        if unsafe { libc::mincore(start, data.len(), pages.as_mut_ptr()) } != 0 {
            return Err(io::Error::last_os_error());
        }
        bytes += pages.iter().filter(|page| **page & 1 != 0).count() * PAGE;
    }
    Ok(bytes)
}

fn mappings() -> io::Result<usize> {
    Ok(std::fs::read_to_string("/proc/self/maps")?.lines().count())
}

/// Bytes of page tables.
fn table_bytes() -> Result<usize, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmPTE:"));
    let kibibytes = line.and_then(|line| line.split_whitespace().next()).unwrap_or("0");
    Ok(kibibytes.parse::<usize>()? << 10)
}

/// Shared memory.
struct Memory {
    start: usize,
    len: usize,
}

impl Memory {
    fn map(len: usize) -> io::Result<Memory> {
        // SAFETY: a new mapping.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        match start {
            libc::MAP_FAILED => Err(io::Error::last_os_error()),
            start => Ok(Memory { start: start as usize, len }),
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the mapping that `map` made, with what was mapped over it.
        unsafe { libc::munmap(self.start as *mut libc::c_void, self.len) };
    }
}
