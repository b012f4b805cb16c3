//! Sessions (MPI-4.1 section 11.3): a rank uses MPI without the communicator of all ranks, from named groups. There are
//! two: `mpi://WORLD`, all ranks of the job, and `mpi://SELF`.

use std::cell::RefCell;
use std::ffi::{c_char, c_int};
use std::hash::{BuildHasher, BuildHasherDefault};
use std::rc::Rc;

use rustc_hash::FxHasher;
use vrt_abi::constants::*;
use vrt_abi::types::*;
use vrt_core::comm::handle::CommunicatorHandle;
use vrt_core::comm::{create, inter};
use vrt_core::operation;

use crate::call::{Call, functions};
use crate::fault::{Outcome, refuse};
use crate::numbers::{self, give};
use crate::object::{Comm, Handler, Info, Session};
use crate::text;

/// The names of groups.
const SETS: [&str; 2] = ["mpi://WORLD", "mpi://SELF"];

functions! {
    MPI_Session_init(info: MPI_Info, handler: MPI_Errhandler, session: *mut MPI_Session)
        on Nothing when Always = init;
    MPI_Session_finalize(session: *mut MPI_Session) on Nothing = finalize;
    MPI_Session_get_info(session: MPI_Session, info: *mut MPI_Info) on Session(session) = get_info;
    MPI_Session_get_num_psets(session: MPI_Session, info: MPI_Info, count: *mut c_int)
        on Session(session) = count_sets;
    MPI_Session_get_nth_pset(
        session: MPI_Session, info: MPI_Info, n: c_int, len: *mut c_int, name: *mut c_char,
    ) on Session(session) = nth_set;
    MPI_Session_get_pset_info(session: MPI_Session, name: *const c_char, info: *mut MPI_Info)
        on Session(session) = set_info;
    MPI_Group_from_session_pset(session: MPI_Session, name: *const c_char, group: *mut MPI_Group)
        on Session(session) = group;
    MPI_Comm_create_from_group(
        group: MPI_Group, tag: *const c_char, info: MPI_Info, handler: MPI_Errhandler,
        comm: *mut MPI_Comm,
    ) on Nothing = comm_of;
    MPI_Intercomm_create_from_groups(
        local: MPI_Group, local_leader: c_int, remote: MPI_Group, remote_leader: c_int,
        tag: *const c_char, info: MPI_Info, handler: MPI_Errhandler, comm: *mut MPI_Comm,
    ) on Nothing = intercomm_of;
}

unsafe fn init(
    call: Call,
    info: MPI_Info,
    handler: MPI_Errhandler,
    session: *mut MPI_Session,
) -> Outcome {
    let info = call.process.info_or_empty(info)?;
    let errhandler = RefCell::new(Handler::of(&call.process.errhandlers, handler)?);
    let made = call.process.sessions.add(Session { errhandler, info });
    call.process.count_sessions();
    // SAFETY: the program gives room for a handle.
    unsafe { give(MPI_Session(made), session) }
}

unsafe fn finalize(call: Call, session: *mut MPI_Session) -> Outcome {
    // SAFETY: the program gives its handle.
    unsafe {
        call.process.session(*session)?;
        call.process.sessions.remove((*session).0);
        session.write(MPI_SESSION_NULL);
    }
    call.process.count_sessions();
    Ok(())
}

unsafe fn get_info(call: Call, session: MPI_Session, info: *mut MPI_Info) -> Outcome {
    let found = call.process.session(session)?.info.clone();
    // SAFETY: the program gives room for a handle.
    unsafe { give(MPI_Info(call.process.infos.add(found)), info) }
}

unsafe fn count_sets(call: Call, session: MPI_Session, _: MPI_Info, count: *mut c_int) -> Outcome {
    call.process.session(session)?;
    // SAFETY: the program gives room for a number.
    unsafe { give(numbers::int(SETS.len()), count) }
}

unsafe fn nth_set(
    call: Call,
    session: MPI_Session,
    _: MPI_Info,
    n: c_int,
    len: *mut c_int,
    name: *mut c_char,
) -> Outcome {
    call.process.session(session)?;
    let Some(set) = usize::try_from(n).ok().and_then(|n| SETS.get(n)) else {
        refuse!(
            MPI_ERR_ARG,
            "there is no group with number {n}: 0 to {} are",
            SETS.len().saturating_sub(1)
        );
    };
    // SAFETY: the program gives room for so many characters; asked with none, it wants to know how many.
    unsafe {
        let room = usize::try_from(len.read()).unwrap_or_default();
        if room > 0 {
            text::give(set, name, room, std::ptr::null_mut());
        }
        len.write(numbers::int(set.len()).saturating_add(1));
    }
    Ok(())
}

/// The ranks of the job in a named group.
fn members(call: Call, name: *const c_char) -> Outcome<Rc<Comm>> {
    // SAFETY: the program gives a string.
    let name = unsafe { text::taken(name) };
    match SETS.iter().position(|set| set.eq_ignore_ascii_case(&name)) {
        Some(0) => Ok(Rc::clone(&call.process.world)),
        Some(_) => Ok(Rc::clone(&call.process.itself)),
        None => refuse!(MPI_ERR_ARG, "{name:?} is no name of a group: {SETS:?} are"),
    }
}

unsafe fn set_info(
    call: Call,
    session: MPI_Session,
    name: *const c_char,
    info: *mut MPI_Info,
) -> Outcome {
    call.process.session(session)?;
    let size = numbers::index(members(call, name)?.engine.size);
    // SAFETY: the program gives room for a handle.
    unsafe { give(MPI_Info(call.process.infos.add(Info::of(&[("mpi_size", size)]))), info) }
}

unsafe fn group(
    call: Call,
    session: MPI_Session,
    name: *const c_char,
    group: *mut MPI_Group,
) -> Outcome {
    // SAFETY: the program gives room for a handle; a name that there is not gives the null one.
    unsafe { group.write(MPI_GROUP_NULL) };
    call.process.session(session)?;
    let found = members(call, name)?.engine.members.clone();
    // SAFETY: as above.
    unsafe { give(MPI_Group(call.process.groups.add(found)), group) }
}

/// The tag of messages between ranks that make a communicator under a name.
fn tag_of(name: *const c_char) -> i32 {
    // SAFETY: the program gives a string.
    let name = unsafe { text::taken(name) };
    (BuildHasherDefault::<FxHasher>::default().hash_one(name) & 0x3fff_ffff) as i32
}

/// Returns a handle of a new communicator to the program; the rank may not be in it.
///
/// # Safety
/// There is room for a handle.
unsafe fn give_comm(
    call: Call,
    engine: Option<CommunicatorHandle>,
    handler: Handler,
    info: Info,
    to: *mut MPI_Comm,
) {
    let handle = engine.map_or(MPI_COMM_NULL, |engine| {
        let made = Comm::new(engine);
        made.errhandler.replace(handler);
        made.info.replace(info);
        MPI_Comm(call.process.comms.add(made))
    });
    // SAFETY: the program gives room for a handle.
    unsafe { to.write(handle) };
}

unsafe fn comm_of(
    call: Call,
    group: MPI_Group,
    tag: *const c_char,
    info: MPI_Info,
    handler: MPI_Errhandler,
    comm: *mut MPI_Comm,
) -> Outcome {
    let group = call.process.group(group)?;
    let (info, handler) =
        (call.process.info_or_empty(info)?, Handler::of(&call.process.errhandlers, handler)?);
    let world = Rc::clone(&call.process.world);
    let make = create::from_group(&world.engine, &group, tag_of(tag), *call.site);
    let engine = operation::drive(call.may_block(), make)?;
    // SAFETY: the program gives room for a handle.
    unsafe { give_comm(call, engine, handler, info, comm) };
    Ok(())
}

#[allow(clippy::too_many_arguments, reason = "they are MPI's")]
unsafe fn intercomm_of(
    call: Call,
    local: MPI_Group,
    local_leader: c_int,
    remote: MPI_Group,
    remote_leader: c_int,
    tag: *const c_char,
    info: MPI_Info,
    handler: MPI_Errhandler,
    comm: *mut MPI_Comm,
) -> Outcome {
    let (local, remote) = (call.process.group(local)?, call.process.group(remote)?);
    let (info, handler) =
        (call.process.info_or_empty(info)?, Handler::of(&call.process.errhandlers, handler)?);
    let leader = usize::try_from(remote_leader).ok().filter(|leader| *leader < remote.len());
    let Some(leader) = leader else {
        refuse!(
            MPI_ERR_RANK,
            "the remote leader is {remote_leader}, the size of its group {}",
            remote.len()
        );
    };
    let (world, site, tag) = (Rc::clone(&call.process.world), *call.site, tag_of(tag));
    let leader = remote.get(leader).cast_signed();
    let make = async move {
        // Each group has to be known to its own ranks first.
        let own = create::from_group(&world.engine, &local, tag, site).await?;
        match own {
            None => Ok(None),
            Some(own) => {
                inter::create(&own, local_leader, &world.engine, leader, tag, site).await.map(Some)
            }
        }
    };
    let engine = operation::drive(call.may_block(), make)?;
    // SAFETY: the program gives room for a handle.
    unsafe { give_comm(call, engine, handler, info, comm) };
    Ok(())
}
