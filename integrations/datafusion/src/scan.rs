//! Parquet scans that drop rows by a filter. With the ranges of its keys, a scan skips row groups
//! and pages. With the filter as a row filter, it decodes only the key of dropped rows, and does
//! not read pages that have only such rows.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use blocked_bloom::BloomFilter;
use datafusion::arrow::array::{ArrayRef, BooleanArray, RecordBatch, StructArray};
use datafusion::arrow::datatypes::{DataType, Fields, Schema};
use datafusion::catalog::memory::DataSourceExec;
use datafusion::common::Result;
use datafusion::config::ConfigOptions;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileScanConfig, ParquetSource};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::reset_plan_states;
use datafusion::physical_plan::filter_pushdown::PushedDown;

use crate::filter::look_up;
use crate::gate::{Counts, Gate};
use crate::operators::{Origin, column_index, trace, with_children};
use crate::probe::BloomProbeExec;
use crate::ranges::{MAX_RANGES, Ranges};

type Plan = Arc<dyn ExecutionPlan>;

/// Looks a key up in a filter: true, false, or NULL for NULL.
#[derive(Debug)]
pub(crate) struct FilterExpr {
    key: Vec<Arc<dyn PhysicalExpr>>,
    shared: Arc<Shared>,
}

/// State that all partitions of a scan share.
#[derive(Debug)]
struct Shared {
    filter: Arc<BloomFilter>,
    gate: Mutex<Gate>,
    counts: Counts,
}

impl FilterExpr {
    fn gate(&self) -> std::sync::MutexGuard<'_, Gate> {
        self.shared.gate.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PhysicalExpr for FilterExpr {
    fn data_type(&self, _: &Schema) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn nullable(&self, _: &Schema) -> Result<bool> {
        Ok(true)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let rows = batch.num_rows();
        let counts = &self.shared.counts;
        counts.input_rows.add(rows);
        if !self.gate().is_open(rows) {
            counts.unprobed_rows.add(rows);
            return Ok(ColumnarValue::Array(Arc::new(BooleanArray::from(vec![true; rows]))));
        }
        let _timer = counts.probe_time.timer();
        let schema = batch.schema();
        let value = |key: &Arc<dyn PhysicalExpr>| key.evaluate(batch)?.into_array(rows);
        let key: ArrayRef = match self.key.as_slice() {
            [key] => value(key)?,
            keys => {
                let fields = keys.iter().map(|key| key.return_field(&schema));
                let fields = fields.collect::<Result<Fields>>()?;
                let values = keys.iter().map(value).collect::<Result<_>>()?;
                Arc::new(StructArray::try_new(fields, values, None)?)
            }
        };
        let answers = look_up(&self.shared.filter, &key, &mut Vec::new())?;
        self.gate().probed(rows, answers.true_count());
        Ok(ColumnarValue::Array(Arc::new(answers)))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        self.key.iter().collect()
    }

    fn with_new_children(
        self: Arc<Self>,
        key: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        Ok(Arc::new(FilterExpr { key, shared: self.shared.clone() }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for FilterExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key: Vec<_> = self.key.iter().map(|key| key.to_string()).collect();
        write!(f, "in_bloom_filter({})", key.join(", "))
    }
}

impl PartialEq for FilterExpr {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key && Arc::ptr_eq(&self.shared, &other.shared)
    }
}

impl Eq for FilterExpr {}

impl Hash for FilterExpr {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key.hash(state);
        Arc::as_ptr(&self.shared).hash(state);
    }
}

/// A plan with a scan that drops rows.
#[derive(Clone, Debug)]
pub(crate) struct ReducedScan {
    pub(crate) plan: Plan,
    /// Whether the scan drops every row that the filter rejects.
    pub(crate) is_probing: bool,
    /// The plan without filters.
    pub(crate) unfiltered: Plan,
}

/// Moves a filter and the ranges of its keys into the scan of a plan. Returns `None` if the scan
/// accepts neither. The caller must know that rows can be dropped in the scan as well as above the
/// plan: the engine ignores limits here.
pub(crate) fn reduce_scan(
    plan: &Plan,
    columns: &[usize],
    filter: &Arc<BloomFilter>,
    ranges: Option<&Ranges>,
    (gate, counts): (Gate, Counts),
    config: &ConfigOptions,
) -> Result<Option<ReducedScan>> {
    let Some((scan, columns)) = reducible_scan(plan, columns) else { return Ok(None) };
    let schema = scan.schema();
    let column = |&index: &usize| Column::new(schema.field(index).name(), index);
    let mut skipping = None;
    if let (Some(ranges), [index]) = (ranges, &columns[..]) {
        for count in [MAX_RANGES, 1] {
            let data_type = schema.field(*index).data_type();
            let predicate = ranges.clone().predicate(column(index), data_type, count);
            let Some(predicate) = predicate else { break };
            let is_row_filter;
            (skipping, is_row_filter) = push_down(scan, predicate, config)?;
            // A scan that compares every row gets only the smallest and the largest key.
            if !is_row_filter {
                break;
            }
        }
    }
    let key = columns.iter().map(|index| Arc::new(column(index)) as _).collect();
    let shared = Shared { filter: filter.clone(), gate: Mutex::new(gate), counts };
    let predicate = Arc::new(FilterExpr { key, shared: Arc::new(shared) });
    let (probing, is_probing) = push_down(skipping.as_ref().unwrap_or(scan), predicate, config)?;
    let probing = probing.filter(|_| is_probing);
    let Some(reduced) = probing.or(skipping) else { return Ok(None) };
    // The files of a scan are in a queue, so another run needs its own operators.
    let unfiltered = reset_plan_states(with_scan(plan, scan, false)?)?;
    Ok(Some(ReducedScan { plan: with_scan(plan, &reduced, true)?, is_probing, unfiltered }))
}

/// Returns the scan of a row-wise plan, and these columns as columns of the scan, if it may drop
/// rows by them.
///
/// They must be columns of the files. A computed key can fail for rows that a predicate would have
/// dropped before, and the engine compares statistics with some computed keys wrongly: with the
/// time of day of timestamps, for example. For the first reason, the scan must not reorder row
/// filters.
fn reducible_scan<'p>(plan: &'p Plan, columns: &[usize]) -> Option<(&'p Plan, Vec<usize>)> {
    let Some(scan) = plan.downcast_ref::<DataSourceExec>() else {
        let Origin { input, columns, .. } = trace(plan, columns)?;
        return reducible_scan(plan.children()[input], &columns);
    };
    let scan = scan.data_source().downcast_ref::<FileScanConfig>()?;
    let source = scan.file_source();
    let options = source.downcast_ref::<ParquetSource>().map(ParquetSource::table_parquet_options);
    let may_drop = |&column: &usize| {
        let stored = match source.projection() {
            Some(expressions) => column_index(&expressions.as_ref()[column].expr),
            None => Some(column),
        };
        let mut files = scan.file_groups.iter().flat_map(|files| files.iter());
        stored.is_some_and(|stored| files.all(|file| has_whole_statistics(file, stored)))
    };
    let reorders = options.is_some_and(|options| options.global.reorder_filters);
    (!reorders && columns.iter().all(may_drop)).then(|| (plan, columns.to_vec()))
}

/// Whether the smallest and the largest value that the engine knows are those of the whole file. If
/// some row groups have no statistics, it takes those of the others for the file, but the number of
/// NULLs is not exact.
fn has_whole_statistics(file: &PartitionedFile, column: usize) -> bool {
    let columns = file.statistics.as_ref().map(|statistics| &statistics.column_statistics);
    columns.and_then(|columns| columns.get(column)).is_none_or(|of| {
        let bounds = [of.min_value.is_exact(), of.max_value.is_exact()];
        of.null_count.is_exact() == Some(true) || !bounds.contains(&Some(true))
    })
}

/// Returns the scan with a predicate, if it accepts it, and whether it drops every row for which
/// the predicate is not true; a Parquet scan with `pushdown_filters` does.
fn push_down(
    scan: &Plan,
    predicate: Arc<dyn PhysicalExpr>,
    config: &ConfigOptions,
) -> Result<(Option<Plan>, bool)> {
    let Some(scan) = scan.downcast_ref::<DataSourceExec>() else { return Ok((None, false)) };
    let pushed = scan.data_source().try_pushdown_filters(vec![predicate], config)?;
    let is_row_filter = pushed.filters.iter().any(|pushed| matches!(pushed, PushedDown::Yes));
    let source = pushed.updated_node;
    Ok((source.map(|source| Arc::new(DataSourceExec::new(source)) as Plan), is_row_filter))
}

/// Returns a row-wise plan with this scan, with or without its filters.
fn with_scan(plan: &Plan, scan: &Plan, has_filters: bool) -> Result<Plan> {
    let Some(&input) = plan.children().first() else { return Ok(scan.clone()) };
    let input = with_scan(input, scan, has_filters)?;
    match plan.downcast_ref::<BloomProbeExec>() {
        Some(probe) if has_filters => Ok(Arc::new(probe.with_input(input))),
        Some(_) => Ok(input),
        None => with_children(plan.clone(), vec![input]),
    }
}
