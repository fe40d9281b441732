//! The rule that puts filters before shuffles: [`BloomJoinRule`].

use std::sync::{Arc, Mutex, PoisonError};

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;

use crate::broadcast::{Likely, Meeting, likely, meeting};
use crate::build_side::{filters_within, has_window, is_selective, not_repeatable};
use crate::columns::{Lowest, lowest, with_lowest};
use crate::cost::{Balance, Saved, Tasks, work};
use crate::engine::Engine;
use crate::filter_plan::{filter_plan, size};
use crate::operators::{is_scan, with_children};
use crate::options::{BloomJoinOptions, Enabled};
use crate::probe::BloomProbeExec;
use crate::sides::{Reduction, Side, droppable, has_same_keys, reductions, sides};

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
            // A plan that cannot be built is a reason too: the query runs without the filter.
            let planned = self.plan_filter(build, probed, meeting);
            match planned.unwrap_or_else(|error| Err(error.to_string())) {
                Ok(probe) => {
                    let children = if Arc::ptr_eq(&probed.plan, &left.plan) {
                        vec![probe, right.plan.clone()]
                    } else {
                        vec![left.plan.clone(), probe]
                    };
                    return with_children(plan.clone(), children).map(Some);
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
