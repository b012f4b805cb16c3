//! Attributes (MPI-4.1 section 7.7): values that a program attaches to objects under keys, with its own functions that
//! copy and delete them.

use std::cell::{Cell, RefCell};
use std::ffi::{c_int, c_void};
use std::rc::{Rc, Weak};

use vrt_abi::constants::*;
use vrt_core::pe;

use crate::fault::{Fault, Outcome, fault};
use crate::numbers;

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
    all: RefCell<Vec<KeyState>>,
}

/// The state of a key: a freed key is kept as long as an attribute uses it.
#[derive(Debug)]
enum KeyState {
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
    /// Adds a key, given the addresses of its functions; returns its number.
    pub(crate) fn add(&self, of: Object, copy: usize, delete: usize, extra: *mut c_void) -> c_int {
        let mut all = self.all.borrow_mut();
        let number = FIRST.saturating_add(numbers::int(all.len()));
        all.push(KeyState::Live(Rc::new(Keyval { number, of, copy, delete, extra })));
        number
    }

    /// Uses the state of a key.
    fn with<R>(&self, number: c_int, f: impl FnOnce(&mut KeyState) -> Option<R>) -> Option<R> {
        let index = usize::try_from(number.checked_sub(FIRST)?).ok()?;
        f(self.all.borrow_mut().get_mut(index)?)
    }

    /// The key with a number.
    ///
    /// # Errors
    /// There is none for such objects.
    pub(crate) fn find(&self, of: Object, number: c_int) -> Outcome<Rc<Keyval>> {
        let found = self.with(number, |place| match place {
            KeyState::Live(key) if key.of == of => Some(Rc::clone(key)),
            _ => None,
        });
        found.ok_or_else(|| no_key(number))
    }

    /// Frees a key. A key that attributes still use may be freed again: functions that delete attributes do that.
    ///
    /// # Errors
    /// There is no such key.
    pub(crate) fn remove(&self, of: Object, number: c_int) -> Outcome {
        let freed = self.with(number, |place| {
            let key = match place {
                KeyState::Live(key) => Some(Rc::clone(key)),
                KeyState::Freed(key) => key.upgrade(),
            };
            let key = key.filter(|key| key.of == of)?;
            *place = KeyState::Freed(Rc::downgrade(&key));
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

    /// The value under a key.
    pub(crate) fn get(&self, key: c_int) -> Option<*mut c_void> {
        Some(self.0.borrow()[self.position(key)?].1)
    }

    /// Attaches a value; the one before is deleted.
    ///
    /// # Errors
    /// A function of the program fails.
    pub(crate) fn set(&self, handle: usize, keyval: Rc<Keyval>, value: *mut c_void) -> Outcome {
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

    /// Deletes the value under a key, if there is one.
    ///
    /// # Errors
    /// A function of the program fails.
    pub(crate) fn delete(&self, handle: usize, key: c_int) -> Outcome {
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
    pub(crate) fn copied(&self, handle: usize) -> Outcome<Attributes> {
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
    pub(crate) fn delete_all(&self, handle: usize) -> Outcome {
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

impl Constants {
    /// For a rank of this many.
    pub(crate) fn new(ranks: c_int) -> Constants {
        let one_machine = pe::with(|pe| pe.engine.shared().nodes() == 1);
        Constants {
            tag_ub: c_int::MAX,
            io: MPI_ANY_SOURCE,
            host: MPI_PROC_NULL,
            wtime_is_global: one_machine.into(),
            appnum: 0,
            universe_size: ranks,
            last_used_code: Cell::new(0),
        }
    }

    /// The address of a predefined attribute's value, given the last error code in use now.
    pub(crate) fn value(&self, key: c_int, last_used_code: c_int) -> Option<*mut c_void> {
        self.last_used_code.set(last_used_code);
        let value: *const c_int = match key {
            MPI_TAG_UB => &raw const self.tag_ub,
            MPI_IO => &raw const self.io,
            MPI_HOST => &raw const self.host,
            MPI_WTIME_IS_GLOBAL => &raw const self.wtime_is_global,
            MPI_APPNUM => &raw const self.appnum,
            MPI_UNIVERSE_SIZE => &raw const self.universe_size,
            MPI_LASTUSEDCODE => self.last_used_code.as_ptr(),
            _ => return None,
        };
        Some(value.cast_mut().cast())
    }
}
