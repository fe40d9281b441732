//! This project's own static filter, sharded Ribbon.

use blocked_bloom::parts::fill_with_hits;
use blocked_bloom::{FilterOptions, KeyHash, Sizing};
use blocked_bloom_inspect::numbers::percent;
use blocked_bloom_ribbon::{RibbonFilterBuilder, RibbonOptions};

use crate::builder::{BuildFormat, BuildOptions, Builder, Built, answers};
use crate::failure::Failure;
use crate::keys::Key;
use crate::numbers::counted;
use crate::threads;

pub(super) static RIBBON: BuildFormat = BuildFormat {
    name: "ribbon",
    help: "This tool's own static filter, 28% smaller at 1%, and slower",
    extension: Some(".ribbon"),
    options: &["--fpr", "--seed", "--threads", "--type"],
    builder: Some(builder),
};

const DEFAULT_RATE: f64 = 0.01;

struct Keys {
    builder: RibbonFilterBuilder,
    verify: bool,
    threads: Option<usize>,
}

fn builder(options: &BuildOptions<'_>) -> Result<Box<dyn Builder>, Failure> {
    let rate = options.false_positive_rate.unwrap_or(DEFAULT_RATE);
    let filters = FilterOptions::new(Sizing::FalsePositiveRate(rate))
        .with_key_hash(KeyHash::Xxh3 { seed: options.seed });
    let ribbon = RibbonOptions::for_filters(&filters);
    // A rate out of its range is an error before the keys are read.
    ribbon.estimated_bytes(0).map_err(Failure::new)?;
    let builder = ribbon.builder();
    Ok(Box::new(Keys { builder, verify: options.verify, threads: options.threads }))
}

impl Builder for Keys {
    fn add(&mut self, key: &Key) -> Result<(), String> {
        self.builder.insert(key).map_err(|error| error.to_string())
    }

    fn finish(self: Box<Self>, _: &str) -> Result<Built, Failure> {
        let keys = self.builder.len();
        let answers = answers(self.verify, |hits| {
            // Otherwise it would be an error below.
            hits.write(keys as usize, |words| fill_with_hits(words, keys as usize));
        });
        let filter = match self.verify {
            true => self.builder.finish_verified(),
            false => threads::pool(self.threads)?.install(|| self.builder.par_finish()),
        };
        let filter = filter.map_err(Failure::new)?;
        let (bits, rate) = (filter.bits_per_key(), percent(filter.expected_false_positive_rate()));
        let summary =
            format!("{}, {bits:.2} bits per key, {rate} false positives", counted(keys, "key"));
        Ok(Built { fit: None, answers, summary, bytes: filter.as_bytes().to_vec() })
    }
}
