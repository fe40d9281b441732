//! A plan for the levels of an LSM tree as facts, for programs.

use blocked_bloom_lsm::{Plan, PlannedLevel};

use crate::Value;
use crate::value::object;

/// Describes a plan: its name, bytes and expected wasted reads, and the same for each level.
///
/// ```
/// use blocked_bloom_inspect::{Value, describe_plan};
/// use blocked_bloom_lsm::{Level, Plan};
///
/// let plan = Plan::for_budget(&[Level::new(1_000)], 10_000)?;
/// let facts = describe_plan("planned", &plan);
/// assert_eq!(facts.get("name"), Some(&Value::Text("planned".into())));
/// # Ok::<(), blocked_bloom_lsm::PlanError>(())
/// ```
pub fn describe_plan(name: &str, plan: &Plan) -> Value {
    let levels = plan.levels().iter().map(describe_level).collect();
    object! {
        "name": name,
        "stored_bytes": saturating(plan.bytes()),
        "expected_wasted_reads": plan.expected_wasted_reads(),
        "levels": Value::List(levels),
    }
}

fn describe_level(planned: &PlannedLevel) -> Value {
    let level = &planned.level;
    object! {
        "keys": level.keys,
        "runs": level.runs,
        "tables": level.tables,
        "lookups": level.lookups,
        "cost": level.cost,
        "query_cost": level.query_cost,
        "present": level.present,
        "bits_per_key": planned.bits_per_key(),
        "probes": planned.params.probes(),
        "stored_bytes": saturating(planned.bytes()),
        "false_positive_rate": planned.false_positive_rate(),
        "expected_wasted_reads": planned.expected_wasted_reads(),
        "skipped": planned.skipped.map(|reason| reason.to_string()),
    }
}

fn saturating(bytes: u128) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}
