//! A tree that yields the least of many numbers at once, and needs a few steps for a change.

/// The least of numbers that change: a tree, each node of which has the least of eight nodes or numbers below it,
/// stored together, as they are read together.
pub(crate) struct Least {
    /// The numbers, then level by level up to the root; each level padded with infinities.
    nodes: Vec<[f64; FAN]>,
    /// Where in `nodes` each level begins.
    levels: Vec<usize>,
}

const FAN: usize = 8;

impl Least {
    pub(crate) fn new(numbers: impl Iterator<Item = f64>) -> Self {
        let mut this = Self { nodes: vec![], levels: vec![] };
        let mut level: Vec<f64> = numbers.collect();
        loop {
            this.levels.push(this.nodes.len());
            let nodes = level.chunks(FAN).map(|chunk| {
                let mut node = [f64::INFINITY; FAN];
                node[..chunk.len()].copy_from_slice(chunk);
                node
            });
            let nodes: Vec<[f64; FAN]> = nodes.collect();
            level = nodes.iter().map(least).collect();
            this.nodes.extend(nodes);
            if level.len() < 2 {
                return this;
            }
        }
    }

    pub(crate) fn of(&self, index: usize) -> f64 {
        self.nodes[index / FAN][index % FAN]
    }

    pub(crate) fn set(&mut self, mut index: usize, mut number: f64) {
        for &level in &self.levels {
            let node = &mut self.nodes[level + index / FAN];
            let slot = &mut node[index % FAN];
            if *slot == number {
                return;
            }
            *slot = number;
            number = least(node);
            index /= FAN;
        }
    }

    /// The index of the least number, the first one in a tie, and the number; infinity if there is none.
    pub(crate) fn first(&self) -> (usize, f64) {
        let number = self.nodes.last().map_or(f64::INFINITY, least);
        let descend = |index: usize, &level: &usize| {
            // All are compared, as a branch for each would be guessed wrong.
            let node = self.nodes.get(level + index).into_iter().flatten().rev();
            let equal = node.fold(0_u32, |equal, it| equal << 1 | u32::from(*it == number));
            index * FAN + equal.trailing_zeros() as usize % FAN
        };
        (self.levels.iter().rev().fold(0, descend), number)
    }
}

fn least(node: &[f64; FAN]) -> f64 {
    let less = |a: f64, b: f64| if a < b { a } else { b };
    let &[a, b, c, d, e, f, g, h] = node;
    less(less(less(a, b), less(c, d)), less(less(e, f), less(g, h)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_is_found_as_numbers_change() {
        for count in [1, 7, 8, 9, 64, 65, 600] {
            let mut numbers: Vec<f64> = (0..count).map(|it| f64::from(it * 7919 % 101)).collect();
            let mut tree = Least::new(numbers.iter().copied());
            for step in 0..2000_u32 {
                let index = (step * 31 % count) as usize;
                numbers[index] = f64::from(step * 7919 % 103);
                tree.set(index, numbers[index]);
                let first = (0..numbers.len()).min_by(|&a, &b| numbers[a].total_cmp(&numbers[b]));
                let first = first.expect("there are some");
                assert_eq!(tree.first(), (first, numbers[first]));
            }
        }
        assert_eq!(Least::new(std::iter::empty()).first().1, f64::INFINITY);
        assert_eq!(Least::new([f64::INFINITY; 2].into_iter()).first(), (0, f64::INFINITY));
    }
}
