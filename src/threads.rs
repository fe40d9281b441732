//! Whether the calling thread or the threads of the current rayon pool do some work.

/// The threads that do some work.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Threads {
    /// The calling thread.
    One,
    /// The threads of the current rayon pool, if there is enough work. Only `par_*` methods use it.
    #[cfg(feature = "rayon")]
    Pool,
}

/// With fewer hashes, one thread is as fast as two: while the filter fits the last-level cache,
/// ordering the hashes costs the time that the second thread saves.
#[cfg(feature = "rayon")]
pub(crate) const SEQUENTIAL_BELOW: usize = 1 << 23;

impl Threads {
    /// Whether several threads share the work on this many hashes.
    #[cfg(feature = "rayon")]
    pub(crate) fn share(self, hashes: u64) -> bool {
        self == Threads::Pool && hashes >= SEQUENTIAL_BELOW as u64
    }
}
