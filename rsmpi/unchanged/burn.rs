//! A program for the `mpi` crate that knows nothing of vrt, with work that is not even: heat spreads in a plate, and
//! a quarter of it burns, which takes Newton's method in each cell.
//!
//!   burn [CELLS [STEPS]]     cells along each edge of the square (default 64), steps (default 20)
//!
//! It prints the time of its steps and a checksum, which is the same on all numbers of ranks:
//! `vrtrun sweep --metric 'time +(\S+) s' --same 'checksum +(\S+)' burn 1024 100`.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use mpi::collective::SystemOperation;
use mpi::point_to_point as p2p;
use mpi::topology::SimpleCommunicator;
use mpi::traits::*;

/// Cells that a rank has burnt: a static, of which each rank has its own.
static BURNT: AtomicU64 = AtomicU64::new(0);

/// A rank's rows of the square, with a row of each neighbour above and below.
struct Rows {
    range: Range<usize>,
    wide: usize,
    now: Vec<f64>,
    next: Vec<f64>,
}

impl Rows {
    fn new(world: &SimpleCommunicator, cells: usize) -> Rows {
        let (rank, size) = (world.rank() as usize, world.size() as usize);
        let range = cells * rank / size..cells * (rank + 1) / size;
        let wide = cells + 2;
        let mut now = vec![0.0; (range.len() + 2) * wide];
        // The upper edge is hot.
        if range.start == 0 {
            now[..wide].fill(1.0);
        }
        Rows { next: now.clone(), range, wide, now }
    }

    fn row(&self, row: usize) -> &[f64] {
        &self.now[row * self.wide..(row + 1) * self.wide]
    }

    /// Edge rows go to the neighbours that have any, theirs come.
    fn exchange(&mut self, world: &SimpleCommunicator, cells: usize) {
        if self.range.is_empty() {
            return;
        }
        let (rank, size) = (world.rank() as usize, world.size() as usize);
        let has_rows = |other: usize| cells * other / size < cells * (other + 1) / size;
        let before = (0..rank).rev().find(|other| has_rows(*other));
        let after = (rank + 1..size).find(|other| has_rows(*other));
        let (first, last) = (self.row(1).to_vec(), self.row(self.range.len()).to_vec());
        let wide = self.wide;
        for (there, back, own, into) in
            [(before, after, &first, self.range.len() + 1), (after, before, &last, 0)]
        {
            let halo = &mut self.now[into * wide..(into + 1) * wide];
            let process = |other: usize| world.process_at_rank(other as i32);
            match (there, back) {
                (Some(there), Some(back)) => {
                    p2p::send_receive_into(&own[..], &process(there), halo, &process(back));
                }
                (Some(there), None) => process(there).send(&own[..]),
                (None, Some(back)) => {
                    process(back).receive_into(halo);
                }
                (None, None) => {}
            }
        }
    }

    fn step(&mut self, cells: usize) {
        let wide = self.wide;
        for row in 1..=self.range.len() {
            // The last quarter burns.
            let burns = 4 * (self.range.start + row - 1) >= 3 * cells;
            for column in 1..=cells {
                let at = row * wide + column;
                let now = &self.now;
                let around = now[at - 1] + now[at + 1] + now[at - wide] + now[at + wide];
                let heat = 0.25 * around;
                self.next[at] = if burns { burn(heat) } else { heat };
            }
        }
        if burns_any(&self.range, cells) {
            BURNT.fetch_add(1, Ordering::Relaxed);
        }
        let (from, to) = (wide, (self.range.len() + 1) * wide);
        self.now[from..to].copy_from_slice(&self.next[from..to]);
    }

    /// The same whichever rank has a row, and in whatever order rows are taken.
    fn checksum(&self) -> u64 {
        let rows = (1..=self.range.len()).map(|row| {
            let numbers = self.row(row).iter();
            numbers.fold((self.range.start + row) as u64, |sum, heat| {
                (sum ^ heat.to_bits()).wrapping_mul(0x9e37_79b9_7f4a_7c15)
            })
        });
        rows.fold(0, |all, row| all ^ row)
    }
}

fn burns_any(rows: &Range<usize>, cells: usize) -> bool {
    4 * rows.end > 3 * cells + 3
}

/// The temperature after burning: solves t = heat + 0.1 exp(-1 / (0.2 + t)).
fn burn(heat: f64) -> f64 {
    let mut t = heat;
    for _ in 0..3 {
        let burning = 0.1 * (-1.0 / (0.2 + t)).exp();
        let slope = burning / ((0.2 + t) * (0.2 + t));
        t -= (t - heat - burning) / (1.0 - slope);
    }
    t
}

fn main() {
    let universe = mpi::initialize().unwrap();
    let world = universe.world();
    let mut arguments = std::env::args().skip(1).map(|word| word.parse::<usize>());
    let mut argument = |usual: usize| match arguments.next() {
        None => usual,
        Some(Ok(number @ 1..)) => number,
        _ => {
            if world.rank() == 0 {
                eprintln!("burn [CELLS [STEPS]]: whole numbers from 1 on are allowed");
            }
            std::process::exit(2)
        }
    };
    let (cells, steps) = (argument(64), argument(20));
    let mut rows = Rows::new(&world, cells);
    world.barrier();
    let began = mpi::time();
    for _ in 0..steps {
        rows.exchange(&world, cells);
        rows.step(cells);
    }
    world.barrier();
    let time = mpi::time() - began;
    let mut sum = 0_u64;
    world.all_reduce_into(&rows.checksum(), &mut sum, SystemOperation::bitwise_xor());
    let burnt = BURNT.load(Ordering::Relaxed);
    assert!(burnt == 0 || burnt == steps as u64, "the static is another rank's, too");
    if world.rank() == 0 {
        println!("checksum   {sum:016x}");
        println!("time       {time:.6} s");
    }
}
