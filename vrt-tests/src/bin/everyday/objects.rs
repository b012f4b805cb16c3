//! Things of all kinds in a rank's own memory: graphs, trait objects, numbers, panics.

use std::any::Any;
use std::cell::RefCell;
use std::collections::LinkedList;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::{Rc, Weak};
use std::sync::{Arc, Mutex};

use num_complex::Complex;
use vrt::topology::SimpleCommunicator;
use vrt::traits::*;

use crate::rounds::{Prepared, Rounds, neighbours, pass};

#[derive(Debug)]
struct Node {
    number: u64,
    name: Arc<str>,
    next: Mutex<Vec<Arc<Node>>>,
}

struct Tree {
    value: u64,
    parent: Weak<Tree>,
    children: RefCell<Vec<Rc<Tree>>>,
}

/// A graph that grows, with nodes that several others share, and a tree with ways up.
pub(crate) fn graphs(world: &SimpleCommunicator, rounds: &mut Rounds<'_>) {
    let me = world.rank() as u64;
    let node = |number: u64| {
        let name = Arc::from(format!("node {number} of {me}"));
        Arc::new(Node { number, name, next: Mutex::default() })
    };
    let first = node(0);
    let mut last = vec![Arc::clone(&first)];
    let root = Rc::new(Tree { value: me, parent: Weak::new(), children: RefCell::default() });
    while let Some(round) = rounds.next() {
        let (left, right) = (node(2 * round), node(2 * round + 1));
        for node in &last {
            node.next.lock().expect("no panic").extend([Arc::clone(&left), Arc::clone(&right)]);
        }
        last = vec![left, right];
        let leaf = Rc::new(Tree {
            value: round,
            parent: Rc::downgrade(&root),
            children: RefCell::default(),
        });
        root.children.borrow_mut().push(leaf);
        pass(world, &round);
        let (mut at, mut sum) = (Arc::clone(&first), 0);
        loop {
            sum += at.number;
            assert_eq!(*at.name, *format!("node {} of {me}", at.number));
            let next = at.next.lock().expect("no panic").last().cloned();
            let Some(next) = next else { break };
            at = next;
        }
        assert_eq!(sum, round * (round + 1) + round);
        world.barrier();
        let children = root.children.borrow();
        let up = |child: &Rc<Tree>| child.parent.upgrade().expect("it lives").value;
        assert!((1..).zip(&*children).all(|(n, child)| child.value == n && up(child) == me));
        assert_eq!(Rc::weak_count(&root) as u64, round);
        assert!(children.iter().all(|child| child.children.borrow().is_empty()));
    }
}

/// What `main` has made, shared by clones that come and go.
pub(crate) fn prepared(world: &SimpleCommunicator, rounds: &mut Rounds<'_>) {
    let Prepared { texts, table } = rounds.prepared;
    let mut kept: Vec<Arc<Vec<String>>> = Vec::new();
    let mut kept_table = None;
    while let Some(round) = rounds.next() {
        match round % 4 {
            1 => kept = vec![Arc::clone(texts); 3],
            2 => kept.clear(),
            3 => kept_table = Some(Arc::clone(table)),
            _ => kept_table = None,
        }
        let on_stack = (round % 4 == 2).then(|| Arc::clone(texts));
        pass(world, &round);
        assert!(kept.iter().chain(&on_stack).all(|texts| texts[9] == "prepared 9"));
        assert!(kept_table.iter().all(|table| table[99_999] == 99_999));
    }
    drop((kept, kept_table));
    world.barrier();
    // `main` has one.
    let counts = (Arc::strong_count(texts), Arc::strong_count(table));
    assert_eq!(counts, (1, 1), "a clone was given back to another PE");
}

trait Shape {
    fn area(&self) -> f64;
    fn name(&self) -> String;
}

struct Circle(f64);
struct Rectangle {
    sides: (f64, f64),
    note: String,
}

impl Shape for Circle {
    fn area(&self) -> f64 {
        std::f64::consts::PI * self.0 * self.0
    }
    fn name(&self) -> String {
        format!("circle of {:.1}", self.0)
    }
}

impl Shape for Rectangle {
    fn area(&self) -> f64 {
        self.sides.0 * self.sides.1
    }
    fn name(&self) -> String {
        format!("{} of {:>5.2} x {:<5.2}", self.note, self.sides.0, self.sides.1)
    }
}

/// Trait objects, closures and lists of them.
pub(crate) fn shapes(world: &SimpleCommunicator, rounds: &mut Rounds<'_>) {
    let mut shapes: LinkedList<Box<dyn Shape>> = LinkedList::new();
    let mut later: Vec<Box<dyn Fn(f64) -> f64>> = Vec::new();
    let mut things: Vec<Box<dyn Any>> = Vec::new();
    let mut expected = 0.0;
    while let Some(round) = rounds.next() {
        let side = (round % 10) as f64;
        shapes.push_back(Box::new(Circle(1.0)));
        shapes.push_back(Box::new(Rectangle { sides: (side, 2.0), note: "box".repeat(3) }));
        expected += std::f64::consts::PI + 2.0 * side;
        later.push(Box::new(move |x| x + side));
        things.push(if round % 2 == 0 { Box::new(round) } else { Box::new(round.to_string()) });
        pass(world, &round);
        let area: f64 = shapes.iter().map(|shape| shape.area()).sum();
        assert!((area - expected).abs() < 1e-6 * expected);
        world.barrier();
        let name = shapes.back().expect("there are some").name();
        assert_eq!(name, format!("boxboxbox of {side:>5.2} x 2.00 "));
        assert_eq!(shapes.front().expect("there are some").name(), "circle of 1.0");
        let all = later.iter().fold(0.0, |x, add| add(x));
        assert_eq!(all, (1..=round).map(|n| (n % 10) as f64).sum::<f64>());
        for (n, thing) in (1..).zip(&things) {
            let number = thing.downcast_ref::<u64>().copied();
            let number = number.or_else(|| thing.downcast_ref::<String>()?.parse().ok());
            assert_eq!(number, Some(n));
        }
    }
}

/// A Fourier transform of complex numbers that all ranks have a part of, and back.
pub(crate) fn fourier(world: &SimpleCommunicator, rounds: &mut Rounds<'_>) {
    let (me, size) = (world.rank() as usize, world.size() as usize);
    let all = 8 * size;
    let wave = |sign: f64, i: usize, k: usize| {
        let turn = (i * k % all) as f64 / all as f64;
        Complex::from_polar(1.0, sign * std::f64::consts::TAU * turn)
    };
    rounds.state::<()>();
    while let Some(round) = rounds.next_with(&mut ()) {
        let value = |i: usize| Complex::new((i as f64 * 0.7 + round as f64).sin(), i as f64 * 0.1);
        let own: Vec<Complex<f64>> = (0..8).map(|i| value(me * 8 + i)).collect();
        let mut before = own;
        for sign in [-1.0, 1.0] {
            let mut total = vec![Complex::new(0.0, 0.0); all];
            world.all_gather_into(&before[..], &mut total[..]);
            let component = |k| (0..all).map(|i| total[i] * wave(sign, i, k)).sum();
            before = (me * 8..me * 8 + 8).map(component).collect();
        }
        let (next, previous) = neighbours(world);
        let mut got = vec![Complex::new(0.0, 0.0); 8];
        vrt::request::scope(|scope| {
            let sent = world.process_at_rank(next).immediate_send(scope, &before[..]);
            world.process_at_rank(previous).receive_into(&mut got[..]);
            sent.wait();
        });
        for (i, number) in (0..).zip(&got) {
            let expected = value(previous as usize * 8 + i) * all as f64;
            assert!((number - expected).norm() < 1e-9 * all as f64, "{number} for {expected}");
        }
    }
}

struct Counts<'a>(&'a mut u64);

impl Drop for Counts<'_> {
    fn drop(&mut self) {
        *self.0 += 1;
    }
}

/// Panics that are caught, one within the other; what they carried is kept.
pub(crate) fn panics(world: &SimpleCommunicator, rounds: &mut Rounds<'_>) {
    let me = world.rank();
    let mut kept: Vec<(u64, Box<dyn Any + Send>)> = Vec::new();
    let mut dropped = 0;
    if me == 0 {
        std::panic::set_hook(Box::new(|_| {}));
    }
    while let Some(round) = rounds.next() {
        let result = catch_unwind(AssertUnwindSafe(|| {
            let _counts = Counts(&mut dropped);
            world.barrier();
            let inner = catch_unwind(AssertUnwindSafe(|| {
                pass(world, &round);
                let none: Option<u64> = (round == 0).then_some(1);
                none.expect("there is nothing")
            }));
            world.barrier();
            let text = inner.expect_err("it panics").downcast::<String>();
            let text = text.map_or_else(|_| "there is nothing".to_owned(), |text| *text);
            assert!(text.contains("there is nothing"), "{text}");
            std::panic::panic_any(vec![round; 10]);
        }));
        kept.push((round, result.expect_err("it panics")));
        world.barrier();
        assert_eq!(dropped, round);
        for (round, payload) in &kept {
            assert_eq!(payload.downcast_ref::<Vec<u64>>(), Some(&vec![*round; 10]));
        }
        if kept.len() > 5 {
            let (round, payload) = kept.remove(0);
            let again = catch_unwind(AssertUnwindSafe(|| std::panic::resume_unwind(payload)));
            assert!(again.is_err_and(|payload| payload.is::<Vec<u64>>()), "{round}");
        }
        pass(world, &me);
    }
}
