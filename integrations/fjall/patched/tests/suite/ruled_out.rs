//! Filters must rule out absent keys: an engine that reads every table answers correctly too.

use std::collections::BTreeSet;

use lsm_tree::{AbstractTree, SeqNo};

use crate::common::{PLACES, POLICIES, get, open};

fn key(i: u32) -> [u8; 4] {
    i.to_be_bytes()
}

#[test]
fn absent_keys_are_ruled_out_in_every_place() {
    // Ten bits per key, and a rate of 0.01 %.
    for (policy, most) in [(POLICIES[0], 0.012), (POLICIES[2], 0.001)] {
        for place in PLACES {
            let folder = tempfile::tempdir().unwrap();
            let tree = open(folder.path(), policy, place);
            // Even numbers, in three tables with the same range.
            for table in 0..3 {
                for i in (table..20_000).step_by(3) {
                    tree.insert(key(2 * i), "value", 0);
                }
                tree.flush_active_memtable(0).unwrap();
            }
            let absent: Vec<_> = (10..19_990).map(|i| key(2 * i + 1)).collect();
            let mut read = Vec::new();
            for at_once in [false, true] {
                let before = count(&tree);
                let found = match at_once {
                    true => tree.multi_get(&absent, SeqNo::MAX).unwrap(),
                    false => absent.iter().map(|key| tree.get(key, SeqNo::MAX).unwrap()).collect(),
                };
                assert!(found.iter().all(Option::is_none));
                let (queries, ruled_out) = count(&tree);
                let (queries, ruled_out) = (queries - before.0, ruled_out - before.1);
                assert_eq!(queries, 3 * absent.len(), "{policy:?} {place:?} {at_once}");
                let passed = (queries - ruled_out) as f64 / queries as f64;
                assert!(passed <= most, "{policy:?} {place:?} {at_once}: {passed}");
                read.push(queries - ruled_out);
            }
            assert_eq!(read[0], read[1], "both ways read the same tables: {policy:?} {place:?}");
        }
    }
}

/// Returns the metrics `filter_queries` and `io_skipped_by_filter`.
fn count(tree: &lsm_tree::AnyTree) -> (usize, usize) {
    (tree.metrics().filter_queries(), tree.metrics().io_skipped_by_filter())
}

#[test]
fn batches_of_every_size_find_keys_in_any_order_and_more_than_once() {
    for place in PLACES {
        let folder = tempfile::tempdir().unwrap();
        let tree = open(folder.path(), POLICIES[0], place);
        for i in 0..1_000 {
            tree.insert(key(2 * i), key(i), 0);
        }
        tree.flush_active_memtable(0).unwrap();
        for i in (0..1_000).step_by(7) {
            tree.remove(key(2 * i), 1);
        }
        tree.flush_active_memtable(0).unwrap();
        // Some keys are in the memtable.
        tree.insert(key(14), key(0), 2);
        let removed: BTreeSet<u32> = (0..1_000).step_by(7).filter(|&i| i != 7).collect();
        for size in [0, 1, 2, 63, 64, 65, 300] {
            let numbers: Vec<u32> = (0..size).map(|i| i * 7_919 % 2_100).collect();
            let numbers = [&numbers[..], &numbers[..]].concat();
            let expected = numbers.iter().map(|&i| {
                let present = i.is_multiple_of(2) && i < 2_000 && !removed.contains(&(i / 2));
                present.then(|| key(if i == 14 { 0 } else { i / 2 }).to_vec())
            });
            let keys: Vec<_> = numbers.iter().map(|&i| key(i)).collect();
            assert_eq!(get(&tree, &keys), expected.collect::<Vec<_>>(), "{place:?} {size}");
        }
        // An older state.
        let found = tree.multi_get(&[key(14), key(28)], 2).unwrap();
        assert_eq!(found, [None, None]);
        let found = tree.multi_get(&[key(14), key(28)], 1).unwrap();
        assert_eq!(found[0].as_deref(), Some(&key(7)[..]));
        assert_eq!(found[1].as_deref(), Some(&key(14)[..]));
    }
}

/// `get` visits 16 tables at a time.
#[test]
fn keys_of_more_tables_than_a_group_are_found() {
    const TABLES: u32 = 40;
    for policy in [POLICIES[0], POLICIES[1]] {
        let folder = tempfile::tempdir().unwrap();
        let tree = open(folder.path(), policy, PLACES[0]);
        for table in 0..TABLES {
            // All tables have the same range.
            for i in [0, 2 * table + 1, 1_000] {
                tree.insert(key(i), key(table), table.into());
            }
            tree.flush_active_memtable(0).unwrap();
        }
        assert_eq!(tree.l0_run_count(), TABLES as usize);
        let keys: Vec<_> = (1..2 * TABLES).map(key).collect();
        let expected = (1..2 * TABLES).map(|i| (i % 2 == 1).then(|| key(i / 2).to_vec()));
        assert_eq!(get(&tree, &keys), expected.collect::<Vec<_>>());
        assert_eq!(get(&tree, &[key(1_000)]), [Some(key(TABLES - 1).to_vec())]);
    }
}

/// The entries of an ingested table have one sequence number, which the table stores.
#[test]
fn batches_see_ingested_tables_like_single_lookups() {
    let folder = tempfile::tempdir().unwrap();
    let tree = open(folder.path(), POLICIES[0], PLACES[0]);
    let keys: Vec<_> = (0..100).map(key).collect();
    for value in 0..3 {
        let mut ingestion = tree.ingestion().unwrap();
        for key in keys.iter().step_by(2) {
            ingestion.write(&key[..], &[value][..]).unwrap();
        }
        ingestion.finish().unwrap();
    }
    let mut distinct = BTreeSet::new();
    let mut compare = |tree: &lsm_tree::AnyTree| {
        for seqno in 0..5 {
            let single: Vec<_> = keys.iter().map(|key| tree.get(key, seqno).unwrap()).collect();
            assert_eq!(tree.multi_get(&keys, seqno).unwrap(), single, "{seqno}");
            distinct.insert(single[0].as_ref().map(|value| value.to_vec()));
        }
    };
    compare(&tree);
    drop(tree);
    // Reopened, older states are told apart by the sequence numbers alone.
    compare(&open(folder.path(), POLICIES[0], PLACES[0]));
    assert!(distinct.len() > 2, "{distinct:?}");
}
