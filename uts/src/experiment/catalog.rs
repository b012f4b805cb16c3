//! The experiments of the papers, and the papers' results.

/// An experiment: jobs, and how to show them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Experiment {
    /// Its name on the command line.
    pub name: &'static str,
    /// The heading.
    pub title: &'static str,
    /// The paper's result, or the question.
    pub question: &'static str,
    /// What the horizontal axis shows.
    pub axis: &'static str,
    /// The labels at 0, 1, .. of that axis, if its values have no order.
    pub names: &'static [&'static str],
    /// What is shown of each job.
    pub measure: Measure,
    /// The jobs.
    pub jobs: fn() -> Vec<Job>,
}

/// What is shown of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Measure {
    /// Million nodes per second.
    Rate,
    /// Percentage of the nodes that were looked at by the rank with the most.
    LargestShare,
    /// Percentage of the prefetches that brought work.
    Prefetched,
}

impl Measure {
    /// What the vertical axis shows.
    pub(crate) fn axis(self) -> &'static str {
        match self {
            Self::Rate => "million nodes/s",
            Self::LargestShare => "% of all nodes by the busiest rank",
            Self::Prefetched => "% of prefetches that brought work",
        }
    }
}

/// A run of the program.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    /// The line of the figure that it belongs to.
    pub series: String,
    /// Its position on the horizontal axis.
    pub x: f64,
    /// The command line.
    pub arguments: String,
}

fn job(series: impl Into<String>, x: f64, arguments: String) -> Job {
    Job { series: series.into(), x, arguments }
}

const TREES: [&str; 2] = ["T1", "T3"];
const INTERVALS: [u32; 7] = [16, 64, 256, 1024, 4096, 16_384, 65_536];
const CHUNKS: [u32; 8] = [1, 2, 5, 10, 20, 50, 100, 500];
const PARALLEL: [&str; 6] =
    ["steal", "steal-2007", "hierarchical", "shared-2006", "share", "static"];

/// All experiments.
pub(super) const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        name: "sequential",
        title: "Sequential rates",
        question: "The paper of 2006 (table 2) has 1.2 to 1.9 million nodes/s on the fastest of its \
                   machines, about the same for its three trees: a node is a SHA-1 digest.",
        axis: "tree T1 to T5",
        names: &[],
        measure: Measure::Rate,
        jobs: || {
            let mut jobs = Vec::new();
            for kernel in ["plain", "auto"] {
                for tree in 1..=5 {
                    let line = format!("--tree T{tree} --sequential --kernel {kernel}");
                    jobs.push(job(format!("kernel {kernel}"), tree.into(), line));
                }
            }
            jobs
        },
    },
    Experiment {
        name: "polling",
        title: "Stealing: polling interval",
        question: "The paper of 2007 (figure 1) gains 40 to 50% by the right polling interval, \
                   which is about the same for both trees and all chunks: a property of the system.",
        axis: "polling interval (nodes)",
        names: &[],
        measure: Measure::Rate,
        jobs: || intervals("steal-2007", 2, &[5, 20]),
    },
    Experiment {
        name: "release",
        title: "Sharing: release interval",
        question: "The paper of 2007 (figure 2) gains more than 2x on T1 by the right release \
                   interval, little on T3; the best one depends on tree and chunk.",
        axis: "release interval (nodes)",
        names: &[],
        measure: Measure::Rate,
        jobs: || intervals("share", 3, &[5, 20]),
    },
    Experiment {
        name: "chunk",
        title: "Chunk size: sharing and stealing",
        question: "In the paper of 2007 (figures 3 and 4) stealing is steady over chunk sizes and \
                   sharing is not; in that of 2006 (figure 7) T1 is slow from chunks of 20 nodes on, \
                   half its expected stack, and T3 stays fast to 80 and more.",
        axis: "chunk (nodes)",
        names: &[],
        measure: Measure::Rate,
        jobs: || {
            let mut jobs = Vec::new();
            for (algorithm, ranks) in [("steal-2007", 2), ("share", 3), ("shared-2006", 2)] {
                for tree in TREES {
                    for chunk in CHUNKS {
                        let line = format!(
                            "--tree {tree} --algorithm {algorithm} -c {chunk} --pes 2 --ranks {ranks}"
                        );
                        jobs.push(job(format!("{algorithm}, {tree}"), chunk.into(), line));
                    }
                }
            }
            jobs
        },
    },
    Experiment {
        name: "shares",
        title: "Shares of the work",
        question: "In the paper of 2006 (figure 8) each of 8 threads does its 12.5% of T3 for chunks \
                   of 15 to 55 nodes; of T1 so only at 15: at 35 and more a few do most of it, as the \
                   same nodes near the root are stolen again and again. Here 8 ranks on 2 PEs, which \
                   look for work at once when they have none.",
        axis: "chunk (nodes)",
        names: &[],
        measure: Measure::LargestShare,
        jobs: || {
            let mut jobs = Vec::new();
            for algorithm in ["shared-2006", "steal"] {
                for tree in TREES {
                    for chunk in [5, 15, 35, 55, 100, 200, 400] {
                        let line = format!(
                            "--tree {tree} --algorithm {algorithm} -c {chunk} --pes 2 --ranks 8 --ask at-once"
                        );
                        jobs.push(job(format!("{algorithm}, {tree}"), chunk.into(), line));
                    }
                }
            }
            jobs
        },
    },
    Experiment {
        name: "ranks",
        title: "Over-decomposition",
        question: "What do more ranks than processors cost? (The papers have one per processor.) \
                   Each algorithm with its defaults on 2 PEs, tree T1L; and two whose ranks look for \
                   work at once when they have none, though others of their PE have some.",
        axis: "ranks per PE",
        names: &[],
        measure: Measure::Rate,
        jobs: || {
            let mut jobs = Vec::new();
            let eager = ["steal --ask at-once", "hierarchical --ask at-once"];
            for algorithm in PARALLEL.into_iter().chain(eager) {
                for each in [1, 2, 4, 8, 16, 32, 64] {
                    let ranks = 2 * each;
                    let line =
                        format!("--tree T1L --algorithm {algorithm} --pes 2 --ranks {ranks}");
                    jobs.push(job(algorithm, each.into(), line));
                }
            }
            jobs
        },
    },
    Experiment {
        name: "prefetch",
        title: "Prefetching",
        question: "In the paper of 2012 (section 5.3) 95% of the requests that are sent before a \
                   thread has run out of work bring some. 2 nodes of one PE each.",
        axis: "ranks per node",
        names: &[],
        measure: Measure::Prefetched,
        jobs: || {
            let mut jobs = Vec::new();
            for tree in ["T1", "T2", "T3"] {
                for each in [1, 2, 4, 8] {
                    let ranks = 2 * each;
                    let line = format!(
                        "--tree {tree} --algorithm hierarchical --pes 2 --ranks {ranks} --node-size 1 \
                         --ask at-once"
                    );
                    jobs.push(job(tree, each.into(), line));
                }
            }
            jobs
        },
    },
    Experiment {
        name: "balancer",
        title: "Stealing, balancing, both",
        question: "What can moving ranks do for an unbalanced tree? The top of the tree is dealt once \
                   (static), ranks steal, and each of them with the balancer (greedy-refine, 50 ms).",
        axis: "ranks per PE (T3L)",
        names: &[],
        measure: Measure::Rate,
        jobs: || {
            let mut jobs = Vec::new();
            for algorithm in ["static", "steal"] {
                for (name, balancer) in
                    [("", ""), (" + balancer", " --lb greedy-refine --lb-period 50ms")]
                {
                    for each in [2, 8, 32] {
                        let ranks = 2 * each;
                        let line = format!(
                            "--tree T3L --algorithm {algorithm} --pes 2 --ranks {ranks}{balancer}"
                        );
                        jobs.push(job(format!("{algorithm}{name}"), each.into(), line));
                    }
                }
            }
            jobs
        },
    },
    Experiment {
        name: "trees",
        title: "All algorithms on the trees",
        question: "Each algorithm with its defaults, a rank on each of 2 PEs (of `share` one is the \
                   manager).",
        axis: "tree",
        names: &ALL_TREES,
        measure: Measure::Rate,
        jobs: || {
            let mut jobs = Vec::new();
            for algorithm in PARALLEL {
                for (x, tree) in ALL_TREES.into_iter().enumerate() {
                    let line = format!("--tree {tree} --algorithm {algorithm} --pes 2 --ranks 2");
                    jobs.push(job(algorithm, x as f64, line));
                }
            }
            jobs
        },
    },
];

/// The trees on which all algorithms are compared.
const ALL_TREES: [&str; 6] = ["T1", "T2", "T3", "T1L", "T2L", "T3L"];

fn intervals(algorithm: &str, ranks: u32, chunks: &[u32]) -> Vec<Job> {
    let mut jobs = Vec::new();
    for tree in TREES {
        for chunk in chunks {
            for interval in INTERVALS {
                let line = format!(
                    "--tree {tree} --algorithm {algorithm} -c {chunk} -i {interval} --pes 2 \
                     --ranks {ranks}"
                );
                jobs.push(job(format!("{tree}, chunk {chunk}"), interval.into(), line));
            }
        }
    }
    jobs
}
