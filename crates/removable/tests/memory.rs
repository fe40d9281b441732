//! Allocation of a filter fails: the allocator refuses large requests of one thread.

use blocked_bloom::{Filter, KeyHasher};
use blocked_bloom_removable::{RemovableError, RemovableFilter, RemovableOptions};

#[path = "../../../tests/suite/common/bounded.rs"]
mod bounded;

use bounded::with_limit;

const LIMIT: usize = 100_000;

fn lacks_memory<T>(result: Result<T, RemovableError>) -> bool {
    matches!(result, Err(RemovableError::Alloc(_)))
}

#[test]
fn reports_a_failed_allocation_and_changes_nothing() {
    let options = RemovableOptions::new(100_000);
    let hashes: Vec<u64> =
        (0..100_000_u64).map(|key| KeyHasher::default().hash(key.to_le_bytes())).collect();
    with_limit(LIMIT, || {
        assert!(lacks_memory(options.empty_filter()));
        assert!(lacks_memory(RemovableFilter::from_hashes(&options, &hashes)));
        // The number of hashes counts, not the smaller one of the options.
        let small = options.with_keys(10);
        assert!(lacks_memory(RemovableFilter::from_hashes(&small, &hashes)));
        assert!(RemovableFilter::from_hashes(&small, &hashes[..10]).is_ok());
    });
    let mut filter = RemovableFilter::from_hashes(&options, &hashes).unwrap();
    let stored = filter.to_bytes();
    let opened = RemovableFilter::from_bytes(&stored, options.key_hash()).unwrap();
    with_limit(LIMIT, || {
        assert!(lacks_memory(opened.to_filter()));
        assert!(lacks_memory(filter.to_filter()));
        // Neither insertions nor removals allocate.
        filter.insert_hashes(&hashes[..1_000]).unwrap();
        assert!(hashes[..1_000].iter().all(|&hash| filter.remove_hash(hash)));
    });
    // Removal may empty another lane than that of the last copy.
    assert!(filter.keys_inserted() == 100_000 && opened.keys_inserted() == 100_000);
    let before = filter.to_bytes();
    let writer = filter.into_writer();
    with_limit(LIMIT, || assert!(lacks_memory(writer.to_filter())));
    let copy = writer.to_filter().unwrap();
    assert!(copy.to_bytes() == before && hashes.iter().all(|&hash| copy.contains_hash(hash)));
}
