//! What a policy hands out is what it was told, on every level.

use blocked_bloom::{
    Added, BloomFilterBuilder, FilterPolicy, FormatError, KeyHash, Level, PartitionIndex,
    PartitionedFilterBuilder, Plan, PrefixExtractor, Sizing, TableFilter,
};

fn whole(policy: &FilterPolicy, level: usize, keys: u64) -> BloomFilterBuilder {
    match policy.for_table(level, keys) {
        TableFilter::Whole(builder) => builder,
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_level_gets_its_planned_size() {
    let levels = [10_000, 100_000, 1_000_000].map(Level::new);
    let plan = Plan::for_budget(&levels, 1_200_000).unwrap();
    let policy = FilterPolicy::from_plan(&plan);
    for (level, planned) in plan.levels().iter().enumerate() {
        let mut builder = whole(&policy, level, planned.level.keys);
        builder.extend((0..planned.level.keys).map(u64::to_le_bytes));
        let filter = builder.finish().unwrap();
        assert_eq!(filter.params().blocks(), planned.params.blocks(), "level {level}");
    }
    assert_eq!(policy.sizing(99), plan.levels()[2].sizing);
    assert_eq!(
        FilterPolicy::from_plan(&Plan::for_budget(&[], 1_000).unwrap()).sizing(0),
        Sizing::BitsPerKey(10.0)
    );
}

/// A level that a plan skips must get no filter, not one that passes everything.
#[test]
fn a_skipped_level_gets_none() {
    let levels = [Level::new(1_000), Level::new(1_000_000_000).present(1.0)];
    let plan = Plan::for_budget(&levels, 100_000).unwrap();
    assert!(plan.levels()[1].skipped.is_some());
    let policy = FilterPolicy::from_plan(&plan);
    assert!(matches!(policy.for_table(0, 1_000), TableFilter::Whole(_)));
    assert!(matches!(policy.for_table(1, 1_000_000), TableFilter::None));
}

#[test]
fn filters_have_the_hash_and_prefixes_of_the_policy() {
    let rule = PrefixExtractor::fixed(4);
    let policy = FilterPolicy::new(Sizing::BitsPerKey(12.0)).key_hash(KeyHash::Xxh3 { seed: 9 });
    for (policy, added) in [
        (policy.clone(), Added::WholeKeys),
        (
            policy.clone().prefixes(rule.clone()),
            Added::WholeKeysAndPrefixes { extractor: rule.id() },
        ),
        (policy.only_prefixes(rule.clone()), Added::Prefixes { extractor: rule.id() }),
    ] {
        assert_eq!(policy.added(), added);
        let mut builder = whole(&policy, 0, 2);
        builder.extend(["abcd/1", "abcd/2"]);
        let filter = builder.finish().unwrap();
        assert_eq!(filter.view().added(), added);
        assert_eq!(filter.view().key_hash(), KeyHash::Xxh3 { seed: 9 });
        let (opened, error) = policy.open(filter.to_bytes());
        assert_eq!((opened.view(), error), (filter.view(), None));
        // The last rule that was given counts.
        let both = Added::WholeKeysAndPrefixes { extractor: rule.id() };
        assert_eq!(policy.prefixes(rule.clone()).added(), both);
    }
}

#[test]
fn partitions_begin_above_their_limit_and_find_every_key() {
    let sizing = Sizing::BitsPerKey(10.0);
    let policy = FilterPolicy::new(sizing).partition_bytes(10_000, 1_000);
    let largest = (1..).take_while(|&keys| sizing.params(keys).unwrap().stored_bytes() <= 10_000);
    let largest = largest.last().unwrap();
    assert!(matches!(policy.for_table(0, largest), TableFilter::Whole(_)));
    let TableFilter::Partitioned { template, partition_bytes: 1_000 } =
        policy.for_table(0, largest + 1)
    else {
        panic!("one key more");
    };
    let mut stored: Vec<u8> = Vec::new();
    let sink = |filter: blocked_bloom::BloomFilter| {
        stored.extend(filter.to_bytes());
        Ok::<(), std::fmt::Error>(())
    };
    let mut builder = PartitionedFilterBuilder::new(template, 1_000, sink).unwrap();
    (0..=largest).for_each(|key| builder.insert(key.to_be_bytes()).unwrap());
    let index = PartitionIndex::from_bytes(builder.finish().unwrap()).unwrap();
    assert!(index.partitions() > 9);
    for key in 0..=largest {
        let place = index.location(index.partition_of(key.to_be_bytes()).unwrap()).unwrap();
        let bytes = &stored[place.offset as usize..][..place.length as usize];
        let (filter, error) = policy.open(bytes);
        assert!(error.is_none() && filter.view().contains(key.to_be_bytes()));
    }
}

#[test]
fn what_the_policy_cannot_ask_is_maybe_with_the_reason() {
    let policy = FilterPolicy::new(Sizing::BitsPerKey(10.0));
    let other = policy.clone().key_hash(KeyHash::Xxh3 { seed: 1 });
    let stored = whole(&other, 0, 1).finish().unwrap().to_bytes();
    let (filter, error) = policy.open(&stored);
    assert!(matches!(error, Some(FormatError::HashMismatch { .. })) && filter.view().is_pass_all());
    assert_ne!(policy.name(), other.name());
    // What cannot be cut into partitions stays whole, however large.
    for policy in [
        FilterPolicy::new(Sizing::MaxBytes(1 << 20)),
        FilterPolicy::new(Sizing::BitsPerKey(10.0)).key_hash(KeyHash::Caller { tag: 1 }),
    ] {
        whole(&policy.partition_bytes(1_000, 1_000), 0, 1_000_000);
    }
    // A sizing that is none is the builder's to report.
    let absurd = FilterPolicy::new(Sizing::BitsPerKey(-1.0)).partition_bytes(0, 1_000);
    assert!(whole(&absurd, 0, 1).finish().is_err());
}
