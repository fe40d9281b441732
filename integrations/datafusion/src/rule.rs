//! The rule that puts filters before shuffles: [`BloomJoinRule`].

use std::sync::Arc;

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
use crate::build_side::{
    Estimate, estimate, filters_within, has_window, is_selective, most_keys, not_repeatable,
};
use crate::columns::{is_scan, lowest, scan_of, source, with_lowest};
use crate::cost::{Balance, Transport, is_likely_broadcast, transport, work};
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
/// no filter are logged by the crate `log` at the level `debug`.
///
/// The rule must run before the others, which move predicates into scans and take shuffles apart.
/// [`with_bloom_filters`] puts it there.
///
/// [`with_bloom_filters`]: crate::with_bloom_filters
#[derive(Debug, Default)]
pub struct BloomJoinRule {}

impl PhysicalOptimizerRule for BloomJoinRule {
    fn optimize(&self, plan: Plan, config: &ConfigOptions) -> Result<Plan> {
        let options = BloomJoinOptions::of(config);
        match options.enabled {
            Enabled::False => return Ok(plan),
            Enabled::Auto if !is_cluster(config) => {
                log::debug!("no filters in one process (bloom_join.enabled auto)");
                return Ok(plan);
            }
            Enabled::Auto | Enabled::True => {}
        }
        let planner = Planner { options: &options, config, reductions: reductions(&plan)? };
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
    options: &'a BloomJoinOptions,
    config: &'a ConfigOptions,
    reductions: Vec<Reduction>,
}

impl Planner<'_> {
    /// The join with a filter on one of its sides, or `None` if there is a reason against it.
    fn with_filter(&self, plan: &Plan) -> Result<Option<Plan>> {
        let Some((join_type, left, right)) = sides(plan) else { return Ok(None) };
        let broadcasts = plan.is::<HashJoinExec>() || is_adaptive(self.config);
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
            match self.plan_filter(build, probed, broadcasts)? {
                Ok(probe) => {
                    let children = if Arc::ptr_eq(&probed.plan, &left.plan) {
                        vec![probe, right.plan.clone()]
                    } else {
                        vec![left.plan.clone(), probe]
                    };
                    let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
                    return plan.clone().replace_children(children, options).map(Some);
                }
                Err(reason) => log::debug!(
                    "no filter for {join_type} join by {:?}: {reason}",
                    probed.columns.iter().map(Column::name).collect::<Vec<_>>()
                ),
            }
        }
        Ok(None)
    }

    /// The table with a filter of the smallest table that reduces it. Only tables are considered
    /// that are smaller and of which something drops rows.
    fn reduced(&self, table: &Side, hops: usize) -> Result<Option<Side>> {
        if hops == 0 || filters_within(&table.plan) > 0 {
            return Ok(None);
        }
        let rows = |plan: &Plan| work(plan, self.config).map(|work| work.rows);
        let Some(most) = rows(&table.plan) else { return Ok(None) };
        let by = self.reductions.iter().filter(|r| Arc::ptr_eq(&r.table, &table.plan));
        let smaller = by.filter_map(|r| Some((rows(&r.by.plan).filter(|rows| *rows < most)?, r)));
        let mut smaller: Vec<_> = smaller.collect();
        smaller.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (_, reduction) in smaller {
            let by = match self.reduced(&reduction.by, hops - 1)? {
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
            let Ok((size, transport)) = size(&by, None, self.options, self.config) else {
                continue;
            };
            let filter = filter_plan(&by, size, transport.merged, self.config)?;
            let (input, columns) = (table.plan.clone(), reduction.columns.clone());
            let probe = BloomProbeExec::try_new(input, filter, columns, self.options.stop_above)?;
            return Ok(Some(Side { plan: Arc::new(probe), ..table.clone() }));
        }
        Ok(None)
    }

    /// The probed side with its filter, or why there is none.
    fn plan_filter(
        &self,
        build: &Side,
        probed: &Side,
        broadcasts: bool,
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
        if broadcasts && !options.despite_broadcast && is_likely_broadcast(build.estimate, config) {
            return Ok(Err(format!(
                "the build side is likely to be broadcast: {:?}",
                build.estimate
            )));
        }
        if has_window(&probed.plan) {
            return Ok(Err("window functions are computed in the probed side".into()));
        }
        // The table that the keys come from has all of them, and costs least to read again. If
        // nothing drops rows there, the whole side is read again.
        let table = build.table();
        let is_whole = Arc::ptr_eq(&table.plan, &build.plan);
        let mut candidates: Vec<Side> = self.reduced(&table, MOST_HOPS)?.into_iter().collect();
        candidates.push(table);
        if !is_whole {
            candidates.push(build.clone());
        }
        let mut reasons = Vec::new();
        for build in &candidates {
            match self.plan_filter_of(build, probed)? {
                Ok(probe) => return Ok(Ok(probe)),
                Err(reason) => reasons.push(reason),
            }
        }
        Ok(Err(reasons.join("; of more keys: ")))
    }

    /// The probed side with a filter of the keys in this plan, or why there is none.
    fn plan_filter_of(&self, build: &Side, probed: &Side) -> Result<Result<Plan, String>> {
        let (options, config) = (self.options, self.config);
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
        let columns = probed.indices();
        let point = lowest(&probed.plan, &columns);
        let balance = Balance::of(&build.plan, &point, &probed.plan, config);
        let limit = match (options.enabled, &balance) {
            (Enabled::Auto, Err(reason)) => return Ok(Err(reason.clone())),
            (Enabled::Auto, Ok(balance)) => {
                // No filter moves less.
                let least = transport(0, 0, 1, false);
                if !balance.allows(options.max_cost, least) {
                    let figures = balance.text(least);
                    return Ok(Err(format!(
                        "{figures} (bloom_join.max_cost {})",
                        options.max_cost
                    )));
                }
                Some(balance)
            }
            _ => None,
        };
        let (size, transport) = match size(build, limit, options, config) {
            Ok(size) => size,
            Err(reason) => return Ok(Err(reason)),
        };
        let decision = balance.map_or_else(|reason| reason, |balance| balance.text(transport));
        log::debug!("a filter by {:?}: {decision}", probed.columns);
        let filter = filter_plan(build, size, transport.merged, config)?;
        let probe = BloomProbeExec::try_new(point.plan, filter, point.columns, options.stop_above)?;
        let probe = Arc::new(probe.with_decision(decision));
        with_lowest(&probed.plan, &columns, probe).map(Ok)
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

/// Whether tasks run in processes of their own, with a network between.
fn is_cluster(config: &ConfigOptions) -> bool {
    #[cfg(feature = "ballista")]
    if config.extensions.get::<ballista_core::config::BallistaConfig>().is_some() {
        return true;
    }
    #[cfg(feature = "distributed")]
    if config.extensions.get::<datafusion_distributed::DistributedConfig>().is_some() {
        return true;
    }
    _ = config;
    false
}

/// Whether Ballista chooses the kind of join while the query runs. If not, a sort-merge join stays
/// one, and shuffles both sides.
fn is_adaptive(config: &ConfigOptions) -> bool {
    #[cfg(feature = "ballista")]
    if let Some(ballista) = config.extensions.get::<ballista_core::config::BallistaConfig>() {
        return ballista.adaptive_query_planner_enabled() && ballista.adaptive_join_enabled();
    }
    _ = config;
    false
}

/// The most bytes of a filter in Ballista, whose messages hold 16 MiB.
#[cfg(feature = "ballista")]
const MOST_BYTES_IN_BALLISTA: u64 = 12 << 20;

/// The lowest false-positive rate that a filter of any number of keys can have.
const LOWEST_RATE: f64 = 2e-9;

/// What the filter is sized for, and how it is moved, or why it would be too large or too full.
fn size(
    build: &Side,
    limit: Option<&Balance>,
    options: &BloomJoinOptions,
    config: &ConfigOptions,
) -> Result<(Size, Transport), String> {
    let rate = options.false_positive_rate;
    if rate > 0.0 && rate < LOWEST_RATE {
        return Err(format!(
            "a false-positive rate of {rate} is out of reach (bloom_join.false_positive_rate)"
        ));
    }
    let tasks = config.execution.target_partitions.max(1) as u64;
    let most_bytes = options.max_filter_bytes;
    #[cfg(feature = "ballista")]
    let most_bytes =
        if is_cluster(config) { most_bytes.min(MOST_BYTES_IN_BALLISTA) } else { most_bytes };
    let keys = most_keys(&build.plan).map_or(options.default_keys, |keys| keys as u64).max(1);
    // In one process the tasks share one filter, which is merged once.
    let moved = |bytes| transport(bytes, keys, tasks, is_cluster(config));
    let fits = |bytes| {
        bytes <= most_bytes
            && moved(bytes).bytes <= options.max_bytes_read
            && limit.is_none_or(|balance| balance.allows(options.max_cost, moved(bytes)))
    };
    let bytes = |size: Size| size.params().map(|params| params.stored_bytes());
    let size = Size { expected_keys: keys, rate };
    match bytes(size) {
        Ok(bytes) if fits(bytes) => return Ok((size, moved(bytes))),
        Err(error) if !(rate > 0.0 && rate < 1.0) => return Err(error.to_string()),
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
/// which only the keys are taken. If one task merges partial filters, a build side without rows
/// gives no row.
fn filter_plan(build: &Side, size: Size, merged: bool, config: &ConfigOptions) -> Result<Plan> {
    let key = |(number, column): (usize, &Column)| {
        let expression: Arc<dyn PhysicalExpr> = Arc::new(column.clone());
        (expression, format!("key{number}"))
    };
    let mut keys: Vec<_> = build.columns.iter().enumerate().map(key).collect();
    let count = keys.len();
    if merged {
        let all: Arc<dyn PhysicalExpr> = Arc::new(Literal::new(ScalarValue::Int64(Some(0))));
        keys.push((all, "all".into()));
    }
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
    let step = |mode, groups, input: Plan| -> Result<Plan> {
        let groups = PhysicalGroupBy::new_single(groups);
        let (aggregate, schema) = (aggregate.clone(), schema.clone());
        Ok(Arc::new(AggregateExec::try_new(mode, groups, aggregate, vec![None], input, schema)?))
    };
    if merged {
        // All keys are one group, so that the shuffle of a group-by brings the partial filters of
        // all partitions to one task.
        let all =
            |at| vec![(Arc::new(Column::new("all", at)) as Arc<dyn PhysicalExpr>, "all".into())];
        let partial = step(AggregateMode::Partial, all(count), keys)?;
        let merged = step(AggregateMode::FinalPartitioned, all(0), partial)?;
        let filter: Arc<dyn PhysicalExpr> = Arc::new(Column::new("bloom_filter", 1));
        let filter = vec![(filter, "bloom_filter".to_string())];
        let filter = ProjectionExec::try_new(filter, merged)?;
        return Ok(Arc::new(CoalescePartitionsExec::new(Arc::new(filter))));
    }
    let partial = step(AggregateMode::Partial, vec![], keys)?;
    step(AggregateMode::Final, vec![], Arc::new(CoalescePartitionsExec::new(partial)))
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

    #[test]
    fn filters_keep_to_their_limits() {
        let options = BloomJoinOptions { max_filter_bytes: 1 << 30, ..Default::default() };
        let mut config = ConfigOptions::new();
        config.execution.target_partitions = 2;
        let bytes = |rows, config: &ConfigOptions| {
            let (size, _) = size(&side(rows), None, &options, config)?;
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
            assert!(in_a_cluster <= MOST_BYTES_IN_BALLISTA, "{in_a_cluster}");
            assert!(in_a_cluster > MOST_BYTES_IN_BALLISTA / 10 * 9, "{in_a_cluster}");
            assert!(bytes(Precision::Inexact(100_000_000), &config).is_err());
            // One task merges them, and the others read one filter each.
            config.execution.target_partitions = 256;
            assert!(bytes(Precision::Inexact(700_000), &config).is_ok());
        }
    }
}
