// The engine's own tests compile this file as a module of the engine, and `tests/suite/failure.rs`
// includes it.

use std::sync::atomic::{AtomicU64, Ordering};

use blocked_bloom::{BloomFilter, FilterOptions, KeyHash, KeyHasher, ParamsError, Sizing};
use surrealkv::FilterPolicy;

/// Version of the compact form, number of the probe scheme, hash and seed, and contents. If one of
/// them differs, filters cannot be read or would answer "absent" for present keys.
const NAME: &str = "blocked-bloom:compact1:scheme1:xxh3-0:keys";

/// The compact form holds only filters of this hash.
const KEY_HASH: KeyHash = KeyHash::Xxh3 { seed: 0 };

/// A filter policy for `TreeBuilder::with_filter_policy`.
///
/// Filters are stored in the [compact form](BloomFilter::to_compact_bytes), without a checksum: the
/// engine verifies its own checksum of each filter partition when it reads it. The sizing can be
/// changed at any time and applies to new tables.
///
/// ```
/// use blocked_bloom::Sizing;
/// use blocked_bloom_surrealkv::BlockedBloomPolicy;
/// use surrealkv::FilterPolicy;
///
/// let policy = BlockedBloomPolicy::new(Sizing::FalsePositiveRate(0.01))?;
/// let filter = policy.create_filter(&[b"apple".to_vec()]);
/// assert!(policy.may_contain(&filter, b"apple"));
/// assert!(!policy.may_contain(&filter, b"banana"));
/// # Ok::<(), blocked_bloom::ParamsError>(())
/// ```
#[derive(Debug)]
pub struct BlockedBloomPolicy {
    options: FilterOptions,
    unusable: AtomicU64,
}

impl BlockedBloomPolicy {
    /// Creates a policy. [`Sizing::BitsPerKey`] accepts fractions, and [`Sizing::MaxBytes`] applies
    /// to each partition of a table's filter.
    ///
    /// # Errors
    ///
    /// [`ParamsError`] if the sizing is out of range.
    pub fn new(sizing: Sizing) -> Result<Self, ParamsError> {
        let options = FilterOptions::new(sizing).with_key_hash(KEY_HASH);
        options.params(1 << 20)?;
        Ok(BlockedBloomPolicy { options, unusable: AtomicU64::new(0) })
    }

    /// Returns the number of filters that could not be built. They answer "maybe" to every key.
    pub fn unusable_filters(&self) -> u64 {
        self.unusable.load(Ordering::Relaxed)
    }

    /// Returns a filter that answers "maybe" to every key.
    #[cold]
    fn pass_all(&self, error: &dyn std::error::Error) -> Vec<u8> {
        self.unusable.fetch_add(1, Ordering::Relaxed);
        tracing::error!("filter could not be built, its keys are read without one: {error}");
        // Lookups in an empty filter answer "maybe" too.
        BloomFilter::pass_all(KEY_HASH).to_compact_bytes().unwrap_or_default()
    }
}

impl FilterPolicy for BlockedBloomPolicy {
    fn name(&self) -> &str {
        NAME
    }

    fn may_contain(&self, filter: &[u8], key: &[u8]) -> bool {
        BloomFilter::contains_hash_in(filter, KEY_HASH, self.key_hash(key))
    }

    fn create_filter(&self, keys: &[Vec<u8>]) -> Vec<u8> {
        let hashes: Vec<u64> = keys.iter().map(|key| self.key_hash(key)).collect();
        self.create_filter_from_hashes(&hashes)
    }

    /// The engine's own policy returns 32 bits here, which cannot be used as a caller-supplied
    /// hash: the high half of a hash selects the bits of its block.
    fn key_hash(&self, key: &[u8]) -> u64 {
        KeyHasher::default().hash(key)
    }

    fn create_filter_from_hashes(&self, hashes: &[u64]) -> Vec<u8> {
        let filter = match BloomFilter::from_hashes(&self.options, hashes) {
            Ok(filter) => filter,
            Err(error) => return self.pass_all(&error),
        };
        filter.to_compact_bytes().unwrap_or_else(|error| self.pass_all(&error))
    }

    fn filter_keys_per_partition(&self, partition_bytes: usize) -> usize {
        // The full form takes 56 bytes more than the compact form.
        let keys = self.options.max_additions(partition_bytes as u64 + 56).unwrap_or(1);
        usize::try_from(keys).unwrap_or(usize::MAX).max(1)
    }
}
