//! The engine with our policy: correct answers and ruled-out tables, across flushes, compaction,
//! reopening and changes of policy.

mod common;

use std::sync::Arc;

use blocked_bloom_slatedb::BlockedBloomPolicy;
use common::{First, compacted, flush, keys_of, open, ours, ruled_out, sizing, theirs};
use slatedb::db_stats::{FILTER_KIND_POINT, FILTER_KIND_PREFIX, FILTER_KIND_RANGE};
use slatedb::object_store::ObjectStore;
use slatedb::object_store::local::LocalFileSystem;
use slatedb::object_store::memory::InMemory;
use slatedb::{Db, FilterPolicy};

const TABLES: u32 = 6;
const KEYS: u32 = 600;

fn memory() -> Arc<dyn ObjectStore> {
    Arc::new(InMemory::new())
}

/// Prefixes "00" to "19" in every table but the last digit of the number, which is the table's.
fn key(i: u32) -> String {
    format!("{:02}/{i:05}", i % 20)
}

/// Writes every key once, and deletes every eleventh in the table after its own.
async fn write(db: &Db) {
    for table in 0..TABLES {
        for i in (table..KEYS).step_by(TABLES as usize) {
            db.put(key(i), i.to_string()).await.unwrap();
        }
        for i in (0..KEYS).step_by(11).filter(|i| i % TABLES + 1 == table) {
            db.delete(key(i)).await.unwrap();
        }
        flush(db).await;
    }
}

fn is_there(i: u32) -> bool {
    i < KEYS && !(i.is_multiple_of(11) && i % TABLES + 1 < TABLES)
}

/// Checks every get and scan of keys that are present, were deleted, or were never written.
async fn check(db: &Db) {
    for i in 0..2 * KEYS {
        let found = db.get(key(i)).await.unwrap();
        let expected = is_there(i).then(|| i.to_string());
        assert_eq!(found.as_deref(), expected.as_ref().map(String::as_bytes), "{}", key(i));
    }
    for start in ["", "0", "03", "03/", "03/00", "19/", "20/", "7", "x"] {
        let mut expected = (0..KEYS).filter(|&i| is_there(i)).map(key).collect::<Vec<_>>();
        expected.retain(|key| key.starts_with(start));
        expected.sort();
        let found = keys_of(db.scan_prefix(start, ..).await.unwrap()).await;
        assert_eq!(found, expected.iter().map(|k| k.as_bytes().to_vec()).collect::<Vec<_>>());
        let found = keys_of(db.scan_prefix(start, b"".as_slice()..).await.unwrap()).await;
        assert_eq!(found.len(), expected.len());
    }
    let found = keys_of(db.scan("05".as_bytes().."07".as_bytes()).await.unwrap()).await;
    let expected = (0..KEYS).filter(|&i| is_there(i) && (5..7).contains(&(i % 20))).count();
    assert_eq!(found.len(), expected);
}

async fn all_through(store: Arc<dyn ObjectStore>, policy: BlockedBloomPolicy) {
    let (prefixes, whole_keys) = (policy.supports_prefix_queries(), policy.name().contains("keys"));
    let policy = Arc::new(policy);
    let policies = || vec![policy.clone() as Arc<dyn FilterPolicy>];
    let (db, _) = open(&store, policies(), false).await;
    write(&db).await;
    check(&db).await;
    db.close().await.unwrap();

    let (db, metrics) = open(&store, policies(), false).await;
    check(&db).await;
    assert_eq!(ruled_out(&metrics, FILTER_KIND_POINT) > 2_000, whole_keys);
    assert_eq!(ruled_out(&metrics, FILTER_KIND_PREFIX) > 0, prefixes);
    assert_eq!(ruled_out(&metrics, FILTER_KIND_RANGE), 0);
    db.close().await.unwrap();

    let (db, metrics) = open(&store, policies(), true).await;
    compacted(&db).await;
    check(&db).await;
    // One sorted run: its filters rule out keys that were never written.
    assert_eq!(ruled_out(&metrics, FILTER_KIND_POINT) > 500, whole_keys);
    db.close().await.unwrap();
    assert_eq!(policy.unusable_filters(), 0);
}

#[tokio::test]
async fn memory_is_read_right_through_flush_reopening_and_compaction() {
    for policy in ours() {
        all_through(memory(), policy).await;
    }
}

#[tokio::test]
async fn files_are_read_right_through_flush_reopening_and_compaction() {
    for policy in ours() {
        let directory = tempfile::tempdir().unwrap();
        let store = LocalFileSystem::new_with_prefix(directory.path()).unwrap();
        all_through(Arc::new(store), policy).await;
    }
}

/// Tables of one policy under another: the engine drops filters that it has no policy for.
#[tokio::test]
async fn a_database_changes_its_policy_and_back() {
    let [whole, both, only] = ours().map(|policy| Arc::new(policy) as Arc<dyn FilterPolicy>);
    let other = BlockedBloomPolicy::new(sizing()).unwrap().prefixes(Arc::new(First(4, "first-4")));
    let other: Arc<dyn FilterPolicy> = Arc::new(other);
    let changes = [
        (theirs(), both.clone()),
        (both.clone(), theirs()),
        (whole, both.clone()),
        (both, other.clone()),
        (other, only),
    ];
    for (before, after) in changes {
        let names = format!("{} to {}", before.name(), after.name());
        let store = memory();
        let (db, _) = open(&store, vec![before.clone()], false).await;
        write(&db).await;
        db.close().await.unwrap();

        let (db, metrics) = open(&store, vec![after.clone()], false).await;
        check(&db).await;
        assert_eq!(ruled_out(&metrics, FILTER_KIND_POINT), 0, "{names}");
        db.close().await.unwrap();

        // With both policies, in any order, old tables keep their filters.
        let (db, metrics) = open(&store, vec![after.clone(), before.clone()], false).await;
        check(&db).await;
        assert!(ruled_out(&metrics, FILTER_KIND_POINT) > 2_000, "{names}");
        db.put("20/new", "1").await.unwrap();
        flush(&db).await;
        db.delete("20/new").await.unwrap();
        flush(&db).await;
        check(&db).await;
        db.close().await.unwrap();

        // Compaction writes the new one.
        let (db, metrics) = open(&store, vec![after.clone()], true).await;
        compacted(&db).await;
        check(&db).await;
        let by_keys = !after.name().contains(":prefixes=");
        assert_eq!(ruled_out(&metrics, FILTER_KIND_POINT) > 500, by_keys, "{names}");
        db.close().await.unwrap();
    }
}

#[tokio::test]
async fn switching_filters_off_and_on() {
    let store = memory();
    let (db, _) = open(&store, vec![], false).await;
    write(&db).await;
    db.close().await.unwrap();
    let [_, both, _] = ours();
    let policy = Arc::new(both);
    let (db, _) = open(&store, vec![policy.clone()], false).await;
    check(&db).await;
    db.close().await.unwrap();
    let (db, _) = open(&store, vec![], false).await;
    check(&db).await;
    db.close().await.unwrap();
    assert_eq!(policy.unusable_filters(), 0);
}

/// The sizing is not part of the name: keys are looked up in tables of both.
#[tokio::test]
async fn the_sizing_changes_between_openings() {
    let store = memory();
    for sizing in [sizing(), blocked_bloom::Sizing::FalsePositiveRate(0.001)] {
        let policy = Arc::new(BlockedBloomPolicy::new(sizing).unwrap());
        let (db, metrics) = open(&store, vec![policy.clone()], false).await;
        write(&db).await;
        check(&db).await;
        assert!(ruled_out(&metrics, FILTER_KIND_POINT) > 2_000);
        db.close().await.unwrap();
        assert_eq!(policy.unusable_filters(), 0);
    }
}
