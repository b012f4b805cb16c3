//! Windows (MPI-4.1 chapter 12): the core's, with units of displacement, attributes, and the memory that MPI allocates.

use std::cell::RefCell;
use std::ffi::{c_int, c_void};

use vrt_abi::constants::*;
use vrt_abi::types::*;
use vrt_core::rma::window;

use super::attribute::Attributes;
use super::errhandler::Handler;
use super::info::Info;

/// A window.
#[derive(Debug)]
pub(crate) struct Window {
    /// The parts are measured in bytes.
    pub(crate) core: window::Window,
    /// By rank: bytes per unit of displacement.
    pub(crate) units: Vec<usize>,
    /// Memory allocated for the window, freed with it.
    pub(crate) owned: *mut c_void,
    /// The rank's own part, in the form in which the program queries it.
    pub(crate) part: Box<OwnPart>,
    pub(crate) errhandler: RefCell<Handler>,
    pub(crate) attributes: Attributes,
    pub(crate) name: RefCell<String>,
    pub(crate) info: RefCell<Info>,
}

/// The targets of predefined attributes' pointers.
#[derive(Debug)]
pub(crate) struct OwnPart {
    pub(crate) base: *mut c_void,
    pub(crate) size: MPI_Aint,
    pub(crate) unit: c_int,
    pub(crate) flavor: c_int,
    pub(crate) model: c_int,
}

impl Window {
    /// The value of a predefined attribute: an address, or the address of a number.
    pub(crate) fn predefined(&self, key: c_int) -> Option<*mut c_void> {
        Some(match key {
            MPI_WIN_BASE => self.part.base,
            MPI_WIN_SIZE => (&raw const self.part.size).cast_mut().cast(),
            MPI_WIN_DISP_UNIT => (&raw const self.part.unit).cast_mut().cast(),
            MPI_WIN_CREATE_FLAVOR => (&raw const self.part.flavor).cast_mut().cast(),
            MPI_WIN_MODEL => (&raw const self.part.model).cast_mut().cast(),
            _ => return None,
        })
    }
}
