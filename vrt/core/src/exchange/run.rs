//! The protocols, each implemented once for any [`Party`].
//!
//! | protocol | who learns what | correct because |
//! |---|---|---|
//! | PEX | every receiver the sizes of all its messages, by an all-to-all | it receives exactly those |
//! | PCX | every receiver the number of its messages, by a reduce-scatter | it receives that many |
//! | RSX | the same, from a counter that senders increment before a barrier | it receives that many |
//! | NBX | no rank learns anything: a synchronous send ends when its receive has begun, and a rank enters the barrier when its sends have ended | when the barrier has completed, everything sent is being received |
//!
//! Source: Hoefler, Siebert, Lumsdaine, *Scalable Communication Protocols for Dynamic Sparse Data
//! Exchange*, PPoPP 2010, section 3. NBX by node: Geyko, Collom, Schafer, Bridges, Bienz, *A More
//! Scalable Sparse Dynamic Data Exchange*, arXiv 2308.13869, with the placement of partners looked
//! up when messages are sent, because ranks move.
//!
//! Messages from one rank to another arrive in the given order; a rank's messages to itself are
//! copied.

use std::pin::pin;

use crate::exchange::Protocol;
use crate::exchange::party::{All, Bytes, Inbox, Party, Sent, found_before};

/// Steps of an exchange whose messages must not be mixed.
const DATA: u32 = 0;
const BUNDLES: u32 = 1;
const PASSED_ON: u32 = 2;

/// Sends messages and receives those that others send, by a protocol that must be the same on all
/// ranks.
///
/// Targets are in range.
pub async fn run<P: Party>(
    party: &P,
    protocol: Protocol,
    messages: &[(usize, &[u8])],
    inbox: &mut impl Inbox,
) {
    let protocol = match protocol {
        Protocol::Auto => choose(party, messages.len()).await,
        protocol => protocol,
    };
    let me = party.me();
    if protocol == Protocol::NbxByNode && party.nodes() > 1 {
        return nbx_by_node(party, messages, inbox).await;
    }
    for (_, data) in messages.iter().filter(|(to, _)| *to == me) {
        inbox.put(me, data);
    }
    let others: Vec<(usize, &[u8])> =
        messages.iter().copied().filter(|(to, _)| *to != me).collect();
    match protocol {
        Protocol::Pex => pex(party, &others, inbox).await,
        Protocol::Pcx => pcx(party, &others, inbox).await,
        Protocol::Rsx => rsx(party, &others, inbox).await,
        // On one node there is nothing to put together.
        Protocol::Auto | Protocol::Nbx | Protocol::NbxByNode => {
            nbx(party, DATA, &others, inbox).await;
        }
    }
}

/// The fastest protocol for the pending messages of all ranks. They agree on k only if it matters.
async fn choose<P: Party>(party: &P, messages: usize) -> Protocol {
    let (model, size) = (party.parameters(), party.size());
    match model.choose_for_any_k(size) {
        Some(protocol) => protocol,
        None => model.choose(size, party.maximum(messages as u64).await as usize),
    }
}

fn start<'a, P: Party>(
    party: &P,
    step: u32,
    messages: &[(usize, &'a [u8])],
    how: Sent,
) -> All<P::Sending<'a>> {
    All(messages.iter().map(|(to, data)| party.send(step, *to, data, how)).collect())
}

/// What a rank tells another about what it will send: 0 for nothing, 2 n for n messages, and
/// 2 b + 1 for a single one of b bytes, whose receive can begin before it comes.
fn announcement(before: u64, bytes: usize) -> u64 {
    match before {
        0 => 2 * bytes as u64 + 1,
        one if one % 2 == 1 => 4,
        several => several + 2,
    }
}

async fn pex<P: Party>(party: &P, messages: &[(usize, &[u8])], inbox: &mut impl Inbox) {
    let mut announced = vec![0u64; party.size()];
    for (to, data) in messages {
        announced[*to] = announcement(announced[*to], data.len());
    }
    let coming = party.all_to_all(&announced).await;
    let known: Vec<(usize, usize)> = (coming.iter().enumerate())
        .filter(|(_, what)| *what % 2 == 1)
        .map(|(from, what)| (from, (what / 2) as usize))
        .collect();
    // SAFETY: messages are received into the rooms.
    let rooms = unsafe { inbox.rooms(&known) }.into_iter();
    let receives =
        known.iter().zip(rooms).map(|((from, _), room)| party.receive(DATA, *from, room));
    let receives = All(receives.collect());
    let sends = start(party, DATA, messages, Sent::Standard);
    receives.await;
    for (from, what) in coming.iter().enumerate().filter(|(_, what)| *what % 2 == 0) {
        for _ in 0..what / 2 {
            let found = party.find(DATA, Some(from)).await;
            // SAFETY: the message is received into the room.
            let room = unsafe { inbox.room(from, found.bytes) };
            party.take(found, room).await;
        }
    }
    sends.await;
}

async fn pcx<P: Party>(party: &P, messages: &[(usize, &[u8])], inbox: &mut impl Inbox) {
    let mut counts = vec![0u32; party.size()];
    for (to, _) in messages {
        counts[*to] += 1;
    }
    let coming = party.reduce_scatter(&counts).await;
    send_and_receive(party, messages, u64::from(coming), inbox).await;
}

async fn rsx<P: Party>(party: &P, messages: &[(usize, &[u8])], inbox: &mut impl Inbox) {
    let mut targets: Vec<usize> = messages.iter().map(|(to, _)| *to).collect();
    targets.sort_unstable();
    let counts = targets.chunk_by(|a, b| a == b).map(|same| (same[0], same.len() as u64));
    party.count_up(counts).await;
    party.barrier().await;
    send_and_receive(party, messages, party.counted(), inbox).await;
}

/// The second phase, for ranks that know how many messages will arrive.
async fn send_and_receive<P: Party>(
    party: &P,
    messages: &[(usize, &[u8])],
    coming: u64,
    inbox: &mut impl Inbox,
) {
    let sends = start(party, DATA, messages, Sent::Standard);
    for _ in 0..coming {
        let found = party.find(DATA, None).await;
        // SAFETY: the message is received into the room.
        let room = unsafe { inbox.room(found.source, found.bytes) };
        party.take(found, room).await;
    }
    sends.await;
}

async fn nbx<P: Party>(party: &P, step: u32, messages: &[(usize, &[u8])], inbox: &mut impl Inbox) {
    let end = async {
        start(party, step, messages, Sent::Synchronous).await;
        party.barrier().await;
    };
    let mut end = pin!(end);
    // A receive that has begun is finished before the barrier is looked at again.
    while let Some(found) = found_before(party.find(step, None), end.as_mut()).await {
        // SAFETY: the message is received into the room.
        let room = unsafe { inbox.room(found.source, found.bytes) };
        party.take(found, room).await;
    }
}

/// NBX among nodes, then inside each of them.
///
/// Messages to ranks of another node are sent to one of those ranks, in one bundle, and from there
/// to the others. Each sender looks up the placement of ranks for itself. It may have changed when
/// the bundle arrives: then a part is forwarded farther than necessary.
async fn nbx_by_node<P: Party>(party: &P, messages: &[(usize, &[u8])], inbox: &mut impl Inbox) {
    let me = party.me();
    let here = party.node_of(me);
    // By node where it pays, by target where there is no node between.
    let mut sorted: Vec<(usize, usize, &[u8])> = messages
        .iter()
        .map(|(to, data)| match party.node_of(*to) {
            node if node == here || *to == me => (party.nodes() + to, *to, *data),
            node => (node, *to, *data),
        })
        .collect();
    sorted.sort_by_key(|(group, _, _)| *group);
    let mut bundles: Vec<(usize, Vec<u8>)> = Vec::new();
    for group in sorted.chunk_by(|a, b| a.0 == b.0) {
        // Senders differ in whom they choose, so that not one does all the work of its node.
        let (_, through, _) = group[me % group.len()];
        let mut bundle = Vec::new();
        for (_, to, data) in group {
            push_part(&mut bundle, *to, me, data);
        }
        bundles.push((through, bundle));
    }
    let mut came = Bytes::default();
    exchange_bundles(party, BUNDLES, &bundles, &mut came).await;

    let mut onward: Vec<(usize, usize, &[u8])> = Vec::new();
    for (_, bundle) in &came.0 {
        for (to, source, data) in parts(bundle) {
            match to {
                _ if to == me => inbox.put(source, data),
                _ => onward.push((to, source, data)),
            }
        }
    }
    onward.sort_by_key(|(to, _, _)| *to);
    let mut bundles: Vec<(usize, Vec<u8>)> = Vec::new();
    for same in onward.chunk_by(|a, b| a.0 == b.0) {
        let mut bundle = Vec::new();
        for (to, source, data) in same {
            push_part(&mut bundle, *to, *source, data);
        }
        bundles.push((same[0].0, bundle));
    }
    let mut came = Bytes::default();
    exchange_bundles(party, PASSED_ON, &bundles, &mut came).await;
    for (_, bundle) in &came.0 {
        for (_, source, data) in parts(bundle) {
            inbox.put(source, data);
        }
    }
}

async fn exchange_bundles<P: Party>(
    party: &P,
    step: u32,
    bundles: &[(usize, Vec<u8>)],
    came: &mut Bytes,
) {
    let me = party.me();
    let mut others: Vec<(usize, &[u8])> = Vec::new();
    for (to, bundle) in bundles {
        match *to {
            to if to == me => came.put(me, bundle),
            to => others.push((to, bundle)),
        }
    }
    nbx(party, step, &others, came).await;
}

/// Bytes in front of a part: target, source, length.
const PART_HEADER: usize = 16;

fn push_part(bundle: &mut Vec<u8>, to: usize, source: usize, data: &[u8]) {
    bundle.extend_from_slice(&(to as u32).to_le_bytes());
    bundle.extend_from_slice(&(source as u32).to_le_bytes());
    bundle.extend_from_slice(&(data.len() as u64).to_le_bytes());
    bundle.extend_from_slice(data);
}

/// The parts of a bundle: target, source, data.
fn parts(mut bundle: &[u8]) -> impl Iterator<Item = (usize, usize, &[u8])> {
    std::iter::from_fn(move || {
        let (head, rest) = bundle.split_first_chunk::<PART_HEADER>()?;
        let half = |i: usize| u32::from_le_bytes([head[i], head[i + 1], head[i + 2], head[i + 3]]);
        let len = u64::from(half(8)) | u64::from(half(12)) << 32;
        let (data, rest) = rest.split_at(len as usize);
        bundle = rest;
        Some((half(0) as usize, half(4) as usize, data))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn announcements_tell_one_message_from_several() {
        assert_eq!(announcement(0, 0), 1);
        assert_eq!(announcement(0, 10), 21);
        assert_eq!(announcement(21, 5), 4);
        assert_eq!(announcement(4, 5), 6);
    }

    #[test]
    fn bundles_keep_their_parts() {
        let mut bundle = Vec::new();
        push_part(&mut bundle, 7, 3, b"abc");
        push_part(&mut bundle, 70_000, 0, b"");
        let all: Vec<_> = parts(&bundle).collect();
        assert_eq!(all, [(7, 3, &b"abc"[..]), (70_000, 0, b"")]);
    }
}
