//! [`BloomBuildExec`], the operator that collects the keys of one partition of the build side.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use datafusion::arrow::array::{ArrayRef, BinaryArray, Int64Array, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
#[cfg(any(feature = "ballista", feature = "distributed"))]
use datafusion::common::exec_err;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, internal_err};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{
    BaselineMetrics, Count, ExecutionPlanMetricsSet, MetricBuilder, MetricValue, MetricsSet,
    RecordOutput,
};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
};
use futures::{StreamExt, stream};

use crate::filter::{Collector, Size};
use crate::keys::{KeyType, key_of, key_values};

const NAME: &str = "BloomBuildExec";

/// Names of the output columns: the state of a `bloom_filter_agg`, and a constant group column
/// before it if one task merges all states.
const STATE: &str = "bloom_filter[keys]";
pub(crate) const ALL: &str = "all";

/// Returns the scan below the predicates, expressions and filters of a table.
pub(crate) fn scan_of(plan: &Arc<dyn ExecutionPlan>) -> &Arc<dyn ExecutionPlan> {
    plan.children().first().map_or(plan, |input| scan_of(input))
}

/// Rows that the scan must read before the first decision to stop.
const SAMPLE_ROWS: usize = 32 * 1024;

/// Returns one row per input partition: the partial `bloom_filter_agg` state of its keys. All input
/// columns together are the key.
///
/// A filter drops almost nothing if nearly all scanned rows are keys. If the share of keys exceeds
/// a limit, the operator stops reading and returns the state of a pass-all filter. The share counts
/// the partitions in this process. If the scan is shared with the join, the join's rows count too.
/// The operator does not stop if the scan skipped rows by statistics, or found by statistics that
/// all rows of a part match: the share would then depend on the position of the sample in the
/// table.
#[derive(Debug)]
pub(crate) struct BloomBuildExec {
    input: Arc<dyn ExecutionPlan>,
    size: Size,
    stop_above: Option<f64>,
    grouped: bool,
    key: KeyType,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
    /// Keys of all partitions in this process.
    inserted: Arc<AtomicUsize>,
}

impl BloomBuildExec {
    /// Collects the keys of `input` until more than the share `stop_above` of the scanned rows are
    /// keys. With `grouped`, the output has a constant group column before the state.
    ///
    /// # Errors
    ///
    /// Returns a planning error if the values cannot be keys.
    pub(crate) fn try_new(
        input: Arc<dyn ExecutionPlan>,
        size: Size,
        stop_above: Option<f64>,
        grouped: bool,
    ) -> Result<Self> {
        let columns: Vec<usize> = (0..input.schema().fields().len()).collect();
        let key = key_of(NAME, &input.schema(), &columns)?;
        let mut fields = vec![Field::new(STATE, DataType::Binary, true)];
        if grouped {
            fields.insert(0, Field::new(ALL, DataType::Int64, false));
        }
        let partitions = input.output_partitioning().partition_count();
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::new(Schema::new(fields))),
            Partitioning::UnknownPartitioning(partitions),
            EmissionType::Final,
            Boundedness::Bounded,
        );
        let (properties, metrics, inserted) =
            (Arc::new(properties), <_>::default(), <_>::default());
        Ok(BloomBuildExec { input, size, stop_above, grouped, key, properties, metrics, inserted })
    }

    /// Returns the plan of the keys.
    pub(crate) fn input(&self) -> &Arc<dyn ExecutionPlan> {
        &self.input
    }

    /// Returns the size of the filter.
    pub(crate) fn size(&self) -> Size {
        self.size
    }
}

/// The encoding in plans that are sent to other processes.
#[cfg(any(feature = "ballista", feature = "distributed"))]
impl BloomBuildExec {
    /// The first bytes of an encoded operator; see `BloomPhysicalCodec`.
    pub(crate) const MAGIC: &[u8; 8] = b"\xffBBBUILD";

    /// Appends [`MAGIC`](Self::MAGIC), the expected keys, the rate, `stop_above` (NaN if unset) and
    /// `grouped`.
    pub(crate) fn encode(&self, bytes: &mut Vec<u8>) {
        let Size { expected_keys, rate } = self.size;
        bytes.extend(Self::MAGIC);
        bytes.extend(expected_keys.to_le_bytes());
        bytes.extend(rate.to_le_bytes());
        bytes.extend(self.stop_above.unwrap_or(f64::NAN).to_le_bytes());
        bytes.push(u8::from(self.grouped));
    }

    /// Decodes the bytes after [`MAGIC`](Self::MAGIC).
    pub(crate) fn decode(bytes: &[u8], inputs: &[Arc<dyn ExecutionPlan>]) -> Result<Self> {
        let ([input], ([keys, rate, stop_above], [grouped])) = (inputs, bytes.as_chunks::<8>())
        else {
            return exec_err!(
                "{NAME}: cannot decode {} inputs and {} bytes; encoded by another release?",
                inputs.len(),
                bytes.len()
            );
        };
        let rate = f64::from_le_bytes(*rate);
        let size = Size { expected_keys: u64::from_le_bytes(*keys), rate };
        let stop_above = Some(f64::from_le_bytes(*stop_above)).filter(|share| !share.is_nan());
        BloomBuildExec::try_new(input.clone(), size, stop_above, *grouped != 0)
    }
}

/// The stream of one partition.
struct Build {
    input: SendableRecordBatchStream,
    keys: Collector,
    /// The scan, and the share of keys above which reading stops.
    sample: Option<(Arc<dyn ExecutionPlan>, f64)>,
    inserted: Arc<AtomicUsize>,
    /// Rows that the scan must have read before the next decision.
    next_sample: usize,
    memory: MemoryReservation,
    baseline: BaselineMetrics,
    stopped: Count,
    given_up: Count,
}

impl Build {
    /// Returns the state of all keys, or of a pass-all filter if reading stopped. If the keys
    /// cannot be read or do not fit into memory, the filter is given up and the query continues.
    async fn run(mut self) -> (Vec<u8>, BaselineMetrics) {
        match self.read_keys().await {
            Ok(true) => return (self.keys.state(), self.baseline),
            Ok(false) => self.stopped.add(1),
            Err(error) => {
                log::warn!("{NAME}: filter given up, no rows are dropped: {error}");
                self.given_up.add(1);
            }
        }
        (self.keys.pass_all_state(), self.baseline)
    }

    /// Reads the keys. Returns `false` as soon as nearly all rows are keys.
    async fn read_keys(&mut self) -> Result<bool> {
        let (mut hashes, time) = (Vec::new(), self.baseline.elapsed_compute().clone());
        while let Some(batch) = self.input.next().await {
            let _timer = time.timer();
            let batch = batch?;
            let columns: Vec<usize> = (0..batch.num_columns()).collect();
            let keys = self.keys.insert_array(&key_values(&batch, &columns), &mut hashes)?;
            self.inserted.fetch_add(keys, Ordering::Relaxed);
            self.memory.try_resize(self.keys.memory_bytes())?;
            if self.keeps_nearly_all() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether nearly all rows of a sample are keys. The sample grows, because later rows may
    /// differ.
    fn keeps_nearly_all(&mut self) -> bool {
        let Some((scan, stop_above)) = &self.sample else { return false };
        let inserted = self.inserted.load(Ordering::Relaxed) as f64;
        if inserted < self.next_sample as f64 * stop_above {
            return false;
        }
        let scanned = scan.metrics().and_then(|metrics| scanned(&metrics));
        let Some(scanned) = scanned else {
            self.sample = None;
            return false;
        };
        if scanned < self.next_sample {
            return false;
        }
        self.next_sample = 2 * scanned;
        inserted > stop_above * scanned as f64
    }
}

/// Returns the rows that a scan has read in this process, or `None` if statistics decided about
/// some of them.
fn scanned(metrics: &MetricsSet) -> Option<usize> {
    let mut rows = 0;
    for metric in metrics.iter() {
        if let MetricValue::PruningMetrics { pruning_metrics, .. } = metric.value() {
            if pruning_metrics.pruned() > 0 || pruning_metrics.fully_matched() > 0 {
                return None;
            }
        } else if matches!(metric.value().name(), "output_rows" | "pushdown_rows_pruned") {
            // These rows were read and then dropped by the scan's row filter.
            rows += metric.value().as_usize();
        }
    }
    Some(rows)
}

impl DisplayAs for BloomBuildExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Size { expected_keys, rate } = self.size;
        write!(f, "{NAME}: expected_keys={expected_keys}, rate={rate}")?;
        match self.stop_above {
            Some(share) => write!(f, ", stop_above={share}"),
            None => Ok(()),
        }
    }
}

impl ExecutionPlan for BloomBuildExec {
    fn name(&self) -> &str {
        NAME
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let (Some(input), true) = (children.pop(), children.is_empty()) else {
            return internal_err!("{NAME} has one child");
        };
        let BloomBuildExec { size, stop_above, grouped, .. } = *self;
        Ok(Arc::new(BloomBuildExec::try_new(input, size, stop_above, grouped)?))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let stop = self.stop_above.map(|share| (scan_of(&self.input).clone(), share));
        let build = Build {
            input: self.input.execute(partition, context.clone())?,
            keys: Collector::with_ranges(self.key, self.size)?,
            sample: stop,
            inserted: self.inserted.clone(),
            next_sample: SAMPLE_ROWS,
            memory: MemoryConsumer::new(NAME).register(context.memory_pool()),
            baseline: BaselineMetrics::new(&self.metrics, partition),
            stopped: MetricBuilder::new(&self.metrics).counter("stopped", partition),
            given_up: MetricBuilder::new(&self.metrics).counter("given_up", partition),
        };
        let (schema, grouped) = (self.schema(), self.grouped);
        let row = move |schema: SchemaRef, state: &[u8]| {
            let mut columns: Vec<ArrayRef> = vec![Arc::new(BinaryArray::from(vec![state]))];
            if grouped {
                columns.insert(0, Arc::new(Int64Array::from(vec![0])));
            }
            RecordBatch::try_new(schema, columns)
        };
        let output = schema.clone();
        let stream = stream::once(async move {
            let (state, baseline) = build.run().await;
            Ok(row(output, &state)?.record_output(&baseline))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, stream)))
    }
}

#[cfg(test)]
#[path = "../tests/unit/build.rs"]
mod tests;
