//! `bloom_filter_agg(col [, expected_keys [, fpr]])`: builds a filter from a column's values.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Signature, TypeSignature, Volatility,
};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Literal;

use crate::filter::{Collector, Size};
use crate::keys::{KeyType, hash_valid};

/// The name of the aggregate function.
pub const BLOOM_FILTER_AGG: &str = "bloom_filter_agg";
use BLOOM_FILTER_AGG as NAME;

/// Default values of the optional arguments.
const DEFAULT_KEYS: f64 = 1e6;
const DEFAULT_RATE: f64 = 0.01;

/// Returns the aggregate `bloom_filter_agg(col [, expected_keys [, fpr]])`, which builds a stored
/// filter (a binary value) from the non-NULL values of a column.
///
/// `expected_keys` (default 1,000,000) and `fpr` (default 0.01) must be literals. They size the
/// filters of all partitions, which are then merged. The result is folded to the smallest filter
/// that keeps the rate for the keys it contains. More keys than expected raise the rate. A group
/// without keys returns an empty filter. Pass several columns as `struct(a, b)`.
///
/// ```
/// use blocked_bloom_datafusion::with_bloom_filters;
/// use datafusion::prelude::*;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> datafusion::error::Result<()> {
/// let context = SessionContext::new_with_state(with_bloom_filters(SessionContext::new().state()));
/// let sql = "SELECT v FROM (VALUES (1), (2), (3)) t(v)
///            WHERE bloom_filter_contains((SELECT bloom_filter_agg(k) FROM (VALUES (2)) d(k)), v)";
/// assert_eq!(context.sql(sql).await?.count().await?, 1);
/// # Ok(())
/// # }
/// ```
pub fn bloom_filter_agg() -> Arc<AggregateUDF> {
    Arc::new(AggregateUDF::new_from_impl(BloomFilterAgg {
        signature: Signature::new(
            TypeSignature::OneOf((1..=3).map(TypeSignature::Any).collect()),
            Volatility::Immutable,
        ),
    }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct BloomFilterAgg {
    signature: Signature,
}

impl AggregateUDFImpl for BloomFilterAgg {
    fn name(&self) -> &str {
        BLOOM_FILTER_AGG
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        match arguments.first() {
            Some(column) => KeyType::new(column).map(|_| DataType::Binary),
            None => plan_err!("{NAME}: the first argument, a column, is missing"),
        }
    }

    fn state_fields(&self, arguments: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let name = format_state_name(arguments.name, "keys");
        Ok(vec![Arc::new(Field::new(name, DataType::Binary, true))])
    }

    fn accumulator(&self, arguments: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let Some(column) = arguments.expr_fields.first() else {
            return plan_err!("{NAME}: the first argument, a column, is missing");
        };
        let keys = number(arguments.exprs.get(1))?.unwrap_or(DEFAULT_KEYS);
        if !(1.0..=1e12).contains(&keys) {
            return exec_err!("{NAME}: expected_keys is {keys} (must be from 1 to 1e12)");
        }
        let rate = number(arguments.exprs.get(2))?.unwrap_or(DEFAULT_RATE);
        if !(rate > 0.0 && rate < 1.0) {
            return exec_err!("{NAME}: fpr is {rate} (must be above 0 and below 1)");
        }
        let size = Size { expected_keys: keys as u64, rate };
        let keys = Collector::new(KeyType::new(column.data_type())?, size)?;
        Ok(Box::new(FilterAccumulator { keys, hashes: Vec::new() }))
    }
}

fn number(argument: Option<&Arc<dyn PhysicalExpr>>) -> Result<Option<f64>> {
    let Some(argument) = argument else { return Ok(None) };
    let Some(literal) = argument.downcast_ref::<Literal>() else {
        return exec_err!("{NAME}: expected_keys and fpr must be literals, not {argument}");
    };
    match literal.value().cast_to(&DataType::Float64)? {
        ScalarValue::Float64(Some(value)) => Ok(Some(value)),
        _ => exec_err!("{NAME}: expected_keys and fpr must not be NULL"),
    }
}

#[derive(Debug)]
struct FilterAccumulator {
    keys: Collector,
    hashes: Vec<u64>,
}

impl Accumulator for FilterAccumulator {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        hash_valid(&values[0], &mut self.hashes)?;
        self.keys.insert(&self.hashes)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let states = states[0].as_binary::<i32>();
        states.iter().flatten().try_for_each(|state| self.keys.merge(state))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![ScalarValue::Binary(Some(self.keys.state()))])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::Binary(Some(self.keys.finish()?)))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.keys.memory_bytes() + self.hashes.capacity() * 8
    }
}
