//! A library that sends structs of its own, as it is written for the `mpi` crate.

use mpi::traits::*;
use mpi::Rank;

/// A body that falls.
#[derive(Clone, Debug, Default, Equivalence, PartialEq)]
pub struct Body {
    /// Its place.
    pub at: [f64; 3],
    /// Its mass.
    pub mass: f32,
    /// The rank that began with it.
    pub from: Rank,
}

/// Gives each rank's body to the next rank; the first one gets the last one's.
pub fn pass_on<C: Communicator>(world: &C, body: &Body) -> Body {
    let (rank, size) = (world.rank(), world.size());
    let next = world.process_at_rank((rank + 1) % size);
    let previous = world.process_at_rank((rank + size - 1) % size);
    let mut came = Body::default();
    mpi::point_to_point::send_receive_into(body, &next, &mut came, &previous);
    came
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nothing has started this as a job: it is alone in its world.
    #[test]
    fn alone_a_body_comes_back() {
        let universe = mpi::initialize().unwrap();
        let world = universe.world();
        assert_eq!((world.rank(), world.size()), (0, 1));
        let body = Body { at: [1.0, 2.0, 3.0], mass: 4.0, from: 0 };
        assert_eq!(pass_on(&world, &body), body);
    }

    /// Another thread, another world.
    #[test]
    fn messages_to_oneself_keep_their_order() {
        let universe = mpi::initialize().unwrap();
        let world = universe.world();
        let me = world.this_process();
        mpi::request::scope(|scope| {
            let sends = [1, 2, 3].map(|n| me.immediate_send(scope, &[1, 2, 3][n as usize - 1..n as usize]));
            let came: Vec<i32> = (0..3).map(|_| me.receive().0).collect();
            for send in sends {
                send.wait();
            }
            assert_eq!(came, [1, 2, 3]);
        });
    }
}
