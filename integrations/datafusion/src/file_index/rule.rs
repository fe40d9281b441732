//! Puts the indexes before the scans of a plan: [`FileIndexRule`].

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::config::ConfigOptions;
use datafusion::datasource::physical_plan::{FileScanConfig, FileScanConfigBuilder, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;

use super::need::Parts;
use super::source::{Indexed, Needs, rounds};
use super::stored::{Indexes, StoredFileIndex, of_store};
use crate::limits::ends_early;
use crate::operators::with_children;

/// Puts the indexes of a store before each scan of its Parquet files that has a predicate. The last
/// rule of a session, so that predicates and limits are where they stay.
#[derive(Debug)]
pub(crate) struct FileIndexRule {
    pub(crate) indexes: Indexes,
}

type Plan = Arc<dyn ExecutionPlan>;

/// What is above a part of a plan.
#[derive(Clone, Copy, Default)]
struct Above {
    /// An operator that may fill in a filter for scans below it.
    joined: bool,
    /// Below such an operator, one that ends after some rows. The engine does not refuse to push
    /// the filter through it; which rows come would then depend on what is pruned.
    cut: bool,
}

impl PhysicalOptimizerRule for FileIndexRule {
    fn optimize(&self, plan: Plan, _: &ConfigOptions) -> Result<Plan> {
        Ok(self.rewrite(plan, Above::default())?.data)
    }

    fn name(&self) -> &str {
        "file_index"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

impl FileIndexRule {
    fn rewrite(&self, plan: Plan, above: Above) -> Result<Transformed<Plan>> {
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
        let below = Above {
            joined: above.joined || children.len() > 1,
            cut: above.cut || above.joined && ends_early(&plan),
        };
        let children = children.into_iter().map(|child| self.rewrite(child, below));
        let children = children.collect::<Result<Vec<_>>>()?;
        if !children.iter().any(|child| child.transformed) {
            return Ok(Transformed::no(plan));
        }
        let children = children.into_iter().map(|child| child.data).collect();
        Ok(Transformed::yes(with_children(plan, children)?))
    }

    /// The source of a scan with the indexes before it, or with fewer filters that count; `None` if
    /// nothing changes.
    fn indexed(&self, config: &FileScanConfig, above: Above) -> Option<Indexed> {
        let source = config.file_source();
        let dynamic = !above.cut;
        if let Some(indexed) = source.downcast_ref::<Indexed>() {
            let changes = indexed.is_dynamic() != dynamic;
            return changes.then(|| indexed.clone().with_dynamic(dynamic));
        }
        let parquet = source.downcast_ref::<ParquetSource>()?;
        let indexes = of_store(&self.indexes, &config.object_store_url);
        let fields = parquet.table_schema().file_schema().fields();
        let known = |index: &StoredFileIndex| {
            fields.iter().any(|field| index.column(field.name(), field.data_type()).is_some())
        };
        use datafusion::datasource::physical_plan::FileSource;
        let predicate = parquet.filter()?;
        if !indexes.iter().any(|index| known(index)) {
            return None;
        }
        let needs = Needs::of(&indexes, fields, rounds(parquet), &predicate, Parts::Planned);
        Some(Indexed::new(source.clone(), indexes, None, needs.problems).with_dynamic(dynamic))
    }
}
