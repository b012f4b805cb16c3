//! The MPI transport: between PEs that are MPI processes and share no memory.
//!
//! Batches travel under one tag, into receives that were posted before. These complete in the order
//! in which they were posted as far as one sender is concerned, and are looked at in that order,
//! so packets from one PE keep theirs. Packets are gathered until the PE looks for what has come;
//! when it has nothing else to do, the first to a PE goes at once. A PE has at most [`WINDOW`]
//! batches under way to another; what is more waits in the lane's backlog. Transfers have tags of
//! their own, one for each number.
//!
//! Only the thread of the PE calls MPI.

use std::collections::VecDeque;
use std::ffi::c_int;

use rsmpi::ffi::{self, MPI_Comm, MPI_Request, MPI_Status};

use vrt_core::net::remote::{Batch, Remote, Transfer, cells_of, in_batch};
use vrt_core::net::{CELL, Packet};
use vrt_slot::report::{self, STATUS_RUNTIME};

/// Bytes of a batch.
const BATCH: usize = 64 << 10;
/// Receives that wait for batches.
const RECEIVES: usize = 16;
/// Batches under way from one PE to another.
const WINDOW: usize = 8;
/// The tag of batches; transfers have the tags above it.
const TAG: c_int = 0;
/// The standard grants tags up to 32,767.
const TRANSFERS: usize = 32_767;
/// Bytes of a transfer in one MPI message: its lengths are `int`.
const PIECE: u64 = 1 << 30;

/// One PE's end of the transport.
pub(crate) struct Endpoint {
    comm: MPI_Comm,
    id: u32,
    receives: Vec<Receive>,
    /// The receive that completes next.
    next: usize,
    /// It has: the sender.
    ready: Option<u32>,
    /// Receives before the next one whose batches were given back, and that are not posted again
    /// yet: that waits until there is nothing else to do.
    used: usize,
    lanes: Vec<Lane>,
    /// Lanes that have been used since the last [`flush`](Remote::flush).
    used_lanes: Vec<usize>,
    spare: Vec<Box<Buffer>>,
    flying: Flying,
    /// What is expected under each number.
    expected: Vec<bool>,
    free: Vec<u32>,
    /// MPI requests of transfers, and for each which transfer.
    moving: (Vec<MPI_Request>, Vec<usize>),
    transfers: Vec<Moving>,
    unused: Vec<usize>,
    done: VecDeque<Transfer>,
    counts: (u64, u64),
}

/// Room for a batch.
#[repr(C, align(64))]
struct Buffer([u8; BATCH]);

struct Receive {
    request: MPI_Request,
    buffer: Box<Buffer>,
}

#[derive(Default)]
struct Lane {
    gathered: Option<(Box<Buffer>, usize)>,
    flying: usize,
    /// Something has been gathered since the last [`flush`](Remote::flush).
    is_used: bool,
    /// It was flushed since then.
    was_flushed: bool,
}

/// Batches under way.
#[derive(Default)]
struct Flying {
    requests: Vec<MPI_Request>,
    /// The lane of each, and its buffer.
    batches: Vec<(usize, Box<Buffer>)>,
}

/// A transfer under way; its place in the list is used again.
struct Moving {
    of: Transfer,
    /// MPI messages that are not done.
    left: usize,
    /// The number to free when it is done, if it is expected here.
    number: Option<u32>,
}

impl Endpoint {
    /// The end of PE `id`, whose number is its rank in the communicator.
    pub(crate) fn new(comm: MPI_Comm, id: u32, pes: usize) -> Endpoint {
        let mut endpoint = Endpoint {
            comm,
            id,
            receives: Vec::new(),
            next: 0,
            ready: None,
            used: 0,
            lanes: (0..pes).map(|_| Lane::default()).collect(),
            used_lanes: Vec::new(),
            spare: Vec::new(),
            flying: Flying::default(),
            expected: vec![true],
            free: Vec::new(),
            moving: (Vec::new(), Vec::new()),
            transfers: Vec::new(),
            unused: Vec::new(),
            done: VecDeque::new(),
            counts: (0, 0),
        };
        for _ in 0..RECEIVES {
            let mut buffer = Box::new(Buffer([0; BATCH]));
            let mut request = null_request();
            // SAFETY: the buffer lives as long as the receive, which is ended before it.
            let code = unsafe {
                ffi::MPI_Recv_init(
                    buffer.0.as_mut_ptr().cast(),
                    BATCH as c_int,
                    ffi::RSMPI_UINT8_T,
                    ffi::RSMPI_ANY_SOURCE,
                    TAG,
                    comm,
                    &mut request,
                )
            };
            endpoint.check(code, "MPI_Recv_init");
            endpoint.receives.push(Receive { request, buffer });
        }
        endpoint.used = RECEIVES;
        endpoint.post_again();
        endpoint
    }

    /// Posts the receives again whose batches were given back, in their order.
    fn post_again(&mut self) {
        while self.used > 0 {
            let receive = (self.next + RECEIVES - self.used) % RECEIVES;
            // SAFETY: the buffer of a batch that was given back.
            unsafe { *in_batch(self.receives[receive].buffer.0.as_mut_ptr()) = 1 };
            // SAFETY: an inactive persistent request of ours.
            let code = unsafe { ffi::MPI_Start(&mut self.receives[receive].request) };
            self.check(code, "MPI_Start");
            self.used -= 1;
        }
    }

    /// Sends off what a lane has gathered.
    fn launch(&mut self, pe: usize) {
        let Some((buffer, len)) = self.lanes[pe].gathered.take() else { return };
        // SAFETY: what is gathered begins with a packet.
        let packet = unsafe { &*buffer.0.as_ptr().cast::<Packet>() };
        // One that is alone goes without its number, which the receiver has put there before.
        let len = if len == CELL { packet.significant() } else { len };
        let mut request = null_request();
        // SAFETY: the buffer stays where it is until the request is done.
        let code = unsafe {
            ffi::MPI_Isend(
                buffer.0.as_ptr().cast(),
                len as c_int,
                ffi::RSMPI_UINT8_T,
                pe as c_int,
                TAG,
                self.comm,
                &mut request,
            )
        };
        self.check(code, "MPI_Isend");
        if self.is_done(request) {
            self.spare.push(buffer);
            return;
        }
        self.lanes[pe].flying += 1;
        self.flying.requests.push(request);
        self.flying.batches.push((pe, buffer));
    }

    /// Takes back the buffers of batches that have gone.
    fn reap_sends(&mut self) {
        let mut i = 0;
        while i < self.flying.requests.len() {
            if !self.is_done(self.flying.requests[i]) {
                i += 1;
                continue;
            }
            self.flying.requests.swap_remove(i);
            let (lane, buffer) = self.flying.batches.swap_remove(i);
            self.lanes[lane].flying -= 1;
            self.spare.push(buffer);
        }
    }

    /// Looks which transfers are done.
    fn settle(&mut self) {
        let mut i = 0;
        while i < self.moving.0.len() {
            if !self.is_done(self.moving.0[i]) {
                i += 1;
                continue;
            }
            self.moving.0.swap_remove(i);
            let transfer = self.moving.1.swap_remove(i);
            let moving = &mut self.transfers[transfer];
            moving.left -= 1;
            if moving.left == 0 {
                self.unused.push(transfer);
                self.done.push_back(moving.of);
                if let Some(number) = moving.number {
                    self.expected[number as usize] = false;
                    self.free.push(number);
                }
            }
        }
    }

    /// Whether a request is done; it is gone then.
    #[inline]
    fn is_done(&self, mut request: MPI_Request) -> bool {
        // SAFETY: a constant of the library.
        let ignored = unsafe { ffi::RSMPI_STATUS_IGNORE };
        self.has_ended(&mut request, ignored)
    }

    /// Whether a request has ended, and with what status.
    #[inline]
    fn has_ended(&self, request: &mut MPI_Request, status: *mut MPI_Status) -> bool {
        let (mut index, mut flag) = (0, 0);
        // Open MPI's MPI_Test begins with a full fence, this does not.
        // SAFETY: an active request of ours; who gets `true` forgets it, or starts it again. The
        // status is writable or to be ignored.
        let code = unsafe { ffi::MPI_Testany(1, request, &mut index, &mut flag, status) };
        self.check(code, "MPI_Testany");
        flag != 0
    }

    /// Cuts a transfer into MPI messages, which `start` begins.
    fn begin(
        &mut self,
        len: u64,
        of: Transfer,
        number: Option<u32>,
        mut start: impl FnMut(u64, c_int, &mut MPI_Request) -> c_int,
    ) {
        let transfer = self.unused.pop().unwrap_or(self.transfers.len());
        let mut offset = 0;
        let mut left = 0;
        while offset < len {
            let part = (len - offset).min(PIECE);
            let mut request = null_request();
            let code = start(offset, part as c_int, &mut request);
            self.check(code, "MPI_Isend or MPI_Irecv");
            self.moving.0.push(request);
            self.moving.1.push(transfer);
            left += 1;
            offset += part;
        }
        let moving = Moving { of, left, number };
        match self.transfers.get_mut(transfer) {
            Some(place) => *place = moving,
            None => self.transfers.push(moving),
        }
    }

    fn check(&self, code: c_int, call: &str) {
        if code != ffi::MPI_SUCCESS as c_int {
            self.fail(code, call);
        }
    }

    #[cold]
    fn fail(&self, code: c_int, call: &str) -> ! {
        let mut text = [0u8; ffi::MPI_MAX_ERROR_STRING as usize];
        let mut len = 0;
        // SAFETY: the text has the room that the standard demands.
        unsafe { ffi::MPI_Error_string(code, text.as_mut_ptr().cast(), &mut len) };
        let text = String::from_utf8_lossy(&text[..len as usize]).into_owned();
        report::say(format_args!("PE {}: {call}: {text}", self.id));
        report::end_job(STATUS_RUNTIME)
    }
}

fn null_request() -> MPI_Request {
    // SAFETY: a constant of the library.
    unsafe { ffi::RSMPI_REQUEST_NULL }
}

impl Remote for Endpoint {
    fn send(&mut self, pe: usize, packet: &Packet, payload: &[u8]) -> bool {
        let cells = cells_of(payload.len());
        if self.lanes[pe].gathered.as_ref().is_some_and(|(_, len)| len + cells > BATCH) {
            self.launch(pe);
        }
        let lane = &mut self.lanes[pe];
        if lane.gathered.is_none() {
            if lane.flying >= WINDOW {
                self.reap_sends();
                if self.lanes[pe].flying >= WINDOW {
                    return false;
                }
            }
            let buffer = self.spare.pop().unwrap_or_else(|| Box::new(Buffer([0; BATCH])));
            self.lanes[pe].gathered = Some((buffer, 0));
        }
        let Some((buffer, len)) = &mut self.lanes[pe].gathered else { return false };
        // SAFETY: there is room for `cells` bytes behind `len`, which is a multiple of 64, as the
        // buffer's address is.
        unsafe {
            let at = buffer.0.as_mut_ptr().add(*len);
            at.cast::<Packet>().write(*packet);
            if !payload.is_empty() {
                std::ptr::copy_nonoverlapping(payload.as_ptr(), at.add(CELL), payload.len());
            }
            let packets = in_batch(buffer.0.as_mut_ptr());
            *packets = if *len == 0 { 1 } else { *packets + 1 };
        }
        *len += cells;
        self.counts.0 += 1;
        if !self.lanes[pe].is_used {
            self.lanes[pe].is_used = true;
            self.used_lanes.push(pe);
        }
        true
    }

    fn flush_lane(&mut self, pe: usize) {
        if !self.lanes[pe].was_flushed {
            self.lanes[pe].was_flushed = true;
            self.launch(pe);
        }
    }

    fn flush(&mut self) {
        while let Some(pe) = self.used_lanes.pop() {
            self.lanes[pe].is_used = false;
            self.lanes[pe].was_flushed = false;
            self.launch(pe);
        }
        if !self.flying.requests.is_empty() {
            self.reap_sends();
        }
    }

    fn is_ready(&mut self) -> bool {
        if !self.moving.0.is_empty() {
            self.settle();
        }
        if self.ready.is_none() {
            let mut request = self.receives[self.next].request;
            // SAFETY: zeros are a valid status.
            let mut status: MPI_Status = unsafe { std::mem::zeroed() };
            // A persistent request keeps its handle.
            if self.has_ended(&mut request, &mut status) {
                self.ready = Some(status.MPI_SOURCE as u32);
            } else if self.used > 0 {
                self.post_again();
            }
        }
        self.ready.is_some() || !self.done.is_empty()
    }

    fn take(&mut self) -> Option<Batch> {
        let from = self.ready.take()?;
        let start = self.receives[self.next].buffer.0.as_ptr();
        self.next = (self.next + 1) % RECEIVES;
        Some(Batch { from, start })
    }

    fn give_back(&mut self, batch: Batch) {
        // SAFETY: its first packet is still there.
        self.counts.1 += u64::from(unsafe { *in_batch(batch.start) });
        self.used += 1;
        if self.used > RECEIVES / 2 {
            self.post_again();
        }
    }

    unsafe fn expect(&mut self, at: *mut u8, len: u64, of: Transfer) -> Option<u32> {
        let number = match self.free.pop() {
            Some(number) => number,
            None if self.expected.len() <= TRANSFERS => {
                self.expected.push(false);
                self.expected.len() as u32 - 1
            }
            None => return None,
        };
        self.expected[number as usize] = true;
        let comm = self.comm;
        // SAFETY: as the caller promises.
        let start = |offset: u64, part: c_int, request: &mut MPI_Request| unsafe {
            ffi::MPI_Irecv(
                at.add(offset as usize).cast(),
                part,
                ffi::RSMPI_UINT8_T,
                ffi::RSMPI_ANY_SOURCE,
                TAG + number as c_int,
                comm,
                request,
            )
        };
        self.begin(len, of, Some(number), start);
        Some(number)
    }

    unsafe fn transfer(&mut self, pe: usize, number: u32, at: *const u8, len: u64, of: Transfer) {
        let comm = self.comm;
        // SAFETY: as the caller promises.
        let start = |offset: u64, part: c_int, request: &mut MPI_Request| unsafe {
            ffi::MPI_Isend(
                at.add(offset as usize).cast(),
                part,
                ffi::RSMPI_UINT8_T,
                pe as c_int,
                TAG + number as c_int,
                comm,
                request,
            )
        };
        self.begin(len, of, None, start);
    }

    fn take_done(&mut self) -> Option<Transfer> {
        self.done.pop_front()
    }

    fn is_busy(&self) -> bool {
        let has_gathered = |pe: &usize| self.lanes[*pe].gathered.is_some();
        self.used_lanes.iter().any(has_gathered)
            || !self.flying.requests.is_empty()
            || !self.moving.0.is_empty()
    }

    fn counts(&self) -> (u64, u64) {
        self.counts
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        // Those that were not posted again, and one that has completed, wait for nothing.
        let inactive = self.used + usize::from(self.ready.is_some());
        let first = self.next + RECEIVES - self.used;
        for i in 0..RECEIVES {
            let request = &mut self.receives[(first + i) % RECEIVES].request;
            // SAFETY: our receive, which nobody will send to any more.
            unsafe {
                if i >= inactive {
                    ffi::MPI_Cancel(request);
                    ffi::MPI_Wait(request, ffi::RSMPI_STATUS_IGNORE);
                }
                ffi::MPI_Request_free(request);
            }
        }
    }
}
