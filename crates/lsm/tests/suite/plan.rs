//! Plans compared with brute force, their invariants (budget, order, uniform sizes), and inputs at
//! and above every limit.

use blocked_bloom::{MAX_BITS_PER_KEY, Sizing};
use blocked_bloom_lsm::{Level, Plan, PlanError, PlannedLevel, SkipReason};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

/// The cost of a level per lookup with filters of this many blocks, 0 for none, computed from the
/// definition.
fn cost(level: &Level, blocks: u32) -> f64 {
    if level.keys == 0 {
        return 0.0;
    }
    let others = (f64::from(level.runs) - 1.0) / 2.0;
    let absent =
        level.lookups * ((1.0 - level.present) * f64::from(level.runs) + level.present * others);
    if blocks == 0 {
        return absent * level.cost;
    }
    let keys = level.keys.div_ceil(u64::from(level.runs) * u64::from(level.tables));
    let params = Sizing::MaxBytes(64 + 64 * u64::from(blocks)).params(keys).unwrap();
    let queries = absent + level.lookups * level.present;
    absent * level.cost * params.false_positive_rate() + queries * level.query_cost
}

fn bytes(level: &Level, blocks: u32) -> u64 {
    let filters = u64::from(level.runs) * u64::from(level.tables);
    if blocks == 0 { 0 } else { filters * (64 + 64 * u64::from(blocks)) }
}

/// The lowest cost of any choice of blocks.
fn brute_force(costs: &[Vec<f64>], levels: &[Level], budget: u64) -> f64 {
    let Some((level, levels)) = levels.split_first() else {
        return 0.0;
    };
    let choices = costs[0].iter().enumerate();
    let fitting = choices.take_while(|&(blocks, _)| bytes(level, blocks as u32) <= budget);
    let total = |(blocks, cost): (usize, &f64)| {
        cost + brute_force(&costs[1..], levels, budget - bytes(level, blocks as u32))
    };
    fitting.map(total).fold(f64::INFINITY, f64::min)
}

fn small_level() -> impl Strategy<Value = Level> {
    let present = prop_oneof![3 => Just(0.0), 1 => 0.0..=1.0, 1 => 0.999..=1.0];
    (0_u64..1_500, 1_u32..4, 1_u32..3, 0.0..2.0, 0.0..3.0, present).prop_map(
        |(keys, runs, tables, lookups, cost, present)| {
            Level::new(keys).runs(runs).tables(tables).lookups(lookups).cost(cost).present(present)
        },
    )
}

/// Compares plans of random levels with brute force, for budgets of a few bits per key.
fn compare(
    levels: impl Strategy<Value = Vec<Level>>,
    budgets: std::ops::Range<u64>,
    cases: usize,
) -> Vec<(Plan, f64, f64)> {
    let mut runner = TestRunner::deterministic();
    let strategy = (levels, budgets);
    let compare = |_| {
        let (levels, budget) = strategy.new_tree(&mut runner).unwrap().current();
        let choices = |level: &Level| (0..=budget as u32 / 64).map(|n| cost(level, n)).collect();
        let costs: Vec<Vec<f64>> = levels.iter().map(choices).collect();
        let best = brute_force(&costs, &levels, budget);
        let without: f64 = levels.iter().map(|level| cost(level, 0)).sum();
        let plan = Plan::for_budget(&levels, budget).unwrap();
        let found: f64 = plan.levels().iter().map(|p| cost(&p.level, blocks(p))).sum();
        assert!(plan.bytes() <= u128::from(budget), "{plan}: more than {budget} bytes");
        assert!((plan.expected_cost() - found).abs() <= 1e-12 * without, "{plan}: costs {found}");
        assert!(found >= best - 1e-12 * without, "{plan}: better than the best");
        (plan, (found - best) / without.max(1e-300), found / best.max(1e-300))
    };
    (0..cases).map(compare).collect()
}

fn blocks(planned: &PlannedLevel) -> u32 {
    if planned.skipped.is_some() { 0 } else { planned.params.blocks() }
}

/// The numbers of a planned level that are not integers.
#[cfg(feature = "serde")]
fn numbers(planned: &PlannedLevel) -> [f64; 4] {
    let Sizing::BitsPerKey(bits) = planned.sizing else { panic!("{planned:?}") };
    [bits, planned.level.lookups, planned.level.cost, planned.level.present]
}

/// Fails for a step that is too large, a filter that should have been left out, or a cost that
/// differs from the documented one.
#[test]
fn plans_are_as_good_as_brute_force() {
    let compared = compare(prop::collection::vec(small_level(), 1..=3), 0..4_000, 400);
    let exact = compared.iter().filter(|(_, gap, _)| *gap < 1e-9).count();
    assert!(exact >= 360, "{exact} of 400 are the best there is");
    for (plan, gap, _) in &compared {
        assert!(*gap < 0.12, "{plan}: {gap} of all reads more than the best");
    }
    // If every level that can pay has a filter, only one block of each remains to be placed.
    let is_served = |plan: &Plan| {
        let could_pay = |level: &Level| cost(level, 60) < cost(level, 0);
        let is_missing =
            |planned: &PlannedLevel| planned.skipped.is_some() && could_pay(&planned.level);
        !plan.levels().iter().any(is_missing)
    };
    for (plan, gap, ratio) in compared.iter().filter(|(plan, ..)| is_served(plan)) {
        assert!(*gap < 0.005, "{plan}: {ratio} times the best");
    }
}

/// Equal levels grow together, and share the rest if a step does not fit for all of them.
#[test]
fn plans_of_equal_levels_are_as_good_as_brute_force() {
    let equal = (small_level(), 2_usize..=3).prop_map(|(level, count)| vec![level; count]);
    let compared = compare(equal, 0..3_000, 200);
    let exact = compared.iter().filter(|(_, gap, _)| *gap < 1e-9).count();
    assert!(exact >= 190, "{exact} of 200 are the best there is");
    assert!(compared.iter().all(|(_, gap, _)| *gap < 0.005));
    let is_uneven = |(plan, ..): &&(Plan, f64, f64)| {
        let mut filters = plan.levels().iter().map(blocks).filter(|&blocks| blocks > 0);
        let first = filters.next();
        filters.any(|blocks| Some(blocks) != first)
    };
    let uneven = compared.iter().filter(is_uneven).count();
    assert!(uneven >= 40, "{uneven} of 200 have filters of two sizes");
}

fn level() -> impl Strategy<Value = Level> {
    let keys = prop_oneof![0_u64..100, 0_u64..100_000, 0_u64..10_000_000_000];
    let number = prop_oneof![4 => 0.01..2.0, 1 => Just(0.0), 1 => Just(1.0)];
    let present = prop_oneof![3 => Just(0.0), 1 => 0.0..=1.0, 1 => 0.99..=1.0];
    (keys, 1_u32..6, 1_u32..20, number.clone(), number, present).prop_map(
        |(keys, runs, tables, lookups, cost, present)| {
            Level::new(keys).runs(runs).tables(tables).lookups(lookups).cost(cost).present(present)
        },
    )
}

/// Some levels repeat: equal levels are planned together.
fn levels() -> impl Strategy<Value = Vec<Level>> {
    let repeated = (level(), prop_oneof![3 => Just(1), 1 => 2_usize..5]);
    prop::collection::vec(repeated, 0..8).prop_map(|levels| {
        levels.into_iter().flat_map(|(level, count)| std::iter::repeat_n(level, count)).collect()
    })
}

/// Mostly in range, so that there is a plan.
fn number() -> impl Strategy<Value = f64> {
    prop_oneof![10 => 0.0..=1.0, 1 => any::<f64>(), 1 => Just(1e15)]
}

/// From nothing to a hundred bits per key of the largest level.
fn budget() -> impl Strategy<Value = u64> {
    (0.0..38.0).prop_map(|log: f64| log.exp2() as u64)
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(100)
    })]

    #[test]
    fn a_plan_keeps_its_budget_and_its_sizes(levels in levels(), budget in budget()) {
        let plan = Plan::for_budget(&levels, budget).unwrap();
        let uniform = Plan::uniform(&levels, budget).unwrap();
        for plan in [&plan, &uniform] {
            prop_assert!(plan.bytes() <= u128::from(budget));
            prop_assert_eq!(plan.levels().len(), levels.len());
            for (planned, level) in plan.levels().iter().zip(&levels) {
                prop_assert_eq!(planned.level, *level);
                // The filters that a builder will create.
                let filters = u64::from(level.runs) * u64::from(level.tables);
                let params = planned.sizing.params(level.keys.div_ceil(filters)).unwrap();
                prop_assert_eq!(params, planned.params);
                prop_assert_eq!(params.is_pass_all(), planned.skipped.is_some());
                let bytes = if params.is_pass_all() { 0 } else { filters * params.stored_bytes() };
                prop_assert_eq!(planned.bytes(), u128::from(bytes));
            }
        }
        prop_assert!(plan.sizings().eq(plan.levels().iter().map(|planned| planned.sizing)));
        prop_assert!(plan.expected_cost() <= uniform.expected_cost());
        prop_assert!(plan.to_string().lines().count() == levels.len() + 2);
    }

    /// Also if the text rounds the last bit of a number, which `serde_json` does by default.
    #[cfg(feature = "serde")]
    #[test]
    fn a_stored_plan_is_read_with_the_same_filters(
        levels in levels(),
        budget in budget(),
    ) {
        let plan = Plan::for_budget(&levels, budget).unwrap();
        let text = serde_json::to_string(&plan).unwrap();
        let read: Plan = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(read.bytes(), plan.bytes());
        for (read, planned) in read.levels().iter().zip(plan.levels()) {
            prop_assert_eq!((read.params, read.skipped), (planned.params, planned.skipped));
            for (read, written) in numbers(read).into_iter().zip(numbers(planned)) {
                prop_assert!((read - written).abs() <= written * 2.0 * f64::EPSILON, "{text}");
            }
        }
    }

    /// Except for the loss of taking steps in order, which the comparisons with brute force bound.
    #[test]
    fn more_memory_is_never_worse(levels in levels(), budget in budget(), more in budget()) {
        let cost = |bytes| Plan::for_budget(&levels, bytes).unwrap().expected_cost();
        prop_assert!(cost(budget.saturating_add(more)) <= cost(budget) * 1.005);
    }

    #[test]
    fn the_order_of_levels_does_not_matter(
        (levels, shuffled) in levels()
            .prop_flat_map(|levels| (Just(levels.clone()), Just(levels).prop_shuffle())),
        budget in budget(),
    ) {
        let shape = |levels: &[Level]| {
            let plan = Plan::for_budget(levels, budget).unwrap();
            let describe = |planned: &PlannedLevel| format!("{planned:?}");
            let mut shape: Vec<String> = plan.levels().iter().map(describe).collect();
            shape.sort();
            shape
        };
        prop_assert_eq!(shape(&levels), shape(&shuffled));
    }

    /// If a filter for each level would cost more than it saves, some levels get none, and the next
    /// one gets the rest.
    #[test]
    fn equal_levels_get_equal_filters(level in level(), count in 1_usize..6, bits in 1.5..100.0) {
        let levels = vec![level; count];
        let filters = u64::from(level.runs) * u64::from(level.tables);
        let each = filters * (128 + (level.keys as f64 / filters as f64 * bits / 8.0) as u64);
        let plan = Plan::for_budget(&levels, each * count as u64).unwrap();
        let mut blocks: Vec<u32> = plan.levels().iter().map(blocks).collect();
        blocks.sort_unstable();
        let most = blocks[count - 1];
        if most - blocks[0] > 1 {
            let given = blocks.iter().filter(|&&blocks| blocks > 0).skip(1);
            prop_assert!(given.clone().all(|blocks| most - blocks <= 1), "{:?}", blocks);
            let alone = Plan::for_budget(&[level], each).unwrap();
            prop_assert!(plan.expected_cost() < alone.expected_cost() * count as f64, "{blocks:?}");
        }
    }

    #[test]
    fn any_numbers_give_a_plan_or_an_error(
        levels in prop::collection::vec(
            (any::<u64>(), any::<u32>(), any::<u32>(), number(), number(), number()),
            0..5,
        ),
        budget: u64,
        bits: f64,
    ) {
        let levels: Vec<Level> = levels
            .into_iter()
            .map(|(keys, runs, tables, lookups, cost, present)| {
                let level = Level::new(keys).runs(runs).tables(tables);
                level.lookups(lookups).cost(cost).present(present)
            })
            .collect();
        if let Ok(plan) = Plan::for_budget(&levels, budget) {
            prop_assert!(plan.bytes() <= u128::from(budget) && plan.expected_cost().is_finite());
        }
        let _ = Plan::with_bits_per_key(&levels, bits);
    }
}

#[test]
fn memory_goes_to_the_levels_that_save_most_per_byte() {
    let tree: Vec<Level> =
        [90_000, 900_000, 9_000_000, 90_000_000, 900_000_000].map(Level::new).into();
    let plan = Plan::for_budget(&tree, 1 << 30).unwrap();
    let uniform = Plan::uniform(&tree, 1 << 30).unwrap();
    let ten = Plan::with_bits_per_key(&tree, 10.0).unwrap();
    #[expect(clippy::print_stdout, reason = "the table that docs/planning.md quotes")]
    {
        println!(
            "1 GiB, planned:\n{plan}\n\n1 GiB, uniform:\n{uniform}\n\n10 bits per key:\n{ten}"
        );
    }
    assert!(plan.bytes() > (1 << 30) - 64 && ten.bytes() > 116 * (1 << 30) / 100);
    let reads = [&plan, &uniform, &ten].map(Plan::expected_wasted_reads);
    for (found, expected) in reads.into_iter().zip([0.026_0, 0.089_4, 0.048_3]) {
        assert!((found - expected).abs() < 0.000_05, "{reads:?}");
    }
    let bits: Vec<f64> = plan.levels().iter().map(PlannedLevel::bits_per_key).collect();
    assert!(bits.is_sorted_by(|small, large| small > large), "{bits:?}");

    // A level with half of the queries, or half of the read cost, gets less; a level of four runs
    // gets more.
    let pair = |other: Level| {
        let plan = Plan::for_budget(&[Level::new(1_000_000), other], 2_500_000).unwrap();
        plan.levels()[0].bits_per_key() - plan.levels()[1].bits_per_key()
    };
    let same = Level::new(1_000_000);
    assert!(pair(same).abs() < 0.01 && pair(same.tables(10)).abs() < 0.01);
    assert!(pair(same.lookups(0.5)) > 1.0 && pair(same.lookups(0.5)) == pair(same.cost(0.5)));
    assert!(pair(same.present(0.5)) > 1.0 && pair(same.runs(4)) < -2.0);
}

/// One block too many exceeds the budget, and one too few wastes it.
#[test]
fn equal_levels_share_the_blocks_that_are_left() {
    for count in 1..=6_usize {
        let levels = vec![Level::new(10_000); count];
        let evenly = count as u64 * bytes(&levels[0], 190);
        for more in 0..count {
            let budget = evenly + 64 * more as u64;
            let plan = Plan::for_budget(&levels, budget).unwrap();
            let found: Vec<u32> = plan.levels().iter().map(blocks).collect();
            let expected: Vec<u32> = (0..count).map(|i| 190 + u32::from(i < more)).collect();
            assert_eq!((found, plan.bytes()), (expected, u128::from(budget)));
        }
    }
}

#[test]
fn skipped_levels_have_a_reason() {
    let skipped =
        |level: Level, budget| Plan::for_budget(&[level], budget).unwrap().levels()[0].skipped;
    let level = Level::new(1_000_000);
    assert_eq!(skipped(level, 1 << 20), None);
    assert_eq!(skipped(Level::new(0), 1 << 20), Some(SkipReason::NoKeys));
    assert_eq!(SkipReason::NoKeys.to_string(), "no keys");
    assert_eq!(skipped(Level::new(0).runs(0), 1 << 20), Some(SkipReason::NoKeys));
    assert_eq!(skipped(level.lookups(0.0), 1 << 20), Some(SkipReason::NeverQueried));
    assert_eq!(skipped(level.cost(0.0), 1 << 20), Some(SkipReason::NeverQueried));
    assert_eq!(skipped(level.present(0.9995), 1 << 20), Some(SkipReason::MostlyPresent));
    assert_eq!(skipped(level.present(0.9995).query_cost(0.0), 1 << 20), None);
    assert_eq!(
        skipped(level.present(1.0).query_cost(0.0), 1 << 20),
        Some(SkipReason::MostlyPresent)
    );
    assert_eq!(skipped(level, 127), Some(SkipReason::Saturated));
    assert_eq!(skipped(level, 4_096), Some(SkipReason::Saturated));
    // Less than a bit per key, but the best use of the bytes.
    assert_eq!(skipped(level, 64 << 10), None);
    // Nothing, if another level makes better use of the bytes.
    let levels = [Level::new(10_000), Level::new(1_000_000)];
    let plan = Plan::for_budget(&levels, 30_000).unwrap();
    assert_eq!(plan.levels()[1].skipped, Some(SkipReason::Saturated));
}

#[test]
fn budgets_of_every_size() {
    let levels = [Level::new(0), Level::new(1), Level::new(51), Level::new(1_000_000)];
    let nothing = Plan::for_budget(&levels, 0).unwrap();
    assert_eq!((nothing.bytes(), nothing.expected_wasted_reads()), (0, 3.0));
    let everything = Plan::for_budget(&levels, u64::MAX).unwrap();
    for planned in &everything.levels()[1..] {
        let most = Sizing::BitsPerKey(MAX_BITS_PER_KEY).params(planned.level.keys).unwrap();
        assert_eq!(planned.params, most);
    }
    assert_eq!(Plan::for_budget(&[], 1 << 30).unwrap().bytes(), 0);
    let huge = Plan::for_budget(&[Level::new(u64::MAX), Level::new(100)], u64::MAX).unwrap();
    assert_eq!(huge.levels()[0].skipped, Some(SkipReason::Saturated));
    let cut = Level::new(1 << 40).tables(1 << 12);
    let cut = Plan::for_budget(&[cut], u64::MAX).unwrap();
    assert!(cut.levels()[0].bits_per_key() > 99.9 && cut.bytes() > 100 << 37);
}

#[test]
fn out_of_range_numbers_are_named() {
    let error = |level: Level| Plan::for_budget(&[Level::new(1), level], 1 << 20).unwrap_err();
    let level = Level::new(1_000);
    for bad in [-1.0, f64::NAN, f64::INFINITY, 1e16] {
        assert!(matches!(error(level.lookups(bad)), PlanError::LookupsOutOfRange { level: 1, .. }));
        assert!(matches!(error(level.cost(bad)), PlanError::CostOutOfRange { level: 1, .. }));
        assert!(matches!(error(level.query_cost(bad)), PlanError::CostOutOfRange { level: 1, .. }));
        assert!(matches!(error(level.present(bad)), PlanError::PresentOutOfRange { level: 1, .. }));
        assert!(matches!(
            Plan::with_bits_per_key(&[level, level], bad.max(200.0)),
            Err(PlanError::Params { level: 0, .. })
        ));
    }
    assert_eq!(error(level.runs(0)), PlanError::NoTables { level: 1 });
    assert_eq!(error(level.tables(0)), PlanError::NoTables { level: 1 });
    let most = vec![Level::new(100); 4_096];
    assert!(Plan::for_budget(&most, 1 << 20).unwrap().bytes() > (1 << 20) - 64);
    let error = Plan::uniform(&vec![level; 4_097], 1 << 20).unwrap_err();
    assert_eq!(error.to_string(), "4097 levels: a plan can have at most 4096");
}

#[cfg(feature = "serde")]
mod stored {
    use serde_json::{Value, json};

    use super::*;

    fn read(levels: Value) -> Result<Plan, String> {
        serde_json::from_value(json!({ "levels": levels })).map_err(|error| error.to_string())
    }

    #[test]
    fn a_stored_plan_is_read_by_its_sizings() {
        let levels = [Level::new(1_000_000).runs(4), Level::new(1_000).present(1.0)];
        let plan = Plan::for_budget(&levels, 1 << 20).unwrap();
        let mut written = serde_json::to_value(&plan).unwrap();
        assert_eq!(written["levels"][1]["skipped"], "MostlyPresent");
        assert_eq!(written["levels"][0]["params"]["expected_items"], 250_000);
        assert_eq!(serde_json::from_value::<Plan>(written.clone()).unwrap(), plan);
        // A figure that contradicts the sizing is ignored.
        written["levels"][0]["params"]["blocks"] = 1.into();
        written["levels"][0]["skipped"] = "NoKeys".into();
        assert_eq!(serde_json::from_value::<Plan>(written).unwrap(), plan);
        // For every kind of sizing.
        let level = json!({ "keys": 1_000 });
        let sizings = [json!({ "MaxBytes": 1_024 }), json!({ "FalsePositiveRate": 1.0 })];
        let [bytes, none] = sizings.map(|sizing| json!({ "level": level, "sizing": sizing }));
        let plan = read(json!([bytes, none])).unwrap();
        assert_eq!((plan.bytes(), plan.levels()[0].skipped), (1_024, None));
        assert_eq!(plan.levels()[1].sizing, Sizing::BitsPerKey(0.0));
    }

    #[test]
    fn an_impossible_stored_plan_is_an_error() {
        let level = |level: Value, bits: f64| {
            json!([{ "level": { "keys": 1 }, "sizing": { "BitsPerKey": 8.0 } },
            { "level": level, "sizing": { "BitsPerKey": bits } }])
        };
        assert!(read(level(json!({ "keys": 10 }), 10.0)).is_ok());
        for (plan, expected) in [
            (level(json!({ "keys": 10, "present": 1.5 }), 10.0), "level 1: fraction 1.5"),
            (level(json!({ "keys": 10, "runs": 0 }), 10.0), "level 1: 0 runs"),
            (level(json!({ "keys": 10 }), 101.0), "level 1: 101 bits per key"),
            (level(json!({ "runs": 1 }), 10.0), "missing field `keys`"),
        ] {
            let error = read(plan).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn a_level_has_defaults_for_all_but_its_keys() {
        let read = |value: Value| serde_json::from_value::<Level>(value).unwrap();
        assert_eq!(read(json!({ "keys": 7 })), Level::new(7));
        let level = Level::new(7).runs(2).tables(3).lookups(0.5).cost(4.0).query_cost(0.0);
        let level = level.present(0.25);
        let written = serde_json::to_value(level).unwrap();
        assert_eq!(read(written), level);
        let misspelled = serde_json::from_value::<Level>(json!({ "keys": 7, "run": 2 }));
        assert!(misspelled.unwrap_err().to_string().contains("unknown field `run`"));
        let reason = SkipReason::NeverQueried;
        let written = serde_json::to_string(&reason).unwrap();
        assert_eq!(serde_json::from_str::<SkipReason>(&written).unwrap(), reason);
    }
}
