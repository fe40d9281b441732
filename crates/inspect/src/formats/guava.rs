//! Guava's filters.

use blocked_bloom_formats::guava::{GuavaFilter, Strategy};

use super::classical;
use crate::facts::{Bits, Facts};
use crate::opened::About;

pub(crate) fn describe(about: &About, filter: &GuavaFilter<&[u8]>) -> Facts {
    let shape = filter.shape();
    let strategy = match shape.scheme() {
        Strategy::Mitz32 => "MURMUR128_MITZ_32",
        Strategy::Mitz64 => "MURMUR128_MITZ_64",
        _ => "other",
    };
    let header = vec![
        ("strategy", "strategy", strategy.into()),
        ("probes", "probes", shape.probes().into()),
        ("words", "words of 8 bytes", shape.words().into()),
    ];
    let bits = Bits {
        fill_ratio: filter.fill_ratio(),
        keys: filter.estimated_keys(),
        false_positive_rate: filter.estimated_false_positive_rate(),
    };
    classical::facts(about, header, &bits)
}
