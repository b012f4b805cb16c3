//! `tracing` in ranks.
//!
//! A subscriber is process-wide, so what it allocates must not lie in the heap of the rank that
//! happens to make it grow. Wrap it in [`OnRuntimeHeap`]; then ranks can use `tracing` freely.

use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use vrt_slot::hooks::outside_heap;

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
