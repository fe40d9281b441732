//! The stored bytes: they are read back, every damage is rejected, and `docs/format.md` describes
//! them.

use crate::common::{Random, filled, kernels};
use blocked_bloom::parts::HeaderError;
use blocked_bloom::{Bitmask, BloomFilter, FormatError, KeyHash, Sizing};
use xxhash_rust::xxh3::xxh3_64;

/// Filters of every kind, small enough for exhaustive damage.
fn specimens() -> Vec<Vec<u8>> {
    let empty = |key_hash| {
        BloomFilter::with_params(Sizing::BitsPerKey(10.0).params(40).unwrap(), key_hash).unwrap()
    };
    let mut caller = empty(KeyHash::Caller { tag: 0xfeed });
    caller.insert_hash(0x0123_4567_89ab_cdef).unwrap();
    vec![
        empty(KeyHash::default()).to_bytes(),
        caller.to_bytes(),
        BloomFilter::pass_all(KeyHash::Xxh3 { seed: 7 }).to_bytes(),
        filled(1, 1, 1).0.to_bytes(),
        filled(5, 30, 2).0.to_bytes(),
    ]
}

/// Corrects both checksums, as a hostile or faulty writer would.
fn seal(bytes: &mut [u8]) {
    let sum = xxh3_64(&bytes[64..]);
    bytes[48..56].copy_from_slice(&sum.to_le_bytes());
    let sum = xxh3_64(&bytes[..56]);
    bytes[56..64].copy_from_slice(&sum.to_le_bytes());
}

#[test]
fn filters_read_back_as_they_were_written() {
    let mut random = Random(1);
    for blocks in [1, 2, 33, 1_000] {
        for probes in [1, 6, 13, 30] {
            let (filter, keys) = filled(blocks, probes, random.next());
            let bytes = filter.to_bytes();
            assert_eq!(bytes.len() as u64, filter.params().stored_bytes());
            #[cfg(feature = "std")]
            {
                let mut written = Vec::new();
                assert_eq!(filter.write_to(&mut written).unwrap(), bytes.len() as u64);
                assert_eq!(written, bytes);
            }

            for opened in
                [BloomFilter::from_bytes_any_hash, BloomFilter::from_bytes_trusted_any_hash]
            {
                let view = opened(&bytes).unwrap();
                assert_eq!(view, filter.view());
                assert_eq!(view.key_hash(), KeyHash::default());
                assert_eq!(view.params(), filter.params());
                assert_eq!(view.keys_inserted(), keys.len() as u64);
                assert_eq!(view.to_bytes(), bytes);
                assert!(keys.iter().all(|&key| view.contains_hash(key)));
                assert_eq!(view.to_filter().unwrap(), filter);
            }
            let shared = BloomFilter::from_bytes_any_hash(bytes.clone()).unwrap();
            assert_eq!(shared.view(), filter.view());
            assert_eq!(shared.into_inner(), bytes);
        }
    }
}

#[test]
fn every_truncation_and_extension_is_refused() {
    for bytes in specimens() {
        for length in 0..bytes.len() {
            let error = BloomFilter::from_bytes_any_hash(&bytes[..length]).unwrap_err();
            match error {
                FormatError::Header(HeaderError::TooShort { found }) => {
                    assert!(found == length as u64 && length < 64);
                }
                FormatError::Header(HeaderError::Length { found, expected }) => {
                    assert_eq!((found, expected), (length as u64, bytes.len() as u64));
                    assert!(length >= 64 && error.to_string().contains("truncated"));
                }
                ref other => panic!("{length} bytes: {other}"),
            }
            assert_eq!(error.offset(), length as u64);
            assert_eq!(
                BloomFilter::from_bytes_trusted_any_hash(&bytes[..length]).as_ref(),
                Err(&error)
            );
            assert_eq!(BloomFilter::from_bytes_any_hash(&bytes[..length]).unwrap_err(), error);
        }
        for extra in [1, 63, 64, 1_000] {
            let mut longer = bytes.clone();
            longer.resize(bytes.len() + extra, 0);
            let error = BloomFilter::from_bytes_any_hash(&longer).unwrap_err();
            assert!(
                matches!(error, FormatError::Header(HeaderError::Length { .. })),
                "{extra} more: {error}"
            );
            assert_eq!(error.offset(), bytes.len() as u64);
            assert!(error.to_string().contains("followed by other bytes"));
        }
    }
}

/// A checksum covers all bytes of filters of any size.
#[test]
fn damage_behind_the_first_mebibyte_is_refused() {
    let params = Sizing::MaxBytes(5 << 20).params(1_000_000).unwrap();
    let bytes = BloomFilter::with_params(params, KeyHash::default()).unwrap().to_bytes();
    assert_eq!(bytes[48..56], xxh3_64(&bytes[64..]).to_le_bytes());
    let ends = (1_usize..=5).flat_map(|mebibytes| {
        (-1_i64..=1).map(move |by| (mebibytes << 20).wrapping_add_signed(by as isize))
    });
    for at in ends.chain([3_000_000, bytes.len() - 1]).filter(|&at| at < bytes.len()) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        let error = BloomFilter::from_bytes_any_hash(&damaged).expect_err("a flipped bit");
        let is_body = matches!(error, FormatError::Header(HeaderError::BodyChecksum { .. }));
        assert!(is_body, "{at}: {error}");
    }
}

#[test]
fn every_flipped_bit_is_refused() {
    for bytes in specimens() {
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let error = BloomFilter::from_bytes_any_hash(&damaged).expect_err("a flipped bit");
            let expected = match (bit / 8, &error) {
                (0..8, FormatError::Header(HeaderError::Magic { found, expected })) => {
                    found[..] == damaged[..8] && expected[..] == bytes[..8]
                }
                (8..10, FormatError::Header(HeaderError::Version { supported, .. })) => {
                    *supported == 1
                }
                (10..64, FormatError::Header(HeaderError::Checksum { .. })) => true,
                (at @ 64.., FormatError::Header(HeaderError::Field { offset, found, .. })) => {
                    bytes[13] == 5 && *offset == at as u64 && *found == u64::from(damaged[at])
                }
                (64.., FormatError::Header(HeaderError::BodyChecksum { offset, .. })) => {
                    bytes[13] != 5 && *offset == 48
                }
                _ => false,
            };
            assert!(expected, "bit {bit}: {error}");
            // Only the header is still verified, as documented.
            let trusted = BloomFilter::from_bytes_trusted_any_hash(&damaged);
            let unread = bit / 8 >= 64 && bytes[13] != 5;
            assert_eq!(trusted.is_ok(), unread, "bit {bit}");
        }
    }
}

#[test]
fn every_value_of_every_header_byte_is_a_filter_or_an_error_that_says_where() {
    let bytes = filled(3, 6, 2).0.to_bytes();
    for at in 0..48 {
        for value in 0..=255 {
            let mut changed = bytes.clone();
            changed[at] = value;
            seal(&mut changed);
            let opened = BloomFilter::from_bytes_any_hash(&changed);
            let legal = match at {
                0..11 => value == bytes[at],
                11 => value <= 1,
                12 => (1..=30).contains(&value),
                13 => value == 1,
                14..16 | 28..32 | 40..48 => value == 0,
                16..24 | 32..40 => true,
                _ => value == bytes[at],
            };
            match opened {
                Ok(view) => {
                    assert!(legal, "byte {at} = {value}");
                    assert_eq!(view.to_bytes(), changed);
                }
                Err(error) => {
                    assert!(!legal, "byte {at} = {value}: {error}");
                    let field = match at {
                        0..8 => 0,
                        8..10 => 8,
                        // Pass-all with three blocks, and a number of blocks that requires another
                        // length.
                        13 if value == 5 => 12,
                        // Prefixes without an extractor.
                        13 if value == 2 || value == 3 => 40,
                        24 if value == 0 => 24,
                        24..28 => {
                            let mut count = [3, 0, 0, 0];
                            count[at - 24] = value;
                            (64 + 64 * u64::from(u32::from_le_bytes(count))).min(bytes.len() as u64)
                        }
                        _ => at as u64,
                    };
                    assert_eq!(error.offset(), field, "byte {at} = {value}: {error}");
                    let text = error.to_string();
                    assert!(text.starts_with(&format!("offset {field}: ")), "{text}");
                    // The text has the value of a field of one byte.
                    if (10..16).contains(&at) && field == at as u64 {
                        assert!(text.contains(&format!(" {value} (")), "{text}");
                    }
                }
            }
        }
    }
}

#[test]
fn sealed_lies_are_named() {
    let bytes = filled(1, 1, 2).0.to_bytes();
    let open_with = |at: usize, value: u8| {
        let mut changed = bytes.clone();
        changed[at] = value;
        seal(&mut changed);
        BloomFilter::from_bytes_any_hash(&changed).err()
    };
    for (at, value, text) in [
        (10, 2, "offset 10: unsupported probe scheme 2 (supported: 1)"),
        (11, 2, "offset 11: unsupported hash 2 (supported: 0 and 1)"),
        (12, 0, "offset 12: number of probes 0 (allowed: 1 to 30)"),
        (12, 31, "offset 12: number of probes 31 (allowed: 1 to 30)"),
        (13, 0, "offset 13: flags 0 (allowed: 1, 2, 3 and 5)"),
        (13, 3, "offset 40: extractor 0 (must not be 0 in a filter of prefixes)"),
        (13, 7, "offset 13: flags 7 (allowed: 1, 2, 3 and 5)"),
        (15, 9, "offset 15: reserved byte 9 (must be 0)"),
        (24, 0, "offset 24: number of blocks 0 (allowed: 1 to 4294967295)"),
    ] {
        let error = open_with(at, value).unwrap();
        assert_eq!(error.to_string(), text);
        let FormatError::Header(HeaderError::Field { offset, found, .. }) = error else {
            panic!("{error:?}");
        };
        let found_expected = if offset == 40 { 0 } else { u64::from(value) };
        assert_eq!((offset, found), (error.offset(), found_expected));
    }
    let length = |found, expected| FormatError::Header(HeaderError::Length { found, expected });
    assert_eq!(open_with(24, 2), Some(length(128, 192)));
    // A huge number of blocks allocates nothing: 2^32 - 1 blocks in 128 bytes.
    let mut absurd = bytes.clone();
    absurd[24..28].fill(0xff);
    seal(&mut absurd);
    let expected = 64 + 64 * u64::from(u32::MAX);
    assert_eq!(BloomFilter::from_bytes_any_hash(&absurd), Err(length(128, expected)));
    let mut pass_all = BloomFilter::pass_all(KeyHash::default()).to_bytes();
    pass_all[12] = 2;
    seal(&mut pass_all);
    let field = |error: FormatError| match error {
        FormatError::Header(HeaderError::Field { offset, found, .. }) => (offset, found),
        other => panic!("{other}"),
    };
    assert_eq!(BloomFilter::from_bytes_any_hash(&pass_all).map_err(field), Err((12, 2)));
    let mut wide = BloomFilter::pass_all(KeyHash::default()).to_bytes();
    wide[24] = 2;
    wide.extend([0xff; 64]);
    seal(&mut wide);
    assert_eq!(BloomFilter::from_bytes_any_hash(&wide).map_err(field), Err((24, 2)));
    // With or without correct checksums, a pass-all filter has a block of ones or is rejected, even
    // when it is trusted.
    let mut holed = BloomFilter::pass_all(KeyHash::default()).to_bytes();
    holed[100] = 0xfe;
    seal(&mut holed);
    for open in [BloomFilter::from_bytes_any_hash, BloomFilter::from_bytes_trusted_any_hash] {
        assert_eq!(open(&holed).map_err(field), Err((100, 0xfe)));
    }
}

#[test]
fn sealed_mutations_open_by_the_probe_scheme_or_not_at_all() {
    let kernels = kernels();
    let mut random = Random(11);
    let mut hits = Bitmask::new();
    let hashes = random.hashes(200);
    let mut opened = 0;
    for _ in 0..10_000 {
        let mut bytes =
            filled(1 + random.next() as u32 % 4, 1 + random.next() as u32 % 30, 3).0.to_bytes();
        for _ in 0..=random.next() % 4 {
            let at = random.next() as usize % bytes.len();
            bytes[at] = random.next() as u8;
        }
        seal(&mut bytes);
        let Ok(view) = BloomFilter::from_bytes_any_hash(&bytes) else {
            continue;
        };
        opened += 1;
        for &kernel in &kernels {
            view.with_kernel(kernel).contains_hashes(&hashes, &mut hits);
            for (i, &hash) in hashes.iter().enumerate() {
                assert_eq!(hits.get(i), Some(view.contains_hash(hash)));
            }
        }
        assert_eq!(view.to_bytes(), bytes);
    }
    assert!(opened > 2_000, "{opened} mutations opened");
}

/// The pass-all filter must not depend on the rejected bytes.
#[test]
fn unusable_filters_answer_maybe_and_report_the_reason() {
    let expected = KeyHash::default();
    let keys: Vec<[u8; 4]> = (0..100_u32).map(u32::to_le_bytes).collect();
    let mut hits = Bitmask::new();
    let mut check = |bytes: &[u8], error: Option<FormatError>| {
        let (view, found) = BloomFilter::open_or_pass_all(bytes, expected);
        let (owned, found_too) = BloomFilter::open_or_pass_all(bytes.to_vec(), expected);
        assert_eq!((&found, &found_too), (&error, &error));
        assert_eq!(owned, view);
        assert_eq!(owned.clone().into_inner(), bytes);
        assert_eq!(view.key_hash(), expected);
        if error.is_none() {
            assert_eq!(view.to_bytes(), bytes);
        } else {
            let scalar = owned.clone().with_kernel(kernels()[kernels().len() - 1]);
            for filter in [view.view(), owned.view(), scalar.view()] {
                assert!(filter.is_pass_all());
                filter.contains_batch(&keys, &mut hits);
                assert_eq!(hits.count_hits(), 100);
            }
        }
    };
    for bytes in specimens() {
        let opened = BloomFilter::from_bytes_any_hash(&bytes).unwrap();
        let found = opened.key_hash();
        let mismatch = HeaderError::HashMismatch { offset: 11, found, expected };
        check(&bytes, (found != expected).then_some(mismatch.into()));
        for length in (0..bytes.len()).step_by(7) {
            check(&bytes[..length], BloomFilter::from_bytes(&bytes[..length], expected).err());
        }
        for at in (0..bytes.len()).step_by(5) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            check(&damaged, BloomFilter::from_bytes(&damaged, expected).err());
        }
    }
}

#[test]
fn arbitrary_bytes_are_refused() {
    let mut random = Random(10);
    for length in (0..300).chain([4_096, 100_000]) {
        let mut bytes: Vec<u8> = (0..length).map(|_| random.next() as u8).collect();
        assert!(BloomFilter::from_bytes_any_hash(&bytes).is_err());
        bytes.fill(0);
        assert!(BloomFilter::from_bytes_any_hash(&bytes).is_err());
    }
}

/// A writer that fails after some bytes, like a full disk.
#[cfg(feature = "std")]
struct FullDisk(usize);

#[cfg(feature = "std")]
impl std::io::Write for FullDisk {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.0 == 0 {
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        let taken = bytes.len().min(self.0);
        self.0 -= taken;
        Ok(taken)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(feature = "std")]
#[test]
fn a_writer_that_fails_is_reported() {
    let (filter, _) = filled(3, 6, 2);
    let length = filter.to_bytes().len();
    for room in 0..length {
        let error = filter.write_to(FullDisk(room)).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
    }
    assert_eq!(filter.write_to(FullDisk(length)).unwrap(), length as u64);
}

/// Reads the header table of the document and checks each row against a filter's bytes.
#[test]
fn the_document_matches_the_code() {
    let document = include_str!("../../docs/format.md");
    let (_, header) = document.split_once("## Header").unwrap();
    let rows: Vec<(usize, usize, &str, &str)> = header
        .lines()
        .take_while(|line| *line != "## Containers")
        .filter_map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            let [offset, bytes, field, value] = cells[..] else {
                return None;
            };
            Some((offset.parse().ok()?, bytes.parse().ok()?, field, value))
        })
        .collect();
    assert_eq!(rows.len(), 14);

    let seed = 0x0102_0304_0506_0708;
    let params = Sizing::BitsPerKey(10.0).params(1_000).unwrap();
    let mut filter = BloomFilter::with_params(params, KeyHash::Xxh3 { seed }).unwrap();
    filter.insert_hashes(&Random(1).hashes(700)).unwrap();
    let bytes = filter.to_bytes();
    let mut end = 0;
    for (offset, length, field, value) in rows {
        assert_eq!(offset, end, "{field} begins where the field before it ends");
        end = offset + length;
        let mut found = [0; 8];
        found[..length].copy_from_slice(&bytes[offset..end]);
        let found = u64::from_le_bytes(found);
        match field {
            "magic" => {
                let hex: Vec<String> =
                    bytes[..8].iter().map(|byte| format!("{byte:02x}")).collect();
                assert_eq!(value, format!("`{}`", hex.join(" ")));
            }
            "version" | "probe scheme" => assert_eq!(found.to_string(), value),
            "hash" => assert!(found == 1 && value.ends_with("1 = XXH3-64")),
            "probes" => assert!(found == u64::from(params.probes()) && value == "`k`, 1 to 30"),
            "flags" => assert_eq!(found, 1),
            "extractor" => assert_eq!(found, 0),
            "zero" => assert!(found == 0 && value.starts_with('0')),
            "seed" => assert_eq!(found, seed),
            "block count" => assert_eq!(found, u64::from(params.blocks())),
            "keys inserted" => assert_eq!(found, 700),
            "checksum of the blocks" => assert_eq!(found, xxh3_64(&bytes[64..])),
            "checksum of the header" => assert_eq!(found, xxh3_64(&bytes[..56])),
            other => panic!("unknown field {other}"),
        }
    }
    assert_eq!(end, 64);
    assert!(document.contains("G = 0x9e3779b9") && blocked_bloom::probe::MULTIPLIER == 0x9e37_79b9);
}
