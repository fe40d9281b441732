//! [`IndexedSource`]: a source of Parquet files that looks up indexes before it opens a file.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use datafusion::arrow::datatypes::{DataType, Fields};
use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::config::ConfigOptions;
use datafusion::datasource::physical_plan::parquet::{ParquetAccessPlan, ParquetRowSelection};
use datafusion::datasource::physical_plan::{
    FileOpener, FileScanConfig, FileSource, ParquetSource,
};
use datafusion::object_store::ObjectStore;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_expr_common::physical_expr::snapshot_generation;
use datafusion::physical_plan::filter_pushdown::FilterPushdownPropagation;
use datafusion::physical_plan::metrics::{Count, ExecutionPlanMetricsSet, MetricBuilder};
use datafusion::physical_plan::{DisplayFormatType, SortOrderPushdownResult};
use datafusion_datasource::PartitionedFile;
use datafusion_datasource::morsel::{MorselPlan, MorselPlanner, Morselizer};
use datafusion_datasource::table_schema::TableSchema;
use futures::FutureExt;

use super::condition::{Condition, Parts};
use super::stored::{IndexAnswers, StoredFileIndex, Verdict};

/// The lookups in several indexes for one predicate.
#[derive(Debug, Default)]
pub(crate) struct Conditions {
    /// The indexes with something to look up.
    pub(crate) found: Vec<(Arc<StoredFileIndex>, Condition)>,
    /// The reasons why others have nothing to look up.
    pub(crate) problems: Vec<String>,
}

impl Conditions {
    /// Converts a predicate over a scan. `fields` are those of the files. `rounded` says whether
    /// the reader rounds 96-bit timestamps.
    pub(crate) fn new(
        indexes: &[Arc<StoredFileIndex>],
        fields: &Fields,
        rounded: bool,
        predicate: &Arc<dyn PhysicalExpr>,
        parts: Parts,
    ) -> Self {
        let mut conditions = Conditions::default();
        for index in indexes {
            let resolve = |column: &Column| {
                // Further columns are parts of the path, or computed by the reader.
                let field = fields.get(column.index());
                let field = field.filter(|field| field.name() == column.name())?;
                let data_type = field.data_type();
                let rounded = rounded && matches!(data_type, DataType::Timestamp(..));
                let number = index.column(column.name(), data_type).filter(|_| !rounded)?;
                Some((number, data_type.clone()))
            };
            match Condition::new(predicate, &resolve, parts) {
                Ok(condition) => match condition.is_looked_up() {
                    Ok(true) => conditions.found.push((index.clone(), condition)),
                    Ok(false) => {}
                    Err(problem) => conditions.problems.push(problem),
                },
                Err(error) => conditions.problems.push(error.to_string()),
            }
        }
        conditions
    }

    /// Whether both look up the same values.
    fn has_same_lookups(&self, other: &Conditions) -> bool {
        let (a, b) = (&self.found, &other.found);
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| Arc::ptr_eq(&a.0, &b.0) && a.1 == b.1)
    }
}

/// Whether a source rounds 96-bit timestamps when it reads them.
pub(crate) fn rounds(source: &ParquetSource) -> bool {
    source.table_parquet_options().global.coerce_int96.is_some()
}

/// Restricts the reading of a file to the row groups that are `true`. Returns `false` if that is
/// impossible, because the file already has a selection of rows or a plan for another number of row
/// groups.
pub(crate) fn narrow(file: &mut PartitionedFile, groups: &[bool]) -> bool {
    if file.extensions.get::<ParquetRowSelection>().is_some() {
        return false;
    }
    let mut plan = match file.extensions.get::<ParquetAccessPlan>() {
        Some(plan) if plan.len() == groups.len() => plan.clone(),
        Some(_) => return false,
        None => ParquetAccessPlan::new_all(groups.len()),
    };
    for group in (0..groups.len()).filter(|&group| !groups[group]) {
        plan.skip(group);
    }
    file.extensions.insert(plan);
    true
}

/// A source of Parquet files that looks up indexes just before it opens a file. By then, a join has
/// filled in its keys.
#[derive(Clone)]
pub(crate) struct IndexedSource {
    inner: Arc<dyn FileSource>,
    indexes: Arc<[Arc<StoredFileIndex>]>,
    /// The result of lookups when the query was planned, as text.
    planned: Option<String>,
    /// Reasons why some lookups were impossible.
    problems: Vec<String>,
    /// Whether filters that operators fill in while the query runs may prune.
    dynamic: bool,
    answers: Arc<Mutex<ExecutionCache>>,
}

/// The lookups of the current execution of a plan.
#[derive(Default)]
struct ExecutionCache {
    begun: HashSet<usize>,
    answer: Arc<CachedAnswers>,
}

/// The answers, with the generation of the predicate and the lookups that they belong to.
type CachedAnswers = tokio::sync::Mutex<Option<(u64, Conditions, Arc<IndexAnswers>)>>;

impl IndexedSource {
    /// With `planned`, the static part of the predicate has already been looked up. `problems` are
    /// reasons why some lookups were impossible. Dynamic filters do not prune until
    /// [`with_dynamic`](Self::with_dynamic) allows it.
    pub(crate) fn new(
        inner: Arc<dyn FileSource>,
        indexes: Arc<[Arc<StoredFileIndex>]>,
        planned: Option<String>,
        problems: Vec<String>,
    ) -> Self {
        let answers = Arc::default();
        IndexedSource { inner, indexes, planned, problems, dynamic: false, answers }
    }

    /// Sets whether dynamic filters may prune. Only the rule that has seen the operators above the
    /// scan knows.
    pub(crate) fn with_dynamic(self, dynamic: bool) -> Self {
        IndexedSource { dynamic, ..self }
    }

    pub(crate) fn is_dynamic(&self) -> bool {
        self.dynamic
    }

    fn wrap(&self, inner: Arc<dyn FileSource>) -> Arc<dyn FileSource> {
        Arc::new(IndexedSource { inner, answers: Arc::default(), ..self.clone() })
    }

    /// Returns the cache for a partition of an execution. If a partition starts a second time, a
    /// new execution starts with an empty cache.
    fn answer(&self, partition: usize) -> Arc<CachedAnswers> {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        if !answers.begun.insert(partition) {
            *answers =
                ExecutionCache { begun: HashSet::from([partition]), ..ExecutionCache::default() };
        }
        answers.answer.clone()
    }
}

impl FileSource for IndexedSource {
    fn create_file_opener(
        &self,
        store: Arc<dyn ObjectStore>,
        config: &FileScanConfig,
        partition: usize,
    ) -> Result<Arc<dyn FileOpener>> {
        self.inner.create_file_opener(store, config, partition)
    }

    fn create_morselizer(
        &self,
        store: Arc<dyn ObjectStore>,
        config: &FileScanConfig,
        partition: usize,
    ) -> Result<Box<dyn Morselizer>> {
        let inner = self.inner.create_morselizer(store, config, partition)?;
        let parts = match (&self.planned, self.dynamic) {
            (Some(_), true) => Parts::Dynamic,
            (None, true) => Parts::All,
            (None, false) => Parts::Planned,
            (Some(_), false) => return Ok(inner),
        };
        // With a limit, pruning could change the result. A user's adapter may give a column values
        // that differ from those of the file.
        let Some(predicate) = self.inner.filter() else { return Ok(inner) };
        if config.limit.is_some()
            || config.expr_adapter_factory.is_some()
            || (parts == Parts::Dynamic && snapshot_generation(&predicate) == 0)
        {
            return Ok(inner);
        }
        let count = |name| MetricBuilder::new(self.inner.metrics()).counter(name, partition);
        Ok(Box::new(Pruning(Arc::new(Shared {
            files_pruned: count("file_index_files_pruned"),
            row_groups_pruned: count("file_index_row_groups_pruned"),
            files_unknown: count("file_index_files_unknown"),
            problems: count("file_index_problems"),
            inner,
            source: self.inner.clone(),
            predicate,
            parts,
            indexes: self.indexes.clone(),
            answer: self.answer(partition),
        }))))
    }

    fn table_schema(&self) -> &TableSchema {
        self.inner.table_schema()
    }

    fn with_batch_size(&self, batch_size: usize) -> Arc<dyn FileSource> {
        Arc::new(IndexedSource { inner: self.inner.with_batch_size(batch_size), ..self.clone() })
    }

    fn filter(&self) -> Option<Arc<dyn PhysicalExpr>> {
        self.inner.filter()
    }

    fn projection(&self) -> Option<&ProjectionExprs> {
        self.inner.projection()
    }

    fn metrics(&self) -> &ExecutionPlanMetricsSet {
        self.inner.metrics()
    }

    fn file_type(&self) -> &str {
        self.inner.file_type()
    }

    fn fmt_extra(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.indexes.iter().flat_map(|index| index.manifest().columns());
        let columns: Vec<&str> = columns.map(|column| column.name()).collect();
        let columns = columns.join(", ");
        match t {
            DisplayFormatType::TreeRender => writeln!(f, "file_index={columns}")?,
            _ => {
                write!(f, ", file_index=[{columns}]")?;
                if let Some(planned) = &self.planned {
                    write!(f, ", file_index_left=[{planned}]")?;
                }
                if !self.problems.is_empty() {
                    write!(f, ", file_index_problems=[{}]", self.problems.join("; "))?;
                }
            }
        }
        self.inner.fmt_extra(t, f)
    }

    fn supports_repartitioning(&self) -> bool {
        self.inner.supports_repartitioning()
    }

    fn try_pushdown_filters(
        &self,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        config: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn FileSource>>> {
        let mut done = self.inner.try_pushdown_filters(filters, config)?;
        done.updated_node = done.updated_node.map(|inner| self.wrap(inner));
        Ok(done)
    }

    fn try_pushdown_sort(
        &self,
        order: &[PhysicalSortExpr],
        properties: &EquivalenceProperties,
    ) -> Result<SortOrderPushdownResult<Arc<dyn FileSource>>> {
        let done = self.inner.try_pushdown_sort(order, properties)?;
        done.try_map(|inner| Ok(self.wrap(inner)))
    }

    fn reorder_files(&self, files: Vec<PartitionedFile>) -> Vec<PartitionedFile> {
        self.inner.reorder_files(files)
    }

    fn try_pushdown_projection(
        &self,
        projection: &ProjectionExprs,
    ) -> Result<Option<Arc<dyn FileSource>>> {
        let done = self.inner.try_pushdown_projection(projection)?;
        Ok(done.map(|inner| self.wrap(inner)))
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.inner.apply_expressions(f)
    }

    /// Encodes the scan of the remaining files. Other processes need no index. Pruned row groups
    /// are not encoded.
    #[cfg(feature = "ballista")]
    fn try_to_proto(
        &self,
        base: &FileScanConfig,
        context: &datafusion::physical_plan::proto::ExecutionPlanEncodeCtx<'_>,
    ) -> Result<Option<datafusion_proto::protobuf::PhysicalPlanNode>> {
        self.inner.try_to_proto(base, context)
    }
}

/// State that the files of a partition share.
struct Shared {
    inner: Box<dyn Morselizer>,
    source: Arc<dyn FileSource>,
    predicate: Arc<dyn PhysicalExpr>,
    parts: Parts,
    indexes: Arc<[Arc<StoredFileIndex>]>,
    answer: Arc<CachedAnswers>,
    files_pruned: Count,
    row_groups_pruned: Count,
    files_unknown: Count,
    /// Lookups that failed, completely or for part of an index.
    problems: Count,
}

impl Shared {
    /// Returns the answers for the current predicate. A new generation of the predicate is looked
    /// up only if its values changed: a sort with a limit updates its filter again and again.
    async fn answers(&self) -> Arc<IndexAnswers> {
        let mut answer = self.answer.lock().await;
        let generation = snapshot_generation(&self.predicate);
        if let Some((known, _, answers)) = &*answer
            && *known == generation
        {
            return answers.clone();
        }
        let conditions = match self.source.downcast_ref::<ParquetSource>() {
            Some(source) => {
                let fields = source.table_schema().file_schema().fields();
                Conditions::new(&self.indexes, fields, rounds(source), &self.predicate, self.parts)
            }
            None => Conditions::default(),
        };
        if let Some((known, before, answers)) = &mut *answer
            && before.has_same_lookups(&conditions)
        {
            *known = generation;
            return answers.clone();
        }
        let answers = Arc::new(IndexAnswers::look_up(&conditions.found).await);
        self.problems.add(conditions.problems.len() + answers.problems.len());
        *answer = Some((generation, conditions, answers.clone()));
        answers
    }

    /// Returns the answers if they need no request, because they are cached or the indexes are in
    /// memory.
    fn ready_answers(&self) -> Option<Arc<IndexAnswers>> {
        if let Ok(answer) = self.answer.try_lock()
            && let Some((known, _, answers)) = &*answer
            && *known == snapshot_generation(&self.predicate)
        {
            return Some(answers.clone());
        }
        match self.indexes.iter().all(|index| index.is_in_memory()) {
            true => self.answers().now_or_never(),
            false => None,
        }
    }

    fn plan(
        &self,
        answers: &IndexAnswers,
        mut file: PartitionedFile,
    ) -> Result<Box<dyn MorselPlanner>> {
        // The index was built with the types that the file itself declares.
        let verdict = match file.arrow_schema {
            None => answers.verdict(&file.object_meta),
            Some(_) => None,
        };
        match verdict {
            Some(Verdict::Skip) => {
                self.files_pruned.add(1);
                return Ok(Box::new(NoRows));
            }
            Some(Verdict::RowGroups(groups)) => {
                let pruned = groups.iter().filter(|&&group| !group).count();
                let narrowed = narrow(&mut file, &groups);
                self.row_groups_pruned.add(if narrowed { pruned } else { 0 });
            }
            Some(Verdict::Unknown(_)) => self.files_unknown.add(1),
            None => {}
        }
        self.inner.plan_file(file)
    }
}

/// Looks the indexes up before each file.
#[derive(Clone)]
struct Pruning(Arc<Shared>);

impl fmt::Debug for Pruning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pruning").field(&self.0.inner).finish()
    }
}

impl Morselizer for Pruning {
    fn plan_file(&self, file: PartitionedFile) -> Result<Box<dyn MorselPlanner>> {
        Ok(Box::new(FilePlanner { pruning: self.clone(), file }))
    }
}

/// A file that is about to be opened.
#[derive(Debug)]
struct FilePlanner {
    pruning: Pruning,
    file: PartitionedFile,
}

impl MorselPlanner for FilePlanner {
    fn plan(self: Box<Self>) -> Result<Option<MorselPlan>> {
        let FilePlanner { pruning: Pruning(shared), file } = *self;
        if let Some(answers) = shared.ready_answers() {
            return shared.plan(&answers, file)?.plan();
        }
        Ok(Some(MorselPlan::new().with_pending_planner(async move {
            let answers = shared.answers().await;
            shared.plan(&answers, file)
        })))
    }
}

/// Skips a file.
#[derive(Debug)]
struct NoRows;

impl MorselPlanner for NoRows {
    fn plan(self: Box<Self>) -> Result<Option<MorselPlan>> {
        Ok(None)
    }
}

#[cfg(test)]
#[path = "../../tests/unit/source.rs"]
mod tests;
