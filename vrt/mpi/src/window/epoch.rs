//! When accesses are allowed, and what is visible after them (MPI-4.1 section 12.5): the core's epochs.

use std::ffi::c_int;

use vrt_abi::constants::*;
use vrt_abi::types::*;
use vrt_core::operation::drive;
use vrt_core::rma::control::LockKind;

use crate::call::{Call, functions};
use crate::fault::{Outcome, refuse};
use crate::numbers::give;

functions! {
    MPI_Win_fence(assert: c_int, win: MPI_Win) on Win(win) = fence;
    MPI_Win_post(group: MPI_Group, assert: c_int, win: MPI_Win) on Win(win) = post;
    MPI_Win_start(group: MPI_Group, assert: c_int, win: MPI_Win) on Win(win) = start;
    MPI_Win_complete(win: MPI_Win) on Win(win) = complete;
    MPI_Win_wait(win: MPI_Win) on Win(win) = wait;
    MPI_Win_test(win: MPI_Win, flag: *mut c_int) on Win(win) = test;
    MPI_Win_lock(kind: c_int, rank: c_int, assert: c_int, win: MPI_Win) on Win(win) = lock;
    MPI_Win_unlock(rank: c_int, win: MPI_Win) on Win(win) = unlock;
    MPI_Win_lock_all(assert: c_int, win: MPI_Win) on Win(win) = lock_all;
    MPI_Win_unlock_all(win: MPI_Win) on Win(win) = unlock_all;
    MPI_Win_flush(rank: c_int, win: MPI_Win) on Win(win) = flush;
    MPI_Win_flush_local(rank: c_int, win: MPI_Win) on Win(win) = flush;
    MPI_Win_flush_all(win: MPI_Win) on Win(win) = flush_all;
    MPI_Win_flush_local_all(win: MPI_Win) on Win(win) = flush_all;
    MPI_Win_sync(win: MPI_Win) on Win(win) = sync;
}

fn fence(call: Call, assert: c_int, win: MPI_Win) -> Outcome {
    let win = call.process.window(win)?;
    let succeeded = assert & MPI_MODE_NOSUCCEED == 0;
    Ok(drive(call.may_block(), win.core.fence(succeeded, *call.site))?)
}

fn post(call: Call, group: MPI_Group, _: c_int, win: MPI_Win) -> Outcome {
    let (win, group) = (call.process.window(win)?, call.process.group(group)?);
    Ok(drive(call.may_block(), win.core.post(&group, *call.site))?)
}

fn start(call: Call, group: MPI_Group, _: c_int, win: MPI_Win) -> Outcome {
    let (win, group) = (call.process.window(win)?, call.process.group(group)?);
    Ok(drive(call.may_block(), win.core.start(&group, *call.site))?)
}

fn complete(call: Call, win: MPI_Win) -> Outcome {
    let win = call.process.window(win)?;
    Ok(drive(call.may_block(), win.core.complete(*call.site))?)
}

fn wait(call: Call, win: MPI_Win) -> Outcome {
    let win = call.process.window(win)?;
    Ok(drive(call.may_block(), win.core.wait(*call.site))?)
}

unsafe fn test(call: Call, win: MPI_Win, flag: *mut c_int) -> Outcome {
    let win = call.process.window(win)?;
    let all = drive(call.may_block(), win.core.test(*call.site))?;
    // SAFETY: the program gives room for a flag.
    unsafe { give(all.into(), flag) }
}

fn lock(call: Call, kind: c_int, rank: c_int, _: c_int, win: MPI_Win) -> Outcome {
    let win = call.process.window(win)?;
    let kind = match kind {
        MPI_LOCK_EXCLUSIVE => LockKind::Exclusive,
        MPI_LOCK_SHARED => LockKind::Shared,
        _ => refuse!(
            MPI_ERR_LOCKTYPE,
            "{kind} is no kind of lock: MPI_LOCK_EXCLUSIVE and MPI_LOCK_SHARED are"
        ),
    };
    match rank {
        MPI_PROC_NULL => Ok(()),
        _ => Ok(drive(call.may_block(), win.core.lock(kind, rank, *call.site))?),
    }
}

fn unlock(call: Call, rank: c_int, win: MPI_Win) -> Outcome {
    let win = call.process.window(win)?;
    match rank {
        MPI_PROC_NULL => Ok(()),
        _ => Ok(drive(call.may_block(), win.core.unlock(rank, *call.site))?),
    }
}

fn lock_all(call: Call, _: c_int, win: MPI_Win) -> Outcome {
    let win = call.process.window(win)?;
    Ok(drive(call.may_block(), win.core.lock_all(*call.site))?)
}

fn unlock_all(call: Call, win: MPI_Win) -> Outcome {
    let win = call.process.window(win)?;
    Ok(drive(call.may_block(), win.core.unlock_all(*call.site))?)
}

/// All accesses of this rank are complete, at the origin and at the target.
fn flush(call: Call, rank: c_int, win: MPI_Win) -> Outcome {
    let win = call.process.window(win)?;
    match rank {
        MPI_PROC_NULL => Ok(win.core.flush_all()?),
        _ => Ok(win.core.flush(rank)?),
    }
}

fn flush_all(call: Call, win: MPI_Win) -> Outcome {
    Ok(call.process.window(win)?.core.flush_all()?)
}

fn sync(call: Call, win: MPI_Win) -> Outcome {
    call.process.window(win)?.core.sync();
    Ok(())
}
