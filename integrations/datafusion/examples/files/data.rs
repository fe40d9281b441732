//! Spans of traces, as Parquet files of uneven size.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, Date32Array, Decimal128Array, Float64Array, Int32Array, Int64Array, RecordBatch,
    StringArray, TimestampMicrosecondArray,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use datafusion::common::Result;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::file::properties::WriterProperties;
use datafusion::parquet::schema::types::ColumnPath;

/// Pseudo-random numbers (SplitMix64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let n = self.0;
        let n = (n ^ n >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let n = (n ^ n >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        n ^ n >> 31
    }

    pub(crate) fn number_below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }

    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub(crate) fn pick<'a, T>(&mut self, values: &'a [T]) -> &'a T {
        &values[self.number_below(values.len() as u64) as usize]
    }

    /// Returns a user. A few users have many spans, and many users have few.
    pub(crate) fn user(&mut self) -> i64 {
        1e6f64.powf(self.unit()) as i64 * 7919 % 1_000_003
    }

    pub(crate) fn trace(&mut self) -> String {
        format!("{:016x}{:016x}", self.next(), self.next())
    }

    pub(crate) fn score(&mut self) -> f64 {
        match self.number_below(8) {
            0 => f64::NAN,
            1 => -0.0,
            2 => 0.0,
            _ => self.number_below(4000) as f64 / 8.0,
        }
    }
}

/// Time of the first span, in microseconds since 1970.
pub(crate) const START: i64 = 1_700_000_000_000_000;

pub(crate) fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("ts", DataType::Timestamp(TimeUnit::Microsecond, None), false),
        Field::new("trace_id", DataType::Utf8, true),
        Field::new("user_id", DataType::Int64, true),
        Field::new("status", DataType::Int32, false),
        Field::new("amount", DataType::Decimal128(12, 2), true),
        Field::new("score", DataType::Float64, true),
        Field::new("day", DataType::Date32, false),
        Field::new("message", DataType::Utf8, false),
    ]))
}

/// Returns spans. A fiftieth of their values are NULL.
pub(crate) fn spans(random: &mut Random, rows: usize, first: i64) -> RecordBatch {
    let (mut ts, mut trace) = (first, random.trace());
    let (mut times, mut traces, mut users, mut status) = (vec![], vec![], vec![], vec![]);
    let (mut amounts, mut scores, mut days, mut messages) = (vec![], vec![], vec![], vec![]);
    for _ in 0..rows {
        ts += random.number_below(1000) as i64;
        if random.number_below(2) == 0 {
            trace = random.trace();
        }
        times.push(ts);
        traces.push((random.number_below(50) > 0).then(|| trace.clone()));
        users.push((random.number_below(50) > 0).then(|| random.user()));
        status.push(*random.pick(&[200, 200, 200, 404, 500]));
        amounts.push((random.number_below(50) > 0).then(|| random.number_below(1_000_000) as i128));
        scores.push((random.number_below(50) > 0).then(|| random.score()));
        days.push((ts / 86_400_000_000) as i32 + random.number_below(2000) as i32);
        let took = random.number_below(100_000);
        messages.push(format!("request {} took {took} us", random.next()));
    }
    let amounts = Decimal128Array::from(amounts).with_precision_and_scale(12, 2);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(TimestampMicrosecondArray::from(times)),
        Arc::new(StringArray::from(traces)),
        Arc::new(Int64Array::from(users)),
        Arc::new(Int32Array::from(status)),
        Arc::new(amounts.expect("12 digits")),
        Arc::new(Float64Array::from(scores)),
        Arc::new(Date32Array::from(days)),
        Arc::new(StringArray::from(messages)),
    ];
    RecordBatch::try_new(schema(), columns).expect("columns of the schema")
}

/// Writes a file with this many row groups, with or without Parquet's own Bloom filters of two
/// columns.
pub(crate) fn write(path: &Path, batch: &RecordBatch, groups: usize, filters: bool) -> Result<()> {
    let rows = batch.num_rows().div_ceil(groups).max(1);
    let mut properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(rows))
        .set_column_dictionary_enabled(ColumnPath::from("trace_id"), false);
    for column in ["trace_id", "user_id"].into_iter().filter(|_| filters) {
        properties = properties
            .set_column_bloom_filter_enabled(column.into(), true)
            .set_column_bloom_filter_fpp(column.into(), 0.01)
            .set_column_bloom_filter_max_ndv(column.into(), rows as u64);
    }
    let file = File::create(path)?;
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties.build()))?;
    writer.write(batch)?;
    writer.close()?;
    Ok(())
}

/// Returns the spans with other column types, or without the columns whose type is `None`.
pub(crate) fn retyped(batch: &RecordBatch, types: &[(&str, Option<DataType>)]) -> RecordBatch {
    let (mut fields, mut columns) = (Vec::new(), Vec::new());
    for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
        match types.iter().find(|(name, _)| name == field.name()) {
            None => {
                fields.push(field.as_ref().clone());
                columns.push(column.clone());
            }
            Some((_, None)) => {}
            Some((_, Some(to))) => {
                fields.push(field.as_ref().clone().with_data_type(to.clone()));
                columns.push(cast(column, to).expect("a cast that arrow knows"));
            }
        }
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).expect("columns of the schema")
}
