//! The filters of Guava, Spark and RedisBloom. They have no checksums: damage that cannot be seen
//! is answered as it stands, as a naive reading of the format answers.

use std::fs;

use blocked_bloom::Bitmask;
use blocked_bloom_formats::guava::GuavaFilter;
use blocked_bloom_formats::redis::RedisFilter;
use blocked_bloom_formats::spark::{SparkFilter, Version};

use super::campaign::{Case, Expected, Outcome, Report};
use super::foreign::numbered;
use crate::classical::naive;
use crate::classical::naive::spark::Key;

/// Answers of single keys, compared with those of a batch.
fn outcome(answers: Vec<bool>, hits: &Bitmask) -> Outcome {
    assert!(hits.iter().eq(answers.iter().copied()));
    Outcome::answers(answers)
}

fn refused(error: impl std::error::Error) -> Outcome {
    assert!(!error.to_string().is_empty());
    Outcome::refused()
}

fn run(
    name: &'static str,
    [bytes, other]: [Vec<u8>; 2],
    header: usize,
    look_up: &dyn Fn(&[u8]) -> Outcome,
    naive: &dyn Fn(&[u8]) -> Expected,
) -> Report {
    let report =
        Case { name, bytes, other, added: 40, header: 0..header, seal: None, look_up, naive }.run();
    // No filter has another one for its start.
    assert_eq!(report.truncated.harmless + report.truncated.wrong, 0);
    assert!(report.flipped.wrong > 50, "what the documentation says cannot be seen");
    report
}

#[test]
fn guava_filters() {
    let stored = |keys: &[Vec<u8>]| {
        let mut filter = GuavaFilter::new(40, 0.01).unwrap();
        filter.extend(keys);
        filter.into_inner()
    };
    let (added, others) = (numbered("a", 40), numbered("b", 40));
    let files = [stored(&added), stored(&others)];
    let queries = [added, numbered("n", 40)].concat();
    let look_up = |bytes: &[u8]| match GuavaFilter::from_bytes(bytes) {
        Err(error) => refused(error),
        Ok(filter) => {
            let mut hits = Bitmask::new();
            filter.contains_batch(&queries, &mut hits);
            outcome(queries.iter().map(|key| filter.contains(key)).collect(), &hits)
        }
    };
    let naive = |bytes: &[u8]| Expected::from_answers(naive::guava::answers(bytes, &queries));
    let report = run("Guava filter", files, 6, &look_up, &naive);
    // The strategy, and most numbers of hash functions, are believed.
    assert!(report.header.refused > 1_000 && report.header.wrong > 200);
}

#[test]
fn spark_filters() {
    for (name, version, header) in [
        ("Spark filter, version 1", Version::V1, 12),
        ("Spark filter, version 2", Version::V2 { seed: 7 }, 16),
    ] {
        let keys = |name: &str| -> Vec<Key> {
            let bytes = numbered(name, 20).into_iter().map(Key::Bytes);
            bytes.chain((0..20).map(|i| Key::Long(i * name.len() as i64 * 1_000_003))).collect()
        };
        let hash = |key: &Key| match key {
            Key::Bytes(bytes) => version.hash_bytes(bytes),
            Key::Long(number) => version.hash_long(*number),
        };
        let stored = |keys: &[Key]| {
            let mut filter = SparkFilter::new(version, 40, 0.01).unwrap();
            keys.iter().for_each(|key| _ = filter.insert_hash(hash(key)));
            filter.into_inner()
        };
        let (added, others) = (keys("a"), keys("other"));
        let files = [stored(&added), stored(&others)];
        let absent = numbered("n", 40).into_iter().map(Key::Bytes);
        let queries: Vec<Key> = added.into_iter().chain(absent).collect();
        let look_up = |bytes: &[u8]| match SparkFilter::from_bytes(bytes) {
            Err(error) => refused(error),
            Ok(filter) => {
                // The version of the damaged bytes, not the one that was.
                let version = filter.shape().scheme();
                let hash = |key: &Key| match key {
                    Key::Bytes(bytes) => version.hash_bytes(bytes),
                    Key::Long(number) => version.hash_long(*number),
                };
                let hashes: Vec<_> = queries.iter().map(hash).collect();
                let mut hits = Bitmask::new();
                filter.contains_hashes(&hashes, &mut hits);
                let single = queries.iter().map(|key| match key {
                    Key::Bytes(bytes) => filter.contains(bytes),
                    Key::Long(number) => filter.contains_long(*number),
                });
                outcome(single.collect(), &hits)
            }
        };
        let naive = |bytes: &[u8]| Expected::from_answers(naive::spark::answers(bytes, &queries));
        let report = run(name, files, header, &look_up, &naive);
        assert!(report.header.refused > 2_000);
    }
}

#[test]
fn redisbloom_dumps() {
    let stored = |keys: &[Vec<u8>]| {
        // Three links: for 6, 12 and 24 keys.
        let mut filter = RedisFilter::new(6, 0.02, Some(2)).unwrap();
        keys.iter().for_each(|key| _ = filter.insert(key).unwrap());
        assert_eq!(filter.links().len(), 3);
        filter.to_bytes()
    };
    let (added, others) = (numbered("a", 40), numbered("b", 40));
    let files = [stored(&added), stored(&others)];
    let queries = [added, numbered("n", 40)].concat();
    let look_up = |bytes: &[u8]| match RedisFilter::from_bytes(bytes) {
        Err(error) => refused(error),
        Ok(filter) => {
            let mut hits = Bitmask::new();
            filter.contains_batch(&queries, &mut hits);
            outcome(queries.iter().map(|key| filter.contains(key)).collect(), &hits)
        }
    };
    let naive = |bytes: &[u8]| Expected::from_answers(naive::redis::answers(bytes, &queries));
    let report = run("RedisBloom dump", files, 16 + 20 + 53, &look_up, &naive);
    assert!(report.header.refused > 15_000);
}

/// No byte of a file of the repository's is believed to be another format's.
#[test]
fn no_filter_is_taken_for_another_format() {
    let files = |folder: &str| -> Vec<Vec<u8>> {
        let folder = fs::read_dir(crate::fixtures::committed(folder)).unwrap();
        let files = folder.map(|file| file.unwrap().path()).filter(|file| file.is_file());
        files.map(|file| fs::read(file).unwrap()).collect()
    };
    let opens = |bytes: &[u8]| {
        [
            GuavaFilter::from_bytes(bytes).is_ok(),
            SparkFilter::from_bytes(bytes).is_ok(),
            RedisFilter::from_bytes(bytes).is_ok(),
        ]
    };
    let count = |folder| {
        files(folder).iter().fold([0; 3], |mut counts, bytes| {
            counts.iter_mut().zip(opens(bytes)).for_each(|(count, is)| *count += usize::from(is));
            counts
        })
    };
    assert_eq!((count("guava"), count("spark")), ([2, 0, 0], [0, 2, 0]));
    for folder in
        ["cassandra", "parquet", "parquet/raw", "rocksdb", "rocksdb/raw", "rocksdb/crafted"]
    {
        assert_eq!(count(folder), [0; 3], "{folder}");
    }
}
