//! The assumed share of rows that predicates leave.

use datafusion::arrow::datatypes::{Field, Schema};
use datafusion::common::ColumnStatistics;
use datafusion::common::stats::Precision;
use datafusion::config::ConfigOptions;
use datafusion::physical_expr::expressions::{binary, col, in_list, is_not_null, is_null, lit};
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::test::exec::StatisticsExec;

use super::*;

fn left(table: Arc<dyn ExecutionPlan>, predicate: &Arc<dyn PhysicalExpr>) -> f64 {
    let once = FilterExec::try_new(predicate.clone(), table).unwrap();
    let once: Arc<dyn ExecutionPlan> = Arc::new(once);
    let twice = FilterExec::try_new(predicate.clone(), once.clone()).unwrap();
    let config = ConfigOptions::new();
    let planning = Planning::new(&config);
    let share = predicate_selectivity(&once, &planning);
    let twice: Arc<dyn ExecutionPlan> = Arc::new(twice);
    let repeated = predicate_selectivity(&twice, &planning);
    assert!((share - repeated).abs() < 1e-9, "{predicate}: {share}, repeated {repeated}");
    share
}

#[test]
fn each_allowed_value_keeps_a_tenth() {
    let fields = ["a", "b"].map(|name| Field::new(name, DataType::Utf8, true));
    let schema = Arc::new(Schema::new(fields.to_vec()));
    let a = || col("a", &schema).unwrap();
    let both = |l, op, r| binary(l, op, r, &schema).unwrap();
    let less = || both(col("b", &schema).unwrap(), Operator::Lt, lit("3"));
    let equal = |n: &str| both(a(), Operator::Eq, lit(n));
    let list = |negated| {
        let values = ["1", "2", "3"].map(lit).to_vec();
        in_list(a(), values, &negated, &schema).unwrap()
    };
    for (share, predicate) in [
        (0.5, less()),
        (0.5, both(less(), Operator::And, both(a(), Operator::Gt, lit("1")))),
        (0.1, equal("1")),
        (0.05, both(equal("1"), Operator::And, less())),
        (0.05, both(both(less(), Operator::And, equal("1")), Operator::And, equal("1"))),
        (0.2, both(equal("1"), Operator::Or, equal("2"))),
        (0.5, both(equal("1"), Operator::Or, less())),
        (0.15, both(both(equal("1"), Operator::And, less()), Operator::Or, equal("2"))),
        (0.3, list(false)),
        (0.5, list(true)),
        (0.5, both(a(), Operator::Eq, col("b", &schema).unwrap())),
    ] {
        let computed = left(Arc::new(EmptyExec::new(schema.clone())), &predicate);
        assert!((computed - share).abs() < 1e-9, "{predicate}: {computed} ({share})");
    }
}

/// Generated chains can be so long that one level of recursion per operand would overflow the
/// stack.
#[test]
fn long_chains_of_alternatives_are_estimated() {
    let schema = Arc::new(Schema::new(vec![Field::new("a", DataType::Utf8, true)]));
    let a = col("a", &schema).unwrap();
    let equal = |n: usize| -> Arc<dyn PhysicalExpr> {
        Arc::new(BinaryExpr::new(a.clone(), Operator::Eq, lit(n.to_string())))
    };
    let values = Values { schema, statistics: None };
    for (n, share) in [(1, 0.1), (4, 0.4), (5, 0.5), (6, 0.5), (100_000, 0.5)] {
        let mut chain = (1..n).fold(equal(0), |chain, n| -> Arc<dyn PhysicalExpr> {
            Arc::new(BinaryExpr::new(chain, Operator::Or, equal(n)))
        });
        let computed = Conjunction::new(&values, &chain).selectivity();
        // Dropping the whole chain at once would recurse as well.
        while let Some(left) = chain.downcast_ref::<BinaryExpr>().map(|b| b.left().clone()) {
            chain = left;
        }
        assert!((computed - share).abs() < 1e-9, "{n} alternatives: {computed} ({share})");
    }
}

#[test]
fn amounts_above_a_bound_are_few() {
    let schema = Arc::new(Schema::new(vec![Field::new("a", DataType::Float64, true)]));
    let column = ColumnStatistics {
        min_value: Precision::Exact(ScalarValue::Float64(Some(0.0))),
        max_value: Precision::Exact(ScalarValue::Float64(Some(1000.0))),
        ..Default::default()
    };
    let statistics = Statistics::new_unknown(&schema);
    let statistics = Statistics { column_statistics: vec![column], ..statistics };
    let compare = |op, n: f64| binary(col("a", &schema).unwrap(), op, lit(n), &schema).unwrap();
    let (above, below) = (compare(Operator::Gt, 400.0), compare(Operator::Lt, 600.0));
    let both = binary(above.clone(), Operator::And, below.clone(), &schema).unwrap();
    for (share, predicate) in
        [(0.1, above), (0.6, below), (0.1, both), (0.05, compare(Operator::Gt, 950.0))]
    {
        let table = StatisticsExec::new(statistics.clone(), schema.as_ref().clone());
        let filter = FilterExec::try_new(predicate.clone(), Arc::new(table)).unwrap();
        let filter: Arc<dyn ExecutionPlan> = Arc::new(filter);
        let config = ConfigOptions::new();
        let computed = predicate_selectivity(&filter, &Planning::new(&config));
        assert!((computed - share).abs() < 1e-9, "{predicate}: {computed} ({share})");
    }
}

#[test]
fn comparisons_keep_their_part_of_the_range() {
    let fields = ["a", "b"].map(|name| Field::new(name, DataType::Int32, true));
    let schema = Arc::new(Schema::new(fields.to_vec()));
    let column = |least, greatest| ColumnStatistics {
        min_value: Precision::Exact(ScalarValue::Int32(Some(least))),
        max_value: Precision::Exact(ScalarValue::Int32(Some(greatest))),
        ..Default::default()
    };
    let statistics = Statistics::new_unknown(&schema);
    let column_statistics = vec![column(100, 300), column(0, 6)];
    let statistics = Statistics { column_statistics, ..statistics };
    let compare = |name, op, n: i32| binary(col(name, &schema).unwrap(), op, lit(n), &schema);
    let compare = |name, op, n| compare(name, op, n).unwrap();
    let both = |l, r| binary(l, Operator::And, r, &schema).unwrap();
    let either = |l, r| binary(l, Operator::Or, r, &schema).unwrap();
    let between =
        |low, high| both(compare("a", Operator::GtEq, low), compare("a", Operator::LtEq, high));
    let unknown = || {
        binary(col("a", &schema).unwrap(), Operator::Eq, col("b", &schema).unwrap(), &schema)
            .unwrap()
    };
    for (share, predicate) in [
        (0.25, compare("a", Operator::Lt, 150)),
        (0.75, compare("a", Operator::GtEq, 150)),
        (1.0, compare("a", Operator::Gt, 7)),
        (0.01, compare("a", Operator::Gt, 301)),
        (0.05, both(compare("a", Operator::GtEq, 150), compare("a", Operator::LtEq, 160))),
        // One of seven values is more than a tenth, the maximum that is assumed.
        (0.025, both(compare("a", Operator::Lt, 150), compare("b", Operator::Eq, 3))),
        (1.0 / 201.0, compare("a", Operator::Eq, 150)),
        (200.0 / 201.0, compare("a", Operator::NotEq, 150)),
        (0.9, binary(lit(3), Operator::NotEq, col("b", &schema).unwrap(), &schema).unwrap()),
        (0.45, both(compare("b", Operator::NotEq, 3), unknown())),
        (0.5, either(compare("b", Operator::NotEq, 3), compare("a", Operator::Lt, 150))),
        (0.25, binary(lit(250), Operator::Lt, col("a", &schema).unwrap(), &schema).unwrap()),
        (0.15, either(between(100, 110), between(120, 140))),
        (0.5, either(between(100, 240), between(120, 140))),
        (0.075, either(both(between(100, 110), compare("b", Operator::Lt, 3)), between(120, 130))),
    ] {
        let table = StatisticsExec::new(statistics.clone(), schema.as_ref().clone());
        let filter = FilterExec::try_new(predicate.clone(), Arc::new(table)).unwrap();
        let filter: Arc<dyn ExecutionPlan> = Arc::new(filter);
        let config = ConfigOptions::new();
        let computed = predicate_selectivity(&filter, &Planning::new(&config));
        assert!((computed - share).abs() < 1e-9, "{predicate}: {computed} ({share})");
    }
}

#[test]
fn tests_for_null_keep_what_null_counts_say() {
    let schema = Arc::new(Schema::new(vec![Field::new("a", DataType::Utf8, true)]));
    let a = || col("a", &schema).unwrap();
    let (null, rows) = (is_null(a()).unwrap(), is_not_null(a()).unwrap());
    let few = binary(a(), Operator::Eq, lit("1"), &schema).unwrap();
    let either = binary(few.clone(), Operator::Or, null.clone(), &schema).unwrap();
    let (known, inexact, unknown) = (Precision::Exact, Precision::Inexact, Precision::Absent);
    for (share, predicate, nulls, all) in [
        (0.85, &null, known(850), known(1000)),
        (0.15, &rows, known(850), known(1000)),
        // A predicate of the scan makes the numbers of its files inexact.
        (0.15, &rows, inexact(850), inexact(1000)),
        (0.25, &either, known(150), known(1000)),
        // Rows may remain even if statistics know none.
        (0.01, &null, known(0), known(1000)),
        (1.0, &rows, known(0), known(1000)),
        (0.01, &rows, known(1000), known(1000)),
        (0.01, &rows, inexact(2000), inexact(1000)),
        (1.0, &rows, known(0), known(0)),
        (0.5, &rows, unknown, known(1000)),
        (0.5, &null, known(850), unknown),
    ] {
        let column = ColumnStatistics { null_count: nulls, ..Default::default() };
        let statistics = Statistics::new_unknown(&schema).with_num_rows(all);
        let statistics = Statistics { column_statistics: vec![column], ..statistics };
        let table = StatisticsExec::new(statistics, schema.as_ref().clone());
        let filter = FilterExec::try_new(predicate.clone(), Arc::new(table)).unwrap();
        let filter: Arc<dyn ExecutionPlan> = Arc::new(filter);
        let config = ConfigOptions::new();
        let computed = predicate_selectivity(&filter, &Planning::new(&config));
        assert!((computed - share).abs() < 1e-9, "{predicate} {nulls} of {all}: {computed}");
    }
}
