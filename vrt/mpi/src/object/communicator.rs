//! Communicators: the engine's, with what MPI attaches to them.

use std::cell::{Cell, RefCell};
use std::ffi::c_int;
use std::rc::Rc;

use vrt_abi::constants::*;
use vrt_core::comm::handle::{CommunicatorHandle, Info as EngineInfo, Members};
use vrt_core::comm::{SELF, WORLD, create, inter};
use vrt_core::pe;
use vrt_core::{Error, Site};

use super::attribute::Attributes;
use super::errhandler::Handler;
use super::info::Info;
use crate::fault::{Outcome, refuse};
use crate::numbers;

/// A communicator, with the data that C attaches to it.
#[derive(Debug)]
pub(crate) struct Comm {
    /// The part that most messages need.
    pub(crate) span: Span,
    pub(crate) engine: CommunicatorHandle,
    pub(crate) errhandler: RefCell<Handler>,
    pub(crate) attributes: Attributes,
    pub(crate) info: RefCell<Info>,
    /// For buffered sends.
    pub(crate) buffer: Cell<(usize, usize)>,
}

/// The part of a communicator with consecutive members that messages need.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    /// The context of its messages.
    pub(crate) context: u32,
    /// The caller's rank.
    pub(crate) rank: c_int,
    /// The first rank of the job in the destination group.
    first: u32,
    /// The number of consecutive members; 0 if they are not consecutive.
    len: u32,
}

impl Span {
    fn of(engine: &EngineInfo) -> Span {
        let (first, len) = match *engine.partners() {
            Members::Range { first, count } => (first, count),
            Members::List(_) => (0, 0),
        };
        Span { context: engine.context, rank: engine.rank, first, len }
    }

    /// The rank of the job that is `rank` here, if this is known here.
    #[inline(always)]
    fn job_rank(self, rank: c_int) -> Option<u32> {
        (rank.cast_unsigned() < self.len).then(|| self.first.wrapping_add(rank.cast_unsigned()))
    }
}

impl Comm {
    /// The rank of the job that is `rank` here, for messages.
    ///
    /// # Errors
    /// The rank does not exist.
    #[inline(always)]
    pub(crate) fn job_rank(&self, rank: c_int) -> Outcome<u32> {
        match self.span.job_rank(rank) {
            Some(found) => Ok(found),
            None => self.other_job_rank(rank),
        }
    }

    #[inline(never)]
    fn other_job_rank(&self, rank: c_int) -> Outcome<u32> {
        Ok(self.engine.job_rank(rank)?)
    }

    /// With the initial data of a new communicator.
    pub(crate) fn new(engine: CommunicatorHandle) -> Comm {
        Comm {
            span: Span::of(&engine),
            engine,
            errhandler: RefCell::new(Handler::FATAL),
            attributes: Attributes::default(),
            info: RefCell::default(),
            buffer: Cell::new((0, 0)),
        }
    }

    /// The communicator of all ranks, for the calling rank.
    pub(crate) fn world() -> Comm {
        let (rank, size) = pe::with(|pe| (pe.engine.running_rank(), pe.engine.shared().ranks()));
        let members = Members::Range { first: 0, count: numbers::int(size).cast_unsigned() };
        Comm::named(EngineInfo::new(WORLD, rank.cast_signed(), members), "MPI_COMM_WORLD")
    }

    /// The communicator of the calling rank alone.
    pub(crate) fn itself() -> Comm {
        let rank = pe::with(|pe| pe.engine.running_rank());
        let members = Members::Range { first: rank, count: 1 };
        Comm::named(EngineInfo::new(SELF, 0, members), "MPI_COMM_SELF")
    }

    fn named(info: EngineInfo, name: &str) -> Comm {
        *info.name.borrow_mut() = name.to_owned();
        Comm::new(CommunicatorHandle::new(info))
    }

    /// Its name; empty if it has none.
    pub(crate) fn name(&self) -> String {
        self.engine.name.borrow().clone()
    }

    /// Whether it is an intercommunicator.
    pub(crate) fn is_inter(&self) -> bool {
        self.engine.remote.is_some()
    }

    /// Refuses an intercommunicator.
    ///
    /// # Errors
    /// It is an intercommunicator.
    pub(crate) fn expect_intra(&self) -> Outcome {
        if self.is_inter() {
            refuse!(
                MPI_ERR_COMM,
                "the communicator is one between two groups, which is not allowed"
            );
        }
        Ok(())
    }

    /// Refuses anything but an intercommunicator.
    ///
    /// # Errors
    /// It is not an intercommunicator.
    pub(crate) fn expect_inter(&self) -> Outcome {
        if !self.is_inter() {
            refuse!(MPI_ERR_COMM, "the communicator is not one between two groups");
        }
        Ok(())
    }

    /// A communicator of the same ranks.
    ///
    /// # Errors
    /// Those of [`create::duplicate`].
    pub(crate) async fn duplicate(self: Rc<Comm>, site: Site) -> Result<CommunicatorHandle, Error> {
        if self.is_inter() {
            return inter::duplicate(&self.engine, site).await;
        }
        create::duplicate(&self.engine, site).await
    }
}
