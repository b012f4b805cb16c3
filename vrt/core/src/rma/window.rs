//! Windows: memory of a communicator's ranks that they let each other access.
//!
//! A [`Window`] knows the address of each rank's part. An access is complete when it returns, inside a node and to
//! another one, so what begins and ends an epoch only has to order accesses: by a barrier, by messages, or by a lock in
//! the heap of the part's owner. Whether it is allowed is said by [`Epochs`].
//!
//! The languages' bindings make the memory, check what their calls alone have (datatypes, units), wait for the futures
//! and report the errors.

use std::mem::ManuallyDrop;
use std::sync::atomic::{Ordering, fence as memory_fence};
use std::time::Duration;

use crate::comm::algorithms::Collective;
use crate::comm::create;
use crate::comm::handle::{CommunicatorHandle, Members};
use crate::comm::shape::Shape;
use crate::error::{Error, Site};
use crate::layout::Signature;
use crate::mailbox::Pattern;
use crate::operation::{self, InstantCalls, Sleep, background, yield_now_async};
use crate::pe::{self, Mode, Outbound, Room, WindowPart};
use crate::rma::access::{self, Access, Elsewhere, Target};
use crate::rma::control::{Control, LockKind};
use crate::rma::epoch::{Epoch, EpochCall, EpochError, Epochs};
use crate::rma::remote;
use crate::{Rank, Tag};
use vrt_shm::Leased;

/// A window, from the point of view of a rank.
///
/// Dropping it leaves its locks where they are, as other ranks may still use them; [`free`](Self::free) does not.
#[derive(Debug)]
pub struct Window {
    comm: CommunicatorHandle,
    /// By rank: its part.
    targets: Box<[Target]>,
    /// Where other ranks lock this one's part.
    control: ManuallyDrop<Box<Control>>,
    epochs: Epochs,
    turns: InstantCalls,
    /// All ranks of the job share memory.
    one_node: bool,
}

/// What a rank contributes to a window.
#[derive(Clone, Copy, Debug)]
pub struct Contribution {
    /// The address of its memory, which other ranks of the node reach there. It is kept until all ranks have freed the
    /// window.
    pub address: usize,
    /// Its length.
    pub bytes: usize,
    /// Something that all ranks are to know of it.
    pub about: u64,
}

/// The messages of epochs.
const POSTED: Tag = 1;
const COMPLETED: Tag = 2;

/// How often a rank tries to take a lock before it waits between two tries, and for how long.
const TRIES: u32 = 100;
const BETWEEN_TRIES: Duration = Duration::from_micros(20);

/// Waits for all ranks; what they have written before is seen afterwards.
async fn barrier(comm: &CommunicatorHandle, site: Site) -> Result<(), Error> {
    memory_fence(Ordering::SeqCst);
    let collective = Collective::begin(comm, site);
    collective.barrier().await?;
    memory_fence(Ordering::SeqCst);
    Ok(())
}

impl Window {
    /// Makes a window of all ranks' parts; returns what each has said about its part. Collective.
    ///
    /// # Errors
    /// Those of [`create::same_ranks`] and [`create::all_gather`].
    pub async fn make(
        comm: &CommunicatorHandle,
        part: Contribution,
        site: Site,
    ) -> Result<(Window, Vec<u64>), Error> {
        let Contribution { address, bytes, about } = part;
        let control = ManuallyDrop::new(Box::new(Control::default()));
        let locks = std::ptr::from_ref::<Control>(&control) as usize;
        let comm = create::same_ranks(comm, Shape::Plain, site).await?;
        let context = comm.context;
        let part = WindowPart { address, bytes, control: locks };
        pe::with(|pe| pe.engine.add_window(context, part));
        let hidden = [address, locks].map(|address| Elsewhere::new(address).word());
        let mine = [hidden[0], bytes as u64, hidden[1], about];
        let all = match create::all_gather(&comm, mine, site).await {
            Ok(all) => all,
            Err(error) => {
                pe::with(|pe| pe.engine.remove_window(context));
                return Err(error);
            }
        };
        let target = |[address, bytes, control, _]: &[u64; 4]| Target {
            address: Elsewhere::from_word(*address),
            len: usize::try_from(*bytes).unwrap_or(usize::MAX),
            control: Elsewhere::from_word(*control),
        };
        let window = Window {
            targets: all.iter().map(target).collect(),
            comm,
            control,
            epochs: Epochs::default(),
            turns: InstantCalls::default(),
            one_node: pe::with(|pe| pe.engine.shared.nodes()) == 1,
        };
        Ok((window, all.iter().map(|[.., about]| *about).collect()))
    }

    /// Waits until all ranks free the window; then its locks are freed, and its memory can be. Collective. If the
    /// future is dropped early, nothing is freed.
    ///
    /// # Errors
    /// Ranks call another collective operation.
    pub async fn free(self, site: Site) -> Result<(), Error> {
        barrier(&self.comm, site).await?;
        if pe::in_rank() {
            pe::with(|pe| pe.engine.remove_window(self.comm.context));
        }
        // All ranks have freed the window, so nobody uses the locks again.
        drop(ManuallyDrop::into_inner(self.control));
        Ok(())
    }

    /// Its communicator, with the ranks of the one that it was made from.
    pub fn comm(&self) -> &CommunicatorHandle {
        &self.comm
    }

    /// The parts, by rank.
    pub fn targets(&self) -> &[Target] {
        &self.targets
    }

    /// The part of a rank.
    ///
    /// # Errors
    /// The rank does not exist.
    #[inline]
    pub fn target(&self, rank: Rank) -> Result<&Target, Error> {
        match usize::try_from(rank).ok().and_then(|rank| self.targets.get(rank)) {
            Some(target) => Ok(target),
            None => Err(Error::RankOutOfRange { what: "rank", rank, size: self.targets.len() }),
        }
    }

    /// The access epoch.
    pub fn epoch(&self) -> Epoch {
        self.epochs.now()
    }

    /// Whether all ranks of the job share memory.
    pub fn is_on_one_node(&self) -> bool {
        self.one_node
    }

    /// Counts an access after which the program may look at memory until another rank has changed it.
    #[inline]
    pub fn count_turn(&self) {
        self.turns.count();
    }

    /// Clears what accesses have left on the stack, before a call that may wait: addresses of other ranks' memory, which
    /// would be taken for references and keep this rank, or those, where they are. Where all ranks share memory, nobody
    /// searches for references.
    #[inline(always)]
    fn forget_addresses(&self) {
        if !self.one_node {
            vrt_slot::check::wipe();
        }
    }

    /// Keeps a rank's memory in this node, if it is here.
    #[inline]
    fn lease(&self, rank: usize) -> Option<Leased<'static>> {
        if self.one_node {
            return Some(Leased::always());
        }
        let rank = self.comm.members.get(rank);
        pe::with(|pe| pe.engine.shared.lease_of(rank))
    }

    /// Checks that the memory of a rank may be accessed now.
    ///
    /// # Errors
    /// The epoch does not allow it.
    #[inline]
    pub fn expect_access(&self, rank: Rank) -> Result<(), EpochError> {
        self.epochs.access(rank)
    }

    /// Accesses a rank's memory if it is in this node; returns whether it is. `offset` is in bytes.
    ///
    /// # Safety
    /// There is such a rank, the elements lie in its part, and the addresses in `access` are valid for them.
    #[inline]
    pub unsafe fn access_here(
        &self,
        rank: usize,
        offset: usize,
        (count, each): (usize, usize),
        access: Access,
    ) -> bool {
        let Some(_leased) = self.lease(rank) else { return false };
        // SAFETY: W1: it is leased; the elements are in the part and at the addresses, says the caller.
        unsafe { access::access(&self.targets[rank], offset, count, each, access) };
        true
    }

    /// Accesses a rank's memory by a message to the rank.
    ///
    /// # Errors
    /// Those of [`remote::access`].
    ///
    /// # Safety
    /// As [`access_here`](Self::access_here), whenever the future is polled.
    pub async unsafe fn access_elsewhere(
        &self,
        rank: usize,
        offset: usize,
        (count, each): (usize, usize),
        access: Access,
        site: Site,
    ) -> Result<(), Error> {
        let (rank, context) = (self.comm.members.get(rank), self.comm.context);
        // SAFETY: the addresses have the elements whenever this is polled, says the caller.
        unsafe { remote::access(rank, context, offset, count, each, access, site) }.await
    }

    /// Waits for all ranks: what was accessed before is done then. `succeeded`: everything may be accessed until the
    /// next fence (without `MPI_MODE_NOSUCCEED`). Collective.
    ///
    /// # Errors
    /// In an epoch of another kind.
    pub fn fence(&self, succeeded: bool, site: Site) -> impl Future<Output = Result<(), Error>> {
        self.forget_addresses();
        async move {
            self.epochs.expect(EpochCall::Fence)?;
            barrier(&self.comm, site).await?;
            self.epochs.fenced(succeeded);
            Ok(())
        }
    }

    /// [`fence`](Self::fence) that counts as this rank's even if the future is dropped early; then the epoch stays what
    /// it was.
    ///
    /// # Errors
    /// As there.
    pub fn lasting_fence(
        &self,
        succeeded: bool,
        site: Site,
    ) -> impl Future<Output = Result<(), Error>> {
        self.forget_addresses();
        async move {
            self.epochs.expect(EpochCall::Fence)?;
            let comm = self.comm.clone();
            background(async move { barrier(&comm, site).await }).await?;
            self.epochs.fenced(succeeded);
            Ok(())
        }
    }

    /// Lets the ranks of a group access this rank's memory, until [`wait`](Self::wait).
    ///
    /// # Errors
    /// Others may already, or a rank of the group has no part in the window.
    pub async fn post(&self, group: &Members, site: Site) -> Result<(), Error> {
        let ranks = self.ranks_of(group)?;
        self.epochs.expose(&ranks)?;
        memory_fence(Ordering::SeqCst);
        self.tell(&ranks, POSTED, site).await
    }

    /// Waits until the ranks of a group have posted: their memory may be accessed then, until
    /// [`complete`](Self::complete).
    ///
    /// # Errors
    /// In another epoch, or a rank of the group has no part in the window.
    pub async fn start(&self, group: &Members, site: Site) -> Result<(), Error> {
        self.epochs.expect(EpochCall::Start)?;
        let ranks = self.ranks_of(group)?;
        self.hear(&ranks, POSTED, site).await?;
        self.epochs.started(ranks);
        Ok(())
    }

    /// Ends what [`start`](Self::start) began.
    ///
    /// # Errors
    /// In another epoch.
    pub fn complete(&self, site: Site) -> impl Future<Output = Result<(), Error>> {
        self.forget_addresses();
        async move {
            let ranks = self.epochs.complete()?;
            memory_fence(Ordering::SeqCst);
            self.tell(&ranks, COMPLETED, site).await
        }
    }

    /// Waits until all ranks that were let in by [`post`](Self::post) have completed: not at all, if none was.
    ///
    /// # Errors
    /// Those of a receive.
    pub fn wait(&self, site: Site) -> impl Future<Output = Result<(), Error>> {
        self.forget_addresses();
        async move {
            let ranks = self.epochs.end_exposure();
            self.hear(&ranks, COMPLETED, site).await
        }
    }

    /// Whether all ranks that were let in by [`post`](Self::post) have completed; then the exposure has ended. If not,
    /// other ranks have had a turn.
    ///
    /// # Errors
    /// Those of a receive.
    pub async fn test(&self, site: Site) -> Result<bool, Error> {
        let is_told = |rank: &Rank| {
            let pattern = Pattern { context: self.comm.context, source: *rank, tag: COMPLETED };
            pe::with(|pe| pe.engine.probe(pattern)).is_some()
        };
        let all = self.epochs.exposed_to().iter().all(is_told);
        match all {
            true => self.wait(site).await?,
            false => yield_now_async().await,
        }
        Ok(all)
    }

    /// Locks a rank's memory; it may be accessed until [`unlock`](Self::unlock).
    ///
    /// # Errors
    /// In an epoch of another kind, or the rank is locked already or does not exist.
    pub async fn lock(&self, kind: LockKind, rank: Rank, site: Site) -> Result<(), Error> {
        self.target(rank)?;
        self.epochs.expect_lock(rank)?;
        self.acquire(kind, rank, site).await?;
        self.epochs.locked(rank);
        Ok(())
    }

    /// Ends what [`lock`](Self::lock) began.
    ///
    /// # Errors
    /// The rank is not locked, or does not exist.
    pub fn unlock(&self, rank: Rank, site: Site) -> impl Future<Output = Result<(), Error>> {
        self.forget_addresses();
        async move {
            self.target(rank)?;
            self.epochs.unlock(rank)?;
            self.release(rank, site).await?;
            self.turns.count();
            Ok(())
        }
    }

    /// Locks the memory of all ranks, shared.
    ///
    /// # Errors
    /// In another epoch.
    pub async fn lock_all(&self, site: Site) -> Result<(), Error> {
        self.epochs.expect(EpochCall::LockAll)?;
        for rank in 0..self.comm.size {
            self.acquire(LockKind::Shared, rank, site).await?;
        }
        self.epochs.locked_all();
        Ok(())
    }

    /// Ends what [`lock_all`](Self::lock_all) began.
    ///
    /// # Errors
    /// In another epoch.
    pub fn unlock_all(&self, site: Site) -> impl Future<Output = Result<(), Error>> {
        self.forget_addresses();
        async move {
            self.epochs.unlock_all()?;
            for rank in 0..self.comm.size {
                self.release(rank, site).await?;
            }
            self.turns.count();
            Ok(())
        }
    }

    /// What this rank did to a rank's memory is done, there and here.
    ///
    /// # Errors
    /// The rank is not locked, or does not exist.
    pub fn flush(&self, rank: Rank) -> Result<(), Error> {
        self.target(rank)?;
        self.epochs.expect(EpochCall::Flush)?;
        self.epochs.access(rank)?;
        self.flush_all()
    }

    /// [`flush`](Self::flush) for all ranks that are locked.
    ///
    /// # Errors
    /// None is.
    pub fn flush_all(&self) -> Result<(), Error> {
        self.epochs.expect(EpochCall::Flush)?;
        memory_fence(Ordering::SeqCst);
        self.turns.count();
        Ok(())
    }

    /// What others have written is seen here, and what this rank has written is seen there.
    pub fn sync(&self) {
        memory_fence(Ordering::SeqCst);
        self.turns.count();
        // What the others have written meanwhile is seen as well.
        memory_fence(Ordering::SeqCst);
    }

    /// The ranks of a group, in this window's communicator.
    fn ranks_of(&self, group: &Members) -> Result<Vec<Rank>, Error> {
        let place = |member: u32| {
            let place = self.comm.members.position(member).and_then(|at| Rank::try_from(at).ok());
            place.ok_or(Error::NotInCommunicator { rank: member })
        };
        group.iter().map(place).collect()
    }

    /// Sends messages without data to ranks of the window.
    async fn tell(&self, ranks: &[Rank], tag: Tag, site: Site) -> Result<(), Error> {
        for rank in ranks {
            let message = Outbound {
                context: self.comm.context,
                to: self.comm.job_rank(*rank)?,
                source: self.comm.rank,
                tag,
                data: std::ptr::null(),
                len: 0,
                mode: Mode::Standard,
                signature: Signature::ANY,
            };
            // SAFETY: O1: no data.
            unsafe { operation::send(message, site) }.await?;
        }
        Ok(())
    }

    /// Waits for such messages; what their senders have written before is seen afterwards.
    async fn hear(&self, ranks: &[Rank], tag: Tag, site: Site) -> Result<(), Error> {
        for rank in ranks {
            let pattern = Pattern { context: self.comm.context, source: *rank, tag };
            let room = Room::untyped(std::ptr::null_mut(), 0);
            // SAFETY: O1: no bytes of a buffer.
            unsafe { operation::receive(pattern, room, site) }.await?;
        }
        memory_fence(Ordering::SeqCst);
        Ok(())
    }

    /// Takes the lock of a rank's memory; the rank exists. It lets others run until it has it, soon for longer.
    async fn acquire(&self, kind: LockKind, rank: Rank, site: Site) -> Result<(), Error> {
        let target = self.target(rank)?;
        let at = rank.unsigned_abs() as usize;
        for tries in 0u32.. {
            // SAFETY: W1: it is leased.
            let here = self.lease(at).map(|_leased| unsafe { target.control() }.try_lock(kind));
            let is_locked = match here {
                Some(is_locked) => is_locked,
                None => {
                    let rank = self.comm.members.get(at);
                    remote::try_lock(rank, self.comm.context, kind, site).await?
                }
            };
            match is_locked {
                true => break,
                false if tries < TRIES => yield_now_async().await,
                false => Sleep::new(BETWEEN_TRIES, site).await?,
            }
        }
        memory_fence(Ordering::SeqCst);
        Ok(())
    }

    /// Releases the lock of a rank's memory.
    async fn release(&self, rank: Rank, site: Site) -> Result<(), Error> {
        memory_fence(Ordering::SeqCst);
        let target = self.target(rank)?;
        let at = rank.unsigned_abs() as usize;
        // SAFETY: W1: it is leased.
        match self.lease(at).map(|_leased| unsafe { target.control() }.unlock()) {
            Some(()) => Ok(()),
            None => remote::unlock(self.comm.members.get(at), self.comm.context, site).await,
        }
    }
}
