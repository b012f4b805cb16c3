//! The arena: one range of addresses in which every rank has a slot, and what a slot's header contains.
//!
//! | file | subject |
//! |---|---|
//! | `layout` | the positions of slots, stacks and heaps, and the reasons |
//! | `backing` | the file behind the arena, with 2 MiB pages where possible |
//! | `mapped` | the arena of this process: where it is, and how it is reserved |
//! | `body` | the suspended program of a rank |
//! | `slot` | the header of a slot: heap, owner, suspended rank |
//! | `prepare` | making a slot ready for a rank |
//! | `resident` | which pages have memory |

mod backing;
mod body;
mod layout;
mod mapped;
mod prepare;
pub(crate) mod resident;
mod slot;

pub use body::Body;
pub(crate) use body::{Suspended, ThreadRank};
pub use layout::{Layout, LayoutError, SlotId, SlotSizes};
pub use mapped::{Arena, ArenaError, Place, can_have_huge_pages, make_long};
pub use slot::{SlotHeader, TOUCHED_BY_SWITCH};
