//! Receiving into a buffer that is borrowed only while the future is polled.
//!
//! ```text
//!           nothing has come             reserved
//! Asking ----------------------> Posted -----------> Reserved --.
//!    |                             |                            |  in this node: copied in `poll`
//!    |  it is there                | dropped: withdrawn         +--------------------------> over
//!    `--------------------------------------------> Reserved --'                             ^
//!                                                        |  elsewhere: memory of its own     |
//!                                                        `--------> Transfer ----------------'
//! ```
//!
//! Between two polls the runtime writes only to the memory of `Transfer`, a block of the rank's heap, which is leaked
//! with the future if that is forgotten. If the future is dropped at any point, the message remains for the next
//! receive; a transfer in progress is waited for.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::error::{Error, Site};
use crate::mailbox::Pattern;
use crate::operation::pending::{Pending, Ticket, lost};
use crate::pe::{self, Completion, Landed, Room, Started};
use vrt_slot::rank;

/// A receive whose buffer is there while it is polled.
#[derive(Debug)]
pub(crate) struct Landing {
    state: State,
    site: Site,
}

#[derive(Debug)]
enum State {
    Asking(Pattern),
    Posted(Pending),
    /// A message is reserved, under a number.
    Reserved(Ticket),
    Transfer(Pending, Vec<u8>),
    Over,
}

impl Landing {
    /// A receive for any message that matches.
    pub(crate) fn new(pattern: Pattern, site: Site) -> Landing {
        Landing { state: State::Asking(pattern), site }
    }

    /// Of a message that was taken out of matching.
    pub(crate) fn of_message(message: Ticket, site: Site) -> Landing {
        Landing { state: State::Reserved(message), site }
    }

    /// Copies the message into the buffer when it has arrived.
    ///
    /// # Safety
    /// The room's buffer is writable for its capacity during the call, and always has the same
    /// length.
    pub(crate) unsafe fn poll(
        &mut self,
        room: Room,
        context: &mut Context<'_>,
    ) -> Poll<Result<Completion, Error>> {
        loop {
            match &mut self.state {
                State::Asking(pattern) => {
                    let pattern = *pattern;
                    // SAFETY: the buffer is writable during this call, says the caller.
                    let outcome = unsafe {
                        let landed = pe::with(|pe| pe.engine.land_or_wait(pattern, room));
                        self.took(landed, room, Some(pattern))
                    };
                    if let Some(outcome) = outcome {
                        return Poll::Ready(Ok(outcome));
                    }
                }
                State::Posted(pending) => match Pin::new(pending).poll(context) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                    Poll::Ready(Ok(outcome)) => {
                        self.state = State::Reserved(Ticket::new(outcome.capacity as u32));
                    }
                },
                State::Reserved(message) => {
                    let number = match message.number(self.site) {
                        Ok(number) => number,
                        Err(error) => return Poll::Ready(Err(error)),
                    };
                    // SAFETY: the buffer is writable during this call, says the caller.
                    let outcome = unsafe {
                        let landed = pe::with(|pe| pe.engine.land(number, room));
                        self.took(landed, room, None)
                    };
                    if let Some(outcome) = outcome {
                        return Poll::Ready(Ok(outcome));
                    }
                }
                State::Transfer(pending, memory) => {
                    let outcome = match Pin::new(pending).poll(context) {
                        Poll::Pending => return Poll::Pending,
                        Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                        Poll::Ready(Ok(outcome)) => outcome,
                    };
                    // SAFETY: the buffer is writable during this call, says the caller.
                    unsafe { put(memory, room, &outcome) };
                    self.state = State::Over;
                    return Poll::Ready(Ok(outcome));
                }
                State::Over => return Poll::Pending,
            }
        }
    }

    /// Goes on to the next state, or gives the outcome.
    ///
    /// # Safety
    /// As [`poll`](Self::poll).
    unsafe fn took(
        &mut self,
        landed: Landed,
        room: Room,
        pattern: Option<Pattern>,
    ) -> Option<Completion> {
        match landed {
            Landed::Done(outcome) => {
                self.state = State::Over;
                return Some(outcome);
            }
            Landed::Waiting(request) => {
                self.state = State::Posted(Pending::new(request, self.site, pattern));
            }
            Landed::Far { number, bytes } => {
                // What is too long is said at the end.
                let len = usize::try_from(bytes).map_or(room.capacity, |it| it.min(room.capacity));
                let mut memory = vec![0u8; len];
                let own = Room { buffer: memory.as_mut_ptr(), capacity: len, ..room };
                // SAFETY: O1: `drop` waits for the request, and who forgets this forgets the memory, too.
                match pe::with(|pe| unsafe { pe.engine.receive_matched(number, own) }) {
                    Started::Done(outcome) => {
                        self.state = State::Over;
                        // SAFETY: the buffer is writable, says the caller.
                        unsafe { put(&memory, room, &outcome) };
                        return Some(outcome);
                    }
                    Started::Pending(request, _) => {
                        let pending = Pending::new(request, self.site, None);
                        self.state = State::Transfer(pending, memory);
                    }
                }
            }
        }
        None
    }
}

impl Drop for Landing {
    fn drop(&mut self) {
        match std::mem::replace(&mut self.state, State::Over) {
            State::Asking(_) | State::Over => {}
            State::Reserved(message) => {
                if let Some(number) = message.at_home() {
                    pe::with(|pe| pe.engine.put_back_matched(number));
                }
            }
            State::Posted(mut pending) => {
                if let Some(outcome) = pending.end() {
                    // A message has come meanwhile.
                    pe::with(|pe| pe.engine.put_back_matched(outcome.capacity as u32));
                }
            }
            State::Transfer(mut pending, memory) => {
                let Some(request) = pending.request.filter(|_| pending.is_at_home()) else {
                    // Another rank's: it goes on.
                    std::mem::forget(memory);
                    return;
                };
                wait_for(request, pending.wait);
                pending.request = None;
                if !pe::with(|pe| pe.engine.put_back(request)) {
                    let outcome = pe::with(|pe| pe.engine.running().take_if_done(request));
                    if let Some(Err(error)) = outcome.map(Completion::fitting)
                        && !std::thread::panicking()
                    {
                        lost(&error, self.site);
                    }
                }
            }
        }
    }
}

/// Waits for the end of a transfer. It needs only the PEs, no rank, so the wait ends.
fn wait_for(request: u32, wait: pe::Wait) {
    while !pe::with(|pe| pe.engine.running().is_done(request)) {
        if std::thread::panicking() {
            pe::with(pe::Pe::progress);
            std::thread::yield_now();
            continue;
        }
        pe::with(|pe| {
            let state = pe.engine.running();
            state.notified = false;
            state.await_request(Some(request), wait);
        });
        rank::suspend_and_resume();
        // What else the rank awaits may be over by now: it looks again before it waits.
        pe::with(|pe| pe.engine.running().notified = true);
    }
}

/// Puts what has come into a buffer.
///
/// # Safety
/// The room's buffer is writable for its capacity.
unsafe fn put(memory: &[u8], room: Room, outcome: &Completion) {
    let len = memory.len().min(room.capacity);
    if outcome.types().is_none() && len > 0 {
        // SAFETY: both have `len` bytes; the buffer is writable, says the caller.
        unsafe { std::ptr::copy_nonoverlapping(memory.as_ptr(), room.buffer, len) };
    }
}
