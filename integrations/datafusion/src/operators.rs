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
    CrossJoinExec, HashJoinExec, NestedLoopJoinExec, PartitionMode, SortMergeJoinExec,
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
    is: Test,
    pub(crate) kind: Kind,
    /// Whether each output row is computed from one row of the first input alone. Such an operator
    /// has the partitions of that input.
    pub(crate) is_row_wise: bool,
    trace: Trace,
    commutes: Commutes,
    is_repeatable: Test,
}

/// An input, by its number, and the columns of that input.
type Origin = (usize, Vec<usize>);
type Trace = fn(&dyn ExecutionPlan, &[usize]) -> Option<Origin>;
type Commutes = fn(&dyn ExecutionPlan, usize) -> bool;
type Test = fn(&dyn ExecutionPlan) -> bool;

const COMPUTED: Trace = |_, _| None;
const UNCHANGED: Trace = |_, columns| Some((0, columns.to_vec()));
const ALWAYS: Commutes = |_, _| true;
const NEVER: Commutes = |_, _| false;
const REPEATABLE: Test = |_| true;
const UNREPEATABLE: Test = |_| false;

/// | operator | kind | row-wise | origin of columns | dropping rows commutes | repeatable |
static OPERATORS: [Operator; 21] = [
    row::<FilterExec>(Kind::Filter, true, trace_filter, ALWAYS, REPEATABLE),
    row::<ProjectionExec>(Kind::Projection, true, trace_projection, ALWAYS, REPEATABLE),
    row::<BloomProbeExec>(Kind::Probe, true, UNCHANGED, ALWAYS, REPEATABLE),
    row::<CooperativeExec>(Kind::Other, true, UNCHANGED, ALWAYS, REPEATABLE),
    row::<RepartitionExec>(Kind::Repartition, false, UNCHANGED, ALWAYS, REPEATABLE),
    row::<CoalescePartitionsExec>(Kind::Other, false, UNCHANGED, ALWAYS, REPEATABLE),
    row::<SortExec>(Kind::Other, false, UNCHANGED, ALWAYS, REPEATABLE),
    row::<SortPreservingMergeExec>(Kind::Other, false, UNCHANGED, ALWAYS, REPEATABLE),
    row::<AggregateExec>(
        Kind::Aggregate,
        false,
        trace_group,
        commutes_with_groups,
        are_groups_repeatable,
    ),
    row::<HashJoinExec>(Kind::Join, false, trace_join, commutes_with_join, REPEATABLE),
    row::<SortMergeJoinExec>(Kind::Join, false, trace_join, commutes_with_join, REPEATABLE),
    row::<NestedLoopJoinExec>(Kind::Other, false, COMPUTED, NEVER, REPEATABLE),
    row::<CrossJoinExec>(Kind::Other, false, COMPUTED, NEVER, REPEATABLE),
    row::<UnionExec>(Kind::Union, false, COMPUTED, NEVER, REPEATABLE),
    row::<InterleaveExec>(Kind::Interleave, false, COMPUTED, NEVER, REPEATABLE),
    row::<WindowAggExec>(Kind::Window, false, COMPUTED, NEVER, UNREPEATABLE),
    row::<BoundedWindowAggExec>(Kind::Window, false, COMPUTED, NEVER, UNREPEATABLE),
    row::<BloomBuildExec>(Kind::Build, false, COMPUTED, NEVER, UNREPEATABLE),
    row::<DataSourceExec>(Kind::Other, false, COMPUTED, NEVER, is_source_repeatable),
    row::<EmptyExec>(Kind::Other, false, COMPUTED, NEVER, REPEATABLE),
    row::<PlaceholderRowExec>(Kind::Other, false, COMPUTED, NEVER, REPEATABLE),
];

/// The properties of all other operators.
static UNKNOWN: Operator = Operator {
    is: UNREPEATABLE,
    kind: Kind::Other,
    is_row_wise: false,
    trace: COMPUTED,
    commutes: NEVER,
    is_repeatable: UNREPEATABLE,
};

const fn row<T: ExecutionPlan>(
    kind: Kind,
    is_row_wise: bool,
    trace: Trace,
    commutes: Commutes,
    is_repeatable: Test,
) -> Operator {
    Operator { is: |plan| plan.is::<T>(), kind, is_row_wise, trace, commutes, is_repeatable }
}

impl Operator {
    pub(crate) fn find(plan: &dyn ExecutionPlan) -> &'static Operator {
        OPERATORS.iter().find(|operator| (operator.is)(plan)).unwrap_or(&UNKNOWN)
    }
}

pub(crate) fn kind(plan: &Arc<dyn ExecutionPlan>) -> Kind {
    Operator::find(plan.as_ref()).kind
}

/// The input that contains all these columns unchanged, except that an outer join may add NULL.
pub(crate) fn trace(plan: &Arc<dyn ExecutionPlan>, columns: &[usize]) -> Option<Origin> {
    (Operator::find(plan.as_ref()).trace)(plan.as_ref(), columns)
}

/// Whether dropping rows by columns of this input has the same effect below the operator as above
/// it. It does not if the operator keeps only its first rows, numbers rows, or is unknown.
pub(crate) fn commutes_with_dropping(plan: &Arc<dyn ExecutionPlan>, input: usize) -> bool {
    plan.fetch().is_none()
        && !is_volatile(plan).unwrap_or(true)
        && (Operator::find(plan.as_ref()).commutes)(plan.as_ref(), input)
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
    pub(crate) on: &'a [(Arc<dyn PhysicalExpr>, Arc<dyn PhysicalExpr>)],
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

fn column_index(expression: &Arc<dyn PhysicalExpr>) -> Option<usize> {
    expression.downcast_ref::<Column>().map(Column::index)
}

fn project(projection: Option<&[usize]>, columns: &[usize]) -> Option<Vec<usize>> {
    match projection {
        Some(projection) => columns.iter().map(|&c| projection.get(c).copied()).collect(),
        None => Some(columns.to_vec()),
    }
}

fn trace_projection(plan: &dyn ExecutionPlan, columns: &[usize]) -> Option<Origin> {
    let expressions = plan.downcast_ref::<ProjectionExec>()?.expr();
    let columns = columns.iter().map(|&c| column_index(&expressions[c].expr));
    Some((0, columns.collect::<Option<_>>()?))
}

fn trace_filter(plan: &dyn ExecutionPlan, columns: &[usize]) -> Option<Origin> {
    let projection = plan.downcast_ref::<FilterExec>()?.projection();
    Some((0, project(projection.as_deref(), columns)?))
}

fn trace_group(plan: &dyn ExecutionPlan, columns: &[usize]) -> Option<Origin> {
    let groups = plan.downcast_ref::<AggregateExec>()?.group_expr();
    if !groups.is_single() {
        return None;
    }
    let columns = columns.iter().map(|&c| column_index(&groups.expr().get(c)?.0));
    Some((0, columns.collect::<Option<_>>()?))
}

fn trace_join(plan: &dyn ExecutionPlan, columns: &[usize]) -> Option<Origin> {
    let join = Join::find(plan)?;
    let columns = project(join.projection, columns)?;
    let fields = |child: usize| plan.children()[child].schema().fields().len();
    // The number of columns of each input in the join's result, before its projection.
    use JoinType::*;
    let (left, right) = match join.join_type {
        LeftSemi | LeftAnti | LeftMark => (fields(0), 0),
        RightSemi | RightAnti | RightMark => (0, fields(1)),
        Inner | Left | Right | Full => (fields(0), fields(1)),
    };
    if columns.iter().all(|&c| c < left) {
        return Some((0, columns));
    }
    let in_right = columns.iter().all(|&c| c >= left && c < left + right);
    in_right.then(|| (1, columns.iter().map(|c| c - left).collect()))
}

fn commutes_with_groups(plan: &dyn ExecutionPlan, _: usize) -> bool {
    plan.downcast_ref::<AggregateExec>().is_some_and(|groups| groups.limit_options().is_none())
}

fn commutes_with_join(plan: &dyn ExecutionPlan, input: usize) -> bool {
    let Some(join) = Join::find(plan).filter(|join| !join.is_null_aware) else { return false };
    use JoinType::*;
    match join.join_type {
        Inner => true,
        Left | LeftSemi | LeftAnti | LeftMark => input == 0,
        Right | RightSemi | RightAnti | RightMark => input == 1,
        Full => false,
    }
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
