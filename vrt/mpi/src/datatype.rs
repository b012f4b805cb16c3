//! Datatypes (MPI-4.1 chapter 5).
//!
//! | file | subject |
//! |---|---|
//! | `make` | constructors |
//! | `darray` | distributed arrays |
//! | `ask` | queries: sizes, extents, envelopes and contents |
//! | `elements` | the basic elements of a type in order |
//! | `pack` | packing, also as `external32` |
//! | `long_double` | C's `long double` in `external32` |

mod ask;
mod darray;
mod elements;
mod long_double;
mod make;
mod pack;

use crate::call::Export;

pub(crate) use elements::{basic_elements, bytes_of_elements};

/// The functions on datatypes.
pub(crate) const EXPORTS: [&[Export]; 3] = [make::EXPORTS, ask::EXPORTS, pack::EXPORTS];
