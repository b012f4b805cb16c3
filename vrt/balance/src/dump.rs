//! The load data of a job as files, in the layout of DARMA vt's: `NAME.PE.json` for each PE, a phase for each balancing
//! step.
//!
//! Each phase contains in its `user_defined`: its length, how long its PE was busy and idle, all in seconds, which part
//! of its core it got, and how long it waited each time that another program had the core.

use std::io;
use std::path::{Path, PathBuf};

use crate::json;
use crate::measure::PeLoad;
use lb_strategies::LoadModel;
use lb_strategies::datafile::{Entity, Layout, layouts};

/// A file cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("{}: cannot be written: {source}", file.display())]
pub(crate) struct DumpError {
    file: PathBuf,
    source: io::Error,
}

/// The most steps that are kept, so that a long job does not fill its memory.
const PHASES: usize = 10_000;

/// The data to be written.
#[derive(Debug)]
pub(crate) struct Dump {
    name: PathBuf,
    layouts: Vec<Layout>,
    phases: usize,
}

impl Dump {
    pub(crate) fn new(name: &Path) -> Dump {
        Dump { name: name.to_owned(), layouts: Vec::new(), phases: 0 }
    }

    /// Adds a step. `ranks` are the objects of the model, `home` is the first PE of each rank.
    pub(crate) fn add(
        &mut self,
        model: &LoadModel,
        ranks: &[u32],
        home: impl Fn(u32) -> u32,
        pes: impl Iterator<Item = PeLoad>,
    ) {
        if self.phases == PHASES {
            vrt_slot::report::say(format_args!(
                "note: --lb-dump keeps {PHASES} steps; the later ones are left out"
            ));
        }
        self.phases += 1;
        if self.phases > PHASES {
            return;
        }
        let mut all = layouts(model, self.phases as u64 - 1);
        let name = |entity: &mut Entity| {
            let Some(rank) = entity.seq_id.and_then(|object| ranks.get(object as usize)) else {
                return;
            };
            entity.seq_id = Some(u64::from(*rank));
            entity.home = Some(u64::from(home(*rank)));
        };
        for (layout, pe) in all.iter_mut().zip(pes) {
            for phase in &mut layout.phases {
                let mut note = |name: &str, value: f64| {
                    phase.user_defined.insert(name.to_owned(), value.into());
                };
                note("seconds", pe.seconds);
                note("busy_time", pe.busy);
                note("idle_time", pe.idle);
                note("core_share", pe.share);
                note("core_slice", pe.slice);
            }
        }
        for phase in all.iter_mut().flat_map(|layout| &mut layout.phases) {
            phase.tasks.iter_mut().for_each(|task| name(&mut task.entity));
            for communication in &mut phase.communications {
                name(&mut communication.from);
                name(&mut communication.to);
            }
        }
        if self.layouts.is_empty() {
            self.layouts = all;
            return;
        }
        for (layout, new) in self.layouts.iter_mut().zip(all) {
            layout.phases.extend(new.phases);
        }
    }

    /// Writes the files.
    pub(crate) fn write(&self) -> Result<(), DumpError> {
        for (pe, layout) in self.layouts.iter().enumerate() {
            let file = file_of(&self.name, pe);
            let written = json::text(layout).map_err(io::Error::other);
            let written = written.and_then(|text| std::fs::write(&file, text));
            written.map_err(|source| DumpError { file, source })?;
        }
        Ok(())
    }
}

/// The file of a PE.
pub(crate) fn file_of(name: &Path, pe: usize) -> PathBuf {
    let mut file = name.as_os_str().to_owned();
    file.push(format!(".{pe}.json"));
    file.into()
}
