//! `bloom_filter_contains(filter, col)`: looks values of a column up in a filter.

use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use blocked_bloom::{BloomFilter, KeyHasher};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, BinaryArray, BooleanArray, StructArray};
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::filter::{look_up, open};
use crate::keys::KeyType;

/// The name of the scalar function.
pub const BLOOM_FILTER_CONTAINS: &str = "bloom_filter_contains";
use BLOOM_FILTER_CONTAINS as NAME;

/// Name of the struct field that holds a literal filter.
const SHARED: &str = "blocked_bloom_filter";

/// Maximum number of filters that one call of the function keeps open. Calls have more than one
/// filter only if the filters come from a column.
const MAX_OPEN: usize = 4;

/// Returns the function `bloom_filter_contains(filter, col)`: true if the value may be in the
/// filter, false if it is not, and NULL if the value or the filter is NULL.
///
/// The filter is a result of [`bloom_filter_agg`](crate::bloom_filter_agg()) for a column of the
/// same [`KeyType`], or another program's filter with the hash [`KeyType::key_hash`]. Pass it as a
/// literal, as a subquery of one row, or as a column of filters. Pass several columns as `struct(a,
/// b)`.
///
/// # Errors
///
/// At run time, if the filter is damaged or has keys of another type. The error names the function.
///
/// # Cost
///
/// One hash and about one cache line per value. A literal is copied and verified once per plan.
/// DataFusion evaluates a subquery once and copies the filter for each batch. If the optimizer
/// turns the subquery into a join, as Ballista's does, every row repeats the filter: pass a literal
/// there.
pub fn bloom_filter_contains() -> Arc<ScalarUDF> {
    Arc::new(function(false))
}

/// Creates an instance of the function with its own open filters. A plan instance drops them with
/// its plan.
pub(crate) fn function(is_plan_instance: bool) -> ScalarUDF {
    ScalarUDF::new_from_impl(BloomFilterContains {
        signature: Signature::any(2, Volatility::Immutable),
        is_plan_instance,
        opened: Mutex::default(),
    })
}

#[derive(Debug)]
struct BloomFilterContains {
    signature: Signature,
    is_plan_instance: bool,
    opened: Mutex<Vec<Opened>>,
}

#[derive(Debug)]
struct Opened {
    key: KeyType,
    stored: Stored,
    filter: Arc<BloomFilter>,
}

/// The bytes of a filter, which identify it in the next batch.
#[derive(Clone, Debug)]
enum Stored {
    /// A literal. Its pointer is the same in every batch.
    Shared(Arc<StructArray>),
    Bytes(Vec<u8>),
}

impl PartialEq for BloomFilterContains {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for BloomFilterContains {}

impl Hash for BloomFilterContains {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

impl ScalarUDFImpl for BloomFilterContains {
    fn name(&self) -> &str {
        BLOOM_FILTER_CONTAINS
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        let [filter, column] = arguments else {
            return plan_err!("{NAME}: {} arguments (must be 2)", arguments.len());
        };
        match filter {
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::Null => {}
            DataType::Struct(fields) if fields.len() == 1 && fields[0].name() == SHARED => {}
            other => {
                return plan_err!("{NAME}: the filter must be a binary value, not {other}");
            }
        }
        if *column != DataType::Null {
            KeyType::new(column)?;
        }
        Ok(DataType::Boolean)
    }

    /// Names a literal filter by its hash instead of its bytes.
    fn schema_name(&self, arguments: &[Expr]) -> Result<String> {
        let [filter, column] = arguments else {
            return plan_err!("{NAME}: {} arguments (must be 2)", arguments.len());
        };
        let filter = match literal_bytes(filter) {
            Some(bytes) => format!("filter {:016x}", KeyHasher::default().hash(bytes)),
            None => filter.schema_name().to_string(),
        };
        Ok(format!("{NAME}({filter},{})", column.schema_name()))
    }

    /// Replaces a literal binary value, which every batch would clone, by a shared value. The plan
    /// also gets its own instance of the function, which drops its open filters with the plan.
    fn simplify(
        &self,
        mut arguments: Vec<Expr>,
        _: &SimplifyContext,
    ) -> Result<ExprSimplifyResult> {
        if self.is_plan_instance || arguments.len() != 2 {
            return Ok(ExprSimplifyResult::Original(arguments));
        }
        if let Expr::Literal(value, metadata) = &arguments[0]
            && let Some(bytes) = bytes_of(value)
        {
            let array = Arc::new(BinaryArray::from_vec(vec![bytes])) as ArrayRef;
            let field = Arc::new(Field::new(SHARED, DataType::Binary, true));
            let shared = ScalarValue::Struct(Arc::new(StructArray::from(vec![(field, array)])));
            arguments[0] = Expr::Literal(shared, metadata.clone());
        }
        Ok(ExprSimplifyResult::Simplified(function(true).call(arguments)))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = arguments.number_rows;
        let [filter, column] = arguments.args.as_slice() else {
            return exec_err!("{NAME}: {} arguments (must be 2)", arguments.args.len());
        };
        let null = ColumnarValue::Scalar(ScalarValue::Boolean(None));
        if column.data_type() == DataType::Null || filter.data_type() == DataType::Null {
            return Ok(null);
        }
        let key = KeyType::new(&column.data_type())?;
        let stored = match filter {
            ColumnarValue::Array(filters) => {
                let column = column.to_array(rows)?;
                return Ok(ColumnarValue::Array(Arc::new(
                    self.look_up_rows(key, filters, &column)?,
                )));
            }
            ColumnarValue::Scalar(value) if value.is_null() => return Ok(null),
            ColumnarValue::Scalar(ScalarValue::Struct(shared)) => Stored::Shared(shared.clone()),
            ColumnarValue::Scalar(value) => match bytes_of(value) {
                Some(bytes) => Stored::Bytes(bytes.to_vec()),
                None => {
                    return exec_err!(
                        "{NAME}: the filter must be a binary value, not {}",
                        value.data_type()
                    );
                }
            },
        };
        let Some(filter) = self.open(key, stored)? else { return Ok(null) };
        match column {
            ColumnarValue::Array(column) => {
                let answers = look_up(&filter, column, &mut Vec::new())?;
                Ok(ColumnarValue::Array(Arc::new(answers)))
            }
            ColumnarValue::Scalar(value) => {
                let answer = look_up(&filter, &value.to_array()?, &mut Vec::new())?;
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&answer, 0)?))
            }
        }
    }
}

impl BloomFilterContains {
    /// Opens the filter. Returns `None` if the stored filter is NULL.
    fn open(&self, key: KeyType, stored: Stored) -> Result<Option<Arc<BloomFilter>>> {
        // The lock is held while a filter is opened, so that only one partition opens it.
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = opened.iter().find(|open| open.key == key && open.stored == stored) {
            return Ok(Some(open.filter.clone()));
        }
        let Some(bytes) = stored.bytes() else { return Ok(None) };
        let filter = Arc::new(open(bytes, key, BLOOM_FILTER_CONTAINS)?);
        if opened.len() == MAX_OPEN {
            opened.remove(0);
        }
        opened.push(Opened { key, stored, filter: filter.clone() });
        Ok(Some(filter))
    }

    /// Looks each value up in the filter of its row. Consecutive rows with the same filter are one
    /// batch.
    fn look_up_rows(
        &self,
        key: KeyType,
        filters: &ArrayRef,
        column: &ArrayRef,
    ) -> Result<BooleanArray> {
        let filters = match filters.data_type() {
            DataType::Struct(_) => filters.as_struct().column(0),
            _ => filters,
        };
        let filter_at = |row: usize| match filters.data_type() {
            _ if filters.is_null(row) => Ok(None),
            DataType::Binary => Ok(Some(filters.as_binary::<i32>().value(row))),
            DataType::LargeBinary => Ok(Some(filters.as_binary::<i64>().value(row))),
            DataType::BinaryView => Ok(Some(filters.as_binary_view().value(row))),
            other => exec_err!("{NAME}: the filter must be a binary value, not {other}"),
        };
        let (mut answers, mut hashes) = (Vec::with_capacity(column.len()), Vec::new());
        while answers.len() < column.len() {
            let first = answers.len();
            let filter = filter_at(first)?;
            let mut end = first + 1;
            while end < column.len() && filter_at(end)? == filter {
                end += 1;
            }
            match filter {
                None => answers.resize(end, None),
                Some(bytes) => {
                    let filter = self.open(key, Stored::Bytes(bytes.to_vec()))?;
                    let filter = filter.expect("it is not NULL");
                    let column = column.slice(first, end - first);
                    answers.extend(&look_up(&filter, &column, &mut hashes)?);
                }
            }
        }
        Ok(BooleanArray::from(answers))
    }
}

impl Stored {
    fn bytes(&self) -> Option<&[u8]> {
        match self {
            Stored::Bytes(bytes) => Some(bytes),
            Stored::Shared(shared) => shared_bytes(shared),
        }
    }
}

impl PartialEq for Stored {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Stored::Shared(a), Stored::Shared(b)) => Arc::ptr_eq(a, b) || a == b,
            (Stored::Bytes(a), Stored::Bytes(b)) => a == b,
            _ => false,
        }
    }
}

fn shared_bytes(shared: &StructArray) -> Option<&[u8]> {
    let bytes = shared.columns().first()?.as_binary_opt::<i32>()?;
    (bytes.len() == 1 && shared.is_valid(0) && bytes.is_valid(0)).then(|| bytes.value(0))
}

fn bytes_of(value: &ScalarValue) -> Option<&[u8]> {
    match value {
        ScalarValue::Binary(bytes)
        | ScalarValue::LargeBinary(bytes)
        | ScalarValue::BinaryView(bytes) => bytes.as_deref(),
        _ => None,
    }
}

fn literal_bytes(filter: &Expr) -> Option<&[u8]> {
    match filter {
        Expr::Literal(ScalarValue::Struct(shared), _) => shared_bytes(shared),
        Expr::Literal(value, _) => bytes_of(value),
        _ => None,
    }
}
