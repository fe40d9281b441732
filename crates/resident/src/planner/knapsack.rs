//! How a budget is spent: a multiple-choice knapsack, in which each filter gets one of its sizes.
//!
//! The sizes on the upper convex hull of a filter's savings over its bytes are taken as steps. The
//! steps of all filters are taken in descending order of savings per byte as long as they fit; this
//! is at most one step short of the optimum of the linear relaxation.

use alloc::vec::Vec;

use super::unit::{Expected, Unit};
use crate::options::ResidentOptions;
use crate::table::ResidentSize;

/// After this many steps that did not fit, no further step is tried.
const MISSES: u32 = 1_000;

/// The lookups of a filter are expected to stay as they are for at least this part of the time for
/// which they have been so. Chosen by the simulation in docs/resident.md, in multiples of the
/// offline optimum's cost: uniform traffic, 16 partitions, 50 % of the bytes 1.046 of the smallest
/// levels first, with 0.75 1.055; 50 % present, 50 % of the bytes 1.027, with 0.75 1.022.
const LASTS: f64 = 0.5;

/// What a resident byte is worth beside the reads that it saves: a filter is kept while nothing
/// else needs its memory.
const KEEP: f64 = 1e-12;

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
    pub(super) fn fill(&mut self, units: &[Unit], options: &ResidentOptions, expected: Expected) {
        self.steps.clear();
        self.savings = Savings::default();
        for (index, unit) in units.iter().enumerate().filter(|(_, unit)| unit.is_alive) {
            let reads = unit.reads(expected);
            self.savings.savable += reads * unit.saves(ResidentSize::Whole);
            self.savings.saved += reads * unit.saves(unit.size);
            self.add_steps(index, unit, options, reads);
        }
        self.steps.sort_unstable_by(|a, b| b.cmp(a));
        self.take_steps(units, options.budget, expected);
    }

    /// Adds the steps of a filter; without it there would be `reads` a second.
    fn add_steps(&mut self, index: usize, unit: &Unit, options: &ResidentOptions, reads: f64) {
        use ResidentSize::{Half, Whole};
        // A load has to pay back in the time that the options give, or in that for which lookups
        // are expected to stay as they are, if that is longer.
        let load = load_cost(unit, options) / options.payback.max(f64::from(unit.age) * LASTS);
        let gain = |size: ResidentSize| {
            let bytes = unit.bytes(size) as f64;
            match size > unit.size {
                true if unit.wait > 0.0 => (bytes, 0.0),
                true => (bytes, reads * unit.saves(size) - load),
                false => (bytes, reads * unit.saves(size) + KEEP * bytes),
            }
        };
        let (bytes, whole) = gain(Whole);
        let mut from = (0.0, 0.0);
        if options.folding && unit.table.half_bytes > 0 {
            let half = gain(Half);
            // On the hull: it gains more per byte than what lies beyond.
            if half.1 > 0.0 && half.1 * bytes > whole * half.0 {
                self.steps.push(step(half.1 / half.0, index, Half));
                from = half;
            }
        }
        if whole > from.1 {
            self.steps.push(step((whole - from.1) / (bytes - from.0), index, Whole));
        }
    }

    fn take_steps(&mut self, units: &[Unit], budget: u64, expected: Expected) {
        self.targets.clear();
        self.targets.resize(units.len(), Target::default());
        self.price = 0.0;
        let (mut left, mut misses) = (budget, 0);
        for &step in &self.steps {
            let (density, index, to) = of_step(step);
            let unit = &units[index];
            let target = &mut self.targets[index];
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
                self.price = density;
                let reads = unit.reads(expected) * (unit.saves(to) - unit.saves(target.size));
                self.savings.per_mib = reads / more as f64 * f64::from(1 << 20);
            }
            misses += 1;
            if misses > MISSES {
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
        let steps = self.steps.iter().map(|&step| of_step(step));
        let last = steps.filter(|&(_, index, to)| to == self.targets[index].size);
        last.map(|(_, index, to)| (index, to))
    }
}

/// What a load costs, in reads: the whole filter is loaded, whatever part is kept.
fn load_cost(unit: &Unit, options: &ResidentOptions) -> f64 {
    options.request_cost + unit.table.bytes as f64 / options.bytes_per_read
}

/// A step from one size of a filter to the next, as a number that sorts by density: the bits of a
/// positive `f32`, below them the index and the size that it leads to, inverted, so that of equal
/// densities the lower index is greater.
fn step(density: f64, index: usize, to: ResidentSize) -> u64 {
    let density = u64::from((density as f32).to_bits());
    density << 32 | u64::from(!((index as u32) << 1 | u32::from(to == ResidentSize::Whole)))
}

fn of_step(step: u64) -> (f32, usize, ResidentSize) {
    let low = !(step as u32);
    let size = if low & 1 == 1 { ResidentSize::Whole } else { ResidentSize::Half };
    (f32::from_bits((step >> 32) as u32), (low >> 1) as usize, size)
}
