//! What every filter that is compared has to do, and what is stated about it.

use crate::keys::Key;

/// A filled filter.
pub(crate) trait Peer: Send + Sync {
    /// Memory of the filter's table.
    fn bytes(&self) -> usize;

    /// How many of a batch of hashes may be in the filter, looked up in the given [`Way`].
    fn count(&self, way: usize, hashes: &[u64]) -> usize;

    /// The same for keys, hashed here.
    fn count_keys(&self, way: usize, keys: &[Key]) -> usize;
}

/// Fills a filter with distinct hashes or keys, at this many bits per key; `None` where the CPU has not what it takes.
pub(crate) type Fill<T> = fn(&[T], f64) -> Option<Box<dyn Peer>>;

/// A kind of filter: how to fill one, and how to look keys up in it.
pub(crate) struct Kind {
    pub(crate) id: &'static str,
    /// The package whose version is stated, if it is not this repository's.
    pub(crate) package: Option<Package>,
    /// How it is configured.
    pub(crate) configuration: &'static str,
    pub(crate) role: Role,
    pub(crate) ways: &'static [Way],
    pub(crate) of_hashes: Fill<u64>,
    pub(crate) of_keys: Fill<Key>,
}

/// A package in Cargo.lock: its name and the start of its version.
#[derive(Clone, Copy)]
pub(crate) struct Package(pub(crate) &'static str, pub(crate) &'static str);

/// What a kind is here for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Not a filter: loads lines.
    Baseline,
    /// This library.
    Ours,
    /// Another project's loop, written anew.
    Loop,
    /// A Rust package.
    Package,
}

/// One way of looking keys up in a filter: a row of the tables.
pub(crate) struct Way {
    pub(crate) name: &'static str,
    /// How many keys it gains from being given at once.
    pub(crate) batch: Batch,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Batch {
    /// One key at a time, whatever the batch.
    One,
    /// A batch API.
    Any,
}

/// Hits of a whole pass, looked up by batches.
pub(crate) fn count_all(peer: &dyn Peer, way: usize, hashes: &[u64], batch: usize) -> usize {
    hashes.chunks(batch).map(|hashes| peer.count(way, hashes)).sum()
}

/// Hits of a whole pass of keys, looked up by batches.
pub(crate) fn count_all_keys(peer: &dyn Peer, way: usize, keys: &[Key], batch: usize) -> usize {
    keys.chunks(batch).map(|keys| peer.count_keys(way, keys)).sum()
}
