//! Runs searchers and sharers under a scheduler that delays and reorders messages as badly as it
//! can.

use super::*;
use crate::{
    frontier::Frontier,
    lanes::Kernel,
    plan::{Algorithm, Asks, Interval, Plan},
    sharing::Sharer,
    tree::{Kind, Parameters, Shape, Tree},
};

/// Machines, and the messages in flight between them.
struct World<M> {
    machines: Vec<M>,
    flying: Vec<(usize, usize, Message)>,
    /// What machines have added to a sum over all, and the ranks that lack its result.
    adding: Vec<Option<[u64; 2]>>,
    sums: Vec<(usize, [u64; 2])>,
    /// Nothing may be in flight when rank 0 detects the end.
    clean_end: bool,
    random: u64,
}

impl<M: Machine> World<M> {
    fn new(machines: Vec<M>, clean_end: bool, seed: u64) -> Self {
        let (flying, sums, adding) = (Vec::new(), Vec::new(), vec![None; machines.len()]);
        Self { machines, flying, adding, sums, clean_end, random: seed.wrapping_mul(2) + 1 }
    }

    fn draw(&mut self, below: usize) -> usize {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.random >> 33) as usize % below
    }

    /// Lets one rank respond, and sends its messages.
    fn respond(&mut self, rank: usize, may_ask: bool) {
        self.machines[rank].respond(may_ask);
        if rank == 0 && self.machines[0].has_ended() && self.clean_end {
            assert!(self.flying.is_empty(), "in flight at the end: {:?}", self.flying);
            let working = self.machines.iter().filter(|it| it.has_work()).count();
            assert_eq!(working, 0);
        }
        while let Some((to, message)) = self.machines[rank].next_outgoing() {
            self.flying.push((rank, to, message));
        }
        if self.adding[rank].is_none() && !self.sums.iter().any(|it| it.0 == rank) {
            self.adding[rank] = self.machines[rank].contribution();
        }
        if self.adding.iter().all(Option::is_some) {
            let added = self.adding.iter_mut().filter_map(Option::take);
            let sums = added.fold([0; 2], |sums, it| [sums[0] + it[0], sums[1] + it[1]]);
            self.sums.extend((0..self.machines.len()).map(|it| (it, sums)));
        }
    }

    /// Lets ranks work and messages arrive in any order until the end.
    fn run(&mut self) {
        // Else as on processors that are idle now and then.
        let eager = self.draw(2) == 0;
        (0..self.machines.len()).for_each(|rank| self.respond(rank, eager));
        while !self.machines.iter().all(Machine::has_ended) {
            let working: Vec<usize> =
                (0..self.machines.len()).filter(|&it| self.machines[it].has_work()).collect();
            let (workers, messages) = (working.len(), self.flying.len());
            let waiting: Vec<usize> =
                (0..self.machines.len()).filter(|&it| self.machines[it].would_ask()).collect();
            let others = workers + messages + waiting.len();
            let choices = others + self.sums.len();
            assert!(choices > 0, "nobody works, nothing is on its way, and it is not the end");
            let rank = match self.draw(choices) {
                choice if choice < workers => {
                    self.machines[working[choice]].explore();
                    working[choice]
                }
                choice if choice < workers + messages => {
                    let (from, to, message) = self.flying.swap_remove(choice - workers);
                    assert!(!self.machines[to].has_ended(), "{message:?} after the end");
                    self.machines[to].receive(from, message);
                    to
                }
                choice if choice < others => {
                    self.respond(waiting[choice - workers - messages], true);
                    continue;
                }
                choice => {
                    let (rank, sums) = self.sums.swap_remove(choice - others);
                    self.machines[rank].receive_sums(sums);
                    rank
                }
            };
            self.respond(rank, eager);
        }
        assert!(self.flying.is_empty(), "left over: {:?}", self.flying);
    }

    fn expect_whole_tree(&self, tree: &Tree) {
        let mut alone = Frontier::new(tree, Kernel::fastest());
        alone.start();
        alone.explore(u64::MAX);
        let sum = |it: fn(&M) -> u64| self.machines.iter().map(it).sum::<u64>();
        assert_eq!(sum(|it| it.counts().nodes), alone.counts().nodes);
        assert_eq!(sum(|it| it.counts().leaves), alone.counts().leaves);
        let depth = self.machines.iter().map(|it| it.counts().depth).max();
        assert_eq!(depth, Some(alone.counts().depth));
        assert_eq!(sum(|it| it.traffic().releases), sum(|it| it.traffic().steals));
        let released = sum(|it| it.traffic().nodes_released);
        assert_eq!(released, sum(|it| it.traffic().nodes_stolen));
        let added = |it: fn(&M) -> u64| self.machines.iter().map(it).fold(0, u64::wrapping_add);
        assert_eq!(added(|it| it.traffic().put), added(|it| it.traffic().got));
    }
}

fn stealing<'t>(
    tree: &'t Tree,
    ranks: usize,
    plan: Plan,
    seed: u64,
) -> World<Searcher<Frontier<'t>>> {
    let Plan { sharing, termination, .. } = plan;
    let new =
        |it| Searcher::new(Frontier::new(tree, Kernel::fastest()), it, ranks, sharing, termination);
    // Red tokens and sums tell the end to one rank after the other.
    let clean = matches!(termination, Termination::DijkstraScholten | Termination::Counting);
    World::new((0..ranks).map(new).collect(), clean, seed)
}

fn small_trees() -> Vec<Parameters> {
    let default = Parameters::default();
    vec![
        default,
        Parameters { kind: Kind::Balanced, depth: 0, ..default },
        Parameters { shape: Shape::Fixed, depth: 4, seed: 19, ..default },
        Parameters {
            kind: Kind::Binomial,
            branching: 100.0,
            probability: 0.124_875,
            children: 8,
            seed: 42,
            ..default
        },
    ]
}

#[test]
fn any_order_of_messages_gives_the_whole_tree_and_a_clean_end() {
    for parameters in small_trees() {
        let tree = Tree::new(parameters).expect("a sound tree");
        for (seed, ranks) in (0..8).flat_map(|seed| [1, 2, 3, 7, 16, 33].map(|it| (seed, it))) {
            for (victims, amount) in
                Victims::ALL.into_iter().flat_map(|it| Amount::ALL.map(|other| (it, other)))
            {
                let interval = match seed % 4 {
                    0 => Interval::Adaptive,
                    _ => Interval::Fixed(1 + 5 * seed),
                };
                let (chunk, one_at_a_look) = (1 + seed % 5, seed % 2 == 1);
                let sharing = Sharing {
                    chunk,
                    interval,
                    tries: 2,
                    victims,
                    amount,
                    one_at_a_look,
                    asks: Asks::AtOnce,
                };
                for termination in Termination::ALL {
                    let plan = Plan { sharing, termination, ..Plan::default() };
                    let mut world = stealing(&tree, ranks, plan, seed);
                    world.run();
                    world.expect_whole_tree(&tree);
                }
            }
        }
    }
}

#[test]
fn a_manager_shares_the_whole_tree_whatever_overtakes_what() {
    for parameters in small_trees() {
        let tree = Tree::new(parameters).expect("a sound tree");
        for (seed, ranks) in (0..20).flat_map(|seed| [2, 3, 7, 33].map(|it| (seed, it))) {
            let interval = Interval::Fixed(1 + 5 * seed);
            let sharing = Sharing { chunk: 1 + seed % 5, interval, ..Sharing::default() };
            let new = |it| Sharer::new(Frontier::new(&tree, Kernel::fastest()), it, ranks, sharing);
            let mut world = World::new((0..ranks).map(new).collect(), false, seed);
            world.run();
            world.expect_whole_tree(&tree);
        }
    }
}

#[test]
fn work_reaches_everybody_when_there_is_much() {
    let (shape, depth) = (Shape::Fixed, 6);
    let parameters = Parameters { shape, depth, seed: 19, ..Parameters::default() };
    let tree = Tree::new(parameters).expect("a sound tree");
    for victims in Victims::ALL {
        let interval = Interval::Fixed(16);
        let sharing = Sharing { chunk: 2, interval, victims, ..Sharing::default() };
        let mut world = stealing(&tree, 16, Plan { sharing, ..Plan::default() }, 1);
        world.run();
        assert!(world.machines.iter().all(|it| it.counts().nodes > 0), "{victims:?}");
    }
}

#[test]
fn a_chunk_is_given_only_from_more_than_two_and_to_one_thief_at_a_look() {
    let tree = Tree::new(Parameters::default()).expect("a sound tree");
    let sharing = Sharing { chunk: 4, ..Algorithm::Steal2007.defaults() };
    let mut victim =
        Searcher::new(Frontier::new(&tree, Kernel::PLAIN), 1, 4, sharing, Termination::Counting);
    let branch = Branch { state: crate::rng::State::root(0), depth: 6, next: 0, end: 13 };
    victim.receive(0, Message::Gift(vec![branch]));
    [2, 3, 2].into_iter().for_each(|thief| victim.receive(thief, Message::Try));
    let mut answers = Vec::new();
    for _ in 0..3 {
        victim.respond(true);
        answers.extend(victim.next_outgoing());
        assert_eq!(victim.next_outgoing(), None, "one at a look");
    }
    let first = Branch { end: 4, ..branch };
    let second = Branch { next: 4, end: 8, ..branch };
    let expected =
        [(2, Message::Work(vec![first])), (3, Message::Work(vec![second])), (2, Message::Refusal)];
    assert_eq!(answers, expected);
}

#[test]
fn a_thief_asks_a_bounded_number_of_times_and_then_waits() {
    let tree = Tree::new(Parameters::default()).expect("a sound tree");
    let sharing = Sharing { tries: 3, ..Sharing::default() };
    let end = Termination::DijkstraScholten;
    let mut thief = Searcher::new(Frontier::new(&tree, Kernel::PLAIN), 5, 16, sharing, end);
    thief.respond(true);
    assert_eq!(thief.next_outgoing(), None, "at the start its name is left already");

    let state = crate::rng::State::root(0);
    let branch = Branch { state, depth: 6, next: 0, end: 1 };
    thief.receive(4, Message::Gift(vec![branch]));
    thief.explore();
    for _ in 0..3 {
        thief.respond(true);
        let (victim, message) = thief.next_outgoing().expect("it tries again");
        assert_eq!((message, victim == 5), (Message::Try, false));
        assert_eq!(thief.next_outgoing(), None);
        thief.receive(victim, Message::Refusal);
    }
    thief.respond(true);
    assert_eq!(thief.next_outgoing(), Some((4, Message::Lifeline)), "the others still stand");
    assert_eq!(thief.next_outgoing(), None);
    thief.receive(4, Message::Note);
    thief.respond(true);
    assert_eq!(thief.next_outgoing(), Some((4, Message::Receipt)), "its parent's");
    thief.receive(9, Message::Try);
    thief.respond(true);
    assert_eq!(thief.next_outgoing(), Some((9, Message::Refusal)));
    assert_eq!(thief.next_outgoing(), None, "from now on it only answers");
}

#[test]
fn hypercubes_are_symmetric_and_connected() {
    for ranks in 1..70 {
        for rank in 1..ranks {
            let neighbours = neighbours(rank, ranks);
            assert!(neighbours.iter().any(|&it| it < rank));
            assert!(neighbours.iter().all(|&it| super::neighbours(it, ranks).contains(&rank)));
        }
    }
    assert!(neighbours(0, 1).is_empty());
    assert_eq!(neighbours(5, 7), [4, 1]);
}
