//! Property: any bytes are either refused as a Parquet file, or every filter that its footer names is refused or lies where the footer
//! says, before the footer, and answers as those bytes do by themselves. Memory stays within 50 times the file's length. The
//! frame of the file, magic numbers and length of the footer, is also made to fit.
//!
//! Input: two bytes that say how long the footer is; the file.
#![no_main]

use blocked_bloom::interop::parquet::{ParquetFile, SplitBlockFilterRef, key_hash};
use libfuzzer_sys::fuzz_target;

fn check(file: &[u8]) {
    let Ok(opened) = ParquetFile::open(file) else {
        return;
    };
    let length = file.last_chunk::<8>().unwrap().first_chunk().unwrap();
    let data = &file[..file.len() - 8 - u32::from_le_bytes(*length) as usize];
    assert!(file.starts_with(b"PAR1") && file.ends_with(b"PAR1"));
    assert!(opened.filter(opened.row_groups().len(), 0).is_err());
    // Every group and column takes a byte at least.
    let columns: usize = opened.row_groups().iter().map(|group| group.columns().len()).sum();
    assert!(opened.row_groups().len() + columns <= file.len());
    for (row_group, group) in opened.row_groups().iter().enumerate().take(64) {
        assert!(opened.filter(row_group, group.columns().len()).is_err());
        for (column, described) in group.columns().iter().enumerate().take(64) {
            let place = group.position(&described.name());
            assert!(place.is_some_and(|place| place <= column));
            let filter = opened.filter(row_group, column);
            let alone = described
                .filter_offset()
                .map(|offset| SplitBlockFilterRef::at(data, offset, described.filter_length()));
            match (filter, alone) {
                (Ok(None), None) => {}
                (Ok(Some(filter)), Some(Ok(alone))) => {
                    assert!(filter == alone);
                    let bytes = filter.blocks().as_flattened().as_ptr_range();
                    let range = data.as_ptr_range();
                    assert!(range.start <= bytes.start && bytes.end <= range.end);
                    for value in 0..20_u64 {
                        let value = value.to_le_bytes();
                        assert_eq!(filter.contains(value), alone.contains_hash(key_hash(value)));
                    }
                }
                // Encrypted and in another file too.
                (Err(error), _) => assert!(!error.to_string().is_empty()),
                (found, alone) => panic!("found {found:?}, by itself {alone:?}"),
            }
        }
    }
}

fuzz_target!(|input: &[u8]| {
    let [low, high, file @ ..] = input else { return };
    check(file);
    if file.len() >= 12 {
        let mut mended = file.to_vec();
        let most = file.len() - 12;
        let footer = usize::from(u16::from_le_bytes([*low, *high])) % (most + 1);
        let end = file.len() - 8;
        mended[..4].copy_from_slice(b"PAR1");
        mended[end..end + 4].copy_from_slice(&(footer as u32).to_le_bytes());
        mended[end + 4..].copy_from_slice(b"PAR1");
        check(&mended);
    }
});
