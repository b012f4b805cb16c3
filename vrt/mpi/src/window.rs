//! Windows (MPI-4.1 chapter 12): memory of a communicator's ranks that they let each other read and write.
//!
//! The core has the windows, how their parts are accessed, and their epochs (`vrt_core::rma::window`).
//!
//! | file | subject |
//! |---|---|
//! | `make` | creating and freeing windows |
//! | `place` | the elements of an access in a rank's part |
//! | `access` | put, get, accumulate and their variants |
//! | `epoch` | fence, post and start, locks, flush |

mod access;
mod epoch;
mod make;
mod place;

use std::ffi::{c_char, c_int, c_void};

use vrt_abi::constants::*;
use vrt_abi::types::*;

use crate::call::{Call, Export, functions};
use crate::fault::{Outcome, refuse};
use crate::numbers::{self, give};
use crate::text;

/// The functions on windows.
pub(crate) const ALL: [&[Export]; 4] = [EXPORTS, make::EXPORTS, access::EXPORTS, epoch::EXPORTS];

functions! {
    MPI_Win_get_group(win: MPI_Win, group: *mut MPI_Group) on Win(win) = get_group;
    MPI_Win_set_name(win: MPI_Win, name: *const c_char) on Win(win) = set_name;
    MPI_Win_get_name(win: MPI_Win, name: *mut c_char, len: *mut c_int) on Win(win) = get_name;
    MPI_Win_set_info(win: MPI_Win, info: MPI_Info) on Win(win) = set_info;
    MPI_Win_get_info(win: MPI_Win, info: *mut MPI_Info) on Win(win) = get_info;
    MPI_Win_shared_query(
        win: MPI_Win, rank: c_int, size: *mut MPI_Aint, unit: *mut c_int, base: *mut c_void,
    ) on Win(win) = shared_query;
    MPI_Win_shared_query_c(
        win: MPI_Win, rank: c_int, size: *mut MPI_Aint, unit: *mut MPI_Aint, base: *mut c_void,
    ) on Win(win) = shared_query;
}

unsafe fn get_group(call: Call, win: MPI_Win, group: *mut MPI_Group) -> Outcome {
    let members = call.process.window(win)?.core.comm().members.clone();
    // SAFETY: the program gives room for a handle.
    unsafe { give(MPI_Group(call.process.groups.add(members)), group) }
}

unsafe fn set_name(call: Call, win: MPI_Win, name: *const c_char) -> Outcome {
    // SAFETY: the program gives a string.
    *call.process.window(win)?.name.borrow_mut() = unsafe { text::taken(name) };
    Ok(())
}

unsafe fn get_name(call: Call, win: MPI_Win, name: *mut c_char, len: *mut c_int) -> Outcome {
    let found = match win {
        MPI_WIN_NULL => "MPI_WIN_NULL".to_owned(),
        _ => call.process.window(win)?.name.borrow().clone(),
    };
    // SAFETY: the program gives room for `MPI_MAX_OBJECT_NAME` characters.
    unsafe { text::give(&found, name, MPI_MAX_OBJECT_NAME as usize, len) };
    Ok(())
}

fn set_info(call: Call, win: MPI_Win, info: MPI_Info) -> Outcome {
    let win = call.process.window(win)?;
    win.info.borrow_mut().add_all(&call.process.info_or_empty(info)?);
    Ok(())
}

unsafe fn get_info(call: Call, win: MPI_Win, info: *mut MPI_Info) -> Outcome {
    let found = call.process.window(win)?.info.borrow().clone();
    // SAFETY: the program gives room for a handle.
    unsafe { give(MPI_Info(call.process.infos.add(found)), info) }
}

/// The address of a rank's part in this rank's memory. It is valid as long as both are on this
/// node.
unsafe fn shared_query<A: numbers::Whole>(
    call: Call,
    win: MPI_Win,
    rank: c_int,
    size: *mut MPI_Aint,
    unit: *mut A,
    base: *mut c_void,
) -> Outcome {
    let win = call.process.window(win)?;
    let is_shared = match win.part.flavor {
        MPI_WIN_FLAVOR_SHARED => true,
        MPI_WIN_FLAVOR_DYNAMIC => false,
        _ => win.core.is_on_one_node(),
    };
    if !is_shared {
        refuse!(MPI_ERR_RMA_FLAVOR, "the window is not one of shared memory");
    }
    let targets = win.core.targets();
    // Of nobody: the first part that has something in it.
    let rank = match rank {
        MPI_PROC_NULL => targets.iter().position(|target| target.len > 0).unwrap_or_default(),
        _ => win.core.target(rank).map(|_| numbers::index(rank))?,
    };
    let target = &targets[rank];
    // SAFETY: the program gives room for two numbers and a pointer.
    unsafe {
        size.write(target.len as MPI_Aint);
        numbers::give_fitting(win.units[rank] as i64, unit);
        base.cast::<usize>().write(target.address.address());
    }
    Ok(())
}
