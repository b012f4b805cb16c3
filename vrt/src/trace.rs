//! Regions of a program in a trace, and `tracing` in ranks.
//!
//! What `--trace FILE` records has the [`region`]s of a program, and its `tracing` spans where the subscriber is
//! wrapped in [`SpansAsRegions`].
//!
//! A subscriber is process-wide, so what it allocates must not lie in the heap of the rank that
//! happens to make it grow. Wrap it in [`OnRuntimeHeap`]; then ranks can use `tracing` freely.

use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::{Mutex, PoisonError};

use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use vrt_core::pe;
use vrt_slot::hooks::outside_heap;

/// The rank is in a region of its program until this is dropped.
///
/// Example: [`region`].
#[derive(Debug)]
#[must_use = "the region ends when this is dropped"]
pub struct Region {
    /// A rank's own.
    not_send: PhantomData<*const ()>,
}

/// Begins a region of the program, which a trace (`--trace FILE`) shows by its name, up to 255 bytes of it. Regions
/// of a rank lie in each other: the one that began last ends first. Where nothing is recorded it costs next to
/// nothing.
///
/// # Examples
///
/// ```
/// # vrt::run_local(2, |_| {
/// let _region = vrt::region("assemble");
/// // ...
/// # });
/// ```
#[inline]
pub fn region(name: &str) -> Region {
    pe::region_begins(name);
    Region { not_send: PhantomData }
}

impl Drop for Region {
    #[inline]
    fn drop(&mut self) {
        pe::region_ends();
    }
}

/// A subscriber whose spans are regions of a trace, too. Spans that are entered across an `await` are no
/// regions of one rank: enter them where nothing is awaited.
///
/// # Examples
///
/// ```no_run
/// use vrt::trace::{OnRuntimeHeap, SpansAsRegions};
///
/// let subscriber = tracing_subscriber::registry();
/// tracing::subscriber::set_global_default(SpansAsRegions::new(OnRuntimeHeap(subscriber))).unwrap();
/// ```
#[derive(Debug)]
pub struct SpansAsRegions<S> {
    subscriber: S,
    /// Names of spans that have not closed.
    names: Mutex<HashMap<u64, &'static str>>,
}

impl<S> SpansAsRegions<S> {
    /// Around a subscriber.
    ///
    /// Example: [`SpansAsRegions`].
    pub fn new(subscriber: S) -> SpansAsRegions<S> {
        SpansAsRegions { subscriber, names: Mutex::default() }
    }

    /// On the process's heap: what grows belongs to all ranks.
    fn with_names<R>(&self, f: impl FnOnce(&mut HashMap<u64, &'static str>) -> R) -> R {
        outside_heap(|| f(&mut self.names.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

impl<S: Subscriber> Subscriber for SpansAsRegions<S> {
    fn register_callsite(
        &self,
        metadata: &'static Metadata<'static>,
    ) -> tracing::subscriber::Interest {
        self.subscriber.register_callsite(metadata)
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        self.subscriber.enabled(metadata)
    }

    fn max_level_hint(&self) -> Option<tracing::level_filters::LevelFilter> {
        self.subscriber.max_level_hint()
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let id = self.subscriber.new_span(span);
        self.with_names(|names| names.insert(id.into_u64(), span.metadata().name()));
        id
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        self.subscriber.record(span, values);
    }

    fn record_follows_from(&self, span: &Id, follows: &Id) {
        self.subscriber.record_follows_from(span, follows);
    }

    fn event_enabled(&self, event: &Event<'_>) -> bool {
        self.subscriber.event_enabled(event)
    }

    fn event(&self, event: &Event<'_>) {
        self.subscriber.event(event);
    }

    fn enter(&self, span: &Id) {
        self.subscriber.enter(span);
        let name = self.with_names(|names| names.get(&span.into_u64()).copied());
        pe::region_begins(name.unwrap_or("span"));
    }

    fn exit(&self, span: &Id) {
        self.subscriber.exit(span);
        pe::region_ends();
    }

    fn clone_span(&self, id: &Id) -> Id {
        self.subscriber.clone_span(id)
    }

    fn try_close(&self, id: Id) -> bool {
        let number = id.into_u64();
        let is_closed = self.subscriber.try_close(id);
        if is_closed {
            self.with_names(|names| names.remove(&number));
        }
        is_closed
    }
}

/// A subscriber whose memory is the process's, whoever calls it.
///
/// # Examples
///
/// ```no_run
/// let subscriber = tracing_subscriber::fmt().finish();
/// tracing::subscriber::set_global_default(vrt::trace::OnRuntimeHeap(subscriber)).unwrap();
/// ```
#[derive(Debug)]
pub struct OnRuntimeHeap<S>(pub S);

impl<S: Subscriber> Subscriber for OnRuntimeHeap<S> {
    fn register_callsite(
        &self,
        metadata: &'static Metadata<'static>,
    ) -> tracing::subscriber::Interest {
        outside_heap(|| self.0.register_callsite(metadata))
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        outside_heap(|| self.0.enabled(metadata))
    }

    fn max_level_hint(&self) -> Option<tracing::level_filters::LevelFilter> {
        outside_heap(|| self.0.max_level_hint())
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        outside_heap(|| self.0.new_span(span))
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        outside_heap(|| self.0.record(span, values));
    }

    fn record_follows_from(&self, span: &Id, follows: &Id) {
        outside_heap(|| self.0.record_follows_from(span, follows));
    }

    fn event_enabled(&self, event: &Event<'_>) -> bool {
        outside_heap(|| self.0.event_enabled(event))
    }

    fn event(&self, event: &Event<'_>) {
        outside_heap(|| self.0.event(event));
    }

    fn enter(&self, span: &Id) {
        outside_heap(|| self.0.enter(span));
    }

    fn exit(&self, span: &Id) {
        outside_heap(|| self.0.exit(span));
    }

    fn clone_span(&self, id: &Id) -> Id {
        outside_heap(|| self.0.clone_span(id))
    }

    fn try_close(&self, id: Id) -> bool {
        outside_heap(|| self.0.try_close(id))
    }
}
