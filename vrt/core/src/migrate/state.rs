//! What a PE keeps about a rank, in the form in which it is sent.
//!
//! Everything is numbers, bytes, and addresses that mean the same in all PEs: in a rank's slot, in
//! the program, and, unless the rank leaves its node, in the pools of the node's PEs.

use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;

use crate::net::Kind;
use crate::net::parcel::{self, Topic};
use crate::pe::{Core, Encoded, RankState, Told, UnexpectedPayload};
use vrt_shm::Place;
use vrt_slot::hooks;

/// A rank between two PEs: its state, and what else its new PE has to know.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct MovingRank {
    pub(super) rank: u32,
    pub(super) state: Box<RankState>,
    /// The data of messages that were in the sending PE's pool, if the rank leaves its node.
    payloads: Vec<ByteBuf>,
    /// What it has open is under way beside it.
    pub(super) has_descriptors: bool,
    /// Its program begins (again), from its encoded state if there is one.
    pub(super) begins: bool,
    /// Whether that arrives separately, before this.
    restored_beside: bool,
    /// Deadlines and requests.
    pub(super) timers: Vec<(u64, u32)>,
}

impl MovingRank {
    /// A suspended rank that leaves a PE.
    pub(super) fn pack(
        rank: u32,
        mut state: Box<RankState>,
        timers: Vec<(u64, u32)>,
    ) -> MovingRank {
        state.leave();
        MovingRank {
            rank,
            state,
            payloads: Vec::new(),
            has_descriptors: false,
            begins: false,
            restored_beside: false,
            timers,
        }
    }
}

impl MovingRank {
    /// Takes along what lies outside the rank's slot in the memory of the node that it leaves.
    ///
    /// # Safety
    /// The rank was this PE's, and its messages' data is where they say.
    pub(super) unsafe fn detach(&mut self) {
        let mut payloads = Vec::new();
        // SAFETY: a block of the pool is as long as is asked for, and nobody else's.
        let mut take = |block: *mut u8, len: usize| unsafe {
            payloads.push(ByteBuf::from(std::slice::from_raw_parts(block, len)));
            hooks::free_in_arena(block);
        };
        for (packet, payload) in self.state.messages_mut() {
            match payload {
                UnexpectedPayload::Pool(block) => take(*block, packet.message_len() as usize),
                UnexpectedPayload::InArena(_) => {
                    *payload = UnexpectedPayload::Staged;
                    packet.kind = Kind::Staged;
                }
                UnexpectedPayload::Inline | UnexpectedPayload::Staged => {}
            }
        }
        if let Some(restored) = self.state.restored.filter(|_| !self.restored_beside) {
            take(restored.at, restored.len);
        }
        for request in
            self.state.requests.iter_mut().filter(|request| request.in_use && request.copy)
        {
            // SAFETY: the live copy of a buffered send.
            take(request.buffer, unsafe { vrt_slot::heap::usable_size(request.buffer) });
        }
        self.payloads = payloads;
    }

    /// [`detach`](Self::detach) of a rank whose encoded state is sent beside it.
    ///
    /// # Safety
    /// As there.
    pub(super) unsafe fn detach_beside_state(&mut self) {
        self.restored_beside = true;
        // SAFETY: as the caller promises.
        unsafe { self.detach() };
    }

    /// The opposite of [`detach`](Self::detach): puts what was taken along into the PE's pool. `beside`: where the
    /// state lies that was sent beside this.
    ///
    /// # Safety
    /// `beside` is a block of that PE's pool, if there is one.
    pub(super) unsafe fn attach(&mut self, core: &mut Core, beside: Option<*mut u8>) {
        let mut copy = |bytes: &[u8]| {
            let block = core.block_for(bytes.len(), "what comes with a rank");
            // SAFETY: the block is as long as the bytes.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), block, bytes.len()) };
            block
        };
        if self.payloads.is_empty() && !self.restored_beside {
            return;
        }
        let payloads = std::mem::take(&mut self.payloads);
        let mut payloads = payloads.iter();
        let mut put = |block: &mut *mut u8| {
            if let Some(payload) = payloads.next() {
                *block = copy(payload);
            }
        };
        for (_, payload) in self.state.messages_mut() {
            if let UnexpectedPayload::Pool(block) = payload {
                put(block);
            }
        }
        if let Some(Encoded { at, .. }) = &mut self.state.restored {
            match beside {
                Some(block) => *at = block,
                None => put(at),
            }
        }
        for request in
            self.state.requests.iter_mut().filter(|request| request.in_use && request.copy)
        {
            put(&mut request.buffer);
        }
    }
}

/// Sends what a PE has kept of a rank to another one, which has it from now on.
pub(super) fn dispatch(core: &mut Core, rank: u32, to: u32, moving: &mut MovingRank) {
    let flow = &mut moving.state.flow;
    if flow.held && !core.shared.is_near(to) {
        // From now on this is one of the nodes that were told.
        flow.told.push(Told { by: core.id, pe: core.id, since: 0 });
    }
    core.shared.location_entry(rank).set(Place::on(to).held(flow.held), moving.state.moves);
    parcel::send(&mut core.net, core.id, to, Topic::Rank, moving);
}
