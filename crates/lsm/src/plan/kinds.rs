//! Plans with two kinds of filters: Bloom or Ribbon for each level, under a memory budget or at a
//! price of memory.
//!
//! For each level, all useful sizes of both kinds are priced. At a given price of memory, each
//! level takes its best size independently of the others. A budget is met by the lowest price at
//! which all of them fit.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use blocked_bloom::Sizing;
use blocked_bloom_ribbon::RibbonOptions;

use super::level::{self, Level, check};
use crate::error::PlanError;

/// Steps per bit per key, and per halving of the rate.
const STEPS: u32 = 4;

/// Maximum bits per key of a Bloom filter, and maximum halvings of a Ribbon filter's rate.
const MAX_BITS: u32 = 30;

/// A kind of filter and its size.
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
    /// A blocked Bloom filter.
    Bloom {
        /// The size; in a plan always [`Sizing::BitsPerKey`].
        sizing: Sizing,
    },
    /// A sharded Ribbon filter (`RibbonOptions::new` of `blocked-bloom-ribbon`).
    Ribbon {
        /// The false-positive rate, in a plan 2^-30 to 0.5.
        false_positive_rate: f64,
    },
}

impl From<Sizing> for FilterKind {
    fn from(sizing: Sizing) -> Self {
        FilterKind::Bloom { sizing }
    }
}

/// The decision of a [`KindPlan`] for one level.
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
    /// The level as given.
    pub level: Level,
    /// Kind and size of each filter.
    pub kind: FilterKind,
    /// Bytes of all stored filters of the level; estimated for Ribbon.
    pub bytes: u128,
    /// Predicted rate; 1 without a filter.
    pub false_positive_rate: f64,
    /// Wasted reads and queries per lookup, as in
    /// [`Plan::expected_cost`](super::Plan::expected_cost).
    pub expected_cost: f64,
}

/// Bloom or Ribbon filters for each level.
///
/// A Ribbon filter takes about 28 % less memory at a rate of 1 %, and a lookup takes several times
/// as long. Ribbon pays on levels with most of the keys, and not on levels with most of the
/// queries. `docs/planning.md` shows when.
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
    /// Returns kinds and sizes whose stored filters take at most `bytes`. Other choices would gain
    /// little: sizes are a quarter of a bit per key apart, and the rest of the budget goes to the
    /// level where it saves most, while something fits.
    ///
    /// `ribbon_query_cost` is the cost of a query of a Ribbon filter, in reads. It is several times
    /// [`Level::query_cost`], the cost of a query of a Bloom filter. Cost of the call: a few
    /// milliseconds for each distinct number of keys.
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
        // Prices are positive numbers, whose bits sort like the numbers. At the highest price no
        // filter pays.
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

    /// Returns the best kinds and sizes if a byte of memory costs `price`, in reads per lookup,
    /// without a budget.
    ///
    /// # Errors
    ///
    /// As [`for_budget`](Self::for_budget); [`PlanError::MemoryPrice`] if `price` is negative or
    /// not finite.
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

    /// Returns the decision for each level, in the given order.
    pub fn levels(&self) -> &[PlannedKind] {
        &self.levels
    }

    /// Returns the kind and size of each level's filters in the same order, for
    /// [`FilterPolicy::with_levels`](crate::FilterPolicy::with_levels).
    pub fn kinds(&self) -> impl Iterator<Item = FilterKind> {
        self.levels.iter().map(|level| level.kind)
    }

    /// Returns the bytes of all stored filters.
    pub fn bytes(&self) -> u128 {
        self.levels.iter().map(|level| level.bytes).sum()
    }

    /// Returns the cost of wasted reads and queries, per lookup.
    pub fn expected_cost(&self) -> f64 {
        self.levels.iter().map(|level| level.expected_cost).sum()
    }
}

/// Returns the choices of each level; the first is "no filter".
fn choices(levels: &[Level], ribbon_query_cost: f64) -> Result<Vec<Vec<PlannedKind>>, PlanError> {
    check(levels)?;
    if !(0.0..=level::MAX_NUMBER).contains(&ribbon_query_cost) {
        return Err(PlanError::RibbonQueryCost { cost: ribbon_query_cost });
    }
    // By number of keys: kind, bytes of a filter, rate.
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

/// Returns every size of both kinds of filters for this number of keys.
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

/// Returns the choice with the lowest cost at this price of a byte; the smallest among equal ones.
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

/// Spends the rest of the budget on larger filters, each time on the one that saves most.
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
