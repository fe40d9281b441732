//! The operator that drops rows before a shuffle: [`BloomProbeExec`].

use std::fmt;
use std::sync::{Arc, Mutex};

use blocked_bloom::BloomFilter;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, plan_err};
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan};
use futures::future::{BoxFuture, Shared};

use crate::keys::{KeyType, key_of};

pub(crate) const NAME: &str = "BloomProbeExec";

/// Drops the rows of its first input whose key is certainly not in a filter. The filter is the one
/// row of its second input. A row whose key is NULL, or is NULL in one of its columns, is dropped
/// too: it has no partner in a join where NULL equals nothing.
///
/// Of each partition one row passes at least, since the join drops it as well, and Ballista 55 does
/// not end a query in which a stage turns out to have no rows while another runs that the plan then
/// does without ([apache/datafusion-ballista#2063]).
///
/// [apache/datafusion-ballista#2063]: https://github.com/apache/datafusion-ballista/issues/2063
///
/// The filter's plan has one partition: Ballista makes a stage of what is below its
/// `CoalescePartitionsExec`, and gives the whole result to every task of the first input. Schema,
/// statistics, order and partitioning are those of the first input. It must stay the first, because
/// the engine's sort pushdown takes column `n` of an operator for column `n` of its inputs, counted
/// through one input after the other.
///
/// If the first input is a scan that takes row filters, as a Parquet scan does with
/// `datafusion.execution.parquet.pushdown_filters`, the filter is put there once it is known. It is
/// not if the scan, or an operator between, ends after some rows or computes something that the
/// rows do not determine. Limits above this operator stay above it.
///
/// Where more than a given share of the rows are hits, rows pass unprobed, except for a sample in
/// every half a million rows of each partition. All rows do if the
/// build side was not read to its end because nearly all of its rows are keys.
///
/// If the filter cannot be built, read or opened, all rows pass; the query does not fail.
///
/// Metrics: `input_rows`, `output_rows`, `unprobed_rows`, `filter_bytes` (of each task that read
/// the filter), `filter_time` (waiting for the filter), `probe_time`, `given_up` (tasks that could
/// not use the filter).
#[derive(Debug)]
pub struct BloomProbeExec {
    pub(crate) input: Arc<dyn ExecutionPlan>,
    pub(crate) filter: Arc<dyn ExecutionPlan>,
    pub(crate) columns: Vec<usize>,
    pub(crate) stop_above: f64,
    pub(crate) decision: String,
    pub(crate) key: KeyType,
    pub(crate) metrics: ExecutionPlanMetricsSet,
    pub(crate) opening: Arc<Mutex<Option<Opening>>>,
}

/// The opening of the filter, for which all partitions wait together. None of them owns it: if one
/// is dropped, another continues.
pub(crate) type Opening = Shared<BoxFuture<'static, Opened>>;

/// The filter if it can drop rows, and the input with the filter in its scan if the scan takes it. All partitions
/// execute the same input, since the partitions of a scan may share a queue of what is left to
/// read.
pub(crate) type Opened = (Option<Arc<BloomFilter>>, Option<Arc<dyn ExecutionPlan>>);

impl BloomProbeExec {
    /// Probes `input` with a filter, which is the one row of the one column of `filter`. The key is
    /// in these `columns` of `input`, in the order in which the filter has them. Rows pass unprobed
    /// while the share of hits is above `stop_above`.
    ///
    /// # Errors
    ///
    /// A planning error if one of the columns does not exist, if their values cannot be keys, or if
    /// `filter` is not one binary column.
    pub fn try_new(
        input: Arc<dyn ExecutionPlan>,
        filter: Arc<dyn ExecutionPlan>,
        columns: Vec<usize>,
        stop_above: f64,
    ) -> Result<Self> {
        let key = key_of(NAME, &input.schema(), &columns)?;
        let schema = filter.schema();
        if schema.fields().len() != 1 || *schema.field(0).data_type() != DataType::Binary {
            return plan_err!("{NAME}: the filter is not one binary column, but {schema}");
        }
        let (decision, metrics, opening) = Default::default();
        Ok(BloomProbeExec { input, filter, columns, stop_above, decision, key, metrics, opening })
    }

    /// Sets the text in which `EXPLAIN` says why the filter is there.
    pub(crate) fn with_decision(self, decision: String) -> Self {
        BloomProbeExec { decision, ..self }
    }

    /// What the filter was expected to cost and to save when it was planned; may be empty.
    pub fn decision(&self) -> &str {
        &self.decision
    }

    /// The columns of the first input that are the key.
    pub fn columns(&self) -> &[usize] {
        &self.columns
    }

    /// The share of hits above which rows pass unprobed.
    pub fn stop_above(&self) -> f64 {
        self.stop_above
    }
}

impl DisplayAs for BloomProbeExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let schema = self.input.schema();
        let name = |&column: &usize| format!("{}@{column}", schema.field(column).name());
        let names: Vec<_> = self.columns.iter().map(name).collect();
        write!(f, "{NAME}: key=[{}]", names.join(", "))?;
        match self.decision.as_str() {
            "" => Ok(()),
            decision => write!(f, ", {decision}"),
        }
    }
}
