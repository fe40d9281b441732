//! Property: whatever is done to a growing filter, it finds what a set says was inserted, says of a
//! key that it was there only if some link says so, and comes back the same from its bytes. A batch
//! makes the filter that its hashes one by one make, also where adding fails on the way. Options
//! out of range, and keys where the caller hashes, are errors that change nothing.
#![no_main]

use std::collections::HashSet;

use arbitrary::Arbitrary;
use blocked_bloom::{Bitmask, Filter, Kernel, KeyError, KeyHash};
use blocked_bloom_scalable::{ScalableBloomFilter, ScalableError, ScalableOptions};
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
    looked_up: Vec<u64>,
}

/// Whether a link has the hash, each looked up by itself.
fn naive(filter: &ScalableBloomFilter, hash: u64) -> bool {
    filter.links().iter().any(|link| link.contains_hash(hash))
}

/// Adds a batch; false if that failed, as it may where no memory gives the rate that is left for a
/// further link.
fn insert_batch(
    filter: &mut ScalableBloomFilter,
    hashes: &[u64],
    model: &mut HashSet<u64>,
) -> bool {
    // What one by one would have been answered and made.
    let mut other = filter.clone();
    let one_by_one: Result<Vec<bool>, ScalableError> = hashes
        .iter()
        .map(|&hash| {
            let was_there = naive(&other, hash);
            let is_new = other.insert_hash(hash)?;
            assert_eq!(is_new, !was_there);
            model.insert(hash);
            Ok(is_new)
        })
        .collect();
    let (mut new, mut silent) = (Bitmask::new(), filter.clone());
    let batch = filter.insert_hashes_new(hashes, &mut new);
    assert!(*filter == other, "a batch makes another filter than its hashes one by one");
    assert_eq!(batch, one_by_one.as_ref().map(drop).map_err(|error| *error));
    assert_eq!(batch, silent.insert_hashes(hashes));
    assert!(*filter == silent, "a batch that does not say what was new makes another filter");
    let expected = one_by_one.unwrap_or_default();
    assert!(new.iter().eq(expected), "{new:?}");
    batch.is_ok()
}

/// The filter holds the caller's hashes: it takes no keys.
fn insert_keys(filter: &mut ScalableBloomFilter, tag: u64) {
    let before = filter.clone();
    let error = ScalableError::Key(KeyError::NoHasher { tag });
    let mut new = Bitmask::new();
    assert_eq!(filter.insert("key"), Err(error));
    assert_eq!(filter.insert_batch(&["one", "two"]), Err(error));
    assert_eq!(filter.insert_batch_new(&["one", "two"], &mut new), Err(error));
    assert!(new.is_empty() && *filter == before);
    assert!(filter.contains("key"), "a key that cannot be hashed is not ruled out");
}

fuzz_target!(|input: Input| {
    let key_hash = KeyHash::Caller { tag: 5 };
    let rate = (f64::from(input.rate) + 1.0) / 65_538.0;
    // Some near the lowest rate there is, so that no further link can keep what is left.
    let rate = if input.rate % 4 == 3 { rate / 1e5 } else { rate };
    let items = u64::from(input.items) % 600;
    let options = ScalableOptions::new(rate, items).with_key_hash(key_hash);
    if options.build().is_err() {
        return;
    }
    let (growth, tightening) = (u32::from(input.growth) % 18, f64::from(input.tightening) / 255.0);
    let shaped = options.with_growth(growth);
    let options = match shaped.build().map(drop) {
        Ok(()) => shaped,
        error => {
            assert_eq!(error, Err(ScalableError::GrowthOutOfRange { growth }));
            options
        }
    };
    assert_eq!(options == shaped, (2..=16).contains(&growth));
    let shaped = options.with_tightening(tightening).build();
    let is_valid = (0.05..=0.95).contains(&tightening);
    let error = ScalableError::TighteningOutOfRange { tightening };
    assert_eq!(shaped.as_ref().err() == Some(&error), !is_valid);
    let filter = shaped.or_else(|_| options.build()).unwrap();
    let kernels: Vec<Kernel> = Kernel::supported().collect();
    let kernel = kernels[usize::from(input.kernel) % kernels.len()];
    let mut filter = filter.with_kernel(kernel);

    let mut model = HashSet::new();
    for step in input.steps {
        match step {
            Step::Insert(hash) => {
                let was_absent = !naive(&filter, hash);
                match filter.insert_hash(hash) {
                    Ok(found) => assert_eq!(found, was_absent),
                    // The rate of a further link may be below what any memory gives.
                    Err(_) => break,
                }
                model.insert(hash);
            }
            Step::InsertBatch(hashes) => {
                insert_keys(&mut filter, 5);
                if !insert_batch(&mut filter, &hashes, &mut model) {
                    break;
                }
            }
            Step::InsertMany { first, step, count, shift } => {
                let hash = |i: u64| first.wrapping_add(step.wrapping_mul(i));
                let hashes: Vec<u64> =
                    (0..u64::from(count % 5_000) >> (shift % 16)).map(hash).collect();
                if !insert_batch(&mut filter, &hashes, &mut model) {
                    break;
                }
            }
            Step::UnionWith { items, hashes } => {
                let (before, keys) = (filter.clone(), filter.keys_inserted());
                let other = ScalableOptions::new(0.1, items.into()).with_key_hash(key_hash);
                let mut other = other.build().unwrap();
                other.insert_hashes(&hashes).unwrap();
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
                let view = ScalableBloomFilter::from_bytes_any_hash(&bytes).unwrap();
                assert_eq!(view.links().len(), filter.links().len());
                let opened = view.to_filter().unwrap();
                assert!(opened == filter, "not the filter that was stored");
                assert_eq!(opened.to_bytes(), bytes);
                filter = opened.with_kernel(kernel);
            }
        }
    }

    let looked_up: Vec<u64> = model.iter().chain(&input.looked_up).copied().collect();
    let bytes = filter.to_bytes();
    let view = ScalableBloomFilter::from_bytes_any_hash(&bytes).unwrap();
    let (mut hits, mut of_view) = (Bitmask::new(), Bitmask::new());
    filter.contains_hashes(&looked_up, &mut hits);
    view.contains_hashes(&looked_up, &mut of_view);
    assert_eq!(hits, of_view);
    for (i, &hash) in looked_up.iter().enumerate() {
        let expected = naive(&filter, hash);
        assert!(expected || !model.contains(&hash), "hash {hash:#x} is lost");
        assert_eq!(hits.get(i), Some(expected), "hash {hash:#x}");
        assert_eq!(filter.contains_hash(hash), expected);
        assert_eq!(view.contains_hash(hash), expected);
    }
});
