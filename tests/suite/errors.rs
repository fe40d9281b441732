//! The texts of errors: their values, their offsets, and their sources. The tests provoke each
//! error through the public interface, except for failing memory and 2^32 partitions, whose errors
//! are constructed.

use std::error::Error;

use crate::common::{empty, filled};
use blocked_bloom::parts::{Header, HeaderError, check_words};
use blocked_bloom::{
    AllocError, BloomFilter, BuildError, Filter, FilterContents, FilterOptions, FormatError,
    KeyError, KeyHash, ParamsError, PrefixExtractor, Sizing,
};
use xxhash_rust::xxh3::xxh3_64;

/// Catches a text without its value, an empty text, and a broken chain of sources.
fn check(error: impl Error + 'static, text: &str, source: Option<&str>) {
    let error: Box<dyn Error> = Box::new(error);
    assert_eq!(error.to_string(), text);
    assert_eq!(error.source().map(ToString::to_string), source.map(String::from), "{text}");
}

/// Checks the start of the text. The rest is advice, which may change.
fn begins(error: impl Error, start: &str) {
    assert!(error.to_string().starts_with(start), "{error}: not {start}");
    assert!(error.source().is_none(), "{error}");
}

const TEN: Sizing = Sizing::BitsPerKey(10.0);
const OPTIONS: FilterOptions = FilterOptions::new(TEN);
const ALLOC: AllocError = AllocError::new(640);
const CALLER: KeyHash = KeyHash::Caller { tag: 5 };
const ALLOCATION_FAILED: &str = "no memory for 640 bytes";
const PROBES: &str = "31 probes: must be 1 to 30";
const SCHEME: &str = "offset 10: unsupported probe scheme 9 (supported: 1)";

fn params_error() -> ParamsError {
    TEN.params(100).unwrap().with_probes(31).unwrap_err()
}

fn key_error() -> KeyError {
    CALLER.hasher().unwrap_err()
}

/// A stored filter with a changed byte in its header and corrected checksums.
fn forged(mut bytes: Vec<u8>, at: usize, value: u8) -> Vec<u8> {
    bytes[at] = value;
    seal(&mut bytes);
    bytes
}

fn seal(bytes: &mut [u8]) {
    let body = xxh3_64(&bytes[64..]);
    bytes[48..56].copy_from_slice(&body.to_le_bytes());
    let header = xxh3_64(&bytes[..56]);
    bytes[56..64].copy_from_slice(&header.to_le_bytes());
}

fn open_error(bytes: &[u8]) -> FormatError {
    BloomFilter::from_bytes_any_hash(bytes).unwrap_err()
}

#[test]
fn sizing() {
    check(params_error(), PROBES, None);
    let error = |sizing: Sizing, keys| sizing.params(keys).unwrap_err();
    begins(error(Sizing::BitsPerKey(100.5), 1), "100.5 bits per key: must be 0 to 100");
    begins(error(Sizing::BitsPerKey(-1.0), 1), "-1 bits per key: must be 0 to 100");
    begins(
        error(Sizing::FalsePositiveRate(1.5), 1),
        "false-positive rate 1.5: must be above 0 and at most 1",
    );
    let text = "false-positive rate 1e-30 is too low: with 100 bits per key it is ";
    begins(error(Sizing::FalsePositiveRate(1e-30), 1_000_000), text);
    let unreachable = error(Sizing::FalsePositiveRate(1e-9), 200_000_000_000);
    assert!(matches!(unreachable, ParamsError::RateUnreachable { needs_partition: true, .. }));
    let text = "false-positive rate 1e-9 is too low: with 4294967295 blocks it is ";
    begins(unreachable, text);
    begins(
        error(Sizing::MaxBytes(127), 1),
        "127 bytes cannot hold a filter: the smallest takes 128",
    );
    let text = "5368709120 blocks, at most 4294967295 allowed: ";
    begins(error(Sizing::BitsPerKey(64.0), 5 << 33), text);
    let none = BloomFilter::from_blocks(&[], 6, CALLER).unwrap_err();
    begins(none, "0 blocks: a filter has at least 1");
    check(ALLOC, ALLOCATION_FAILED, None);
    assert_eq!(ALLOC.bytes, 640);
    // Numbers of any size print in short form.
    let huge = "1e300 bits per key: must be 0 to 100";
    begins(error(Sizing::BitsPerKey(1e300), 1), huge);
    begins(error(Sizing::FalsePositiveRate(-1e-300), 1), "false-positive rate -1e-300: ");
    assert_eq!(Sizing::BitsPerKey(1e300).to_string(), "1e300 bits/key");
    assert_eq!(Sizing::FalsePositiveRate(1e-9).to_string(), "a false-positive rate of 1e-9");
}

#[test]
fn keys_and_building() {
    let tagged = "the filter is of the caller's hash with tag 5 and cannot hash keys: ";
    begins(key_error(), tagged);
    let rule = PrefixExtractor::fixed(4);
    let prefixes = OPTIONS.with_prefixes(rule.clone());
    let no_prefix = prefixes.builder().insert_hash(77).unwrap_err();
    assert_eq!(no_prefix, KeyError::NoPrefix { contents: prefixes.contents() });
    let id = rule.id();
    begins(
        no_prefix,
        &format!("the filter holds whole keys and prefixes by extractor {id:016x}, and"),
    );
    let only = OPTIONS.with_only_prefixes(rule).builder().insert_hash(77).unwrap_err();
    begins(
        only,
        &format!(
            "the filter holds prefixes by extractor {id:016x}, and a hash alone has no prefix: "
        ),
    );

    let params = OPTIONS.with_probes(31).builder().finish().unwrap_err();
    assert_eq!(params, params_error().into());
    check(params, PROBES, Some(PROBES));
    check(BuildError::from(ALLOC), ALLOCATION_FAILED, Some(ALLOCATION_FAILED));
    let text = no_prefix.to_string();
    check(prefixes.empty_filter(1).unwrap_err(), &text, Some(&text));
    let mut builder = OPTIONS.with_memory_limit(9).builder();
    (0..8).for_each(|hash| builder.insert_hash(hash).unwrap());
    let limit = builder.finish().unwrap_err();
    begins(limit, "the hashes of 8 keys do not fit the limit of 9 bytes");
    // Tests cannot provoke failing memory.
    let changed = BuildError::HashesChanged { expected: 1, found: 2 };
    assert!(changed.to_string().contains("is 0x0000000000000002, expected 0x0000000000000001"));
    begins(changed, "hashes changed in memory before they were inserted: ");
    let missing = BuildError::KeysMissing { missing: 2, keys: 7 };
    begins(missing, "the finished filter misses 2 of 7 keys");
}

#[test]
fn results_of_the_wrong_length() {
    let (filter, _) = filled(2, 6, 1);
    let error = filter.contains_hashes_into(&[1; 130], &mut [0; 2]).unwrap_err();
    assert_eq!((error.words, error.expected), (2, 3));
    begins(error, "2 words for the answers, expected 3: pass one word per 64 keys");
    assert_eq!(check_words(130, &[0; 2]), Err(error));
}

#[test]
fn folding_and_merging() {
    for (blocks, divisor, text) in [
        (6, 4, "4 is not a divisor of 6, the number of blocks: fold by 3 or 6"),
        (1, 2, "2 is not a divisor of 1, the number of blocks: fold by 1"),
    ] {
        check(empty(blocks, 3).folded(divisor).unwrap_err(), text, Some(text));
    }

    let merge =
        |left: &BloomFilter, right: &BloomFilter| left.clone().union_with(right).unwrap_err();
    let shaped = |blocks, probes| filled(blocks, probes, 1).0;
    for [left, right] in [[(1, 6), (2, 6)], [(2, 6), (1, 6)], [(4, 1), (4, 2)], [(4, 2), (4, 1)]] {
        let text = format!(
            "filters of different shapes ({} and {} blocks, {} and {} probes): ",
            left.0, right.0, left.1, right.1
        );
        let error = merge(&shaped(left.0, left.1), &shaped(right.0, right.1));
        begins(error, &format!("cannot merge {text}"));
    }
    let seeded = BloomFilter::pass_all(KeyHash::Xxh3 { seed: 9 }).to_filter().unwrap();
    let text = "cannot merge a filter of XXH3-64 with seed 0 with one of XXH3-64 with seed 9";
    begins(merge(&shaped(4, 6), &seeded), text);
    let mut builder = OPTIONS.with_only_prefixes(PrefixExtractor::fixed(1)).builder();
    builder.insert("a").unwrap();
    let prefixes = builder.finish().unwrap();
    let extractor = PrefixExtractor::fixed(1).id();
    assert_eq!(prefixes.contents(), FilterContents::Prefixes { extractor });
    let text = format!(
        "cannot merge a filter of whole keys with one of prefixes by extractor {extractor:016x}: "
    );
    begins(merge(&shaped(1, 6), &prefixes), &text);

    let (a, b) = (shaped(40, 6), shaped(41, 6));
    let text = "cannot merge filters of different shapes (40 and 41 blocks, 6 and 6 probes): create \
                both with the same Params";
    check(merge(&a, &b), text, None);
    let all = BloomFilter::pass_all(KeyHash::default()).to_filter().unwrap();
    let text = "merging a pass-all filter would make the result pass-all: ";
    begins(merge(&a, &all), text);
}

#[test]
fn headers() {
    const MAGIC: [u8; 8] = *b"\x89BBTEST\n";
    let mut header = Header::new(MAGIC, 1);
    header.put(20, &[9]);
    header.put_body_checksum(40, b"body");
    let sealed = header.seal();
    let read = |bytes: &[u8]| Header::read(bytes, MAGIC, 1).unwrap_err();
    let with = |at: usize| {
        let mut bytes = sealed;
        bytes[at] ^= 1;
        bytes
    };
    check(read(&sealed[..63]), "offset 63: the bytes end, expected a header of 64 bytes", None);
    begins(
        read(&with(0)),
        "offset 0: magic [88, 42, 42, 54, 45, 53, 54, 0a], expected [89, 42, 42, 54, 45, 53, 54, 0a]: ",
    );
    begins(read(&with(9)), "offset 8: unsupported version 257 (supported: 1): ");
    let (stored, computed) = (xxh3_64(&sealed[..56]), xxh3_64(&with(30)[..56]));
    let text = format!("offset 56: header checksum {stored:016x}, expected {computed:016x}: ");
    begins(read(&with(30)), &text);

    let header = Header::read(&sealed, MAGIC, 1).unwrap();
    check(header.check_zero(16..24).unwrap_err(), "offset 20: reserved byte 9 (must be 0)", None);
    let error = header.key_hash_at(20, 24, None).unwrap_err();
    check(error, "offset 20: unsupported hash 9 (supported: 0 and 1)", None);
    assert_eq!(header.check_body(40, b"body"), Ok(()));
    let (stored, computed) = (xxh3_64(b"body"), xxh3_64(b"bodY"));
    let text = format!("offset 40: checksum {stored:016x}, expected {computed:016x}: ");
    begins(header.check_body(40, b"bodY").unwrap_err(), &text);
    for (found, text) in [
        (127, "offset 127: 127 bytes in all, expected 128: truncated"),
        (129, "offset 128: 129 bytes in all, expected 128: followed by other bytes"),
    ] {
        check(Header::check_length(found, 128).unwrap_err(), text, None);
    }
    let (field, expected) = ("rate", "allowed: above 0");
    let number = HeaderError::Number { offset: 24, field, found: -0.5, expected };
    check(number, "offset 24: rate -0.5 (allowed: above 0)", None);
    assert_eq!(Header::check_length(128, 128), Ok(()));
}

#[test]
fn stored_filters() {
    let stored = filled(1, 6, 1).0.to_bytes();
    let scheme = open_error(&forged(stored.clone(), 10, 9));
    assert_eq!(scheme.offset(), 10);
    check(scheme, SCHEME, Some(SCHEME));
    let text = "offset 127: 127 bytes in all, expected 128: truncated";
    check(open_error(&stored[..127]), text, Some(text));
    let mismatch = BloomFilter::from_bytes(&stored, CALLER).unwrap_err();
    let text = "offset 11: built with XXH3-64 with seed 0, expected the caller's hash with tag 5: \
                pass the hash that built it";
    check(mismatch, text, Some(text));

    let all = BloomFilter::pass_all(CALLER).to_bytes();
    let text = "offset 12: number of probes 2 (must be 1 in a pass-all filter)";
    check(open_error(&forged(all.clone(), 12, 2)), text, Some(text));
    let text = "offset 100: byte of the block 14 (must be 255 in a pass-all filter)";
    check(open_error(&forged(all, 100, 0x0e)), text, Some(text));
}

#[test]
fn names_of_extractors() {
    let error = "fixed:04".parse::<PrefixExtractor>().unwrap_err();
    assert_eq!(error.name, "fixed:04");
    begins(error, "unknown prefix rule \"fixed:04\": use fixed:BYTES, capped:BYTES or delimiter:");
}
