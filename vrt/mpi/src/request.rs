//! Completing, starting and querying requests (MPI-4.1 sections 3.7.3 to 3.7.6, 3.8, 3.9).

use std::ffi::c_int;
use std::rc::Rc;

use vrt_abi::constants::*;
use vrt_abi::types::*;
use vrt_core::operation;

use crate::call::{Call, functions};
use crate::fault::{Fault, Outcome, refuse};
use crate::numbers;
use crate::object::request::{Requests, wait_until};
use crate::object::{Request, Stat};

/// Several requests of the program, by index.
///
/// # Safety
/// There are this many handles.
unsafe fn find_all(
    requests: &Requests,
    count: c_int,
    handles: *const MPI_Request,
) -> Outcome<Vec<Option<Rc<Request>>>> {
    let count = numbers::count(count)?;
    if count > 0 && handles.is_null() {
        refuse!(MPI_ERR_ARG, "the array of {count} requests is missing: the pointer is null");
    }
    // SAFETY: as the caller promises.
    (0..count).map(|i| requests.find(unsafe { *handles.add(i) })).collect()
}

/// Completes a request that was waited for: its handle becomes null, unless it is persistent.
///
/// # Safety
/// The handle belongs to the program, and is that of the request.
unsafe fn complete(call: Call, request: &Request, handle: *mut MPI_Request) -> Outcome<Stat> {
    let outcome = request.wait(call.may_block(), call.site.call);
    if !request.is_persistent() {
        // SAFETY: as the caller promises.
        unsafe {
            call.process.requests.remove(*handle);
            *handle = MPI_REQUEST_NULL;
        }
    }
    outcome
}

functions! {
    MPI_Wait(request: *mut MPI_Request, status: *mut MPI_Status) on Nothing = wait;
    MPI_Test(request: *mut MPI_Request, flag: *mut c_int, status: *mut MPI_Status) on Nothing = test;
    MPI_Waitall(count: c_int, requests: *mut MPI_Request, statuses: *mut MPI_Status)
        on Nothing = wait_all;
    MPI_Testall(
        count: c_int, requests: *mut MPI_Request, flag: *mut c_int, statuses: *mut MPI_Status,
    ) on Nothing = test_all;
    MPI_Waitany(
        count: c_int, requests: *mut MPI_Request, index: *mut c_int, status: *mut MPI_Status,
    ) on Nothing = wait_any;
    MPI_Testany(
        count: c_int, requests: *mut MPI_Request, index: *mut c_int, flag: *mut c_int,
        status: *mut MPI_Status,
    ) on Nothing = test_any;
    MPI_Waitsome(
        count: c_int, requests: *mut MPI_Request, done: *mut c_int, indices: *mut c_int,
        statuses: *mut MPI_Status,
    ) on Nothing = wait_some;
    MPI_Testsome(
        count: c_int, requests: *mut MPI_Request, done: *mut c_int, indices: *mut c_int,
        statuses: *mut MPI_Status,
    ) on Nothing = test_some;
    MPI_Start(request: *mut MPI_Request) on Nothing = start;
    MPI_Startall(count: c_int, requests: *mut MPI_Request) on Nothing = start_all;
    MPI_Cancel(request: *mut MPI_Request) on Nothing = cancel;
    MPI_Request_free(request: *mut MPI_Request) on Nothing = free;
    MPI_Request_get_status(request: MPI_Request, flag: *mut c_int, status: *mut MPI_Status)
        on Nothing = get_status;
    MPI_Request_get_status_all(
        count: c_int, requests: *const MPI_Request, flag: *mut c_int, statuses: *mut MPI_Status,
    ) on Nothing = get_status_all;
    MPI_Request_get_status_any(
        count: c_int, requests: *const MPI_Request, index: *mut c_int, flag: *mut c_int,
        status: *mut MPI_Status,
    ) on Nothing = get_status_any;
    MPI_Request_get_status_some(
        count: c_int, requests: *const MPI_Request, done: *mut c_int, indices: *mut c_int,
        statuses: *mut MPI_Status,
    ) on Nothing = get_status_some;
}

/// An error of a request is raised on the request's own communicator.
#[cold]
fn raised(request: &Request, mut fault: Box<Fault>) -> Outcome {
    fault.on = Some(request.on());
    Err(fault)
}

/// One of several requests has failed: the statuses show which.
#[cold]
fn raised_in_status(request: &Request, mut fault: Box<Fault>) -> Outcome {
    fault.code = MPI_ERR_IN_STATUS;
    raised(request, fault)
}

/// [`complete`], with the status returned to the program.
///
/// # Safety
/// As for [`complete`]; there is room for a status, or it is ignored.
#[inline]
unsafe fn complete_to(
    call: Call,
    request: &Request,
    handle: *mut MPI_Request,
    status: *mut MPI_Status,
) -> Outcome {
    // SAFETY: as the caller promises.
    unsafe {
        match complete(call, request, handle) {
            Ok(stat) => stat.give(status),
            Err(fault) => return raised(request, fault),
        }
    }
    Ok(())
}

/// The request of a handle, which must not be null.
fn find(call: Call, handle: MPI_Request) -> Outcome<Rc<Request>> {
    match call.process.requests.find(handle)? {
        Some(request) => Ok(request),
        None => refuse!(MPI_ERR_REQUEST, "the request is MPI_REQUEST_NULL"),
    }
}

unsafe fn wait(call: Call, handle: *mut MPI_Request, status: *mut MPI_Status) -> Outcome {
    // SAFETY: the program gives its handle, and room for a status.
    unsafe {
        let Some(request) = call.process.requests.find(*handle)? else {
            Stat::give_empty(status);
            return Ok(());
        };
        complete_to(call, &request, handle, status)
    }
}

/// Checks a condition: if it does not hold, once more after other ranks have run, as that could change it.
#[inline]
fn check_twice(call: Call, is_so: impl Fn() -> bool) -> bool {
    is_so() || {
        operation::yield_now(call.may_block());
        is_so()
    }
}

unsafe fn test(
    call: Call,
    handle: *mut MPI_Request,
    flag: *mut c_int,
    status: *mut MPI_Status,
) -> Outcome {
    // SAFETY: the program gives its handle, and room for a flag and a status.
    unsafe {
        let Some(request) = call.process.requests.find(*handle)? else {
            flag.write(1);
            Stat::give_empty(status);
            return Ok(());
        };
        let is_ready = check_twice(call, || request.is_ready());
        flag.write(is_ready.into());
        if is_ready { complete_to(call, &request, handle, status) } else { Ok(()) }
    }
}

/// Statuses of several requests. Their error fields are written only if a request has failed, and then in all of them:
/// they show which one it was (MPI-4.1 section 3.2.5).
struct Given {
    statuses: *mut MPI_Status,
    failed: Option<(Rc<Request>, Box<Fault>)>,
}

impl Given {
    fn to(statuses: *mut MPI_Status) -> Given {
        Given { statuses, failed: None }
    }

    /// # Safety
    /// There are statuses up to this index, or they are ignored; those before it were written.
    unsafe fn give(&mut self, at: usize, request: &Rc<Request>, outcome: Outcome<Stat>) {
        // SAFETY: as the caller promises.
        unsafe {
            match outcome {
                Ok(stat) if self.failed.is_none() => stat.give(status_at(self.statuses, at)),
                Ok(stat) => give_with_error(stat, MPI_SUCCESS, self.statuses, at),
                Err(fault) => {
                    if self.failed.is_none() && !self.statuses.is_null() {
                        (0..at).for_each(|before| {
                            (*self.statuses.add(before)).MPI_ERROR = MPI_SUCCESS
                        });
                    }
                    give_with_error(Stat::EMPTY, fault.code, self.statuses, at);
                    self.failed = Some((Rc::clone(request), fault));
                }
            }
        }
    }

    fn outcome(self) -> Outcome {
        match self.failed {
            None => Ok(()),
            Some((request, fault)) => raised_in_status(&request, fault),
        }
    }
}

/// # Safety
/// There is a status at this index, or statuses are ignored.
unsafe fn status_at(statuses: *mut MPI_Status, at: usize) -> *mut MPI_Status {
    if statuses.is_null() {
        return statuses;
    }
    // SAFETY: as the caller promises.
    unsafe { statuses.add(at) }
}

/// # Safety
/// As for [`status_at`].
unsafe fn give_with_error(stat: Stat, error: c_int, statuses: *mut MPI_Status, at: usize) {
    // SAFETY: as the caller promises.
    unsafe {
        let status = status_at(statuses, at);
        stat.give(status);
        if !status.is_null() {
            (*status).MPI_ERROR = error;
        }
    }
}

unsafe fn wait_all(
    call: Call,
    count: c_int,
    handles: *mut MPI_Request,
    statuses: *mut MPI_Status,
) -> Outcome {
    // SAFETY: the program gives so many handles and statuses.
    unsafe {
        // The common case needs no lists.
        let mut given = Given::to(statuses);
        let count = numbers::count(count)?;
        for at in 0..count {
            let Some(request) = call.process.requests.find(*handles.add(at))? else {
                give_with_error(Stat::EMPTY, MPI_SUCCESS, statuses, at);
                continue;
            };
            given.give(at, &request, complete(call, &request, handles.add(at)));
        }
        given.outcome()
    }
}

unsafe fn test_all(
    call: Call,
    count: c_int,
    handles: *mut MPI_Request,
    flag: *mut c_int,
    statuses: *mut MPI_Status,
) -> Outcome {
    // SAFETY: the program gives so many handles and statuses, and room for a flag.
    unsafe {
        let found = find_all(&call.process.requests, count, handles)?;
        let is_ready = check_twice(call, || found.iter().flatten().all(|it| it.is_ready()));
        flag.write(is_ready.into());
        if is_ready {
            return wait_all(call, count, handles, statuses);
        }
    }
    Ok(())
}

/// The active ones among some requests, by index.
fn active(found: Vec<Option<Rc<Request>>>) -> Vec<(usize, Rc<Request>)> {
    let placed = found.into_iter().enumerate().filter_map(|(at, request)| Some((at, request?)));
    placed.filter(|(_, request)| request.is_active()).collect()
}

fn is_one_ready(active: &[(usize, Rc<Request>)]) -> bool {
    active.iter().any(|(_, request)| request.is_ready())
}

/// Waits until one of some requests is ready.
fn wait_for_one(call: Call, active: &[(usize, Rc<Request>)]) {
    if !is_one_ready(active) {
        let pattern = active.iter().find_map(|(_, request)| request.pattern());
        wait_until(call.may_block(), *call.site, pattern, || is_one_ready(active));
    }
}

unsafe fn wait_any(
    call: Call,
    count: c_int,
    handles: *mut MPI_Request,
    index: *mut c_int,
    status: *mut MPI_Status,
) -> Outcome {
    // SAFETY: the program gives so many handles, and room for an index and a status.
    unsafe {
        let active = active(find_all(&call.process.requests, count, handles)?);
        if active.is_empty() {
            index.write(MPI_UNDEFINED);
            Stat::give_empty(status);
            return Ok(());
        }
        wait_for_one(call, &active);
        any_ready(call, &active, handles, index, status).map(|_| ())
    }
}

/// Completes the first one that is ready, if any.
///
/// # Safety
/// The handles belong to these requests; there is room for an index and a status.
unsafe fn any_ready(
    call: Call,
    active: &[(usize, Rc<Request>)],
    handles: *mut MPI_Request,
    index: *mut c_int,
    status: *mut MPI_Status,
) -> Outcome<bool> {
    let Some((at, request)) = active.iter().find(|(_, request)| request.is_ready()) else {
        return Ok(false);
    };
    // SAFETY: as the caller promises.
    unsafe {
        index.write(numbers::int(*at));
        complete_to(call, request, handles.add(*at), status)?;
    }
    Ok(true)
}

unsafe fn test_any(
    call: Call,
    count: c_int,
    handles: *mut MPI_Request,
    index: *mut c_int,
    flag: *mut c_int,
    status: *mut MPI_Status,
) -> Outcome {
    // SAFETY: the program gives so many handles, and room for the rest.
    unsafe {
        let active = active(find_all(&call.process.requests, count, handles)?);
        index.write(MPI_UNDEFINED);
        if active.is_empty() {
            flag.write(1);
            Stat::give_empty(status);
            return Ok(());
        }
        check_twice(call, || is_one_ready(&active));
        flag.write(1);
        let found = any_ready(call, &active, handles, index, status)?;
        flag.write(found.into());
    }
    Ok(())
}

unsafe fn wait_some(
    call: Call,
    count: c_int,
    handles: *mut MPI_Request,
    done: *mut c_int,
    indices: *mut c_int,
    statuses: *mut MPI_Status,
) -> Outcome {
    // SAFETY: the program gives so many handles, and room for as many indices and statuses.
    unsafe {
        let active = active(find_all(&call.process.requests, count, handles)?);
        if !active.is_empty() {
            wait_for_one(call, &active);
        }
        some_ready(call, active, handles, done, indices, statuses)
    }
}

/// # Safety
/// The handles belong to these requests; there is room for as many indices and statuses.
unsafe fn some_ready(
    call: Call,
    mut active: Vec<(usize, Rc<Request>)>,
    handles: *mut MPI_Request,
    done: *mut c_int,
    indices: *mut c_int,
    statuses: *mut MPI_Status,
) -> Outcome {
    let is_empty = active.is_empty();
    active.retain(|(_, request)| request.is_ready());
    // SAFETY: as the caller promises.
    unsafe {
        done.write(if is_empty { MPI_UNDEFINED } else { numbers::int(active.len()) });
        let mut given = Given::to(statuses);
        for (nth, (at, request)) in active.iter().enumerate() {
            indices.add(nth).write(numbers::int(*at));
            given.give(nth, request, complete(call, request, handles.add(*at)));
        }
        given.outcome()
    }
}

unsafe fn test_some(
    call: Call,
    count: c_int,
    handles: *mut MPI_Request,
    done: *mut c_int,
    indices: *mut c_int,
    statuses: *mut MPI_Status,
) -> Outcome {
    // SAFETY: the program gives so many handles, and room for as many indices and statuses.
    unsafe {
        let active = active(find_all(&call.process.requests, count, handles)?);
        if !active.is_empty() {
            check_twice(call, || is_one_ready(&active));
        }
        some_ready(call, active, handles, done, indices, statuses)
    }
}

unsafe fn start(call: Call, handle: *mut MPI_Request) -> Outcome {
    // SAFETY: the program gives its handle.
    let request = find(call, unsafe { *handle })?;
    request.begin().or_else(|fault| raised(&request, fault))
}

unsafe fn start_all(call: Call, count: c_int, handles: *mut MPI_Request) -> Outcome {
    let count = numbers::count(count)?;
    // SAFETY: the program gives so many handles.
    (0..count).try_for_each(|i| unsafe { start(call, handles.add(i)) })
}

unsafe fn cancel(call: Call, handle: *mut MPI_Request) -> Outcome {
    // SAFETY: the program gives its handle.
    find(call, unsafe { *handle })?.cancel()
}

unsafe fn free(call: Call, handle: *mut MPI_Request) -> Outcome {
    // SAFETY: the program gives its handle.
    unsafe {
        find(call, *handle)?.abandon();
        call.process.requests.all.remove((*handle).0);
        *handle = MPI_REQUEST_NULL;
    }
    Ok(())
}

unsafe fn get_status(
    call: Call,
    handle: MPI_Request,
    flag: *mut c_int,
    status: *mut MPI_Status,
) -> Outcome {
    let request = call.process.requests.find(handle)?;
    let is_ready = check_twice(call, || request.as_ref().is_none_or(|request| request.is_ready()));
    // SAFETY: the program gives room for a flag and a status.
    unsafe {
        flag.write(is_ready.into());
        if is_ready {
            match request {
                Some(request) => request.look().give(status),
                None => Stat::give_empty(status),
            }
        }
    }
    Ok(())
}

unsafe fn get_status_all(
    call: Call,
    count: c_int,
    handles: *const MPI_Request,
    flag: *mut c_int,
    statuses: *mut MPI_Status,
) -> Outcome {
    // SAFETY: the program gives so many handles and statuses, and room for a flag.
    unsafe {
        let found = find_all(&call.process.requests, count, handles)?;
        let is_ready = check_twice(call, || found.iter().flatten().all(|it| it.is_ready()));
        flag.write(is_ready.into());
        for (at, request) in found.iter().enumerate().filter(|_| is_ready) {
            match request {
                Some(request) => request.look().give(status_at(statuses, at)),
                None => Stat::give_empty(status_at(statuses, at)),
            }
        }
    }
    Ok(())
}

unsafe fn get_status_any(
    call: Call,
    count: c_int,
    handles: *const MPI_Request,
    index: *mut c_int,
    flag: *mut c_int,
    status: *mut MPI_Status,
) -> Outcome {
    // SAFETY: the program gives so many handles, and room for the rest.
    unsafe {
        let active = active(find_all(&call.process.requests, count, handles)?);
        index.write(MPI_UNDEFINED);
        if active.is_empty() {
            flag.write(1);
            Stat::give_empty(status);
            return Ok(());
        }
        check_twice(call, || is_one_ready(&active));
        let found = active.iter().find(|(_, request)| request.is_ready());
        flag.write(found.is_some().into());
        if let Some((at, request)) = found {
            index.write(numbers::int(*at));
            request.look().give(status);
        }
    }
    Ok(())
}

unsafe fn get_status_some(
    call: Call,
    count: c_int,
    handles: *const MPI_Request,
    done: *mut c_int,
    indices: *mut c_int,
    statuses: *mut MPI_Status,
) -> Outcome {
    // SAFETY: the program gives so many handles, and room for as many indices and statuses.
    unsafe {
        let active = active(find_all(&call.process.requests, count, handles)?);
        if active.is_empty() {
            done.write(MPI_UNDEFINED);
            return Ok(());
        }
        check_twice(call, || is_one_ready(&active));
        let mut ready = 0;
        for (nth, (at, request)) in active.iter().filter(|(_, it)| it.is_ready()).enumerate() {
            indices.add(nth).write(numbers::int(*at));
            request.look().give(status_at(statuses, nth));
            ready = nth.saturating_add(1);
        }
        done.write(numbers::int(ready));
    }
    Ok(())
}
