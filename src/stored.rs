//! The stored bytes of an opened filter.

use crate::header::HEADER_BYTES;
use crate::probe::Block;

/// The bytes of an opened filter: a mapped file, an `Arc<[u8]>`, a `bytes::Bytes`, a `Vec<u8>`, a
/// `&[u8]`.
///
/// The bytes are verified once, when the filter is opened. If their owner later lends a slice of
/// another length, the slice is not used and the filter answers "maybe" to everything. The owner
/// must not change the bytes themselves.
///
/// ```
/// use std::sync::Arc;
/// use blocked_bloom::{BloomFilter, FilterOptions, Sizing, Stored};
/// struct Table {
///     filter: BloomFilter<Stored<Arc<[u8]>>>,
/// }
/// let options = FilterOptions::new(Sizing::BitsPerKey(10.0));
/// let mut builder = options.builder();
/// builder.insert("apple")?;
/// let shared: Arc<[u8]> = builder.finish()?.to_bytes().into();
/// let table = Table { filter: BloomFilter::from_bytes(shared, options.key_hash())? };
/// assert!(table.filter.contains("apple"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy)]
pub struct Stored<B> {
    bytes: B,
    /// Length of the verified bytes; [`usize::MAX`], which no slice has, if they are unused.
    length: usize,
    /// Offset of the blocks.
    start: usize,
}

/// One cache line.
#[repr(align(64))]
struct Aligned([Block; 1]);

/// The block of a pass-all filter.
static FULL_BLOCK: Aligned = Aligned([[0xff; 64]]);

/// Returns the only block of a pass-all filter. It answers "maybe" with any number of probes.
pub(crate) fn full_block() -> &'static [Block] {
    &FULL_BLOCK.0
}

/// Wraps `bytes` and records their length; `AsRef<[Block]>` yields everything after the 64-byte
/// header. The caller must verify the slice that [`bytes`](Stored::bytes) returns.
pub fn stored<B: AsRef<[u8]>>(bytes: B) -> Stored<B> {
    Stored::with_blocks_at(HEADER_BYTES, bytes)
}

/// Wraps damaged bytes, which are kept but never read. As blocks, it yields one full block, so that
/// the filter answers "maybe".
pub fn stored_unused<B>(bytes: B) -> Stored<B> {
    Stored { bytes, length: usize::MAX, start: 0 }
}

impl<B: AsRef<[u8]>> Stored<B> {
    /// Wraps the bytes of a filter whose blocks begin at `start`.
    pub(crate) fn with_blocks_at(start: usize, bytes: B) -> Self {
        let length = bytes.as_ref().len();
        Stored { bytes, length, start }
    }

    /// Returns the bytes, or `None` if their length has changed.
    #[inline]
    pub fn bytes(&self) -> Option<&[u8]> {
        let bytes = self.bytes.as_ref();
        (bytes.len() == self.length).then_some(bytes)
    }

    /// Returns the owner of the bytes.
    pub fn into_inner(self) -> B {
        self.bytes
    }
}

/// The blocks after the header, or one full block if the length of the bytes has changed.
impl<B: AsRef<[u8]>> AsRef<[Block]> for Stored<B> {
    #[inline]
    fn as_ref(&self) -> &[Block] {
        match self.bytes().and_then(|bytes| bytes.get(self.start..)) {
            Some(blocks) => blocks.as_chunks().0,
            None => full_block(),
        }
    }
}

/// Prints the length, without the bytes.
impl<B> core::fmt::Debug for Stored<B> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Stored").field("length", &self.length).finish_non_exhaustive()
    }
}
