//! Values that a program attaches to a communicator (MPI-4.1 section 7.7).

use std::any::Any;
use std::cell::RefCell;

/// A value attached to a communicator. A binding identifies its values by their types.
pub trait Attribute: Any {
    /// What a duplicate of the communicator gets, if anything.
    fn duplicate(&self) -> Option<Box<dyn Attribute>>;
}

/// The values of a communicator, in the rank's heap. A replaced value stays until the communicator
/// is freed, as there may be references to it.
#[derive(Default)]
pub struct Attributes(RefCell<Vec<Box<dyn Attribute>>>);

impl std::fmt::Debug for Attributes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Attributes").field("len", &self.0.borrow().len()).finish()
    }
}

impl Attributes {
    /// The value of a type that was set last.
    pub fn get<A: Attribute>(&self) -> Option<&A> {
        let values = self.0.borrow();
        #[expect(clippy::borrowed_box, reason = "the iterator over the list gives it")]
        let of_type = |value: &'_ Box<dyn Attribute>| {
            let value: &dyn Any = &**value;
            value.downcast_ref::<A>().map(std::ptr::from_ref)
        };
        let value = values.iter().rev().find_map(of_type)?;
        // SAFETY: values are boxed, and `set` alone changes the list, which removes none.
        Some(unsafe { &*value })
    }

    /// Attaches a value to the communicator.
    pub fn set<A: Attribute>(&self, value: A) {
        self.0.borrow_mut().push(Box::new(value));
    }

    /// What a duplicate of the communicator begins with.
    pub(super) fn duplicate(&self) -> Attributes {
        let mut kinds = Vec::new();
        let mut copies = Vec::new();
        for value in self.0.borrow().iter().rev() {
            let any: &dyn Any = &**value;
            let kind = any.type_id();
            if !kinds.contains(&kind) {
                kinds.push(kind);
                copies.extend(value.duplicate());
            }
        }
        Attributes(RefCell::new(copies))
    }
}
