//! [`BloomProbeExec`]: the operator that drops rows before a shuffle.

use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use blocked_bloom::BloomFilter;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, plan_err};
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan};
use futures::future::{BoxFuture, Shared};

use crate::keys::{KeyType, key_of};
use crate::scan::ReducedScan;

pub(crate) const NAME: &str = "BloomProbeExec";

/// Drops the rows of its first input whose key is definitely not in a filter. The filter is the
/// single row of its second input. Rows with a NULL key, or with a NULL in one column of the key,
/// are dropped too: such a row has no partner in a join where NULL equals nothing.
///
/// At least one row passes, also if no row can have a partner. The join drops it, and it avoids a
/// defect of Ballista 55: a query does not end if one stage turns out to be empty while another
/// runs that the plan no longer needs ([apache/datafusion-ballista#2063]). If the operator drops
/// the rows, this is the first row of each partition. If the scan has dropped all rows, it is read
/// again up to the first row that certainly has no partner.
///
/// [apache/datafusion-ballista#2063]: https://github.com/apache/datafusion-ballista/issues/2063
///
/// The filter's plan has one partition. Ballista makes a stage of the plan below its
/// `CoalescePartitionsExec` and sends the whole result to every task of the first input. Schema,
/// statistics, order and partitioning are those of the first input. That input must stay the first,
/// because the engine's sort pushdown counts the columns of an operator through its inputs, one
/// after the other.
///
/// If the first input is a Parquet scan, it skips row groups and pages by the ranges of the keys
/// once they are known. If the scan accepts row filters
/// (`datafusion.execution.parquet.pushdown_filters`), the filter moves into it. Both require that
/// neither the scan nor an operator in between has a limit or a volatile expression. Limits above
/// this operator stay above it.
///
/// If more than a given share of the rows are hits, rows pass unprobed, except for one sample per
/// half a million rows of each partition. All rows pass if the build side stopped reading because
/// nearly all of its rows are keys.
///
/// If the filter cannot be built, read or opened, all rows pass and the query continues.
///
/// Metrics: `input_rows`, `output_rows`, `unprobed_rows`, `filter_bytes` (per task that read the
/// filter), `filter_time` (waiting for the filter), `probe_time`, and `given_up` (tasks that could
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
    /// Each running partition has a reference.
    pub(crate) running: Arc<()>,
}

/// Opens the filter while all partitions wait. No partition owns it: if one is dropped, another
/// continues.
pub(crate) type Opening = Shared<BoxFuture<'static, Opened>>;

/// The result of opening a filter, which all partitions share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Opened {
    /// The filter, if it can drop rows.
    pub(crate) filter: Option<Arc<BloomFilter>>,
    /// The input with a scan that drops rows, if it can. All partitions execute the same input,
    /// because the partitions of a scan may share a queue of unread files.
    pub(crate) scan: Option<ReducedScan>,
    /// Whether a row of any partition has passed.
    pub(crate) has_row: Arc<AtomicBool>,
}

impl BloomProbeExec {
    /// Probes `input` with the filter in the single row and column of `filter`. The key is in
    /// `columns` of `input`, in the filter's order. Rows pass unprobed while the share of hits
    /// exceeds `stop_above`.
    ///
    /// # Errors
    ///
    /// Returns a planning error if a column does not exist, if its values cannot be keys, or if
    /// `filter` does not have exactly one binary column.
    pub fn try_new(
        input: Arc<dyn ExecutionPlan>,
        filter: Arc<dyn ExecutionPlan>,
        columns: Vec<usize>,
        stop_above: f64,
    ) -> Result<Self> {
        let key = key_of(NAME, &input.schema(), &columns)?;
        let schema = filter.schema();
        if schema.fields().len() != 1 || *schema.field(0).data_type() != DataType::Binary {
            return plan_err!("{NAME}: the filter must be one binary column, not {schema}");
        }
        let (decision, metrics, opening, running) = Default::default();
        Ok(BloomProbeExec {
            input,
            filter,
            columns,
            stop_above,
            decision,
            key,
            metrics,
            opening,
            running,
        })
    }

    /// Returns the operator with another input of the same rows or fewer. It shares the metrics.
    pub(crate) fn with_input(&self, input: Arc<dyn ExecutionPlan>) -> Self {
        BloomProbeExec {
            input,
            filter: self.filter.clone(),
            columns: self.columns.clone(),
            decision: self.decision.clone(),
            metrics: self.metrics.clone(),
            opening: Arc::default(),
            running: Arc::default(),
            ..*self
        }
    }

    /// Sets the text that `EXPLAIN` shows as the reason for the filter.
    pub(crate) fn with_decision(self, decision: String) -> Self {
        BloomProbeExec { decision, ..self }
    }

    /// Returns the cost and saving that were estimated when the filter was planned. May be empty.
    pub fn decision(&self) -> &str {
        &self.decision
    }

    /// Returns the key columns of the first input.
    pub fn columns(&self) -> &[usize] {
        &self.columns
    }

    /// Returns the share of hits above which rows pass unprobed.
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
