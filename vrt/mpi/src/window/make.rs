//! Creating and freeing windows (MPI-4.1 section 12.2).

#![cfg_attr(
    not(test),
    expect(
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "lengths travel as halves; ranks are below the size of the communicator"
    )
)]

use std::cell::RefCell;
use std::ffi::{c_int, c_void};
use std::rc::Rc;

use vrt_abi::constants::*;
use vrt_abi::types::*;
use vrt_core::comm::create;
use vrt_core::operation;
use vrt_core::rma::access::Elsewhere;
use vrt_core::rma::window;
use vrt_slot::Arena;

use crate::call::{Call, functions};
use crate::fault::{Outcome, refuse};
use crate::numbers::{Whole, give};
use crate::object::{Attributes, Comm, Handler, OwnPart, Window};

functions! {
    MPI_Win_create / MPI_Win_create_c(
        base: *mut c_void, size: MPI_Aint, unit: D, info: MPI_Info, comm: MPI_Comm,
        win: *mut MPI_Win,
    ) on Comm(comm) = create;
    MPI_Win_allocate / MPI_Win_allocate_c(
        size: MPI_Aint, unit: D, info: MPI_Info, comm: MPI_Comm, base: *mut c_void,
        win: *mut MPI_Win,
    ) on Comm(comm) = allocate;
    MPI_Win_allocate_shared / MPI_Win_allocate_shared_c(
        size: MPI_Aint, unit: D, info: MPI_Info, comm: MPI_Comm, base: *mut c_void,
        win: *mut MPI_Win,
    ) on Comm(comm) = allocate_shared;
    MPI_Win_create_dynamic(info: MPI_Info, comm: MPI_Comm, win: *mut MPI_Win)
        on Comm(comm) = create_dynamic;
    MPI_Win_attach(win: MPI_Win, base: *mut c_void, size: MPI_Aint) on Win(win) = attach;
    MPI_Win_detach(win: MPI_Win, base: *const c_void) on Win(win) = detach;
    MPI_Win_free(win: *mut MPI_Win) on Nothing = free;
}

/// A rank's contribution to a window.
struct Own {
    base: *mut c_void,
    size: usize,
    unit: i64,
    flavor: c_int,
    /// Memory to be freed with the window.
    owned: *mut c_void,
}

fn size_of(size: MPI_Aint) -> Outcome<usize> {
    match usize::try_from(size) {
        Ok(size) => Ok(size),
        Err(_) => refuse!(MPI_ERR_SIZE, "the size of a window is {size}: negative"),
    }
}

/// Makes a window from each rank's contribution, and returns a handle of it to the program.
///
/// # Safety
/// There is room for a handle.
unsafe fn make(call: Call, comm: &Comm, info: MPI_Info, own: &Own, win: *mut MPI_Win) -> Outcome {
    comm.expect_intra()?;
    let info = call.process.info_or_empty(info)?;
    if own.unit <= 0 {
        refuse!(MPI_ERR_DISP, "the unit of displacements is {}: 1 and more are allowed", own.unit);
    }
    let is_dynamic = own.flavor == MPI_WIN_FLAVOR_DYNAMIC;
    let at = own.base as usize;
    if own.size > 0 && !is_dynamic && !Arena::contains(at) {
        refuse!(
            MPI_ERR_BASE,
            "the memory at {at:#x} is not the rank's own, so other ranks cannot reach it: \
             MPI_Win_allocate and malloc give such as is"
        );
    }
    // Of a dynamic window every address is a place.
    let len = if is_dynamic { usize::MAX } else { own.size };
    let part = window::Contribution { address: at, bytes: len, about: own.unit as u64 };
    let made = window::Window::make(&comm.engine, part, *call.site);
    let (core, units) = operation::drive(call.may_block(), made)?;
    let window = Window {
        core,
        units: units.into_iter().map(|unit| unit as usize).collect(),
        owned: own.owned,
        part: Box::new(OwnPart {
            base: own.base,
            size: own.size as MPI_Aint,
            unit: c_int::try_from(own.unit).unwrap_or(MPI_UNDEFINED),
            flavor: own.flavor,
            model: MPI_WIN_UNIFIED,
        }),
        errhandler: RefCell::new(Handler::FATAL),
        attributes: Attributes::default(),
        name: RefCell::default(),
        info: RefCell::new(info),
    };
    // SAFETY: the program gives room for a handle.
    unsafe { give(MPI_Win(call.process.windows.add(window)), win) }
}

unsafe fn create<D: Whole>(
    call: Call,
    base: *mut c_void,
    size: MPI_Aint,
    unit: D,
    info: MPI_Info,
    comm: MPI_Comm,
    win: *mut MPI_Win,
) -> Outcome {
    let (comm, size) = (call.process.comm(comm)?, size_of(size)?);
    let (flavor, owned) = (MPI_WIN_FLAVOR_CREATE, std::ptr::null_mut());
    let own = Own { base, size, unit: unit.wide(), flavor, owned };
    // SAFETY: as the program promises.
    unsafe { make(call, &comm, info, &own, win) }
}

/// Zeroed memory from the rank's heap.
fn memory(size: usize) -> Outcome<*mut c_void> {
    // SAFETY: a plain allocation.
    let block = unsafe { libc::calloc(size.max(1).div_ceil(64), 64) };
    if block.is_null() {
        refuse!(MPI_ERR_NO_MEM, "there are no {size} bytes left for this rank");
    }
    Ok(block)
}

unsafe fn allocate<D: Whole>(
    call: Call,
    size: MPI_Aint,
    unit: D,
    info: MPI_Info,
    comm: MPI_Comm,
    base: *mut c_void,
    win: *mut MPI_Win,
) -> Outcome {
    let (comm, size) = (call.process.comm(comm)?, size_of(size)?);
    // SAFETY: as the program promises, which gives room for a pointer, too.
    unsafe {
        let block = memory(size)?;
        let (flavor, owned) = (MPI_WIN_FLAVOR_ALLOCATE, block);
        let own = Own { base: block, size, unit: unit.wide(), flavor, owned };
        make(call, &comm, info, &own, win)?;
        base.cast::<*mut c_void>().write(block);
    }
    Ok(())
}

/// If the parts of shared memory need not be contiguous, each begins at a multiple of this many bytes.
const APART: usize = 64;

/// Allocates the parts of all ranks in the memory of the first one: contiguously, so that a rank finds any part by
/// adding sizes (MPI-4.1 section 12.2.3), unless all ranks give `alloc_shared_noncontig` to indicate that they do not
/// need that.
unsafe fn allocate_shared<D: Whole>(
    call: Call,
    size: MPI_Aint,
    unit: D,
    info: MPI_Info,
    comm: MPI_Comm,
    base: *mut c_void,
    win: *mut MPI_Win,
) -> Outcome {
    let (comm, size) = (call.process.comm(comm)?, size_of(size)?);
    comm.expect_intra()?;
    let (engine, site) = (comm.engine.clone(), *call.site);
    let node = create::node_now() as i32;
    let apart = call.process.info_or_empty(info)?.is_true("alloc_shared_noncontig");
    let told = async move {
        let mine = [node, size as u32 as i32, (size >> 32) as i32, apart.into()];
        create::all_gather(&engine, mine, site).await
    };
    let all = operation::drive(call.may_block(), told)?;
    if all.iter().any(|[other, ..]| *other != node) {
        refuse!(
            MPI_ERR_RMA_SHARED,
            "the ranks of the communicator do not share memory: MPI_Comm_split_type with \
             MPI_COMM_TYPE_SHARED gives one whose ranks do"
        );
    }
    let sizes: Vec<usize> = all
        .iter()
        .map(|[_, low, high, _]| (*low as u32 as usize) | (*high as u32 as usize) << 32)
        .collect();
    let apart = all.iter().all(|[.., apart]| *apart != 0);
    // Where each part begins, and where the last one ends.
    let mut starts = vec![0usize];
    for size in sizes {
        let end = starts[starts.len() - 1].checked_add(size);
        let start =
            if apart { end.and_then(|end| end.checked_next_multiple_of(APART)) } else { end };
        match start {
            Some(start) => starts.push(start),
            None => refuse!(MPI_ERR_SIZE, "the sizes of the window are more than can be counted"),
        }
    }
    let me = comm.engine.rank as usize;
    let (before, total) = (starts[me], starts[starts.len() - 1]);
    // SAFETY: as the program promises, which gives room for a pointer, too.
    unsafe {
        // Where there is not enough, all ranks hear of it.
        let owned = if me == 0 { memory(total).unwrap_or_default() } else { std::ptr::null_mut() };
        let word = Elsewhere::new(owned as usize).word();
        let first = [word as u32, (word >> 32) as u32];
        let told = create::broadcast(&comm.engine, 0, first, site);
        let [low, high] = operation::drive(call.may_block(), told)?;
        let start = Elsewhere::from_word(u64::from(low) | u64::from(high) << 32).address();
        if start == 0 {
            refuse!(
                MPI_ERR_NO_MEM,
                "there are no {total} bytes left for the first rank of the window"
            );
        }
        // A part of nothing that lies for itself lies nowhere.
        let part = if apart && size == 0 { 0 } else { start + before } as *mut c_void;
        let flavor = MPI_WIN_FLAVOR_SHARED;
        let own = Own { base: part, size, unit: unit.wide(), flavor, owned };
        make(call, &comm, info, &own, win)?;
        base.cast::<*mut c_void>().write(part);
    }
    Ok(())
}

unsafe fn create_dynamic(call: Call, info: MPI_Info, comm: MPI_Comm, win: *mut MPI_Win) -> Outcome {
    let comm = call.process.comm(comm)?;
    let nothing = std::ptr::null_mut();
    let flavor = MPI_WIN_FLAVOR_DYNAMIC;
    let own = Own { base: nothing, size: 0, unit: 1, flavor, owned: nothing };
    // SAFETY: as the program promises.
    unsafe { make(call, &comm, info, &own, win) }
}

/// Every address of a rank is valid in its dynamic windows: nothing has to be done.
fn attach(call: Call, win: MPI_Win, base: *mut c_void, size: MPI_Aint) -> Outcome {
    let win = call.process.window(win)?;
    if win.part.flavor != MPI_WIN_FLAVOR_DYNAMIC {
        refuse!(MPI_ERR_RMA_FLAVOR, "the window is not a dynamic one");
    }
    if size > 0 && !Arena::contains(base as usize) {
        refuse!(
            MPI_ERR_RMA_ATTACH,
            "the memory at {base:p} is not the rank's own, so other ranks cannot reach it"
        );
    }
    Ok(())
}

fn detach(call: Call, win: MPI_Win, _: *const c_void) -> Outcome {
    call.process.window(win).map(|_| ())
}

unsafe fn free(call: Call, win: *mut MPI_Win) -> Outcome {
    // SAFETY: the program gives its handle.
    let handle = unsafe { *win };
    let found = call.process.window(handle)?;
    found.attributes.delete_all(handle.0)?;
    call.process.windows.remove(handle.0);
    let Some(Window { core, owned, .. }) = Rc::into_inner(found) else {
        refuse!(MPI_ERR_WIN, "another call uses the window")
    };
    operation::drive(call.may_block(), core.free(*call.site))?;
    // SAFETY: all ranks have freed the window, so nobody accesses its memory again.
    unsafe {
        libc::free(owned);
        *win = MPI_WIN_NULL;
    }
    Ok(())
}
