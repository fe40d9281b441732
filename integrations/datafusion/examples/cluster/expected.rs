//! The rows that a query determines. The engine chooses among rows that tie at the limit, and
//! orders rows that tie. Sums of floating-point numbers depend on the order of rows.

use std::collections::HashMap;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type};
use datafusion::arrow::util::display::array_value_to_string;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::prelude::SessionContext;

/// A value. There are two kinds of numbers, so that the rows of two engines are comparable.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Null,
    /// An integer or decimal.
    Exact(f64),
    Float(f64),
    Text(String),
}

pub(crate) type Row = Vec<Value>;

/// Returns the rows in order.
pub(crate) fn rows(batches: &[RecordBatch]) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for batch in batches {
        let columns: Vec<_> = batch.columns().iter().map(values).collect::<Result<_>>()?;
        rows.extend((0..batch.num_rows()).map(|row| -> Row {
            columns.iter().map(|column: &Vec<Value>| column[row].clone()).collect()
        }));
    }
    Ok(rows)
}

fn values(column: &ArrayRef) -> Result<Vec<Value>> {
    let is_null = |row| column.is_null(row);
    if column.data_type().is_numeric() {
        let numbers = cast(column, &DataType::Float64)?;
        let numbers = numbers.as_primitive::<Float64Type>();
        let is_float = column.data_type().is_floating();
        let number = |row| match numbers.value(row) {
            _ if is_null(row) => Value::Null,
            number if is_float => Value::Float(number),
            number => Value::Exact(number),
        };
        return Ok((0..column.len()).map(number).collect());
    }
    let text = |row| match is_null(row) {
        true => Ok(Value::Null),
        false => Ok(Value::Text(array_value_to_string(column, row)?)),
    };
    (0..column.len()).map(text).collect()
}

/// Maximum difference of numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tolerance {
    pub(crate) all: f64,
    /// Share of the larger number, if one of the two is a floating-point number.
    pub(crate) floats: f64,
}

impl Tolerance {
    /// For one engine that sums floating-point numbers of the same rows in any order.
    pub(crate) const ROUNDING: Tolerance = Tolerance { all: 0.0, floats: 1e-9 };

    fn equal(self, a: &[Value], b: &[Value]) -> bool {
        use Value::{Exact, Float};
        let equal = |pair: (&Value, &Value)| match pair {
            (Exact(a), Exact(b)) => (a - b).abs() <= self.all,
            (&(Float(a) | Exact(a)), &(Float(b) | Exact(b))) => {
                let most = self.all + self.floats * a.abs().max(b.abs());
                a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= most
            }
            (a, b) => a == b,
        };
        a.len() == b.len() && a.iter().zip(b).all(equal)
    }
}

/// The requirements on every answer to a query.
#[derive(Debug)]
pub(crate) struct Expected {
    /// All rows in order, without the limit of the whole query.
    rows: Vec<Row>,
    /// For each row, the rank of its sort keys among the distinct ones.
    ranks: Vec<usize>,
    limit: usize,
}

impl Expected {
    /// Runs the query without its limit.
    pub(crate) async fn new(context: &SessionContext, sql: &str) -> Result<Self> {
        let mut plan = context.state().create_logical_plan(sql).await?;
        let mut limit = usize::MAX;
        if let LogicalPlan::Limit(outer) = &plan
            && let (None, Some(fetch)) = (&outer.skip, &outer.fetch)
            && let Expr::Literal(ScalarValue::Int64(Some(fetch)), _) = fetch.as_ref()
        {
            limit = *fetch as usize;
            plan = outer.input.as_ref().clone();
        }
        let columns = plan.schema().fields().len();
        // Sort columns that are not selected are projected away above the sort.
        let (selected, sort) = match &plan {
            LogicalPlan::Projection(projection) => {
                (Some(projection.expr.clone()), projection.input.as_ref())
            }
            plan => (None, plan),
        };
        if let LogicalPlan::Sort(order) = sort {
            let all = || sort.schema().columns().into_iter().map(Expr::Column).collect();
            let selected = selected.unwrap_or_else(all).into_iter();
            let sorted = order.expr.iter().map(|by| by.expr.clone());
            // Names must not repeat.
            let named = selected.chain(sorted).enumerate();
            let named = named.map(|(n, column)| column.unalias().alias(format!("c{n}")));
            plan = LogicalPlanBuilder::from(sort.clone()).project(named)?.build()?;
        }
        let batches = context.execute_logical_plan(plan).await?.collect().await?;
        let mut rows = rows(&batches)?;
        let keys: Vec<Row> = rows.iter_mut().map(|row| row.split_off(columns)).collect();
        let (mut rank, mut ranks) = (0, Vec::new());
        for (number, key) in keys.iter().enumerate() {
            rank += usize::from(number > 0 && !Tolerance::ROUNDING.equal(key, &keys[number - 1]));
            ranks.push(rank);
        }
        Ok(Expected { rows, ranks, limit })
    }

    /// Checks the order of an answer's rows. All determined rows must be present, and the limit
    /// leaves room for rows that tie with the last one.
    pub(crate) fn check(&self, answer: &[Row], tolerance: Tolerance) -> Result<(), String> {
        let count = self.rows.len().min(self.limit);
        if answer.len() != count {
            return Err(format!("{} rows ({count})", answer.len()));
        }
        // Every answer has the same ranks in the same places. Rows can only swap within a rank.
        let mut left = Pool::new(&self.rows);
        for (number, row) in answer.iter().enumerate() {
            let rank = self.ranks[number];
            let ties = |candidate: usize| self.ranks[candidate] == rank;
            if !left.take(row, tolerance, ties) {
                return Err(format!(
                    "row {number} is {row:?}, and not {:?} or one that ties with it",
                    self.rows[number]
                ));
            }
        }
        Ok(())
    }
}

/// Rows that may be taken once each.
struct Pool<'a> {
    rows: Vec<Option<&'a Row>>,
    rows_by_text: HashMap<String, Vec<usize>>,
}

impl<'a> Pool<'a> {
    fn new(rows: &'a [Row]) -> Self {
        let mut rows_by_text = HashMap::<_, Vec<_>>::new();
        for (number, row) in rows.iter().enumerate() {
            rows_by_text.entry(text(row)).or_default().push(number);
        }
        Pool { rows: rows.iter().map(Some).collect(), rows_by_text }
    }

    /// Takes an allowed row that equals this one.
    fn take(&mut self, row: &Row, tolerance: Tolerance, allowed: impl Fn(usize) -> bool) -> bool {
        let equals = |&number: &usize| {
            let is = self.rows[number].is_some_and(|is| tolerance.equal(is, row));
            is && allowed(number)
        };
        let same = self.rows_by_text.get(&text(row)).into_iter().flatten().copied();
        let Some(found) = same.chain(0..self.rows.len()).find(equals) else { return false };
        self.rows[found] = None;
        true
    }
}

/// Returns the row with rounded numbers, which matches nearly all rows at once.
fn text(row: &Row) -> String {
    let text = |value: &Value| match value {
        Value::Exact(number) | Value::Float(number) => format!("{number:.4e}|"),
        Value::Text(text) => format!("{text}|"),
        Value::Null => "|".into(),
    };
    row.iter().map(text).collect()
}
