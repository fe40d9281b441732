//! Runs [`BloomProbeExec`]: opens the filter, and drops rows or lets the scan drop them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};

use blocked_bloom::BloomFilter;
use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::compute::{BatchCoalescer, prep_null_mask_filter};
use datafusion::catalog::memory::DataSourceExec;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, Statistics, exec_err, internal_err};
use datafusion::config::ConfigOptions;
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{Distribution, PhysicalExpr};
use datafusion::physical_plan::execution_plan::CardinalityEffect;
use datafusion::physical_plan::filter_pushdown::{
    ChildFilterDescription, ChildPushdownResult, FilterDescription, FilterPushdownPhase,
    FilterPushdownPropagation,
};
use datafusion::physical_plan::metrics::{
    BaselineMetrics, Count, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet, RecordOutput, Time,
};
use datafusion::physical_plan::statistics::ChildStats;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ExecutionPlan, ExecutionPlanProperties, InputDistributionRequirements, PlanProperties,
    StatisticsArgs,
};
use futures::{FutureExt, StreamExt, TryStreamExt, stream};

use crate::completeness::check_complete;
use crate::filter::{look_up, open_with_ranges};
use crate::gate::{Counts, Gate};
use crate::keys::{KeyType, key_values};
use crate::limits::{has_limit, is_volatile};
use crate::operators::Operator;
use crate::probe::{BloomProbeExec, NAME, Opened, Opening};
use crate::ranges::Ranges;
use crate::scan::{ReducedScan, reduce_scan};

impl BloomProbeExec {
    fn opening(&self, context: Arc<TaskContext>, metrics: &Metrics) -> Opening {
        let mut opening = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || {
            let (plan, key, bytes) = (self.filter.clone(), self.key, metrics.filter_bytes.clone());
            let given_up = metrics.given_up.clone();
            let (input, columns) = (self.input.clone(), self.columns.clone());
            let (gate, counts) = (Gate::new(self.stop_above), metrics.counts.clone());
            let open = async move {
                let session = context.session_config().clone();
                let (filter, ranges) = match collect(plan, context, key, bytes).await {
                    Ok((filter, ranges)) if !filter.is_pass_all() => (filter, ranges),
                    Ok(_) => return Opened::default(),
                    Err(error) => {
                        log::warn!("{NAME}: filter given up, no rows are dropped: {error}");
                        given_up.add(1);
                        return Opened::default();
                    }
                };
                let (probe, config) = ((gate, counts), session.options());
                let ranges = ranges.as_ref();
                let scan = match is_row_wise(&input) {
                    true => reduce_scan(&input, &columns, &filter, ranges, probe, config),
                    false => Ok(None),
                };
                let scan = scan.unwrap_or_else(|error| {
                    log::warn!("{NAME}: the scan drops no rows, the operator does: {error}");
                    None
                });
                Opened { filter: Some(filter), scan, has_row: Arc::default() }
            };
            open.boxed().shared()
        };
        opening.get_or_insert_with(new).clone()
    }
}

/// Runs the filter's plan and opens the filter in its single row.
async fn collect(
    plan: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
    key: KeyType,
    bytes: Count,
) -> Result<(Arc<BloomFilter>, Option<Ranges>)> {
    check_complete(&plan, &context)?;
    let batches: Vec<RecordBatch> = plan.execute(0, context)?.try_collect().await?;
    let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
    let mut filters = batches.iter().flat_map(|batch| batch.column(0).as_binary::<i32>());
    match (filters.next(), rows) {
        (Some(Some(filter)), 1) => {
            bytes.add(filter.len());
            log::debug!("probing with a filter of {} bytes", filter.len());
            let (filter, ranges) = open_with_ranges(filter, key, NAME)?;
            Ok((Arc::new(filter), ranges))
        }
        (Some(None), 1) => exec_err!("{NAME}: the filter is NULL"),
        _ => exec_err!("{NAME}: {rows} filters (must be 1)"),
    }
}

#[derive(Debug)]
struct Metrics {
    baseline: BaselineMetrics,
    counts: Counts,
    filter_bytes: Count,
    filter_time: Time,
    given_up: Count,
}

impl Metrics {
    fn new(set: &ExecutionPlanMetricsSet, partition: usize) -> Self {
        let new = || MetricBuilder::new(set);
        Metrics {
            baseline: BaselineMetrics::new(set, partition),
            counts: Counts {
                input_rows: new().counter("input_rows", partition),
                unprobed_rows: new().counter("unprobed_rows", partition),
                probe_time: new().subset_time("probe_time", partition),
            },
            filter_bytes: new().counter("filter_bytes", partition),
            filter_time: new().subset_time("filter_time", partition),
            given_up: new().counter("given_up", partition),
        }
    }
}

/// The stream of one partition.
struct Probe {
    /// `None` if all rows pass.
    filter: Option<Arc<BloomFilter>>,
    input: SendableRecordBatchStream,
    /// Whether the scan has already probed the rows.
    is_scan_probing: bool,
    columns: Vec<usize>,
    gate: Gate,
    hashes: Vec<u64>,
    /// Collects the remaining rows into batches of the usual size.
    kept: BatchCoalescer,
    /// Whether a row has passed.
    has_row: bool,
    /// Whether a row of any partition has passed.
    any_has_row: Arc<AtomicBool>,
    /// The input without filters, if the scan may have dropped all rows.
    unfiltered: Option<(Arc<dyn ExecutionPlan>, Arc<TaskContext>)>,
    running: Option<Arc<()>>,
    /// Whether `input` is that second run. Then only one row passes, which has no partner.
    needs_one_row: bool,
    ended: bool,
    metrics: Metrics,
}

impl Probe {
    fn push(&mut self, batch: RecordBatch) -> Result<()> {
        let (rows, counts) = (batch.num_rows(), &self.metrics.counts);
        if self.is_scan_probing {
            self.has_row |= rows > 0;
            return Ok(self.kept.push_batch(batch)?);
        }
        counts.input_rows.add(rows);
        let filter = self.filter.as_ref().filter(|_| self.gate.is_open(rows));
        let Some(filter) = filter else {
            self.has_row |= rows > 0;
            counts.unprobed_rows.add(rows);
            return Ok(self.kept.push_batch(batch)?);
        };
        let _timer = counts.probe_time.timer();
        let answers = look_up(filter, &key_values(&batch, &self.columns), &mut self.hashes)?;
        // NULL has no partner.
        let answers =
            if answers.null_count() > 0 { prep_null_mask_filter(&answers) } else { answers };
        let hits = answers.true_count();
        self.gate.probed(rows, hits);
        if !self.has_row && hits == 0 && rows > 0 {
            self.has_row = true;
            return Ok(self.kept.push_batch(batch.slice(0, 1))?);
        }
        self.has_row |= hits > 0;
        Ok(self.kept.push_batch_with_filter(batch, &answers)?)
    }

    /// Passes one row that certainly has no partner. Another one may have passed already.
    fn push_one(&mut self, batch: RecordBatch) -> Result<()> {
        let Some(filter) = &self.filter else { return Ok(()) };
        let answers = look_up(filter, &key_values(&batch, &self.columns), &mut self.hashes)?;
        match answers.iter().position(|answer| answer != Some(true)) {
            Some(row) => {
                self.kept.push_batch(batch.slice(row, 1))?;
                self.end()
            }
            None => Ok(()),
        }
    }

    /// Returns the rows of all partitions without filters, if no row has passed and the other
    /// partitions have ended.
    fn rerun(&mut self) -> Option<SendableRecordBatchStream> {
        let running = Arc::downgrade(&self.running.take()?);
        let (plan, context) = self.unfiltered.take()?;
        // One reference is that of the operator. Of partitions that end at the same time, the last
        // one finds no other.
        if running.strong_count() > 1 || self.any_has_row.load(Ordering::Relaxed) {
            return None;
        }
        let (schema, partitions) = (plan.schema(), plan.output_partitioning().partition_count());
        let execute = move |partition| plan.execute(partition, context.clone());
        let rows = stream::iter(0..partitions).map(execute).try_flatten();
        Some(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }

    fn end(&mut self) -> Result<()> {
        self.ended = true;
        Ok(self.kept.finish_buffered_batch()?)
    }

    async fn next(mut self) -> Result<Option<(RecordBatch, Self)>> {
        loop {
            if let Some(batch) = self.kept.next_completed_batch() {
                let batch = batch.record_output(&self.metrics.baseline);
                return Ok(Some((batch, self)));
            }
            if self.ended {
                return Ok(None);
            }
            match self.input.next().await {
                Some(batch) => {
                    let time = self.metrics.baseline.elapsed_compute().clone();
                    let _timer = time.timer();
                    if !self.needs_one_row {
                        self.push(batch?)?;
                        self.any_has_row.fetch_or(self.has_row, Ordering::Relaxed);
                    } else if let Err(error) = batch.and_then(|batch| self.push_one(batch)) {
                        // The query does not need this row.
                        log::warn!("{NAME}: no row passes: {error}");
                        self.end()?;
                    }
                }
                None => match self.rerun() {
                    Some(input) => (self.input, self.needs_one_row) = (input, true),
                    None => self.end()?,
                },
            }
        }
    }
}

/// Whether rows can be dropped in the scan of a plan as well as above the plan. All operators must
/// compute each row from one row. Neither they nor the scan may stop after some rows, because other
/// rows would then replace the dropped ones.
fn is_row_wise(plan: &Arc<dyn ExecutionPlan>) -> bool {
    if plan.fetch().is_some() || is_volatile(plan).unwrap_or(true) {
        return false;
    }
    if let Some(source) = plan.downcast_ref::<DataSourceExec>() {
        return source.data_source().downcast_ref::<FileScanConfig>().is_some();
    }
    match plan.children().first() {
        Some(input) if Operator::find(plan.as_ref()).is_row_wise => is_row_wise(input),
        _ => false,
    }
}

impl ExecutionPlan for BloomProbeExec {
    fn name(&self) -> &str {
        NAME
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input, &self.filter]
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        InputDistributionRequirements::new(vec![
            Distribution::UnspecifiedDistribution,
            Distribution::SinglePartition,
        ])
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true, false]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false, false]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Ok([input, filter]) = <[_; 2]>::try_from(children) else {
            return internal_err!("{NAME} has two children");
        };
        let (columns, stop_above) = (self.columns.clone(), self.stop_above);
        let probe = BloomProbeExec::try_new(input, filter, columns, stop_above)?;
        Ok(Arc::new(probe.with_decision(self.decision.clone())))
    }

    // An adaptive planner needs statistics of the probed side to swap the sides of a join or to
    // broadcast the smaller one.
    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::At(partition), ChildStats::Skip]
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        _: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        Ok(Arc::new(inputs[0].as_ref().clone().to_inexact()))
    }

    // This method, the next one and the missing `fetch` keep limits above this operator. Below it,
    // a limit would count rows that the operator then drops.
    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::LowerEqual
    }

    fn supports_limit_pushdown(&self) -> bool {
        false
    }

    // Filters from above may move below this operator, which only drops rows. They may not move
    // below a limit, and the engine's scans with a limit do not refuse them. Pushed filters find
    // columns by name, so names must be unique.
    fn gather_filters_for_pushdown(
        &self,
        _: FilterPushdownPhase,
        parent_filters: Vec<Arc<dyn PhysicalExpr>>,
        _: &ConfigOptions,
    ) -> Result<FilterDescription> {
        let none = ChildFilterDescription::all_unsupported(&parent_filters);
        let schema = self.input.schema();
        let mut names: Vec<&String> = schema.fields().iter().map(|field| field.name()).collect();
        names.sort();
        let input = match names.is_sorted_by(|a, b| a < b) && !has_limit(&self.input) {
            true => ChildFilterDescription::from_child(&parent_filters, &self.input)?,
            false => none.clone(),
        };
        Ok(FilterDescription::new().with_child(input).with_child(none))
    }

    fn handle_child_pushdown_result(
        &self,
        _: FilterPushdownPhase,
        result: ChildPushdownResult,
        _: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        Ok(FilterPushdownPropagation::if_any(result))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let metrics = Metrics::new(&self.metrics, partition);
        let batch_size = context.session_config().batch_size();
        // Batches of at least half the usual size pass unchanged.
        let kept = BatchCoalescer::new(self.schema(), batch_size)
            .with_biggest_coalesce_batch_size(Some(batch_size / 2));
        let opening = self.opening(context.clone(), &metrics);
        // The partitions of a join may wait until all of them have started or were dropped. Joins
        // start before the filter is known. A scan starts later, because it may probe by itself.
        let started = match is_row_wise(&self.input) {
            true => None,
            false => Some(self.input.execute(partition, context.clone())?),
        };
        let (plan, columns) = (self.input.clone(), self.columns.clone());
        let (gate, running) = (Gate::new(self.stop_above), Some(self.running.clone()));
        let probe = async move {
            let waited = metrics.filter_time.timer();
            let Opened { filter, scan, has_row: any_has_row } = opening.await;
            waited.done();
            let is_scan_probing = scan.as_ref().is_some_and(|scan| scan.is_probing);
            let (input, unfiltered) = match (started, scan) {
                (Some(input), _) => (input, None),
                (None, None) => (plan.execute(partition, context)?, None),
                (None, Some(ReducedScan { plan, unfiltered, .. })) => {
                    (plan.execute(partition, context.clone())?, Some((unfiltered, context)))
                }
            };
            let (hashes, has_row, needs_one_row, ended) = (Vec::new(), false, false, false);
            let probe = Probe {
                filter,
                input,
                is_scan_probing,
                columns,
                gate,
                hashes,
                kept,
                has_row,
                any_has_row,
                unfiltered,
                running,
                needs_one_row,
                ended,
                metrics,
            };
            Ok::<_, DataFusionError>(stream::try_unfold(probe, Probe::next))
        };
        let stream = stream::once(probe).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), stream)))
    }
}

#[cfg(test)]
#[path = "../tests/unit/probing.rs"]
mod tests;
