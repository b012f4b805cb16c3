//! Values of the program that a communicator carries (MPI-4.1 section 7.7).
//!
//! The names of the `mpi` crate's `attribute` module. A value is known by its type; it lies in the
//! rank's heap and is dropped with the communicator.

use vrt_core::comm::attributes::Attribute;

/// A type whose values communicators can carry.
///
/// # Examples
///
/// ```
/// use vrt::traits::*;
///
/// #[derive(Clone)]
/// struct Name(&'static str);
///
/// impl CommAttribute for Name {
///     const CLONE_ON_DUP: bool = true;
/// }
///
/// vrt::run_local(2, |world| {
///     let mut pair = world.duplicate();
///     pair.set_attr(Name("pair"));
///     assert_eq!(pair.duplicate().get_attr::<Name>().map(|name| name.0), Some("pair"));
///     assert!(world.get_attr::<Name>().is_none());
/// });
/// ```
pub trait CommAttribute: 'static + Sized + Clone {
    /// Whether a duplicate of the communicator gets a clone of the value.
    const CLONE_ON_DUP: bool = false;
}

/// The traits of this module.
pub mod traits {
    pub use super::CommAttribute;
}

/// A value as the engine keeps it.
pub(crate) struct Stored<A>(pub(crate) A);

impl<A: CommAttribute> Attribute for Stored<A> {
    fn duplicate(&self) -> Option<Box<dyn Attribute>> {
        A::CLONE_ON_DUP.then(|| Box::new(Stored(self.0.clone())) as Box<dyn Attribute>)
    }
}
