//! A value that readers see without a lock while another thread replaces it. Epochs keep a replaced
//! value alive until no reader can see it.
//!
//! A reader pins once for all tables of a lookup (4 ns), and then needs one load per table.
//! Measured per table with everything in cache (`benches/resident.rs`): an epoch costs
//! about 2 ns more than a bare lookup, and cloning an `Arc` under an `RwLock` costs 10 ns more.

#![allow(unsafe_code, reason = "pointers that epochs keep alive")]

use core::fmt::{self, Debug, Formatter};
use core::sync::atomic::Ordering::{AcqRel, Acquire};

use crossbeam_epoch::{self as epoch, Atomic, Guard, Owned, Shared};

/// Keeps the filters in the slots of every set alive while a reader uses them. Create one per get,
/// use it for all tables, and drop it at the end of the get.
///
/// Filters that are evicted while a pin exists are freed after it is dropped. Creating a pin takes
/// a few nanoseconds.
///
/// # In async code
///
/// A pin belongs to the thread that created it: it is not `Send`, and a future that keeps one
/// across an `.await` is not `Send` either. The compiler then names a type of the crate that
/// implements the epochs (`*const Local` cannot be sent between threads). Collect the tables to
/// read, drop the pin, and then await:
///
/// ```
/// use blocked_bloom_resident::{FilterPin, FilterSlot};
/// async fn read(_slot: &FilterSlot) {}
///
/// async fn get(slots: &[FilterSlot], hash: u64) {
///     let to_read: Vec<&FilterSlot> =
///         FilterPin::new().tables_to_read(slots, |slot| (slot, hash)).collect();
///     for slot in to_read {
///         read(slot).await;
///     }
/// }
/// fn spawn(_: impl Future + Send) {}
/// spawn(get(&[], 42));
/// ```
///
/// This does not compile, because the pin lives across the `.await`:
///
/// ```compile_fail
/// # use blocked_bloom_resident::{FilterPin, FilterSlot};
/// # async fn read(_slot: &FilterSlot) {}
/// async fn get(slots: &[FilterSlot], hash: u64) {
///     let pin = FilterPin::new();
///     for slot in pin.tables_to_read(slots, |slot| (slot, hash)) {
///         read(slot).await;
///     }
/// }
/// # fn spawn(_: impl Future + Send) {}
/// spawn(get(&[], 42));
/// ```
pub struct FilterPin(Guard);

impl FilterPin {
    /// Pins the current thread.
    #[inline]
    #[expect(clippy::new_without_default, reason = "it does something")]
    pub fn new() -> Self {
        FilterPin(epoch::pin())
    }

    /// Hands the values that this thread replaced to all threads, and frees those that no reader
    /// can see.
    pub(crate) fn collect(&self) {
        self.0.flush();
    }
}

impl Debug for FilterPin {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("FilterPin").finish_non_exhaustive()
    }
}

/// A value or none.
///
/// Invariant: the pointer is null, or comes from `Owned::new` and is in no other cell. Only `swap`
/// takes it out, and then `defer_destroy` frees it. All pins belong to the default collector.
pub(crate) struct EpochCell<T: Send + Sync + 'static>(Atomic<T>);

impl<T: Send + Sync + 'static> EpochCell<T> {
    pub(crate) fn empty() -> Self {
        EpochCell(Atomic::null())
    }

    /// Returns the current value. The pin keeps it alive.
    #[inline]
    pub(crate) fn get<'p>(&self, pin: &'p FilterPin) -> Option<&'p T> {
        let value = self.0.load(Acquire, &pin.0);
        // Only `defer_destroy` frees a value: after the pointer left the cell, and under a pin of
        // the same collector. This pin saw the pointer in the cell, so the value outlives the pin.
        //
        // SAFETY: by the invariant, the pointer is null or was valid when it was stored, which
        // happened before this load. The value lives as long as the pin, and no `&mut` to it
        // exists.
        unsafe { value.as_ref() }
    }

    /// Replaces the value. The old one is dropped after all current pins are gone.
    pub(crate) fn swap(&self, value: Option<T>) {
        // The release half of the swap is what makes the value visible to a reader that sees the
        // pointer. The fence of the pin is not enough: it is omitted if the thread is already
        // pinned, as in `FilterSlot::put`. The acquire half has no use here: nothing is read
        // through `old`, and the epochs order its destruction after everything that other threads
        // did under pins.
        let new = value.map(Owned::new);
        let pin = epoch::pin();
        let new = new.map_or(Shared::null(), |new| new.into_shared(&pin));
        let old = self.0.swap(new, AcqRel, &pin);
        if !old.is_null() {
            // SAFETY: by the invariant the pointer came from `Owned::new`, and the atomic swap gave
            // it to this call alone; no later `get` can see it. `T` is `Send` and `'static`, so
            // another thread may drop it later.
            unsafe { pin.defer_destroy(old) };
            pin.flush();
        }
    }
}

impl<T: Send + Sync + 'static> Drop for EpochCell<T> {
    fn drop(&mut self) {
        self.swap(None);
    }
}
