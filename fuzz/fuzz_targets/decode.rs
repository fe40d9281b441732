//! Property: any bytes are either refused, or a filter on which every kernel agrees with the scalar law and whose
//! re-encoding is those bytes; who asked for a filter in any case gets that one, or one that passes all. The input's checksums are made to fit, so that the fuzzer gets past them.
#![no_main]

use blocked_bloom::{Bitmask, BloomFilterBytes, BloomFilterRef, Kernel, KeyHash, KeyHasher, probe};
use libfuzzer_sys::fuzz_target;

fn checksum(bytes: &[u8]) -> [u8; 8] {
    KeyHasher::default().hash(bytes).to_le_bytes()
}

fn check(bytes: &[u8]) {
    let opened = BloomFilterRef::from_bytes(bytes);
    for key_hash in
        [KeyHash::default(), opened.map_or(KeyHash::default(), |filter| filter.key_hash())]
    {
        let expected = opened.and_then(|filter| filter.require_key_hash(key_hash));
        let (in_any_case, error) = BloomFilterBytes::open_or_pass_all(bytes, key_hash);
        assert_eq!(expected.err(), error);
        let view = in_any_case.view();
        match expected {
            Ok(filter) => assert_eq!(view, filter),
            Err(_) => {
                assert!(view.is_pass_all() && view.contains("any key") && view.contains_hash(0));
                assert_eq!(view.key_hash(), key_hash);
            }
        }
    }
    let Ok(filter) = opened else {
        return;
    };
    assert_eq!(filter.to_bytes(), bytes);
    assert_eq!(BloomFilterRef::from_bytes_trusted(bytes), Ok(filter));
    let params = filter.params();
    let hashes: Vec<u64> = (0..100).map(|i| checksum(&[i])).map(u64::from_le_bytes).collect();
    let mut hits = Bitmask::new();
    for kernel in Kernel::supported() {
        filter.with_kernel(kernel).contains_hashes(&hashes, &mut hits);
        for (i, &hash) in hashes.iter().enumerate() {
            let block = &filter.blocks()[probe::block_index(hash, params.blocks()) as usize];
            // A filter of prefixes alone says "maybe" about every key.
            let expected =
                !filter.added().whole_keys() || probe::contains(block, hash, params.probes());
            assert_eq!(hits.get(i), Some(expected), "{kernel:?}, hash {hash:#x}");
            assert_eq!(filter.contains_hash(hash), expected);
            assert!(expected || !filter.is_pass_all());
        }
    }
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
