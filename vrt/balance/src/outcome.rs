//! The outcome of the orders of a balancing step.

use std::fmt;

use serde::{Deserialize, Serialize};
use vrt_core::migrate::Stays;

/// How one PE, or all of them, carried out a step's orders.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Moved {
    pub moved: u32,
    pub stayed: Stayed,
    /// Bytes that were encoded or will be copied for it.
    pub bytes: u64,
    pub nanoseconds: u64,
    /// Of those that moved, the ranks that are in flight to another PE and whose arrival will be
    /// reported.
    pub under_way: u32,
}

/// How many ranks did not go where they were ordered to, for each reason.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Stayed {
    not_here: u64,
    running: u64,
    in_use: u64,
    just_come: u64,
    pinned: u64,
    /// The first of the pinned ones, and the reason.
    first_pinned: Option<(u32, String)>,
}

impl Moved {
    /// Adds the outcome of another PE, which worked at the same time.
    pub(crate) fn add(&mut self, other: &Moved) {
        self.moved += other.moved;
        self.stayed.add(&other.stayed);
        self.bytes += other.bytes;
        self.nanoseconds = self.nanoseconds.max(other.nanoseconds);
        self.under_way += other.under_way;
    }
}

impl Stayed {
    pub(crate) fn count(&mut self, rank: u32, why: Stays) {
        match why {
            Stays::NotHere => self.not_here += 1,
            Stays::Running => self.running += 1,
            Stays::InUse => self.in_use += 1,
            Stays::Pinned(why) => {
                self.pinned += 1;
                self.first_pinned.get_or_insert_with(|| (rank, why.to_owned()));
            }
        }
    }

    /// Counts a rank that has not run since the previous step moved it.
    pub(crate) fn count_just_come(&mut self) {
        self.just_come += 1;
    }

    pub(crate) fn add(&mut self, other: &Stayed) {
        self.not_here += other.not_here;
        self.running += other.running;
        self.in_use += other.in_use;
        self.just_come += other.just_come;
        self.pinned += other.pinned;
        if self.first_pinned.is_none() {
            self.first_pinned.clone_from(&other.first_pinned);
        }
    }

    pub(crate) fn all(&self) -> u64 {
        self.not_here + self.running + self.in_use + self.just_come + self.pinned
    }
}

/// The reasons, such as `2 ran, 1 pinned (rank 3: it has an open file or socket)`.
impl fmt::Display for Stayed {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let reasons = [
            (self.running, "ran"),
            (self.in_use, "had a message on its way in or out"),
            (self.just_come, "had not run since the step before"),
            (self.not_here, "had gone or ended"),
            (self.pinned, "pinned"),
        ];
        let mut between = "";
        for (number, reason) in reasons.iter().filter(|(number, _)| *number > 0) {
            write!(f, "{between}{number} {reason}")?;
            between = ", ";
        }
        match &self.first_pinned {
            Some((rank, why)) => write!(f, " (rank {rank}: {why})"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_told_with_its_number() {
        let mut all = Stayed::default();
        all.count(1, Stays::Running);
        let mut other = Stayed::default();
        other.count(4, Stays::Pinned("it has a window"));
        other.count(2, Stays::Running);
        other.count_just_come();
        all.add(&other);
        assert_eq!(all.all(), 4);
        let said = "2 ran, 1 had not run since the step before, 1 pinned (rank 4: it has a window)";
        assert_eq!(all.to_string(), said);
    }
}
