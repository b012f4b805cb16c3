//! Ghost cells from the neighbours, a message for each face.

use mpi::Tag;
use mpi::topology::SimpleCommunicator;
use mpi::traits::*;

use super::block::Block;
use super::{Face, ProcessGrid};

/// The faces that a block shares with others, with room for their messages.
#[derive(Debug)]
pub(super) struct Exchange {
    links: Vec<Link>,
}

/// One shared face.
#[derive(Debug)]
struct Link {
    face: Face,
    neighbour: i32,
    outgoing: Vec<f64>,
    incoming: Vec<f64>,
}

impl Exchange {
    /// The shared faces of a rank's block.
    pub fn new(grid: &ProcessGrid, rank: usize) -> Self {
        let extent = grid.extent(rank);
        let link = |face: Face| {
            let neighbour = grid.neighbour(rank, face)?;
            Some(Link {
                face,
                neighbour: neighbour as i32,
                outgoing: vec![0.0; extent.face_cells(face)],
                incoming: vec![0.0; extent.face_cells(face)],
            })
        };
        Self { links: Face::ALL.into_iter().filter_map(link).collect() }
    }

    /// Fills the ghost cells of `block` from its neighbours, who must all call
    /// this too.
    pub fn ghosts(&mut self, world: &SimpleCommunicator, block: &mut Block) {
        for link in &mut self.links {
            block.pack(link.face, &mut link.outgoing);
        }
        let messages = 2 * self.links.len();
        mpi::request::multiple_scope(messages, |scope, requests| {
            let mut sends = Vec::with_capacity(self.links.len());
            for link in &mut self.links {
                let neighbour = world.process_at_rank(link.neighbour);
                requests.add(neighbour.immediate_receive_into_with_tag(
                    scope,
                    &mut link.incoming[..],
                    tag(link.face.opposite()),
                ));
                sends.push((neighbour, &link.outgoing[..], tag(link.face)));
            }
            for (neighbour, outgoing, tag) in sends {
                requests.add(neighbour.immediate_send_with_tag(scope, outgoing, tag));
            }
            requests.wait_all(&mut Vec::with_capacity(messages));
        });
        for link in &self.links {
            block.unpack(link.face, &link.incoming);
        }
    }
}

/// The tag of a message: the face of the sender's block.
fn tag(face: Face) -> Tag {
    face as Tag
}
