//! [`FileIndexRule`]: adds the indexes to the scans of a plan.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::config::ConfigOptions;
use datafusion::datasource::physical_plan::{FileScanConfig, FileScanConfigBuilder, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;

use super::condition::Parts;
use super::source::{Conditions, IndexedSource, rounds};
use super::stored::{Indexes, StoredFileIndex, indexes_for_store};
use crate::limits::ends_early;
use crate::operators::with_children;

/// Adds the indexes of a store to each scan of its Parquet files that has a predicate. It is the
/// last rule of a session, because predicates and limits no longer move then.
#[derive(Debug)]
pub(crate) struct FileIndexRule {
    pub(crate) indexes: Indexes,
}

type Plan = Arc<dyn ExecutionPlan>;

/// The operators above a part of a plan.
#[derive(Clone, Copy, Default)]
struct Ancestors {
    /// Whether an operator may fill in a filter for scans below it.
    joined: bool,
    /// Whether an operator below that one ends after some rows. The engine pushes the filter
    /// through it, and pruning would then change which rows arrive.
    limited: bool,
}

impl PhysicalOptimizerRule for FileIndexRule {
    fn optimize(&self, plan: Plan, _: &ConfigOptions) -> Result<Plan> {
        Ok(self.rewrite(plan, Ancestors::default())?.data)
    }

    fn name(&self) -> &str {
        "file_index"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

impl FileIndexRule {
    fn rewrite(&self, plan: Plan, above: Ancestors) -> Result<Transformed<Plan>> {
        if let Some(scan) = plan.downcast_ref::<DataSourceExec>()
            && let Some(config) = scan.data_source().downcast_ref::<FileScanConfig>()
        {
            return Ok(match self.indexed(config, above) {
                Some(source) => {
                    let config = FileScanConfigBuilder::from(config.clone());
                    let config = config.with_source(Arc::new(source)).build();
                    Transformed::yes(DataSourceExec::from_data_source(config))
                }
                None => Transformed::no(plan),
            });
        }
        let children: Vec<Plan> = plan.children().into_iter().cloned().collect();
        let below = Ancestors {
            joined: above.joined || children.len() > 1,
            limited: above.limited || above.joined && ends_early(&plan),
        };
        let children = children.into_iter().map(|child| self.rewrite(child, below));
        let children = children.collect::<Result<Vec<_>>>()?;
        if !children.iter().any(|child| child.transformed) {
            return Ok(Transformed::no(plan));
        }
        let children = children.into_iter().map(|child| child.data).collect();
        Ok(Transformed::yes(with_children(plan, children)?))
    }

    /// Returns the source of a scan with the indexes, or with dynamic filters turned on or off.
    /// Returns `None` if nothing changes.
    fn indexed(&self, config: &FileScanConfig, above: Ancestors) -> Option<IndexedSource> {
        let source = config.file_source();
        let dynamic = !above.limited;
        if let Some(indexed) = source.downcast_ref::<IndexedSource>() {
            let changes = indexed.is_dynamic() != dynamic;
            return changes.then(|| indexed.clone().with_dynamic(dynamic));
        }
        let parquet = source.downcast_ref::<ParquetSource>()?;
        let indexes = indexes_for_store(&self.indexes, &config.object_store_url);
        let fields = parquet.table_schema().file_schema().fields();
        let known = |index: &StoredFileIndex| {
            fields.iter().any(|field| index.column(field.name(), field.data_type()).is_some())
        };
        use datafusion::datasource::physical_plan::FileSource;
        let predicate = parquet.filter()?;
        if !indexes.iter().any(|index| known(index)) {
            return None;
        }
        let conditions =
            Conditions::new(&indexes, fields, rounds(parquet), &predicate, Parts::Planned);
        Some(
            IndexedSource::new(source.clone(), indexes, None, conditions.problems)
                .with_dynamic(dynamic),
        )
    }
}
