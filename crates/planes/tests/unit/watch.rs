//! Records which cache lines the tested code prefetches.

use std::cell::RefCell;
use std::vec::Vec;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A cache line is prefetched: its address divided by 64.
    Line(usize),
    /// Marks the start of a window of the answers.
    Window,
}

std::thread_local! {
    static SEEN: RefCell<Option<Vec<Event>>> = const { RefCell::new(None) };
}

/// Returns the events of this thread during `work`, in order.
pub(crate) fn events(work: impl FnOnce()) -> Vec<Event> {
    SEEN.set(Some(Vec::new()));
    work();
    SEEN.take().unwrap()
}

pub(crate) fn note(event: Event) {
    SEEN.with_borrow_mut(|seen| {
        if let Some(seen) = seen {
            seen.push(event);
        }
    });
}

/// Replaces [`blocked_bloom::parts::prefetch`].
pub(crate) fn prefetch<T>(memory: &[T], offset: usize) {
    note(Event::Line(memory.as_ptr().addr().wrapping_add(offset) / 64));
    blocked_bloom::parts::prefetch(memory, offset);
}
