//! A budget of memory shared among the levels of an LSM tree.

use blocked_bloom_inspect::numbers::{parse_bytes, parse_keys, parse_present, parse_runs};
use blocked_bloom_inspect::{Value, describe_plan};
use blocked_bloom_lsm::{Level, Plan};

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
    let plans = vec![describe_plan("planned", &planned), describe_plan("uniform", &uniform)];
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
