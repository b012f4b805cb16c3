//! Info objects (MPI-4.1 chapter 10).

use std::ffi::{c_char, c_int};

use vrt_abi::constants::*;
use vrt_abi::types::*;

use crate::call::{Call, functions};
use crate::fault::{Outcome, refuse};
use crate::numbers::{self, give};
use crate::object::Info;
use crate::text;

functions! {
    MPI_Info_create(info: *mut MPI_Info) on Nothing when Always = create;
    MPI_Info_create_env(argc: c_int, argv: *mut *mut c_char, info: *mut MPI_Info)
        on Nothing when Always = create_env;
    MPI_Info_dup(info: MPI_Info, new: *mut MPI_Info) on Nothing when Always = dup;
    MPI_Info_free(info: *mut MPI_Info) on Nothing when Always = free;
    MPI_Info_set(info: MPI_Info, key: *const c_char, value: *const c_char)
        on Nothing when Always = set;
    MPI_Info_delete(info: MPI_Info, key: *const c_char) on Nothing when Always = delete;
    MPI_Info_get(
        info: MPI_Info, key: *const c_char, room: c_int, value: *mut c_char, flag: *mut c_int,
    ) on Nothing when Always = get;
    MPI_Info_get_string(
        info: MPI_Info, key: *const c_char, len: *mut c_int, value: *mut c_char, flag: *mut c_int,
    ) on Nothing when Always = get_string;
    MPI_Info_get_valuelen(info: MPI_Info, key: *const c_char, len: *mut c_int, flag: *mut c_int)
        on Nothing when Always = get_valuelen;
    MPI_Info_get_nkeys(info: MPI_Info, keys: *mut c_int) on Nothing when Always = nkeys;
    MPI_Info_get_nthkey(info: MPI_Info, nth: c_int, key: *mut c_char)
        on Nothing when Always = nth_key;
}

/// A key given by the program.
///
/// # Errors
/// It is too long, or empty.
///
/// # Safety
/// It is a string.
unsafe fn key_of(key: *const c_char) -> Outcome<String> {
    // SAFETY: as the caller promises.
    let text = unsafe { text::taken(key) };
    if text.is_empty() || text.len() >= MPI_MAX_INFO_KEY as usize {
        refuse!(
            MPI_ERR_INFO_KEY,
            "a key of {} characters: 1 to {} are allowed",
            text.len(),
            MPI_MAX_INFO_KEY - 1
        );
    }
    Ok(text.trim().to_owned())
}

unsafe fn create(call: Call, info: *mut MPI_Info) -> Outcome {
    // SAFETY: as the program promises.
    unsafe { give(MPI_Info(call.process.infos.add(Info::default())), info) }
}

unsafe fn create_env(call: Call, _: c_int, _: *mut *mut c_char, info: *mut MPI_Info) -> Outcome {
    // SAFETY: as the program promises.
    unsafe {
        give(
            MPI_Info(call.process.infos.add(Info::environment(call.process.world.engine.size))),
            info,
        )
    }
}

unsafe fn dup(call: Call, info: MPI_Info, new: *mut MPI_Info) -> Outcome {
    let copy = (*call.process.info(info)?).clone();
    // SAFETY: as the program promises.
    unsafe { give(MPI_Info(call.process.infos.add(copy)), new) }
}

unsafe fn free(call: Call, info: *mut MPI_Info) -> Outcome {
    // SAFETY: the program gives its handle.
    unsafe {
        if call.process.infos.remove((*info).0).is_none() {
            refuse!(MPI_ERR_INFO, "{:#x} is no info that can be freed", (*info).0);
        }
        *info = MPI_INFO_NULL;
    }
    Ok(())
}

unsafe fn set(call: Call, info: MPI_Info, key: *const c_char, value: *const c_char) -> Outcome {
    let info = call.process.info(info)?;
    // SAFETY: the program gives strings.
    let (key, value) = unsafe { (key_of(key)?, text::taken(value)) };
    if value.is_empty() || value.len() >= MPI_MAX_INFO_VAL as usize {
        refuse!(
            MPI_ERR_INFO_VALUE,
            "a value of {} characters: 1 to {} are allowed",
            value.len(),
            MPI_MAX_INFO_VAL - 1
        );
    }
    info.set(key, value.trim().to_owned());
    Ok(())
}

unsafe fn delete(call: Call, info: MPI_Info, key: *const c_char) -> Outcome {
    let info = call.process.info(info)?;
    // SAFETY: the program gives a string.
    let key = unsafe { key_of(key)? };
    if !info.remove(&key) {
        refuse!(MPI_ERR_INFO_NOKEY, "there is no key `{key}`");
    }
    Ok(())
}

unsafe fn get(
    call: Call,
    info: MPI_Info,
    key: *const c_char,
    room: c_int,
    value: *mut c_char,
    flag: *mut c_int,
) -> Outcome {
    let info = call.process.info(info)?;
    let room = numbers::count(room)?;
    // SAFETY: the program gives a string, room for as many characters and a zero, and for a flag.
    unsafe {
        let found = info.value(&key_of(key)?);
        flag.write(found.is_some().into());
        if let Some(found) = found {
            text::give(&found, value, room.saturating_add(1), std::ptr::null_mut());
        }
    }
    Ok(())
}

unsafe fn get_string(
    call: Call,
    info: MPI_Info,
    key: *const c_char,
    len: *mut c_int,
    value: *mut c_char,
    flag: *mut c_int,
) -> Outcome {
    let info = call.process.info(info)?;
    // SAFETY: the program gives a string, room for as many characters as it says, and for a flag.
    unsafe {
        let found = info.value(&key_of(key)?);
        flag.write(found.is_some().into());
        if let Some(found) = found {
            if *len > 0 {
                text::give(&found, value, numbers::index(*len), std::ptr::null_mut());
            }
            len.write(numbers::int(found.len()).saturating_add(1));
        }
    }
    Ok(())
}

unsafe fn get_valuelen(
    call: Call,
    info: MPI_Info,
    key: *const c_char,
    len: *mut c_int,
    flag: *mut c_int,
) -> Outcome {
    let info = call.process.info(info)?;
    // SAFETY: the program gives a string, and room for a number and a flag.
    unsafe {
        let found = info.value(&key_of(key)?);
        flag.write(found.is_some().into());
        if let Some(found) = found {
            len.write(numbers::int(found.len()));
        }
    }
    Ok(())
}

unsafe fn nkeys(call: Call, info: MPI_Info, keys: *mut c_int) -> Outcome {
    let len = call.process.info(info)?.len();
    // SAFETY: the program gives room for a number.
    unsafe { give(numbers::int(len), keys) }
}

unsafe fn nth_key(call: Call, info: MPI_Info, nth: c_int, key: *mut c_char) -> Outcome {
    let info = call.process.info(info)?;
    let Some(found) = usize::try_from(nth).ok().and_then(|nth| info.nth(nth)) else {
        refuse!(MPI_ERR_ARG, "there is no key {nth}: the info has {}", info.len());
    };
    // SAFETY: the program gives room for `MPI_MAX_INFO_KEY` characters.
    unsafe { text::give(&found, key, MPI_MAX_INFO_KEY as usize, std::ptr::null_mut()) };
    Ok(())
}
