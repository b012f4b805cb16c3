//! Ranks that fill a block of their heaps: how much of it lies in pages of 2 MiB?

use std::fs;
use std::process::ExitCode;

use clap::Parser;
use vrt::traits::*;

#[derive(Clone, Debug, Parser)]
struct Arguments {
    #[command(flatten)]
    vrt: vrt::Config,
    /// Bytes of the block
    #[arg(long, default_value_t = 16 << 20)]
    bytes: usize,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let vrt = arguments.vrt.clone();
    vrt::launch(vrt, move || {
        let Some(universe) = vrt::initialize() else {
            eprintln!("pages: ranks are initialised already");
            return;
        };
        let world = universe.world();
        let block = vec![1u8; arguments.bytes];
        world.barrier();
        let large = if world.rank() == 0 { kib_in_large_pages() } else { 0 };
        world.barrier();
        assert!(block.iter().all(|byte| *byte == 1), "the block has changed");
        if world.rank() == 0 {
            println!("{large} KiB of this PE's memory are in large pages");
        }
    })
}

/// What this process has mapped of shared memory in large pages.
fn kib_in_large_pages() -> u64 {
    let maps = fs::read_to_string("/proc/self/smaps").unwrap_or_default();
    maps.lines()
        .filter_map(|line| line.strip_prefix("ShmemPmdMapped:")?.trim().strip_suffix(" kB"))
        .filter_map(|kib| kib.parse::<u64>().ok())
        .sum()
}
