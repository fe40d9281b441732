//! What a filter costs and the most that it can save, computed from the rows of tables and the
//! widths of columns. Estimates of what predicates leave are not used, since they are wrong by
//! orders of magnitude.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::config::ConfigOptions;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode, SortMergeJoinExec};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::union::{InterleaveExec, UnionExec};

use crate::build_side::{Estimate, estimate};
use crate::columns::Lowest;
use crate::probe::BloomProbeExec;

type Plan = Arc<dyn ExecutionPlan>;

// Nanoseconds of one core. From the star join of docs/datafusion.md: 20 M rows of 37 bytes take
// 0.42 s to be read and probed, and 3.4 s (adaptive) to 7.4 s (static) to be shuffled and joined.
// Only the ratios of these constants matter.
const SCAN_ROW: f64 = 5.0;
const SCAN_BYTE: f64 = 0.4;
const PREDICATE_ROW: f64 = 5.0;
const INSERT_ROW: f64 = 10.0;
const PROBE_ROW: f64 = 5.0;
const SHUFFLE_ROW: f64 = 30.0;
const SHUFFLE_BYTE: f64 = 3.0;
/// Filters are read from shuffle files as they are.
const READ_BYTE: f64 = 1.0;
const JOIN_ROW: f64 = 40.0;
const GROUP_ROW: f64 = 40.0;

/// Bytes of a value of variable length, as Ballista's planner estimates it.
const VARIABLE_BYTES: usize = 32;

/// What it takes to run a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Work {
    /// Nanoseconds of CPU.
    pub(crate) time: f64,
    /// Bytes that are shuffled.
    pub(crate) shuffled: f64,
    /// The most rows that come out, if no join multiplies them.
    pub(crate) rows: f64,
}

impl Work {
    fn and(self, other: Work) -> Work {
        Work {
            time: self.time + other.time,
            shuffled: self.shuffled + other.shuffled,
            rows: self.rows.max(other.rows),
        }
    }

    fn with_rows(self, time: f64) -> Work {
        Work { time: self.time + time * self.rows, ..self }
    }

    fn with_shuffle(self, schema: &Schema) -> Work {
        let bytes = self.rows * width(schema);
        let time = self.time + SHUFFLE_ROW * self.rows + SHUFFLE_BYTE * bytes;
        Work { time, shuffled: self.shuffled + bytes, rows: self.rows }
    }
}

/// Bytes of a row.
fn width(schema: &Schema) -> f64 {
    let bytes = schema.fields().iter().map(|field| match field.data_type() {
        DataType::Boolean => 1,
        DataType::FixedSizeBinary(bytes) => *bytes as usize,
        fixed => fixed.primitive_width().unwrap_or(VARIABLE_BYTES),
    });
    bytes.sum::<usize>() as f64
}

/// What it takes to run a plan, or `None` if the rows of a table are not known.
pub(crate) fn work(plan: &Plan, config: &ConfigOptions) -> Option<Work> {
    let children = plan.children();
    if children.is_empty() {
        let Estimate { rows: Some(rows), .. } = estimate(plan) else { return None };
        let scanned = Work { rows: rows as f64, ..Default::default() };
        return Some(scanned.with_rows(SCAN_ROW + SCAN_BYTE * width(&plan.schema())));
    }
    let inputs: Option<Vec<Work>> = children.iter().map(|child| work(child, config)).collect();
    let inputs = inputs?;
    let schema = |child: usize| children[child].schema();
    let first = inputs[0];
    if plan.is::<FilterExec>() {
        return Some(first.with_rows(PREDICATE_ROW));
    }
    if plan.is::<ProjectionExec>() {
        return Some(first);
    }
    if plan.is::<RepartitionExec>() {
        return Some(first.with_shuffle(&schema(0)));
    }
    if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
        return Some(match aggregate.mode() {
            AggregateMode::Final | AggregateMode::FinalPartitioned
                if !aggregate.group_expr().is_empty() =>
            {
                first.with_shuffle(&schema(0)).with_rows(GROUP_ROW)
            }
            _ => first.with_rows(GROUP_ROW),
        });
    }
    if plan.is::<BloomProbeExec>() {
        let rows = first.rows;
        return Some(Work { rows, ..first.and(inputs[1]).with_rows(PROBE_ROW) });
    }
    if plan.is::<UnionExec>() || plan.is::<InterleaveExec>() {
        let rows = inputs.iter().map(|input| input.rows).sum();
        let all = inputs.into_iter().fold(Work::default(), Work::and);
        return Some(Work { rows, ..all });
    }
    if plan.is::<HashJoinExec>() || plan.is::<SortMergeJoinExec>() {
        let collected = plan
            .downcast_ref::<HashJoinExec>()
            .is_some_and(|join| *join.partition_mode() == PartitionMode::CollectLeft);
        let sides = if collected || is_likely_broadcast(estimate(children[0]), config) {
            let tasks = config.execution.target_partitions.max(1) as f64;
            let shuffled = first.with_shuffle(&schema(0));
            // Every task reads the whole side.
            let read = (tasks - 1.0) * SHUFFLE_BYTE * first.rows * width(&schema(0));
            Work { time: shuffled.time + read, ..shuffled }.and(inputs[1])
        } else {
            first.with_shuffle(&schema(0)).and(inputs[1].with_shuffle(&schema(1)))
        };
        return Some(sides.with_rows(JOIN_ROW));
    }
    // Sorts and all other operators cost at least as much as a join.
    let all = inputs.into_iter().fold(Work::default(), Work::and);
    Some(all.with_rows(JOIN_ROW))
}

/// Whether the engine is likely to broadcast the build side, as far as estimates tell: every task
/// then gets all of it, and nothing is shuffled.
pub(crate) fn is_likely_broadcast(build: Estimate, config: &ConfigOptions) -> bool {
    let (bytes, rows) = broadcast_thresholds(config);
    match (build.bytes, build.rows) {
        _ if bytes == 0 => false,
        (Some(estimated), _) if estimated != 0 => estimated < bytes,
        (_, Some(estimated)) => estimated < rows,
        _ => false,
    }
}

/// The bytes and the rows below which the engine broadcasts a build side.
fn broadcast_thresholds(config: &ConfigOptions) -> (usize, usize) {
    #[cfg(feature = "ballista")]
    if let Some(ballista) = config.extensions.get::<ballista_core::config::BallistaConfig>() {
        let (bytes, rows) =
            (ballista.broadcast_join_threshold_bytes(), ballista.broadcast_join_threshold_rows());
        return (bytes, rows);
    }
    let optimizer = &config.optimizer;
    let bytes = optimizer.hash_join_single_partition_threshold;
    (bytes, optimizer.hash_join_single_partition_threshold_rows)
}

/// How partial filters come to the tasks that probe.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Transport {
    /// Whether one task merges them first.
    pub(crate) merged: bool,
    /// Bytes of partial filters, which are written once.
    pub(crate) written: u64,
    /// Bytes that are read, by all tasks together.
    pub(crate) bytes: u64,
}

/// How many bytes one more stage must save to be worth it. A stage takes some hundredths of a
/// second, in which gigabytes are merged.
const MERGE_FROM: u64 = 32 << 20;

/// How a filter is moved that has `filter` bytes, and `keys` keys from as many partitions as there
/// are `tasks`. The keys of a partition travel as hashes, 8 bytes each, unless a filter is smaller.
pub(crate) fn transport(filter: u64, keys: u64, tasks: u64, can_merge: bool) -> Transport {
    let partial = filter.saturating_mul(tasks).min(keys.saturating_mul(8));
    let direct = partial.saturating_mul(tasks);
    let merged = partial.saturating_add(filter.saturating_mul(tasks));
    match can_merge && direct >= merged.saturating_add(MERGE_FROM) {
        true => Transport { merged: true, written: partial.saturating_add(filter), bytes: merged },
        false => Transport { merged: false, written: partial, bytes: direct },
    }
}

/// What a filter costs without its own bytes, and what it saves if it drops every row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Balance {
    build: Work,
    /// Nanoseconds.
    cost: f64,
    /// Rows that can be dropped.
    rows: f64,
    /// Nanoseconds.
    saved: f64,
    saved_bytes: f64,
}

impl Balance {
    /// The balance of a filter whose keys come from a second run of `build`. It drops rows of
    /// `point`, which without it are shuffled as rows of `probed`.
    pub(crate) fn of(
        build: &Plan,
        point: &Lowest,
        probed: &Plan,
        config: &ConfigOptions,
    ) -> Result<Balance, String> {
        let build = work(build, config).ok_or("the rows of the build side are not known")?;
        let table = work(&point.plan, config).ok_or("the rows of the probed side are not known")?;
        let rows = table.rows * point.left;
        let bytes = rows * width(&probed.schema()).min(width(&point.plan.schema()));
        Ok(Balance {
            build,
            cost: build.with_rows(INSERT_ROW).time + PROBE_ROW * table.rows / 16.0,
            rows,
            saved: SHUFFLE_ROW * rows + SHUFFLE_BYTE * bytes,
            saved_bytes: bytes,
        })
    }

    /// Whether a filter that is moved in this way costs at most this share of what it saves, in
    /// time and in bytes.
    pub(crate) fn allows(&self, share: f64, transport: Transport) -> bool {
        self.share(transport) <= share
    }

    /// The cost divided by what can be saved, in time or in bytes, whichever is larger.
    fn share(&self, transport: Transport) -> f64 {
        let share = |cost: f64, saved: f64| if saved > 0.0 { cost / saved } else { f64::INFINITY };
        let time = self.cost + READ_BYTE * transport.bytes as f64;
        let bytes = self.build.shuffled + transport.written as f64;
        share(time, self.saved).max(share(bytes, self.saved_bytes))
    }

    /// The figures, for `EXPLAIN` and the log.
    pub(crate) fn text(&self, transport: Transport) -> String {
        format!(
            "cost {:.1} ms ({:.0} rows read again, {:.3} MB shuffled again, \
             {:.3} MB of filters written and {:.3} read), \
             saves at most {:.1} ms ({:.0} rows, {:.3} MB), share {:.3}",
            (self.cost + READ_BYTE * transport.bytes as f64) / 1e6,
            self.build.rows,
            self.build.shuffled / 1e6,
            transport.written as f64 / 1e6,
            transport.bytes as f64 / 1e6,
            self.saved / 1e6,
            self.rows,
            self.saved_bytes / 1e6,
            self.share(transport)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_tasks_read_one_merged_filter() {
        // 1.2 M keys at 1 %: 1.44 MB. Each of 200 tasks would read all hashes, 1.9 GB together.
        let (filter, keys) = (1_440_000, 1_200_000);
        let direct = transport(filter, keys, 200, false);
        assert_eq!(direct, Transport { merged: false, written: 9_600_000, bytes: 200 * 9_600_000 });
        let merged = transport(filter, keys, 200, true);
        let (written, bytes) = (9_600_000 + filter, 9_600_000 + 200 * filter);
        assert_eq!(merged, Transport { merged: true, written, bytes });
        // Few tasks do not wait for another stage.
        assert!(!transport(filter, keys, 4, true).merged);
    }
}
