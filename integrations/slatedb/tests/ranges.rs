//! Range scans of the engine: the answers equal those of a `BTreeMap`, and filters rule out tables.

mod common;

use std::collections::BTreeMap;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use blocked_bloom_range::RangeOptions;
use blocked_bloom_slatedb::{BlockedBloomPolicy, RangePolicy};
use bytes::Bytes;
use common::{LastSlash, first_two_bytes, flush, keys_of, open, ours, ruled_out, sizing};
use slatedb::db_stats::FILTER_KIND_RANGE;
use slatedb::object_store::ObjectStore;
use slatedb::object_store::memory::InMemory;
use slatedb::{Db, FilterPolicy, PrefixExtractor, PrefixTarget};

type Range = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// A key up to its first slash.
struct Slash;

impl PrefixExtractor for Slash {
    fn name(&self) -> &str {
        "slash"
    }

    fn prefix_len(&self, target: &PrefixTarget) -> Option<usize> {
        let (PrefixTarget::Point(bytes) | PrefixTarget::Prefix(bytes)) = target;
        bytes.iter().position(|&byte| byte == b'/').map(|slash| slash + 1)
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014).
struct Random(u64);

impl Random {
    fn next_below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((word ^ (word >> 31)) % limit as u64) as usize
    }

    /// Few letters, among them the lowest and the highest byte, and a slash and its neighbours.
    fn string(&mut self) -> Vec<u8> {
        let letters = [0, b'.', b'/', b'0', 254, 255];
        (0..self.next_below(6)).map(|_| letters[self.next_below(letters.len())]).collect()
    }

    fn bound(&mut self, bytes: Vec<u8>) -> Bound<Vec<u8>> {
        match self.next_below(8) {
            0 => Bound::Unbounded,
            1..4 => Bound::Excluded(bytes),
            _ => Bound::Included(bytes),
        }
    }

    /// A range of all keys with a prefix, from a string to a longer one, or between any two.
    fn range(&mut self) -> Range {
        let (low, high) = (self.string(), self.string());
        let high = match (self.next_below(4), low.iter().rposition(|&byte| byte != 255)) {
            (0, Some(last)) => {
                let mut next = low[..=last].to_vec();
                next[last] += 1;
                return (Bound::Included(low), Bound::Excluded(next));
            }
            (1, _) => [&low[..], &high].concat(),
            _ => high,
        };
        (self.bound(low), self.bound(high))
    }
}

/// The engine panics on empty ranges.
fn is_empty((lower, upper): &Range) -> bool {
    let next = |bytes: &[u8]| [bytes, &[0]].concat();
    let lower = match lower {
        Bound::Included(bytes) => bytes.clone(),
        Bound::Excluded(bytes) => next(bytes),
        Bound::Unbounded => vec![],
    };
    match upper {
        Bound::Included(bytes) => lower > *bytes,
        Bound::Excluded(bytes) => lower >= *bytes,
        Bound::Unbounded => false,
    }
}

const TABLES: usize = 8;

/// Writes eight small tables, scans random ranges, and returns how many scans ran and how many
/// tables the filters ruled out.
async fn scan(policy: BlockedBloomPolicy, scans: usize) -> (usize, u64) {
    let policy = Arc::new(policy);
    let counts = scan_with(policy.clone(), scans).await;
    assert_eq!(policy.unusable_filters(), 0);
    counts
}

async fn scan_with(policy: Arc<dyn FilterPolicy>, scans: usize) -> (usize, u64) {
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let (db, metrics) = open(&store, vec![policy.clone()], false).await;
    let (mut random, mut model) = (Random(63), BTreeMap::new());
    for _ in 0..TABLES {
        for _ in 0..40 {
            let key = random.string();
            if !key.is_empty() {
                db.put(&key, b"v").await.unwrap();
                model.insert(key, ());
            }
        }
        flush(&db).await;
    }
    let mut run = 0;
    for _ in 0..scans {
        let range = random.range();
        let expected = model.keys().filter(|key| range.contains(*key)).cloned();
        let expected: Vec<Vec<u8>> = expected.collect();
        if is_empty(&range) {
            assert_eq!(expected, Vec::<Vec<u8>>::new());
            continue;
        }
        let found = keys_of(db.scan(range.clone()).await.unwrap()).await;
        assert_eq!(found, expected, "{}: {range:?}", policy.name());
        run += 1;
    }
    let ruled_out = ruled_out(&metrics, FILTER_KIND_RANGE);
    db.close().await.unwrap();
    (run, ruled_out)
}

#[tokio::test]
async fn range_scans_equal_those_of_a_map_and_skip_tables() {
    let policy = || BlockedBloomPolicy::new(sizing()).unwrap();
    for (policy, scans) in [
        (policy().prefixes(first_two_bytes()), 4_000),
        (policy().only_prefixes(first_two_bytes()), 500),
        (policy().prefixes(Arc::new(Slash)), 500),
    ] {
        let (run, ruled_out) = scan(policy.with_ranges(), scans).await;
        println!("{run} scans of {TABLES} tables, {ruled_out} tables ruled out");
        assert!(run > scans * 6 / 10, "{run} scans");
        assert!(ruled_out > run as u64 * TABLES as u64 / 20, "{ruled_out} tables ruled out");
    }
}

/// Without the option, and without prefixes, range scans read no filter.
#[tokio::test]
async fn ranges_are_opt_in() {
    let [keys, both, only] = ours();
    assert!(!both.supports_range_queries() && !only.supports_range_queries());
    let keys = keys.with_ranges();
    assert!(!keys.supports_range_queries());
    for policy in [keys, both, only] {
        assert_eq!(scan(policy, 200).await.1, 0);
    }
}

/// An extractor that knows no prefix of a scan rules out only the ranges of single keys.
#[tokio::test]
async fn a_rule_without_prefixes_of_scans_loses_no_rows() {
    let policy = BlockedBloomPolicy::new(sizing()).unwrap().prefixes(Arc::new(LastSlash));
    let (run, _) = scan(policy.with_ranges(), 1_000).await;
    assert!(run > 600, "{run} scans");
}

/// The option changes neither the name nor the stored filters, so it can be switched at any time.
#[tokio::test]
async fn the_option_keeps_stored_filters() {
    let policy = || BlockedBloomPolicy::new(sizing()).unwrap().prefixes(first_two_bytes());
    assert_eq!(policy().name(), policy().with_ranges().name());
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let (db, _) = open(&store, vec![Arc::new(policy())], false).await;
    db.put(b"aa1", b"v").await.unwrap();
    flush(&db).await;
    db.close().await.unwrap();
    let (db, metrics) = open(&store, vec![Arc::new(policy().with_ranges())], false).await;
    let rows = db.scan(b"aa0".as_slice()..b"aa9".as_slice()).await.unwrap();
    assert_eq!(keys_of(rows).await, [b"aa1".to_vec()]);
    assert_eq!(ruled_out(&metrics, FILTER_KIND_RANGE), 0);
    let rows = db.scan(b"aa10".as_slice()..b"aa9".as_slice()).await.unwrap();
    assert!(keys_of(rows).await.is_empty());
    assert_eq!(ruled_out(&metrics, FILTER_KIND_RANGE), 0, "the prefix is in the table");
    // The bounds of the table do not rule this range out.
    db.put(b"a", b"v").await.unwrap();
    db.put(b"b", b"v").await.unwrap();
    flush(&db).await;
    let rows = db.scan(b"ab0".as_slice()..b"ab9".as_slice()).await.unwrap();
    assert!(keys_of(rows).await.is_empty());
    assert_eq!(ruled_out(&metrics, FILTER_KIND_RANGE), 1);
    db.close().await.unwrap();
}

/// The smallest case for SlateDB 0.18: an empty range should return no rows. If this test fails,
/// SlateDB was mended, and `is_empty` above can go.
#[tokio::test]
#[should_panic(expected = "Range must be non-empty")]
async fn slatedb_panics_on_an_empty_range() {
    let db = Db::open("db", Arc::new(InMemory::new())).await.unwrap();
    let _ = db.scan(b"a".as_slice()..b"a".as_slice()).await;
}

/// The range filter rules out tables for ranges without any prefix rule.
#[tokio::test]
async fn range_filters_skip_tables() {
    let policy = Arc::new(RangePolicy::new(RangeOptions::new(16.0)).unwrap());
    let (run, ruled_out) = scan_with(policy.clone(), 4_000).await;
    println!("{run} scans of {TABLES} tables, {ruled_out} tables ruled out by range filters");
    assert!(run > 2_000 && ruled_out > run as u64 * TABLES as u64 / 20, "{ruled_out}");
    assert_eq!(policy.unusable_filters(), 0);
    // A damaged filter answers "maybe", and is counted.
    let filter = policy.decode(b"not a filter");
    let query = slatedb::FilterQuery::point(Bytes::from_static(b"key"));
    assert!(filter.might_match(&query));
    assert_eq!(policy.unusable_filters(), 1);
}
