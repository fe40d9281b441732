//! A fact table and two dimensions as Parquet files of pseudo-random rows.

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray};
use datafusion::common::Result;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::prelude::{ParquetReadOptions, SessionContext};

const FILES: u64 = 4;
const ROWS_AT_ONCE: u64 = 100_000;

/// Returns a pseudo-random number that depends only on the argument (SplitMix64).
fn random(n: u64) -> u64 {
    let n = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let n = (n ^ n >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ n >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ n >> 31
}

/// Writes `fact` with `rows` rows to four files, and two dimensions with a twentieth of the rows
/// and an attribute from 0 to 999:
///
/// - `dim_a`: keys from 0, all of them in `fact.fk_a`.
/// - `dim_b`: a hundredth of the keys in `fact.fk_b`.
pub(crate) fn write(directory: &Path, rows: u64) -> Result<()> {
    let keys = rows / 20;
    for file in 0..FILES {
        let path = directory.join("fact");
        fs::create_dir_all(&path)?;
        let path = path.join(format!("part-{file}.parquet"));
        table(&path, rows / FILES, |row| {
            let row = file * (rows / FILES) + row;
            let at = |column: u64| random(row * 4 + column);
            Ok(vec![
                ("fk_a", int64(at(0) % keys)),
                ("fk_b", int64(at(1) % (100 * keys))),
                ("qty", Value::Int32((at(2) % 100) as i32)),
                ("note", Value::Text(format!("{:013}", at(3) % (1 << 40)))),
            ])
        })?;
    }
    for (name, spread) in [("dim_a", 1), ("dim_b", 100)] {
        table(&directory.join(format!("{name}.parquet")), keys, |row| {
            let key = row * spread + random(row) % spread;
            Ok(vec![
                ("k", int64(key)),
                ("attr", Value::Int32((random(!row) % 1000) as i32)),
                ("name", Value::Text(format!("n{key}"))),
            ])
        })?;
    }
    Ok(())
}

/// Registers the tables with a session.
pub(crate) async fn register(context: &SessionContext, directory: &Path) -> Result<()> {
    for (name, path) in [("fact", "fact/"), ("dim_a", "dim_a.parquet"), ("dim_b", "dim_b.parquet")]
    {
        let path = format!("{}/{path}", directory.display());
        context.register_parquet(name, &path, ParquetReadOptions::default()).await?;
    }
    Ok(())
}

enum Value {
    Int32(i32),
    Int64(i64),
    Text(String),
}

fn int64(value: u64) -> Value {
    Value::Int64(value as i64)
}

type Row = Vec<(&'static str, Value)>;

fn table(path: &Path, rows: u64, row: impl Fn(u64) -> Result<Row>) -> Result<()> {
    let mut writer = None;
    for first in (0..rows).step_by(ROWS_AT_ONCE as usize) {
        let last = rows.min(first + ROWS_AT_ONCE);
        let some = (first..last).map(&row).collect::<Result<Vec<Row>>>()?;
        let column = |number: usize| -> (&str, ArrayRef) {
            let values = || some.iter().map(|row| &row[number].1);
            let array: ArrayRef = match some[0][number].1 {
                Value::Int32(_) => Arc::new(Int32Array::from_iter(values().map(|v| match v {
                    Value::Int32(value) => Some(*value),
                    _ => None,
                }))),
                Value::Int64(_) => Arc::new(Int64Array::from_iter(values().map(|v| match v {
                    Value::Int64(value) => Some(*value),
                    _ => None,
                }))),
                Value::Text(_) => Arc::new(StringArray::from_iter(values().map(|v| match v {
                    Value::Text(value) => Some(value),
                    _ => None,
                }))),
            };
            (some[0][number].0, array)
        };
        let batch = RecordBatch::try_from_iter((0..some[0].len()).map(column))?;
        if writer.is_none() {
            writer = Some(ArrowWriter::try_new(File::create(path)?, batch.schema(), None)?);
        }
        writer.as_mut().expect("made for the first rows").write(&batch)?;
    }
    if let Some(writer) = writer {
        writer.close()?;
    }
    Ok(())
}
