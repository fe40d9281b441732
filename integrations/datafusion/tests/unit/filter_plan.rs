//! Sizes of filters and the plans that build them.

use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::Statistics;
use datafusion::common::stats::Precision;
use datafusion::physical_plan::test::exec::StatisticsExec;

use super::*;

fn side(rows: Precision<usize>) -> Side {
    let schema = Schema::new(vec![Field::new("k", DataType::Int64, true)]);
    let statistics = Statistics::new_unknown(&schema).with_num_rows(rows);
    let plan: Plan = Arc::new(StatisticsExec::new(statistics, schema));
    Side {
        columns: vec![Column::new("k", 0)],
        estimate: Planning::new(&ConfigOptions::new()).estimate(&plan),
        plan,
    }
}

#[cfg(feature = "ballista")]
#[test]
fn a_chain_pays_for_each_run_of_a_one_partition_build_side() {
    use datafusion::arrow::array::{Int64Array, RecordBatch};
    use datafusion::catalog::memory::MemorySourceConfig;

    use crate::BloomProbeExec;
    use crate::cost::work;

    let scan = |partitions: usize, rows: usize| -> Plan {
        let keys = || Arc::new(Int64Array::from_iter_values(0..(rows / partitions) as i64)) as _;
        let batch = RecordBatch::try_from_iter([("k", keys())]).unwrap();
        let (batches, schema) = (vec![vec![batch.clone()]; partitions], batch.schema());
        MemorySourceConfig::try_new_exec(&batches, schema, None).unwrap()
    };
    let mut config = ConfigOptions::new();
    config.extensions.insert(ballista_core::config::BallistaConfig::default());
    config.optimizer.repartition_file_scans = false;
    let plan = scan(1, 100_000);
    let planning = Planning::new(&config);
    let estimate = planning.estimate(&plan);
    let build = Side { columns: vec![Column::new("k", 0)], estimate, plan };
    let size = Size { expected_keys: 100_000, rate: 0.01 };
    let probed_by = |partitions| {
        let filter = filter_plan(&build, size, false, None, &config).unwrap();
        let probed = scan(partitions, 1 << 20);
        let probe = BloomProbeExec::try_new(probed, filter, vec![0], 1.0).unwrap();
        work(&(Arc::new(probe) as Plan), &planning).unwrap().time
    };
    let (four, eight) = (probed_by(4), probed_by(8));
    let once = work(&build.plan, &planning).unwrap().time;
    assert!(eight - four > 4.0 * once, "{four} {eight} {once}");
}

#[test]
fn filters_stay_within_their_limits() {
    let options = BloomJoinOptions { max_filter_bytes: 1 << 30, ..Default::default() };
    let mut config = ConfigOptions::new();
    config.execution.target_partitions = 2;
    let bytes = |rows, config: &ConfigOptions| {
        let tasks = config.execution.target_partitions as u64;
        let engine = Engine::from_config(config);
        let tasks = Tasks { building: tasks, merging: tasks, probing: tasks, engine };
        let (size, _) = size(&side(rows), tasks, None, &options, &Planning::new(config))?;
        Ok::<_, String>(size.params().unwrap().stored_bytes())
    };
    let keys = Precision::Inexact(12_000_000);
    let in_one_process = bytes(keys, &config).unwrap();
    assert!(in_one_process > 14 << 20, "{in_one_process}");
    assert!(bytes(Precision::Absent, &config).unwrap() < 2 << 20, "the default, 1 M keys");
    assert!(bytes(Precision::Inexact(usize::MAX), &config).unwrap_err().contains("rate"));
    // Each of 256 tasks reads 256 partial filters, of at most 8 bytes per key.
    config.execution.target_partitions = 256;
    assert!(bytes(Precision::Inexact(500_000), &config).is_ok());
    assert!(bytes(Precision::Inexact(700_000), &config).is_err());

    #[cfg(feature = "ballista")]
    {
        config.execution.target_partitions = 2;
        config.extensions.insert(ballista_core::config::BallistaConfig::default());
        let in_a_cluster = bytes(keys, &config).unwrap();
        assert!(in_a_cluster <= MAX_CLUSTER_BYTES, "{in_a_cluster}");
        assert!(in_a_cluster > MAX_CLUSTER_BYTES / 10 * 9, "{in_a_cluster}");
        assert!(bytes(Precision::Inexact(100_000_000), &config).is_err());
        // One task merges them, and the other tasks read one filter each.
        config.execution.target_partitions = 256;
        assert!(bytes(Precision::Inexact(700_000), &config).is_ok());
    }
}
