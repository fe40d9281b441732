//! Builders whose allocations fail: the allocator refuses large requests of one thread.

use blocked_bloom::KeyHash;
use blocked_bloom_file_index::{
    Column, FileIdentity, FileIndex, FileIndexBuilder, FileIndexError, FileIndexOptions,
};

#[path = "../../../tests/suite/common/bounded.rs"]
mod bounded;

use bounded::with_limit;

const KEY_HASH: KeyHash = KeyHash::Caller { tag: 1 };

fn builder() -> FileIndexBuilder {
    let options = FileIndexOptions::new(vec![Column::new("id", KEY_HASH)], 1);
    options.with_part_values(16).with_memory(0).builder().unwrap()
}

fn hashes(count: u64) -> Vec<u64> {
    (1..=count).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect()
}

/// Values were lost, so the row group is a candidate for each of them, and those after it are
/// indexed.
#[test]
fn a_row_group_with_a_failed_insertion_is_always_read() {
    let (mut builder, hashes) = (builder(), hashes(3_000));
    let mut file = builder.file(FileIdentity::new("a", 1), &[Some("Int64")], 2).unwrap();
    file.insert_hashes(0, &hashes[..100]).unwrap();
    let error = with_limit(4 << 10, || file.insert_hashes(0, &hashes[100..]).unwrap_err());
    assert!(matches!(error, FileIndexError::Alloc(_)), "{error}");
    let mut stored = file.end_row_group().unwrap();
    file.insert_hashes(0, &hashes[..1]).unwrap();
    stored.extend(file.end_row_group().unwrap());
    file.end().unwrap();
    stored.extend(builder.finish().unwrap());
    let index = FileIndex::from_bytes(stored).unwrap();
    let file = index.manifest().files().next().unwrap();
    assert!(file.values(0).eq([None, Some(1)]));
    for (hash, is_in_second) in hashes.iter().zip([true].into_iter().chain([false; 2_999])) {
        let lookup = index.manifest().lookup(0, KEY_HASH, |_| true, [*hash]).unwrap();
        let found = file.candidates(&index.candidates(&lookup).unwrap());
        assert_eq!(found.get(0), Some(true));
        assert!(!is_in_second || found.get(1) == Some(true));
    }
}

/// Rows and manifest would not agree: there is no index, even with memory again.
#[test]
fn a_builder_whose_row_group_failed_does_not_finish() {
    for by_column in [true, false] {
        let mut builder = builder();
        let mut file = builder.file(FileIdentity::new("a", 1), &[Some("Int64")], 1).unwrap();
        // More parts than a chunk has rows, so that its bytes are allocated.
        file.insert_hashes(0, &hashes(16 * 600)).unwrap();
        let failed = with_limit(4 << 10, || match by_column {
            true => file.end_column(0).unwrap_err(),
            false => file.end_row_group().unwrap_err(),
        });
        assert!(matches!(failed, FileIndexError::Alloc(_)), "{failed}");
        let _ = file.end_row_group();
        let _ = file.end();
        assert_eq!(builder.finish().unwrap_err(), failed);
    }
}
