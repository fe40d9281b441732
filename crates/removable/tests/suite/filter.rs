//! A key is present until it was removed as often as inserted. A failed call changes nothing.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use blocked_bloom::parts::HeaderError;
use blocked_bloom::{Bitmask, Filter, FilterOptions, FormatError, KeyError, KeyHash};
use blocked_bloom_removable::{RemovableError, RemovableFilter, RemovableOptions};

use crate::common::{Random, kernels};
use crate::naive::Naive;

/// 64 copies of a key fit, or 32 if both of its lines are the same. Each is removed separately.
#[test]
fn copies_of_a_key() {
    let mut one_line = 0;
    for lines in [1_u64, 2, 3, 100, 1_000] {
        for key in 0..200_u32 {
            let options = RemovableOptions::new(32 * lines).with_slack(0.0);
            let mut filter = options.empty_filter().unwrap();
            let naive = Naive::new(lines as usize);
            let (first, second, _) = naive.place(filter.hasher().unwrap().hash(key.to_le_bytes()));
            let fit = if first == second { 32 } else { 64 };
            one_line += u32::from(first == second && lines == 3);
            for copies in 0..fit {
                assert_eq!(filter.keys_inserted(), copies);
                filter.insert(key.to_le_bytes()).unwrap();
            }
            let before = filter.clone();
            let full = RemovableError::Full { inserted: 0, taken: fit, capacity: 32 * lines };
            assert_eq!(filter.insert(key.to_le_bytes()), Err(full));
            assert_eq!(filter, before);
            assert_eq!(filter.keys_inserted(), fit);
            for _ in 0..fit {
                assert!(filter.contains(key.to_le_bytes()));
                assert_eq!(filter.remove(key.to_le_bytes()), Ok(true));
            }
            assert!(!filter.contains(key.to_le_bytes()));
            assert_eq!(filter.remove(key.to_le_bytes()), Ok(false));
            assert!(filter.is_empty());
        }
    }
    // One key in `n` has one line: 67 of 200 are expected.
    assert!((40..=95).contains(&one_line), "{one_line}");
}

/// Random insertions and removals of few keys with several copies, compared with a multiset. The
/// filter is stored and reopened from time to time.
#[test]
fn a_multiset_says_what_must_be_there() {
    for (lines, keys, seed) in [(1, 20, 1), (2, 40, 2), (3, 50, 3), (40, 1_000, 4)] {
        let mut random = Random(seed);
        let options = RemovableOptions::new(32 * lines).with_slack(0.0);
        let options = options.with_key_hash(KeyHash::Caller { tag: 9 });
        let mut filter = options.empty_filter().unwrap();
        let mut copies: HashMap<u64, u32> = HashMap::new();
        let (mut added, mut refused) = (0, 0);
        for step in 0..30_000 {
            let hash = Random(random.next() % keys).next();
            let present = copies.get(&hash).copied().unwrap_or(0);
            if random.next() % 5 < 3 {
                let before = filter.clone();
                match filter.insert_hash(hash) {
                    Ok(_) => {
                        *copies.entry(hash).or_insert(0) += 1;
                        added += 1;
                    }
                    Err(error) => {
                        assert!(matches!(error, RemovableError::Full { inserted: 0, .. }));
                        assert_eq!(filter, before);
                        refused += 1;
                    }
                }
            } else if present > 0 {
                assert!(filter.remove_hash(hash), "step {step}");
                *copies.get_mut(&hash).unwrap() -= 1;
            } else if !filter.contains_hash(hash) {
                let before = filter.clone();
                assert!(!filter.remove_hash(hash));
                assert_eq!(filter, before);
            }
            let total: u32 = copies.values().sum();
            assert_eq!(filter.keys_inserted(), u64::from(total));
            if step % 1_000 == 0 {
                assert!(copies.iter().all(|(&hash, &n)| n == 0 || filter.contains_hash(hash)));
                let stored = filter.to_bytes();
                let opened = RemovableFilter::from_bytes_any_hash(&stored).unwrap();
                assert_eq!(opened, filter.view());
                assert_eq!(opened.keys_inserted(), filter.keys_inserted());
                filter = opened.to_filter().unwrap();
            }
        }
        assert!(added > 5_000 && refused > 0, "{lines} lines: {added} added, {refused} refused");
        for (hash, n) in copies {
            (0..n).for_each(|_| assert!(filter.remove_hash(hash)));
        }
        assert!(filter.is_empty() && filter.lines().as_flattened().iter().all(|&b| b == 0));
    }
}

#[test]
fn a_batch_that_does_not_fit_is_added_up_to_there() {
    for kernel in kernels() {
        let options = RemovableOptions::new(64).with_slack(0.0);
        let options = options.with_key_hash(KeyHash::Caller { tag: 1 });
        let empty = options.empty_filter().unwrap().with_kernel(kernel);
        // The first key fits 64 or 32 times. The second key still has space when the first has
        // none.
        let naive = Naive::new(2);
        let apart = (1..).map(|i| Random(i).next());
        let hash = apart.clone().find(|&hash| naive.place(hash).0 == naive.place(hash).1).unwrap();
        let other = apart.clone().find(|&other| {
            naive.place(other).0 == naive.place(other).1
                && naive.place(other).0 != naive.place(hash).0
        });
        let mut batch = vec![hash; 40];
        batch.push(other.unwrap());
        let mut filter = empty.clone();
        let error = filter.insert_hashes(&batch).unwrap_err();
        assert_eq!(error, RemovableError::Full { inserted: 32, taken: 32, capacity: 64 });
        let mut expected = empty.clone();
        expected.insert_hashes(&batch[..32]).unwrap();
        assert_eq!(filter, expected);
        assert_eq!(filter.keys_inserted(), 32);
        // In a batch of keys, `inserted` counts from the start of the batch.
        let mut filter = RemovableOptions::new(2_000).empty_filter().unwrap().with_kernel(kernel);
        let mut keys: Vec<u32> = (0..1_500).collect();
        keys.extend([7; 64]);
        let keys: Vec<[u8; 4]> = keys.iter().map(|key| key.to_le_bytes()).collect();
        let Err(RemovableError::Full { inserted, taken, .. }) = filter.insert_batch(&keys) else {
            panic!("64 copies besides others fit");
        };
        assert!((1_501..1_564).contains(&inserted), "{inserted}");
        assert_eq!(taken, inserted as u64);
    }
}

#[test]
fn sizes_follow_keys_and_slack() {
    let lines = |keys, slack| -> Result<usize, RemovableError> {
        let filter = RemovableOptions::new(keys).with_slack(slack).empty_filter()?;
        assert_eq!(filter.memory_bytes(), 64 * filter.lines().len() as u64);
        assert_eq!(filter.capacity(), 32 * filter.lines().len() as u64);
        Ok(filter.lines().len())
    };
    assert_eq!(lines(0, 0.125), Ok(1));
    assert_eq!(lines(28, 0.125), Ok(1));
    assert_eq!(lines(29, 0.125), Ok(3));
    assert_eq!(lines(32 * 28, 0.125), Ok(33));
    assert_eq!(lines(32 * 28 + 1, 0.125), Ok(33));
    assert_eq!(lines(33 * 28 + 1, 0.125), Ok(34));
    assert_eq!(lines(33, 0.0), Ok(2));
    assert_eq!(lines(1_000_000, 0.125), Ok(35_715));
    assert_eq!(lines(1_000_000, 0.0), Ok(31_250));
    assert_eq!(lines(3_200, 0.5), Ok(200));
    for slack in [-0.1, 0.91, 1.0, f64::NAN, f64::INFINITY] {
        let error = lines(10, slack).unwrap_err();
        assert!(matches!(error, RemovableError::SlackOutOfRange { .. }), "{error}");
    }
    let text = RemovableOptions::new(1).with_slack(1.5).empty_filter().unwrap_err().to_string();
    assert_eq!(text, "slack 1.5: give 0 to 0.9");
    let most = (u64::from(u32::MAX)) * 28;
    let error = RemovableError::KeysOutOfRange { keys: most + 1, most };
    assert_eq!(lines(most + 1, 0.125), Err(error));
    assert_eq!(
        lines(u64::MAX, 0.125),
        Err(RemovableError::KeysOutOfRange { keys: u64::MAX, most })
    );
    let options = RemovableOptions::new(7).with_slack(0.5);
    assert_eq!(options.keys(), 7);
    let options = options.with_key_hash(KeyHash::Xxh3 { seed: 3 }).with_keys(0);
    assert_eq!((options.keys(), options.slack()), (1, 0.5));
    assert_eq!(options.key_hash(), KeyHash::Xxh3 { seed: 3 });
}

#[test]
fn a_filter_of_the_callers_hashes_takes_no_keys() {
    let options = RemovableOptions::new(100).with_key_hash(KeyHash::Caller { tag: 5 });
    let mut filter = options.empty_filter().unwrap();
    filter.insert_hash(1).unwrap();
    let (before, error, mut found) =
        (filter.clone(), KeyError::NoHasher { tag: 5 }, Bitmask::new());
    assert_eq!(filter.insert("a"), Err(RemovableError::Key(error)));
    assert_eq!(filter.insert_batch(&["a", "b"]), Err(RemovableError::Key(error)));
    assert_eq!(filter.remove("a"), Err(error));
    assert_eq!(filter.remove_batch(&["a"], &mut found), Err(error));
    assert_eq!(filter, before);
    assert!(filter.contains("a") && filter.view().contains("a"));
    filter.contains_batch(&["a", "b"], &mut found);
    assert_eq!(found.count_hits(), 2);
    let mut writer = filter.into_writer();
    assert_eq!(writer.insert("a"), Err(RemovableError::Key(error)));
    assert_eq!(writer.remove("a"), Err(error));
    assert!(writer.reader().contains("a"));
    assert_eq!(writer.reader().hasher(), Err(error));
    assert_eq!(writer.to_filter().unwrap(), before);
}

#[test]
fn larger_filters_are_made_from_the_keys() {
    let mut options = RemovableOptions::new(100);
    let mut filter = options.empty_filter().unwrap();
    let hashes = Random(1).hashes(5_000);
    let mut rebuilt = 0;
    for (i, &hash) in hashes.iter().enumerate() {
        if filter.insert_hash(hash).is_err() {
            assert!(filter.load() > 0.85, "{}", filter.load());
            options = options.with_keys(2 * options.keys());
            filter = RemovableFilter::from_hashes(&options, &hashes[..=i]).unwrap();
            rebuilt += 1;
        }
    }
    assert!((5..=7).contains(&rebuilt));
    assert!(hashes.iter().all(|&hash| filter.contains_hash(hash)));
    assert_eq!(filter.keys_inserted(), 5_000);
    // Sized for at least as many keys as there are hashes.
    let filter = RemovableFilter::from_hashes(&RemovableOptions::new(1), &hashes).unwrap();
    assert_eq!(filter.lines().len(), 5_000_usize.div_ceil(28));
    let error = RemovableFilter::from_hashes(&options, &[7; 65]).unwrap_err();
    assert!(matches!(error, RemovableError::Full { inserted: 64, .. }));
}

#[test]
fn filters_tell_what_they_are() {
    let options = RemovableOptions::new(1_000).with_key_hash(KeyHash::Xxh3 { seed: 4 });
    let mut filter = options.empty_filter().unwrap();
    assert!(filter.is_empty() && filter.view().is_empty() && filter.load() == 0.0);
    (0..500_u32).for_each(|key| _ = filter.insert(key.to_le_bytes()).unwrap());
    let view = filter.view();
    assert_eq!((view.keys_inserted(), view.capacity()), (500, 36 * 32));
    assert!((view.load() - 500.0 / 1_152.0).abs() < 1e-12 && filter.load() == view.load());
    assert_eq!(view.key_hash(), options.key_hash());
    assert_eq!(filter.key_hash(), options.key_hash());
    assert_eq!(view.hasher(), options.key_hash().hasher());
    let (stored, found) = (filter.to_bytes(), options.key_hash());
    for open in [RemovableFilter::from_bytes, RemovableFilter::from_bytes_trusted] {
        assert_eq!(open(&stored, found).unwrap(), filter);
        for expected in [KeyHash::default(), KeyHash::Caller { tag: 4 }] {
            let mismatch = HeaderError::HashMismatch { offset: 11, found, expected };
            assert_eq!(open(&stored, expected).unwrap_err(), FormatError::Header(mismatch));
        }
    }
    filter.prefetch_hash(1);
    let other_seed = RemovableOptions::new(1_000).empty_filter().unwrap();
    filter.clear();
    assert!(filter.is_empty() && filter != other_seed && filter == options.empty_filter().unwrap());
    assert!(format!("{filter:?}").contains("lines: 36"));
}

/// Keys whose `as_ref` panics: earlier changes stay, and are counted.
#[test]
fn a_key_that_panics_leaves_a_filter_that_counts_its_tags() {
    struct Key([u8; 4], bool);
    impl AsRef<[u8]> for Key {
        fn as_ref(&self) -> &[u8] {
            assert!(!self.1, "this key panics");
            &self.0
        }
    }
    let keys = |panics: u32| -> Vec<Key> {
        (0..3_000_u32).map(|i| Key(i.to_le_bytes(), i == panics)).collect()
    };
    for panics in [0, 1_023, 1_024, 2_500] {
        let mut filter = RemovableOptions::new(6_000).empty_filter().unwrap();
        let caught = catch_unwind(AssertUnwindSafe(|| filter.insert_batch(&keys(panics))));
        assert!(caught.is_err());
        // Opening the stored filter checks the count.
        let opened = RemovableFilter::from_bytes_any_hash(filter.to_bytes()).unwrap();
        assert_eq!(filter.keys_inserted(), opened.keys_inserted());
        assert!((0..opened.keys_inserted() as u32).all(|key| filter.contains(key.to_le_bytes())));

        filter = RemovableOptions::new(6_000).empty_filter().unwrap();
        filter.insert_batch(&keys(u32::MAX)).unwrap();
        let mut found = Bitmask::new();
        let removed =
            catch_unwind(AssertUnwindSafe(|| filter.remove_batch(&keys(panics), &mut found)));
        assert!(removed.is_err() && found.is_empty());
        let opened = RemovableFilter::from_bytes_any_hash(filter.to_bytes()).unwrap();
        assert_eq!(filter.keys_inserted(), opened.keys_inserted());
        let kept = 3_000 - filter.keys_inserted() as u32..3_000;
        assert!(kept.clone().all(|key| filter.contains(key.to_le_bytes())));
        assert!(kept.contains(&panics), "{kept:?}");
    }
}

#[test]
fn errors_say_which_key_it_was() {
    // With one line, `taken` does not depend on the keys.
    let mut filter = RemovableOptions::new(32).with_slack(0.0).empty_filter().unwrap();
    let hashes = Random(1).hashes(40);
    let text = |result: Result<(), RemovableError>| result.unwrap_err().to_string();
    let full = "both of its lines are full, and 32 of 32 lanes are in use; build a larger filter from the \
         keys";
    assert_eq!(
        text(filter.insert_hashes(&hashes)),
        format!("no space for the key at index 32 of the batch: {full}")
    );
    assert_eq!(text(filter.insert("a").map(drop)), format!("no space for the key: {full}"));
    assert_eq!(text(filter.insert_hashes(&hashes[32..])), format!("no space for the key: {full}"));
    assert_eq!(
        text(filter.into_writer().insert("a").map(drop)),
        format!("no space for the key: {full}")
    );
    // Counts from the start of the batch, not of a chunk of hashes.
    let mut filter = RemovableOptions::new(1_500).with_slack(0.0).empty_filter().unwrap();
    let keys: Vec<[u8; 4]> = (0..3_000_u32).map(u32::to_le_bytes).collect();
    let error = filter.insert_batch(&keys).unwrap_err();
    let RemovableError::Full { inserted, .. } = error else { panic!("{error}") };
    assert!(inserted > 1_024 && inserted as u64 == filter.keys_inserted());
    let start = format!("no space for the key at index {inserted} of the batch: ");
    assert!(error.to_string().starts_with(&start), "{error}");
    let error = RemovableError::PassAll.to_string();
    assert!(error.contains("no tags to copy"), "{error}");
}

#[test]
fn options_take_hash_and_huge_pages_from_those_of_filters() {
    for (seed, huge_pages) in [(0, true), (42, false)] {
        let store = FilterOptions::default()
            .with_key_hash(KeyHash::Xxh3 { seed })
            .with_huge_pages(huge_pages);
        let options = RemovableOptions::for_filters(&store, 100);
        assert_eq!((options.keys(), options.key_hash()), (100, store.key_hash()));
        assert_eq!(options.hasher(), store.hasher());
        let mut filter = options.with_keys(200).empty_filter().unwrap();
        filter.insert("apple").unwrap();
        assert!(filter.contains_hash(store.hasher().unwrap().hash("apple")));
        let copies = [
            filter.clone(),
            filter.to_filter().unwrap(),
            filter.view().to_filter().unwrap(),
            RemovableFilter::from_hashes(&options.with_slack(0.3), &[1; 9]).unwrap(),
            filter.into_writer().to_filter().unwrap(),
        ];
        for copy in copies {
            assert!(format!("{copy:?}").contains(&format!("huge_pages: {huge_pages}")));
        }
    }
    assert_eq!(RemovableOptions::new(7), RemovableOptions::for_filters(&Default::default(), 7));
}

/// The filters are too large for the allocator to reuse memory.
#[cfg(target_os = "linux")]
#[test]
fn copies_are_not_on_huge_pages_if_the_original_must_not_be() {
    let filters = |huge_pages: bool| {
        let store = FilterOptions::default().with_huge_pages(huge_pages);
        let filter = RemovableOptions::for_filters(&store, 16_000_000).empty_filter().unwrap();
        let copies = [filter.view().to_filter().unwrap(), filter.clone()];
        let [copy, original] = copies;
        let shared = original.into_writer().to_filter().unwrap();
        [filter, copy, shared]
    };
    let [advised, not_advised] = [true, false].map(filters);
    let starts = |filters: &[RemovableFilter; 3]| {
        filters.each_ref().map(|filter| filter.lines().as_ptr().cast::<u8>())
    };
    crate::huge_pages::check_advice(&starts(&advised), &starts(&not_advised));
}

/// True means that no copy of the key was present, also for the concurrent writer.
#[test]
fn reports_new_keys() {
    let mut filter = RemovableOptions::new(1_000).empty_filter().unwrap();
    let hashes = Random(21).hashes(1_000);
    let new = hashes.iter().filter(|&&hash| filter.insert_hash(hash).unwrap()).count();
    // Some keys are false positives.
    assert!((990..=1_000).contains(&new), "{new}");
    assert_eq!(filter.insert("apple"), Ok(true));
    assert_eq!(filter.insert("apple"), Ok(false));
    let mut writer = filter.into_writer();
    assert_eq!(writer.insert("apple"), Ok(false));
    (0..3).for_each(|_| assert!(writer.remove("apple").unwrap()));
    assert_eq!(writer.insert("apple"), Ok(true));
    assert_eq!(writer.insert_hash(hashes[0]), Ok(false));
}
