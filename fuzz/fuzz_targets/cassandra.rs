//! Property: any bytes are either rejected as Cassandra's `Filter.db`, or answered as a naive
//! reading of the format answers, key by key and in batches; and a filter of the same shape is
//! filled as a naive writer fills it, one by one and in batches. The header is also made to fit, so
//! that the fuzzer gets past it.
//!
//! Input: one byte each for layout and size, for the probes of the header that is made to fit, and
//! for the length of the keys' material; that material; the file.
#![no_main]

use blocked_bloom::Bitmask;
use blocked_bloom_formats::cassandra::{CassandraFilter, Hash128, Layout, hash_key};
use libfuzzer_sys::fuzz_target;

/// The numbers of the header, if the file is one.
fn header(file: &[u8]) -> Option<(i64, i64)> {
    let number = |at: usize| {
        let bytes = file.get(at..at + 4)?;
        Some(bytes.iter().fold(0, |number, &byte| number * 256 + i64::from(byte)))
    };
    let (probes, words) = (number(0)?, number(4)?);
    let fits = (1..=21).contains(&probes) && words >= 1 && file.len() as i64 == 8 + 8 * words;
    fits.then_some((probes, words))
}

fn naive_hash(key: &[u8]) -> (i64, i64) {
    let mix =
        |k: u64, first: u64, by, second| k.wrapping_mul(first).rotate_left(by).wrapping_mul(second);
    let (c1, c2) = (0x87c3_7b91_1142_53d5, 0x4cf5_ad43_2745_937f);
    let (mut h1, mut h2) = (0_u64, 0_u64);
    for block in key.chunks(16) {
        let (mut k1, mut k2) = (0_u64, 0_u64);
        for (i, &byte) in block.iter().enumerate() {
            let wide = if block.len() < 16 { byte as i8 as u64 } else { u64::from(byte) };
            if i < 8 { k1 ^= wide << (8 * i) } else { k2 ^= wide << (8 * i - 64) }
        }
        h1 ^= mix(k1, c1, 31, c2);
        if block.len() == 16 {
            h1 = h1.rotate_left(27).wrapping_add(h2).wrapping_mul(5).wrapping_add(0x52dc_e729);
        }
        h2 ^= mix(k2, c2, 33, c1);
        if block.len() == 16 {
            h2 = h2.rotate_left(31).wrapping_add(h1).wrapping_mul(5).wrapping_add(0x3849_5ab5);
        }
    }
    let end = |mut h: u64| {
        for factor in [0xff51_afd7_ed55_8ccd_u64, 0xc4ce_b9fe_1a85_ec53] {
            h = (h ^ h >> 33).wrapping_mul(factor);
        }
        h ^ h >> 33
    };
    let length = key.len() as u64;
    h1 = (h1 ^ length).wrapping_add(h2 ^ length);
    h2 = (h2 ^ length).wrapping_add(h1);
    (h1, h2) = (end(h1), end(h2));
    h1 = h1.wrapping_add(h2);
    (h1 as i64, h2.wrapping_add(h1) as i64)
}

/// The bytes and bits of a key in a file of this header.
fn naive_bits(
    (probes, words): (i64, i64),
    layout: Layout,
    key: &[u8],
) -> impl Iterator<Item = (usize, u8)> {
    let (h1, h2) = naive_hash(key);
    let (base, step) = if layout == Layout::Cassandra2 { (h1, h2) } else { (h2, h1) };
    (0..probes).map(move |i| {
        let at = base.wrapping_add(step.wrapping_mul(i)) % (64 * words);
        let bit = at.unsigned_abs() as usize;
        let (word, byte) = (bit / 64, bit % 64 / 8);
        let byte = if layout == Layout::Cassandra4 { byte } else { 7 - byte };
        (8 + 8 * word + byte, 1 << (bit % 8))
    })
}

fn naive_contains(file: &[u8], layout: Layout, key: &[u8]) -> bool {
    header(file).is_none_or(|header| {
        naive_bits(header, layout, key).all(|(byte, bit)| file[byte] & bit != 0)
    })
}

/// An empty filter of this shape, filled with the keys.
fn add(filter: CassandraFilter<&[u8]>, keys: &[&[u8]], hashes: &[Hash128]) {
    if filter.is_pass_all() {
        return;
    }
    let layout = filter.shape().scheme();
    let mut one_by_one = CassandraFilter::with_shape(filter.shape()).unwrap();
    let mut batch = one_by_one.clone();
    let mut naive = one_by_one.as_bytes().to_vec();
    let header = header(&naive).expect("a header that was written");
    for key in keys {
        let is_new = !naive_contains(&naive, layout, key);
        naive_bits(header, layout, key).for_each(|(byte, bit)| naive[byte] |= bit);
        assert_eq!(one_by_one.insert(key), is_new, "{layout}, {key:02x?}");
    }
    batch.insert_hashes(hashes);
    assert!(one_by_one.as_bytes() == naive, "{layout}: not the bits of the format");
    assert!(batch.as_bytes() == naive, "{layout}: not the bits of the format, in a batch");
}

fn check(file: &[u8], layout: Layout, keys: &[&[u8]]) {
    let Ok(filter) = CassandraFilter::from_bytes(file, layout) else {
        assert!(!file.is_empty() && header(file).is_none(), "a whole file is refused");
        return;
    };
    assert!(file.is_empty() || header(file).is_some(), "a broken file is accepted");
    let hashes: Vec<Hash128> = keys.iter().map(hash_key).collect();
    let (mut of_keys, mut of_hashes) = (Bitmask::new(), Bitmask::new());
    filter.contains_batch(keys, &mut of_keys);
    filter.contains_hashes(&hashes, &mut of_hashes);
    assert_eq!(of_keys, of_hashes);
    for (i, key) in keys.iter().enumerate() {
        let expected = naive_contains(file, layout, key);
        assert_eq!(filter.contains(key), expected, "{layout}, {key:02x?}");
        assert_eq!(of_keys.get(i), Some(expected), "{layout}, {key:02x?} in a batch");
    }
    let fill = filter.fill_ratio();
    assert!((0.0..=1.0).contains(&fill) && filter.estimated_keys().is_none() == (fill == 1.0));
    add(filter, keys, &hashes);
}

fuzz_target!(|input: &[u8]| {
    let [flags, probes, length, rest @ ..] = input else { return };
    let layout = Layout::ALL[usize::from(flags / 2) % 3];
    let (material, file) = rest.split_at(usize::from(*length).min(rest.len()));
    // The keys are pieces of the input: of every short length, and enough of them for every stage
    // of a batch.
    let keys: Vec<&[u8]> = (0..=material.len()).map(|end| &material[end / 2..end]).collect();
    check(file, layout, &keys);

    // As long as the words come, or long enough to be looked up in stages.
    let mut words = file.to_vec();
    if flags % 2 == 1 && !words.is_empty() {
        words = words.repeat(263_000 / words.len() + 1);
    }
    words.truncate(words.len() / 8 * 8);
    let mut mended = (i32::from(*probes) % 24).to_be_bytes().to_vec();
    mended.extend((words.len() as i32 / 8).to_be_bytes());
    mended.extend(words);
    check(&mended, layout, &keys);
});
