use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::catalog::memory::MemorySourceConfig;
use datafusion::datasource::physical_plan::{FileScanConfigBuilder, ParquetSource};
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::physical_expr::expressions::{col, lit};
use datafusion::physical_expr::{LexOrdering, Partitioning, PhysicalSortExpr};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::CrossJoinExec;
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::union::UnionExec;

use super::*;

type Plan = Arc<dyn ExecutionPlan>;

fn scan(limit: Option<usize>) -> Plan {
    let field = Field::new("k", DataType::Int64, true);
    let source = Arc::new(ParquetSource::new(Arc::new(Schema::new(vec![field]))));
    let url = ObjectStoreUrl::local_filesystem();
    let config = FileScanConfigBuilder::new(url, source).with_limit(limit).build();
    DataSourceExec::from_data_source(config)
}

fn filter(input: Plan) -> FilterExec {
    FilterExec::try_new(lit(true), input).unwrap()
}

fn projection(input: Plan) -> Plan {
    let k = col("k", &input.schema()).unwrap();
    Arc::new(ProjectionExec::try_new(vec![(k, "k".to_string())], input).unwrap())
}

#[test]
fn row_filters_pass_row_wise_operators() {
    let passing: [fn(Plan) -> Plan; 3] = [
        |input| Arc::new(filter(input)),
        projection,
        |input| Arc::new(CooperativeExec::new(input)),
    ];
    for above in passing {
        for below in passing {
            assert!(is_row_wise(&above(below(scan(None)))));
            assert!(!is_row_wise(&above(below(scan(Some(9))))));
        }
    }
}

#[test]
fn row_filters_stop_at_other_operators() {
    let order = |input: &Plan| {
        LexOrdering::new([PhysicalSortExpr::new_default(col("k", &input.schema()).unwrap())])
            .unwrap()
    };
    let input = || scan(None);
    let sort = || SortExec::new(order(&input()), input());
    let memory = MemorySourceConfig::try_new(&[vec![]], input().schema(), None).unwrap();
    let refused: Vec<Plan> = vec![
        scan(Some(9)),
        DataSourceExec::from_data_source(memory),
        filter(input()).with_fetch(Some(9)).unwrap(),
        Arc::new(GlobalLimitExec::new(input(), 1, None)),
        Arc::new(GlobalLimitExec::new(input(), 0, Some(9))),
        Arc::new(LocalLimitExec::new(input(), 9)),
        Arc::new(sort()),
        Arc::new(sort().with_fetch(Some(9))),
        Arc::new(SortPreservingMergeExec::new(order(&input()), input())),
        Arc::new(CoalescePartitionsExec::new(input())),
        Arc::new(RepartitionExec::try_new(input(), Partitioning::RoundRobinBatch(2)).unwrap()),
        UnionExec::try_new(vec![input(), input()]).unwrap(),
        Arc::new(CrossJoinExec::new(input(), input())),
    ];
    for plan in refused {
        assert!(!is_row_wise(&plan), "{plan:?}");
        assert!(!is_row_wise(&projection(plan.clone())), "{plan:?}");
    }
}
