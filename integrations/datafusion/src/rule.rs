//! [`BloomJoinRule`]: the optimizer rule that puts filters before shuffles.

use std::sync::{Arc, Mutex, PoisonError};

use datafusion::common::Result;
use datafusion::config::ConfigOptions;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;

use crate::broadcast::{BroadcastKind, broadcast_kind, predict};
use crate::build_side::{filter_depth, has_window, is_selective, obstacle_to_repeating};
use crate::columns::{ProbePoint, find_probe_point, present, remaining};
use crate::cost::{Balance, Saved, Tasks, rows_at, work};
use crate::engine::Engine;
use crate::filter::Size;
use crate::filter_plan::{filter_plan, size};
use crate::operators::{droppable_sides, is_scan, with_children};
use crate::options::{BloomJoinOptions, Enabled};
use crate::planning::Planning;
use crate::probe::BloomProbeExec;
use crate::sides::{Reduction, Side, has_same_keys, join_sides, reductions};

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
        if filter_depth(&plan) > 0 {
            self.explain("the plan has its filters already".into());
            return Ok(plan);
        }
        let planning = Planning::new(config);
        let reductions = reductions(&plan, &planning)?;
        let mut planner =
            Planner { rule: self, options: &options, planning: &planning, reductions, plan };
        planner.add_filters();
        Ok(planner.plan)
    }

    fn name(&self) -> &str {
        RULE_NAME
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Maximum length of a chain of filters in a build side. Each filter reduces the keys of the next.
const MAX_CHAIN: usize = 2;

/// The path from the root of a plan to an operator: the number of an input for each step.
type Path = Vec<usize>;

/// A side of a join that may get a filter.
struct Candidate {
    join: Path,
    /// The input of the join whose rows a filter would drop.
    side: usize,
    /// 0 for the side of a join that is tried first, 1 for the other side.
    preference: usize,
    /// The operator above which the filter would be.
    point: Path,
}

/// A run of the rule.
struct Planner<'a> {
    rule: &'a BloomJoinRule,
    options: &'a BloomJoinOptions,
    planning: &'a Planning<'a>,
    reductions: Vec<Reduction>,
    /// The plan with the filters that have been decided.
    plan: Plan,
}

impl Planner<'_> {
    /// Adds filters to the preferred side of each join, then to the other side of joins without a
    /// filter.
    ///
    /// All joins that can drop the rows of one table are compared, whatever their order in the
    /// query.
    fn add_filters(&mut self) {
        let mut open = Vec::new();
        self.find_candidates(&mut Vec::new(), &mut open);
        open.sort_by_key(|candidate| candidate.preference);
        while let Some(Candidate { preference, point, .. }) = open.first() {
            let (preference, point) = (*preference, point.clone());
            let (table, others) = open
                .into_iter()
                .partition(|other| (other.preference, &other.point) == (preference, &point));
            open = others;
            self.filter_table(table, &mut open);
        }
    }

    /// Appends the candidates of all joins, those of build sides first. A build side gets its
    /// filters before its keys become a filter.
    fn find_candidates(&self, path: &mut Path, found: &mut Vec<Candidate>) {
        let plan = node(&self.plan, path);
        let mut sides = Vec::new();
        if let Some((join_type, left, right)) = join_sides(plan, self.planning) {
            let (drop_left, drop_right) = droppable_sides(join_type);
            for (side, probed, can_drop) in [(1, right, drop_right), (0, left, drop_left)] {
                if can_drop {
                    let point = find_probe_point(&probed.plan, &probed.indices(), self.planning);
                    let rows = rows_at(&point, self.planning).unwrap_or(0.0);
                    sides.push((rows, side, point_path(path, side, &point)));
                }
            }
        }
        // The side with more rows to probe is preferred. If they are unknown, this is the right
        // side, with which hash joins probe.
        sides.sort_by(|(a, ..), (b, ..)| b.total_cmp(a));
        let mut inputs: Vec<usize> = (0..plan.children().len()).collect();
        inputs.sort_by_key(|input| sides.first().is_some_and(|(_, probed, _)| probed == input));
        for input in inputs {
            path.push(input);
            self.find_candidates(path, found);
            path.pop();
        }
        let sides = sides.into_iter().enumerate();
        found.extend(sides.map(|(preference, (_, side, point))| Candidate {
            join: path.clone(),
            side,
            preference,
            point,
        }));
    }

    /// Adds filters to one table, in descending order of their benefit, as long as each pays.
    /// Removes their joins from `open`, and corrects its paths.
    fn filter_table(&mut self, table: Vec<Candidate>, open: &mut Vec<Candidate>) {
        // Each filter lowers the benefit of the others, so a candidate is planned again only when
        // no other one had a greater benefit.
        let mut ranked: Vec<_> = table.into_iter().map(|other| (f64::INFINITY, other)).collect();
        // The table's path, and the table with the filters so far. They are put into the plan
        // together: each change of the plan creates all operators above the table again.
        let (mut filtered, mut decisions) = (None::<(Path, Plan)>, Vec::new());
        while !ranked.is_empty() {
            ranked.sort_by(|(a, _), (b, _)| b.total_cmp(a));
            let (_, best) = ranked.remove(0);
            let (point, filter) = match self.plan_filter(&best, filtered.as_ref()) {
                Ok((_, filter)) if ranked.iter().any(|(other, _)| *other > filter.benefit) => {
                    ranked.push((filter.benefit, best));
                    continue;
                }
                Ok(planned) => planned,
                Err(Refusal(reason)) => {
                    self.rule.explain(reason);
                    continue;
                }
            };
            let path = point_path(&best.join, best.side, &point);
            let schema = point.plan.schema();
            let names: Vec<_> = point.columns.iter().map(|&c| schema.field(c).name()).collect();
            let decision = format!("a filter by {names:?}: {}", filter.decision);
            let stop_above = self.options.stop_above;
            match filter.probe(point.plan, point.columns, stop_above, self.planning) {
                Ok(probe) => {
                    filtered = Some((path, probe));
                    decisions.push(decision);
                    open.retain(|other| other.join != best.join);
                }
                Err(Refusal(reason)) => self.rule.explain(format!("no filter: {reason}")),
            }
        }
        let Some((path, table)) = filtered else { return };
        match replace(&self.plan, &path, table) {
            Ok(plan) => {
                self.plan = plan;
                for decision in decisions {
                    log::debug!("{decision}");
                    for other in &mut *open {
                        move_down(&mut other.join, &path);
                        move_down(&mut other.point, &path);
                    }
                }
            }
            Err(error) => self.rule.explain(format!("no filters of a table: {error}")),
        }
    }

    /// Plans the filter of a candidate, or returns the reason against it. `filtered` is its table
    /// with the filters that the plan does not contain yet.
    fn plan_filter(
        &self,
        candidate: &Candidate,
        filtered: Option<&(Path, Plan)>,
    ) -> Result<(ProbePoint, PlannedFilter), Refusal> {
        let join = node(&self.plan, &candidate.join);
        let Some((join_type, left, right)) = join_sides(join, self.planning) else {
            return Err("the join has changed".into());
        };
        let broadcast = match broadcast_kind(join, self.planning) {
            BroadcastKind::Expected if self.options.despite_broadcast => BroadcastKind::Unlikely,
            kind => kind,
        };
        let (build, probed) = if candidate.side == 0 { (right, left) } else { (left, right) };
        let mut point = find_probe_point(&probed.plan, &probed.indices(), self.planning);
        if let Some((_, table)) = filtered {
            point.returned = remaining(table, self.planning);
            point.plan = table.clone();
        }
        self.plan_filter_at(point, &build, &probed, broadcast).map_err(|Refusal(reason)| {
            let columns: Vec<_> = probed.columns.iter().map(Column::name).collect();
            Refusal(format!("no filter for {join_type} join by {columns:?}: {reason}"))
        })
    }

    /// Adds a filter to a table, with the keys of the smallest table that reduces it. Candidates
    /// are smaller tables with a predicate. Reducing those by other tables first changed no plan of
    /// TPC-DS, the Star Schema Benchmark, and a snowflake. The filter must pay: its cost is
    /// compared with the part of the saving that the table's keys leave.
    fn reduce_table(&self, table: &Side, saved: Option<Saved>) -> Option<Side> {
        if filter_depth(&table.plan) > 0 {
            return None;
        }
        let (options, planning) = (self.options, self.planning);
        let rows = |plan: &Plan| work(plan, planning).map(|work| work.rows);
        let most = rows(&table.plan)?;
        let by = self.reductions.iter().filter(|r| Arc::ptr_eq(&r.table, &table.plan));
        let smaller =
            by.filter_map(|r| Some((rows(&r.reducer.plan).filter(|rows| *rows < most)?, r)));
        let mut smaller: Vec<_> = smaller.collect();
        smaller.sort_by(|a, b| a.0.total_cmp(&b.0));
        let kept = predict(&table.plan, planning).map_or(1.0, |predicted| predicted.selectivity);
        let saved = saved.map(|saved| saved.scale(kept));
        for (_, reduction) in smaller {
            let by = &reduction.reducer;
            let schema = table.plan.schema();
            let column = |&index: &usize| Column::new(schema.field(index).name(), index);
            let columns = reduction.columns.iter().map(column).collect();
            let reduced = Side { columns, ..table.clone() };
            if !is_selective(&by.plan)
                || !has_same_keys(by, &reduced)
                || !matches!(obstacle_to_repeating(&by.plan), Ok(None))
            {
                continue;
            }
            let balance = match saved {
                Some(saved) => Balance::estimate(&by.plan, Some(most), saved, planning),
                None => Err("the number of rows of the probed side is unknown".into()),
            };
            let tasks = Tasks::count(&by.plan, &table.plan, planning.config);
            let (input, columns) = (table.plan.clone(), reduction.columns.clone());
            let filter = self.plan_affordable_filter(by, tasks, balance, 1.0);
            let probe =
                |filter: PlannedFilter| filter.probe(input, columns, options.stop_above, planning);
            match filter.and_then(probe) {
                Ok(plan) => return Some(Side { plan, ..table.clone() }),
                Err(Refusal(reason)) => self.rule.explain(format!(
                    "no filter of the keys by {:?}: {reason}",
                    by.columns.iter().map(Column::name).collect::<Vec<_>>()
                )),
            }
        }
        None
    }

    /// Plans a filter of the keys in `build` for the rows of `probed`, or returns the reason
    /// against it.
    fn plan_filter_at(
        &self,
        point: ProbePoint,
        build: &Side,
        probed: &Side,
        broadcast: BroadcastKind,
    ) -> Result<(ProbePoint, PlannedFilter), Refusal> {
        let (options, planning) = (self.options, self.planning);
        if let Some(rows) = rows_at(&point, planning) {
            let least = options.min_probe_rows;
            if rows < least as f64 {
                let reason = format!("{rows:.0} rows to probe (bloom_join.min_probe_rows {least})");
                return Err(reason.into());
            }
            // The engine's estimates of predicates are wrong by orders of magnitude.
            let keys = match is_scan(&build.plan) {
                true => predict(&build.plan, planning).map(|keys| keys.rows * keys.selectivity),
                false => build.estimate.rows.map(|keys| keys as f64),
            };
            if let Some(keys) = keys.filter(|&keys| rows < keys) {
                let reason =
                    format!("{rows:.0} rows to probe, fewer than the {keys:.0} of the build side");
                return Err(reason.into());
            }
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
        let saved = Saved::estimate(&point, &probed.plan, broadcast, planning);
        // The table that the keys come from has all of them and is the cheapest to read again. If
        // nothing drops rows there, the whole side is read again.
        let table = build.table(planning);
        let is_whole = Arc::ptr_eq(&table.plan, &build.plan);
        let reduced = self.reduce_table(&table, saved.as_ref().ok().copied());
        let mut candidates: Vec<Side> = reduced.into_iter().collect();
        candidates.push(table);
        if !is_whole {
            candidates.push(build.clone());
        }
        let (mut best, mut reasons) = (None::<PlannedFilter>, Vec::new());
        for build in &candidates {
            match self.plan_filter_of(build, probed, &point, &saved) {
                Ok(filter) if best.as_ref().is_none_or(|best| filter.total < best.total) => {
                    best = Some(filter);
                }
                Ok(_) => {}
                Err(Refusal(reason)) => reasons.push(reason),
            }
        }
        let best = best.ok_or_else(|| reasons.join("; with more keys: "))?;
        Ok((point, best))
    }

    /// Plans a filter with the keys of `build` for the rows of `point`, or returns the reason
    /// against it.
    fn plan_filter_of(
        &self,
        build: &Side,
        probed: &Side,
        point: &ProbePoint,
        saved: &Result<Saved, String>,
    ) -> Result<PlannedFilter, Refusal> {
        let present = present(&point.plan, &point.columns, self.planning);
        if !is_selective(&build.plan) && present >= self.stop_reading_above() {
            return Err("nothing drops rows of the build side".into());
        }
        if filter_depth(&build.plan) > MAX_CHAIN {
            return Err("the build side contains a chain of more than two filters".into());
        }
        if let Some(reason) = obstacle_to_repeating(&build.plan)? {
            return Err(reason.into());
        }
        if !has_same_keys(build, probed) {
            return Err("the sides have keys of different types".into());
        }
        let planning = self.planning;
        let balance = saved.clone();
        let balance =
            balance.and_then(|saved| Balance::estimate(&build.plan, None, saved, planning));
        let tasks = Tasks::count(&build.plan, &point.plan, planning.config);
        self.plan_affordable_filter(build, tasks, balance, present)
    }

    /// Returns the share of remaining rows above which a filter is useless.
    fn stop_reading_above(&self) -> f64 {
        let BloomJoinOptions { enabled, max_cost, stop_above, .. } = *self.options;
        match enabled {
            // With more rows, the filter would save less than it may cost.
            Enabled::Auto => stop_above.min((1.0 - max_cost).max(0.5)),
            Enabled::True | Enabled::False => stop_above,
        }
    }

    /// Plans a filter with the keys of `build` if its balance allows it, or returns the reason
    /// against it. `present` is the share of probed rows without a NULL in the key.
    fn plan_affordable_filter(
        &self,
        build: &Side,
        tasks: Tasks,
        balance: Result<Balance, String>,
        present: f64,
    ) -> Result<PlannedFilter, Refusal> {
        let (options, planning) = (self.options, self.planning);
        let keys = predict(&build.plan, planning).map_or(1.0, |predicted| predicted.selectivity);
        let kept = keys * present;
        let is_auto = options.enabled == Enabled::Auto;
        let limit = match &balance {
            Err(reason) if is_auto => return Err(reason.clone().into()),
            Ok(balance) if is_auto => {
                // No transport costs less.
                let least = tasks.transport(0, 0);
                if !balance.allows(options.max_cost, least) {
                    let figures = balance.describe(least);
                    let reason = format!("{figures} (bloom_join.max_cost {})", options.max_cost);
                    return Err(reason.into());
                }
                if kept > options.stop_above {
                    let reason = format!(
                        "about {kept:.2} of the keys remain after predicates \
                         (bloom_join.stop_above {})",
                        options.stop_above
                    );
                    return Err(reason.into());
                }
                Some(balance)
            }
            _ => None,
        };
        let (size, transport) = size(build, tasks, limit, options, planning)?;
        let (total, benefit) = balance.as_ref().map_or((f64::INFINITY, f64::NEG_INFINITY), |b| {
            (b.total(transport, kept), b.benefit(transport, kept))
        });
        let decision = balance.map_or_else(|reason| reason, |balance| balance.describe(transport));
        if is_auto && options.max_cost < 1.0 && benefit <= 0.0 {
            return Err(format!("{decision}, and about {kept:.2} of the keys remain").into());
        }
        // If joins or other filters drop keys, a sample of the scan means nothing.
        let samples = is_scan(&build.plan) && filter_depth(&build.plan) == 0;
        // Rows with a NULL are dropped even if all keys remain.
        let stop_above = self.stop_reading_above() / present;
        let stop_above = (samples && stop_above < 1.0).then_some(stop_above);
        let (build, merged) = (build.clone(), transport.merged);
        Ok(PlannedFilter { build, size, merged, stop_above, decision, total, benefit })
    }
}

/// Returns the operator at the end of a path.
fn node<'a>(plan: &'a Plan, path: &[usize]) -> &'a Plan {
    path.iter().fold(plan, |plan, &input| plan.children()[input])
}

/// Returns the plan with another operator at the end of a path.
fn replace(plan: &Plan, path: &[usize], operator: Plan) -> Result<Plan> {
    let Some((&input, rest)) = path.split_first() else { return Ok(operator) };
    let mut children: Vec<Plan> = plan.children().into_iter().cloned().collect();
    children[input] = replace(&children[input], rest, operator)?;
    with_children(plan.clone(), children)
}

/// Returns the path of a [`ProbePoint`] in a side of a join.
fn point_path(join: &[usize], side: usize, point: &ProbePoint) -> Path {
    let below = point.path.iter().map(|(_, input)| *input);
    join.iter().copied().chain([side]).chain(below).collect()
}

/// Corrects a path after a filter was put above the operator at `inserted`.
fn move_down(path: &mut Path, inserted: &[usize]) {
    if path.starts_with(inserted) {
        path.insert(inserted.len(), 0);
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
    build: Side,
    size: Size,
    /// Whether one task merges the partial filters.
    merged: bool,
    /// The share of keys above which a task stops reading the build side.
    stop_above: Option<f64>,
    /// The cost and saving, for `EXPLAIN`.
    decision: String,
    /// CPU time of the query with this filter; see [`Balance::total`].
    total: f64,
    /// CPU time that the filter saves; see [`Balance::benefit`].
    benefit: f64,
}

impl PlannedFilter {
    fn probe(
        self,
        input: Plan,
        columns: Vec<usize>,
        stop_probing: f64,
        planning: &Planning,
    ) -> Result<Plan, Refusal> {
        let PlannedFilter { build, size, merged, stop_above, decision, .. } = self;
        let filter = filter_plan(&build, size, merged, stop_above, planning.config)?;
        let probe = BloomProbeExec::try_new(input, filter, columns, stop_probing)?;
        Ok(Arc::new(probe.with_decision(decision)))
    }
}
