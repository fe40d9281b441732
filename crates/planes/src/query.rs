//! Queries: the items to look up in every row.

use alloc::vec::Vec;

/// A query: AND of items and of OR-lists of items. Items are hashes from the planes' hasher.
///
/// The order affects speed: the planes of the first hashes are read first, and once none of 512
/// consecutive rows is left, no further plane is read for them. Put the rarest item first.
///
/// ```
/// use blocked_bloom_planes::{Planes, PlanesOptions, Query, Shape};
/// let options = PlanesOptions::new(Shape::new(1, 256, 4)?);
/// let hasher = options.hasher()?;
/// let hash = |column: &str, value: &str| hasher.hash_parts(&[column, value]);
/// let rows = [("red", "small"), ("green", "large"), ("blue", "large")];
/// let rows = rows.map(|(colour, size)| [hash("colour", colour), hash("size", size)]);
/// let planes = Planes::from_hashes(&options, rows)?;
///
/// // size = 'large' and colour in ('red', 'green')
/// let query = Query::all([hash("size", "large")])
///     .and_any([hash("colour", "red"), hash("colour", "green")]);
/// let mut hits = blocked_bloom::Bitmask::new();
/// planes.query(&query, &mut hits);
/// assert!(hits.hits().eq([1]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    pub(crate) all: Vec<u64>,
    pub(crate) any: Vec<Vec<u64>>,
}

impl Query {
    /// Matches rows that may have all of these items; every row if there are none.
    pub fn all(hashes: impl IntoIterator<Item = u64>) -> Self {
        Query { all: hashes.into_iter().collect(), any: Vec::new() }
    }

    /// Matches rows that may have any of these items; no row if there are none.
    pub fn any(hashes: impl IntoIterator<Item = u64>) -> Self {
        Query::default().and_any(hashes)
    }

    /// Keeps only rows that may also have any of these items.
    #[must_use]
    pub fn and_any(mut self, hashes: impl IntoIterator<Item = u64>) -> Self {
        let any: Vec<u64> = hashes.into_iter().collect();
        match any[..] {
            [only] => self.all.push(only),
            _ => self.any.push(any),
        }
        self
    }
}
