//! The counters: exact with several threads, the rates that follow, and a warning that chance does
//! not cause.

use std::sync::Barrier;
use std::thread;

use blocked_bloom::{Bitmask, BloomFilter, KeyHash, Sizing};
use blocked_bloom_lsm::{FilterMetrics, MetricsSnapshot, RateWarning};

use crate::common::{Random, filled};

/// Counters with these numbers.
fn counted(queried: usize, positives: usize, found: usize) -> MetricsSnapshot {
    let metrics = FilterMetrics::new();
    metrics.record_batch(queried, positives);
    metrics.record_true_positives(found);
    metrics.snapshot()
}

#[test]
fn a_recorded_mask_counts_its_hits_and_misses() {
    let (filter, keys) = filled(40, 6, 1);
    let (metrics, mut hits) = (FilterMetrics::new(), Bitmask::new());
    let mut random = Random(2);
    let (mut queries, mut positives) = (0, 0);
    for length in [0, 1, 63, 64, 65, 128, 1_000] {
        let mut batch = random.hashes(length);
        for (hash, &key) in batch.iter_mut().zip(&keys).step_by(3) {
            *hash = key;
        }
        filter.contains_hashes(&batch, &mut hits);
        metrics.record(&hits);
        queries += batch.len() as u64;
        positives += batch.iter().filter(|&&hash| filter.contains_hash(hash)).count() as u64;
    }
    let counts = metrics.snapshot();
    assert_eq!((counts.queries(), counts.positives()), (queries, positives));
    assert_eq!(counts.useful(), queries - positives);
    assert_eq!(counts.true_positives(), 0);
}

#[test]
fn no_thread_loses_a_count() {
    const THREADS: usize = 40;
    const ITERATIONS: usize = 2_000;
    let metrics = [FilterMetrics::new(), FilterMetrics::new()];
    for generation in 1..=5 {
        let start = Barrier::new(THREADS);
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let (metrics, start) = (&metrics, &start);
                scope.spawn(move || {
                    start.wait();
                    for iteration in 0..ITERATIONS {
                        let metrics = &metrics[iteration % 2];
                        metrics.record_batch(thread + 3, 2);
                        metrics.record_true_positives(1);
                        metrics.record_pass_all(thread);
                    }
                });
            }
        });
        for metrics in &metrics {
            let iterations = (generation * ITERATIONS / 2) as u64;
            let threads = THREADS as u64;
            let counts = metrics.snapshot();
            assert_eq!(counts.useful(), iterations * (1..=threads).sum::<u64>());
            assert_eq!(counts.positives(), iterations * threads * 2);
            assert_eq!(counts.true_positives(), iterations * threads);
            assert_eq!(counts.pass_all(), iterations * (0..threads).sum::<u64>());
        }
    }
}

#[test]
fn snapshots_never_go_back_while_threads_record() {
    let metrics = FilterMetrics::new();
    let seen = std::sync::atomic::AtomicUsize::new(0);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut last = MetricsSnapshot::default();
            for _ in 0..1_000 {
                let now = metrics.snapshot();
                assert!(now.useful() >= last.useful());
                assert!(now.positives() >= last.positives());
                last = now;
                seen.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            }
        });
        // Records until the other thread has taken enough snapshots.
        let mut recorded = 0;
        while seen.load(std::sync::atomic::Ordering::Relaxed) < 1_000 || recorded < 1_000 {
            metrics.record_batch(100, 1);
            recorded += 1;
        }
        assert_eq!(metrics.snapshot().queries(), recorded * 100);
    });
}

#[test]
fn rates_follow_from_the_counters() {
    let counts = counted(1_000, 30, 20);
    assert_eq!((counts.false_positives(), counts.absent_queries()), (10, 980));
    assert_eq!(counts.observed_false_positive_rate(), Some(10.0 / 980.0));
    let nothing_absent = counted(50, 50, 50);
    assert_eq!(nothing_absent.observed_false_positive_rate(), None);
    assert_eq!(nothing_absent.check(0.0), None);
    // Recorded twice, or for queries that were not recorded.
    let too_many = counted(1_000, 30, 31);
    assert_eq!(too_many.false_positives(), 0);
    assert_eq!(too_many.observed_false_positive_rate(), Some(0.0));
    // More positives than keys.
    assert_eq!(counted(7, 8, 0), counted(7, 7, 0));
}

#[test]
fn a_difference_of_snapshots_has_the_counts_between_them() {
    let metrics = FilterMetrics::new();
    metrics.record_batch(500, 40);
    metrics.record_pass_all(7);
    let earlier = metrics.snapshot();
    metrics.record_batch(1_000, 30);
    metrics.record_true_positives(20);
    assert_eq!(metrics.snapshot().delta_since(&earlier), counted(1_000, 30, 20));
    metrics.record_pass_all(5);
    assert_eq!(metrics.snapshot().delta_since(&earlier).pass_all(), 5);
    assert_eq!(earlier.delta_since(&metrics.snapshot()), MetricsSnapshot::default());
}

#[test]
fn counters_saturate() {
    let metrics = FilterMetrics::new();
    for _ in 0..5 {
        metrics.record_batch(usize::MAX, usize::MAX / 2);
        metrics.record_true_positives(usize::MAX);
        metrics.record_pass_all(usize::MAX);
    }
    let counts = metrics.snapshot();
    let least = 2 * (usize::MAX as u64 / 2);
    for count in [counts.useful(), counts.positives(), counts.true_positives(), counts.pass_all()] {
        assert!(count >= least, "{count} has wrapped");
    }
    assert!(counts.queries() >= counts.useful());
    assert_eq!(counts.false_positives(), 0);
    #[cfg(target_pointer_width = "64")]
    assert_eq!(
        (counts.useful(), counts.pass_all(), counts.queries()),
        (u64::MAX, u64::MAX, u64::MAX)
    );
}

#[test]
fn the_warning_needs_twice_the_rate_and_evidence() {
    let warned = |absent: usize, passed: usize, rate: f64| {
        let warning = counted(absent, passed, 0).check(rate);
        if let Some(RateWarning { false_positives, absent_queries, .. }) = warning {
            assert_eq!((false_positives, absent_queries), (passed as u64, absent as u64));
        }
        warning.is_some()
    };
    // With much evidence, only the factor counts.
    assert!(!warned(10_000_000, 200_000, 0.01));
    assert!(warned(10_000_000, 200_001, 0.01));
    // Far above the factor, only the evidence counts: 78 are needed at twice the rate, 11 at ten
    // times.
    assert!(!warned(1_000, 20, 0.01) && !warned(1_000, 26, 0.01));
    assert!(warned(1_000, 40, 0.01));
    assert!(!warned(1_000, 10, 0.001) && warned(1_000, 11, 0.001));
    assert!(!warned(0, 0, 0.01) && !warned(1, 1, 0.01) && !warned(2, 2, 0.01));
    // No key may pass an empty filter.
    assert!(warned(5, 1, 0.0) && !warned(5, 0, 0.0) && warned(5, 1, -1.0));
    // All keys pass a pass-all filter, as predicted.
    assert!(!warned(1_000_000, 1_000_000, 1.0) && !warned(1_000_000, 1_000_000, 2.0));
    for rate in [f64::NAN, f64::INFINITY] {
        assert!(!warned(1_000_000, 1_000_000, rate), "{rate}");
    }
    let bad = counted(1_000_000, 500_000, 0);
    for factor in [f64::NAN, f64::INFINITY, 0.5, -1.0] {
        assert_eq!(bad.check_with_factor(0.01, factor), None, "{factor}");
    }
    assert!(bad.check_with_factor(0.01, 1.0).is_some(), "the least factor");
    assert!(
        bad.check_with_factor(0.01, 49.0).is_some() && bad.check_with_factor(0.01, 51.0).is_none()
    );
}

/// A filter at its predicted rate never causes a warning during a long run; one with three times
/// the keys does.
#[test]
fn real_filters_are_warned_about_when_they_are_overfull() {
    let params = Sizing::BitsPerKey(10.0).params(20_000).unwrap();
    let predicted = params.false_positive_rate();
    for (keys, overfull) in [(20_000, false), (60_000, true)] {
        let mut filter = BloomFilter::with_params(params, KeyHash::default()).unwrap();
        filter.insert_hashes(&Random(1).hashes(keys)).unwrap();
        let (metrics, mut hits) = (FilterMetrics::new(), Bitmask::new());
        let (mut random, mut warned) = (Random(99), false);
        for _ in 0..2_000 {
            filter.contains_hashes(&random.hashes(128), &mut hits);
            metrics.record(&hits);
            warned |= metrics.snapshot().check(predicted).is_some();
        }
        assert_eq!(warned, overfull, "{}", metrics.snapshot());
    }
}

#[test]
fn snapshots_print_the_names_of_rocksdb_tickers() {
    assert_eq!(
        counted(1_000, 30, 20).to_string(),
        "bloom.filter.queries COUNT : 1000\nbloom.filter.useful COUNT : 970\n\
         bloom.filter.full.positive COUNT : 30\nbloom.filter.full.true.positive COUNT : 20\n\
         bloom.filter.pass.all COUNT : 0\n"
    );
    let warning = counted(100_000, 5_000, 0).check(0.0096).unwrap();
    assert_eq!(
        warning.to_string(),
        "5 % of absent keys pass the filter, 0.96 % predicted (5000 of 100000): feed back true \
         positives, look for hot absent keys, and rebuild the filter for the keys it has"
    );
}

/// A level with good filters and some tables without one, and a level with bad filters as well.
#[test]
fn the_warning_says_whether_pass_all_tables_are_the_cause() {
    let checked = |false_positives: usize, pass_all: usize| {
        let metrics = FilterMetrics::new();
        metrics.record_batch(110_000, 10_000 + false_positives);
        metrics.record_true_positives(10_000);
        metrics.record_pass_all(pass_all);
        let counts = metrics.snapshot();
        assert_eq!(counts.observed_false_positive_rate(), Some(false_positives as f64 / 100_000.0));
        assert_eq!(
            (counts.queries(), counts.pass_all()),
            (110_000 + pass_all as u64, pass_all as u64)
        );
        counts.check(0.01).map(|warning| {
            assert_eq!(warning.observed_rate, false_positives as f64 / 100_000.0);
            assert_eq!((warning.pass_all, warning.queries), (counts.pass_all(), counts.queries()));
            (warning.filters_are_as_predicted, warning.to_string())
        })
    };
    assert_eq!(checked(1_000, 0), None);
    assert_eq!(checked(1_000, 1_000), None, "less than twice the rate");
    let only_pass_all = "5000 of 115000 lookups went to pass-all tables, which save no read: \
                         rebuild their filters; 1 % of absent keys pass the others, 1 % \
                         predicted (1000 of 100000)";
    assert_eq!(checked(1_000, 5_000), Some((true, only_pass_all.into())));
    let filters = "3 % of absent keys pass the filter, 1 % predicted (3000 of 100000): feed back \
                   true positives, look for hot absent keys, and rebuild the filter for the \
                   keys it has";
    assert_eq!(checked(3_000, 0), Some((false, filters.into())));
    let both =
        format!("{filters}; 5000 of 115000 lookups went to pass-all tables, which save no read");
    assert_eq!(checked(3_000, 5_000), Some((false, both)));

    // Pass-all tables only. A level that is planned without filters is as predicted.
    let metrics = FilterMetrics::new();
    metrics.record_pass_all(1_000);
    let counts = metrics.snapshot();
    assert_eq!((counts.observed_false_positive_rate(), counts.check(1.0)), (None, None));
    let warning = counts.check(0.01).unwrap();
    assert_eq!((warning.observed_rate, warning.filters_are_as_predicted), (0.0, true));
}

/// Lookups of pass-all tables do not hide a bad filter.
#[test]
fn more_pass_all_lookups_never_end_a_warning() {
    let mut random = Random(7);
    for _ in 0..10_000 {
        let mut below = |limit: u64| (random.next() % limit) as usize;
        let (absent, pass_all) = (1 + below(10_000), below(10_000));
        let (passed, rate) = (below(absent as u64 + 1), below(1_000) as f64 / 999.0);
        let metrics = FilterMetrics::new();
        metrics.record_batch(absent, passed);
        let before = metrics.snapshot().check(rate);
        metrics.record_pass_all(pass_all);
        let after = metrics.snapshot().check(rate);
        if before.is_some() {
            let after = after.unwrap();
            assert!(
                !after.filters_are_as_predicted,
                "{passed} of {absent}, {pass_all}, {rate}: {after}"
            );
        } else {
            assert!(after.is_none_or(|after| after.filters_are_as_predicted));
        }
    }
}
