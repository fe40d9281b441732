//! Spends the budget as a multiple-choice knapsack: each filter gets one of its sizes.
//!
//! A step leads from one size of a filter to the next. Only sizes on the upper convex hull of
//! savings over bytes count. The steps of all filters are taken in descending order of savings per
//! byte while they fit. The result is at most one step worse than the optimum of the linear
//! relaxation.

use alloc::vec::Vec;

use super::state::{Prior, TableState};
use crate::options::ResidentOptions;
use crate::table::ResidentSize;

/// Number of steps that did not fit after which the search ends.
const MAX_MISSES: u32 = 1_000;

/// Share of its age for which a filter's traffic is expected to stay the same. Chosen by a
/// simulation; costs are given as multiples of the offline optimum. Uniform traffic, 16 partitions,
/// 50 % of the bytes: 1.046 times the smallest levels first with 0.5, 1.055 with 0.75. With 50 %
/// present and 50 % of the bytes: 1.027 with 0.5, 1.022 with 0.75.
const STABLE_SHARE: f64 = 0.5;

/// Value of a resident byte in addition to the reads that it saves: a filter stays in memory while
/// nothing else needs the space.
const KEEP_VALUE: f64 = 1e-12;

/// Reads per second that filters save, each weighted by the read cost of its table.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Savings {
    /// Saved by the filters that were in memory before the last `fill`.
    pub(super) saved: f64,
    /// Saved if all filters were in memory.
    pub(super) savable: f64,
    /// Saved by one more MiB of budget.
    pub(super) per_mib: f64,
}

/// The planned size of each filter. The vectors are reused for the next plan.
#[derive(Clone, Debug, Default)]
pub(super) struct Knapsack {
    /// Encoded steps, in descending order.
    steps: Vec<u64>,
    /// Indexed by filter.
    targets: Vec<Target>,
    /// Reads per second that one byte of the best step that did not fit would save, less the cost
    /// of its load; 0 if all steps fit.
    pub(super) price: f32,
    pub(super) savings: Savings,
}

/// Planned size of a filter so far. It is final if a step did not fit: further steps of the filter
/// are skipped and do not count as misses.
#[derive(Clone, Copy, Debug, Default)]
struct Target {
    size: ResidentSize,
    is_final: bool,
}

impl Knapsack {
    /// Plans anew with the whole budget.
    pub(super) fn fill(&mut self, states: &[TableState], options: &ResidentOptions, prior: Prior) {
        self.steps.clear();
        self.savings = Savings::default();
        for (index, state) in states.iter().enumerate().filter(|(_, state)| state.is_alive) {
            let reads = state.reads(prior);
            self.savings.savable += reads * state.saved_share(ResidentSize::Whole);
            self.savings.saved += reads * state.saved_share(state.size);
            self.add_steps(index, state, options, reads);
        }
        self.steps.sort_unstable_by(|a, b| b.cmp(a));
        self.take_steps(states, options.budget, prior);
    }

    /// Adds the steps of one filter, whose absent lookups cause `reads` per second without a
    /// filter.
    fn add_steps(
        &mut self,
        index: usize,
        state: &TableState,
        options: &ResidentOptions,
        reads: f64,
    ) {
        use ResidentSize::{Half, Whole};
        // A load must pay back within the time that the options set, or within the time for which
        // the traffic should stay the same, whichever is longer.
        let load =
            load_cost(state, options) / options.payback.max(f64::from(state.age) * STABLE_SHARE);
        let gain = |size: ResidentSize| {
            let bytes = state.bytes(size) as f64;
            match size > state.size {
                true if state.retry_delay > 0.0 => (bytes, 0.0),
                true => (bytes, reads * state.saved_share(size) - load),
                false => (bytes, reads * state.saved_share(size) + KEEP_VALUE * bytes),
            }
        };
        let (bytes, whole) = gain(Whole);
        let mut from = (0.0, 0.0);
        if options.folding && state.table.half_bytes > 0 {
            let half = gain(Half);
            // On the hull: the step to half saves more per byte than the step to the whole filter.
            if half.1 > 0.0 && half.1 * bytes > whole * half.0 {
                self.steps.push(encode_step(half.1 / half.0, index, Half));
                from = half;
            }
        }
        if whole > from.1 {
            self.steps.push(encode_step((whole - from.1) / (bytes - from.0), index, Whole));
        }
    }

    fn take_steps(&mut self, states: &[TableState], budget: u64, prior: Prior) {
        self.targets.clear();
        self.targets.resize(states.len(), Target::default());
        self.price = 0.0;
        let (mut left, mut misses) = (budget, 0);
        for &step in &self.steps {
            let (density, index, to) = decode_step(step);
            let state = &states[index];
            let target = &mut self.targets[index];
            if target.is_final {
                continue;
            }
            let more = state.bytes(to) - state.bytes(target.size);
            if more <= left {
                left -= more;
                target.size = to;
                continue;
            }
            target.is_final = true;
            if misses == 0 {
                self.price = density;
                let reads =
                    state.reads(prior) * (state.saved_share(to) - state.saved_share(target.size));
                self.savings.per_mib = reads / more as f64 * f64::from(1 << 20);
            }
            misses += 1;
            if misses > MAX_MISSES {
                break;
            }
        }
    }

    /// Returns the planned size of a filter.
    pub(super) fn target(&self, index: usize) -> ResidentSize {
        self.targets[index].size
    }

    /// Returns the filters with a planned size above none, densest step first.
    pub(super) fn targets(&self) -> impl Iterator<Item = (usize, ResidentSize)> {
        let steps = self.steps.iter().map(|&step| decode_step(step));
        let last = steps.filter(|&(_, index, to)| to == self.targets[index].size);
        last.map(|(_, index, to)| (index, to))
    }
}

/// Returns the cost of a load in reads. The whole filter is read even if only half is kept.
fn load_cost(state: &TableState, options: &ResidentOptions) -> f64 {
    options.request_cost + state.table.bytes as f64 / options.bytes_per_read
}

/// Encodes a step as a number that sorts by density: the bits of a positive `f32`, and below them
/// the inverted index and size, so that the lower index comes first among equal densities.
fn encode_step(density: f64, index: usize, to: ResidentSize) -> u64 {
    let density = u64::from((density as f32).to_bits());
    density << 32 | u64::from(!((index as u32) << 1 | u32::from(to == ResidentSize::Whole)))
}

fn decode_step(step: u64) -> (f32, usize, ResidentSize) {
    let low = !(step as u32);
    let size = if low & 1 == 1 { ResidentSize::Whole } else { ResidentSize::Half };
    (f32::from_bits((step >> 32) as u32), (low >> 1) as usize, size)
}
