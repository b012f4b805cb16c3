//! The experiments: the figures of the paper, and the paper's results.

/// An experiment: jobs, and how to show them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Experiment {
    /// Its name on the command line.
    pub name: &'static str,
    /// The heading.
    pub title: &'static str,
    /// The paper's result, or the question.
    pub question: &'static str,
    /// What is shown.
    pub shape: Shape,
    /// The jobs.
    pub jobs: fn() -> Vec<Job>,
}

/// What a figure shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// A point for each job.
    Points {
        /// What the horizontal axis shows.
        axis: &'static str,
        /// What the vertical axis shows.
        value: Value,
    },
    /// A line for each job: its rate over time.
    Course,
}

/// What a point shows of its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// Steps per second.
    Rate,
    /// The same, relative to the first job of the line.
    RelativeRate,
    /// Nanoseconds per step.
    Nanoseconds,
    /// Seconds of the run; lines form pairs of this program's code and its twin.
    Seconds,
    /// Misses of the second-level cache per step, relative to the first job of the line.
    RelativeMisses,
}

/// A run of the program, or of a twin.
#[derive(Clone, Debug)]
pub(super) struct Job {
    /// The line of the figure that it belongs to.
    pub series: String,
    /// Its position on the horizontal axis.
    pub x: f64,
    /// The command line.
    pub arguments: String,
    /// The number of Open MPI processes, if it is the command line of a twin.
    pub twin_processes: Option<u32>,
    /// Whether only its time is needed, as for its twin: further measurements take time.
    pub is_bare: bool,
    /// The command line of a shorter run, if counts per step on a simulated processor are needed: they are computed
    /// from the difference.
    pub counted_from: Option<String>,
    /// Whether another program computes for a while, on the core of the first PE.
    pub is_disturbed: bool,
    /// Whether the costs of ranks are recorded.
    pub is_recorded: bool,
}

fn job(series: impl Into<String>, x: f64, arguments: String) -> Job {
    Job {
        series: series.into(),
        x,
        arguments,
        twin_processes: None,
        is_bare: false,
        counted_from: None,
        is_disturbed: false,
        is_recorded: false,
    }
}

/// Ranks per PE, for two PEs.
const RATIOS: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];

/// A strategy, and its balancing arguments.
type Balancer = (&'static str, &'static str);

const GREEDY_REFINE: Balancer = ("greedy-refine", "--lb greedy-refine --lb-period 50ms");

/// Jobs whose course is shown: the first only measures, then one with a strategy and one with `auto`.
fn with_and_without(line: &str, balancer: Balancer, is_disturbed: bool) -> Vec<Job> {
    [("as they began", "--lb null --lb-period 50ms"), balancer, ("auto", "--lb auto")]
        .into_iter()
        .map(|(series, balancer)| {
            let arguments = format!("{line} --pes 2 --ranks 32 --migrate-every 0 {balancer}");
            Job { is_disturbed, is_recorded: true, ..job(series, 0.0, arguments) }
        })
        .collect()
}

/// All experiments.
pub(super) const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        name: "crack",
        title: "Figure 1: a crack that spreads",
        question: "In the paper the throughput of the crack's code falls as elements are added where it \
                   spreads, and recovers when the balancer has moved chunks. Here the gas ignites the \
                   faces of the crack, and the propellant below them warms up: work that is added where \
                   the crack has been, until it is a multiple of that of the plate. 32 ranks on 2 PEs; \
                   the program is the same in both runs.",
        shape: Shape::Course,
        jobs: || {
            with_and_without(
                "crack --size 192 --pressure 4 --heat 1024 --steps 2000",
                GREEDY_REFINE,
                false,
            )
        },
    },
    Experiment {
        name: "rocket",
        title: "A front of ignition",
        question: "The grain is ignited at one end, and the propellant warms up where the front passes: \
                   the load travels along the ranks. A step of the gas takes a good part of the time between two \
                   looks of the balancer, which see one step more or less: loads are means of two looks.",
        shape: Shape::Course,
        jobs: || {
            let greedy = ("greedy", "--lb greedy --lb-period 50ms --lb-predict mean:n=2");
            with_and_without("rocket --size 64 --ignition 2 --heat 512", greedy, false)
        },
    },
    Experiment {
        name: "external",
        title: "A core shared with another program",
        question: "The paper's workstations have other users, too. From a quarter to half of the time of \
                   the run as it began, another program shares the core of one of the two PEs. An iteration \
                   is shorter than the kernel's time slices: while the PE is kept waiting, all ranks are.",
        shape: Shape::Course,
        jobs: || {
            let line = "jacobi --size 128 --tolerance 0 --max-iterations 2500 --uneven 1:2";
            with_and_without(line, GREEDY_REFINE, true)
        },
    },
    Experiment {
        name: "external-long",
        title: "A core shared with another program, iterations longer than its time slices",
        question: "The same, where the kernel gives the core to the other program and back several times \
                   in an iteration: the PE is as one of half the speed.",
        shape: Shape::Course,
        jobs: || {
            let line = "jacobi --size 288 --tolerance 0 --max-iterations 240";
            with_and_without(line, GREEDY_REFINE, true)
        },
    },
    Experiment {
        name: "ratios",
        title: "Figure 2: virtual ranks for each PE",
        question: "In the paper more chunks than processors are faster than one each, up to a point: \
                   smaller chunks fit caches and wait less, and more of them cost more messages.",
        shape: Shape::Points { axis: "ranks per PE", value: Value::RelativeRate },
        jobs: || {
            let codes = [
                ("flow", "flow --size 128 --end 0.1"),
                ("solid", "solid --size 64 --steps 10"),
                ("crack", "crack --size 256 --pressure 3 --steps 600"),
            ];
            let mut jobs = Vec::new();
            for (series, line) in codes {
                for each in RATIOS {
                    let ranks = 2 * each;
                    let arguments = format!("{line} --pes 2 --ranks {ranks} --migrate-every 0");
                    jobs.push(job(series, each.into(), arguments));
                }
            }
            jobs
        },
    },
    Experiment {
        name: "caches",
        title: "Figure 2: what a step takes, over the virtual ranks for each PE",
        question: "Why a ratio is the best: the instructions of a step and the data that it does not find in \
                   caches, as a simulated processor counts them (valgrind's cachegrind, with a first cache as \
                   this machine's and a second one of the size of this machine's). The same codes with the same \
                   blocks, on one PE.",
        shape: Shape::Points { axis: "ranks per PE", value: Value::RelativeMisses },
        jobs: || {
            let codes = [
                ("flow", "flow --size 128 --end", ["0.004", "0.008"]),
                ("solid", "solid --size 64 --steps", ["1", "2"]),
                ("crack", "crack --size 256 --pressure 3 --steps", ["10", "20"]),
            ];
            let mut jobs = Vec::new();
            for (series, line, ends) in codes {
                for each in RATIOS {
                    let ranks = 2 * each;
                    let [fewer, more] = ends.map(|end| {
                        format!("{line} {end} --pes 1 --ranks {ranks} --migrate-every 0")
                    });
                    let more = job(series, each.into(), more);
                    jobs.push(Job { counted_from: Some(fewer), ..more });
                }
            }
            jobs
        },
    },
    Experiment {
        name: "switching",
        title: "Figure 3: a switch, over the depth of the stack",
        question: "In the paper, threads whose stack is copied with each switch take longer the more of \
                   it is in use; those with a stack at an address of their own (isomalloc) take as long \
                   as threads that cannot move. Here: 16 ranks of one PE, whose slots are never copied; \
                   the same, and so many bytes copied out and in with each switch; and 16 threads of the \
                   operating system on one core, which hand over by a condition variable.",
        shape: Shape::Points { axis: "bytes of the stack in use", value: Value::Nanoseconds },
        jobs: || {
            let mut jobs = Vec::new();
            for depth in [256_u32, 1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18] {
                let copied = ((1_u32 << 26) / depth).clamp(1000, 50_000);
                for (stacks, switches) in [("slots", 50_000), ("copied", copied), ("threads", 5000)]
                {
                    let line = format!(
                        "switching --stacks {stacks} --depth {depth} --switches {switches} --pes 1 \
                         --ranks 16 --threads 16"
                    );
                    jobs.push(job(stacks, depth.into(), line));
                }
            }
            jobs
        },
    },
    Experiment {
        name: "tables",
        title: "Tables 1 and 2: one rank on each PE, and the same in C on Open MPI",
        question: "In the paper the converted codes with one rank on each processor take as long as the \
                   original ones on MPI. Here `flow` and `solid` against their twins in C, of which that \
                   of `flow` has to find the same bits and that of `solid` the same displacements; medians \
                   of all runs.",
        shape: Shape::Points { axis: "processes", value: Value::Seconds },
        jobs: || {
            let codes = [
                ("flow", "flow --size 128 --end 0.2", "flow 128 200"),
                ("solid", "solid --size 96 --steps 10", "solid 96 10"),
            ];
            let mut jobs = Vec::new();
            for (series, line, twin) in codes {
                for processes in [1, 2] {
                    let x = f64::from(processes);
                    let arguments =
                        format!("{line} --pes {processes} --ranks {processes} --migrate-every 0");
                    jobs.push(Job { is_bare: true, ..job(series, x, arguments) });
                    let twin = job(format!("{series} on Open MPI"), x, twin.to_owned());
                    jobs.push(Job { twin_processes: Some(processes), ..twin });
                }
            }
            jobs
        },
    },
    Experiment {
        name: "styles",
        title: "Figure 4: blocking ranks and a loop over events",
        question: "The paper compares blocking ranks with message-driven chunks on one processor, for \
                   cuts along one axis and along three: both are as fast for a reasonable number of chunks.",
        shape: Shape::Points { axis: "chunks on one PE", value: Value::Rate },
        jobs: || {
            let mut jobs = Vec::new();
            for dimensions in [1, 3] {
                let line = format!(
                    "jacobi --size 96 --tolerance 0 --max-iterations 300 --migrate-every 0 --pes 1 \
                     --dimensions {dimensions}"
                );
                for chunks in [1, 2, 4, 8, 16, 32, 64, 96] {
                    for style in ["blocking", "async", "events"] {
                        let ranks = if style == "events" {
                            format!("--ranks 1 --chunks {chunks}")
                        } else {
                            format!("--ranks {chunks}")
                        };
                        let series = format!("{style}, {dimensions}-D");
                        let arguments = format!("{line} --style {style} {ranks}");
                        jobs.push(job(series, chunks.into(), arguments));
                    }
                }
            }
            jobs
        },
    },
];
