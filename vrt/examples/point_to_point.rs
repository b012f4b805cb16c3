//! Messages between two ranks: tags, any source, exchanges, and messages of unknown length.
//!
//! ```sh
//! VRT_PES=2 VRT_RANKS=8 cargo run -p virtual-ranks --example point_to_point
//! ```

use vrt::Tag;
use vrt::point_to_point::send_receive;
use vrt::traits::*;

const GREETING: Tag = 1;
const NUMBERS: Tag = 2;

#[vrt::main]
fn main() {
    let universe = vrt::initialize().expect("main is a rank's program");
    let world = universe.world();
    let (rank, size) = (world.rank(), world.size());

    // Both ends name each other. The type says how long the message is; the status says the rest.
    if rank == 0 {
        world.process_at_rank(size - 1).send(&3.5f64);
    }
    if rank == size - 1 {
        let (value, status) = world.process_at_rank(0).receive::<f64>();
        assert_eq!((value, status.source_rank()), (3.5, 0));
    }

    // Around a ring everybody sends and receives. If all sent first, each of them might wait for a
    // receive that nobody comes to; one call does both at the same time.
    let right = world.process_at_rank((rank + 1) % size);
    let left = world.process_at_rank((rank + size - 1) % size);
    let (from_left, _): (i32, _) = send_receive(&rank, &right, &left);
    assert_eq!(from_left, left.rank());

    // Everybody sends rank 0 two messages, which it receives in another order: by their tags.
    let root = world.process_at_rank(0);
    if rank != 0 {
        root.send_with_tag(format!("greetings from {rank}").as_bytes(), GREETING);
        root.send_with_tag(&vec![rank; rank as usize], NUMBERS);
    } else {
        let mut sum = 0;
        for _ in 1..size {
            // From whoever is first. Its length is not known before it has come, so it is looked at
            // before it is received. A *matched* probe also sets it apart from all other receives.
            let (message, status) = world.any_process().matched_probe_with_tag(NUMBERS);
            let mut numbers = vec![0; status.count(i32::equivalent_datatype()) as usize];
            message.matched_receive_into(&mut numbers[..]);
            assert_eq!(numbers.len() as i32, status.source_rank());
            sum += numbers.iter().sum::<i32>();
        }
        // `receive_vec` does the same in one call.
        for other in 1..size {
            let from = world.process_at_rank(other);
            let (text, _) = from.receive_vec_with_tag::<u8>(GREETING);
            assert_eq!(String::from_utf8_lossy(&text), format!("greetings from {other}"));
        }
        assert_eq!(sum, (1..size).map(|n| n * n).sum::<i32>());
        println!("{} greetings, and numbers that sum to {sum}", size - 1);
    }
}
