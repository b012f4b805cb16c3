//! Ghost cells from the neighbours, a message for each face.

use mpi::Tag;
use mpi::request::{LocalScope, RequestCollection, multiple_scope};
use mpi::topology::SimpleCommunicator;
use mpi::traits::*;

use super::block::{Block, Planes};
use super::{Face, ProcessGrid};

/// The faces that a block shares with others.
#[derive(Debug)]
pub(super) struct Exchange {
    /// The neighbours along x and y; the cells on these faces are packed.
    sides: Vec<Link>,
    /// For each side, the cells on the face.
    outgoing: Vec<Vec<f64>>,
    /// For each side, the ghost cells beyond it.
    incoming: Vec<Vec<f64>>,
    /// The neighbours along z, to whom whole planes go as they lie in memory.
    below: Option<Link>,
    above: Option<Link>,
}

/// One shared face.
#[derive(Clone, Copy, Debug)]
struct Link {
    face: Face,
    neighbour: i32,
}

impl Exchange {
    /// The shared faces of a rank's block.
    pub fn new(grid: &ProcessGrid, rank: usize) -> Self {
        let link = |face| {
            let neighbour = grid.neighbour(rank, face)? as i32;
            Some(Link { face, neighbour })
        };
        let sides = [Face::West, Face::East, Face::South, Face::North];
        let sides: Vec<Link> = sides.into_iter().filter_map(link).collect();
        let extent = grid.extent(rank);
        let buffers = || sides.iter().map(|side| vec![0.0; extent.face_cells(side.face)]).collect();
        Self {
            outgoing: buffers(),
            incoming: buffers(),
            sides,
            below: link(Face::Below),
            above: link(Face::Above),
        }
    }

    /// Fills the ghost cells of `block` from its neighbours, who must all call
    /// this too.
    pub fn ghosts(&mut self, world: &SimpleCommunicator, block: &mut Block) {
        for (side, outgoing) in self.sides.iter().zip(&mut self.outgoing) {
            block.pack(side.face, outgoing);
        }
        let count = 2 * (self.sides.len() + self.below.iter().chain(&self.above).count());
        let Planes { ghosts_below, lowest, highest, ghosts_above } = block.planes();
        multiple_scope(count, |scope, requests| {
            let mut messages = Messages { world, scope, requests };
            for (side, incoming) in self.sides.iter().zip(&mut self.incoming) {
                messages.receive(*side, incoming);
            }
            if let Some(below) = self.below {
                messages.receive(below, ghosts_below);
                messages.send(below, lowest);
            }
            if let Some(above) = self.above {
                messages.receive(above, ghosts_above);
                messages.send(above, highest);
            }
            for (side, outgoing) in self.sides.iter().zip(&self.outgoing) {
                messages.send(*side, outgoing);
            }
            requests.wait_all(&mut Vec::with_capacity(count));
        });
        for (side, incoming) in self.sides.iter().zip(&self.incoming) {
            block.unpack(side.face, incoming);
        }
    }
}

/// The messages of one exchange that are under way.
struct Messages<'m, 'a> {
    world: &'m SimpleCommunicator,
    scope: &'m LocalScope<'a>,
    requests: &'m mut RequestCollection<'a, [f64]>,
}

impl<'a> Messages<'_, 'a> {
    /// Receives the cells on the other side of a face.
    fn receive(&mut self, link: Link, cells: &'a mut [f64]) {
        let neighbour = self.world.process_at_rank(link.neighbour);
        let tag = tag(link.face.opposite());
        let request = neighbour.immediate_receive_into_with_tag(self.scope, cells, tag);
        self.requests.add(request);
    }

    /// Sends the cells on this side of a face.
    fn send(&mut self, link: Link, cells: &'a [f64]) {
        let neighbour = self.world.process_at_rank(link.neighbour);
        let request = neighbour.immediate_send_with_tag(self.scope, cells, tag(link.face));
        self.requests.add(request);
    }
}

/// The tag of a message: the face of the sender's block.
fn tag(face: Face) -> Tag {
    face as Tag
}
