//! The answers to a batch, in words of 64 bits, where no kernel writes them.

/// Writes "maybe" for so many keys, and zeros past the last.
pub(crate) fn fill_with_maybe(words: &mut [u64], keys: usize) {
    for (i, word) in words.iter_mut().enumerate() {
        *word = match keys.saturating_sub(64 * i) {
            used @ 0..64 => (1 << used) - 1,
            _ => u64::MAX,
        };
    }
}
