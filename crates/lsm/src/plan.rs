//! Plans how the filters of many levels share a memory budget, so that lookups waste the fewest
//! reads.
//!
//! Every figure of a plan comes from real [`Params`]. `level` contains the cost model, `size`
//! computes bytes and blocks, `curve` the rate as a function of memory, `spend` searches, `table`
//! prints. `docs/planning.md` derives the model.

mod curve;
mod kinds;
mod level;
mod size;
mod spend;
mod table;

use alloc::vec::Vec;

use blocked_bloom::probe::BLOCK_BITS;
use blocked_bloom::{MAX_BITS_PER_KEY, Params, ParamsError, Sizing};

use crate::error::PlanError;
use level::check;
use size::{blocks_at, level_bytes};

pub use kinds::{FilterKind, KindPlan, PlannedKind};
pub use level::Level;

/// The sizing of a skipped level.
const NO_FILTER: Sizing = Sizing::BitsPerKey(0.0);

/// The reason why a level gets no filter.
///
/// ```
/// use blocked_bloom_lsm::{Level, Plan, SkipReason};
/// let levels = [Level::new(1_000_000), Level::new(100_000_000).present(0.9999)];
/// let plan = Plan::for_budget(&levels, 1 << 30)?;
/// assert_eq!(plan.levels()[1].skipped, Some(SkipReason::MostlyPresent));
/// # Ok::<(), blocked_bloom_lsm::PlanError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum SkipReason {
    /// The level has no keys.
    NoKeys,
    /// No lookup reaches the level, or its reads cost nothing.
    NeverQueried,
    /// Most lookups that reach the level find their key there. The filter would save fewer reads
    /// than its queries cost, or than its memory saves elsewhere.
    MostlyPresent,
    /// No filter that pays for its queries fits into the rest of the budget. Below about one bit
    /// per key most blocks are full, and the memory saves more reads elsewhere.
    Saturated,
}

impl core::fmt::Display for SkipReason {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.pad(match self {
            Self::NoKeys => "no keys",
            Self::NeverQueried => "never queried",
            Self::MostlyPresent => "keys mostly present",
            Self::Saturated => "would be saturated",
        })
    }
}

/// The decision of a plan for one level.
///
/// With the feature `serde` it implements `Serialize`. It can be deserialized only as part of a
/// [`Plan`], whose errors name the level.
///
/// ```
/// use blocked_bloom::FilterOptions;
/// use blocked_bloom_lsm::{Level, Plan};
/// let plan = Plan::for_budget(&[Level::new(1_000), Level::new(10_000)], 16_384)?;
/// let first = &plan.levels()[0];
/// let mut builder = FilterOptions::new(first.sizing).builder();
/// builder.extend((0..1_000_u32).map(u32::to_le_bytes))?;
/// assert_eq!(builder.finish()?.params().blocks(), first.params.blocks());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct PlannedLevel {
    /// The level as given.
    pub level: Level,
    /// The sizing of each filter: [`Sizing::BitsPerKey`], 0 if the level is skipped.
    pub sizing: Sizing,
    /// The shape of each filter, for its share of the level's keys (rounded up). A pass-all filter
    /// if the level is skipped.
    pub params: Params,
    /// The reason why the level gets no filter; `None` if it gets one.
    pub skipped: Option<SkipReason>,
}

impl PlannedLevel {
    /// Plans a level with filters of this sizing.
    fn new(level: &Level, sizing: Sizing) -> Result<Self, ParamsError> {
        let keys = level.keys_per_filter();
        let params = sizing.params(keys)?;
        if level.keys > 0 && !params.is_pass_all() {
            return Ok(PlannedLevel { level: *level, sizing, params, skipped: None });
        }
        let reason = if level.keys == 0 {
            SkipReason::NoKeys
        } else if level.lookups == 0.0 || level.cost == 0.0 {
            SkipReason::NeverQueried
        } else if level.absent_queries() < 0.5 * level.queries() {
            SkipReason::MostlyPresent
        } else {
            SkipReason::Saturated
        };
        let params = NO_FILTER.params(keys)?;
        Ok(PlannedLevel { level: *level, sizing: NO_FILTER, params, skipped: Some(reason) })
    }

    /// Plans a level with filters of this many blocks, 0 for none.
    fn with_blocks(level: &Level, blocks: u32) -> Result<Self, ParamsError> {
        /// Slightly below 1, so that rounding up adds no block, even if a text format changes the
        /// last bit.
        const ROUND_DOWN: f64 = 1.0 - 1.0 / (1_u64 << 48) as f64;
        let keys = level.keys_per_filter().max(1) as f64;
        let bits = f64::from(blocks) * f64::from(BLOCK_BITS) / keys * ROUND_DOWN;
        PlannedLevel::new(level, Sizing::BitsPerKey(bits.min(MAX_BITS_PER_KEY)))
    }

    /// Returns the bytes of all stored filters of the level, headers included; 0 if the level is
    /// skipped. (Do not build a filter for a skipped level: even a pass-all filter takes 128
    /// bytes.)
    pub fn bytes(&self) -> u128 {
        match self.skipped {
            Some(_) => 0,
            None => u128::from(self.level.filters()) * u128::from(self.params.stored_bytes()),
        }
    }

    /// Returns the bits of memory per key; 0 if the level is skipped.
    pub fn bits_per_key(&self) -> f64 {
        if self.skipped.is_some() { 0.0 } else { self.params.bits_per_key() }
    }

    /// Returns the predicted false-positive rate of each filter; 1 if the level is skipped.
    pub fn false_positive_rate(&self) -> f64 {
        self.params.false_positive_rate()
    }

    /// Returns the reads of the level's tables that an average lookup wastes, each weighted by its
    /// [`cost`](Level#structfield.cost).
    pub fn expected_wasted_reads(&self) -> f64 {
        self.level.weight() * self.false_positive_rate()
    }

    fn expected_cost(&self) -> f64 {
        let queries = if self.skipped.is_some() { 0.0 } else { self.level.cost_of_queries() };
        self.expected_wasted_reads() + queries
    }
}

/// Sizes for the filters of all levels, and their costs. `Display` prints a table.
///
/// With the feature `serde`, all figures are serialized. Deserializing reads the [`Level`]s and
/// their sizings and computes the rest again, so that a plan edited by hand is consistent or an
/// error.
///
/// ```
/// use blocked_bloom_lsm::{Level, Plan};
/// let levels: Vec<Level> = [1_000_000, 10_000_000, 100_000_000].map(Level::new).into();
/// let plan = Plan::for_budget(&levels, 100 << 20)?;
/// let uniform = Plan::uniform(&levels, 100 << 20)?;
/// assert!(plan.bytes() <= 100 << 20 && uniform.bytes() <= 100 << 20);
/// assert!(plan.expected_wasted_reads() < 0.75 * uniform.expected_wasted_reads());
/// println!("{plan}");
/// # Ok::<(), blocked_bloom_lsm::PlanError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "StoredPlan"))]
pub struct Plan {
    levels: Vec<PlannedLevel>,
}

impl Plan {
    /// Returns the plan with the lowest [expected cost](Self::expected_cost) whose stored filters
    /// take at most `bytes`, headers included.
    ///
    /// Memory goes to the levels where a byte saves the most reads: those with frequent wasted
    /// reads, and those with few keys. Equal levels get equal filters, give or take a block, if
    /// there is at least one bit per key for all of them. No plan is worse than the
    /// [uniform](Self::uniform) one. The plan is optimal except for rounding to whole blocks;
    /// `docs/planning.md` derives it and bounds the difference.
    ///
    /// A level whose filter would save too little gets none, and a
    /// [reason](PlannedLevel#structfield.skipped). Memory above [`MAX_BITS_PER_KEY`], or above
    /// [`MAX_RECOMMENDED_BLOCKS`](blocked_bloom::MAX_RECOMMENDED_BLOCKS) in one filter, stays
    /// unused: cut so large a level into [`tables`](Level#structfield.tables).
    ///
    /// Cost: milliseconds for a few levels, less than a second for thousands.
    ///
    /// # Errors
    ///
    /// [`PlanError`] if a number of a level is out of range, or if there are more than 4096 levels.
    pub fn for_budget(levels: &[Level], bytes: u64) -> Result<Self, PlanError> {
        check(levels)?;
        let blocks = spend::spend(levels, bytes);
        let plan = Plan::from_levels(levels.iter().zip(blocks), PlannedLevel::with_blocks)?;
        let uniform = Plan::uniform(levels, bytes)?;
        Ok(if uniform.expected_cost() < plan.expected_cost() { uniform } else { plan })
    }

    /// Returns the plan of an engine without a planner: the same bits per key on every level, as
    /// many as fit into `bytes`, whether or not a filter pays. Use it for comparison with
    /// [`for_budget`](Self::for_budget).
    ///
    /// # Errors
    ///
    /// As [`for_budget`](Self::for_budget).
    pub fn uniform(levels: &[Level], bytes: u64) -> Result<Self, PlanError> {
        /// Steps per bit: fine enough that one step changes 2^28 blocks by few.
        const STEPS: f64 = (1_u64 << 30) as f64;
        check(levels)?;
        let bits_per_key = |step: u64| step as f64 / STEPS;
        let fits = |step: u64| {
            let total: u128 = levels
                .iter()
                .map(|level| level_bytes(level, blocks_at(level, bits_per_key(step))))
                .sum();
            total <= u128::from(bytes)
        };
        // `low` fits: without bits there are no filters.
        let (mut low, mut high) = (0, (MAX_BITS_PER_KEY * STEPS) as u64 + 1);
        while low + 1 < high {
            let middle = low.midpoint(high);
            if fits(middle) { low = middle } else { high = middle }
        }
        let blocks = levels.iter().map(|level| blocks_at(level, bits_per_key(low)));
        Plan::from_levels(levels.iter().zip(blocks), PlannedLevel::with_blocks)
    }

    /// Returns the plan with these bits per key on every level, without a budget.
    ///
    /// # Errors
    ///
    /// As [`for_budget`](Self::for_budget); and [`PlanError::Params`] unless `0 <= bits_per_key <=
    /// 100`, or if a filter would need more than 2^32 - 1 blocks.
    pub fn with_bits_per_key(levels: &[Level], bits_per_key: f64) -> Result<Self, PlanError> {
        check(levels)?;
        let sizing = Sizing::BitsPerKey(bits_per_key);
        Plan::from_levels(levels.iter().map(|level| (level, sizing)), PlannedLevel::new)
    }

    /// Applies `decide` to each level and its size.
    fn from_levels<'l, T>(
        levels: impl Iterator<Item = (&'l Level, T)>,
        decide: fn(&Level, T) -> Result<PlannedLevel, ParamsError>,
    ) -> Result<Self, PlanError> {
        let planned = levels.enumerate().map(|(index, (level, size))| {
            decide(level, size).map_err(|error| PlanError::Params { level: index, error })
        });
        Ok(Plan { levels: planned.collect::<Result<_, _>>()? })
    }

    /// Returns the decision for each level, in the given order.
    pub fn levels(&self) -> &[PlannedLevel] {
        &self.levels
    }

    /// Returns the sizing of each level in the same order, 0 bits per key for a skipped level, for
    /// [`FilterPolicy::with_levels`](crate::FilterPolicy::with_levels).
    pub fn sizings(&self) -> impl Iterator<Item = Sizing> {
        self.levels.iter().map(|level| level.sizing)
    }

    /// Returns the bytes of all stored filters, headers included.
    pub fn bytes(&self) -> u128 {
        self.levels.iter().map(PlannedLevel::bytes).sum()
    }

    /// Returns the reads that an average lookup wastes, each weighted by its
    /// [`cost`](Level#structfield.cost).
    pub fn expected_wasted_reads(&self) -> f64 {
        self.levels.iter().map(PlannedLevel::expected_wasted_reads).sum()
    }

    /// Returns the cost that a plan minimises: the [wasted reads](Self::expected_wasted_reads),
    /// plus the [`query_cost`](Level#structfield.query_cost) of every filter query.
    pub fn expected_cost(&self) -> f64 {
        self.levels.iter().map(PlannedLevel::expected_cost).sum()
    }
}

/// The fields of a serialized plan that determine the others, which are ignored.
#[cfg(feature = "serde")]
#[derive(serde::Deserialize)]
struct StoredPlan {
    levels: Vec<StoredLevel>,
}

#[cfg(feature = "serde")]
#[derive(serde::Deserialize)]
struct StoredLevel {
    level: Level,
    sizing: Sizing,
}

#[cfg(feature = "serde")]
impl TryFrom<StoredPlan> for Plan {
    type Error = PlanError;

    fn try_from(stored: StoredPlan) -> Result<Self, PlanError> {
        let levels: Vec<Level> = stored.levels.iter().map(|stored| stored.level).collect();
        check(&levels)?;
        let sizings = stored.levels.iter().map(|stored| stored.sizing);
        Plan::from_levels(levels.iter().zip(sizings), PlannedLevel::new)
    }
}
