//! Stored bytes that a filter was opened from, and stays in.

use crate::header::HEADER_BYTES;
use crate::probe::Block;

/// The bytes that a filter was opened from and lives in: a mapped file, an `Arc<[u8]>`, a
/// `bytes::Bytes`, a `Vec<u8>`, a `&[u8]`.
///
/// They were verified once, and their owner is not trusted to lend the same slice for ever: a slice
/// of another length is not used, and the filter then answers "maybe" to everything. The owner must
/// not change the bytes themselves.
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
    /// Of the verified bytes; [`usize::MAX`], which no slice has, if they are unused.
    length: usize,
    /// Where the blocks begin.
    start: usize,
}

/// One cache line.
#[repr(align(64))]
struct Aligned([Block; 1]);

/// The block of a pass-all filter.
static FULL_BLOCK: Aligned = Aligned([[0xff; 64]]);

/// The only block of a filter that answers "maybe" to everything, whatever its number of probes.
pub(crate) fn full_block() -> &'static [Block] {
    &FULL_BLOCK.0
}

/// Takes bytes and remembers how many there are; as blocks it lends those after 64. Whoever opens a
/// filter from them verifies what [`bytes`](Stored::bytes) lends.
pub fn stored<B: AsRef<[u8]>>(bytes: B) -> Stored<B> {
    Stored::with_blocks_at(HEADER_BYTES, bytes)
}

/// Damaged bytes, which are kept and never lent: for a filter that answers "maybe" in their place.
pub fn stored_unused<B>(bytes: B) -> Stored<B> {
    Stored { bytes, length: usize::MAX, start: 0 }
}

impl<B: AsRef<[u8]>> Stored<B> {
    /// Of a filter whose blocks begin at `start`.
    pub(crate) fn with_blocks_at(start: usize, bytes: B) -> Self {
        let length = bytes.as_ref().len();
        Stored { bytes, length, start }
    }

    /// The bytes, or `None` if their owner lends fewer or more than at first.
    #[inline]
    pub fn bytes(&self) -> Option<&[u8]> {
        let bytes = self.bytes.as_ref();
        (bytes.len() == self.length).then_some(bytes)
    }

    /// The owner of the bytes.
    pub fn into_inner(self) -> B {
        self.bytes
    }
}

/// The blocks behind the header, or one full block if the bytes are not those that were verified.
impl<B: AsRef<[u8]>> AsRef<[Block]> for Stored<B> {
    #[inline]
    fn as_ref(&self) -> &[Block] {
        match self.bytes().and_then(|bytes| bytes.get(self.start..)) {
            Some(blocks) => blocks.as_chunks().0,
            None => full_block(),
        }
    }
}

/// The length, without the bytes.
impl<B> core::fmt::Debug for Stored<B> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Stored").field("length", &self.length).finish_non_exhaustive()
    }
}
