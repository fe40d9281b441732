//! Damaged input never causes a panic, and never makes an added key absent if a checksum could
//! detect the damage.

use blocked_bloom_inspect::{Error, Format, LookupOptions, Opened};

use crate::stored::{StoredFilter, all_filters, format_of};

/// Does everything with bytes that may be damaged, and returns the answers, if any.
fn exercise(stored: &StoredFilter, bytes: &[u8], options: &LookupOptions) -> Option<Vec<bool>> {
    format_of(&stored.name, bytes);
    let opened = stored.open_bytes(bytes).ok()?;
    let facts = opened.describe();
    assert!(!facts.rows.is_empty());
    (0..opened.parts().min(3)).for_each(|part| _ = opened.block_loads(part));
    let keys: Vec<&[u8]> = stored.lookups[0].1.iter().map(|(key, _)| &key[..]).collect();
    let lookup = opened.lookup(options).ok()?;
    assert!(facts.damage.is_none() || stored.format == Format::PARQUET, "{}", stored.name);
    _ = opened.probes(keys[0], options);
    lookup.contains(&keys).ok()
}

/// Returns how many damaged filters were opened, and how many rejected.
pub(crate) fn check_flipped_bits(filters: &[StoredFilter]) -> (usize, usize) {
    let (mut opened, mut rejected) = (0, 0);
    for stored in filters {
        let (options, answers) = &stored.lookups[0];
        let sound = exercise(stored, &stored.bytes, options).unwrap();
        // Heads, ends and some bytes between them.
        let length = stored.bytes.len();
        let ends = (0..length.min(80)).chain(length.saturating_sub(120)..length);
        for at in ends.chain((0..length).step_by(length / 100 + 1)) {
            let mut bytes = stored.bytes.clone();
            bytes[at] ^= 1 << (7 * at % 8);
            let Some(found) = exercise(stored, &bytes, options) else {
                rejected += 1;
                continue;
            };
            opened += 1;
            if stored.has_checksums() {
                for (((key, _), sound), found) in answers.iter().zip(&sound).zip(found) {
                    assert!(found || !sound, "{}, byte {at}: {key:?}", stored.name);
                }
            }
        }
    }
    (opened, rejected)
}

#[test]
fn flipped_bits_lose_no_key_where_there_are_checksums() {
    let (opened, rejected) = check_flipped_bits(&all_filters());
    assert!(opened > 1_000 && rejected > 1_000, "{opened} opened, {rejected} rejected");
}

/// Formats whose bytes determine their length. Filter blocks and the compact form do not: any file
/// with the right end is one.
fn knows_its_length(format: Format) -> bool {
    ![Format::ROCKSDB_BLOCK, Format::COMPACT].contains(&format)
}

/// Returns how many truncated filters were rejected.
pub(crate) fn check_truncated(filters: &[StoredFilter]) -> usize {
    let mut truncated = 0;
    for stored in filters {
        let (options, _) = &stored.lookups[0];
        let length = stored.bytes.len();
        for end in (0..length).step_by(length / 150 + 1).chain([length - 1]) {
            let found = exercise(stored, &stored.bytes[..end], options);
            // Cassandra accepts an empty file as a pass-all filter.
            let is_empty = stored.format == Format::CASSANDRA && end == 0;
            if knows_its_length(stored.format) && !is_empty {
                assert_eq!(found, None, "{}, {end} of {length} bytes", stored.name);
                truncated += 1;
            }
            if is_empty {
                assert!(found.unwrap().into_iter().all(|hit| hit));
            }
        }
    }
    truncated
}

#[test]
fn a_truncated_filter_is_an_error() {
    let truncated = check_truncated(&all_filters());
    assert!(truncated > 3_000, "{truncated}");
}

/// A native or removable filter with damaged blocks and an intact header is described, but not
/// looked up.
#[test]
fn damaged_blocks_are_described_and_not_looked_up() {
    for stored in &all_filters() {
        if ![Format::NATIVE, Format::REMOVABLE].contains(&stored.format) {
            continue;
        }
        let mut bytes = stored.bytes.clone();
        bytes[200] ^= 1;
        let opened = stored.open_bytes(&bytes).unwrap();
        let facts = opened.describe();
        let damage = facts.damage.unwrap();
        assert!(matches!(damage, Error::Damaged { .. }), "{damage}");
        assert_eq!(opened.lookup(&LookupOptions::default()).unwrap_err(), damage);
        assert!(facts.rows.iter().any(|(_, value)| value.starts_with("DAMAGED")));
        assert_eq!(opened.block_loads(0), None);
    }
}

/// Random bytes, read as each format.
#[test]
fn noise_is_no_filter() {
    let mut state = 1_u64;
    let mut noise = || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        (state >> 56) as u8
    };
    for length in [0, 1, 4, 5, 7, 8, 12, 53, 64, 100, 1_000, 10_000] {
        let bytes: Vec<u8> = (0..length).map(|_| noise()).collect();
        for format in Format::ALL {
            let file = blocked_bloom_inspect::FileRanges::from(&bytes[..]);
            let layout = Some(blocked_bloom_inspect::Layout::Cassandra4);
            let Ok(opened) = Opened::new("noise", &file, format, layout) else { continue };
            let is_block = [Format::ROCKSDB_BLOCK, Format::COMPACT].contains(&format);
            assert!(is_block || length == 0, "{length} bytes of noise are {format}");
            opened.describe();
        }
    }
}
