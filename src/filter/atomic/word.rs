//! Operations on a block of words that threads write at the same time.
//!
//! Generic over the word's type and independent of the rest of the crate, so that a model checker
//! can run a small version of it: `tests/loom` includes this file.

/// An atomic word of a block, as the little-endian number of its bytes, so that bit `i` of the
/// number is the same bit of the same byte on every machine. A trait, so that a model checker can
/// use its own words.
///
/// Relaxed ordering suffices. Only `fetch_or` modifies words, and each `fetch_or` reads the latest
/// value, so bits are never lost. When an insertion returns, it has set each bit of its key or has
/// loaded the word with that bit set. Suppose the insertion happens before a lookup. The lookup
/// loads each word later. By coherence (write-read if the insertion set the bit, read-read if it
/// loaded it), it reads the value that the insertion wrote or read, or a later one in the word's
/// modification order. All of these have the bit. This holds for each word separately, so no order
/// between words is needed.
pub(super) trait Word {
    const BYTES: usize;
    fn load(&self) -> u64;
    /// Returns the previous value.
    fn fetch_or(&self, bits: u64) -> u64;
}

/// Sets bits of a block. Returns true if this call set at least one bit that was clear.
///
/// Sets the bits one by one. Combining the bits of each word first saves `fetch_or`s if probes
/// share a word, but adds unpredictable branches. With 6 probes, it takes 44 ns for a new key and
/// 12 to 16 ns for a known one, instead of 28 and 6 ns; with 8 probes 46 and 17 ns instead of 40
/// and 7 ns. It is faster only for new keys with at least 10 probes (48 ns instead of 52; with 17
/// probes 52 ns instead of 79).
#[inline]
pub(super) fn set<W: Word>(words: &[W], bits: impl Iterator<Item = u32>) -> bool {
    let mut new = false;
    for bit in bits {
        let (index, bit) = (bit as usize / (8 * W::BYTES), bit as usize % (8 * W::BYTES));
        let (word, bit) = (&words[index], 1 << bit);
        // A write takes the line from all other cores, even if it changes nothing.
        if word.load() & bit == 0 {
            new |= word.fetch_or(bit) & bit == 0;
        }
    }
    new
}

/// Whether all bits are set. No branch depends on the words: from memory, mispredicted branches
/// keep cache misses from overlapping.
#[inline]
pub(super) fn contains<W: Word>(words: &[W], bits: impl Iterator<Item = u32>) -> bool {
    let size = 8 * W::BYTES;
    let word = |bit: usize| words[bit / size].load() >> (bit % size);
    bits.fold(1, |all, bit| all & word(bit as usize)) & 1 == 1
}
