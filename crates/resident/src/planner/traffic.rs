//! Estimates how often each filter is looked up, as means over its whole history. A filter whose
//! traffic has changed forgets its history.
//!
//! The constants were chosen by a simulation. The figures next to them are read costs of the policy
//! "whole filters by value" as multiples of the offline optimum, with the constant and with another
//! value.

use super::state::{Prior, TableState};
use crate::options::ResidentOptions;

/// Longest time that a mean covers, in averaging windows.
const MAX_WINDOWS: f32 = 32.0;

/// Weight of the prior, in counted events. Skewed traffic alone would want 1 or less, but most
/// filters are more alike than the few hot ones. After shifts, with memory for 50 % of the bytes:
/// 1.244 with 3, 1.268 with 1, 1.248 with 6. With 16 partitions and 10 %: 1.238 with 3, 1.293 with
/// 6.
const PRIOR_EVENTS: f64 = 3.0;

/// The lookups of all filters together.
#[derive(Clone, Debug)]
pub(super) struct Traffic {
    pub(super) prior: Prior,
    /// Seconds since `recent_lookups` of all filters were reset.
    pub(super) recent_age: f32,
}

impl Traffic {
    pub(super) fn new(options: &ResidentOptions) -> Self {
        let per_run = options.expected_lookups;
        let weight = PRIOR_EVENTS * f64::from(options.sampling);
        Traffic { prior: Prior { per_run, weight }, recent_age: 0.0 }
    }

    /// Adds the lookups of the last `seconds` to the means.
    ///
    /// The means cover the whole history, so that filters with few lookups can be told apart. A
    /// filter forgets its history if its recent lookups differ from the earlier ones by more than
    /// chance explains. If many filters differ within one tick, all of them forget.
    pub(super) fn age(
        &mut self,
        states: &mut [TableState],
        options: &ResidentOptions,
        seconds: f32,
    ) {
        /// Deviations up to this many standard deviations are taken for chance. The limit is high
        /// because every filter is tested at every tick. With 50 % present and 50 % of the bytes:
        /// 1.022 with 5, 1.026 with 4, 1.021 with 6 (all with a `STABLE_SHARE` of 0.75); no
        /// difference after shifts.
        const MAX_DEVIATIONS: f32 = 5.0;
        /// Weight of the expected lookups. One second in which every run was looked up has a weight
        /// of nearly 1.
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
                // For Poisson distributions of any mean, twice the difference of the square roots
                // has a standard deviation of 1. A sampled event stands for `sampling` lookups.
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
        // The expectation keeps a small weight, so that a tick right after the start does not
        // mistake missing lookups for low traffic.
        self.prior.per_run =
            (lookups + PRIOR_SHARE * options.expected_lookups) / (shares + PRIOR_SHARE);
    }

    /// Returns true if the traffic of all filters has shifted: among the filters with enough
    /// lookups in this tick, many had at least twice or at most half of the expected lookups.
    fn has_shifted(&self, states: &[TableState], options: &ResidentOptions, seconds: f32) -> bool {
        /// Least events in a tick for a filter to be tested. After shifts, with 16 partitions and
        /// 10 %: 1.238 with 8, 1.253 with 32.
        const MIN_EVENTS: f32 = 8.0;
        /// Unchanged filters added to those tested, because a share of few filters means little.
        const UNCHANGED_EXTRA: f32 = 10.0;
        /// Share of changed filters that counts as a shift. After shifts, with 50 % of the bytes:
        /// 1.244 with 0.45, 1.261 with 0.6. With 0.3, or with a factor of 1.5 instead of 2, a scan
        /// in key order looks like a shift: 1.25 instead of 1.13 at 10 %, which is worse than
        /// keeping the smallest levels.
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

/// Returns the absent lookups of the last `recent_age` seconds that the earlier rate predicts, or
/// `None` if there was no earlier tick.
fn expected_lookups(state: &TableState, recent_age: f32, tick: f32) -> Option<f32> {
    let before = state.age - recent_age;
    let counted_before = (state.observed_rate * state.age - state.recent_lookups).max(0.0);
    (before >= tick).then(|| counted_before * recent_age / before)
}

/// Absent lookups of all filters together, counted and predicted.
#[derive(Clone, Copy, Debug, Default)]
struct Volume {
    counted: f64,
    due: f64,
}

impl Volume {
    fn add(&mut self, counted: f32, due: f32) {
        (self.counted, self.due) = (self.counted + f64::from(counted), self.due + f64::from(due));
    }

    /// Returns the count of this filter if only the total traffic had changed: the value nearest to
    /// `counted` between the predicted count and the filter's share of all counted lookups.
    ///
    /// So a filter counts as changed only if both its lookups and its share have changed. If all
    /// traffic stops, no filter has changed, and none forgets its history.
    fn unchanged(&self, counted: f32, due: f32) -> f32 {
        let proportional =
            if self.due > 0.0 { due * (self.counted / self.due) as f32 } else { due };
        counted.clamp(due.min(proportional), due.max(proportional))
    }
}
