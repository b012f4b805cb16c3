//! What the caller decides.

/// The caller's decisions about symbols and libraries.
///
/// Libraries are identified by the name of their file: `libm.so.6`.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// What the runtime provides: the address, in this process, of a function or variable. It is consulted for every
    /// reference that the program and its private libraries do not define themselves, and takes precedence over libc's
    /// definition.
    pub provided: &'a dyn Fn(&str) -> Option<usize>,
    /// Whether everything that is needed from a library is provided, so that it is not loaded.
    pub is_provided: &'a dyn Fn(&str) -> bool,
    /// The reason why a library must not be loaded, if so. If the process has one for itself, images see nothing of it.
    pub refused: &'a dyn Fn(&str) -> Option<String>,
    /// Whether the process has one copy of a library for all images.
    pub shared: &'a dyn Fn(&str) -> bool,
    /// Bytes right below the thread pointer that the process does not use in any thread: the result of
    /// [`thread_reserve`](crate::thread_reserve). With 0, no image can have thread-locals.
    pub thread_reserve: usize,
}
