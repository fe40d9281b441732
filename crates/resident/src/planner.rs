//! Plans which filters to keep in memory, and at which size. No clock, no I/O, no threads and no
//! filters.
//!
//! The value of a filter is the number of reads per second that it saves: the absent lookups of its
//! table, times the cost of a read, less its false positives. `traffic` estimates the lookups, and
//! `knapsack` chooses the sizes with the greatest total value within the budget. A filter that is
//! not in memory also has to pay for its load, which prevents filters of nearly equal value from
//! displacing each other in turn.

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

/// Decides which filters to keep in memory, and at which size, by the reads that they save per
/// byte.
///
/// The planner stores a few numbers per table and no filters. `ResidentSet` adds the filters, the
/// slots and the locking. A simulation, or an engine with a cache of its own, can use the planner
/// alone. Methods identify a table by the index that [`add`](Self::add) returns.
///
/// Cost: about 100 bytes per table. `benches/resident.rs` measures a tick.
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
    /// Creates a planner without tables.
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

    /// Adds a table whose filter is not in memory, and returns its index. Indices of removed tables
    /// are reused.
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

    /// Adds a table that a compaction wrote; it inherits the lookups of its inputs. Remove the
    /// inputs afterwards. Without inputs this is [`add`](Self::add).
    ///
    /// Each input counts with the share of its keys that went into the new table. Tables of the
    /// same run are summed. The new table gets the maximum over the runs, not the sum: a lookup
    /// visited one table of every input run, and now visits one table.
    ///
    /// # Panics
    ///
    /// Panics if an input's index belongs to no table, for example because the table was removed.
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

    /// Removes a table and its filter. [`add`](Self::add) may return the index again.
    ///
    /// # Panics
    ///
    /// Like all methods that take an index, panics if it belongs to no table.
    pub fn remove(&mut self, index: usize) {
        self.state_mut(index).is_alive = false;
        let state = self.states[index];
        self.resident_bytes -= state.bytes(state.size);
        self.free.push(index as u32);
    }

    /// Counts absent lookups of a table: those that its filter answered, and reads that did not
    /// find the key.
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

    /// Ages the counts by the elapsed time, plans anew, and returns the changes.
    ///
    /// Filters to evict or fold come first; the planner already counts them as evicted or folded.
    /// Then come the filters to load, the most valuable first. Each load fits into the budget if
    /// [`resize`](Self::resize) was called for all loads before it.
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

    /// Offers a filter that the engine already has in memory, for example after a flush.
    ///
    /// If the whole filter is worth keeping, it counts as resident, and the returned tables, which
    /// already count as evicted, must be evicted. Returns `None` if the filters that it would
    /// displace are worth more.
    pub fn offer(&mut self, index: usize) -> Option<Vec<usize>> {
        let state = *self.state(index);
        let more = state.table.bytes - state.bytes(state.size);
        let density = self.density(&state, ResidentSize::Whole);
        let mut free = self.options.budget.saturating_sub(self.resident_bytes);
        let mut evicted = Vec::new();
        if free < more {
            // A filter that was not worth a load at the last tick does not justify an eviction.
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

    /// Returns the reads per second that one byte of the filter saves.
    fn density(&self, state: &TableState, size: ResidentSize) -> f64 {
        state.reads(self.traffic.prior) * state.saved_share(size) / state.bytes(size) as f64
    }

    /// Records the size that a filter now has in memory, after a load or an eviction by the engine.
    /// Returns false and changes nothing if the filter would exceed the budget, or cannot be
    /// folded.
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

    /// Records that a filter could not be read or was damaged. The planner asks for it again after
    /// one minute; each further failure doubles the delay, up to one hour.
    pub fn fail_load(&mut self, index: usize) {
        let state = self.state_mut(index);
        state.retry_delay = (60.0 * (1_u32 << state.failures.min(6)) as f32).min(3_600.0);
        state.failures += 1;
    }

    /// Sets the budget. If the resident filters exceed it, returns the filters to evict or fold,
    /// which already count as evicted or folded. If the budget grows, the next tick returns the
    /// filters to load.
    pub fn set_budget(&mut self, bytes: u64) -> Vec<(usize, ResidentSize)> {
        self.options.budget = bytes;
        let mut changes = self.plan();
        changes.retain(|&(index, size)| self.states[index].size == size);
        changes
    }

    /// Returns the maximum number of bytes of filters in memory.
    pub fn budget(&self) -> u64 {
        self.options.budget
    }

    /// Returns the bytes of filters in memory, which never exceed the budget.
    pub fn resident_bytes(&self) -> u64 {
        self.resident_bytes
    }

    /// Returns the size of a table's filter in memory.
    pub fn size(&self, index: usize) -> ResidentSize {
        self.state(index).size
    }

    /// Returns the description of a table, updated when its filter was opened.
    pub fn table(&self, index: usize) -> ResidentTable {
        self.state(index).table
    }

    /// Returns the absent lookups per second of every table. Persist them (twelve bytes per table),
    /// and pass them to [`ResidentTable::with_absent_per_second`] after a restart.
    pub fn statistics(&self) -> impl Iterator<Item = (u64, f32)> {
        let states = self.states.iter().filter(|state| state.is_alive);
        states.map(|state| (state.table.table, state.absent_lookups(self.traffic.prior) as f32))
    }

    /// Returns the reads per second that the resident filters save, as the last plan estimated
    /// them. Each read is weighted by the read cost of its table.
    pub fn saved_reads(&self) -> f64 {
        self.knapsack.savings.saved
    }

    /// Returns the reads per second that all filters would save if all were in memory.
    pub fn savable_reads(&self) -> f64 {
        self.knapsack.savings.savable
    }

    /// Returns the reads per second that one more MiB of budget would save; 0 if all worthwhile
    /// filters fit.
    pub fn saved_reads_per_mib(&self) -> f64 {
        self.knapsack.savings.per_mib
    }
}

/// Methods for `ResidentSet`.
#[cfg(feature = "std")]
impl ResidentPlanner {
    /// Updates the description of a table after its filter was opened. Returns true if a
    /// filter of another shape was resident; it then counts as evicted.
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

    /// Returns the bytes of each table's filter, and its size in memory.
    pub(crate) fn sizes(&self) -> impl Iterator<Item = (u64, ResidentSize)> {
        self.states
            .iter()
            .filter(|state| state.is_alive)
            .map(|state| (state.table.bytes, state.size))
    }
}
