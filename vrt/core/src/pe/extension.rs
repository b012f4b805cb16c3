//! What works on a PE beside its core: migration, collective operations, windows, balancing.
//!
//! The core knows none of them. Each is an [`Extension`]: a state in an entry of the table, and handlers for the
//! packets and parcels of its kinds and for events on the PE. The kinds of messages themselves are not in the table:
//! those are the core's `match`.
//!
//! A handler gets the whole [`Engine`], which consists of the core and the table, and separates them with
//! [`Engine::part`]: then it can use the core while it holds its own state. A handler that calls another extension
//! passes it the whole engine.

use std::any::{Any, TypeId};

use crate::cycles;
use crate::net::parcel::{Parcel, TOPICS};
use crate::net::{KINDS, Packet};
use crate::pe::core::{Core, Engine, ExtensionEntry, Extensions, Handlers};
use crate::pe::rank_state::RankState;

/// Something that works on a PE beside its core.
pub trait Extension: Any {
    /// Its entry in the table: a number below 8, unique among the extensions.
    const INDEX: usize;
    /// Its handlers.
    const HANDLERS: Handlers;
}

/// What is in an entry that nobody has.
struct Nobody;

impl ExtensionEntry {
    fn with<T: Any>(state: T) -> ExtensionEntry {
        ExtensionEntry { of: TypeId::of::<T>(), state: Box::new(state) }
    }

    #[inline(always)]
    fn get<T: Any>(&mut self) -> Option<&mut T> {
        if self.of != TypeId::of::<T>() {
            return None;
        }
        // SAFETY: `with`, which alone makes an entry, has noted the type of the state.
        Some(unsafe { &mut *(&raw mut *self.state).cast::<T>() })
    }
}

impl Extensions {
    /// No extensions: the PE panics if something arrives for one.
    pub fn none() -> Extensions {
        Extensions {
            entries: std::array::from_fn(|_| ExtensionEntry::with(Nobody)),
            handlers: Vec::new(),
            packets: [not_expected; KINDS],
            parcels: [not_expected_parcel; TOPICS],
        }
    }

    /// Adds an extension.
    ///
    /// # Panics
    /// If its index, or a kind of packet or parcel, belongs to another one.
    pub fn with<T: Extension>(mut self, state: T) -> Extensions {
        let name = std::any::type_name::<T>();
        let free = self.entries[T::INDEX].get::<Nobody>().is_some();
        assert!(free, "{name} has the index of another extension");
        self.entries[T::INDEX] = ExtensionEntry::with(state);
        for (kind, take) in T::HANDLERS.packets {
            let known = self.handlers.iter().flat_map(|it| it.packets).any(|(of, _)| of == kind);
            assert!(!known, "{name} takes {kind:?} packets, which are another extension's");
            self.packets[*kind as usize] = *take;
        }
        for (topic, take) in T::HANDLERS.parcels {
            let known = self.handlers.iter().flat_map(|it| it.parcels).any(|(of, _)| of == topic);
            assert!(!known, "{name} takes {topic:?} parcels, which are another extension's");
            self.parcels[*topic as usize] = *take;
        }
        self.handlers.push(T::HANDLERS);
        self
    }

    #[inline(always)]
    fn get<T: Extension>(&mut self) -> &mut T {
        match self.entries[T::INDEX].get() {
            Some(state) => state,
            None => not_there(std::any::type_name::<T>()),
        }
    }
}

impl Engine {
    /// An extension, and the core beside it.
    ///
    /// # Panics
    /// If this PE was made without that extension.
    #[inline(always)]
    pub fn part<T: Extension>(&mut self) -> (&mut T, &mut Core) {
        (self.extensions.get(), &mut self.core)
    }

    /// An extension.
    ///
    /// # Panics
    /// If this PE was made without it.
    #[inline(always)]
    pub fn extension<T: Extension>(&mut self) -> &mut T {
        self.extensions.get()
    }

    /// An extension that this PE may have been made without.
    pub fn find<T: Extension>(&mut self) -> Option<&mut T> {
        self.extensions.entries[T::INDEX].get()
    }

    /// Hands a packet to the extension that takes its kind.
    ///
    /// # Safety
    /// `payload` is readable for `packet.payload()` bytes.
    pub(super) unsafe fn hand_on(&mut self, packet: &Packet, payload: *const u8) {
        let take = self.extensions.packets[packet.kind as usize];
        // SAFETY: as the caller promises.
        unsafe { take(self, packet, payload) };
    }

    /// Hands a parcel to the extension that takes its topic.
    pub(super) fn hand_on_parcel(&mut self, parcel: &Parcel) {
        self.extensions.parcels[parcel.topic as usize](self, parcel);
    }

    /// A rank has ended, or begins again from its state: nothing is left of what it has made.
    pub(crate) fn rank_over(&mut self, rank: u32, state: &mut RankState) {
        state.forget_what_it_made();
        self.for_each(|handlers| handlers.rank_over, |engine, heard| heard(engine, rank, state));
    }

    pub(super) fn rank_ended(&mut self, rank: u32) {
        self.for_each(|handlers| handlers.rank_ended, |engine, heard| heard(engine, rank));
    }

    pub(super) fn memory_gone(&mut self, rank: u32) {
        self.for_each(|handlers| handlers.memory_gone, |engine, heard| heard(engine, rank));
    }

    /// Does what is due.
    #[cold]
    #[inline(never)]
    pub(super) fn do_what_is_due(&mut self) {
        self.core.never_due();
        self.for_each(|handlers| handlers.due, |engine, due| due(engine));
    }

    /// Has sent what extensions have gathered.
    #[inline(always)]
    pub(crate) fn send_gathered(&mut self) {
        if self.core.has_gathered {
            self.for_each(|handlers| handlers.send_gathered, |engine, send| send(engine));
        }
    }

    fn for_each<F: Copy>(
        &mut self,
        which: impl Fn(&Handlers) -> Option<F>,
        mut call: impl FnMut(&mut Engine, F),
    ) {
        for i in 0..self.extensions.handlers.len() {
            if let Some(handler) = which(&self.extensions.handlers[i]) {
                call(self, handler);
            }
        }
    }
}

/// A time that is never near: half the cycle counter's range away.
const NEVER: u64 = 1 << 63;

impl Core {
    /// Has [`due`](Handlers::due) called when the cycle counter reaches `stamp`, or earlier.
    pub fn call_at(&mut self, stamp: u64) {
        let now = cycles::now();
        if (stamp.wrapping_sub(now) as i64) < self.due.wrapping_sub(now) as i64 {
            self.due = stamp;
        }
    }

    /// Has it called as soon as no rank runs.
    pub(crate) fn call_soon(&mut self) {
        self.call_at(cycles::now());
    }

    fn never_due(&mut self) {
        self.due = cycles::now().wrapping_add(NEVER - 1);
    }

    /// Whether it is to be called now.
    #[inline(always)]
    pub(super) fn is_due(&self, now: u64) -> bool {
        now.wrapping_sub(self.due) < NEVER
    }

    /// How long it is until then, for a PE that is about to sleep.
    pub(super) fn until_due(&self) -> Option<std::time::Duration> {
        let now = cycles::now();
        let cycles = self.due.wrapping_sub(now);
        if self.is_due(now) {
            return Some(std::time::Duration::ZERO);
        }
        let near = cycles < NEVER / 2;
        near.then(|| std::time::Duration::from_secs_f64(cycles as f64 / self.cycles_per_second()))
    }
}

#[cold]
fn not_there(name: &str) -> ! {
    panic!("this PE was made without {name}")
}

/// # Safety
/// None: it touches nothing.
unsafe fn not_expected(engine: &mut Engine, packet: &Packet, _: *const u8) {
    unreachable!("nothing on PE {} takes {:?} packets", engine.id, packet.kind)
}

fn not_expected_parcel(engine: &mut Engine, parcel: &Parcel) {
    unreachable!("nothing on PE {} takes {:?} parcels", engine.id, parcel.topic)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::Kind;

    struct Counter(u32);

    impl Extension for Counter {
        const INDEX: usize = 7;
        const HANDLERS: Handlers =
            Handlers { packets: &[(Kind::CountUp, not_expected)], ..Handlers::NONE };
    }

    struct Rival;

    impl Extension for Rival {
        const INDEX: usize = 6;
        const HANDLERS: Handlers = Counter::HANDLERS;
    }

    struct Squatter;

    impl Extension for Squatter {
        const INDEX: usize = Counter::INDEX;
        const HANDLERS: Handlers = Handlers::NONE;
    }

    #[test]
    fn an_extension_finds_its_own_state() {
        let mut extensions = Extensions::none().with(Counter(3));
        extensions.get::<Counter>().0 += 1;
        assert_eq!(extensions.get::<Counter>().0, 4);
    }

    #[test]
    #[should_panic(expected = "takes CountUp packets, which are another extension's")]
    fn a_kind_of_packet_has_one_extension() {
        Extensions::none().with(Counter(0)).with(Rival);
    }

    #[test]
    #[should_panic(expected = "has the index of another extension")]
    fn an_index_has_one_extension() {
        Extensions::none().with(Counter(0)).with(Squatter);
    }
}
