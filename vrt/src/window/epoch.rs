//! When accesses are allowed, and what they have seen afterwards (MPI-4.1 section 12.5): the core's epochs.

use crate::datatype::Equivalence;
use crate::error::{At, OrRefuse};
use crate::operation::{block_on_or_refuse, site};
use crate::topology::{Group, Rank};
use crate::window::Window;
use vrt_core::rma::control::LockKind;

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
        block_on_or_refuse(self.core.fence(true, site), site);
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
        async move { self.core.lasting_fence(true, site).await.at(site).or_refuse() }
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
        let site = site!("last_fence");
        block_on_or_refuse(self.core.fence(false, site), site);
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
        block_on_or_refuse(self.core.post(group.members(), site), site);
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
        block_on_or_refuse(self.core.start(group.members(), site), site);
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
        block_on_or_refuse(self.core.complete(site), site);
    }

    /// Waits until all ranks that were let in by [`post`](Self::post) have completed: not at all, if none was.
    ///
    /// Example: [`post`](Self::post).
    #[track_caller]
    pub fn wait(&self) {
        let site = site!("wait");
        block_on_or_refuse(self.core.wait(site), site);
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
        block_on_or_refuse(self.core.test(site), site)
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
        block_on_or_refuse(self.core.lock(kind, rank, site), site);
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
        block_on_or_refuse(self.core.unlock(rank, site), site);
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
        block_on_or_refuse(self.core.lock_all(site), site);
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
        block_on_or_refuse(self.core.unlock_all(site), site);
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
        self.core.flush(rank).at(site!("flush")).or_refuse();
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
        self.core.flush_all().at(site!("flush_all")).or_refuse();
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
        self.core.sync();
    }
}
