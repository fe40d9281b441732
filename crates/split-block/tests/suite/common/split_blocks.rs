//! Every kind of lookup in a split-block filter.

use blocked_bloom::{Bitmask, Filter};
use blocked_bloom_split::{SplitBlock, SplitBlockFilter, hash_value};

use crate::common::kernels;

/// Looks up with every method and every kernel.
pub(crate) fn check(
    filter: SplitBlockFilter<&[SplitBlock]>,
    keys: &[Vec<u8>],
    expected: &[bool],
    context: &str,
) {
    let hashes: Vec<u64> = keys.iter().map(hash_value).collect();
    let mut hits = Bitmask::new();
    for kernel in kernels() {
        let filter = filter.with_kernel(kernel);
        let answers = |hits: &Bitmask| -> Vec<bool> {
            (0..hits.len()).map(|i| hits.get(i).unwrap()).collect()
        };
        filter.contains_hashes(&hashes, &mut hits);
        assert_eq!(answers(&hits), expected, "hashes, {kernel:?}, {context}");
        filter.contains_batch(keys, &mut hits);
        assert_eq!(answers(&hits), expected, "keys, {kernel:?}, {context}");
        let mut words = vec![u64::MAX; keys.len().div_ceil(64)];
        filter.contains_batch_into(keys, &mut words).unwrap();
        assert_eq!(words, hits.words(), "words of keys, {kernel:?}, {context}");
        words.fill(u64::MAX);
        filter.contains_hashes_into(&hashes, &mut words).unwrap();
        assert_eq!(words, hits.words(), "words of hashes, {kernel:?}, {context}");
    }
    for ((key, &hash), &expected) in keys.iter().zip(&hashes).zip(expected) {
        assert_eq!(filter.contains(key), expected, "{key:02x?}, {context}");
        assert_eq!(filter.contains_hash(hash), expected, "{key:02x?}, {context}");
    }
}
