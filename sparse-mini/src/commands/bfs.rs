//! `sparse-mini bfs`.

use std::process::ExitCode;

use mpi::collective::SystemOperation;
use mpi::traits::*;
use rand::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};
use sparse_mini::bfs::{Graph, Part, UNREACHED, search, wrong};

use super::{line, positive};

/// Search a graph level by level; remote vertices are sent by sparse exchange.
///
/// Distances are checked arc by arc; the exit status is 1 if one is wrong.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// balanced: each rank has a random graph and a few arcs to others; or kronecker: Graph500's
    #[arg(long, value_name = "KIND", default_value = "balanced")]
    graph: Kind,

    /// Vertices of each rank (balanced)
    #[arg(long, value_name = "COUNT", default_value_t = 1000, value_parser = vrt_cli::positive::<u32>)]
    vertices: u32,

    /// Probability of an edge between two vertices of a rank (balanced)
    #[arg(long, value_name = "NUMBER", default_value_t = 0.03, value_parser = probability)]
    probability: f64,

    /// Arcs from each rank to others (balanced)
    #[arg(long, value_name = "COUNT", default_value_t = 6)]
    remote: u32,

    /// Binary logarithm of the number of vertices (kronecker)
    #[arg(long, value_name = "NUMBER", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=40))]
    scale: u32,

    /// Edges per vertex (kronecker)
    #[arg(long, value_name = "COUNT", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1024))]
    factor: u32,

    /// Searches, each from a random root
    #[arg(long, value_name = "COUNT", default_value_t = 8, value_parser = positive)]
    searches: usize,

    /// Seed of the graph and the roots
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,

    #[command(flatten)]
    pub vrt: mpi::Config,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Kind {
    Balanced,
    Kronecker,
}

/// A rank between two searches.
#[derive(Serialize, Deserialize)]
struct State {
    part: Part,
    done: usize,
    seconds: f64,
    /// Arcs of reached vertices, over all searches.
    traversed: u64,
    levels: u32,
    neighbors: u64,
    wrong: u64,
}

/// Runs one rank.
pub(crate) fn run(args: &Args) -> ExitCode {
    let Some(universe) = mpi::initialize() else { return ExitCode::FAILURE };
    let world = universe.world();
    let graph = match args.graph {
        Kind::Balanced => Graph::Balanced {
            vertices: args.vertices,
            probability: args.probability,
            remote: args.remote,
        },
        Kind::Kronecker => Graph::Kronecker { scale: args.scale, factor: args.factor },
    };
    let mut state: State = world.restore().unwrap_or_else(|| State {
        part: graph.build(&world, args.seed),
        done: 0,
        seconds: 0.0,
        traversed: 0,
        levels: 0,
        neighbors: 0,
        wrong: 0,
    });
    while state.done < args.searches {
        one_search(&world, args.seed, &mut state);
        world.migrate(&mut state);
    }
    report(&world, args, &state)
}

fn one_search(world: &impl Communicator, seed: u64, state: &mut State) {
    let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(seed ^ 0x5eed);
    random.set_stream(state.done as u64);
    let root = random.random_range(0..state.part.vertices);
    world.barrier();
    let began = mpi::time();
    let found = search(world, &state.part, root);
    state.seconds += mpi::time() - began;
    let reached = found.distances.iter().enumerate().filter(|(_, d)| **d != UNREACHED);
    state.traversed += reached.map(|(v, _)| state.part.neighbors(v).len() as u64).sum::<u64>();
    state.levels = state.levels.max(found.levels);
    state.neighbors = state.neighbors.max(found.neighbors as u64);
    state.wrong += wrong(world, &state.part, root, &found.distances);
    state.done += 1;
}

fn report(world: &impl Communicator, args: &Args, state: &State) -> ExitCode {
    let mine = [state.part.arcs() as u64, state.traversed];
    let mut sums = [0; 2];
    world.all_reduce_into(&mine, &mut sums, SystemOperation::sum());
    let mut neighbors = 0;
    world.all_reduce_into(&state.neighbors, &mut neighbors, SystemOperation::max());
    let mut seconds = 0.0;
    world.all_reduce_into(&state.seconds, &mut seconds, SystemOperation::max());
    if world.rank() == 0 {
        line("graph", format!("{} vertices, {} arcs", state.part.vertices, sums[0]));
        line("searches", format!("{} on {} ranks", args.searches, world.size()));
        line("levels", format!("at most {}", state.levels));
        line("neighbours k", format!("at most {neighbors}"));
        let each = seconds / args.searches as f64;
        line("time", format!("{each:.6} s a search, {:.4e} arcs/s", sums[1] as f64 / seconds));
        if state.wrong > 0 {
            line("verification", format!("WRONG: {} distances", state.wrong));
            return ExitCode::FAILURE;
        }
        line("verification", "ok".to_owned());
    }
    ExitCode::SUCCESS
}

fn probability(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|p: &f64| (0.0..=1.0).contains(p));
    number.ok_or_else(|| "a number from 0 to 1 is allowed".to_owned())
}
