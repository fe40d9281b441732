//! The counters at one moment, what follows from them, and when that is worth a warning.
//!
//! This file owns the rates and the rule of the warning. It refuses to warn on what chance explains.

use core::fmt::{self, Display, Formatter};

/// How many times the predicted rate [`MetricsSnapshot::check`] lets pass.
const FACTOR: f64 = 2.0;

/// Natural logarithm of the chance that a filter which keeps its predicted rate is warned about: 3 in ten million, that of five
/// standard deviations.
const LOG_CHANCE: f64 = -15.0;

/// Counters of a [`FilterMetrics`](crate::FilterMetrics) at one moment, or the difference of two moments.
///
/// `Display` prints one line per counter, as RocksDB's statistics do.
///
/// ```
/// # use blocked_bloom::FilterMetrics;
/// let metrics = FilterMetrics::new();
/// metrics.record_batch(1_000, 10);
/// let text = metrics.snapshot().to_string();
/// assert!(text.contains("bloom.filter.useful COUNT : 990\n"));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MetricsSnapshot {
    pub(super) useful: u64,
    pub(super) full_positives: u64,
    pub(super) full_true_positives: u64,
}

impl MetricsSnapshot {
    /// Keys that were asked about, saturating.
    ///
    /// ```
    /// # let metrics = blocked_bloom::FilterMetrics::new();
    /// metrics.record_batch(1_000, 10);
    /// assert_eq!(metrics.snapshot().queries(), 1_000);
    /// ```
    pub fn queries(&self) -> u64 {
        self.useful.saturating_add(self.full_positives)
    }

    /// Keys that were certainly absent: `bloom.filter.useful`.
    ///
    /// ```
    /// # let metrics = blocked_bloom::FilterMetrics::new();
    /// metrics.record_batch(1_000, 10);
    /// assert_eq!(metrics.snapshot().useful(), 990);
    /// ```
    pub fn useful(&self) -> u64 {
        self.useful
    }

    /// Keys that were maybe present: `bloom.filter.full.positive`.
    ///
    /// ```
    /// # let metrics = blocked_bloom::FilterMetrics::new();
    /// metrics.record_batch(1_000, 10);
    /// assert_eq!(metrics.snapshot().full_positives(), 10);
    /// ```
    pub fn full_positives(&self) -> u64 {
        self.full_positives
    }

    /// Positives whose key was found: `bloom.filter.full.true.positive`.
    ///
    /// ```
    /// # let metrics = blocked_bloom::FilterMetrics::new();
    /// metrics.record_true_positives(4);
    /// assert_eq!(metrics.snapshot().full_true_positives(), 4);
    /// ```
    pub fn full_true_positives(&self) -> u64 {
        self.full_true_positives
    }

    /// Positives whose key was not found, or not yet; 0 if more were fed back than recorded.
    ///
    /// ```
    /// # let metrics = blocked_bloom::FilterMetrics::new();
    /// metrics.record_batch(1_000, 10);
    /// metrics.record_true_positives(4);
    /// assert_eq!(metrics.snapshot().false_positives(), 6);
    /// ```
    pub fn false_positives(&self) -> u64 {
        self.full_positives.saturating_sub(self.full_true_positives)
    }

    /// Keys that were asked about and not there: the false positives and the useful, saturating.
    ///
    /// ```
    /// # let metrics = blocked_bloom::FilterMetrics::new();
    /// metrics.record_batch(1_000, 10);
    /// metrics.record_true_positives(4);
    /// assert_eq!(metrics.snapshot().absent_queries(), 996);
    /// ```
    pub fn absent_queries(&self) -> u64 {
        self.useful.saturating_add(self.false_positives())
    }

    /// False positives per absent key that was asked about, 0 to 1; `None` if there was none.
    ///
    /// ```
    /// # let metrics = blocked_bloom::FilterMetrics::new();
    /// assert_eq!(metrics.snapshot().observed_false_positive_rate(), None);
    /// metrics.record_batch(1_000, 10);
    /// assert_eq!(metrics.snapshot().observed_false_positive_rate(), Some(0.01));
    /// ```
    pub fn observed_false_positive_rate(&self) -> Option<f64> {
        let absent = self.absent_queries();
        (absent > 0).then(|| self.false_positives() as f64 / absent as f64)
    }

    /// What was counted since `earlier`, a snapshot of the same counters. A counter that was higher then gives 0.
    ///
    /// ```
    /// # let metrics = blocked_bloom::FilterMetrics::new();
    /// metrics.record_batch(1_000, 10);
    /// let earlier = metrics.snapshot();
    /// metrics.record_batch(50, 1);
    /// assert_eq!(metrics.snapshot().since(&earlier).queries(), 50);
    /// ```
    #[must_use]
    pub fn since(&self, earlier: &MetricsSnapshot) -> MetricsSnapshot {
        MetricsSnapshot {
            useful: self.useful.saturating_sub(earlier.useful),
            full_positives: self.full_positives.saturating_sub(earlier.full_positives),
            full_true_positives: self
                .full_true_positives
                .saturating_sub(earlier.full_true_positives),
        }
    }

    /// A warning if absent keys passed at more than twice the predicted rate, and chance does not explain it.
    ///
    /// `predicted_rate` is what [`Params::false_positive_rate`](crate::Params::false_positive_rate) gives, 0 to 1; for several
    /// filters under one set of counters, the mean by queries. [`check_beyond`](Self::check_beyond) has the rule, and another
    /// factor.
    ///
    /// ```
    /// # let metrics = blocked_bloom::FilterMetrics::new();
    /// metrics.record_batch(10_000, 110);
    /// assert!(metrics.snapshot().check(0.01).is_none());
    /// metrics.record_batch(10_000, 500);
    /// let warning = metrics.snapshot().check(0.01).unwrap();
    /// assert_eq!((warning.false_positives, warning.absent_queries), (610, 20_000));
    /// ```
    pub fn check(&self, predicted_rate: f64) -> Option<RateWarning> {
        self.check_beyond(predicted_rate, FACTOR)
    }

    /// A warning if absent keys passed at more than `factor` times the predicted rate, and chance does not explain it.
    ///
    /// With `m` false positives predicted and `f` counted, the chance of `f` or more is at most `e^-(f ln(f/m) - f + m)`
    /// (Chernoff's bound for a sum of independent events). Both must hold: `f > factor m`, and that chance is under `e^-15`, 3 in ten
    /// million or five standard deviations. At twice the rate that takes 78 false positives, at ten times 11.
    ///
    /// A hot key that is absent and passes is counted each time it is asked about: then the observed rate is high, and the reads
    /// are wasted indeed, while the filter is as good as predicted. A rate or factor that is no number, and a factor below 1,
    /// give no warning.
    ///
    /// ```
    /// # let metrics = blocked_bloom::FilterMetrics::new();
    /// metrics.record_batch(10_000, 150);
    /// assert!(metrics.snapshot().check(0.01).is_none());
    /// assert!(metrics.snapshot().check_beyond(0.01, 1.2).is_none()); // 2 in 100,000
    /// metrics.record_batch(10_000, 150);
    /// assert!(metrics.snapshot().check_beyond(0.01, 1.2).is_some());
    /// ```
    pub fn check_beyond(&self, predicted_rate: f64, factor: f64) -> Option<RateWarning> {
        let observed = self.observed_false_positive_rate()?;
        let counted = self.false_positives() as f64;
        let predicted = self.absent_queries() as f64 * predicted_rate.max(0.0);
        if predicted_rate.is_nan()
            || factor.is_nan()
            || factor < 1.0
            || counted <= factor * predicted
        {
            return None;
        }
        // With none predicted the quotient is infinite, and so is the bound.
        let log_chance = counted - predicted - counted * libm::log(counted / predicted);
        (log_chance < LOG_CHANCE).then_some(RateWarning {
            observed_rate: observed,
            predicted_rate,
            false_positives: self.false_positives(),
            absent_queries: self.absent_queries(),
        })
    }
}

impl Display for MetricsSnapshot {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "bloom.filter.queries COUNT : {}", self.queries())?;
        writeln!(f, "bloom.filter.useful COUNT : {}", self.useful)?;
        writeln!(f, "bloom.filter.full.positive COUNT : {}", self.full_positives)?;
        writeln!(f, "bloom.filter.full.true.positive COUNT : {}", self.full_true_positives)
    }
}

/// Absent keys pass more often than the filter's shape predicts: [`MetricsSnapshot::check`].
///
/// ```
/// # let metrics = blocked_bloom::FilterMetrics::new();
/// metrics.record_batch(20_000, 610);
/// if let Some(warning) = metrics.snapshot().check(0.01) {
///     assert!(warning.to_string().starts_with("3.05 % of absent keys pass the filter, 1 % predicted"));
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct RateWarning {
    /// False positives per absent key, 0 to 1.
    pub observed_rate: f64,
    /// What was expected.
    pub predicted_rate: f64,
    /// Positives whose key was not found.
    pub false_positives: u64,
    /// Keys that were asked about and not there.
    pub absent_queries: u64,
}

impl Display for RateWarning {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let percent = |rate: f64| libm::round(rate * 1e6) / 1e4;
        write!(
            f,
            "{} % of absent keys pass the filter, {} % predicted ({} of {}): feed back true positives, look for hot absent \
             keys, and rebuild the filter for the keys it has",
            percent(self.observed_rate),
            percent(self.predicted_rate),
            self.false_positives,
            self.absent_queries
        )
    }
}
