//! Costs over numbers of ranks, and where they increase.

/// The cost of something with this many ranks per PE.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    /// Ranks per PE.
    pub ranks: u32,
    /// Cost per rank.
    pub cost: f64,
}

/// Where a cost grows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Knee {
    /// From this point.
    pub from: Point,
    /// To this point.
    pub to: Point,
}

impl Knee {
    /// The factor of the increase.
    pub(super) fn factor(self) -> f64 {
        self.to.cost / self.from.cost
    }
}

/// A cost counts as level while it grows less than the number of ranks to this power: 1.23 times if there are four
/// times as many.
const LEVEL: f64 = 0.15;

/// Where the cost per rank grows with the number of ranks: increases without a level stretch in between are combined.
pub(super) fn knees(points: &[Point]) -> Vec<Knee> {
    let mut knees: Vec<Knee> = Vec::new();
    let mut rises = false;
    for pair in points.windows(2) {
        let (from, to) = (pair[0], pair[1]);
        let ranks = f64::from(to.ranks) / f64::from(from.ranks);
        let rose = std::mem::replace(&mut rises, to.cost > from.cost * ranks.powf(LEVEL));
        match knees.last_mut() {
            Some(knee) if rises && rose => knee.to = to,
            _ if rises => knees.push(Knee { from, to }),
            _ => {}
        }
    }
    knees
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(costs: &[f64]) -> Vec<Point> {
        (0..).zip(costs).map(|(at, &cost)| Point { ranks: 16 << (2 * at), cost }).collect()
    }

    fn found(costs: &[f64]) -> Vec<(u32, u32)> {
        knees(&points(costs)).iter().map(|knee| (knee.from.ranks, knee.to.ranks)).collect()
    }

    #[test]
    fn level_and_falling_costs_have_no_knee() {
        assert_eq!(found(&[]), []);
        assert_eq!(found(&[7.0]), []);
        assert_eq!(found(&[7.0, 7.0, 8.0, 5.0, 2.0, 2.4]), []);
    }

    #[test]
    fn rises_that_follow_each_other_are_one_knee() {
        let costs = [10.0, 10.0, 20.0, 40.0, 41.0, 80.0];
        assert_eq!(found(&costs), [(64, 1024), (4096, 16_384)]);
        assert_eq!(knees(&points(&costs))[0].factor(), 4.0);
    }

    #[test]
    fn what_counts_is_the_rise_by_the_number_of_ranks() {
        let near = [Point { ranks: 65_536, cost: 10.0 }, Point { ranks: 100_000, cost: 11.5 }];
        assert_eq!(knees(&near).len(), 1);
        let far = [Point { ranks: 16, cost: 10.0 }, Point { ranks: 1024, cost: 11.5 }];
        assert_eq!(knees(&far), []);
    }
}
