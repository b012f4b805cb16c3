//! Runs the programs of a row in turn.

use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::Error;
use super::rows::{Program, Reference, Row, Unit};
use crate::measure::{Measured, median};

/// Where the programs are, and how often they run.
pub(super) struct Runner {
    pub vrt_bench: PathBuf,
    /// The same, built with the MPI transport.
    pub vrt_bench_on_mpi: PathBuf,
    pub c_programs: PathBuf,
    /// The C programs, built by `vrtcc`.
    pub images: PathBuf,
    pub vrtrun: PathBuf,
    pub pairs: u32,
    pub is_quick: bool,
    pub with_open_mpi: bool,
}

/// What the runs of a row measured.
#[derive(Debug)]
pub(super) struct Figures {
    pub row: Row,
    /// Seconds of an operation, or bytes of a rank, in each run of vrt's program.
    pub vrt: Vec<f64>,
    /// The same of the other one.
    pub reference: Vec<f64>,
}

impl Figures {
    /// The median of vrt's seconds, or bytes.
    pub fn vrt_seconds(&self) -> f64 {
        median(self.vrt.clone())
    }

    /// The median of the other program's seconds.
    pub fn reference_seconds(&self) -> Option<f64> {
        (!self.reference.is_empty()).then(|| median(self.reference.clone()))
    }

    /// The median of the pairs' ratios of seconds, ours by theirs.
    pub fn ratio(&self) -> Option<f64> {
        let ratios: Vec<f64> =
            (self.vrt.iter()).zip(&self.reference).map(|(ours, theirs)| ours / theirs).collect();
        (!ratios.is_empty()).then(|| median(ratios))
    }

    /// Whether the target is met, if that can be said.
    pub fn is_met(&self) -> Option<bool> {
        self.row.target.is_met(self.vrt_seconds(), self.ratio())
    }
}

/// What a row shows of what a program measured; not a number if it did not measure that.
fn value(unit: Unit, measured: &Measured) -> f64 {
    match unit {
        Unit::Time | Unit::Bandwidth(_) => measured.seconds,
        Unit::Memory => measured.bytes_per_rank.unwrap_or(f64::NAN),
    }
}

/// Seconds after which a program is given up.
const TIME_LIMIT: u64 = 120;

impl Runner {
    /// Runs the programs of a row.
    ///
    /// # Errors
    ///
    /// When a program fails, or two solvers disagree.
    pub fn run(&self, row: &Row) -> Result<Figures, Error> {
        let mut figures = Figures { row: row.clone(), vrt: Vec::new(), reference: Vec::new() };
        for _ in 0..self.pairs {
            let ours = run_program(self.vrt_command(&row.vrt))?;
            figures.vrt.push(value(row.unit, &ours));
            let reference = match &row.reference {
                Reference::OpenMpi { program, processes } if self.with_open_mpi => {
                    self.open_mpi_command(program, *processes)
                }
                Reference::Vrt(program) => self.vrt_command(program),
                Reference::OpenMpi { .. } | Reference::None => continue,
            };
            let theirs = run_program(reference)?;
            figures.reference.push(value(row.unit, &theirs));
            if !solved_alike(&ours, &theirs) {
                return Err(Error::Disagree {
                    row: row.name,
                    ours: result(&ours),
                    theirs: result(&theirs),
                });
            }
        }
        Ok(figures)
    }

    fn arguments(&self, program: &Program) -> std::str::Split<'static, char> {
        if self.is_quick { program.quick.split(' ') } else { program.full.split(' ') }
    }

    fn vrt_command(&self, program: &Program) -> Command {
        if program.through_mpi {
            let mut command = mpirun_for(2, program);
            command.arg(&self.vrt_bench_on_mpi).args(self.arguments(program));
            return command;
        }
        let mut arguments = self.arguments(program);
        if let Some(options) = program.vrtrun {
            let mut command = Command::new(&self.vrtrun);
            command.args(options.split(' '));
            command.arg(self.images.join(arguments.next().unwrap_or_default())).args(arguments);
            return command;
        }
        let mut command = Command::new(&self.vrt_bench);
        command.args(arguments);
        command
    }

    fn open_mpi_command(&self, program: &Program, processes: u32) -> Command {
        let mut command = mpirun_for(processes, program);
        let mut arguments = self.arguments(program);
        command.arg(self.c_programs.join(arguments.next().unwrap_or_default()));
        command.args(arguments);
        command
    }
}

/// Open MPI's launcher, for so many processes of a row's program.
fn mpirun_for(processes: u32, program: &Program) -> Command {
    let mut command = mpirun(processes);
    if program.over_tcp {
        command.args(["--mca", "btl", "tcp,self"]);
    }
    command
}

/// Open MPI's launcher, for so many processes.
pub(crate) fn mpirun(processes: u32) -> Command {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut command = Command::new("mpirun");
    command.arg("--allow-run-as-root");
    if processes as usize <= cores {
        command.args(["--bind-to", "core"]);
    } else {
        command.args(["--oversubscribe", "--bind-to", "none"]);
    }
    command.args(["-n", &processes.to_string()]);
    command
}

/// The residual and the checksum that a solver printed.
fn result(measured: &Measured) -> String {
    format!("{:?} {:?}", measured.residual, measured.checksum)
}

/// Whether two programs computed the same bits; true of those that are no
/// solvers.
fn solved_alike(ours: &Measured, theirs: &Measured) -> bool {
    (ours.residual, &ours.checksum) == (theirs.residual, &theirs.checksum)
}

/// Runs a program to its end and reads the line it prints.
pub(crate) fn run_program(mut command: Command) -> Result<Measured, Error> {
    let shown = show(&command);
    let printed = output(&mut command)?;
    (printed.lines().rev())
        .find_map(|line| serde_json::from_str(line).ok())
        .ok_or(Error::Printed { command: shown, printed })
}

/// The standard output of a program that ends well within the time limit.
pub(super) fn output(command: &mut Command) -> Result<String, Error> {
    run_to_end(command).map(|told| told.printed)
}

/// What a program that succeeded has written.
pub(crate) struct Told {
    /// To its standard output.
    pub(crate) printed: String,
    /// To its standard error.
    pub(crate) said: String,
}

/// What a program writes that ends well within the time limit.
pub(crate) fn run_to_end(command: &mut Command) -> Result<Told, Error> {
    let shown = show(command);
    let start_error = |cause| Error::Start {
        program: command.get_program().to_string_lossy().into_owned(),
        cause,
    };
    let mut child = Command::new(command.get_program())
        .args(command.get_args())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(start_error)?;
    let printed = read_aside(child.stdout.take());
    let said = read_aside(child.stderr.take());
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().map_err(start_error)? {
            break status;
        }
        if start.elapsed() > Duration::from_secs(TIME_LIMIT) {
            // It may just have ended; then there is nothing to stop.
            let _ = child.kill();
            let _ = child.wait();
            return Err(Error::TimedOut { command: shown, seconds: TIME_LIMIT });
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let (printed, said) = (printed.join().unwrap_or_default(), said.join().unwrap_or_default());
    if status.success() {
        Ok(Told { printed, said })
    } else {
        Err(Error::Failed { command: shown, status: status.to_string(), said })
    }
}

/// Reads to the end of a stream in a thread, so that a full pipe stops nobody.
fn read_aside(stream: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut stream) = stream {
            // What was read before an error is still worth showing.
            let _ = stream.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// A command as one would type it.
pub(crate) fn show(command: &Command) -> String {
    let mut words = vec![command.get_program().to_string_lossy()];
    words.extend(command.get_args().map(std::ffi::OsStr::to_string_lossy));
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::rows::all;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn the_line_of_figures_is_found_among_others() {
        let measured =
            run_program(shell(r#"echo hello; echo '{"figure":"ring","seconds":2e-6}'; echo bye"#));
        assert_eq!(measured.unwrap().seconds, 2e-6);
        assert!(matches!(run_program(shell("echo hello")), Err(Error::Printed { .. })));
    }

    #[test]
    fn a_failed_program_is_quoted() {
        let error = run_program(shell("echo why >&2; exit 3")).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("why") && text.contains('3'), "{text}");
        let error = run_program(Command::new("/nowhere/at/all")).unwrap_err();
        assert!(error.to_string().contains("/nowhere/at/all"));
    }

    #[test]
    fn a_ratio_is_the_median_of_the_pairs() {
        let figures = Figures {
            row: all().swap_remove(0),
            vrt: vec![1.0, 10.0, 3.0],
            reference: vec![2.0, 10.0, 1.0],
        };
        assert_eq!(figures.ratio(), Some(1.0));
        assert_eq!(figures.vrt_seconds(), 3.0);
        assert_eq!(figures.reference_seconds(), Some(2.0));
    }
}
