//! `FileRanges`, a partially loaded file.

use blocked_bloom_formats::FileRanges;

/// Every range of a file, for pieces that are apart, adjacent, equal, one in another, and past the
/// end, inserted in several orders.
#[test]
fn a_range_is_found_if_one_piece_has_all_of_it() {
    let bytes: Vec<u8> = (0..120).collect();
    let length = 100;
    let pieces: [(usize, usize); 7] =
        [(40, 50), (10, 20), (20, 30), (60, 80), (60, 70), (62, 64), (90, 120)];
    for first in 0..pieces.len() {
        let mut file = FileRanges::new(length as u64);
        for (start, end) in (0..pieces.len()).map(|i| pieces[(first + i) % pieces.len()]) {
            file.insert(start as u64, &bytes[start..end]);
        }
        assert_eq!(file.loaded(), 10 + 10 + 10 + 20 + 10 + 2 + 10);
        for start in 0..=length {
            assert_eq!(file.get(start as u64, 0), Some(&[][..]), "{start}");
            for end in start + 1..=bytes.len() {
                let is_in = |piece: &(usize, usize)| piece.0 <= start && end <= piece.1;
                let is_loaded = end <= length && pieces.iter().any(is_in);
                let expected = is_loaded.then_some(&bytes[start..end]);
                let found = file.get(start as u64, (end - start) as u64);
                assert_eq!(found, expected, "{start}..{end}, {first} first");
            }
        }
    }
}
