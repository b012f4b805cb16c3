//! What checks need: the workspace, programs that cargo builds, Debian packages, MPI libraries.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::ValueEnum;

use crate::job::{command, regex, run, succeed};
use crate::steps::{Error, Steps};

/// The top directory of the repository.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("/"))
}

/// Parses the value of an option that names a directory; it is made absolute.
pub(crate) fn directory(text: &str) -> Result<PathBuf, String> {
    Path::new(text).canonicalize().ok().filter(|it| it.is_dir()).ok_or("no such directory".into())
}

/// The directory that cargo builds in.
pub(crate) fn target() -> PathBuf {
    root().join(env::var_os("CARGO_TARGET_DIR").unwrap_or("target".into()))
}

/// Programs that cargo builds with the profile quick: their directory.
pub(crate) fn build_quick(steps: &mut Steps, options: &str) -> Result<PathBuf, Error> {
    steps.begin("programs");
    succeed(&command(&format!("cargo build --profile quick --quiet --bins {options}")))?;
    Ok(target().join("quick"))
}

/// Whether a program is in the search path.
fn is_there(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

/// Installs a Debian package, as root.
fn install(steps: &Steps, package: &str) -> Result<bool, Error> {
    if !rustix::process::geteuid().is_root() || !is_there("apt-get") {
        return Ok(false);
    }
    steps.say(&format!("   installing {package}"));
    let apt_get = |words: &str| {
        let mut command = command(&format!("apt-get -q {words}"));
        let ended = run(600, command.env("DEBIAN_FRONTEND", "noninteractive"))?;
        ended.failure().inspect(|_| steps.say(&ended.text()));
        Ok(ended.status == 0)
    };
    apt_get("update")?;
    apt_get(&format!("install -y --no-install-recommends {package}"))
}

/// Installs the Debian package of a program if it is missing.
pub(crate) fn need(steps: &Steps, program: &str, package: &str) -> Result<(), Error> {
    if is_there(program) || install(steps, package)? && is_there(program) {
        return Ok(());
    }
    Err(Error::Failed(format!("{program} is missing: install the package {package}")))
}

/// An MPI library whose processes can be PEs.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Library {
    /// Open MPI.
    #[value(name = "openmpi")]
    OpenMpi,
    /// MPICH.
    Mpich,
}

impl Library {
    /// Its name in those of Debian's packages and programs.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Library::OpenMpi => "openmpi",
            Library::Mpich => "mpich",
        }
    }

    /// Installs it if it is missing.
    pub(crate) fn need(self, steps: &Steps) -> Result<(), Error> {
        let name = self.name();
        need(steps, &format!("mpicc.{name}"), &format!("lib{name}-dev"))?;
        let launcher = if name == "openmpi" { "openmpi-bin" } else { name };
        need(steps, &format!("mpirun.{name}"), launcher)?;
        // Debian keeps ldconfig out of an ordinary user's PATH. (libclang-cpp is another library.)
        let has_libclang = || {
            let libraries = succeed(&command("/sbin/ldconfig -p"));
            libraries.map(|it| regex(r"libclang(-[0-9.]+)?\.so").is_match(&it.out))
        };
        if env::var_os("LIBCLANG_PATH").is_some()
            || has_libclang()?
            || install(steps, "libclang-dev")?
        {
            return Ok(());
        }
        Err(Error::Failed("libclang is missing: install the package libclang-dev".into()))
    }

    /// The directory that cargo builds in for it: cargo does not notice when MPICC names another library.
    pub(crate) fn target(self) -> PathBuf {
        target().join(self.name())
    }

    /// `cargo build` for it, with these options.
    pub(crate) fn build(self, options: &str) -> Command {
        let mut cargo = command(&format!("cargo build --quiet --no-default-features {options}"));
        cargo.env("MPICC", format!("mpicc.{}", self.name())).env("CARGO_TARGET_DIR", self.target());
        cargo
    }

    /// The command that starts a program with these options of the launcher, which may be used as root, and for more
    /// processes than cores.
    pub(crate) fn launch(self, options: &str, program: &Command) -> Command {
        let mut launcher = command(&format!("mpirun.{} {options}", self.name()));
        launcher.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        launcher.env("OMPI_MCA_rmaps_base_oversubscribe", "1");
        launcher.arg(program.get_program()).args(program.get_args());
        launcher
    }
}
