//! Property: any bytes are either refused as a removable filter, or they are its own re-encoding,
//! and answer as the scalar definition does on the lines behind the header. Checksums are made to
//! fit, so that the fuzzer gets past them.
#![no_main]

use blocked_bloom::{Bitmask, Filter, Kernel, KeyHasher};
use blocked_bloom_removable::{RemovableFilter, tags};
use libfuzzer_sys::fuzz_target;

fn checksum(bytes: &[u8]) -> [u8; 8] {
    KeyHasher::default().hash(bytes).to_le_bytes()
}

fn check(bytes: &[u8]) {
    let verified = RemovableFilter::from_bytes_any_hash(bytes);
    let Ok(view) = RemovableFilter::from_bytes_trusted_any_hash(bytes) else {
        assert!(verified.is_err());
        return;
    };
    let lines = bytes[64..].as_chunks().0;
    let hashes: Vec<u64> = (0..150).map(|i| u64::from_le_bytes(checksum(&[i]))).collect();
    let mut hits = Bitmask::new();
    for kernel in Kernel::supported() {
        view.with_kernel(kernel).contains_hashes(&hashes, &mut hits);
        for (i, &hash) in hashes.iter().enumerate() {
            assert_eq!(hits.get(i), Some(tags::contains(lines, hash)));
        }
    }
    // Nothing in the lines of other writers makes adding or removing panic, or count wrongly.
    let mut filter = view.to_filter().unwrap();
    for &hash in &hashes {
        let (before, held) = (filter.keys_inserted(), tags::contains(lines, hash));
        match filter.insert_hash(hash) {
            Ok(_) => {
                assert!(filter.contains_hash(hash));
                assert!(filter.remove_hash(hash));
            }
            Err(error) => _ = error.to_string(),
        }
        assert_eq!(filter.keys_inserted(), before);
        assert_eq!(filter.contains_hash(hash), held);
    }
    if let Ok(verified) = verified {
        assert_eq!(verified.to_bytes(), bytes);
        assert_eq!(verified.keys_inserted(), filter.keys_inserted());
    }
}

fuzz_target!(|bytes: &[u8]| {
    check(bytes);
    if bytes.len() >= 64 {
        let mut sealed = bytes.to_vec();
        let sum = checksum(&sealed[64..]);
        sealed[48..56].copy_from_slice(&sum);
        let sum = checksum(&sealed[..56]);
        sealed[56..64].copy_from_slice(&sum);
        check(&sealed);
    }
});
