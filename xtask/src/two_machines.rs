//! `cargo xtask two-machines`: jobs across two machines, on one.
//!
//! This program builds what is needed, and starts itself in namespaces that belong to a launcher of jobs, from which it
//! starts jobs across the machines.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::job::{Running, command, right, run, succeed, until};
use crate::setup::{Library, directory, need, target};
use crate::steps::{Error, Steps, at};

/// Run jobs across two machines, on one, and check their results.
///
/// Each "machine" is a set of namespaces with its own host name, processes, IPC, /dev/shm and network (a link to a bridge
/// between them), so that nothing is shared by accident and MPI has to use TCP. Open MPI's launcher starts its daemons in
/// them.
///
/// Needs root, iproute2, util-linux and Open MPI. The bridge, the launcher and the machines are in namespaces of their own,
/// too: this machine's network is not touched, and everything is gone when the check has ended, however it ends.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Where programs for Open MPI are [default: they are built]
    #[arg(long, value_name = "DIRECTORY", value_parser = directory)]
    programs: Option<PathBuf>,
    /// The number of PEs on each machine, for a COMMAND
    #[arg(long, value_name = "COUNT", default_value_t = 2, requires = "command", value_parser = clap::value_parser!(u32).range(1..=99))]
    pes: u32,
    /// Run inside of the namespaces
    #[arg(long, hide = true)]
    inside: bool,
    /// Run a command instead, as PEs on both machines; the status is that of the command
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

const MACHINES: [&str; 2] = ["vrt-a", "vrt-b"];

/// Makes the bridge and the machines, and goes on as this program. `/run/agent MACHINE WORDS..` runs a command on a machine;
/// Open MPI calls it instead of ssh. (Its daemons check that it is there.)
const START: &str = r#"
mount -t tmpfs none /run
mount -t tmpfs none /dev/shm
printf '%s\n' '127.0.0.1 localhost' '10.213.77.254 vrt-launcher' '10.213.77.1 vrt-a' '10.213.77.2 vrt-b' >/run/hosts
mount --bind /run/hosts /etc/hosts
hostname vrt-launcher
ip link set lo up
ip link add bridge type bridge
ip address add 10.213.77.254/24 dev bridge
ip link set bridge up
cat >/run/agent <<'AGENT'
#!/usr/bin/env bash
machine=$1
shift
exec nsenter --target "$(cat "/run/$machine")" --uts --net --ipc --mount --pid -- bash -c "$*"
AGENT
chmod +x /run/agent
for number in 1 2; do
    name=vrt-$(tr 12 ab <<<$number)
    unshare --uts --net --ipc --mount --pid --fork --kill-child --mount-proc bash -euc '
        hostname "$1"; mount -t tmpfs none /dev/shm; ip link set lo up
        mkdir "/run/$1.tmp"; cp /run/agent "/run/$1.tmp"; touch "/run/$1.up"
        mount --bind "/run/$1.tmp" /run; exec sleep infinity' bash $name &
    while [[ ! -e /run/$name.up ]]; do kill -0 $!; sleep 0.1; done
    read -r pid _ <"/proc/$!/task/$!/children" || [[ -n $pid ]]
    echo "$pid" >/run/$name
    ip link add link$number type veth peer name there$number
    ip link set link$number master bridge up
    ip link set there$number netns "$pid"
    /run/agent $name "ip address add 10.213.77.$number/24 dev there$number; ip link set there$number up"
done
exec "$@"
"#;

/// Starts itself in the namespaces, or runs the jobs in them.
pub(crate) fn check(args: &Args, steps: &mut Steps) -> Result<(), Error> {
    if !rustix::process::geteuid().is_root() {
        return steps.fail("machines are made of namespaces, which only root may make".to_owned());
    }
    let programs = args.programs.clone().unwrap_or_else(|| Library::OpenMpi.target().join("debug"));
    if args.inside {
        let files = tempfile::tempdir_in("/tmp").map_err(at(Path::new("/tmp")))?;
        let network = Network { programs, pes: args.pes, files };
        return match args.command.split_first() {
            None => network.check(steps),
            Some((program, words)) => {
                steps.begin(&args.command.join(" "));
                pass_on(&mut network.launch(Command::new(program).args(words)))
            }
        };
    }
    steps.begin("programs");
    need(steps, "ip", "iproute2")?;
    need(steps, "unshare", "util-linux")?;
    Library::OpenMpi.need(steps)?;
    // When this program dies, so does unshare, and with it the first process of the namespaces, and with that every
    // process there.
    let mut namespaces = command(
        "setpriv --pdeathsig KILL unshare --net --mount --uts --ipc --pid --fork --kill-child --mount-proc bash -euc",
    );
    let this = std::env::current_exe().map_err(at(Path::new("/proc/self/exe")))?;
    namespaces
        .args([START, "bash"])
        .arg(this)
        .args(["two-machines", "--inside"])
        .env("TMPDIR", "/run");
    if args.command.is_empty() {
        need(steps, "python3", "python3")?;
        if args.programs.is_none() {
            let options = "-p uts -p rocket-mini -p vrt-tests -p vrtrun --bins \
                --features uts/mpi,rocket-mini/mpi,vrt-tests/mpi,vrt-tests/everyday,vrtrun/mpi";
            succeed(&Library::OpenMpi.build(options))?;
        }
        // What reads traces needs no MPI.
        succeed(&command("cargo build --quiet --package vrt-trace"))?;
        namespaces.arg("--programs").arg(programs);
    } else {
        namespaces.args(["--pes", &args.pes.to_string(), "--"]).args(&args.command);
    }
    steps.end();
    pass_on(&mut namespaces)
}

/// Runs a command in the place of this program.
fn pass_on(command: &mut Command) -> Result<(), Error> {
    match command
        .stdin(Stdio::null())
        .status()
        .map_err(at(Path::new(command.get_program())))?
        .code()
    {
        Some(0) => Ok(()),
        status => Err(Error::Status(status.unwrap_or(1))),
    }
}

/// A command that runs on a machine.
fn on(machine: &str, words: &str) -> Command {
    command(&format!("/run/agent {machine} {words}"))
}

fn shared_memory(machine: &str) -> Result<String, Error> {
    succeed(&on(machine, "ls -A /dev/shm")).map(|it| it.out)
}

/// Programs for jobs across both machines.
struct Network {
    programs: PathBuf,
    /// On each machine.
    pes: u32,
    /// What a rank has written it reads on the other machine as well.
    files: TempDir,
}

impl Network {
    /// The command that starts a program across the machines. They share cores, so processes are not bound to any.
    fn launch(&self, program: &Command) -> Command {
        let Network { pes, .. } = self;
        let options = format!(
            "--mca plm_rsh_agent /run/agent --mca oob_tcp_if_include 10.213.77.0/24 --bind-to none \
             --mca btl_tcp_if_include 10.213.77.0/24 -x PATH -H vrt-a:{pes},vrt-b:{pes} -n {}",
            2 * pes,
        );
        Library::OpenMpi.launch(&options, program)
    }

    /// Whether processes of a program run on a machine. (A PE executes itself again, under another name.)
    fn runs(&self, machine: &str, program: &str) -> Result<bool, Error> {
        let file = self.programs.join(program);
        let mut pgrep = on(machine, "pgrep -f");
        Ok(run(60, pgrep.arg(format!("'^{} '", file.display())))?.status == 0)
    }

    /// Runs a job, which has to be right; if ranks are to be moved, some have to be.
    fn across(&self, steps: &Steps, words: &str, has_to_move: bool) -> Result<(), Error> {
        steps.say(&format!("   {words}"));
        let (files, programs) = (self.files.path().display(), self.programs.display());
        let program = command(&format!("env TMPDIR={files} {programs}/{words}"));
        let job = run(300, &self.launch(&program))?;
        let stayed = has_to_move && job.moved() == 0;
        let fault = job.fault().or_else(|| stayed.then(|| "no rank has moved".to_owned()));
        right(job, fault).map(drop)
    }

    /// Nothing of a job is left on any machine: no process, no shared memory.
    fn nothing_left(&self, program: &str) -> Result<(), Error> {
        for machine in MACHINES {
            until(10, || matches!(self.runs(machine, program), Ok(false)));
            let left = shared_memory(machine)?;
            if self.runs(machine, program)? {
                return Err(Error::Failed(format!("processes of {program} live on, on {machine}")));
            } else if !left.is_empty() {
                return Err(Error::Failed(format!("shared memory is left on {machine}: {left}")));
            }
        }
        Ok(())
    }

    /// Runs all jobs.
    fn check(&self, steps: &mut Steps) -> Result<(), Error> {
        steps.begin("they share nothing");
        let hosts = succeed(&self.launch(&command("hostname")))?;
        let mut names: Vec<&str> = hosts.out.split_whitespace().collect();
        names.sort_unstable();
        let is_wrong = names != ["vrt-a", "vrt-a", "vrt-b", "vrt-b"];
        let fault = is_wrong.then(|| "processes are not where they should be".to_owned());
        right(hosts, fault)?;
        succeed(&command("touch /dev/shm/of-the-launcher"))?;
        if !shared_memory("vrt-a")?.is_empty() {
            return Err(Error::Failed("vrt-a sees the launcher's shared memory".to_owned()));
        }

        steps.begin("jobs");
        let quiet = "--no-bind --no-progress";
        for tree in ["T1", "T3"] {
            let uts = format!("uts --tree {tree} --ranks 16 {quiet}");
            self.across(steps, &uts, false)?;
            self.nothing_left("uts")?;
            self.across(steps, &format!("{uts} --lb random --lb-period 5ms"), true)?;
        }
        let uneven = format!(
            "rocket-mini jacobi --size 48 --ranks 32 --uneven 0.25:8 --max-iterations 300 {quiet}"
        );
        for moves in [
            "--lb random --lb-period 20ms",
            "--lb greedy-refine --lb-period 50ms",
            "--lb random --migrate-every 20",
            "--lb greedy-refine --migrate-every 20",
        ] {
            self.across(steps, &format!("{uneven} {moves}"), true)?;
            self.across(steps, &format!("{uneven} {moves} --move state"), true)?;
        }
        let soak = "soak --no-bind --ranks 32 --seconds 3 --longest 300000";
        self.across(steps, soak, false)?;
        self.across(steps, &format!("{soak} --lb random --lb-period 10ms"), true)?;
        self.nothing_left("soak")?;

        // No message arrives before it was sent, though clocks differ: as the machines' do, and as they could.
        steps.begin("a trace of each, their clocks brought together");
        let trace = self.files.path().join("trace").display().to_string();
        let traced = format!("{uneven} --lb greedy-refine --lb-period 50ms --trace {trace}");
        self.across(steps, &traced, false)?;
        let clocks = "python3 scripts/lib/clocks.py";
        for is_shifted in [false, true] {
            if is_shifted {
                succeed(&command(&format!("{clocks} shift 0.7 40 {trace}.2 {trace}.3")))?;
            }
            let convert =
                format!("{}/debug/vrt-trace convert {trace} -o {trace}.csv", target().display());
            succeed(&command(&convert))?;
            let checked = succeed(&command(&format!("{clocks} check {trace}.csv")))?;
            steps.say(checked.out.trim_end());
        }

        // Ranks of these may stay; the job says why.
        steps.begin("programs in the manner of ordinary ones");
        let programs = self.programs.display();
        for (list, how) in [("names", ""), ("names-by-state", "--move state")] {
            let names = succeed(&command(&format!("{programs}/everyday {list}")))?.out;
            for name in names.split_whitespace() {
                let moves = "--no-bind --ranks 8 --lb random --lb-period 2ms";
                self.across(steps, &format!("everyday {name} {moves} {how}"), false)?;
            }
        }
        self.nothing_left("everyday")?;

        steps.begin("a PE is killed");
        for what in ["run-forever", "wait-forever"] {
            steps.say(&format!("   {what}"));
            self.kill_a_pe(&format!("misbehave {what} --ranks 8 --no-bind"))?;
            self.nothing_left("misbehave")?;
        }
        steps.close(&format!("all is well after {} s", steps.seconds()))
    }

    /// A job that loses a PE has to fail.
    fn kill_a_pe(&self, words: &str) -> Result<(), Error> {
        let job = Running::start(
            Duration::from_secs(300),
            &self.launch(&command(&format!("{}/{words}", self.programs.display()))),
        )?;
        let has_begun = || job.out().is_ok_and(|it| it.matches("in process").count() == 8);
        until(60, has_begun);
        let (text, begun) = (job.out()?, has_begun());
        // The last rank is on the last PE, and that is there; processes have the numbers of their machine.
        let last = text.lines().find_map(|line| line.strip_prefix("rank 7 in process "));
        let fault = match last {
            Some(pid) if begun && self.runs("vrt-b", "misbehave")? => {
                succeed(&on("vrt-b", &format!("kill -KILL {pid}")))?;
                None
            }
            _ if begun => Some("no process of the job is found on vrt-b"),
            _ => Some("the job did not begin"),
        };
        let job = job.end()?;
        let goes_on = job.status == 0 || !job.in_time;
        let fault = fault.or(goes_on.then_some("it does not fail, though it lost a PE"));
        right(job, fault.map(str::to_owned)).map(drop)
    }
}
