//! How a budget is spent: a multiple-choice knapsack, in which each filter gets one of its sizes.
//!
//! The sizes on the upper convex hull of a filter's savings over its bytes are taken as steps. The
//! steps of all filters are taken in descending order of savings per byte as long as they fit; this
//! is at most one step short of the optimum of the linear relaxation.

use alloc::vec::Vec;

use super::state::{Prior, TableState};
use crate::options::ResidentOptions;
use crate::table::ResidentSize;

/// After this many steps that did not fit, no further step is tried.
const MAX_MISSES: u32 = 1_000;

/// The lookups of a filter are expected to stay as they are for at least this part of the time for
/// which they have been so. Chosen by the simulation of `compare/resident`, in multiples of the
/// offline optimum's cost: uniform traffic, 16 partitions, 50 % of the bytes 1.046 of the smallest
/// levels first, with 0.75 1.055; 50 % present, 50 % of the bytes 1.027, with 0.75 1.022.
const STABLE_SHARE: f64 = 0.5;

/// What a resident byte is worth beside the reads that it saves: a filter is kept while nothing
/// else needs its memory.
const KEEP_VALUE: f64 = 1e-12;

/// Reads a second that filters save, each weighted by its table's read cost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Savings {
    /// By the filters in memory before the budget was spent anew.
    pub(super) saved: f64,
    /// If all filters were in memory.
    pub(super) savable: f64,
    /// By a further MiB.
    pub(super) per_mib: f64,
}

/// The sizes that filters are to have. Its memory is used again for the next plan.
#[derive(Clone, Debug, Default)]
pub(super) struct Knapsack {
    /// Descending.
    steps: Vec<u64>,
    /// By the index of the filter.
    targets: Vec<Target>,
    /// Reads a second that a byte of the best step that did not fit would save, less the cost of
    /// its load; 0 if all fit.
    pub(super) price: f32,
    pub(super) savings: Savings,
}

/// The size that a filter has got so far. It is final if a step did not fit: the filter's further
/// steps are skipped, and do not count as misses.
#[derive(Clone, Copy, Debug, Default)]
struct Target {
    size: ResidentSize,
    is_final: bool,
}

impl Knapsack {
    /// Spends the budget anew.
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

    /// Adds the steps of a filter; without it there would be `reads` a second.
    fn add_steps(
        &mut self,
        index: usize,
        state: &TableState,
        options: &ResidentOptions,
        reads: f64,
    ) {
        use ResidentSize::{Half, Whole};
        // A load has to pay back in the time that the options give, or in that for which lookups
        // are expected to stay as they are, if that is longer.
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
            // On the hull: it gains more per byte than what lies beyond.
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

    /// What a filter is to have.
    pub(super) fn target(&self, index: usize) -> ResidentSize {
        self.targets[index].size
    }

    /// The filters that are to have something, the densest step first.
    pub(super) fn targets(&self) -> impl Iterator<Item = (usize, ResidentSize)> {
        let steps = self.steps.iter().map(|&step| decode_step(step));
        let last = steps.filter(|&(_, index, to)| to == self.targets[index].size);
        last.map(|(_, index, to)| (index, to))
    }
}

/// What a load costs, in reads: the whole filter is loaded, whatever part is kept.
fn load_cost(state: &TableState, options: &ResidentOptions) -> f64 {
    options.request_cost + state.table.bytes as f64 / options.bytes_per_read
}

/// A step from one size of a filter to the next, as a number that sorts by density: the bits of a
/// positive `f32`, below them the index and the size that it leads to, inverted, so that of equal
/// densities the lower index is greater.
fn encode_step(density: f64, index: usize, to: ResidentSize) -> u64 {
    let density = u64::from((density as f32).to_bits());
    density << 32 | u64::from(!((index as u32) << 1 | u32::from(to == ResidentSize::Whole)))
}

fn decode_step(step: u64) -> (f32, usize, ResidentSize) {
    let low = !(step as u32);
    let size = if low & 1 == 1 { ResidentSize::Whole } else { ResidentSize::Half };
    (f32::from_bits((step >> 32) as u32), (low >> 1) as usize, size)
}
