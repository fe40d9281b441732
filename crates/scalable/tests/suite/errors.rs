//! Error texts: their values and places, and their sources. Each error is provoked through the
//! public interface, except for allocation errors, which are constructed.

use std::error::Error;

use blocked_bloom::{AllocError, KeyHash, Sizing};
use blocked_bloom_scalable::{
    ScalableBloomFilter, ScalableError, ScalableFormatError, ScalableOptions,
};
use xxhash_rust::xxh3::xxh3_64;

const ALLOC: AllocError = AllocError::new(640);
const CALLER: KeyHash = KeyHash::Caller { tag: 5 };
const ALLOCATION_FAILED: &str = "no memory for 640 bytes";
const SCHEME: &str = "offset 10: unsupported probe scheme 9 (supported: 1)";

/// Detects a text without its value, an empty text, and a broken chain of sources.
fn check(error: impl Error + 'static, text: &str, source: Option<&str>) {
    assert_eq!(error.to_string(), text);
    assert_eq!(error.source().map(ToString::to_string), source.map(String::from), "{text}");
}

/// Writes a field of a header and recomputes its checksum.
fn forge(header: &mut [u8], at: usize, field: &[u8]) {
    header[at..at + field.len()].copy_from_slice(field);
    let sum = xxh3_64(&header[..56]);
    header[56..64].copy_from_slice(&sum.to_le_bytes());
}

#[test]
fn making_adding_and_merging() {
    check(ScalableError::from(ALLOC), ALLOCATION_FAILED, Some(ALLOCATION_FAILED));
    let probes = "31 probes: must be 1 to 30";
    let error = Sizing::BitsPerKey(10.0).params(100).unwrap().with_probes(31).unwrap_err();
    check(ScalableError::from(error), probes, Some(probes));
    let options = ScalableOptions::new(0.01, 10);
    let error = options.with_growth(17).build().unwrap_err();
    check(error, "growth factor 17: give 2 to 16", None);
    let error = options.with_tightening(0.99).build().unwrap_err();
    check(error, "tightening ratio 0.99: give 0.05 to 0.95", None);
    let rate = "false-positive rate 0: must be above 0 and at most 1";
    check(ScalableOptions::new(0.0, 10).build().unwrap_err(), rate, Some(rate));
    let mut caller = options.with_key_hash(CALLER).build().unwrap();
    let text = CALLER.hasher().unwrap_err().to_string();
    check(caller.insert("a key").unwrap_err(), &text, Some(&text));
    let text = "cannot merge filters with different hashes: the caller's hash with tag 5 and XXH3-64 with seed 0";
    check(caller.union_with(options.build().unwrap()).unwrap_err(), text, None);
}

#[test]
fn opening() {
    let mut filter = ScalableOptions::new(0.01, 10).build().unwrap();
    filter.insert("a key").unwrap();
    let stored = filter.to_bytes();
    let error = |bytes: &[u8]| ScalableBloomFilter::from_bytes_any_hash(bytes).unwrap_err();
    // The link follows the header.
    let mut damaged = stored.clone();
    forge(&mut damaged[64..], 10, &[9]);
    assert_eq!(error(&damaged).offset(), 74);
    check(error(&damaged), &format!("link 0 at offset 64: {SCHEME}"), Some(SCHEME));

    let header = |at: usize, field: &[u8]| {
        let mut bytes = stored.clone();
        forge(&mut bytes, at, field);
        error(&bytes)
    };
    let text = "offset 11: growth factor 1 (allowed: 2 to 16)";
    check(header(11, &[1]), text, Some(text));
    let text = "offset 24: false-positive rate 1.5 (allowed: above 0 and up to 1)";
    check(header(24, &1.5_f64.to_le_bytes()), text, Some(text));
    let text = "offset 32: tightening ratio 0.96 (allowed: 0.05 to 0.95)";
    check(header(32, &0.96_f64.to_le_bytes()), text, Some(text));
    let text = "offset 48: keys of the last link 0 (allowed: 1 or more)";
    check(header(48, &[0; 8]), text, Some(text));

    check(ScalableFormatError::from(ALLOC), ALLOCATION_FAILED, Some(ALLOCATION_FAILED));
    assert_eq!(ScalableFormatError::from(ALLOC).offset(), 0);

    for open in [ScalableBloomFilter::from_bytes, ScalableBloomFilter::from_bytes_trusted] {
        assert!(open(&stored, KeyHash::default()).is_ok());
        let mismatch = open(&stored, CALLER).unwrap_err();
        assert_eq!(mismatch.offset(), 10);
        let text = "offset 10: built with XXH3-64 with seed 0, expected the caller's hash with tag \
                    5: pass the hash that built it";
        check(mismatch, text, Some(text));
    }
    let seeded = KeyHash::Xxh3 { seed: 1 };
    assert!(ScalableBloomFilter::from_bytes(&stored, seeded).is_err());
}
