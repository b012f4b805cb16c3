//! Sending by a PE: through rings in shared memory to the PEs of its node, through a [`Remote`] transport to those that
//! share no memory with it, if there are any. A *lane* to a PE is created with the first packet to it.
//!
//! A full ring does not block: what does not fit waits in the PE's *backlog* for that destination, in order, and is
//! sent when there is room. A waiting message of a rank is only described there; its data stays in the rank's buffer,
//! and the rank waits. So two PEs that flood each other both continue to receive, and memory does not grow with the
//! flood.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use vrt_shm::Sleep;

use crate::net::clocked::Clocked;
use crate::net::link::RING_BYTES;
use crate::net::remote::Remote;
use crate::net::rings::Sender;
use crate::net::shared::{NEW_RINGS, Shared};
use crate::net::{INLINE, Kind, Packet};

/// Longest data that goes beside one packet.
pub(crate) const MAX_PAYLOAD: usize = 32 << 10;
/// Longest part of a staged message that travels inside its packet.
pub(crate) const SHORT_CHUNK: usize = INLINE - 8;
/// Stands for the number of a request where the last piece of a rank's memory is done.
pub(crate) const MEMORY: u32 = u32::MAX;
const _: () = assert!(MAX_PAYLOAD <= RING_BYTES / 4);

/// The sending ends to all PEs.
pub struct Outgoing {
    shared: Shared,
    me: usize,
    /// By destination PE; only those to which something was sent.
    lanes: Vec<Option<Box<Lane>>>,
    /// The PEs of the existing lanes.
    made: Vec<u32>,
    /// Packets sent in rings.
    sent_in_rings: u64,
    /// How many lanes have a backlog.
    backlogged: usize,
    events: Events,
    /// The transport to PEs that share no memory with this one.
    remote: Option<Clocked>,
}

/// Event descriptors on which PEs sleep that also wait for external events.
pub struct Events {
    /// To wake each PE of the node; -1 for others.
    pub wake: Arc<[i32]>,
    /// The descriptor that this PE waits for.
    pub own: i32,
}

struct Lane {
    pe: usize,
    way: Route,
    backlog: VecDeque<QueuedPacket>,
}

/// How a PE is reached.
enum Route {
    Ring(Sender),
    Remote,
}

/// Something that waits for room in a ring.
pub struct QueuedPacket {
    packet: Packet,
    /// Where the data that follows the packet lies, unless `owned`.
    data: *const u8,
    owned: Vec<u8>,
    /// For a staged message: bytes sent, and bytes in total.
    stream: Option<(u64, u64)>,
    /// The sender's request that is done when all this has been sent.
    done: Option<(u32, u32)>,
}

impl Outgoing {
    /// The sending ends of PE `me`, which are made when they are needed.
    ///
    /// # Safety
    /// It is made once.
    pub(crate) unsafe fn new(
        shared: Shared,
        me: usize,
        events: Events,
        remote: Option<Box<dyn Remote>>,
    ) -> Outgoing {
        let (lanes, remote) = (none_for_each(shared.pes()), remote.map(Clocked::new));
        Outgoing {
            shared,
            me,
            lanes,
            made: Vec::new(),
            sent_in_rings: 0,
            backlogged: 0,
            events,
            remote,
        }
    }

    /// Makes the lane to a PE.
    #[cold]
    fn make_lane(&mut self, pe: usize) {
        assert_ne!(pe, self.me, "a PE sends nothing to itself");
        let has_ring = self.remote.is_none() || self.shared.is_near(pe as u32);
        let way = if has_ring {
            // SAFETY: this PE alone has these sending ends (`new`), and has no lane there yet.
            let sender = unsafe { self.shared.open_ring(self.me as u32, pe as u32) };
            self.shared.pe(pe).signals.fetch_or(NEW_RINGS, Ordering::SeqCst);
            self.wake(pe);
            Route::Ring(sender)
        } else {
            Route::Remote
        };
        self.lanes[pe] = Some(Box::new(Lane { pe, way, backlog: VecDeque::new() }));
        self.made.push(pe as u32);
    }

    /// The transport to PEs that share no memory with this one, if there are any.
    #[inline]
    pub fn remote(&mut self) -> Option<&mut (dyn Remote + 'static)> {
        self.remote.as_mut().map(|way| way as &mut (dyn Remote + 'static))
    }

    /// Makes what was just sent to a PE leave at once, if that PE is reached by the transport.
    #[inline(always)]
    pub fn flush_lane(&mut self, pe: usize) {
        if let Some(remote) = &mut self.remote
            && self.lanes[pe].as_ref().is_some_and(|lane| matches!(lane.way, Route::Remote))
        {
            remote.flush_lane(pe);
        }
    }

    /// Whether there are such PEs.
    #[inline]
    pub(crate) fn has_remote(&self) -> bool {
        self.remote.is_some()
    }

    /// Removes the transport to other nodes: nothing is sent there any more.
    pub fn take_remote(&mut self) -> Option<Box<dyn Remote>> {
        self.remote.take().map(Clocked::into_way)
    }

    /// Cycles that messages to and from other nodes have kept this PE busy.
    pub fn cycles_of_remote(&self) -> u64 {
        self.remote.as_ref().map_or(0, Clocked::cycles)
    }

    /// Packets sent to other PEs so far.
    pub fn sent(&self) -> u64 {
        self.sent_in_rings + self.remote.as_ref().map_or(0, |remote| remote.counts().0)
    }

    /// The part of them that was sent in rings.
    pub(crate) fn sent_in_rings(&self) -> u64 {
        self.sent_in_rings
    }

    /// Sends a packet with the data beside it, if there is room now.
    ///
    /// # Safety
    /// `data` is readable for `packet.payload()` bytes.
    #[inline]
    pub(crate) unsafe fn try_send(&mut self, pe: usize, packet: &Packet, data: *const u8) -> bool {
        let Some(lane) = &mut self.lanes[pe] else {
            self.make_lane(pe);
            // SAFETY: as the caller promises.
            return unsafe { self.try_send(pe, packet, data) };
        };
        if !lane.backlog.is_empty() {
            return false;
        }
        // SAFETY: as the caller promises.
        let sent = unsafe { lane.send(&mut self.remote, packet, data) };
        if sent && matches!(lane.way, Route::Ring(_)) {
            self.sent_in_rings += 1;
            self.ring_for_sent(pe);
        }
        sent
    }

    /// Sends a packet now or as soon as there is room; its data is copied if it must wait.
    ///
    /// # Safety
    /// `data` is readable for `packet.payload()` bytes.
    pub unsafe fn send(&mut self, pe: usize, packet: &Packet, data: *const u8) {
        // SAFETY: as the caller promises.
        unsafe {
            if !self.try_send(pe, packet, data) {
                let owned = match packet.payload() {
                    0 => Vec::new(),
                    len => std::slice::from_raw_parts(data, len).to_vec(),
                };
                let packet = *packet;
                self.wait(
                    pe,
                    QueuedPacket {
                        packet,
                        data: std::ptr::null(),
                        owned,
                        stream: None,
                        done: None,
                    },
                );
            }
        }
    }

    /// Sends a packet as soon as there is room, and then finishes the sender's request. The data
    /// stays where it is until then.
    pub(crate) fn send_later(&mut self, pe: usize, packet: &Packet, data: *const u8, request: u32) {
        let done = Some((packet.from, request));
        let waiting = QueuedPacket { packet: *packet, data, owned: Vec::new(), stream: None, done };
        self.wait(pe, waiting);
    }

    /// Finishes a request when what now waits for room has gone, at least for one PE. Returns
    /// whether anything waits.
    pub(crate) fn finish_when_sent(&mut self, rank: u32, request: u32) -> bool {
        for pe in &self.made {
            if let Some(lane) = &mut self.lanes[*pe as usize]
                && let Some(waiting) = lane.backlog.back_mut()
                && waiting.done.is_none()
            {
                waiting.done = Some((rank, request));
                return true;
            }
        }
        false
    }

    /// Sends `len` bytes at `data` in chunks like `packet` (whose first data word becomes the
    /// offset), and then finishes the sender's request.
    pub fn stream(&mut self, pe: usize, packet: &Packet, data: *const u8, len: u64, request: u32) {
        debug_assert_eq!(packet.kind, Kind::Chunk);
        let done = Some((packet.from, request));
        let stream = Some((0, len));
        self.wait(pe, QueuedPacket { packet: *packet, data, owned: Vec::new(), stream, done });
    }

    /// Sends the memory of a rank that nobody uses any more: like [`stream`](Self::stream), with
    /// the packet's second data word kept. `len` is a multiple of 64. After the `last` piece the
    /// rank's request [`MEMORY`] is done.
    pub(crate) fn stream_memory(
        &mut self,
        pe: usize,
        packet: &Packet,
        data: *const u8,
        len: u64,
        last: bool,
    ) {
        let done = last.then_some((packet.from, MEMORY));
        // What is shorter would travel in the packet's data words.
        debug_assert!(packet.kind == Kind::Memory && len.is_multiple_of(64));
        let stream = Some((0, len));
        self.wait(pe, QueuedPacket { packet: *packet, data, owned: Vec::new(), stream, done });
    }

    /// [`stream`](Self::stream) of data of the runtime's own.
    pub(crate) fn stream_owned(&mut self, pe: usize, packet: &Packet, data: Vec<u8>) {
        debug_assert_eq!(packet.kind, Kind::Chunk);
        let stream = Some((0, data.len() as u64));
        let waiting = QueuedPacket {
            packet: *packet,
            data: std::ptr::null(),
            owned: data,
            stream,
            done: None,
        };
        self.wait(pe, waiting);
    }

    /// Copies what waits here of a rank's messages, so that its memory is not needed any more.
    ///
    /// # Safety
    /// The rank's memory is readable, and it waits for its messages.
    pub(crate) unsafe fn keep_data_of(&mut self, rank: u32) {
        if self.backlogged == 0 {
            return;
        }
        let lanes = self.lanes.iter_mut().flatten();
        for waiting in lanes.flat_map(|lane| &mut lane.backlog) {
            if waiting.done.is_none_or(|(of, _)| of != rank) || waiting.data.is_null() {
                continue;
            }
            let len = waiting.stream.map_or(waiting.packet.payload(), |(_, len)| len as usize);
            // SAFETY: the data of a rank that waits for its message to be gone.
            waiting.owned = unsafe { std::slice::from_raw_parts(waiting.data, len) }.to_vec();
            waiting.data = std::ptr::null();
        }
    }

    fn wait(&mut self, pe: usize, waiting: QueuedPacket) {
        let Some(lane) = &mut self.lanes[pe] else {
            self.make_lane(pe);
            return self.wait(pe, waiting);
        };
        self.backlogged += usize::from(lane.backlog.is_empty());
        lane.backlog.push_back(waiting);
    }

    /// Whether anything waits for room.
    pub(crate) fn has_backlog(&self) -> bool {
        self.backlogged > 0
    }

    /// Sends what fits of the backlogs; calls `finish(rank, request)` for each completed request.
    pub fn flush(&mut self, mut finish: impl FnMut(u32, u32)) -> bool {
        if self.backlogged == 0 {
            return false;
        }
        let mut moved = false;
        for at in 0..self.made.len() {
            let pe = self.made[at] as usize;
            let Some(lane) = &mut self.lanes[pe] else { continue };
            if lane.backlog.is_empty() {
                continue;
            }
            let mut sent = 0;
            while let Some(mut waiting) = lane.backlog.pop_front() {
                let (gone, packets) = lane.send_waiting(&mut self.remote, &mut waiting);
                sent += packets;
                if !gone {
                    lane.backlog.push_front(waiting);
                    break;
                }
                if let Some((rank, request)) = waiting.done {
                    finish(rank, request);
                }
            }
            self.backlogged -= usize::from(lane.backlog.is_empty());
            if sent > 0 {
                if matches!(lane.way, Route::Ring(_)) {
                    self.sent_in_rings += sent;
                    self.ring_for_sent(pe);
                }
                moved = true;
            }
        }
        moved
    }

    /// Rings the doorbell of a PE.
    #[inline]
    pub fn wake(&self, pe: usize) {
        self.rouse(pe, self.shared.pe(pe).doorbell.ring());
    }

    /// The same after packets were sent in its ring.
    #[inline]
    fn ring_for_sent(&self, pe: usize) {
        self.rouse(pe, self.shared.pe(pe).doorbell.ring_for(self.me as u32));
    }

    #[inline]
    fn rouse(&self, pe: usize, sleep: Option<Sleep>) {
        match sleep {
            None => {}
            Some(Sleep::Futex) => self.shared.pe(pe).doorbell.wake(),
            Some(Sleep::Event) => {
                let one = 1u64;
                // SAFETY: eight readable bytes; the descriptor is the PE's.
                unsafe { libc::write(self.events.wake[pe], (&raw const one).cast(), 8) };
            }
        }
    }

    /// The event descriptor of this PE.
    pub fn event(&self) -> i32 {
        self.events.own
    }
}

/// So many times `None`, of which the system gives only pages that are written to.
pub(crate) fn none_for_each<T>(n: usize) -> Vec<Option<Box<T>>> {
    // SAFETY: `None` of a box is a null pointer.
    unsafe { Box::<[Option<Box<T>>]>::new_zeroed_slice(n).assume_init() }.into_vec()
}

impl Lane {
    /// # Safety
    /// `data` is readable for `packet.payload()` bytes.
    #[inline]
    unsafe fn send(
        &mut self,
        remote: &mut Option<Clocked>,
        packet: &Packet,
        data: *const u8,
    ) -> bool {
        let payload: &[u8] = match packet.payload() {
            0 => &[],
            // SAFETY: as the caller promises.
            len => unsafe { std::slice::from_raw_parts(data, len) },
        };
        match &mut self.way {
            Route::Ring(sender) => sender.send(|cell| packet.write_to(cell), payload),
            Route::Remote => remote.as_mut().is_some_and(|it| it.send(self.pe, packet, payload)),
        }
    }

    /// Sends what fits; returns whether all has gone, and the number of packets.
    fn send_waiting(
        &mut self,
        remote: &mut Option<Clocked>,
        waiting: &mut QueuedPacket,
    ) -> (bool, u64) {
        let data = if waiting.owned.is_empty() { waiting.data } else { waiting.owned.as_ptr() };
        let Some((gone, len)) = &mut waiting.stream else {
            // SAFETY: the data is owned, or lies in the buffer of a rank that waits.
            let sent = unsafe { self.send(remote, &waiting.packet, data) };
            return (sent, u64::from(sent));
        };
        let mut packets = 0;
        while *gone < *len {
            let part = (*len - *gone).min(MAX_PAYLOAD as u64);
            let mut packet = waiting.packet;
            packet.len = part as u32;
            packet.data.set_word(0, *gone);
            // SAFETY: inside the buffer of a rank that waits for this message to be gone.
            let at = unsafe { data.add(*gone as usize) };
            // Data this short travels inside the packet, behind the offset.
            if part as usize <= INLINE {
                packet.len = packet.len.min(SHORT_CHUNK as u32);
                // SAFETY: `part` bytes are readable at `at`, and the words behind the offset have
                // room for `SHORT_CHUNK`.
                unsafe {
                    let to = packet.data.0.as_mut_ptr().add(8);
                    std::ptr::copy_nonoverlapping(at, to, packet.len as usize);
                }
            }
            // SAFETY: as above.
            if !unsafe { self.send(remote, &packet, at) } {
                return (false, packets);
            }
            *gone += u64::from(packet.len);
            packets += 1;
        }
        (true, packets)
    }
}
