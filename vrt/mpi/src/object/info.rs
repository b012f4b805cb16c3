//! Info objects (MPI-4.1 chapter 10): keys and values.

use std::cell::RefCell;
use std::ffi::c_int;

/// Keys and values, in the order in which they were set.
#[derive(Clone, Debug, Default)]
pub(crate) struct Info(RefCell<Vec<(String, String)>>);

impl Info {
    /// Sets the value of a key.
    pub(crate) fn set(&self, key: String, value: String) {
        let mut all = self.0.borrow_mut();
        match all.iter_mut().find(|(known, _)| *known == key) {
            Some((_, old)) => *old = value,
            None => all.push((key, value)),
        }
    }

    /// The value of a key.
    pub(crate) fn value(&self, key: &str) -> Option<String> {
        self.0.borrow().iter().find(|(known, _)| known == key).map(|(_, value)| value.clone())
    }

    /// Removes a key; returns whether there was one.
    pub(crate) fn remove(&self, key: &str) -> bool {
        let mut all = self.0.borrow_mut();
        let len = all.len();
        all.retain(|(known, _)| known != key);
        all.len() < len
    }

    /// The number of keys.
    pub(crate) fn len(&self) -> usize {
        self.0.borrow().len()
    }

    /// The `nth` key.
    pub(crate) fn nth(&self, nth: usize) -> Option<String> {
        self.0.borrow().get(nth).map(|(key, _)| key.clone())
    }

    /// Whether the value of a key is true (MPI-4.1 section 10.1: `true` or `false`).
    pub(crate) fn is_true(&self, key: &str) -> bool {
        self.value(key).is_some_and(|value| value.trim().eq_ignore_ascii_case("true"))
    }

    /// Adds the entries of another one.
    pub(crate) fn add_all(&mut self, other: &Info) {
        for (key, value) in other.0.borrow().iter() {
            self.set(key.clone(), value.clone());
        }
    }

    /// With numbers as values.
    pub(crate) fn of(numbers: &[(&str, usize)]) -> Info {
        let info = Info::default();
        for (key, value) in numbers {
            info.set((*key).to_owned(), value.to_string());
        }
        info
    }

    /// The properties of the job known before `MPI_Init` (`MPI_INFO_ENV`).
    pub(crate) fn environment(ranks: c_int) -> Info {
        let info = Info::default();
        let mut arguments = std::env::args();
        info.set("command".to_owned(), arguments.next().unwrap_or_default());
        info.set("maxprocs".to_owned(), ranks.to_string());
        info.set("thread_level".to_owned(), "MPI_THREAD_FUNNELED".to_owned());
        info
    }
}
