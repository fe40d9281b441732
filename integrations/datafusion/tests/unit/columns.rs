//! Where rows can be dropped, and which shuffles that saves.

use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, JoinType, NullEquality, Statistics};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{Column, binary, col, is_not_null, lit};
use datafusion::physical_plan::PhysicalExpr;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::test::exec::StatisticsExec;
use datafusion::physical_plan::union::UnionExec;

use super::*;
use crate::filter::Size;
use crate::filter_plan::filter_plan;
use crate::probe::BloomProbeExec;
use crate::sides::Side;

/// A computed column comes from no table, so rows can only be dropped above the joins.
#[test]
fn a_shuffle_gets_the_rows_that_predicates_and_joins_below_leave() {
    let fields = ["k", "attr"].map(|name| Field::new(name, DataType::Int32, true));
    let schema = Arc::new(Schema::new(fields.to_vec()));
    let table = || -> Plan { Arc::new(EmptyExec::new(schema.clone())) };
    let part = |input: Plan| -> Plan {
        let attr = col("attr", &input.schema()).unwrap();
        let predicate = binary(attr, Operator::Eq, lit(3), &input.schema()).unwrap();
        Arc::new(FilterExec::try_new(predicate, input).unwrap())
    };
    let join_of = |join_type: JoinType, mode, left: Plan, right: Plan| -> Plan {
        let k = || col("k", &schema).unwrap();
        let (on, nulls) = (vec![(k(), k())], NullEquality::NullEqualsNothing);
        let join =
            HashJoinExec::try_new(left, right, on, None, &join_type, None, mode, nulls, false);
        Arc::new(join.unwrap())
    };
    let join = |left, right| join_of(JoinType::Inner, PartitionMode::Partitioned, left, right);
    let broadcast =
        |join_type, left, right| join_of(join_type, PartitionMode::CollectLeft, left, right);
    let computed = |input: Plan| -> Plan {
        let k: Arc<dyn PhysicalExpr> = Arc::new(Column::new("k", 0));
        let sum = binary(k.clone(), Operator::Plus, k, &input.schema()).unwrap();
        Arc::new(ProjectionExec::try_new([(sum, "sum".to_string())], input).unwrap())
    };
    let mut config = ConfigOptions::new();
    config.optimizer.hash_join_single_partition_threshold = 0;
    let planning = Planning::new(&config);
    let shares = |plan: &Plan, column| {
        let point = find_probe_point(plan, &[column], &planning);
        let shuffles = point.shuffles(plan, &planning).into_iter();
        let shares: Vec<f64> = shuffles.map(|(share, _)| share * point.returned).collect();
        (point, shares)
    };
    let are_equal = |a: &[f64], b: &[f64]| {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-9)
    };
    for (left, plan) in [
        (1.0, table()),
        (0.1, part(table())),
        (1.0, join(table(), table())),
        (0.1, join(part(table()), table())),
        (0.01, join(part(table()), part(table()))),
        (0.1, join(join(table(), part(table())), table())),
    ] {
        let (_, computed) = shares(&computed(plan), 0);
        assert!(are_equal(&computed, &[left]), "{computed:?} ({left})");
    }
    // The probe point is the right table, below a join with a part of the left one. The rows
    // that the join drops do not reach the shuffles above it.
    // Half of its orders of magnitude: a filter of the same keys drops the other half.
    let half = 0.1_f64.sqrt();
    let cases: [(&[f64], Plan); 4] = [
        (&[1.0, half], join(part(table()), table())),
        (&[half], broadcast(JoinType::Inner, part(table()), table())),
        (&[1.0], broadcast(JoinType::Right, part(table()), table())),
        (&[half, 0.1], join(part(table()), broadcast(JoinType::Inner, part(table()), table()))),
    ];
    for (left, plan) in cases {
        let column = plan.schema().fields().len() - 2;
        let (point, computed) = shares(&plan, column);
        assert!(are_equal(&computed, left), "{computed:?} ({left:?})");
        assert!(point.plan.is::<EmptyExec>());
        let by_path = point.path.iter().fold(&plan, |plan, (_, input)| plan.children()[*input]);
        assert!(Arc::ptr_eq(by_path, &point.plan));
    }
}

/// A table of this many rows, with a number of rows that statistics know.
fn table(rows: usize, nulls: Precision<usize>) -> Plan {
    let fields = ["k", "attr"].map(|name| Field::new(name, DataType::Int32, true));
    let schema = Schema::new(fields.to_vec());
    let column = ColumnStatistics { null_count: nulls, ..Default::default() };
    let mut statistics = Statistics::new_unknown(&schema).with_num_rows(Precision::Exact(rows));
    statistics.column_statistics[0] = column;
    Arc::new(StatisticsExec::new(statistics, schema))
}

/// The rows of `attr` = 3, about a tenth.
fn tenth(input: Plan) -> Plan {
    let attr = col("attr", &input.schema()).unwrap();
    let predicate = binary(attr, Operator::Eq, lit(3), &input.schema()).unwrap();
    Arc::new(FilterExec::try_new(predicate, input).unwrap())
}

/// Puts a filter with the keys of `build` above `input`. The keys are in the first columns.
fn filtered(input: Plan, build: Plan) -> Plan {
    let estimate = Default::default();
    let side = Side { columns: vec![Column::new("k", 0)], plan: build, estimate };
    let size = Size { expected_keys: 100, rate: 0.01 };
    let filter = filter_plan(&side, size, false, None, &ConfigOptions::new()).unwrap();
    Arc::new(BloomProbeExec::try_new(input, filter, vec![0], 1.0).unwrap())
}

#[test]
fn filters_below_a_union_count_as_without_it() {
    let config = ConfigOptions::new();
    let planning = Planning::new(&config);
    let unknown = Precision::Absent;
    let one = filtered(table(3_000, unknown), tenth(table(500, unknown)));
    let half = remaining(&one, &planning);
    assert!((half - 0.1_f64.sqrt()).abs() < 1e-9, "{half}");
    let inputs = vec![one, table(1_000, unknown)];
    let union: Plan = UnionExec::try_new(inputs).unwrap();
    let both = remaining(&union, &planning);
    assert!((both - (3.0 * half + 1.0) / 4.0).abs() < 1e-9, "{both}");
}

/// The join drops rows with a NULL in the key, and so does each filter of that key.
#[test]
fn rows_with_a_null_in_the_key_do_not_remain() {
    let config = ConfigOptions::new();
    let planning = Planning::new(&config);
    let keys = || table(500, Precision::Absent);
    let nulls = || table(1_000, Precision::Exact(800));
    let is_not_null = |input: Plan| -> Plan {
        let k = is_not_null(col("k", &input.schema()).unwrap()).unwrap();
        Arc::new(FilterExec::try_new(k, input).unwrap())
    };
    let half = 0.1_f64.sqrt();
    for (without_null, left, plan) in [
        (0.2, 1.0, nulls()),
        // The engine estimates 200 rows, all with NULL.
        (0.2, 0.1, tenth(nulls())),
        (1.0, 0.2, is_not_null(nulls())),
        (1.0, 0.2, filtered(nulls(), keys())),
        (1.0, 0.2 * half, filtered(nulls(), tenth(keys()))),
        (1.0, 0.2 * half, filtered(filtered(nulls(), keys()), tenth(keys()))),
        (1.0, 1.0, keys()),
    ] {
        let computed = (present(&plan, &[0, 1], &planning), remaining(&plan, &planning));
        let (a, b) = (computed.0 - without_null, computed.1 - left);
        assert!(a.abs() < 1e-9 && b.abs() < 1e-9, "{computed:?} ({without_null}, {left})");
    }
}
