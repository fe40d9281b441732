//! A policy returns its settings for every level.

use blocked_bloom::{BloomFilter, BuildError, FilterOptions, KeyHash, PrefixExtractor, Sizing};
use blocked_bloom_lsm::{
    FilterChoice, FilterKind, FilterPolicy, KindPlan, Level, PartitionIndex,
    PartitionedFilterBuilder, Plan,
};

const TEN_BITS: FilterOptions = FilterOptions::new(Sizing::BitsPerKey(10.0));

fn whole(policy: &FilterPolicy, level: usize, keys: u64) -> FilterOptions {
    match policy.choose_filter(level, keys) {
        FilterChoice::Whole(options) => options,
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_level_gets_its_planned_size() {
    let levels = [10_000, 100_000, 1_000_000].map(Level::new);
    let plan = Plan::for_budget(&levels, 1_200_000).unwrap();
    let policy = FilterPolicy::new(TEN_BITS).with_levels(plan.sizings());
    for (level, planned) in plan.levels().iter().enumerate() {
        let mut builder = whole(&policy, level, planned.level.keys).builder();
        builder.extend((0..planned.level.keys).map(u64::to_le_bytes)).unwrap();
        let filter = builder.finish().unwrap();
        assert_eq!(filter.params().blocks(), planned.params.blocks(), "level {level}");
    }
    assert_eq!(whole(&policy, 99, 1).sizing(), plan.levels()[2].sizing);
    // Without levels, the sizing of the options.
    let nothing = Plan::for_budget(&[], 1_000).unwrap();
    for policy in [policy.with_levels(nothing.sizings()), FilterPolicy::new(TEN_BITS)] {
        assert_eq!(whole(&policy, 3, 1).sizing(), Sizing::BitsPerKey(10.0));
    }
}

/// A level skipped by a plan gets no filter, instead of a pass-all filter.
#[test]
fn a_skipped_level_gets_no_filter() {
    let levels = [Level::new(1_000), Level::new(1_000_000_000).present(1.0)];
    let plan = Plan::for_budget(&levels, 100_000).unwrap();
    assert!(plan.levels()[1].skipped.is_some());
    let policy = FilterPolicy::new(TEN_BITS).with_levels(plan.sizings());
    assert!(matches!(policy.choose_filter(0, 1_000), FilterChoice::Whole(_)));
    assert_eq!(policy.choose_filter(1, 1_000_000), FilterChoice::None);
    let none = FilterPolicy::new(FilterOptions::new(Sizing::FalsePositiveRate(1.0)));
    assert_eq!(none.with_partitions(0, 1_000).choose_filter(0, 1_000_000), FilterChoice::None);
}

#[test]
fn a_policy_chooses_the_kinds_of_a_plan() {
    let levels = [90_000, 900_000, 9_000_000, 90_000_000].map(Level::new);
    let plan = KindPlan::for_budget(&levels, 100 << 20, 0.0032).unwrap();
    let options = TEN_BITS.with_key_hash(KeyHash::Xxh3 { seed: 9 });
    let policy = FilterPolicy::new(options).with_levels(plan.kinds()).with_partitions(0, 1_000);
    let FilterKind::Ribbon { false_positive_rate } = plan.levels()[3].kind else { panic!() };
    for level in [3, 99] {
        let FilterChoice::Ribbon(options) = policy.choose_filter(level, 1_000) else { panic!() };
        assert_eq!(options.false_positive_rate(), false_positive_rate);
        assert_eq!(options.key_hash(), KeyHash::Xxh3 { seed: 9 });
    }
    assert!(matches!(policy.choose_filter(0, 1_000), FilterChoice::Partitioned { .. }));
    let none = FilterPolicy::new(TEN_BITS).with_levels([FilterKind::None]);
    assert_eq!(none.choose_filter(0, 1_000), FilterChoice::None);
}

/// All options but the size are those of the policy, in filters and in partitions.
#[test]
fn filters_have_the_hash_contents_and_probes_of_the_policy() {
    let rule = PrefixExtractor::fixed(4);
    let seeded = TEN_BITS.with_key_hash(KeyHash::Xxh3 { seed: 9 }).with_probes(3).foldable();
    let twelve = Sizing::BitsPerKey(12.0);
    for options in [
        seeded.clone(),
        seeded.clone().with_prefixes(rule.clone()),
        seeded.with_only_prefixes(rule.clone()),
    ] {
        let policy = FilterPolicy::new(options.clone()).with_levels([twelve]);
        assert_eq!(policy.options(), &options);
        let found = whole(&policy, 0, 2);
        assert_eq!(found, options.clone().with_sizing(twelve).with_expected_items(2));
        let mut builder = found.builder();
        builder.extend(["abcd/1", "abcd/2"]).unwrap();
        let filter = builder.finish().unwrap();
        assert_eq!(filter.contents(), options.contents());
        assert_eq!(filter.key_hash(), options.key_hash());
        assert_eq!(filter.params().probes(), 3);

        let found = policy.with_partitions(0, 1_000).choose_filter(0, 2);
        let options = options.with_sizing(twelve);
        assert_eq!(found, FilterChoice::Partitioned { options, partition_bytes: 1_000 });
    }
}

#[test]
fn partitions_begin_above_their_limit_and_find_every_key() {
    let policy = FilterPolicy::new(TEN_BITS).with_partitions(10_000, 1_000);
    let fits = |&keys: &u64| TEN_BITS.params(keys).unwrap().stored_bytes() <= 10_000;
    let largest = (1..).take_while(fits).last().unwrap();
    assert!(matches!(policy.choose_filter(0, largest), FilterChoice::Whole(_)));
    let FilterChoice::Partitioned { options, partition_bytes: 1_000 } =
        policy.choose_filter(0, largest + 1)
    else {
        panic!("one key more");
    };
    let mut stored: Vec<u8> = Vec::new();
    let mut builder = PartitionedFilterBuilder::new(options, 1_000).unwrap();
    for key in 0..=largest {
        if let Some(partition) = builder.insert(key.to_be_bytes()).unwrap() {
            stored.extend(partition.to_bytes());
        }
    }
    let (last, index) = builder.finish().unwrap();
    stored.extend(last.to_bytes());
    let index = PartitionIndex::from_bytes_any_hash(index).unwrap();
    assert!(index.partitions() > 9);
    for key in 0..=largest {
        let at = index.locate(key.to_be_bytes());
        let bytes = &stored[at.offset as usize..][..at.length as usize];
        let (filter, error) = BloomFilter::open_or_pass_all(bytes, policy.options().key_hash());
        assert!(error.is_none() && filter.contains(key.to_be_bytes()));
    }
}

#[test]
fn unpartitionable_filters_stay_whole() {
    for options in [
        FilterOptions::new(Sizing::MaxBytes(1 << 20)),
        TEN_BITS.with_key_hash(KeyHash::Caller { tag: 1 }),
    ] {
        _ = whole(&FilterPolicy::new(options).with_partitions(1_000, 1_000), 0, 1_000_000);
    }
    // The builder reports an invalid sizing.
    let absurd = FilterPolicy::new(FilterOptions::new(Sizing::BitsPerKey(-1.0)));
    let absurd = whole(&absurd.with_partitions(0, 1_000), 0, 1);
    assert!(matches!(absurd.builder().finish(), Err(BuildError::Params(_))));
}

/// Without the expected keys, a builder that reaches its limit could not build a filter.
#[test]
fn a_builder_with_a_limit_sizes_for_the_expected_keys() {
    let policy = FilterPolicy::new(TEN_BITS.with_memory_limit(8 << 10));
    let mut builder = whole(&policy, 0, 3_000).builder();
    builder.extend((0..2_500_u32).map(u32::to_le_bytes)).unwrap();
    let filter = builder.finish().unwrap();
    assert_eq!(filter.params().blocks(), TEN_BITS.params(3_000).unwrap().blocks());
}

/// Engines record these names with their tables: a changed name makes filters look unreadable.
#[test]
fn names_contain_everything_filters_must_agree_on() {
    let fixed = PrefixExtractor::fixed(4);
    for (options, name) in [
        (TEN_BITS, "blocked-bloom:v1:scheme1:xxh3-0:keys"),
        (FilterOptions::new(Sizing::MaxBytes(1_000)), "blocked-bloom:v1:scheme1:xxh3-0:keys"),
        (TEN_BITS.with_key_hash(KeyHash::Xxh3 { seed: 7 }), "blocked-bloom:v1:scheme1:xxh3-7:keys"),
        (
            TEN_BITS.with_key_hash(KeyHash::Caller { tag: 5 }),
            "blocked-bloom:v1:scheme1:caller-5:keys",
        ),
        (
            TEN_BITS.with_prefixes(fixed.clone()),
            "blocked-bloom:v1:scheme1:xxh3-0:keys+prefixes=fixed:4",
        ),
        (TEN_BITS.with_only_prefixes(fixed), "blocked-bloom:v1:scheme1:xxh3-0:prefixes=fixed:4"),
    ] {
        let policy = FilterPolicy::new(options).with_partitions(1, 1_000);
        assert_eq!(policy.name(), name);
    }
}

#[cfg(feature = "serde")]
#[test]
fn a_policy_survives_serialization() {
    let ribbon = FilterKind::Ribbon { false_positive_rate: 0.01 };
    let levels = [Sizing::BitsPerKey(20.0).into(), ribbon, FilterKind::None];
    let options = TEN_BITS.with_prefixes(PrefixExtractor::delimiter(b'/', 2));
    let policy = FilterPolicy::new(options).with_levels(levels).with_partitions(1 << 20, 4_096);
    let text = serde_json::to_string(&policy).unwrap();
    assert_eq!(serde_json::from_str::<FilterPolicy>(&text).unwrap(), policy);
    let short = r#"{ "options": { "key_hash": { "Xxh3": { "seed": 0 } } } }"#;
    assert_eq!(serde_json::from_str::<FilterPolicy>(short).unwrap(), FilterPolicy::new(TEN_BITS));
    // A misspelled setting must not count as left out.
    for (name, misspelled) in [("levels", "level"), ("partitions", "partition"), ("above", "over")]
    {
        let wrong = text.replacen(&format!("\"{name}\":"), &format!("\"{misspelled}\":"), 1);
        assert_ne!(wrong, text);
        let error = serde_json::from_str::<FilterPolicy>(&wrong).unwrap_err().to_string();
        assert!(error.contains(&format!("unknown field `{misspelled}`")), "{error}");
    }
}
