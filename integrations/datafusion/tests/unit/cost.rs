//! The number of tasks and the transport of filters.

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::catalog::memory::DataSourceExec;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::object_store::ObjectStoreUrl;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder, ParquetSource};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{Partitioning, PhysicalExpr};

use super::*;

/// Four files of `file_bytes` each.
fn scan(file_bytes: u64) -> Plan {
    let schema = Arc::new(Schema::new(vec![Field::new("k", DataType::Int64, true)]));
    let files = |n| FileGroup::new(vec![PartitionedFile::new(format!("{n}"), file_bytes)]);
    let source = Arc::new(ParquetSource::new(schema));
    let config = FileScanConfigBuilder::new(ObjectStoreUrl::local_filesystem(), source)
        .with_file_groups((0..4).map(files).collect());
    DataSourceExec::from_data_source(config.build())
}

#[test]
fn tasks_are_counted_after_files_are_divided() {
    let mut config = ConfigOptions::new();
    config.execution.target_partitions = 64;
    config.optimizer.repartition_file_min_size = 10 << 20;
    let (small, large) = (scan(1 << 20), scan(10 << 20));
    assert_eq!((task_count(&small, &config), task_count(&large, &config)), (4, 64));
    let column: Arc<dyn PhysicalExpr> = Arc::new(Column::new("k", 0));
    let above = |input| ProjectionExec::try_new([(column.clone(), "k".to_string())], input);
    let union = UnionExec::try_new(vec![small.clone(), large.clone()]).unwrap();
    assert_eq!(task_count(&(Arc::new(above(union).unwrap()) as Plan), &config), 4 + 64);
    let shuffle = Partitioning::Hash(vec![column], 4);
    let shuffled: Plan = Arc::new(RepartitionExec::try_new(small.clone(), shuffle).unwrap());
    assert_eq!(task_count(&shuffled, &config), 64);

    config.optimizer.repartition_file_min_size = 4 << 20;
    assert_eq!(task_count(&small, &config), 64);
    config.optimizer.repartition_file_scans = false;
    assert_eq!((task_count(&small, &config), task_count(&large, &config)), (4, 4));
    config.execution.target_partitions = 0;
    config.optimizer.repartition_file_scans = true;
    assert_eq!(task_count(&large, &config), 1);
}

#[test]
fn every_ballista_task_builds_a_one_partition_filter() {
    let tasks = |engine| Tasks { building: 1, merging: 64, probing: 64, engine };
    let Transport { merged, shuffled, bytes, runs, .. } =
        tasks(Engine::Ballista).transport(1_000, 800);
    assert_eq!((merged, shuffled, bytes, runs), (false, 0, 0, 64));
    for engine in [Engine::OneProcess, Engine::Distributed] {
        let moved = tasks(engine).transport(1_000, 800);
        assert!(moved.runs == 1 && moved.bytes > 0, "{moved:?}");
    }
    let build = Work { time: 1e6, shuffled: 0.0, rows: 1e4 };
    let saved = Saved { probed: 1e6, rows: 1e6, time: 1e9, bytes: 1e8, may_broadcast: false };
    let balance = Balance { build, probe_time: 5e6, saved };
    let moved = tasks(Engine::Ballista).transport(1_000, 800);
    assert_eq!(balance.time(moved), 64.0 * (1e6 + FETCH) + TASK + 5e6);
    assert!(
        balance.describe(moved).contains("640000 rows read again"),
        "{}",
        balance.describe(moved)
    );
}

#[test]
fn many_tasks_read_one_merged_filter() {
    // 1.2 M keys at 1 % take 1.44 MB. The hashes that 200 tasks read are 1.9 GB together.
    let (filter, keys) = (1_440_000, 1_200_000);
    let tasks = |tasks, engine| Tasks { building: tasks, merging: tasks, probing: tasks, engine };
    let direct = tasks(200, Engine::OneProcess).transport(filter, keys);
    assert!(!direct.merged, "in one process all tasks share one filter");
    assert_eq!((direct.shuffled, direct.bytes), (9_600_000, 200 * 9_600_000));
    let merged = tasks(200, Engine::Ballista).transport(filter, keys);
    assert!(merged.merged);
    assert_eq!(merged.shuffled, 9_600_000 + filter);
    assert_eq!(merged.bytes, 9_600_000 + 200 * filter);
    // Bytes that are sent to several tasks count for each task.
    let merged = tasks(200, Engine::Distributed).transport(filter, keys);
    assert_eq!(merged.shuffled, 9_600_000 + 200 * filter);
    let direct = tasks(4, Engine::Distributed).transport(1000, keys);
    assert_eq!((direct.merged, direct.shuffled), (false, 4 * 4 * 1000));
    // Few tasks do not wait for another stage. Many tasks do, even for few keys.
    assert!(!tasks(4, Engine::Ballista).transport(filter, keys).merged);
    let small = tasks(200, Engine::Ballista).transport(1_000, 800);
    assert!(small.merged && small.time < 1e9, "{small:?}");
    // All tasks of the merging stage must start, even if there are few others.
    let few = Tasks { merging: 200, ..tasks(8, Engine::Ballista) };
    assert!(!few.transport(filter, keys).merged);
}
