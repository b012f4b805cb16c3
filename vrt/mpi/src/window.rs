//! Windows (MPI-4.1 chapter 12): memory of a communicator's ranks that they let each other read and write.
//!
//! The core has the windows, how their parts are accessed, and their epochs (`vrt_core::rma::window`). Here are units of
//! displacement, datatypes, attributes, and the memory that MPI allocates.
//!
//! | file | subject |
//! |---|---|
//! | `make` | creating and freeing windows |
//! | `access` | put, get, accumulate and their variants |
//! | `epoch` | fence, post and start, locks, flush |

mod access;
mod epoch;
mod make;

use std::cell::RefCell;
use std::ffi::{c_char, c_int, c_void};
use std::rc::Rc;

use vrt_abi::constants::*;
use vrt_abi::types::*;
use vrt_core::rma::window;

use crate::attribute::Attributes;
use crate::call::{Call, Export, functions};
use crate::errhandler::Handler;
use crate::fault::{Outcome, refuse};
use crate::info::Info;
use crate::numbers;
use crate::text;

/// The functions on windows.
pub(crate) const ALL: [&[Export]; 4] = [EXPORTS, make::EXPORTS, access::EXPORTS, epoch::EXPORTS];

/// A window.
#[derive(Debug)]
pub(crate) struct Window {
    /// The parts are measured in bytes.
    core: window::Window,
    /// By rank: bytes per unit of displacement.
    units: Vec<usize>,
    /// Memory allocated for the window, freed with it.
    owned: *mut c_void,
    /// The rank's own part, in the form in which the program queries it.
    part: Box<Part>,
    pub(crate) errhandler: RefCell<Handler>,
    pub(crate) attributes: Attributes,
    name: RefCell<String>,
    info: RefCell<Info>,
}

/// The targets of predefined attributes' pointers.
#[derive(Debug)]
struct Part {
    base: *mut c_void,
    size: MPI_Aint,
    unit: c_int,
    flavor: c_int,
    model: c_int,
}

impl Window {
    /// The value of a predefined attribute: an address, or the address of a number.
    pub(crate) fn predefined(&self, key: c_int) -> Option<*mut c_void> {
        Some(match key {
            MPI_WIN_BASE => self.part.base,
            MPI_WIN_SIZE => (&raw const self.part.size).cast_mut().cast(),
            MPI_WIN_DISP_UNIT => (&raw const self.part.unit).cast_mut().cast(),
            MPI_WIN_CREATE_FLAVOR => (&raw const self.part.flavor).cast_mut().cast(),
            MPI_WIN_MODEL => (&raw const self.part.model).cast_mut().cast(),
            _ => return None,
        })
    }
}

/// The window of a handle.
///
/// # Errors
/// The handle is invalid.
pub(crate) fn find(call: Call, handle: MPI_Win) -> Outcome<Rc<Window>> {
    match call.process.windows.get(handle.0) {
        Some(window) => Ok(window),
        None if handle == MPI_WIN_NULL => refuse!(MPI_ERR_WIN, "the window is MPI_WIN_NULL"),
        None => refuse!(MPI_ERR_WIN, "{:#x} is no window, or one that was freed", handle.0),
    }
}

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
    let members = find(call, win)?.core.comm().members.clone();
    // SAFETY: the program gives room for a handle.
    unsafe { group.write(MPI_Group(call.process.groups.add(members))) };
    Ok(())
}

unsafe fn set_name(call: Call, win: MPI_Win, name: *const c_char) -> Outcome {
    // SAFETY: the program gives a string.
    *find(call, win)?.name.borrow_mut() = unsafe { text::taken(name) };
    Ok(())
}

unsafe fn get_name(call: Call, win: MPI_Win, name: *mut c_char, len: *mut c_int) -> Outcome {
    let found = match win {
        MPI_WIN_NULL => "MPI_WIN_NULL".to_owned(),
        _ => find(call, win)?.name.borrow().clone(),
    };
    // SAFETY: the program gives room for `MPI_MAX_OBJECT_NAME` characters.
    unsafe { text::give(&found, name, MPI_MAX_OBJECT_NAME as usize, len) };
    Ok(())
}

fn set_info(call: Call, win: MPI_Win, info: MPI_Info) -> Outcome {
    let win = find(call, win)?;
    win.info.borrow_mut().add_all(&Info::or_empty(call.process, info)?);
    Ok(())
}

unsafe fn get_info(call: Call, win: MPI_Win, info: *mut MPI_Info) -> Outcome {
    let found = find(call, win)?.info.borrow().clone();
    // SAFETY: the program gives room for a handle.
    unsafe { info.write(MPI_Info(call.process.infos.add(found))) };
    Ok(())
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
    let win = find(call, win)?;
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
        numbers::give(win.units[rank] as i64, unit);
        base.cast::<usize>().write(target.address.address());
    }
    Ok(())
}
