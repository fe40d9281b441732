//! Counting what filters save: a set of counters that threads share.
//!
//! This file owns the counters and how threads share them; `metrics/snapshot.rs` reads them. It refuses to be called by a query: the
//! engine records a batch after it was answered, and an engine that does not pays nothing.

#[cfg(feature = "std")]
mod slot;
mod snapshot;

#[cfg(not(target_has_atomic = "64"))]
use core::sync::atomic::AtomicU32 as Count;
#[cfg(target_has_atomic = "64")]
use core::sync::atomic::AtomicU64 as Count;
use core::sync::atomic::Ordering::Relaxed;

#[cfg(target_has_atomic = "64")]
type Number = u64;
#[cfg(not(target_has_atomic = "64"))]
type Number = u32;

use crate::bitmask::Bitmask;

pub use snapshot::{MetricsSnapshot, RateWarning};

/// Counters of queries and their outcomes, for one filter, one level or the whole engine. Share it by `&`, in an `Arc` or a
/// `static`.
///
/// | counter | RocksDB's ticker | meaning |
/// |---|---|---|
/// | `queries` | | keys that were asked about |
/// | `useful` | `bloom.filter.useful` | of those, certainly absent: a read was saved |
/// | `full_positives` | `bloom.filter.full.positive` | of those, maybe present |
/// | `full_true_positives` | `bloom.filter.full.true.positive` | of the positives, the keys that a read then found |
///
/// The engine records a batch after it was answered, and feeds back what its reads found. Cost: a few nanoseconds per recorded batch and per 64
/// of its keys (`blocked-bloom bench --op metrics` measures it, `benches/NOTES.md` has figures). With `std`, up to 16 living threads write counters of their own, each in a cache line that no other thread
/// writes; further threads, and all without `std`, share one line by atomic additions. Takes 2.2 KB, 128 bytes without `std`.
///
/// Every call counts exactly. Counters saturate, at 2^64 - 1, on machines without atomic words of 64 bits at 2^32 - 1 each.
///
/// ```
/// use blocked_bloom::{Bitmask, BloomFilterBuilder, FilterMetrics, Sizing};
/// static METRICS: FilterMetrics = FilterMetrics::new();
///
/// let mut builder = BloomFilterBuilder::new(Sizing::BitsPerKey(16.0));
/// builder.extend(["apple", "banana"]);
/// let filter = builder.finish()?;
/// let mut hits = Bitmask::new();
/// filter.contains_batch(&["apple", "cherry", "damson"], &mut hits);
/// METRICS.record(&hits);
/// let found = hits.hits().count(); // here: read the blocks, count the keys that are there
/// METRICS.record_true_positives(found);
///
/// let counts = METRICS.snapshot();
/// assert_eq!((counts.queries(), counts.useful(), counts.false_positives()), (3, 2, 0));
/// # Ok::<(), blocked_bloom::BuildError>(())
/// ```
pub struct FilterMetrics {
    shared: Shard,
    #[cfg(feature = "std")]
    owned: [Shard; slot::SLOTS],
}

/// Counters that one thread writes, or those that all others share. Two cache lines, since processors fetch lines in pairs.
#[repr(align(128))]
struct Shard {
    useful: Count,
    full_positives: Count,
    full_true_positives: Count,
}

impl Shard {
    const fn new() -> Self {
        Shard {
            useful: Count::new(0),
            full_positives: Count::new(0),
            full_true_positives: Count::new(0),
        }
    }
}

impl FilterMetrics {
    /// All counters at zero. Allocates nothing.
    ///
    /// ```
    /// # use blocked_bloom::FilterMetrics;
    /// static METRICS: FilterMetrics = FilterMetrics::new();
    /// assert_eq!(METRICS.snapshot().queries(), 0);
    /// ```
    pub const fn new() -> Self {
        FilterMetrics {
            shared: Shard::new(),
            #[cfg(feature = "std")]
            owned: [const { Shard::new() }; slot::SLOTS],
        }
    }

    /// Counts the answers to a batch: each hit as a positive, each miss as useful.
    ///
    /// ```
    /// # use blocked_bloom::{Bitmask, BloomFilter, FilterMetrics, KeyHash};
    /// # let filter = BloomFilter::pass_all(KeyHash::default())?;
    /// let (metrics, mut hits) = (FilterMetrics::new(), Bitmask::new());
    /// filter.contains_batch(&["apple", "banana"], &mut hits);
    /// metrics.record(&hits);
    /// assert_eq!(metrics.snapshot().full_positives(), 2);
    /// # Ok::<(), blocked_bloom::AllocError>(())
    /// ```
    #[inline]
    pub fn record(&self, hits: &Bitmask) {
        self.record_batch(hits.len(), hits.count_hits());
    }

    /// Counts `queried` keys of which `positives` may be present: for an engine that has counted the hits anyway, and for single
    /// queries. More positives than keys count as that many keys.
    ///
    /// ```
    /// # use blocked_bloom::FilterMetrics;
    /// let metrics = FilterMetrics::new();
    /// metrics.record_batch(128, 3);
    /// assert_eq!(metrics.snapshot().useful(), 125);
    /// ```
    #[inline]
    pub fn record_batch(&self, queried: usize, positives: usize) {
        let positives = positives.min(queried);
        self.add([queried - positives, positives], |shard| [&shard.useful, &shard.full_positives]);
    }

    /// Counts positives whose key a read then found.
    ///
    /// Until it is fed back every positive counts as false: an engine that records queries and never this sees a false-positive rate
    /// that is far too high.
    ///
    /// ```
    /// # use blocked_bloom::FilterMetrics;
    /// let metrics = FilterMetrics::new();
    /// metrics.record_batch(128, 3);
    /// metrics.record_true_positives(2);
    /// assert_eq!(metrics.snapshot().false_positives(), 1);
    /// ```
    #[inline]
    pub fn record_true_positives(&self, found: usize) {
        self.add([found], |shard| [&shard.full_true_positives]);
    }

    /// The counters now. While other threads record, each counter is one that was true at some moment of the call; calls that
    /// this one happens after are all in it.
    ///
    /// ```
    /// # use blocked_bloom::FilterMetrics;
    /// let metrics = FilterMetrics::new();
    /// metrics.record_batch(1, 0);
    /// println!("{}", metrics.snapshot());
    /// ```
    pub fn snapshot(&self) -> MetricsSnapshot {
        MetricsSnapshot {
            useful: self.sum(|shard| &shard.useful),
            full_positives: self.sum(|shard| &shard.full_positives),
            full_true_positives: self.sum(|shard| &shard.full_true_positives),
        }
    }

    #[inline]
    fn add<const N: usize>(&self, amounts: [usize; N], counters: impl Fn(&Shard) -> [&Count; N]) {
        let amounts = amounts.map(|amount| Number::try_from(amount).unwrap_or(Number::MAX));
        #[cfg(feature = "std")]
        if let Some(shard) = slot::of_this_thread().and_then(|slot| self.owned.get(slot)) {
            // Nobody else writes it, so loading and storing loses nothing.
            for (counter, amount) in counters(shard).into_iter().zip(amounts) {
                counter.store(counter.load(Relaxed).saturating_add(amount), Relaxed);
            }
            return;
        }
        for (counter, amount) in counters(&self.shared).into_iter().zip(amounts) {
            add_to_shared(counter, amount);
        }
    }

    fn sum(&self, counter: impl Fn(&Shard) -> &Count) -> u64 {
        #[cfg(feature = "std")]
        let owned = &self.owned[..];
        #[cfg(not(feature = "std"))]
        let owned: &[Shard] = &[];
        let shards = owned.iter().chain([&self.shared]);
        shards.fold(0, |sum: u64, shard| {
            #[allow(clippy::useless_conversion, reason = "a counter may have 32 bits")]
            sum.saturating_add(counter(shard).load(Relaxed).into())
        })
    }
}

fn add_to_shared(counter: &Count, amount: Number) {
    let mut count = counter.load(Relaxed);
    while let Err(found) =
        counter.compare_exchange_weak(count, count.saturating_add(amount), Relaxed, Relaxed)
    {
        count = found;
    }
}

impl Default for FilterMetrics {
    fn default() -> Self {
        FilterMetrics::new()
    }
}

/// The counters, as [`snapshot`](FilterMetrics::snapshot) reads them.
impl core::fmt::Debug for FilterMetrics {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("FilterMetrics").field(&self.snapshot()).finish()
    }
}
