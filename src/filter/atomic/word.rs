//! One word that threads write at the same time, and what a block of them is made of.
//!
//! Written once over the word's type and without anything else of this crate, so that a model
//! checker can run a miniature of it: `tests/loom` includes this file.

/// An atomic word of a block, as the little-endian number that its bytes are, so that bit `i` of
/// the number is the same bit of the same byte on every machine. A trait, so that a model checker's
/// words can stand in for the machine's.
///
/// Relaxed is enough. Words only gain bits: each is modified by `fetch_or` alone, and one
/// `fetch_or` reads the latest value, so none loses what another set. When an insertion returns, it
/// has for every bit of its key either set it or loaded its word with the bit set. A query that
/// this happens before loads each word later, and by coherence (write-read in the first case,
/// read-read in the second) gets the value that the insertion left or saw, or one that follows it
/// in the word's modification order; all of those have the bit. This holds for each word by itself,
/// so no order among words is needed.
pub(super) trait Word {
    const BYTES: usize;
    fn load(&self) -> u64;
    /// The value before.
    fn fetch_or(&self, bits: u64) -> u64;
}

/// Sets bits of a block. Returns true if at least one was set by this call.
///
/// Probe by probe. Gathering a key's bits per word first saves `fetch_or`s of probes that share
/// one, and costs branches that nobody can predict: at 6 probes 44 ns for a new key and 12 to 16
/// for a known one, against 28 and 6; at 8 probes 46 and 17 against 40 and 7. It would win for new
/// keys from 10 probes (48 against 52; at 17 probes 52 against 79), never for known ones.
#[inline]
pub(super) fn set<W: Word>(words: &[W], bits: impl Iterator<Item = u32>) -> bool {
    let mut new = false;
    for bit in bits {
        let (index, bit) = (bit as usize / (8 * W::BYTES), bit as usize % (8 * W::BYTES));
        let (word, bit) = (&words[index], 1 << bit);
        // Writing takes the line from all other cores, even if it changes nothing.
        if word.load() & bit == 0 {
            new |= word.fetch_or(bit) & bit == 0;
        }
    }
    new
}

/// Copies a block, each word at a moment of its own.
#[inline]
pub(super) fn copy_words<W: Word>(words: &[W], copy: &mut [u8]) {
    for (bytes, word) in copy.chunks_exact_mut(W::BYTES).zip(words) {
        bytes.copy_from_slice(&word.load().to_le_bytes()[..W::BYTES]);
    }
}
