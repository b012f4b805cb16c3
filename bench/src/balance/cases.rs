//! The cases: programs, the best balancing for each, and other load during the run.

/// A program and its circumstances.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    pub name: &'static str,
    /// The program and its arguments, as they would follow `VRT_PES=2` on a command line.
    pub command: &'static str,
    /// The balancer that an expert would choose for the case; empty if none helps.
    pub best: &'static [&'static str],
    pub auto: &'static [&'static str],
    /// For how many seconds another program uses the core of PE 1 half of the time.
    pub shared: f64,
    /// It runs as one PE on each of two machines.
    pub is_across: bool,
}

const AUTO: &[&str] = &["--lb", "auto", "--lb-report", "steps"];
const BY_STATE: &[&str] = &["--lb", "auto", "--lb-report", "steps", "--move", "state"];
const REFINE: &[&str] = &["--lb", "greedy-refine", "--lb-period", "100ms"];
const REFINE_BY_STATE: &[&str] =
    &["--lb", "greedy-refine", "--lb-period", "100ms", "--move", "state"];
/// Ranks that communicate stay on one machine.
const HILBERT: &[&str] = &["--lb", "hilbert", "--lb-period", "100ms"];
const REFINE_SLOWLY: &[&str] = &["--lb", "greedy-refine", "--lb-period", "400ms"];
/// Longer than any case takes.
const THROUGHOUT: f64 = 600.0;

const fn case(
    name: &'static str,
    command: &'static str,
    best: &'static [&'static str],
    shared: f64,
) -> Case {
    Case { name, command, best, auto: AUTO, shared, is_across: false }
}

/// Jacobi: how often ranks offer to move by state (0: never), cells per side, ranks, iterations, and further options.
macro_rules! jacobi {
    ($every:literal, $size:literal, $ranks:literal, $iterations:literal $(, $more:literal)*) => {
        concat!(
            "rocket-mini jacobi --no-progress --no-verify --tolerance 0 --migrate-every ",
            $every,
            " --size ",
            $size,
            " --ranks ",
            $ranks,
            " --max-iterations ",
            $iterations,
            " "
            $(, $more)*
        )
    };
}

/// A quarter of the cells costs eight times as much.
macro_rules! uneven {
    ($name:literal, $ranks:literal, $iterations:literal, $more:literal) => {
        case($name, jacobi!(0, 96, $ranks, $iterations, "--uneven 0.25:8 ", $more), REFINE, 0.0)
    };
}

pub(super) const CASES: &[Case] = &[
    uneven!("uneven 96^3", 32, 3000, ""),
    uneven!("uneven 96^3, 8 ranks", 8, 3000, ""),
    uneven!("uneven 96^3, 16 ranks", 16, 3000, ""),
    uneven!("uneven 96^3, 64 ranks", 64, 3000, ""),
    Case {
        auto: BY_STATE,
        ..case(
            "uneven 96^3 by state",
            jacobi!(20, 96, 32, 3000, "--uneven 0.25:8"),
            REFINE_BY_STATE,
            0.0,
        )
    },
    uneven!("uneven 96^3 on two nodes", 32, 3000, "--node-size 1"),
    Case {
        is_across: true,
        // Both machines have this one's cores: their PEs would be bound to the same.
        ..case(
            "uneven 96^3 on two machines",
            jacobi!(0, 96, 32, 3000, "--uneven 0.25:8 --no-bind"),
            HILBERT,
            0.0,
        )
    },
    uneven!("wandering 96^3", 32, 4000, "--wander 1"),
    uneven!("coming and going 96^3", 32, 4000, "--come-and-go 1"),
    case("shared core 288^3", jacobi!(0, 288, 32, 500), REFINE_SLOWLY, THROUGHOUT),
    case("shared core 96^3 for 3 s", jacobi!(0, 96, 32, 10000), &[], 3.0),
    case("even 96^3", jacobi!(0, 96, 32, 6000), &[], 0.0),
    case("even 192^3", jacobi!(0, 192, 32, 1000), &[], 0.0),
    case("uts T1L", "uts --ranks 32 --tree T1L", &[], 0.0),
    case("nbody", "sparse-mini nbody --ranks 16", &[], 0.0),
    case(
        "nbody cut by volume",
        "sparse-mini nbody --ranks 32 --cut volume --bodies 10000 --energy 1",
        REFINE,
        0.0,
    ),
    case("exchange", "sparse-mini bench --ranks 32 --exchange nbx --rounds 20000", &[], 0.0),
    case("bfs", "sparse-mini bfs --ranks 32 --graph kronecker --searches 64", &[], 0.0),
];
