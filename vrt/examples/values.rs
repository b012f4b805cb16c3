//! Messages of any type that serde can encode: enums, strings, maps, boxes.
//!
//! Rank 0 gives out texts, the others count their words and ask for more when they are done.
//!
//! ```sh
//! VRT_PES=2 VRT_RANKS=8 cargo run -p virtual-ranks --example values
//! ```

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use vrt::traits::*;

#[derive(Debug, Serialize, Deserialize)]
enum Order {
    Count { text: String },
    Stop,
}

#[derive(Debug, Serialize, Deserialize)]
enum Report {
    Ready,
    Counted(BTreeMap<String, u32>),
}

const TEXT: &str = "in the beginning was the rank and the rank was with others and the others \
                    were few and then the others were many and the rank was with many others";

// An error that a rank's main returns ends the job with a failure.
#[vrt::main]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let universe = vrt::initialize().expect("main is a rank's program");
    let world = universe.world();
    if world.rank() == 0 { give_out(&world) } else { work(&world) }
}

fn give_out(world: &impl Communicator) -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<&str> = TEXT.split_whitespace().collect();
    let mut texts = words.chunks(3);
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    let mut working = world.size() - 1;
    while working > 0 {
        // From whoever reports first.
        let (report, status) = world.any_process().receive_value::<Report>()?;
        if let Report::Counted(of_text) = report {
            for (word, count) in of_text {
                *counts.entry(word).or_default() += count;
            }
        }
        let order = match texts.next() {
            Some(text) => Order::Count { text: text.join(" ") },
            None => {
                working -= 1;
                Order::Stop
            }
        };
        world.process_at_rank(status.source_rank()).send_value(&order)?;
    }
    // A job of one rank has nobody to count.
    if world.size() > 1 {
        assert_eq!(counts.values().sum::<u32>() as usize, words.len());
        assert_eq!(counts["others"], 4);
    }
    if let Some((word, count)) = counts.iter().max_by_key(|(_, count)| **count) {
        println!("{} different words; `{word}` comes {count} times", counts.len());
    }
    Ok(())
}

fn work(world: &impl Communicator) -> Result<(), Box<dyn std::error::Error>> {
    let root = world.process_at_rank(0);
    root.send_value(&Report::Ready)?;
    while let (Order::Count { text }, _) = root.receive_value()? {
        let mut counts = BTreeMap::new();
        for word in text.split_whitespace() {
            *counts.entry(word.to_owned()).or_default() += 1;
        }
        root.send_value(&Report::Counted(counts))?;
    }
    Ok(())
}
