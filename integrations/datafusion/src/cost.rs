//! Estimates the cost of a filter and its maximum saving from the rows of tables and the widths of
//! columns. The engine's own estimates of predicates are wrong by orders of magnitude and are not
//! used.

use std::sync::Arc;

use datafusion::arrow::datatypes::Schema;
use datafusion::config::ConfigOptions;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use crate::broadcast::{BroadcastKind, broadcast_kind, width};
use crate::build_side::build_of;
use crate::columns::ProbePoint;
use crate::engine::Engine;
use crate::operators::{Kind, Operator, kind};
use crate::planning::{Planning, cached};

type Plan = Arc<dyn ExecutionPlan>;

// Nanoseconds of one core; only their ratios matter. They come from a star join of 20 M rows of 37
// bytes. Reading and probing took 0.42 s on a Zen 5 and 0.81 s on a Zen 3. Shuffling and joining
// took 3.4 s (adaptive) to 7.4 s (static), and 5.2 s to 10.7 s.
const SCAN_ROW: f64 = 5.0;
const SCAN_BYTE: f64 = 0.4;
const PREDICATE_ROW: f64 = 5.0;
const INSERT_ROW: f64 = 10.0;
const PROBE_ROW: f64 = 5.0;
const SHUFFLE_ROW: f64 = 20.0;
/// datafusion-distributed writes no files.
const SENT_ROW: f64 = 10.0;
const SHUFFLE_BYTE: f64 = 3.0;
/// Tasks read filters from shuffle files without decoding.
const READ_BYTE: f64 = 1.0;
/// A Ballista task, a file that a task opens, and a stage.
const TASK: f64 = 1.5e6;
const FETCH: f64 = 0.1e6;
const STAGE: f64 = 30e6;
const JOIN_ROW: f64 = 40.0;
const GROUP_ROW: f64 = 40.0;

/// The cost of running a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Work {
    /// CPU time in nanoseconds.
    pub(crate) time: f64,
    /// Shuffled bytes.
    pub(crate) shuffled: f64,
    /// Maximum number of output rows, if no join multiplies them.
    pub(crate) rows: f64,
}

impl Work {
    fn combine(self, other: Work) -> Work {
        Work {
            time: self.time + other.time,
            shuffled: self.shuffled + other.shuffled,
            rows: self.rows.max(other.rows),
        }
    }

    fn with_rows(self, time: f64) -> Work {
        Work { time: self.time + time * self.rows, ..self }
    }

    fn with_shuffle(self, schema: &Schema, config: &ConfigOptions) -> Work {
        let bytes = self.rows * width(schema);
        let time = self.time + shuffle(self.rows, bytes, config);
        Work { time, shuffled: self.shuffled + bytes, rows: self.rows }
    }
}

/// Returns the nanoseconds of shuffling these rows with this many bytes in total.
fn shuffle(rows: f64, bytes: f64, config: &ConfigOptions) -> f64 {
    let row = match Engine::from_config(config) {
        Engine::Distributed => SENT_ROW,
        Engine::OneProcess | Engine::Ballista => SHUFFLE_ROW,
    };
    row * rows + SHUFFLE_BYTE * bytes
}

/// Estimates the cost of running a plan. Returns `None` if the rows of a table are unknown.
pub(crate) fn work(plan: &Plan, planning: &Planning) -> Option<Work> {
    cached(&planning.work, plan, || estimate_work(plan, planning))
}

fn estimate_work(plan: &Plan, planning: &Planning) -> Option<Work> {
    let config = planning.config;
    let children = plan.children();
    if children.is_empty() {
        let scanned = Work { rows: planning.estimate(plan).rows? as f64, ..Default::default() };
        return Some(scanned.with_rows(SCAN_ROW + SCAN_BYTE * width(&plan.schema())));
    }
    let inputs: Option<Vec<Work>> = children.iter().map(|child| work(child, planning)).collect();
    let inputs = inputs?;
    let schema = |child: usize| children[child].schema();
    let first = inputs[0];
    let all = |inputs: Vec<Work>| inputs.into_iter().fold(Work::default(), Work::combine);
    Some(match kind(plan) {
        Kind::Filter => first.with_rows(PREDICATE_ROW),
        Kind::Projection => first,
        Kind::Repartition => first.with_shuffle(&schema(0), config),
        Kind::Aggregate if merges_groups(plan) => {
            first.with_shuffle(&schema(0), config).with_rows(GROUP_ROW)
        }
        Kind::Aggregate => first.with_rows(GROUP_ROW),
        Kind::Probe => {
            let (build, rows) = (build_of(children[1])?, first.rows);
            let bytes = build.size().params().ok()?.stored_bytes();
            let tasks = Tasks::count(build.input(), children[0], config);
            let moved = tasks.transport(bytes, planning.max_keys(build.input())? as u64);
            let built = moved.runs as f64 * inputs[1].time;
            let time = first.time + PROBE_ROW * rows + built + moved.time;
            let shuffled = first.shuffled + inputs[1].shuffled + moved.shuffled as f64;
            Work { time, shuffled, rows }
        }
        // It returns one row per partition.
        Kind::Build => Work { rows: 0.0, ..first.with_rows(INSERT_ROW) },
        Kind::Union | Kind::Interleave => {
            let rows = inputs.iter().map(|input| input.rows).sum();
            Work { rows, ..all(inputs) }
        }
        Kind::Join if shuffles(plan, planning) => {
            let right = inputs[1].with_shuffle(&schema(1), config);
            first.with_shuffle(&schema(0), config).combine(right).with_rows(JOIN_ROW)
        }
        Kind::Join => {
            let tasks = target_partitions(config) as f64;
            let shuffled = first.with_shuffle(&schema(0), config);
            // Every task reads the whole side.
            let read = (tasks - 1.0) * SHUFFLE_BYTE * first.rows * width(&schema(0));
            let sent = Work { time: shuffled.time + read, ..shuffled };
            sent.combine(inputs[1]).with_rows(JOIN_ROW)
        }
        // All other operators, such as sorts, cost at least as much as a join.
        Kind::Window | Kind::Other => all(inputs).with_rows(JOIN_ROW),
    })
}

/// Whether an aggregate merges the groups of all partitions.
fn merges_groups(plan: &Plan) -> bool {
    plan.downcast_ref::<AggregateExec>().is_some_and(|groups| {
        use AggregateMode::{Final, FinalPartitioned};
        matches!(groups.mode(), Final | FinalPartitioned) && !groups.group_expr().is_empty()
    })
}

/// How partial filters reach the probing tasks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Transport {
    /// Whether one task merges them first.
    pub(crate) merged: bool,
    /// Shuffled bytes of filters. Ballista writes them once; datafusion-distributed sends them to
    /// every reading task.
    pub(crate) shuffled: u64,
    /// Bytes that all tasks read together.
    pub(crate) bytes: u64,
    /// CPU time of the transport in nanoseconds.
    pub(crate) time: f64,
    /// Runs of the build side.
    pub(crate) runs: u64,
}

/// Numbers of tasks that determine the transport of a filter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tasks {
    /// Tasks that build partial filters.
    pub(crate) building: u64,
    /// Tasks of the stage that merges them, if there is one. Only one of them has data.
    pub(crate) merging: u64,
    /// Tasks that probe. Each reads all partial filters, or the merged one.
    pub(crate) probing: u64,
    /// In one process, all tasks share one filter that is merged once.
    pub(crate) engine: Engine,
}

impl Tasks {
    /// Counts the tasks of a filter from the keys in `build` to the rows in `probed`.
    pub(crate) fn count(build: &Plan, probed: &Plan, config: &ConfigOptions) -> Tasks {
        Tasks {
            building: task_count(build, config),
            merging: target_partitions(config) as u64,
            probing: task_count(probed, config),
            engine: Engine::from_config(config),
        }
    }

    /// Chooses the transport of a filter of `filter` bytes with this many keys from all partitions.
    /// A partition sends its keys as hashes of 8 bytes, unless a filter is smaller. Ballista does
    /// not stage a build side with one partition: each probing task reads it and builds the filter.
    pub(crate) fn transport(self, filter: u64, keys: u64) -> Transport {
        let Tasks { building, merging, probing, engine } = self;
        let in_cluster = engine.is_cluster();
        let partial = filter.saturating_mul(building).min(keys.saturating_mul(8));
        let bytes = partial.saturating_mul(probing);
        let time = |tasks: u64, fetches: u64, bytes: u64| {
            let started = TASK * tasks as f64 + FETCH * fetches as f64;
            READ_BYTE * bytes as f64 + if in_cluster { started } else { 0.0 }
        };
        let fetches = building.saturating_mul(probing);
        let sent = |bytes: u64| match engine {
            Engine::Distributed => bytes.saturating_mul(probing),
            _ => bytes,
        };
        if building == 1 && engine == Engine::Ballista {
            // Each task opens the table, which costs at least as much as opening a filter. When
            // this cost was left out, a filter of 25 keys slowed its query down by 8 %.
            let time = time(building, fetches, 0);
            return Transport { merged: false, shuffled: 0, bytes: 0, time, runs: probing };
        }
        let direct = Transport {
            merged: false,
            shuffled: sent(partial),
            bytes,
            time: time(building, fetches, bytes),
            runs: 1,
        };
        let bytes = partial.saturating_add(filter.saturating_mul(probing));
        let merged = Transport {
            merged: true,
            shuffled: partial.saturating_add(sent(filter)),
            bytes,
            time: STAGE
                + time(building.saturating_add(merging), building.saturating_add(probing), bytes),
            runs: 1,
        };
        if in_cluster && merged.time < direct.time { merged } else { direct }
    }
}

/// Returns the number of tasks that run a plan: one per partition after the engine has divided its
/// tables, which happens after the rule. A Ballista task may take several partitions.
fn task_count(plan: &Plan, config: &ConfigOptions) -> u64 {
    let children = plan.children();
    match children.first() {
        None => scan_partitions(plan, config) as u64,
        Some(input) if Operator::find(plan.as_ref()).is_row_wise => task_count(input, config),
        Some(_) if kind(plan) == Kind::Union => {
            let inputs = children.iter().map(|input| task_count(input, config));
            inputs.fold(0, u64::saturating_add)
        }
        Some(_) => target_partitions(config) as u64,
    }
}

/// Returns the number of partitions of a table after the engine has divided it.
fn scan_partitions(table: &Plan, config: &ConfigOptions) -> usize {
    let count = table.output_partitioning().partition_count().max(1);
    let target = target_partitions(config);
    // Dividing a table copies its list of files. A table of many files is already divided into
    // nearly `target` partitions.
    if (target / 2 + 1..=target).contains(&count) || !config.optimizer.repartition_file_scans {
        return count;
    }
    let divided = table.repartitioned(target, config).ok().flatten();
    divided.map_or(count, |table| table.output_partitioning().partition_count().max(1))
}

fn target_partitions(config: &ConfigOptions) -> usize {
    config.execution.target_partitions.max(1)
}

/// The maximum saving of a filter: it drops every row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Saved {
    /// Rows that would be probed.
    probed: f64,
    /// Rows that can be dropped before shuffles, counted for each.
    rows: f64,
    /// CPU time in nanoseconds.
    time: f64,
    bytes: f64,
    /// Whether the join may become a broadcast. Then only shuffles below it are saved.
    may_broadcast: bool,
}

impl Saved {
    /// Estimates the saving if all rows of `point` are dropped, which would otherwise be shuffled
    /// as rows of `side`, and by joins and groups below it.
    pub(crate) fn estimate(
        point: &ProbePoint,
        side: &Plan,
        broadcast: BroadcastKind,
        planning: &Planning,
    ) -> Result<Saved, String> {
        let probed = rows_at(point, planning);
        let probed = probed.ok_or("the number of rows of the probed side is unknown")?;
        let may_broadcast = broadcast == BroadcastKind::Possible;
        let mut shuffles = point.shuffles(side, planning);
        if may_broadcast {
            shuffles.pop();
        }
        let mut saved = Saved { probed, rows: 0.0, time: 0.0, bytes: 0.0, may_broadcast };
        for (share, schema) in shuffles {
            let (rows, bytes) = (probed * share, probed * share * width(&schema));
            saved.rows += rows;
            saved.bytes += bytes;
            saved.time += shuffle(rows, bytes, planning.config);
        }
        Ok(saved)
    }

    /// Scales the saving by a share.
    pub(crate) fn scale(self, share: f64) -> Saved {
        let Saved { rows, time, bytes, .. } = self;
        Saved { rows: rows * share, time: time * share, bytes: bytes * share, ..self }
    }
}

/// Returns the number of rows that a filter at this point would probe, if it is known.
pub(crate) fn rows_at(point: &ProbePoint, planning: &Planning) -> Option<f64> {
    Some(work(&point.plan, planning)?.rows * point.returned)
}

/// Whether an operator needs its input shuffled.
pub(crate) fn shuffles(plan: &Plan, planning: &Planning) -> bool {
    match kind(plan) {
        Kind::Aggregate => plan
            .downcast_ref::<AggregateExec>()
            .is_some_and(|groups| *groups.mode() == AggregateMode::FinalPartitioned),
        Kind::Join => broadcast_kind(plan, planning) == BroadcastKind::Unlikely,
        kind => kind == Kind::Repartition,
    }
}

/// The cost of a filter without its transport, and its maximum saving.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Balance {
    build: Work,
    /// CPU time of probing in nanoseconds.
    probe_time: f64,
    saved: Saved,
}

impl Balance {
    /// Estimates the balance of a filter whose keys come from a second run of `build`. It is probed
    /// with `probed` rows, or with all rows of the saving.
    pub(crate) fn estimate(
        build: &Plan,
        probed: Option<f64>,
        saved: Saved,
        planning: &Planning,
    ) -> Result<Balance, String> {
        let build =
            work(build, planning).ok_or("the number of rows of the build side is unknown")?;
        let probe_time = PROBE_ROW * probed.unwrap_or(saved.probed);
        Ok(Balance { build: build.with_rows(INSERT_ROW), probe_time, saved })
    }

    /// Whether a filter with this transport costs at most this share of its saving, in time and in
    /// bytes.
    pub(crate) fn allows(&self, share: f64, transport: Transport) -> bool {
        self.share(transport) <= share
    }

    /// Returns cost divided by saving, for time or for bytes, whichever is larger.
    fn share(&self, transport: Transport) -> f64 {
        let share = |cost: f64, saved: f64| if saved > 0.0 { cost / saved } else { f64::INFINITY };
        let bytes = self.build.shuffled + transport.shuffled as f64;
        share(self.time(transport), self.saved.time).max(share(bytes, self.saved.bytes))
    }

    /// Returns the CPU time of a filter with this transport in nanoseconds.
    pub(crate) fn time(&self, transport: Transport) -> f64 {
        transport.runs as f64 * self.build.time + self.probe_time + transport.time
    }

    /// Returns the CPU time of a query with the filter in nanoseconds, if this share of the rows
    /// remains. Rows that no filter could save are not counted.
    pub(crate) fn total(&self, transport: Transport, left: f64) -> f64 {
        self.time(transport) + self.saved.time * left
    }

    /// Returns the CPU time in nanoseconds that the filter saves, less its own, if this share of
    /// the rows remains.
    pub(crate) fn benefit(&self, transport: Transport, left: f64) -> f64 {
        self.saved.time - self.total(transport, left)
    }

    /// Describes the balance for `EXPLAIN` and the log.
    pub(crate) fn describe(&self, transport: Transport) -> String {
        let saved = self.saved;
        format!(
            "cost {:.1} ms ({:.0} rows read again, {:.3} MB shuffled again, \
             {:.3} MB of filters shuffled and {:.3} read), \
             saves at most {:.1} ms ({:.0} rows, {:.3} MB{}), share {:.3}",
            self.time(transport) / 1e6,
            self.build.rows * transport.runs as f64,
            self.build.shuffled / 1e6,
            transport.shuffled as f64 / 1e6,
            transport.bytes as f64 / 1e6,
            saved.time / 1e6,
            saved.rows,
            saved.bytes / 1e6,
            if saved.may_broadcast { ", below a join that may be a broadcast" } else { "" },
            self.share(transport)
        )
    }
}

#[cfg(test)]
#[path = "../tests/unit/cost.rs"]
mod tests;
