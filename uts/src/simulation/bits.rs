//! Records which of very many processes have something.

/// A set of numbers in which the next member is found quickly however far it is.
#[derive(Debug)]
pub(super) struct Bits {
    words: Vec<u64>,
    /// A bit for each of `words` that is not 0.
    summary: Vec<u64>,
}

impl Bits {
    /// The empty set of numbers below `size`.
    pub(super) fn new(size: usize) -> Self {
        let words = size.div_ceil(64);
        Self { words: vec![0; words], summary: vec![0; words.div_ceil(64)] }
    }

    /// Inserts or removes a number.
    pub(super) fn set(&mut self, number: usize, is_in: bool) {
        let (word, bit) = (number / 64, 1 << (number % 64));
        if is_in {
            self.words[word] |= bit;
        } else {
            self.words[word] &= !bit;
        }
        let bit = 1 << (word % 64);
        if self.words[word] != 0 {
            self.summary[word / 64] |= bit;
        } else {
            self.summary[word / 64] &= !bit;
        }
    }

    /// The first number in `from..to`.
    pub(super) fn first(&self, from: usize, to: usize) -> Option<usize> {
        if from >= to {
            return None;
        }
        let found = first_bit(&self.words, from, (from / 64 + 1) * 64).or_else(|| {
            let word = first_bit(&self.summary, from / 64 + 1, self.words.len())?;
            first_bit(&self.words, word * 64, word * 64 + 64)
        });
        found.filter(|&it| it < to)
    }
}

fn first_bit(words: &[u64], from: usize, to: usize) -> Option<usize> {
    let mut mask = u64::MAX << (from % 64);
    for (number, &word) in words.iter().enumerate().take(to.div_ceil(64)).skip(from / 64) {
        if word & mask != 0 {
            return Some(number * 64 + (word & mask).trailing_zeros() as usize);
        }
        mask = u64::MAX;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_is_that_of_a_plain_search() {
        let size = 10_000;
        let mut bits = Bits::new(size);
        let mut plain = vec![false; size];
        let mut random = 1;
        for round in 0..3000 {
            random = crate::machine::mix(random);
            let (number, is_in) = (random as usize % size, round % 3 > 0);
            bits.set(number, is_in);
            plain[number] = is_in;
            let from = (random >> 32) as usize % size;
            let to = from + (random >> 20) as usize % (size - from);
            let expected = (from..to).find(|&it| plain[it]);
            assert_eq!(bits.first(from, to), expected, "{from}..{to}");
        }
        assert_eq!(bits.first(7, 7), None);
    }
}
