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

/// Returns the index of the word that holds this bit of a block, and the bit's mask in that word.
#[inline]
fn place<W: Word>(bit: u32) -> (usize, u64) {
    let size = 8 * W::BYTES;
    (bit as usize / size, 1 << (bit as usize % size))
}

/// Sets bits of a block. Returns true if a bit was clear.
///
/// Of racing insertions of the same bits, at least one returns true: some bit was first set by one
/// of them, and that one had found a bit clear.
///
/// If all bits are set, nothing is written: a write takes the line from all other cores, even if it
/// changes nothing. For a known key, testing the bits before computing masks takes 0.83x the time
/// of computing masks first. Otherwise, each word that lacks bits is written once. For a new key,
/// one read-modify-write per bit took 1.25x the time (Emerald Rapids). With a branch per bit as
/// well, it took another 1.2x (Cascade Lake).
#[inline]
pub(super) fn insert<W: Word>(words: &[W], bits: impl Iterator<Item = u32> + Clone) -> bool {
    let places = bits.map(place::<W>);
    let is_new = places.clone().any(|(i, bit)| words[i].load() & bit == 0);
    if is_new {
        // A block of 64 bytes has at most 16 words.
        let (mut masks, mut left) = ([0; 16], 0_u32);
        for (i, bit) in places {
            let missing = bit & !words[i].load();
            masks[i] |= missing;
            left |= u32::from(missing != 0) << i;
        }
        while left != 0 {
            let i = left.trailing_zeros() as usize;
            words[i].or(masks[i]);
            left &= left - 1;
        }
    }
    is_new
}

/// Sets bits like [`insert`], with plain loads and stores: for the only thread that writes to the
/// block.
#[inline]
pub(super) fn insert_alone<W: Word>(words: &[W], bits: impl Iterator<Item = u32>) -> bool {
    let mut missing = 0;
    for (i, bit) in bits.map(place::<W>) {
        let before = words[i].load();
        words[i].store(before | bit);
        missing += u32::from(before & bit == 0);
    }
    missing > 0
}

/// Whether all bits are set. No branch depends on the words: from memory, mispredicted branches
/// keep cache misses from overlapping. On x86, counting clear bits takes two instructions per bit;
/// shifting the bit to the lowest place took more, and 1.1x to 1.3x the time.
#[inline]
pub(super) fn contains<W: Word>(words: &[W], bits: impl Iterator<Item = u32>) -> bool {
    bits.map(place::<W>).map(|(i, bit)| u32::from(words[i].load() & bit == 0)).sum::<u32>() == 0
}
