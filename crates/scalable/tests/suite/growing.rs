//! Growth: no key is lost, the rate stays below the target, and a failed call changes nothing.

use std::collections::HashSet;

use crate::common::{Random, kernels};
use crate::{filled, new};
use blocked_bloom::{Bitmask, Filter, KeyError, KeyHash, ParamsError, Sizing};
use blocked_bloom_scalable::{ScalableBloomFilter, ScalableError, ScalableOptions};
use proptest::prelude::*;

/// Returns the number of false positives among a million absent keys.
fn false_positives(filter: &ScalableBloomFilter) -> f64 {
    let mut hits = Bitmask::new();
    filter.contains_hashes(&Random(u64::MAX).hashes(1 << 20), &mut hits);
    hits.count_hits() as f64 / hits.len() as f64
}

#[test]
#[expect(clippy::print_stdout, reason = "the table of docs/growing.md")]
fn the_rate_stays_under_the_target_however_many_keys_come() {
    for (rate, first_items) in [(0.01, 1_000), (0.01, 10_000), (0.001, 1_000)] {
        for times in [1, 10, 100, 1_000] {
            let keys = first_items as usize * times;
            if keys > 1_000_000 {
                continue;
            }
            let (filter, hashes) = filled(rate, first_items, keys);
            assert!(hashes.iter().all(|&hash| filter.contains_hash(hash)));
            let (found, estimated) =
                (false_positives(&filter), filter.estimated_false_positive_rate());
            // Three standard deviations of the count.
            let spread = 3.0 * (rate / f64::from(1 << 20)).sqrt();
            assert!(
                found <= rate + spread && estimated <= rate,
                "{keys} keys: {found} {estimated}"
            );
            assert!((found - estimated).abs() <= spread, "{found} counted, {estimated} estimated");
            let expected = filter.expected_false_positive_rate();
            assert!(expected <= rate && (expected - estimated).abs() <= spread, "{expected}");
            let known = Sizing::FalsePositiveRate(rate).params(keys as u64).unwrap();
            println!(
                "{rate} {first_items} x{times}: {} links, {:.4} %, {:.1} bits/key, {:.2} x the \
                 memory of a filter sized for them",
                filter.links().len(),
                found * 100.0,
                filter.memory_bytes() as f64 * 8.0 / keys as f64,
                filter.memory_bytes() as f64 / known.stored_bytes() as f64,
            );
            let distinct = filter.keys_inserted() as f64 / keys as f64;
            assert!((1.0 - rate..=1.0).contains(&distinct), "{distinct} of the keys were new");
        }
    }
}

#[test]
fn links_grow_by_the_factor_and_tighten_by_the_ratio() {
    let (filter, _) = filled(0.01, 1_000, 20_000);
    let sized: Vec<u64> = filter.links().iter().map(|link| link.keys_inserted()).collect();
    assert_eq!(sized[..4], [1_000, 2_000, 4_000, 8_000]);
    let rates: Vec<f64> =
        filter.links()[..4].iter().map(|link| link.params().false_positive_rate()).collect();
    // Each takes 15 % of the rate left by the links before it; rounding up to whole blocks makes
    // it slightly less.
    let mut left = 0.01;
    for (i, rate) in rates.iter().enumerate() {
        let share = 0.15 * left;
        assert!((0.8 * share..=share).contains(rate), "link {i}: {rate}, share {share}");
        left -= rate;
    }
    let options = ScalableOptions::new(0.01, 10).with_growth(16).with_tightening(0.5);
    let mut filter = options.build().unwrap();
    for key in 0..3_000_u32 {
        filter.insert(key.to_le_bytes()).unwrap();
    }
    assert_eq!(filter.links().len(), 4);
    // The first key that does not fit creates the link, not the last key of the link before.
    let (mut filter, mut random) = (new(0.1, 1), Random(1));
    assert_eq!((filter.capacity_left(), filter.growth()), (1, 2));
    for (keys, links, left) in [(1, 1, 0), (2, 2, 1), (3, 2, 0), (4, 3, 3), (7, 3, 0), (8, 4, 7)] {
        let next = filter.next_link().unwrap();
        while filter.keys_inserted() < keys {
            filter.insert_hash(random.next()).unwrap();
        }
        assert_eq!((filter.links().len(), filter.capacity_left()), (links, left), "{keys} keys");
        if keys.is_power_of_two() {
            let made = filter.links().last().unwrap().params();
            assert_eq!((next.expected_items(), left + 1), (keys, keys));
            assert_eq!((made.blocks(), made.probes()), (next.blocks(), next.probes()));
        }
    }
}

#[test]
fn repeated_keys_take_no_memory() {
    let (mut filter, hashes) = filled(0.01, 100, 5_000);
    let before = filter.clone();
    let mut added = Bitmask::new();
    filter.insert_hashes_new(&hashes, &mut added).unwrap();
    assert_eq!((added.len(), added.count_hits()), (hashes.len(), 0));
    filter.insert_hashes(&hashes).unwrap();
    assert_eq!(filter, before);
}

#[test]
fn a_batch_that_repeats_a_key_reports_it_once() {
    // Links fill up within the batch: the key must not be new twice.
    for keys in [1, 2, 63, 64, 65, 1_000, 1_024, 1_025, 5_000] {
        let mut random = Random(keys);
        let hashes = random.hashes(keys as usize);
        let twice: Vec<u64> =
            hashes.iter().flat_map(|&hash| [hash, hash]).chain(hashes.clone()).collect();
        let (mut batched, mut single) = (new(0.01, 7), new(0.01, 7));
        let mut added = Bitmask::new();
        batched.insert_hashes_new(&twice, &mut added).unwrap();
        for (i, &hash) in twice.iter().enumerate() {
            assert_eq!(added.get(i), Some(single.insert_hash(hash).unwrap()), "{keys} keys, {i}");
        }
        assert_eq!(batched, single);
        assert_eq!(added.count_hits() as u64, batched.keys_inserted());
        let mut silent = new(0.01, 7);
        silent.insert_hashes(&twice).unwrap();
        assert_eq!(silent, single);
        // Keys instead of hashes.
        let numbers = twice;
        let twice: Vec<[u8; 8]> = numbers.iter().copied().map(u64::to_le_bytes).collect();
        let (mut batched, mut single) = (new(0.01, 7), new(0.01, 7));
        batched.insert_batch_new(&twice, &mut added).unwrap();
        for (i, key) in twice.iter().enumerate() {
            assert_eq!(added.get(i), Some(single.insert(key).unwrap()), "{keys} keys, {i}");
        }
        assert_eq!(batched, single);
        let (mut by_number, mut of_numbers) = (new(0.01, 7), Bitmask::new());
        by_number.insert_u64s_new(&numbers, &mut of_numbers).unwrap();
        assert_eq!((&by_number, &of_numbers), (&batched, &added));
        let mut silent = new(0.01, 7);
        silent.insert_batch(&twice).unwrap();
        assert_eq!(silent, single);
        // The same links with another target, and other links with the same target.
        assert_ne!(new(0.01, 7), new(0.02, 7));
        assert_ne!(batched, new(0.01, 7));
    }
}

#[test]
fn every_kernel_gives_the_same_answers() {
    let (filter, hashes) = filled(0.01, 500, 20_000);
    let queries: Vec<u64> = hashes.into_iter().step_by(7).chain(Random(3).hashes(30_000)).collect();
    for kernel in kernels() {
        let filter = filter.clone().with_kernel(kernel);
        let mut hits = Bitmask::new();
        for length in [0, 1, 64, 65, 1_023, 1_024, 1_025, queries.len()] {
            filter.contains_hashes(&queries[..length], &mut hits);
            assert_eq!(hits.len(), length);
            for (i, &hash) in queries[..length].iter().enumerate() {
                assert_eq!(hits.get(i), Some(filter.contains_hash(hash)), "{} {i}", kernel.name());
            }
        }
        let mut added = new(0.01, 500).with_kernel(kernel);
        added.insert_hashes(&queries).unwrap();
        assert!(added.links().iter().all(|link| link.kernel() == kernel));
        let mut scalar = new(0.01, 500);
        queries.iter().for_each(|&hash| assert!(scalar.insert_hash(hash).is_ok()));
        assert_eq!(added, scalar, "{}", kernel.name());
    }
}

#[derive(Clone, Debug)]
enum Step {
    Insert(u16),
    Batch(Vec<u16>),
    Store,
    Merge(Vec<u16>),
}

/// The keys of the model are the integers below this.
const KEYS: u16 = 4_096;

fn step() -> impl Strategy<Value = Step> {
    let batch = || prop::collection::vec(0..KEYS, 0..300);
    prop_oneof![
        20 => (0..KEYS).prop_map(Step::Insert),
        5 => batch().prop_map(Step::Batch),
        2 => Just(Step::Store),
        1 => batch().prop_map(Step::Merge),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(150)
    })]

    #[test]
    fn no_program_loses_a_key(
        rate in 1e-4..0.5,
        first_items in 0_u64..50,
        growth in 2_u32..=16,
        tightening in 0.05..=0.95,
        seed: u64,
        steps in prop::collection::vec(step(), 0..60),
    ) {
        let empty = || {
            ScalableOptions::new(rate, first_items)
                .with_key_hash(KeyHash::Xxh3 { seed })
                .with_growth(growth)
                .with_tightening(tightening)
                .build()
                .unwrap()
        };
        let bytes =
            |keys: &[u16]| -> Vec<[u8; 2]> { keys.iter().map(|key| key.to_le_bytes()).collect() };
        let (mut filter, mut model, mut hits) = (empty(), HashSet::new(), Bitmask::new());
        for step in steps {
            match step {
                Step::Insert(key) => {
                    let is_new = filter.insert(key.to_le_bytes()).unwrap();
                    prop_assert!(model.insert(key) || !is_new, "an old key is never new");
                }
                Step::Batch(keys) => {
                    filter.insert_batch_new(&bytes(&keys), &mut hits).unwrap();
                    for (i, &key) in keys.iter().enumerate() {
                        prop_assert!(model.insert(key) || hits.get(i) == Some(false));
                    }
                }
                Step::Store => {
                    let stored = filter.to_bytes();
                    let read = ScalableBloomFilter::from_bytes_any_hash(&stored).unwrap();
                    prop_assert_eq!(&read, &filter);
                    prop_assert_eq!(&read.to_bytes(), &stored);
                    filter = read.to_filter().unwrap();
                }
                // Targets that sum to 1 leave nothing for more links.
                Step::Merge(keys) if filter.false_positive_rate() + rate < 1.0 => {
                    let mut other = empty();
                    other.insert_batch(&bytes(&keys)).unwrap();
                    filter.union_with(other).unwrap();
                    model.extend(keys);
                }
                Step::Merge(_) => {}
            }
        }
        let keys: Vec<u16> = (0..KEYS).collect();
        let stored = filter.to_bytes();
        let view = ScalableBloomFilter::from_bytes_any_hash(&stored).unwrap();
        filter.contains_batch(&bytes(&keys), &mut hits);
        let mut view_hits = Bitmask::new();
        view.contains_batch(&bytes(&keys), &mut view_hits);
        prop_assert_eq!(&view_hits, &hits);
        for &key in &keys {
            let found = hits.get(usize::from(key)) == Some(true);
            prop_assert!(found || !model.contains(&key));
            prop_assert_eq!(found, filter.contains(key.to_le_bytes()));
            prop_assert_eq!(found, view.contains(key.to_le_bytes()));
        }
    }
}

#[test]
fn a_union_has_the_links_and_the_rates_of_both() {
    let (mut left, left_keys) = filled(0.01, 100, 3_000);
    let (right, right_keys) = filled(0.02, 200, 5_000);
    let links = left.links().len() + right.links().len();
    let (memory, keys) =
        (left.memory_bytes() + right.memory_bytes(), left.keys_inserted() + right.keys_inserted());
    let (open, capacity_left) = (left.links().last().unwrap().clone(), left.capacity_left());
    left.union_with(right).unwrap();
    assert_eq!(
        (left.links().len(), left.memory_bytes(), left.keys_inserted()),
        (links, memory, keys)
    );
    assert_eq!(left.links().last(), Some(&open), "further keys go where they went");
    assert_eq!((left.false_positive_rate(), left.capacity_left()), (0.01 + 0.02, capacity_left));
    assert!(left_keys.iter().chain(&right_keys).all(|&hash| left.contains_hash(hash)));
    // The union keeps growing, below the sum of both targets.
    left.insert_hashes(&Random(77).hashes(50_000)).unwrap();
    assert!(left.links().len() > links);
    assert!(left.estimated_false_positive_rate() <= 0.03 && false_positives(&left) < 0.0305);

    let before = left.clone();
    let caller = KeyHash::Caller { tag: 1 };
    let other = ScalableOptions::new(0.01, 1).with_key_hash(caller).build().unwrap();
    let error = ScalableError::HashMismatch { left: KeyHash::default(), right: caller };
    assert_eq!(left.union_with(other), Err(error));
    assert_eq!(left, before);

    // Without links of its own, a filter continues with the capacity of the other.
    for (mut one, other) in [(new(0.01, 5), before.clone()), (before.clone(), new(0.01, 5))] {
        one.union_with(other).unwrap();
        assert_eq!(one.links(), before.links());
        assert_eq!(one.capacity_left(), before.capacity_left());
    }
}

#[test]
fn rejects_impossible_options() {
    let options = ScalableOptions::new;
    let refused = |options: ScalableOptions| options.build().unwrap_err();
    for rate in [0.0, 1.0, -0.1, f64::NAN, f64::INFINITY] {
        let error = refused(options(rate, 10));
        assert!(
            matches!(error, ScalableError::Params(ParamsError::RateOutOfRange { .. })),
            "{rate}"
        );
    }
    assert!(matches!(
        refused(options(1e-9, 10)),
        ScalableError::Params(ParamsError::RateUnreachable { .. })
    ));
    assert!(matches!(refused(options(0.01, u64::MAX)), ScalableError::Params(_)));
    assert!(new(0.01, 0).insert("a").unwrap());
    for growth in [0, 1, 17, u32::MAX] {
        let error = refused(options(0.01, 10).with_growth(growth));
        assert_eq!(error, ScalableError::GrowthOutOfRange { growth });
    }
    for tightening in [0.0, 0.049, 0.951, 1.0, f64::NAN] {
        let error = refused(options(0.01, 10).with_tightening(tightening));
        assert!(matches!(error, ScalableError::TighteningOutOfRange { .. }));
    }

    let caller = KeyHash::Caller { tag: 9 };
    let mut filter = options(0.01, 10).with_key_hash(caller).build().unwrap();
    let error = KeyError::NoHasher { tag: 9 };
    let mut hits = Bitmask::new();
    assert_eq!(filter.hasher(), Err(error));
    assert_eq!(filter.insert("a"), Err(ScalableError::Key(error)));
    assert_eq!(filter.insert_batch_new(&["a"], &mut hits), Err(ScalableError::Key(error)));
    assert!(hits.is_empty());
    assert_eq!(filter.insert_batch(&["a"]), Err(ScalableError::Key(error)));
    assert_eq!(filter.insert_batch::<&str>(&[]), Err(ScalableError::Key(error)));
    assert!(filter.contains("a") && filter.links().is_empty());
    filter.contains_batch(&["a", "b"], &mut hits);
    assert_eq!(hits.count_hits(), 2);
    // Hashes are accepted.
    filter.insert_hashes_new(&Random(1).hashes(2), &mut hits).unwrap();
    assert_eq!((hits.count_hits(), filter.keys_inserted()), (2, 2));
}

#[test]
fn growth_that_fails_loses_nothing() {
    // The first links keep 10^-7, but later links cannot keep their share of it.
    let mut filter = ScalableOptions::new(1e-7, 1).with_tightening(0.5).build().unwrap();
    let mut hashes = Random(1);
    let mut added = Vec::new();
    let error = loop {
        let hash = hashes.next();
        match filter.insert_hash(hash) {
            Ok(_) => added.push(hash),
            Err(error) => break error,
        }
        assert!(added.len() < 1 << 20, "no link is ever out of reach");
    };
    assert!(matches!(error, ScalableError::Params(_)), "{error}");
    assert!(added.len() > 3 && added.iter().all(|&hash| filter.contains_hash(hash)));
    assert_eq!(filter.keys_inserted(), added.len() as u64);
    // Present keys can still be inserted.
    assert_eq!(filter.insert_hash(added[0]), Ok(false));
}
