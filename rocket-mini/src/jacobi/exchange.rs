//! Ghost cells from the neighbours, a message for each face.

use futures_util::future::{join, join_all};
use mpi::Tag;
use mpi::request::multiple_scope;
use mpi::topology::SimpleCommunicator;
use mpi::traits::*;

use super::Face;
use super::block::{Block, FaceCells};

/// Fills the ghost cells of `block` from its neighbours, which must all call this, too. There is a
/// neighbour, or none, for each of [`Face::ALL`].
pub(super) fn exchange(
    world: &SimpleCommunicator,
    neighbours: &[Option<i32>; 6],
    block: &mut Block,
) {
    block.pack();
    let count = 2 * neighbours.iter().flatten().count();
    let faces = Face::ALL.into_iter().zip(neighbours).zip(block.faces());
    multiple_scope(count, |scope, requests| {
        let mut sends = Vec::with_capacity(count / 2);
        for ((face, neighbour), FaceCells { incoming, outgoing }) in faces {
            let Some(neighbour) = *neighbour else { continue };
            let neighbour = world.process_at_rank(neighbour);
            let tag_of_theirs = tag(face.opposite());
            requests.add(neighbour.immediate_receive_into_with_tag(scope, incoming, tag_of_theirs));
            sends.push((neighbour, outgoing, tag(face)));
        }
        for (neighbour, outgoing, tag) in sends {
            requests.add(neighbour.immediate_send_with_tag(scope, outgoing, tag));
        }
        requests.wait_all(&mut Vec::with_capacity(count));
    });
    block.unpack();
}

/// The async twin of [`exchange`].
pub(super) async fn exchange_async(
    world: &SimpleCommunicator,
    neighbours: &[Option<i32>; 6],
    block: &mut Block,
) {
    block.pack();
    let mut receives = Vec::with_capacity(6);
    let mut sends = Vec::with_capacity(6);
    for ((face, neighbour), cells) in Face::ALL.into_iter().zip(neighbours).zip(block.faces()) {
        let Some(neighbour) = *neighbour else { continue };
        let FaceCells { incoming, outgoing } = cells;
        receives.push(async move {
            let from = world.process_at_rank(neighbour);
            from.receive_into_with_tag_async(incoming, tag(face.opposite())).await;
        });
        sends.push(async move {
            world.process_at_rank(neighbour).send_with_tag_async(outgoing, tag(face)).await;
        });
    }
    join(join_all(receives), join_all(sends)).await;
    block.unpack();
}

/// The tag of a message: the face of the sender's block.
fn tag(face: Face) -> Tag {
    face as Tag
}
