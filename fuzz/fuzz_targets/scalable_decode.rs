//! Property: any bytes are either rejected as a growing filter, or every link opens by itself, the
//! answers are the links', and the re-encoding is those bytes. A key that the filter cannot hash is
//! an error that changes nothing. Checksums are made to fit, so that the fuzzer gets past them.
#![no_main]

use blocked_bloom::{Bitmask, BloomFilter, Filter, KeyHasher};
use blocked_bloom_scalable::{ScalableBloomFilter, ScalableError};
use libfuzzer_sys::fuzz_target;

fn checksum(bytes: &[u8]) -> [u8; 8] {
    KeyHasher::default().hash(bytes).to_le_bytes()
}

/// Where links begin and end, by the numbers of blocks in their headers.
fn links(bytes: &[u8]) -> Vec<(usize, usize)> {
    let (mut links, mut start) = (Vec::new(), 64);
    while let Some(&count) = bytes.get(start + 24..).and_then(|rest| rest.first_chunk()) {
        let end = start.saturating_add(64 + 64 * u32::from_le_bytes(count) as usize);
        links.push((start, end));
        start = end;
    }
    links
}

fn check(bytes: &[u8]) {
    let Ok(view) = ScalableBloomFilter::from_bytes_any_hash(bytes) else { return };
    let parts = links(bytes);
    assert_eq!(parts.len(), view.links().len());
    for (&(start, end), link) in parts.iter().zip(view.links()) {
        let alone = BloomFilter::from_bytes_any_hash(&bytes[start..end]).unwrap();
        assert_eq!(alone, *link);
        assert_eq!(alone.key_hash(), view.key_hash());
    }
    let mut filter = view.to_filter().unwrap();
    assert_eq!(filter.to_bytes(), bytes);
    let hashes: Vec<u64> = (0..100).map(|i| checksum(&[i])).map(u64::from_le_bytes).collect();
    let mut hits = Bitmask::new();
    view.contains_hashes(&hashes, &mut hits);
    for (i, &hash) in hashes.iter().enumerate() {
        let expected = view.links().iter().any(|link| link.contains_hash(hash));
        assert_eq!(view.contains_hash(hash), expected);
        assert_eq!(filter.contains_hash(hash), expected);
        assert_eq!(hits.get(i), Some(expected), "hash {hash:#x}");
    }
    let _ = (filter.estimated_false_positive_rate(), filter.memory_bytes());
    if let Err(error) = view.hasher() {
        assert_eq!(filter.insert("key"), Err(ScalableError::Key(error)));
        assert!(filter.contains("key") && view.contains("key"));
        assert_eq!(filter.to_bytes(), bytes);
    }
    // Nothing in a header of other writers makes adding panic or lose the hash; a link may be
    // rejected for its size.
    if view.links().len() > 0 && filter.insert_hash(1).is_ok() {
        assert!(filter.contains_hash(1));
        assert!(ScalableBloomFilter::from_bytes_any_hash(&filter.to_bytes()).is_ok());
    }
}

fuzz_target!(|bytes: &[u8]| {
    check(bytes);
    let mut sealed = bytes.to_vec();
    let mut sums = Vec::new();
    for (start, end) in links(bytes) {
        if end <= sealed.len() {
            let sum = checksum(&sealed[start + 64..end]);
            sealed[start + 48..start + 56].copy_from_slice(&sum);
            let sum = checksum(&sealed[start..start + 56]);
            sealed[start + 56..start + 64].copy_from_slice(&sum);
            sums.extend(sum);
        }
    }
    if sealed.len() >= 64 {
        sealed[40..48].copy_from_slice(&checksum(&sums));
        let sum = checksum(&sealed[..56]);
        sealed[56..64].copy_from_slice(&sum);
        check(&sealed);
    }
});
