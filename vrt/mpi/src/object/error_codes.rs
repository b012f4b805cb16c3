//! Error classes and codes (MPI-4.1 sections 9.4 and 9.5): their meanings, and those that a program adds.

use std::cell::RefCell;
use std::ffi::c_int;

use vrt_abi::constants::*;

use crate::fault::{Outcome, refuse};
use crate::numbers;

/// Classes and codes added by a program.
#[derive(Debug, Default)]
pub(crate) struct Codes(RefCell<Vec<Option<Added>>>);

#[derive(Debug)]
struct Added {
    /// Itself, if it is a class.
    class: c_int,
    text: String,
}

impl Codes {
    const FIRST: c_int = MPI_ERR_LASTCODE + 1;

    /// The codes of a class, without the class itself.
    fn of_class(&self, class: c_int) -> usize {
        let all = self.0.borrow();
        let of_class = all.iter().flatten().filter(|added| added.class == class).count();
        of_class.saturating_sub(1)
    }

    /// Adds a class or a code, given its class as a function of itself.
    pub(crate) fn add(&self, class: impl FnOnce(c_int) -> c_int) -> c_int {
        let mut all = self.0.borrow_mut();
        let code = Codes::FIRST.saturating_add(numbers::int(all.len()));
        all.push(Some(Added { class: class(code), text: String::new() }));
        code
    }

    /// The highest code in use.
    pub(crate) fn last_used(&self) -> c_int {
        MPI_ERR_LASTCODE.saturating_add(numbers::int(self.0.borrow().len()))
    }

    /// Restores the invariant that the highest code is in use: those above it can be assigned
    /// again.
    fn forget_last_removed(&self) {
        let mut all = self.0.borrow_mut();
        let used = all.iter().rposition(Option::is_some);
        all.truncate(used.map_or(0, |last| last.saturating_add(1)));
    }

    fn with<R>(&self, code: c_int, f: impl FnOnce(&mut Option<Added>) -> R) -> Option<R> {
        let index = usize::try_from(code.checked_sub(Codes::FIRST)?).ok()?;
        self.0.borrow_mut().get_mut(index).filter(|added| added.is_some()).map(f)
    }

    /// The class of a code.
    pub(crate) fn class_of(&self, code: c_int) -> c_int {
        let added = self.with(code, |added| added.as_ref().map_or(code, |added| added.class));
        added.unwrap_or(code)
    }

    /// Refuses what is neither MPI's nor added.
    ///
    /// # Errors
    /// The code is not known.
    pub(crate) fn expect(&self, code: c_int) -> Outcome {
        let is_known = vrt_abi::error_class_name(code).is_some();
        if is_known || self.with(code, |_| ()).is_some() {
            return Ok(());
        }
        refuse!(MPI_ERR_ARG, "{code} is no error code or class")
    }

    /// The meaning of a code.
    pub(crate) fn text(&self, code: c_int) -> String {
        match self.with(code, |added| added.as_ref().map(|added| added.text.clone())) {
            Some(text) => text.unwrap_or_default(),
            None => description(code).to_owned(),
        }
    }

    /// Changes the text of a code that the program has added.
    ///
    /// # Errors
    /// There is no such code.
    pub(crate) fn set_text(&self, code: c_int, text: String) -> Outcome {
        let set = |added: &mut Option<Added>| {
            if let Some(added) = added {
                added.text = text;
            }
        };
        match self.with(code, set) {
            Some(()) => Ok(()),
            None => refuse!(MPI_ERR_ARG, "{code} is no error code that the program has added"),
        }
    }

    /// Removes a class or a code.
    ///
    /// # Errors
    /// It was not added, or something of it has to be removed first.
    pub(crate) fn remove(&self, code: c_int, is_class: bool) -> Outcome {
        let fits = self.with(code, |added| {
            added.as_ref().is_some_and(|added| (added.class == code) == is_class)
        });
        if fits != Some(true) {
            refuse!(MPI_ERR_ARG, "{code} is nothing that the program has added and not removed");
        }
        // MPI-4.1 section 9.5: a class goes after its codes, a code after its text.
        match (is_class, self.of_class(code), self.text(code)) {
            (true, left @ 1.., _) => {
                refuse!(MPI_ERR_ARG, "{left} codes of the class {code} have to be removed first")
            }
            (false, _, text) if !text.is_empty() => {
                refuse!(MPI_ERR_ARG, "the text of the code {code} has to be removed first: {text}")
            }
            _ => {}
        }
        self.with(code, |added| *added = None);
        self.forget_last_removed();
        Ok(())
    }
}

/// The meaning of one of MPI's classes, as text.
fn description(class: c_int) -> &'static str {
    match class {
        MPI_SUCCESS => "no error",
        MPI_ERR_BUFFER => "wrong buffer",
        MPI_ERR_COUNT => "wrong count",
        MPI_ERR_TYPE => "wrong datatype",
        MPI_ERR_TAG => "wrong tag",
        MPI_ERR_COMM => "wrong communicator",
        MPI_ERR_RANK => "wrong rank",
        MPI_ERR_REQUEST => "wrong request",
        MPI_ERR_ROOT => "wrong root",
        MPI_ERR_GROUP => "wrong group",
        MPI_ERR_OP => "wrong operation",
        MPI_ERR_TOPOLOGY => "wrong topology",
        MPI_ERR_DIMS => "wrong dimensions",
        MPI_ERR_ARG => "wrong argument",
        MPI_ERR_UNKNOWN => "unknown error",
        MPI_ERR_TRUNCATE => "the message is longer than the buffer",
        MPI_ERR_OTHER => "another error",
        MPI_ERR_INTERN => "an error of the library itself",
        MPI_ERR_PENDING => "the request is not done",
        MPI_ERR_IN_STATUS => "the error is in the statuses",
        MPI_ERR_KEYVAL => "wrong key of attributes",
        MPI_ERR_INFO => "wrong info",
        MPI_ERR_INFO_KEY => "a key is too long",
        MPI_ERR_INFO_VALUE => "a value is too long",
        MPI_ERR_INFO_NOKEY => "there is no such key",
        MPI_ERR_NO_MEM => "no memory is left",
        MPI_ERR_WIN => "wrong window",
        MPI_ERR_RMA_RANGE => "a place outside of the window",
        MPI_ERR_RMA_SYNC => "an access outside of its epoch",
        MPI_ERR_UNSUPPORTED_OPERATION => "this is not supported",
        MPI_ERR_VALUE_TOO_LARGE => "a value is too large",
        MPI_ERR_ERRHANDLER => "wrong error handler",
        _ => vrt_abi::error_class_name(class).unwrap_or_default(),
    }
}
