//! Attributes of communicators, datatypes and windows (MPI-4.1 section 7.7): values that a program attaches under keys,
//! with its own functions that copy and delete them.

use std::cell::{Cell, RefCell};
use std::ffi::{c_int, c_void};
use std::rc::{Rc, Weak};

use vrt_abi::constants::*;
use vrt_abi::types::*;

use crate::call::{Call, functions};
use crate::fault::{Fault, Outcome, fault, refuse};
use crate::numbers;
use crate::process::Process;

/// The kinds of objects that have attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Object {
    Comm,
    Type,
    Win,
}

/// The three kinds of functions have the same form: a handle is a number.
type Copy_ = unsafe extern "C-unwind" fn(
    usize,
    c_int,
    *mut c_void,
    *mut c_void,
    *mut c_void,
    *mut c_int,
) -> c_int;
type Delete = unsafe extern "C-unwind" fn(usize, c_int, *mut c_void, *mut c_void) -> c_int;

/// A key: defines how its values are copied and deleted.
#[derive(Debug)]
pub(crate) struct Keyval {
    number: c_int,
    of: Object,
    copy: usize,
    delete: usize,
    extra: *mut c_void,
}

/// The keys of a rank.
#[derive(Debug)]
pub(crate) struct Keyvals {
    all: RefCell<Vec<Place>>,
}

/// The state of a key: a freed key is kept as long as an attribute uses it.
#[derive(Debug)]
enum Place {
    Live(Rc<Keyval>),
    Freed(Weak<Keyval>),
}

impl Default for Keyvals {
    fn default() -> Keyvals {
        Keyvals { all: RefCell::new(Vec::new()) }
    }
}

/// Numbers of keys made by programs begin here.
const FIRST: c_int = 1000;

impl Keyvals {
    fn add(&self, of: Object, copy: usize, delete: usize, extra: *mut c_void) -> c_int {
        let mut all = self.all.borrow_mut();
        let number = FIRST.saturating_add(numbers::int(all.len()));
        all.push(Place::Live(Rc::new(Keyval { number, of, copy, delete, extra })));
        number
    }

    /// Uses the state of a key.
    fn with<R>(&self, number: c_int, f: impl FnOnce(&mut Place) -> Option<R>) -> Option<R> {
        let index = usize::try_from(number.checked_sub(FIRST)?).ok()?;
        f(self.all.borrow_mut().get_mut(index)?)
    }

    fn find(&self, of: Object, number: c_int) -> Outcome<Rc<Keyval>> {
        let found = self.with(number, |place| match place {
            Place::Live(key) if key.of == of => Some(Rc::clone(key)),
            _ => None,
        });
        found.ok_or_else(|| no_key(number))
    }

    /// Frees a key. A key that attributes still use may be freed again: functions that delete attributes do that.
    fn remove(&self, of: Object, number: c_int) -> Outcome {
        let freed = self.with(number, |place| {
            let key = match place {
                Place::Live(key) => Some(Rc::clone(key)),
                Place::Freed(key) => key.upgrade(),
            };
            let key = key.filter(|key| key.of == of)?;
            *place = Place::Freed(Rc::downgrade(&key));
            Some(key)
        });
        freed.map(drop).ok_or_else(|| no_key(number))
    }
}

fn no_key(number: c_int) -> Box<Fault> {
    fault(MPI_ERR_KEYVAL, format!("{number} is no key for attributes of this kind"))
}

/// The attributes of one object, in the order in which they were attached.
#[derive(Debug, Default)]
pub(crate) struct Attributes(RefCell<Vec<(Rc<Keyval>, *mut c_void)>>);

/// If a function of the program fails, its code is returned by the call that invoked it.
fn expect(code: c_int, what: &str) -> Outcome {
    match code {
        MPI_SUCCESS => Ok(()),
        _ => Err(fault(
            code,
            format!("the program's function that {what} attributes returned {code}"),
        )),
    }
}

impl Keyval {
    /// The value that a duplicate of the object gets, if any.
    fn copied(&self, handle: usize, value: *mut c_void) -> Outcome<Option<*mut c_void>> {
        match self.copy {
            MPI_COMM_NULL_COPY_FN => Ok(None),
            MPI_COMM_DUP_FN => Ok(Some(value)),
            address => {
                let (mut copy, mut flag) = (std::ptr::null_mut::<c_void>(), 0);
                // SAFETY: the program gave this function for such attributes.
                let code = unsafe {
                    let function = std::mem::transmute::<usize, Copy_>(address);
                    let out = (&raw mut copy).cast();
                    function(handle, self.number, self.extra, value, out, &raw mut flag)
                };
                expect(code, "copies")?;
                Ok((flag != 0).then_some(copy))
            }
        }
    }

    fn deleted(&self, handle: usize, value: *mut c_void) -> Outcome {
        match self.delete {
            MPI_COMM_NULL_DELETE_FN => Ok(()),
            address => {
                // SAFETY: the program gave this function for such attributes.
                let code = unsafe {
                    let function = std::mem::transmute::<usize, Delete>(address);
                    function(handle, self.number, value, self.extra)
                };
                expect(code, "deletes")
            }
        }
    }
}

impl Attributes {
    fn position(&self, key: c_int) -> Option<usize> {
        self.0.borrow().iter().position(|(keyval, _)| keyval.number == key)
    }

    fn get(&self, key: c_int) -> Option<*mut c_void> {
        Some(self.0.borrow()[self.position(key)?].1)
    }

    fn set(&self, handle: usize, keyval: Rc<Keyval>, value: *mut c_void) -> Outcome {
        match self.position(keyval.number) {
            Some(at) => {
                let old = self.0.borrow()[at].1;
                keyval.deleted(handle, old)?;
                self.0.borrow_mut()[at].1 = value;
            }
            None => self.0.borrow_mut().push((keyval, value)),
        }
        Ok(())
    }

    fn delete(&self, handle: usize, key: c_int) -> Outcome {
        let Some(at) = self.position(key) else { return Ok(()) };
        let (keyval, value) = self.0.borrow()[at].clone();
        keyval.deleted(handle, value)?;
        if let Some(at) = self.position(key) {
            self.0.borrow_mut().remove(at);
        }
        Ok(())
    }

    /// The initial attributes of a duplicate of the object.
    ///
    /// # Errors
    /// A function of the program fails.
    pub(crate) fn copied(&self, _: &Process, handle: usize) -> Outcome<Attributes> {
        let own = self.0.borrow().clone();
        let mut copies = Vec::new();
        for (keyval, value) in own {
            if let Some(copy) = keyval.copied(handle, value)? {
                copies.push((keyval, copy));
            }
        }
        Ok(Attributes(RefCell::new(copies)))
    }

    /// Deletes the attributes of an object that is freed: the last one first (MPI-4.1 section
    /// 11.2.4).
    ///
    /// # Errors
    /// A function of the program fails; then its attribute remains, and so do those attached before it.
    pub(crate) fn delete_all(&self, _: &Process, handle: usize) -> Outcome {
        loop {
            let last = self.0.borrow().last().cloned();
            let Some((keyval, value)) = last else { return Ok(()) };
            keyval.deleted(handle, value)?;
            self.0.borrow_mut().pop();
        }
    }
}

/// The values of predefined attributes, to which programs get pointers.
#[derive(Debug)]
pub(crate) struct Constants {
    tag_ub: c_int,
    io: c_int,
    host: c_int,
    wtime_is_global: c_int,
    appnum: c_int,
    universe_size: c_int,
    last_used_code: Cell<c_int>,
}

/// The address of a predefined attribute's value.
fn predefined(process: &Process, key: c_int) -> Option<*mut c_void> {
    let constants = process.constants.get_or_init(|| {
        let one_machine = vrt_core::pe::with(|pe| pe.engine.shared.nodes() == 1);
        Box::new(Constants {
            tag_ub: c_int::MAX,
            io: MPI_ANY_SOURCE,
            host: MPI_PROC_NULL,
            wtime_is_global: one_machine.into(),
            appnum: 0,
            universe_size: process.world.engine.size,
            last_used_code: Cell::new(0),
        })
    });
    constants.last_used_code.set(process.codes.last_used());
    let value: *const c_int = match key {
        MPI_TAG_UB => &raw const constants.tag_ub,
        MPI_IO => &raw const constants.io,
        MPI_HOST => &raw const constants.host,
        MPI_WTIME_IS_GLOBAL => &raw const constants.wtime_is_global,
        MPI_APPNUM => &raw const constants.appnum,
        MPI_UNIVERSE_SIZE => &raw const constants.universe_size,
        MPI_LASTUSEDCODE => constants.last_used_code.as_ptr(),
        _ => return None,
    };
    Some(value.cast_mut().cast())
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
            let address = |of: Option<*const ()>| of.map_or(0, |of| of as usize);
            let (copy, delete) = (copy.map(|f| f as *const ()), delete.map(|f| f as *const ()));
            let keyvals = &call.process.keyvals;
            let number = keyvals.add(Object::$object, address(copy), address(delete), extra);
            // SAFETY: the program gives room for a number.
            unsafe { key.write(number) };
            Ok(())
        }

        $crate::attribute::keys!(free $free $object);
    )*};
    (free $free:ident $object:ident) => {
        unsafe fn $free(call: Call, key: *mut c_int) -> Outcome {
            // SAFETY: the program gives its key.
            unsafe {
                not_predefined(*key)?;
                call.process.keyvals.remove(Object::$object, *key)?;
                *key = MPI_KEYVAL_INVALID;
            }
            Ok(())
        }
    };
}
use keys;
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
unsafe fn give(found: Option<*mut c_void>, value: *mut c_void, flag: *mut c_int) -> Outcome {
    // SAFETY: the program gives room for a pointer and a flag.
    unsafe {
        flag.write(found.is_some().into());
        if let Some(found) = found {
            value.cast::<*mut c_void>().write(found);
        }
    }
    Ok(())
}

fn set_of_comm(call: Call, comm: MPI_Comm, key: c_int, value: *mut c_void) -> Outcome {
    let found = call.process.comm(comm)?;
    not_predefined(key)?;
    found.attributes.set(comm.0, call.process.keyvals.find(Object::Comm, key)?, value)
}

unsafe fn get_of_comm(
    call: Call,
    comm: MPI_Comm,
    key: c_int,
    value: *mut c_void,
    flag: *mut c_int,
) -> Outcome {
    let comm = call.process.comm(comm)?;
    let found = match is_predefined(key) {
        true => predefined(call.process, key),
        false => {
            let attached = comm.attributes.get(key);
            if attached.is_none() {
                call.process.keyvals.find(Object::Comm, key)?;
            }
            attached
        }
    };
    // SAFETY: as the program promises.
    unsafe { give(found, value, flag) }
}

fn delete_of_comm(call: Call, comm: MPI_Comm, key: c_int) -> Outcome {
    let found = call.process.comm(comm)?;
    not_predefined(key)?;
    found.attributes.delete(comm.0, key)
}

fn set_of_type(call: Call, handle: MPI_Datatype, key: c_int, value: *mut c_void) -> Outcome {
    let keyval = call.process.keyvals.find(Object::Type, key)?;
    call.process.with_type_attributes(handle, |all| all.set(handle.0, keyval, value))
}

unsafe fn get_of_type(
    call: Call,
    handle: MPI_Datatype,
    key: c_int,
    value: *mut c_void,
    flag: *mut c_int,
) -> Outcome {
    let found = call.process.with_type_attributes(handle, |all| Ok(all.get(key)))?;
    if found.is_none() {
        call.process.keyvals.find(Object::Type, key)?;
    }
    // SAFETY: as the program promises.
    unsafe { give(found, value, flag) }
}

fn delete_of_type(call: Call, handle: MPI_Datatype, key: c_int) -> Outcome {
    call.process.with_type_attributes(handle, |all| all.delete(handle.0, key))
}

fn set_of_win(call: Call, win: MPI_Win, key: c_int, value: *mut c_void) -> Outcome {
    let found = crate::window::find(call, win)?;
    not_predefined(key)?;
    found.attributes.set(win.0, call.process.keyvals.find(Object::Win, key)?, value)
}

unsafe fn get_of_win(
    call: Call,
    win: MPI_Win,
    key: c_int,
    value: *mut c_void,
    flag: *mut c_int,
) -> Outcome {
    let win = crate::window::find(call, win)?;
    let found = match is_predefined(key) {
        true => win.predefined(key),
        false => {
            let attached = win.attributes.get(key);
            if attached.is_none() {
                call.process.keyvals.find(Object::Win, key)?;
            }
            attached
        }
    };
    // SAFETY: as the program promises.
    unsafe { give(found, value, flag) }
}

fn delete_of_win(call: Call, win: MPI_Win, key: c_int) -> Outcome {
    let found = crate::window::find(call, win)?;
    not_predefined(key)?;
    found.attributes.delete(win.0, key)
}
