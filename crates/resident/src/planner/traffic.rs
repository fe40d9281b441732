//! How often each filter is looked up: means over all that was counted. Where traffic has changed,
//! the past is forgotten.
//!
//! The constants were chosen by the simulation of `compare/resident`. Figures beside them are costs
//! of whole filters by value, as multiples of those of the offline optimum, with the constant and
//! with another.

use super::state::{Prior, TableState};
use crate::options::ResidentOptions;

/// The longest time that a mean covers, in windows of recent lookups.
const MAX_WINDOWS: f32 = 32.0;

/// The weight of what is expected, in counted events. For skewed traffic it would be one or less,
/// but most filters are more alike than the few hot ones. After shifts, 50 % of the bytes: 1.244,
/// with 1 1.268; with 6 1.248, and with 16 partitions at 10 % 1.293 in place of 1.238.
const PRIOR_EVENTS: f64 = 3.0;

/// What is known of all filters' lookups together.
#[derive(Clone, Debug)]
pub(super) struct Traffic {
    pub(super) prior: Prior,
    /// Seconds since counts were begun anew, to be compared with those before.
    pub(super) recent_age: f32,
}

impl Traffic {
    pub(super) fn new(options: &ResidentOptions) -> Self {
        let per_run = options.expected_lookups;
        let weight = PRIOR_EVENTS * f64::from(options.sampling);
        Traffic { prior: Prior { per_run, weight }, recent_age: 0.0 }
    }

    /// Adds what was counted in the seconds that have passed to the means. These cover all that was
    /// seen, so that filters of few lookups can be told apart. Where recent counts differ from
    /// those before by more than chance explains, a filter forgets the past; if many filters differ
    /// within one tick, all do.
    pub(super) fn age(
        &mut self,
        states: &mut [TableState],
        options: &ResidentOptions,
        seconds: f32,
    ) {
        /// Standard deviations that chance explains: many, since every filter is tested at every
        /// tick. 50 % present, 50 % of the bytes: 1.022 with three quarters as `STABLE_SHARE`, 1.026 with
        /// 4, 1.021 with 6; after shifts the same.
        const MAX_DEVIATIONS: f32 = 5.0;
        /// Weight of the expected lookups, where a second in which all runs were counted has nearly
        /// one.
        const PRIOR_SHARE: f64 = 5e-4;
        let window = options.window();
        let has_shifted = self.has_shifted(states, options, seconds);
        self.recent_age += seconds;
        let is_restart = has_shifted || self.recent_age > window;
        if is_restart {
            self.recent_age = seconds;
        }
        let recent_age = self.recent_age;
        let mut volume = Volume::default();
        for state in states.iter_mut().filter(|state| state.is_alive) {
            let known = if has_shifted { 0.0 } else { state.age };
            state.observed_rate +=
                (state.new_lookups / seconds - state.observed_rate) * seconds / (known + seconds);
            state.age = (known + seconds).min(window * MAX_WINDOWS);
            state.recent_lookups = if is_restart {
                state.new_lookups
            } else {
                state.recent_lookups + state.new_lookups
            };
            state.new_lookups = 0.0;
            state.retry_delay = (state.retry_delay - seconds).max(0.0);
            if let Some(due) = expected_lookups(state, recent_age, seconds) {
                volume.add(state.recent_lookups, due);
            }
        }
        let (mut lookups, mut shares) = (0.0, 0.0);
        for state in states.iter_mut().filter(|state| state.is_alive) {
            if let Some(due) = expected_lookups(state, recent_age, seconds) {
                let unchanged = volume.unchanged(state.recent_lookups, due);
                // Twice the difference of the roots has a standard deviation of 1 for Poisson
                // distributions of any mean. A count of `n` lookups is of so many events, each of
                // which stands for `sampling`.
                let deviation = 2.0 * (libm::sqrtf(state.recent_lookups) - libm::sqrtf(unchanged));
                let variance = options.sampling * state.age / (state.age - recent_age);
                if deviation * deviation > MAX_DEVIATIONS * MAX_DEVIATIONS * variance {
                    (state.observed_rate, state.age) =
                        (state.recent_lookups / recent_age, recent_age);
                }
            }
            if state.table.run_share > 0.0 {
                let weight = f64::from(state.age / (state.age + 1.0));
                lookups += f64::from(state.observed_rate) * weight;
                shares += f64::from(state.table.run_share) * weight;
            }
        }
        // What was expected has a small weight, so that a tick right after the start does not take
        // silence for evidence.
        self.prior.per_run =
            (lookups + PRIOR_SHARE * options.expected_lookups) / (shares + PRIOR_SHARE);
    }

    /// Whether the traffic of this tick is new: of the filters with enough lookups to show it in
    /// one tick, many have at least twice or at most half of the lookups that were due.
    fn has_shifted(&self, states: &[TableState], options: &ResidentOptions, seconds: f32) -> bool {
        /// Events of a filter in a tick that show a change. After shifts, 16 partitions, 10 %:
        /// 1.238, with 32 1.253.
        const MIN_EVENTS: f32 = 8.0;
        /// As many unchanged filters are added to those tested, since a share of few says nothing.
        const UNCHANGED_EXTRA: f32 = 10.0;
        /// The share of changed filters. After shifts, 50 %: 1.244, with 0.6 1.261. With 0.3, or if
        /// 1.5 times the lookups were a change and not 2, a walk over the keys looks like a shift:
        /// at 10 % 1.25 and not 1.13, worse than the smallest levels first.
        const CHANGED_SHARE: f32 = 0.45;
        let known = states.iter().filter(|state| state.is_alive);
        let known = known.filter(|state| state.age * 4.0 > options.window());
        let known = known
            .map(|state| (state.new_lookups, state.absent_lookups(self.prior) as f32 * seconds));
        let mut volume = Volume::default();
        known.clone().for_each(|(counted, due)| volume.add(counted, due));
        let (mut changed, mut tested) = (0.0, UNCHANGED_EXTRA);
        for (counted, due) in known {
            let unchanged = volume.unchanged(counted, due);
            if counted.max(unchanged) >= MIN_EVENTS * options.sampling {
                tested += 1.0;
                let is_changed = counted > 2.0 * unchanged || unchanged > 2.0 * counted;
                changed += f32::from(u8::from(is_changed));
            }
        }
        changed > CHANGED_SHARE * tested
    }
}

/// The absent lookups that were due in the last `recent_age` seconds by the rate before them; `None`
/// if there was no tick before.
fn expected_lookups(state: &TableState, recent_age: f32, tick: f32) -> Option<f32> {
    let before = state.age - recent_age;
    let counted_before = (state.observed_rate * state.age - state.recent_lookups).max(0.0);
    (before >= tick).then(|| counted_before * recent_age / before)
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
        let proportional =
            if self.due > 0.0 { due * (self.counted / self.due) as f32 } else { due };
        counted.clamp(due.min(proportional), due.max(proportional))
    }
}
