//! Thread-local variables, tables in statics, random numbers: what a PE has, and its ranks use.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::{LazyLock, OnceLock};

use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use vrt::topology::SimpleCommunicator;
use vrt::traits::*;

use crate::rounds::{Rounds, pass, sum};

thread_local! {
    static CALLS: Cell<u64> = const { Cell::new(0) };
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static NAMES: RefCell<HashMap<String, Rc<str>>> = RefCell::new(HashMap::new());
}

/// A counter, a buffer that is used again and again, and a table of shared names.
pub(crate) fn thread_locals(world: &SimpleCommunicator, rounds: &mut Rounds<'_>) {
    let me = world.rank();
    let mut kept: Vec<Rc<str>> = Vec::new();
    while let Some(round) = rounds.next() {
        let before = CALLS.get();
        let text = render(&format!("rank {me} round {round}"));
        assert_eq!(CALLS.get(), before + 1);
        world.barrier();
        assert_eq!(text, format!("<rank {me} round {round}>"));
        // An `Rc` of the thread's; the rank stays while it has one.
        if round % 8 < 4 {
            kept.push(intern(&format!("name {}", round % 3)));
        } else {
            kept.clear();
        }
        pass(world, &text);
        assert!(kept.iter().all(|name| name.starts_with("name ") && Rc::strong_count(name) > 1));
    }
}

#[inline(never)]
fn render(text: &str) -> String {
    CALLS.set(CALLS.get() + 1);
    BUFFER.with_borrow_mut(|buffer| {
        buffer.clear();
        buffer.push(b'<');
        buffer.extend_from_slice(text.as_bytes());
        buffer.push(b'>');
        String::from_utf8(buffer.clone()).expect("it is a text")
    })
}

#[inline(never)]
fn intern(name: &str) -> Rc<str> {
    NAMES.with_borrow_mut(|names| {
        Rc::clone(names.entry(name.to_owned()).or_insert_with(|| Rc::from(name)))
    })
}

static PRIMES: LazyLock<Vec<u64>> = LazyLock::new(|| {
    let mut primes: Vec<u64> = vec![2];
    for n in (3..1000u64).step_by(2) {
        if primes.iter().take_while(|p| **p * **p <= n).all(|p| !n.is_multiple_of(*p)) {
            primes.push(n);
        }
    }
    primes
});
static NAMED: OnceLock<HashMap<&'static str, Vec<String>>> = OnceLock::new();

/// Tables that the first rank of a PE makes, and references into them that ranks keep.
pub(crate) fn tables(world: &SimpleCommunicator, rounds: &mut Rounds<'_>) {
    let me = world.rank() as usize;
    let mut kept: Vec<&'static String> = Vec::new();
    rounds.state::<()>();
    while let Some(round) = rounds.next_with(&mut ()) {
        let prime = PRIMES[(me + round as usize) % PRIMES.len()];
        world.barrier();
        assert!((2..prime).all(|n| !prime.is_multiple_of(n)));
        let entry: &'static String = &table()["numbers"][me];
        kept.push(entry);
        pass(world, entry);
        assert!(kept.iter().all(|text| **text == format!("number {me}")));
        if round % 10 == 0 {
            kept.clear();
        }
        assert_eq!(PRIMES.len(), 168);
    }
}

#[inline(never)]
fn table() -> &'static HashMap<&'static str, Vec<String>> {
    NAMED.get_or_init(|| {
        HashMap::from([
            ("numbers", (0..100).map(|n| format!("number {n}")).collect()),
            ("none", vec![]),
        ])
    })
}

/// The random numbers of the thread, their source kept over a barrier: none comes twice.
pub(crate) fn random(world: &SimpleCommunicator, rounds: &mut Rounds<'_>) {
    let mut seen: Vec<u64> = rounds.state();
    while let Some(round) = rounds.next_with(&mut seen) {
        let mut source = rand::rng();
        seen.push(source.random());
        world.barrier();
        seen.push(source.random());
        let within = source.random_range(10..20);
        drop(source);
        assert!((10..20).contains(&within));
        world.barrier();
        seen.push(rand::random());
        let next = pass(world, &seen[seen.len() - 1]);
        assert!(!seen.contains(&next), "round {round}");
    }
    let mut all = vec![0u64; 15 * world.size() as usize];
    world.all_gather_into(&seen[..15], &mut all[..]);
    all.sort_unstable();
    assert!(all.windows(2).all(|pair| pair[0] != pair[1]), "a number has come twice");
}

/// A seeded source of the rank's own gives what it always gives; with it, the area of a circle.
pub(crate) fn seeded(world: &SimpleCommunicator, rounds: &mut Rounds<'_>) {
    let seed = 42 + world.rank() as u64;
    let mut source = StdRng::seed_from_u64(seed);
    let mut cards: Vec<u8> = (0..52).collect();
    let (mut given, mut inside, mut tries) = (Vec::new(), 0, 0);
    while let Some(_round) = rounds.next() {
        for _ in 0..100 {
            let (x, y): (f64, f64) = (source.random(), source.random());
            inside += u64::from(x * x + y * y < 1.0);
            tries += 1;
        }
        given.push(source.random::<u64>());
        world.barrier();
        cards.shuffle(&mut source);
        pass(world, &cards);
    }
    let mut again = StdRng::seed_from_u64(seed);
    let mut expected: Vec<u8> = (0..52).collect();
    for number in &given {
        let _: Vec<f64> = (0..200).map(|_| again.random()).collect();
        assert_eq!(again.random::<u64>(), *number);
        expected.shuffle(&mut again);
    }
    assert_eq!(cards, expected);
    let area = 4.0 * sum(world, inside) as f64 / sum(world, tries) as f64;
    assert!((area - std::f64::consts::PI).abs() < 0.15, "{area}");
}
