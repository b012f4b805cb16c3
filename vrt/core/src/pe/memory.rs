//! Memory in which a PE keeps data of messages and of arriving ranks. If there is none, the job ends: what was sent
//! cannot be undone.

use std::fmt;

use crate::pe::Core;
use vrt_slot::{hooks, report};

impl Core {
    /// A block of the pool, which may be as long as a slot; where there is no room the job ends, and says for
    /// `what`.
    #[inline]
    pub(crate) fn block_for(&mut self, len: usize, what: &str) -> *mut u8 {
        // SAFETY: the pool is this PE's.
        let block = unsafe { hooks::allocate_in(self.pool, len) };
        if block.is_null() {
            self.end_without_memory(format_args!("{what} ({len} bytes asked)"));
        }
        block
    }

    #[cold]
    fn end_without_memory(&self, what: fmt::Arguments<'_>) -> ! {
        let id = self.id;
        let advice = "receive earlier, lower --unexpected, or raise --slot";
        if self.options.local {
            panic!("PE {id}: no memory left for {what}; {advice}");
        }
        report::say(format_args!("PE {id}: no memory left for {what}; {advice}; ending the job"));
        report::end_job(report::STATUS_RUNTIME)
    }
}
