//! Collective operations (MPI-4.1 chapter 6), each in three forms: blocking, immediate, persistent.
//!
//! An operation is written once, as a function that makes a future from its arguments: the blocking form drives it on
//! the rank's stack, the immediate one makes it a task of the rank, the persistent one makes a new one at each start.
//! Small operations on elements without gaps need no future (`Combined`). Elements with gaps are sent through packed
//! copies; intercommunicators have their own algorithms.
//!
//! | file | subject |
//! |---|---|
//! | `rooted` | broadcast, gather, scatter |
//! | `all_to_all` | allgather, alltoall |
//! | `reductions` | reduce, allreduce, reduce_scatter, scan |
//! | `neighbors` | among the neighbours of a topology |
//! | `parts` | buffers with a part for each rank |
//! | `inter` | between two groups |

mod all_to_all;
mod inter;
mod neighbors;
mod parts;
mod reductions;
mod rooted;

use std::ffi::c_int;
use std::rc::Rc;

use vrt_abi::constants::*;
use vrt_abi::types::*;
use vrt_core::comm::algorithms::{Collective, Combined};
use vrt_core::comm::now::combine_now;
use vrt_core::operation;

use crate::call::{Call, Export};
use crate::communicator::{Comm, duplicate};
use crate::fault::{Outcome, refuse};
use crate::numbers;
use crate::request::{Buffers, Future_, Request, State};
use crate::status::Stat;

/// The functions of collective operations.
pub(crate) const ALL: [&[Export]; 5] =
    [EXPORTS, rooted::EXPORTS, all_to_all::EXPORTS, reductions::EXPORTS, neighbors::EXPORTS];

/// Makes the future of an operation; its arguments are checked.
pub(crate) type Operation = Box<dyn Fn() -> Future_>;

/// An operation whose future returns nothing.
fn operation<F: Future<Output = Outcome> + 'static>(
    make: impl Fn() -> F + 'static,
) -> Outcome<Operation> {
    Ok(Box::new(move || {
        let future = make();
        Box::pin(async move { future.await.map(|()| Stat::EMPTY) })
    }))
}

/// Executes a small operation on elements without gaps.
#[inline(always)]
unsafe fn combined(call: Call, comm: &Comm, combined: &Combined) -> Outcome<bool> {
    // SAFETY: as the caller promises.
    Ok(unsafe { combine_now(call.may_block(), &comm.engine, *call.site, combined)? })
}

/// The blocking form.
fn blocking(call: Call, operation: Operation) -> Outcome {
    operation::drive(call.may_block(), operation()).map(|_| ())
}

/// The immediate form.
unsafe fn immediate(
    call: Call,
    on: MPI_Comm,
    operation: Operation,
    request: *mut MPI_Request,
) -> Outcome {
    // SAFETY: the program gives room for a handle.
    unsafe { Request::task(call, on, operation()).give(call, request) };
    Ok(())
}

/// The communicator of a persistent operation: persistent operations are matched in the order in which they are made,
/// and may be started in any order (MPI-4.1 section 6.13), so each has its own communicator.
fn own_comm(call: Call, comm: MPI_Comm) -> Outcome<MPI_Comm> {
    let whole = call.process.comm(comm)?;
    let engine = operation::drive(call.may_block(), duplicate(Rc::clone(&whole), *call.site))?;
    Ok(MPI_Comm(call.process.comms.add(Comm::new(engine))))
}

/// The persistent form; `make` creates the operation on a communicator.
unsafe fn persistent(
    call: Call,
    on: MPI_Comm,
    info: MPI_Info,
    make: impl FnOnce(MPI_Comm) -> Outcome<Operation>,
    request: *mut MPI_Request,
) -> Outcome {
    crate::info::Info::or_empty(call.process, info)?;
    let own = own_comm(call, on)?;
    // The operation keeps what it needs of it.
    let operation = make(own);
    call.process.comms.remove(own.0);
    let operation = operation?;
    let start = Box::new(move |_: Call| Ok((State::task(operation()), Buffers::default())));
    // SAFETY: the program gives room for a handle.
    unsafe { Request::persistent(call, on, start).give(call, request) };
    Ok(())
}

/// Declares the three forms of operations, each made by the functions of a module; see [`three_forms!`].
macro_rules! forms {
    ($(
        $blocking:ident $(/ $blocking_large:ident)?, $immediate:ident $(/ $immediate_large:ident)?,
        $persistent:ident $(/ $persistent_large:ident)?
            ($($arg:ident: $ty:ty),* $(,)?) = $make:ident;
    )*) => {
        $crate::call::functions! {$(
            $blocking $(/ $blocking_large)? ($($arg: $ty,)* comm: MPI_Comm) on Comm(comm)
                = $make::blocking;
            $immediate $(/ $immediate_large)? (
                $($arg: $ty,)* comm: MPI_Comm, request: *mut MPI_Request,
            ) on Comm(comm) = $make::immediate;
            $persistent $(/ $persistent_large)? (
                $($arg: $ty,)* comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request,
            ) on Comm(comm) = $make::persistent;
        )*}
    };
}
pub(crate) use forms;

/// The three forms of an operation that is made by a function of the same name: a module of functions that take C
/// arguments. `now` names the function that executes a small operation without a future: it returns whether it did.
macro_rules! three_forms {
    ($name:ident $(<$($n:ident),+>)? ($($arg:ident: $ty:ty),* $(,)?)) => {
        mod $name {
            use super::*;

            pub(super) unsafe fn blocking $(<$($n: Whole),+>)? (
                call: Call, $($arg: $ty,)* comm: MPI_Comm,
            ) -> Outcome {
                // SAFETY: as the program promises.
                $crate::collective::blocking(call, unsafe { super::$name(call, $($arg,)* comm)? })
            }

            $crate::collective::others!($name $(<$($n),+>)? ($($arg: $ty),*));
        }
    };
    ($name:ident $(<$($n:ident),+>)? ($($arg:ident: $ty:ty),* $(,)?), now $now:ident) => {
        mod $name {
            use super::*;

            pub(super) unsafe fn blocking $(<$($n: Whole),+>)? (
                call: Call, $($arg: $ty,)* comm: MPI_Comm,
            ) -> Outcome {
                // SAFETY: as the program promises.
                unsafe {
                    if super::$now(call, $($arg,)* comm)? {
                        return Ok(());
                    }
                    $crate::collective::blocking(call, super::$name(call, $($arg,)* comm)?)
                }
            }

            $crate::collective::others!($name $(<$($n),+>)? ($($arg: $ty),*));
        }
    };
}
pub(crate) use three_forms;

/// The non-blocking forms.
macro_rules! others {
    ($name:ident $(<$($n:ident),+>)? ($($arg:ident: $ty:ty),*)) => {
        pub(super) unsafe fn immediate $(<$($n: Whole),+>)? (
            call: Call, $($arg: $ty,)* comm: MPI_Comm, request: *mut MPI_Request,
        ) -> Outcome {
            // SAFETY: as the program promises.
            unsafe {
                let operation = super::$name(call, $($arg,)* comm)?;
                $crate::collective::immediate(call, comm, operation, request)
            }
        }

        pub(super) unsafe fn persistent $(<$($n: Whole),+>)? (
            call: Call, $($arg: $ty,)* comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request,
        ) -> Outcome {
            // SAFETY: as the program promises.
            unsafe {
                let make = |comm| super::$name(call, $($arg,)* comm);
                $crate::collective::persistent(call, comm, info, make, request)
            }
        }
    };
}
pub(crate) use others;

forms! {
    MPI_Barrier, MPI_Ibarrier, MPI_Barrier_init() = barrier;
}
three_forms!(barrier(), now barrier_now);

#[inline(always)]
unsafe fn barrier_now(call: Call, comm: MPI_Comm) -> Outcome<bool> {
    let comm = call.process.comm(comm)?;
    if comm.is_inter() {
        return Ok(false);
    }
    // SAFETY: nothing is read or written.
    let done =
        unsafe { combine_now(call.may_block(), &comm.engine, *call.site, &Combined::barrier())? };
    Ok(done)
}

unsafe fn barrier(call: Call, comm: MPI_Comm) -> Outcome<Operation> {
    let (comm, site) = (call.process.comm(comm)?, *call.site);
    operation(move || {
        let comm = Rc::clone(&comm);
        async move {
            if comm.is_inter() {
                return inter::barrier(&comm, site).await;
            }
            let collective = Collective::begin(&comm.engine, site);
            // SAFETY: nothing is read or written.
            Ok(unsafe { collective.barrier() }.await?)
        }
    })
}

/// Waits for the other ranks of a communicator.
///
/// # Errors
/// The other ranks have begun another operation.
pub(crate) fn barrier_of(call: Call, comm: &Rc<Comm>) -> Outcome {
    let (engine, site) = (comm.engine.clone(), *call.site);
    let inter = Rc::clone(comm);
    let future = async move {
        if inter.is_inter() {
            return inter::barrier(&inter, site).await;
        }
        let collective = Collective::begin(&engine, site);
        // SAFETY: nothing is read or written.
        Ok(unsafe { collective.barrier() }.await?)
    };
    operation::drive(call.may_block(), future)
}

/// The root of an operation, from the point of view of one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Root {
    /// This rank; for an intercommunicator, the root of the other group's operation.
    Here,
    /// A rank of this group, or of the other one.
    There(usize),
    /// For an intercommunicator: another rank of this group.
    Neighbor,
}

/// The root given by a program.
///
/// # Errors
/// The rank does not exist.
#[inline]
fn root_of(comm: &Comm, root: c_int) -> Outcome<Root> {
    let size = comm.engine.partners().len();
    match root {
        MPI_ROOT if comm.is_inter() => Ok(Root::Here),
        MPI_PROC_NULL if comm.is_inter() => Ok(Root::Neighbor),
        _ if root < 0 || numbers::index(root) >= size => {
            refuse!(MPI_ERR_ROOT, "the root is {root}: 0 to {} are allowed", size.saturating_sub(1))
        }
        _ if !comm.is_inter() && root == comm.engine.rank => Ok(Root::Here),
        _ => Ok(Root::There(numbers::index(root))),
    }
}
