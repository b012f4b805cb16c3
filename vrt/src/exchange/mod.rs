//! Sparse exchange: everybody sends to a few, and nobody knows from whom it will receive.
//!
//! [`SparseExchange::sparse_exchange`] takes messages with their targets, and gives those that
//! others have sent here. Who sends to whom may differ each time. What a program would do with an
//! all-to-all of sizes and one of data is done by one of the protocols of Hoefler, Siebert and
//! Lumsdaine (PPoPP 2010), whose cost grows with the messages and not with the ranks; `--exchange`
//! (`VRT_EXCHANGE`) says which, [`Protocol::Auto`] chooses.
//!
//! ```
//! use vrt::exchange::SparseExchange;
//! use vrt::traits::*;
//!
//! vrt::run_local(5, |world| {
//!     let me = world.rank();
//!     // Everybody sends to rank 2, and to its right neighbour twice.
//!     let right = (me + 1) % world.size();
//!     let messages = [(2, vec![me]), (right, vec![10, me]), (right, vec![])];
//!     let came = world.sparse_exchange(&messages);
//!     // They are ordered by source, those of one source as they were sent.
//!     let left = (me + world.size() - 1) % world.size();
//!     let from_left: Vec<_> = came.iter().filter(|(source, _)| *source == left).collect();
//!     assert_eq!(from_left[from_left.len() - 2].1, [10, left]);
//!     assert_eq!(came.len(), if me == 2 { 7 } else { 2 });
//! });
//! ```
//!
//! | file | subject |
//! |---|---|
//! | `rank` | ranks as those who exchange |

mod rank;

use std::future::Future;

pub use vrt_core::exchange::{
    LogGp, OutOfRange, PCX_ENTRY, PEX_ENTRY, Protocol, UnknownProtocol, list,
};

use crate::datatype::{Equivalence, UncommittedDatatype, wire};
use crate::error::{ErrorKind, refuse};
use crate::operation::block_on_at;
use crate::operation::site;
use crate::operation::{Site, background};
use crate::topology::{Communicator, Rank};
use rank::{RankParty, Values};
use vrt_core::comm::CommunicatorHandle;
use vrt_core::exchange::{Exchanges, run};
use vrt_core::pe;

/// Sparse exchange among the ranks of a communicator.
///
/// # Examples
///
/// ```
/// use vrt::traits::*;
///
/// vrt::run_local(4, |world| {
///     // Each rank has a value for its right neighbour, which does not know that.
///     let (me, right) = (world.rank(), (world.rank() + 1) % 4);
///     let came = world.sparse_exchange(&[(right, [10 * me])]);
///     let left = (me + 3) % 4;
///     assert_eq!(came, [(left, vec![10 * left])]);
/// });
/// ```
pub trait SparseExchange: Communicator {
    /// Sends each message to its target, and gives those that others have sent to this rank, with
    /// their sources: by source, those of one source in the order sent. Collective; ranks without
    /// messages call it too. A target may be the rank itself, and there may be several messages
    /// for one target.
    ///
    /// The job's protocol is used (`--exchange`).
    ///
    /// # Panics
    /// When a target is no rank, on an intercommunicator, and when a message that comes is of
    /// another type.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     // Rank 0 has no messages, the others have one of different lengths for rank 0.
    ///     let me = world.rank();
    ///     let mine = if me > 0 { vec![(0, vec![me; me as usize])] } else { vec![] };
    ///     let came = world.sparse_exchange(&mine);
    ///     assert_eq!(came, if me == 0 { vec![(1, vec![1]), (2, vec![2, 2])] } else { vec![] });
    /// });
    /// ```
    #[track_caller]
    fn sparse_exchange<T: Equivalence, B: AsRef<[T]>>(
        &self,
        messages: &[(Rank, B)],
    ) -> Vec<(Rank, Vec<T>)> {
        let site = site!("sparse_exchange");
        let exchange = exchange(self.as_handle(), job_protocol(), messages, site);
        block_on_at(exchange, site)
    }

    /// [`sparse_exchange`](Self::sparse_exchange) by a protocol, which is the same for all ranks.
    ///
    /// # Panics
    /// As there.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::exchange::Protocol;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let (me, other) = (world.rank(), 1 - world.rank());
    ///     let came = world.sparse_exchange_by(Protocol::Nbx, &[(other, [me])]);
    ///     assert_eq!(came, [(other, vec![other])]);
    /// });
    /// ```
    #[track_caller]
    fn sparse_exchange_by<T: Equivalence, B: AsRef<[T]>>(
        &self,
        protocol: Protocol,
        messages: &[(Rank, B)],
    ) -> Vec<(Rank, Vec<T>)> {
        let site = site!("sparse_exchange_by");
        let exchange = exchange(self.as_handle(), protocol, messages, site);
        block_on_at(exchange, site)
    }

    /// The async twin of [`sparse_exchange`](Self::sparse_exchange). It has a copy of the messages;
    /// dropped early, it goes on, and what comes for this rank is dropped.
    ///
    /// # Panics
    /// As there.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let (me, other) = (world.rank(), 1 - world.rank());
    ///     let came = vrt::block_on(world.sparse_exchange_async(&[(other, [me])]));
    ///     assert_eq!(came, [(other, vec![other])]);
    /// });
    /// ```
    #[track_caller]
    fn sparse_exchange_async<T: Equivalence + 'static, B: AsRef<[T]>>(
        &self,
        messages: &[(Rank, B)],
    ) -> impl Future<Output = Vec<(Rank, Vec<T>)>> {
        let site = site!("sparse_exchange_async");
        exchange_apart(self.as_handle(), job_protocol(), messages, site)
    }

    /// The async twin of [`sparse_exchange_by`](Self::sparse_exchange_by), as
    /// [`sparse_exchange_async`](Self::sparse_exchange_async).
    ///
    /// # Panics
    /// As there.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::exchange::Protocol;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let (me, other) = (world.rank(), 1 - world.rank());
    ///     let came = vrt::block_on(world.sparse_exchange_by_async(Protocol::Pex, &[(other, [me])]));
    ///     assert_eq!(came, [(other, vec![other])]);
    /// });
    /// ```
    #[track_caller]
    fn sparse_exchange_by_async<T: Equivalence + 'static, B: AsRef<[T]>>(
        &self,
        protocol: Protocol,
        messages: &[(Rank, B)],
    ) -> impl Future<Output = Vec<(Rank, Vec<T>)>> {
        let site = site!("sparse_exchange_by_async");
        exchange_apart(self.as_handle(), protocol, messages, site)
    }
}

impl<C: Communicator + ?Sized> SparseExchange for C {}

fn job_protocol() -> Protocol {
    pe::with(|pe| pe.engine.extension::<Exchanges>().protocol)
}

/// Checks that messages can be sent.
fn check<B>(comm: &CommunicatorHandle, messages: &[(Rank, B)], site: Site) {
    assert!(
        comm.remote.is_none(),
        "rank {} in {site}: an intercommunicator has no sparse exchange",
        comm.rank
    );
    if let Some((to, _)) = messages.iter().find(|(to, _)| !(0..comm.size).contains(to)) {
        let (what, rank, size) = ("target", *to, comm.size as usize);
        refuse(ErrorKind::RankOutOfRange { what, rank, size }, site);
    }
}

async fn exchange<T: Equivalence, B: AsRef<[T]>>(
    comm: &CommunicatorHandle,
    protocol: Protocol,
    messages: &[(Rank, B)],
    site: Site,
) -> Vec<(Rank, Vec<T>)> {
    check(comm, messages, site);
    let packed = messages.iter().map(|(to, values)| (*to, wire::outgoing(values.as_ref())));
    exchange_bytes(comm, protocol, packed.collect(), site).await
}

/// [`exchange`] that has all that it uses.
fn exchange_apart<T: Equivalence + 'static, B: AsRef<[T]>>(
    comm: &CommunicatorHandle,
    protocol: Protocol,
    messages: &[(Rank, B)],
    site: Site,
) -> impl Future<Output = Vec<(Rank, Vec<T>)>> + use<T, B> {
    check(comm, messages, site);
    let packed = messages.iter().map(|(to, values)| (*to, wire::outgoing_apart(values.as_ref())));
    let (comm, packed) = (comm.clone(), packed.collect());
    background(async move { exchange_bytes(&comm, protocol, packed, site).await })
}

async fn exchange_bytes<T: Equivalence>(
    comm: &CommunicatorHandle,
    protocol: Protocol,
    packed: Vec<(Rank, wire::Outgoing)>,
    site: Site,
) -> Vec<(Rank, Vec<T>)> {
    let signature = T::equivalent_datatype().datatype_ref().signature();
    let party = RankParty::begin(comm, signature, site).await;
    let bytes: Vec<(usize, &[u8])> =
        packed.iter().map(|(to, data)| (*to as usize, data.bytes())).collect();
    let mut inbox = Values::<T>::new();
    run::run(&party, protocol, &bytes, &mut inbox).await;
    // SAFETY: the exchange is over, so all its receives are.
    unsafe { inbox.into_messages(site) }
}
