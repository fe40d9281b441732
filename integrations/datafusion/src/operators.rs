//! The operators that the rule knows, with all of their properties in one table.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::catalog::memory::{DataSourceExec, MemorySourceConfig};
use datafusion::common::{JoinType, NullEquality, Result};
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::{
    CrossJoinExec, HashJoinExec, JoinOnRef, NestedLoopJoinExec, PartitionMode, SortMergeJoinExec,
};
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::union::{InterleaveExec, UnionExec};
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion::physical_plan::{
    ChildrenPropertiesMode, ExecutionPlan, PhysicalExpr, ReplaceChildrenOptions,
};

use crate::build::BloomBuildExec;
use crate::limits::is_volatile;
use crate::probe::BloomProbeExec;

/// The kinds of operators that estimates and costs distinguish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Filter,
    Projection,
    Probe,
    Build,
    Repartition,
    Aggregate,
    /// A hash join or sort-merge join.
    Join,
    Union,
    Interleave,
    Window,
    Other,
}

/// The properties of one type of operator.
pub(crate) struct Operator {
    matches: Test,
    pub(crate) kind: Kind,
    /// Whether each output row is computed from one row of the first input alone. Such an operator
    /// has the partitions of that input.
    pub(crate) is_row_wise: bool,
    trace: Trace,
    is_repeatable: Test,
}

/// The input that contains some columns unchanged, except that an outer join may add NULL.
pub(crate) struct Origin {
    /// The number of the input.
    pub(crate) input: usize,
    /// The columns of that input.
    pub(crate) columns: Vec<usize>,
    /// Whether the operator returns the same rows if rows without a partner are dropped from the
    /// input instead of the result.
    commutes: bool,
}

type Trace = fn(&dyn ExecutionPlan, &[usize]) -> Option<Origin>;
type Test = fn(&dyn ExecutionPlan) -> bool;

const COMPUTED: Trace = |_, _| None;
const UNCHANGED: Trace = |_, columns| origin(Some(columns.to_vec()));
const REPEATABLE: Test = |_| true;
const UNREPEATABLE: Test = |_| false;

/// | operator | kind | row-wise | origin of columns | repeatable |
static OPERATORS: [Operator; 21] = [
    row::<FilterExec>(Kind::Filter, true, trace_filter, REPEATABLE),
    row::<ProjectionExec>(Kind::Projection, true, trace_projection, REPEATABLE),
    row::<BloomProbeExec>(Kind::Probe, true, UNCHANGED, REPEATABLE),
    row::<CooperativeExec>(Kind::Other, true, UNCHANGED, REPEATABLE),
    row::<RepartitionExec>(Kind::Repartition, false, UNCHANGED, REPEATABLE),
    row::<CoalescePartitionsExec>(Kind::Other, false, UNCHANGED, REPEATABLE),
    row::<SortExec>(Kind::Other, false, UNCHANGED, REPEATABLE),
    row::<SortPreservingMergeExec>(Kind::Other, false, UNCHANGED, REPEATABLE),
    row::<AggregateExec>(Kind::Aggregate, false, trace_group, are_groups_repeatable),
    row::<HashJoinExec>(Kind::Join, false, trace_join, REPEATABLE),
    row::<SortMergeJoinExec>(Kind::Join, false, trace_join, REPEATABLE),
    row::<NestedLoopJoinExec>(Kind::Other, false, COMPUTED, REPEATABLE),
    row::<CrossJoinExec>(Kind::Other, false, COMPUTED, REPEATABLE),
    row::<UnionExec>(Kind::Union, false, COMPUTED, REPEATABLE),
    row::<InterleaveExec>(Kind::Interleave, false, COMPUTED, REPEATABLE),
    row::<WindowAggExec>(Kind::Window, false, COMPUTED, UNREPEATABLE),
    row::<BoundedWindowAggExec>(Kind::Window, false, COMPUTED, UNREPEATABLE),
    row::<BloomBuildExec>(Kind::Build, false, COMPUTED, UNREPEATABLE),
    row::<DataSourceExec>(Kind::Other, false, COMPUTED, is_source_repeatable),
    row::<EmptyExec>(Kind::Other, false, COMPUTED, REPEATABLE),
    row::<PlaceholderRowExec>(Kind::Other, false, COMPUTED, REPEATABLE),
];

/// The properties of all other operators.
static UNKNOWN: Operator = row::<EmptyExec>(Kind::Other, false, COMPUTED, UNREPEATABLE);

const fn row<T: ExecutionPlan>(
    kind: Kind,
    is_row_wise: bool,
    trace: Trace,
    is_repeatable: Test,
) -> Operator {
    Operator { matches: |plan| plan.is::<T>(), kind, is_row_wise, trace, is_repeatable }
}

impl Operator {
    pub(crate) fn find(plan: &dyn ExecutionPlan) -> &'static Operator {
        OPERATORS.iter().find(|operator| (operator.matches)(plan)).unwrap_or(&UNKNOWN)
    }
}

pub(crate) fn kind(plan: &Arc<dyn ExecutionPlan>) -> Kind {
    Operator::find(plan.as_ref()).kind
}

pub(crate) fn trace(plan: &Arc<dyn ExecutionPlan>, columns: &[usize]) -> Option<Origin> {
    (Operator::find(plan.as_ref()).trace)(plan.as_ref(), columns)
}

/// Returns the input in which rows can be dropped by these columns instead of above the operator.
/// There is none if the plan is a table, or if the operator keeps only its first rows, numbers
/// rows, or is unknown.
pub(crate) fn trace_dropping(plan: &Arc<dyn ExecutionPlan>, columns: &[usize]) -> Option<Origin> {
    let drops = !is_scan(plan) && plan.fetch().is_none() && !is_volatile(plan).unwrap_or(true);
    trace(plan, columns).filter(|origin| drops && origin.commutes)
}

/// The plan with other inputs.
pub(crate) fn with_children(
    plan: Arc<dyn ExecutionPlan>,
    children: Vec<Arc<dyn ExecutionPlan>>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    plan.replace_children(children, options)
}

/// Whether an operator returns the same rows each time if its inputs do.
pub(crate) fn is_repeatable(plan: &Arc<dyn ExecutionPlan>) -> bool {
    (Operator::find(plan.as_ref()).is_repeatable)(plan.as_ref())
}

/// Whether the plan is a table, possibly below predicates, expressions and filters.
pub(crate) fn is_scan(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let is_row_wise = || Operator::find(plan.as_ref()).is_row_wise;
    plan.children().first().is_none_or(|input| is_row_wise() && is_scan(input))
}

/// A hash join or sort-merge join.
pub(crate) struct Join<'a> {
    pub(crate) join_type: JoinType,
    pub(crate) on: JoinOnRef<'a>,
    pub(crate) null_equality: NullEquality,
    pub(crate) is_null_aware: bool,
    /// Whether the plan already broadcasts the left side.
    pub(crate) collects_left: bool,
    pub(crate) is_sort_merge: bool,
    projection: Option<&'a [usize]>,
}

impl<'a> Join<'a> {
    pub(crate) fn find(plan: &'a dyn ExecutionPlan) -> Option<Join<'a>> {
        if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
            return Some(Join {
                join_type: *join.join_type(),
                on: join.on(),
                null_equality: join.null_equality(),
                is_null_aware: join.null_aware,
                collects_left: *join.partition_mode() == PartitionMode::CollectLeft,
                is_sort_merge: false,
                projection: join.projection.as_deref(),
            });
        }
        plan.downcast_ref::<SortMergeJoinExec>().map(|join| Join {
            join_type: join.join_type(),
            on: join.on(),
            null_equality: join.null_equality,
            is_null_aware: false,
            collects_left: false,
            is_sort_merge: true,
            projection: None,
        })
    }
}

/// Whether unmatched rows of the (left, right) side can be dropped before the join.
pub(crate) fn droppable_sides(join: JoinType) -> (bool, bool) {
    use JoinType::*;
    match join {
        Inner | LeftSemi | RightSemi => (true, true),
        Left => (false, true),
        Right => (true, false),
        Full | LeftAnti | RightAnti | LeftMark | RightMark => (false, false),
    }
}

pub(crate) fn column_index(expression: &Arc<dyn PhysicalExpr>) -> Option<usize> {
    expression.downcast_ref::<Column>().map(Column::index)
}

fn project(projection: Option<&[usize]>, columns: &[usize]) -> Option<Vec<usize>> {
    match projection {
        Some(projection) => columns.iter().map(|&c| projection.get(c).copied()).collect(),
        None => Some(columns.to_vec()),
    }
}

fn origin(columns: Option<Vec<usize>>) -> Option<Origin> {
    Some(Origin { input: 0, columns: columns?, commutes: true })
}

fn trace_projection(plan: &dyn ExecutionPlan, columns: &[usize]) -> Option<Origin> {
    let expressions = plan.downcast_ref::<ProjectionExec>()?.expr();
    origin(columns.iter().map(|&c| column_index(&expressions[c].expr)).collect())
}

fn trace_filter(plan: &dyn ExecutionPlan, columns: &[usize]) -> Option<Origin> {
    let projection = plan.downcast_ref::<FilterExec>()?.projection();
    origin(project(projection.as_deref(), columns))
}

fn trace_group(plan: &dyn ExecutionPlan, columns: &[usize]) -> Option<Origin> {
    let aggregate = plan.downcast_ref::<AggregateExec>()?;
    let groups = aggregate.group_expr();
    let columns = columns.iter().map(|&c| column_index(&groups.expr().get(c)?.0));
    let origin = origin(columns.collect()).filter(|_| groups.is_single())?;
    Some(Origin { commutes: aggregate.limit_options().is_none(), ..origin })
}

fn trace_join(plan: &dyn ExecutionPlan, columns: &[usize]) -> Option<Origin> {
    use JoinType::*;
    let join = Join::find(plan)?;
    let columns = project(join.projection, columns)?;
    let fields = |child: usize| plan.children()[child].schema().fields().len();
    // The number of columns of each input in the join's result, before its projection.
    let (left, right) = match join.join_type {
        LeftSemi | LeftAnti | LeftMark => (fields(0), 0),
        RightSemi | RightAnti | RightMark => (0, fields(1)),
        Inner | Left | Right | Full => (fields(0), fields(1)),
    };
    let is_left = columns.iter().all(|&c| c < left);
    if !is_left && !columns.iter().all(|&c| c >= left && c < left + right) {
        return None;
    }
    let commutes = match join.join_type {
        Inner => true,
        Left | LeftSemi | LeftAnti | LeftMark => is_left,
        Right | RightSemi | RightAnti | RightMark => !is_left,
        Full => false,
    };
    let columns = if is_left { columns } else { columns.iter().map(|c| c - left).collect() };
    let commutes = commutes && !join.is_null_aware;
    Some(Origin { input: usize::from(!is_left), columns, commutes })
}

fn are_groups_repeatable(plan: &dyn ExecutionPlan) -> bool {
    plan.downcast_ref::<AggregateExec>().is_some_and(|groups| {
        groups.limit_options().is_none()
            && groups.aggr_expr().iter().all(|aggregate| is_independent_of_order(aggregate))
    })
}

fn is_source_repeatable(plan: &dyn ExecutionPlan) -> bool {
    plan.downcast_ref::<DataSourceExec>().is_some_and(|scan| {
        let source = scan.data_source();
        source.downcast_ref::<FileScanConfig>().is_some()
            || source.downcast_ref::<MemorySourceConfig>().is_some()
    })
}

/// Whether the value of an aggregate does not depend on the order of its rows, which changes from
/// run to run. Sums of floating-point numbers and first values depend on it.
fn is_independent_of_order(aggregate: &AggregateFunctionExpr) -> bool {
    match aggregate.fun().name() {
        "count" | "bool_and" | "bool_or" | "bit_and" | "bit_or" | "bit_xor" => true,
        // The minimum of floating-point values may depend on the position of a NaN.
        "min" | "max" | "sum" => {
            let field = aggregate.field();
            let value = field.data_type();
            !value.is_floating() && !value.is_nested() && !matches!(value, DataType::Dictionary(..))
        }
        _ => false,
    }
}
