//! Filters as SQL values: collected from hashes, stored as binary values, opened and looked up.

use std::fmt::Display;
use std::sync::atomic::{AtomicU64, Ordering};

use blocked_bloom::{
    BloomFilter, Filter, FilterContents, FilterOptions, MergeError, Params, Sizing,
};
use datafusion::arrow::array::{ArrayRef, BooleanArray};
use datafusion::arrow::buffer::{BooleanBuffer, Buffer};
use datafusion::common::{Result, exec_datafusion_err, exec_err};
use datafusion::error::DataFusionError;

use crate::keys::{KeyType, hash_array, hash_valid, signed_values};
use crate::ranges::Ranges;

/// Maximum bytes of a filter: half of the range of a binary array's offsets.
pub(crate) const MAX_BYTES: u64 = 1 << 30;

static OPENED: AtomicU64 = AtomicU64::new(0);

/// Returns the number of filters that this process has opened (copied and verified). For dashboards
/// and tests: one per query and filter is normal, one per batch is a defect.
pub fn filters_opened() -> u64 {
    OPENED.load(Ordering::Relaxed)
}

/// Creates an error that names a function.
pub(crate) fn failed<E: Display>(function: &str) -> impl Fn(E) -> DataFusionError {
    move |error| exec_datafusion_err!("{function}: {error}")
}

/// Opens a stored filter with keys of this type, and copies it to memory aligned to cache lines.
pub(crate) fn open(bytes: &[u8], key: KeyType, function: &str) -> Result<BloomFilter> {
    let stored = BloomFilter::from_bytes_any_hash(bytes).map_err(failed(function))?;
    if stored.key_hash() != key.key_hash() {
        return match KeyType::from_key_hash(stored.key_hash()) {
            Some(own) => exec_err!("{function}: the filter has {own}, but the column has {key}"),
            None => exec_err!("{function}: the filter has caller-supplied hashes"),
        };
    }
    if stored.contents() != FilterContents::WholeKeys {
        return exec_err!("{function}: the filter has prefixes of keys; build it with whole keys");
    }
    OPENED.fetch_add(1, Ordering::Relaxed);
    stored.to_filter().map_err(failed(function))
}

/// Opens the filter of a join like [`open`], with the ranges of its keys if they are known.
pub(crate) fn open_with_ranges(
    bytes: &[u8],
    key: KeyType,
    function: &str,
) -> Result<(BloomFilter, Option<Ranges>)> {
    let (ranges, filter) = match bytes.split_first() {
        Some((&RANGES, rest)) => {
            let (ranges, filter) = Ranges::decode(rest)?;
            (Some(ranges), filter)
        }
        _ => (None, bytes),
    };
    Ok((open(filter, key, function)?, ranges))
}

/// Looks up every value of an array. The answer is NULL for a NULL value.
pub(crate) fn look_up(
    filter: &BloomFilter,
    array: &ArrayRef,
    hashes: &mut Vec<u64>,
) -> Result<BooleanArray> {
    let nulls = hash_array(array, hashes)?;
    let mut words = vec![0; hashes.len().div_ceil(64)];
    filter.contains_hashes_into(hashes, &mut words).map_err(failed("bloom_filter_contains"))?;
    let answers = BooleanBuffer::new(Buffer::from_vec(words), 0, hashes.len());
    Ok(BooleanArray::new(answers, nulls))
}

/// The parameters that determine the size of a filter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Size {
    pub(crate) expected_keys: u64,
    pub(crate) rate: f64,
}

impl Size {
    /// Returns the shape of the filters of all partitions, so that they can be merged.
    pub(crate) fn params(self) -> Result<Params> {
        let failed = failed("bloom_filter_agg");
        let sizing = Sizing::FalsePositiveRate(self.rate);
        let params = sizing.foldable_params(self.expected_keys.max(1)).map_err(failed)?;
        let bytes = params.stored_bytes();
        if bytes > MAX_BYTES {
            return exec_err!(
                "bloom_filter_agg: {} expected keys at a rate of {} take {bytes} bytes \
                 (limit {MAX_BYTES})",
                self.expected_keys,
                self.rate
            );
        }
        Ok(params)
    }
}

/// Collects the keys of one group: as hashes while these take fewer bytes than a filter, then as a
/// filter.
#[derive(Debug)]
pub(crate) struct Collector {
    key: KeyType,
    rate: f64,
    params: Params,
    keys: Keys,
    /// Ranges of all keys, or `None` if they are unknown. Filters of SQL functions have none.
    ranges: Option<Ranges>,
    /// Whether keys were inserted or states merged.
    is_used: bool,
}

#[derive(Debug)]
enum Keys {
    Hashes(Vec<u64>),
    Filter(BloomFilter),
}

const NAME: &str = "bloom_filter_agg";

/// The first byte of a state. The type of the keys follows.
const HASHES: u8 = 0;
const FILTER: u8 = 1;
const STATE_HEADER: usize = 9;

/// Added to the first byte if ranges follow the type of the keys. A result with ranges begins with
/// this byte, then the ranges, then the stored filter. The first byte of a stored filter is 0x89.
const RANGES: u8 = 2;

impl Collector {
    pub(crate) fn new(key: KeyType, size: Size) -> Result<Self> {
        let (params, rate) = (size.params()?, size.rate);
        let (keys, ranges, is_used) = (Keys::Hashes(Vec::new()), None, false);
        Ok(Collector { key, rate, params, keys, ranges, is_used })
    }

    /// Creates a collector that also finds the ranges of the keys, as far as their type allows.
    pub(crate) fn with_ranges(key: KeyType, size: Size) -> Result<Self> {
        Ok(Collector { ranges: Some(Ranges::default()), ..Collector::new(key, size)? })
    }

    /// Inserts the non-NULL values of an array. Returns their number.
    pub(crate) fn insert_array(&mut self, keys: &ArrayRef, hashes: &mut Vec<u64>) -> Result<usize> {
        self.ranges = self.ranges.take().zip(signed_values(keys)).map(|(mut ranges, mut keys)| {
            ranges.insert(&mut keys);
            ranges
        });
        hash_valid(keys, hashes)?;
        self.insert(hashes)?;
        Ok(hashes.len())
    }

    pub(crate) fn insert(&mut self, hashes: &[u64]) -> Result<()> {
        self.is_used = true;
        match &mut self.keys {
            Keys::Filter(filter) => filter.insert_hashes(hashes).map_err(failed(NAME)),
            Keys::Hashes(before) => {
                before.extend_from_slice(hashes);
                let most = self.params.stored_bytes() as usize / 8;
                if before.len() <= most {
                    return Ok(());
                }
                // Sorting removes repeated keys. If more than half of the hashes remain, they
                // become a filter. Otherwise the next sort happens after as many new keys.
                before.sort_unstable();
                before.dedup();
                if before.len() > most / 2 {
                    self.become_filter()?;
                }
                Ok(())
            }
        }
    }

    /// Converts the hashes to a filter, unless it is one already.
    fn become_filter(&mut self) -> Result<&mut BloomFilter> {
        if let Keys::Hashes(hashes) = &self.keys {
            let empty = BloomFilter::with_params(self.params, self.key.key_hash());
            let mut filter = empty.map_err(failed(NAME))?;
            filter.insert_hashes(hashes).map_err(failed(NAME))?;
            self.keys = Keys::Filter(filter);
        }
        match &mut self.keys {
            Keys::Filter(filter) => Ok(filter),
            Keys::Hashes(_) => unreachable!("replaced above"),
        }
    }

    /// Returns the state, which the collector of another partition can merge.
    pub(crate) fn state(&self) -> Vec<u8> {
        let ranges = self.ranges.as_ref();
        match &self.keys {
            Keys::Hashes(hashes) => {
                let hashes: Vec<u8> = hashes.iter().flat_map(|hash| hash.to_le_bytes()).collect();
                self.encode(HASHES, ranges, &hashes)
            }
            Keys::Filter(filter) => self.encode(FILTER, ranges, &filter.to_bytes()),
        }
    }

    /// Returns the state of a pass-all filter.
    pub(crate) fn pass_all_state(&self) -> Vec<u8> {
        self.encode(FILTER, None, &BloomFilter::pass_all(self.key.key_hash()).to_bytes())
    }

    fn encode(&self, kind: u8, ranges: Option<&Ranges>, body: &[u8]) -> Vec<u8> {
        let mut state = vec![kind + if ranges.is_some() { RANGES } else { 0 }];
        state.extend(self.key.seed().to_le_bytes());
        ranges.inspect(|ranges| ranges.encode(&mut state));
        state.extend(body);
        state
    }

    pub(crate) fn merge(&mut self, state: &[u8]) -> Result<()> {
        let Some((header, body)) = state.split_at_checked(STATE_HEADER) else {
            return exec_err!("{NAME}: {} bytes of state (at least {STATE_HEADER})", state.len());
        };
        if header[1..] != self.key.seed().to_le_bytes() {
            return exec_err!("{NAME}: a state has keys of another type (expected {})", self.key);
        }
        let (ranges, body) = match header[0] & RANGES {
            0 => (None, body),
            _ => Ranges::decode(body).map(|(ranges, body)| (Some(ranges), body))?,
        };
        let ranges = match (self.ranges.take(), ranges) {
            (_, first) if !self.is_used => first,
            (known, other) => known.zip(other).map(|(mut known, other)| {
                known.merge(other);
                known
            }),
        };
        match header[0] & !RANGES {
            HASHES => {
                let (hashes, rest) = body.as_chunks::<8>();
                if !rest.is_empty() {
                    return exec_err!("{NAME}: {} bytes of hashes (not 8 each)", body.len());
                }
                let hashes: Vec<u64> = hashes.iter().map(|h| u64::from_le_bytes(*h)).collect();
                self.insert(&hashes)?;
            }
            FILTER => {
                let other =
                    BloomFilter::from_bytes(body, self.key.key_hash()).map_err(failed(NAME))?;
                let filter = self.become_filter()?;
                match filter.union_with(&other) {
                    // The union with a pass-all filter is a pass-all filter.
                    Err(MergeError::PassAll) => {
                        *filter = other.to_filter().map_err(failed(NAME))?
                    }
                    merged => merged.map_err(failed(NAME))?,
                }
            }
            _ => {
                return exec_err!("{NAME}: unknown kind of state {} (known: 0 to 3)", header[0]);
            }
        }
        (self.ranges, self.is_used) = (ranges, true);
        Ok(())
    }

    /// Returns the stored filter, as small as its keys allow, after the ranges of its keys if they
    /// are known.
    pub(crate) fn finish(&mut self) -> Result<Vec<u8>> {
        let filter = self.stored_filter()?;
        let Some(ranges) = &self.ranges else { return Ok(filter) };
        let mut result = vec![RANGES];
        ranges.encode(&mut result);
        result.extend(filter);
        Ok(result)
    }

    fn stored_filter(&mut self) -> Result<Vec<u8>> {
        match &mut self.keys {
            Keys::Hashes(hashes) => {
                hashes.sort_unstable();
                hashes.dedup();
                let sizing = Sizing::FalsePositiveRate(self.rate);
                let options = FilterOptions::new(sizing).with_key_hash(self.key.key_hash());
                let filter = BloomFilter::from_hashes(&options, hashes).map_err(failed(NAME))?;
                Ok(filter.to_bytes())
            }
            Keys::Filter(filter) if filter.estimated_false_positive_rate() >= self.rate => {
                Ok(filter.to_bytes())
            }
            Keys::Filter(filter) => {
                // A copy is made smaller. The filter itself keeps its shape, because more keys may
                // be added (in windows) and other filters merged.
                let mut smaller = filter.to_filter().map_err(failed(NAME))?;
                smaller.shrink_to_false_positive_rate(self.rate).map_err(failed(NAME))?;
                Ok(smaller.to_bytes())
            }
        }
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        match &self.keys {
            Keys::Hashes(hashes) => hashes.capacity() * 8,
            Keys::Filter(filter) => filter.memory_bytes() as usize,
        }
    }
}

#[cfg(test)]
#[path = "../tests/unit/filter.rs"]
mod tests;
