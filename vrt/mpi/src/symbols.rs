//! The symbols that images are bound to: MPI's functions, and replacements for libc's.

use std::collections::HashMap;
use std::sync::OnceLock;

/// The replacements for libc's functions, and MPI's, by name.
static PROVIDED: OnceLock<HashMap<&'static str, usize>> = OnceLock::new();

/// Sets what [`provided`] finds: of several functions with one name, the last.
pub(crate) fn provide(all: impl Iterator<Item = (&'static str, usize)>) {
    let _: &HashMap<_, _> = PROVIDED.get_or_init(|| all.collect());
}

/// The replacement for libc's function of this name; MPI's functions by both their names.
pub(crate) fn provided(name: &str) -> Option<usize> {
    if let Some(address) = vrt_slot::for_images(name) {
        return Some(address as usize);
    }
    let is_mpi = name.starts_with("PMPI_");
    PROVIDED.get()?.get(if is_mpi { &name[1..] } else { name }).copied()
}
