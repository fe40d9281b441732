//! Allocation of a link fails: the allocator refuses requests above 16 MiB.

use blocked_bloom::{Bitmask, Filter, KeyHasher};
use blocked_bloom_scalable::{ScalableError, ScalableOptions};

#[path = "../../../tests/suite/common/bounded.rs"]
mod bounded;

use bounded::with_limit;

fn hash(i: u64) -> u64 {
    KeyHasher::default().hash(i.to_le_bytes())
}

fn lacks_memory<T>(result: Result<T, ScalableError>) -> bool {
    matches!(result, Err(ScalableError::Alloc(_)))
}

/// 1.8 GB for a first link, or 30 MB for a second: rejected without any other effect.
#[test]
fn reports_a_failed_link_allocation() {
    with_limit(16 << 20, check_failed_link_allocations);
}

fn check_failed_link_allocations() {
    let mut filter = ScalableOptions::new(0.01, 1_000_000_000).build().unwrap();
    let empty = filter.clone();
    let mut new = Bitmask::new();
    new.write(3, |words| words.fill(1));
    assert!(lacks_memory(filter.insert("apple")));
    assert!(lacks_memory(filter.insert_hash(7)));
    assert!(lacks_memory(filter.insert_batch(&["apple"])));
    assert!(lacks_memory(filter.insert_batch_new(&["apple"], &mut new)) && new.is_empty());
    assert!(lacks_memory(filter.insert_hashes(&[7])));
    assert!(filter == empty && filter.links().is_empty() && !filter.contains("apple"));
    // So is another attempt. Inserted keys stay.
    let options = ScalableOptions::new(0.01, 1_000_000).with_growth(16);
    let mut filter = options.build().unwrap();
    let mut hashes = (0..).map(hash);
    while filter.capacity_left() > 0 {
        filter.insert_hash(hashes.next().unwrap()).unwrap();
    }
    assert_eq!((filter.links().len(), filter.keys_inserted()), (1, 1_000_000));
    assert_eq!(filter.next_link().unwrap().expected_items(), 16_000_000);
    let full = filter.clone();
    let absent = hashes.find(|&hash| !full.contains_hash(hash)).unwrap();
    assert!(lacks_memory(filter.insert_hashes_new(&[hash(0), absent], &mut new)) && new.is_empty());
    assert!(lacks_memory(filter.insert_hash(absent)) && filter == full);
    assert_eq!(filter.insert_hash(hash(0)), Ok(false));
}
