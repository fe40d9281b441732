//! Whether work is done by the calling thread or by those of the current rayon pool, for everything
//! that can be shared among them.

use alloc::vec::Vec;

use blocked_bloom::AllocError;

/// Who does the work.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Threads {
    /// The calling thread.
    One,
    /// The threads of the current rayon pool: only for methods `par_*`.
    #[cfg(feature = "rayon")]
    Pool,
}

impl Threads {
    /// Makes the list one of this many defaults. With one thread most of the time is the first use
    /// of each page of memory, a fifth of the construction of a block.
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
