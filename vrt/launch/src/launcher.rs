//! Whether the PEs were started by an MPI launcher.

use crate::config::{Config, ConfigError, Net};

/// Variables that launchers set for the processes they start: those of Open MPI, MPICH and its
/// relatives, and resource managers that speak PMI or PMIx.
const SIGNS: [&str; 4] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMI_RANK", "PMIX_RANK"];

/// Set by `vrtrun`.
const STARTED: &str = "VRTRUN";

/// Whether this process prints what must be printed only once: it is alone, or the first one of a
/// launcher.
pub fn is_first_process() -> bool {
    const NUMBERS: [&str; 3] = ["OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"];
    let number = NUMBERS.iter().find_map(|name| std::env::var(name).ok());
    number.is_none_or(|number| number.trim() == "0")
}

/// Whether this process is a PE that a launcher has started.
///
/// # Errors
/// It is, or is meant to be, and was built without MPI.
pub(super) fn starts_pes(config: &Config) -> Result<bool, ConfigError> {
    let sign = SIGNS.into_iter().find(|sign| std::env::var_os(sign).is_some());
    let by_launcher = match config.net() {
        Some(Net::Local) => false,
        Some(Net::Mpi) => true,
        None => sign.is_some(),
    };
    if by_launcher && !cfg!(feature = "mpi") {
        let why = match (config.net(), sign) {
            (None, Some(sign)) => {
                format!("an MPI launcher has started this process ({sign} is set)")
            }
            _ => "--net mpi".to_owned(),
        };
        let advice = match vrt_slot::image::plan() {
            // The program is as it is; what was built without MPI is what loads it.
            Some(_) => {
                "this vrtrun was built without MPI. On one machine no launcher is needed: \
                 `vrtrun --ranks N PROGRAM`; for several install vrtrun with `--features mpi` and start \
                 `mpirun -n PES vrtrun --ranks N PROGRAM`"
            }
            None => {
                "this program was built without MPI; build it with `--features mpi`, or give \
                 --net local to run a job of its own"
            }
        };
        return Err(ConfigError::Option(format!("{why}: {advice}")));
    }
    Ok(by_launcher)
}

/// The variable and value that request a job of several ranks, for a program that never became one.
pub(super) fn asks_for_job() -> Option<(&'static str, String)> {
    const VARIABLES: [&str; 5] =
        [STARTED, "VRT_RANKS", "VRT_PES", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"];
    VARIABLES.into_iter().find_map(|name| {
        let value = std::env::var(name).ok()?;
        let is_one = name != STARTED && value.trim().parse() == Ok(1);
        (!is_one && !value.is_empty()).then_some((name, value))
    })
}
