//! What is known of a received message.

use std::fmt;
use std::panic::Location;

use crate::datatype::Datatype;
use crate::error::{At, Error};
use crate::operation::Site;
use crate::{Count, Rank, Tag};
use vrt_core::pe::{Completion, Probed};
use vrt_slot::report::count;

/// What is known of a received message.
///
/// # Examples
///
/// ```
/// use vrt::traits::*;
///
/// vrt::run_local(2, |world| {
///     let other = world.process_at_rank(1 - world.rank());
///     other.send_with_tag(&[1u16, 2, 3], 7);
///     let (_, status) = other.receive_vec::<u16>();
///     assert_eq!((status.source_rank(), status.tag(), status.bytes()), (other.rank(), 7, 6));
/// });
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Status {
    pub(crate) source: Rank,
    pub(crate) tag: Tag,
    pub(crate) bytes: u64,
    pub(crate) cancelled: bool,
}

impl Status {
    /// The rank it came from.
    ///
    /// Example: [`Status`].
    pub fn source_rank(&self) -> Rank {
        self.source
    }

    /// Its tag.
    ///
    /// Example: [`Status`].
    pub fn tag(&self) -> Tag {
        self.tag
    }

    /// Its length in elements of a datatype (section 3.2.5).
    ///
    /// # Panics
    /// Where MPI calls the count undefined: when the message is not made of whole elements, or of
    /// more than a [`Count`] can say. [`elements`](Self::elements) does not.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let other = world.process_at_rank(1 - world.rank());
    ///     other.send(&[1.5, 2.5]);
    ///     let mut numbers = [0.0; 4];
    ///     let status = other.receive_into(&mut numbers);
    ///     assert_eq!(status.count(f64::equivalent_datatype()), 2);
    /// });
    /// ```
    #[track_caller]
    pub fn count<D: Datatype>(&self, datatype: D) -> Count {
        let size = datatype.datatype_ref().size();
        match self.elements(datatype).map(Count::try_from) {
            Some(Ok(count)) => count,
            Some(Err(_)) => panic!(
                "count at {}: {} bytes are more elements of {size} bytes than a count can say, \
                 {}; `elements` can",
                Location::caller(),
                self.bytes,
                Count::MAX
            ),
            None => panic!(
                "count at {}: {}, which is no whole number of elements of {}",
                Location::caller(),
                count(self.bytes, "byte"),
                count(size, "byte")
            ),
        }
    }

    /// Its length in elements of a datatype, however many; `None` if it does not end with a whole
    /// one.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let other = world.process_at_rank(1 - world.rank());
    ///     other.send(&[1u8, 2, 3]);
    ///     let (_, status) = other.receive_vec::<u8>();
    ///     assert_eq!(status.elements(u8::equivalent_datatype()), Some(3));
    ///     assert_eq!(status.elements(u16::equivalent_datatype()), None);
    /// });
    /// ```
    pub fn elements<D: Datatype>(&self, datatype: D) -> Option<u64> {
        match datatype.datatype_ref().size() as u64 {
            0 => (self.bytes == 0).then_some(0),
            size => self.bytes.is_multiple_of(size).then(|| self.bytes / size),
        }
    }

    /// Whether it was cancelled before a message came.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(1, |world| {
    ///     let mut room = 0;
    ///     vrt::request::scope(|scope| {
    ///         let receive = world.this_process().immediate_receive_into(scope, &mut room);
    ///         receive.cancel();
    ///         assert!(receive.wait().is_cancelled());
    ///     });
    /// });
    /// ```
    pub fn is_cancelled(&self) -> bool {
        self.cancelled
    }

    /// Its length in bytes.
    ///
    /// Example: [`Status`].
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn of_probe(probed: Probed) -> Status {
        Status { source: probed.source, tag: probed.tag, bytes: probed.bytes, cancelled: false }
    }

    /// The status of a receive.
    ///
    /// # Errors
    /// The message was longer than the buffer, or of another type.
    #[inline(always)]
    pub(crate) fn of(outcome: Completion, site: Site) -> Result<Status, Error> {
        let Completion { source, tag, bytes, .. } = outcome.fitting().at(site)?;
        Ok(Status { source, tag, bytes, cancelled: outcome.is_cancelled() })
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Status")
            .field("source_rank", &self.source)
            .field("tag", &self.tag)
            .field("bytes", &self.bytes)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datatype::{Equivalence, UserDatatype};

    fn status(bytes: u64) -> Status {
        Status { source: 0, tag: 0, bytes, cancelled: false }
    }

    #[test]
    fn counts_are_whole_or_none() {
        let double = f64::equivalent_datatype();
        assert_eq!(status(24).count(double), 3);
        assert_eq!(status(24).elements(double), Some(3));
        assert_eq!(status(25).elements(double), None);
        assert_eq!(status(1 << 40).elements(u8::equivalent_datatype()), Some(1 << 40));
        let nothing = UserDatatype::contiguous(0, &double);
        assert_eq!((status(0).count(&nothing), status(1).elements(&nothing)), (0, None));
    }

    #[test]
    #[should_panic(expected = "4294967296 bytes are more elements of 1 bytes than a count can say")]
    fn a_count_does_not_wrap() {
        status(1 << 32).count(u8::equivalent_datatype());
    }

    #[test]
    #[should_panic(expected = "status.rs")]
    fn a_count_is_not_rounded() {
        status(9).count(f64::equivalent_datatype());
    }
}
