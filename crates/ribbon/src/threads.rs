//! Selects the calling thread or the threads of the current rayon pool.

use alloc::vec::Vec;

use blocked_bloom::AllocError;

/// The threads that do the work.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Threads {
    /// The calling thread.
    One,
    /// The threads of the current rayon pool. Only the methods `par_*` use it.
    #[cfg(feature = "rayon")]
    Pool,
}

impl Threads {
    /// Fills the list with this many defaults. With one thread, most of the time is the first use
    /// of each page of memory, which is 20 % of the construction of a block.
    pub(crate) fn refill<T: Clone + Default + Send>(
        self,
        list: &mut Vec<T>,
        len: usize,
    ) -> Result<(), AllocError> {
        list.clear();
        let error = AllocError::new(len as u64 * size_of::<T>() as u64);
        list.try_reserve_exact(len).map_err(|_| error)?;
        match self {
            Threads::One => list.resize(len, T::default()),
            #[cfg(feature = "rayon")]
            Threads::Pool => {
                use rayon::prelude::*;
                (0..len).into_par_iter().map(|_| T::default()).collect_into_vec(list);
            }
        }
        Ok(())
    }
}
