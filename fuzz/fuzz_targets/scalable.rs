//! Property: whatever is done to a growing filter, it finds what a set says was inserted, says of a key that it was there only if
//! some link says so, and comes back the same from its bytes.
#![no_main]

use std::collections::HashSet;

use arbitrary::Arbitrary;
use blocked_bloom::{Bitmask, Kernel, KeyHash, ScalableBloomFilter, ScalableBloomFilterRef};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
enum Step {
    Insert(u64),
    InsertBatch(Vec<u64>),
    /// So many hashes, counted from `first` by `step`.
    InsertMany {
        first: u64,
        step: u64,
        count: u16,
        shift: u8,
    },
    UnionWith {
        items: u8,
        hashes: Vec<u64>,
    },
    StoreAndReopen,
}

#[derive(Arbitrary, Debug)]
struct Input {
    rate: u16,
    items: u16,
    growth: u8,
    tightening: u8,
    kernel: u8,
    steps: Vec<Step>,
    asked: Vec<u64>,
}

/// Whether a link has the hash, each asked by itself.
fn naive(filter: &ScalableBloomFilter, hash: u64) -> bool {
    filter.links().iter().any(|link| link.view().contains_hash(hash))
}

fn insert_batch(filter: &mut ScalableBloomFilter, hashes: &[u64], model: &mut HashSet<u64>) {
    // What one by one would have been answered and made.
    let mut other = filter.clone();
    let seen: Vec<bool> = hashes
        .iter()
        .map(|&hash| {
            let was_there = naive(&other, hash);
            assert_eq!(other.insert_hash(hash), Ok(!was_there));
            was_there
        })
        .collect();
    let mut answers = Bitmask::new();
    filter.insert_hashes(hashes, &mut answers).unwrap();
    assert_eq!(answers.len(), hashes.len());
    assert!((0..hashes.len()).all(|i| answers.get(i) == Some(seen[i])), "{seen:?}");
    assert!(*filter == other, "a batch makes another filter than its hashes one by one");
    model.extend(hashes);
}

fuzz_target!(|input: Input| {
    let key_hash = KeyHash::Caller { tag: 5 };
    let rate = (f64::from(input.rate) + 1.0) / 65_538.0;
    let items = u64::from(input.items) % 600;
    let Ok(filter) = ScalableBloomFilter::with_key_hash(rate, items, key_hash) else {
        return;
    };
    let (growth, tightening) = (u32::from(input.growth) % 18, f64::from(input.tightening) / 255.0);
    let shaped = filter.clone().with_growth(growth);
    assert_eq!(shaped.is_ok(), (2..=16).contains(&growth));
    let filter = shaped.unwrap_or(filter);
    let shaped = filter.clone().with_tightening(tightening);
    assert!(shaped.is_err() || (0.05..=0.95).contains(&tightening));
    let kernels: Vec<Kernel> = Kernel::supported().collect();
    let kernel = kernels[usize::from(input.kernel) % kernels.len()];
    let mut filter = shaped.unwrap_or(filter).with_kernel(kernel);

    let mut model = HashSet::new();
    for step in input.steps {
        match step {
            Step::Insert(hash) => {
                let was_absent = !naive(&filter, hash);
                match filter.insert_hash(hash) {
                    Ok(found) => assert_eq!(found, was_absent),
                    // The rate of a further link may be below what any memory gives.
                    Err(_) => return,
                }
                model.insert(hash);
            }
            Step::InsertBatch(hashes) => insert_batch(&mut filter, &hashes, &mut model),
            Step::InsertMany { first, step, count, shift } => {
                let hash = |i: u64| first.wrapping_add(step.wrapping_mul(i));
                let hashes: Vec<u64> =
                    (0..u64::from(count % 5_000) >> (shift % 16)).map(hash).collect();
                insert_batch(&mut filter, &hashes, &mut model);
            }
            Step::UnionWith { items, hashes } => {
                let (before, keys) = (filter.clone(), filter.keys_inserted());
                let mut other =
                    ScalableBloomFilter::with_key_hash(0.1, items.into(), key_hash).unwrap();
                other.insert_hashes(&hashes, &mut Bitmask::new()).unwrap();
                let links = [before.links(), other.links()].map(|links| links.to_vec());
                filter.union_with(other.clone()).unwrap();
                assert_eq!(filter.keys_inserted(), keys + other.keys_inserted());
                for link in links.iter().flatten() {
                    assert!(filter.links().contains(link), "a link is lost");
                }
                model.extend(hashes);
            }
            Step::StoreAndReopen => {
                let bytes = filter.to_bytes();
                let view = ScalableBloomFilterRef::from_bytes(&bytes).unwrap();
                assert_eq!(view.links().len(), filter.links().len());
                let opened = view.to_filter().unwrap();
                assert!(opened == filter, "not the filter that was stored");
                assert_eq!(opened.to_bytes(), bytes);
                filter = opened.with_kernel(kernel);
            }
        }
    }

    let asked: Vec<u64> = model.iter().chain(&input.asked).copied().collect();
    let bytes = filter.to_bytes();
    let view = ScalableBloomFilterRef::from_bytes(&bytes).unwrap();
    let (mut hits, mut of_view) = (Bitmask::new(), Bitmask::new());
    filter.contains_hashes(&asked, &mut hits);
    view.contains_hashes(&asked, &mut of_view);
    assert_eq!(hits, of_view);
    for (i, &hash) in asked.iter().enumerate() {
        let expected = naive(&filter, hash);
        assert!(expected || !model.contains(&hash), "hash {hash:#x} is lost");
        assert_eq!(hits.get(i), Some(expected), "hash {hash:#x}");
        assert_eq!(filter.contains_hash(hash), expected);
        assert_eq!(view.contains_hash(hash), expected);
    }
});
