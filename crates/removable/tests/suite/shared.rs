//! The writer and its readers: the lines and answers of the owned filter, and no key is missed
//! while others come and go. tests/loom covers memory orders that this machine does not show.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use blocked_bloom::{Bitmask, Filter};
use blocked_bloom_removable::{RemovableError, RemovableOptions};

use crate::common::Random;

/// The same calls leave the same lines, including rejections.
#[test]
fn a_writer_does_what_the_filter_does() {
    for (keys, slack) in [(20, 0.0), (60, 0.0), (1_000, 0.0), (3_000, 0.125)] {
        let options = RemovableOptions::new(keys).with_slack(slack);
        let mut filter = options.empty_filter().unwrap();
        let mut writer = filter.clone().into_writer();
        let reader = writer.reader().clone();
        let mut random = Random(keys);
        let (mut refused, mut found, mut hits) = (0, 0, Bitmask::new());
        for _ in 0..8_000 {
            // Tags 0 and 1 are the same tag. Few tags, so that they repeat.
            let hash = Random(random.next() % (2 * keys)).next() & 0x00ff_ffff_ffff_ffff;
            match random.next() % 5 {
                0..3 => {
                    let expected = filter.insert_hash(hash);
                    assert_eq!(writer.insert_hash(hash), expected);
                    refused += u32::from(expected.is_err());
                }
                _ => {
                    let expected = filter.remove_hash(hash);
                    assert_eq!(writer.remove_hash(hash), expected);
                    found += u32::from(expected);
                }
            }
            assert_eq!(reader.contains_hash(hash), filter.contains_hash(hash));
            assert_eq!(writer.keys_inserted(), filter.keys_inserted());
        }
        assert!(found > 100 && (refused > 0 || slack > 0.0), "{refused} refused, {found} found");
        let copy = writer.to_filter().unwrap();
        assert_eq!(copy, filter);
        assert_eq!(copy.keys_inserted(), filter.keys_inserted());
        assert_eq!(writer.capacity(), filter.capacity());
        let mut expected = Bitmask::new();
        for length in [0, 1, 31, 32, 33, 64, 65, 1_000] {
            let hashes = Random(1).hashes(length);
            reader.contains_hashes(&hashes, &mut hits);
            filter.contains_hashes(&hashes, &mut expected);
            assert_eq!(hits, expected);
        }
        assert!(reader.contains_hashes_into(&[1; 65], &mut [0; 1]).is_err());
    }
}

/// Batches prefetch if the filter exceeds the cache.
#[test]
fn batches_of_a_large_filter() {
    let mut filter = RemovableOptions::new(2_000_000).empty_filter().unwrap();
    let hashes = Random(1).hashes(100_000);
    filter.insert_hashes(&hashes[..50_000]).unwrap();
    let reader = filter.clone().into_writer().reader().clone();
    let any: &dyn Filter = &reader;
    let (mut hits, mut expected) = (Bitmask::new(), Bitmask::new());
    for length in [0, 1, 8, 9, 63, 64, 65, 127, 128, 129, 1_000, hashes.len()] {
        let hashes = &hashes[hashes.len() - length..];
        filter.contains_hashes(hashes, &mut expected);
        reader.contains_hashes(hashes, &mut hits);
        assert_eq!(hits, expected);
        let mut words = vec![u64::MAX; length.div_ceil(64)];
        any.contains_hashes_into(hashes, &mut words).unwrap();
        assert_eq!(words, expected.words());
        filter.contains_u64s(hashes, &mut expected);
        reader.contains_u64s(hashes, &mut hits);
        assert_eq!(hits, expected);
    }
    assert!(any.contains_hash(hashes[0]) && any.key_hash() == filter.key_hash());
}

#[test]
fn keys_are_hashed_as_by_the_filter() {
    let mut writer = RemovableOptions::new(100).empty_filter().unwrap().into_writer();
    let reader = writer.reader().clone();
    writer.insert("apple").unwrap();
    assert!(
        reader.contains("apple") && writer.reader().contains("apple") && !reader.contains("pear")
    );
    assert!(reader.contains_hash(reader.hasher().unwrap().hash("apple")));
    assert_eq!(reader.key_hash(), writer.to_filter().unwrap().key_hash());
    reader.prefetch_hash(1);
    let mut hits = Bitmask::new();
    reader.clone().contains_batch(&["pear", "apple"], &mut hits);
    assert!(hits.hits().eq([1]));
    assert_eq!(writer.remove("apple"), Ok(true));
    assert_eq!(writer.remove("apple"), Ok(false));
    assert!(!reader.contains("apple"));
    // Readers outlive the writer.
    drop(writer);
    assert!(!reader.contains("apple"));
}

/// Copies come and go in few lines, around keys that always have one copy. Fails if a reader misses
/// such a key.
#[test]
fn no_reader_misses_a_key_that_is_always_there() {
    for keys in [28, 56, 84] {
        let mut writer = RemovableOptions::new(keys).empty_filter().unwrap().into_writer();
        let always = Random(1).hashes(6);
        always.iter().for_each(|&hash| _ = writer.insert_hash(hash).unwrap());
        let (done, lookups) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|threads| {
            for _ in 0..2 {
                let reader = writer.reader().clone();
                let (always, done, lookups) = (&always, &done, &lookups);
                threads.spawn(move || {
                    while !done.load(Relaxed) {
                        for &hash in always {
                            assert!(reader.contains_hash(hash), "a key was missed");
                        }
                        lookups.fetch_add(1, Relaxed);
                    }
                });
            }
            let mut random = Random(2);
            let mut extra = vec![0; always.len()];
            let mut steps = 0_u64;
            while lookups.load(Relaxed) < 3_000 && steps < 50_000_000 {
                steps += 1;
                let i = random.next() as usize % always.len();
                match writer.insert_hash(always[i]) {
                    Ok(_) => extra[i] += 1,
                    Err(RemovableError::Full { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
                while extra[i] > 2 || extra[i] > 0 && random.next().is_multiple_of(2) {
                    assert!(writer.remove_hash(always[i]));
                    extra[i] -= 1;
                }
            }
            done.store(true, Relaxed);
        });
        assert!(lookups.into_inner() > 0);
    }
}
