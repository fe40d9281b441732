//! A scan of Parquet files before which an index is looked up, file by file: [`Indexed`].

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

use super::need::{Need, Parts};
use super::stored::{Left, StoredFileIndex, Verdict};

/// What indexes need of the rows for which a predicate is true.
#[derive(Debug, Default)]
pub(crate) struct Needs {
    /// Of the indexes that have something to look up.
    pub(crate) found: Vec<(Arc<StoredFileIndex>, Need)>,
    /// Why some have not.
    pub(crate) problems: Vec<String>,
}

impl Needs {
    /// Of a predicate over a scan. `fields` are those of the files. `rounded` says that timestamps
    /// of 96 bits are rounded when they are read.
    pub(crate) fn of(
        indexes: &[Arc<StoredFileIndex>],
        fields: &Fields,
        rounded: bool,
        predicate: &Arc<dyn PhysicalExpr>,
        parts: Parts,
    ) -> Self {
        let mut needs = Needs::default();
        for index in indexes {
            let resolve = |column: &Column| {
                // Columns behind these are parts of the path, or made by the reader.
                let field = fields.get(column.index());
                let field = field.filter(|field| field.name() == column.name())?;
                let data_type = field.data_type();
                let rounded = rounded && matches!(data_type, DataType::Timestamp(..));
                let number = index.column(column.name(), data_type).filter(|_| !rounded)?;
                Some((number, data_type.clone()))
            };
            match Need::of(predicate, &resolve, parts) {
                Ok(need) => match need.is_looked_up() {
                    Ok(true) => needs.found.push((index.clone(), need)),
                    Ok(false) => {}
                    Err(problem) => needs.problems.push(problem),
                },
                Err(error) => needs.problems.push(error.to_string()),
            }
        }
        needs
    }

    /// Whether the same is looked up.
    fn are(&self, other: &Needs) -> bool {
        let (a, b) = (&self.found, &other.found);
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| Arc::ptr_eq(&a.0, &b.0) && a.1 == b.1)
    }
}

/// Whether a source rounds timestamps of 96 bits when it reads them.
pub(crate) fn rounds(source: &ParquetSource) -> bool {
    source.table_parquet_options().global.coerce_int96.is_some()
}

/// Narrows what is read of a file to some row groups, of which there are `groups.len()`. Returns
/// `false` if it cannot be narrowed: the file has a selection of rows already, or a plan for
/// another number of row groups.
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

/// A source of Parquet files, with the indexes that are looked up when a file is about to be
/// opened. The keys that a join fills in while the query runs are complete then.
#[derive(Clone)]
pub(crate) struct Indexed {
    inner: Arc<dyn FileSource>,
    indexes: Arc<[Arc<StoredFileIndex>]>,
    /// What was looked up when the query was planned, as text.
    planned: Option<String>,
    /// Why something was not.
    problems: Vec<String>,
    /// Whether what operators fill in while the query runs may prune.
    dynamic: bool,
    answers: Arc<Mutex<Answers>>,
}

/// What has been looked up in the present execution of a plan.
#[derive(Default)]
struct Answers {
    begun: HashSet<usize>,
    answer: Arc<Answer>,
}

/// What is left, with the generation of the predicate and the needs that it was looked up for.
type Answer = tokio::sync::Mutex<Option<(u64, Needs, Arc<Left>)>>;

impl Indexed {
    /// With `planned`, nothing else that was known when the query was planned is looked up.
    /// `problems` say why something is not. What operators fill in while the query runs does not
    /// count: [`with_dynamic`](Self::with_dynamic).
    pub(crate) fn new(
        inner: Arc<dyn FileSource>,
        indexes: Arc<[Arc<StoredFileIndex>]>,
        planned: Option<String>,
        problems: Vec<String>,
    ) -> Self {
        let answers = Arc::default();
        Indexed { inner, indexes, planned, problems, dynamic: false, answers }
    }

    /// Sets whether what operators fill in while the query runs may prune: only the rule that has
    /// seen what is above the scan knows.
    pub(crate) fn with_dynamic(self, dynamic: bool) -> Self {
        Indexed { dynamic, ..self }
    }

    pub(crate) fn is_dynamic(&self) -> bool {
        self.dynamic
    }

    fn around(&self, inner: Arc<dyn FileSource>) -> Arc<dyn FileSource> {
        Arc::new(Indexed { inner, answers: Arc::default(), ..self.clone() })
    }

    /// The lookups of a partition of an execution. A partition that begins a second time begins
    /// another execution, in which nothing that was looked up before counts.
    fn answer(&self, partition: usize) -> Arc<Answer> {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        if !answers.begun.insert(partition) {
            *answers = Answers { begun: HashSet::from([partition]), ..Answers::default() };
        }
        answers.answer.clone()
    }
}

impl FileSource for Indexed {
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
        // A scan with a limit must not end with other rows than without an index, and an adapter of
        // the user's may give a column other values than the file has.
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
        Arc::new(Indexed { inner: self.inner.with_batch_size(batch_size), ..self.clone() })
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
        done.updated_node = done.updated_node.map(|inner| self.around(inner));
        Ok(done)
    }

    fn try_pushdown_sort(
        &self,
        order: &[PhysicalSortExpr],
        properties: &EquivalenceProperties,
    ) -> Result<SortOrderPushdownResult<Arc<dyn FileSource>>> {
        let done = self.inner.try_pushdown_sort(order, properties)?;
        done.try_map(|inner| Ok(self.around(inner)))
    }

    fn reorder_files(&self, files: Vec<PartitionedFile>) -> Vec<PartitionedFile> {
        self.inner.reorder_files(files)
    }

    fn try_pushdown_projection(
        &self,
        projection: &ProjectionExprs,
    ) -> Result<Option<Arc<dyn FileSource>>> {
        let done = self.inner.try_pushdown_projection(projection)?;
        Ok(done.map(|inner| self.around(inner)))
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.inner.apply_expressions(f)
    }

    /// As the scan of the files that are left: what another process runs needs no index. The row
    /// groups that were pruned of them do not travel.
    #[cfg(feature = "ballista")]
    fn try_to_proto(
        &self,
        base: &FileScanConfig,
        context: &datafusion::physical_plan::proto::ExecutionPlanEncodeCtx<'_>,
    ) -> Result<Option<datafusion_proto::protobuf::PhysicalPlanNode>> {
        self.inner.try_to_proto(base, context)
    }
}

/// What the files of a partition share.
struct Shared {
    inner: Box<dyn Morselizer>,
    source: Arc<dyn FileSource>,
    predicate: Arc<dyn PhysicalExpr>,
    parts: Parts,
    indexes: Arc<[Arc<StoredFileIndex>]>,
    answer: Arc<Answer>,
    files_pruned: Count,
    row_groups_pruned: Count,
    files_unknown: Count,
    /// Lookups that could not be made, or not in all of an index.
    problems: Count,
}

impl Shared {
    /// What is left for the predicate as it is now, looked up once for each of its generations that
    /// needs something else: the filter of a sort with a limit changes again and again.
    async fn left(&self) -> Arc<Left> {
        let mut answer = self.answer.lock().await;
        let generation = snapshot_generation(&self.predicate);
        if let Some((known, _, left)) = &*answer
            && *known == generation
        {
            return left.clone();
        }
        let needs = match self.source.downcast_ref::<ParquetSource>() {
            Some(source) => {
                let fields = source.table_schema().file_schema().fields();
                Needs::of(&self.indexes, fields, rounds(source), &self.predicate, self.parts)
            }
            None => Needs::default(),
        };
        if let Some((known, before, left)) = &mut *answer
            && before.are(&needs)
        {
            *known = generation;
            return left.clone();
        }
        let left = Arc::new(Left::of(&needs.found).await);
        self.problems.add(needs.problems.len() + left.problems.len());
        *answer = Some((generation, needs, left.clone()));
        left
    }

    /// What is left if that needs no request: it has been looked up for another file, or the
    /// indexes are in memory.
    fn left_at_once(&self) -> Option<Arc<Left>> {
        if let Ok(answer) = self.answer.try_lock()
            && let Some((known, _, left)) = &*answer
            && *known == snapshot_generation(&self.predicate)
        {
            return Some(left.clone());
        }
        match self.indexes.iter().all(|index| index.is_in_memory()) {
            true => self.left().now_or_never(),
            false => None,
        }
    }

    fn plan(&self, left: &Left, mut file: PartitionedFile) -> Result<Box<dyn MorselPlanner>> {
        // The types in the index are those that the file says itself.
        let verdict = match file.arrow_schema {
            None => left.of_file(&file.object_meta),
            Some(_) => None,
        };
        match verdict {
            Some(Verdict::Nothing) => {
                self.files_pruned.add(1);
                return Ok(Box::new(Nothing));
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
        Ok(Box::new(File { pruning: self.clone(), file }))
    }
}

/// A file that is about to be opened.
#[derive(Debug)]
struct File {
    pruning: Pruning,
    file: PartitionedFile,
}

impl MorselPlanner for File {
    fn plan(self: Box<Self>) -> Result<Option<MorselPlan>> {
        let File { pruning: Pruning(shared), file } = *self;
        if let Some(left) = shared.left_at_once() {
            return shared.plan(&left, file)?.plan();
        }
        Ok(Some(MorselPlan::new().with_pending_planner(async move {
            let left = shared.left().await;
            shared.plan(&left, file)
        })))
    }
}

/// A file of which nothing is read.
#[derive(Debug)]
struct Nothing;

impl MorselPlanner for Nothing {
    fn plan(self: Box<Self>) -> Result<Option<MorselPlan>> {
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use datafusion::parquet::arrow::arrow_reader::{RowSelection, RowSelector};

    use super::*;

    fn left(file: &PartitionedFile) -> Vec<usize> {
        file.extensions.get::<ParquetAccessPlan>().expect("a plan").row_group_indexes()
    }

    #[test]
    fn narrowing_keeps_what_others_left_out() {
        let mut file = PartitionedFile::new("f", 1);
        assert!(narrow(&mut file, &[false, true, true, false, true]));
        assert_eq!(left(&file), [1, 2, 4]);
        assert!(narrow(&mut file, &[true, true, false, true, true]));
        assert_eq!(left(&file), [1, 4]);
        assert!(!narrow(&mut file, &[true; 4]), "a plan of another number of row groups");
        assert_eq!(left(&file), [1, 4]);

        let mut file = PartitionedFile::new("f", 1);
        let rows = RowSelection::from(vec![RowSelector::skip(5), RowSelector::select(5)]);
        file.extensions.insert(ParquetRowSelection::new(rows));
        assert!(!narrow(&mut file, &[true, false]), "a selection of rows");
        assert!(file.extensions.get::<ParquetAccessPlan>().is_none());
    }
}
