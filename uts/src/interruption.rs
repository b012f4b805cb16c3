//! Ctrl-C in a sequential search. (A search by ranks is ended by its supervisor.)

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use signal_hook::{consts::SIGINT, flag};

/// Whether Ctrl-C was pressed.
#[derive(Debug)]
pub(crate) struct Interruption(Arc<AtomicBool>);

impl Interruption {
    /// Catches it from now on. A second Ctrl-C ends the process at once.
    pub(crate) fn watch() -> Self {
        let came = Arc::new(AtomicBool::new(false));
        let status = i32::from(crate::INTERRUPTED);
        // In this order: the first time, the flag is not set yet. Where signals cannot be handled, the
        // process ends without a partial result.
        let _ = flag::register_conditional_shutdown(SIGINT, status, Arc::clone(&came))
            .and_then(|_| flag::register(SIGINT, Arc::clone(&came)));
        Self(came)
    }

    /// Whether Ctrl-C was pressed.
    pub(crate) fn came(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
