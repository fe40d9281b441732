//! Predicts whether the engine will broadcast a side of a join instead of shuffling both.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::common::JoinType;
use datafusion::config::ConfigOptions;
use datafusion::physical_plan::ExecutionPlan;

use crate::build::scan_of;
use crate::build_side::build_of;
use crate::engine::is_adaptive;
use crate::operators::{Join, Kind, is_scan, kind};
use crate::planning::{Estimate, Planning, cached};
use crate::predicates::{PREDICATE_SELECTIVITY, predicate_selectivity};

type Plan = Arc<dyn ExecutionPlan>;

/// How likely a broadcast of one side of a join is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BroadcastKind {
    /// The engine shuffles both sides.
    Unlikely,
    /// The engine probably decides for a broadcast while the query runs, after it has counted the
    /// rows that predicates leave.
    Possible,
    /// By the engine's own estimates, it sends one side to every task and leaves the other in
    /// place.
    Expected,
}

/// Predicts whether a side of a join is broadcast. Ballista's static planner and DataFusion decide
/// from estimates alone. The adaptive planner shuffles and measures a side whose estimate is
/// moderately above the threshold. If a side contains a join, it decides after that join has run.
pub(crate) fn broadcast_kind(plan: &Plan, planning: &Planning) -> BroadcastKind {
    let Some(join) = Join::find(plan.as_ref()) else { return BroadcastKind::Unlikely };
    if join.is_sort_merge && !is_adaptive(planning.config) {
        return BroadcastKind::Unlikely;
    }
    let children = plan.children();
    let (left, right) = (children[0], children[1]);
    let limits = BroadcastLimits::from_config(planning.config);
    if join.collects_left {
        return BroadcastKind::Expected;
    }
    if limits.bytes == 0 {
        return BroadcastKind::Unlikely;
    }
    let (left_estimate, right_estimate) = (planning.estimate(left), planning.estimate(right));
    if !is_adaptive(planning.config) {
        let fits = limits.fit(left, left_estimate) || limits.fit(right, right_estimate);
        return if fits { BroadcastKind::Expected } else { BroadcastKind::Unlikely };
    }
    // The engine builds from the smaller side.
    let bytes = left_estimate.bytes.zip(right_estimate.bytes);
    let sizes = bytes.or(left_estimate.rows.zip(right_estimate.rows));
    let swapped = sizes.is_some_and(|(left, right)| left > right);
    let (build, build_estimate, probe_estimate, join_type) = match swapped {
        true => (right, right_estimate, left_estimate, join.join_type.swap()),
        false => (left, left_estimate, right_estimate, join.join_type),
    };
    // A broadcast side must not return unmatched rows: every task would return them.
    use JoinType::{Full, Left, LeftAnti, LeftMark, LeftSemi};
    if matches!(join_type, Left | Full | LeftSemi | LeftAnti | LeftMark) {
        return BroadcastKind::Unlikely;
    }
    if limits.fit(build, build_estimate) {
        return BroadcastKind::Expected;
    }
    let is_measured = match build_estimate.bytes {
        Some(bytes) => {
            limits.measures_sides
                && bytes <= limits.bytes.saturating_mul(limits.max_estimate_multiple)
                && probe_estimate
                    .bytes
                    .is_some_and(|probe| probe >= bytes.saturating_mul(limits.min_probe_ratio))
        }
        // A join below has already run when the engine decides.
        None => !is_scan(build),
    };
    let may_fit = predict(build, planning).is_some_and(|predicted| {
        let rows = predicted.rows * predicted.selectivity;
        let fits = rows * width(&build.schema()) < limits.bytes as f64;
        fits && (build_estimate.bytes.is_some() || rows < limits.rows as f64)
    });
    if is_measured && may_fit { BroadcastKind::Possible } else { BroadcastKind::Unlikely }
}

/// Assumed bytes of a value of variable length.
const VARIABLE_BYTES: usize = 32;

/// Returns the bytes of a row.
pub(crate) fn width(schema: &Schema) -> f64 {
    let bytes = schema.fields().iter().map(|field| match field.data_type() {
        DataType::Boolean => 1,
        DataType::FixedSizeBinary(bytes) => *bytes as usize,
        fixed => fixed.primitive_width().unwrap_or(VARIABLE_BYTES),
    });
    bytes.sum::<usize>() as f64
}

/// The thresholds of the engine's broadcasts.
struct BroadcastLimits {
    /// Sides of fewer bytes are broadcast; none if this is 0.
    bytes: usize,
    /// Sides of fewer rows are broadcast if their bytes are unknown.
    rows: usize,
    /// Whether the engine measures sides whose estimate is at most `max_estimate_multiple` times
    /// `bytes`, and at most the other side divided by `min_probe_ratio`.
    measures_sides: bool,
    max_estimate_multiple: usize,
    min_probe_ratio: usize,
    /// Whether the engine computes unknown bytes from rows.
    estimates_bytes: bool,
}

impl BroadcastLimits {
    fn from_config(config: &ConfigOptions) -> BroadcastLimits {
        #[cfg(feature = "ballista")]
        if let Some(ballista) = config.extensions.get::<ballista_core::config::BallistaConfig>() {
            return BroadcastLimits {
                bytes: ballista.broadcast_join_threshold_bytes(),
                rows: ballista.broadcast_join_threshold_rows(),
                measures_sides: ballista.stage_build_side_enabled(),
                max_estimate_multiple: ballista.stage_build_side_max_estimate_multiple(),
                min_probe_ratio: ballista.stage_build_side_min_probe_ratio(),
                estimates_bytes: true,
            };
        }
        let optimizer = &config.optimizer;
        BroadcastLimits {
            bytes: optimizer.hash_join_single_partition_threshold,
            rows: optimizer.hash_join_single_partition_threshold_rows,
            measures_sides: false,
            max_estimate_multiple: 0,
            min_probe_ratio: 0,
            estimates_bytes: false,
        }
    }

    /// Whether the engine broadcasts a side according to its estimates. It ignores estimates of 0.
    fn fit(&self, plan: &Plan, side: Estimate) -> bool {
        match (side.bytes, side.rows) {
            (Some(bytes), _) if bytes != 0 => bytes < self.bytes,
            (_, Some(rows)) if self.estimates_bytes => {
                let bytes = rows as f64 * width(&plan.schema());
                rows < self.rows && bytes < self.bytes as f64
            }
            (_, Some(rows)) => rows < self.rows,
            _ => false,
        }
    }
}

/// The predicted result of a plan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Prediction {
    /// Rows before predicates drop any.
    pub(crate) rows: f64,
    /// Share of those rows that remains.
    pub(crate) selectivity: f64,
}

/// Predicts the number of rows of a plan from the kinds of its predicates. Returns `None` if the
/// rows of a table are unknown. Every join is assumed to join a table with a dimension that it
/// refers to. Filters count if no join is above them: such a join drops the same rows.
pub(crate) fn predict(plan: &Plan, planning: &Planning) -> Option<Prediction> {
    let (mut predicted, mut at) = (predict_unfiltered(plan, planning)?, plan);
    while let [input, filter @ ..] = &at.children()[..]
        && (filter.is_empty() || kind(at) == Kind::Probe)
    {
        if let [filter] = filter {
            predicted.selectivity *= predict(build_of(filter)?.input(), planning)?.selectivity;
        }
        at = input;
    }
    Some(predicted)
}

fn predict_unfiltered(plan: &Plan, planning: &Planning) -> Option<Prediction> {
    cached(&planning.predictions, plan, || prediction(plan, planning))
}

fn prediction(plan: &Plan, planning: &Planning) -> Option<Prediction> {
    let children = plan.children();
    if is_scan(plan) {
        let rows = planning.estimate(scan_of(plan)).rows? as f64;
        return Some(Prediction { rows, selectivity: predicate_selectivity(plan, planning) });
    }
    if matches!(kind(plan), Kind::Union | Kind::Interleave) {
        let inputs = children.iter().map(|input| predict(input, planning));
        let inputs: Option<Vec<Prediction>> = inputs.collect();
        let inputs = inputs?;
        let rows: f64 = inputs.iter().map(|input| input.rows).sum();
        let kept: f64 = inputs.iter().map(|input| input.rows * input.selectivity).sum();
        return Some(Prediction { rows, selectivity: kept / rows.max(1.0) });
    }
    if kind(plan) == Kind::Probe {
        return predict_unfiltered(children[0], planning);
    }
    if let [input] = children[..] {
        let input = predict_unfiltered(input, planning)?;
        // This predicate is above a join or a group.
        let selectivity = if kind(plan) == Kind::Filter { PREDICATE_SELECTIVITY } else { 1.0 };
        return Some(Prediction { selectivity: input.selectivity * selectivity, ..input });
    }
    let [first, second] = children[..] else { return None };
    let join_type = Join::find(plan.as_ref())?.join_type;
    let (first, second) =
        (predict_unfiltered(first, planning)?, predict_unfiltered(second, planning)?);
    let selectivity = first.selectivity * second.selectivity;
    Some(match join_type {
        JoinType::Inner => Prediction { rows: first.rows.max(second.rows), selectivity },
        JoinType::LeftSemi => Prediction { selectivity, ..first },
        JoinType::RightSemi => Prediction { selectivity, ..second },
        JoinType::LeftAnti | JoinType::LeftMark | JoinType::Left => first,
        JoinType::RightAnti | JoinType::RightMark | JoinType::Right => second,
        JoinType::Full => Prediction { rows: first.rows.max(second.rows), selectivity: 1.0 },
    })
}
