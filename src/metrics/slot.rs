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

// Without threads on WebAssembly.
#[cfg(all(test, not(target_family = "wasm")))]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Barrier;
    use std::thread;
    use std::vec::Vec;

    use super::{SLOTS, of_this_thread};

    /// Counters are added to without a locked instruction: of two threads in one slot, one would undo what the other adds.
    #[test]
    fn threads_have_slots_of_their_own_and_give_them_back() {
        let mine = of_this_thread().unwrap();
        for _ in 0..3 {
            let all_live = Barrier::new(SLOTS + 4);
            let slot = || {
                let slot = of_this_thread();
                all_live.wait();
                slot
            };
            let slots: Vec<Option<usize>> = thread::scope(|scope| {
                let threads: Vec<_> = (0..SLOTS + 4).map(|_| scope.spawn(slot)).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            let taken: Vec<usize> = slots.into_iter().flatten().collect();
            assert!(taken.iter().all(|&slot| slot < SLOTS && slot != mine), "{taken:?}");
            assert_eq!(taken.iter().collect::<BTreeSet<_>>().len(), taken.len(), "{taken:?}");
            // The threads of other tests may have some.
            assert!(taken.len() > SLOTS / 2, "{taken:?}");
        }
    }
}
