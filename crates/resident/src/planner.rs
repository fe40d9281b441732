//! Which filters are worth their memory, and in which size. Pure: no clock, no I/O, no threads, no
//! filters.
//!
//! A filter saves the reads that lookups of absent keys would make: their number a second, times
//! the cost of a read of its table, less its false positives. `traffic` estimates the first,
//! `knapsack` chooses for each filter the size with which all of them save most within the budget.
//! A filter that is not in memory is credited with what it saves less the cost of its load, spread
//! over the time in which that must pay back: so filters of nearly equal value are not exchanged.

mod knapsack;
mod state;
mod traffic;

use alloc::vec::Vec;
use core::time::Duration;

use crate::options::{MAX_LOOKUPS, MAX_SECONDS, ResidentOptions, clamp_to};
use crate::table::{MergeInput, ResidentSize, ResidentTable};
use knapsack::Knapsack;
use state::TableState;
use traffic::Traffic;

/// Decides which filters are in memory, and in which size, by what they save per byte.
///
/// It holds a few numbers per table and no filters: `ResidentSet` puts filters, slots and threads
/// around it, and a simulation or an engine with a cache of its own may use it alone. Tables are
/// known by the index that [`add`](Self::add) gives.
///
/// Cost: some 100 bytes a table; a tick of 20,000 tables takes 0.9 ms
/// (`cargo bench --bench resident`).
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
    states: Vec<TableState>,
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
            states: Vec::new(),
            free: Vec::new(),
            resident_bytes: 0,
            knapsack: Knapsack::default(),
        }
    }

    /// Adds a table whose filter is not resident, and gives its index: that of a removed table, or
    /// the next.
    pub fn add(&mut self, table: ResidentTable) -> usize {
        let known = table.absent_per_second;
        let observed_rate = known.unwrap_or(0.0);
        let state = TableState {
            table,
            is_alive: true,
            size: ResidentSize::None,
            observed_rate,
            age: if known.is_some() { self.options.window() } else { 0.0 },
            recent_lookups: observed_rate * self.traffic.recent_age,
            new_lookups: 0.0,
            retry_delay: 0.0,
            failures: 0,
        };
        match self.free.pop() {
            Some(index) => {
                self.states[index as usize] = state;
                index as usize
            }
            None => {
                self.states.push(state);
                self.states.len() - 1
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
        let mut merged = [0.0_f32; 3];
        for (i, input) in inputs.iter().enumerate() {
            if inputs[..i].iter().any(|earlier| earlier.run == input.run) {
                continue;
            }
            let mut sums = [0.0_f32; 3];
            for input in inputs.iter().filter(|other| other.run == input.run) {
                let state = self.state(input.table);
                let share = clamp_to(input.share, 1.0);
                sums[0] += (state.absent_lookups(self.traffic.prior) * share) as f32;
                sums[1] += state.recent_lookups * share as f32;
                sums[2] += state.new_lookups * share as f32;
            }
            merged = core::array::from_fn(|i| merged[i].max(sums[i]));
        }
        let index = self.add(table);
        if !inputs.is_empty() {
            let state = &mut self.states[index];
            state.age = self.options.window();
            [state.observed_rate, state.recent_lookups, state.new_lookups] = merged;
        }
        index
    }

    /// Forgets a table, and what it has in memory. Its index may be given out again.
    ///
    /// # Panics
    ///
    /// As all methods that take an index, if no table has it.
    pub fn remove(&mut self, index: usize) {
        self.state_mut(index).is_alive = false;
        let state = self.states[index];
        self.resident_bytes -= state.bytes(state.size);
        self.free.push(index as u32);
    }

    /// Counts absent lookups of a table: those that its filter answered, and reads that found
    /// nothing.
    pub fn count(&mut self, index: usize, absent: u64) {
        let state = self.state_mut(index);
        state.new_lookups = (state.new_lookups + absent as f32).min(MAX_LOOKUPS as f32);
    }

    fn state(&self, index: usize) -> &TableState {
        let state = self.states.get(index).filter(|state| state.is_alive);
        state.unwrap_or_else(|| panic!("no table has the index {index}"))
    }

    fn state_mut(&mut self, index: usize) -> &mut TableState {
        let state = self.states.get_mut(index).filter(|state| state.is_alive);
        state.unwrap_or_else(|| panic!("no table has the index {index}"))
    }

    /// Ages the counts by the time that has passed and plans anew. Returns what is to change: first
    /// the filters to be evicted or folded, which the planner records as done; then those to be
    /// loaded, the most valuable first. Each of these fits, if [`resize`](Self::resize) was called
    /// for all before it.
    pub fn tick(&mut self, elapsed: Duration) -> Vec<(usize, ResidentSize)> {
        let seconds = elapsed.as_secs_f64().min(MAX_SECONDS);
        if seconds > 0.0 {
            self.traffic.age(&mut self.states, &self.options, seconds as f32);
        }
        self.plan()
    }

    fn plan(&mut self) -> Vec<(usize, ResidentSize)> {
        self.knapsack.fill(&self.states, &self.options, self.traffic.prior);
        let mut changes = Vec::new();
        for (index, state) in self.states.iter_mut().enumerate().filter(|(_, state)| state.is_alive)
        {
            let to = self.knapsack.target(index);
            if to < state.size {
                self.resident_bytes -= state.bytes(state.size) - state.bytes(to);
                state.size = to;
                changes.push((index, to));
            }
        }
        let targets = self.knapsack.targets();
        changes.extend(targets.filter(|&(index, to)| to > self.states[index].size));
        changes
    }

    /// Offers a filter that is in hand, as after a flush. If it is worth keeping whole, it counts
    /// as resident, and the tables that are returned are to be evicted for it, which the planner
    /// records as done. `None` if what it would displace is worth more.
    pub fn offer(&mut self, index: usize) -> Option<Vec<usize>> {
        let state = *self.state(index);
        let more = state.table.bytes - state.bytes(state.size);
        let density = self.density(&state, ResidentSize::Whole);
        let mut free = self.options.budget.saturating_sub(self.resident_bytes);
        let mut evicted = Vec::new();
        if free < more {
            // What was not worth a load at the last tick is not worth an eviction.
            if density <= f64::from(self.knapsack.price) || state.table.bytes > self.options.budget
            {
                return None;
            }
            let residents = self.states.iter().enumerate();
            let residents = residents.filter(|&(other, state)| {
                other != index && state.is_alive && state.size > ResidentSize::None
            });
            let mut worth_less: Vec<(u32, usize)> = residents
                .map(|(other, state)| (self.density(state, state.size), other))
                .filter(|&(other, _)| other < density)
                .map(|(other, index)| ((other as f32).to_bits(), index))
                .collect();
            worth_less.sort_unstable();
            for (_, other) in worth_less {
                if free >= more {
                    break;
                }
                free += self.states[other].bytes(self.states[other].size);
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
    fn density(&self, state: &TableState, size: ResidentSize) -> f64 {
        state.reads(self.traffic.prior) * state.saved_share(size) / state.bytes(size) as f64
    }

    /// Records that a filter now has this size in memory: after a load, or because the engine
    /// evicted it. False, and nothing changes, if the budget would be exceeded, or if it is to be
    /// folded and cannot.
    pub fn resize(&mut self, index: usize, size: ResidentSize) -> bool {
        let state = *self.state(index);
        if size == ResidentSize::Half && state.table.half_bytes == 0 {
            return false;
        }
        let others = self.resident_bytes - state.bytes(state.size);
        let bytes = state.bytes(size);
        let sum = others.checked_add(bytes);
        let Some(sum) = sum.filter(|&sum| size <= state.size || sum <= self.options.budget) else {
            return false;
        };
        self.resident_bytes = sum;
        let state = &mut self.states[index];
        state.size = size;
        if size > ResidentSize::None {
            (state.retry_delay, state.failures) = (0.0, 0);
        }
        true
    }

    /// A load failed, or its bytes were damaged: the filter is not wanted again for a minute, after
    /// each further failure for twice as long, up to an hour.
    pub fn fail_load(&mut self, index: usize) {
        let state = self.state_mut(index);
        state.retry_delay = (60.0 * (1_u32 << state.failures.min(6)) as f32).min(3_600.0);
        state.failures += 1;
    }

    /// Sets the budget. If it is less than what is resident, returns what is to be evicted or
    /// folded, which the planner records as done; what a larger budget makes worth loading is
    /// returned by the next tick.
    pub fn set_budget(&mut self, bytes: u64) -> Vec<(usize, ResidentSize)> {
        self.options.budget = bytes;
        let mut changes = self.plan();
        changes.retain(|&(index, size)| self.states[index].size == size);
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
        self.state(index).size
    }

    /// What is known of a table, as it was added or as its filter turned out to be.
    pub fn table(&self, index: usize) -> ResidentTable {
        self.state(index).table
    }

    /// Absent lookups a second of every table, to be persisted (twelve bytes each) and given back
    /// by [`ResidentTable::with_absent_per_second`] after a restart.
    pub fn statistics(&self) -> impl Iterator<Item = (u64, f32)> {
        let states = self.states.iter().filter(|state| state.is_alive);
        states.map(|state| (state.table.table, state.absent_lookups(self.traffic.prior) as f32))
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
    pub(crate) fn update_shape(
        &mut self,
        index: usize,
        shape: impl FnOnce(ResidentTable) -> ResidentTable,
    ) -> bool {
        let state = *self.state(index);
        let table = shape(state.table);
        let is_other = table != state.table && state.size > ResidentSize::None;
        if is_other {
            self.resize(index, ResidentSize::None);
        }
        self.states[index].table = table;
        is_other
    }

    /// Bytes of every table's filter, and what of it is in memory.
    pub(crate) fn sizes(&self) -> impl Iterator<Item = (u64, ResidentSize)> {
        self.states
            .iter()
            .filter(|state| state.is_alive)
            .map(|state| (state.table.bytes, state.size))
    }
}
