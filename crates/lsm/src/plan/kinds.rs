//! Planning with two kinds of filters: which level gets Bloom, which Ribbon, under a budget of
//! memory or at a price of it.
//!
//! For each level, all useful sizes of both kinds are priced. At a given price of memory each level
//! takes its best one, whatever the others take. A budget is met by the lowest price at which all
//! fit it.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use blocked_bloom::Sizing;
use blocked_bloom_ribbon::RibbonOptions;

use super::level::{self, Level, check};
use crate::error::PlanError;

/// Steps of a bit per key, and of a halving of the rate.
const STEPS: u32 = 4;

/// Most bits per key of a Bloom filter, and the lowest rate of a Ribbon filter as halvings.
const MAX_BITS: u32 = 30;

/// A kind of filter, and what to build it with.
///
/// ```
/// use blocked_bloom_lsm::{FilterKind, KindPlan, Level};
/// let plan = KindPlan::for_budget(&[Level::new(1_000_000)], 1_200_000, 0.0032)?;
/// let FilterKind::Ribbon { false_positive_rate } = plan.levels()[0].kind else { panic!() };
/// assert!(false_positive_rate < 0.0025); // a Bloom filter of this many bytes has 0.011
/// # Ok::<(), blocked_bloom_lsm::PlanError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
#[non_exhaustive]
pub enum FilterKind {
    /// No filter pays.
    None,
    /// A blocked Bloom filter of this sizing.
    Bloom {
        /// Always [`Sizing::BitsPerKey`].
        sizing: Sizing,
    },
    /// A sharded Ribbon filter (`RibbonOptions::new` of `blocked-bloom-ribbon`).
    Ribbon {
        /// 2^-30 to 0.5.
        false_positive_rate: f64,
    },
}

impl From<Sizing> for FilterKind {
    fn from(sizing: Sizing) -> Self {
        FilterKind::Bloom { sizing }
    }
}

/// What a [`KindPlan`] decided for one level.
///
/// ```
/// use blocked_bloom_lsm::{FilterKind, KindPlan, Level};
/// let plan = KindPlan::for_budget(&[Level::new(1_000_000)], 0, 0.0032)?;
/// let level = plan.levels()[0];
/// assert_eq!((level.kind, level.bytes, level.false_positive_rate), (FilterKind::None, 0, 1.0));
/// # Ok::<(), blocked_bloom_lsm::PlanError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct PlannedKind {
    /// What was given.
    pub level: Level,
    /// What to build each of its filters with.
    pub kind: FilterKind,
    /// Bytes of all of its stored filters; those of Ribbon are estimated.
    pub bytes: u128,
    /// Predicted; 1 without a filter.
    pub false_positive_rate: f64,
    /// Wasted reads and queries, per lookup of the tree, as
    /// [`Plan::expected_cost`](super::Plan::expected_cost).
    pub expected_cost: f64,
}

/// Bloom or Ribbon for each level.
///
/// A Ribbon filter takes some 28 % less memory at 1 %, and a lookup in it takes several times as
/// long: it pays where a level has most of the keys, and not where most of the queries are.
/// `docs/planning.md` shows when.
///
/// ```
/// use blocked_bloom_lsm::{FilterKind, KindPlan, Level, Plan};
/// let tree: Vec<Level> = [90_000, 900_000, 9_000_000, 90_000_000].map(Level::new).into();
/// let plan = KindPlan::for_budget(&tree, 100 << 20, 0.0032)?;
/// assert!(matches!(plan.levels()[3].kind, FilterKind::Ribbon { .. }));
/// assert!(plan.bytes() <= 100 << 20);
/// assert!(plan.expected_cost() < Plan::for_budget(&tree, 100 << 20)?.expected_cost());
/// # Ok::<(), blocked_bloom_lsm::PlanError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct KindPlan {
    levels: Vec<PlannedKind>,
}

impl KindPlan {
    /// Kinds and sizes whose stored filters take at most `bytes`. Others could gain little: sizes
    /// are a quarter of a bit per key apart, and what is left of the budget goes to the level where
    /// it saves most, as long as something fits.
    ///
    /// `ribbon_query_cost` is what a query of a Ribbon filter costs, in reads, where
    /// [`Level::query_cost`] is that of a Bloom filter: several times as much. Cost: some
    /// milliseconds for each number of keys.
    ///
    /// # Errors
    ///
    /// As [`Plan::for_budget`](super::Plan::for_budget), and [`PlanError::RibbonQueryCost`].
    pub fn for_budget(
        levels: &[Level],
        bytes: u64,
        ribbon_query_cost: f64,
    ) -> Result<Self, PlanError> {
        let choices = choices(levels, ribbon_query_cost)?;
        let fits = |price: f64| total(&choices, price) <= u128::from(bytes);
        // Prices are positive numbers, whose bits have the order of the numbers; at the highest
        // price no filter pays.
        let (mut low, mut high) = (0, f64::MAX.to_bits());
        while low + 1 < high {
            let middle = u64::midpoint(low, high);
            if fits(f64::from_bits(middle)) { high = middle } else { low = middle }
        }
        let price = if fits(0.0) { 0.0 } else { f64::from_bits(high) };
        let mut levels: Vec<PlannedKind> =
            choices.iter().map(|choices| best(choices, price)).collect();
        spend_rest(&mut levels, &choices, u128::from(bytes));
        Ok(KindPlan { levels })
    }

    /// The best kinds and sizes if a byte of memory costs `price`, in reads per lookup of the tree,
    /// however much memory they take in all.
    ///
    /// # Errors
    ///
    /// As [`for_budget`](Self::for_budget); [`PlanError::MemoryPrice`] unless `0 <= price`.
    pub fn for_price(
        levels: &[Level],
        price: f64,
        ribbon_query_cost: f64,
    ) -> Result<Self, PlanError> {
        if !(0.0..=f64::MAX).contains(&price) {
            return Err(PlanError::MemoryPrice { price });
        }
        let choices = choices(levels, ribbon_query_cost)?;
        Ok(KindPlan { levels: choices.iter().map(|choices| best(choices, price)).collect() })
    }

    /// What was decided for each level, in the order they were given.
    pub fn levels(&self) -> &[PlannedKind] {
        &self.levels
    }

    /// The kind and size of each level's filters, in the same order, for
    /// [`FilterPolicy::with_levels`](crate::FilterPolicy::with_levels).
    pub fn kinds(&self) -> impl Iterator<Item = FilterKind> {
        self.levels.iter().map(|level| level.kind)
    }

    /// Bytes of all stored filters.
    pub fn bytes(&self) -> u128 {
        self.levels.iter().map(|level| level.bytes).sum()
    }

    /// Wasted reads and queries, per lookup of the tree.
    pub fn expected_cost(&self) -> f64 {
        self.levels.iter().map(|level| level.expected_cost).sum()
    }
}

/// What each level could get; first no filter.
fn choices(levels: &[Level], ribbon_query_cost: f64) -> Result<Vec<Vec<PlannedKind>>, PlanError> {
    check(levels)?;
    if !(0.0..=level::MAX_NUMBER).contains(&ribbon_query_cost) {
        return Err(PlanError::RibbonQueryCost { cost: ribbon_query_cost });
    }
    // Kind, bytes of a filter, rate.
    let mut filters: BTreeMap<u64, Vec<(FilterKind, u64, f64)>> = BTreeMap::new();
    let level_choices = |level: &Level| {
        let none = PlannedKind {
            level: *level,
            kind: FilterKind::None,
            bytes: 0,
            false_positive_rate: 1.0,
            expected_cost: level.weight(),
        };
        let mut choices = alloc::vec![none];
        if level.keys == 0 {
            return choices;
        }
        let keys = level.keys_per_filter();
        for &(kind, bytes, rate) in &*filters.entry(keys).or_insert_with(|| filter_sizes(keys)) {
            let query_cost = match kind {
                FilterKind::Ribbon { .. } => ribbon_query_cost,
                _ => level.query_cost,
            };
            choices.push(PlannedKind {
                level: *level,
                kind,
                bytes: u128::from(level.filters()) * u128::from(bytes),
                false_positive_rate: rate,
                expected_cost: level.weight() * rate + level.queries() * query_cost,
            });
        }
        choices
    };
    Ok(levels.iter().map(level_choices).collect())
}

/// Every size of both kinds of filters of this many keys.
fn filter_sizes(keys: u64) -> Vec<(FilterKind, u64, f64)> {
    let steps = |first: u32| {
        (first * STEPS..=MAX_BITS * STEPS).map(|step| f64::from(step) / f64::from(STEPS))
    };
    let bloom = steps(1).filter_map(|bits| {
        let sizing = Sizing::BitsPerKey(bits);
        let params = sizing.params(keys).ok()?;
        let kind = FilterKind::Bloom { sizing };
        Some((kind, params.stored_bytes(), params.false_positive_rate()))
    });
    let ribbon = steps(1).filter_map(|halvings| {
        let rate = libm::exp2(-halvings);
        let bytes = RibbonOptions::new(rate).estimated_bytes(keys).ok()?;
        Some((FilterKind::Ribbon { false_positive_rate: rate }, bytes, rate))
    });
    bloom.chain(ribbon).collect()
}

/// The choice of the least cost at this price of a byte; of equal ones the smallest.
fn best(choices: &[PlannedKind], price: f64) -> PlannedKind {
    let cost = |choice: &PlannedKind| choice.expected_cost + price * choice.bytes as f64;
    let mut best = choices[0];
    for choice in &choices[1..] {
        let order = cost(choice).total_cmp(&cost(&best)).then(choice.bytes.cmp(&best.bytes));
        if order.is_lt() {
            best = *choice;
        }
    }
    best
}

fn total(choices: &[Vec<PlannedKind>], price: f64) -> u128 {
    choices.iter().map(|choices| best(choices, price).bytes).sum()
}

/// Spends what is left on larger filters, each time on the one that saves most.
fn spend_rest(levels: &mut [PlannedKind], choices: &[Vec<PlannedKind>], budget: u128) {
    loop {
        let rest = budget - levels.iter().map(|level| level.bytes).sum::<u128>();
        let mut most: Option<(usize, PlannedKind, f64)> = None;
        for (i, (level, choices)) in levels.iter().zip(choices).enumerate() {
            for choice in choices.iter().filter(|choice| choice.bytes <= level.bytes + rest) {
                let saved = level.expected_cost - choice.expected_cost;
                if saved > most.map_or(0.0, |(.., most)| most) {
                    most = Some((i, *choice, saved));
                }
            }
        }
        match most {
            Some((i, choice, _)) => levels[i] = choice,
            None => return,
        }
    }
}
