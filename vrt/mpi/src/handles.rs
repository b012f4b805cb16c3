//! Handles: programs use numbers for communicators, datatypes, requests and so on; the objects are in tables of the
//! rank.
//!
//! ```text
//! 63         32 31  28 27          0
//! | generation | kind |   index    |       predefined handles are below 0x1000 and in no table
//! ```
//!
//! The generation of an index grows when the index is freed, and the kind determines the table: so a handle that was
//! freed, or is of another kind, is detected and never refers to another object.

#![cfg_attr(
    not(test),
    expect(
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation,
        reason = "a handle is made of three numbers, and there are fewer objects than memory"
    )
)]

use std::cell::RefCell;
use std::rc::Rc;

/// The kind of object of a handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Communicator = 1,
    Group,
    Datatype,
    Op,
    Request,
    Errhandler,
    Info,
    Window,
    Message,
    Session,
}

const KIND: u32 = 28;
const INDEX: u32 = (1 << KIND) - 1;

/// The objects of one kind that a rank has. They are in its heap.
#[derive(Debug)]
pub(crate) struct Table<T> {
    kind: Kind,
    entries: RefCell<Entries<T>>,
}

#[derive(Debug)]
struct Entries<T> {
    all: Vec<Entry<T>>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Entry<T> {
    generation: u32,
    value: Option<Rc<T>>,
}

impl<T> Table<T> {
    pub(crate) fn new(kind: Kind) -> Table<T> {
        Table { kind, entries: RefCell::new(Entries { all: Vec::new(), free: Vec::new() }) }
    }

    /// Adds an object; returns its handle.
    pub(crate) fn add(&self, value: impl Into<Rc<T>>) -> usize {
        let mut entries = self.entries.borrow_mut();
        let value = Some(value.into());
        let index = match entries.free.pop() {
            Some(index) => {
                entries.all[index as usize].value = value;
                index
            }
            None => {
                entries.all.push(Entry { generation: 1, value });
                entries.all.len() as u32 - 1
            }
        };
        self.handle(entries.all[index as usize].generation, index)
    }

    #[inline]
    fn handle(&self, generation: u32, index: u32) -> usize {
        (generation as usize) << 32 | ((self.kind as usize) << KIND) | index as usize
    }

    /// The index of a handle of this kind.
    #[inline]
    fn index(&self, handle: usize) -> Option<(usize, u32)> {
        let low = handle as u32;
        let index = (low & INDEX) as usize;
        (low >> KIND == self.kind as u32).then_some((index, (handle >> 32) as u32))
    }

    /// The handle whose lower half is a number.
    pub(crate) fn whole(&self, low: u32) -> Option<usize> {
        let (index, _) = self.index(low as usize)?;
        let entries = self.entries.borrow();
        let entry = entries.all.get(index).filter(|entry| entry.value.is_some())?;
        Some(self.handle(entry.generation, index as u32))
    }

    /// The object of a handle.
    #[inline]
    pub(crate) fn get(&self, handle: usize) -> Option<Rc<T>> {
        let (index, generation) = self.index(handle)?;
        let entries = self.entries.borrow();
        let entry = entries.all.get(index).filter(|entry| entry.generation == generation)?;
        entry.value.clone()
    }

    /// Frees a handle; returns its object.
    pub(crate) fn remove(&self, handle: usize) -> Option<Rc<T>> {
        let (index, generation) = self.index(handle)?;
        let mut entries = self.entries.borrow_mut();
        let entry = entries.all.get_mut(index).filter(|entry| entry.generation == generation)?;
        let value = entry.value.take()?;
        entry.generation = entry.generation.wrapping_add(1).max(1);
        entries.free.push(index as u32);
        Some(value)
    }

    /// Whether there are no objects.
    pub(crate) fn is_empty(&self) -> bool {
        let entries = self.entries.borrow();
        entries.free.len() == entries.all.len()
    }

    /// All handles in use, with their objects.
    pub(crate) fn list(&self) -> Vec<(usize, Rc<T>)> {
        let entries = self.entries.borrow();
        let all = entries.all.iter().enumerate();
        all.filter_map(|(index, entry)| {
            let value = entry.value.as_ref()?;
            Some((self.handle(entry.generation, index as u32), Rc::clone(value)))
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_freed_handle_means_nothing_even_when_its_place_is_used_again() {
        let table: Table<u32> = Table::new(Kind::Group);
        let first = table.add(7);
        assert_eq!(table.get(first).as_deref(), Some(&7));
        assert_eq!(table.remove(first).as_deref(), Some(&7));
        let second = table.add(8);
        assert_eq!((table.get(first), table.remove(first)), (None, None));
        assert_eq!(table.get(second).as_deref(), Some(&8));
        assert_eq!(table.list().len(), 1);
    }

    #[test]
    fn a_handle_of_another_kind_means_nothing() {
        let (groups, requests) = (Table::<u32>::new(Kind::Group), Table::<u32>::new(Kind::Request));
        let group = groups.add(1);
        requests.add(2);
        assert!(requests.get(group).is_none() && requests.get(0x101).is_none());
    }
}
