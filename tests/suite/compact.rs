//! The compact form: it is written as documented, read back, and never mistaken for the full form.

use crate::common::{Random, filled};
use blocked_bloom::parts::HeaderError;
use blocked_bloom::{
    BloomFilter, FilterContents, FilterOptions, FormatError, KeyHash, KeyHasher, PrefixExtractor,
    Sizing,
};
use xxhash_rust::xxh3::xxh3_64;

fn built(bits: f64, probes: Option<u32>, keys: u64) -> BloomFilter {
    let mut options = FilterOptions::new(Sizing::BitsPerKey(bits));
    if let Some(probes) = probes {
        options = options.with_probes(probes);
    }
    let mut builder = options.builder();
    builder.extend((0..keys).map(u64::to_le_bytes)).unwrap();
    builder.finish().unwrap()
}

/// A second implementation of the document: the full form without its header, and a trailer with
/// its fields.
fn documented_bytes(full: &[u8]) -> Vec<u8> {
    let mut bytes = full[64..].to_vec();
    bytes.extend([0xbc, 1, full[12], full[13], full[32], full[33], full[34], full[35]]);
    bytes
}

#[test]
fn compact_filters_are_those_of_the_document_and_read_back() {
    for (bits, probes, keys) in [
        (10.0, None, 0),
        (10.0, None, 1),
        (10.0, None, 20),
        (10.0, None, 3_276),
        (0.0, None, 70_000),
        (16.0, Some(9), 100),
        (44.0, Some(30), 500),
        (8.0, Some(1), 100_000),
    ] {
        let filter = built(bits, probes, keys);
        let compact = filter.to_compact_bytes().unwrap();
        assert_eq!(compact, documented_bytes(&filter.to_bytes()));
        assert_eq!(compact.len() % 64, 8);
        for offset in 0..64 {
            let mut moved = vec![0; offset];
            moved.extend(&compact);
            let opened =
                BloomFilter::from_compact_bytes(&moved[offset..], KeyHash::default()).unwrap();
            assert_eq!(opened, filter.view());
            assert_eq!(opened.to_bytes(), filter.to_bytes());
        }
        let mut absent = 0;
        for hash in (0..keys.min(500)).map(hash_of).chain(Random(keys).hashes(500)) {
            let expected = filter.contains_hash(hash);
            assert_eq!(BloomFilter::contains_hash_in(&compact, KeyHash::default(), hash), expected);
            absent += u32::from(!expected);
        }
        assert_eq!(absent > 0, bits > 0.0, "{bits} bits");
    }
    assert_eq!(built(10.0, None, 20).to_compact_bytes().unwrap().len(), 72);
}

fn hash_of(key: u64) -> u64 {
    KeyHasher::default().hash(key.to_le_bytes())
}

/// Files of the first release that wrote the form: never update them.
#[test]
fn golden_files_are_written_again_and_answer() {
    for (name, bits, probes, keys) in [
        ("compact-one-key", 10.0, None, 1),
        ("compact-nine-probes", 16.0, Some(9), 100),
        ("compact-pass-all", 0.0, None, 20),
    ] {
        let path = format!("{}/tests/golden/{name}.bloom", env!("CARGO_MANIFEST_DIR"));
        let stored = std::fs::read(&path).unwrap();
        assert_eq!(stored, built(bits, probes, keys).to_compact_bytes().unwrap(), "{path}");
        let opened = BloomFilter::from_compact_bytes(&stored, KeyHash::default()).unwrap();
        assert!((0..keys).all(|key| opened.contains(key.to_le_bytes())));
        assert_eq!(opened.keys_inserted(), keys);
    }
}

#[test]
fn compact_form_rejects_unsupported_filters() {
    let (default, whole) = (KeyHash::default(), FilterContents::WholeKeys);
    let options = FilterOptions::new(Sizing::BitsPerKey(10.0));
    for key_hash in [KeyHash::Xxh3 { seed: 1 }, KeyHash::Caller { tag: 0 }] {
        let filter = BloomFilter::with_params(options.params(9).unwrap(), key_hash).unwrap();
        let error = filter.to_compact_bytes().unwrap_err();
        assert_eq!(error, FormatError::NotCompact { key_hash, contents: whole, keys_inserted: 0 });
    }
    let rule = PrefixExtractor::fixed(2);
    for options in [
        options.clone().with_prefixes(rule.clone()),
        options.clone().with_only_prefixes(rule.clone()),
    ] {
        let contents = options.contents();
        let filter = options.builder().finish().unwrap();
        let error = filter.to_compact_bytes().unwrap_err();
        assert_eq!(
            error,
            FormatError::NotCompact { key_hash: default, contents, keys_inserted: 0 }
        );
    }
    // The largest number of keys, and one more.
    let mut full = built(10.0, None, 5).to_bytes();
    for (keys, holds) in [(u64::from(u32::MAX), true), (1 << 32, false)] {
        full[32..40].copy_from_slice(&keys.to_le_bytes());
        let sum = xxh3_64(&full[..56]);
        full[56..64].copy_from_slice(&sum.to_le_bytes());
        let filter = BloomFilter::from_bytes_any_hash(&full).unwrap();
        let compact = filter.to_compact_bytes();
        assert_eq!(compact.is_ok(), holds);
        match compact {
            Ok(bytes) => {
                assert_eq!(
                    BloomFilter::from_compact_bytes(&bytes, KeyHash::default())
                        .unwrap()
                        .keys_inserted(),
                    keys
                );
            }
            Err(error) => assert_eq!(
                error.to_string(),
                "a filter of 4294967296 whole keys hashed with XXH3-64 with seed 0: the compact form holds up to \
                 4294967295 whole keys hashed with XXH3-64 with seed 0; use to_bytes"
            ),
        }
    }
}

#[test]
fn full_and_compact_forms_are_distinguished() {
    for blocks in [1, 2, 3, 40] {
        let (filter, hashes) = filled(blocks, 6, 1);
        let (full, compact) = (filter.to_bytes(), filter.to_compact_bytes().unwrap());
        let error = BloomFilter::from_compact_bytes(&full, KeyHash::default()).unwrap_err();
        let named = "offset 8: a filter in the full form, version 1 (open it with from_bytes)";
        assert_eq!(error.to_string(), named);
        assert!(BloomFilter::from_bytes_any_hash(&compact).is_err());
        assert!(BloomFilter::from_bytes_trusted_any_hash(&compact).is_err());
        // The form has only this hash.
        let others = [KeyHash::Xxh3 { seed: 1 }, KeyHash::Caller { tag: 0 }];
        for expected in others {
            let (offset, found) = (compact.len() as u64 - 8, KeyHash::default());
            let error = HeaderError::HashMismatch { offset, found, expected };
            let opened = BloomFilter::from_compact_bytes(&compact, expected);
            assert_eq!(opened.unwrap_err(), FormatError::Header(error));
        }
        for hash in hashes.iter().copied().chain(Random(2).hashes(100)) {
            for other in others {
                assert!(BloomFilter::contains_hash_in(&compact, other, hash));
            }
        }
        // Nor blocks that start like the full form.
        let mut disguised = full.clone();
        disguised.extend([0xbc, 1, 6, 1, 0, 0, 0, 0]);
        assert!(BloomFilter::from_bytes_trusted_any_hash(&disguised).is_err());
        assert!(BloomFilter::from_compact_bytes(&disguised, KeyHash::default()).is_ok());
    }
}

/// Every wrong length and every other value of the trailer's first four bytes.
#[test]
fn rejects_bytes_that_are_not_a_compact_filter() {
    let (filter, _) = filled(3, 6, 1);
    let compact = filter.to_compact_bytes().unwrap();
    let hashes = Random(7).hashes(64);
    let all_maybe = |bytes: &[u8]| {
        hashes.iter().all(|&hash| BloomFilter::contains_hash_in(bytes, KeyHash::default(), hash))
    };
    assert!(!all_maybe(&compact));
    for length in 0..compact.len() {
        let error =
            BloomFilter::from_compact_bytes(&compact[..length], KeyHash::default()).unwrap_err();
        assert!(error.offset() <= length as u64 + 3, "{length}: {error}");
        let is_length = matches!(error, FormatError::Header(HeaderError::Length { .. }));
        assert_eq!(is_length, length % 64 != 8 || length < 72, "{length}: {error}");
    }
    for at in 0..4 {
        for value in 0..=255 {
            let mut changed = compact.clone();
            changed[192 + at] = value;
            let allowed = match at {
                0 => value == 0xbc,
                1 => value == 1,
                2 => (1..=30).contains(&value),
                _ => value == 1,
            };
            let opened = BloomFilter::from_compact_bytes(&changed, KeyHash::default());
            assert_eq!(opened.is_ok(), allowed, "{at}: {value}");
            match opened {
                Err(error) => {
                    assert_eq!(error.offset(), 192 + at as u64);
                    assert!(all_maybe(&changed));
                }
                Ok(filter) => assert!(hashes.iter().all(|&hash| {
                    filter.contains_hash(hash)
                        == BloomFilter::contains_hash_in(&changed, KeyHash::default(), hash)
                })),
            }
        }
    }
    let mut pass_all = BloomFilter::pass_all(KeyHash::default()).to_compact_bytes().unwrap();
    assert!(BloomFilter::from_compact_bytes(&pass_all, KeyHash::default()).unwrap().is_pass_all());
    for (at, value) in [(5, 0xfe), (66, 2)] {
        let before = std::mem::replace(&mut pass_all[at], value);
        assert!(BloomFilter::from_compact_bytes(&pass_all, KeyHash::default()).is_err());
        pass_all[at] = before;
    }
}

/// The use by an engine: a container with a checksum is damaged in every way. If the checksum
/// holds, no key is lost; otherwise the container is not used. Without a container, nothing panics.
#[test]
#[expect(clippy::print_stdout, reason = "how much was tried")]
fn damage_campaign() {
    let (keys, mut random) = (300, Random(11));
    let mut damaged = 0;
    for bits in [4.0, 10.0, 20.0] {
        let compact = built(bits, None, keys).to_compact_bytes().unwrap();
        let sealed: Vec<u8> = [&compact[..], &xxh3_64(&compact).to_le_bytes()].concat();
        let look_up = |container: &[u8], key: u64| {
            let Some((bytes, sum)) = container.split_last_chunk() else { return true };
            let holds = xxh3_64(bytes) == u64::from_le_bytes(*sum);
            !holds || BloomFilter::contains_hash_in(bytes, KeyHash::default(), hash_of(key))
        };
        assert!((0..keys).all(|key| look_up(&sealed, key)));
        for _ in 0..20_000 {
            let mut container = sealed.clone();
            let at = random.next() as usize % container.len();
            let other = random.next() as usize % container.len();
            match random.next() % 6 {
                0 => container[at] ^= 1 << (other % 8),
                1 => container.truncate(at),
                2 => container.extend_from_within(at..),
                3 => container[at.min(other)..=at.max(other)].fill(0),
                4 => container.swap(at, other),
                _ => container.rotate_left(at),
            }
            let key = random.next() % keys;
            assert!(look_up(&container, key), "a key was lost");
            _ = BloomFilter::contains_hash_in(&container, KeyHash::default(), hash_of(key));
            if let Ok(filter) = BloomFilter::from_compact_bytes(&container, KeyHash::default()) {
                _ = filter.contains_hash(hash_of(key));
            }
            damaged += 1;
        }
    }
    println!("{damaged} damaged containers, no key lost");
}
