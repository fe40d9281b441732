//! Runs of a trace under each policy, and what they cost: reads of tables that do not have the key,
//! and loads.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use blocked_bloom_resident::{
    MergeInput, ResidentOptions, ResidentPlanner, ResidentSize, ResidentTable,
};

use crate::caches::{Cache, Lru, Moka, Quick};
use crate::trace::{
    Class, Compaction, Event, PARTS, Packed, Random, TICK, TICKS, Table, Trace, params,
};

/// What a load costs in reads: the request, and the bytes that are read in the time of one.
const REQUEST: f64 = 1.0;
const BYTES_PER_READ: f64 = 200e3;

/// A policy, by which the figures are named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Policy {
    /// The best set of whole filters for counts that are known before: of the whole trace or, where
    /// traffic changes, of each fifth of it. It changes for nothing.
    Optimum,
    /// The best set of whole filters for the true rates of each moment, which no counts show: it
    /// follows a change at once, and nothing is paid for loads. No online policy is expected to
    /// cost less.
    TrueRates,
    /// The same for what is expected of each filter by the lookups that it has had since traffic
    /// last changed, of which it is told, and by how the true rates of its run are distributed. No
    /// policy that estimates a filter's rate by its own lookups is expected to cost less.
    Counts,
    /// `blocked-bloom-resident`, with whole filters only.
    Value,
    /// The same with one in 16 lookups counted.
    ValueSampled,
    /// `blocked-bloom-resident` as it is by default, folding filters to half too.
    Folding,
    /// The smallest levels, loaded before the start and never changed.
    SmallestFirst,
    /// quick_cache, which gets a filter when reads that it would have saved have cost as much as
    /// its load.
    Repaid,
    /// Caches that load what is missed.
    Quick,
    Lru,
    Moka,
}

impl Policy {
    pub(crate) const ALL: [Policy; 11] = [
        Policy::Optimum,
        Policy::TrueRates,
        Policy::Counts,
        Policy::Value,
        Policy::ValueSampled,
        Policy::Folding,
        Policy::SmallestFirst,
        Policy::Repaid,
        Policy::Quick,
        Policy::Lru,
        Policy::Moka,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Policy::Optimum => "offline optimum",
            Policy::TrueRates => "by true rates, loads free",
            Policy::Counts => "by own counts, loads free",
            Policy::Value => "by value",
            Policy::ValueSampled => "by value, 1 in 16 counted",
            Policy::Folding => "by value, folding",
            Policy::SmallestFirst => "smallest levels first",
            Policy::Repaid => "load when repaid",
            Policy::Quick => "quick_cache",
            Policy::Lru => "LRU",
            Policy::Moka => "moka",
        }
    }
}

/// Reads, weighted by their cost, and loads, after the warm-up.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    /// Of tables without the key.
    pub(crate) wasted: f64,
    pub(crate) load_cost: f64,
    pub(crate) loads: u64,
    pub(crate) gets: u64,
}

impl Cost {
    /// Reads and loads per thousand gets that would not be needed if the engine knew which table
    /// has a key.
    pub(crate) fn extra(&self) -> f64 {
        (self.wasted + self.load_cost) / (self.gets as f64 / 1_000.0)
    }

    fn load(&mut self, bytes: u64) {
        self.loads += 1;
        self.load_cost += REQUEST + bytes as f64 / BYTES_PER_READ;
    }

    fn visit(&mut self, class: Class, size: ResidentSize, cost: f64) {
        let is_caught = match size {
            ResidentSize::None => false,
            ResidentSize::Half => class == Class::Caught,
            ResidentSize::Whole => class >= Class::PassesHalf,
        };
        if class != Class::Present && !is_caught {
            self.wasted += cost;
        }
    }
}

fn whole_if(is_resident: bool) -> ResidentSize {
    if is_resident { ResidentSize::Whole } else { ResidentSize::None }
}

/// How the true rates of a run's filters are distributed, per part of all keys, and what that says
/// of one of them by its lookups.
#[derive(Clone, Default)]
struct Rates {
    /// How many filters have a rate between two powers of `BIN`, and the sum of these rates.
    bins: BTreeMap<i32, (f64, f64)>,
    /// By lookups and twentieths of the seconds and keys that they are of, as far as it was needed.
    expected: BTreeMap<(u32, u32), f64>,
}

impl Rates {
    const BIN: f64 = 1.03;

    fn add(&mut self, rate: f64) {
        let bin = rate.max(1e-9).log(Self::BIN) as i32;
        let (count, sum) = self.bins.entry(bin).or_default();
        (*count, *sum) = (*count + 1.0, *sum + rate);
    }

    /// The posterior mean: each rate weighs as much as it makes that many lookups, of a Poisson
    /// distribution, likely.
    fn expected(&mut self, lookups: u32, seconds: f64, keys: f64) -> f64 {
        let exposure = (seconds * keys).max(1e-12).ln();
        let step = (exposure * 20.0).round();
        let of_keys = self.expected.entry((lookups, (step + 1e6) as u32)).or_insert_with(|| {
            let exposure = (step / 20.0).exp();
            let log = |rate: f64| f64::from(lookups) * rate.max(1e-9).ln() - rate * exposure;
            let rates = self.bins.values().map(|&(count, sum)| (sum / count, count));
            let most = rates.clone().map(|(rate, _)| log(rate)).fold(f64::MIN, f64::max);
            let (mut sum, mut weights) = (0.0, 0.0);
            for (rate, count) in rates {
                let weight = count * (log(rate) - most).exp();
                (sum, weights) = (sum + weight * rate, weights + weight);
            }
            sum / weights
        });
        *of_keys * keys
    }
}

/// A trace, what is loaded as one of it, and under which budget.
pub(crate) struct World<'t> {
    trace: &'t Trace,
    /// Of each table's filter.
    parts: u32,
    units: Vec<ResidentTable>,
    budget: u64,
    /// Ticks before anything is counted.
    warm: u32,
    /// Ticks for which the optimum keeps its set.
    window: u32,
}

impl<'t> World<'t> {
    /// Filters in one part or in 16, and a budget in percent of those at the start. `changes` says
    /// that traffic or tables change.
    pub(crate) fn new(
        trace: &'t Trace,
        parts: u32,
        percent: u64,
        is_cold: bool,
        changes: bool,
    ) -> Self {
        let mut units = Vec::new();
        for (index, table) in trace.tables.iter().enumerate() {
            let shape = params(table.bytes / u64::from(parts));
            let share = (table.high - table.low) / f64::from(parts);
            let cost = trace.costs[usize::from(table.level)];
            for part in 0..parts {
                let number = index as u64 * u64::from(parts) + u64::from(part);
                let unit = ResidentTable::new(number, shape.stored_bytes());
                units.push(unit.with_params(&shape).with_run_share(share).with_read_cost(cost));
            }
        }
        let warm = if is_cold { 0 } else { trace.ticks / 5 };
        let window = if changes { trace.ticks / 5 } else { trace.ticks - warm };
        let budget = trace.total_bytes * percent / 100;
        World { trace, parts, units, budget, warm, window }
    }

    pub(crate) fn run(&self, policy: Policy) -> Cost {
        let mut cost = match policy {
            Policy::Optimum => self.optimum(),
            Policy::TrueRates => self.floor(true),
            Policy::Counts => self.floor(false),
            Policy::Value => self.by_value(false, 1),
            Policy::ValueSampled => self.by_value(false, 16),
            Policy::Folding => self.by_value(true, 1),
            Policy::SmallestFirst => self.smallest_first(),
            Policy::Repaid => self.cached(&mut Quick::new(self.units.len(), self.budget), true),
            Policy::Quick => self.cached(&mut Quick::new(self.units.len(), self.budget), false),
            Policy::Lru => self.cached(&mut Lru::new(self.units.len(), self.budget), false),
            Policy::Moka => self.cached(&mut Moka::new(self.budget), false),
        };
        cost.gets = self.trace.gets - u64::from(self.warm) * TICK;
        cost
    }

    fn unit(&self, part: u32) -> usize {
        (part / (PARTS / self.parts)) as usize
    }

    fn table(&self, unit: usize) -> &Table {
        &self.trace.tables[unit / self.parts as usize]
    }

    fn read_cost(&self, unit: usize) -> f64 {
        self.trace.costs[usize::from(self.table(unit).level)]
    }

    fn units_of<'a>(&'a self, tables: &'a [u32]) -> impl Iterator<Item = usize> + 'a {
        let parts = self.parts as usize;
        tables.iter().flat_map(move |&table| table as usize * parts..(table as usize + 1) * parts)
    }

    fn first_units(&self) -> Range<usize> {
        0..self.trace.first_tables * self.parts as usize
    }

    fn range(&self, unit: usize) -> (f64, f64) {
        let table = self.table(unit);
        let width = (table.high - table.low) / f64::from(self.parts);
        let low = table.low + width * (unit % self.parts as usize) as f64;
        (low, low + width)
    }

    /// What a new unit replaces: dead ones of any run that overlap it, with the share of each that
    /// is in it.
    fn inputs(&self, compaction: &Compaction, unit: usize) -> Vec<MergeInput<usize>> {
        let (low, high) = self.range(unit);
        let mut inputs = Vec::new();
        // A flush replaces a table of another run by one of memory's.
        if compaction.dead.len() == 1 {
            return inputs;
        }
        for dead in self.units_of(&compaction.dead) {
            let (from, to) = self.range(dead);
            let overlap = to.min(high) - from.max(low);
            if overlap > 0.0 {
                let run = self.table(dead).run.into();
                inputs.push(MergeInput { table: dead, run, share: overlap / (to - from) });
            }
        }
        inputs
    }

    /// One in `sample` lookups is counted.
    fn by_value(&self, folding: bool, sample: u32) -> Cost {
        let options = ResidentOptions::new(self.budget)
            .with_half_life(Duration::from_secs(8))
            .with_payback(Duration::from_secs(5))
            .with_load_cost(REQUEST, BYTES_PER_READ)
            .with_expected_lookups((TICK * TICKS) as f64)
            .with_sampling(sample)
            .with_folding(folding);
        let mut planner = ResidentPlanner::new(options);
        const GONE: usize = usize::MAX;
        let mut index_of = vec![GONE; self.units.len()];
        let mut unit_of = Vec::new();
        let mut sizes = vec![ResidentSize::None; self.units.len()];
        let mut counts = vec![0_u32; self.units.len()];
        let mut random = Random(12_345);
        let mut until_counted = 1;
        let note = |index: usize, unit: usize, unit_of: &mut Vec<usize>| {
            unit_of.resize(unit_of.len().max(index + 1), GONE);
            unit_of[index] = unit;
        };
        for unit in self.first_units() {
            index_of[unit] = planner.add(self.units[unit]);
            note(index_of[unit], unit, &mut unit_of);
        }
        let mut cost = Cost::default();
        let mut now = 0;
        let mut compactions = self.trace.compactions.iter();
        let tick = |planner: &mut ResidentPlanner,
                    seconds,
                    is_on,
                    sizes: &mut [_],
                    unit_of: &[usize],
                    cost: &mut Cost| {
            for (index, size) in planner.tick(Duration::from_secs(seconds) / TICKS as u32) {
                let unit = unit_of[index];
                if size > sizes[unit] {
                    assert!(planner.resize(index, size), "a load that was wanted fits");
                    if is_on {
                        cost.load(self.units[unit].bytes());
                    }
                }
                sizes[unit] = size;
            }
            assert!(planner.resident_bytes() <= planner.budget());
        };
        tick(&mut planner, 0, self.warm == 0, &mut sizes, &unit_of, &mut cost);
        for event in &self.trace.events {
            match event.unpack() {
                Event::Visit(class, part) => {
                    let unit = self.unit(part);
                    if class != Class::Present {
                        until_counted -= 1;
                        if until_counted == 0 {
                            counts[unit] += sample;
                            until_counted = 1 + random.below(2 * sample as usize - 1) as u32;
                        }
                    }
                    if now >= self.warm {
                        cost.visit(class, sizes[unit], self.read_cost(unit));
                    }
                }
                Event::Tick => {
                    now += 1;
                    for (unit, count) in
                        counts.iter_mut().enumerate().filter(|(_, count)| **count > 0)
                    {
                        planner.count(index_of[unit], std::mem::take(count).into());
                    }
                    tick(&mut planner, 1, now >= self.warm, &mut sizes, &unit_of, &mut cost);
                }
                Event::Compaction => {
                    let compaction = compactions.next().expect("one for each event");
                    for dead in self.units_of(&compaction.dead) {
                        planner.count(index_of[dead], std::mem::take(&mut counts[dead]).into());
                    }
                    for born in self.units_of(&compaction.born) {
                        let mut inputs = self.inputs(compaction, born);
                        for input in &mut inputs {
                            input.table = index_of[input.table];
                        }
                        index_of[born] = planner.add_merged(self.units[born], &inputs);
                        note(index_of[born], born, &mut unit_of);
                    }
                    for dead in self.units_of(&compaction.dead) {
                        planner.remove(index_of[dead]);
                    }
                    for born in self.units_of(&compaction.born) {
                        if let Some(evicted) = planner.offer(index_of[born]) {
                            for index in evicted {
                                sizes[unit_of[index]] = ResidentSize::None;
                            }
                            sizes[born] = ResidentSize::Whole;
                        }
                    }
                }
            }
        }
        cost
    }

    /// Whole filters by what they are expected to save per byte, anew after each change, by counts
    /// at least once a second; loads are free.
    fn floor(&self, knows: bool) -> Cost {
        let rate = |unit, now| self.trace.rate(now, self.table(unit).run, self.range(unit));
        let keys = |unit| {
            let (low, high) = self.range(unit);
            high - low
        };
        let mut is_alive = vec![false; self.units.len()];
        self.first_units().for_each(|unit| is_alive[unit] = true);
        let mut counts = vec![0; self.units.len()];
        let (mut now, mut since, mut is_new) = (0, 0, true);
        let mut runs: Vec<Rates> = Vec::new();
        let mut is_resident = vec![false; self.units.len()];
        let mut cost = Cost::default();
        let mut compactions = self.trace.compactions.iter();
        for event in &self.trace.events {
            if std::mem::take(&mut is_new) {
                let alive = (0..self.units.len()).filter(|&unit| is_alive[unit]);
                if !knows && since == now {
                    runs.clear();
                    for unit in alive.clone() {
                        let run = self.table(unit).run as usize;
                        runs.resize(runs.len().max(run + 1), Rates::default());
                        runs[run].add(rate(unit, now) / keys(unit));
                    }
                }
                let seconds = f64::from(now - since) / TICKS as f64;
                let saved = alive.map(|unit| {
                    let per_second = match runs.get_mut(self.table(unit).run as usize) {
                        Some(run) => run.expected(counts[unit], seconds, keys(unit)),
                        None => rate(unit, now),
                    };
                    (per_second * self.read_cost(unit) / self.units[unit].bytes() as f64, unit)
                });
                is_resident = self.densest(saved.collect(), |unit| self.units[unit].bytes() as f64);
            }
            match event.unpack() {
                Event::Visit(class, part) => {
                    let unit = self.unit(part);
                    counts[unit] += u32::from(class != Class::Present);
                    if now >= self.warm {
                        cost.visit(class, whole_if(is_resident[unit]), self.read_cost(unit));
                    }
                }
                Event::Tick => {
                    now += 1;
                    if self.trace.shifts_at(now) {
                        (since, is_new) = (now, true);
                        counts.fill(0);
                    }
                    let is_second = u64::from(now).is_multiple_of(TICKS);
                    is_new |= !knows && (is_second || u64::from(now - since) < 2 * TICKS);
                }
                Event::Compaction => {
                    let compaction = compactions.next().expect("one for each event");
                    self.units_of(&compaction.dead).for_each(|unit| is_alive[unit] = false);
                    self.units_of(&compaction.born).for_each(|unit| is_alive[unit] = true);
                    is_new = true;
                }
            }
        }
        cost
    }

    /// Whole filters by what they save per byte in each window, with the counts of that window.
    fn optimum(&self) -> Cost {
        let mut starts = vec![(0, 0)];
        let mut now = 0;
        for (index, event) in self.trace.events.iter().enumerate() {
            if matches!(event.unpack(), Event::Tick) {
                now += 1;
                if now >= self.warm && (now - self.warm).is_multiple_of(self.window) {
                    starts.push((index, now));
                }
            }
        }
        starts.retain(|&(_, now)| now >= self.warm);
        starts.push((self.trace.events.len(), self.trace.ticks));
        let mut cost = Cost::default();
        for pair in starts.windows(2) {
            let [(first, from), (end, to)] = [pair[0], pair[1]];
            let events = &self.trace.events[first..end];
            let is_resident = self.best_set(events, from, to);
            for event in events {
                if let Event::Visit(class, part) = event.unpack() {
                    let unit = self.unit(part);
                    cost.visit(class, whole_if(is_resident[unit]), self.read_cost(unit));
                }
            }
        }
        cost
    }

    fn best_set(&self, events: &[Packed], from: u32, to: u32) -> Vec<bool> {
        let mut saved = vec![0.0; self.units.len()];
        for event in events {
            if let Event::Visit(class, part) = event.unpack() {
                let unit = self.unit(part);
                if class >= Class::PassesHalf {
                    saved[unit] += self.read_cost(unit);
                }
            }
        }
        // A table that lives for a part of the window takes memory for that part.
        let bytes = |unit: usize| {
            let table = self.table(unit);
            let lives = table.died.min(to).saturating_sub(table.born.max(from)).max(1);
            self.units[unit].bytes() as f64 * f64::from(lives.min(to - from)) / f64::from(to - from)
        };
        let order = (0..self.units.len())
            .filter(|&unit| saved[unit] > 0.0)
            .map(|unit| (saved[unit] / bytes(unit), unit))
            .collect();
        self.densest(order, bytes)
    }

    /// Of these densities and units the densest that fit the budget.
    fn densest(&self, mut order: Vec<(f64, usize)>, bytes: impl Fn(usize) -> f64) -> Vec<bool> {
        order.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
        let mut is_resident = vec![false; self.units.len()];
        let mut left = self.budget as f64;
        for (_, unit) in order {
            if bytes(unit) <= left {
                left -= bytes(unit);
                is_resident[unit] = true;
            }
        }
        is_resident
    }

    fn smallest_first(&self) -> Cost {
        let mut sizes = vec![ResidentSize::None; self.units.len()];
        let mut left = self.budget;
        let mut order: Vec<usize> = self.first_units().collect();
        order.sort_by_key(|&unit| self.table(unit).level);
        let mut cost = Cost::default();
        for unit in order {
            let bytes = self.units[unit].bytes();
            if bytes <= left {
                left -= bytes;
                sizes[unit] = ResidentSize::Whole;
                if self.warm == 0 {
                    cost.load(bytes);
                }
            }
        }
        let mut now = 0;
        let mut compactions = self.trace.compactions.iter();
        for event in &self.trace.events {
            match event.unpack() {
                Event::Visit(class, part) => {
                    let unit = self.unit(part);
                    if now >= self.warm {
                        cost.visit(class, sizes[unit], self.read_cost(unit));
                    }
                }
                Event::Tick => now += 1,
                Event::Compaction => {
                    // New tables take the place of dead ones of their level, from the memory of the
                    // compaction.
                    let compaction = compactions.next().expect("one for each event");
                    let mut levels = Vec::new();
                    for dead in self.units_of(&compaction.dead) {
                        if std::mem::take(&mut sizes[dead]) == ResidentSize::Whole {
                            left += self.units[dead].bytes();
                            levels.push(self.table(dead).level);
                        }
                    }
                    for born in self.units_of(&compaction.born) {
                        let bytes = self.units[born].bytes();
                        if bytes <= left && levels.contains(&self.table(born).level) {
                            left -= bytes;
                            sizes[born] = ResidentSize::Whole;
                        }
                    }
                }
            }
        }
        cost
    }

    /// A cache that loads on every miss; or only absent keys count, and it loads when the reads
    /// that were wasted since the last load have cost as much as it (`is_repaid`).
    fn cached(&self, cache: &mut dyn Cache, is_repaid: bool) -> Cost {
        let mut cost = Cost::default();
        let mut owed = vec![0.0; self.units.len()];
        let mut now = 0;
        let mut compactions = self.trace.compactions.iter();
        for event in &self.trace.events {
            match event.unpack() {
                Event::Visit(class, part) => {
                    let unit = self.unit(part);
                    let (bytes, read_cost) = (self.units[unit].bytes(), self.read_cost(unit));
                    let is_on = now >= self.warm;
                    let mut is_resident = if is_repaid && class < Class::PassesHalf {
                        cache.has(unit as u32)
                    } else {
                        cache.touch(unit as u32)
                    };
                    let mut loads = !is_resident;
                    if is_repaid && loads {
                        if class != Class::Present {
                            owed[unit] += read_cost;
                        }
                        loads = owed[unit] >= REQUEST + bytes as f64 / BYTES_PER_READ;
                    }
                    if loads {
                        owed[unit] = 0.0;
                        cache.insert(unit as u32, bytes);
                        if is_on {
                            cost.load(bytes);
                        }
                        // Before the filter is looked up, or after the read that repaid it.
                        is_resident = !is_repaid;
                    }
                    if is_on {
                        cost.visit(class, whole_if(is_resident), read_cost);
                    }
                }
                Event::Tick => now += 1,
                Event::Compaction => {
                    let compaction = compactions.next().expect("one for each event");
                    let kept: Vec<usize> = self
                        .units_of(&compaction.born)
                        .filter(|&born| {
                            let inputs = self.inputs(compaction, born);
                            inputs.iter().any(|input| cache.has(input.table as u32))
                        })
                        .collect();
                    for dead in self.units_of(&compaction.dead) {
                        cache.remove(dead as u32);
                    }
                    for born in kept {
                        cache.insert(born as u32, self.units[born].bytes());
                    }
                }
            }
        }
        cost
    }
}
