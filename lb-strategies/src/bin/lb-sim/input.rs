//! Load models from files or from cases, and load models as files.

use std::{
    fs,
    path::{Path, PathBuf},
};

use lb_strategies::{
    LoadModel,
    datafile::{DataFile, layouts, phases, recorded},
    replay::{self, RecordedPhase},
    scale::{scale_objects, scale_pes},
};

use crate::options::{Failure, Loads, Source};
use crate::traces;

/// A load model and its name.
pub(crate) struct Input {
    pub title: String,
    pub model: LoadModel,
    /// Number of communications in the files that the model cannot represent.
    pub left_out: usize,
}

pub(crate) fn model(source: &Source) -> Result<Input, Failure> {
    let mut input = match &source.loads {
        Loads::Generated { case, size } => Input {
            title: format!("case {}, seed {}", case.name, size.seed),
            model: case.model(*size)?,
            left_out: 0,
        },
        Loads::Recorded { files, phase } => read(files, *phase)?,
    };
    if let Some(pieces) = source.scale_objects {
        input.model = scale_objects(&input.model, pieces);
        input.title += &format!(", objects cut in {pieces}");
    }
    if let Some(factor) = source.scale_pes {
        input.model = scale_pes(&input.model, factor);
        input.title += &format!(", {factor} times the PEs");
    }
    Ok(input)
}

/// All phases of recorded files; a trace is cut into phases of this many seconds.
pub(crate) fn phases_of(paths: &[PathBuf], cut: f64) -> Result<Vec<RecordedPhase>, Failure> {
    if let [path] = paths
        && traces::is_trace(path)
    {
        return traces::phases_of(path, cut);
    }
    let all = replay::phases(&read_files(paths)?)?;
    if all.is_empty() { Err(Failure::NoPhase) } else { Ok(all) }
}

fn read_files(paths: &[PathBuf]) -> Result<Vec<DataFile>, Failure> {
    let mut files = vec![];
    for path in paths {
        if path.is_dir() {
            for path in in_directory(path)? {
                files.push(DataFile::read(path)?);
            }
        } else if traces::is_trace(path) {
            return Err(Failure::TraceAmongFiles { file: path.display().to_string() });
        } else {
            files.push(DataFile::read(path)?);
        }
    }
    Ok(files)
}

fn read(paths: &[PathBuf], phase: Option<u64>) -> Result<Input, Failure> {
    let files = read_files(paths)?;
    let phase = phase.or_else(|| phases(&files).last().copied()).ok_or(Failure::NoPhase)?;
    let found = recorded(&files, phase)?;
    let title = match paths {
        [only] => format!("{}, phase {phase}", only.display()),
        _ => format!("{} files, phase {phase}", files.len()),
    };
    Ok(Input { title, model: found.model, left_out: found.left_out })
}

fn in_directory(directory: &Path) -> Result<Vec<PathBuf>, Failure> {
    let wrong = |error| Failure::Directory { file: directory.display().to_string(), error };
    let mut paths = vec![];
    for entry in fs::read_dir(directory).map_err(wrong)? {
        let entry = entry.map_err(wrong)?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.ends_with(".json") || name.ends_with(".json.br") {
            paths.push(entry.path());
        }
    }
    if paths.is_empty() {
        return Err(Failure::EmptyDirectory { directory: directory.display().to_string() });
    }
    paths.sort();
    Ok(paths)
}

/// Writes `data.PE.json` for each PE into `directory`, which is created if necessary.
pub(crate) fn save(model: &LoadModel, directory: &Path) -> Result<(), Failure> {
    let wrong = |error| Failure::Directory { file: directory.display().to_string(), error };
    fs::create_dir_all(directory).map_err(wrong)?;
    for (pe, layout) in layouts(model, 0).into_iter().enumerate() {
        layout.write(directory.join(format!("data.{pe}.json")))?;
    }
    Ok(())
}
