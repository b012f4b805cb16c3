//! Recorded loads as files, in the JSON layout of [DARMA vt](https://github.com/DARMA-tasking/vt)'s
//! LB data files (its `scripts/LBDatafile_schema.py`), so that vt's tools read our files and
//! `lb-sim` reads vt's.
//!
//! Each PE writes a file `NAME.PE.json`, or `NAME.PE.json.br`, compressed with brotli. A file has
//! phases; a phase has tasks (an object, its PE, its seconds) and communications (who sent how many
//! bytes to whom). [`DataFile::read`] reads one file, [`recorded`] makes a
//! [`LoadModel`](crate::LoadModel) from the files of all PEs, and [`layouts`] makes files from a
//! model.
//!
//! Data that the layout has no field for are stored where programs may add their own:
//!
//! | what | where |
//! |---|---|
//! | an object's coordinates | `coordinates` in a task's `user_defined`: up to three numbers |
//! | an object's live bytes | `task_serialized_bytes` in a task's `user_defined` |
//! | a PE's speed | `speed` in the metadata's `attributes` |
//! | a PE's background load | `background_time` in a phase's `user_defined` |
//! | the cost of a move | `move_time`, `move_time_per_byte` in the attributes of the first PE |
//!
//! An object that has no coordinates but an index of up to three numbers in its collection has that
//! index as its coordinates.

mod layout;
mod layouts;
#[cfg(feature = "datafile")]
mod model;
#[cfg(feature = "datafile")]
mod read;

pub use layout::{
    Communication, Entity, KIND, Layout, Metadata, Phase, PhaseNotes, PhaseSet, SharedNode,
    Subphase, Task, UserDefined, Value,
};
pub use layouts::layouts;
#[cfg(feature = "datafile")]
pub use model::{ObjectId, Recorded, phases, recorded};
#[cfg(feature = "datafile")]
pub use read::{DataFile, DataFileError};

const COORDINATES: &str = "coordinates";
const LIVE_BYTES: &str = "task_serialized_bytes";
const SPEED: &str = "speed";
const BACKGROUND: &str = "background_time";
const MOVE_TIME: &str = "move_time";
const MOVE_TIME_PER_BYTE: &str = "move_time_per_byte";
