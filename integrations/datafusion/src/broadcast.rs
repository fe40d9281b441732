//! Whether the engine will broadcast a side of a join instead of shuffling both, as far as
//! estimates tell.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::common::JoinType;
use datafusion::config::ConfigOptions;
use datafusion::physical_plan::ExecutionPlan;

use crate::build::scan_of;
use crate::build_side::{Estimate, build_of, estimate, filters_within};
use crate::engine::is_adaptive;
use crate::operators::{Join, Kind, is_scan, kind};
use crate::predicates::{LEFT_BY_PREDICATE, left_by_predicates};

type Plan = Arc<dyn ExecutionPlan>;

/// How the rows of a join's sides meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meeting {
    /// Both sides are shuffled.
    Shuffled,
    /// The engine is likely to decide for a broadcast only while the query runs, when it knows how
    /// many rows predicates left.
    MayBroadcast,
    /// By the engine's own estimates one side is sent to every task, and the other stays where it
    /// is.
    Broadcast,
}

/// How the sides of a join are likely to meet. Ballista's static planner and DataFusion decide by
/// estimates alone. The adaptive planner shuffles a side alone and measures it if it is estimated
/// to be above the threshold, but not by far, and decides about joins with a join below only when
/// that has run.
pub(crate) fn meeting(plan: &Plan, config: &ConfigOptions) -> Meeting {
    let Some(join) = Join::find(plan.as_ref()) else { return Meeting::Shuffled };
    if join.is_sort_merge && !is_adaptive(config) {
        return Meeting::Shuffled;
    }
    let children = plan.children();
    let (left, right) = (children[0], children[1]);
    let limits = Limits::of(config);
    if join.collects_left {
        return Meeting::Broadcast;
    }
    if limits.bytes == 0 {
        return Meeting::Shuffled;
    }
    let (of_left, of_right) = (estimate(left), estimate(right));
    if !is_adaptive(config) {
        let fits = limits.fit(left, of_left) || limits.fit(right, of_right);
        return if fits { Meeting::Broadcast } else { Meeting::Shuffled };
    }
    // The smaller side is built from.
    let swapped = match (of_left.bytes, of_right.bytes, of_left.rows, of_right.rows) {
        (Some(left), Some(right), ..) | (.., Some(left), Some(right)) => left > right,
        _ => false,
    };
    let (build, of_build, of_probe, join_type) = match swapped {
        true => (right, of_right, of_left, join.join_type.swap()),
        false => (left, of_left, of_right, join.join_type),
    };
    // A broadcast side must not have rows that come out by themselves: every task would give them.
    use JoinType::{Full, Left, LeftAnti, LeftMark, LeftSemi};
    if matches!(join_type, Left | Full | LeftSemi | LeftAnti | LeftMark) {
        return Meeting::Shuffled;
    }
    if limits.fit(build, of_build) {
        return Meeting::Broadcast;
    }
    let is_measured = match of_build.bytes {
        Some(bytes) => {
            limits.stages
                && bytes <= limits.bytes.saturating_mul(limits.most_times_bytes)
                && of_probe
                    .bytes
                    .is_some_and(|probe| probe >= bytes.saturating_mul(limits.least_ratio))
        }
        // What is below a join has run when the engine decides.
        None => !is_scan(build),
    };
    let may_fit = likely(build).is_some_and(|likely| {
        let rows = likely.rows * likely.left;
        let fits = rows * width(&build.schema()) < limits.bytes as f64;
        fits && (of_build.bytes.is_some() || rows < limits.rows as f64)
    });
    if is_measured && may_fit { Meeting::MayBroadcast } else { Meeting::Shuffled }
}

/// Bytes of a value of variable length.
const VARIABLE_BYTES: usize = 32;

/// Bytes of a row.
pub(crate) fn width(schema: &Schema) -> f64 {
    let bytes = schema.fields().iter().map(|field| match field.data_type() {
        DataType::Boolean => 1,
        DataType::FixedSizeBinary(bytes) => *bytes as usize,
        fixed => fixed.primitive_width().unwrap_or(VARIABLE_BYTES),
    });
    bytes.sum::<usize>() as f64
}

/// What the engine broadcasts.
struct Limits {
    /// A side of fewer bytes; none if this is 0.
    bytes: usize,
    /// A side of fewer rows, if its bytes are not known.
    rows: usize,
    /// Whether sides are measured, and how large they may be: so many times `bytes`, and so many
    /// times less than the other side.
    stages: bool,
    most_times_bytes: usize,
    least_ratio: usize,
    /// Whether the bytes of rows are computed where they are not known.
    guesses_bytes: bool,
}

impl Limits {
    fn of(config: &ConfigOptions) -> Limits {
        #[cfg(feature = "ballista")]
        if let Some(ballista) = config.extensions.get::<ballista_core::config::BallistaConfig>() {
            return Limits {
                bytes: ballista.broadcast_join_threshold_bytes(),
                rows: ballista.broadcast_join_threshold_rows(),
                stages: ballista.stage_build_side_enabled(),
                most_times_bytes: ballista.stage_build_side_max_estimate_multiple(),
                least_ratio: ballista.stage_build_side_min_probe_ratio(),
                guesses_bytes: true,
            };
        }
        let optimizer = &config.optimizer;
        Limits {
            bytes: optimizer.hash_join_single_partition_threshold,
            rows: optimizer.hash_join_single_partition_threshold_rows,
            stages: false,
            most_times_bytes: 0,
            least_ratio: 0,
            guesses_bytes: false,
        }
    }

    /// Whether a side is broadcast by what is estimated of it before the query runs. The engine
    /// does not trust 0.
    fn fit(&self, plan: &Plan, side: Estimate) -> bool {
        match (side.bytes, side.rows) {
            (Some(bytes), _) if bytes != 0 => bytes < self.bytes,
            (_, Some(rows)) if self.guesses_bytes => {
                let bytes = rows as f64 * width(&plan.schema());
                rows < self.rows && bytes < self.bytes as f64
            }
            (_, Some(rows)) => rows < self.rows,
            _ => false,
        }
    }
}

/// How many rows a plan is likely to give.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Likely {
    /// The rows if no predicate dropped any.
    pub(crate) rows: f64,
    /// The share of them that is left.
    pub(crate) left: f64,
}

/// How many rows a plan is likely to give, by the kinds of its predicates, or `None` if the rows of
/// a table are not known. A join is taken to be one of a table with the dimension that it refers
/// to.
pub(crate) fn likely(plan: &Plan) -> Option<Likely> {
    let children = plan.children();
    if is_scan(plan) && filters_within(plan) == 0 {
        let rows = estimate(scan_of(plan)).rows? as f64;
        return Some(Likely { rows, left: left_by_predicates(plan) });
    }
    if matches!(kind(plan), Kind::Union | Kind::Interleave) {
        let inputs: Option<Vec<Likely>> = children.iter().map(|input| likely(input)).collect();
        let inputs = inputs?;
        let rows: f64 = inputs.iter().map(|input| input.rows).sum();
        let left: f64 = inputs.iter().map(|input| input.rows * input.left).sum();
        return Some(Likely { rows, left: left / rows.max(1.0) });
    }
    if let [input] = children[..] {
        let input = likely(input)?;
        // A predicate above a join or a group.
        let left = if kind(plan) == Kind::Filter { LEFT_BY_PREDICATE } else { 1.0 };
        return Some(Likely { left: input.left * left, ..input });
    }
    let [first, second] = children[..] else { return None };
    if kind(plan) == Kind::Probe {
        let (input, keys) = (likely(first)?, likely(build_of(second)?.input())?);
        return Some(Likely { left: input.left * keys.left, ..input });
    }
    let join_type = Join::find(plan.as_ref())?.join_type;
    let (first, second) = (likely(first)?, likely(second)?);
    let left = first.left * second.left;
    Some(match join_type {
        JoinType::Inner => Likely { rows: first.rows.max(second.rows), left },
        JoinType::LeftSemi => Likely { left, ..first },
        JoinType::RightSemi => Likely { left, ..second },
        JoinType::LeftAnti | JoinType::LeftMark | JoinType::Left => first,
        JoinType::RightAnti | JoinType::RightMark | JoinType::Right => second,
        JoinType::Full => Likely { rows: first.rows.max(second.rows), left: 1.0 },
    })
}
