//! What programs have handles of, and what messages need of it: plain types, of which [`Process`](crate::process::Process)
//! has tables. Nothing here knows the calling rank: what is freed or handed to functions of the program is passed to it.

pub(crate) mod attribute;
pub(crate) mod buffer;
mod communicator;
pub(crate) mod datatype;
mod errhandler;
mod error_codes;
mod generalized;
mod info;
mod message;
pub(crate) mod op;
pub(crate) mod request;
mod session;
mod status;
mod window;

pub(crate) use attribute::Attributes;
pub(crate) use communicator::Comm;
pub(crate) use datatype::{TypeRef, Use};
pub(crate) use errhandler::{Errhandler, Handler, On};
pub(crate) use error_codes::Codes;
pub(crate) use generalized::Generalized;
pub(crate) use info::Info;
pub(crate) use message::Message;
pub(crate) use op::Op;
pub(crate) use request::Request;
pub(crate) use session::Session;
pub(crate) use status::Stat;
pub(crate) use window::{OwnPart, Window};
