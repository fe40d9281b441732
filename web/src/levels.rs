//! A budget of memory shared among the levels of an LSM tree.

use blocked_bloom_inspect::Value;
use blocked_bloom_inspect::numbers::{parse_bytes, parse_keys, parse_present, parse_runs};
use blocked_bloom_lsm::{Level, Plan, PlannedLevel};

use crate::{Fault, Input, object};

/// Plans for the levels of the input in its `budget`, with the fields that `blocked-bloom plan
/// --levels --json` gives them. A level has fields such as `2.keys`; the first without this field
/// ends the list.
///
/// # Errors
///
/// [`Fault`] of one of these fields, or `budget`.
pub(crate) fn plan(input: &Input<'_>) -> Result<Value, Fault> {
    let budget = input.parse("budget", "", parse_bytes)?;
    let mut levels = Vec::new();
    while let Some(level) = level(input, levels.len())? {
        levels.push(level);
    }
    let fault = |error| Fault::new("budget", error);
    let planned = Plan::for_budget(&levels, budget).map_err(fault)?;
    let uniform = Plan::uniform(&levels, budget).map_err(fault)?;
    let plans = vec![plan_json("planned", &planned), plan_json("uniform", &uniform)];
    Ok(object! { "budget_bytes": budget, "plans": Value::List(plans) })
}

fn level(input: &Input<'_>, index: usize) -> Result<Option<Level>, Fault> {
    let name = |name| format!("{index}.{name}");
    if !input.has_field(&name("keys")) {
        return Ok(None);
    }
    let keys = input.parse(&name("keys"), "", parse_keys)?;
    let runs = input.parse(&name("runs"), "1", parse_runs)?;
    let present = input.parse(&name("present"), "0", parse_present)?;
    Ok(Some(Level::new(keys).runs(runs).present(present)))
}

fn plan_json(name: &str, plan: &Plan) -> Value {
    let levels = plan.levels().iter().map(level_json).collect();
    object! {
        "name": name,
        "stored_bytes": bytes_of(plan.bytes()),
        "expected_wasted_reads": plan.expected_wasted_reads(),
        "levels": Value::List(levels),
    }
}

fn level_json(planned: &PlannedLevel) -> Value {
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
        "stored_bytes": bytes_of(planned.bytes()),
        "false_positive_rate": planned.false_positive_rate(),
        "expected_wasted_reads": planned.expected_wasted_reads(),
        "skipped": planned.skipped.map(|reason| reason.to_string()),
    }
}

/// As a `u64`, saturating.
fn bytes_of(bytes: u128) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}
