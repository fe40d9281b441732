//! Runs of a trace under each policy, and what they cost: reads of tables that do not have the key, and loads.

use std::ops::Range;
use std::time::Duration;

use blocked_bloom_lsm::{
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
    /// The best set of whole filters for counts that are known before: of the whole trace or, where traffic changes, of each fifth of it.
    /// It changes for nothing.
    Optimum,
    /// Whole filters by the true rates of now, which no counts show: it follows a shift at once, pays for loads, and knows how long traffic
    /// lasts on average.
    TrueRates,
    /// `blocked-bloom-lsm`, with whole filters only.
    Value,
    /// The same with one in 16 lookups counted.
    ValueSampled,
    /// `blocked-bloom-lsm` as it is by default, folding filters to half too.
    Folding,
    /// The smallest levels, loaded before the start and never changed.
    SmallestFirst,
    /// quick_cache, which gets a filter when reads that it would have saved have cost as much as its load.
    Repaid,
    /// Caches that load what is missed.
    Quick,
    Lru,
    Moka,
}

impl Policy {
    pub(crate) const ALL: [Policy; 10] = [
        Policy::Optimum,
        Policy::TrueRates,
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
            Policy::TrueRates => "by true rates",
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
    /// Reads and loads per thousand gets that would not be needed if the engine knew which table has a key.
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
    /// Filters in one part or in 16, and a budget in percent of those at the start. `changes` says that traffic or tables change.
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
            Policy::TrueRates => self.by_value(false, None),
            Policy::Value => self.by_value(false, Some(1)),
            Policy::ValueSampled => self.by_value(false, Some(16)),
            Policy::Folding => self.by_value(true, Some(1)),
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

    /// What a new unit replaces: dead ones of any run that overlap it, with the share of each that is in it.
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

    /// The table with the rate that it truly has, and nothing that is expected beside it.
    fn with_true_rate(&self, unit: usize, now: u32) -> ResidentTable {
        let rate = self.trace.rate(now, self.table(unit).run, self.range(unit));
        self.units[unit].with_run_share(0.0).with_absent_per_second(rate as f32)
    }

    /// One in `sample` lookups is counted; none, and the true rates are known instead.
    fn by_value(&self, folding: bool, sample: Option<u32>) -> Cost {
        let knows = sample.is_none();
        let sample = sample.unwrap_or(1);
        let options = ResidentOptions::new(self.budget)
            .with_half_life(Duration::from_secs(8))
            .with_payback(Duration::from_secs(5))
            .with_load_cost(REQUEST, BYTES_PER_READ)
            .with_expected_lookups((TICK * TICKS) as f64)
            .with_sampling(sample)
            .with_folding(folding);
        let options = match knows {
            true => options.with_payback(Duration::from_secs(self.window.into()) / TICKS as u32),
            false => options,
        };
        let mut planner = ResidentPlanner::new(options.clone());
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
            index_of[unit] =
                planner.add(if knows { self.with_true_rate(unit, 0) } else { self.units[unit] });
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
                    if class != Class::Present && !knows {
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
                    if knows && self.trace.shifts_at(now) {
                        // No tables change where traffic does.
                        planner = ResidentPlanner::new(options.clone());
                        for unit in self.first_units() {
                            let index = planner.add(self.with_true_rate(unit, now));
                            assert_eq!(index, index_of[unit]);
                            assert!(planner.resize(index, sizes[unit]));
                        }
                    }
                    let seconds = u64::from(!knows);
                    tick(&mut planner, seconds, now >= self.warm, &mut sizes, &unit_of, &mut cost);
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
                        index_of[born] = if knows {
                            planner.add(self.with_true_rate(born, now))
                        } else {
                            planner.add_merged(self.units[born], &inputs)
                        };
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
                    cost.visit(class, is_resident[unit], self.read_cost(unit));
                }
            }
        }
        cost
    }

    fn best_set(&self, events: &[Packed], from: u32, to: u32) -> Vec<ResidentSize> {
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
        let mut order: Vec<(f64, usize)> = (0..self.units.len())
            .filter(|&unit| saved[unit] > 0.0)
            .map(|unit| (saved[unit] / bytes(unit), unit))
            .collect();
        order.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
        let mut sizes = vec![ResidentSize::None; self.units.len()];
        let mut left = self.budget as f64;
        for (_, unit) in order {
            if bytes(unit) <= left {
                left -= bytes(unit);
                sizes[unit] = ResidentSize::Whole;
            }
        }
        sizes
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
                    // New tables take the place of dead ones of their level, from the memory of the compaction.
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

    /// A cache that loads on every miss; or only absent keys count, and it loads when the reads that were wasted since the last load have
    /// cost as much as it (`is_repaid`).
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
                        let size =
                            if is_resident { ResidentSize::Whole } else { ResidentSize::None };
                        cost.visit(class, size, read_cost);
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
