//! Matching: decides which message goes into which receive.
//!
//! A rank's mailbox holds the receives it has posted and the messages that have arrived without a
//! receive (*unexpected*). At any time no posted receive matches an unexpected message: whichever
//! comes second finds the other.
//!
//! ```text
//! message arrives -> in order for its pair? -no-> kept in `early` until the gap closes
//!                        | yes
//!                        v
//!        earliest matching posted receive? -yes-> delivered
//!                        | no
//!                        v
//!                   unexpected, in order of arrival
//!
//! receive posted  -> earliest matching unexpected message? -yes-> delivered
//!                        | no
//!                        v
//!                     posted, in order of posting
//! ```
//!
//! MPI-4.1 section 3.5 (non-overtaking): between two ranks, messages are matched in the order sent.
//! The sender numbers its messages per pair ([`Peers`]), so this holds whatever ranks moved
//! meanwhile and whichever way messages took.

use serde::{Deserialize, Serialize};

mod peers;
mod posted;
mod unexpected;

pub use peers::Peer;
pub use peers::Peers;
pub(crate) use posted::{Posted, PostedReceive};
pub use unexpected::Unexpected;

/// Matches any source or any tag in a [`Pattern`].
pub const ANY: i32 = -1;

/// A queue in which a search had to look at more entries than this gets an index. (A long queue that
/// is emptied from its front never does.)
const LINEAR: usize = 32;

/// What a receive (or probe) asks for. As the key of a concrete message it contains no [`ANY`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Pattern {
    /// The communicator's context.
    pub context: u32,
    /// Rank in the communicator, or [`ANY`].
    pub source: i32,
    /// Tag, or [`ANY`].
    pub tag: i32,
}

impl Pattern {
    /// Whether it matches a message with the concrete key `message`.
    #[inline(always)]
    pub fn matches(&self, message: &Pattern) -> bool {
        self.context == message.context
            && (self.source == message.source || self.source == ANY)
            && (self.tag == message.tag || self.tag == ANY)
    }

    /// The four patterns that match a concrete message.
    fn matched_by(&self) -> [Pattern; 4] {
        let Pattern { context, source, tag } = *self;
        [(source, tag), (ANY, tag), (source, ANY), (ANY, ANY)].map(|(source, tag)| Pattern {
            context,
            source,
            tag,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Step {
        Post(Pattern),
        Arrive(Pattern),
        Probe(Pattern),
        Cancel(usize),
        Withdraw(usize),
    }

    // An interpreter takes a thousand times as long.
    const LENGTH: usize = if cfg!(miri) { 60 } else { 600 };

    fn pattern(any: bool) -> impl Strategy<Value = Pattern> {
        let low = if any { -1 } else { 0 };
        (0u32..2, low..3i32, low..3i32).prop_map(|(context, source, tag)| Pattern {
            context,
            source,
            tag,
        })
    }

    fn steps(posts: u32, arrivals: u32) -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            posts => pattern(true).prop_map(Step::Post),
            arrivals => pattern(false).prop_map(Step::Arrive),
            1 => pattern(true).prop_map(Step::Probe),
            1 => any::<usize>().prop_map(Step::Cancel),
            1 => any::<usize>().prop_map(Step::Withdraw),
        ];
        prop::collection::vec(step, 0..LENGTH)
    }

    /// The specification: two lists searched from the front.
    #[derive(Default)]
    struct Naive {
        posted: Vec<(Pattern, PostedReceive)>,
        unexpected: Vec<(Pattern, u32)>,
    }

    fn check(steps: Vec<Step>) -> Result<(), TestCaseError> {
        let mut naive = Naive::default();
        let (mut posted, mut unexpected) = (Posted::default(), Unexpected::<u32>::default());
        for (n, step) in steps.into_iter().enumerate() {
            let n = n as u32;
            let receive = PostedReceive::into_buffer(n);
            match step {
                Step::Post(p) => {
                    let at = naive.unexpected.iter().position(|(m, _)| p.matches(m));
                    let want = at.map(|at| naive.unexpected.remove(at));
                    prop_assert_eq!(unexpected.take(&p), want);
                    if want.is_none() {
                        naive.posted.push((p, receive));
                        posted.push(p, receive);
                    }
                }
                Step::Arrive(m) => {
                    let at = naive.posted.iter().position(|(p, _)| p.matches(&m));
                    let want = at.map(|at| naive.posted.remove(at).1);
                    prop_assert_eq!(posted.take(&m), want);
                    if want.is_none() {
                        naive.unexpected.push((m, n));
                        unexpected.push(m, n);
                    }
                }
                Step::Probe(p) => {
                    let want = naive.unexpected.iter().find(|(m, _)| p.matches(m));
                    prop_assert_eq!(unexpected.find(&p).map(|(m, n)| (*m, *n)), want.copied());
                }
                Step::Cancel(i) if !naive.posted.is_empty() => {
                    let (p, n) = naive.posted.remove(i % naive.posted.len());
                    prop_assert!(posted.cancel(&p, n));
                    prop_assert!(!posted.cancel(&p, n));
                }
                Step::Withdraw(i) if !naive.unexpected.is_empty() => {
                    let (m, n) = naive.unexpected.remove(i % naive.unexpected.len());
                    prop_assert_eq!(unexpected.take_if(&m, |its| *its == n), Some(n));
                    prop_assert_eq!(unexpected.take_if(&m, |its| *its == n), None);
                }
                Step::Cancel(_) | Step::Withdraw(_) => {}
            }
            prop_assert_eq!(posted.len(), naive.posted.len());
            prop_assert_eq!(unexpected.len(), naive.unexpected.len());
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn many_receives_match_as_the_naive_lists_do(steps in steps(12, 5)) { check(steps)?; }

        #[test]
        fn many_messages_match_as_the_naive_lists_do(steps in steps(5, 12)) { check(steps)?; }
    }
}
