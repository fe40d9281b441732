//! Pools of threads: the tool's own, never rayon's global one.

use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::failure::Failure;

/// A pool of this many threads, by default one for each core.
pub(crate) fn pool(threads: Option<usize>) -> Result<ThreadPool, Failure> {
    let pool = ThreadPoolBuilder::new().num_threads(threads.unwrap_or(0)).build();
    pool.map_err(|error| Failure::new(format!("cannot start threads: {error}")))
}
