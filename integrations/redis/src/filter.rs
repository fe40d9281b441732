//! What a key of the module's type holds: a filter of its own, one of RedisBloom's that was loaded, or one that is still being loaded.

use blocked_bloom::Bitmask;
use blocked_bloom_formats::redis::{RedisError as FormatError, RedisFilter};

use crate::dump::Loading;
use crate::own::Own;

/// The most keys that a filter, or its first link, is made for, as in RedisBloom 8.
pub(crate) const MAX_CAPACITY: i64 = 1 << 30;
/// The most that a link is larger than the one before, as in RedisBloom 8. Own filters take 16 at most.
pub(crate) const MAX_EXPANSION: i64 = 32_768;
/// A higher error rate counts as this one, as in RedisBloom 8.
pub(crate) const MAX_ERROR_RATE: f64 = 0.25;

/// What `BF.RESERVE` and `BF.INSERT` may say of a filter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reserve {
    pub(crate) error_rate: f64,
    pub(crate) capacity: u64,
    /// 0 if the filter does not grow.
    pub(crate) expansion: u64,
}

/// What `BF.ADD` makes of a key that is not there.
impl Default for Reserve {
    fn default() -> Self {
        Reserve { error_rate: 0.01, capacity: 100, expansion: 2 }
    }
}

/// What adding keys did.
#[derive(Debug, Default)]
pub(crate) struct Added {
    /// Of each key whether it was certainly not there before; fewer than the keys if the filter became full.
    pub(crate) is_new: Vec<bool>,
    /// The filter does not grow, and the key behind these had no place.
    pub(crate) is_full: bool,
}

/// Keys could not be added: the link that they need cannot be made.
#[derive(Debug)]
pub(crate) struct AddError {
    /// So many keys are in the filter, added now or before.
    pub(crate) before: usize,
    /// For want of memory, which another server may have; otherwise every server fails at the same key.
    pub(crate) is_memory: bool,
}

pub(crate) enum Filter {
    Own(Own),
    /// RedisBloom's, which answers, grows and is dumped as there.
    Redis(RedisFilter),
    Loading(Loading),
}

impl Filter {
    /// Whether the key may be present; none while the filter is being loaded.
    pub(crate) fn contains(&self, key: &[u8]) -> Option<bool> {
        match self {
            Filter::Own(filter) => Some(filter.contains(key)),
            Filter::Redis(filter) => Some(filter.contains(key)),
            Filter::Loading(_) => None,
        }
    }

    /// Looks up every key by the batch kernels; none while the filter is being loaded.
    pub(crate) fn contains_batch(&self, keys: &[&[u8]]) -> Option<Bitmask> {
        let mut hits = Bitmask::new();
        match self {
            Filter::Own(filter) => filter.contains_batch(keys, &mut hits),
            Filter::Redis(filter) => filter.contains_batch(keys, &mut hits),
            Filter::Loading(_) => return None,
        }
        Some(hits)
    }

    /// Adds keys in their order; none while the filter is being loaded.
    pub(crate) fn add(&mut self, keys: &[&[u8]]) -> Option<Result<Added, AddError>> {
        match self {
            Filter::Own(filter) => Some(filter.add(keys)),
            Filter::Redis(filter) => Some(add_to_redis(filter, keys)),
            Filter::Loading(_) => None,
        }
    }

    /// Bytes of the links that adding so many keys may make, or of the first of them; 0 if they fit.
    pub(crate) fn bytes_to_grow(&self, keys: usize) -> u64 {
        match self {
            Filter::Own(filter) => filter.bytes_to_grow(keys),
            Filter::Redis(filter) => redis_bytes_to_grow(filter, keys),
            Filter::Loading(_) => 0,
        }
    }

    /// Keys that were certainly new when they were added.
    pub(crate) fn keys(&self) -> u64 {
        match self {
            Filter::Own(filter) => filter.keys(),
            Filter::Redis(filter) => filter.size(),
            Filter::Loading(_) => 0,
        }
    }

    /// Keys that the links are for.
    pub(crate) fn capacity(&self) -> u64 {
        match self {
            Filter::Own(filter) => filter.capacity(),
            Filter::Redis(filter) => filter.capacity(),
            Filter::Loading(_) => 0,
        }
    }

    /// Links that there are; an own filter makes the first one with the first key, and counts it before.
    pub(crate) fn links(&self) -> usize {
        match self {
            Filter::Own(filter) => filter.links().max(1),
            Filter::Redis(filter) => filter.links().len(),
            Filter::Loading(_) => 0,
        }
    }

    /// How many times as many keys the next link is for; none if there will be none.
    pub(crate) fn expansion(&self) -> Option<u32> {
        match self {
            Filter::Own(filter) => filter.expansion(),
            Filter::Redis(filter) => filter.expansion(),
            Filter::Loading(_) => None,
        }
    }

    /// Bytes that the filter takes.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let more = match self {
            Filter::Own(filter) => filter.memory_bytes(),
            Filter::Redis(filter) => {
                let links = filter.links();
                links.iter().map(|link| link.shape().bits() / 8).sum::<u64>()
                    + size_of_val(links) as u64
            }
            Filter::Loading(loading) => loading.memory_bytes(),
        };
        more.saturating_add(size_of::<Filter>() as u64)
    }
}

/// RedisBloom's natural logarithm of 2, squared: bits per key are that of the error rate by this.
const LN_2_SQUARED: f64 = 0.480453013918201;

/// Options of a header of RedisBloom, and where it has them: sizes are not rounded up to powers of two; numbers of keys are logarithms of bits.
const NO_ROUND: u32 = 1;
const ENTRIES_IS_BITS: u32 = 2;
const OPTIONS: usize = 12;

/// Bytes of the links that adding so many keys may make.
///
/// No command of RedisBloom makes filters whose numbers of keys are logarithms; the next link of one would have 2^40 bits or more, which no server has.
fn redis_bytes_to_grow(filter: &RedisFilter, keys: usize) -> u64 {
    let (Some(growth), Some(last)) = (filter.expansion(), filter.links().last()) else { return 0 };
    let mut keys = (keys as u64).saturating_sub(last.entries().saturating_sub(last.size()));
    if keys == 0 {
        return 0;
    }
    let header = filter.dump().next().map(|(_, header)| header).unwrap_or_default();
    let options = header.get(OPTIONS..).and_then(|bytes| bytes.first_chunk());
    let options = options.map_or(ENTRIES_IS_BITS, |bytes| u32::from_le_bytes(*bytes));
    if options & ENTRIES_IS_BITS != 0 {
        return u64::MAX;
    }
    let rounding = if options & NO_ROUND != 0 { 1.0 } else { 2.0 };
    let (mut entries, mut error_rate, mut bytes) = (last.entries(), last.error_rate(), 0.0);
    // Keys of one command may fill a link and need another one, which is up to 32768 times as large.
    while keys > 0 {
        entries = entries.saturating_mul(growth.into()).max(1);
        error_rate *= 0.5;
        bytes += entries as f64 * -error_rate.ln() / LN_2_SQUARED / 8.0 * rounding;
        keys = keys.saturating_sub(entries);
    }
    // To the largest number, if it is larger.
    bytes as u64
}

fn add_to_redis(filter: &mut RedisFilter, keys: &[&[u8]]) -> Result<Added, AddError> {
    let hashes: Vec<_> = keys.iter().map(|key| filter.hash_key(key)).collect();
    // Keys that are there stay there, and the lines of the others are in the cache afterwards.
    let mut present = Bitmask::new();
    filter.contains_hashes(&hashes, &mut present);
    let mut added = Added::default();
    for (i, (&hash, is_present)) in hashes.iter().zip(present.iter()).enumerate() {
        let is_new = match is_present {
            true => Ok(false),
            false => filter.insert_hash(hash),
        };
        match is_new {
            Ok(is_new) => added.is_new.push(is_new),
            Err(FormatError::Full { .. }) => {
                added.is_full = true;
                break;
            }
            Err(error) => {
                return Err(AddError {
                    before: i,
                    is_memory: matches!(error, FormatError::Alloc(_)),
                });
            }
        }
    }
    Ok(added)
}
