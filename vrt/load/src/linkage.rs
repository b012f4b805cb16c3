//! What a module says about the modules that it needs.

use std::path::{Path, PathBuf};

/// A module's information about the modules that it needs.
#[derive(Default)]
pub(crate) struct Linkage {
    pub path: PathBuf,
    /// Its own name, by which other modules know it.
    pub name: String,
    pub needed: Vec<String>,
    /// `DT_RUNPATH`.
    pub run_path: Vec<String>,
    /// `DT_RPATH`, which also applies to the modules that this one requires.
    pub old_run_path: Vec<String>,
    pub without_system_folders: bool,
    /// Names under which others have requested it.
    pub asked_for_as: Vec<String>,
    /// The module that required it; `None` for the program.
    pub brought_by: Option<usize>,
}

impl Linkage {
    /// The directories of a run path, which are separated by colons.
    pub(crate) fn expand(&self, run_path: &[String]) -> Vec<PathBuf> {
        let origin = self.origin();
        let folders = run_path.iter().flat_map(|path| path.split(':'));
        let folders = folders.filter(|folder| !folder.is_empty());
        folders
            .map(|folder| {
                let origin = origin.to_string_lossy();
                let folder = folder.replace("${ORIGIN}", &origin).replace("$ORIGIN", &origin);
                PathBuf::from(folder)
            })
            .collect()
    }

    /// The directory of the module.
    fn origin(&self) -> PathBuf {
        let path = std::path::absolute(&self.path).unwrap_or_else(|_| self.path.clone());
        path.parent().map(Path::to_path_buf).unwrap_or_default()
    }
}
