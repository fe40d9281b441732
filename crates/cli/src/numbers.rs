//! The options that size a filter, and counts in words.

use blocked_bloom::Sizing;
use blocked_bloom_inspect::numbers::{parse_bits, parse_bytes, parse_rate};

pub(crate) const DEFAULT_BITS_PER_KEY: f64 = 10.0;

/// The one sizing of a filter.
#[derive(clap::Args)]
#[group(multiple = false)]
pub(crate) struct SizingArgs {
    /// Bits of memory per key, 0 to 100, fractions allowed; 0 means no filter [default: 10]
    #[arg(long, value_name = "BITS", value_parser = parse_bits)]
    pub(crate) bits_per_key: Option<f64>,

    /// Highest false-positive rate: 0.01 and 1% are the same; the smallest such filter is built
    #[arg(long, value_name = "RATE", value_parser = parse_rate)]
    pub(crate) fpr: Option<f64>,

    /// Largest size of the stored filter in bytes; suffixes K, M, G, KiB, MiB and GiB
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub(crate) max_bytes: Option<u64>,
}

impl SizingArgs {
    pub(crate) fn sizing(&self) -> Sizing {
        match (self.fpr, self.max_bytes) {
            (Some(rate), _) => Sizing::FalsePositiveRate(rate),
            (_, Some(bytes)) => Sizing::MaxBytes(bytes),
            _ => Sizing::BitsPerKey(self.bits_per_key.unwrap_or(DEFAULT_BITS_PER_KEY)),
        }
    }
}

/// So many of a noun: `1 key`, `2 keys`.
pub(crate) fn counted(count: impl Into<u128>, noun: &str) -> String {
    match count.into() {
        1 => format!("1 {noun}"),
        count => format!("{count} {noun}s"),
    }
}
