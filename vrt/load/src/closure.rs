//! A program and all libraries that its images need a copy of.

use std::path::Path;

use object::elf;
use rustc_hash::FxHashSet;

use crate::elf::Elf;
use crate::file::MappedFile;
use crate::linkage::Linkage;
use crate::search::Search;
use crate::{LoadError, Options, process, symbols};

/// The private modules in the order of symbol lookup: breadth first, beginning with the program.
pub(crate) struct Closure {
    pub files: Vec<MappedFile>,
    pub linkages: Vec<Linkage>,
    /// Which modules each one needs, by number.
    pub dependencies: Vec<Vec<usize>>,
}

impl Closure {
    /// Finds and opens all modules; loads the libraries that the process shares with all images.
    pub(crate) fn open(program: &Path, options: &Options) -> Result<Closure, LoadError> {
        let search = Search::new();
        let mut closure =
            Closure { files: Vec::new(), linkages: Vec::new(), dependencies: Vec::new() };
        // `$ORIGIN` of a program is the folder of the file itself, not of a link to it.
        let path = program.canonicalize().unwrap_or_else(|_| program.to_path_buf());
        closure.add(MappedFile::open(&path)?, None)?;
        let mut of_process = FxHashSet::default();
        let mut module = 0;
        while module < closure.files.len() {
            for library in closure.linkages[module].needed.clone() {
                closure.need(&library, module, options, &search, &mut of_process)?;
            }
            module += 1;
        }
        Ok(closure)
    }

    /// Makes sure that a library that a module needs is available.
    fn need(
        &mut self,
        library: &str,
        module: usize,
        options: &Options,
        search: &Search,
        of_process: &mut FxHashSet<String>,
    ) -> Result<(), LoadError> {
        let needed_by = || self.linkages[module].path.clone();
        let file_name = library.rsplit('/').next().unwrap_or(library);
        if (options.is_provided)(file_name) || process::is_loader(file_name) {
            return Ok(());
        }
        if let Some(reason) = (options.refused)(file_name) {
            let library = library.to_string();
            return Err(LoadError::Refused { library, needed_by: needed_by(), reason });
        }
        if (options.shared)(file_name) {
            if of_process.insert(library.to_string()) && !process::has(library) {
                let file = search.find(library, &self.chain(module))?;
                share(&file, options).map_err(|message| {
                    let library = library.to_string();
                    LoadError::SharedLibrary { library, needed_by: needed_by(), message }
                })?;
            }
            return Ok(());
        }
        let known = |linkage: &Linkage| {
            linkage.name == library || linkage.asked_for_as.iter().any(|name| name == library)
        };
        let number = match self.linkages.iter().position(known) {
            Some(number) => number,
            None => {
                let file = search.find(library, &self.chain(module))?;
                let same = self.files.iter().position(|known| known.identity() == file.identity());
                let number = match same {
                    Some(number) => number,
                    None => self.add(file, Some(module))?,
                };
                self.linkages[number].asked_for_as.push(library.to_string());
                number
            }
        };
        if !self.dependencies[module].contains(&number) {
            self.dependencies[module].push(number);
        }
        Ok(())
    }

    /// A module, and the chain of modules that required it.
    fn chain(&self, module: usize) -> Vec<&Linkage> {
        let next = |linkage: &&Linkage| linkage.brought_by.map(|number| &self.linkages[number]);
        std::iter::successors(Some(&self.linkages[module]), next).collect()
    }

    fn add(&mut self, file: MappedFile, brought_by: Option<usize>) -> Result<usize, LoadError> {
        let module = Elf::parse(&file)?;
        self.linkages.push(Linkage {
            path: file.path().to_path_buf(),
            name: module.named(elf::DT_SONAME)?.pop().unwrap_or_default(),
            needed: module.named(elf::DT_NEEDED)?,
            run_path: module.named(elf::DT_RUNPATH)?,
            old_run_path: module.named(elf::DT_RPATH)?,
            without_system_folders: module.has_flag_1(elf::DF_1_NODEFLIB),
            asked_for_as: Vec::new(),
            brought_by,
        });
        self.files.push(file);
        self.dependencies.push(Vec::new());
        Ok(self.files.len() - 1)
    }

    /// The order in which constructors run: dependencies before the modules that need them; among independent modules
    /// the last one found comes first, as with the system's loader.
    pub(crate) fn initialization_order(&self) -> Vec<usize> {
        let mut order = Vec::with_capacity(self.files.len());
        let mut seen = vec![false; self.files.len()];
        for module in (0..self.files.len()).rev() {
            self.visit(module, &mut seen, &mut order);
        }
        order
    }

    fn visit(&self, module: usize, seen: &mut [bool], order: &mut Vec<usize>) {
        if std::mem::replace(&mut seen[module], true) {
            return;
        }
        for dependency in &self.dependencies[module] {
            self.visit(*dependency, seen, order);
        }
        order.push(module);
    }
}

/// Loads a library for the process, which has nothing of what the caller provides for images. The error is the reason
/// for a failure.
fn share(file: &MappedFile, options: &Options) -> Result<(), String> {
    const USES_WHAT_IS_PROVIDED: &str =
        "it uses what each rank has of its own: it cannot be shared by ranks";
    let text = |error: LoadError| error.to_string();
    let library = Elf::parse(file).map_err(text)?;
    let needed = library.named(elf::DT_NEEDED).map_err(text)?;
    if needed.iter().any(|needed| (options.is_provided)(needed))
        || symbols::refers_to_refused(&library, options).map_err(text)?
    {
        return Err(USES_WHAT_IS_PROVIDED.to_owned());
    }
    process::load(file.path())?;
    // What it needs itself the system's loader has looked for.
    match process::libraries().iter().any(|loaded| (options.is_provided)(loaded)) {
        true => Err(USES_WHAT_IS_PROVIDED.to_owned()),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_come_first_and_circles_end() {
        let file = || MappedFile::open(Path::new("/proc/self/exe")).unwrap();
        let closure = |dependencies: &[&[usize]]| Closure {
            files: dependencies.iter().map(|_| file()).collect(),
            linkages: Vec::new(),
            dependencies: dependencies.iter().map(|list| list.to_vec()).collect(),
        };
        let order = |dependencies| closure(dependencies).initialization_order();
        // A program with two libraries that both need a third.
        assert_eq!(order(&[&[1, 2], &[3], &[3], &[]]), [3, 2, 1, 0]);
        // The second needs the first.
        assert_eq!(order(&[&[1, 2], &[], &[1]]), [1, 2, 0]);
        // Two that need each other.
        assert_eq!(order(&[&[1], &[2], &[1]]), [1, 2, 0]);
    }
}
