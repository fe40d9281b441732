//! Operations on a block of words that threads write at the same time.
//!
//! Generic over the word's type and independent of the rest of the crate, so that a model checker
//! can run a small version of it: `tests/loom` includes this file.

/// An atomic word of a block, as the little-endian number of its bytes, so that bit `i` of the
/// number is the same bit of the same byte on every machine. A trait, so that a model checker can
/// use its own words.
///
/// Relaxed ordering suffices. Bits are never lost: either only `insert` modifies words, and each
/// atomic OR acts on the latest value, or only one thread modifies them. When an insertion returns,
/// it has set each bit of its key or has loaded the word with that bit set. Suppose the insertion
/// happens before a lookup. The lookup loads each word later. By coherence (write-read if the
/// insertion set the bit, read-read if it loaded it), it reads the value that the insertion wrote
/// or read, or a later one in the word's modification order. All of these have the bit. This holds
/// for each word separately, so no order between words is needed.
pub(super) trait Word {
    const BYTES: usize;
    fn load(&self) -> u64;
    fn store(&self, word: u64);
    /// Sets bits with one atomic read-modify-write.
    fn or(&self, bits: u64);
}

/// Returns, for each bit of a block, its word and the word with this bit alone.
#[inline]
pub(super) fn places<W: Word, const N: usize>(
    words: &[W; N],
    bits: impl Iterator<Item = u32> + Clone,
) -> impl Iterator<Item = (&W, u64)> + Clone {
    let size = 8 * W::BYTES;
    bits.map(move |bit| (&words[bit as usize / size], 1 << (bit as usize % size)))
}

/// Sets bits of a block, given as [`places`]. Returns true if a bit was clear.
///
/// Of racing insertions of the same bits, at least one returns true: some bit was first set by one
/// of them, and that one had found a bit clear.
///
/// If all bits are set, nothing is written: a write takes the line from all other cores, even if it
/// changes nothing. Otherwise every bit is set, without testing the bits again. Which bits are set
/// cannot be predicted, so a branch for each took 1.2x the time for a new key. Testing all bits
/// before one branch, instead of up to the first clear one, takes the same time for a new key and
/// 1.2x the time for a known one. One read-modify-write per word, instead of one per bit, takes
/// 1.5x the time for a known key (Cascade Lake).
#[inline]
pub(super) fn insert<'w, W: Word + 'w>(bits: impl Iterator<Item = (&'w W, u64)> + Clone) -> bool {
    let is_new = bits.clone().any(|(word, bit)| word.load() & bit == 0);
    if is_new {
        bits.for_each(|(word, bit)| word.or(bit));
    }
    is_new
}

/// Sets bits like [`insert`], with plain loads and stores: for the only thread that writes to the
/// block.
#[inline]
pub(super) fn insert_alone<'w, W: Word + 'w>(bits: impl Iterator<Item = (&'w W, u64)>) -> bool {
    let mut missing = 0;
    for (word, bit) in bits {
        let before = word.load();
        word.store(before | bit);
        missing += u32::from(before & bit == 0);
    }
    missing > 0
}

/// Whether all bits are set. No branch depends on the words: from memory, mispredicted branches
/// keep cache misses from overlapping. On x86, counting clear bits takes two instructions per bit;
/// shifting the bit to the lowest place took more, and 1.1x to 1.3x the time.
#[inline]
pub(super) fn contains<'w, W: Word + 'w>(bits: impl Iterator<Item = (&'w W, u64)>) -> bool {
    bits.map(|(word, bit)| u32::from(word.load() & bit == 0)).sum::<u32>() == 0
}
