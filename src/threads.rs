//! Whether work is done by the calling thread or by those of the current rayon pool, for everything
//! that can be shared among them.

use crate::buffer::{AllocError, BlockBuffer};

/// Who does the work.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Threads {
    /// The calling thread.
    One,
    /// Those of the current rayon pool, where there is enough to do: only for methods `par_*`.
    #[cfg(feature = "rayon")]
    Pool,
}

/// Hashes below which one thread is as fast as two: reordering costs what the second one saves
/// while the filter fits the last-level cache.
#[cfg(feature = "rayon")]
pub(crate) const SEQUENTIAL_BELOW: usize = 1 << 23;

#[cfg_attr(not(feature = "rayon"), expect(unused_variables, reason = "one thread decides nothing"))]
impl Threads {
    /// Blocks of zeros for a filter of this many keys.
    pub(crate) fn zeroed(
        self,
        blocks: u32,
        huge_pages: bool,
        keys: u64,
    ) -> Result<BlockBuffer, AllocError> {
        #[cfg(feature = "rayon")]
        if self == Threads::Pool && keys >= SEQUENTIAL_BELOW as u64 {
            return BlockBuffer::par_zeroed(blocks, huge_pages);
        }
        BlockBuffer::zeroed(blocks, huge_pages)
    }

    /// Maps lists of hashes, `hashes` in all, and folds the results.
    pub(crate) fn map_and_fold<T: Sync, R: Copy + Send + Sync>(
        self,
        lists: &[T],
        hashes: usize,
        map: impl Fn(&T) -> R + Send + Sync,
        fold: impl Fn(R, R) -> R + Send + Sync,
        start: R,
    ) -> R {
        #[cfg(feature = "rayon")]
        if self == Threads::Pool && hashes >= SEQUENTIAL_BELOW {
            use rayon::prelude::*;
            let map = |list| {
                watch!(arrive("verify"));
                map(list)
            };
            return lists.par_iter().map(map).reduce(|| start, fold);
        }
        lists.iter().map(map).fold(start, fold)
    }
}
