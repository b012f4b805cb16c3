//! Values of the program that a communicator carries (MPI-4.1 section 7.7).
//!
//! The names of the `mpi` crate's `attribute` module. A value is known by its type; it lies in the
//! rank's heap and is dropped with the communicator.

use std::any::Any;
use std::cell::RefCell;

/// A type whose values communicators can carry.
pub trait CommAttribute: 'static + Sized + Clone {
    /// Whether a duplicate of the communicator gets a clone of the value.
    const CLONE_ON_DUP: bool = false;
}

/// The traits of this module.
pub mod traits {
    pub use super::CommAttribute;
}

trait Value {
    fn duplicate(&self) -> Option<Box<dyn Value>>;
    fn as_any(&self) -> &dyn Any;
}

impl<A: CommAttribute> Value for A {
    fn duplicate(&self) -> Option<Box<dyn Value>> {
        A::CLONE_ON_DUP.then(|| Box::new(self.clone()) as Box<dyn Value>)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The values of a communicator. A value that was replaced stays until the communicator goes:
/// somebody may have a reference to it.
#[derive(Default)]
pub(crate) struct Attributes(RefCell<Vec<Box<dyn Value>>>);

impl std::fmt::Debug for Attributes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Attributes").field("len", &self.0.borrow().len()).finish()
    }
}

impl Attributes {
    pub(crate) fn get<A: CommAttribute>(&self) -> Option<&A> {
        let values = self.0.borrow();
        let value = values.iter().rev().find_map(|value| (**value).as_any().downcast_ref::<A>())?;
        // SAFETY: values are boxed and never removed while `self` lives.
        Some(unsafe { &*std::ptr::from_ref(value) })
    }

    pub(crate) fn set<A: CommAttribute>(&self, value: A) {
        self.0.borrow_mut().push(Box::new(value));
    }

    /// What a duplicate of the communicator begins with.
    pub(crate) fn duplicate(&self) -> Attributes {
        let mut kinds = Vec::new();
        let mut copies = Vec::new();
        for value in self.0.borrow().iter().rev() {
            let kind = (**value).as_any().type_id();
            if !kinds.contains(&kind) {
                kinds.push(kind);
                copies.extend(value.duplicate());
            }
        }
        Attributes(RefCell::new(copies))
    }
}
