//! Properties: any bytes are either refused as a range filter, or answered alike singly and in
//! batches, without a panic; a filter of any sorted keys has all of them and every range that holds
//! one, or is an error.
//!
//! Input: one byte for what is done, one for the bits per key, one for the unit; then bytes of a
//! filter, or keys, each a byte for the length and that many bytes.
#![no_main]

use std::ops::Bound::{self, Excluded, Included, Unbounded};

use blocked_bloom::Bitmask;
use blocked_bloom_range::{RangeFilter, RangeOptions};
use libfuzzer_sys::fuzz_target;
use xxhash_rust::xxh3::xxh3_64;

type Range<'k> = (Bound<&'k [u8]>, Bound<&'k [u8]>);

/// All ranges of the first keys, with bounds of every kind.
fn ranges<'k>(keys: &[&'k [u8]]) -> Vec<Range<'k>> {
    let keys = &keys[..keys.len().min(12)];
    let bounds = keys.iter().flat_map(|&key| [Included(key), Excluded(key)]).chain([Unbounded]);
    let bounds: Vec<_> = bounds.collect();
    bounds.iter().flat_map(|&lower| bounds.iter().map(move |&upper| (lower, upper))).collect()
}

fn check(filter: &RangeFilter<&[u8]>, ranges: &[Range<'_>]) -> Bitmask {
    let mut hits = Bitmask::new();
    filter.contains_ranges(ranges, &mut hits);
    for (&(lower, upper), hit) in ranges.iter().zip(&hits) {
        assert_eq!(hit, filter.contains_range(lower, upper));
    }
    hits
}

fuzz_target!(|data: &[u8]| {
    let [what, bits, unit, data @ ..] = data else { return };
    let mut keys: Vec<&[u8]> = Vec::new();
    let mut rest = data;
    while let [length, after @ ..] = rest {
        let (key, after) = after.split_at(usize::from(length % 40).min(after.len()));
        keys.push(key);
        rest = after;
    }
    let ranges = ranges(&keys);
    match what % 3 {
        0 => {
            let (filter, error) = RangeFilter::open_or_pass_all(data);
            let hits = check(&filter, &ranges);
            assert!(error.is_none() || hits.count_misses() == 0);
        }
        // The same with checksums that fit, and fields near those of small filters.
        1 => {
            let mut bytes = data.to_vec();
            bytes.resize(data.len().max(64 + 48), 0);
            bytes[..11].copy_from_slice(b"\x89BBRANG\n\x01\x00\x01");
            bytes[11] = 1 + bits % 29;
            bytes[12] = unit % (bytes[11] + 6);
            for (at, limit) in [(13, 128), (14, 17), (15, 18)] {
                bytes[at] %= limit;
            }
            bytes[15] = bytes[15].max(bytes[14]);
            let most = 128 - 8 * u32::from(bytes[15].min(16));
            bytes[13] = bytes[13].max(most.min(127) as u8);
            bytes[18..24].fill(0);
            bytes[26..28].fill(0);
            bytes[28..32].fill(0);
            bytes[40..48].fill(0);
            let body = xxh3_64(&bytes[64..]);
            bytes[48..56].copy_from_slice(&body.to_le_bytes());
            let header = xxh3_64(&bytes[..56]);
            bytes[56..64].copy_from_slice(&header.to_le_bytes());
            let (filter, error) = RangeFilter::open_or_pass_all(&bytes[..]);
            let hits = check(&filter, &ranges);
            assert!(error.is_none() || hits.count_misses() == 0);
        }
        _ => {
            keys.sort_unstable();
            let options = RangeOptions::new(4.0 + f64::from(*bits) / 9.0);
            let mut builder = options.with_unit(u32::from(*unit)).builder();
            keys.iter().for_each(|&key| builder.insert(key).unwrap());
            if let [first, .., last] = keys[..]
                && first < last
            {
                assert!(builder.insert(first).is_err());
            }
            let Ok(filter) = builder.finish() else {
                assert!(*unit > 127 || *bits > 252);
                return;
            };
            let filter = RangeFilter::from_bytes(filter.as_bytes()).unwrap();
            assert!(keys.iter().all(|&key| filter.contains(key)));
            let hits = check(&filter, &ranges);
            for ((lower, upper), hit) in ranges.iter().zip(&hits) {
                let is_in = |key: &&[u8]| {
                    let is_above = match lower {
                        Included(lower) => key >= lower,
                        Excluded(lower) => key > lower,
                        Unbounded => true,
                    };
                    is_above
                        && match upper {
                            Included(upper) => key <= upper,
                            Excluded(upper) => key < upper,
                            Unbounded => true,
                        }
                };
                assert!(hit || !keys.iter().any(is_in), "lost: {lower:?} {upper:?}");
            }
        }
    }
});
