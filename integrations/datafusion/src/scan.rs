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
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::filter_pushdown::FilterPushdown;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::reset_plan_states;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::filter_pushdown::PushedDown;

use crate::filter::look_up;
use crate::gate::{Counts, Gate};
use crate::operators::{Origin, trace, with_children};
use crate::probe::BloomProbeExec;
use crate::ranges::{MAX_RANGES, Ranges, conversion_margin};

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
    let skipping = match ranges {
        Some(ranges) => with_ranges(plan, columns, ranges, config)?,
        None => None,
    };
    let shared = Shared { filter: filter.clone(), gate: Mutex::new(gate), counts };
    let probing = with_row_filter(skipping.as_ref().unwrap_or(plan), columns, shared, config)?;
    let is_probing = probing.is_some();
    let Some(reduced) = probing.or(skipping) else { return Ok(None) };
    // The files of a scan are in a queue, so another run needs its own operators.
    let unfiltered = reset_plan_states(remove_filters(plan)?)?;
    Ok(Some(ReducedScan { plan: reduced, is_probing, unfiltered }))
}

/// Returns the plan with a scan that skips row groups and pages outside the ranges.
fn with_ranges(
    plan: &Plan,
    columns: &[usize],
    ranges: &Ranges,
    config: &ConfigOptions,
) -> Result<Option<Plan>> {
    if let (Some(scan), [column]) = (plan.downcast_ref::<DataSourceExec>(), columns) {
        let schema = plan.schema();
        let field = schema.field(*column);
        let mut source = None;
        for count in [MAX_RANGES, 1] {
            let column = Column::new(field.name(), *column);
            let (data_type, margin) = (field.data_type(), conversion_margin(field.data_type()));
            let predicate = ranges.clone().predicate(column, data_type, margin, count);
            let Some(predicate) = predicate else { return Ok(None) };
            let pushed = scan.data_source().try_pushdown_filters(vec![predicate], config)?;
            source = pushed.updated_node;
            // A scan that compares every row gets only the smallest and the largest key.
            if !pushed.filters.iter().any(|pushed| matches!(pushed, PushedDown::Yes)) {
                break;
            }
        }
        return Ok(source.map(|source| Arc::new(DataSourceExec::new(source)) as Plan));
    }
    let Some(Origin { input, columns, .. }) = trace(plan, columns) else { return Ok(None) };
    let input = with_ranges(plan.children()[input], &columns, ranges, config)?;
    input.map(|input| with_input(plan, input)).transpose()
}

fn with_input(plan: &Plan, input: Plan) -> Result<Plan> {
    match plan.downcast_ref::<BloomProbeExec>() {
        Some(probe) => Ok(Arc::new(probe.with_input(input))),
        None => with_children(plan.clone(), vec![input]),
    }
}

/// Returns a row-wise plan without its filters.
fn remove_filters(plan: &Plan) -> Result<Plan> {
    let Some(&input) = plan.children().first() else { return Ok(plan.clone()) };
    let input = remove_filters(input)?;
    if plan.is::<BloomProbeExec>() { Ok(input) } else { with_children(plan.clone(), vec![input]) }
}

/// Returns the plan with a row filter in its scan. Returns `None` if the scan would not drop every
/// row that the filter rejects; a Parquet scan with `pushdown_filters` does. The engine's own rule
/// moves the filter through projections and predicates.
fn with_row_filter(
    plan: &Plan,
    columns: &[usize],
    shared: Shared,
    config: &ConfigOptions,
) -> Result<Option<Plan>> {
    let schema = plan.schema();
    let column = |&index: &usize| -> Arc<dyn PhysicalExpr> {
        Arc::new(Column::new(schema.field(index).name(), index))
    };
    let key = columns.iter().map(column).collect();
    let predicate = Arc::new(FilterExpr { key, shared: Arc::new(shared) });
    let above: Plan = Arc::new(FilterExec::try_new(predicate, plan.clone())?);
    let pushed = FilterPushdown::new().optimize(above, config)?;
    Ok((!remains_above_scan(&pushed)? && pushed.schema() == schema).then_some(pushed))
}

/// Whether the filter is still in an operator above the scan.
fn remains_above_scan(plan: &Plan) -> Result<bool> {
    let Some(input) = plan.children().first().copied() else { return Ok(false) };
    let mut left = remains_above_scan(input)?;
    plan.apply_expressions(&mut |expression| {
        use datafusion::common::tree_node::TreeNode;
        left |= expression.exists(|part| Ok(part.is::<FilterExpr>()))?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(left)
}
