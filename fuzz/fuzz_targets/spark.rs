//! Property: any bytes are either refused as a filter of Spark's, or answered as a naive reading of
//! the format answers, key by key and in batches; and a filter of the same shape is filled as a
//! naive writer fills it. The header is also made to fit, so that the fuzzer gets past it.
//!
//! Input: one byte each for version and size, for the hash functions of the header that is made to
//! fit, for its seed, and for the length of the keys' material; that material; the file.
#![no_main]

#[path = "../../crates/formats/tests/suite/classical/naive.rs"]
#[allow(dead_code, reason = "the formats have a target each")]
mod naive;

use blocked_bloom::Bitmask;
use blocked_bloom_formats::spark::{SparkFilter, SparkHash};
use libfuzzer_sys::fuzz_target;
use naive::spark::Key;

fn check(file: &[u8], keys: &[Key]) {
    let expected = naive::spark::answers(file, keys);
    let Ok(filter) = SparkFilter::from_bytes(file) else {
        assert!(expected.is_none(), "a whole file is refused");
        return;
    };
    let expected = expected.expect("a broken file is accepted");
    let shape = filter.shape();
    let version = shape.scheme();
    let hash = |key: &Key| match key {
        Key::Bytes(bytes) => version.hash_bytes(bytes),
        Key::Long(number) => version.hash_long(*number),
    };
    let hashes: Vec<SparkHash> = keys.iter().map(hash).collect();
    let mut hits = Bitmask::new();
    filter.contains_hashes(&hashes, &mut hits);
    assert!(hits.iter().eq(expected.iter().copied()));
    for (key, &expected) in keys.iter().zip(&expected) {
        let found = match key {
            Key::Bytes(bytes) => filter.contains(bytes),
            Key::Long(number) => filter.contains_long(*number),
        };
        assert_eq!(found, expected, "{key:02x?}");
    }
    let fill = filter.fill_ratio();
    assert!((0.0..=1.0).contains(&fill) && filter.estimated_keys().is_none() == (fill == 1.0));

    let mut one_by_one = SparkFilter::with_shape(shape).unwrap();
    let (mut batch, mut words) = (one_by_one.clone(), vec![0; filter.words().len()]);
    for (key, &hash) in keys.iter().zip(&hashes) {
        let (number, k, bits) = (version.number(), shape.probes(), shape.bits());
        for bit in naive::spark::bits(number, version.seed(), k, bits, key) {
            words[(bit as usize / 8) ^ 7] |= 1 << (bit % 8);
        }
        one_by_one.insert_hash(hash);
    }
    batch.insert_hashes(&hashes);
    assert!(one_by_one.words() == words && batch == one_by_one);
    let mut both = filter.to_filter().unwrap();
    both.union_with(&batch).unwrap();
    assert!(hashes.iter().all(|&hash| both.contains_hash(hash)));
}

fuzz_target!(|input: &[u8]| {
    let [flags, k, seed, length, rest @ ..] = input else { return };
    let (material, file) = rest.split_at(usize::from(*length).min(rest.len()));
    let bytes = (0..=material.len()).map(|end| Key::Bytes(material[end / 2..end].to_vec()));
    let longs =
        material.windows(8).map(|long| Key::Long(i64::from_le_bytes(long.try_into().unwrap())));
    let keys: Vec<Key> = bytes.chain(longs).collect();
    check(file, &keys);

    // As long as the words come, or long enough to be looked up in stages.
    let mut words = file.to_vec();
    if flags % 2 == 1 && !words.is_empty() {
        words = words.repeat(263_000 / words.len() + 1);
    }
    words.truncate(words.len() / 8 * 8);
    let version = i32::from(flags / 2 % 4);
    let mut mended = [version, i32::from(*k)].map(i32::to_be_bytes).concat();
    if version == 2 {
        mended.extend((i32::from(*seed) << 24).to_be_bytes());
    }
    mended.extend((words.len() as i32 / 8).to_be_bytes());
    mended.extend(words);
    check(&mended, &keys);
});
