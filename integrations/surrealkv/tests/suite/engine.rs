//! The engine with the policy: absent keys are ruled out, policies change, damage is detected.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use blocked_bloom::Sizing;
use surrealkv::{FilterPolicy, RibbonFilter, Tree};

use crate::common::{Counted, compact, flush, open, ours, put, theirs};

const KEYS: u32 = 4_000;

/// Even numbers are written.
fn key(i: u32) -> String {
    format!("{i:06}")
}

fn check(tree: &Tree) {
    let transaction = tree.begin().unwrap();
    for i in 0..2 * KEYS {
        let found = transaction.get(key(i).as_str()).unwrap();
        let expected = i.is_multiple_of(2).then(|| key(i));
        assert_eq!(found.as_deref(), expected.as_ref().map(String::as_bytes), "{i}");
    }
}

async fn write(tree: &Tree) {
    for table in 0..4 {
        put(tree, (table..KEYS).step_by(4).map(|i| key(2 * i))).await;
        flush(tree);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_rule_out_absent_keys_before_and_after_compaction() {
    for partition in [400, 16_384] {
        let folder = tempfile::tempdir().unwrap();
        let policy = Counted::new(ours(Sizing::BitsPerKey(10.0)));
        let tree = open(folder.path(), Some(policy.clone()), partition);
        write(&tree).await;
        policy.take();
        check(&tree);
        // Absent keys are looked up in four tables, present ones in up to four.
        let (absent, maybe) = policy.take();
        let total = absent + maybe;
        assert!(total > u64::from(4 * KEYS), "{absent} {maybe}");
        assert!(maybe - u64::from(KEYS) < total / 50, "{absent} {maybe}");
        compact(&tree);
        policy.take();
        check(&tree);
        let (absent, maybe) = policy.take();
        assert!(absent > u64::from(KEYS) * 98 / 100, "{absent} {maybe}");
        tree.close().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_changes_its_policy_and_back() {
    let folder = tempfile::tempdir().unwrap();
    let ours = ours(Sizing::BitsPerKey(10.0));
    let ribbon: Arc<dyn FilterPolicy> = Arc::new(RibbonFilter::new(10));
    let policies = [Some(theirs()), Some(ours.clone()), Some(ribbon), Some(ours.clone()), None];
    for (round, policy) in policies.into_iter().enumerate() {
        let counted = policy.map(Counted::new);
        let tree = open(folder.path(), counted.clone().map(|policy| policy as _), 16_384);
        if round == 0 {
            write(&tree).await;
        }
        if let Some(counted) = &counted {
            counted.take();
            check(&tree);
            // The tables of another policy are read without a filter.
            assert_eq!(counted.take().0 > 0, round == 0);
        }
        compact(&tree);
        check(&tree);
        if let Some(counted) = &counted {
            assert!(counted.take().0 > u64::from(KEYS) * 95 / 100);
        }
        tree.close().await.unwrap();
    }
    assert_eq!(ours.unusable_filters(), 0);
}

fn tables(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| if path.is_dir() { tables(&path) } else { vec![path] })
        .filter(|path| path.extension().is_some_and(|extension| extension == "sst"))
        .collect()
}

/// The compact form has no checksum: the engine's must detect every damaged byte.
#[tokio::test(flavor = "multi_thread")]
async fn damaged_filters_in_files_never_hide_a_key() {
    let folder = tempfile::tempdir().unwrap();
    let policy = ours(Sizing::BitsPerKey(10.0));
    let written: Vec<Vec<u8>> = (0..300).map(|i| key(2 * i).into_bytes()).collect();
    let tree = open(folder.path(), Some(policy.clone()), 16_384);
    put(&tree, (0..300).map(|i| key(2 * i))).await;
    flush(&tree);
    tree.close().await.unwrap();
    let [table] = &tables(folder.path())[..] else { panic!("not one table") };
    let good = fs::read(table).unwrap();
    let filter = policy.create_filter(&written);
    let start = good.windows(filter.len()).position(|window| window == filter).unwrap();

    for at in (0..filter.len()).step_by(13).chain(filter.len() - 8..filter.len()) {
        let mut damaged = good.clone();
        damaged[start + at] ^= 0xff;
        fs::write(table, &damaged).unwrap();
        let counted = Counted::new(policy.clone());
        let tree = open(folder.path(), Some(counted.clone()), 16_384);
        let transaction = tree.begin().unwrap();
        for key in &written {
            assert!(transaction.get(&key[..]).unwrap().is_some(), "byte {at}, {key:?}");
        }
        assert_eq!(counted.take(), (0, 0), "the engine passed damaged bytes to the policy");
        drop(transaction);
        tree.close().await.unwrap();
    }
}
