//! RedisBloom's chains, in files of their dumps.

use blocked_bloom_formats::redis::{RedisFilter, RedisHash};

use crate::builder::{BuildFormat, BuildOptions, Builder, Built, answers, fit, hash_list};
use crate::failure::Failure;
use crate::numbers::counted;

pub(super) static REDISBLOOM: BuildFormat = BuildFormat {
    name: "redisbloom",
    help: "A file of replies for RedisBloom's BF.LOADCHUNK",
    extension: Some(".scandump"),
    options: &["--fpr", "--keys"],
    builder: Some(builder),
};

/// RedisBloom's default.
const EXPANSION: Option<u32> = Some(2);

/// Collects the hashes of keys, in their order, which decides which of them begins a link. The
/// filter is reserved for the expected number of keys, or for the distinct ones.
fn builder(options: &BuildOptions<'_>) -> Result<Box<dyn Builder>, Failure> {
    let (expected_keys, verify) = (options.expected_keys, options.verify);
    let error_rate = options.false_positive_rate.unwrap_or(0.01);
    let reserve = move |keys: u64| RedisFilter::new(keys.max(1), error_rate, EXPANSION);
    // A filter of current versions, which hashes keys before their number is known.
    let empty = reserve(1).map_err(Failure::new)?;
    let finish = move |hashes: Vec<RedisHash>, _: &str| {
        let mut sorted = hashes.clone();
        sorted.sort_unstable_by_key(|hash| (hash.first(), hash.second()));
        sorted.dedup();
        let distinct = sorted.len() as u64;
        drop(sorted);
        let mut filter = reserve(expected_keys.unwrap_or(distinct)).map_err(Failure::new)?;
        filter.insert_hashes(&hashes).map_err(Failure::new)?;
        let answers = answers(verify, |hits| filter.contains_hashes(&hashes, hits));
        let bits =
            |filter: &RedisFilter| filter.links().iter().map(|link| link.shape().bits() / 8).sum();
        let needed = reserve(distinct).ok().map(|needed| bits(&needed));
        let rate = filter.estimated_false_positive_rate();
        let fit = fit(expected_keys, distinct, bits(&filter), needed, rate);
        let links = counted(filter.links().len() as u64, "link");
        let summary = format!("{}, {links}", counted(distinct, "distinct key"));
        Ok(Built { fit, answers, summary, bytes: filter.to_bytes() })
    };
    // The list, and the same sorted.
    Ok(hash_list(2, move |key| Ok(empty.hash_key(key)), finish))
}
