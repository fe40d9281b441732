//! Sizes of the filters that `cargo bench` measures, and arguments of the benches.

use blocked_bloom::{BloomFilter, FilterOptions, Sizing};

use crate::workload::filled;

/// Keys of an iteration, whatever the batch: times per iteration compare from batch to batch.
pub const ITERATION: usize = 4096;

/// A number of keys, at ten bits each, and its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(pub u64, pub &'static str);

/// 12.5 KB to 125 MB: a first-, second- and third-level cache, a third-level cache shared with
/// others or none, memory.
pub const SIZES: [Size; 5] = [
    Size(10_000, "10k"),
    Size(100_000, "100k"),
    Size(1_000_000, "1M"),
    Size(10_000_000, "10M"),
    Size(100_000_000, "100M"),
];

impl Size {
    /// A filter of this size without keys.
    pub fn empty(self) -> BloomFilter {
        let options = FilterOptions::new(Sizing::BitsPerKey(10.0));
        options.empty_filter(self.0).expect("memory for the filter")
    }

    /// A filter of this size with all its keys.
    pub fn filled(self) -> BloomFilter {
        filled(self.empty().params(), self.0).expect("memory for the filter")
    }
}

/// The arguments of a bench of tables.
#[derive(Debug, clap::Parser)]
pub struct Arguments {
    /// Fewer rounds, and smaller filters.
    #[arg(long = "quick")]
    pub is_quick: bool,

    /// Measure only tables whose names have this part.
    only: Option<String>,

    // Cargo passes it.
    #[arg(long, hide = true)]
    bench: bool,
}

impl Arguments {
    /// The arguments of this program.
    pub fn from_command_line() -> Self {
        clap::Parser::parse()
    }

    /// Whether to measure the table of this name.
    pub fn is_requested(&self, name: &str) -> bool {
        self.only.as_ref().is_none_or(|only| name.contains(only.as_str()))
    }

    /// This many rounds, or fewer.
    pub fn rounds(&self, rounds: usize) -> usize {
        if self.is_quick { rounds.min(5) } else { rounds }
    }
}
