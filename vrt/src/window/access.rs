//! Accesses to the parts of a window (MPI-4.1 section 12.3): done when the call returns.

use crate::collective::SystemOperation;
use crate::datatype::{Equivalence, UncommittedDatatype};
use crate::error::{At, ErrorKind, OrRefuse, refuse};
use crate::operation::{Site, block_on_or_refuse, site};
use crate::topology::Rank;
use crate::window::Window;
use vrt_core::comm::operator::Operator;
use vrt_core::rma::access::{Access, Target};

impl<T: Equivalence + Copy> Window<'_, T> {
    /// Number of values in a rank's part.
    ///
    /// # Panics
    /// When there is no such rank.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     let window = world.allocate_window(vec![0u8; world.rank() as usize]);
    ///     assert_eq!([0, 1, 2].map(|rank| window.len_at(rank)), [0, 1, 2]);
    /// });
    /// ```
    #[track_caller]
    pub fn len_at(&self, rank: Rank) -> usize {
        self.values_of(self.core.target(rank).at(site!("len_at")).or_refuse())
    }

    /// Writes values into a rank's part, from a place on (section 12.3.1).
    ///
    /// # Panics
    /// Outside of an epoch that allows it, and when they do not lie in the part.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let window = world.allocate_window(vec![0; 3]);
    ///     window.fence();
    ///     window.put(1 - world.rank(), 1, &[7, 8]);
    ///     window.fence();
    ///     assert_eq!([0, 1, 2].map(|at| window.load(at)), [0, 7, 8]);
    /// });
    /// ```
    #[track_caller]
    pub fn put(&self, rank: Rank, at: usize, values: &[T]) {
        let from = values.as_ptr().cast();
        self.access(rank, at, values.len(), Access::Put { from }, site!("put"));
    }

    /// Reads values of a rank's part, from a place on (section 12.3.2).
    ///
    /// # Panics
    /// As [`put`](Self::put).
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let window = world.allocate_window(vec![0, world.rank() + 10]);
    ///     let mut theirs = [0];
    ///     window.fence();
    ///     window.get(1 - world.rank(), 1, &mut theirs);
    ///     window.fence();
    ///     assert_eq!(theirs, [11 - world.rank()]);
    /// });
    /// ```
    #[track_caller]
    pub fn get(&self, rank: Rank, at: usize, into: &mut [T]) {
        let to = into.as_mut_ptr().cast();
        self.access(rank, at, into.len(), Access::Get { to }, site!("get"));
    }

    /// Folds values into a rank's part, from a place on (section 12.3.4): each place becomes what
    /// it was, `op` the value. Atomic for each of them.
    ///
    /// # Panics
    /// As [`put`](Self::put), and when the operation is not defined for the values.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::collective::SystemOperation;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     let window = world.allocate_window(vec![10]);
    ///     window.fence();
    ///     window.accumulate(0, 0, &[world.rank()], SystemOperation::sum());
    ///     window.fence();
    ///     assert_eq!(window.load(0), if world.rank() == 0 { 13 } else { 10 });
    /// });
    /// ```
    #[track_caller]
    pub fn accumulate(&self, rank: Rank, at: usize, values: &[T], op: SystemOperation) {
        let site = site!("accumulate");
        let (from, fetched, operator) =
            (values.as_ptr().cast(), std::ptr::null_mut(), self.operator(op, site));
        self.access(rank, at, values.len(), Access::Accumulate { from, fetched, operator }, site);
    }

    /// [`accumulate`](Self::accumulate) that gives what was there before (section 12.3.4).
    ///
    /// # Panics
    /// As there, and when the two slices differ in length.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::collective::SystemOperation;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let (window, mut before) = (world.allocate_window(vec![10, 20]), [0; 2]);
    ///     window.fence();
    ///     window.get_accumulate(1 - world.rank(), 0, &[1, 2], &mut before, SystemOperation::sum());
    ///     window.fence();
    ///     assert_eq!(before, [10, 20]);
    ///     assert_eq!([0, 1].map(|at| window.load(at)), [11, 22]);
    /// });
    /// ```
    #[track_caller]
    pub fn get_accumulate(
        &self,
        rank: Rank,
        at: usize,
        values: &[T],
        before: &mut [T],
        op: SystemOperation,
    ) {
        let site = site!("get_accumulate");
        if values.len() != before.len() {
            refuse(ErrorKind::ResultRoom { values: values.len(), results: before.len() }, site);
        }
        let fetched = before.as_mut_ptr().cast();
        let (from, operator) = (values.as_ptr().cast(), self.operator(op, site));
        self.access(rank, at, values.len(), Access::Accumulate { from, fetched, operator }, site);
    }

    /// Folds one value into a place of a rank's part; gives what was there before.
    ///
    /// # Panics
    /// As [`accumulate`](Self::accumulate).
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::collective::SystemOperation;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     let counter = world.allocate_window(vec![0]);
    ///     counter.fence();
    ///     // Every rank gets another number.
    ///     let ticket = counter.fetch_and_op(0, 0, 1, SystemOperation::sum());
    ///     counter.fence();
    ///     assert!((0..3).contains(&ticket));
    /// });
    /// ```
    #[track_caller]
    pub fn fetch_and_op(&self, rank: Rank, at: usize, value: T, op: SystemOperation) -> T {
        let site = site!("fetch_and_op");
        let mut before = value;
        let (from, fetched, operator) =
            ((&raw const value).cast(), (&raw mut before).cast(), self.operator(op, site));
        self.access(rank, at, 1, Access::Accumulate { from, fetched, operator }, site);
        before
    }

    /// Puts a value into a place of a rank's part if `expected` is there; gives what was there
    /// before (section 12.3.4).
    ///
    /// # Panics
    /// As [`put`](Self::put), and when values have more than 8 bytes, or gaps between their fields.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     let (window, mut winner) = (world.allocate_window(vec![-1]), [-1]);
    ///     window.fence();
    ///     // The first rank that calls puts its number there.
    ///     let before = window.compare_and_swap(0, 0, -1, world.rank());
    ///     window.get(0, 0, &mut winner);
    ///     window.fence();
    ///     assert_eq!(before == -1, winner == [world.rank()]);
    /// });
    /// ```
    #[track_caller]
    pub fn compare_and_swap(&self, rank: Rank, at: usize, expected: T, value: T) -> T {
        let site = site!("compare_and_swap");
        let (what, bytes) = (std::any::type_name::<T>(), size_of::<T>());
        if !matches!(bytes, 1 | 2 | 4 | 8) {
            refuse(ErrorKind::Incomparable { what, bytes, gaps: 0 }, site);
        }
        // What is in a gap is nobody's: equal values may differ there.
        let data = T::equivalent_datatype().datatype_ref().size();
        if data != bytes {
            refuse(ErrorKind::Incomparable { what, bytes, gaps: bytes - data }, site);
        }
        let mut before = value;
        let swap = Access::CompareAndSwap {
            expected: (&raw const expected).cast(),
            value: (&raw const value).cast(),
            before: (&raw mut before).cast(),
        };
        self.access(rank, at, 1, swap, site);
        before
    }

    /// [`put`](Self::put) for async ranks.
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
    ///         let window = world.allocate_window_async(vec![0; 3]).await;
    ///         window.fence_async().await;
    ///         window.put_async(1 - world.rank(), 1, &[7, 8]).await;
    ///         window.fence_async().await;
    ///         assert_eq!([0, 1, 2].map(|at| window.load(at)), [0, 7, 8]);
    ///         window.free_async().await;
    ///     });
    /// });
    /// ```
    #[track_caller]
    pub fn put_async(&self, rank: Rank, at: usize, values: &[T]) -> impl Future<Output = ()> {
        let site = site!("put_async");
        async move {
            let from = values.as_ptr().cast();
            self.access_async(rank, at, values.len(), Access::Put { from }, site).await;
        }
    }

    /// [`get`](Self::get) for async ranks.
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
    ///         let window = world.allocate_window_async(vec![world.rank()]).await;
    ///         let mut theirs = [-1];
    ///         window.fence_async().await;
    ///         window.get_async(1 - world.rank(), 0, &mut theirs).await;
    ///         assert_eq!(theirs, [1 - world.rank()]);
    ///         window.free_async().await;
    ///     });
    /// });
    /// ```
    #[track_caller]
    pub fn get_async(&self, rank: Rank, at: usize, into: &mut [T]) -> impl Future<Output = ()> {
        let site = site!("get_async");
        async move {
            let to = into.as_mut_ptr().cast();
            self.access_async(rank, at, into.len(), Access::Get { to }, site).await;
        }
    }

    /// [`accumulate`](Self::accumulate) for async ranks.
    ///
    /// # Panics
    /// As there.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::collective::SystemOperation;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     vrt::block_on(async {
    ///         let window = world.allocate_window_async(vec![10]).await;
    ///         window.fence_async().await;
    ///         window.accumulate_async(0, 0, &[world.rank()], SystemOperation::sum()).await;
    ///         window.fence_async().await;
    ///         assert_eq!(window.load(0), if world.rank() == 0 { 13 } else { 10 });
    ///         window.free_async().await;
    ///     });
    /// });
    /// ```
    #[track_caller]
    pub fn accumulate_async(
        &self,
        rank: Rank,
        at: usize,
        values: &[T],
        op: SystemOperation,
    ) -> impl Future<Output = ()> {
        let site = site!("accumulate_async");
        async move {
            let (from, fetched, operator) =
                (values.as_ptr().cast(), std::ptr::null_mut(), self.operator(op, site));
            let fold = Access::Accumulate { from, fetched, operator };
            self.access_async(rank, at, values.len(), fold, site).await;
        }
    }

    /// A value of the calling rank's own part, at any time.
    ///
    /// # Panics
    /// When there is no such place.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let window = world.allocate_window(vec![7, 8]);
    ///     assert_eq!(window.load(1), 8);
    /// });
    /// ```
    #[track_caller]
    pub fn load(&self, at: usize) -> T {
        let site = site!("load");
        let mut value = std::mem::MaybeUninit::<T>::uninit();
        let to = value.as_mut_ptr().cast();
        self.checked_access(self.core.comm().rank, at, 1, Access::Get { to }, site);
        // SAFETY: the part is made of values, and one of them was copied.
        unsafe { value.assume_init() }
    }

    /// Puts a value into the calling rank's own part, at any time.
    ///
    /// # Panics
    /// When there is no such place.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let window = world.allocate_window(vec![7, 8]);
    ///     window.store(1, 9);
    ///     assert_eq!([0, 1].map(|at| window.load(at)), [7, 9]);
    /// });
    /// ```
    #[track_caller]
    pub fn store(&self, at: usize, value: T) {
        let from = (&raw const value).cast();
        self.checked_access(self.core.comm().rank, at, 1, Access::Put { from }, site!("store"));
    }

    /// Where a rank's part lies in this rank's memory, and how many values it has
    /// (`MPI_Win_shared_query`). It stays there as long as both ranks are on this node.
    ///
    /// # Panics
    /// When there is no such rank.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let window = world.allocate_window(vec![world.rank()]);
    ///     let (at, len) = window.shared_query(1 - world.rank());
    ///     // SAFETY: local ranks are on one node, and nobody writes the value.
    ///     assert_eq!((unsafe { *at }, len), (1 - world.rank(), 1));
    /// });
    /// ```
    #[track_caller]
    pub fn shared_query(&self, rank: Rank) -> (*mut T, usize) {
        let target = self.core.target(rank).at(site!("shared_query")).or_refuse();
        (target.address.address() as *mut T, self.values_of(target))
    }

    fn operator(&self, op: SystemOperation, site: Site) -> Operator {
        let datatype = T::equivalent_datatype();
        let operator = datatype.datatype_ref().scalar().map(|scalar| Operator { op: op.0, scalar });
        let whole = |operator: &Operator| operator.scalar.extent() == size_of::<T>();
        match operator.filter(|operator| operator.is_defined() && whole(operator)) {
            Some(operator) => operator,
            None => {
                let (op, scalar) = (format!("{:?}", op.0), std::any::type_name::<T>().to_owned());
                refuse(ErrorKind::OpOnScalar { op, scalar }, site)
            }
        }
    }

    /// Number of values in a part; values of no bytes are not counted.
    fn values_of(&self, part: &Target) -> usize {
        part.len.checked_div(size_of::<T>()).unwrap_or_default()
    }

    #[inline]
    fn access(&self, rank: Rank, at: usize, len: usize, access: Access, site: Site) {
        self.expect_access(rank, site);
        self.checked_access(rank, at, len, access, site);
    }

    #[inline]
    fn checked_access(&self, rank: Rank, at: usize, len: usize, access: Access, site: Site) {
        let (rank, offset) = self.place(rank, at, len, site);
        let elements = (len, size_of::<T>());
        // SAFETY: the place was just checked; the caller's own memory is borrowed during the call.
        unsafe {
            if !self.core.access_here(rank, offset, elements, access) {
                self.wait_for_access(rank, offset, len, access, site);
            }
        }
        self.core.count_turn();
    }

    /// Does it in another node. A function of its own, so that an access in this node needs no room
    /// for the future.
    ///
    /// # Safety
    /// As [`window::Window::access_here`].
    #[inline(never)]
    unsafe fn wait_for_access(
        &self,
        rank: usize,
        offset: usize,
        len: usize,
        access: Access,
        site: Site,
    ) {
        let elements = (len, size_of::<T>());
        // SAFETY: as the caller promises; this returns when the future is ready.
        let access = unsafe { self.core.access_elsewhere(rank, offset, elements, access, site) };
        block_on_or_refuse(access, site);
    }

    async fn access_async(&self, rank: Rank, at: usize, len: usize, access: Access, site: Site) {
        self.expect_access(rank, site);
        let (rank, offset) = self.place(rank, at, len, site);
        let elements = (len, size_of::<T>());
        // SAFETY: the place was just checked; the twins borrow the caller's own memory as long as they live.
        unsafe {
            if !self.core.access_here(rank, offset, elements, access) {
                let there = self.core.access_elsewhere(rank, offset, elements, access, site);
                there.await.at(site).or_refuse();
            }
        }
    }

    #[inline]
    fn expect_access(&self, rank: Rank, site: Site) {
        if let Err(error) = self.core.expect_access(rank) {
            refuse(error.into(), site);
        }
    }

    /// A rank, and where values lie in its part: their offset in bytes.
    #[inline]
    fn place(&self, rank: Rank, at: usize, len: usize, site: Site) -> (usize, usize) {
        let (each, rank_of_part) = (size_of::<T>(), rank as u32 as usize);
        let part = self.core.targets().get(rank_of_part);
        let end = at.checked_add(len).and_then(|end| end.checked_mul(each));
        match part.zip(end) {
            Some((part, end)) if end <= part.len => (rank_of_part, at * each),
            _ => self.refuse_place(rank, at, len, site),
        }
    }

    #[cold]
    fn refuse_place(&self, rank: Rank, at: usize, values: usize, site: Site) -> ! {
        let len = self.values_of(self.core.target(rank).at(site).or_refuse());
        refuse(ErrorKind::WindowPlace { rank, at, values, len }, site)
    }
}
