//! Which filters are worth their memory, and in which size. Pure: no clock, no I/O, no threads, no
//! filters.
//!
//! A filter saves the reads that lookups of absent keys would make: their number a second, times
//! the cost of a read of its table, less its false positives. `traffic` estimates the first,
//! `knapsack` chooses for each filter the size with which all of them save most within the budget.
//! A filter that is not in memory is credited with what it saves less the cost of its load, spread
//! over the time in which that must pay back: so filters of nearly equal value are not exchanged.

mod knapsack;
mod traffic;
mod unit;

use alloc::vec::Vec;
use core::time::Duration;

use crate::options::{MOST_LOOKUPS, MOST_SECONDS, ResidentOptions, within};
use crate::table::{MergeInput, ResidentSize, ResidentTable};
use knapsack::Knapsack;
use traffic::Traffic;
use unit::Unit;

/// Decides which filters are in memory, and in which size, by what they save per byte.
///
/// It holds a few numbers per table and no filters: `ResidentSet` puts filters, slots and threads
/// around it, and a simulation or an engine with a cache of its own may use it alone. Tables are
/// known by the index that [`add`](Self::add) gives.
///
/// Cost: some 100 bytes a table; a tick of 20,000 tables takes 0.9 ms
/// (`benches/resident.rs`).
///
/// ```
/// use std::time::Duration;
/// use blocked_bloom_resident::{ResidentOptions, ResidentPlanner, ResidentSize, ResidentTable};
///
/// // Memory for one filter of 1,000 bytes.
/// let mut planner = ResidentPlanner::new(ResidentOptions::new(1_000));
/// let cold = planner.add(ResidentTable::new(1, 1_000));
/// let hot = planner.add(ResidentTable::new(2, 1_000));
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
    traffic: Traffic,
    knapsack: Knapsack,
}

impl ResidentPlanner {
    /// Nothing resident, no tables.
    pub fn new(options: ResidentOptions) -> Self {
        ResidentPlanner {
            traffic: Traffic::new(&options),
            options,
            units: Vec::new(),
            free: Vec::new(),
            resident_bytes: 0,
            knapsack: Knapsack::default(),
        }
    }

    /// Adds a table whose filter is not resident, and gives its index: that of a removed table, or
    /// the next.
    pub fn add(&mut self, table: ResidentTable) -> usize {
        let known = table.absent_per_second;
        let seen = known.unwrap_or(0.0);
        let unit = Unit {
            table,
            is_alive: true,
            size: ResidentSize::None,
            seen,
            age: if known.is_some() { self.options.window() } else { 0.0 },
            fresh: seen * self.traffic.fresh_age,
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

    /// Adds a table that a compaction wrote. It inherits the lookups of its inputs: of each run the
    /// sum over its tables, each weighted by the share of it that is in the new table; of the runs
    /// that were merged the maximum, since a lookup visited all of them and will visit one table.
    /// Remove the inputs afterwards. Without inputs it is [`add`](Self::add).
    ///
    /// # Panics
    ///
    /// If no table has the index of an input, as after it was removed.
    pub fn add_merged(&mut self, table: ResidentTable, inputs: &[MergeInput<usize>]) -> usize {
        let (mut seen, mut fresh, mut counted) = (0.0_f32, 0.0_f32, 0.0_f32);
        for (i, input) in inputs.iter().enumerate() {
            if inputs[..i].iter().any(|earlier| earlier.run == input.run) {
                continue;
            }
            let (mut seen_by_run, mut fresh_of_run, mut counted_of_run) = (0.0, 0.0, 0.0);
            for input in inputs.iter().filter(|other| other.run == input.run) {
                let unit = self.unit(input.table);
                let share = within(input.share, 1.0);
                seen_by_run += (unit.absent(self.traffic.expected) * share) as f32;
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

    /// Counts absent lookups of a table: those that its filter answered, and reads that found
    /// nothing.
    pub fn count(&mut self, index: usize, absent: u64) {
        let unit = self.unit_mut(index);
        unit.counted = (unit.counted + absent as f32).min(MOST_LOOKUPS as f32);
    }

    fn unit(&self, index: usize) -> &Unit {
        let unit = self.units.get(index).filter(|unit| unit.is_alive);
        unit.unwrap_or_else(|| panic!("no table has the index {index}"))
    }

    fn unit_mut(&mut self, index: usize) -> &mut Unit {
        let unit = self.units.get_mut(index).filter(|unit| unit.is_alive);
        unit.unwrap_or_else(|| panic!("no table has the index {index}"))
    }

    /// Ages the counts by the time that has passed and plans anew. Returns what is to change: first
    /// the filters to be evicted or folded, which the planner records as done; then those to be
    /// loaded, the most valuable first. Each of these fits, if [`resize`](Self::resize) was called
    /// for all before it.
    pub fn tick(&mut self, elapsed: Duration) -> Vec<(usize, ResidentSize)> {
        let seconds = elapsed.as_secs_f64().min(MOST_SECONDS);
        if seconds > 0.0 {
            self.traffic.age(&mut self.units, &self.options, seconds as f32);
        }
        self.plan()
    }

    fn plan(&mut self) -> Vec<(usize, ResidentSize)> {
        self.knapsack.fill(&self.units, &self.options, self.traffic.expected);
        let mut changes = Vec::new();
        for (index, unit) in self.units.iter_mut().enumerate().filter(|(_, unit)| unit.is_alive) {
            let to = self.knapsack.target(index);
            if to < unit.size {
                self.resident_bytes -= unit.bytes(unit.size) - unit.bytes(to);
                unit.size = to;
                changes.push((index, to));
            }
        }
        let targets = self.knapsack.targets();
        changes.extend(targets.filter(|&(index, to)| to > self.units[index].size));
        changes
    }

    /// Offers a filter that is in hand, as after a flush. If it is worth keeping whole, it counts
    /// as resident, and the tables that are returned are to be evicted for it, which the planner
    /// records as done. `None` if what it would displace is worth more.
    pub fn offer(&mut self, index: usize) -> Option<Vec<usize>> {
        let unit = *self.unit(index);
        let more = unit.table.bytes - unit.bytes(unit.size);
        let density = self.density(&unit, ResidentSize::Whole);
        let mut free = self.options.budget.saturating_sub(self.resident_bytes);
        let mut evicted = Vec::new();
        if free < more {
            // What was not worth a load at the last tick is not worth an eviction.
            if density <= f64::from(self.knapsack.price) || unit.table.bytes > self.options.budget {
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
        unit.reads(self.traffic.expected) * unit.saves(size) / unit.bytes(size) as f64
    }

    /// Records that a filter now has this size in memory: after a load, or because the engine
    /// evicted it. False, and nothing changes, if the budget would be exceeded, or if it is to be
    /// folded and cannot.
    pub fn resize(&mut self, index: usize, size: ResidentSize) -> bool {
        let unit = *self.unit(index);
        if size == ResidentSize::Half && unit.table.half_bytes == 0 {
            return false;
        }
        let others = self.resident_bytes - unit.bytes(unit.size);
        let bytes = unit.bytes(size);
        let sum = others.checked_add(bytes);
        let Some(sum) = sum.filter(|&sum| size <= unit.size || sum <= self.options.budget) else {
            return false;
        };
        self.resident_bytes = sum;
        let unit = &mut self.units[index];
        unit.size = size;
        if size > ResidentSize::None {
            (unit.wait, unit.failures) = (0.0, 0);
        }
        true
    }

    /// A load failed, or its bytes were damaged: the filter is not wanted again for a minute, after
    /// each further failure for twice as long, up to an hour.
    pub fn failed(&mut self, index: usize) {
        let unit = self.unit_mut(index);
        unit.wait = (60.0 * (1_u32 << unit.failures.min(6)) as f32).min(3_600.0);
        unit.failures += 1;
    }

    /// Sets the budget. If it is less than what is resident, returns what is to be evicted or
    /// folded, which the planner records as done; what a larger budget makes worth loading is
    /// returned by the next tick.
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

    /// Absent lookups a second of every table, to be persisted (twelve bytes each) and given back
    /// by [`ResidentTable::with_absent_per_second`] after a restart.
    pub fn statistics(&self) -> impl Iterator<Item = (u64, f32)> {
        let units = self.units.iter().filter(|unit| unit.is_alive);
        units.map(|unit| (unit.table.table, unit.absent(self.traffic.expected) as f32))
    }

    /// Reads a second that the resident filters save, estimated by the last plan, each weighted by
    /// its table's read cost.
    pub fn saved_reads(&self) -> f64 {
        self.knapsack.savings.saved
    }

    /// Reads a second that all filters would save if all were in memory.
    pub fn savable_reads(&self) -> f64 {
        self.knapsack.savings.savable
    }

    /// Reads a second that a further MiB of budget would save; 0 if all filters fit that pay back.
    pub fn saved_reads_per_mib(&self) -> f64 {
        self.knapsack.savings.per_mib
    }
}

/// What the set needs.
#[cfg(feature = "std")]
impl ResidentPlanner {
    /// Updates what is known of a table by `shape`, once its filter was opened. True if a filter of
    /// another shape was resident, which then counts as evicted.
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
