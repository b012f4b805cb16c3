//! Reading and writing files, plain or through brotli (feature `datafile`).

use std::{
    fs,
    io::{Read, Write},
    path::{Path, PathBuf},
};

use thiserror::Error;

use super::{Entity, KIND, Layout, ObjectId};
use crate::model::LoadModelError;

/// A file that has been read and whose layout is valid.
#[derive(Clone, Debug, PartialEq)]
pub struct DataFile {
    path: PathBuf,
    layout: Layout,
}

impl DataFile {
    /// Reads a file, through brotli if its name ends in `.br`.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, is not compressed as its name says, or does not follow the
    /// layout.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, DataFileError> {
        Self::read_from(path.as_ref())
    }

    fn read_from(path: &Path) -> Result<Self, DataFileError> {
        let file = || path.display().to_string();
        let mut text =
            fs::read(path).map_err(|source| DataFileError::Read { file: file(), source })?;
        if is_compressed(path) {
            let mut plain = vec![];
            brotli::Decompressor::new(text.as_slice(), BUFFER)
                .read_to_end(&mut plain)
                .map_err(|source| DataFileError::Compression { file: file(), source })?;
            text = plain;
        }
        Self::parse(path, &text)
    }

    /// Parses `text` as the content of the file `path`, uncompressed.
    ///
    /// # Errors
    ///
    /// If `text` does not follow the layout.
    pub fn parse(path: impl AsRef<Path>, text: &[u8]) -> Result<Self, DataFileError> {
        Self::of_text(path.as_ref().to_owned(), text)
    }

    /// This part is compiled once, not in each crate that uses another path type.
    fn of_text(path: PathBuf, text: &[u8]) -> Result<Self, DataFileError> {
        let mut json = serde_json::Deserializer::from_slice(text);
        let wrong = |place: String, error: serde_json::Error| DataFileError::Layout {
            file: path.display().to_string(),
            place,
            error,
        };
        let layout: Layout = serde_path_to_error::deserialize(&mut json)
            .map_err(|error| wrong(place(error.path()), error.into_inner()))?;
        json.end().map_err(|error| wrong("the end".to_owned(), error))?;
        let file = Self { path, layout };
        file.check()?;
        Ok(file)
    }

    /// The path that the file was read from.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its contents.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The PE that wrote the file: by its metadata, or by a name such as `data.3.json`.
    #[must_use]
    pub fn rank(&self) -> Option<u64> {
        let name = || {
            let name = self.path.file_name()?.to_str()?;
            let name = name.strip_suffix(".br").unwrap_or(name).strip_suffix(".json")?;
            name.rsplit_once('.')?.1.parse().ok()
        };
        self.layout.metadata.as_ref().and_then(|it| it.rank).or_else(name)
    }

    /// Checks what the types of the layout do not enforce.
    fn check(&self) -> Result<(), DataFileError> {
        let kinds = [
            ("type", self.layout.kind.as_ref()),
            ("metadata.type", self.layout.metadata.as_ref().and_then(|it| it.kind.as_ref())),
        ];
        for (place, kind) in kinds {
            if let Some(kind) = kind.filter(|kind| *kind != KIND) {
                return Err(self.wrong(place, format!("`{kind}`"), KIND));
            }
        }
        for (p, phase) in self.layout.phases.iter().enumerate() {
            for (t, task) in phase.tasks.iter().enumerate() {
                let place = || format!("phases[{p}].tasks[{t}]");
                self.check_time(&format!("{}.time", place()), task.time)?;
                let entity = format!("{}.entity", place());
                self.check_entity(&entity, &task.entity)?;
                if task.entity.home.is_none() || task.entity.migratable.is_none() {
                    let found = "no `home` or no `migratable`".to_owned();
                    return Err(self.wrong(&entity, found, "both, in a task"));
                }
            }
            for (c, it) in phase.communications.iter().enumerate() {
                let place = format!("phases[{p}].communications[{c}]");
                self.check_entity(&format!("{place}.from"), &it.from)?;
                self.check_entity(&format!("{place}.to"), &it.to)?;
                if it.bytes < 0.0 {
                    let found = it.bytes.to_string();
                    return Err(self.wrong(&format!("{place}.bytes"), found, "0 or more"));
                }
            }
        }
        Ok(())
    }

    fn check_time(&self, place: &str, seconds: f64) -> Result<(), DataFileError> {
        let sound = seconds.is_finite() && seconds >= 0.0;
        sound.then_some(()).ok_or_else(|| self.wrong(place, seconds.to_string(), "0 s or more"))
    }

    fn check_entity(&self, place: &str, entity: &Entity) -> Result<(), DataFileError> {
        if entity.id.is_none() && entity.seq_id.is_none() {
            return Err(self.wrong(place, "neither".to_owned(), "`id` or `seq_id`"));
        }
        let by_number = entity.seq_id.is_some() && entity.id.is_none();
        if by_number && entity.migratable == Some(true) && entity.collection_id.is_none() {
            let expected = "a `collection_id` beside the `seq_id` of an object that can move";
            return Err(self.wrong(place, "none".to_owned(), expected));
        }
        Ok(())
    }

    pub(super) fn wrong(&self, place: &str, found: String, expected: &str) -> DataFileError {
        DataFileError::Content {
            file: self.path.display().to_string(),
            place: place.to_owned(),
            found,
            expected: expected.to_owned(),
        }
    }
}

impl Layout {
    /// Writes the layout to a file, through brotli if the name ends in `.br`.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<(), DataFileError> {
        self.write_to(path.as_ref())
    }

    fn write_to(&self, path: &Path) -> Result<(), DataFileError> {
        let write = || {
            let mut file = std::io::BufWriter::new(fs::File::create(path)?);
            if is_compressed(path) {
                let mut brotli = brotli::CompressorWriter::new(&mut file, BUFFER, QUALITY, WINDOW);
                serde_json::to_writer(&mut brotli, self)?;
                brotli.flush()?;
            } else {
                serde_json::to_writer_pretty(&mut file, self)?;
                file.write_all(b"\n")?;
            }
            file.flush()
        };
        write().map_err(|source| DataFileError::Write { file: path.display().to_string(), source })
    }
}

/// Buffer size of brotli in bytes.
const BUFFER: usize = 1 << 16;
/// Effort of compression, 0 to 11: the result is a few percent larger than with 11, and many times
/// faster.
const QUALITY: u32 = 5;
/// Base-2 logarithm of the distance over which brotli finds repetitions.
const WINDOW: u32 = 22;

fn is_compressed(path: &Path) -> bool {
    path.extension().is_some_and(|it| it == "br")
}

fn place(path: &serde_path_to_error::Path) -> String {
    let place = path.to_string();
    if place == "." { "the top".to_owned() } else { place }
}

/// What is wrong with a file, or with the files of several PEs together.
#[derive(Debug, Error)]
pub enum DataFileError {
    /// The file cannot be read.
    #[error("{file}: cannot be read: {source}")]
    Read {
        /// The file.
        file: String,
        /// The reason.
        source: std::io::Error,
    },
    /// The file cannot be written.
    #[error("{file}: cannot be written: {source}")]
    Write {
        /// The file.
        file: String,
        /// The reason.
        source: std::io::Error,
    },
    /// The name ends in `.br`, but brotli cannot read the file.
    #[error("{file}: expected data compressed with brotli, as the name says: {source}")]
    Compression {
        /// The file.
        file: String,
        /// The error of brotli.
        source: std::io::Error,
    },
    /// It is not JSON, or does not follow the layout.
    #[error("{file}: at {place}: {error}")]
    Layout {
        /// The file.
        file: String,
        /// The path to the value.
        place: String,
        /// What was found, what was expected, line and column.
        error: serde_json::Error,
    },
    /// A value is valid for its type but not for the layout.
    #[error("{file}: at {place}: found {found}, expected {expected}")]
    Content {
        /// The file.
        file: String,
        /// The path to the value.
        place: String,
        /// What was found.
        found: String,
        /// What was expected.
        expected: String,
    },
    /// The phase does not exist.
    #[error("{file}: has no phase {phase}; it has {known}")]
    NoPhase {
        /// The file.
        file: String,
        /// The requested phase.
        phase: u64,
        /// The existing phases.
        known: String,
    },
    /// No files were given.
    #[error("no files: expected one for each PE")]
    NoFiles,
    /// The PE of a file is unknown.
    #[error("{file}: expected a rank in the metadata or in the name, as in data.3.json")]
    NoRank {
        /// The file.
        file: String,
    },
    /// A PE has no file.
    #[error("no file of rank {rank}: expected one for each rank from 0 to {last}")]
    MissingRank {
        /// The PE.
        rank: u64,
        /// The last PE that has a file.
        last: u64,
    },
    /// Two files belong to the same PE.
    #[error("{file}: is of rank {rank}, and so is {other}")]
    SameRank {
        /// One file.
        file: String,
        /// The other file.
        other: String,
        /// The PE.
        rank: u64,
    },
    /// An object that can move is on two PEs at once.
    #[error("{file}: {object} is on node {node}, but by another task of the phase on node {other}")]
    TwoPlaces {
        /// The file.
        file: String,
        /// The object.
        object: ObjectId,
        /// Its PE in this file.
        node: u64,
        /// Its PE before.
        other: u64,
    },
    /// The values are not a valid load model.
    #[error("the files' values do not fit: {0}")]
    Model(#[from] LoadModelError),
}
