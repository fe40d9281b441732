//! Random programs compared with `HashSet`: inserted keys are always found, after every sequence of
//! operations.

use std::collections::HashSet;

use blocked_bloom::{Bitmask, BloomFilter, FilterOptions, KeyHash, Sizing};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    Insert(Vec<u8>),
    UnionWith(Vec<Vec<u8>>),
    StoreAndReopen,
    /// Folds by the divisor at this index in the list of divisors, modulo its length.
    Fold(usize),
    Clear,
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..40)
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        20 => key().prop_map(Step::Insert),
        2 => prop::collection::vec(key(), 0..20).prop_map(Step::UnionWith),
        2 => Just(Step::StoreAndReopen),
        1 => any::<usize>().prop_map(Step::Fold),
        1 => Just(Step::Clear),
    ]
}

fn sizing() -> impl Strategy<Value = Sizing> {
    prop_oneof![
        (0.0..40.0).prop_map(Sizing::BitsPerKey),
        (1e-6..1.0).prop_map(Sizing::FalsePositiveRate),
        (128_u64..5_000).prop_map(Sizing::MaxBytes),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(400)
    })]

    #[test]
    fn no_program_loses_a_key(
        sizing in sizing(),
        probes in prop::option::of(1_u32..=30),
        seed: u64,
        expected in 0_u64..300,
        steps in prop::collection::vec(step(), 0..80),
        others in prop::collection::vec(key(), 0..50),
    ) {
        let mut params = sizing.params(expected).unwrap();
        if let Some(probes) = probes {
            params = params.with_probes(probes).unwrap();
        }
        let key_hash = KeyHash::Xxh3 { seed };
        let new = || BloomFilter::with_params(params, key_hash).unwrap();
        let (mut filter, mut model) = (new(), HashSet::new());
        let mut folded_by = 1;
        for step in steps {
            match step {
                Step::Insert(key) => {
                    let was_new = model.insert(key.clone());
                    prop_assert!(was_new || !filter.insert(&key).unwrap(), "an old key is never new");
                    filter.insert(&key).unwrap();
                }
                Step::UnionWith(keys) => {
                    let mut other = new();
                    for key in &keys {
                        other.insert(key).unwrap();
                    }
                    other = other.folded(folded_by).unwrap();
                    filter.union_with(&other).unwrap();
                    model.extend(keys);
                }
                Step::StoreAndReopen => {
                    let stored = filter.to_bytes();
                    let opened = BloomFilter::from_bytes_any_hash(stored).unwrap();
                    prop_assert_eq!(opened.view(), filter.view());
                    filter = opened.to_filter().unwrap();
                }
                Step::Fold(which) => {
                    let blocks = filter.params().blocks();
                    let divisors: Vec<u32> =
                        (1..=blocks).filter(|&divisor| blocks.is_multiple_of(divisor)).collect();
                    let divisor = divisors[which % divisors.len()];
                    filter = filter.folded(divisor).unwrap();
                    folded_by *= divisor;
                }
                Step::Clear => {
                    filter.clear();
                    model.clear();
                }
            }
            prop_assert!(model.iter().all(|key| filter.contains(key)));
        }
        let keys: Vec<&Vec<u8>> = model.iter().chain(&others).collect();
        let mut hits = Bitmask::new();
        filter.contains_batch(&keys, &mut hits);
        for (i, key) in keys.iter().enumerate() {
            prop_assert!(i >= model.len() || hits.get(i) == Some(true));
            prop_assert_eq!(hits.get(i), Some(filter.contains(key)));
        }
    }

    #[test]
    fn a_builder_finds_all_its_keys_and_stores_them(
        sizing in sizing(),
        seed: u64,
        keys in prop::collection::vec(key(), 0..400),
    ) {
        let options = FilterOptions::new(sizing).with_key_hash(KeyHash::Xxh3 { seed });
        let mut builder = options.builder();
        builder.extend(&keys).unwrap();
        let filter = builder.finish().unwrap();
        let written = filter.to_bytes();
        let opened = BloomFilter::from_bytes_any_hash(&written).unwrap();
        prop_assert!(keys.iter().all(|key| opened.contains(key)));
        prop_assert_eq!(opened.params().stored_bytes(), written.len() as u64);
    }
}
