use datafusion::arrow::array::AsArray;
use datafusion::prelude::{SessionConfig, SessionContext};
use futures::TryStreamExt;

use super::*;
use crate::filter::open_with_ranges;

const SIZE: Size = Size { expected_keys: 200_000, rate: 0.01 };

/// Returns the filter of the selected rows of a table of 200,000 keys, and the number of
/// partitions that stopped. The values of `attr` are spread over the table; those of `day`
/// ascend.
async fn built(
    predicate: &str,
    row_filters: bool,
    stop_above: Option<f64>,
) -> (Collector, KeyType, usize) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("d.parquet");
    let (option, file) = ("datafusion.execution.parquet.pushdown_filters", file.display());
    let config = SessionConfig::new().with_target_partitions(1).set_bool(option, row_filters);
    let context = SessionContext::new_with_config(config);
    for sql in [
        format!(
            "COPY (SELECT value AS k, value * 7919 % 100 AS attr, value / 2000 AS day
                   FROM generate_series(0, 199999)) TO '{file}'
             OPTIONS ('format.max_row_group_size' 20000)"
        ),
        format!("CREATE EXTERNAL TABLE d STORED AS PARQUET LOCATION '{file}'"),
    ] {
        context.sql(&sql).await.unwrap().collect().await.unwrap();
    }
    let keys = context.sql(&format!("SELECT k FROM d WHERE {predicate}")).await.unwrap();
    let keys = keys.create_physical_plan().await.unwrap();
    let build = BloomBuildExec::try_new(keys, SIZE, stop_above, true).unwrap();
    let mut merged = Collector::new(build.key, SIZE).unwrap();
    for partition in 0..build.properties.partitioning.partition_count() {
        let stream = build.execute(partition, context.task_ctx()).unwrap();
        let batches: Vec<RecordBatch> = stream.try_collect().await.unwrap();
        assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 1);
        merged.merge(batches[0].column(1).as_binary::<i32>().value(0)).unwrap();
    }
    let stopped = build.metrics().unwrap().sum_by_name("stopped").unwrap().as_usize();
    (merged, build.key, stopped)
}

#[tokio::test]
async fn reading_stops_when_nearly_all_rows_are_keys() {
    for row_filters in [false, true] {
        for (predicate, stop_above, stops) in [
            ("attr < 90", Some(0.8), true),
            ("attr < 70", Some(0.8), false),
            ("attr < 90", None, false),
            ("attr <> 5", Some(0.8), true),
            // By statistics, the first row groups match entirely or not at all.
            ("day < 90", Some(0.8), false),
            ("day >= 10", Some(0.8), false),
        ] {
            let (mut merged, key, stopped) = built(predicate, row_filters, stop_above).await;
            let case = format!("{predicate}, row filters {row_filters}: {stopped} stopped");
            assert_eq!(stopped > 0, stops, "{case}");
            let (filter, ranges) = open_with_ranges(&merged.finish().unwrap(), key, NAME).unwrap();
            assert_eq!(ranges.is_none(), stops, "{case}");
            assert_eq!(filter.is_pass_all(), stops, "{case}");
        }
    }
}

#[cfg(feature = "ballista")]
#[test]
fn encoded_operators_are_decoded() {
    let field = Field::new("k", DataType::Int64, true);
    let schema = Arc::new(Schema::new(vec![field]));
    let input: Arc<dyn ExecutionPlan> =
        Arc::new(datafusion::physical_plan::empty::EmptyExec::new(schema));
    for (stop_above, grouped) in [(None, false), (Some(0.75), true)] {
        let build = BloomBuildExec::try_new(input.clone(), SIZE, stop_above, grouped).unwrap();
        let mut bytes = Vec::new();
        build.encode(&mut bytes);
        let bytes = bytes.strip_prefix(BloomBuildExec::MAGIC).unwrap();
        let decoded = BloomBuildExec::decode(bytes, std::slice::from_ref(&input)).unwrap();
        assert_eq!(
            (decoded.size, decoded.stop_above, decoded.grouped),
            (SIZE, stop_above, grouped)
        );
        assert_eq!(decoded.schema(), build.schema());
        for cut in 0..bytes.len() {
            let inputs = std::slice::from_ref(&input);
            assert!(BloomBuildExec::decode(&bytes[..cut], inputs).is_err(), "{cut} bytes");
        }
        assert!(BloomBuildExec::decode(bytes, &[]).is_err());
    }
}
