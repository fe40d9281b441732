//! The header codec, as other packages use it: fields that were written are read back, and other
//! headers are rejected.

use blocked_bloom::parts::{HEADER_BYTES, Header, HeaderError};
use blocked_bloom::{BloomFilter, KeyHash};
use xxhash_rust::xxh3::xxh3_64;

const MAGIC: [u8; 8] = *b"\x89BBTEST\n";

#[test]
fn fields_are_read_back_as_they_were_written() {
    for key_hash in [KeyHash::Xxh3 { seed: u64::MAX - 1 }, KeyHash::Caller { tag: 3 }] {
        let mut header = Header::new(MAGIC, 0x0102);
        header.put(10, &[7]);
        header.put(12, &0x0102_0304_u32.to_le_bytes());
        header.put(24, &0x0102_0304_0506_0708_u64.to_le_bytes());
        header.put_key_hash(11, 16, key_hash);
        header.put_body_checksum(48, b"the body");
        let sealed = header.seal();

        // Little-endian, with the checksum of all preceding bytes at the end.
        assert_eq!(sealed.len(), HEADER_BYTES);
        assert_eq!((&sealed[..8], &sealed[8..10]), (&MAGIC[..], &[2, 1][..]));
        assert_eq!((sealed[10], &sealed[12..16]), (7, &[4, 3, 2, 1][..]));
        assert_eq!(sealed[24..32], [8, 7, 6, 5, 4, 3, 2, 1]);
        assert_eq!(sealed[48..56], xxh3_64(b"the body").to_le_bytes());
        assert_eq!(sealed[56..], xxh3_64(&sealed[..56]).to_le_bytes());
        assert!(sealed[32..48].iter().all(|&byte| byte == 0));

        // The bytes after the header do not matter.
        let bytes = [&sealed[..], b"the body"].concat();
        let read = Header::read(&bytes, MAGIC, 0x0102).unwrap();
        assert_eq!((read.u8_at(10), read.u32_at(12)), (7, 0x0102_0304));
        assert_eq!(read.u64_at(24), 0x0102_0304_0506_0708);
        assert_eq!(read.key_hash_at(11, 16, None), Ok(key_hash));
        assert_eq!(read.checksum(), xxh3_64(&sealed[..56]));
        assert_eq!((read.check_zero(32..48), read.check_zero(9..9)), (Ok(()), Ok(())));
        assert_eq!(read.check_body(48, &bytes[64..]), Ok(()));
        assert_eq!(read.seal(), sealed);
    }
}

#[test]
fn every_flipped_bit_and_every_truncation_is_refused() {
    let sealed = Header::new(MAGIC, 1).seal();
    for bit in 0..512 {
        let mut damaged = sealed;
        damaged[bit / 8] ^= 1 << (bit % 8);
        let error = Header::read(&damaged, MAGIC, 1).unwrap_err();
        let expected = match bit / 8 {
            0..8 => matches!(error, HeaderError::Magic { expected: MAGIC, .. }),
            8..10 => matches!(error, HeaderError::Version { supported: 1, .. }),
            _ => matches!(error, HeaderError::Checksum { .. }),
        };
        assert!(expected, "bit {bit}: {error}");
        let field = [0, 8, 56][usize::from(bit >= 64) + usize::from(bit >= 80)];
        assert_eq!(error.offset(), field);
    }
    for length in 0..64 {
        let error = Header::read(&sealed[..length], MAGIC, 1).unwrap_err();
        assert_eq!(error, HeaderError::TooShort { found: length as u64 });
        assert_eq!(error.offset(), length as u64);
    }
}

/// The header of a filter uses this codec.
#[test]
fn the_header_of_a_filter_is_read() {
    let stored = BloomFilter::pass_all(KeyHash::Xxh3 { seed: 5 }).to_bytes();
    let header = Header::read(&stored, *b"\x89BBLOOM\n", 1).unwrap();
    assert_eq!(header.key_hash_at(11, 16, None), Ok(KeyHash::Xxh3 { seed: 5 }));
    assert_eq!((header.u8_at(12), header.u8_at(13), header.u32_at(24)), (1, 5, 1));
    assert_eq!(header.check_body(48, &stored[64..]), Ok(()));
    assert_eq!(header.seal(), stored[..64]);
}

#[cfg(panic = "unwind")]
#[test]
#[should_panic(expected = "out of range")]
fn a_field_outside_the_header_panics() {
    Header::new(MAGIC, 1).put(60, &[0; 8]);
}
