//! TPC-DS: with filters, its queries return the rows of the plain engine and of DuckDB.
//!
//! The tests read the folder `BLOCKED_BLOOM_TPCDS`, which `suites/prepare.py` writes. Without it
//! they do nothing.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use datafusion::arrow::array::RecordBatch;
use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use datafusion::physical_plan::{collect, displayable};
use datafusion::prelude::{SessionConfig, SessionContext};
use tokio::time::timeout;

pub(crate) use self::checked::{Expected, Row, Tolerance};
pub(crate) use self::generated::{query, register};
use crate::common::{config, context_of, run};

#[path = "../../examples/cluster/expected.rs"]
mod checked;
#[path = "../../examples/cluster/tpcds.rs"]
mod generated;

/// DuckDB divides and averages decimals as floating-point numbers. DataFusion truncates the result
/// after four more digits.
const DIGITS: Tolerance = Tolerance { all: 2e-4, floats: 1e-6 };

/// Returns the folder of tables and queries, if there is one.
pub(crate) fn folder() -> Option<PathBuf> {
    let folder = std::env::var_os("BLOCKED_BLOOM_TPCDS").map(PathBuf::from);
    if folder.is_none() {
        println!("skipped: BLOCKED_BLOOM_TPCDS names no folder (suites/prepare.py writes one)");
    }
    folder
}

/// Returns each query with its rows, which the plain engine returns in one process.
pub(crate) async fn expected(folder: &Path) -> Vec<(String, Expected)> {
    let context = session(config(), folder).await;
    run(&context, "SET bloom_join.enabled = false").await;
    let mut queries = Vec::new();
    for number in 1..=99 {
        let sql = query(folder, number).unwrap();
        let expected = Expected::new(&context, &sql).await;
        queries.push((sql, expected.unwrap_or_else(|error| panic!("query {number}: {error}"))));
    }
    queries
}

async fn session(config: SessionConfig, folder: &Path) -> SessionContext {
    let context = context_of(config).await;
    register(&context, folder).await.unwrap();
    context
}

/// Returns the number of filters in a query's plan, and its rows or an error. More than two minutes
/// is an error.
pub(crate) async fn answer(
    context: &SessionContext,
    sql: &str,
) -> (usize, Result<Vec<Row>, String>) {
    let mut filters = 0;
    let run = async {
        let plan = context.sql(sql).await?.create_physical_plan().await?;
        let shown = displayable(plan.as_ref()).indent(false).to_string();
        filters = shown.matches("BloomProbeExec").count();
        collect(plan, context.task_ctx()).await
    };
    let rows = match timeout(Duration::from_secs(120), run).await {
        Ok(Ok(batches)) => Ok(checked::rows(&batches).unwrap()),
        Ok(Err(error)) => Err(error.to_string().lines().next().unwrap_or_default().into()),
        Err(_) => Err("no answer in two minutes".into()),
    };
    (filters, rows)
}

fn duckdb_rows(folder: &Path, number: usize) -> Vec<Row> {
    let file = File::open(folder.join(format!("answers/{number:02}.parquet"))).unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap();
    let batches: Vec<RecordBatch> = reader.map(|batch| batch.unwrap()).collect();
    checked::rows(&batches).unwrap()
}

#[tokio::test]
async fn the_99_queries_in_one_process() {
    let Some(folder) = folder() else { return };
    let mut modes = Vec::new();
    for hash in [true, false] {
        for pushdown in [false, true] {
            let config = config()
                .set_bool("datafusion.optimizer.prefer_hash_join", hash)
                .set_bool("datafusion.execution.parquet.pushdown_filters", pushdown);
            let name = format!("hash joins {hash}, row filters {pushdown}");
            modes.push((name, session(config, &folder).await, 0));
        }
    }
    let mut wrong = Vec::new();
    for (number, (sql, expected)) in (1..).zip(expected(&folder).await) {
        let start = Instant::now();
        if let Err(error) = expected.check(&duckdb_rows(&folder, number), DIGITS) {
            wrong.push(format!("query {number}, DuckDB: {error}"));
        }
        for (name, context, filters) in &mut modes {
            let (planned, rows) = answer(context, &sql).await;
            *filters += planned;
            let checked = rows.and_then(|rows| expected.check(&rows, Tolerance::ROUNDING));
            if let Err(error) = checked {
                wrong.push(format!("query {number}, {name}: {error}"));
            }
        }
        println!("query {number}: {:.1} s", start.elapsed().as_secs_f64());
    }
    for (name, _, filters) in &modes {
        println!("{name}: {filters} filters");
        assert!(*filters > 100, "{name}: {filters} filters");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
