//! Planning: how a budget of memory is shared among the filters of many levels, so that lookups waste the fewest reads.
//!
//! This file owns the plan and what it costs; beside it are what is known of a level (`level`), the rate as a function of
//! memory (`curve`), the sharing out (`spend`) and the printed form (`table`). `docs/planning.md` derives it. It refuses
//! rates of its own: every figure is that of real [`Params`].

mod curve;
mod level;
mod spend;
mod table;

use alloc::vec::Vec;

use crate::error::PlanError;
use crate::params::{MAX_RECOMMENDED_BLOCKS, Params, Sizing};
use crate::probe::{BLOCK_BITS, BLOCK_BYTES, MAX_BITS_PER_KEY};

pub use level::Level;

/// Most levels of a plan: each takes some ten thousand bytes and a tenth of a millisecond.
const MAX_LEVELS: usize = 4_096;

/// Why a level gets no filter.
///
/// ```
/// use blocked_bloom::{Level, Plan, SkipReason};
/// let levels = [Level::new(1_000_000), Level::new(100_000_000).present(0.9999)];
/// let plan = Plan::for_budget(&levels, 1 << 30)?;
/// assert_eq!(plan.levels()[1].skipped, Some(SkipReason::MostlyPresent));
/// # Ok::<(), blocked_bloom::PlanError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SkipReason {
    /// The level has no key.
    NoKeys,
    /// No lookup reaches the level, or a read of it costs nothing.
    NeverAsked,
    /// Most lookups that reach the level find their key there: the filter would save fewer reads than asking it costs, or
    /// than its memory saves elsewhere.
    MostlyPresent,
    /// A filter that pays for its questions does not fit what the budget leaves: with less than about one bit per key most
    /// blocks are full, and its memory saves more reads elsewhere.
    Saturated,
}

impl core::fmt::Display for SkipReason {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.pad(match self {
            Self::NoKeys => "no keys",
            Self::NeverAsked => "never asked",
            Self::MostlyPresent => "keys mostly present",
            Self::Saturated => "would be saturated",
        })
    }
}

/// What a plan decided for one level.
///
/// ```
/// use blocked_bloom::{BloomFilterBuilder, Level, Plan};
/// let plan = Plan::for_budget(&[Level::new(1_000), Level::new(10_000)], 16_384)?;
/// let first = &plan.levels()[0];
/// let mut builder = BloomFilterBuilder::new(first.sizing);
/// builder.extend((0..1_000_u32).map(u32::to_le_bytes));
/// assert_eq!(builder.finish()?.params().blocks(), first.params.blocks());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct PlannedLevel {
    /// What was given.
    pub level: Level,
    /// What to build each of its filters with: [`Sizing::BitsPerKey`], 0 if the level is skipped.
    pub sizing: Sizing,
    /// The shape of each of its filters, for its share of the level's keys (rounded up); pass-all if the level is skipped.
    pub params: Params,
    /// Why the level gets no filter; `None` if it gets one.
    pub skipped: Option<SkipReason>,
}

impl PlannedLevel {
    /// `params` are those of `sizing` for the keys of one filter.
    fn new(level: &Level, sizing: Sizing, params: Params) -> Self {
        let reason = if level.keys == 0 {
            SkipReason::NoKeys
        } else if level.lookups == 0.0 || level.cost == 0.0 {
            SkipReason::NeverAsked
        } else if level.absent_questions() < 0.5 * level.questions() {
            SkipReason::MostlyPresent
        } else {
            SkipReason::Saturated
        };
        if level.keys == 0 || params.is_pass_all() {
            let (sizing, params) =
                (Sizing::BitsPerKey(0.0), Params::pass_all(level.keys_per_filter()));
            return PlannedLevel { level: *level, sizing, params, skipped: Some(reason) };
        }
        PlannedLevel { level: *level, sizing, params, skipped: None }
    }

    /// A level whose filters have this many blocks, 0 for none.
    fn with_blocks(level: &Level, blocks: u32) -> Self {
        let keys = level.keys_per_filter();
        let params = |bits| {
            let params = Sizing::BitsPerKey(bits).params(keys);
            params.unwrap_or(Params::pass_all(keys))
        };
        let mut bits = f64::from(blocks) * f64::from(BLOCK_BITS) / keys.max(1) as f64;
        bits = bits.min(MAX_BITS_PER_KEY);
        if params(bits).blocks() > blocks {
            // Rounding went up by a unit in the last place, and blocks by one.
            bits *= 1.0 - 1.0 / (1_u64 << 50) as f64;
        }
        PlannedLevel::new(level, Sizing::BitsPerKey(bits), params(bits))
    }

    /// Bytes of all stored filters of the level, headers included; 0 if it is skipped. (A builder that is told to build
    /// "no filter" still stores 128 bytes; store none.)
    ///
    /// ```
    /// use blocked_bloom::{Level, Plan};
    /// let plan = Plan::with_bits_per_key(&[Level::new(102).runs(2)], 10.0)?;
    /// assert_eq!(plan.levels()[0].bytes(), 2 * 128);
    /// # Ok::<(), blocked_bloom::PlanError>(())
    /// ```
    pub fn bytes(&self) -> u128 {
        match self.skipped {
            Some(_) => 0,
            None => u128::from(self.level.filters()) * u128::from(self.params.stored_bytes()),
        }
    }

    /// Bits of memory per key; 0 if the level is skipped.
    ///
    /// ```
    /// use blocked_bloom::{Level, Plan};
    /// let plan = Plan::with_bits_per_key(&[Level::new(1_000_000)], 10.0)?;
    /// assert!((10.0..10.01).contains(&plan.levels()[0].bits_per_key()));
    /// # Ok::<(), blocked_bloom::PlanError>(())
    /// ```
    pub fn bits_per_key(&self) -> f64 {
        if self.skipped.is_some() { 0.0 } else { self.params.bits_per_key() }
    }

    /// Predicted false-positive rate of each filter; 1 if the level is skipped.
    ///
    /// ```
    /// use blocked_bloom::{Level, Plan};
    /// let plan = Plan::with_bits_per_key(&[Level::new(1_000_000)], 10.0)?;
    /// assert!((plan.levels()[0].false_positive_rate() - 0.009_66).abs() < 0.000_01);
    /// # Ok::<(), blocked_bloom::PlanError>(())
    /// ```
    pub fn false_positive_rate(&self) -> f64 {
        self.params.false_positive_rate()
    }

    /// Reads of the level's tables that a lookup wastes, on average, each weighted by its [`cost`](Level#structfield.cost).
    ///
    /// ```
    /// use blocked_bloom::{Level, Plan};
    /// let plan = Plan::for_budget(&[Level::new(1_000_000).runs(4)], 0)?;
    /// assert_eq!(plan.levels()[0].expected_wasted_reads(), 4.0);
    /// # Ok::<(), blocked_bloom::PlanError>(())
    /// ```
    pub fn expected_wasted_reads(&self) -> f64 {
        self.level.weight() * self.false_positive_rate()
    }

    fn expected_cost(&self) -> f64 {
        let asking = if self.skipped.is_some() { 0.0 } else { self.level.asking() };
        self.expected_wasted_reads() + asking
    }
}

/// Sizes for the filters of all levels, and what they cost. Prints as a table.
///
/// ```
/// use blocked_bloom::{Level, Plan};
/// let levels: Vec<Level> = [1_000_000, 10_000_000, 100_000_000].map(Level::new).into();
/// let plan = Plan::for_budget(&levels, 100 << 20)?;
/// let uniform = Plan::uniform(&levels, 100 << 20)?;
/// assert!(plan.bytes() <= 100 << 20 && uniform.bytes() <= 100 << 20);
/// assert!(plan.expected_wasted_reads() < 0.75 * uniform.expected_wasted_reads());
/// println!("{plan}");
/// # Ok::<(), blocked_bloom::PlanError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    levels: Vec<PlannedLevel>,
}

impl Plan {
    /// The plan with the least [expected cost](Self::expected_cost) whose filters take at most `bytes` when stored, headers
    /// included.
    ///
    /// Memory goes where a byte saves most: where a read is wasted often, and where there are few keys. Equal levels get
    /// equal filters, give or take a block, as long as there is a bit per key for all of them. No plan is worse than the
    /// [uniform](Self::uniform) one. Within what sizes in whole blocks allow it is the best: `docs/planning.md` has the
    /// derivation and how far off it can be.
    ///
    /// A level of which a filter would save too little gets none, with the [reason](PlannedLevel#structfield.skipped). Memory
    /// that would exceed [`MAX_BITS_PER_KEY`](crate::MAX_BITS_PER_KEY), or [`MAX_RECOMMENDED_BLOCKS`] in one filter, is left
    /// unused: cut a level of so many keys into [`tables`](Level#structfield.tables).
    ///
    /// Cost: milliseconds for a few levels, under a second for thousands.
    ///
    /// # Errors
    ///
    /// [`PlanError`] if a level's numbers are out of their range, or there are more than 4096 levels.
    ///
    /// ```
    /// use blocked_bloom::{Level, Plan};
    /// let plan = Plan::for_budget(&[Level::new(1_000_000), Level::new(10_000_000)], 10_000_000)?;
    /// let [small, large] = plan.levels() else { unreachable!() };
    /// assert!(small.bits_per_key() > large.bits_per_key() + 3.0);
    /// # Ok::<(), blocked_bloom::PlanError>(())
    /// ```
    pub fn for_budget(levels: &[Level], bytes: u64) -> Result<Self, PlanError> {
        check(levels)?;
        let blocks = spend::spend(levels, bytes);
        let planned = levels.iter().zip(blocks);
        let planned = planned.map(|(level, blocks)| PlannedLevel::with_blocks(level, blocks));
        let plan = Plan { levels: planned.collect() };
        let uniform = Plan::uniform(levels, bytes)?;
        Ok(if uniform.expected_cost() < plan.expected_cost() { uniform } else { plan })
    }

    /// What engines do without a plan: the same bits per key for every level, the most that fit `bytes`, whether or not a filter
    /// pays. What [`for_budget`](Self::for_budget) is to be compared with.
    ///
    /// # Errors
    ///
    /// As [`for_budget`](Self::for_budget).
    ///
    /// ```
    /// use blocked_bloom::{Level, Plan};
    /// let plan = Plan::uniform(&[Level::new(1_000_000), Level::new(10_000_000)], 13_750_000)?;
    /// assert!(plan.levels().iter().all(|level| (9.99..10.0).contains(&level.bits_per_key())));
    /// # Ok::<(), blocked_bloom::PlanError>(())
    /// ```
    pub fn uniform(levels: &[Level], bytes: u64) -> Result<Self, PlanError> {
        /// Steps of a bit per key: fine enough for 2^28 blocks to differ by few.
        const STEPS: f64 = (1_u64 << 30) as f64;
        check(levels)?;
        let bits_of = |step: u64| step as f64 / STEPS;
        let fits = |step: u64| {
            let total: u128 =
                levels.iter().map(|level| bytes_of(level, blocks_at(level, bits_of(step)))).sum();
            total <= u128::from(bytes)
        };
        // `low` fits: without bits there are no filters.
        let (mut low, mut high) = (0, (MAX_BITS_PER_KEY * STEPS) as u64 + 1);
        while low + 1 < high {
            let middle = low.midpoint(high);
            if fits(middle) { low = middle } else { high = middle }
        }
        let planned = levels
            .iter()
            .map(|level| PlannedLevel::with_blocks(level, blocks_at(level, bits_of(low))));
        Ok(Plan { levels: planned.collect() })
    }

    /// The same bits per key for every level, whatever it takes.
    ///
    /// # Errors
    ///
    /// As [`for_budget`](Self::for_budget); and [`PlanError::Params`] unless `0 <= bits_per_key <= 100`, or if a filter would
    /// need more than 2^32 - 1 blocks.
    ///
    /// ```
    /// use blocked_bloom::{Level, Plan};
    /// let plan = Plan::with_bits_per_key(&[Level::new(1_000_000), Level::new(10_000_000)], 10.0)?;
    /// assert_eq!(plan.bytes(), 13_750_208);
    /// # Ok::<(), blocked_bloom::PlanError>(())
    /// ```
    pub fn with_bits_per_key(levels: &[Level], bits_per_key: f64) -> Result<Self, PlanError> {
        check(levels)?;
        let sizing = Sizing::BitsPerKey(bits_per_key);
        let planned = levels.iter().enumerate().map(|(index, level)| {
            let params = sizing.params(level.keys_per_filter());
            let params = params.map_err(|error| PlanError::Params { level: index, error })?;
            Ok(PlannedLevel::new(level, sizing, params))
        });
        Ok(Plan { levels: planned.collect::<Result<_, _>>()? })
    }

    /// What was decided for each level, in the order they were given.
    ///
    /// ```
    /// use blocked_bloom::{Level, Plan, SkipReason};
    /// let plan = Plan::for_budget(&[Level::new(0), Level::new(10)], 128)?;
    /// let skipped: Vec<Option<SkipReason>> = plan.levels().iter().map(|level| level.skipped).collect();
    /// assert_eq!(skipped, [Some(SkipReason::NoKeys), None]);
    /// # Ok::<(), blocked_bloom::PlanError>(())
    /// ```
    pub fn levels(&self) -> &[PlannedLevel] {
        &self.levels
    }

    /// Bytes of all stored filters, headers included.
    ///
    /// ```
    /// use blocked_bloom::{Level, Plan};
    /// assert_eq!(Plan::for_budget(&[Level::new(10)], 127)?.bytes(), 0);
    /// assert_eq!(Plan::for_budget(&[Level::new(10)], 1 << 40)?.bytes(), 192);
    /// # Ok::<(), blocked_bloom::PlanError>(())
    /// ```
    pub fn bytes(&self) -> u128 {
        self.levels.iter().map(PlannedLevel::bytes).sum()
    }

    /// Reads that a lookup wastes, on average, each weighted by its [`cost`](Level#structfield.cost).
    ///
    /// ```
    /// use blocked_bloom::{Level, Plan};
    /// let plan = Plan::for_budget(&[Level::new(10).runs(3), Level::new(10).lookups(0.5)], 0)?;
    /// assert_eq!(plan.expected_wasted_reads(), 3.5);
    /// # Ok::<(), blocked_bloom::PlanError>(())
    /// ```
    pub fn expected_wasted_reads(&self) -> f64 {
        self.levels.iter().map(PlannedLevel::expected_wasted_reads).sum()
    }

    /// What a plan keeps low: [wasted reads](Self::expected_wasted_reads) and, for every filter that is asked, its
    /// [`query_cost`](Level#structfield.query_cost).
    ///
    /// ```
    /// use blocked_bloom::{Level, Plan};
    /// let plan = Plan::for_budget(&[Level::new(10)], 192)?;
    /// assert!((plan.expected_cost() - plan.expected_wasted_reads() - 0.001).abs() < 1e-12);
    /// # Ok::<(), blocked_bloom::PlanError>(())
    /// ```
    pub fn expected_cost(&self) -> f64 {
        self.levels.iter().map(PlannedLevel::expected_cost).sum()
    }
}

fn check(levels: &[Level]) -> Result<(), PlanError> {
    if levels.len() > MAX_LEVELS {
        return Err(PlanError::TooManyLevels { levels: levels.len(), limit: MAX_LEVELS });
    }
    levels.iter().enumerate().try_for_each(|(index, level)| level.check(index))
}

/// The most blocks a plan gives to one filter of so many keys.
fn most_blocks(keys: u64) -> u32 {
    let sizing = Sizing::BitsPerKey(MAX_BITS_PER_KEY);
    let blocks = sizing.params(keys).map_or(u32::MAX, |params| params.blocks());
    blocks.min(MAX_RECOMMENDED_BLOCKS)
}

/// Blocks of each filter of a level at these bits per key, as [`Sizing::BitsPerKey`] rounds them; 0 for no filter.
fn blocks_at(level: &Level, bits_per_key: f64) -> u32 {
    if level.keys == 0 || bits_per_key == 0.0 {
        return 0;
    }
    let keys = level.keys_per_filter() as f64;
    let most = f64::from(MAX_RECOMMENDED_BLOCKS);
    libm::ceil(keys * bits_per_key / f64::from(BLOCK_BITS)).clamp(1.0, most) as u32
}

/// Stored bytes of all filters of a level, if each has this many blocks.
fn bytes_of(level: &Level, blocks: u32) -> u128 {
    match blocks {
        0 => 0,
        // The header takes as much as a block.
        _ => {
            u128::from(level.filters()) * (u128::from(blocks) + 1) * u128::from(BLOCK_BYTES as u64)
        }
    }
}
