//! A partially loaded file, the input of readers of large files.

use alloc::vec::Vec;

/// The bytes of a file, or of those ranges of it that were loaded.
///
/// Readers that locate a filter through other parts of a file ([`SstFilter::open_ranges`] and
/// [`ParquetFile::open_ranges`]) take it and return `NotLoaded` with the range that they need. The
/// caller loads the range, inserts it, and calls again. In this way a file of any size is read by
/// its footer, its index and its filters, from a disk, an object store or in a browser. A whole
/// file in memory is one range (`From<&[u8]>`).
///
/// ```
/// use blocked_bloom::Filter;
/// # #[cfg(feature = "rocksdb")] {
/// use blocked_bloom_formats::FileRanges;
/// use blocked_bloom_formats::rocksdb::{RocksdbError, SstFilter};
/// # let stored = include_bytes!(concat!(
/// #     env!("CARGO_MANIFEST_DIR"),
/// #     "/tests/fixtures/rocksdb/bloom_b10_n5000_partitioned.sst"
/// # ));
/// let mut file = FileRanges::new(stored.len() as u64);
/// let filter = loop {
///     match SstFilter::open_ranges(&file) {
///         Err(RocksdbError::NotLoaded { offset, length }) => {
///             // Load the bytes from anywhere.
///             file.insert(offset, &stored[offset as usize..][..length as usize]);
///         }
///         other => break other?,
///     }
/// };
/// assert!(filter.contains("user00000000"));
/// assert!(file.loaded() < file.len() / 2);
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// [`SstFilter::open_ranges`]: crate::rocksdb::SstFilter::open_ranges
/// [`ParquetFile::open_ranges`]: crate::parquet::ParquetFile::open_ranges
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRanges<'a> {
    length: u64,
    /// The first range, so that a whole file needs no allocation.
    first: Range<'a>,
    /// Sorted by offset.
    rest: Vec<Range<'a>>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Range<'a> {
    offset: u64,
    bytes: &'a [u8],
}

/// Shows offset and length.
impl core::fmt::Debug for Range<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} bytes from {}", self.bytes.len(), self.offset)
    }
}

impl<'a> Range<'a> {
    /// Returns `length` bytes beginning at `offset`, if all are in this range.
    fn get(self, offset: u64, length: u64) -> Option<&'a [u8]> {
        let start = usize::try_from(offset.checked_sub(self.offset)?).ok()?;
        self.bytes.get(start..)?.get(..usize::try_from(length).ok()?)
    }
}

impl<'a> FileRanges<'a> {
    /// Creates a file of this many bytes without any loaded range.
    pub fn new(length: u64) -> Self {
        FileRanges { length, first: Range::default(), rest: Vec::new() }
    }

    /// Inserts bytes that were loaded from this offset. Bytes after the end of the file are
    /// ignored.
    pub fn insert(&mut self, offset: u64, bytes: &'a [u8]) {
        let left = usize::try_from(self.length.saturating_sub(offset)).unwrap_or(usize::MAX);
        let range = Range { offset, bytes: &bytes[..bytes.len().min(left)] };
        if range.bytes.is_empty() {
            return;
        }
        if self.first.bytes.is_empty() {
            self.first = range;
            return;
        }
        let place = self.rest.partition_point(|other| other.offset <= offset);
        self.rest.insert(place, range);
    }

    /// Returns `length` bytes beginning at `offset`, if they were inserted in one piece.
    /// Neighbouring pieces are not joined.
    pub fn get(&self, offset: u64, length: u64) -> Option<&'a [u8]> {
        let end = offset.checked_add(length).filter(|&end| end <= self.length)?;
        if length == 0 {
            return Some(&[]);
        }
        let before = self.rest.partition_point(|range| range.offset < end);
        let nearest_first = self.rest[..before].iter().rev();
        let ranges = [&self.first].into_iter().chain(nearest_first);
        ranges.copied().find_map(|range| range.get(offset, length))
    }

    /// Returns the bytes from `offset` up to `end`, as far as one inserted piece contains them
    /// (possibly none).
    #[cfg(feature = "parquet")]
    pub(crate) fn rest(&self, offset: u64, end: u64) -> &'a [u8] {
        let ranges = [&self.first].into_iter().chain(&self.rest);
        let rest = ranges.filter_map(|range| {
            let start = usize::try_from(offset.checked_sub(range.offset)?).ok()?;
            range.bytes.get(start..)
        });
        let longest = rest.max_by_key(|rest| rest.len()).unwrap_or_default();
        let most = usize::try_from(end.saturating_sub(offset)).unwrap_or(usize::MAX);
        &longest[..longest.len().min(most)]
    }

    /// Returns the length of the file.
    pub fn len(&self) -> u64 {
        self.length
    }

    /// Returns whether the file is empty.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Returns the number of inserted bytes.
    pub fn loaded(&self) -> u64 {
        let ranges = [&self.first].into_iter().chain(&self.rest);
        ranges.map(|range| range.bytes.len() as u64).sum()
    }
}

/// Creates a completely loaded file.
impl<'a> From<&'a [u8]> for FileRanges<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        let first = Range { offset: 0, bytes };
        FileRanges { length: bytes.len() as u64, first, rest: Vec::new() }
    }
}
