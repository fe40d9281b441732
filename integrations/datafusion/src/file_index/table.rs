//! [`FileIndexPlanner`]: skips files before the engine reads their footers.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{Fields, SchemaRef};
use datafusion::catalog::{ScanArgs, ScanResult, Session};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, Statistics};
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::ListingTable;
use datafusion::datasource::physical_plan::{
    FileGroup, FileScanConfig, FileScanConfigBuilder, FileSource, ParquetSource,
};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::{TableProvider, TableType, provider_as_source, source_as_provider};
use datafusion::execution::SessionState;
use datafusion::execution::cache::cache_manager::{
    CachedFileMetadata, SchemaFingerprint, TableScopedPath,
};
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::{
    Expr, LogicalPlan, TableProviderFilterPushDown, TableScan, TableSource,
};
use datafusion::object_store::ObjectStore;
use datafusion::physical_expr::conjunction;
use datafusion::physical_plan::ExecutionPlan;
use datafusion_datasource::{PartitionedFile, compute_all_files_statistics};
use futures::{StreamExt, TryStreamExt};

use super::condition::Parts;
use super::source::{Conditions, IndexedSource, narrow, rounds};
use super::stored::{IndexAnswers, Indexes, StoredFileIndex, Verdict, indexes_for_store};

/// A query planner that replaces each table of files with an [`IndexedTable`] and delegates
/// planning to another planner.
///
/// Replacing the session's tables would not be enough: in Ballista, the scheduler plans with tables
/// that a client sends. It always keeps its session's planner.
#[derive(Debug)]
pub(crate) struct FileIndexPlanner {
    pub(crate) inner: Arc<dyn QueryPlanner + Send + Sync>,
    pub(crate) indexes: Indexes,
}

#[async_trait]
impl QueryPlanner for FileIndexPlanner {
    async fn create_physical_plan(
        &self,
        logical: &LogicalPlan,
        session: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let indexed = logical.clone().transform_up_with_subqueries(|node| {
            let LogicalPlan::TableScan(scan) = &node else { return Ok(Transformed::no(node)) };
            let Some(source) = self.indexed(scan) else { return Ok(Transformed::no(node)) };
            let scan = TableScan { source, ..scan.clone() };
            Ok(Transformed::yes(LogicalPlan::TableScan(scan)))
        })?;
        self.inner.create_physical_plan(&indexed.data, session).await
    }
}

impl FileIndexPlanner {
    fn indexed(&self, scan: &TableScan) -> Option<Arc<dyn TableSource>> {
        // A limit keeps the first rows of all files.
        if scan.filters.is_empty() || scan.fetch.is_some() {
            return None;
        }
        let table = source_as_provider(&scan.source).ok()?;
        let listing = table.downcast_ref::<ListingTable>()?;
        let store = listing.table_paths().first()?.object_store();
        let indexes = indexes_for_store(&self.indexes, &store);
        if indexes.is_empty() {
            return None;
        }
        Some(provider_as_source(Arc::new(IndexedTable { table, indexes })))
    }
}

/// A [`ListingTable`] that looks up indexes before it reads the statistics of files.
#[derive(Debug)]
struct IndexedTable {
    table: Arc<dyn TableProvider>,
    indexes: Arc<[Arc<StoredFileIndex>]>,
}

#[async_trait]
impl TableProvider for IndexedTable {
    fn schema(&self) -> SchemaRef {
        self.table.schema()
    }

    fn constraints(&self) -> Option<&datafusion::common::Constraints> {
        self.table.constraints()
    }

    fn table_type(&self) -> TableType {
        self.table.table_type()
    }

    fn get_table_definition(&self) -> Option<&str> {
        self.table.get_table_definition()
    }

    fn get_column_default(&self, column: &str) -> Option<&Expr> {
        self.table.get_column_default(column)
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        self.table.supports_filters_pushdown(filters)
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let projection = projection.map(Vec::as_slice);
        let arguments = ScanArgs::default().with_projection(projection).with_filters(Some(filters));
        Ok(self.scan_with_args(session, arguments.with_limit(limit)).await?.into_inner())
    }

    async fn scan_with_args<'a>(
        &self,
        session: &dyn Session,
        arguments: ScanArgs<'a>,
    ) -> Result<ScanResult> {
        match self.pruned(session, &arguments).await? {
            Some(plan) => Ok(ScanResult::new(plan)),
            None => self.table.scan_with_args(session, arguments).await,
        }
    }
}

impl IndexedTable {
    /// Plans a scan of the remaining files. Returns `None` if the table should plan its own scan.
    async fn pruned(
        &self,
        session: &dyn Session,
        arguments: &ScanArgs<'_>,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let (Some(table), Some(state)) = (
            self.table.downcast_ref::<ListingTable>(),
            session.as_any().downcast_ref::<SessionState>(),
        ) else {
            return Ok(None);
        };
        let options = &state.config_options().execution;
        let partitioned = !table.options().table_partition_cols.is_empty();
        // These features divide files by properties of all of them.
        if arguments.limit().is_some()
            || table.options().output_partitioning.is_some()
            || options.split_file_groups_by_statistics
            || partitioned && state.config_options().optimizer.preserve_file_partitions > 0
        {
            return Ok(None);
        }
        let format = table.options().format.as_ref() as &dyn Any;
        let Some(format) = format.downcast_ref::<ParquetFormat>() else { return Ok(None) };
        let schema = DFSchema::try_from(table.schema())?;
        let filters = arguments.filters().unwrap_or_default().iter();
        // Filters that are not expressions of this table alone are ignored.
        let filters = filters.filter_map(|e| state.create_physical_expr(e.clone(), &schema).ok());
        let predicate = conjunction(filters);
        let fields = table.schema().fields().len() - table.options().table_partition_cols.len();
        let fields: Fields = table.schema().fields()[..fields].into();
        let rounded = format.options().global.coerce_int96.is_some();
        let conditions =
            Conditions::new(&self.indexes, &fields, rounded, &predicate, Parts::Planned);
        if conditions.found.is_empty() {
            return Ok(None);
        }

        // The engine lists the files and plans the scan. Without statistics it reads no footers.
        let mut listing = state.clone();
        listing.config_mut().options_mut().execution.collect_statistics = false;
        let plan = table.scan_with_args(&listing, arguments.clone()).await?.into_inner();
        let Some((config, source)) = plan
            .downcast_ref::<DataSourceExec>()
            .and_then(|scan| scan.downcast_to_file_source::<ParquetSource>())
        else {
            return Ok(None);
        };
        if config.expr_adapter_factory.is_some() || rounds(source) != rounded {
            return Ok(None);
        }
        let answers = IndexAnswers::look_up(&conditions.found).await;
        let (files, text) = prune(config, &answers);
        log::debug!("blocked-bloom: the index leaves {text} of {}", table.table_paths()[0]);

        let store = state.runtime_env().object_store(&config.object_store_url)?;
        let collect = options.collect_statistics;
        let files = match collect {
            true => {
                let schema = source.table_schema().file_schema();
                with_statistics(table, state, &store, schema, files).await?
            }
            false => files,
        };
        let mut groups = FileGroup::new(files).split_files(state.config().target_partitions());
        if groups.is_empty() {
            groups.push(FileGroup::new(Vec::new()));
        }
        // The remaining files have other statistics than the table.
        let (groups, statistics) =
            compute_all_files_statistics(groups, table.schema(), collect, true)?;
        let statistics = match collect {
            true => statistics,
            false => Statistics::new_unknown(&table.schema()),
        };
        let ordering = table.try_create_output_ordering(state.execution_props(), &groups)?;
        let problems = conditions.problems.into_iter().chain(answers.problems).collect();
        let source = Arc::new(source.clone());
        let source = IndexedSource::new(source, self.indexes.clone(), Some(text), problems);
        let config = FileScanConfigBuilder::from(config.clone())
            .with_file_groups(groups)
            .with_statistics(statistics)
            .with_output_ordering(ordering)
            .with_source(Arc::new(source))
            .build();
        Ok(Some(DataSourceExec::from_data_source(config)))
    }
}

/// Returns the remaining files of a scan, and a text with the numbers of files and row groups and
/// the reasons why others remain.
fn prune(config: &FileScanConfig, answers: &IndexAnswers) -> (Vec<PartitionedFile>, String) {
    let (mut files, mut all) = (Vec::new(), 0);
    let (mut row_groups, mut of_row_groups) = (0, 0);
    let mut unknown = BTreeMap::<String, usize>::new();
    for mut file in config.file_groups.iter().flat_map(|group| group.files().to_vec()) {
        all += 1;
        match answers.verdict(&file.object_meta) {
            Some(Verdict::Skip) => continue,
            Some(Verdict::RowGroups(groups)) => {
                let narrowed = narrow(&mut file, &groups);
                // All row groups of a file remain if it already has a selection of rows.
                row_groups += groups.iter().filter(|&&group| group || !narrowed).count();
                of_row_groups += groups.len();
            }
            Some(Verdict::Unknown(why)) => *unknown.entry(why.to_string()).or_default() += 1,
            None => {}
        }
        files.push(file);
    }
    let mut text = format!("{} of {all} files", files.len());
    if of_row_groups > 0 {
        text += &format!(", {row_groups} of their {of_row_groups} row groups");
    }
    for (why, files) in unknown {
        text += &format!(", {files} unknown: {why}");
    }
    (files, text)
}

/// Adds statistics and orders to the files, from the session's cache or from their footers.
async fn with_statistics(
    table: &ListingTable,
    state: &SessionState,
    store: &Arc<dyn ObjectStore>,
    schema: &SchemaRef,
    files: Vec<PartitionedFile>,
) -> Result<Vec<PartitionedFile>> {
    let fingerprint = Arc::new(SchemaFingerprint::from_schema(schema));
    let cache = state.runtime_env().cache_manager.get_file_statistic_cache();
    let concurrency = state.config_options().execution.meta_fetch_concurrency.get();
    let (fingerprint, cache) = (&fingerprint, &cache);
    let files = futures::stream::iter(files).map(|file| async move {
        let table_name = file.table_reference.clone();
        let meta = file.object_meta.clone();
        let path = TableScopedPath { table: table_name, path: meta.location.clone() };
        if let Some(cached) = cache.as_ref().and_then(|cache| cache.get(&path))
            && cached.is_valid_for(&meta, fingerprint)
        {
            return Ok(file.with_statistics(cached.statistics).with_ordering(cached.ordering));
        }
        let format = &table.options().format;
        let found = format.infer_stats_and_ordering(state, store, schema.clone(), &meta).await?;
        let statistics = Arc::new(found.statistics);
        if let Some(cache) = cache {
            let (schema, statistics) = (fingerprint.clone(), statistics.clone());
            let entry = CachedFileMetadata::new(meta, schema, statistics, found.ordering.clone());
            cache.put(&path, entry);
        }
        Ok(file.with_statistics(statistics).with_ordering(found.ordering))
    });
    files.buffered(concurrency).try_collect().await
}
