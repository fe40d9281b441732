//! A value that readers see without a lock while another thread replaces it, by epochs: what was
//! replaced is dropped when every reader that may see it is gone.
//!
//! A reader pins once for all tables of a lookup, which takes 4 ns, and then needs a load per
//! table. Measured per table, with everything in a cache (`benches/resident.rs`): an epoch
//! costs some 2 ns more than a bare lookup, a clone of an `Arc` under an `RwLock` ten.

#![allow(unsafe_code, reason = "pointers that epochs keep alive")]

use core::fmt::{self, Debug, Formatter};
use core::sync::atomic::Ordering::{AcqRel, Acquire};

use crossbeam_epoch::{self as epoch, Atomic, Guard, Owned, Shared};

/// While it lives, it keeps alive what the slots of any set hold. Make one per get, for all of its
/// tables, and drop it before the next get.
///
/// What is evicted meanwhile is freed afterwards. Cost: some 4 ns. It stays on its thread.
///
/// ```
/// let pin = blocked_bloom_resident::FilterPin::new();
/// drop(pin);
/// ```
pub struct FilterPin(Guard);

impl FilterPin {
    /// Pins the thread.
    #[inline]
    #[expect(clippy::new_without_default, reason = "it does something")]
    pub fn new() -> Self {
        FilterPin(epoch::pin())
    }

    /// Lets any thread free what this one has replaced, and frees what nobody can see any more.
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
/// Invariant: the pointer is null or one of `Owned::new` that no other cell has; it is taken out by
/// `swap` alone, and then destroyed by `defer_destroy`. All pins are of the default collector.
pub(crate) struct EpochCell<T: Send + Sync + 'static>(Atomic<T>);

impl<T: Send + Sync + 'static> EpochCell<T> {
    pub(crate) fn empty() -> Self {
        EpochCell(Atomic::null())
    }

    /// What it holds now, for as long as the pin lives.
    #[inline]
    pub(crate) fn get<'p>(&self, pin: &'p FilterPin) -> Option<&'p T> {
        let held = self.0.load(Acquire, &pin.0);
        // SAFETY: the pointer is null or was valid when it was stored, by the invariant, and the
        // store happened before this load. It is destroyed only by `defer_destroy` under a pin of
        // the same collector after it was taken out of the cell, hence not before this pin, which
        // saw it in the cell, is gone; the lifetime of the reference is that of the pin. Nothing
        // has it as `&mut`.
        unsafe { held.as_ref() }
    }

    /// Puts a value in, or none. The value before is dropped when all pins that exist now are gone.
    pub(crate) fn swap(&self, value: Option<T>) {
        // By the swap's release, and nothing else, a reader that sees the pointer sees the value:
        // the pin's fence is none where the thread is pinned already, as by `FilterSlot::put`. Its
        // acquire is for nobody here: nothing is read through `old` before it is destroyed, and the
        // epochs order that after all that other threads did under pins.
        let new = value.map(Owned::new);
        let pin = epoch::pin();
        let new = new.map_or(Shared::null(), |new| new.into_shared(&pin));
        let old = self.0.swap(new, AcqRel, &pin);
        if !old.is_null() {
            // SAFETY: by the invariant it came from `Owned::new`, and the atomic swap gave it to
            // this call alone; no later `get` can see it. `T` is `Send` and `'static`, so that
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
