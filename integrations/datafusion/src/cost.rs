//! What a filter costs and what it can save at most, from the rows of tables and the widths of columns: not from estimates of predicates, which
//! are wrong by orders of magnitude.

use std::fmt;
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
use crate::probe::BloomProbeExec;
use crate::rule::is_likely_broadcast;

type Plan = Arc<dyn ExecutionPlan>;

// Nanoseconds of one core. From the star join of docs/datafusion.md: 20 M rows of 37 bytes take 0.42 s to be read and probed, and 3.4 s
// (adaptive) to 7.4 s (static) to be shuffled and joined. What decides is their ratio.
const SCAN_ROW: f64 = 5.0;
const SCAN_BYTE: f64 = 0.4;
const PREDICATE_ROW: f64 = 5.0;
const INSERT_ROW: f64 = 10.0;
const PROBE_ROW: f64 = 5.0;
const SHUFFLE_ROW: f64 = 30.0;
const SHUFFLE_BYTE: f64 = 3.0;
const JOIN_ROW: f64 = 40.0;
const GROUP_ROW: f64 = 40.0;

/// A value of variable length, as Ballista's planner estimates it.
const VARIABLE_BYTES: usize = 32;

/// What it takes to run a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Work {
    /// Nanoseconds of CPU.
    pub(crate) time: f64,
    /// Bytes that are shuffled.
    pub(crate) shuffled: f64,
    /// Rows that come out, at most, as far as no join multiplies them.
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

/// What it takes to run a plan, or `None` if a table does not tell its rows.
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
            // Every task reads it.
            let read = (tasks - 1.0) * SHUFFLE_BYTE * first.rows * width(&schema(0));
            Work { time: shuffled.time + read, ..shuffled }.and(inputs[1])
        } else {
            first.with_shuffle(&schema(0)).and(inputs[1].with_shuffle(&schema(1)))
        };
        return Some(sides.with_rows(JOIN_ROW));
    }
    // What sorts and what other operators there are costs at least as much as a join.
    let all = inputs.into_iter().fold(Work::default(), Work::and);
    Some(all.with_rows(JOIN_ROW))
}

/// How partial filters come to the tasks that probe.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Transport {
    /// Whether one task merges them first.
    pub(crate) merged: bool,
    /// Bytes that are read, by all tasks together.
    pub(crate) bytes: u64,
}

/// A stage more is worth it from so many bytes on: it takes some hundredths of a second, in which gigabytes are merged.
const MERGE_FROM: u64 = 32 << 20;

/// The bytes that a filter of `filter` bytes from `keys` keys, in as many partitions as there are `tasks`, is moved as. A partition's
/// keys travel as hashes, 8 bytes each, until a filter is smaller.
pub(crate) fn transport(filter: u64, keys: u64, tasks: u64, can_merge: bool) -> Transport {
    let partial = filter.saturating_mul(tasks).min(keys.saturating_mul(8));
    let direct = partial.saturating_mul(tasks);
    let merged = partial.saturating_add(filter.saturating_mul(tasks));
    match can_merge && direct >= merged.saturating_add(MERGE_FROM) {
        true => Transport { merged: true, bytes: merged },
        false => Transport { merged: false, bytes: direct },
    }
}

/// A filter's price, and what it saves if it drops every row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Balance {
    build: Work,
    probed: f64,
    transport: Transport,
    cost: f64,
    extra_bytes: f64,
    saved: f64,
    saved_bytes: f64,
}

impl Balance {
    /// Of a filter whose keys come from a second run of `build`, and which drops rows of `point`, that are shuffled as rows of `probed`.
    pub(crate) fn of(
        build: &Plan,
        point: &Plan,
        probed: &Plan,
        transport: Transport,
        config: &ConfigOptions,
    ) -> Result<Balance, String> {
        let build = work(build, config).ok_or("the rows of the build side are not known")?;
        let rows = work(point, config).ok_or("the rows of the probed side are not known")?.rows;
        let bytes = rows * width(&probed.schema()).min(width(&point.schema()));
        Ok(Balance {
            build,
            probed: rows,
            transport,
            cost: build.with_rows(INSERT_ROW).time
                + SHUFFLE_BYTE * transport.bytes as f64
                + PROBE_ROW * rows / 16.0,
            extra_bytes: build.shuffled + transport.bytes as f64,
            saved: SHUFFLE_ROW * rows + SHUFFLE_BYTE * bytes,
            saved_bytes: bytes,
        })
    }

    /// The larger one of two shares: of the time that can be saved, and of the bytes.
    pub(crate) fn share(&self) -> f64 {
        let share = |cost: f64, saved: f64| if saved > 0.0 { cost / saved } else { f64::INFINITY };
        share(self.cost, self.saved).max(share(self.extra_bytes, self.saved_bytes))
    }
}

impl fmt::Display for Balance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "cost {:.1} ms ({:.0} rows read again, {:.3} MB of filters, {:.3} MB shuffled), saves at most {:.1} ms ({:.0} rows, {:.3} MB), share {:.3}",
            self.cost / 1e6,
            self.build.rows,
            self.transport.bytes as f64 / 1e6,
            self.build.shuffled / 1e6,
            self.saved / 1e6,
            self.probed,
            self.saved_bytes / 1e6,
            self.share()
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
        assert_eq!(direct, Transport { merged: false, bytes: 200 * 9_600_000 });
        let merged = transport(filter, keys, 200, true);
        assert_eq!(merged, Transport { merged: true, bytes: 9_600_000 + 200 * filter });
        // Few tasks do not wait for another stage.
        assert!(!transport(filter, keys, 4, true).merged);
    }
}
