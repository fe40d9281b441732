//! The damage tests of the core, applied to stored range filters.

#[path = "../../../../tests/suite/damage/campaign.rs"]
#[allow(dead_code, reason = "the core's tests use the rest")]
mod campaign;

use std::ops::Bound::{self, Excluded, Included};

use blocked_bloom::Bitmask;
use blocked_bloom_range::RangeFilter;
use xxhash_rust::xxh3::xxh3_64;

use self::campaign::{Case, Expected, Outcome, Report};
use crate::common::Random;
use crate::naive::Naive;
use crate::sets::{built, built_of_bytes, series, uniform};

pub(crate) fn seal(bytes: &mut [u8]) {
    if bytes.len() >= 64 {
        let body = xxh3_64(&bytes[64..]);
        bytes[48..56].copy_from_slice(&body.to_le_bytes());
        let header = xxh3_64(&bytes[..56]);
        bytes[56..64].copy_from_slice(&header.to_le_bytes());
    }
}

type Range = (Bound<Vec<u8>>, Bound<Vec<u8>>);

type Slices<'s> = (Bound<&'s [u8]>, Bound<&'s [u8]>);

/// Ranges that hold a key of the table, then others.
fn ranges(keys: &[Vec<u8>]) -> (Vec<Range>, usize) {
    let mut random = Random(4);
    let mut ranges: Vec<Range> =
        keys.iter().map(|key| (Included(key.clone()), Included(key.clone()))).collect();
    ranges
        .extend(keys.windows(2).map(|pair| (Excluded(pair[0].clone()), Included(pair[1].clone()))));
    let full = ranges.len();
    for key in keys {
        let (mut lower, mut upper) = (key.clone(), key.clone());
        lower.push(0);
        let last = upper.len() - 1;
        upper[last] = upper[last].saturating_add(random.next() as u8 % 9);
        ranges.push((Excluded(lower), Excluded(upper)));
    }
    (ranges, full)
}

fn run(name: &'static str, filter: &RangeFilter, other: &RangeFilter, keys: &[Vec<u8>]) -> Report {
    let (ranges, full) = ranges(keys);
    let slices: Vec<Slices<'_>> = ranges
        .iter()
        .map(|(lower, upper)| {
            (lower.as_ref().map(Vec::as_slice), upper.as_ref().map(Vec::as_slice))
        })
        .collect();
    let look_up = |bytes: &[u8]| match RangeFilter::from_bytes(bytes) {
        Err(error) => {
            assert!(!error.to_string().is_empty());
            let (filter, again) = RangeFilter::open_or_pass_all(bytes);
            assert_eq!(again, Some(error));
            assert!(filter.contains_range(slices[0].0, slices[0].1));
            Outcome::refused()
        }
        Ok(filter) => {
            let answers: Vec<bool> =
                slices.iter().map(|&(lower, upper)| filter.contains_range(lower, upper)).collect();
            let mut hits = Bitmask::new();
            filter.contains_ranges(&slices, &mut hits);
            assert!(hits.iter().eq(answers.iter().copied()));
            Outcome::answers(answers)
        }
    };
    let naive = |bytes: &[u8]| {
        let naive = Naive::open(bytes);
        Expected::from_answers(naive.map(|naive| {
            slices.iter().map(|&(lower, upper)| naive.contains(lower, upper)).collect()
        }))
    };
    Case {
        name,
        bytes: filter.as_bytes().to_vec(),
        other: other.as_bytes().to_vec(),
        added: full,
        header: 0..64,
        seal: Some(&seal),
        look_up: &look_up,
        naive: &naive,
    }
    .run()
}

#[test]
fn stored_filters() {
    let bytes_of =
        |keys: &[u64]| keys.iter().map(|key| key.to_be_bytes().to_vec()).collect::<Vec<_>>();
    let keys = uniform(1, 60);
    let other = built(12.0, 3, &uniform(2, 60));
    let report = run("range, integers", &built(12.0, 3, &keys), &other, &bytes_of(&keys));
    assert!(report.all_refused());
    assert!(report.header.refused > 5_000 && report.sealed.refused > 1_000);

    let long = |keys: &[u64]| -> Vec<Vec<u8>> {
        keys.iter().map(|key| [&b"a table of "[..], &key.to_be_bytes()].concat()).collect()
    };
    let (keys, other) = (long(&series(1, 40)), long(&series(2, 40)));
    let [filter, other] = [&keys, &other].map(|keys| built_of_bytes(16.0, 8, keys));
    let report = run("range, byte strings", &filter, &other, &keys);
    assert!(report.all_refused());
    assert!(report.header.refused > 5_000 && report.sealed.refused > 1_000);
}
