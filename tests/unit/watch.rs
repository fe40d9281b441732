//! Events that unit tests record: prefetched cache lines, loops of kernels, and the threads of a
//! pool that share work.

use std::cell::{Cell, RefCell};
use std::vec::Vec;

use crate::kernel::Tuning;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A cache line was prefetched: its address divided by 64.
    Line(usize),
    /// A loop of this kernel ran.
    Ran(&'static str),
}

std::thread_local! {
    static SEEN: RefCell<Option<Vec<Event>>> = const { RefCell::new(None) };
    static TUNING: Cell<Option<&'static Tuning>> = const { Cell::new(None) };
}

/// Replaces this CPU's row with the one that a test has chosen.
pub(crate) fn tuned(tuning: &mut &'static Tuning) {
    *tuning = TUNING.get().unwrap_or(*tuning);
}

/// Sets the row that long calls of this thread use; `None` restores this CPU's row.
pub(crate) fn tune(tuning: Option<&'static Tuning>) {
    TUNING.set(tuning);
}

/// Returns the events of this thread during `work`, in order.
pub(crate) fn events(work: impl FnOnce()) -> Vec<Event> {
    SEEN.set(Some(Vec::new()));
    work();
    SEEN.take().unwrap()
}

fn note(event: Event) {
    SEEN.with_borrow_mut(|seen| {
        if let Some(seen) = seen {
            seen.push(event);
        }
    });
}

pub(crate) fn ran(kernel: &'static str) {
    note(Event::Ran(kernel));
}

pub(crate) fn prefetched(line: *const u8) {
    note(Event::Line(line.addr() / 64));
}

/// Returns the lines among the events.
pub(crate) fn lines(events: &[Event]) -> Vec<usize> {
    let line = |event: &Event| match event {
        Event::Line(line) => Some(*line),
        Event::Ran(_) => None,
    };
    events.iter().filter_map(line).collect()
}

/// Returns the kernels whose loops ran, without duplicates.
pub(crate) fn kernels(events: &[Event]) -> Vec<&'static str> {
    let kernel = |event: &Event| match event {
        Event::Line(_) => None,
        Event::Ran(kernel) => Some(*kernel),
    };
    let mut kernels: Vec<_> = events.iter().filter_map(kernel).collect();
    kernels.sort_unstable();
    kernels.dedup();
    kernels
}

#[cfg(feature = "rayon")]
pub(crate) use threads::{arrive, shared_by_threads};

#[cfg(feature = "rayon")]
mod threads {
    use std::cell::RefCell;
    use std::collections::{BTreeMap, HashSet};
    use std::sync::{Arc, Condvar, Mutex};
    use std::thread::{ThreadId, current};
    use std::time::Duration;
    use std::vec::Vec;

    /// The threads that took part in each named piece of work.
    #[derive(Default)]
    struct Rendezvous(Mutex<BTreeMap<&'static str, HashSet<ThreadId>>>, Condvar);

    std::thread_local! {
        static RENDEZVOUS: RefCell<Option<Arc<Rendezvous>>> = const { RefCell::new(None) };
    }

    /// Runs `work` in a pool of two threads, and returns the names of the work in which both took
    /// part. The first thread to start some work waits for the other, so that the result does not
    /// depend on the load of the machine.
    pub(crate) fn shared_by_threads(work: impl FnOnce() + Send) -> Vec<&'static str> {
        let meeting = Arc::new(Rendezvous::default());
        let of_pool = Arc::clone(&meeting);
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(2)
            .start_handler(move |_| RENDEZVOUS.set(Some(Arc::clone(&of_pool))))
            .build()
            .unwrap();
        pool.install(work);
        let met = meeting.0.lock().unwrap();
        met.iter().filter(|(_, threads)| threads.len() > 1).map(|(name, _)| *name).collect()
    }

    /// Records that a thread takes part in some work.
    pub(crate) fn arrive(name: &'static str) {
        let Some(meeting) = RENDEZVOUS.with_borrow(Clone::clone) else { return };
        let Rendezvous(met, changed) = &*meeting;
        let mut met = met.lock().unwrap();
        let threads = met.entry(name).or_default();
        let is_first = threads.is_empty();
        threads.insert(current().id());
        changed.notify_all();
        if is_first {
            let alone = |met: &mut BTreeMap<_, HashSet<_>>| met[name].len() < 2;
            drop(changed.wait_timeout_while(met, Duration::from_secs(20), alone).unwrap());
        }
    }
}
