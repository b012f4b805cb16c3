//! When accesses are allowed, and what is visible after them (MPI-4.1 section 12.5).
//!
//! Accesses are complete when they return, so an epoch only has to order them: by a barrier, by messages, or by a lock
//! in the heap of the part's owner. The core (`vrt_core::rma::epoch`) defines which calls are allowed in which epoch.

use std::ffi::c_int;
use std::rc::Rc;
use std::sync::atomic::{Ordering, fence as memory_fence};
use std::time::Duration;

use vrt_abi::constants::*;
use vrt_abi::types::*;
use vrt_core::comm::algorithms::Collective;
use vrt_core::mailbox::Pattern;
use vrt_core::operation::{self, Sleep, yield_now_async};
use vrt_core::pe::{self, Mode, Outbound, Room};
use vrt_core::rma::control::LockKind;
use vrt_core::rma::epoch::{Epoch, EpochCall, WrongEpoch};
use vrt_core::rma::remote;

use super::{Window, find};
use crate::buffer::UNTYPED;
use crate::call::{Call, functions};
use crate::fault::{Fault, Outcome, fault, refuse};
use crate::numbers;

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

impl From<WrongEpoch> for Box<Fault> {
    fn from(error: WrongEpoch) -> Box<Fault> {
        fault(MPI_ERR_RMA_SYNC, error.to_string())
    }
}

/// Waits for all ranks of a window.
pub(super) fn barrier_of(call: Call, win: &Rc<Window>) -> Outcome {
    memory_fence(Ordering::SeqCst);
    let (engine, site) = (win.comm.clone(), *call.site);
    let future = async move {
        let collective = Collective::begin(&engine, site);
        // SAFETY: nothing is read or written.
        unsafe { collective.barrier() }.await
    };
    operation::drive(call.may_block(), future)?;
    memory_fence(Ordering::SeqCst);
    Ok(())
}

impl Window {
    /// Refuses an access that the current epoch does not allow.
    pub(super) fn expect_access(&self, rank: c_int) -> Outcome {
        let allowed = self.epoch.get().lets_access(|| self.accessed.borrow().contains(&rank));
        if !allowed {
            refuse!(
                MPI_ERR_RMA_SYNC,
                "the memory of rank {rank} is accessed outside of an epoch for it \
                 (MPI_Win_fence, MPI_Win_start, MPI_Win_lock)"
            );
        }
        Ok(())
    }

    fn expect_epoch(&self, step: EpochCall) -> Outcome {
        Ok(self.epoch.get().expect(step)?)
    }

    /// The ranks of a group, in this window's communicator.
    fn ranks_of(&self, call: Call, group: MPI_Group) -> Outcome<Vec<c_int>> {
        let group = call.process.group(group)?;
        let place = |member: u32| match self.comm.members.position(member) {
            Some(rank) => Ok(numbers::int(rank)),
            None => refuse!(MPI_ERR_GROUP, "rank {member} of the job has no part in the window"),
        };
        group.iter().map(place).collect()
    }

    /// Sends messages without data to ranks of the window.
    fn tell(&self, call: Call, ranks: &[c_int], tag: c_int) -> Outcome {
        for rank in ranks {
            let message = Outbound {
                context: self.comm.context,
                to: self.comm.job_rank(*rank)?,
                source: self.comm.rank,
                tag,
                data: std::ptr::null(),
                len: 0,
                mode: Mode::Standard,
                signature: UNTYPED,
            };
            // SAFETY: there is no data.
            let send = unsafe { operation::send(message, *call.site) };
            operation::drive(call.may_block(), send)?;
        }
        Ok(())
    }

    /// Waits for such messages.
    fn hear(&self, call: Call, ranks: &[c_int], tag: c_int) -> Outcome {
        for rank in ranks {
            let pattern = Pattern { context: self.comm.context, source: *rank, tag };
            let room = Room::untyped(std::ptr::null_mut(), 0);
            // SAFETY: there is no data.
            let receive = unsafe { operation::receive(pattern, room, *call.site) };
            operation::drive(call.may_block(), receive)?;
        }
        Ok(())
    }

    async fn acquire(&self, kind: LockKind, rank: usize, call: Call) -> Outcome {
        let target = &self.targets[rank];
        for tries in 0u32.. {
            let here = self.in_reach(rank).map(|_leased| target.control().try_lock(kind));
            let locked = match here {
                Some(locked) => locked,
                None => {
                    let rank = self.comm.members.get(rank);
                    remote::try_lock(rank, self.comm.context, kind, *call.site).await?
                }
            };
            if locked {
                break;
            }
            match tries {
                0..100 => yield_now_async().await,
                _ => Sleep::new(Duration::from_micros(20), *call.site).await?,
            }
        }
        memory_fence(Ordering::SeqCst);
        Ok(())
    }

    fn release(&self, rank: usize, call: Call) -> Outcome {
        memory_fence(Ordering::SeqCst);
        let target = &self.targets[rank];
        let here = self.in_reach(rank).map(|_leased| target.control().unlock());
        if here.is_none() {
            let rank = self.comm.members.get(rank);
            let unlock = remote::unlock(rank, self.comm.context, *call.site);
            operation::drive(call.may_block(), unlock)?;
        }
        Ok(())
    }
}

/// The messages of an epoch.
const POSTED: c_int = 1;
const COMPLETED: c_int = 2;

fn fence(call: Call, assert: c_int, win: MPI_Win) -> Outcome {
    let win = find(call, win)?;
    win.expect_epoch(EpochCall::Fence)?;
    barrier_of(call, &win)?;
    let ends = assert & MPI_MODE_NOSUCCEED != 0;
    win.epoch.set(if ends { Epoch::None } else { Epoch::Fence });
    Ok(())
}

fn post(call: Call, group: MPI_Group, _: c_int, win: MPI_Win) -> Outcome {
    let win = find(call, win)?;
    let ranks = win.ranks_of(call, group)?;
    if !win.exposed_to.borrow().is_empty() {
        refuse!(MPI_ERR_RMA_SYNC, "ranks {:?} may access already", win.exposed_to.borrow());
    }
    win.exposed_to.borrow_mut().clone_from(&ranks);
    memory_fence(Ordering::SeqCst);
    win.tell(call, &ranks, POSTED)
}

fn start(call: Call, group: MPI_Group, _: c_int, win: MPI_Win) -> Outcome {
    let win = find(call, win)?;
    win.expect_epoch(EpochCall::Start)?;
    let ranks = win.ranks_of(call, group)?;
    win.hear(call, &ranks, POSTED)?;
    memory_fence(Ordering::SeqCst);
    *win.accessed.borrow_mut() = ranks;
    win.epoch.set(Epoch::Started);
    Ok(())
}

fn complete(call: Call, win: MPI_Win) -> Outcome {
    let win = find(call, win)?;
    win.expect_epoch(EpochCall::Complete)?;
    win.epoch.set(Epoch::None);
    let ranks = win.accessed.take();
    memory_fence(Ordering::SeqCst);
    win.tell(call, &ranks, COMPLETED)
}

fn wait(call: Call, win: MPI_Win) -> Outcome {
    let win = find(call, win)?;
    let ranks = win.exposed_to.take();
    win.hear(call, &ranks, COMPLETED)?;
    memory_fence(Ordering::SeqCst);
    Ok(())
}

unsafe fn test(call: Call, handle: MPI_Win, flag: *mut c_int) -> Outcome {
    let win = find(call, handle)?;
    let ranks = win.exposed_to.borrow().clone();
    let context = win.comm.context;
    let completed = |rank: &c_int| {
        let pattern = Pattern { context, source: *rank, tag: COMPLETED };
        pe::with(|pe| pe.engine.probe(pattern)).is_some()
    };
    let all = ranks.iter().all(completed);
    match all {
        true => wait(call, handle)?,
        false => operation::yield_now(call.may_block()),
    }
    // SAFETY: the program gives room for a flag.
    unsafe { flag.write(all.into()) };
    Ok(())
}

fn lock(call: Call, kind: c_int, rank: c_int, _: c_int, win: MPI_Win) -> Outcome {
    let win = find(call, win)?;
    let kind = match kind {
        MPI_LOCK_EXCLUSIVE => LockKind::Exclusive,
        MPI_LOCK_SHARED => LockKind::Shared,
        _ => refuse!(
            MPI_ERR_LOCKTYPE,
            "{kind} is no kind of lock: MPI_LOCK_EXCLUSIVE and MPI_LOCK_SHARED are"
        ),
    };
    if rank == MPI_PROC_NULL {
        return Ok(());
    }
    win.expect_epoch(EpochCall::Lock)?;
    let at = win.rank(rank)?;
    let is_locked = win.epoch.get() == Epoch::Locked && win.accessed.borrow().contains(&rank);
    if is_locked {
        refuse!(MPI_ERR_RMA_SYNC, "rank {rank} is locked already");
    }
    operation::drive(call.may_block(), win.acquire(kind, at, call))?;
    win.accessed.borrow_mut().push(rank);
    win.epoch.set(Epoch::Locked);
    Ok(())
}

fn unlock(call: Call, rank: c_int, win: MPI_Win) -> Outcome {
    let win = find(call, win)?;
    if rank == MPI_PROC_NULL {
        return Ok(());
    }
    let at = win.rank(rank)?;
    let place = win.accessed.borrow().iter().position(|locked| *locked == rank);
    match (win.epoch.get(), place) {
        (Epoch::Locked, Some(place)) => {
            win.accessed.borrow_mut().swap_remove(place);
        }
        _ => refuse!(MPI_ERR_RMA_SYNC, "rank {rank} is not locked"),
    }
    if win.accessed.borrow().is_empty() {
        win.epoch.set(Epoch::None);
    }
    win.release(at, call)?;
    win.turns.count();
    Ok(())
}

fn lock_all(call: Call, _: c_int, win: MPI_Win) -> Outcome {
    let win = find(call, win)?;
    win.expect_epoch(EpochCall::LockAll)?;
    let acquire = async {
        for rank in 0..win.targets.len() {
            win.acquire(LockKind::Shared, rank, call).await?;
        }
        Ok(())
    };
    let acquired: Outcome = operation::drive(call.may_block(), acquire);
    acquired?;
    win.epoch.set(Epoch::LockedAll);
    Ok(())
}

fn unlock_all(call: Call, win: MPI_Win) -> Outcome {
    let win = find(call, win)?;
    win.expect_epoch(EpochCall::UnlockAll)?;
    win.epoch.set(Epoch::None);
    (0..win.targets.len()).try_for_each(|rank| win.release(rank, call))?;
    win.turns.count();
    Ok(())
}

/// All accesses of this rank are complete, at the origin and at the target.
fn flush(call: Call, rank: c_int, win: MPI_Win) -> Outcome {
    let win = find(call, win)?;
    if rank != MPI_PROC_NULL {
        win.rank(rank)?;
        win.expect_epoch(EpochCall::Flush)?;
        win.expect_access(rank)?;
    }
    flushed(&win)
}

fn flush_all(call: Call, win: MPI_Win) -> Outcome {
    flushed(&*find(call, win)?)
}

fn flushed(win: &Window) -> Outcome {
    win.expect_epoch(EpochCall::Flush)?;
    memory_fence(Ordering::SeqCst);
    win.turns.count();
    Ok(())
}

fn sync(call: Call, win: MPI_Win) -> Outcome {
    let win = find(call, win)?;
    memory_fence(Ordering::SeqCst);
    win.turns.count();
    // What the others have written meanwhile is seen as well.
    memory_fence(Ordering::SeqCst);
    Ok(())
}
