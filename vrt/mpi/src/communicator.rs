//! Communicators (MPI-4.1 chapter 7).

use std::ffi::{c_char, c_int};
use std::rc::Rc;

use vrt_abi::constants::*;
use vrt_abi::types::*;
use vrt_core::Error;
use vrt_core::comm::handle::CommunicatorHandle;
use vrt_core::comm::shape::Shape;
use vrt_core::comm::{create, inter};
use vrt_core::operation;

use crate::call::{Call, functions};
use crate::collective;
use crate::fault::{Outcome, refuse};
use crate::group;
use crate::numbers::{self, give};
use crate::object::{Attributes, Comm, Info, Request, Stat};
use crate::settings;
use crate::text;

functions! {
    MPI_Comm_rank(comm: MPI_Comm, rank: *mut c_int) on Comm(comm) = rank;
    MPI_Comm_size(comm: MPI_Comm, size: *mut c_int) on Comm(comm) = size;
    MPI_Comm_remote_size(comm: MPI_Comm, size: *mut c_int) on Comm(comm) = remote_size;
    MPI_Comm_test_inter(comm: MPI_Comm, flag: *mut c_int) on Comm(comm) = test_inter;
    MPI_Comm_compare(one: MPI_Comm, other: MPI_Comm, result: *mut c_int) on Comm(one) = compare;
    MPI_Comm_dup(comm: MPI_Comm, new: *mut MPI_Comm) on Comm(comm) = dup;
    MPI_Comm_dup_with_info(comm: MPI_Comm, info: MPI_Info, new: *mut MPI_Comm)
        on Comm(comm) = dup_with_info;
    MPI_Comm_idup(comm: MPI_Comm, new: *mut MPI_Comm, request: *mut MPI_Request) on Comm(comm) = idup;
    MPI_Comm_idup_with_info(
        comm: MPI_Comm, info: MPI_Info, new: *mut MPI_Comm, request: *mut MPI_Request,
    ) on Comm(comm) = idup_with_info;
    MPI_Comm_split(comm: MPI_Comm, color: c_int, key: c_int, new: *mut MPI_Comm) on Comm(comm) = split;
    MPI_Comm_split_type(
        comm: MPI_Comm, split_type: c_int, key: c_int, info: MPI_Info, new: *mut MPI_Comm,
    ) on Comm(comm) = split_type;
    MPI_Comm_create(comm: MPI_Comm, group: MPI_Group, new: *mut MPI_Comm) on Comm(comm) = of_group;
    MPI_Comm_create_group(comm: MPI_Comm, group: MPI_Group, tag: c_int, new: *mut MPI_Comm)
        on Comm(comm) = of_group_alone;
    MPI_Comm_free(comm: *mut MPI_Comm) on Nothing = free;
    MPI_Comm_disconnect(comm: *mut MPI_Comm) on Nothing = disconnect;
    MPI_Comm_group(comm: MPI_Comm, group: *mut MPI_Group) on Comm(comm) = local_group;
    MPI_Comm_remote_group(comm: MPI_Comm, group: *mut MPI_Group) on Comm(comm) = remote_group;
    MPI_Intercomm_create(
        local: MPI_Comm, local_leader: c_int, peer: MPI_Comm, remote_leader: c_int, tag: c_int,
        new: *mut MPI_Comm,
    ) on Comm(local) = intercomm;
    MPI_Intercomm_merge(comm: MPI_Comm, high: c_int, new: *mut MPI_Comm) on Comm(comm) = merge;
    MPI_Comm_set_name(comm: MPI_Comm, name: *const c_char) on Comm(comm) = set_name;
    MPI_Comm_get_name(comm: MPI_Comm, name: *mut c_char, len: *mut c_int) on Comm(comm) = get_name;
    MPI_Comm_set_info(comm: MPI_Comm, info: MPI_Info) on Comm(comm) = set_info;
    MPI_Comm_get_info(comm: MPI_Comm, info: *mut MPI_Info) on Comm(comm) = get_info;
    MPI_Comm_get_parent(parent: *mut MPI_Comm) on Nothing = parent;
}

unsafe fn rank(call: Call, comm: MPI_Comm, rank: *mut c_int) -> Outcome {
    // SAFETY: as the program promises.
    unsafe { give(call.process.comm(comm)?.engine.rank, rank) }
}

unsafe fn size(call: Call, comm: MPI_Comm, size: *mut c_int) -> Outcome {
    // SAFETY: as the program promises.
    unsafe { give(call.process.comm(comm)?.engine.size, size) }
}

unsafe fn remote_size(call: Call, comm: MPI_Comm, size: *mut c_int) -> Outcome {
    let comm = call.process.comm(comm)?;
    comm.expect_inter()?;
    // SAFETY: as the program promises.
    unsafe { give(numbers::int(comm.engine.partners().len()), size) }
}

unsafe fn test_inter(call: Call, comm: MPI_Comm, flag: *mut c_int) -> Outcome {
    // SAFETY: as the program promises.
    unsafe { give(call.process.comm(comm)?.is_inter().into(), flag) }
}

unsafe fn compare(call: Call, one: MPI_Comm, other: MPI_Comm, result: *mut c_int) -> Outcome {
    let (a, b) = (call.process.comm(one)?, call.process.comm(other)?);
    let relation = match (&a.engine.remote, &b.engine.remote) {
        _ if one == other => MPI_IDENT,
        (None, None) => group::relation(&a.engine.members, &b.engine.members),
        (Some(remote_a), Some(remote_b)) => {
            let local = group::relation(&a.engine.members, &b.engine.members);
            local.max(group::relation(&remote_a.members, &remote_b.members))
        }
        _ => MPI_UNEQUAL,
    };
    let relation = if one != other && relation == MPI_IDENT { MPI_CONGRUENT } else { relation };
    // SAFETY: as the program promises.
    unsafe { give(relation, result) }
}

/// Waits for the creation of a communicator, and returns a handle of it to the program.
///
/// # Safety
/// There is room for a handle.
pub(crate) unsafe fn made(
    call: Call,
    comm: &Comm,
    make: impl Future<Output = Result<Option<CommunicatorHandle>, Error>>,
    new: *mut MPI_Comm,
) -> Outcome {
    let engine = operation::drive(call.may_block(), make)?;
    let handle = match engine {
        None => MPI_COMM_NULL,
        Some(engine) => {
            let made = Comm::new(engine);
            made.errhandler.replace(comm.errhandler.borrow().clone());
            MPI_Comm(call.process.comms.add(made))
        }
    };
    // SAFETY: the program gives room for a handle.
    unsafe { give(handle, new) }
}

/// Makes a communicator of the first ranks in a shape, and returns it to the program.
///
/// # Safety
/// There is room for a handle at `new`.
pub(crate) unsafe fn make_in_shape(
    call: Call,
    comm: &Comm,
    places: usize,
    shape: Shape,
    new: *mut MPI_Comm,
) -> Outcome {
    let placed = create::in_shape(&comm.engine, places, shape, *call.site);
    // SAFETY: as the caller promises.
    unsafe { made(call, comm, placed, new) }
}

/// A duplicate, with the data that it has besides its ranks.
fn duplicate_of(
    comm: &Comm,
    attributes: Attributes,
    info: Option<Info>,
    engine: CommunicatorHandle,
) -> Comm {
    let mut made = Comm::new(engine);
    made.errhandler.replace(comm.errhandler.borrow().clone());
    made.info.replace(info.unwrap_or_default());
    made.attributes = attributes;
    made
}

unsafe fn dup(call: Call, comm: MPI_Comm, new: *mut MPI_Comm) -> Outcome {
    // SAFETY: as the program promises.
    unsafe { dup_by(call, comm, None, new) }
}

/// # Safety
/// There is room for a handle.
unsafe fn dup_by(call: Call, handle: MPI_Comm, info: Option<Info>, new: *mut MPI_Comm) -> Outcome {
    let comm = call.process.comm(handle)?;
    let engine = operation::drive(call.may_block(), Rc::clone(&comm).duplicate(*call.site))?;
    let made = duplicate_of(&comm, comm.attributes.copied(handle.0)?, info, engine);
    // SAFETY: the program gives room for a handle.
    unsafe { give(MPI_Comm(call.process.comms.add(made)), new) }
}

unsafe fn dup_with_info(call: Call, comm: MPI_Comm, info: MPI_Info, new: *mut MPI_Comm) -> Outcome {
    let info = call.process.info_or_empty(info)?;
    // SAFETY: as the program promises.
    unsafe { dup_by(call, comm, Some(info), new) }
}

unsafe fn idup(
    call: Call,
    comm: MPI_Comm,
    new: *mut MPI_Comm,
    request: *mut MPI_Request,
) -> Outcome {
    // SAFETY: as the program promises.
    unsafe { idup_by(call, comm, None, new, request) }
}

unsafe fn idup_with_info(
    call: Call,
    comm: MPI_Comm,
    info: MPI_Info,
    new: *mut MPI_Comm,
    request: *mut MPI_Request,
) -> Outcome {
    let info = call.process.info_or_empty(info)?;
    // SAFETY: as the program promises.
    unsafe { idup_by(call, comm, Some(info), new, request) }
}

/// Attributes are copied in their state at the beginning (MPI-4.1 section 7.4.2).
///
/// # Safety
/// There is room for a request, and for a handle until the request is done.
unsafe fn idup_by(
    call: Call,
    handle: MPI_Comm,
    info: Option<Info>,
    new: *mut MPI_Comm,
    request: *mut MPI_Request,
) -> Outcome {
    let comm = call.process.comm(handle)?;
    let attributes = comm.attributes.copied(handle.0)?;
    let (site, process) = (*call.site, call.process);
    let future = Box::pin(async move {
        let engine = Rc::clone(&comm).duplicate(site).await?;
        let made = duplicate_of(&comm, attributes, info, engine);
        // SAFETY: the program keeps room for a handle until the request is done.
        unsafe { new.write(MPI_Comm(process.comms.add(made))) };
        Ok(Stat::EMPTY)
    });
    // SAFETY: the program gives room for a handle.
    unsafe { Request::task(call.site, handle, future).give(&call.process.requests, request) };
    Ok(())
}

unsafe fn split(
    call: Call,
    handle: MPI_Comm,
    color: c_int,
    key: c_int,
    new: *mut MPI_Comm,
) -> Outcome {
    let comm = call.process.comm(handle)?;
    let color = match color {
        MPI_UNDEFINED => None,
        0.. => Some(color.cast_unsigned()),
        _ => refuse!(MPI_ERR_ARG, "the color is {color}: 0 and more or MPI_UNDEFINED are allowed"),
    };
    // SAFETY: as the program promises.
    unsafe { split_by(call, &comm, color, key, new) }
}

/// # Safety
/// There is room for a handle.
unsafe fn split_by(
    call: Call,
    comm: &Rc<Comm>,
    color: Option<u32>,
    key: c_int,
    new: *mut MPI_Comm,
) -> Outcome {
    let (whole, site) = (Rc::clone(comm), *call.site);
    let make = async move {
        if whole.is_inter() {
            return inter::split(&whole.engine, color, key, site).await;
        }
        create::split(&whole.engine, color, key, Shape::Plain, site).await
    };
    // SAFETY: as the caller promises.
    unsafe { made(call, comm, make, new) }
}

unsafe fn split_type(
    call: Call,
    handle: MPI_Comm,
    split_type: c_int,
    key: c_int,
    info: MPI_Info,
    new: *mut MPI_Comm,
) -> Outcome {
    let comm = call.process.comm(handle)?;
    let info = call.process.info_or_empty(info)?;
    // What shares memory is the one resource that is known by its name (section 7.4.2).
    let split_type = match (split_type, info.value("mpi_hw_resource_type").as_deref()) {
        (MPI_COMM_TYPE_HW_GUIDED | MPI_COMM_TYPE_RESOURCE_GUIDED, Some("mpi_shared_memory")) => {
            MPI_COMM_TYPE_SHARED
        }
        _ => split_type,
    };
    let color = match split_type {
        // Ranks of a node share memory now; where they may be moved to another one, they do not for long.
        MPI_COMM_TYPE_SHARED => match settings::ranks_leave_nodes() {
            false => Some(create::node_now()),
            // Of two groups there is nobody on both sides then.
            true => (!comm.is_inter()).then_some(comm.engine.rank.cast_unsigned()),
        },
        // Of what a node is made is not told apart.
        MPI_COMM_TYPE_HW_UNGUIDED
        | MPI_COMM_TYPE_HW_GUIDED
        | MPI_COMM_TYPE_RESOURCE_GUIDED
        | MPI_UNDEFINED => None,
        _ => refuse!(MPI_ERR_ARG, "{split_type} is no type by which communicators are split"),
    };
    // SAFETY: as the program promises.
    unsafe { split_by(call, &comm, color, key, new) }
}

unsafe fn of_group(call: Call, handle: MPI_Comm, group: MPI_Group, new: *mut MPI_Comm) -> Outcome {
    let (comm, group) = (call.process.comm(handle)?, call.process.group(group)?);
    let (whole, site) = (Rc::clone(&comm), *call.site);
    let make = async move {
        if whole.is_inter() {
            return inter::from_groups(&whole.engine, &group, site).await;
        }
        create::from_group_collective(&whole.engine, &group, site).await
    };
    // SAFETY: as the program promises.
    unsafe { made(call, &comm, make, new) }
}

unsafe fn of_group_alone(
    call: Call,
    handle: MPI_Comm,
    group: MPI_Group,
    tag: c_int,
    new: *mut MPI_Comm,
) -> Outcome {
    let (comm, group) = (call.process.comm(handle)?, call.process.group(group)?);
    comm.expect_intra()?;
    let make = create::from_group(&comm.engine, &group, tag, *call.site);
    // SAFETY: as the program promises.
    unsafe { made(call, &comm, make, new) }
}

unsafe fn free(call: Call, handle: *mut MPI_Comm) -> Outcome {
    // SAFETY: the program gives its handle.
    let comm = unsafe { *handle };
    if comm == MPI_COMM_WORLD || comm == MPI_COMM_SELF {
        refuse!(MPI_ERR_COMM, "{} cannot be freed", call.process.comm(comm)?.name());
    }
    let found = call.process.comm(comm)?;
    found.attributes.delete_all(comm.0)?;
    call.process.comms.remove(comm.0);
    // SAFETY: as above.
    unsafe { *handle = MPI_COMM_NULL };
    Ok(())
}

/// All communication of the rank on it has completed when it is freed: a rank waits for its own
/// operations.
unsafe fn disconnect(call: Call, handle: *mut MPI_Comm) -> Outcome {
    // SAFETY: as the program promises.
    unsafe {
        let comm = call.process.comm(*handle)?;
        collective::barrier_of(call, &comm)?;
        free(call, handle)
    }
}

unsafe fn local_group(call: Call, comm: MPI_Comm, group: *mut MPI_Group) -> Outcome {
    let comm = call.process.comm(comm)?;
    // SAFETY: as the program promises.
    unsafe { give(MPI_Group(call.process.groups.add(comm.engine.members.clone())), group) }
}

unsafe fn remote_group(call: Call, comm: MPI_Comm, group: *mut MPI_Group) -> Outcome {
    let comm = call.process.comm(comm)?;
    comm.expect_inter()?;
    // SAFETY: as the program promises.
    unsafe { give(MPI_Group(call.process.groups.add(comm.engine.partners().clone())), group) }
}

unsafe fn intercomm(
    call: Call,
    local: MPI_Comm,
    local_leader: c_int,
    peer: MPI_Comm,
    remote_leader: c_int,
    tag: c_int,
    new: *mut MPI_Comm,
) -> Outcome {
    let comm = call.process.comm(local)?;
    comm.expect_intra()?;
    // Only the leader has to give a peer.
    let peer = match comm.engine.rank == local_leader {
        true => call.process.comm(peer)?,
        false => Rc::clone(&comm),
    };
    let (engine, site) = (comm.engine.clone(), *call.site);
    let make = async move {
        inter::create(&engine, local_leader, &peer.engine, remote_leader, tag, site).await.map(Some)
    };
    // SAFETY: as the program promises.
    unsafe { made(call, &comm, make, new) }
}

unsafe fn merge(call: Call, comm: MPI_Comm, high: c_int, new: *mut MPI_Comm) -> Outcome {
    let comm = call.process.comm(comm)?;
    comm.expect_inter()?;
    let (whole, site) = (Rc::clone(&comm), *call.site);
    let make = async move { inter::merge(&whole.engine, high != 0, site).await.map(Some) };
    // SAFETY: as the program promises.
    unsafe { made(call, &comm, make, new) }
}

unsafe fn set_name(call: Call, comm: MPI_Comm, name: *const c_char) -> Outcome {
    let comm = call.process.comm(comm)?;
    // SAFETY: the program gives a string.
    *comm.engine.name.borrow_mut() = unsafe { text::taken(name) };
    Ok(())
}

unsafe fn get_name(call: Call, comm: MPI_Comm, name: *mut c_char, len: *mut c_int) -> Outcome {
    // A null communicator has a name, too (MPI-4.1 section 7.8).
    let found = match comm {
        MPI_COMM_NULL => "MPI_COMM_NULL".to_owned(),
        _ => call.process.comm(comm)?.name(),
    };
    // SAFETY: the program gives room for `MPI_MAX_OBJECT_NAME` characters.
    unsafe { text::give(&found, name, MPI_MAX_OBJECT_NAME as usize, len) };
    Ok(())
}

fn set_info(call: Call, comm: MPI_Comm, info: MPI_Info) -> Outcome {
    let comm = call.process.comm(comm)?;
    let info = call.process.info_or_empty(info)?;
    comm.info.borrow_mut().add_all(&info);
    Ok(())
}

unsafe fn get_info(call: Call, comm: MPI_Comm, info: *mut MPI_Info) -> Outcome {
    let found = call.process.comm(comm)?.info.borrow().clone();
    // SAFETY: the program gives room for a handle.
    unsafe { give(MPI_Info(call.process.infos.add(found)), info) }
}

unsafe fn parent(_: Call, parent: *mut MPI_Comm) -> Outcome {
    // SAFETY: the program gives room for a handle.
    unsafe { give(MPI_COMM_NULL, parent) }
}
