//! A filter as a row filter of a Parquet scan: the other columns of rows that it drops are not
//! decoded, and pages of such rows not read. Below a limit no row is dropped: others would come in
//! its place.

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
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::filter_pushdown::FilterPushdown;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::metrics::{Count, Time};
use datafusion::physical_plan::projection::ProjectionExec;

use crate::columns::is_volatile;
use crate::filter::look_up;
use crate::probe::{BloomProbeExec, Gate};

/// Whether a key may be in a filter: true, false, or NULL for NULL.
#[derive(Debug)]
pub(crate) struct InFilter {
    key: Vec<Arc<dyn PhysicalExpr>>,
    shared: Arc<Shared>,
}

/// What all partitions of a scan share.
#[derive(Debug)]
struct Shared {
    filter: Arc<BloomFilter>,
    gate: Mutex<Gate>,
    counts: Counts,
}

/// Metrics of the operator whose filter it is.
#[derive(Clone, Debug)]
pub(crate) struct Counts {
    pub(crate) input_rows: Count,
    pub(crate) unprobed_rows: Count,
    pub(crate) probe_time: Time,
}

impl InFilter {
    fn gate(&self) -> std::sync::MutexGuard<'_, Gate> {
        self.shared.gate.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PhysicalExpr for InFilter {
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
        Ok(Arc::new(InFilter { key, shared: self.shared.clone() }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for InFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key: Vec<_> = self.key.iter().map(|key| key.to_string()).collect();
        write!(f, "in_bloom_filter({})", key.join(", "))
    }
}

impl PartialEq for InFilter {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key && Arc::ptr_eq(&self.shared, &other.shared)
    }
}

impl Eq for InFilter {}

impl Hash for InFilter {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key.hash(state);
        Arc::as_ptr(&self.shared).hash(state);
    }
}

/// Whether rows can be dropped in the scan of a plan as well as above the plan: each operator,
/// which is one of a list, makes what it makes of a row from that row alone, and gives all rows
/// that it makes. Neither does the scan end after some rows, in which case those that are dropped
/// would make place for others.
fn is_row_wise(plan: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    if plan.fetch().is_some() || is_volatile(plan)? {
        return Ok(false);
    }
    if let Some(source) = plan.downcast_ref::<DataSourceExec>() {
        return Ok(source.data_source().downcast_ref::<FileScanConfig>().is_some());
    }
    let passes = plan.is::<FilterExec>()
        || plan.is::<ProjectionExec>()
        || plan.is::<BloomProbeExec>()
        || plan.is::<CooperativeExec>();
    match plan.children().first() {
        Some(input) if passes => is_row_wise(input),
        _ => Ok(false),
    }
}

/// Whether something in a plan ends after some rows. A predicate that is moved from above it to
/// below it changes which rows they are, and the engine's scans and merges with a limit let
/// predicates pass.
pub(crate) fn has_limit(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let aggregate = plan.downcast_ref::<AggregateExec>();
    plan.fetch().is_some()
        || aggregate.is_some_and(|aggregate| aggregate.limit_options().is_some())
        || plan.children().into_iter().any(has_limit)
}

/// The plan with the filter in its scan, if that drops every row that it is false for: a Parquet
/// scan does with `pushdown_filters`. The engine's own rule puts it there, which knows projections
/// and predicates between, and does not know limits: [`is_row_wise`] does.
pub(crate) fn with_row_filter(
    plan: &Arc<dyn ExecutionPlan>,
    columns: &[usize],
    filter: &Arc<BloomFilter>,
    gate: Gate,
    counts: Counts,
    config: &ConfigOptions,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if !is_row_wise(plan)? {
        return Ok(None);
    }
    let schema = plan.schema();
    let column = |&index: &usize| -> Arc<dyn PhysicalExpr> {
        Arc::new(Column::new(schema.field(index).name(), index))
    };
    let shared = Shared { filter: filter.clone(), gate: Mutex::new(gate), counts };
    let key = columns.iter().map(column).collect();
    let predicate = Arc::new(InFilter { key, shared: Arc::new(shared) });
    let above: Arc<dyn ExecutionPlan> = Arc::new(FilterExec::try_new(predicate, plan.clone())?);
    let pushed = FilterPushdown::new().optimize(above, config)?;
    Ok((!is_left(&pushed)? && pushed.schema() == schema).then_some(pushed))
}

/// Whether an operator above the scan has it.
fn is_left(plan: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    let Some(input) = plan.children().first().copied() else { return Ok(false) };
    let mut left = is_left(input)?;
    plan.apply_expressions(&mut |expression| {
        use datafusion::common::tree_node::TreeNode;
        left |= expression.exists(|part| Ok(part.is::<InFilter>()))?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(left)
}

#[cfg(test)]
mod tests {
    use datafusion::catalog::memory::MemorySourceConfig;
    use datafusion::datasource::physical_plan::{FileScanConfigBuilder, ParquetSource};
    use datafusion::execution::object_store::ObjectStoreUrl;
    use datafusion::physical_expr::expressions::{col, lit};
    use datafusion::physical_expr::{LexOrdering, Partitioning, PhysicalSortExpr};
    use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
    use datafusion::physical_plan::joins::CrossJoinExec;
    use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
    use datafusion::physical_plan::repartition::RepartitionExec;
    use datafusion::physical_plan::sorts::sort::SortExec;
    use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
    use datafusion::physical_plan::union::UnionExec;

    use super::*;

    type Plan = Arc<dyn ExecutionPlan>;

    fn scan(limit: Option<usize>) -> Plan {
        let field = datafusion::arrow::datatypes::Field::new("k", DataType::Int64, true);
        let source = Arc::new(ParquetSource::new(Arc::new(Schema::new(vec![field]))));
        let url = ObjectStoreUrl::local_filesystem();
        let config = FileScanConfigBuilder::new(url, source).with_limit(limit).build();
        DataSourceExec::from_data_source(config)
    }

    fn filter(input: Plan) -> FilterExec {
        FilterExec::try_new(lit(true), input).unwrap()
    }

    fn projection(input: Plan) -> Plan {
        let k = col("k", &input.schema()).unwrap();
        Arc::new(ProjectionExec::try_new(vec![(k, "k".to_string())], input).unwrap())
    }

    #[test]
    fn row_filters_pass_operators_of_single_rows() {
        let passing: [fn(Plan) -> Plan; 3] = [
            |input| Arc::new(filter(input)),
            projection,
            |input| Arc::new(CooperativeExec::new(input)),
        ];
        for above in passing {
            for below in passing {
                assert!(is_row_wise(&above(below(scan(None)))).unwrap());
                assert!(!is_row_wise(&above(below(scan(Some(9))))).unwrap());
            }
        }
    }

    #[test]
    fn row_filters_pass_nothing_else() {
        let order = |input: &Plan| {
            LexOrdering::new([PhysicalSortExpr::new_default(col("k", &input.schema()).unwrap())])
                .unwrap()
        };
        let input = || scan(None);
        let sort = || SortExec::new(order(&input()), input());
        let memory = MemorySourceConfig::try_new(&[vec![]], input().schema(), None).unwrap();
        let refused: Vec<Plan> = vec![
            scan(Some(9)),
            DataSourceExec::from_data_source(memory),
            filter(input()).with_fetch(Some(9)).unwrap(),
            Arc::new(GlobalLimitExec::new(input(), 1, None)),
            Arc::new(GlobalLimitExec::new(input(), 0, Some(9))),
            Arc::new(LocalLimitExec::new(input(), 9)),
            Arc::new(sort()),
            Arc::new(sort().with_fetch(Some(9))),
            Arc::new(SortPreservingMergeExec::new(order(&input()), input())),
            Arc::new(CoalescePartitionsExec::new(input())),
            Arc::new(RepartitionExec::try_new(input(), Partitioning::RoundRobinBatch(2)).unwrap()),
            UnionExec::try_new(vec![input(), input()]).unwrap(),
            Arc::new(CrossJoinExec::new(input(), input())),
        ];
        for plan in refused {
            assert!(!is_row_wise(&plan).unwrap(), "{plan:?}");
            assert!(!is_row_wise(&projection(plan.clone())).unwrap(), "{plan:?}");
        }
    }
}
