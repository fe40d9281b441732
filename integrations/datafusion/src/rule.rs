//! The rule that puts filters before shuffles: [`BloomJoinRule`].

use std::sync::{Arc, Mutex, PoisonError};

use blocked_bloom::Sizing;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{JoinType, NullEquality, Result, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::functions::core::r#struct;
use datafusion::physical_expr::aggregate::AggregateExprBuilder;
use datafusion::physical_expr::expressions::{Column, Literal};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode, PhysicalGroupBy};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::execution_plan::reset_plan_states;
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode, SortMergeJoinExec};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{ChildrenPropertiesMode, ExecutionPlan, ReplaceChildrenOptions};

use crate::aggregate::bloom_filter_agg;
use crate::broadcast::{Likely, Meeting, likely, meeting};
use crate::build::{ALL, BloomBuildExec, scan_of};
use crate::build_side::{
    Estimate, estimate, filters_within, has_window, is_selective, most_keys, not_repeatable,
};
use crate::columns::{Lowest, is_scan, lowest, source, with_lowest};
use crate::cost::{Balance, Saved, Tasks, Transport, work};
use crate::engine::Engine;
use crate::filter::Size;
use crate::keys::KeyType;
use crate::options::{BloomJoinOptions, Enabled};
use crate::probe::BloomProbeExec;

type Plan = Arc<dyn ExecutionPlan>;

/// The name of the rule among a session's physical optimizer rules.
pub const RULE_NAME: &str = "bloom_join";

/// Puts a [`BloomProbeExec`] on a side of a join, so that rows without a partner are dropped before
/// they are shuffled.
///
/// Which side: either one of an inner or semi join, and of a left or right join the one whose rows
/// need a partner. No side of full, anti and mark joins, of joins where NULL equals NULL, and of
/// joins that are aware of NULL.
///
/// When: if the other side, whose keys become the filter, drops rows itself and gives the same rows
/// when it runs again, the filter stays within its limits, the probed side is large, and no
/// broadcast is to be expected. [`BloomJoinOptions`] are the settings. The reasons why a join gets
/// no filter are logged by the crate `log` at the level `debug`; a
/// [`BloomQueryPlanner`](crate::BloomQueryPlanner) adds them to `EXPLAIN VERBOSE`.
///
/// The rule must run before the others, which move predicates into scans and take shuffles apart.
/// [`with_bloom_filters`] puts it there.
///
/// [`with_bloom_filters`]: crate::with_bloom_filters
#[derive(Debug, Default)]
pub struct BloomJoinRule {
    reasons: Option<Reasons>,
}

/// Why joins got no filter.
pub(crate) type Reasons = Arc<Mutex<Vec<String>>>;

impl BloomJoinRule {
    /// The rule, which also adds to these reasons.
    pub(crate) fn explaining(reasons: Reasons) -> Self {
        BloomJoinRule { reasons: Some(reasons) }
    }

    fn explain(&self, reason: String) {
        log::debug!("{reason}");
        if let Some(reasons) = &self.reasons {
            reasons.lock().unwrap_or_else(PoisonError::into_inner).push(reason);
        }
    }
}

impl PhysicalOptimizerRule for BloomJoinRule {
    fn optimize(&self, plan: Plan, config: &ConfigOptions) -> Result<Plan> {
        let options = BloomJoinOptions::of(config);
        options.check()?;
        match options.enabled {
            Enabled::False => {
                self.explain("no filters (bloom_join.enabled false)".into());
                return Ok(plan);
            }
            Enabled::Auto if !Engine::of(config).is_cluster() => {
                self.explain("no filters in one process (bloom_join.enabled auto)".into());
                return Ok(plan);
            }
            Enabled::Auto | Enabled::True => {}
        }
        let reductions = reductions(&plan)?;
        let planner = Planner { rule: self, options: &options, config, reductions };
        plan.transform_up(|plan| match planner.with_filter(&plan)? {
            Some(filtered) => Ok(Transformed::yes(filtered)),
            None => Ok(Transformed::no(plan)),
        })
        .data()
    }

    fn name(&self) -> &str {
        RULE_NAME
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Whether rows of the (left, right) side that have no partner can be dropped before the join.
fn droppable(join: JoinType) -> (bool, bool) {
    match join {
        JoinType::Inner | JoinType::LeftSemi | JoinType::RightSemi => (true, true),
        JoinType::Left => (false, true),
        JoinType::Right => (true, false),
        JoinType::Full
        | JoinType::LeftAnti
        | JoinType::RightAnti
        | JoinType::LeftMark
        | JoinType::RightMark => (false, false),
    }
}

/// A side of a join.
#[derive(Clone)]
struct Side {
    plan: Plan,
    /// The columns that must equal those of the other side, of which there is at least one.
    columns: Vec<Column>,
    estimate: Estimate,
}

impl Side {
    fn indices(&self) -> Vec<usize> {
        self.columns.iter().map(Column::index).collect()
    }

    /// The smallest part of the plan that has all keys.
    fn table(&self) -> Side {
        let (plan, columns) = source(&self.plan, &self.indices());
        let schema = plan.schema();
        let column = |index: usize| Column::new(schema.field(index).name(), index);
        let columns = columns.into_iter().map(column).collect();
        Side { columns, estimate: estimate(&plan), plan }
    }
}

/// A table that is reduced by another one: a join of the query drops its rows that have no partner
/// in the other table, so that a filter of the table's keys can do without the keys of these rows.
struct Reduction {
    table: Plan,
    columns: Vec<usize>,
    by: Side,
}

/// The tables that other tables reduce by any join of the query: the one that is to have a filter,
/// or one above or below it.
fn reductions(plan: &Plan) -> Result<Vec<Reduction>> {
    let mut reductions = Vec::new();
    let mut tables: Vec<Plan> = Vec::new();
    plan.apply(|plan| {
        if plan.children().is_empty() {
            tables.push(plan.clone());
        }
        let Some((join_type, left, right)) = sides(plan) else {
            return Ok(TreeNodeRecursion::Continue);
        };
        let (drop_left, drop_right) = droppable(join_type);
        for (by, reduced, can) in [(&left, &right, drop_right), (&right, &left, drop_left)] {
            let point = lowest(&reduced.plan, &reduced.indices());
            if can && is_scan(&point.plan) {
                let (table, columns) = (point.plan, point.columns);
                reductions.push(Reduction { table, columns, by: by.table() });
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    // A table that is in the query twice is reduced in one of the two places only.
    reductions.retain(|reduction| {
        let scanned = scan_of(&reduction.table);
        tables.iter().filter(|table| Arc::ptr_eq(table, scanned)).count() == 1
    });
    Ok(reductions)
}

/// The most hops from table to table, each of which reduces the next. This is predicate transfer in
/// at most two passes.
const MOST_HOPS: usize = 2;

/// What the rule decides from.
struct Planner<'a> {
    rule: &'a BloomJoinRule,
    options: &'a BloomJoinOptions,
    config: &'a ConfigOptions,
    reductions: Vec<Reduction>,
}

impl Planner<'_> {
    /// The join with a filter on one of its sides, or `None` if there is a reason against it.
    fn with_filter(&self, plan: &Plan) -> Result<Option<Plan>> {
        let Some((join_type, left, right)) = sides(plan) else { return Ok(None) };
        let meeting = match meeting(plan, self.config) {
            Meeting::Broadcast if self.options.despite_broadcast => Meeting::Shuffled,
            meeting => meeting,
        };
        let (drop_left, drop_right) = droppable(join_type);
        let mut directions = Vec::new();
        if drop_right {
            directions.push((&left, &right));
        }
        if drop_left {
            directions.push((&right, &left));
        }
        // The larger side is tried first; if the rows are not known, the right one, with which hash
        // joins probe.
        directions.sort_by_key(|(_, probed)| std::cmp::Reverse(probed.estimate.rows));
        for (build, probed) in directions {
            match self.plan_filter(build, probed, meeting)? {
                Ok(probe) => {
                    let children = if Arc::ptr_eq(&probed.plan, &left.plan) {
                        vec![probe, right.plan.clone()]
                    } else {
                        vec![left.plan.clone(), probe]
                    };
                    let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
                    return plan.clone().replace_children(children, options).map(Some);
                }
                Err(reason) => self.rule.explain(format!(
                    "no filter for {join_type} join by {:?}: {reason}",
                    probed.columns.iter().map(Column::name).collect::<Vec<_>>()
                )),
            }
        }
        Ok(None)
    }

    /// The table with a filter of the smallest table that reduces it. Only tables are considered
    /// that are smaller and of which something drops rows. The filter has a balance of its own:
    /// what it costs against what the keys of the table leave to be saved.
    fn reduced(&self, table: &Side, hops: usize, saved: Option<Saved>) -> Result<Option<Side>> {
        if hops == 0 || filters_within(&table.plan) > 0 {
            return Ok(None);
        }
        let (options, config) = (self.options, self.config);
        let rows = |plan: &Plan| work(plan, config).map(|work| work.rows);
        let Some(most) = rows(&table.plan) else { return Ok(None) };
        let by = self.reductions.iter().filter(|r| Arc::ptr_eq(&r.table, &table.plan));
        let smaller = by.filter_map(|r| Some((rows(&r.by.plan).filter(|rows| *rows < most)?, r)));
        let mut smaller: Vec<_> = smaller.collect();
        smaller.sort_by(|a, b| a.0.total_cmp(&b.0));
        let left = likely(&table.plan).map_or(1.0, |likely| likely.left);
        let saved = saved.map(|saved| saved.part(left));
        for (_, reduction) in smaller {
            let by = match self.reduced(&reduction.by, hops - 1, saved)? {
                Some(by) => by,
                None if is_selective(&reduction.by.plan) => reduction.by.clone(),
                None => continue,
            };
            let schema = table.plan.schema();
            let column = |&index: &usize| Column::new(schema.field(index).name(), index);
            let columns = reduction.columns.iter().map(column).collect();
            let reduced = Side { columns, ..table.clone() };
            if !has_same_keys(&by, &reduced) || not_repeatable(&by.plan)?.is_some() {
                continue;
            }
            let balance = match saved {
                Some(saved) => Balance::of(&by.plan, Some(most), saved, config),
                None => Err("the rows of the probed side are not known".into()),
            };
            let tasks = Tasks::of(&by.plan, &table.plan, config);
            match self.filter(&by, tasks, balance)? {
                Ok(filter) => {
                    let (input, columns) = (table.plan.clone(), reduction.columns.clone());
                    let probe = filter.probe(input, columns, options.stop_above)?;
                    return Ok(Some(Side { plan: probe, ..table.clone() }));
                }
                Err(reason) => self.rule.explain(format!(
                    "no filter of the keys by {:?}: {reason}",
                    by.columns.iter().map(Column::name).collect::<Vec<_>>()
                )),
            }
        }
        Ok(None)
    }

    /// The probed side with its filter, or why there is none.
    fn plan_filter(
        &self,
        build: &Side,
        probed: &Side,
        meeting: Meeting,
    ) -> Result<Result<Plan, String>> {
        let (options, config) = (self.options, self.config);
        if let (Some(rows), least) = (probed.estimate.rows, options.min_probe_rows)
            && (rows as u64) < least
        {
            return Ok(Err(format!("{rows} rows to probe (bloom_join.min_probe_rows {least})")));
        }
        if let (Some(rows), Some(keys)) = (probed.estimate.rows, build.estimate.rows)
            && rows < keys
        {
            return Ok(Err(format!("{rows} rows to probe, {keys} to build the filter of")));
        }
        if meeting == Meeting::Broadcast {
            return Ok(Err(format!(
                "a side is likely to be broadcast: {:?} and {:?}",
                build.estimate, probed.estimate
            )));
        }
        if has_window(&probed.plan) {
            return Ok(Err("window functions are computed in the probed side".into()));
        }
        let columns = probed.indices();
        let point = lowest(&probed.plan, &columns);
        let saved = Saved::of(&point, &probed.plan, meeting, config);
        // The table that the keys come from has all of them, and costs least to read again. If
        // nothing drops rows there, the whole side is read again.
        let table = build.table();
        let is_whole = Arc::ptr_eq(&table.plan, &build.plan);
        let reduced = self.reduced(&table, MOST_HOPS, saved.as_ref().ok().copied())?;
        let mut candidates: Vec<Side> = reduced.into_iter().collect();
        candidates.push(table);
        if !is_whole {
            candidates.push(build.clone());
        }
        let (mut best, mut reasons) = (None::<Filter>, Vec::new());
        for build in &candidates {
            match self.filter_of(build, probed, &point.plan, &saved)? {
                Ok(filter) if best.as_ref().is_none_or(|best| filter.total < best.total) => {
                    best = Some(filter);
                }
                Ok(_) => {}
                Err(reason) => reasons.push(reason),
            }
        }
        let Some(best) = best else { return Ok(Err(reasons.join("; of more keys: "))) };
        log::debug!("a filter by {:?}: {}", probed.columns, best.decision);
        let Lowest { plan, columns: at, .. } = point;
        let probe = best.probe(plan, at, options.stop_above)?;
        with_lowest(&probed.plan, &columns, probe).map(Ok)
    }

    /// The filter of the keys in this plan for the probed side, of which the rows of `point` are
    /// probed, or why there is none.
    fn filter_of(
        &self,
        build: &Side,
        probed: &Side,
        point: &Plan,
        saved: &Result<Saved, String>,
    ) -> Result<Result<Filter, String>> {
        if !is_selective(&build.plan) {
            return Ok(Err("nothing drops rows of the build side".into()));
        }
        if filters_within(&build.plan) > MOST_HOPS {
            return Ok(Err("the build side has more filters itself".into()));
        }
        if let Some(reason) = not_repeatable(&build.plan)? {
            return Ok(Err(reason));
        }
        if !has_same_keys(build, probed) {
            return Ok(Err("the sides have no keys of one type".into()));
        }
        let balance = saved.clone();
        let balance = balance.and_then(|saved| Balance::of(&build.plan, None, saved, self.config));
        self.filter(build, Tasks::of(&build.plan, point, self.config), balance)
    }

    /// The filter of the keys in this plan, if its balance allows it, or why there is none.
    fn filter(
        &self,
        build: &Side,
        tasks: Tasks,
        balance: Result<Balance, String>,
    ) -> Result<Result<Filter, String>> {
        let (options, config) = (self.options, self.config);
        let left = likely(&build.plan).map_or(1.0, |Likely { left, .. }| left);
        let mut stop_above = options.stop_above;
        let limit = match (options.enabled, &balance) {
            (Enabled::Auto, Err(reason)) => return Ok(Err(reason.clone())),
            (Enabled::Auto, Ok(balance)) => {
                // No filter moves less.
                let least = tasks.transport(0, 0);
                if !balance.allows(options.max_cost, least) {
                    let figures = balance.text(least);
                    return Ok(Err(format!(
                        "{figures} (bloom_join.max_cost {})",
                        options.max_cost
                    )));
                }
                if left > stop_above {
                    return Ok(Err(format!(
                        "predicates leave about {left:.2} of the keys \
                         (bloom_join.stop_above {stop_above})"
                    )));
                }
                // With more keys the filter would save less than it may cost.
                stop_above = stop_above.min((1.0 - options.max_cost).max(0.5));
                Some(balance)
            }
            _ => None,
        };
        let (size, transport) = match size(build, tasks, limit, options, config) {
            Ok(size) => size,
            Err(reason) => return Ok(Err(reason)),
        };
        let total = balance.as_ref().map_or(f64::INFINITY, |b| b.total(transport, left));
        let decision = balance.map_or_else(|reason| reason, |balance| balance.text(transport));
        // Where joins or other filters drop keys, a sample of the scan tells nothing.
        let samples = is_scan(&build.plan) && filters_within(&build.plan) == 0;
        let stop_above = (samples && stop_above < 1.0).then_some(stop_above);
        let plan = filter_plan(build, size, transport.merged, stop_above, config)?;
        Ok(Ok(Filter { plan, decision, total }))
    }
}

/// A filter that may be planned.
struct Filter {
    plan: Plan,
    /// The figures, for `EXPLAIN`.
    decision: String,
    /// What the query costs with it, by which filters are compared: see [`Balance::total`].
    total: f64,
}

impl Filter {
    fn probe(self, input: Plan, columns: Vec<usize>, stop_above: f64) -> Result<Plan> {
        let probe = BloomProbeExec::try_new(input, self.plan, columns, stop_above)?;
        Ok(Arc::new(probe.with_decision(self.decision)))
    }
}

/// Whether the keys of both sides can be compared by their hashes.
fn has_same_keys(a: &Side, b: &Side) -> bool {
    let keys = |side: &Side| -> Result<Vec<KeyType>> {
        let schema = side.plan.schema();
        let of = |column: &Column| KeyType::of(schema.field(column.index()).data_type());
        side.columns.iter().map(of).collect()
    };
    matches!((keys(a), keys(b)), (Ok(a), Ok(b)) if a == b)
}

/// The type and the sides of a join, if they may be shuffled and rows of them may be dropped.
fn sides(plan: &Plan) -> Option<(JoinType, Side, Side)> {
    let (join_type, on, null_equality, left, right) =
        if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
            if join.null_aware || *join.partition_mode() == PartitionMode::CollectLeft {
                return None;
            }
            (*join.join_type(), join.on(), join.null_equality(), join.left(), join.right())
        } else if let Some(join) = plan.downcast_ref::<SortMergeJoinExec>() {
            (join.join_type(), join.on(), join.null_equality, join.left(), join.right())
        } else {
            return None;
        };
    // A side that is a probe already has its filter. The sides of a self-join may be one plan.
    if null_equality == NullEquality::NullEqualsNull
        || left.is::<BloomProbeExec>()
        || right.is::<BloomProbeExec>()
        || Arc::ptr_eq(left, right)
    {
        return None;
    }
    let column = |key: &Arc<dyn PhysicalExpr>| key.downcast_ref::<Column>().cloned();
    let is_struct = |side: &Plan, column: &Column| {
        let schema = side.schema();
        match schema.field(column.index()).data_type() {
            DataType::Dictionary(_, values) => values.is_nested(),
            of => of.is_nested(),
        }
    };
    // Keys that are no columns are left to the join: a filter of the other keys drops fewer rows,
    // and still none that has a partner. Columns of structs are left to the join too, which takes
    // NULL within one struct to equal NULL within another.
    let pairs = on.iter().filter_map(|(l, r)| Some((column(l)?, column(r)?)));
    let pairs = pairs.filter(|(l, r)| !is_struct(left, l) && !is_struct(right, r));
    let (left_columns, right_columns): (Vec<_>, Vec<_>) = pairs.unzip();
    if left_columns.is_empty() {
        return None;
    }
    let side =
        |plan: &Plan, columns| Side { plan: plan.clone(), columns, estimate: estimate(plan) };
    Some((join_type, side(left, left_columns), side(right, right_columns)))
}

/// The most bytes of a filter in a cluster: messages of Ballista hold 16 MiB.
const MOST_BYTES_IN_CLUSTER: u64 = 12 << 20;

/// What the filter is sized for, and how it is moved, or why it would be too large or too full.
fn size(
    build: &Side,
    tasks: Tasks,
    limit: Option<&Balance>,
    options: &BloomJoinOptions,
    config: &ConfigOptions,
) -> Result<(Size, Transport), String> {
    let rate = options.false_positive_rate;
    let most_bytes = match Engine::of(config).is_cluster() {
        true => options.max_filter_bytes.min(MOST_BYTES_IN_CLUSTER),
        false => options.max_filter_bytes,
    };
    let keys = most_keys(&build.plan).map_or(options.default_keys, |keys| keys as u64).max(1);
    let moved = |bytes| tasks.transport(bytes, keys);
    let fits = |bytes| {
        bytes <= most_bytes
            && moved(bytes).bytes <= options.max_bytes_read
            && limit.is_none_or(|balance| balance.allows(options.max_cost, moved(bytes)))
    };
    let bytes = |size: Size| size.params().map(|params| params.stored_bytes());
    let size = Size { expected_keys: keys, rate };
    match bytes(size) {
        Ok(bytes) if fits(bytes) => return Ok((size, moved(bytes))),
        _ => {}
    }
    // A filter for every row of the tables would be too large. If only as many rows are left as is
    // estimated, a smaller filter will do. If more are left, it fills up, which the share of hits
    // shows while the query runs.
    let likely = build.estimate.rows.map_or(keys, |rows| (rows as u64).min(keys)).max(1);
    let mut expected_keys = likely;
    loop {
        let size = Size { expected_keys, rate };
        match bytes(size) {
            Ok(bytes) if fits(bytes) => {
                let filled = Sizing::MaxBytes(bytes).params(likely);
                let filled = filled.map_err(|error| error.to_string())?.false_positive_rate();
                if filled <= options.max_false_positive_rate {
                    return Ok((size, moved(bytes)));
                }
                return Err(format!(
                    "{likely} keys in {bytes} bytes would have a false-positive rate of \
                     {filled:.3} (bloom_join.max_false_positive_rate {})",
                    options.max_false_positive_rate
                ));
            }
            // The filter becomes smaller in steps of 3 %. Its rate is then above the configured
            // one, but at most `max_false_positive_rate`.
            _ if expected_keys > 1 => expected_keys -= (expected_keys / 32).max(1),
            _ => {
                return Err(format!(
                    "no filter of {likely} keys is within bloom_join.max_filter_bytes \
                     {most_bytes}, max_bytes_read {} and max_cost {}",
                    options.max_bytes_read, options.max_cost
                ));
            }
        }
    }
}

/// The plan of the filter: one row of one column, computed by a second run of the build side, of
/// which only the keys are taken.
fn filter_plan(
    build: &Side,
    size: Size,
    merged: bool,
    stop_above: Option<f64>,
    config: &ConfigOptions,
) -> Result<Plan> {
    let key = |(number, column): (usize, &Column)| {
        let expression: Arc<dyn PhysicalExpr> = Arc::new(column.clone());
        (expression, format!("key{number}"))
    };
    let keys: Vec<_> = build.columns.iter().enumerate().map(key).collect();
    let count = keys.len();
    // Operators keep the state of a run. The second run has operators of its own.
    let again = reset_plan_states(build.plan.clone())?;
    let keys: Plan = Arc::new(ProjectionExec::try_new(keys, again)?);
    let schema = keys.schema();
    let column = |number| -> Arc<dyn PhysicalExpr> {
        Arc::new(Column::new(&format!("key{number}"), number))
    };
    let key = match count {
        1 => column(0),
        _ => {
            let columns = (0..count).map(column).collect();
            let options = Arc::new(config.clone());
            Arc::new(ScalarFunctionExpr::try_new(r#struct(), columns, &schema, options)?)
        }
    };
    let literal = |value| -> Arc<dyn PhysicalExpr> { Arc::new(Literal::new(value)) };
    let arguments = vec![
        key,
        literal(ScalarValue::Int64(Some(size.expected_keys as i64))),
        literal(ScalarValue::Float64(Some(size.rate))),
    ];
    let aggregate = AggregateExprBuilder::new(bloom_filter_agg(), arguments)
        .schema(schema.clone())
        .alias("bloom_filter")
        .build()?;
    let aggregate = vec![Arc::new(aggregate)];
    let partial: Plan = Arc::new(BloomBuildExec::try_new(keys, size, stop_above, merged)?);
    let finish = |mode, groups, input: Plan| -> Result<Plan> {
        let groups = PhysicalGroupBy::new_single(groups);
        Ok(Arc::new(AggregateExec::try_new(mode, groups, aggregate, vec![None], input, schema)?))
    };
    if !merged {
        let all = Arc::new(CoalescePartitionsExec::new(partial));
        return finish(AggregateMode::Final, vec![], all);
    }
    // All keys are one group, so that the shuffle of a group-by brings the partial filters of all
    // partitions to one task.
    let all: Arc<dyn PhysicalExpr> = Arc::new(Column::new(ALL, 0));
    let merged = finish(AggregateMode::FinalPartitioned, vec![(all, ALL.into())], partial)?;
    let filter: Arc<dyn PhysicalExpr> = Arc::new(Column::new("bloom_filter", 1));
    let filter = ProjectionExec::try_new([(filter, "bloom_filter".to_string())], merged)?;
    Ok(Arc::new(CoalescePartitionsExec::new(Arc::new(filter))))
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::{DataType, Field, Schema};
    use datafusion::common::Statistics;
    use datafusion::common::stats::Precision;
    use datafusion::physical_plan::test::exec::StatisticsExec;

    use super::*;

    fn side(rows: Precision<usize>) -> Side {
        let schema = Schema::new(vec![Field::new("k", DataType::Int64, true)]);
        let statistics = Statistics::new_unknown(&schema).with_num_rows(rows);
        let plan: Plan = Arc::new(StatisticsExec::new(statistics, schema));
        Side { columns: vec![Column::new("k", 0)], estimate: estimate(&plan), plan }
    }

    #[cfg(feature = "ballista")]
    #[test]
    fn a_chain_pays_for_each_run_of_a_build_side_of_one_partition() {
        use datafusion::arrow::array::{Int64Array, RecordBatch};
        use datafusion::catalog::memory::MemorySourceConfig;

        let scan = |partitions: usize, rows: usize| -> Plan {
            let of = || Arc::new(Int64Array::from_iter_values(0..(rows / partitions) as i64)) as _;
            let batch = RecordBatch::try_from_iter([("k", of())]).unwrap();
            let (batches, schema) = (vec![vec![batch.clone()]; partitions], batch.schema());
            MemorySourceConfig::try_new_exec(&batches, schema, None).unwrap()
        };
        let mut config = ConfigOptions::new();
        config.extensions.insert(ballista_core::config::BallistaConfig::default());
        config.optimizer.repartition_file_scans = false;
        let plan = scan(1, 100_000);
        let build = Side { columns: vec![Column::new("k", 0)], estimate: estimate(&plan), plan };
        let size = Size { expected_keys: 100_000, rate: 0.01 };
        let probed_by = |partitions| {
            let filter = filter_plan(&build, size, false, None, &config).unwrap();
            let probed = scan(partitions, 1 << 20);
            let probe = BloomProbeExec::try_new(probed, filter, vec![0], 1.0).unwrap();
            work(&(Arc::new(probe) as Plan), &config).unwrap().time
        };
        let (four, eight) = (probed_by(4), probed_by(8));
        let once = work(&build.plan, &config).unwrap().time;
        assert!(eight - four > 4.0 * once, "{four} {eight} {once}");
    }

    #[test]
    fn filters_keep_to_their_limits() {
        let options = BloomJoinOptions { max_filter_bytes: 1 << 30, ..Default::default() };
        let mut config = ConfigOptions::new();
        config.execution.target_partitions = 2;
        let bytes = |rows, config: &ConfigOptions| {
            let tasks = config.execution.target_partitions as u64;
            let engine = Engine::of(config);
            let tasks = Tasks { building: tasks, merging: tasks, probing: tasks, engine };
            let (size, _) = size(&side(rows), tasks, None, &options, config)?;
            Ok::<_, String>(size.params().unwrap().stored_bytes())
        };
        let keys = Precision::Inexact(12_000_000);
        let in_one_process = bytes(keys, &config).unwrap();
        assert!(in_one_process > 14 << 20, "{in_one_process}");
        assert!(bytes(Precision::Absent, &config).unwrap() < 2 << 20, "the default, 1 M keys");
        assert!(bytes(Precision::Inexact(usize::MAX), &config).unwrap_err().contains("rate"));
        // What tasks read together: 256 partial filters in each of 256 tasks, of at most 8 bytes
        // for each key.
        config.execution.target_partitions = 256;
        assert!(bytes(Precision::Inexact(500_000), &config).is_ok());
        assert!(bytes(Precision::Inexact(700_000), &config).is_err());

        #[cfg(feature = "ballista")]
        {
            config.execution.target_partitions = 2;
            config.extensions.insert(ballista_core::config::BallistaConfig::default());
            let in_a_cluster = bytes(keys, &config).unwrap();
            assert!(in_a_cluster <= MOST_BYTES_IN_CLUSTER, "{in_a_cluster}");
            assert!(in_a_cluster > MOST_BYTES_IN_CLUSTER / 10 * 9, "{in_a_cluster}");
            assert!(bytes(Precision::Inexact(100_000_000), &config).is_err());
            // One task merges them, and the others read one filter each.
            config.execution.target_partitions = 256;
            assert!(bytes(Precision::Inexact(700_000), &config).is_ok());
        }
    }
}
