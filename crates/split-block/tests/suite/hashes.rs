//! Values in Arrow's layout get the same hashes as single values, and bad offsets are errors.

use blocked_bloom::{Filter, HashError};
use blocked_bloom_split::{SplitBlockFilter, hash_offsets, hash_value};

#[test]
fn values_by_offsets_have_the_hashes_of_single_ones() {
    // Every length up to 300: the hash function runs with and without its loop over 32 bytes.
    let bytes: Vec<u8> =
        (0..45_150_u32).map(|i| (i.wrapping_mul(0x9e37_79b9) >> 24) as u8).collect();
    let offsets: Vec<u32> = (0..301).map(|i| i * (i.max(1) - 1) / 2).collect();
    let values = |range: std::ops::Range<usize>| -> Vec<u64> {
        let value = |i| &bytes[offsets[i] as usize..offsets[i + 1] as usize];
        range.map(|i| hash_value(value(i))).collect()
    };
    let mut hashes = vec![0; 300];
    hash_offsets(&bytes, &offsets, &mut hashes).unwrap();
    assert_eq!(hashes, values(0..300));
    // A slice of the column, selected by a slice of its offsets, of other types.
    let part: Vec<i64> = offsets[100..=200].iter().map(|&offset| offset.into()).collect();
    hash_offsets(&bytes, &part, &mut hashes[..100]).unwrap();
    assert_eq!(hashes[..100], values(100..200));
    let part: Vec<usize> = part.iter().map(|&offset| offset as usize).collect();
    hash_offsets(&bytes, &part, &mut hashes[..100]).unwrap();
    assert_eq!(hashes[..100], values(100..200));

    let mut filter = SplitBlockFilter::new(300, 0.01).unwrap();
    filter.insert_hashes(&hashes);
    let texts = (100..200).map(|i| &bytes[offsets[i] as usize..offsets[i + 1] as usize]);
    assert!(texts.into_iter().all(|text| filter.contains(text)));
}

#[test]
fn bad_offsets_are_errors_and_nothing_is_written() {
    let mut hashes = [7; 3];
    for (offsets, index, least) in [
        ([-1_i64, 0, 1, 2], 0, 0),
        ([10, 10, 10, 10], 0, 0),
        ([0, 5, 4, 6], 2, 5),
        ([0, 5, 6, i64::MIN], 3, 6),
        ([0, 5, 6, 10], 3, 6),
        ([0, i64::MAX, 6, 9], 1, 0),
    ] {
        let offset = offsets[index].into();
        let error = Err(HashError::Offset { index, offset, least, most: 9 });
        assert_eq!(hash_offsets(b"012345678", &offsets, &mut hashes), error);
    }
    let most = hash_offsets(b"012345678", &[0, 9, u128::MAX, 9], &mut hashes);
    let error = HashError::Offset { index: 2, offset: i128::MAX, least: 9, most: 9 };
    assert_eq!(most, Err(error));
    for count in [0, 1, 3, 5] {
        let (offsets, keys) = (vec![0_i32; count], count.saturating_sub(1));
        let error = Err(HashError::Length { hashes: 3, keys });
        assert_eq!(hash_offsets(b"", &offsets, &mut hashes), error);
    }
    assert_eq!(hashes, [7; 3]);
    assert_eq!(hash_offsets::<i32>(b"abc", &[], &mut []), Ok(()));
    assert_eq!(hash_offsets(b"abc", &[3_i32], &mut []), Ok(()));
    assert_eq!(hash_offsets(b"", &[0_i32, 0, 0, 0], &mut hashes), Ok(()));
    assert_eq!(hashes, [hash_value(""); 3]);
}
