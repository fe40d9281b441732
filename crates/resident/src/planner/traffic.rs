//! How often each filter is looked up: means over all that was counted. Where traffic has changed,
//! the past is forgotten.
//!
//! The constants were chosen by the simulation in docs/resident.md. Figures beside them are costs
//! of whole filters by value, as multiples of those of the offline optimum, with the constant and
//! with another.

use super::unit::{Expected, Unit};
use crate::options::ResidentOptions;

/// The longest time that a mean covers, in windows of recent lookups.
const MEMORY: f32 = 32.0;

/// The weight of what is expected, in counted events. For skewed traffic it would be one or less,
/// but most filters are more alike than the few hot ones. After shifts, 50 % of the bytes: 1.244,
/// with 1 1.268; with 6 1.248, and with 16 partitions at 10 % 1.293 in place of 1.238.
const EXPECTED_EVENTS: f64 = 3.0;

/// What is known of all filters' lookups together.
#[derive(Clone, Debug)]
pub(super) struct Traffic {
    pub(super) expected: Expected,
    /// Seconds since counts were begun anew, to be compared with those before.
    pub(super) fresh_age: f32,
}

impl Traffic {
    pub(super) fn new(options: &ResidentOptions) -> Self {
        let per_run = options.expected_lookups;
        let weight = EXPECTED_EVENTS * f64::from(options.sampling);
        Traffic { expected: Expected { per_run, weight }, fresh_age: 0.0 }
    }

    /// Adds what was counted in the seconds that have passed to the means. These cover all that was
    /// seen, so that filters of few lookups can be told apart. Where recent counts differ from
    /// those before by more than chance explains, a filter forgets the past; if many filters differ
    /// within one tick, all do.
    pub(super) fn age(&mut self, units: &mut [Unit], options: &ResidentOptions, seconds: f32) {
        /// Standard deviations that chance explains: many, since every filter is tested at every
        /// tick. 50 % present, 50 % of the bytes: 1.022 with three quarters as `LASTS`, 1.026 with
        /// 4, 1.021 with 6; after shifts the same.
        const CHANCE: f32 = 5.0;
        /// Weight of the expected lookups, where a second in which all runs were counted has nearly
        /// one.
        const EXPECTED: f64 = 5e-4;
        let window = options.window();
        let is_new = self.is_new(units, options, seconds);
        self.fresh_age += seconds;
        let is_restart = is_new || self.fresh_age > window;
        if is_restart {
            self.fresh_age = seconds;
        }
        let fresh_age = self.fresh_age;
        let mut volume = Volume::default();
        for unit in units.iter_mut().filter(|unit| unit.is_alive) {
            let known = if is_new { 0.0 } else { unit.age };
            unit.seen += (unit.counted / seconds - unit.seen) * seconds / (known + seconds);
            unit.age = (known + seconds).min(window * MEMORY);
            unit.fresh = if is_restart { unit.counted } else { unit.fresh + unit.counted };
            unit.counted = 0.0;
            unit.wait = (unit.wait - seconds).max(0.0);
            if let Some(due) = due(unit, fresh_age, seconds) {
                volume.add(unit.fresh, due);
            }
        }
        let (mut seen, mut shares) = (0.0, 0.0);
        for unit in units.iter_mut().filter(|unit| unit.is_alive) {
            if let Some(due) = due(unit, fresh_age, seconds) {
                let unchanged = volume.unchanged(unit.fresh, due);
                // Twice the difference of the roots has a standard deviation of 1 for Poisson
                // distributions of any mean. A count of `n` lookups is of so many events, each of
                // which stands for `sampling`.
                let deviation = 2.0 * (libm::sqrtf(unit.fresh) - libm::sqrtf(unchanged));
                let variance = options.sampling * unit.age / (unit.age - fresh_age);
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
        // What was expected has a small weight, so that a tick right after the start does not take
        // silence for evidence.
        self.expected.per_run = (seen + EXPECTED * options.expected_lookups) / (shares + EXPECTED);
    }

    /// Whether the traffic of this tick is new: of the filters with enough lookups to show it in
    /// one tick, many have at least twice or at most half of the lookups that were due.
    fn is_new(&self, units: &[Unit], options: &ResidentOptions, seconds: f32) -> bool {
        /// Events of a filter in a tick that show a change. After shifts, 16 partitions, 10 %:
        /// 1.238, with 32 1.253.
        const EVENTS: f32 = 8.0;
        /// As many unchanged filters are added to those tested, since a share of few says nothing.
        const LEAST: f32 = 10.0;
        /// The share of changed filters. After shifts, 50 %: 1.244, with 0.6 1.261. With 0.3, or if
        /// 1.5 times the lookups were a change and not 2, a walk over the keys looks like a shift:
        /// at 10 % 1.25 and not 1.13, worse than the smallest levels first.
        const MANY: f32 = 0.45;
        let known = units.iter().filter(|unit| unit.is_alive);
        let known = known.filter(|unit| unit.age * 4.0 > options.window());
        let known = known.map(|unit| (unit.counted, unit.absent(self.expected) as f32 * seconds));
        let mut volume = Volume::default();
        known.clone().for_each(|(counted, due)| volume.add(counted, due));
        let (mut changed, mut tested) = (0.0, LEAST);
        for (counted, due) in known {
            let unchanged = volume.unchanged(counted, due);
            if counted.max(unchanged) >= EVENTS * options.sampling {
                tested += 1.0;
                let is_changed = counted > 2.0 * unchanged || unchanged > 2.0 * counted;
                changed += f32::from(u8::from(is_changed));
            }
        }
        changed > MANY * tested
    }
}

/// The absent lookups that were due in the last `fresh_age` seconds by the rate before them; `None`
/// if there was no tick before.
fn due(unit: &Unit, fresh_age: f32, tick: f32) -> Option<f32> {
    let before = unit.age - fresh_age;
    let counted_before = (unit.seen * unit.age - unit.fresh).max(0.0);
    (before >= tick).then(|| counted_before * fresh_age / before)
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

    /// The count of a filter without a change of its own: the number nearest to its count between
    /// what was due and its share of all that was counted. So a filter has changed if both its
    /// lookups and its share have. If traffic stops, none has, and nothing is forgotten.
    fn unchanged(&self, counted: f32, due: f32) -> f32 {
        let by_share = if self.due > 0.0 { due * (self.counted / self.due) as f32 } else { due };
        counted.clamp(due.min(by_share), due.max(by_share))
    }
}
