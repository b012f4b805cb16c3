//! Attributes of communicators, datatypes and windows (MPI-4.1 section 7.7).

use std::ffi::{c_int, c_void};

use vrt_abi::constants::*;
use vrt_abi::types::*;

use crate::call::{Call, functions};
use crate::fault::{Outcome, refuse};
use crate::numbers::give;
use crate::object::attribute::{Constants, Object};
use crate::object::{Comm, Window};
use crate::process::Process;

/// The address of a predefined attribute's value.
fn predefined(process: &Process, key: c_int) -> Option<*mut c_void> {
    let new = || Box::new(Constants::new(process.world.engine.size));
    process.constants.get_or_init(new).value(key, process.codes.last_used())
}

fn is_predefined(key: c_int) -> bool {
    (MPI_TAG_UB..=MPI_UNIVERSE_SIZE).contains(&key) || (MPI_WIN_BASE..=MPI_WIN_MODEL).contains(&key)
}

fn not_predefined(key: c_int) -> Outcome {
    if is_predefined(key) {
        refuse!(MPI_ERR_KEYVAL, "the attribute {key} is predefined: it cannot be changed");
    }
    Ok(())
}

functions! {
    MPI_Comm_create_keyval(
        copy: MPI_Comm_copy_attr_function, delete: MPI_Comm_delete_attr_function, key: *mut c_int,
        extra: *mut c_void,
    ) on Nothing when Always = create_of_comm;
    MPI_Type_create_keyval(
        copy: MPI_Type_copy_attr_function, delete: MPI_Type_delete_attr_function, key: *mut c_int,
        extra: *mut c_void,
    ) on Nothing when Always = create_of_type;
    MPI_Win_create_keyval(
        copy: MPI_Win_copy_attr_function, delete: MPI_Win_delete_attr_function, key: *mut c_int,
        extra: *mut c_void,
    ) on Nothing when Always = create_of_win;
    MPI_Keyval_create(
        copy: MPI_Copy_function, delete: MPI_Delete_function, key: *mut c_int, extra: *mut c_void,
    ) on Nothing when Always = create_old;
    MPI_Comm_free_keyval(key: *mut c_int) on Nothing when Always = free_of_comm;
    MPI_Type_free_keyval(key: *mut c_int) on Nothing when Always = free_of_type;
    MPI_Win_free_keyval(key: *mut c_int) on Nothing when Always = free_of_win;
    MPI_Keyval_free(key: *mut c_int) on Nothing when Always = free_of_comm;
    MPI_Comm_set_attr(comm: MPI_Comm, key: c_int, value: *mut c_void) on Comm(comm) = set_of_comm;
    MPI_Comm_get_attr(comm: MPI_Comm, key: c_int, value: *mut c_void, flag: *mut c_int)
        on Comm(comm) = get_of_comm;
    MPI_Comm_delete_attr(comm: MPI_Comm, key: c_int) on Comm(comm) = delete_of_comm;
    MPI_Attr_put(comm: MPI_Comm, key: c_int, value: *mut c_void) on Comm(comm) = set_of_comm;
    MPI_Attr_get(comm: MPI_Comm, key: c_int, value: *mut c_void, flag: *mut c_int)
        on Comm(comm) = get_of_comm;
    MPI_Attr_delete(comm: MPI_Comm, key: c_int) on Comm(comm) = delete_of_comm;
    MPI_Type_set_attr(datatype: MPI_Datatype, key: c_int, value: *mut c_void)
        on Nothing = set_of_type;
    MPI_Type_get_attr(datatype: MPI_Datatype, key: c_int, value: *mut c_void, flag: *mut c_int)
        on Nothing = get_of_type;
    MPI_Type_delete_attr(datatype: MPI_Datatype, key: c_int) on Nothing = delete_of_type;
    MPI_Win_set_attr(win: MPI_Win, key: c_int, value: *mut c_void) on Win(win) = set_of_win;
    MPI_Win_get_attr(win: MPI_Win, key: c_int, value: *mut c_void, flag: *mut c_int)
        on Win(win) = get_of_win;
    MPI_Win_delete_attr(win: MPI_Win, key: c_int) on Win(win) = delete_of_win;
}

macro_rules! keys {
    ($($create:ident($copy:ty, $delete:ty), $free:ident: $object:ident;)*) => {$(
        unsafe fn $create(
            call: Call,
            copy: $copy,
            delete: $delete,
            key: *mut c_int,
            extra: *mut c_void,
        ) -> Outcome {
            let copy = copy.map_or(0, |f| f as *const () as usize);
            let delete = delete.map_or(0, |f| f as *const () as usize);
            let number = call.process.keyvals.add(Object::$object, copy, delete, extra);
            // SAFETY: the program gives room for a number.
            unsafe { give(number, key) }
        }

        unsafe fn $free(call: Call, key: *mut c_int) -> Outcome {
            // SAFETY: the program gives its key.
            unsafe {
                not_predefined(*key)?;
                call.process.keyvals.remove(Object::$object, *key)?;
                *key = MPI_KEYVAL_INVALID;
            }
            Ok(())
        }
    )*};
}
keys! {
    create_of_comm(MPI_Comm_copy_attr_function, MPI_Comm_delete_attr_function), free_of_comm: Comm;
    create_of_type(MPI_Type_copy_attr_function, MPI_Type_delete_attr_function), free_of_type: Type;
    create_of_win(MPI_Win_copy_attr_function, MPI_Win_delete_attr_function), free_of_win: Win;
}

unsafe fn create_old(
    call: Call,
    copy: MPI_Copy_function,
    delete: MPI_Delete_function,
    key: *mut c_int,
    extra: *mut c_void,
) -> Outcome {
    // SAFETY: as the program promises; the types are one.
    unsafe { create_of_comm(call, copy, delete, key, extra) }
}

/// Returns a value to the program, if there is one.
///
/// # Safety
/// There is room for a pointer and a flag.
unsafe fn give_found(found: Option<*mut c_void>, value: *mut c_void, flag: *mut c_int) -> Outcome {
    // SAFETY: as the caller promises.
    unsafe {
        if let Some(found) = found {
            value.cast::<*mut c_void>().write(found);
        }
        give(found.is_some().into(), flag)
    }
}

/// The attributes of objects some of which are predefined.
macro_rules! attributes {
    ($(
        $of:ident($handle:ty) as $object:ident: $set:ident, $get:ident, $delete:ident,
        $predefined:expr;
    )*) => {$(
        fn $set(call: Call, object: $handle, key: c_int, value: *mut c_void) -> Outcome {
            let found = call.process.$of(object)?;
            not_predefined(key)?;
            let keyval = call.process.keyvals.find(Object::$object, key)?;
            found.attributes.set(object.0, keyval, value)
        }

        unsafe fn $get(
            call: Call,
            object: $handle,
            key: c_int,
            value: *mut c_void,
            flag: *mut c_int,
        ) -> Outcome {
            let object = call.process.$of(object)?;
            let found = match is_predefined(key) {
                true => $predefined(call.process, &object, key),
                false => object.attributes.get(key),
            };
            if found.is_none() && !is_predefined(key) {
                call.process.keyvals.find(Object::$object, key)?;
            }
            // SAFETY: as the program promises.
            unsafe { give_found(found, value, flag) }
        }

        fn $delete(call: Call, object: $handle, key: c_int) -> Outcome {
            let found = call.process.$of(object)?;
            not_predefined(key)?;
            found.attributes.delete(object.0, key)
        }
    )*};
}
attributes! {
    comm(MPI_Comm) as Comm: set_of_comm, get_of_comm, delete_of_comm,
        |process, _: &Comm, key| predefined(process, key);
    window(MPI_Win) as Win: set_of_win, get_of_win, delete_of_win,
        |_, window: &Window, key| window.predefined(key);
}

fn set_of_type(call: Call, handle: MPI_Datatype, key: c_int, value: *mut c_void) -> Outcome {
    let keyval = call.process.keyvals.find(Object::Type, key)?;
    call.process.types.with_attributes(handle, |all| all.set(handle.0, keyval, value))
}

unsafe fn get_of_type(
    call: Call,
    handle: MPI_Datatype,
    key: c_int,
    value: *mut c_void,
    flag: *mut c_int,
) -> Outcome {
    let found = call.process.types.with_attributes(handle, |all| Ok(all.get(key)))?;
    if found.is_none() {
        call.process.keyvals.find(Object::Type, key)?;
    }
    // SAFETY: as the program promises.
    unsafe { give_found(found, value, flag) }
}

fn delete_of_type(call: Call, handle: MPI_Datatype, key: c_int) -> Outcome {
    call.process.types.with_attributes(handle, |all| all.delete(handle.0, key))
}
