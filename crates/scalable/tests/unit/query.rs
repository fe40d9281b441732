//! Unit tests of `src/query.rs`, which includes this file: which hashes are prefetched in which
//! links.

use alloc::vec;
use alloc::vec::Vec;
use std::cell::RefCell;

use blocked_bloom::{Kernel, Sizing};

use super::*;

std::thread_local! {
    /// Number of blocks of the link, and the hash.
    pub(super) static PREFETCHED: RefCell<Vec<(usize, u64)>> = const { RefCell::new(Vec::new()) };
}

fn prefetched(work: impl FnOnce()) -> Vec<(usize, u64)> {
    PREFETCHED.take();
    work();
    PREFETCHED.take()
}

/// Few hashes are prefetched in links that exceed the cache, the newest first. Nothing is
/// prefetched in links that fit the cache, in a single link (whose own lookup prefetches), and for
/// many hashes (which links prefetch one after the other).
#[test]
fn few_hashes_are_prefetched_in_all_large_links_at_once() {
    let threshold = Kernel::default().prefetch_threshold() as u64 / 64;
    let link = |blocks: u64| {
        let params = Sizing::MaxBytes(64 + 64 * blocks).params(1 << 40).unwrap();
        assert_eq!(u64::from(params.blocks()), blocks);
        BloomFilter::with_params(params, KeyHash::default()).unwrap()
    };
    let links: Vec<BloomFilter> =
        [10, threshold + 2, threshold, threshold + 1].into_iter().map(link).collect();
    let large = [threshold as usize + 1, threshold as usize + 2];
    for count in [0, 1, 2, 16, 17, 64, 65, 1_500] {
        let hashes: Vec<u64> =
            (0..count).map(|i| (i + 1_u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        let mut words = vec![0; hashes.len().div_ceil(64)];
        let found = prefetched(|| look_up(&links, &hashes, &mut words));
        let expected: Vec<(usize, u64)> = match count {
            ..=16 => {
                large.iter().flat_map(|&at| hashes.iter().map(move |&hash| (at, hash))).collect()
            }
            _ => Vec::new(),
        };
        assert!(found == expected, "{count} hashes");
        assert!(prefetched(|| look_up(&links[3..], &hashes, &mut words)).is_empty());
    }
    // `prefetch_hash` prefetches in all links, since the caller decides.
    let mut filter = crate::ScalableOptions::new(0.01, 1_000).build().unwrap();
    (0..10_000_u64)
        .for_each(|i| _ = filter.insert_hash(i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).unwrap());
    let expected: Vec<(usize, u64)> =
        filter.links().iter().rev().map(|link| (link.blocks().len(), 77)).collect();
    assert!(expected.len() > 2);
    assert_eq!(prefetched(|| filter.prefetch_hash(77)), expected);
}
