//! Filters as values of SQL: collected from hashes, stored as binary values, opened and looked up.

use std::fmt::Display;
use std::sync::atomic::{AtomicU64, Ordering};

use blocked_bloom::{
    BloomFilter, Filter, FilterContents, FilterOptions, MergeError, Params, Sizing,
};
use datafusion::arrow::array::{ArrayRef, BooleanArray};
use datafusion::arrow::buffer::{BooleanBuffer, Buffer};
use datafusion::common::{Result, exec_datafusion_err, exec_err};
use datafusion::error::DataFusionError;

use crate::keys::{KeyType, hash_array};

/// Most bytes of a filter: half of what the offsets of a binary array can address.
pub(crate) const MOST_BYTES: u64 = 1 << 30;

static OPENED: AtomicU64 = AtomicU64::new(0);

/// Filters that were opened (copied and their checksums verified) in this process so far. For
/// dashboards and tests: one per query and filter is expected, never one per batch.
pub fn filters_opened() -> u64 {
    OPENED.load(Ordering::Relaxed)
}

/// An error of one of the functions.
pub(crate) fn failed<E: Display>(function: &str) -> impl Fn(E) -> DataFusionError {
    move |error| exec_datafusion_err!("{function}: {error}")
}

/// Opens a stored filter of keys of this type, into memory aligned to cache lines.
pub(crate) fn open(bytes: &[u8], key: KeyType, function: &str) -> Result<BloomFilter> {
    let stored = BloomFilter::from_bytes_any_hash(bytes).map_err(failed(function))?;
    if stored.key_hash() != key.key_hash() {
        return match KeyType::from_key_hash(stored.key_hash()) {
            Some(of) => exec_err!("{function}: the filter is of {of}, the column of {key}"),
            None => exec_err!("{function}: the filter is of hashes that its builder supplied"),
        };
    }
    if stored.contents() != FilterContents::WholeKeys {
        return exec_err!("{function}: the filter is of prefixes of keys");
    }
    OPENED.fetch_add(1, Ordering::Relaxed);
    stored.to_filter().map_err(failed(function))
}

/// Looks up every value of an array. The answer is NULL where the value is. The filter writes the
/// words of the resulting bitmap.
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

/// What a filter is sized for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Size {
    pub(crate) expected_keys: u64,
    pub(crate) rate: f64,
}

impl Size {
    /// The shape that the filters of all partitions have, so that they can be merged.
    pub(crate) fn params(self) -> Result<Params> {
        let failed = failed("bloom_filter_agg");
        let sizing = Sizing::FalsePositiveRate(self.rate);
        let params = sizing.foldable_params(self.expected_keys.max(1)).map_err(failed)?;
        let bytes = params.stored_bytes();
        if bytes > MOST_BYTES {
            return exec_err!(
                "bloom_filter_agg: {} expected keys at a rate of {} take {bytes} bytes \
                 (limit {MOST_BYTES})",
                self.expected_keys,
                self.rate
            );
        }
        Ok(params)
    }
}

/// The keys of one group so far: their hashes while these take fewer bytes than a filter, then the
/// filter.
#[derive(Debug)]
pub(crate) struct Collector {
    key: KeyType,
    rate: f64,
    params: Params,
    keys: Keys,
}

#[derive(Debug)]
enum Keys {
    Hashes(Vec<u64>),
    Filter(BloomFilter),
}

const NAME: &str = "bloom_filter_agg";

/// The first byte of a state, before the type of the keys.
const HASHES: u8 = 0;
const FILTER: u8 = 1;
const STATE_HEADER: usize = 9;

impl Collector {
    pub(crate) fn new(key: KeyType, size: Size) -> Result<Self> {
        let (params, rate) = (size.params()?, size.rate);
        Ok(Collector { key, rate, params, keys: Keys::Hashes(Vec::new()) })
    }

    pub(crate) fn insert(&mut self, hashes: &[u64]) -> Result<()> {
        match &mut self.keys {
            Keys::Filter(filter) => filter.insert_hashes(hashes).map_err(failed(NAME)),
            Keys::Hashes(before) => {
                before.extend_from_slice(hashes);
                let most = self.params.stored_bytes() as usize / 8;
                if before.len() <= most {
                    return Ok(());
                }
                // Repeated keys are removed by a sort. If that leaves more than half of the hashes,
                // they become a filter; else the next sort comes only after as many new keys.
                before.sort_unstable();
                before.dedup();
                if before.len() > most / 2 {
                    self.become_filter()?;
                }
                Ok(())
            }
        }
    }

    /// The filter. Keys that are still hashes become a filter first.
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

    /// The state that the collector of another partition merges.
    pub(crate) fn state(&self) -> Vec<u8> {
        match &self.keys {
            Keys::Hashes(hashes) => {
                let mut state = vec![HASHES];
                state.extend(self.key.seed().to_le_bytes());
                state.extend(hashes.iter().flat_map(|hash| hash.to_le_bytes()));
                state
            }
            Keys::Filter(filter) => self.state_of(&filter.to_bytes()),
        }
    }

    /// The state of keys that may be any.
    pub(crate) fn pass_all_state(&self) -> Vec<u8> {
        self.state_of(&BloomFilter::pass_all(self.key.key_hash()).to_bytes())
    }

    /// The state of this stored filter.
    fn state_of(&self, filter: &[u8]) -> Vec<u8> {
        [&[FILTER][..], &self.key.seed().to_le_bytes(), filter].concat()
    }

    pub(crate) fn merge(&mut self, state: &[u8]) -> Result<()> {
        let Some((header, body)) = state.split_at_checked(STATE_HEADER) else {
            return exec_err!("{NAME}: a state of {} bytes (at least {STATE_HEADER})", state.len());
        };
        if header[1..] != self.key.seed().to_le_bytes() {
            return exec_err!("{NAME}: a state of keys of another type than {}", self.key);
        }
        match header[0] {
            HASHES => {
                let (hashes, rest) = body.as_chunks::<8>();
                if !rest.is_empty() {
                    return exec_err!(
                        "{NAME}: hashes of {} bytes, which 8 do not divide",
                        body.len()
                    );
                }
                let hashes: Vec<u64> = hashes.iter().map(|h| u64::from_le_bytes(*h)).collect();
                self.insert(&hashes)
            }
            FILTER => {
                let other = BloomFilter::from_bytes(body, self.key.key_hash()).map_err(failed(NAME))?;
                let filter = self.become_filter()?;
                match filter.union_with(&other) {
                    // The union with a filter that answers "maybe" to everything is such a filter.
                    Err(MergeError::PassAll) => {
                        *filter = other.to_filter().map_err(failed(NAME))?
                    }
                    merged => merged.map_err(failed(NAME))?,
                }
                Ok(())
            }
            other => exec_err!("{NAME}: a state of kind {other} (known: 0, 1)"),
        }
    }

    /// The stored filter, as small as the keys allow.
    pub(crate) fn finish(&mut self) -> Result<Vec<u8>> {
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
                // A copy is made smaller. To the filter itself, which keeps the full shape, more
                // keys may be added, as in windows, and filters of other partitions may be merged.
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
mod tests {
    use super::*;

    #[test]
    fn a_state_that_answers_maybe_makes_the_result_do_so() -> Result<()> {
        let key = KeyType::of(&datafusion::arrow::datatypes::DataType::Int64)?;
        let mut known = Collector::new(key, Size { expected_keys: 1_000, rate: 0.01 })?;
        known.insert(&[7, 8])?;
        let other = Collector::new(key, Size { expected_keys: 1_000, rate: 0.01 })?;
        known.merge(&other.pass_all_state())?;
        // What comes later does not undo it.
        let mut many = Collector::new(key, Size { expected_keys: 1_000, rate: 0.01 })?;
        many.insert(&(0..1_000).collect::<Vec<u64>>())?;
        assert!(matches!(many.keys, Keys::Filter(_)));
        known.merge(&many.state())?;
        known.merge(&other.state())?;
        known.insert(&[9])?;
        let merged = open(&known.finish()?, key, NAME)?;
        assert!(merged.is_pass_all() && merged.contains_hash(1 << 40));
        Ok(())
    }
}
