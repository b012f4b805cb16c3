//! Random numbers: generators that yield the same numbers on every machine.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// The generator of stream `stream` under `seed`. Streams are independent of each other.
pub(crate) fn generator(seed: u64, stream: u64) -> ChaCha8Rng {
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    generator.set_stream(stream);
    generator
}
