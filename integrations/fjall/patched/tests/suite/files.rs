//! Files: tables of the published engine, tables that the published engine reads, and damage.

use std::fs;
use std::path::{Path, PathBuf};

use lsm_tree::config::FilterPolicyEntry;
use lsm_tree::{AbstractTree as _, SeqNo};
use published::AbstractTree as _;

use crate::common::{PLACES, POLICIES, get, open};

fn key(i: u32) -> [u8; 4] {
    i.to_be_bytes()
}

fn open_published(folder: &Path, partitioned: bool, pinned: bool) -> published::AnyTree {
    use published::config::{PartitioningPolicy, PinningPolicy};
    published::Config::new(folder, Default::default(), Default::default())
        .filter_block_pinning_policy(PinningPolicy::all(pinned))
        .filter_block_partitioning_policy(PartitioningPolicy::all(partitioned))
        .open()
        .unwrap()
}

#[test]
fn tables_of_the_published_engine_stay_readable() {
    let keys: Vec<_> = (0..20_000).map(key).collect();
    for place in PLACES.into_iter().filter(|place| !place.blobs) {
        let folder = tempfile::tempdir().unwrap();
        let tree = open_published(folder.path(), place.partitioned, place.pinned);
        for i in 0..5_000 {
            tree.insert(key(2 * i), key(i), 0);
        }
        tree.flush_active_memtable(0).unwrap();
        drop(tree);

        // A table of each kind.
        let tree = open(folder.path(), POLICIES[0], place);
        for i in 5_000..10_000 {
            tree.insert(key(2 * i), key(i), 1);
        }
        tree.flush_active_memtable(0).unwrap();
        for i in [0, 1] {
            let expected =
                (0..20_000).map(|i: u32| i.is_multiple_of(2).then(|| key(i / 2).to_vec()));
            assert_eq!(get(&tree, &keys), expected.collect::<Vec<_>>(), "{place:?}");
            if i == 0 {
                tree.major_compact(64_000_000, 0).unwrap();
            }
        }
        let absent = (tree.metrics().filter_queries(), tree.metrics().io_skipped_by_filter());
        assert!(absent.1 > 35_000 && absent.1 as f64 / absent.0 as f64 > 0.98, "{absent:?}");
    }
}

/// An older engine reports an unknown filter type. It neither panics nor answers "absent".
#[test]
fn the_published_engine_refuses_tables_with_blocked_filters() {
    for place in PLACES.into_iter().filter(|place| !place.blobs) {
        let folder = tempfile::tempdir().unwrap();
        let tree = open(folder.path(), POLICIES[0], place);
        for i in 0..1_000 {
            tree.insert(key(i), "value", 0);
        }
        tree.flush_active_memtable(0).unwrap();
        drop(tree);
        let tree = open_published(folder.path(), place.partitioned, place.pinned);
        let error = tree.get(key(5), SeqNo::MAX).unwrap_err();
        assert!(error.to_string().contains("InvalidTag"), "{error}");
        // Scans do not read filters.
        assert_eq!(tree.len(SeqNo::MAX, None).unwrap(), 1_000);
    }
}

fn find_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { find_files(&path) } else { vec![path] }).collect()
}

#[test]
fn damaged_filters_never_hide_a_key() {
    for place in [PLACES[0], PLACES[1]] {
        let folder = tempfile::tempdir().unwrap();
        let tree = open(folder.path(), POLICIES[0], place);
        for i in 0..100 {
            tree.insert(key(i), "value", 0);
        }
        tree.flush_active_memtable(0).unwrap();
        drop(tree);
        // Magic bytes, filter type and hash type.
        let header = [b'L', b'S', b'M', 3, 2, 0];
        let (path, start) = find_files(folder.path())
            .into_iter()
            .find_map(|path| {
                let bytes = fs::read(&path).unwrap();
                let start = bytes.windows(6).position(|window| window == header)?;
                Some((path, start))
            })
            .expect("a table with a blocked filter");
        let good = fs::read(&path).unwrap();
        let mut reported = 0;
        for at in 0..6 + 2 * 64 + 8 {
            let mut damaged = good.clone();
            damaged[start + at] ^= 0x55;
            fs::write(&path, &damaged).unwrap();
            // Pinned filters are read when the tree is opened.
            let opened = std::panic::catch_unwind(|| open(folder.path(), POLICIES[0], place));
            let Ok(tree) = opened else {
                reported += 1;
                continue;
            };
            match tree.get(key(5), SeqNo::MAX) {
                Ok(found) => assert!(found.is_some(), "byte {at} {place:?}"),
                Err(_) => reported += 1,
            }
        }
        assert!(reported > 100, "{reported}");
    }
}

/// Other filter policies do not write blocked filters.
#[test]
fn standard_filters_are_still_written() {
    for policy in [POLICIES[1], POLICIES[3], FilterPolicyEntry::None] {
        let folder = tempfile::tempdir().unwrap();
        let tree = open(folder.path(), policy, PLACES[0]);
        (0..1_000).for_each(|i| _ = tree.insert(key(i), "value", 0));
        tree.flush_active_memtable(0).unwrap();
        drop(tree);
        let tree = open_published(folder.path(), false, true);
        assert!((0..1_000).all(|i| tree.get(key(i), SeqNo::MAX).unwrap().is_some()));
    }
}
