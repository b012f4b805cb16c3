//! The rings of a node's control memory: one for each ordered pair of PEs of which the first has sent anything to the
//! second. So memory and polling grow with the pairs that communicate.
//!
//! ```text
//! the sender, before its first packet          the receiver
//!   takes the next ring that nobody has
//!   says who sends in it, pushes it onto
//!   the receiver's list of new rings
//!   signals NEW_RINGS ---------------------->    takes the whole list, and looks at these rings, too
//! ```
//!
//! A ring has one sender and one receiver as long as the job lasts. Address space is reserved for all pairs; unused
//! parts take no memory.

use std::sync::atomic::Ordering;

use crate::net::link::{RING_BYTES, RING_CELLS};
use crate::net::shared::Shared;
use vrt_shm::{Consumer, Producer};

/// The sending end of a ring.
pub(crate) type Sender = Producer<'static, RING_CELLS, RING_BYTES>;

/// The receiving end of a ring, with the PE that sends.
pub(crate) type Receiver = (u32, Consumer<'static, RING_CELLS, RING_BYTES>);

impl Shared {
    /// Opens the ring through which `from` sends to `to`. The receiver has to be signalled then.
    ///
    /// # Safety
    /// The caller is the PE `from`, which has not opened this ring before.
    pub(crate) unsafe fn open_ring(&self, from: u32, to: u32) -> Sender {
        let number = self.rings_made().fetch_add(1, Ordering::SeqCst);
        let link = self.link(number);
        link.from.store(from, Ordering::Relaxed);
        let new = self.new_rings(to);
        let mut first = new.load(Ordering::Relaxed);
        loop {
            link.next.store(first, Ordering::Relaxed);
            // Who takes the list finds what was written to the ring before.
            match new.compare_exchange_weak(first, number + 1, Ordering::Release, Ordering::Relaxed)
            {
                Ok(_) => break,
                Err(other) => first = other,
            }
        }
        // SAFETY: the number was taken here alone, so nobody else sends in this ring, which is fresh.
        unsafe { Producer::new(&link.ring) }
    }

    /// The receiving ends that were opened to a PE since the last call.
    ///
    /// # Safety
    /// The caller is that PE.
    pub(crate) unsafe fn take_new_rings(&self, to: u32) -> Vec<Receiver> {
        let mut next = self.new_rings(to).swap(0, Ordering::Acquire);
        let mut taken = Vec::new();
        while let Some(number) = next.checked_sub(1) {
            let link = self.link(number);
            next = link.next.load(Ordering::Relaxed);
            // SAFETY: a ring is in one list once, and this PE alone takes its own list.
            let consumer = unsafe { Consumer::new(&link.ring) };
            taken.push((link.from.load(Ordering::Relaxed), consumer));
        }
        taken
    }
}
