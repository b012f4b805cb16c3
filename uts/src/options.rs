//! The command line, and what it asks for.

use clap::{ArgGroup, Parser};
use thiserror::Error;
use uts::{
    lanes::Kernel,
    named::{self, NAMED},
    searcher::Sharing,
    tree::{Kind, ParameterError, Parameters, Shape, Tree},
};

/// Unbalanced Tree Search: counts the nodes of a tree that is only known by searching it.
///
/// The tree is one with a published size (--tree), against which the result is checked, or any
/// other (-t, -b, -r, -a, -d, -q, -m, -f). Without either it is the benchmark's default, a
/// geometric tree of 1732 nodes.
#[derive(Parser, Clone, Debug)]
#[command(name = "uts", version, group = ArgGroup::new("explicit").multiple(true))]
pub struct Options {
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

    /// Number m of children that such a node has [default: 4]
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

    /// How often each node is computed anew: more work, the same tree
    #[arg(short, long, value_name = "TIMES", default_value_t = 1)]
    granularity: u32,

    /// Nodes that a rank keeps, and gives away, at least
    #[arg(short, long, value_name = "NODES", default_value_t = Sharing::default().chunk,
          value_parser = clap::value_parser!(u64).range(1..))]
    chunk: u64,

    /// Nodes that a rank searches between two looks for messages
    #[arg(short = 'i', long, value_name = "NODES", default_value_t = Sharing::default().poll_interval,
          value_parser = clap::value_parser!(u64).range(1..))]
    poll_interval: u64,

    /// Random ranks that a rank without work asks before it waits to be given some
    #[arg(long, value_name = "NUMBER", default_value_t = Sharing::default().tries)]
    tries: u32,

    /// How to compute nodes: auto (the fastest here), or plain, avx2, avx512
    #[arg(long, value_name = "NAME", default_value = "auto")]
    kernel: String,

    /// Search in one thread, without ranks
    #[arg(long)]
    pub sequential: bool,

    /// Print the statistics of every rank
    #[arg(short, long)]
    pub verbose: bool,

    /// Do not show progress (it is shown only on a terminal)
    #[arg(long)]
    pub no_progress: bool,

    /// Options of the runtime.
    #[command(flatten)]
    pub vrt: mpi::Config,
}

/// Why there is nothing to run.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum OptionsError {
    /// No tree has this name.
    #[error("no tree `{name}`; trees: {known}")]
    UnknownTree {
        /// The name that was given.
        name: String,
        /// The names that there are.
        known: String,
    },
    /// The parameters make no tree.
    #[error(transparent)]
    Parameters(#[from] ParameterError),
    /// No kernel has this name, or the processor lacks its instructions.
    #[error("no kernel `{name}` on this processor; kernels: auto, {known}")]
    UnknownKernel {
        /// The name that was given.
        name: String,
        /// The names that there are here.
        known: String,
    },
}

impl Options {
    /// The tree that is asked for.
    ///
    /// # Errors
    ///
    /// If its name is unknown or its parameters make no tree.
    pub fn tree(&self) -> Result<Tree, OptionsError> {
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
        Ok(Tree::new(Parameters { granularity: self.granularity, ..parameters })?)
    }

    /// The kernel that is asked for.
    ///
    /// # Errors
    ///
    /// If it is unknown or cannot run here.
    pub fn kernel(&self) -> Result<Kernel, OptionsError> {
        let kernels = Kernel::available();
        if self.kernel == "auto" {
            return Ok(kernels[0]);
        }
        kernels.iter().find(|it| it.name() == self.kernel).copied().ok_or_else(|| {
            let known = kernels.iter().map(|it| it.name()).collect::<Vec<_>>().join(", ");
            OptionsError::UnknownKernel { name: self.kernel.clone(), known }
        })
    }

    /// When ranks share work.
    pub fn sharing(&self) -> Sharing {
        Sharing { chunk: self.chunk, poll_interval: self.poll_interval, tries: self.tries }
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
            (&["-c", "0"], &["0", "--chunk", "1.."]),
            (&["-i", "many"], &["'many'", "--poll-interval"]),
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
        let kernel = parse(&["--kernel", "fast"]).expect("sound for the parser").kernel();
        let text = kernel.expect_err("must be refused").to_string();
        assert!(text.starts_with("no kernel `fast`") && text.ends_with("plain"), "{text}");
    }
}
