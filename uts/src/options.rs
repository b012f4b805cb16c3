//! The command line, and what it requests.

use crate::{
    costs_command::CostsOptions, experiment::ExperimentOptions, simulate::SimulateOptions,
};
use clap::{ArgGroup, Parser, Subcommand};
use thiserror::Error;
use uts::{
    budget,
    lanes::Kernel,
    named::{self, NAMED},
    plan::{Algorithm, Amount, Asks, Interval, Plan, PlanError, Sharing, Victims},
    termination::Termination,
    tree::{Kind, ParameterError, Parameters, Shape, Tree},
};

/// Unbalanced Tree Search: counts the nodes of a tree that is only known by searching it.
///
/// The tree is one with a published size (--tree), against which the result is checked, or any
/// other (-t, -b, -r, -a, -d, -q, -m, -f). Without either it is the benchmark's default, a
/// geometric tree of 1732 nodes.
#[derive(Parser, Clone, Debug)]
#[command(name = "uts", version, group = ArgGroup::new("explicit").multiple(true),
          args_conflicts_with_subcommands = true)]
pub(crate) struct Options {
    /// The subcommand, if any.
    #[command(subcommand)]
    pub command: Option<Command>,

    /// A tree with a published size: T1, T2, T3, T4, T5 (4 million nodes), T1L, T2L, T3L (100
    /// million), T1XL, T1XXL, T2XXL, T3XXL (billions), T1WL, T2WL, T3WL (hundreds of billions)
    #[arg(long, value_name = "NAME", conflicts_with = "explicit")]
    tree: Option<String>,

    /// Kind of tree: 0 or binomial, 1 or geometric, 2 or hybrid, 3 or balanced [default: 1]
    #[arg(short = 't', long = "type", value_name = "KIND", group = "explicit", value_parser = kind)]
    kind: Option<Kind>,

    /// Root branching factor b0: children of the root, or mean number of them [default: 4]
    #[arg(short, long, value_name = "NUMBER", group = "explicit", allow_negative_numbers = true)]
    branching: Option<f64>,

    /// Seed of the tree, 0 to 2147483647 [default: 0]
    #[arg(short = 'r', long, value_name = "NUMBER", group = "explicit")]
    seed: Option<u32>,

    /// Shape of a geometric tree: 0 or linear, 1 or expdec, 2 or cyclic, 3 or fixed [default: 0]
    #[arg(short = 'a', long, value_name = "SHAPE", group = "explicit", value_parser = shape)]
    shape: Option<Shape>,

    /// Depth d of a geometric, hybrid or balanced tree [default: 6]
    #[arg(short, long, value_name = "NUMBER", group = "explicit")]
    depth: Option<u32>,

    /// Probability q that a node of a binomial tree has children [default: 0.234375]
    #[arg(
        short = 'q',
        long,
        value_name = "NUMBER",
        group = "explicit",
        allow_negative_numbers = true
    )]
    probability: Option<f64>,

    /// Number m of children of a node that has some [default: 4]
    #[arg(short = 'm', long, value_name = "NUMBER", group = "explicit")]
    children: Option<u32>,

    /// Part f of the depth of a hybrid tree that is geometric [default: 0.5]
    #[arg(
        short = 'f',
        long,
        value_name = "NUMBER",
        group = "explicit",
        allow_negative_numbers = true
    )]
    shift: Option<f64>,

    /// Stop after about this many nodes, looked at by all ranks together: the partial result is printed, marked
    /// PARTIAL, and the exit status is 3. Trees that may be infinite (q m is 1 or more) need a limit
    #[arg(long, value_name = "NODES", value_parser = vrt_cli::positive::<u64>)]
    limit: Option<u64>,

    /// How often each node is recomputed: more work, the same tree
    #[arg(short, long, value_name = "TIMES", default_value_t = 1)]
    granularity: u32,

    /// How ranks share the work [default: steal]
    #[arg(long, value_name = "NAME", value_parser = algorithm, default_value = "steal",
          hide_default_value = true, long_help = ALGORITHMS)]
    pub algorithm: Algorithm,

    /// How ranks detect the end: dijkstra-scholten, token, counting or quiescence [default: the algorithm's own]
    #[arg(long, value_name = "NAME", value_parser = termination)]
    termination: Option<Termination>,

    /// Which ranks a rank without work asks: lifelines, round-robin, random or last (the one that gave work last); for
    /// steal
    #[arg(long, value_name = "NAME", value_parser = victims)]
    victims: Option<Victims>,

    /// How much it gets: half or chunk; for steal
    #[arg(long, value_name = "NAME", value_parser = amount)]
    amount: Option<Amount>,

    /// Least number of nodes that a rank keeps, and gives away [default: 32 for steal, 24 for hierarchical, else 20]
    #[arg(short, long, value_name = "NODES", value_parser = vrt_cli::positive::<u64>)]
    chunk: Option<u64>,

    /// Nodes that a rank searches between two polls, or two releases of work; `adaptive` for steal and steal-2007: few
    /// after a message, then more [default: 2048 for steal and share, 1024 for hierarchical and shared-2006, 512 for
    /// steal-2007]
    #[arg(short = 'i', long, visible_alias = "release-interval", value_name = "NODES",
          value_parser = interval)]
    poll_interval: Option<Interval>,

    /// Number of random ranks that a rank without work asks before it waits for its lifelines
    #[arg(long, value_name = "NUMBER", default_value_t = Sharing::default().tries)]
    tries: u32,

    /// When a rank without work asks for some, if there are more ranks than PEs: when-idle, that is when its PE has
    /// nothing else to do, as earlier requests would gain nothing and disturb other ranks; or at-once, as if each rank
    /// had a processor
    #[arg(long, value_name = "WHEN", value_parser = asks)]
    ask: Option<Asks>,

    /// How to compute nodes: auto (the fastest on this machine), or plain, avx2, avx512
    #[arg(long, value_name = "NAME", default_value = "auto")]
    kernel: String,

    /// Search in one thread, without ranks
    #[arg(long)]
    pub sequential: bool,

    /// Print the statistics of every rank
    #[arg(short, long)]
    pub verbose: bool,

    /// Print the same text as the benchmark's own program with -v LEVEL: 0 its statistics line, 1 tree and rate, 2 sums
    /// over all ranks, 3 each rank
    #[arg(long, value_name = "LEVEL", value_parser = clap::value_parser!(u8).range(0..=3))]
    pub uts_text: Option<u8>,

    /// Print what each rank did as a CSV table, and nothing else (a wrong tree is reported by the exit status, and on
    /// standard error)
    #[arg(long, conflicts_with_all = ["verbose", "uts_text"])]
    pub csv: bool,

    /// Do not show progress (it is shown only on a terminal)
    #[arg(long)]
    pub no_progress: bool,

    /// Options of the runtime.
    #[command(flatten)]
    pub vrt: mpi::Config,
}

/// The subcommands.
#[derive(Subcommand, Clone, Debug)]
pub(crate) enum Command {
    /// Runs experiments of the papers; writes a CSV table and an SVG figure of each, and report.md
    Experiment(ExperimentOptions),
    /// Simulates searches by many processes, on a simulated clock and network
    Simulate(SimulateOptions),
    /// Measures the cost of the parts of a search on this machine: polls, messages, steals
    Costs(CostsOptions),
}

/// Why the options are invalid.
#[derive(Clone, Debug, PartialEq, Error)]
pub(crate) enum OptionsError {
    /// No tree has this name.
    #[error("no tree `{name}`; trees: {known}")]
    UnknownTree {
        /// The given name.
        name: String,
        /// The existing names.
        known: String,
    },
    /// The parameters are invalid.
    #[error(transparent)]
    Parameters(#[from] ParameterError),
    /// The tree may be infinite.
    #[error(
        "q is {probability} and m is {children}: q m is 1 or more, so the tree may have no end; allowed are \
         smaller ones, or --limit NODES: then the search stops after about so many nodes"
    )]
    Endless {
        /// q.
        probability: f64,
        /// m.
        children: u32,
    },
    /// No kernel has this name, or the processor lacks its instructions.
    #[error("no kernel `{name}` on this processor; kernels: auto, {known}")]
    UnknownKernel {
        /// The given name.
        name: String,
        /// The names that are available here.
        known: String,
    },
    /// The search does not exist.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A parameter belongs to another algorithm.
    #[error("--{flag} with algorithm {algorithm}: allowed with steal only")]
    OnlySteal {
        /// The parameter.
        flag: &'static str,
        /// The algorithm.
        algorithm: &'static str,
    },
    /// The interval of this algorithm cannot adapt.
    #[error("--poll-interval adaptive with algorithm {algorithm}: allowed are numbers of nodes")]
    Adaptive {
        /// The algorithm.
        algorithm: &'static str,
    },
}

impl Options {
    /// The requested tree.
    ///
    /// # Errors
    ///
    /// If its name is unknown, its parameters are invalid, or it may be infinite.
    pub(crate) fn tree(&self) -> Result<Tree, OptionsError> {
        let default = Parameters::DEFAULT;
        let parameters = match &self.tree {
            Some(name) => match named::find(name) {
                Some(named) => named.parameters,
                None => {
                    let known = NAMED.iter().map(|tree| tree.name).collect::<Vec<_>>().join(", ");
                    return Err(OptionsError::UnknownTree { name: name.clone(), known });
                }
            },
            None => Parameters {
                kind: self.kind.unwrap_or(default.kind),
                branching: self.branching.unwrap_or(default.branching),
                seed: self.seed.unwrap_or(default.seed),
                shape: self.shape.unwrap_or(default.shape),
                depth: self.depth.unwrap_or(default.depth),
                probability: self.probability.unwrap_or(default.probability),
                children: self.children.unwrap_or(default.children),
                shift: self.shift.unwrap_or(default.shift),
                granularity: 1,
            },
        };
        let tree = Tree::new(Parameters { granularity: self.granularity, ..parameters })?;
        let parameters = *tree.parameters();
        // Some of those with published sizes are such trees, and have an end.
        let may_be_endless = parameters.may_be_endless() && named::published(&parameters).is_none();
        if may_be_endless && self.limit.is_none() {
            let Parameters { probability, children, .. } = parameters;
            return Err(OptionsError::Endless { probability, children });
        }
        Ok(tree)
    }

    /// The requested kernel.
    ///
    /// # Errors
    ///
    /// If it is unknown or not supported by this processor.
    pub(crate) fn kernel(&self) -> Result<Kernel, OptionsError> {
        let kernels = Kernel::available();
        if self.kernel == "auto" {
            return Ok(Kernel::fastest());
        }
        kernels.iter().find(|it| it.name() == self.kernel).copied().ok_or_else(|| {
            let known = kernels.iter().map(|it| it.name()).collect::<Vec<_>>().join(", ");
            OptionsError::UnknownKernel { name: self.kernel.clone(), known }
        })
    }

    /// The plan of the search.
    ///
    /// # Errors
    ///
    /// If the search does not exist.
    pub(crate) fn plan(&self) -> Result<Plan, OptionsError> {
        let pes = self.vrt.pes() as usize;
        // In one thread any algorithm searches as well as another.
        let ranks = if self.sequential { 2 } else { self.vrt.ranks() as usize };
        let default = Plan::of(self.algorithm);
        let sharing = default.sharing;
        let steals = self.algorithm == Algorithm::Steal;
        for (flag, given) in
            [("victims", self.victims.is_some()), ("amount", self.amount.is_some())]
        {
            if given && !steals {
                let algorithm = self.algorithm.name();
                return Err(OptionsError::OnlySteal { flag, algorithm });
            }
        }
        let interval = self.poll_interval.unwrap_or(sharing.interval);
        let adapts = matches!(self.algorithm, Algorithm::Steal | Algorithm::Steal2007);
        if interval == Interval::Adaptive && !adapts {
            return Err(OptionsError::Adaptive { algorithm: self.algorithm.name() });
        }
        // Not much more than the limit is to be looked at.
        let interval = self.limit.map_or(interval, |it| interval.at_most(budget::grain(it, ranks)));
        let plan = Plan {
            termination: self.termination.unwrap_or(default.termination),
            sharing: Sharing {
                chunk: self.chunk.unwrap_or(sharing.chunk),
                interval,
                tries: self.tries,
                victims: self.victims.unwrap_or(sharing.victims),
                amount: self.amount.unwrap_or(sharing.amount),
                asks: if ranks <= pes { Asks::AtOnce } else { self.ask.unwrap_or(Asks::WhenIdle) },
                ..sharing
            },
            limit: self.limit,
            ..default
        };
        plan.check(ranks)?;
        Ok(plan)
    }
}

const ALGORITHMS: &str = "\
How ranks share the work [default: steal]

steal         work stealing; parameters --victims, --amount, -c, -i, --tries
share         the last rank is a manager with a queue of chunks
steal-2007    work stealing as in the paper of 2007: round robin, one chunk
hierarchical  as in the paper of 2012: the ranks of a node (or PE) first, one-sidedly
shared-2006   as in the paper of 2006: stacks of chunks in shared memory, a barrier
static        the top of the tree is dealt once; only --lb balances

Terminations: steal and steal-2007 have all four, share, hierarchical and shared-2006 have
counting, static has quiescence.";

fn named<T: Copy>(text: &str, all: &[T], name: fn(T) -> &'static str) -> Result<T, String> {
    all.iter().copied().find(|it| name(*it) == text).ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|it| name(*it)).collect();
        format!("{} is allowed", names.join(", "))
    })
}

pub(crate) fn algorithm(text: &str) -> Result<Algorithm, String> {
    named(text, &Algorithm::ALL, Algorithm::name)
}

pub(crate) fn termination(text: &str) -> Result<Termination, String> {
    named(text, &Termination::ALL, Termination::name)
}

fn victims(text: &str) -> Result<Victims, String> {
    named(text, &Victims::ALL, Victims::name)
}

fn asks(text: &str) -> Result<Asks, String> {
    named(text, &Asks::ALL, Asks::name)
}

fn amount(text: &str) -> Result<Amount, String> {
    named(text, &Amount::ALL, Amount::name)
}

pub(crate) fn interval(text: &str) -> Result<Interval, String> {
    match text.parse() {
        _ if text == "adaptive" => Ok(Interval::Adaptive),
        Ok(nodes) if nodes > 0 => Ok(Interval::Fixed(nodes)),
        _ => Err("1 or more, or adaptive, is allowed".to_owned()),
    }
}

fn kind(text: &str) -> Result<Kind, String> {
    match text.to_ascii_lowercase().as_str() {
        "0" | "bin" | "binomial" => Ok(Kind::Binomial),
        "1" | "geo" | "geometric" => Ok(Kind::Geometric),
        "2" | "hybrid" => Ok(Kind::Hybrid),
        "3" | "balanced" => Ok(Kind::Balanced),
        _ => Err("0 (binomial), 1 (geometric), 2 (hybrid) or 3 (balanced) is allowed".to_owned()),
    }
}

fn shape(text: &str) -> Result<Shape, String> {
    match text.to_ascii_lowercase().as_str() {
        "0" | "linear" => Ok(Shape::Linear),
        "1" | "expdec" => Ok(Shape::ExponentialDecrease),
        "2" | "cyclic" => Ok(Shape::Cyclic),
        "3" | "fixed" => Ok(Shape::Fixed),
        _ => Err("0 (linear), 1 (expdec), 2 (cyclic) or 3 (fixed) is allowed".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn parse(arguments: &[&str]) -> Result<Options, String> {
        let arguments = ["uts"].iter().chain(arguments);
        Options::try_parse_from(arguments).map_err(|error| error.to_string())
    }

    fn parameters(arguments: &[&str]) -> Parameters {
        let tree = parse(arguments).expect("sound options").tree().expect("a sound tree");
        *tree.parameters()
    }

    #[test]
    fn the_command_line_is_consistent() {
        Options::command().debug_assert();
    }

    #[test]
    fn the_benchmarks_own_flags_name_the_same_trees() {
        let lines = [
            ("T1", "-t 1 -a 3 -d 10 -b 4 -r 19"),
            ("T5", "-t geo -a linear -d 20 -b 4 -r 34"),
            ("T2", "--type 1 --shape 2 --depth 16 --branching 6 --seed 502"),
            ("t3", "-t 0 -b 2000 -q 0.124875 -m 8 -r 42"),
            ("T4", "-t 2 -a 0 -d 16 -b 6 -r 1 -q 0.234375 -m 4"),
            ("T2WL", "-t 0 -b 2000 -q 0.4999999995 -m 2 -r 559"),
        ];
        for (name, line) in lines {
            let line: Vec<&str> = line.split(' ').collect();
            let expected = named::published(&parameters(&["--tree", name]));
            assert!(expected.is_some());
            assert_eq!(named::published(&parameters(&line)), expected, "{name}");
        }
        assert_eq!(parameters(&[]), Parameters::DEFAULT);
        assert_eq!(parameters(&["--tree", "T1", "-g", "5"]).granularity, 5);
    }

    #[test]
    fn refusals_name_the_value_and_what_is_allowed() {
        let cases: &[(&[&str], &[&str])] = &[
            (&["-t", "4"], &["'4'", "--type", "3 (balanced) is allowed"]),
            (&["-a", "round"], &["'round'", "--shape", "2 (cyclic)"]),
            (&["-r", "-1"], &["-1"]),
            (&["-c", "0"], &["0", "--chunk", "from 1 up"]),
            (&["-i", "many"], &["'many'", "--poll-interval", "1 or more, or adaptive"]),
            (&["--limit", "0"], &["0", "--limit", "from 1 up"]),
            (&["-i", "0"], &["'0'", "--poll-interval", "1 or more, or adaptive"]),
            (&["--algorithm", "luck"], &["'luck'", "steal, share, steal-2007, hierarchical"]),
            (&["--termination", "soon"], &["'soon'", "token, counting, quiescence"]),
            (&["--victims", "me"], &["'me'", "lifelines, round-robin, random, last"]),
            (&["--amount", "all"], &["'all'", "half, chunk"]),
            (&["--uts-text", "4"], &["4", "0..=3"]),
            (&["--tree", "T1", "-b", "3"], &["--tree", "--branching", "cannot be used with"]),
        ];
        for (arguments, parts) in cases {
            let text = parse(arguments).expect_err("must be refused");
            assert!(parts.iter().all(|part| text.contains(part)), "{text}");
        }
        let tree = |arguments: &[&str]| {
            let tree = parse(arguments).expect("sound for the parser").tree();
            tree.expect_err("must be refused").to_string()
        };
        assert!(tree(&["--tree", "T9"]).starts_with("no tree `T9`; trees: T1, T5, T2"));
        assert!(tree(&["-b", "-3"]).starts_with("root branching factor -3: allowed is 0 to"));
        assert_eq!(tree(&["-q", "1.5"]), "probability 1.5: allowed is 0 to 1");
        let endless = ["-t", "0", "-q", "0.6", "-m", "2"];
        let text = tree(&endless);
        assert!(
            text.starts_with("q is 0.6 and m is 2") && text.contains("--limit NODES"),
            "{text}"
        );
        let wanted = parse(&[&endless[..], &["--limit", "1000"]].concat()).expect("sound");
        assert!(wanted.tree().is_ok());
        let kernel = parse(&["--kernel", "fast"]).expect("sound for the parser").kernel();
        let text = kernel.expect_err("must be refused").to_string();
        assert!(text.starts_with("no kernel `fast`") && text.ends_with("plain"), "{text}");

        let plan = |line: &str, ranks| {
            let arguments: Vec<&str> = line.split(' ').collect();
            let mut options = parse(&arguments).expect("sound for the parser");
            options.vrt = options.vrt.with_pes(2).with_ranks(ranks);
            options.plan().expect_err("must be refused").to_string()
        };
        let text = plan("--algorithm static --termination token", 4);
        assert!(text.contains("static") && text.ends_with("with static there is quiescence"));
        assert!(plan("--algorithm share", 1).contains("allowed are 2 or more"));
        let text = plan("--algorithm share --victims last", 2);
        assert_eq!(text, "--victims with algorithm share: allowed with steal only");
        assert!(plan("--algorithm share -i adaptive", 2).contains("allowed are numbers of nodes"));
        assert!(plan("--algorithm hierarchical -c 4000", 2).starts_with("chunk 4000 with"));
    }

    #[test]
    fn a_plan_is_the_algorithms_with_what_was_given() {
        let plan_on = |line: &str, pes| {
            let arguments: Vec<&str> = line.split_whitespace().collect();
            let mut options = parse(&arguments).expect("sound");
            options.vrt = options.vrt.with_pes(pes).with_ranks(4);
            options.plan().expect("sound")
        };
        let plan = |line| plan_on(line, 4);
        assert_eq!(plan(""), Plan::default());
        let asks = |line, pes| plan_on(line, pes).sharing.asks;
        assert_eq!(
            [asks("", 3), asks("--ask at-once", 3), asks("--ask when-idle", 4)],
            [Asks::WhenIdle, Asks::AtOnce, Asks::AtOnce]
        );
        let sharing = Sharing { chunk: 7, ..Algorithm::Steal2007.defaults() };
        let expected = Plan { sharing, ..Plan::of(Algorithm::Steal2007) };
        assert_eq!(plan("--algorithm steal-2007 -c 7"), expected);
        let steal = plan("--victims random --amount chunk -i adaptive --termination token");
        assert_eq!(steal.termination, Termination::Token);
        let Sharing { victims, amount, interval, .. } = steal.sharing;
        let expected = (Victims::Random, Amount::Chunk, Interval::Adaptive);
        assert_eq!((victims, amount, interval), expected);
        let limited = plan("--limit 6400 -i 4000");
        let expected = (Some(6400), Interval::Fixed(100));
        assert_eq!((limited.limit, limited.sharing.interval), expected);
    }
}
