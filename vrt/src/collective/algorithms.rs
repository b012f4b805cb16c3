//! Collective operations, each once, as a future over bytes.
//!
//! Small data is combined by PEs (`combine`); large data goes from rank to rank, straight between
//! their buffers:
//!
//! | operation | large data | source |
//! |---|---|---|
//! | broadcast | binomial tree | Thakur, Rabenseifner, Gropp 2005, section 4.1 |
//! | reduce, all_reduce | the binary tree of `combine` over ranks, then broadcast | - |
//! | gather, scatter | every rank with the root, straight into place | - |
//! | all_gather | ring | same, section 4.1 |
//! | all_to_all | pairwise exchange | same, section 4.5 |
//! | scan | chain in rank order | - |
//!
//! Both ways fold in the same order, so the size of the data does not change a bit of an element.

use crate::collective::combine::{MAX_UNIT, Spec, What};
use crate::collective::operator::Operator;
use crate::mailbox::Pattern;
use crate::operation::{self, Pending, Site};
use crate::pe::{self, Mode, Outbound, Started};
use crate::topology::CommunicatorHandle;

/// Most bytes that one rank's result of a small operation may have.
const SMALL: usize = 32 << 10;

/// One collective operation of one rank.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Collective {
    comm: CommunicatorHandle,
    /// Number of the operation on the communicator; only messages between ranks need it here.
    number: u32,
    site: Site,
}

/// Bytes to read from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct In(pub(crate) *const u8, pub(crate) usize);

/// Bytes to write to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Out(pub(crate) *mut u8, pub(crate) usize);

impl In {
    /// # Safety
    /// The part lies inside.
    unsafe fn part(self, i: usize, len: usize) -> In {
        // SAFETY: as the caller promises.
        In(unsafe { self.0.add(i * len) }, len)
    }
}

impl Out {
    /// # Safety
    /// The part lies inside.
    unsafe fn part(self, i: usize, len: usize) -> Out {
        // SAFETY: as the caller promises.
        Out(unsafe { self.0.add(i * len) }, len)
    }

    /// # Safety
    /// Both are valid for the length of `from`, which is not longer, and do not overlap.
    unsafe fn copy_from(self, from: In) {
        debug_assert!(from.1 <= self.1);
        if from.1 > 0 {
            // SAFETY: as the caller promises.
            unsafe { std::ptr::copy_nonoverlapping(from.0, self.0, from.1) };
        }
    }
}

/// All functions here demand that the buffers given are valid for their lengths until the future
/// is ready, and do not overlap.
impl Collective {
    pub(crate) fn begin(comm: &CommunicatorHandle, site: Site) -> Collective {
        Collective { comm: *comm, number: 0, site }
    }

    /// The same, with a number for messages between ranks.
    fn numbered(self) -> Collective {
        let context = self.comm.context + 1;
        Collective { number: pe::with(|pe| pe.engine.next_collective(context)), ..self }
    }

    fn rank(&self) -> usize {
        self.comm.rank as usize
    }

    fn size(&self) -> usize {
        self.comm.size as usize
    }

    pub(crate) async unsafe fn barrier(self) {
        let nothing = Out(std::ptr::null_mut(), 0);
        // SAFETY: nothing is read or written.
        unsafe { self.combine(What::Concatenate, None, In(nothing.0, 0), nothing) }.await;
    }

    pub(crate) async unsafe fn broadcast(self, root: usize, data: Out) {
        // SAFETY: as the caller promises.
        unsafe {
            if data.1 <= MAX_UNIT {
                return self.combine(What::Broadcast, Some(root), In(data.0, data.1), data).await;
            }
            let this = self.numbered();
            let (n, me) = (self.size(), (self.rank() + self.size() - root) % self.size());
            let real = |virtual_rank: usize| (virtual_rank + root) % n;
            let mut bit = 1;
            while bit < n && me & bit == 0 {
                bit <<= 1;
            }
            if me != 0 {
                this.receive(real(me - bit), data).await;
            }
            while bit > 1 {
                bit >>= 1;
                if me + bit < n && me & (bit - 1) == 0 {
                    this.send(real(me + bit), In(data.0, data.1)).await;
                }
            }
        }
    }

    /// `out` is the root's (or, without a root, everybody's), as long as the input.
    pub(crate) async unsafe fn reduce(
        self,
        root: Option<usize>,
        operator: Operator,
        input: In,
        out: Option<Out>,
    ) {
        // SAFETY: as the caller promises.
        unsafe {
            if input.1 <= MAX_UNIT {
                let out = out.unwrap_or(Out(std::ptr::null_mut(), 0));
                return self.combine(What::Fold(operator), root, input, out).await;
            }
            let this = self.numbered();
            let (n, me) = (self.size(), self.rank());
            let mut mine = std::slice::from_raw_parts(input.0, input.1).to_vec();
            let mut theirs = Vec::new();
            let mut bit = 1;
            while bit < n {
                if me & bit != 0 {
                    this.send(me - bit, In(mine.as_ptr(), mine.len())).await;
                    break;
                }
                if me + bit < n {
                    theirs.resize(input.1, 0);
                    this.receive(me + bit, Out(theirs.as_mut_ptr(), input.1)).await;
                    operator.fold(mine.as_mut_ptr(), theirs.as_ptr(), input.1);
                }
                bit <<= 1;
            }
            // The result is at rank 0 now.
            match (root, out) {
                (None, Some(out)) => {
                    if me == 0 {
                        out.copy_from(In(mine.as_ptr(), mine.len()));
                    }
                    Box::pin(self.broadcast(0, out)).await;
                }
                (Some(0), Some(out)) if me == 0 => out.copy_from(In(mine.as_ptr(), mine.len())),
                (Some(root), _) if me == 0 && root != 0 => {
                    this.send(root, In(mine.as_ptr(), mine.len())).await;
                }
                (Some(root), Some(out)) if me == root => this.receive(0, out).await,
                _ => {}
            }
        }
    }

    /// `out` is the root's (or, without a root, everybody's), as long as all inputs together.
    pub(crate) async unsafe fn gather(self, root: Option<usize>, input: In, out: Option<Out>) {
        let (n, me, each) = (self.size(), self.rank(), input.1);
        // SAFETY: as the caller promises; part `r` of the output is rank `r`'s.
        unsafe {
            if each <= MAX_UNIT && each * n <= SMALL {
                let out = out.unwrap_or(Out(std::ptr::null_mut(), 0));
                return self.combine(What::Concatenate, root, input, out).await;
            }
            let this = self.numbered();
            match (root, out) {
                (None, Some(out)) => {
                    out.part(me, each).copy_from(input);
                    let (right, left) = ((me + 1) % n, (me + n - 1) % n);
                    for step in 0..n - 1 {
                        let (have, get) = ((me + n - step) % n, (me + n - step - 1) % n);
                        let have = out.part(have, each);
                        let send = In(have.0, have.1);
                        this.exchange(right, send, left, out.part(get, each)).await;
                    }
                }
                (Some(root), Some(out)) if me == root => {
                    out.part(me, each).copy_from(input);
                    for from in (0..n).filter(|from| *from != me) {
                        this.receive(from, out.part(from, each)).await;
                    }
                }
                (Some(root), _) => this.send(root, input).await,
                (None, None) => {}
            }
        }
    }

    /// `input` is the root's, as long as all outputs together.
    pub(crate) async unsafe fn scatter(self, root: usize, input: Option<In>, out: Out) {
        let (n, me, each) = (self.size(), self.rank(), out.1);
        // SAFETY: as the caller promises; part `r` of the input is rank `r`'s.
        unsafe {
            if each * n <= MAX_UNIT {
                let mut all = vec![0u8; each * n];
                if let Some(input) = input.filter(|_| me == root) {
                    Out(all.as_mut_ptr(), all.len()).copy_from(input);
                }
                Box::pin(self.broadcast(root, Out(all.as_mut_ptr(), all.len()))).await;
                out.copy_from(In(all.as_ptr(), all.len()).part(me, each));
                return;
            }
            let this = self.numbered();
            match input.filter(|_| me == root) {
                Some(input) => {
                    out.copy_from(input.part(me, each));
                    for to in (0..n).filter(|to| *to != me) {
                        this.send(to, input.part(to, each)).await;
                    }
                }
                None => this.receive(root, out).await,
            }
        }
    }

    pub(crate) async unsafe fn all_to_all(self, input: In, out: Out) {
        let (n, me) = (self.size(), self.rank());
        let each = input.1 / n;
        // SAFETY: as the caller promises; parts are by rank.
        unsafe {
            let this = self.numbered();
            out.part(me, each).copy_from(input.part(me, each));
            for step in 1..n {
                let (to, from) = ((me + step) % n, (me + n - step) % n);
                this.exchange(to, input.part(to, each), from, out.part(from, each)).await;
            }
        }
    }

    /// Folds the inputs of ranks 0 to this one (without this one if exclusive) in rank order.
    pub(crate) async unsafe fn scan(
        self,
        operator: Operator,
        input: In,
        out: Out,
        exclusive: bool,
    ) {
        let (n, me, each) = (self.size(), self.rank(), input.1);
        let last = if exclusive { me } else { me + 1 };
        // SAFETY: as the caller promises.
        unsafe {
            if each <= MAX_UNIT && each * n <= SMALL {
                let mut all = vec![0u8; each * n];
                let gathered = Out(all.as_mut_ptr(), all.len());
                self.combine(What::Concatenate, None, input, gathered).await;
                for r in 0..last {
                    let part = In(all.as_ptr(), all.len()).part(r, each);
                    if r == 0 {
                        out.copy_from(part);
                    } else {
                        operator.fold(out.0, part.0, each);
                    }
                }
                return;
            }
            let this = self.numbered();
            let mut upto = vec![0u8; each];
            if me > 0 {
                this.receive(me - 1, Out(upto.as_mut_ptr(), each)).await;
                if exclusive {
                    out.copy_from(In(upto.as_ptr(), each));
                }
                operator.fold(upto.as_mut_ptr(), input.0, each);
            } else {
                Out(upto.as_mut_ptr(), each).copy_from(input);
            }
            if !exclusive {
                out.copy_from(In(upto.as_ptr(), each));
            }
            if me + 1 < n {
                this.send(me + 1, In(upto.as_ptr(), each)).await;
            }
        }
    }

    fn spec(&self, what: What, root: Option<usize>, unit: usize) -> Spec {
        Spec {
            what,
            root: root.map(|root| root as u32),
            context: self.comm.context + 1,
            rank: self.comm.rank as u32,
            size: self.comm.size as u32,
            first: self.comm.job_rank(0),
            unit,
        }
    }

    async unsafe fn combine(self, what: What, root: Option<usize>, input: In, out: Out) {
        let spec = self.spec(what, root, input.1);
        // SAFETY: as the caller promises.
        let started = pe::with(|pe| unsafe { pe.engine.combine(&spec, input.0, out.0) });
        if let Started::Pending(request) = started {
            Pending::new(request, self.site, None).await;
        }
    }

    /// The same for a blocking rank, if the data is small enough: false when it is not.
    ///
    /// # Safety
    /// The buffers are valid for their lengths during the call.
    pub(crate) unsafe fn combine_now(
        self,
        what: What,
        root: Option<usize>,
        input: In,
        out: Out,
    ) -> bool {
        let all = if what == What::Concatenate { input.1 * self.size() } else { 0 };
        if input.1 > MAX_UNIT || all > SMALL {
            return false;
        }
        let spec = self.spec(what, root, input.1);
        // SAFETY: as the caller promises.
        let start = |engine: &mut pe::Engine| unsafe { engine.combine(&spec, input.0, out.0) };
        operation::block_on_request(start, None, self.site);
        true
    }

    fn outbound(&self, to: usize, data: In) -> Outbound {
        Outbound {
            context: self.comm.context + 1,
            to: self.comm.job_rank(to as i32),
            source: self.comm.rank,
            tag: self.tag(),
            data: data.0,
            len: data.1,
            mode: Mode::Standard,
        }
    }

    fn pattern(&self, from: usize) -> Pattern {
        Pattern { context: self.comm.context + 1, source: from as i32, tag: self.tag() }
    }

    /// Messages of one operation have its number for a tag.
    fn tag(&self) -> i32 {
        (self.number & 0x7fff_ffff) as i32
    }

    async unsafe fn send(&self, to: usize, data: In) {
        // SAFETY: as the caller promises.
        unsafe { operation::send(self.outbound(to, data), self.site) }.await;
    }

    async unsafe fn receive(&self, from: usize, data: Out) {
        // SAFETY: as the caller promises.
        let outcome =
            unsafe { operation::receive(self.pattern(from), data.0, data.1, self.site) }.await;
        self.check_length(outcome.bytes, data.1, from);
    }

    async unsafe fn exchange(&self, to: usize, data: In, from: usize, out: Out) {
        let (message, pattern) = (self.outbound(to, data), self.pattern(from));
        // SAFETY: as the caller promises.
        let exchange =
            unsafe { crate::point_to_point::exchange(message, pattern, out.0, out.1, self.site) };
        self.check_length(exchange.await.bytes(), out.1, from);
    }

    fn check_length(&self, bytes: u64, expected: usize, from: usize) {
        if bytes != expected as u64 {
            let Site { call, location } = self.site;
            panic!(
                "{call} at {location}: rank {from} contributed {bytes} bytes, rank {} expected \
                 {expected}",
                self.rank()
            );
        }
    }
}
