//! A value shared by Python threads. A thread that holds the interpreter's lock can use it without
//! another lock; other threads use it under a lock of its own.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{RwLock, TryLockError};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;

/// A value, a lock, and the number of threads that may use the value without the interpreter's
/// lock.
///
/// Two rules keep changes apart from all other uses:
///
/// 1. A thread that uses the value without the interpreter's lock (the GIL) has a [`Detached`] and
///    takes `lock` for each use. Only a thread that holds the GIL can make a `Detached`.
/// 2. A thread that holds the GIL uses the value without `lock` if `detached` is 0, because no
///    other thread can then use the value or get a `Detached` while the GIL is held; otherwise it
///    takes `lock`. The GIL is not released in between: closures that use the value are `Send`,
///    hence have no `Python` token, and no code of this package attaches.
///
/// No thread holds `lock` while it waits for the GIL, nor the GIL while it waits for `lock`. An
/// interpreter without a GIL does not use the second rule.
///
/// A fork waits until no thread has `lock`, and meanwhile no thread takes it; see [`Fork`].
#[derive(Debug)]
pub(crate) struct Shared<T> {
    detached: AtomicUsize,
    lock: RwLock<()>,
    value: UnsafeCell<T>,
}

// SAFETY: the two rules allow several `&T` at a time on several threads, or one `&mut T`.
// `RwLock<T>` has the same requirements for `T`.
unsafe impl<T: Send + Sync> Sync for Shared<T> {}

/// Permission to use a value without the GIL.
#[derive(Debug)]
pub(crate) struct Detached<'a, T>(&'a Shared<T>);

impl<T> Drop for Detached<'_, T> {
    fn drop(&mut self) {
        // Release: a thread that reads the lower number with Acquire sees everything done before.
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

    /// Permits this and other threads to use the value without the GIL.
    pub(crate) fn detach(&self, _: Python<'_>) -> Detached<'_, T> {
        self.detached.fetch_add(1, Ordering::Relaxed);
        Detached(self)
    }

    #[inline]
    fn is_exclusive(&self) -> bool {
        HAS_GIL && self.detached.load(Ordering::Acquire) == 0
    }

    /// Reads the value, or returns `op` if it would have to wait.
    #[inline]
    pub(crate) fn try_read<R, F: FnOnce(&T) -> R + Send>(
        &self,
        _: Python<'_>,
        op: F,
    ) -> Result<R, F> {
        if self.is_exclusive() {
            // SAFETY: rule 2: no other thread changes the value while the GIL is held.
            return Ok(op(unsafe { &*self.value.get() }));
        }
        match self.lock.try_read() {
            Err(TryLockError::WouldBlock) => Err(op),
            // SAFETY: the lock is held for reading until the end of this match.
            _guard => Ok(op(unsafe { &*self.value.get() })),
        }
    }

    /// Changes the value, or returns `op` if it would have to wait.
    #[inline]
    pub(crate) fn try_write<R, F: FnOnce(&mut T) -> R + Send>(
        &self,
        _: Python<'_>,
        op: F,
    ) -> Result<R, F> {
        if self.is_exclusive() {
            // SAFETY: rule 2: no other thread uses the value while the GIL is held.
            return Ok(op(unsafe { &mut *self.value.get() }));
        }
        match self.lock.try_write() {
            Err(TryLockError::WouldBlock) => Err(op),
            // SAFETY: the lock is held for writing until the end of this match.
            _guard => Ok(op(unsafe { &mut *self.value.get() })),
        }
    }

    /// Reads the value. Releases the GIL to wait for a change to end.
    #[inline]
    pub(crate) fn read<R: Send>(&self, py: Python<'_>, op: impl FnOnce(&T) -> R + Send) -> R {
        self.try_read(py, op).unwrap_or_else(|op| {
            let shared = self.detach(py);
            py.detach(|| shared.read(op))
        })
    }

    /// Changes the value. Releases the GIL to wait for other uses to end.
    #[inline]
    pub(crate) fn write<R: Send>(&self, py: Python<'_>, op: impl FnOnce(&mut T) -> R + Send) -> R {
        self.try_write(py, op).unwrap_or_else(|op| {
            let shared = self.detach(py);
            py.detach(|| shared.write(op))
        })
    }

    /// Reads two values; returns `None` if they are the same one.
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

    /// Changes this value using another. If both are the same value, `op` is not called.
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
            // Lock in the order of addresses, so that two threads merging two values into each
            // other cannot deadlock.
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

    /// Like `read`, for a thread that already holds a [`ForkGuard`].
    fn read_inside<R>(&self, op: impl FnOnce(&T) -> R) -> R {
        // After a panic, a filter may have only some keys of a batch, but it is never broken.
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

/// Keeps `lock`s and forks apart. The child of a fork has the parent's memory but only the thread
/// that forked. It would wait forever for a lock held by another thread, and find the filter half
/// changed.
#[derive(Debug)]
struct Fork {
    /// Threads that hold a lock or wait for one.
    holders: AtomicUsize,
    /// Threads that are about to fork.
    coming: AtomicUsize,
}

static FORK: Fork = Fork { holders: AtomicUsize::new(0), coming: AtomicUsize::new(0) };

/// A thread that holds a lock or waits for one.
struct ForkGuard<'a>(&'a Fork);

impl Drop for ForkGuard<'_> {
    fn drop(&mut self) {
        self.0.holders.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Fork {
    const WAIT: Duration = Duration::from_micros(50);

    /// Waits for forks to end. Each side first writes its own number, then reads the other's, so at
    /// least one of them sees the other.
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

/// Waits with the GIL held: no thread with a lock waits for the GIL.
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

/// The child has no other thread that could hold a lock or be about to fork.
#[pyfunction]
pub(crate) fn after_fork_in_child() {
    FORK.holders.store(0, Ordering::SeqCst);
    FORK.coming.store(0, Ordering::SeqCst);
}
