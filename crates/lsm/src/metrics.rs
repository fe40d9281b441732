//! Counts the reads that filters save: counters shared between threads, the rates that follow from
//! them, and a warning if the rates are too high.
//!
//! Lookups count nothing by themselves. The engine records a batch after it was answered; an engine
//! that records nothing pays nothing.

use core::fmt::{self, Debug, Display, Formatter};
#[cfg(not(target_has_atomic = "64"))]
use core::sync::atomic::AtomicU32 as Counter;
#[cfg(target_has_atomic = "64")]
use core::sync::atomic::AtomicU64 as Counter;
use core::sync::atomic::Ordering::Relaxed;

use blocked_bloom::Bitmask;

#[cfg(not(target_has_atomic = "64"))]
type Count = u32;
#[cfg(target_has_atomic = "64")]
type Count = u64;

/// Multiple of the predicted rate above which [`MetricsSnapshot::check`] warns.
const DEFAULT_FACTOR: f64 = 2.0;

/// Natural logarithm of the probability of a warning about a filter that keeps its predicted rate:
/// 3 in ten million, or five standard deviations.
const MAX_LOG_PROBABILITY: f64 = -15.0;

/// Counters of queries and their results, for one filter, one level or the whole engine. Share them
/// by `&`, in an `Arc` or in a `static`.
///
/// | counter | RocksDB's ticker | meaning |
/// |---|---|---|
/// | `useful` | `bloom.filter.useful` | certainly absent keys: each saved a read |
/// | `positives` | `bloom.filter.full.positive` | keys that may be present |
/// | `true_positives` | `bloom.filter.full.true.positive` | positives that a read then found |
/// | `pass_all` | | keys answered by a pass-all filter; not in the other counters |
///
/// The engine records a batch after it was answered, and then the keys that its reads found. Cost:
/// one relaxed atomic addition for each counter that a call changes, all in one cache line. If many
/// threads record small batches, give each thread its own counters.
///
/// Every call counts exactly. A counter stops at its largest value: 2^64 - 1, or 2^32 - 1 on
/// targets without 64-bit atomics. The type does not exist on targets without 32-bit atomics.
///
/// ```
/// use blocked_bloom::{Bitmask, FilterOptions, Sizing};
/// use blocked_bloom_lsm::FilterMetrics;
/// static METRICS: FilterMetrics = FilterMetrics::new();
///
/// let mut builder = FilterOptions::new(Sizing::BitsPerKey(16.0)).builder();
/// builder.extend(["apple", "banana"])?;
/// let filter = builder.finish()?;
/// let mut hits = Bitmask::new();
/// filter.contains_batch(&["apple", "cherry", "damson"], &mut hits);
/// METRICS.record(&hits);
/// let found = hits.hits().count(); // an engine reads the blocks and counts the keys it finds
/// METRICS.record_true_positives(found);
///
/// let counts = METRICS.snapshot();
/// assert_eq!((counts.queries(), counts.useful(), counts.false_positives()), (3, 2, 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Default)]
#[repr(align(64))] // its own cache line, so that counting does not slow down its neighbours
pub struct FilterMetrics {
    useful: Counter,
    positives: Counter,
    true_positives: Counter,
    pass_all: Counter,
}

impl FilterMetrics {
    /// Creates counters at zero, without allocating.
    pub const fn new() -> Self {
        FilterMetrics {
            useful: Counter::new(0),
            positives: Counter::new(0),
            true_positives: Counter::new(0),
            pass_all: Counter::new(0),
        }
    }

    /// Counts the answers to a batch: each hit as a positive, each miss as useful. For a pass-all
    /// filter, call [`record_pass_all`](Self::record_pass_all) instead.
    #[inline]
    pub fn record(&self, hits: &Bitmask) {
        self.record_batch(hits.len(), hits.count_hits());
    }

    /// Counts `queried` keys and the `positives` among them: for an engine that has counted
    /// the hits already, and for single queries. `positives` is limited to `queried`.
    #[inline]
    pub fn record_batch(&self, queried: usize, positives: usize) {
        let positives = positives.min(queried);
        add(&self.useful, queried - positives);
        add(&self.positives, positives);
    }

    /// Counts positives whose key a read then found, except those of pass-all filters.
    ///
    /// Every positive counts as false until it is recorded here. An engine that never calls this
    /// sees a false-positive rate that is far too high.
    #[inline]
    pub fn record_true_positives(&self, found: usize) {
        add(&self.true_positives, found);
    }

    /// Counts keys answered by a pass-all filter, for example one that replaces a damaged filter.
    /// They are not part of the observed rate, which is that of the other filters. A
    /// [warning](RateWarning) names them as the cause if the other filters keep the predicted rate.
    ///
    /// ```
    /// # use blocked_bloom::{Bitmask, BloomFilter, KeyHash};
    /// # let metrics = blocked_bloom_lsm::FilterMetrics::new();
    /// let (filter, error) = BloomFilter::open_or_pass_all(b"damaged", KeyHash::default());
    /// let mut hits = Bitmask::new();
    /// filter.contains_batch(&["apple", "cherry"], &mut hits);
    /// match filter.view().is_pass_all() {
    ///     true => metrics.record_pass_all(hits.len()),
    ///     false => metrics.record(&hits),
    /// }
    /// assert_eq!((metrics.snapshot().pass_all(), metrics.snapshot().positives()), (2, 0));
    /// ```
    #[inline]
    pub fn record_pass_all(&self, queried: usize) {
        add(&self.pass_all, queried);
    }

    /// Returns the current counters, including all calls that happened before this one. While other
    /// threads record, each counter has a value that it had at some moment during the call.
    pub fn snapshot(&self) -> MetricsSnapshot {
        let [useful, positives, true_positives, pass_all] =
            [&self.useful, &self.positives, &self.true_positives, &self.pass_all].map(|counter| {
                #[allow(clippy::useless_conversion, reason = "a counter may have 32 bits")]
                u64::from(counter.load(Relaxed))
            });
        MetricsSnapshot { useful, positives, true_positives, pass_all }
    }
}

/// Adds, and stops at the largest value.
#[inline]
fn add(counter: &Counter, amount: usize) {
    let amount = Count::try_from(amount).unwrap_or(Count::MAX);
    if amount == 0 {
        return;
    }
    if cfg!(not(target_has_atomic = "64")) {
        // A busy machine fills 32 bits within minutes. The closure never returns `None`.
        _ = counter.fetch_update(Relaxed, Relaxed, |count| Some(count.saturating_add(amount)));
    } else if counter.fetch_add(amount, Relaxed).checked_add(amount).is_none() {
        // Not a loop that other threads could force to retry. The price: a snapshot taken before
        // this line may see a wrapped sum. A billion keys per second fill 64 bits in 584 years.
        counter.store(Count::MAX, Relaxed);
    }
}

/// Prints the counters, as [`snapshot`](FilterMetrics::snapshot) returns them.
impl Debug for FilterMetrics {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FilterMetrics").field(&self.snapshot()).finish()
    }
}

/// The counters of a [`FilterMetrics`] at one moment, or the difference between two moments.
///
/// `Display` prints one line per counter, like RocksDB's statistics.
///
/// ```
/// # use blocked_bloom_lsm::FilterMetrics;
/// let metrics = FilterMetrics::new();
/// metrics.record_batch(1_000, 10);
/// metrics.record_true_positives(4);
/// let counts = metrics.snapshot();
/// assert_eq!((counts.queries(), counts.useful(), counts.positives()), (1_000, 990, 10));
/// assert_eq!(counts.observed_false_positive_rate(), Some(6.0 / 996.0));
/// assert!(counts.to_string().contains("bloom.filter.useful COUNT : 990\n"));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MetricsSnapshot {
    useful: u64,
    positives: u64,
    true_positives: u64,
    pass_all: u64,
}

impl MetricsSnapshot {
    /// Keys looked up, including those in pass-all filters (saturating).
    pub fn queries(&self) -> u64 {
        self.useful.saturating_add(self.positives).saturating_add(self.pass_all)
    }

    /// Certainly absent keys: `bloom.filter.useful`.
    pub fn useful(&self) -> u64 {
        self.useful
    }

    /// Keys that may be present: `bloom.filter.full.positive`.
    pub fn positives(&self) -> u64 {
        self.positives
    }

    /// Positives whose key was found: `bloom.filter.full.true.positive`.
    pub fn true_positives(&self) -> u64 {
        self.true_positives
    }

    /// Keys looked up in pass-all filters.
    pub fn pass_all(&self) -> u64 {
        self.pass_all
    }

    /// Positives whose key was not found, or not yet recorded as found; 0 if more were recorded as
    /// found than as positive.
    pub fn false_positives(&self) -> u64 {
        self.positives.saturating_sub(self.true_positives)
    }

    /// Lookups of absent keys: false positives plus useful answers (saturating).
    pub fn absent_queries(&self) -> u64 {
        self.useful.saturating_add(self.false_positives())
    }

    /// False positives per lookup of an absent key, 0 to 1, without pass-all filters. `None`
    /// without such lookups.
    pub fn observed_false_positive_rate(&self) -> Option<f64> {
        let absent = self.absent_queries();
        (absent > 0).then(|| self.false_positives() as f64 / absent as f64)
    }

    /// Returns the counts since `earlier`, a snapshot of the same counters. A counter that was
    /// higher then becomes 0.
    #[must_use]
    pub fn delta_since(&self, earlier: &MetricsSnapshot) -> MetricsSnapshot {
        MetricsSnapshot {
            useful: self.useful.saturating_sub(earlier.useful),
            positives: self.positives.saturating_sub(earlier.positives),
            true_positives: self.true_positives.saturating_sub(earlier.true_positives),
            pass_all: self.pass_all.saturating_sub(earlier.pass_all),
        }
    }

    /// Returns a warning if absent keys passed at more than twice the predicted rate and chance
    /// does not explain it: see [`check_with_factor`](Self::check_with_factor).
    ///
    /// `predicted_rate`, 0 to 1, is that of
    /// [`PlannedLevel`](crate::PlannedLevel::false_positive_rate) or of
    /// [`Params`](blocked_bloom::Params::false_positive_rate); for several filters that share
    /// counters, the mean weighted by queries. Do not pass the rate of a pass-all filter: it is 1,
    /// and no rate exceeds it.
    pub fn check(&self, predicted_rate: f64) -> Option<RateWarning> {
        self.check_with_factor(predicted_rate, DEFAULT_FACTOR)
    }

    /// Returns a warning if absent keys passed at more than `factor` times the predicted rate and
    /// chance does not explain it.
    ///
    /// With `m` false positives predicted and `f` counted, the probability of `f` or more is at
    /// most `e^-(f ln(f/m) - f + m)` (Chernoff's bound for a sum of independent events). A warning
    /// needs both: `f > factor m`, and a probability below `e^-15` (3 in ten million, or five
    /// standard deviations). At twice the rate that takes 78 false positives, at ten times 11.
    ///
    /// Keys answered by pass-all filters count here as absent keys that passed, because their true
    /// positives are not recorded. The warning tells the two causes apart.
    ///
    /// A hot absent key that passes is counted at each lookup. The observed rate is then high, and
    /// the reads are wasted, although the filter is as good as predicted. A factor below 1, and a
    /// NaN, never warn.
    ///
    /// ```
    /// # let metrics = blocked_bloom_lsm::FilterMetrics::new();
    /// metrics.record_batch(10_000, 150);
    /// assert!(metrics.snapshot().check_with_factor(0.01, 1.2).is_none()); // 2 in 100,000
    /// metrics.record_batch(10_000, 150);
    /// assert!(metrics.snapshot().check_with_factor(0.01, 1.2).is_some());
    /// ```
    pub fn check_with_factor(&self, predicted_rate: f64, factor: f64) -> Option<RateWarning> {
        let (false_positives, absent_queries) = (self.false_positives(), self.absent_queries());
        let exceeds = |pass_all: u64| {
            let passed = false_positives.saturating_add(pass_all) as f64;
            let absent = absent_queries.saturating_add(pass_all) as f64;
            let predicted = absent * predicted_rate.max(0.0);
            // If no false positives are predicted, the quotient and the bound are infinite.
            let log_probability = passed - predicted - passed * libm::log(passed / predicted);
            factor >= 1.0 && passed > factor * predicted && log_probability < MAX_LOG_PROBABILITY
        };
        // Pass-all lookups only raise the excess, so this also covers the excess of the other
        // filters.
        (!predicted_rate.is_nan() && exceeds(self.pass_all)).then(|| RateWarning {
            observed_rate: self.observed_false_positive_rate().unwrap_or(0.0),
            predicted_rate,
            false_positives,
            absent_queries,
            pass_all: self.pass_all,
            queries: self.queries(),
            filters_are_as_predicted: !exceeds(0),
        })
    }
}

impl Display for MetricsSnapshot {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "bloom.filter.queries COUNT : {}", self.queries())?;
        writeln!(f, "bloom.filter.useful COUNT : {}", self.useful)?;
        writeln!(f, "bloom.filter.full.positive COUNT : {}", self.positives)?;
        writeln!(f, "bloom.filter.full.true.positive COUNT : {}", self.true_positives)?;
        writeln!(f, "bloom.filter.pass.all COUNT : {}", self.pass_all)
    }
}

/// Absent keys pass more often than the shape of the filters predicts: [`MetricsSnapshot::check`].
///
/// ```
/// # let metrics = blocked_bloom_lsm::FilterMetrics::new();
/// metrics.record_batch(20_000, 200);
/// metrics.record_pass_all(5_000);
/// let warning = metrics.snapshot().check(0.01).unwrap();
/// assert!(warning.to_string().starts_with("5000 of 25000 lookups went to pass-all tables"));
/// assert_eq!((warning.observed_rate, warning.pass_all), (0.01, 5_000));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct RateWarning {
    /// False positives per absent key, 0 to 1, without pass-all filters.
    pub observed_rate: f64,
    /// The predicted rate.
    pub predicted_rate: f64,
    /// Positives whose key was not found.
    pub false_positives: u64,
    /// Lookups of absent keys.
    pub absent_queries: u64,
    /// Keys looked up in pass-all filters.
    pub pass_all: u64,
    /// All keys looked up.
    pub queries: u64,
    /// Whether pass-all filters are the only cause: the other filters keep the predicted rate.
    pub filters_are_as_predicted: bool,
}

impl Display for RateWarning {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let percent = |rate: f64| libm::round(rate * 1e6) / 1e4;
        let (observed, predicted) = (percent(self.observed_rate), percent(self.predicted_rate));
        let RateWarning { false_positives, absent_queries, pass_all, queries, .. } = self;
        if self.filters_are_as_predicted {
            return write!(
                f,
                "{pass_all} of {queries} lookups went to pass-all tables, which save no read: \
                 rebuild their filters; {observed} % of absent keys pass the others, {predicted} % \
                 predicted ({false_positives} of {absent_queries})"
            );
        }
        write!(
            f,
            "{observed} % of absent keys pass the filter, {predicted} % predicted \
             ({false_positives} of {absent_queries}): feed back true positives, look for hot \
             absent keys, and rebuild the filter for the keys it has"
        )?;
        match pass_all {
            0 => Ok(()),
            _ => write!(
                f,
                "; {pass_all} of {queries} lookups went to pass-all tables, which save no read"
            ),
        }
    }
}
