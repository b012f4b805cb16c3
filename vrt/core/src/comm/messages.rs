//! Numbers from ranks to others that do not know of them: each rank learns by a reduction how many messages come.

use crate::comm::algorithms::{Collective, In, Out};
use crate::comm::handle::CommunicatorHandle;
use crate::comm::operator::{Op, Operator};
use crate::comm::reduce_op::ReduceOp;
use crate::error::{Error, Site};
use crate::layout::{Scalar, Signature};
use crate::mailbox::{ANY, Pattern};
use crate::operation::{self, Pending, Ticket};
use crate::pe::{self, Room, Started};

/// The steps of an exchange whose messages must not be mixed with those of the reduction.
const DATA: u32 = 0;

/// Sends numbers to ranks, once to each, and receives those that others send: with the senders, in their order.
/// Collective.
///
/// # Errors
/// Those of [`Collective::reduce_scatter`].
pub(super) async fn exchange(
    comm: &CommunicatorHandle,
    outgoing: Vec<(usize, Vec<i32>)>,
    site: Site,
) -> Result<Vec<(usize, Vec<i32>)>, Error> {
    let coming = count(comm, outgoing.iter().map(|(to, _)| *to), site).await?;
    let collective = Collective::begin(comm, site);
    let sends: Vec<Pending> = outgoing
        .iter()
        .filter_map(|(to, numbers)| {
            let data = In(numbers.as_ptr().cast(), size_of_val(&**numbers), Signature::ANY);
            let message = collective.outbound(DATA, *to, data);
            // SAFETY: O1: `outgoing` is in this future until all sends have ended.
            match pe::with(|pe| unsafe { pe.engine.send(&message) }) {
                Started::Done(_) => None,
                Started::Pending(request, _) => Some(Pending::new(request, site, None)),
            }
        })
        .collect();
    let anyone = Pattern { source: ANY, ..collective.pattern(DATA, 0) };
    let mut came = Vec::new();
    for _ in 0..coming {
        let (message, found) = operation::matched_probe(anyone, site).await;
        let bytes = usize::try_from(found.bytes).unwrap_or_default();
        let mut numbers = vec![0i32; bytes.div_ceil(size_of::<i32>())];
        let room = Room::untyped(numbers.as_mut_ptr().cast(), size_of_val(&*numbers));
        // SAFETY: the numbers are in this future whenever the receive is polled.
        unsafe { operation::receive_matched(Ticket::new(message), room, site) }.await?.fitting()?;
        came.push((usize::try_from(found.source).unwrap_or_default(), numbers));
    }
    for send in sends {
        send.await?;
    }
    came.sort_by_key(|(from, _)| *from);
    Ok(came)
}

/// How many ranks name the calling one.
async fn count(
    comm: &CommunicatorHandle,
    named: impl Iterator<Item = usize>,
    site: Site,
) -> Result<u32, Error> {
    let mut counts = vec![0u32; comm.members.len()];
    for rank in named {
        counts[rank] = counts[rank].saturating_add(1);
    }
    let mut own = 0u32;
    let input = In(counts.as_ptr().cast(), size_of_val(&*counts), Signature::ANY);
    let out = Out((&raw mut own).cast(), size_of::<u32>(), Signature::ANY);
    let sum = ReduceOp::Predefined(Operator { op: Op::Sum, scalar: Scalar::U32 });
    let each = vec![size_of::<u32>(); counts.len()];
    let collective = Collective::begin(comm, site);
    // SAFETY: B1: `counts` and `own` are in this future.
    unsafe { collective.reduce_scatter(&sum, input, &each, out) }.await?;
    Ok(own)
}
