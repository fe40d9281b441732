//! Property: any bytes are either rejected, or a filter on which every kernel agrees with the
//! scalar probe scheme and whose re-encoding is those bytes. `open_or_pass_all` gives that filter,
//! or one that passes all. A key or hash that is added to the opened filter is found, or cannot be
//! taken and changes nothing. The input's checksums are made to fit, so that the fuzzer gets past
//! them.
#![no_main]

use blocked_bloom::{
    AtomicBloomFilter, Bitmask, Block, BloomFilter, FilterContents, Kernel, KeyError, KeyHash,
    KeyHasher, probe,
};
use libfuzzer_sys::fuzz_target;

fn checksum(bytes: &[u8]) -> [u8; 8] {
    KeyHasher::default().hash(bytes).to_le_bytes()
}

/// Adds a hash, and a key, to owned and atomic copies of the filter.
fn add(filter: BloomFilter<&[Block]>) {
    let key = "some key";
    let for_hashes = match filter.contents() {
        FilterContents::WholeKeys => Ok(()),
        contents => Err(KeyError::NoPrefix { contents }),
    };
    let for_keys = filter.hasher().and_then(|_| for_hashes);
    let hash = filter.hasher().map_or(1 << 40, |hasher| hasher.hash(key));
    let original = filter.to_filter().unwrap();
    for (expected, is_key) in [(for_hashes, false), (for_keys, true)] {
        let (mut owned, atomic) = (original.clone(), AtomicBloomFilter::from(original.clone()));
        let (is_new, of_atomic) = match is_key {
            true => (owned.insert(key), atomic.insert(key)),
            false => (owned.insert_hash(hash), atomic.insert_hash(hash)),
        };
        assert_eq!(is_new, of_atomic);
        let mut batch = original.clone();
        let of_batch =
            if is_key { batch.insert_batch(&[key]) } else { batch.insert_hashes(&[hash]) };
        assert_eq!(of_batch, expected);
        match (is_new, expected) {
            (Ok(is_new), Ok(())) => {
                assert_eq!(is_new, !filter.contains_hash(hash));
                assert!(owned.contains_hash(hash));
            }
            (found, expected) => {
                assert_eq!(found.map(drop), expected);
                assert_eq!(owned, original);
            }
        }
        assert_eq!(owned, batch);
        assert_eq!(owned, atomic.into_filter());
    }
}

fn check(bytes: &[u8]) {
    let opened = BloomFilter::from_bytes_any_hash(bytes);
    let own_hash = opened.as_ref().map_or(KeyHash::default(), |filter| filter.key_hash());
    for key_hash in [KeyHash::default(), own_hash] {
        let expected = BloomFilter::from_bytes(bytes, key_hash);
        let (instead, error) = BloomFilter::open_or_pass_all(bytes, key_hash);
        match &expected {
            Ok(filter) => assert_eq!(instead, *filter),
            Err(_) => {
                assert!(instead.is_pass_all() && instead.contains("a key"));
                assert!(instead.contains_hash(0) && instead.key_hash() == key_hash);
            }
        }
        assert_eq!(expected.err(), error);
    }
    let filter = match opened {
        Ok(filter) => filter,
        Err(error) => return assert!(error.offset() <= bytes.len() as u64),
    };
    assert_eq!(filter.to_bytes(), bytes);
    assert_eq!(BloomFilter::from_bytes_trusted_any_hash(bytes), Ok(filter));
    let params = filter.params();
    let hashes: Vec<u64> = (0..100).map(|i| checksum(&[i])).map(u64::from_le_bytes).collect();
    let mut hits = Bitmask::new();
    for kernel in Kernel::supported() {
        filter.with_kernel(kernel).contains_hashes(&hashes, &mut hits);
        for (i, &hash) in hashes.iter().enumerate() {
            let block = &filter.blocks()[probe::block_index(hash, params.blocks()) as usize];
            // A filter of prefixes alone says "maybe" about every key.
            let expected =
                !filter.contents().whole_keys() || probe::contains(block, hash, params.probes());
            assert_eq!(hits.get(i), Some(expected), "{kernel:?}, hash {hash:#x}");
            assert_eq!(filter.contains_hash(hash), expected);
            assert!(expected || !filter.is_pass_all());
        }
    }
    add(filter.view());
}

fuzz_target!(|bytes: &[u8]| {
    check(bytes);
    let mut sealed = bytes.to_vec();
    if sealed.len() >= 64 {
        let sum = checksum(&sealed[64..]);
        sealed[48..56].copy_from_slice(&sum);
        let sum = checksum(&sealed[..56]);
        sealed[56..64].copy_from_slice(&sum);
        check(&sealed);
    }
});
