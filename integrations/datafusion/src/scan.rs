//! A filter as a row filter of a Parquet scan. The scan decodes only the key of dropped rows, and
//! does not read pages that have only such rows.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use blocked_bloom::BloomFilter;
use datafusion::arrow::array::{ArrayRef, BooleanArray, RecordBatch, StructArray};
use datafusion::arrow::datatypes::{DataType, Fields, Schema};
use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::filter_pushdown::FilterPushdown;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::FilterExec;

use crate::filter::look_up;
use crate::gate::{Counts, Gate};

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
    /// Whether a row has passed.
    has_row: AtomicBool,
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
        let hits = answers.true_count();
        self.gate().probed(rows, hits);
        // At least one row passes, as in the operator above the scan.
        if rows > 0 && !self.shared.has_row.swap(true, Ordering::Relaxed) && hits == 0 {
            let first: Vec<bool> = (0..rows).map(|row| row == 0).collect();
            return Ok(ColumnarValue::Array(Arc::new(BooleanArray::from(first))));
        }
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

/// Returns the plan with the filter in its scan. Returns `None` if the scan would not drop every
/// row that the filter rejects; a Parquet scan with `pushdown_filters` does. The engine's own rule
/// moves the filter through projections and predicates. That rule ignores limits, so the caller
/// must know that rows can be dropped in the scan as well as above the plan.
pub(crate) fn with_row_filter(
    plan: &Arc<dyn ExecutionPlan>,
    columns: &[usize],
    filter: &Arc<BloomFilter>,
    gate: Gate,
    counts: Counts,
    config: &ConfigOptions,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let schema = plan.schema();
    let column = |&index: &usize| -> Arc<dyn PhysicalExpr> {
        Arc::new(Column::new(schema.field(index).name(), index))
    };
    let (filter, gate, has_row) = (filter.clone(), Mutex::new(gate), AtomicBool::new(false));
    let shared = Shared { filter, gate, has_row, counts };
    let key = columns.iter().map(column).collect();
    let predicate = Arc::new(FilterExpr { key, shared: Arc::new(shared) });
    let above: Arc<dyn ExecutionPlan> = Arc::new(FilterExec::try_new(predicate, plan.clone())?);
    let pushed = FilterPushdown::new().optimize(above, config)?;
    Ok((!remains_above_scan(&pushed)? && pushed.schema() == schema).then_some(pushed))
}

/// Whether the filter is still in an operator above the scan.
fn remains_above_scan(plan: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    let Some(input) = plan.children().first().copied() else { return Ok(false) };
    let mut left = remains_above_scan(input)?;
    plan.apply_expressions(&mut |expression| {
        use datafusion::common::tree_node::TreeNode;
        left |= expression.exists(|part| Ok(part.is::<FilterExpr>()))?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(left)
}
