//! A small number for each thread, which no other thread has while it lives.
//!
//! This file owns the giving and taking back of slots. It refuses to make a thread wait: one that finds no slot goes without.

use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// Threads that have a slot at a time.
pub(super) const SLOTS: usize = 16;

/// Bit `i` is set while a thread has slot `i`.
static TAKEN: AtomicUsize = AtomicUsize::new(0);

struct Slot(Option<usize>);

std::thread_local! {
    static SLOT: Slot = Slot::take();
}

impl Slot {
    /// A free slot, for the life of the thread.
    fn take() -> Slot {
        let mut taken = TAKEN.load(Relaxed);
        loop {
            let free = (!taken).trailing_zeros() as usize;
            if free >= SLOTS {
                return Slot(None);
            }
            // Acquire: what the slot's last thread wrote with plain stores is seen by this one, which adds to it.
            match TAKEN.compare_exchange_weak(taken, taken | 1 << free, Acquire, Relaxed) {
                Ok(_) => return Slot(Some(free)),
                Err(found) => taken = found,
            }
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(slot) = self.0 {
            TAKEN.fetch_and(!(1 << slot), Release);
        }
    }
}

/// The slot of the calling thread; none if all were taken when it first asked, or once the thread has given it back at its end.
#[inline]
pub(super) fn of_this_thread() -> Option<usize> {
    SLOT.try_with(|slot| slot.0).ok().flatten()
}
