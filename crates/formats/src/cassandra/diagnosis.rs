//! Finds the layout of a file with a wrong name, from keys that it is known to contain.

use super::filter::CassandraFilter;
use super::hash::hash_key;
use super::layout::Layout;
use crate::ClassicalError;

/// The number of known keys found in each layout: the result of [`diagnose`].
///
/// ```
/// # use blocked_bloom_formats::cassandra::{Layout, diagnose};
/// # let bytes = include_bytes!(concat!(
/// #     env!("CARGO_MANIFEST_DIR"),
/// #     "/tests/fixtures/cassandra/nb-1-big-Filter.db"
/// # ));
/// let diagnosis = diagnose(bytes, &["apple", "banana", "cherry"])?;
/// assert_eq!(diagnosis.found(Layout::Cassandra4), 3);
/// # Ok::<(), blocked_bloom_formats::ClassicalError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Diagnosis {
    keys: usize,
    /// In the order of [`Layout::ALL`].
    found: [usize; 3],
}

impl Diagnosis {
    /// Returns the number of known keys that were looked up.
    pub fn keys(&self) -> usize {
        self.keys
    }

    /// Returns the number of known keys that the file may contain in this layout.
    pub fn found(&self, layout: Layout) -> usize {
        self.found[layout as usize]
    }

    /// Returns the layout in which the file may contain every known key, if exactly one exists.
    /// Returns `None` if no layout does (the keys belong to another file, or this one is damaged),
    /// if several do (too few keys, or hardly a zero bit), or if no key was given.
    ///
    /// ```
    /// # use blocked_bloom_formats::cassandra::diagnose;
    /// // An empty file fits every layout.
    /// assert_eq!(diagnose(&[], &["apple"])?.layout(), None);
    /// # Ok::<(), blocked_bloom_formats::ClassicalError>(())
    /// ```
    pub fn layout(&self) -> Option<Layout> {
        let mut fitting = Layout::ALL.into_iter().filter(|&layout| self.found(layout) == self.keys);
        let first = fitting.next()?;
        fitting.next().is_none().then_some(first)
    }
}

/// Looks up keys that the file's table is known to contain, once in each layout.
///
/// File names can be wrong: among Cassandra's own test files, one named `la` has the hash halves in
/// the order of `ma`, and some named `na` were written before 4.0 was final, with the bits of 3.0.
/// In a wrong layout hardly any key is found, so a few keys decide. Rare false positives only
/// matter if every key is one.
///
/// Keys are partition keys as the table stores them, from its data or index file. Cost: three
/// lookups per key.
///
/// # Errors
///
/// The errors of [`CassandraFilter::from_bytes`].
///
/// ```
/// use blocked_bloom_formats::cassandra::{Layout, diagnose};
/// # let bytes = include_bytes!(concat!(
/// #     env!("CARGO_MANIFEST_DIR"),
/// #     "/tests/fixtures/cassandra/nb-1-big-Filter.db"
/// # ));
/// let renamed = "me-1-big-Filter.db";
/// let diagnosis = diagnose(bytes, &["apple", "banana", "cherry"])?;
/// assert_eq!(diagnosis.layout(), Some(Layout::Cassandra4));
/// assert_ne!(diagnosis.layout(), Some(Layout::from_file_name(renamed)?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn diagnose<K: AsRef<[u8]>>(
    bytes: &[u8],
    known_keys: &[K],
) -> Result<Diagnosis, ClassicalError> {
    let mut found = [0; 3];
    for (found, layout) in found.iter_mut().zip(Layout::ALL) {
        let filter = CassandraFilter::from_bytes(bytes, layout)?;
        *found = known_keys.iter().filter(|key| filter.contains_hash(hash_key(key))).count();
    }
    Ok(Diagnosis { keys: known_keys.len(), found })
}
