//! Wrong use, said for people: a panic with the rank, the call, its line and the value.

use vrt_core::{Error, Site, pe};

/// Says what was wrong with a call.
///
/// # Panics
/// Always.
#[cold]
#[inline(never)]
pub(crate) fn refuse(error: &Error, site: Site) -> ! {
    let rank = pe::current_rank().map_or("no rank".to_owned(), |rank| format!("rank {rank}"));
    match error {
        Error::ForeignRequest { owner, begun } => panic!(
            "{rank} goes on with what rank {owner} has begun, its {begun}: only that rank can"
        ),
        error if site.call.is_empty() => match site.location {
            Some(location) => panic!("{rank} at {location}: {error}"),
            None => panic!("{rank}: {error}"),
        },
        error => panic!("{rank} in {site}: {error}"),
    }
}

/// Results of the engine whose errors are wrong use.
pub(crate) trait OrRefuse {
    /// What went well.
    type Well;

    /// It, or a panic that says what was wrong.
    fn or_refuse(self, site: Site) -> Self::Well;
}

impl<T> OrRefuse for Result<T, Error> {
    type Well = T;

    #[inline(always)]
    fn or_refuse(self, site: Site) -> T {
        match self {
            Ok(well) => well,
            Err(error) => refuse(&error, site),
        }
    }
}
