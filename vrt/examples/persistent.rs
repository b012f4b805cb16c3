//! The same messages again and again: requests that are made once and started in every step.
//!
//! What a message is (to whom, which buffer, which tag) is checked once; a start only says "now".
//!
//! ```sh
//! VRT_PES=2 VRT_RANKS=8 cargo run -p virtual-ranks --example persistent
//! ```

use vrt::collective::SystemOperation;
use vrt::request::start_all;
use vrt::traits::*;

#[vrt::main]
fn main() {
    let universe = vrt::initialize().expect("main is a rank's program");
    let world = universe.world();
    let (rank, size) = (world.rank(), world.size());
    let right = world.process_at_rank((rank + 1) % size);
    let left = world.process_at_rank((rank + size - 1) % size);

    // A request holds its buffers, and gives access to them between two runs.
    let (mut to_left, mut to_right) = ([0.0], [0.0]);
    let (mut from_left, mut from_right) = ([0.0], [0.0]);
    let (mut change, mut largest) = ([0.0], [0.0]);
    let mut sends = [
        left.persistent_send_with_tag(&mut to_left, 1),
        right.persistent_send_with_tag(&mut to_right, 2),
    ];
    let mut receives = [
        left.persistent_receive_into_with_tag(&mut from_left, 2),
        right.persistent_receive_into_with_tag(&mut from_right, 1),
    ];
    let maximum = SystemOperation::max();
    let mut reduce = world.persistent_all_reduce_into(&mut change, &mut largest, maximum);

    // Every rank replaces its value by the mean of itself and its neighbours on a ring, until
    // nobody's changes any more: then all of them are the mean of all.
    let mut value = f64::from(rank);
    let mut steps = 0;
    loop {
        for send in &mut sends {
            send.send_data()[0] = value;
        }
        // Receives first, so that messages find a place when they come.
        start_all(&mut receives);
        start_all(&mut sends);
        for receive in &mut receives {
            receive.wait();
        }
        for send in &mut sends {
            send.wait();
        }
        let [from_left, from_right] = &mut receives;
        let (left, right) = (from_left.receive_data()[0], from_right.receive_data()[0]);
        let mean = (left + value + right) / 3.0;
        reduce.send_data()[0] = (mean - value).abs();
        reduce.start();
        value = mean;
        steps += 1;
        reduce.wait();
        if reduce.receive_data()[0] < 1e-12 {
            break;
        }
    }
    assert!((value - f64::from(size - 1) / 2.0).abs() < 1e-9, "{value}");
    if rank == 0 {
        println!("all of {size} ranks have {value:.3} after {steps} steps");
    }
}
