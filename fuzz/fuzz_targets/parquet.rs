//! Property: any bytes are either rejected as a filter of Parquet, or answered as a naive reading
//! of header and bitset answers, value by value and in batches, on every kernel; and a copy that
//! can be added to gets the bits that a naive writer sets. A header that every writer writes is
//! also put before the bytes.
//!
//! Input: one byte each for the length of the values' material and for where the filter stands in a
//! file; that material; the filter.
#![no_main]

use blocked_bloom::{Bitmask, Filter, Kernel};
use blocked_bloom_formats::parquet::filter_at;
use blocked_bloom_split::{SplitBlock, SplitBlockFilter, hash_value};
use libfuzzer_sys::fuzz_target;

mod thrift;

use thrift::Naive;

const SALT: [u32; 8] = [
    0x47b6_137b,
    0x4497_4d91,
    0x8824_ad5b,
    0xa2b7_289d,
    0x7054_95c7,
    0x2df1_424b,
    0x9efc_4947,
    0x5c6b_fb31,
];

/// XXH64 with seed 0.
fn naive_hash(bytes: &[u8]) -> u64 {
    const P: [u64; 5] = [
        0x9e37_79b1_85eb_ca87,
        0xc2b2_ae3d_27d4_eb4f,
        0x1656_67b1_9e37_79f9,
        0x85eb_ca77_c2b2_ae63,
        0x27d4_eb2f_1656_67c5,
    ];
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
    let round = |sum: u64, word: u64| {
        sum.wrapping_add(word.wrapping_mul(P[1])).rotate_left(31).wrapping_mul(P[0])
    };
    let mut rest = bytes;
    let mut h = P[4];
    if bytes.len() >= 32 {
        let mut lanes = [P[0].wrapping_add(P[1]), P[1], 0, P[0].wrapping_neg()];
        while rest.len() >= 32 {
            for (i, lane) in lanes.iter_mut().enumerate() {
                *lane = round(*lane, word(&rest[8 * i..8 * i + 8]));
            }
            rest = &rest[32..];
        }
        h = 0;
        for (lane, by) in lanes.iter().zip([1, 7, 12, 18]) {
            h = lane.rotate_left(by).wrapping_add(h);
        }
        for lane in lanes {
            h = (h ^ round(0, lane)).wrapping_mul(P[0]).wrapping_add(P[3]);
        }
    }
    h = h.wrapping_add(bytes.len() as u64);
    while rest.len() >= 8 {
        h = (h ^ round(0, word(&rest[..8]))).rotate_left(27).wrapping_mul(P[0]).wrapping_add(P[3]);
        rest = &rest[8..];
    }
    if rest.len() >= 4 {
        h = (h ^ word(&rest[..4]).wrapping_mul(P[0])).rotate_left(23).wrapping_mul(P[1]);
        h = h.wrapping_add(P[2]);
        rest = &rest[4..];
    }
    for &byte in rest {
        h = (h ^ u64::from(byte).wrapping_mul(P[4])).rotate_left(11).wrapping_mul(P[0]);
    }
    h = (h ^ h >> 33).wrapping_mul(P[1]);
    h = (h ^ h >> 29).wrapping_mul(P[2]);
    h ^ h >> 32
}

/// The bytes and bits of a value in a bitset of this many bytes.
fn naive_bits(bytes: usize, value: &[u8]) -> [(usize, u8); 8] {
    let h = naive_hash(value);
    let block = ((h >> 32) * (bytes as u64 / 32) >> 32) as usize;
    std::array::from_fn(|word| {
        let bit = (h as u32).wrapping_mul(SALT[word]) >> 27;
        (32 * block + 4 * word + bit as usize / 8, 1 << (bit % 8))
    })
}

fn naive_contains(bitset: &[u8], value: &[u8]) -> bool {
    naive_bits(bitset.len(), value).iter().all(|&(byte, bit)| bitset[byte] & bit != 0)
}

/// Adds the values to a copy of the filter, singly and by every kernel.
fn add(filter: SplitBlockFilter<&[SplitBlock]>, values: &[&[u8]], hashes: &[u64]) {
    let mut naive = filter.blocks().as_flattened().to_vec();
    let mut one_by_one = filter.to_filter().unwrap();
    for value in values {
        assert_eq!(one_by_one.insert(value), !naive_contains(&naive, value), "{value:02x?}");
        naive_bits(naive.len(), value).iter().for_each(|&(byte, bit)| naive[byte] |= bit);
    }
    assert!(one_by_one.view().blocks().as_flattened() == naive);
    for kernel in Kernel::supported() {
        let mut batch = filter.to_filter().unwrap().with_kernel(kernel);
        batch.insert_hashes(hashes);
        assert!(batch == one_by_one, "{kernel:?}");
    }
}

fn check(bytes: &[u8], before: usize, values: &[&[u8]]) {
    let mut reader = Naive { rest: bytes, deepest: 0 };
    let length = reader.header();
    let header = bytes.len() - reader.rest.len();
    let filter = SplitBlockFilter::from_bytes(bytes);
    let file = [vec![0x15; before], bytes.to_vec()].concat();
    let at = filter_at(&file, before as i64, None);
    if reader.deepest > 25 {
        // Nested deeper than some readers go: rejected or not.
        return;
    }
    assert_eq!(filter.is_ok(), length.is_some_and(|length| header + length == bytes.len()));
    assert_eq!(at.is_ok(), length.is_some_and(|length| header + length <= bytes.len()));
    let Some((length, filter)) = length.zip(at.ok()) else { return };
    let declared = |length: usize| filter_at(&file, before as i64, Some(length as i32));
    let whole = header + length;
    assert!(
        declared(whole).is_ok() && [whole - 1, whole + 1].map(declared).iter().all(Result::is_err)
    );
    let bitset = &bytes[header..header + length];
    assert_eq!(filter.blocks().as_flattened(), bitset);

    let hashes: Vec<u64> = values.iter().map(hash_value).collect();
    let expected: Vec<bool> = values.iter().map(|value| naive_contains(bitset, value)).collect();
    for kernel in Kernel::supported() {
        let filter = filter.with_kernel(kernel);
        let (mut of_values, mut of_hashes) = (Bitmask::new(), Bitmask::new());
        filter.contains_batch(values, &mut of_values);
        filter.contains_hashes(&hashes, &mut of_hashes);
        assert_eq!(of_values, of_hashes);
        for (i, value) in values.iter().enumerate() {
            assert_eq!(filter.contains(value), expected[i], "{value:02x?}");
            assert_eq!(of_values.get(i), Some(expected[i]), "{kernel:?}, {value:02x?}");
        }
    }
    let (fill, rate) = (filter.fill_ratio(), filter.estimated_false_positive_rate());
    assert!((0.0..=1.0).contains(&fill) && (0.0..=1.0).contains(&rate));
    add(filter, values, &hashes);
}

fuzz_target!(|input: &[u8]| {
    let [length, before, rest @ ..] = input else { return };
    let (material, bytes) = rest.split_at(usize::from(*length).min(rest.len()));
    let values: Vec<&[u8]> = (0..=material.len()).map(|end| &material[end / 2..end]).collect();
    for value in &values {
        assert_eq!(hash_value(value), naive_hash(value), "{} bytes", value.len());
    }
    let before = usize::from(*before);
    check(bytes, before, &values);

    let bitset = &bytes[..bytes.len() / 32 * 32];
    let mut mended = vec![0x15];
    let mut zigzag = 2 * bitset.len();
    while zigzag >= 128 {
        mended.push(zigzag as u8 | 128);
        zigzag >>= 7;
    }
    mended.push(zigzag as u8);
    mended.extend([0x1c, 0x1c, 0, 0].repeat(3));
    mended.push(0);
    mended.extend(bitset);
    check(&mended, before, &values);
});
