//! [`BloomJoinRule`]: the optimizer rule that puts filters before shuffles.

use std::sync::{Arc, Mutex, PoisonError};

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;

use crate::broadcast::{BroadcastKind, broadcast_kind, predict};
use crate::build_side::{filters_within, has_window, is_selective, obstacle_to_repeating};
use crate::columns::{ProbePoint, find_probe_point, with_probe};
use crate::cost::{Balance, Saved, Tasks, work};
use crate::engine::Engine;
use crate::filter_plan::{filter_plan, size};
use crate::operators::{is_scan, with_children};
use crate::options::{BloomJoinOptions, Enabled};
use crate::probe::BloomProbeExec;
use crate::sides::{Reduction, Side, droppable_sides, has_same_keys, join_sides, reductions};

type Plan = Arc<dyn ExecutionPlan>;

/// Name of the rule among a session's physical optimizer rules.
pub const RULE_NAME: &str = "bloom_join";

/// Puts a [`BloomProbeExec`] on a side of a join, so that rows without a partner are dropped before
/// they are shuffled.
///
/// The filtered side is either side of an inner or semi join, and the side of a left or right join
/// whose rows need a partner. The rule leaves other joins alone: full, anti and mark joins, joins
/// where NULL equals NULL, and null-aware joins.
///
/// The keys of the other side become the filter. That side must drop rows itself and return the
/// same rows when it runs again. The filter must stay within its limits, the probed side must be
/// large, and the engine must not be expected to broadcast a side. [`BloomJoinOptions`] has the
/// settings. The reasons why a join gets no filter are logged at level `debug`, and a
/// [`BloomQueryPlanner`](crate::BloomQueryPlanner) adds them to `EXPLAIN VERBOSE`.
///
/// The rule must run before the engine's rules, which move predicates into scans and split
/// shuffles. [`with_bloom_filters`] registers it there.
///
/// [`with_bloom_filters`]: crate::with_bloom_filters
#[derive(Debug, Default)]
pub struct BloomJoinRule {
    reasons: Option<Reasons>,
}

/// The reasons why joins got no filter.
pub(crate) type Reasons = Arc<Mutex<Vec<String>>>;

impl BloomJoinRule {
    /// Creates a rule that also appends to `reasons`.
    pub(crate) fn with_reasons(reasons: Reasons) -> Self {
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
        let options = BloomJoinOptions::from_config(config);
        options.check()?;
        match options.enabled {
            Enabled::False => {
                self.explain("no filters (bloom_join.enabled = false)".into());
                return Ok(plan);
            }
            Enabled::Auto if !Engine::from_config(config).is_cluster() => {
                self.explain("no filters in one process (bloom_join.enabled = auto)".into());
                return Ok(plan);
            }
            Enabled::Auto | Enabled::True => {}
        }
        let reductions = reductions(&plan)?;
        let planner = Planner { rule: self, options: &options, config, reductions };
        plan.transform_up(|plan| match planner.add_filter(&plan)? {
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

/// Maximum length of a chain of tables in which each reduces the next. This is predicate transfer
/// in at most two passes.
const MAX_HOPS: usize = 2;

/// The inputs of the rule's decisions.
struct Planner<'a> {
    rule: &'a BloomJoinRule,
    options: &'a BloomJoinOptions,
    config: &'a ConfigOptions,
    reductions: Vec<Reduction>,
}

impl Planner<'_> {
    /// Adds a filter to one side of a join. Returns `None` if there is a reason against it.
    fn add_filter(&self, plan: &Plan) -> Result<Option<Plan>> {
        let Some((join_type, left, right)) = join_sides(plan) else { return Ok(None) };
        let broadcast = match broadcast_kind(plan, self.config) {
            BroadcastKind::Expected if self.options.despite_broadcast => BroadcastKind::Unlikely,
            kind => kind,
        };
        let (drop_left, drop_right) = droppable_sides(join_type);
        let mut directions = Vec::new();
        if drop_right {
            directions.push((&left, &right));
        }
        if drop_left {
            directions.push((&right, &left));
        }
        // The larger side is tried first. If the rows are unknown, this is the right side, with
        // which hash joins probe.
        directions.sort_by_key(|(_, probed)| std::cmp::Reverse(probed.estimate.rows));
        for (build, probed) in directions {
            match self.plan_filter(build, probed, broadcast) {
                Ok(probe) => {
                    let children = if Arc::ptr_eq(&probed.plan, &left.plan) {
                        vec![probe, right.plan.clone()]
                    } else {
                        vec![left.plan.clone(), probe]
                    };
                    return with_children(plan.clone(), children).map(Some);
                }
                Err(Refusal(reason)) => self.rule.explain(format!(
                    "no filter for {join_type} join by {:?}: {reason}",
                    probed.columns.iter().map(Column::name).collect::<Vec<_>>()
                )),
            }
        }
        Ok(None)
    }

    /// Adds a filter to a table, with the keys of the smallest table that reduces it. Candidates
    /// are smaller tables with a predicate or filter. The filter must pay for itself: its cost is
    /// compared with the part of the saving that the table's keys leave.
    fn reduce_table(&self, table: &Side, hops: usize, saved: Option<Saved>) -> Option<Side> {
        if hops == 0 || filters_within(&table.plan) > 0 {
            return None;
        }
        let (options, config) = (self.options, self.config);
        let rows = |plan: &Plan| work(plan, config).map(|work| work.rows);
        let most = rows(&table.plan)?;
        let by = self.reductions.iter().filter(|r| Arc::ptr_eq(&r.table, &table.plan));
        let smaller =
            by.filter_map(|r| Some((rows(&r.reducer.plan).filter(|rows| *rows < most)?, r)));
        let mut smaller: Vec<_> = smaller.collect();
        smaller.sort_by(|a, b| a.0.total_cmp(&b.0));
        let kept = predict(&table.plan).map_or(1.0, |predicted| predicted.selectivity);
        let saved = saved.map(|saved| saved.scale(kept));
        for (_, reduction) in smaller {
            let by = match self.reduce_table(&reduction.reducer, hops - 1, saved) {
                Some(by) => by,
                None if is_selective(&reduction.reducer.plan) => reduction.reducer.clone(),
                None => continue,
            };
            let schema = table.plan.schema();
            let column = |&index: &usize| Column::new(schema.field(index).name(), index);
            let columns = reduction.columns.iter().map(column).collect();
            let reduced = Side { columns, ..table.clone() };
            if !has_same_keys(&by, &reduced) || !matches!(obstacle_to_repeating(&by.plan), Ok(None))
            {
                continue;
            }
            let balance = match saved {
                Some(saved) => Balance::estimate(&by.plan, Some(most), saved, config),
                None => Err("the number of rows of the probed side is unknown".into()),
            };
            let tasks = Tasks::count(&by.plan, &table.plan, config);
            let (input, columns) = (table.plan.clone(), reduction.columns.clone());
            let filter = self.plan_affordable_filter(&by, tasks, balance);
            match filter.and_then(|filter| filter.probe(input, columns, options.stop_above)) {
                Ok(plan) => return Some(Side { plan, ..table.clone() }),
                Err(Refusal(reason)) => self.rule.explain(format!(
                    "no filter of the keys by {:?}: {reason}",
                    by.columns.iter().map(Column::name).collect::<Vec<_>>()
                )),
            }
        }
        None
    }

    /// Returns the probed side with its filter, or the reason against one.
    fn plan_filter(
        &self,
        build: &Side,
        probed: &Side,
        broadcast: BroadcastKind,
    ) -> Result<Plan, Refusal> {
        let (options, config) = (self.options, self.config);
        if let (Some(rows), least) = (probed.estimate.rows, options.min_probe_rows)
            && (rows as u64) < least
        {
            return Err(format!("{rows} rows to probe (bloom_join.min_probe_rows {least})").into());
        }
        if let (Some(rows), Some(keys)) = (probed.estimate.rows, build.estimate.rows)
            && rows < keys
        {
            let reason = format!("{rows} rows to probe, fewer than the {keys} of the build side");
            return Err(reason.into());
        }
        if broadcast == BroadcastKind::Expected {
            let reason = format!(
                "a side is likely to be broadcast: {:?} and {:?}",
                build.estimate, probed.estimate
            );
            return Err(reason.into());
        }
        if has_window(&probed.plan) {
            return Err("the probed side contains a window function".into());
        }
        let columns = probed.indices();
        let point = find_probe_point(&probed.plan, &columns);
        let saved = Saved::estimate(&point, &probed.plan, broadcast, config);
        // The table that the keys come from has all of them and is the cheapest to read again. If
        // nothing drops rows there, the whole side is read again.
        let table = build.table();
        let is_whole = Arc::ptr_eq(&table.plan, &build.plan);
        let reduced = self.reduce_table(&table, MAX_HOPS, saved.as_ref().ok().copied());
        let mut candidates: Vec<Side> = reduced.into_iter().collect();
        candidates.push(table);
        if !is_whole {
            candidates.push(build.clone());
        }
        let (mut best, mut reasons) = (None::<PlannedFilter>, Vec::new());
        for build in &candidates {
            match self.plan_filter_of(build, probed, &point.plan, &saved) {
                Ok(filter) if best.as_ref().is_none_or(|best| filter.total < best.total) => {
                    best = Some(filter);
                }
                Ok(_) => {}
                Err(Refusal(reason)) => reasons.push(reason),
            }
        }
        let best = best.ok_or_else(|| reasons.join("; with more keys: "))?;
        log::debug!("a filter by {:?}: {}", probed.columns, best.decision);
        let ProbePoint { plan, columns: key, .. } = point;
        let probe = best.probe(plan, key, options.stop_above)?;
        Ok(with_probe(&probed.plan, &columns, probe)?)
    }

    /// Plans a filter with the keys of `build` for the rows of `point`, or returns the reason
    /// against it.
    fn plan_filter_of(
        &self,
        build: &Side,
        probed: &Side,
        point: &Plan,
        saved: &Result<Saved, String>,
    ) -> Result<PlannedFilter, Refusal> {
        if !is_selective(&build.plan) {
            return Err("nothing drops rows of the build side".into());
        }
        if filters_within(&build.plan) > MAX_HOPS {
            return Err("the build side contains more than two filters".into());
        }
        if let Some(reason) = obstacle_to_repeating(&build.plan)? {
            return Err(reason.into());
        }
        if !has_same_keys(build, probed) {
            return Err("the sides have keys of different types".into());
        }
        let balance = saved.clone();
        let balance =
            balance.and_then(|saved| Balance::estimate(&build.plan, None, saved, self.config));
        self.plan_affordable_filter(build, Tasks::count(&build.plan, point, self.config), balance)
    }

    /// Plans a filter with the keys of `build` if its balance allows it, or returns the reason
    /// against it.
    fn plan_affordable_filter(
        &self,
        build: &Side,
        tasks: Tasks,
        balance: Result<Balance, String>,
    ) -> Result<PlannedFilter, Refusal> {
        let (options, config) = (self.options, self.config);
        let kept = predict(&build.plan).map_or(1.0, |predicted| predicted.selectivity);
        let mut stop_above = options.stop_above;
        let limit = match (options.enabled, &balance) {
            (Enabled::Auto, Err(reason)) => return Err(reason.clone().into()),
            (Enabled::Auto, Ok(balance)) => {
                // No transport costs less.
                let least = tasks.transport(0, 0);
                if !balance.allows(options.max_cost, least) {
                    let figures = balance.describe(least);
                    let reason = format!("{figures} (bloom_join.max_cost {})", options.max_cost);
                    return Err(reason.into());
                }
                if kept > stop_above {
                    let reason = format!(
                        "about {kept:.2} of the keys remain after predicates \
                         (bloom_join.stop_above {stop_above})"
                    );
                    return Err(reason.into());
                }
                // With more keys, the filter would save less than it may cost.
                stop_above = stop_above.min((1.0 - options.max_cost).max(0.5));
                Some(balance)
            }
            _ => None,
        };
        let (size, transport) = size(build, tasks, limit, options, config)?;
        let total = balance.as_ref().map_or(f64::INFINITY, |b| b.total(transport, kept));
        let decision = balance.map_or_else(|reason| reason, |balance| balance.describe(transport));
        // If joins or other filters drop keys, a sample of the scan means nothing.
        let samples = is_scan(&build.plan) && filters_within(&build.plan) == 0;
        let stop_above = (samples && stop_above < 1.0).then_some(stop_above);
        let plan = filter_plan(build, size, transport.merged, stop_above, config)?;
        Ok(PlannedFilter { plan, decision, total })
    }
}

/// The reason against a filter. Errors of the engine are reasons too: the query then runs without
/// the filter.
struct Refusal(String);

impl<T: ToString> From<T> for Refusal {
    fn from(reason: T) -> Self {
        Refusal(reason.to_string())
    }
}

/// A filter that meets all conditions.
struct PlannedFilter {
    plan: Plan,
    /// The cost and saving, for `EXPLAIN`.
    decision: String,
    /// CPU time of the query with this filter; see [`Balance::total`].
    total: f64,
}

impl PlannedFilter {
    fn probe(self, input: Plan, columns: Vec<usize>, stop: f64) -> Result<Plan, Refusal> {
        let probe = BloomProbeExec::try_new(input, self.plan, columns, stop)?;
        Ok(Arc::new(probe.with_decision(self.decision)))
    }
}
