//! Property: whatever is added to a removable filter and removed from it, it holds what a multiset
//! says, whichever kernel does it; its lines are the scalar definition's, also with a reader beside
//! the writer. What is refused changes nothing.
#![no_main]

use std::collections::HashMap;

use arbitrary::Arbitrary;
use blocked_bloom::{Bitmask, Filter, Kernel, KeyHash};
use blocked_bloom_removable::{RemovableError, RemovableFilter, RemovableOptions, tags};
use libfuzzer_sys::fuzz_target;

/// Number of a key. There are only 256 keys, so that steps meet the same key again.
type Key = u8;

#[derive(Arbitrary, Debug)]
enum Step {
    Insert(Key),
    InsertCopies(Key, u8),
    InsertBatch(Vec<Key>),
    /// A key that was added; of others nothing is promised.
    Remove(Key),
    RemoveBatch(Vec<Key>),
    StoreAndReopen,
    Rebuild(u8),
    Share(Vec<(bool, Key)>),
    Clear,
}

/// With small numbers of lines, keys whose numbers are close share tags, lines or both.
fn hash(key: Key, spread: u64) -> u64 {
    u64::from(key).wrapping_mul(spread | 1)
}

#[derive(Default)]
struct Model(HashMap<u64, u64>);

impl Model {
    fn add(&mut self, hash: u64) {
        *self.0.entry(hash).or_default() += 1;
    }

    fn take(&mut self, hash: u64) -> bool {
        let copies = self.0.entry(hash).or_default();
        let had = *copies > 0;
        *copies -= u64::from(had);
        had
    }

    fn len(&self) -> u64 {
        self.0.values().sum()
    }
}

fuzz_target!(|input: (u8, u64, u8, Vec<Step>)| {
    let (lines, spread, kernel, steps) = input;
    let kernels: Vec<Kernel> = Kernel::supported().collect();
    let kernel = kernels[usize::from(kernel) % kernels.len()];
    let options = RemovableOptions::new(32 * u64::from(lines % 6 + 1)).with_slack(0.0);
    let mut options = options.with_key_hash(KeyHash::Caller { tag: 1 });
    let mut filter = options.empty_filter().unwrap().with_kernel(kernel);
    let mut naive = filter.lines().to_vec();
    let mut model = Model::default();
    let mut found = Bitmask::new();
    for step in steps {
        match step {
            Step::Insert(key) => {
                let hash = hash(key, spread);
                let added = tags::insert(&mut naive, hash);
                assert_eq!(filter.insert_hash(hash).is_ok(), added);
                if added {
                    model.add(hash);
                }
            }
            Step::InsertCopies(key, copies) => {
                let hash = hash(key, spread);
                for _ in 0..copies {
                    let added = tags::insert(&mut naive, hash);
                    assert_eq!(filter.insert_hash(hash).is_ok(), added);
                    if added {
                        model.add(hash);
                    }
                }
            }
            Step::InsertBatch(keys) => {
                let hashes: Vec<u64> = keys.iter().map(|&key| hash(key, spread)).collect();
                let added =
                    hashes.iter().take_while(|&&hash| tags::insert(&mut naive, hash)).count();
                hashes[..added].iter().for_each(|&hash| model.add(hash));
                match filter.insert_hashes(&hashes) {
                    Ok(()) => assert_eq!(added, hashes.len()),
                    Err(RemovableError::Full { inserted, taken, .. }) => {
                        assert_eq!((inserted, taken), (added, model.len()));
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            Step::Remove(key) => {
                let hash = hash(key, spread);
                if model.take(hash) {
                    assert!(filter.remove_hash(hash));
                    assert!(tags::remove(&mut naive, hash));
                }
            }
            Step::RemoveBatch(keys) => {
                let hashes = keys.iter().map(|&key| hash(key, spread));
                let hashes: Vec<u64> = hashes.filter(|&hash| model.take(hash)).collect();
                assert_eq!(filter.remove_hashes(&hashes, &mut found), hashes.len());
                assert_eq!(found.count_hits(), hashes.len());
                hashes.iter().for_each(|&hash| assert!(tags::remove(&mut naive, hash)));
            }
            Step::StoreAndReopen => {
                let stored = filter.to_bytes();
                let opened = RemovableFilter::from_bytes_any_hash(&stored).unwrap();
                assert_eq!(opened, filter.view());
                filter = opened.to_filter().unwrap().with_kernel(kernel);
            }
            Step::Rebuild(lines) => {
                options = options.with_keys(32 * u64::from(lines % 8 + 1));
                let copies = model.0.iter().flat_map(|(&hash, &n)| (0..n).map(move |_| hash));
                let hashes: Vec<u64> = copies.collect();
                if let Ok(rebuilt) = RemovableFilter::from_hashes(&options, &hashes) {
                    filter = rebuilt.with_kernel(kernel);
                    naive = vec![[0; 64]; filter.lines().len()];
                    hashes.iter().for_each(|&hash| assert!(tags::insert(&mut naive, hash)));
                }
            }
            Step::Share(steps) => {
                let mut writer = filter.into_writer();
                let reader = writer.reader().clone();
                for (adds, key) in steps {
                    let hash = hash(key, spread);
                    if adds {
                        let added = tags::insert(&mut naive, hash);
                        assert_eq!(writer.insert_hash(hash).is_ok(), added);
                        if added {
                            model.add(hash);
                        }
                    } else if model.take(hash) {
                        assert!(writer.remove_hash(hash));
                        assert!(tags::remove(&mut naive, hash));
                    }
                    assert_eq!(reader.contains_hash(hash), tags::contains(&naive, hash));
                }
                filter = writer.to_filter().unwrap().with_kernel(kernel);
            }
            Step::Clear => {
                filter.clear();
                naive.fill([0; 64]);
                model.0.clear();
            }
        }
        assert_eq!(filter.lines(), naive);
        assert_eq!(filter.keys_inserted(), model.len());
    }
    let all: Vec<u64> = (0..=u8::MAX).map(|key| hash(key, spread)).collect();
    filter.contains_hashes(&all, &mut found);
    for (i, &hash) in all.iter().enumerate() {
        assert_eq!(found.get(i), Some(tags::contains(&naive, hash)));
        assert!(model.0.get(&hash).is_none_or(|&n| n == 0) || found.get(i) == Some(true));
    }
});
