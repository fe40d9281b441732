//! Damage in stored tables: the engine's checksum of the filter block detects damage on disk, and
//! ours detects damage that has a correct block checksum.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use common::{flush, open, ours};
use slatedb::FilterPolicy;
use slatedb::object_store::ObjectStore;
use slatedb::object_store::local::LocalFileSystem;

fn tables(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => tables(&path, found),
            false if path.to_string_lossy().contains("compacted") => found.push(path),
            false => {}
        }
    }
}

/// Offsets in a table: the start of its filter block, the filter's first byte, and the end of the
/// filter, where the block's CRC-32 follows.
fn filter_block(table: &[u8], policy: &str) -> (usize, usize, usize) {
    let name = table.windows(policy.len()).position(|window| window == policy.as_bytes());
    // A count of filters and the name's length, two bytes each, stand before the name; eight bytes
    // of length after it.
    let (start, after) = (name.unwrap() - 4, name.unwrap() + policy.len());
    let length = u64::from_be_bytes(table[after..after + 8].try_into().unwrap()) as usize;
    (start, after + 8, after + 8 + length)
}

#[tokio::test]
async fn damaged_filters_in_files_never_hide_a_key() {
    for policy in ours() {
        let directory = tempfile::tempdir().unwrap();
        let store: Arc<dyn ObjectStore> =
            Arc::new(LocalFileSystem::new_with_prefix(directory.path()).unwrap());
        let policy = Arc::new(policy);
        let (db, _) = open(&store, vec![policy.clone()], false).await;
        for i in 0..300 {
            db.put(format!("{i:03}"), [0; 10]).await.unwrap();
        }
        flush(&db).await;
        db.close().await.unwrap();
        let mut found = Vec::new();
        tables(directory.path(), &mut found);
        let [table] = &found[..] else { panic!("tables: {found:?}") };
        let good = fs::read(table).unwrap();
        let (start, filter, end) = filter_block(&good, policy.name());
        assert_eq!(good[end..end + 4], crc32fast::hash(&good[start..end]).to_be_bytes());

        let mut unusable = 0;
        for place in
            [filter, filter + 9, filter + 12, filter + 13, filter + 32, filter + 64, end - 1]
        {
            let mut damaged = good.clone();
            damaged[place] ^= 4;
            fs::write(table, &damaged).unwrap();
            let (db, _) = open(&store, vec![policy.clone()], false).await;
            let error = db.get("007").await.unwrap_err();
            assert!(error.to_string().contains("checksum"), "{error}");
            db.close().await.unwrap();
            assert_eq!(policy.unusable_filters(), unusable, "the engine was first");

            let sum = crc32fast::hash(&damaged[start..end]).to_be_bytes();
            damaged[end..end + 4].copy_from_slice(&sum);
            fs::write(table, &damaged).unwrap();
            let (db, _) = open(&store, vec![policy.clone()], false).await;
            for i in 0..300 {
                assert!(db.get(format!("{i:03}")).await.unwrap().is_some(), "{place}");
            }
            assert_eq!(db.get("absent").await.unwrap(), None);
            db.close().await.unwrap();
            assert!(policy.unusable_filters() >= unusable + 300);
            unusable = policy.unusable_filters();
        }
    }
}
