//! Damaged bytes are rejected. If the checksums are recomputed, the filter answers as a naive
//! reader of the same bytes does. Nothing panics.

use blocked_bloom::{Bitmask, Filter};
use blocked_bloom_removable::{RemovableFilter, RemovableOptions};

use crate::common::Random;
use crate::format::seal;
use crate::naive::Naive;

fn stored(keys: u64, added: usize) -> Vec<u8> {
    let mut filter = RemovableOptions::new(keys).empty_filter().unwrap();
    filter.insert_hashes(&Random(3).hashes(added)).unwrap();
    filter.to_bytes()
}

/// An opened filter must answer as its bytes say. Returns whether the lines were verified.
fn check(bytes: &[u8]) -> bool {
    let verified = RemovableFilter::from_bytes_any_hash(bytes);
    if let Ok(view) = RemovableFilter::from_bytes_trusted_any_hash(bytes) {
        let naive = Naive::from_stored(bytes);
        assert_eq!(view.lines().len(), naive.0.len());
        let mut hits = Bitmask::new();
        let hashes: Vec<u64> =
            Random(3).hashes(40).into_iter().chain(Random(5).hashes(40)).collect();
        view.contains_hashes(&hashes, &mut hits);
        for (i, &hash) in hashes.iter().enumerate() {
            assert_eq!(hits.get(i), Some(naive.contains(hash)));
        }
        let mut copy = view.to_filter().unwrap();
        assert_eq!(copy.keys_inserted(), naive.len());
        for &hash in &hashes {
            copy.remove_hash(hash);
            _ = copy.insert_hash(hash);
        }
        assert!((0.0..=1.0).contains(&view.expected_false_positive_rate()));
        if verified.is_ok() {
            assert_eq!(view.keys_inserted(), naive.len());
        }
    }
    verified.is_ok()
}

#[test]
fn every_flipped_bit_truncation_and_extension_is_refused() {
    for (keys, added) in [(1, 0), (20, 20), (150, 140)] {
        let good = stored(keys, added);
        assert!(check(&good));
        for bit in 0..8 * good.len() {
            let mut bytes = good.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(!check(&bytes), "bit {bit}");
        }
        for length in 0..good.len() {
            assert!(!check(&good[..length]), "{length} bytes");
        }
        for more in [1, 63, 64, 65, 4_096] {
            assert!(!check(&[&good[..], &vec![0; more]].concat()), "{more} more bytes");
        }
    }
}

#[test]
fn overwritten_swapped_and_foreign_bytes_are_refused() {
    let good = stored(300, 280);
    let mut random = Random(11);
    for _ in 0..3_000 {
        let mut bytes = good.clone();
        let (from, to) =
            (random.next() as usize % bytes.len(), random.next() as usize % bytes.len());
        let length = 1 + random.next() as usize % (bytes.len() - from.max(to)).min(128);
        match random.next() % 3 {
            0 => bytes[to..to + length].fill(random.next() as u8),
            1 => bytes.copy_within(from..from + length, to),
            _ => bytes[to..to + length].iter_mut().for_each(|byte| *byte = random.next() as u8),
        }
        if bytes != good {
            assert!(!check(&bytes));
        }
    }
    let other = blocked_bloom::FilterOptions::new(blocked_bloom::Sizing::BitsPerKey(10.0));
    assert!(!check(&other.empty_filter(100).unwrap().to_bytes()));
    assert!(blocked_bloom::BloomFilter::from_bytes_any_hash(&good).is_err());
}

/// With recomputed checksums, opening returns a filter of these bytes, or the error of a field.
#[test]
fn mended_damage_is_read_as_it_stands() {
    let good = stored(300, 280);
    let mut random = Random(12);
    let mut opened = 0;
    for _ in 0..3_000 {
        let mut bytes = good.clone();
        for _ in 0..1 + random.next() % 3 {
            let at = match random.next() % 2 {
                0 => random.next() as usize % 64,
                _ => random.next() as usize % bytes.len(),
            };
            bytes[at] = random.next() as u8;
        }
        seal(&mut bytes);
        opened += u32::from(check(&bytes));
    }
    assert!((50..2_900).contains(&opened), "{opened} opened");
    // A header with more lines than can be allocated is an error of the length.
    let mut bytes = good;
    bytes[24..28].fill(0xff);
    seal(&mut bytes);
    let error = RemovableFilter::from_bytes_any_hash(&bytes).unwrap_err().to_string();
    assert!(error.contains("expected 274877906944"), "{error}");
}
