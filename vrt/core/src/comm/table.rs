//! Objects of a rank by number. The table lies in the rank's heap and does not keep an object alive.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use rustc_hash::FxHashMap;
use vrt_slot::locals;

use crate::comm::FIRST_FREE_CONTEXT;

/// Under which number a rank keeps its table of communicators among its locals.
const TABLE: u32 = FIRST_FREE_CONTEXT;

#[derive(Debug)]
struct Table<T> {
    known: RefCell<FxHashMap<u32, Weak<T>>>,
    /// The rank's state is being encoded or decoded: numbers represent objects.
    open: Cell<bool>,
}

impl<T> Default for Table<T> {
    fn default() -> Table<T> {
        Table { known: RefCell::default(), open: Cell::new(false) }
    }
}

pub(super) fn enter<T: 'static>(number: u32, object: &Rc<T>) {
    let table = locals::keep(TABLE, Table::<T>::default);
    table.known.borrow_mut().insert(number, Rc::downgrade(object));
}

pub(super) fn remove<T: 'static>(number: u32) {
    if let Some(table) = locals::kept::<Table<T>>(TABLE) {
        table.known.borrow_mut().remove(&number);
    }
}

pub(super) fn find<T: 'static>(number: u32) -> Option<Rc<T>> {
    locals::kept::<Table<T>>(TABLE)?.known.borrow().get(&number)?.upgrade()
}

pub(super) fn all<T: 'static>() -> Vec<Rc<T>> {
    let Some(table) = locals::kept::<Table<T>>(TABLE) else { return Vec::new() };
    table.known.borrow().values().filter_map(Weak::upgrade).collect()
}

/// Calls a function while numbers represent objects.
pub(super) fn open<T: 'static, R>(f: impl FnOnce() -> R) -> R {
    struct Close<T>(Rc<Table<T>>, bool);
    impl<T> Drop for Close<T> {
        fn drop(&mut self) {
            self.0.open.set(self.1);
        }
    }
    let table = locals::keep(TABLE, Table::<T>::default);
    let _close = Close(Rc::clone(&table), table.open.replace(true));
    f()
}

pub(super) fn is_open<T: 'static>() -> bool {
    locals::kept::<Table<T>>(TABLE).is_some_and(|table| table.open.get())
}
