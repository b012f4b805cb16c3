//! Several requests at once (MPI-4.1 section 3.7.5).

use std::fmt;

use crate::operation::Status;
use crate::operation::yield_now;
use crate::request::{LocalScope, Request, Scope};

/// Waits until one of the requests is done, takes it out and gives its place and status; `None`
/// when there are none.
///
/// # Examples
///
/// ```
/// use vrt::request::wait_any;
/// use vrt::traits::*;
///
/// vrt::run_local(2, |world| {
///     let (other, mut numbers) = (world.process_at_rank(1 - world.rank()), [0; 2]);
///     other.send(&7);
///     other.send(&8);
///     vrt::request::scope(|scope| {
///         let receive = |place| other.immediate_receive_into(scope, place);
///         let mut requests: Vec<_> = numbers.iter_mut().map(receive).collect();
///         while let Some((_, status)) = wait_any(&mut requests) {
///             assert_eq!(status.source_rank(), other.rank());
///         }
///     });
///     assert_eq!(numbers, [7, 8]);
/// });
/// ```
#[track_caller]
pub fn wait_any<'a, D: ?Sized, S: Scope<'a>>(
    requests: &mut Vec<Request<'a, D, S>>,
) -> Option<(usize, Status)> {
    while !requests.is_empty() {
        if let Some(at) = requests.iter().position(Request::is_done) {
            return Some((at, requests.remove(at).wait()));
        }
        yield_now();
    }
    None
}

/// Requests that are completed together. All of them have to be completed: dropping the collection with open ones aborts
/// the process, because their buffers would be gone.
///
/// # Examples
///
/// ```
/// use vrt::request::RequestCollection;
/// use vrt::traits::*;
///
/// vrt::run_local(2, |world| {
///     let (other, mut numbers) = (world.process_at_rank(1 - world.rank()), [0; 2]);
///     vrt::request::multiple_scope(2, |scope, requests: &mut RequestCollection<'_, i32>| {
///         for place in &mut numbers {
///             requests.add(other.immediate_receive_into(scope, place));
///         }
///         other.send(&7);
///         other.send(&8);
///         while let Some((place, _, value)) = requests.wait_any() {
///             assert_eq!(*value, [7, 8][place]);
///         }
///     });
/// });
/// ```
pub struct RequestCollection<'a, D: ?Sized> {
    requests: Vec<Option<Request<'a, D, StaticOrLocal>>>,
    open: usize,
}

/// The collection itself keeps its requests from being dropped.
#[derive(Clone, Copy, Debug)]
struct StaticOrLocal;

// SAFETY: a collection that is dropped with open requests ends the process.
unsafe impl Scope<'_> for StaticOrLocal {
    fn register(&self) {}

    unsafe fn unregister(&self) {}
}

impl<D: ?Sized> fmt::Debug for RequestCollection<'_, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestCollection").field("incomplete", &self.open).finish_non_exhaustive()
    }
}

impl<'a, D: ?Sized> RequestCollection<'a, D> {
    fn new(reserve: usize) -> Self {
        RequestCollection { requests: Vec::with_capacity(reserve), open: 0 }
    }

    /// How many are not done.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let (other, mut theirs) = (world.process_at_rank(1 - world.rank()), 0);
    ///     vrt::request::multiple_scope(1, |scope, requests| {
    ///         requests.add(other.immediate_receive_into(scope, &mut theirs));
    ///         assert_eq!(requests.incomplete(), 1);
    ///         other.send(&world.rank());
    ///         requests.wait_any();
    ///         assert_eq!(requests.incomplete(), 0);
    ///     });
    /// });
    /// ```
    pub fn incomplete(&self) -> usize {
        self.open
    }

    /// Adds a request; gives its place.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let (me, other) = (world.rank(), world.process_at_rank(1 - world.rank()));
    ///     vrt::request::multiple_scope(2, |scope, requests| {
    ///         assert_eq!(requests.add(other.immediate_send(scope, &me)), 0);
    ///         assert_eq!(requests.add(other.immediate_send(scope, &me)), 1);
    ///         (0..2).for_each(|_| assert_eq!(other.receive::<i32>().0, other.rank()));
    ///         requests.wait_all(&mut Vec::new());
    ///     });
    /// });
    /// ```
    pub fn add<S: Scope<'a>>(&mut self, request: Request<'a, D, S>) -> usize {
        self.requests.push(Some(request.shrink_scope_to(StaticOrLocal)));
        self.open += 1;
        self.requests.len() - 1
    }

    fn take_done(&mut self) -> Option<(usize, Status, &'a D)> {
        let done = |slot: &Option<Request<'a, D, StaticOrLocal>>| {
            slot.as_ref().is_some_and(Request::is_done)
        };
        let at = self.requests.iter().position(done)?;
        let request = self.requests[at].take()?;
        self.open -= 1;
        let data = request.data;
        Some((at, request.wait(), data))
    }

    /// Waits until one is done; `None` when there are none.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let (other, mut numbers) = (world.process_at_rank(1 - world.rank()), [0; 2]);
    ///     other.send(&7);
    ///     other.send(&8);
    ///     vrt::request::multiple_scope(2, |scope, requests| {
    ///         for place in &mut numbers {
    ///             requests.add(other.immediate_receive_into(scope, place));
    ///         }
    ///         let (place, status, value) = requests.wait_any().unwrap();
    ///         assert_eq!((place, status.source_rank(), *value), (0, other.rank(), 7));
    ///         requests.wait_any();
    ///         assert!(requests.wait_any().is_none());
    ///     });
    /// });
    /// ```
    #[track_caller]
    pub fn wait_any(&mut self) -> Option<(usize, Status, &'a D)> {
        while self.open > 0 {
            if let Some(done) = self.take_done() {
                return Some(done);
            }
            yield_now();
        }
        None
    }

    /// Waits until at least one is done; the list then has all that are, and nothing else.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let (other, mut numbers) = (world.process_at_rank(1 - world.rank()), [0; 2]);
    ///     other.send(&7);
    ///     other.send(&8);
    ///     vrt::request::multiple_scope(2, |scope, requests| {
    ///         for place in &mut numbers {
    ///             requests.add(other.immediate_receive_into(scope, place));
    ///         }
    ///         let mut done = Vec::new();
    ///         while requests.incomplete() > 0 {
    ///             requests.wait_some(&mut done);
    ///             assert!(done.iter().all(|(place, _, value)| **value == [7, 8][*place]));
    ///         }
    ///     });
    /// });
    /// ```
    #[track_caller]
    pub fn wait_some(&mut self, result: &mut Vec<(usize, Status, &'a D)>) {
        result.clear();
        result.extend(self.wait_any());
        while let Some(done) = self.take_done() {
            result.push(done);
        }
    }

    /// Waits until all are done; the list then has all of them, and nothing else.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let (other, mut numbers) = (world.process_at_rank(1 - world.rank()), [0; 2]);
    ///     other.send(&7);
    ///     other.send(&8);
    ///     vrt::request::multiple_scope(2, |scope, requests| {
    ///         for place in &mut numbers {
    ///             requests.add(other.immediate_receive_into(scope, place));
    ///         }
    ///         let mut done = Vec::new();
    ///         requests.wait_all(&mut done);
    ///         assert!(done.iter().all(|(place, _, value)| **value == [7, 8][*place]));
    ///         assert_eq!(done.len(), 2);
    ///     });
    /// });
    /// ```
    pub fn wait_all(&mut self, result: &mut Vec<(usize, Status, &'a D)>) {
        result.clear();
        for (at, slot) in self.requests.iter_mut().enumerate() {
            if let Some(request) = slot.take() {
                self.open -= 1;
                let data = request.data;
                result.push((at, request.wait(), data));
            }
        }
    }

    /// One that is done, if any is.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let (other, mut numbers) = (world.process_at_rank(1 - world.rank()), [0; 2]);
    ///     other.send(&7);
    ///     other.send(&8);
    ///     vrt::request::multiple_scope(2, |scope, requests| {
    ///         for place in &mut numbers {
    ///             requests.add(other.immediate_receive_into(scope, place));
    ///         }
    ///         while requests.incomplete() > 0 {
    ///             // Here a rank does a part of its work.
    ///             if let Some((place, _, value)) = requests.test_any() {
    ///                 assert_eq!(*value, [7, 8][place]);
    ///             }
    ///         }
    ///     });
    /// });
    /// ```
    #[track_caller]
    pub fn test_any(&mut self) -> Option<(usize, Status, &'a D)> {
        let done = self.take_done();
        if done.is_none() && self.open > 0 {
            yield_now();
        }
        done
    }

    /// The list then has all that are done, and nothing else.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let (other, mut numbers) = (world.process_at_rank(1 - world.rank()), [0; 2]);
    ///     other.send(&7);
    ///     other.send(&8);
    ///     vrt::request::multiple_scope(2, |scope, requests| {
    ///         for place in &mut numbers {
    ///             requests.add(other.immediate_receive_into(scope, place));
    ///         }
    ///         let mut done = Vec::new();
    ///         while requests.incomplete() > 0 {
    ///             // Here a rank does a part of its work.
    ///             requests.test_some(&mut done);
    ///             assert!(done.iter().all(|(place, _, value)| **value == [7, 8][*place]));
    ///         }
    ///     });
    /// });
    /// ```
    #[track_caller]
    pub fn test_some(&mut self, result: &mut Vec<(usize, Status, &'a D)>) {
        result.clear();
        result.extend(self.test_any());
        while let Some(done) = self.take_done() {
            result.push(done);
        }
    }

    /// If all are done, true, and the list then has all of them; otherwise it is left as it is.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let (other, mut numbers) = (world.process_at_rank(1 - world.rank()), [0; 2]);
    ///     other.send(&7);
    ///     other.send(&8);
    ///     vrt::request::multiple_scope(2, |scope, requests| {
    ///         for place in &mut numbers {
    ///             requests.add(other.immediate_receive_into(scope, place));
    ///         }
    ///         let mut done = Vec::new();
    ///         while !requests.test_all(&mut done) {
    ///             // Here a rank does a part of its work.
    ///         }
    ///         assert_eq!(done.len(), 2);
    ///     });
    ///     assert_eq!(numbers, [7, 8]);
    /// });
    /// ```
    #[track_caller]
    pub fn test_all(&mut self, result: &mut Vec<(usize, Status, &'a D)>) -> bool {
        let all = self.requests.iter().flatten().all(Request::is_done);
        if all {
            self.wait_all(result);
        } else {
            yield_now();
        }
        all
    }
}

impl<D: ?Sized> Drop for RequestCollection<'_, D> {
    fn drop(&mut self) {
        if self.open > 0 && !std::thread::panicking() {
            vrt_slot::report::say(format_args!(
                "a request collection ended with {} requests that were not completed",
                self.open
            ));
            std::process::abort();
        }
        // Reached while panicking, or with none that is open.
        self.requests.drain(..).flatten().for_each(Request::abandon);
    }
}

/// Runs `f` with a scope and a collection for requests with one kind of buffer.
///
/// # Examples
///
/// ```
/// use vrt::traits::*;
///
/// vrt::run_local(3, |world| {
///     let mut from = [0; 3];
///     vrt::request::multiple_scope(3, |scope, requests| {
///         for (rank, place) in from.iter_mut().enumerate() {
///             let source = world.process_at_rank(rank as i32);
///             requests.add(source.immediate_receive_into(scope, place));
///         }
///         (0..3).for_each(|rank| world.process_at_rank(rank).send(&world.rank()));
///         requests.wait_all(&mut Vec::new());
///     });
///     assert_eq!(from, [0, 1, 2]);
/// });
/// ```
pub fn multiple_scope<'a, F, R, D>(reserve: usize, f: F) -> R
where
    D: 'a + ?Sized,
    F: FnOnce(&LocalScope<'a>, &mut RequestCollection<'a, D>) -> R,
{
    f(&LocalScope::new(), &mut RequestCollection::new(reserve))
}
