//! The tree's random numbers: SHA-1 of the parent's digest and the child's number.
//!
//! A node of the tree *is* a SHA-1 digest. The root's is that of 16 zero bytes and the seed; child
//! `i` of a node has the digest of the node's 20 bytes and `i`, numbers being big-endian `u32`s
//! (Olivier et al., "UTS: An Unbalanced Tree Search Benchmark", LCPC 2006). So each node can be
//! made from its parent alone, on any machine, and always has the same descendants.
//!
//! This is the plain path, one node at a time through the `sha1` crate: the only one on machines
//! without wide vector units, and the reference for the kernels of [`crate::lanes`].

use sha1::{Digest, Sha1, block_api::compress};

/// SHA-1's initial state (FIPS 180-4, 5.3.1).
pub(crate) const INITIAL: [u32; 5] =
    [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];

/// Bytes that are hashed to make a child.
const MESSAGE_BYTES: u64 = 24;

/// Number of possible values of a node's random number, 0 <= number < 2^31.
pub const RANDOM_VALUES: u32 = 1 << 31;

/// The random state of a node: its digest, as five big-endian words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct State(pub [u32; 5]);

impl State {
    /// The root of the tree with this seed.
    #[must_use]
    pub fn root(seed: u32) -> Self {
        let mut message = [0; 20];
        message[16..].copy_from_slice(&seed.to_be_bytes());
        let digest = Sha1::digest(message);
        let mut words = [0; 5];
        for (word, bytes) in words.iter_mut().zip(digest.as_chunks::<4>().0) {
            *word = u32::from_be_bytes(*bytes);
        }
        Self(words)
    }

    /// Child number `index` of this node.
    ///
    /// The message is shorter than a block of SHA-1, so its padded form is written directly: this
    /// is `Sha1::digest` without buffering.
    #[must_use]
    pub fn child(&self, index: u32) -> Self {
        let mut block = [0; 64];
        for (bytes, word) in block.as_chunks_mut::<4>().0.iter_mut().zip(&self.0) {
            *bytes = word.to_be_bytes();
        }
        block[20..24].copy_from_slice(&index.to_be_bytes());
        block[24] = 0x80;
        block[56..].copy_from_slice(&(8 * MESSAGE_BYTES).to_be_bytes());
        let mut words = INITIAL;
        compress(&mut words, &[block]);
        Self(words)
    }

    /// The node's random number, 0 <= number < 2^31: the digest's last word without its highest
    /// bit.
    #[must_use]
    pub fn random(&self) -> u32 {
        self.0[4] & (RANDOM_VALUES - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(state: State) -> String {
        state.0.iter().map(|word| format!("{word:08x}")).collect()
    }

    #[test]
    fn roots_are_the_published_ones() {
        let vectors = [
            (0, "6768033e216468247bd031a0a2d9876d79818f8f", 2_038_534_031),
            (19, "c6988ab70cc9559ae4d6cba254e29a845a85f86b", 1_518_729_323),
            (42, "a11dabbcec7aab309c890ab3dbc256eaeb582782", 1_800_939_394),
            (29, "16598509542aefc5664b573a1f1c17706e38f4b1", 1_849_226_417),
            (7, "357605f3d86a9e6f2019e530a7d36f107e6cffd6", 2_121_072_598),
        ];
        for (seed, digest, random) in vectors {
            let root = State::root(seed);
            assert_eq!((hex(root).as_str(), root.random()), (digest, random), "seed {seed}");
        }
    }

    #[test]
    fn children_are_the_published_ones() {
        let root = State::root(19);
        assert!(hex(root.child(0)).starts_with("2fb3131030280c16"));
        assert!(hex(root.child(1)).starts_with("4a8304c7c88f903a"));
    }

    #[test]
    fn a_child_is_the_plain_digest_of_its_message() {
        let mut parent = State::root(5);
        for index in [0, 1, 99, 0x0102_0304, u32::MAX] {
            let mut message = Vec::new();
            for word in parent.0 {
                message.extend(word.to_be_bytes());
            }
            message.extend(index.to_be_bytes());
            let child = parent.child(index);
            let digest: String =
                Sha1::digest(&message).iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(hex(child), digest);
            parent = child;
        }
    }
}
