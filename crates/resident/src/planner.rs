//! Which filters are worth their memory, and in which size. Pure: no clock, no I/O, no threads, no filters.
//!
//! What a filter saves is the reads of absent lookups: their number a second, each at the cost of a read of its table, all but the filter's
//! false positives. A budget is spent as a knapsack of which the items have sizes: greedily, by what the next step of size saves per byte
//! over the concave hull of each filter's sizes, which is within one filter of the optimum of the relaxed problem. A load is a cost that
//! must pay back: that is the hysteresis.

use alloc::vec::Vec;
use core::time::Duration;

use blocked_bloom::Params;

use crate::options::ResidentOptions;

/// How much of a filter is in memory.
///
/// ```
/// use blocked_bloom_resident::ResidentSize;
/// assert!(ResidentSize::None < ResidentSize::Half && ResidentSize::Half < ResidentSize::Whole);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ResidentSize {
    /// Nothing.
    #[default]
    None,
    /// The filter folded to half of its blocks: a tenth of the absent keys pass instead of a hundredth.
    Half,
    /// All of it.
    Whole,
}

/// What is known about the filter of a table, or about a partition of one, before it is loaded.
///
/// ```
/// use blocked_bloom::{FilterOptions, Sizing};
/// use blocked_bloom_resident::ResidentTable;
/// let params = FilterOptions::new(Sizing::BitsPerKey(10.0)).foldable().params(1_000_000)?;
/// // One of 40 tables of its run, on a disk of which a read costs as much as the others'.
/// let table = ResidentTable::new(17, params.stored_bytes()).with_params(&params).with_run_share(1.0 / 40.0);
/// assert_eq!(table.table(), 17);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ResidentTable {
    table: u64,
    bytes: u64,
    half_bytes: u64,
    read_cost: f32,
    rate: f32,
    half_rate: f32,
    run_share: f32,
    absent_per_second: Option<f32>,
}

impl ResidentTable {
    /// A filter of this many bytes, under a number by which the engine knows it. Its rate is taken to be 1 %, and it is never folded, until
    /// it was loaded or [`with_params`](Self::with_params) says otherwise.
    pub fn new(table: u64, bytes: u64) -> Self {
        ResidentTable {
            table,
            bytes: bytes.max(1),
            half_bytes: 0,
            read_cost: 1.0,
            rate: 0.01,
            half_rate: 1.0,
            run_share: 0.0,
            absent_per_second: None,
        }
    }

    /// The filter's shape: its predicted rate, and if its number of blocks is even, that after folding to half.
    #[must_use]
    pub fn with_params(self, params: &Params) -> Self {
        let blocks = params.blocks();
        let can_fold = blocks.is_multiple_of(2) && !params.is_pass_all();
        // Half of the blocks have the load of all with twice the keys.
        let folded = params.false_positive_rate_at(params.expected_items().saturating_mul(2));
        let half_bytes = if can_fold { u64::from(blocks / 2) * 64 } else { 0 };
        let rate = params.false_positive_rate() as f32;
        ResidentTable { rate, half_rate: folded as f32, half_bytes, ..self }
    }

    /// What a read of the table costs, 1 by default: less for a table whose blocks are mostly in a cache, more for one on slow storage.
    /// Negative costs and those that are no number count as 0.
    #[must_use]
    pub fn with_read_cost(self, reads: f64) -> Self {
        ResidentTable { read_cost: (reads as f32).max(0.0), ..self }
    }

    /// The share of its run's keys that the table has, 0 to 1: what is expected of its lookups until they are counted, since every run is
    /// looked up evenly over its keys as far as one knows. A run is a sorted sequence of tables: a level, a tier, a table of level 0.
    #[must_use]
    pub fn with_run_share(self, share: f64) -> Self {
        ResidentTable { run_share: (share as f32).clamp(0.0, 1.0), ..self }
    }

    /// Absent lookups a second, as [`statistics`](ResidentPlanner::statistics) gave them before a restart.
    #[must_use]
    pub fn with_absent_per_second(self, lookups: f32) -> Self {
        ResidentTable { absent_per_second: Some(lookups.clamp(0.0, f32::MAX)), ..self }
    }

    /// As its filter turned out to be when it was opened: bytes, rate, and both after folding it to half.
    #[cfg(feature = "std")]
    pub(crate) fn with_shape(self, bytes: u64, rate: f64, half: Option<(u64, f64)>) -> Self {
        let (half_bytes, half_rate) = half.unwrap_or((0, 1.0));
        let (rate, half_rate) = (rate as f32, half_rate as f32);
        ResidentTable { bytes: bytes.max(1), rate, half_bytes, half_rate, ..self }
    }

    /// The number by which the engine knows it.
    pub fn table(&self) -> u64 {
        self.table
    }

    /// Bytes of the whole filter.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// A table that went into a compaction, and how much of it came out in one new table.
///
/// ```
/// use blocked_bloom_resident::MergeInput;
/// // A quarter of the entries of this input, of run 3, are in the new table.
/// let input = MergeInput { table: 0_usize, run: 3, share: 0.25 };
/// # let _ = input;
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MergeInput<T> {
    /// The input: its index in a [`ResidentPlanner`], or its slot in a [`ResidentSet`](crate::ResidentOptions).
    pub table: T,
    /// Which sorted run it was of: a lookup visits one table of a run.
    pub run: u64,
    /// The part of its keys, 0 to 1, that is in the range of the new table.
    pub share: f64,
}

#[derive(Clone, Copy, Debug)]
struct Unit {
    table: ResidentTable,
    is_alive: bool,
    size: ResidentSize,
    /// Absent lookups a second: the mean over `age`.
    seen: f32,
    /// Seconds that `seen` covers.
    age: f32,
    /// Absent lookups of the last `fresh_age` seconds of the planner.
    fresh: f32,
    /// Absent lookups since the last tick.
    counted: f32,
    /// Seconds until it may be loaded again.
    wait: f32,
    failures: u32,
}

impl Unit {
    /// Absent lookups a second: the mean of a gamma distribution, which starts at what is expected and is updated by the counts. It keeps
    /// filters of which chance made two lookups out of one from displacing others.
    fn absent(&self, expected: Expected) -> f64 {
        let prior = f64::from(self.table.run_share) * expected.per_run;
        if prior == 0.0 {
            return f64::from(self.seen);
        }
        let counted = f64::from(self.seen * self.age);
        (counted + expected.weight) / (f64::from(self.age) + expected.weight / prior)
    }

    /// Absent lookups that the last `fresh_age` seconds would have had, had they been as those before; none if there was no tick before.
    fn due(&self, fresh_age: f32, tick: f32) -> Option<f32> {
        let before = self.age - fresh_age;
        let counted_before = (self.seen * self.age - self.fresh).max(0.0);
        (before >= tick).then(|| counted_before * fresh_age / before)
    }

    fn bytes(&self, size: ResidentSize) -> u64 {
        match size {
            ResidentSize::None => 0,
            ResidentSize::Half => self.table.half_bytes,
            ResidentSize::Whole => self.table.bytes,
        }
    }

    /// The share of the reads of absent lookups that a size saves.
    fn saves(&self, size: ResidentSize) -> f64 {
        match size {
            ResidentSize::None => 0.0,
            ResidentSize::Half => 1.0 - f64::from(self.table.half_rate),
            ResidentSize::Whole => 1.0 - f64::from(self.table.rate),
        }
    }
}

/// Absent lookups of all filters: what was counted, and what was due.
#[derive(Clone, Copy, Debug, Default)]
struct Volume {
    counted: f64,
    due: f64,
}

impl Volume {
    fn add(&mut self, counted: f32, due: f32) {
        (self.counted, self.due) = (self.counted + f64::from(counted), self.due + f64::from(due));
    }

    /// What a filter might have been counted with no change of its own, of all such numbers the nearest to what it was: it has changed if
    /// both its lookups and its share of all have. If traffic stops, none has, and nothing is forgotten.
    fn unchanged(&self, counted: f32, due: f32) -> f32 {
        let by_share = if self.due > 0.0 { due * (self.counted / self.due) as f32 } else { due };
        counted.clamp(due.min(by_share), due.max(by_share))
    }
}

/// What is expected of a table before its lookups are counted.
#[derive(Clone, Copy, Debug)]
struct Expected {
    /// Absent lookups a second of a run that has all keys.
    per_run: f64,
    /// How many counted lookups it weighs as much as.
    weight: f64,
}

/// Reads a second, as the last plan estimated them: each weighted by its table's read cost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Savings {
    saved: f64,
    savable: f64,
    per_mib: f64,
}

/// Decides which filters are in memory, and in which size, by what they save per byte.
///
/// It holds a few numbers per table and no filters: `ResidentSet` puts filters, slots and threads around it, and a simulation or an
/// engine with a cache of its own may use it alone. Tables are known by the index that [`add`](Self::add) gives.
///
/// Cost: some 70 bytes a table; a tick of 20,000 tables takes 0.9 ms (`cargo bench --bench resident`).
///
/// ```
/// use std::time::Duration;
/// use blocked_bloom_resident::{ResidentOptions, ResidentPlanner, ResidentSize, ResidentTable};
///
/// // Room for one filter of 1,000 bytes.
/// let mut planner = ResidentPlanner::new(ResidentOptions::new(1_000));
/// let (cold, hot) = (planner.add(ResidentTable::new(1, 1_000)), planner.add(ResidentTable::new(2, 1_000)));
/// planner.count(cold, 10);
/// planner.count(hot, 10_000);
/// let changes = planner.tick(Duration::from_secs(1));
/// assert_eq!(changes, [(hot, ResidentSize::Whole)]);
/// assert!(planner.resize(hot, ResidentSize::Whole)); // the engine has loaded it
/// assert_eq!(planner.resident_bytes(), 1_000);
/// ```
#[derive(Clone, Debug)]
pub struct ResidentPlanner {
    options: ResidentOptions,
    units: Vec<Unit>,
    free: Vec<u32>,
    resident_bytes: u64,
    expected: Expected,
    /// Seconds since counts were begun anew, to be compared with those before.
    fresh_age: f32,
    /// Reads a second that a byte of the best filter that did not fit would save, less the cost of its load.
    price: f32,
    savings: Savings,
    /// Kept for its capacity.
    steps: Vec<u64>,
    targets: Vec<Target>,
}

/// What a plan has given a filter so far, and whether a step of it did not fit, so that it gets no further one.
#[derive(Clone, Copy, Debug, Default)]
struct Target {
    size: ResidentSize,
    is_final: bool,
}

/// Steps that did not fit after which no smaller one is looked for.
const MISSES: u32 = 1_000;

/// How many times the recent past a mean covers at most.
const MEMORY: f32 = 32.0;

// The constants below were chosen by the simulation of `compare/resident`; figures are costs of whole filters by value, as multiples of
// those of the offline optimum, here and with another constant.

/// The part of the time for which lookups have been as they are that they are expected to last, at least. Uniform traffic, 16 partitions,
/// 50 % of the bytes: 1.046 of the smallest levels first, with 0.75 1.055. 50 % present, 50 % of the bytes: 1.027, with 0.75 1.022.
const LASTS: f64 = 0.5;

/// How many events what is expected weighs as much as. A skewed traffic has one or less, but most filters are more alike than its few hot
/// ones. After shifts, 50 % of the bytes: 1.244, with 1 1.268; with 6 1.248, and with 16 partitions at 10 % 1.293 in place of 1.238.
const EXPECTED_EVENTS: f64 = 3.0;

/// A step from one size of a filter to the next, as a number that sorts by density, the densest last: the bits of a positive `f32`, and
/// below them the index, reversed so that ties go to the older, and which size it ends at.
fn step(density: f64, index: usize, to: ResidentSize) -> u64 {
    let density = u64::from((density as f32).to_bits());
    density << 32 | u64::from(!((index as u32) << 1 | u32::from(to == ResidentSize::Whole)))
}

fn of_step(step: u64) -> (f32, usize, ResidentSize) {
    let low = !(step as u32);
    let size = if low & 1 == 1 { ResidentSize::Whole } else { ResidentSize::Half };
    (f32::from_bits((step >> 32) as u32), (low >> 1) as usize, size)
}

impl ResidentPlanner {
    /// Nothing resident, no tables.
    pub fn new(options: ResidentOptions) -> Self {
        let per_run = options.expected_lookups;
        let weight = EXPECTED_EVENTS * f64::from(options.sampling);
        ResidentPlanner {
            options,
            units: Vec::new(),
            free: Vec::new(),
            resident_bytes: 0,
            expected: Expected { per_run, weight },
            fresh_age: 0.0,
            price: 0.0,
            savings: Savings::default(),
            steps: Vec::new(),
            targets: Vec::new(),
        }
    }

    /// Adds a table whose filter is not resident, and gives its index: that of a removed table, or the next.
    pub fn add(&mut self, table: ResidentTable) -> usize {
        let known = table.absent_per_second;
        let seen = known.unwrap_or(0.0);
        let unit = Unit {
            table,
            is_alive: true,
            size: ResidentSize::None,
            seen,
            age: if known.is_some() { self.options.window() } else { 0.0 },
            fresh: seen * self.fresh_age,
            counted: 0.0,
            wait: 0.0,
            failures: 0,
        };
        match self.free.pop() {
            Some(index) => {
                self.units[index as usize] = unit;
                index as usize
            }
            None => {
                self.units.push(unit);
                self.units.len() - 1
            }
        }
    }

    /// Adds a table that a compaction wrote, which inherits what its inputs were looked up: of each run the sum over its tables, by the
    /// share of them that is in the new table; of the runs that were merged the maximum, since each lookup visited all of them and will
    /// visit one. Remove the inputs afterwards. Without inputs it is [`add`](Self::add).
    pub fn add_merged(&mut self, table: ResidentTable, inputs: &[MergeInput<usize>]) -> usize {
        let (mut seen, mut fresh, mut counted) = (0.0_f32, 0.0_f32, 0.0_f32);
        for (i, input) in inputs.iter().enumerate() {
            if inputs[..i].iter().any(|earlier| earlier.run == input.run) {
                continue;
            }
            let (mut seen_by_run, mut fresh_of_run, mut counted_of_run) = (0.0, 0.0, 0.0);
            for input in inputs.iter().filter(|other| other.run == input.run) {
                let unit = &self.units[input.table];
                let share = input.share.clamp(0.0, 1.0);
                seen_by_run += (unit.absent(self.expected) * share) as f32;
                fresh_of_run += unit.fresh * share as f32;
                counted_of_run += unit.counted * share as f32;
            }
            seen = seen.max(seen_by_run);
            fresh = fresh.max(fresh_of_run);
            counted = counted.max(counted_of_run);
        }
        let index = self.add(table);
        if !inputs.is_empty() {
            let age = self.options.window();
            self.units[index] = Unit { seen, age, fresh, counted, ..self.units[index] };
        }
        index
    }

    /// Forgets a table, and what it has in memory. Its index may be given out again.
    ///
    /// # Panics
    ///
    /// As all methods that take an index, if no table has it.
    pub fn remove(&mut self, index: usize) {
        self.unit_mut(index).is_alive = false;
        let unit = self.units[index];
        self.resident_bytes -= unit.bytes(unit.size);
        self.free.push(index as u32);
    }

    /// Counts absent lookups of a table: those that its filter answered, and reads that found nothing.
    pub fn count(&mut self, index: usize, absent: u64) {
        self.unit_mut(index).counted += absent as f32;
    }

    fn unit(&self, index: usize) -> &Unit {
        let unit = self.units.get(index).filter(|unit| unit.is_alive);
        unit.unwrap_or_else(|| panic!("no table has the index {index}"))
    }

    fn unit_mut(&mut self, index: usize) -> &mut Unit {
        let unit = self.units.get_mut(index).filter(|unit| unit.is_alive);
        unit.unwrap_or_else(|| panic!("no table has the index {index}"))
    }

    /// Ages the counts by the time that has passed and plans anew. Returns what is to change: first filters to be evicted or folded, which
    /// the planner takes for done; then those to be loaded, the most valuable first, each of which fits once it was
    /// [`resize`](Self::resize)d, if all before it were.
    pub fn tick(&mut self, elapsed: Duration) -> Vec<(usize, ResidentSize)> {
        let seconds = elapsed.as_secs_f64();
        if seconds > 0.0 {
            self.age(seconds);
        }
        self.plan()
    }

    /// Means over all that was seen are what tells filters of few lookups apart. Where what was counted lately differs from what was
    /// counted before by more than chance explains, a filter forgets what was before; where traffic is new, all do.
    fn age(&mut self, seconds: f64) {
        /// Standard deviations that chance explains: many, since every filter is tested at every tick. 50 % present, 50 % of the bytes:
        /// 1.022 with three quarters as `LASTS`, 1.026 with 4, 1.021 with 6; after shifts the same.
        const CHANCE: f32 = 5.0;
        /// Weight of the expected lookups, where a second in which all runs were counted has nearly one.
        const EXPECTED: f64 = 5e-4;
        let (seconds, window) = (seconds as f32, self.options.window());
        let is_new = self.is_new_traffic(seconds);
        self.fresh_age += seconds;
        let is_restart = is_new || self.fresh_age > window;
        if is_restart {
            self.fresh_age = seconds;
        }
        let fresh_age = self.fresh_age;
        let mut volume = Volume::default();
        for unit in self.units.iter_mut().filter(|unit| unit.is_alive) {
            let known = if is_new { 0.0 } else { unit.age };
            unit.seen += (unit.counted / seconds - unit.seen) * seconds / (known + seconds);
            unit.age = (known + seconds).min(window * MEMORY);
            unit.fresh = if is_restart { unit.counted } else { unit.fresh + unit.counted };
            unit.counted = 0.0;
            unit.wait = (unit.wait - seconds).max(0.0);
            if let Some(due) = unit.due(fresh_age, seconds) {
                volume.add(unit.fresh, due);
            }
        }
        let (mut seen, mut shares) = (0.0, 0.0);
        for unit in self.units.iter_mut().filter(|unit| unit.is_alive) {
            if let Some(due) = unit.due(fresh_age, seconds) {
                let unchanged = volume.unchanged(unit.fresh, due);
                // Twice the difference of the roots: a standard deviation of a Poisson distribution, whatever its mean is, is 1. A count
                // of `n` lookups is so many events, each of which stands for `sampling`.
                let deviation = 2.0 * (libm::sqrtf(unit.fresh) - libm::sqrtf(unchanged));
                let variance = self.options.sampling * unit.age / (unit.age - fresh_age);
                if deviation * deviation > CHANCE * CHANCE * variance {
                    (unit.seen, unit.age) = (unit.fresh / fresh_age, fresh_age);
                }
            }
            if unit.table.run_share > 0.0 {
                let weight = f64::from(unit.age / (unit.age + 1.0));
                seen += f64::from(unit.seen) * weight;
                shares += f64::from(unit.table.run_share) * weight;
            }
        }
        // What was expected counts as little, so that a tick right after the start does not take silence for evidence.
        self.expected.per_run =
            (seen + EXPECTED * self.options.expected_lookups) / (shares + EXPECTED);
    }

    /// Whether this tick's traffic is another one: of the filters that are looked up often enough to show it in one tick, many have at least
    /// twice or at most half of the lookups that were due.
    fn is_new_traffic(&self, seconds: f32) -> bool {
        /// Events of a filter in a tick that show a change. After shifts, 16 partitions, 10 %: 1.238, with 32 1.253.
        const EVENTS: f32 = 8.0;
        /// Filters of which a share says something.
        const LEAST: f32 = 10.0;
        /// The share of changed filters. After shifts, 50 %: 1.244, with 0.6 1.261. With 0.3, or if 1.5 times the lookups were a change
        /// and not 2, a walk over the keys looks like a shift: at 10 % 1.25 and not 1.13, worse than the smallest levels first.
        const MANY: f32 = 0.45;
        let known = self.units.iter().filter(|unit| unit.is_alive);
        let known = known.filter(|unit| unit.age * 4.0 > self.options.window());
        let known = known.map(|unit| (unit.counted, unit.absent(self.expected) as f32 * seconds));
        let mut volume = Volume::default();
        known.clone().for_each(|(counted, due)| volume.add(counted, due));
        let (mut changed, mut tested) = (0.0, LEAST);
        for (counted, due) in known {
            let unchanged = volume.unchanged(counted, due);
            if counted.max(unchanged) >= EVENTS * self.options.sampling {
                tested += 1.0;
                let is_changed = counted > 2.0 * unchanged || unchanged > 2.0 * counted;
                changed += f32::from(u8::from(is_changed));
            }
        }
        changed > MANY * tested
    }

    /// What a load costs, in reads: it is made of the whole filter, whatever part is kept.
    fn load_cost(&self, unit: &Unit) -> f64 {
        self.options.request_cost + unit.table.bytes as f64 / self.options.bytes_per_read
    }

    fn plan(&mut self) -> Vec<(usize, ResidentSize)> {
        use ResidentSize::{Half, Whole};
        /// What a byte that is resident is worth beside its reads: keeping it is better than dropping it while nothing else needs it.
        const KEEP: f64 = 1e-12;

        let mut steps = core::mem::take(&mut self.steps);
        let mut targets = core::mem::take(&mut self.targets);
        steps.clear();
        targets.clear();
        targets.resize(self.units.len(), Target::default());
        let mut savings = Savings::default();
        for (index, unit) in self.units.iter().enumerate().filter(|(_, unit)| unit.is_alive) {
            let per_second = unit.absent(self.expected) * f64::from(unit.table.read_cost);
            savings.savable += per_second * unit.saves(Whole);
            savings.saved += per_second * unit.saves(unit.size);
            // A load has to pay back in a while, or in a part of the time for which lookups have been as they are, if that is longer.
            let load = self.load_cost(unit) / self.options.payback.max(f64::from(unit.age) * LASTS);
            let gain = |size: ResidentSize| {
                let bytes = unit.bytes(size) as f64;
                match size > unit.size {
                    true if unit.wait > 0.0 => (bytes, 0.0),
                    true => (bytes, per_second * unit.saves(size) - load),
                    false => (bytes, per_second * unit.saves(size) + KEEP * bytes),
                }
            };
            let (bytes, whole) = gain(Whole);
            let mut from = (0.0, 0.0);
            if self.options.folding && unit.table.half_bytes > 0 {
                let half = gain(Half);
                // On the hull: it gains more per byte than what lies beyond.
                if half.1 > 0.0 && half.1 * bytes > whole * half.0 {
                    steps.push(step(half.1 / half.0, index, Half));
                    from = half;
                }
            }
            if whole > from.1 {
                steps.push(step((whole - from.1) / (bytes - from.0), index, Whole));
            }
        }
        steps.sort_unstable_by(|a, b| b.cmp(a));

        let mut left = self.options.budget;
        let (mut price, mut misses) = (0.0, 0);
        for &step in &steps {
            let (density, index, to) = of_step(step);
            let unit = &self.units[index];
            let target = &mut targets[index];
            if target.is_final {
                continue;
            }
            let more = unit.bytes(to) - unit.bytes(target.size);
            if more <= left {
                left -= more;
                target.size = to;
                continue;
            }
            target.is_final = true;
            if misses == 0 {
                price = density;
                let saves = unit.saves(to) - unit.saves(target.size);
                let reads = unit.absent(self.expected) * f64::from(unit.table.read_cost) * saves;
                savings.per_mib = reads / more as f64 * f64::from(1 << 20);
            }
            misses += 1;
            if misses > MISSES {
                break;
            }
        }
        self.price = price;
        self.savings = savings;

        let mut changes = Vec::new();
        for (index, unit) in self.units.iter_mut().enumerate().filter(|(_, unit)| unit.is_alive) {
            let to = targets[index].size;
            if to < unit.size {
                self.resident_bytes -= unit.bytes(unit.size) - unit.bytes(to);
                unit.size = to;
                changes.push((index, to));
            }
        }
        for &step in &steps {
            let (_, index, to) = of_step(step);
            if to == targets[index].size && to > self.units[index].size {
                changes.push((index, to));
            }
        }
        (self.steps, self.targets) = (steps, targets);
        changes
    }

    /// Whether a filter that is in hand, as after a flush, is worth keeping whole: it then counts as resident, and the tables that are
    /// returned are to be evicted for it, which the planner takes for done. `None` if what it would displace is worth more.
    pub fn offer(&mut self, index: usize) -> Option<Vec<usize>> {
        let unit = *self.unit(index);
        let more = unit.table.bytes - unit.bytes(unit.size);
        let density = self.density(&unit, ResidentSize::Whole);
        let mut free = self.options.budget.saturating_sub(self.resident_bytes);
        let mut evicted = Vec::new();
        if free < more {
            // What was not worth a load at the last tick is not worth an eviction.
            if density <= f64::from(self.price) || unit.table.bytes > self.options.budget {
                return None;
            }
            let residents = self.units.iter().enumerate();
            let residents = residents.filter(|&(other, unit)| {
                other != index && unit.is_alive && unit.size > ResidentSize::None
            });
            let mut worth_less: Vec<(u32, usize)> = residents
                .map(|(other, unit)| (self.density(unit, unit.size), other))
                .filter(|&(other, _)| other < density)
                .map(|(other, index)| ((other as f32).to_bits(), index))
                .collect();
            worth_less.sort_unstable();
            for (_, other) in worth_less {
                if free >= more {
                    break;
                }
                free += self.units[other].bytes(self.units[other].size);
                evicted.push(other);
            }
            if free < more {
                return None;
            }
        }
        for &other in &evicted {
            self.resize(other, ResidentSize::None);
        }
        self.resize(index, ResidentSize::Whole).then_some(evicted)
    }

    /// Reads a second that a byte saves.
    fn density(&self, unit: &Unit, size: ResidentSize) -> f64 {
        let reads = unit.absent(self.expected) * f64::from(unit.table.read_cost) * unit.saves(size);
        reads / unit.bytes(size) as f64
    }

    /// Takes note that a filter now has this size in memory: after a load, or because the engine evicted it itself. False, and nothing
    /// changes, if the budget would be exceeded, or if it is to be folded and cannot.
    pub fn resize(&mut self, index: usize, size: ResidentSize) -> bool {
        let unit = *self.unit(index);
        if size == ResidentSize::Half && unit.table.half_bytes == 0 {
            return false;
        }
        let others = self.resident_bytes - unit.bytes(unit.size);
        let bytes = unit.bytes(size);
        if size > unit.size && others.saturating_add(bytes) > self.options.budget {
            return false;
        }
        self.resident_bytes = others + bytes;
        let unit = &mut self.units[index];
        unit.size = size;
        if size > ResidentSize::None {
            (unit.wait, unit.failures) = (0.0, 0);
        }
        true
    }

    /// A load failed, or its bytes were damaged: the filter is not wanted again for a minute, after each further failure for twice as
    /// long, up to an hour.
    pub fn failed(&mut self, index: usize) {
        let unit = self.unit_mut(index);
        unit.wait = (60.0 * (1_u32 << unit.failures.min(6)) as f32).min(3_600.0);
        unit.failures += 1;
    }

    /// Sets the budget. If it is less than what is resident, returns what is to be evicted or folded, which the planner takes for done;
    /// what a larger budget makes worth loading is returned by the next tick.
    pub fn set_budget(&mut self, bytes: u64) -> Vec<(usize, ResidentSize)> {
        self.options.budget = bytes;
        let mut changes = self.plan();
        changes.retain(|&(index, size)| self.units[index].size == size);
        changes
    }

    /// Most bytes of filters in memory.
    pub fn budget(&self) -> u64 {
        self.options.budget
    }

    /// Bytes of filters in memory: never more than the budget.
    pub fn resident_bytes(&self) -> u64 {
        self.resident_bytes
    }

    /// What of a filter is in memory.
    pub fn size(&self, index: usize) -> ResidentSize {
        self.unit(index).size
    }

    /// What is known of a table, as it was added or as its filter turned out to be.
    pub fn table(&self, index: usize) -> ResidentTable {
        self.unit(index).table
    }

    /// Absent lookups a second of every table, to be persisted (twelve bytes each) and given back by
    /// [`ResidentTable::with_absent_per_second`] after a restart.
    pub fn statistics(&self) -> impl Iterator<Item = (u64, f32)> {
        let units = self.units.iter().filter(|unit| unit.is_alive);
        units.map(|unit| (unit.table.table, unit.absent(self.expected) as f32))
    }

    /// Reads a second that the resident filters save, estimated by the last plan, each weighted by its table's read cost.
    pub fn saved_reads(&self) -> f64 {
        self.savings.saved
    }

    /// Reads a second that all filters would save if all were in memory.
    pub fn savable_reads(&self) -> f64 {
        self.savings.savable
    }

    /// Reads a second that a further MiB of budget would save; 0 if all filters fit that pay back.
    pub fn saved_reads_per_mib(&self) -> f64 {
        self.savings.per_mib
    }
}

/// What the set needs.
#[cfg(feature = "std")]
impl ResidentPlanner {
    /// What an opened filter turned out to be, where `shape` changes what was known. True if another one was resident, which then counts as
    /// evicted.
    pub(crate) fn describe(
        &mut self,
        index: usize,
        shape: impl FnOnce(ResidentTable) -> ResidentTable,
    ) -> bool {
        let unit = *self.unit(index);
        let table = shape(unit.table);
        let is_other = table != unit.table && unit.size > ResidentSize::None;
        if is_other {
            self.resize(index, ResidentSize::None);
        }
        self.units[index].table = table;
        is_other
    }

    /// Bytes of every table's filter, and what of it is in memory.
    pub(crate) fn sizes(&self) -> impl Iterator<Item = (u64, ResidentSize)> {
        self.units.iter().filter(|unit| unit.is_alive).map(|unit| (unit.table.bytes, unit.size))
    }
}
