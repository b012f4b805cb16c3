//! The receiving ends of a PE's rings, and which of them it looks at: all, or with many of them those that are
//! [marked](vrt_shm::Doorbell). So what it costs to find work grows with the rings that have some.

use vrt_shm::Doorbell;

use crate::net::rings::Receiver;

/// Up to so many rings are looked at one by one: a look at a quiet ring takes a nanosecond, a mark costs its sender some
/// twenty.
const FEW: usize = 16;

/// The rings through which a PE receives.
#[derive(Debug)]
pub(crate) struct Receivers {
    /// Never reallocated: a signal handler reads it.
    rings: Vec<Receiver>,
    doorbell: &'static Doorbell,
    marked: Option<Box<Marked>>,
}

/// What is known of many rings.
#[derive(Debug)]
struct Marked {
    /// The rings of each mark, by their places.
    of_mark: [Vec<u32>; u64::BITS as usize],
    /// Marks of rings that have not been emptied.
    left: u64,
    /// Marks of rings of which something was taken since the last release.
    taken: u64,
}

impl Receivers {
    /// For a PE with this doorbell, which has no rings yet, and never more than this many.
    pub(crate) fn new(doorbell: &'static Doorbell, most: usize) -> Receivers {
        Receivers { rings: Vec::with_capacity(most), doorbell, marked: None }
    }

    /// Takes in rings that were opened to the PE.
    pub(crate) fn add(&mut self, rings: Vec<Receiver>) {
        debug_assert!(self.rings.len() + rings.len() <= self.rings.capacity());
        let known = self.rings.len();
        self.rings.extend(rings);
        match &mut self.marked {
            // They may have been sent to before their senders marked anything.
            Some(marked) => marked.add(&self.rings[known..], known),
            None if self.rings.len() > FEW && self.doorbell.ask_for_marks() => {
                let mut marked = Marked { of_mark: [const { Vec::new() }; 64], left: 0, taken: !0 };
                marked.add(&self.rings, 0);
                self.marked = Some(Box::new(marked));
            }
            None => {}
        }
    }

    /// Whether there are any.
    pub(crate) fn are_there(&self) -> bool {
        !self.rings.is_empty()
    }

    /// Whether something has come.
    #[inline(always)]
    pub(crate) fn are_ready(&self) -> bool {
        match &self.marked {
            None => self.rings.iter().any(|(_, ring)| ring.is_ready()),
            Some(marked) => marked.left != 0 || self.doorbell.has_marks(),
        }
    }

    /// Calls `drain` for all rings that may have something. It takes at most `most` packets, and says how many; those
    /// that are left are there for the next call. Returns how many were taken.
    #[inline(always)]
    pub(crate) fn drain(
        &mut self,
        most: usize,
        mut drain: impl FnMut(&mut Receiver) -> usize,
    ) -> usize {
        if self.marked.is_some() {
            return self.drain_marked(most, &mut drain);
        }
        let mut taken = 0;
        for ring in &mut self.rings {
            taken += drain(ring);
        }
        taken
    }

    /// A function of its own, so that the loop of a PE with few rings is short.
    #[inline(never)]
    fn drain_marked(
        &mut self,
        most: usize,
        drain: &mut impl FnMut(&mut Receiver) -> usize,
    ) -> usize {
        let Some(marked) = &mut self.marked else { return 0 };
        let mut looked_at = std::mem::take(&mut marked.left) | self.doorbell.take_marks();
        marked.taken |= looked_at;
        let mut taken = 0;
        while looked_at != 0 {
            let mark = looked_at.trailing_zeros() as usize;
            looked_at &= looked_at - 1;
            for place in &marked.of_mark[mark] {
                let packets = drain(&mut self.rings[*place as usize]);
                taken += packets;
                marked.left |= u64::from(packets == most) << mark;
            }
        }
        taken
    }

    /// Gives all room in the rings back to the senders.
    pub(crate) fn release(&mut self) {
        let Some(marked) = &mut self.marked else {
            return self.rings.iter_mut().for_each(|(_, ring)| ring.release());
        };
        let mut taken = std::mem::take(&mut marked.taken);
        while taken != 0 {
            let mark = taken.trailing_zeros() as usize;
            taken &= taken - 1;
            for place in &marked.of_mark[mark] {
                self.rings[*place as usize].1.release();
            }
        }
    }
}

impl Marked {
    /// Rings that lie at `first` and the following places, and are to be looked at.
    fn add(&mut self, rings: &[Receiver], first: usize) {
        for (place, (sender, _)) in (first..).zip(rings) {
            let mark = Doorbell::mark_of(*sender);
            self.of_mark[mark].push(place as u32);
            self.left |= 1 << mark;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::rings::Sender;
    use crate::net::shared::Shared;

    const SENDERS: u32 = 70;

    /// Opens a ring of each sender below this number to PE 0.
    fn open(
        shared: Shared,
        receivers: &mut Receivers,
        senders: std::ops::Range<u32>,
    ) -> Vec<Sender> {
        // SAFETY: each ring is opened once.
        let opened = senders.map(|from| unsafe { shared.open_ring(from, 0) }).collect();
        // SAFETY: the test is PE 0.
        receivers.add(unsafe { shared.take_new_rings(0) });
        opened
    }

    fn send(shared: Shared, (from, ring): (u32, &mut Sender)) {
        assert!(ring.send(|cell| cell.0[0] = from as u8, &[]));
        assert_eq!(shared.pe(0).doorbell.ring_for(from), None);
    }

    /// Who sent what is there, with at most two packets of a ring at once.
    fn take(receivers: &mut Receivers) -> Vec<u8> {
        let mut got = Vec::new();
        receivers.drain(2, |(_, ring)| {
            let before = got.len();
            while got.len() - before < 2
                && let Some(from) = ring.receive(|cell, _| cell.0[0])
            {
                got.push(from);
            }
            got.len() - before
        });
        got.sort_unstable();
        got
    }

    #[test]
    fn nothing_is_overlooked_while_rings_become_many() {
        let shared = Shared::map(SENDERS as usize + 1, 1, SENDERS as usize + 1).unwrap();
        let mut receivers = Receivers::new(&shared.pe(0).doorbell, SENDERS as usize);
        let few = FEW as u32 + 1;
        let mut rings = open(shared, &mut receivers, 1..few);
        assert!(receivers.marked.is_none() && receivers.are_there() && !receivers.are_ready());
        // Sent without a mark, by senders that are many together with the others.
        send(shared, (3, &mut rings[2]));
        rings.extend(open(shared, &mut receivers, few..SENDERS + 1));
        assert!(receivers.marked.is_some() && receivers.are_ready());
        assert_eq!(take(&mut receivers), [3]);
        assert!(!receivers.are_ready());
        // 1 and 65 have the same mark; of three packets one is left for the next time.
        for from in [1, 65, 40, 40, 40] {
            send(shared, (from, &mut rings[from as usize - 1]));
        }
        assert_eq!(take(&mut receivers), [1, 40, 40, 65]);
        assert!(receivers.are_ready());
        assert_eq!(take(&mut receivers), [40]);
        assert_eq!(take(&mut receivers), [0u8; 0]);
        receivers.release();
        // SAFETY: nobody uses it any more.
        unsafe { shared.unmap() };
    }
}
