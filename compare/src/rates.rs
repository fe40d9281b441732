//! Measured false-positive rates at several sizes, beside what the formulas say.

use blocked_bloom::Sizing;

use crate::keys::hash;
use crate::own::OURS;
use crate::peer::{Kind, Role, count_all};
use crate::queries::BATCH;
use crate::report::Rate;

/// Bits per key at which every kind is filled; what cannot choose stands with the first.
const BITS: [f64; 7] = [10.0, 6.0, 8.0, 12.0, 14.0, 16.0, 20.0];

/// Looks up `queries` absent keys in a filter of each kind and size.
pub(crate) fn measure(kinds: &[Kind], keys: u64, queries: u64) -> Vec<Rate> {
    let hashes: Vec<u64> = (0..keys).map(hash).collect();
    let absent: Vec<u64> = (keys..keys + queries).map(hash).collect();
    let mut rates = Vec::new();
    for kind in kinds {
        // The small pages hold the same bits.
        if kind.role == Role::Baseline || kind.id.ends_with("small pages") {
            continue;
        }
        eprintln!("  {keys} keys: false positives of {}", kind.id);
        let mut last = 0;
        for bits in BITS {
            let Some(filter) = (kind.of_hashes)(&hashes, bits) else { continue };
            // One size for all: measured once.
            if filter.bytes() == last {
                break;
            }
            last = filter.bytes();
            let params = Sizing::BitsPerKey(bits).params(keys).expect("bits per key are in range");
            rates.push(Rate {
                id: kind.id.to_owned(),
                keys,
                bits_wanted: bits,
                bits_per_key: last as f64 * 8.0 / keys as f64,
                queries,
                false_positives: count_all(filter.as_ref(), 0, &absent, BATCH) as u64,
                predicted: (kind.id == OURS).then(|| params.false_positive_rate()),
            });
        }
    }
    rates
}

/// The rate of a classical filter with the best whole number of probes, `min over k of (1 - e^(-k/bits))^k`.
pub(crate) fn classical(bits: f64) -> f64 {
    (1..=30)
        .map(|probes| (1.0 - (-f64::from(probes) / bits).exp()).powi(probes))
        .fold(1.0, f64::min)
}

/// The rate of blocked-bloom, as it predicts it.
pub(crate) fn predicted(bits: f64) -> f64 {
    // Enough keys that rounding up to a whole block makes no difference.
    Sizing::BitsPerKey(bits).params(100_000_000).map_or(1.0, |params| params.false_positive_rate())
}
