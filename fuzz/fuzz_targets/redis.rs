//! Property: any bytes are either refused as a file of a dump of RedisBloom's, or answered as a
//! naive reading of the format answers, key by key and in batches, and written as they were; and
//! keys that are added are there. The file is also made to fit, so that the fuzzer gets past the
//! header.
//!
//! Input: one byte each for the options and for the length of the keys' material; that material;
//! the file, or, for the one that is made to fit, a byte for each link's rate, one for its size,
//! one for its n2, and the bits of all.
#![no_main]
#![allow(clippy::approx_constant, reason = "RedisBloom's logarithm has one digit less")]

#[path = "../../crates/formats/tests/suite/classical/naive.rs"]
#[allow(dead_code, reason = "the formats have a target each")]
mod naive;

use blocked_bloom::Bitmask;
use blocked_bloom_formats::redis::{RedisFilter, RedisHash};
use libfuzzer_sys::fuzz_target;

fn check(file: &[u8], keys: &[Vec<u8>]) {
    let expected = naive::redis::answers(file, keys);
    let Ok(mut filter) = RedisFilter::from_bytes(file) else {
        assert!(expected.is_none(), "a whole file is refused");
        return;
    };
    let expected = expected.expect("a broken file is accepted");
    let hashes: Vec<RedisHash> = keys.iter().map(|key| filter.hash_key(key)).collect();
    let (mut of_keys, mut of_hashes) = (Bitmask::new(), Bitmask::new());
    filter.contains_batch(keys, &mut of_keys);
    filter.contains_hashes(&hashes, &mut of_hashes);
    assert_eq!(of_keys, of_hashes);
    assert!(of_keys.iter().eq(expected.iter().copied()));
    assert!(keys.iter().zip(&expected).all(|(key, &expected)| filter.contains(key) == expected));
    let rate = filter.estimated_false_positive_rate();
    assert!((-1e-9..=1.0).contains(&rate), "{rate}");
    let written = filter.to_bytes();
    assert_eq!(RedisFilter::from_bytes(&written).as_ref(), Ok(&filter));

    // A link that is full is followed by one of a size that the header says: not by gigabytes.
    if filter.capacity().saturating_mul(filter.expansion().unwrap_or(1).into()) > 1 << 20 {
        return;
    }
    let mut batch = filter.clone();
    for (key, &expected) in keys.iter().zip(&expected) {
        let was_there = filter.contains(key);
        assert!(was_there || !expected);
        match filter.insert(key) {
            Ok(is_new) => assert!(is_new != was_there && filter.contains(key)),
            Err(_) => assert!(!filter.contains(key)),
        }
    }
    if batch.insert_hashes(&hashes).is_ok() {
        assert!(batch.to_bytes() == filter.to_bytes());
    }
}

fn reply(iterator: i64, data: &[u8]) -> Vec<u8> {
    [&iterator.to_le_bytes()[..], &(data.len() as u64).to_le_bytes(), data].concat()
}

fuzz_target!(|input: &[u8]| {
    let [options, length, rest @ ..] = input else { return };
    let (material, file) = rest.split_at(usize::from(*length).min(rest.len()));
    let keys: Vec<Vec<u8>> =
        (0..=material.len()).map(|end| material[end / 2..end].to_vec()).collect();
    check(file, &keys);

    let [count, links @ ..] = file else { return };
    let count = usize::from(count % 4) + 1;
    let Some((links, bits)) = links.split_at_checked(3 * count) else { return };
    let (mut header, mut replies, mut end, mut size) = (Vec::new(), Vec::new(), 1, 0_u64);
    for link in links.chunks(3) {
        let error = (f64::from(link[0]) + 1.0) / 300.0;
        let bpe = -error.ln() / 0.480453013918201;
        let bytes = 1 + u64::from(link[1]) * if link[1] == 255 { 1_100 } else { 1 };
        let hashes = (0.693147180559945 * bpe).ceil() as u32;
        let keys = u64::from(link[2] / 16);
        for number in [bytes, 8 * bytes, keys, error.to_bits(), bpe.to_bits()] {
            header.extend(number.to_le_bytes());
        }
        header.extend(hashes.to_le_bytes());
        header.extend(8_u64.to_le_bytes());
        header.push(link[2] % 16);
        size += keys;
        end += bytes as i64;
        let data: Vec<u8> = bits.iter().copied().chain([0]).cycle().take(bytes as usize).collect();
        replies.extend(reply(end, &data));
    }
    let fixed = [count as u32, u32::from(options % 17), 2].map(u32::to_le_bytes).concat();
    let header = [&size.to_le_bytes()[..], &fixed, &header].concat();
    check(&[reply(1, &header), replies].concat(), &keys);
});
