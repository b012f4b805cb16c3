//! What was wrong with a call, and where.
//!
//! The calls whose names begin with `try_` return an [`Error`]; their twins without `try_` panic with its
//! text.
//!
//! # What holds after an error
//!
//! The rank and the communicator can go on.
//!
//! | call | state after an error |
//! |---|---|
//! | `try_process_at_rank` | nothing has happened |
//! | `try_send` | nothing was sent |
//! | `try_receive`, `try_wait`, rank or tag out of range | nothing was received; no message is lost |
//! | `try_receive`, `try_wait`, a message that does not fit | the message was received and is gone, its sender is done, and the next receive gets the next message |
//! | collective, wrong arguments of this rank | this rank has not taken part; the others wait for it, and it can call again |
//! | collective, ranks that do not agree | the operation is over for this rank; see below |
//!
//! The contents of a buffer that was received into are unspecified after a message that did not fit: of
//! one that was too long it may have the beginning. All of it is initialised and of its type, as the rest
//! stays what it was.
//!
//! # Collective operations that ranks do not agree about
//!
//! The kinds [`Disagreement`](ErrorKind::Disagreement), [`ContributionLength`](ErrorKind::ContributionLength),
//! [`ContributionType`](ErrorKind::ContributionType), [`UserOperation`](ErrorKind::UserOperation) and
//! [`ResultOverflow`](ErrorKind::ResultOverflow) come up after this rank has taken part. Its receive buffer is
//! unspecified then, and the next operation on the communicator is the next for all ranks.
//!
//! - Small data (up to 4 KiB from each rank): every rank that waits for a result gets `Disagreement`, wherever
//!   it is. Ranks that wait for nothing (the root of a broadcast, contributors to a root's result) may return
//!   before the disagreement is known, and get `Ok`.
//! - Larger data goes from rank to rank. Only a rank that receives a wrong part gets an error, and it does
//!   nothing more for the operation: ranks that wait for data through it, or for it to receive theirs, wait for
//!   ever. If all ranks of the job wait, the job ends with the table of a deadlock.
//! - Operations among neighbours send and receive all parts also if one of them is wrong, so nobody waits for
//!   ever.
//! - A user operation that panics is the error of the rank that it happens on. Others may wait for what that
//!   rank would have passed on, as with larger data.
//! - A result that does not fit is the error of the rank whose buffer it does not fit. It has done its part for
//!   the others.

use std::fmt;
use std::panic::Location;

use crate::Rank;
pub use vrt_core::{Class as ErrorClass, Error as ErrorKind};
use vrt_core::{Site, pe};

/// What was wrong with a call, and where: the rank, the call, its line and the [`ErrorKind`].
///
/// The text is that of the panic of the call without `try_`: `rank 0 in receive at src/main.rs:7:27: the
/// message from rank 1 with tag 0 has 16 bytes, the buffer only 8`.
///
/// The documentation of the module [`error`](self) says what holds after an error.
///
/// # Examples
///
/// ```
/// use vrt::traits::*;
/// use vrt::{ErrorClass, ErrorKind};
///
/// vrt::run_local(2, |world| {
///     let other = world.process_at_rank(1 - world.rank());
///     other.send(&[1.0, 2.0]);
///     other.send(&3.0);
///
///     let error = other.try_receive::<f64>().unwrap_err();
///     assert_eq!(error.class(), ErrorClass::Truncate);
///     assert!(matches!(error.kind(), ErrorKind::Truncated { bytes: 16, capacity: 8, .. }));
///     assert_eq!(error.rank(), Some(world.rank()));
///
///     // The message that did not fit is gone.
///     assert_eq!(other.receive::<f64>().0, 3.0);
/// });
/// ```
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(Box<Report>);

/// In the heap, so that results are small.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Report {
    rank: Option<Rank>,
    call: &'static str,
    location: &'static Location<'static>,
    kind: ErrorKind,
}

impl Error {
    /// What was wrong.
    ///
    /// Example: [`Error`].
    pub fn kind(&self) -> &ErrorKind {
        &self.0.kind
    }

    /// What was wrong, without where.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::ErrorKind;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let kind = world.try_process_at_rank(2).unwrap_err().into_kind();
    ///     assert!(matches!(kind, ErrorKind::RankOutOfRange { rank: 2, size: 2, .. }));
    /// });
    /// ```
    pub fn into_kind(self) -> ErrorKind {
        self.0.kind
    }

    /// The class of the error in MPI (MPI-4.1 section 9.4).
    ///
    /// Example: [`Error`].
    pub fn class(&self) -> ErrorClass {
        self.0.kind.class()
    }

    /// The rank, in the job, whose call it was; `None` outside of ranks.
    ///
    /// Example: [`Error`].
    pub fn rank(&self) -> Option<Rank> {
        self.0.rank
    }

    /// The name of the call, without `try_` and `_with_tag`.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let error = world.try_process_at_rank(2).unwrap_err();
    ///     assert_eq!(error.call(), "process_at_rank");
    /// });
    /// ```
    pub fn call(&self) -> &'static str {
        self.0.call
    }

    /// Where the program calls.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let error = world.try_process_at_rank(2).unwrap_err();
    ///     assert_eq!(error.location().line(), line!() - 1);
    /// });
    /// ```
    pub fn location(&self) -> &'static Location<'static> {
        self.0.location
    }

    #[cold]
    #[inline(never)]
    #[track_caller]
    fn new(kind: ErrorKind, site: Site) -> Error {
        let rank = pe::current_rank().and_then(|rank| Rank::try_from(rank).ok());
        let location = site.location.unwrap_or(Location::caller());
        Error(Box::new(Report { rank, call: site.call, location, kind }))
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { rank, call, location, kind } = &*self.0;
        let mut out = f.debug_struct("Error");
        out.field("rank", rank).field("call", call);
        out.field("location", &format_args!("{location}")).field("kind", kind).finish()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { rank, call, location, kind } = self;
        let who = |f: &mut fmt::Formatter<'_>| match rank {
            Some(rank) => write!(f, "rank {rank}"),
            None => f.write_str("no rank"),
        };
        match kind {
            ErrorKind::ForeignRequest { owner, begun } => {
                who(f)?;
                write!(
                    f,
                    " goes on with what rank {owner} has begun, its {begun}: only that rank can"
                )
            }
            ErrorKind::Root { .. } => write!(f, "{call} at {location} is {kind}"),
            _ => {
                who(f)?;
                write!(f, " in {call} at {location}: {kind}")
            }
        }
    }
}

/// Results of the engine, which do not say where.
pub(crate) trait At {
    /// What went well.
    type Well;

    /// The result, with the call and the calling rank in its error.
    #[track_caller]
    fn at(self, site: Site) -> Result<Self::Well, Error>;
}

impl<T> At for Result<T, ErrorKind> {
    type Well = T;

    #[inline(always)]
    #[track_caller]
    fn at(self, site: Site) -> Result<T, Error> {
        match self {
            Ok(well) => Ok(well),
            Err(kind) => Err(Error::new(kind, site)),
        }
    }
}

/// Results of calls that panic when their use is wrong.
pub(crate) trait OrRefuse {
    /// What went well.
    type Well;

    /// What went well, or a panic that says what was wrong.
    fn or_refuse(self) -> Self::Well;
}

impl<T> OrRefuse for Result<T, Error> {
    type Well = T;

    #[inline(always)]
    fn or_refuse(self) -> T {
        match self {
            Ok(well) => well,
            Err(error) => fail(&error),
        }
    }
}

/// Says what was wrong with a call.
///
/// # Panics
/// Always.
#[cold]
#[inline(never)]
pub(crate) fn refuse(kind: ErrorKind, site: Site) -> ! {
    fail(&Error::new(kind, site))
}

/// # Panics
/// Always.
#[cold]
#[inline(never)]
fn fail(error: &Error) -> ! {
    panic!("{error}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(call: &'static str, kind: ErrorKind) -> Error {
        Error::new(kind, Site { call, location: Some(Location::caller()) })
    }

    #[test]
    fn an_error_can_be_passed_on() {
        fn expect<T: std::error::Error + Send + Sync + 'static>() {}
        expect::<Error>();
        assert_eq!(size_of::<Result<(), Error>>(), size_of::<usize>());
    }

    #[test]
    fn the_text_says_who_where_and_what() {
        let error = at("receive", ErrorKind::TagOutOfRange { tag: -3 });
        let text = error.to_string();
        assert!(text.starts_with("no rank in receive at "), "{text}");
        assert!(text.contains("error.rs"), "{text}");
        assert!(text.ends_with(": tag -3 is out of range: 0 to 2147483647 are allowed"), "{text}");
        assert_eq!((error.rank(), error.call(), error.class()), (None, "receive", ErrorClass::Tag));
        assert!(error.location().file().ends_with("error.rs"));
    }

    #[test]
    fn a_call_for_the_root_says_so() {
        let text =
            at("gather_into", ErrorKind::Root { rank: 0, root: 0, for_root: false }).to_string();
        assert!(text.starts_with("gather_into at "), "{text}");
        let end = " is for all ranks but the root: rank 0 called it, the root is 0";
        assert!(text.ends_with(end), "{text}");
    }
}
