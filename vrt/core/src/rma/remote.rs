//! Access to the memory of a rank on another node: the operation is sent as a message to the rank, whose PE executes it
//! and answers.
//!
//! The message is addressed to the rank, not to a PE, so it reaches the rank wherever it has moved. A PE serves one
//! message after another, and executes them by the same atomics as ranks of its own node (`access`): so an access is
//! atomic whichever way it came. A message contains the window and a place in it, never an address, and the place is
//! checked before anything is accessed. The caller waits for the answer: an access is complete when it returns, as
//! inside a node.

#![cfg_attr(
    not(test),
    expect(
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation,
        reason = "elements lie in a window; pieces are shorter than a packet"
    )
)]

use serde::{Deserialize, Serialize};

use crate::comm::operator::Operator;
use crate::error::{Error, Site};
use crate::layout::Signature;
use crate::net::{INLINE, Kind, Packet};
use crate::operation::{Pending, background};
use crate::pe::{self, Engine, Request, Room, Started, WindowPart};
use crate::rma::access::{self, Access, Elsewhere, Target};
use crate::rma::control::LockKind;

/// Most bytes of values in a message or an answer.
const PIECE: usize = 16 << 10;

/// A message: what to do to `count` elements of `each` bytes, `offset` bytes behind the beginning
/// of a rank's part of a window.
#[derive(Debug, Serialize, Deserialize)]
struct Order<'a> {
    /// The window's context.
    window: u32,
    offset: usize,
    count: usize,
    each: usize,
    #[serde(borrow)]
    action: Action<'a>,
}

#[derive(Debug, Serialize, Deserialize)]
enum Action<'a> {
    #[serde(borrow)]
    Put(&'a [u8]),
    Get,
    Accumulate {
        #[serde(borrow)]
        values: &'a [u8],
        operator: Operator,
        fetch: bool,
    },
    CompareAndSwap {
        #[serde(borrow)]
        expected: &'a [u8],
        #[serde(borrow)]
        value: &'a [u8],
    },
    Lock(LockKind),
    Unlock,
}

impl Action<'_> {
    /// Bytes of the answer.
    fn answer_len(&self, elements: usize) -> usize {
        match self {
            Action::Put(_) | Action::Unlock | Action::Accumulate { fetch: false, .. } => 0,
            Action::Get | Action::CompareAndSwap { .. } | Action::Accumulate { .. } => elements,
            Action::Lock(_) => 1,
        }
    }
}

/// [`access::access`] to the memory of a rank of the job that may be on another node.
///
/// The operation is encoded, and the answer arrives in the operation's own memory, so only a poll
/// of the future touches the caller's memory.
///
/// # Errors
/// The rank has no such elements in the window, or another rank polls the future.
///
/// # Safety
/// As there, whenever the future is polled.
pub async unsafe fn access(
    rank: u32,
    window: u32,
    offset: usize,
    count: usize,
    each: usize,
    access: Access,
    site: Site,
) -> Result<(), Error> {
    // SAFETY: `len` bytes from `at` on are inside the elements, which are readable, says the caller.
    let slice = |from: *const u8, at: usize, len: usize| unsafe {
        std::slice::from_raw_parts(from.add(at), len)
    };
    // What is only copied may be cut anywhere.
    let (count, each) = match access {
        Access::Put { .. } | Access::Get { .. } => (count * each, 1),
        Access::Accumulate { .. } | Access::CompareAndSwap { .. } => (count, each),
    };
    let most = (PIECE / each.max(1)).max(1);
    for first in (0..count).step_by(most) {
        let (at, count) = (first * each, most.min(count - first));
        let len = count * each;
        let (action, answer) = match access {
            Access::Put { from } => (Action::Put(slice(from, at, len)), std::ptr::null_mut()),
            Access::Get { to } => (Action::Get, to.wrapping_add(at)),
            Access::Accumulate { from, fetched, operator } => {
                let fetch = !fetched.is_null();
                let answer = if fetch { fetched.wrapping_add(at) } else { fetched };
                (Action::Accumulate { values: slice(from, at, len), operator, fetch }, answer)
            }
            Access::CompareAndSwap { expected, value, before } => {
                let (expected, value) = (slice(expected, at, len), slice(value, at, len));
                (Action::CompareAndSwap { expected, value }, before)
            }
        };
        let order = Order { window, offset: offset + at, count, each, action };
        let came = ask(rank, &order, site).await?;
        if !came.is_empty() && !answer.is_null() {
            // SAFETY: the place of the answer is writable for the elements, says the caller; `ask` returns as many bytes.
            unsafe { std::ptr::copy_nonoverlapping(came.as_ptr(), answer, came.len()) };
        }
    }
    Ok(())
}

/// Tries to lock the memory of a rank on another node.
///
/// # Errors
/// The rank has no such window, or another rank polls the future.
pub async fn try_lock(rank: u32, window: u32, kind: LockKind, site: Site) -> Result<bool, Error> {
    let order = Order { window, offset: 0, count: 0, each: 0, action: Action::Lock(kind) };
    Ok(ask(rank, &order, site).await?.first().is_some_and(|locked| *locked != 0))
}

/// Releases the lock of the memory of a rank on another node.
///
/// # Errors
/// Those of [`try_lock`].
pub async fn unlock(rank: u32, window: u32, site: Site) -> Result<(), Error> {
    let order = Order { window, offset: 0, count: 0, each: 0, action: Action::Unlock };
    ask(rank, &order, site).await.map(|_| ())
}

/// Has an order executed; returns the answer.
async fn ask(rank: u32, order: &Order<'_>, site: Site) -> Result<Vec<u8>, Error> {
    let len = order.action.answer_len(order.count * order.each);
    let bytes = match crate::encoding::encode(order) {
        Ok(bytes) => bytes,
        Err(error) => unreachable!("plain numbers and bytes can be encoded: {error}"),
    };
    let mut answer = vec![0u8; len];
    let to = answer.as_mut_ptr();
    // SAFETY: O1: `answer` is in the heap, and goes with what waits below for the request.
    let started = pe::with(|pe| unsafe { send_order(&mut pe.engine, rank, &bytes, to, len) });
    drop(bytes);
    let (outcome, answer) = match started {
        Started::Done(outcome) => (outcome, answer),
        Started::Pending(request, _) => {
            let pending = Pending::new(request, site, None);
            let (outcome, answer) = background(async move { (pending.await, answer) }).await;
            (outcome?, answer)
        }
    };
    if outcome.is_cancelled() {
        let Order { count, each, offset, .. } = *order;
        return Err(Error::WindowRange { rank, count, each, offset });
    }
    Ok(answer)
}

/// # Safety
/// `answer` is writable for `len` bytes until the request is done.
unsafe fn send_order(
    engine: &mut Engine,
    to: u32,
    bytes: &[u8],
    answer: *mut u8,
    len: usize,
) -> Started {
    let mut request = match len {
        0 => Request::send(),
        _ => Request::receive(Room::untyped(answer, len), None),
    };
    request.outcome.bytes = len as u64;
    let mut packet = Packet::new(Kind::Access, engine.current, to);
    packet.request = engine.running().new_request(request);
    packet.len = bytes.len() as u32;
    if bytes.len() <= INLINE {
        packet.data.0[..bytes.len()].copy_from_slice(bytes);
    }
    // SAFETY: the packet's payload, if it has one, is `bytes`.
    unsafe {
        match engine.shared.location(to).pe() {
            Some(pe) if pe != engine.id => engine.net.send(pe as usize, &packet, bytes.as_ptr()),
            // It has come meanwhile, or is about to.
            _ => access_came(engine, &packet, bytes.as_ptr()),
        }
    }
    match engine.running().take_if_done(packet.request) {
        Some(outcome) => Started::Done(outcome),
        None => Started::pending(packet.request),
    }
}

/// A rank of another node asks for access to the memory of one of this PE's.
///
/// # Safety
/// `payload` is readable for `packet.payload()` bytes.
pub(crate) unsafe fn access_came(engine: &mut Engine, packet: &Packet, payload: *const u8) {
    if engine.rank(packet.to).is_none() {
        // SAFETY: the packet's payload, says the caller.
        return unsafe { engine.pass_on(packet, payload) };
    }
    let len = packet.len as usize;
    let data = if len <= INLINE { packet.data.0.as_ptr() } else { payload };
    // SAFETY: the packet's data, in it or as its payload, has this length.
    let bytes = unsafe { std::slice::from_raw_parts(data, len) };
    let order: Order<'_> = match crate::encoding::decode_borrowed(bytes) {
        Ok(order) => order,
        Err(error) => unreachable!("a PE of this job has encoded it: {error}"),
    };
    let part = engine.rank(packet.to).and_then(|state| state.windows.get(&order.window).copied());
    let Some(part) = part.filter(|part| order.fits(part)) else {
        return engine.send_conflict(packet.from, packet.request, 0, Signature::ANY);
    };
    // SAFETY: W1: the rank is here; `fits` has checked that the elements are in its part.
    let answer = unsafe { order.carry_out(&part) };
    if answer.is_empty() {
        let mut done = Packet::new(Kind::Finished, packet.to, packet.from);
        done.request = packet.request;
        engine.post(&done);
    } else {
        engine.send_result(packet.from, packet.request, answer);
    }
}

impl Order<'_> {
    /// Whether the elements lie in a part of a window, and there are as many values as elements.
    fn fits(&self, part: &WindowPart) -> bool {
        let Some(len) = self.count.checked_mul(self.each) else { return false };
        // Behind the data of the last element there need be nothing.
        let behind = match self.action {
            Action::Accumulate { operator: Operator { scalar, .. }, .. } if self.count > 0 => {
                self.each.saturating_sub(scalar.span())
            }
            _ => 0,
        };
        let inside = self.offset.checked_add(len - behind).is_some_and(|end| end <= part.bytes);
        inside
            && match self.action {
                Action::Put(values) => values.len() == len,
                Action::Get | Action::Lock(_) | Action::Unlock => true,
                Action::Accumulate { values, operator, .. } => {
                    values.len() == len && operator.scalar.extent() == self.each
                }
                Action::CompareAndSwap { expected, value } => {
                    self.count == 1
                        && matches!(self.each, 1 | 2 | 4 | 8)
                        && expected.len() == len
                        && value.len() == len
                }
            }
    }

    /// Does it; gives the answer.
    ///
    /// # Safety
    /// The part is in this node, and the order fits it.
    unsafe fn carry_out(&self, part: &WindowPart) -> Vec<u8> {
        let Order { offset, count, each, ref action, .. } = *self;
        let target = &Target {
            address: Elsewhere::new(part.address),
            len: part.bytes,
            control: Elsewhere::new(part.control),
        };
        let mut answer = vec![0u8; action.answer_len(count * each)];
        let to = answer.as_mut_ptr();
        let what = match *action {
            Action::Put(values) => Access::Put { from: values.as_ptr() },
            Action::Get => Access::Get { to },
            Action::Accumulate { values, operator, fetch } => {
                let fetched = if fetch { to } else { std::ptr::null_mut() };
                Access::Accumulate { from: values.as_ptr(), fetched, operator }
            }
            Action::CompareAndSwap { expected, value } => Access::CompareAndSwap {
                expected: expected.as_ptr(),
                value: value.as_ptr(),
                before: to,
            },
            Action::Lock(kind) => {
                // SAFETY: W1, says the caller.
                answer[0] = u8::from(unsafe { target.control() }.try_lock(kind));
                return answer;
            }
            Action::Unlock => {
                // SAFETY: W1, says the caller.
                unsafe { target.control() }.unlock();
                return answer;
            }
        };
        // SAFETY: the order fits the part, says the caller: values and answer have `count * each` bytes.
        unsafe { access::access(target, offset, count, each, what) };
        answer
    }
}
