//! One-sided communication (MPI-4.1 chapter 12): a rank reads and writes the memory of others.
//!
//! A [`Window`] is made by all ranks of a communicator, each with memory of its own heap or stack.
//! Inside a node an access is loads, stores and atomics on the other rank's slot; to another node
//! it is a message to the rank, whose PE does the same there and answers. Either way it is done
//! when the call returns. A rank that is moved keeps the addresses of its memory, so windows survive
//! moves.
//!
//! | file | subject |
//! |---|---|
//! | `access` | put, get, accumulate and others; the own part |
//! | `epoch` | fence, post/start/complete/wait, locks |
//!
//! Accesses are allowed inside an epoch only, as the standard says; what is wrong is said with the
//! rank, the call and the value. Two accesses to one place that are not ordered by epochs may see
//! parts of each other, except accumulating ones, which are atomic for each element.

mod access;
mod epoch;

use std::fmt;
use std::mem::ManuallyDrop;
use std::pin::Pin;

use crate::datatype::{Equivalence, Signature, UncommittedDatatype};
use crate::error::{At, ErrorKind, OrRefuse, refuse};
use crate::operation::{Site, background, block_on_at, block_on_or_refuse, site};
use crate::topology::{Communicator, Rank};
use vrt_core::comm::CommunicatorHandle;
use vrt_core::operation::MayBlock;
use vrt_core::pe;
pub use vrt_core::rma::control::LockKind;
use vrt_core::rma::window::{self, Contribution};
use vrt_slot::Arena;
use vrt_slot::locals::{self, Task};

/// The traits of this module.
pub mod traits {
    pub use super::OneSided;
}

/// Making windows.
///
/// # Examples
///
/// ```
/// use vrt::traits::*;
///
/// vrt::run_local(2, |world| {
///     let window = world.allocate_window(vec![world.rank()]);
///     let mut theirs = [-1];
///     window.fence();
///     window.get(1 - world.rank(), 0, &mut theirs);
///     window.fence();
///     assert_eq!(theirs, [1 - world.rank()]);
/// });
/// ```
pub trait OneSided: Communicator {
    /// A window over a slice of each rank (`MPI_Win_create`). Collective.
    ///
    /// The window has the slice's values in memory of its own, because a window that is forgotten
    /// is accessed by others longer than the slice is borrowed; freeing the window puts the values
    /// back. [`allocate_window`](Self::allocate_window) does without the two copies.
    ///
    /// # Panics
    /// When ranks give values of different types.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let mut memory = [0; 3];
    ///     let window = world.create_window(&mut memory);
    ///     window.fence();
    ///     window.put(1 - world.rank(), 1, &[7, 8]);
    ///     window.fence();
    ///     window.free();
    ///     assert_eq!(memory, [0, 7, 8]);
    /// });
    /// ```
    #[track_caller]
    fn create_window<'a, T>(&self, memory: &'a mut [T]) -> Window<'a, T>
    where
        T: Equivalence + Copy,
    {
        let site = site!("create_window");
        block_on_at(Window::make(self.as_handle(), memory.to_vec(), Some(memory), site), site)
    }

    /// A window over new memory of each rank, so many values (`MPI_Win_allocate`). Collective.
    ///
    /// # Panics
    /// When ranks give values of different types.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::collective::SystemOperation;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     // Rank 0 has a counter, the others have nothing.
    ///     let counter = world.allocate_window(vec![0; usize::from(world.rank() == 0)]);
    ///     counter.fence();
    ///     counter.accumulate(0, 0, &[1], SystemOperation::sum());
    ///     counter.fence();
    ///     if world.rank() == 0 {
    ///         assert_eq!(counter.load(0), 3);
    ///     }
    /// });
    /// ```
    #[track_caller]
    fn allocate_window<T>(&self, values: Vec<T>) -> Window<'static, T>
    where
        T: Equivalence + Copy,
    {
        let site = site!("allocate_window");
        block_on_at(Window::make(self.as_handle(), values, None, site), site)
    }

    /// [`allocate_window`](Self::allocate_window) for async ranks. Dropped early, this rank's part of
    /// the window is made all the same, and never freed.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     vrt::block_on(async {
    ///         let window = world.allocate_window_async(vec![world.rank(); 2]).await;
    ///         assert_eq!((window.len_at(0), window.load(1)), (2, world.rank()));
    ///         window.free_async().await;
    ///     });
    /// });
    /// ```
    #[track_caller]
    fn allocate_window_async<T>(&self, values: Vec<T>) -> impl Future<Output = Window<'static, T>>
    where
        T: Equivalence + Copy + 'static,
    {
        let (comm, site) = (self.as_handle().clone(), site!("allocate_window_async"));
        background(async move { Window::make(&comm, values, None, site).await })
    }
}

impl<C: Communicator + ?Sized> OneSided for C {}

/// Memory of all ranks of a communicator that each of them can read and write.
///
/// All ranks free it: by [`free`](Self::free), or [`free_async`](Self::free_async) in async ranks, or by
/// dropping it. What dropping it does depends on the rank:
///
/// | dropped in | does |
/// |---|---|
/// | a blocking rank | the same as `free`: waits until all ranks free it |
/// | an async rank | waits for nothing: the rank's part in freeing it goes on beside what else the rank does, and its memory is given back when all ranks have freed it |
/// | a rank that panics | nothing: the memory stays, as others may go on accessing it |
///
/// A window that is forgotten is never freed, and ranks that free it wait for ever.
///
/// # Examples
///
/// ```
/// use vrt::collective::SystemOperation;
/// use vrt::traits::*;
///
/// vrt::run_local(4, |world| {
///     let mut memory = [0u64; 4];
///     {
///         let window = world.create_window(&mut memory);
///         window.fence();
///         for rank in 0..world.size() {
///             window.put(rank, world.rank() as usize, &[world.rank() as u64 + 1]);
///         }
///         window.fence();
///         window.accumulate(0, 0, &[10], SystemOperation::sum());
///         window.fence();
///     }
///     assert_eq!(memory, [if world.rank() == 0 { 41 } else { 1 }, 2, 3, 4]);
/// });
/// ```
#[must_use = "a window that is dropped at once is freed, which waits for all ranks"]
pub struct Window<'a, T: Equivalence + Copy> {
    /// Freed with the memory; its parts are measured in bytes.
    core: ManuallyDrop<window::Window>,
    /// What other ranks access, by its address; dropped only when all have freed the window.
    memory: ManuallyDrop<Vec<T>>,
    /// Where the values go in the end.
    back: Option<&'a mut [T]>,
    freed: bool,
}

impl<T: Equivalence + Copy> fmt::Debug for Window<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Window").field("epoch", &self.core.epoch()).finish_non_exhaustive()
    }
}

impl<'a, T: Equivalence + Copy> Window<'a, T> {
    async fn make(
        comm: &CommunicatorHandle,
        mut values: Vec<T>,
        back: Option<&'a mut [T]>,
        site: Site,
    ) -> Window<'a, T> {
        if !values.is_empty() && !Arena::contains(values.as_ptr() as usize) {
            // Other ranks reach what is allocated in this one.
            values = values.clone();
        }
        let (address, bytes) = (values.as_mut_ptr() as usize, size_of_val(&*values));
        if bytes > 0 && !Arena::contains(address) {
            panic!(
                "rank {} in {}: the memory at {address:#x} does not lie in the rank's heap, so \
                 other ranks cannot reach it",
                comm.rank, site
            );
        }
        let memory = ManuallyDrop::new(values);
        let signature = T::equivalent_datatype().datatype_ref().signature();
        let about = Self::about(signature.number(), size_of::<T>() as u32);
        let made = window::Window::make(comm, Contribution { address, bytes, about }, site).await;
        let (core, all) = made.at(site).or_refuse();
        if let Some(rank) = all.iter().position(|theirs| *theirs != about) {
            let kind = ErrorKind::WindowTypes {
                own: std::any::type_name::<T>(),
                own_signature: signature,
                own_bytes: size_of::<T>() as i32,
                signature: Signature::from_number((all[rank] >> 32) as u16),
                bytes: all[rank] as u32 as i32,
                rank: rank as Rank,
            };
            refuse(kind, site);
        }
        Window { core: ManuallyDrop::new(core), memory, back, freed: false }
    }

    /// What each rank tells of its values: their datatype, and their size.
    fn about(signature: u16, bytes: u32) -> u64 {
        u64::from(signature) << 32 | u64::from(bytes)
    }

    /// Waits until all ranks free the window (`MPI_Win_free`); then the values are put back into the slice that
    /// it was made over. Collective.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let window = world.allocate_window(vec![0; 2]);
    ///     window.fence();
    ///     window.put(1 - world.rank(), 0, &[7]);
    ///     window.fence();
    ///     assert_eq!(window.load(0), 7);
    ///     window.free();
    /// });
    /// ```
    #[track_caller]
    pub fn free(mut self) {
        self.wait_until_freed(site!("free"));
    }

    /// The async twin of [`free`](Self::free). Dropped early, others do not wait for this rank's part, but
    /// its memory is not given back.
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
    ///         window.free_async().await;
    ///         assert_eq!(theirs, [1 - world.rank()]);
    ///     });
    /// });
    /// ```
    #[track_caller]
    pub fn free_async(self) -> impl Future<Output = ()> + use<'a, T> {
        let site = site!("free_async");
        let mut window = ManuallyDrop::new(self);
        async move {
            // SAFETY: the window is not used otherwise, nor dropped.
            let core = unsafe { ManuallyDrop::take(&mut window.core) };
            background(core.free(site)).await.at(site).or_refuse();
            window.give_memory_back();
        }
    }

    /// Waits until all ranks have freed the window.
    fn wait_until_freed(&mut self, site: Site) {
        self.freed = true;
        // SAFETY: as `freed` says, it is not used again.
        let core = unsafe { ManuallyDrop::take(&mut self.core) };
        block_on_or_refuse(core.free(site), site);
        self.give_memory_back();
    }

    /// Ends the part of a window that all ranks have freed.
    fn give_memory_back(&mut self) {
        if let Some(back) = &mut self.back {
            back.copy_from_slice(&self.memory);
        }
        // SAFETY: nobody accesses it again, and it is not used after this.
        unsafe { ManuallyDrop::drop(&mut self.memory) };
    }

    /// Has the rank free the window beside what else it does. It waits for nobody.
    fn free_beside(&mut self, site: Site) {
        self.freed = true;
        // SAFETY: as `freed` says, they are not used again.
        let (memory, core) =
            unsafe { (ManuallyDrop::take(&mut self.memory), ManuallyDrop::take(&mut self.core)) };
        let free: Pin<Box<dyn Future<Output = ()> + '_>> = Box::pin(async move {
            core.free(site).await.at(site).or_refuse();
            // All ranks have freed the window, so nobody accesses it again.
            drop(memory);
        });
        // SAFETY: the task borrows nothing, and to drop values that are `Copy` is to give back their block.
        let free =
            unsafe { std::mem::transmute::<Pin<Box<dyn Future<Output = ()> + '_>>, Task>(free) };
        locals::spawn(free);
    }
}

impl<T: Equivalence + Copy> Drop for Window<'_, T> {
    #[track_caller]
    fn drop(&mut self) {
        // Of a rank that panics others may go on accessing the memory: it stays.
        if self.freed || std::thread::panicking() {
            return;
        }
        let site = site!("drop of a window");
        if self.back.is_none() && pe::in_rank() && MayBlock::here().is_none() {
            return self.free_beside(site);
        }
        self.wait_until_freed(site);
    }
}
