//! Pools of threads: the tool's own, never rayon's global one.

use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::failure::Failure;

/// A pool of so many threads; of as many as there are cores by default.
pub(crate) fn pool(threads: Option<usize>) -> Result<ThreadPool, Failure> {
    let pool = ThreadPoolBuilder::new().num_threads(threads.unwrap_or(0)).build();
    pool.map_err(|error| Failure::new(format!("cannot start threads: {error}")))
}
