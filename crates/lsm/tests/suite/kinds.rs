//! Bloom or Ribbon: plans keep their budget, no other choice is better, and prices decide.

use blocked_bloom::{FilterOptions, Sizing};
use blocked_bloom_lsm::{FilterKind, KindPlan, Level, Plan, PlanError};

fn tree() -> Vec<Level> {
    [90_000, 900_000, 9_000_000, 90_000_000].map(Level::new).into()
}

fn is_ribbon(kind: FilterKind) -> bool {
    matches!(kind, FilterKind::Ribbon { .. })
}

#[test]
fn budgets_are_kept_and_used() {
    for budget in [0, 1_000, 1 << 20, 10 << 20, 100 << 20, 200 << 20] {
        let plan = KindPlan::for_budget(&tree(), budget, 0.0032).unwrap();
        assert!(plan.bytes() <= u128::from(budget));
        let bloom = Plan::for_budget(&tree(), budget).unwrap();
        assert!(plan.expected_cost() <= 1.01 * bloom.expected_cost(), "{budget}");
        // More memory is never worse.
        let more = KindPlan::for_budget(&tree(), budget + budget / 3, 0.0032).unwrap();
        assert!(more.expected_cost() <= plan.expected_cost() + 1e-9);
    }
}

#[test]
fn the_prices_of_queries_decide() {
    let kinds = |cost| {
        let plan = KindPlan::for_budget(&tree(), 100 << 20, cost).unwrap();
        plan.levels().iter().filter(|level| is_ribbon(level.kind)).count()
    };
    // If queries are as cheap as Bloom's, Ribbon is better on all levels; at 3.2 times the cost, on
    // those with the most keys; above the cost of a read, on none.
    assert_eq!((kinds(0.001), kinds(2.0)), (4, 0));
    assert!((1..4).contains(&kinds(0.0032)), "{}", kinds(0.0032));
}

#[test]
fn the_price_of_memory_decides() {
    let level = [Level::new(10_000_000)];
    let kind = |price| KindPlan::for_price(&level, price, 0.0032).unwrap().levels()[0];
    assert!(matches!(kind(0.0).kind, FilterKind::Bloom { .. }));
    assert!(is_ribbon(kind(1e-8).kind));
    assert_eq!(kind(1.0).kind, FilterKind::None);
    assert!(kind(1e-9).bytes > kind(1e-8).bytes);
    // Brute force over both kinds.
    for price in [1e-10, 1e-9, 1e-8, 3e-8] {
        let found = kind(price);
        let cost = found.expected_cost + price * found.bytes as f64;
        for bits in 1..=30 {
            let params = Sizing::BitsPerKey(f64::from(bits)).params(10_000_000).unwrap();
            let other = params.false_positive_rate() + 0.001 + price * params.stored_bytes() as f64;
            assert!(cost <= other + 1e-12, "{price} {bits}");
        }
    }
}

#[test]
fn planned_filters_can_be_built() {
    let levels = [Level::new(20_000).tables(4), Level::new(0), Level::new(5).lookups(0.0)];
    let plan = KindPlan::for_budget(&levels, 20_000, 0.001).unwrap();
    let FilterKind::Ribbon { false_positive_rate } = plan.levels()[0].kind else { panic!() };
    assert!((0.0..0.05).contains(&false_positive_rate));
    assert_eq!(plan.levels()[1].kind, FilterKind::None);
    let bloom = KindPlan::for_budget(&levels, 20_000, 1.0).unwrap();
    let FilterKind::Bloom { sizing } = bloom.levels()[0].kind else { panic!() };
    let params = FilterOptions::new(sizing).params(5_000).unwrap();
    assert_eq!(u128::from(4 * params.stored_bytes()), bloom.levels()[0].bytes);
}

#[test]
fn out_of_range_numbers_are_errors() {
    for cost in [-1.0, f64::NAN, f64::INFINITY] {
        let error = KindPlan::for_budget(&tree(), 1, cost).unwrap_err();
        assert!(matches!(error, PlanError::RibbonQueryCost { .. }));
        let error = KindPlan::for_price(&tree(), cost, 0.001).unwrap_err();
        assert!(matches!(error, PlanError::MemoryPrice { .. }) && !error.to_string().is_empty());
    }
    let level = [Level::new(1).present(2.0)];
    assert!(KindPlan::for_budget(&level, 1, 0.001).is_err());
}
