//! Requests that the program itself completes (MPI-4.1 section 13.2): its functions.

use std::cell::Cell;
use std::ffi::{c_int, c_void};

use vrt_abi::constants::*;
use vrt_abi::types::*;
use vrt_core::pe;

use super::status::Stat;
use crate::fault::{Outcome, fault};
use crate::numbers;

/// A generalized request: the program's functions, and whether it has completed it.
#[derive(Debug)]
pub(crate) struct Generalized {
    query: MPI_Grequest_query_function,
    free: MPI_Grequest_free_function,
    cancel: MPI_Grequest_cancel_function,
    extra: *mut c_void,
    is_complete: Cell<bool>,
    is_forgotten: Cell<bool>,
}

/// A function of the program has failed.
fn expect(code: c_int, what: &str) -> Outcome {
    match code {
        MPI_SUCCESS => Ok(()),
        _ => Err(fault(code, format!("the program's {what} function returned {code}"))),
    }
}

impl Generalized {
    pub(crate) fn new(
        query: MPI_Grequest_query_function,
        free: MPI_Grequest_free_function,
        cancel: MPI_Grequest_cancel_function,
        extra: *mut c_void,
    ) -> Generalized {
        let (is_complete, is_forgotten) = (Cell::new(false), Cell::new(false));
        Generalized { query, free, cancel, extra, is_complete, is_forgotten }
    }

    /// The program has completed it.
    ///
    /// # Errors
    /// The program's function fails.
    pub(crate) fn complete(&self) -> Outcome {
        self.is_complete.set(true);
        // Who waits for it looks again.
        pe::with(|pe| pe.engine.running().look_again());
        if self.is_forgotten.get() { self.release() } else { Ok(()) }
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.is_complete.get()
    }

    /// The program's status for it.
    ///
    /// # Errors
    /// The program's function fails.
    pub(crate) fn query(&self) -> Outcome<Stat> {
        let mut status = MPI_Status::default();
        if let Some(query) = self.query {
            // SAFETY: the program's own function, with what it has given for it.
            expect(unsafe { query(self.extra, &raw mut status) }, "query")?;
        }
        let [low, high, cancelled, ..] = status.MPI_internal;
        Ok(Stat {
            source: status.MPI_SOURCE,
            tag: status.MPI_TAG,
            bytes: numbers::word([low, high]),
            cancelled: cancelled != 0,
        })
    }

    /// The request was waited for.
    ///
    /// # Errors
    /// A function of the program fails.
    pub(crate) fn finish(&self) -> Outcome<Stat> {
        let stat = self.query();
        self.release()?;
        stat
    }

    fn release(&self) -> Outcome {
        match self.free {
            // SAFETY: the program's own function, with what it has given for it.
            Some(free) => expect(unsafe { free(self.extra) }, "free"),
            None => Ok(()),
        }
    }

    /// Its handle has been freed: it ends when the program completes it, or now.
    pub(crate) fn forget(&self) {
        match self.is_complete() {
            true => drop(self.release()),
            false => self.is_forgotten.set(true),
        }
    }

    /// Asks the program to cancel it.
    ///
    /// # Errors
    /// The program's function fails.
    pub(crate) fn cancel(&self) -> Outcome {
        match self.cancel {
            Some(cancel) => {
                // SAFETY: the program's own function, with what it has given for it.
                let code = unsafe { cancel(self.extra, c_int::from(self.is_complete())) };
                expect(code, "cancel")
            }
            None => Ok(()),
        }
    }
}
