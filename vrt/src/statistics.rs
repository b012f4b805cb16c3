//! What a rank learns about itself.

use vrt_core::comm::Combining;
use vrt_core::migrate::Migration;
use vrt_core::pe;

/// Why the current rank cannot be moved to another PE now, or `None` when it can.
///
/// # Panics
/// Outside of a rank.
///
/// # Examples
///
/// ```
/// vrt::run_local(1, |_| {
///     assert_eq!(vrt::pinned(), None);
///     // An open file belongs to the process.
///     let file = std::fs::File::open("/proc/self/stat").unwrap();
///     assert!(vrt::pinned().is_some());
///     drop(file);
/// });
/// ```
#[track_caller]
#[inline(never)]
pub fn pinned() -> Option<&'static str> {
    let frame = 0u8;
    let frame = (&raw const frame) as usize;
    pe::with(|pe| {
        let (migration, core) = pe.engine.part::<Migration>();
        migration.pinned(core, frame)
    })
}

/// What the runtime has measured of the current rank.
///
/// # Examples
///
/// ```
/// use vrt::traits::*;
///
/// vrt::run_local(2, |world| {
///     let (other, before) = (world.process_at_rank(1 - world.rank()), vrt::statistics());
///     let kept = vec![1.5; 10_000];
///     other.send(&7);
///     other.probe();
///     let after = vrt::statistics();
///     assert!(after.heap_bytes >= before.heap_bytes + 8 * kept.len());
///     assert_eq!((after.pe, after.unexpected_messages), (0, 1));
///     other.receive::<i32>();
/// });
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Statistics {
    /// The PE it is on.
    pub pe: u32,
    /// Seconds it has run.
    pub run_seconds: f64,
    /// Times it was resumed.
    pub switches: u64,
    /// For each rank of the job it has sent to: rank, messages, bytes.
    pub sent: Vec<(u32, u64, u64)>,
    /// Live bytes in its heap.
    pub heap_bytes: usize,
    /// Live blocks in its heap.
    pub heap_blocks: usize,
    /// Communicators that it has made and not dropped. Each window has one, too.
    pub communicators: u32,
    /// Windows that it has made and not dropped.
    pub windows: u32,
    /// Messages that have come for it and that it has not received.
    pub unexpected_messages: usize,
    /// Bytes that those take; `--unexpected` is their limit.
    pub unexpected_bytes: usize,
    /// Groups of ranks that its PE knows of, for the communicators that ranks have made.
    pub groups_of_pe: usize,
}

/// What the runtime has measured of the current rank so far.
///
/// # Panics
/// Outside of a rank.
///
/// # Examples
///
/// ```
/// use vrt::traits::*;
///
/// vrt::run_local(2, |world| {
///     world.process_at_rank(1 - world.rank()).send(&[0u8; 100]);
///     let sent = vrt::statistics().sent;
///     assert!(sent.iter().any(|(to, messages, bytes)| {
///         (*to as i32, *messages, *bytes) == (1 - world.rank(), 1, 100)
///     }));
///     world.any_process().receive_vec::<u8>();
/// });
/// ```
#[track_caller]
pub fn statistics() -> Statistics {
    let (partners, mut statistics) = pe::with(|pe| {
        let cycles = pe.engine.cycles_per_second();
        let id = pe.engine.id();
        let groups_of_pe = pe.engine.extension::<Combining>().groups.made();
        let state = pe.engine.running();
        // SAFETY: the running rank's slot.
        let heap = unsafe { &*(*state.slot).heap.get() };
        let statistics = Statistics {
            pe: id,
            run_seconds: state.counters.run as f64 / cycles,
            switches: state.counters.switches,
            sent: Vec::new(),
            heap_bytes: heap.bytes,
            heap_blocks: heap.blocks,
            communicators: state.owned.communicators,
            windows: state.owned.windows,
            unexpected_messages: state.unexpected.len(),
            unexpected_bytes: state.unexpected_bytes(),
            groups_of_pe,
        };
        (state.peers.iter().count(), statistics)
    });
    // The list is the rank's, so it is allocated here and filled there.
    let mut sent = Vec::with_capacity(partners);
    pe::with(|pe| {
        for (rank, peer) in pe.engine.running().peers.iter().take(partners) {
            sent.push((rank, peer.messages, peer.bytes));
        }
    });
    sent.sort_unstable();
    statistics.sent = sent;
    statistics
}
