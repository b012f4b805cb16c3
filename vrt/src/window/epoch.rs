//! When accesses are allowed, and what they have seen afterwards (MPI-4.1 section 12.5).
//!
//! Accesses are done when they return, so an epoch only has to order them: by a barrier, by
//! messages, or by a lock in the heap of the rank whose memory it is about. A rank that waits for a
//! lock lets others run, soon for longer.

use std::sync::atomic::{Ordering, fence};
use std::time::Duration;

use crate::datatype::{Equivalence, Signature};
use crate::error::{At, ErrorKind, OrRefuse, refuse};
use crate::operation::block_on_or_refuse;
use crate::operation::site;
use crate::operation::{self, Site, background, sleep_async};
use crate::operation::{block_on_at, yield_now_async};
use crate::topology::{Group, Rank};
use crate::window::Window;
use vrt_core::comm::algorithms::Collective;
use vrt_core::comm::handle::CommunicatorHandle;
use vrt_core::mailbox::Pattern;
use vrt_core::pe::{self, Mode, Outbound, Room};
use vrt_core::rma::control::LockKind;
use vrt_core::rma::epoch::{Epoch, EpochCall};
use vrt_core::rma::remote;

pub(super) async fn barrier(comm: &CommunicatorHandle, site: Site) {
    fence(Ordering::SeqCst);
    let collective = Collective::begin(comm, site);
    // SAFETY: there are no buffers.
    unsafe { collective.barrier() }.await.at(site).or_refuse();
    fence(Ordering::SeqCst);
}

/// Messages of an epoch.
const POSTED: i32 = 1;
const COMPLETED: i32 = 2;

async fn tell(comm: &CommunicatorHandle, ranks: &[Rank], tag: i32, site: Site) {
    for rank in ranks {
        let message = Outbound {
            context: comm.context,
            to: comm.job_rank(*rank).at(site).or_refuse(),
            source: comm.rank,
            tag,
            data: std::ptr::null(),
            len: 0,
            mode: Mode::Standard,
            signature: Signature::ANY,
        };
        // SAFETY: there is no data.
        unsafe { operation::send(message, site) }.await.at(site).or_refuse();
    }
}

async fn hear(comm: &CommunicatorHandle, ranks: &[Rank], tag: i32, site: Site) {
    for rank in ranks {
        let pattern = Pattern { context: comm.context, source: *rank, tag };
        // SAFETY: there is no data.
        unsafe { operation::receive(pattern, Room::untyped(std::ptr::null_mut(), 0), site) }
            .await
            .at(site)
            .or_refuse();
    }
}

impl<T: Equivalence + Copy> Window<'_, T> {
    /// Waits until all ranks are here: what was accessed before is done then, and everything may be
    /// accessed until the next fence (section 12.5.1). Collective.
    ///
    /// # Panics
    /// In an epoch of another kind.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let window = world.allocate_window(vec![0]);
    ///     window.fence();
    ///     window.put(1 - world.rank(), 0, &[7]);
    ///     window.fence();
    ///     assert_eq!(window.load(0), 7);
    /// });
    /// ```
    #[track_caller]
    pub fn fence(&self) {
        let site = site!("fence");
        self.expect_epoch(EpochCall::Fence, site);
        block_on_at(barrier(&self.comm, site), site);
        self.epoch.set(Epoch::Fence);
    }

    /// [`fence`](Self::fence) for async ranks. Dropped early, it counts as this rank's fence, but the
    /// epoch here stays what it was.
    ///
    /// # Panics
    /// As there.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     vrt::block_on(async {
    ///         let window = world.allocate_window_async(vec![0]).await;
    ///         window.fence_async().await;
    ///         window.put_async(1 - world.rank(), 0, &[7]).await;
    ///         window.fence_async().await;
    ///         assert_eq!(window.load(0), 7);
    ///         window.free_async().await;
    ///     });
    /// });
    /// ```
    #[track_caller]
    pub fn fence_async(&self) -> impl Future<Output = ()> {
        let site = site!("fence_async");
        async move {
            self.expect_epoch(EpochCall::Fence, site);
            let comm = self.comm.clone();
            background(async move { barrier(&comm, site).await }).await;
            self.epoch.set(Epoch::Fence);
        }
    }

    /// [`fence`](Self::fence), after which nothing is accessed until an epoch begins
    /// (`MPI_MODE_NOSUCCEED`).
    ///
    /// # Panics
    /// As there.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let window = world.allocate_window(vec![0]);
    ///     window.fence();
    ///     window.put(1 - world.rank(), 0, &[7]);
    ///     window.last_fence();
    ///     assert_eq!(window.load(0), 7);
    /// });
    /// ```
    #[track_caller]
    pub fn last_fence(&self) {
        self.fence();
        self.epoch.set(Epoch::None);
    }

    /// Lets the ranks of a group access this rank's memory, until [`wait`](Self::wait)
    /// (section 12.5.2).
    ///
    /// # Panics
    /// When it lets others already, or a rank of the group has no part in the window.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let window = world.allocate_window(vec![0]);
    ///     let other = world.group().include(&[1 - world.rank()]);
    ///     window.post(&other);
    ///     window.start(&other);
    ///     window.put(1 - world.rank(), 0, &[7]);
    ///     window.complete();
    ///     window.wait();
    ///     assert_eq!(window.load(0), 7);
    /// });
    /// ```
    #[track_caller]
    pub fn post(&self, group: &dyn Group) {
        let site = site!("post");
        let ranks = self.ranks_of(group, site);
        let mut exposed_to = self.exposed_to.borrow_mut();
        if !exposed_to.is_empty() {
            self.refuse(&format!("ranks {:?} may access already", *exposed_to), site);
        }
        exposed_to.clone_from(&ranks);
        drop(exposed_to);
        fence(Ordering::SeqCst);
        block_on_at(tell(&self.comm, &ranks, POSTED, site), site);
    }

    /// Waits until the ranks of a group have posted: their memory may be accessed then, until
    /// [`complete`](Self::complete).
    ///
    /// Example: [`post`](Self::post).
    ///
    /// # Panics
    /// In another epoch, or when a rank of the group has no part in the window.
    #[track_caller]
    pub fn start(&self, group: &dyn Group) {
        let site = site!("start");
        self.expect_epoch(EpochCall::Start, site);
        let ranks = self.ranks_of(group, site);
        block_on_at(hear(&self.comm, &ranks, POSTED, site), site);
        fence(Ordering::SeqCst);
        *self.accessed.borrow_mut() = ranks;
        self.epoch.set(Epoch::Started);
    }

    /// Ends what [`start`](Self::start) began.
    ///
    /// Example: [`post`](Self::post).
    ///
    /// # Panics
    /// In another epoch.
    #[track_caller]
    pub fn complete(&self) {
        let site = site!("complete");
        self.expect_epoch(EpochCall::Complete, site);
        self.epoch.set(Epoch::None);
        let ranks = std::mem::take(&mut *self.accessed.borrow_mut());
        fence(Ordering::SeqCst);
        block_on_at(tell(&self.comm, &ranks, COMPLETED, site), site);
    }

    /// Waits until all ranks that were let in by [`post`](Self::post) have completed: not at all, if none was.
    ///
    /// Example: [`post`](Self::post).
    #[track_caller]
    pub fn wait(&self) {
        let site = site!("wait");
        let ranks = std::mem::take(&mut *self.exposed_to.borrow_mut());
        block_on_at(hear(&self.comm, &ranks, COMPLETED, site), site);
        fence(Ordering::SeqCst);
    }

    /// Whether all ranks that were let in by [`post`](Self::post) have completed; then the epoch
    /// has ended (`MPI_Win_test`).
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let window = world.allocate_window(vec![0]);
    ///     let other = world.group().include(&[1 - world.rank()]);
    ///     window.post(&other);
    ///     window.start(&other);
    ///     window.put(1 - world.rank(), 0, &[7]);
    ///     window.complete();
    ///     while !window.test() {}
    ///     assert_eq!(window.load(0), 7);
    /// });
    /// ```
    #[track_caller]
    pub fn test(&self) -> bool {
        let site = site!("test");
        let ranks = self.exposed_to.borrow().clone();
        let context = self.comm.context;
        let completed = |rank: &Rank| {
            let pattern = Pattern { context, source: *rank, tag: COMPLETED };
            pe::with(|pe| pe.engine.probe(pattern)).is_some()
        };
        let all = ranks.iter().all(completed);
        if all {
            self.wait();
        } else {
            block_on_at(yield_now_async(), site);
        }
        all
    }

    /// Locks a rank's memory (section 12.5.3); it may be accessed until [`unlock`](Self::unlock).
    ///
    /// # Panics
    /// In an epoch of another kind, when it is locked by this rank already, and when there is no such rank.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    /// use vrt::window::LockKind;
    ///
    /// vrt::run_local(3, |world| {
    ///     let (window, mut value) = (world.allocate_window(vec![0]), [0]);
    ///     window.lock(LockKind::Exclusive, 0);
    ///     window.get(0, 0, &mut value);
    ///     window.put(0, 0, &[value[0] + 1]);
    ///     window.unlock(0);
    ///     world.barrier();
    ///     assert_eq!(window.load(0), if world.rank() == 0 { 3 } else { 0 });
    /// });
    /// ```
    #[track_caller]
    pub fn lock(&self, kind: LockKind, rank: Rank) {
        let site = site!("lock");
        self.expect_epoch(EpochCall::Lock, site);
        self.comm.job_rank(rank).at(site).or_refuse();
        if self.accessed.borrow().contains(&rank) {
            self.refuse(&format!("rank {rank} is locked already"), site);
        }
        block_on_at(self.acquire(kind, rank, site), site);
        self.accessed.borrow_mut().push(rank);
        self.epoch.set(Epoch::Locked);
    }

    /// Ends what [`lock`](Self::lock) began: what was accessed is done.
    ///
    /// Example: [`lock`](Self::lock).
    ///
    /// # Panics
    /// When it is not locked by this rank.
    #[track_caller]
    pub fn unlock(&self, rank: Rank) {
        let site = site!("unlock");
        let mut locked = self.accessed.borrow_mut();
        match (self.epoch.get(), locked.iter().position(|locked| *locked == rank)) {
            (Epoch::Locked, Some(at)) => {
                locked.swap_remove(at);
            }
            _ => self.refuse(&format!("rank {rank} is not locked"), site),
        }
        if locked.is_empty() {
            self.epoch.set(Epoch::None);
        }
        drop(locked);
        fence(Ordering::SeqCst);
        self.release(rank, site);
        self.turns.count();
    }

    /// Locks the memory of all ranks, shared (`MPI_Win_lock_all`).
    ///
    /// # Panics
    /// In another epoch.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::collective::SystemOperation;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     let counter = world.allocate_window(vec![0]);
    ///     counter.lock_all();
    ///     (0..3).for_each(|rank| counter.accumulate(rank, 0, &[1], SystemOperation::sum()));
    ///     counter.unlock_all();
    ///     world.barrier();
    ///     assert_eq!(counter.load(0), 3);
    /// });
    /// ```
    #[track_caller]
    pub fn lock_all(&self) {
        let site = site!("lock_all");
        self.expect_epoch(EpochCall::LockAll, site);
        let acquire = async {
            for rank in 0..self.comm.size {
                self.acquire(LockKind::Shared, rank, site).await;
            }
        };
        block_on_at(acquire, site);
        self.epoch.set(Epoch::LockedAll);
    }

    /// Ends what [`lock_all`](Self::lock_all) began.
    ///
    /// Example: [`lock_all`](Self::lock_all).
    ///
    /// # Panics
    /// In another epoch.
    #[track_caller]
    pub fn unlock_all(&self) {
        let site = site!("unlock_all");
        self.expect_epoch(EpochCall::UnlockAll, site);
        self.epoch.set(Epoch::None);
        fence(Ordering::SeqCst);
        (0..self.comm.size).for_each(|rank| self.release(rank, site));
        self.turns.count();
    }

    /// What this rank did to a rank's memory is done, there and here (section 12.5.4).
    ///
    /// # Panics
    /// When the rank is not locked by this one, or there is no such rank.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let (window, mut both) = (world.allocate_window(vec![0; 2]), [0; 2]);
    ///     window.lock_all();
    ///     window.put(0, world.rank() as usize, &[7 + world.rank()]);
    ///     window.flush(0);
    ///     world.barrier();
    ///     window.get(0, 0, &mut both);
    ///     window.unlock_all();
    ///     assert_eq!(both, [7, 8]);
    /// });
    /// ```
    #[track_caller]
    pub fn flush(&self, rank: Rank) {
        let site = site!("flush");
        self.comm.job_rank(rank).at(site).or_refuse();
        self.expect_epoch(EpochCall::Flush, site);
        self.expect_access(rank, site);
        fence(Ordering::SeqCst);
        self.turns.count();
    }

    /// [`flush`](Self::flush) for all ranks that are locked.
    ///
    /// # Panics
    /// When none is.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let window = world.allocate_window(vec![0; 2]);
    ///     window.lock_all();
    ///     (0..2).for_each(|rank| window.put(rank, world.rank() as usize, &[7 + world.rank()]));
    ///     window.flush_all();
    ///     world.barrier();
    ///     assert_eq!([0, 1].map(|at| window.load(at)), [7, 8]);
    ///     window.unlock_all();
    /// });
    /// ```
    #[track_caller]
    pub fn flush_all(&self) {
        self.expect_epoch(EpochCall::Flush, site!("flush_all"));
        fence(Ordering::SeqCst);
        self.turns.count();
    }

    /// Makes what others have written seen here, and what this rank has stored seen there
    /// (`MPI_Win_sync`).
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let (window, mut theirs) = (world.allocate_window(vec![0]), [0]);
    ///     window.lock_all();
    ///     window.store(0, 7);
    ///     window.sync();
    ///     world.barrier();
    ///     window.sync();
    ///     window.get(1 - world.rank(), 0, &mut theirs);
    ///     window.unlock_all();
    ///     assert_eq!(theirs, [7]);
    /// });
    /// ```
    pub fn sync(&self) {
        fence(Ordering::SeqCst);
        self.turns.count();
        // What the others have written meanwhile is seen as well.
        fence(Ordering::SeqCst);
    }

    async fn acquire(&self, kind: LockKind, rank: Rank, site: Site) {
        let target = &self.targets[rank as usize];
        for tries in 0u32.. {
            let here = self.in_reach(rank).map(|_leased| target.control().try_lock(kind));
            let locked = match here {
                Some(locked) => locked,
                None => {
                    let rank = self.comm.members.get(rank as usize);
                    remote::try_lock(rank, self.comm.context, kind, site).await.at(site).or_refuse()
                }
            };
            if locked {
                break;
            }
            match tries {
                0..100 => yield_now_async().await,
                _ => sleep_async(Duration::from_micros(20)).await,
            }
        }
        fence(Ordering::SeqCst);
    }

    fn release(&self, rank: Rank, site: Site) {
        let target = &self.targets[rank as usize];
        let here = self.in_reach(rank).map(|_leased| target.control().unlock());
        if here.is_none() {
            let rank = self.comm.members.get(rank as usize);
            block_on_or_refuse(remote::unlock(rank, self.comm.context, site), site);
        }
    }

    /// The ranks of a group, in this window's communicator.
    fn ranks_of(&self, group: &dyn Group, site: Site) -> Vec<Rank> {
        let place = |member: u32| match self.comm.members.position(member) {
            Some(rank) => rank as Rank,
            None => self.refuse(&format!("rank {member} of the job has no part in it"), site),
        };
        group.members().iter().map(place).collect()
    }

    fn expect_epoch(&self, step: EpochCall, site: Site) {
        if let Err(error) = self.epoch.get().expect(step) {
            self.refuse(&error.to_string(), site);
        }
    }

    #[inline]
    pub(super) fn expect_access(&self, rank: Rank, site: Site) {
        let listed = || self.accessed.borrow().contains(&rank);
        if !self.epoch.get().lets_access(listed) {
            self.refuse_access(rank, site);
        }
    }

    #[cold]
    fn refuse_access(&self, rank: Rank, site: Site) -> ! {
        let epoch = self.epoch.get();
        self.refuse(&format!("the memory of rank {rank} may not be accessed now: {epoch:?}"), site);
    }

    fn refuse(&self, why: &str, site: Site) -> ! {
        refuse(ErrorKind::Epoch { why: why.to_owned() }, site)
    }
}
