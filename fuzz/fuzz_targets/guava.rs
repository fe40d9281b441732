//! Property: any bytes are either refused as a filter of Guava's, or answered as a naive reading of
//! the format answers, key by key and in batches; and a filter of the same shape is filled as a
//! naive writer fills it. The header is also made to fit, so that the fuzzer gets past it.
//!
//! Input: one byte each for strategy and size, for the hash functions of the header that is made to
//! fit, and for the length of the keys' material; that material; the file.
#![no_main]

#[path = "../../crates/formats/tests/suite/classical/naive.rs"]
#[allow(dead_code, reason = "the formats have a target each")]
mod naive;

use blocked_bloom::Bitmask;
use blocked_bloom_formats::guava::{GuavaFilter, GuavaHash, hash_key};
use libfuzzer_sys::fuzz_target;

fn check(file: &[u8], keys: &[Vec<u8>]) {
    let expected = naive::guava::answers(file, keys);
    let Ok(filter) = GuavaFilter::from_bytes(file) else {
        assert!(expected.is_none(), "a whole file is refused");
        return;
    };
    let expected = expected.expect("a broken file is accepted");
    let hashes: Vec<GuavaHash> = keys.iter().map(hash_key).collect();
    let (mut of_keys, mut of_hashes) = (Bitmask::new(), Bitmask::new());
    filter.contains_batch(keys, &mut of_keys);
    filter.contains_hashes(&hashes, &mut of_hashes);
    assert_eq!(of_keys, of_hashes);
    assert!(of_keys.iter().eq(expected.iter().copied()));
    assert!(keys.iter().zip(&expected).all(|(key, &expected)| filter.contains(key) == expected));
    let fill = filter.fill_ratio();
    assert!((0.0..=1.0).contains(&fill) && filter.estimated_keys().is_none() == (fill == 1.0));

    let shape = filter.shape();
    let mut one_by_one = GuavaFilter::with_shape(shape).unwrap();
    let (mut batch, mut words) = (one_by_one.clone(), vec![0; filter.words().len()]);
    for key in keys {
        let (k, bits) = (shape.probes(), shape.bits());
        for bit in naive::guava::bits(file[0], k, bits, naive::guava::murmur3(key)) {
            words[(bit as usize / 8) ^ 7] |= 1 << (bit % 8);
        }
        one_by_one.insert(key);
    }
    batch.insert_hashes(&hashes);
    assert!(one_by_one.words() == words && batch == one_by_one);
    // Of the file, then, every bit is there.
    let mut both = filter.to_filter().unwrap();
    both.union_with(&batch).unwrap();
    assert!(keys.iter().all(|key| both.contains(key)));
}

fuzz_target!(|input: &[u8]| {
    let [flags, k, length, rest @ ..] = input else { return };
    let (material, file) = rest.split_at(usize::from(*length).min(rest.len()));
    let keys: Vec<Vec<u8>> =
        (0..=material.len()).map(|end| material[end / 2..end].to_vec()).collect();
    check(file, &keys);

    // As long as the words come, or long enough to be looked up in stages.
    let mut words = file.to_vec();
    if flags % 2 == 1 && !words.is_empty() {
        words = words.repeat(263_000 / words.len() + 1);
    }
    words.truncate(words.len() / 8 * 8);
    let mut mended = vec![flags / 2 % 3, *k];
    mended.extend((words.len() as i32 / 8).to_be_bytes());
    mended.extend(words);
    check(&mended, &keys);
});
