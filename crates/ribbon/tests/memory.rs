//! Builders whose allocations fail: the allocator refuses large requests of one thread.

use blocked_bloom::Filter;
use blocked_bloom_ribbon::{RibbonError, RibbonFilterBuilder, RibbonOptions};

#[path = "../../../tests/suite/common/bounded.rs"]
mod bounded;

use bounded::with_limit;

/// A builder that lost a key returns no filter, even with memory again, or one that passes all.
#[test]
fn a_builder_that_lost_a_key_returns_an_error() {
    let hashes: Vec<u64> = (1..=5_000_u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    let finish = [RibbonFilterBuilder::finish, RibbonFilterBuilder::finish_verified];
    let mut failed = RibbonOptions::new(0.01).builder();
    with_limit(20_000, || failed.insert_hashes(&hashes));
    failed.insert_hashes(&hashes);
    let mut complete = RibbonOptions::new(0.01).builder();
    complete.insert_hashes(&hashes);
    for finish in finish {
        let error = finish(failed.clone()).unwrap_err();
        assert!(matches!(error, RibbonError::Alloc(_)), "{error}");
        // With memory for the keys, and none for the filter.
        let builder = complete.clone();
        let error = with_limit(1_000, || finish(builder)).unwrap_err();
        assert!(matches!(error, RibbonError::Alloc(_)), "{error}");
        assert!(finish(complete.clone()).is_ok());
    }
    let (filter, error) = failed.finish_verified_or_pass_all().unwrap();
    assert!(matches!(error, Some(RibbonError::Alloc(_))), "{error:?}");
    assert!(hashes.iter().all(|&hash| filter.contains_hash(hash)));
}
