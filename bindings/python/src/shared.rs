//! A value that Python threads share: a thread that holds the interpreter's lock uses it without
//! another one, others use it under a lock of its own.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{RwLock, TryLockError};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;

/// A value, a lock, and the number of threads that may use it without the interpreter's lock.
///
/// Two rules keep changes apart from everything else:
///
/// 1. A thread that uses the value without the interpreter's lock (the GIL) has a [`Detached`], and
///    takes `lock` for each use. A `Detached` is only made by a thread that holds the GIL.
/// 2. A thread that holds the GIL uses the value without `lock` if `detached` is 0, since nobody
///    else can then use it, nor get a `Detached`, as long as the GIL is held; otherwise it takes
///    `lock`. What is done with the value cannot give up the GIL in between: closures that do it
///    are `Send` and hence have no `Python` token, and none of this package attaches.
///
/// `lock` is never held while waiting for the GIL, nor the GIL while waiting for `lock`. In an
/// interpreter without a GIL the second rule is not used.
///
/// A fork waits until no thread has `lock`, and meanwhile none takes it: see [`Fork`].
#[derive(Debug)]
pub(crate) struct Shared<T> {
    detached: AtomicUsize,
    lock: RwLock<()>,
    value: UnsafeCell<T>,
}

// SAFETY: by the two rules there are several `&T` at a time on several threads, or one `&mut T`:
// what `RwLock<T>` requires of `T`.
unsafe impl<T: Send + Sync> Sync for Shared<T> {}

/// Permission to use a value without the GIL.
#[derive(Debug)]
pub(crate) struct Detached<'a, T>(&'a Shared<T>);

impl<T> Drop for Detached<'_, T> {
    fn drop(&mut self) {
        // Release: who sees the lower number with Acquire sees all that was done.
        self.0.detached.fetch_sub(1, Ordering::Release);
    }
}

/// Whether the GIL excludes other threads.
pub(crate) const HAS_GIL: bool = cfg!(not(Py_GIL_DISABLED));

impl<T: Send + Sync> Shared<T> {
    pub(crate) fn new(value: T) -> Self {
        Shared {
            detached: AtomicUsize::new(0),
            lock: RwLock::new(()),
            value: UnsafeCell::new(value),
        }
    }

    /// Permission for this and other threads to use the value without the GIL.
    pub(crate) fn detach(&self, _: Python<'_>) -> Detached<'_, T> {
        self.detached.fetch_add(1, Ordering::Relaxed);
        Detached(self)
    }

    #[inline]
    fn is_exclusive(&self) -> bool {
        HAS_GIL && self.detached.load(Ordering::Acquire) == 0
    }

    /// Reads the value, or gives `op` back if that would have to wait.
    #[inline]
    pub(crate) fn try_read<R, F: FnOnce(&T) -> R + Send>(
        &self,
        _: Python<'_>,
        op: F,
    ) -> Result<R, F> {
        if self.is_exclusive() {
            // SAFETY: rule 2: nobody changes the value while the GIL is held.
            return Ok(op(unsafe { &*self.value.get() }));
        }
        match self.lock.try_read() {
            Err(TryLockError::WouldBlock) => Err(op),
            // SAFETY: the lock is held for reading until the end of this match.
            _guard => Ok(op(unsafe { &*self.value.get() })),
        }
    }

    /// Changes the value, or gives `op` back if that would have to wait.
    #[inline]
    pub(crate) fn try_write<R, F: FnOnce(&mut T) -> R + Send>(
        &self,
        _: Python<'_>,
        op: F,
    ) -> Result<R, F> {
        if self.is_exclusive() {
            // SAFETY: rule 2: nobody else uses the value while the GIL is held.
            return Ok(op(unsafe { &mut *self.value.get() }));
        }
        match self.lock.try_write() {
            Err(TryLockError::WouldBlock) => Err(op),
            // SAFETY: the lock is held for writing until the end of this match.
            _guard => Ok(op(unsafe { &mut *self.value.get() })),
        }
    }

    /// Reads the value. Waits for a change to end, without the GIL.
    #[inline]
    pub(crate) fn read<R: Send>(&self, py: Python<'_>, op: impl FnOnce(&T) -> R + Send) -> R {
        self.try_read(py, op).unwrap_or_else(|op| {
            let shared = self.detach(py);
            py.detach(|| shared.read(op))
        })
    }

    /// Changes the value. Waits for others to end, without the GIL.
    #[inline]
    pub(crate) fn write<R: Send>(&self, py: Python<'_>, op: impl FnOnce(&mut T) -> R + Send) -> R {
        self.try_write(py, op).unwrap_or_else(|op| {
            let shared = self.detach(py);
            py.detach(|| shared.write(op))
        })
    }

    /// Reads two values, if they are two.
    pub(crate) fn read_both<R: Send>(
        &self,
        other: &Self,
        py: Python<'_>,
        op: impl FnOnce(&T, &T) -> R + Send,
    ) -> Option<R> {
        if std::ptr::eq(self, other) {
            return None;
        }
        let (left, right) = (self.detach(py), other.detach(py));
        Some(py.detach(|| {
            let _inside = FORK.enter();
            if std::ptr::from_ref(self) < std::ptr::from_ref(other) {
                left.read_inside(|left| right.read_inside(|right| op(left, right)))
            } else {
                right.read_inside(|right| left.read_inside(|left| op(left, right)))
            }
        }))
    }

    /// Changes this value by another, which may be the same: then `op` is not called.
    pub(crate) fn write_from<R: Send>(
        &self,
        other: &Self,
        py: Python<'_>,
        op: impl FnOnce(&mut T, &T) -> R + Send,
    ) -> Option<R> {
        if std::ptr::eq(self, other) {
            return None;
        }
        let (to, from) = (self.detach(py), other.detach(py));
        Some(py.detach(|| {
            let _inside = FORK.enter();
            // In the order of addresses: two threads that merge two values into each other do not
            // wait for each other.
            if std::ptr::from_ref(self) < std::ptr::from_ref(other) {
                to.write_inside(|to| from.read_inside(|from| op(to, from)))
            } else {
                from.read_inside(|from| to.write_inside(|to| op(to, from)))
            }
        }))
    }
}

impl<T> Detached<'_, T> {
    pub(crate) fn read<R>(&self, op: impl FnOnce(&T) -> R) -> R {
        let _inside = FORK.enter();
        self.read_inside(op)
    }

    pub(crate) fn write<R>(&self, op: impl FnOnce(&mut T) -> R) -> R {
        let _inside = FORK.enter();
        self.write_inside(op)
    }

    /// As `read`, of a thread that is inside already.
    fn read_inside<R>(&self, op: impl FnOnce(&T) -> R) -> R {
        // A panic leaves a filter with some keys of a batch and without others, never a broken one.
        let _guard = self.0.lock.read().unwrap_or_else(|poisoned| poisoned.into_inner());
        // SAFETY: rule 1: the lock is held for reading.
        op(unsafe { &*self.0.value.get() })
    }

    fn write_inside<R>(&self, op: impl FnOnce(&mut T) -> R) -> R {
        let _guard = self.0.lock.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        // SAFETY: rule 1: the lock is held for writing.
        op(unsafe { &mut *self.0.value.get() })
    }
}

/// Keeps `lock`s and forks apart. The child of a fork has the memory, and of the threads only the
/// one that forked: it would wait for ever for a lock that another had, and find the filter half
/// changed.
#[derive(Debug)]
struct Fork {
    /// Threads that have a lock or wait for one.
    holders: AtomicUsize,
    /// Threads that are about to fork.
    coming: AtomicUsize,
}

static FORK: Fork = Fork { holders: AtomicUsize::new(0), coming: AtomicUsize::new(0) };

/// A thread that has a lock, or waits for one.
struct ForkGuard<'a>(&'a Fork);

impl Drop for ForkGuard<'_> {
    fn drop(&mut self) {
        self.0.holders.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Fork {
    const WAIT: Duration = Duration::from_micros(50);

    /// Waits for forks to end. Each of both sides first writes its own number and then reads that
    /// of the other: one of them sees the other.
    fn enter(&self) -> ForkGuard<'_> {
        loop {
            self.holders.fetch_add(1, Ordering::SeqCst);
            let guard = ForkGuard(self);
            if self.coming.load(Ordering::SeqCst) == 0 {
                return guard;
            }
            drop(guard);
            thread::sleep(Fork::WAIT);
        }
    }
}

/// Waits with the GIL, which no thread that has a lock waits for.
#[pyfunction]
pub(crate) fn before_fork() {
    FORK.coming.fetch_add(1, Ordering::SeqCst);
    while FORK.holders.load(Ordering::SeqCst) > 0 {
        thread::sleep(Fork::WAIT);
    }
}

#[pyfunction]
pub(crate) fn after_fork_in_parent() {
    FORK.coming.fetch_sub(1, Ordering::SeqCst);
}

/// Here there is no other thread that could be inside or about to fork.
#[pyfunction]
pub(crate) fn after_fork_in_child() {
    FORK.holders.store(0, Ordering::SeqCst);
    FORK.coming.store(0, Ordering::SeqCst);
}
