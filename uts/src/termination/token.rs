//! The token of J. Dinan et al., "Dynamic Load Balancing of Unbalanced Computations Using Message
//! Passing" (IPDPS 2007), section 3.2.1, and its pink fence.
//!
//! Rank 0 sends a white token around the ring; a rank passes it on when it is passive, black if the rank is black, and
//! is white afterwards. The token sums the chunks that ranks have sent and received. If it returns white to a white
//! rank 0 and the two sums are equal, there is no work. Then it is sent around pink: a rank that has seen it sends no
//! more requests, and it sums requests and refusals; when these are equal, too, nothing is in flight, and a red token
//! ends the search.
//!
//! In the paper a rank becomes black by giving work to a rank with a lower number. That is not enough if messages can
//! be slow. Suppose rank 1 has sent a chunk to rank 3 and the token passes both of them before the chunk arrives. Rank
//! 3 then gives part of it to rank 4, which has a higher number, finishes, and adds one received chunk to the token: as
//! many as sent, and all ranks white, but rank 3 has work. So a rank also becomes black by receiving work, as in
//! Dijkstra's version of Safra's algorithm (EWD 998). The test below shows both.

use super::{Outbox, Verdict};
use crate::machine::Message;

/// What a token states about the ranks that it has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// They had no work.
    White,
    /// Some may have had work since.
    Black,
    /// There is no work; requests are counted.
    Pink,
    /// Nothing is in flight.
    Red,
}

/// The token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// Its colour.
    pub colour: Colour,
    /// Messages that the ranks it has passed have sent: chunks, or requests and refusals if it is
    /// pink.
    pub sent: u64,
    /// Messages of the same kind that they have received.
    pub received: u64,
}

impl Token {
    /// Length of a token in a message, in words.
    pub const WORDS: usize = 5;

    /// Encodes the token as words.
    #[must_use]
    pub fn to_words(self) -> [u32; Self::WORDS] {
        let [low, high] = [|it: u64| it as u32, |it: u64| (it >> 32) as u32];
        let (sent, received) = (self.sent, self.received);
        [self.colour as u32, low(sent), high(sent), low(received), high(received)]
    }

    /// Decodes a token from words; `None` if they are not a token.
    #[must_use]
    pub fn from_words(words: &[u32]) -> Option<Self> {
        let &[colour, a, b, c, d] = words else { return None };
        let join = |low: u32, high: u32| u64::from(low) | (u64::from(high) << 32);
        let colour = match colour {
            0 => Colour::White,
            1 => Colour::Black,
            2 => Colour::Pink,
            3 => Colour::Red,
            _ => return None,
        };
        Some(Self { colour, sent: join(a, b), received: join(c, d) })
    }
}

/// One rank's part.
#[derive(Clone, Debug)]
pub struct Ring {
    rank: usize,
    ranks: usize,
    colour: Colour,
    /// The token, while it is here.
    held: Option<Token>,
    /// Chunks sent and received.
    chunks: [u64; 2],
    /// Requests and refusals sent and received.
    control: [u64; 2],
    /// Whether receiving work makes a rank black; false only in a test.
    receiver_blackens: bool,
}

impl Ring {
    pub(super) fn new(rank: usize, ranks: usize) -> Self {
        let held = Token { colour: Colour::Black, sent: 0, received: 0 };
        Self {
            rank,
            ranks,
            colour: Colour::White,
            held: (rank == 0).then_some(held),
            chunks: [0; 2],
            control: [0; 2],
            receiver_blackens: true,
        }
    }

    pub(super) fn is_fenced(&self) -> bool {
        matches!(self.colour, Colour::Pink | Colour::Red)
    }

    pub(super) fn gave(&mut self, to: usize) {
        self.chunks[0] += 1;
        if to < self.rank {
            self.colour = Colour::Black;
        }
    }

    pub(super) fn got(&mut self) {
        self.chunks[1] += 1;
        if self.receiver_blackens {
            self.colour = Colour::Black;
        }
    }

    pub(super) fn control(&mut self, sent: bool) {
        self.control[usize::from(!sent)] += 1;
    }

    pub(super) fn receive(&mut self, token: Token) {
        self.held = Some(token);
    }

    pub(super) fn passive(&mut self, out: &mut Outbox) -> Verdict {
        if self.ranks == 1 {
            return Verdict::Clean;
        }
        let Some(token) = self.held.take() else { return Verdict::Unknown };
        let colour = if self.rank == 0 { self.next_round(token) } else { self.pass(token.colour) };
        let counts =
            if matches!(colour, Colour::Pink | Colour::Red) { self.control } else { self.chunks };
        let before = if self.rank == 0 { [0; 2] } else { [token.sent, token.received] };
        let [sent, received] = [before[0] + counts[0], before[1] + counts[1]];
        let next = (self.rank + 1) % self.ranks;
        // The red token goes once around, from rank 0 to the last.
        if !(colour == Colour::Red && next == 0) {
            out.push_back((next, Message::Token(Token { colour, sent, received })));
        }
        match colour {
            Colour::White | Colour::Black => Verdict::Unknown,
            Colour::Pink => Verdict::Fence,
            Colour::Red => Verdict::Clean,
        }
    }

    /// The colour in which rank 0 sends the token out.
    fn next_round(&mut self, token: Token) -> Colour {
        let equal = token.sent == token.received;
        let white = self.colour == Colour::White;
        self.colour = match token.colour {
            Colour::White if white && equal => Colour::Pink,
            Colour::Pink if equal => Colour::Red,
            Colour::Pink => Colour::Pink,
            _ => Colour::White,
        };
        self.colour
    }

    /// The colour in which another rank passes the token on.
    fn pass(&mut self, token: Colour) -> Colour {
        let own = std::mem::replace(&mut self.colour, Colour::White);
        match token {
            Colour::White if own == Colour::White => Colour::White,
            Colour::White | Colour::Black => Colour::Black,
            fenced => {
                self.colour = fenced;
                fenced
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_tokens() {
        for colour in [Colour::White, Colour::Black, Colour::Pink, Colour::Red] {
            let token = Token { colour, sent: 1 << 40, received: 7 };
            assert_eq!(Token::from_words(&token.to_words()), Some(token));
        }
        assert_eq!(Token::from_words(&[4, 0, 0, 0, 0]), None);
        assert_eq!(Token::from_words(&[0]), None);
    }

    /// The scenario of this module's description. Returns whether rank 0 concludes that there is no
    /// work while rank 3 has some.
    fn ends_early(receiver_blackens: bool) -> bool {
        let mut ranks: Vec<Ring> =
            (0..5).map(|it| Ring { receiver_blackens, ..Ring::new(it, 5) }).collect();
        let mut out = Outbox::new();
        let mut verdict = Verdict::Unknown;
        let mut token = |ranks: &mut Vec<Ring>, rank: usize| {
            verdict = ranks[rank].passive(&mut out);
            if let Some((to, Message::Token(token))) = out.pop_front() {
                ranks[to].receive(token);
            }
            verdict
        };
        ranks[1].gave(3);
        (0..4).for_each(|rank| assert_eq!(token(&mut ranks, rank), Verdict::Unknown));
        ranks[3].got();
        ranks[3].gave(4);
        ranks[4].got();
        token(&mut ranks, 4);
        token(&mut ranks, 0) == Verdict::Fence
    }

    #[test]
    fn the_papers_rule_alone_ends_early_when_messages_are_slow() {
        assert!(ends_early(false));
        assert!(!ends_early(true));
    }
}
