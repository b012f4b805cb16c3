//! The three forms of collective operations: blocking, immediate, persistent.

use vrt_abi::types::*;
use vrt_core::comm::algorithms::Combined;
use vrt_core::comm::now::combine_now;
use vrt_core::operation;

use crate::call::Call;
use crate::fault::Outcome;
use crate::object::request::{Buffers, Future_, State};
use crate::object::{Comm, Request, Stat};

/// Makes the future of an operation; its arguments are checked.
pub(super) type Operation = Box<dyn Fn() -> Future_>;

/// An operation whose future returns nothing.
pub(super) fn operation<F: Future<Output = Outcome> + 'static>(
    make: impl Fn() -> F + 'static,
) -> Outcome<Operation> {
    Ok(Box::new(move || {
        let future = make();
        Box::pin(async move { future.await.map(|()| Stat::EMPTY) })
    }))
}

/// Executes a small operation on elements without gaps.
///
/// # Safety
/// The buffers are valid during the call.
#[inline(always)]
pub(super) unsafe fn combined(call: Call, comm: &Comm, combined: &Combined) -> Outcome<bool> {
    // SAFETY: as the caller promises.
    Ok(unsafe { combine_now(call.may_block(), &comm.engine, call.site, combined)? })
}

/// The blocking form.
pub(super) fn blocking(call: Call, operation: Operation) -> Outcome {
    operation::drive(call.may_block(), operation()).map(|_| ())
}

/// The immediate form.
///
/// # Safety
/// There is room for a handle; the buffers of the operation are valid until it is done.
pub(super) unsafe fn immediate(
    call: Call,
    on: MPI_Comm,
    operation: Operation,
    request: *mut MPI_Request,
) -> Outcome {
    // SAFETY: the program gives room for a handle.
    unsafe { Request::task(call.site, on, operation()).give(&call.process.requests, request) };
    Ok(())
}

/// The communicator of a persistent operation: persistent operations are matched in the order in which they are made,
/// and may be started in any order (MPI-4.1 section 6.13), so each has its own communicator.
fn own_comm(call: Call, comm: MPI_Comm) -> Outcome<MPI_Comm> {
    let whole = call.process.comm(comm)?;
    let engine = operation::drive(call.may_block(), whole.duplicate(*call.site))?;
    Ok(MPI_Comm(call.process.comms.add(Comm::new(engine))))
}

/// The persistent form; `make` creates the operation on a communicator.
///
/// # Safety
/// There is room for a handle; the buffers of the operation are valid whenever it is active.
pub(super) unsafe fn persistent(
    call: Call,
    on: MPI_Comm,
    info: MPI_Info,
    make: impl FnOnce(MPI_Comm) -> Outcome<Operation>,
    request: *mut MPI_Request,
) -> Outcome {
    call.process.info_or_empty(info)?;
    let own = own_comm(call, on)?;
    // The operation keeps what it needs of it.
    let operation = make(own);
    call.process.comms.remove(own.0);
    let operation = operation?;
    let start = Box::new(move || Ok((State::task(operation()), Buffers::default())));
    // SAFETY: the program gives room for a handle.
    unsafe { Request::persistent(call.site, on, start).give(&call.process.requests, request) };
    Ok(())
}

/// Declares the three forms of operations, each made by the function that is named; `now` names one that executes a small
/// operation without a future: it returns whether it did.
macro_rules! forms {
    ($(
        $blocking:ident $(/ $blocking_large:ident)?, $immediate:ident $(/ $immediate_large:ident)?,
        $persistent:ident $(/ $persistent_large:ident)?
            ($($arg:ident: $ty:ty),* $(,)?) = $make:ident $(<$($n:ident),+>)? $(now $now:ident)?;
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

        $(
            /// The forms, as functions that take C arguments.
            mod $make {
                use super::*;

                $crate::collective::form::three_forms!(
                    $make $(<$($n),+>)? ($($arg: $ty),*) $(now $now)?
                );
            }
        )*
    };
}
pub(super) use forms;

/// The three forms of an operation.
macro_rules! three_forms {
    ($name:ident $(<$($n:ident),+>)? ($($arg:ident: $ty:ty),*) $(now $now:ident)?) => {
        pub(super) unsafe fn blocking $(<$($n: Whole),+>)? (
            call: Call, $($arg: $ty,)* comm: MPI_Comm,
        ) -> Outcome {
            // SAFETY: as the program promises.
            unsafe {
                $crate::collective::form::now!($($now)? (call, $($arg,)* comm));
                $crate::collective::form::blocking(call, super::$name(call, $($arg,)* comm)?)
            }
        }

        pub(super) unsafe fn immediate $(<$($n: Whole),+>)? (
            call: Call, $($arg: $ty,)* comm: MPI_Comm, request: *mut MPI_Request,
        ) -> Outcome {
            // SAFETY: as the program promises.
            unsafe {
                let operation = super::$name(call, $($arg,)* comm)?;
                $crate::collective::form::immediate(call, comm, operation, request)
            }
        }

        pub(super) unsafe fn persistent $(<$($n: Whole),+>)? (
            call: Call, $($arg: $ty,)* comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request,
        ) -> Outcome {
            // SAFETY: as the program promises.
            unsafe {
                let make = |comm| super::$name(call, $($arg,)* comm);
                $crate::collective::form::persistent(call, comm, info, make, request)
            }
        }
    };
}
pub(super) use three_forms;

/// Returns if a small operation has been executed.
macro_rules! now {
    ($arguments:tt) => {};
    ($now:ident $arguments:tt) => {
        if super::$now $arguments? {
            return Ok(());
        }
    };
}
pub(super) use now;
