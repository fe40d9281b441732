//! The damage tests of the core, applied to a growing filter. Checksums cover every byte, so all
//! damage is rejected unless the test recomputes them. Then the answers are those of a naive reader
//! of the same bytes.
//!
//! `cargo test -p blocked-bloom-scalable --test suite damage:: -- --nocapture` prints the table.
//! --nocapture`.

#[path = "../../../../tests/suite/damage/campaign.rs"]
#[allow(dead_code, reason = "the core's tests use the rest")]
mod campaign;
#[path = "../../../../tests/suite/damage/naive.rs"]
#[allow(dead_code, reason = "the core's tests use the rest")]
mod naive;

use blocked_bloom::{Bitmask, Filter as _, KeyHash};
use blocked_bloom_scalable::{ScalableBloomFilter, ScalableOptions};
use xxhash_rust::xxh3::xxh3_64;

use campaign::{Case, Expected, Outcome};
use naive::{Filter, u16_at, u32_at, u64_at};

/// "Growing filter".
struct Growing<'a>(Vec<Filter<'a>>);

impl<'a> Growing<'a> {
    fn open(bytes: &'a [u8]) -> Option<Self> {
        if bytes.len() < 64 || bytes[..8] != *b"\x89BBGROW\n" || u16_at(bytes, 8) != 1 {
            return None;
        }
        let (rate, tightening) =
            (f64::from_bits(u64_at(bytes, 24)), f64::from_bits(u64_at(bytes, 32)));
        let legal = u64_at(bytes, 56) == xxh3_64(&bytes[..56])
            && bytes[10] <= 1
            && rate > 0.0
            && rate <= 1.0
            && (0.05..=0.95).contains(&tightening)
            && (2..=16).contains(&bytes[11])
            && u64_at(bytes, 48) >= 1;
        if !legal {
            return None;
        }
        let (mut links, mut sums, mut rest) = (Vec::new(), Vec::new(), &bytes[64..]);
        for _ in 0..u32_at(bytes, 12) {
            let length = 64 + 64 * u64::from(u32_at(rest.get(..28)?, 24));
            let (link, after) = rest.split_at_checked(length.try_into().ok()?)?;
            let filter = Filter::open(link)?;
            if (filter.hash, filter.seed) != (bytes[10], u64_at(bytes, 16)) {
                return None;
            }
            links.push(filter);
            sums.extend_from_slice(&link[56..64]);
            rest = after;
        }
        (rest.is_empty() && u64_at(bytes, 40) == xxh3_64(&sums)).then_some(Growing(links))
    }

    fn contains(&self, key: &[u8]) -> bool {
        self.0.iter().any(|link| link.contains(key))
    }
}

fn keys(set: &str, count: u32) -> Vec<Vec<u8>> {
    (0..count).map(|i| format!("{set}{i:06}").into_bytes()).collect()
}

/// 70 keys in three links.
fn made(set: &str) -> ScalableBloomFilter {
    let options = ScalableOptions::new(0.02, 20).with_key_hash(KeyHash::Xxh3 { seed: 1 });
    let mut filter = options.build().unwrap();
    for key in keys(set, 200) {
        if filter.keys_inserted() < 70 {
            filter.insert(key).unwrap();
        }
    }
    assert_eq!((filter.links().len(), filter.keys_inserted()), (3, 70));
    filter
}

#[test]
fn growing_filters() {
    let filter = made("a");
    let mut queries = keys("a", 200);
    // Keys that were false positives when inserted are in no link's count, but were never absent.
    queries.retain(|key| filter.contains(key));
    let added = queries.len();
    queries.extend(keys("n", 50));
    let look_up = |bytes: &[u8]| match ScalableBloomFilter::from_bytes_any_hash(bytes) {
        Err(error) => {
            assert!(!error.to_string().is_empty());
            Outcome::refused()
        }
        Ok(filter) => {
            assert_eq!(filter.to_filter().unwrap().to_bytes(), bytes);
            let mut hits = Bitmask::new();
            filter.contains_batch(&queries, &mut hits);
            let answers: Vec<bool> = queries.iter().map(|key| filter.contains(key)).collect();
            assert!(hits.iter().eq(answers.iter().copied()));
            Outcome::answers(answers)
        }
    };
    let naive = |bytes: &[u8]| {
        Expected::from_answers(
            Growing::open(bytes)
                .map(|filter| queries.iter().map(|key| filter.contains(key)).collect()),
        )
    };
    let seal = |bytes: &mut [u8]| {
        let sum = xxh3_64(&bytes[..56]);
        bytes[56..64].copy_from_slice(&sum.to_le_bytes());
    };
    let report = Case {
        name: "growing filter",
        bytes: filter.to_bytes(),
        other: made("b").to_bytes(),
        added,
        header: 0..56,
        seal: Some(&seal),
        look_up: &look_up,
        naive: &naive,
    }
    .run();
    assert!(report.all_refused());
    assert!(report.header.refused > 5_000 && report.sealed.refused > 1_000);
}
