//! RedisBloom's chains, in files of their dumps.

use blocked_bloom::Bitmask;
use blocked_bloom_formats::redis::{RedisFilter, RedisHash};

use crate::builder::{BuildFormat, BuildOptions, Builder, Built, fit, push};
use crate::failure::Failure;
use crate::keys::Key;
use crate::numbers::counted;

pub(super) static REDISBLOOM: BuildFormat = BuildFormat {
    name: "redisbloom",
    help: "A file of replies for RedisBloom's BF.LOADCHUNK",
    extension: Some(".scandump"),
    options: &["--fpr", "--keys"],
    builder: Some(builder),
};

/// Collects the hashes of keys, in their order, which decides which of them begins a link. The
/// filter is reserved for the expected number of keys, or for the distinct ones.
struct Keys {
    expected_keys: Option<u64>,
    error_rate: f64,
    verify: bool,
    /// A filter of current versions: it hashes keys, before their number is known.
    empty: RedisFilter,
    hashes: Vec<RedisHash>,
}

/// RedisBloom's default.
const EXPANSION: Option<u32> = Some(2);

fn builder(options: &BuildOptions<'_>) -> Result<Box<dyn Builder>, Failure> {
    let error_rate = options.false_positive_rate.unwrap_or(0.01);
    Ok(Box::new(Keys {
        expected_keys: options.expected_keys,
        error_rate,
        verify: options.verify,
        empty: RedisFilter::new(1, error_rate, EXPANSION).map_err(Failure::new)?,
        hashes: Vec::new(),
    }))
}

impl Builder for Keys {
    fn bytes_per_key(&self) -> u64 {
        // The list, and the same sorted.
        2 * size_of::<RedisHash>() as u64
    }

    fn add(&mut self, key: &Key) -> Result<(), String> {
        push(&mut self.hashes, self.empty.hash_key(key))
    }

    fn finish(self: Box<Self>, _: &str) -> Result<Built, Failure> {
        let mut sorted = self.hashes.clone();
        sorted.sort_unstable_by_key(|hash| (hash.first(), hash.second()));
        sorted.dedup();
        let distinct = sorted.len() as u64;
        drop(sorted);
        let reserve = |keys: u64| RedisFilter::new(keys.max(1), self.error_rate, EXPANSION);
        let mut filter = reserve(self.expected_keys.unwrap_or(distinct)).map_err(Failure::new)?;
        filter.insert_hashes(&self.hashes).map_err(Failure::new)?;
        let mut hits = Bitmask::new();
        if self.verify {
            filter.contains_hashes(&self.hashes, &mut hits);
        }
        let links = filter.links().len();
        let bits =
            |filter: &RedisFilter| filter.links().iter().map(|link| link.shape().bits() / 8).sum();
        let needed = reserve(distinct).ok().map(|needed| bits(&needed));
        let rate = filter.estimated_false_positive_rate();
        Ok(Built {
            fit: fit(self.expected_keys, distinct, bits(&filter), needed, rate),
            bytes: filter.to_bytes(),
            answers: hits,
            summary: format!(
                "{}, {}",
                counted(distinct, "distinct key"),
                counted(links as u64, "link")
            ),
        })
    }
}
