//! A filter that owns the bytes it was opened from.
//!
//! The bytes' owner is not trusted to lend the same slice twice: a view whose length differs from what was verified is pass-all.

use super::format;
use super::view::{BloomFilterRef, Meta};
use crate::error::FormatError;
use crate::hash::KeyHash;
use crate::kernel::Kernel;

/// An opened filter together with the bytes it lives in: a mapped file, an `Arc<[u8]>`, a `bytes::Bytes`, a `Vec<u8>`.
///
/// Verified once when made; [`view`](Self::view) then costs nothing. This is what an engine's table object holds.
///
/// ```
/// use std::sync::Arc;
/// use blocked_bloom::{BloomFilterBytes, FilterOptions, Sizing};
/// let mut builder = FilterOptions::new(Sizing::BitsPerKey(10.0)).builder();
/// builder.insert("apple")?;
/// let shared: Arc<[u8]> = builder.finish()?.to_bytes().into();
///
/// let filter = BloomFilterBytes::from_bytes(shared)?;
/// assert!(filter.view().contains("apple"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct BloomFilterBytes<B> {
    bytes: B,
    /// 0 if the filter is pass-all whatever the bytes are.
    blocks: u32,
    meta: Meta,
    kernel: Kernel,
}

impl<B: AsRef<[u8]>> BloomFilterBytes<B> {
    /// Verifies header and blocks, as [`BloomFilterRef::from_bytes`] does. Cost: reads everything once.
    ///
    /// # Errors
    ///
    /// [`FormatError`]; see [`BloomFilterRef::from_bytes`].
    pub fn from_bytes(bytes: B) -> Result<Self, FormatError> {
        let view = BloomFilterRef::from_bytes(bytes.as_ref())?;
        let (blocks, meta, kernel) = (view.blocks().len() as u32, view.meta(), view.kernel());
        Ok(BloomFilterBytes { bytes, blocks, meta, kernel })
    }

    /// [`from_bytes`](Self::from_bytes) for a filter of this hash, or one that answers "maybe" to everything and the reason, for the
    /// log: an engine that goes on stays correct, and reads more than it had to. The bytes are kept either way.
    pub fn open_or_pass_all(bytes: B, key_hash: KeyHash) -> (Self, Option<FormatError>) {
        let (view, error) = BloomFilterRef::open_or_pass_all(bytes.as_ref(), key_hash);
        let blocks = if error.is_none() { view.blocks().len() as u32 } else { 0 };
        let (meta, kernel) = (view.meta(), view.kernel());
        (BloomFilterBytes { bytes, blocks, meta, kernel }, error)
    }

    /// Verifies the header only, as [`BloomFilterRef::from_bytes_trusted`] does. Cost: reads at most 128 bytes.
    ///
    /// # Errors
    ///
    /// [`FormatError`]; see [`BloomFilterRef::from_bytes_trusted`].
    pub fn from_bytes_trusted(bytes: B) -> Result<Self, FormatError> {
        let view = BloomFilterRef::from_bytes_trusted(bytes.as_ref())?;
        let (blocks, meta, kernel) = (view.blocks().len() as u32, view.meta(), view.kernel());
        Ok(BloomFilterBytes { bytes, blocks, meta, kernel })
    }

    /// The filter, ready for queries. Cost: nothing is read or verified again.
    #[inline]
    pub fn view(&self) -> BloomFilterRef<'_> {
        let blocks = format::blocks(self.bytes.as_ref());
        if self.blocks > 0 && blocks.len() == self.blocks as usize {
            BloomFilterRef::new(blocks, self.meta, self.kernel)
        } else {
            // The bytes are no filter, or their owner lends others than it did.
            BloomFilterRef::pass_all(self.meta.key_hash).with_kernel(self.kernel)
        }
    }

    /// The same filter if it was built with this hash and seed: see [`BloomFilterRef::require_key_hash`].
    ///
    /// # Errors
    ///
    /// [`FormatError::HashMismatch`] naming both.
    pub fn require_key_hash(self, expected: KeyHash) -> Result<Self, FormatError> {
        self.view().require_key_hash(expected)?;
        Ok(self)
    }

    /// The bytes, as they were given.
    pub fn get_ref(&self) -> &B {
        &self.bytes
    }

    /// Gives the bytes back.
    pub fn into_inner(self) -> B {
        self.bytes
    }

    /// The same filter, with batches answered by `kernel`.
    #[must_use]
    pub fn with_kernel(self, kernel: Kernel) -> Self {
        BloomFilterBytes { kernel, ..self }
    }
}

queries_by_view!([B: AsRef<[u8]>], BloomFilterBytes<B>);

impl<'a, B: AsRef<[u8]>> From<&'a BloomFilterBytes<B>> for BloomFilterRef<'a> {
    fn from(filter: &'a BloomFilterBytes<B>) -> Self {
        filter.view()
    }
}

/// The shape, without the bits.
impl<B> core::fmt::Debug for BloomFilterBytes<B> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("BloomFilterBytes")
            .field("blocks", &self.blocks)
            .field("meta", &self.meta)
            .field("kernel", &self.kernel)
            .finish_non_exhaustive()
    }
}
