//! RedisBloom's chains, in files of their dumps.

use blocked_bloom::Bitmask;
use blocked_bloom_formats::redis::{RedisFilter, RedisHash};
use serde_json::json;

use super::builder::{BuildOptions, Builder, Built, push};
use super::classical;
use super::lookup::{Lookup, in_batches};
use crate::facts::{Bits, Facts, List};
use crate::failure::Failure;
use crate::keys::Key;
use crate::numbers::counted;
use crate::numbers::percent;
use crate::stored::Stored;

fn open(stored: &Stored) -> Result<RedisFilter, Failure> {
    RedisFilter::from_bytes(&stored.bytes).map_err(|error| stored.damaged(error))
}

pub(super) fn lookup(stored: &Stored) -> Result<Lookup<'static>, Failure> {
    let filter = open(stored)?;
    Ok(in_batches(move |keys, hits| filter.contains_batch(keys, hits)))
}

pub(super) fn describe(stored: &Stored) -> Result<Facts, Failure> {
    let filter = open(stored)?;
    let bits: u64 = filter.links().iter().map(|link| link.shape().bits()).sum();
    let set = filter.links().iter().map(|link| link.fill_ratio() * link.shape().bits() as f64);
    let fill_ratio = set.sum::<f64>() / bits as f64;
    let heads =
        ["keys", "made for", "bits", "probes", "false positives, made for", "from the bits"];
    let (mut list, mut links) = (List::new(0, &heads), Vec::new());
    for link in filter.links() {
        let rate = link.estimated_false_positive_rate();
        list.lines.push(vec![
            link.size().to_string(),
            link.entries().to_string(),
            link.shape().bits().to_string(),
            link.shape().probes().to_string(),
            percent(link.error_rate()),
            percent(rate),
        ]);
        links.push(json!({
            "keys": link.size(),
            "capacity": link.entries(),
            "bits": link.shape().bits(),
            "probes": link.shape().probes(),
            "error_rate": link.error_rate(),
            "fill_ratio": link.fill_ratio(),
            "estimated_false_positive_rate": rate,
        }));
    }
    let header = vec![
        ("keys", "keys added", json!(filter.size())),
        ("capacity", "keys made for", json!(filter.capacity())),
        ("expansion", "expansion", json!(filter.expansion())),
        ("hash_bits", "bits of the hash", json!(filter.hash_bits())),
        ("links", "links", json!(links.len())),
    ];
    let bits = Bits {
        fill_ratio,
        keys: Some(filter.size()),
        false_positive_rate: filter.estimated_false_positive_rate(),
    };
    let mut facts = classical::facts(stored, header, &bits);
    facts.json["links"] = json!(links);
    facts.list = Some(list);
    Ok(facts)
}

/// Collects the hashes of keys, in their order, which decides which of them begins a link. The filter is reserved for the expected number
/// of keys, or for the distinct ones.
struct Keys {
    expected_keys: Option<u64>,
    error_rate: f64,
    verify: bool,
    /// Of current versions: they give the hashes, before the number of keys is known.
    empty: RedisFilter,
    hashes: Vec<RedisHash>,
}

/// RedisBloom's own expansion.
const EXPANSION: Option<u32> = Some(2);

pub(super) fn builder(options: &BuildOptions<'_>) -> Result<Box<dyn Builder>, Failure> {
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
            fit: classical::fit(self.expected_keys, distinct, bits(&filter), needed, rate),
            bytes: filter.to_bytes(),
            verified: hits.len(),
            missing: hits.count_misses(),
            summary: format!(
                "{}, {}",
                counted(distinct, "distinct key"),
                counted(links as u64, "link")
            ),
        })
    }
}
