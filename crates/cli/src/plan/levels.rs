//! `plan --levels`: a budget shared among levels, next to the same bits per key everywhere.

use std::fmt::Display;

use blocked_bloom::probe::MAX_BITS_PER_KEY;
use blocked_bloom_inspect::describe_plan;
use blocked_bloom_inspect::numbers::{parse_keys, parse_present, parse_runs, percent};
use blocked_bloom_lsm::{FilterKind, KindPlan, Level, Plan, PlannedKind, PlannedLevel};
use indicatif::BinaryBytes;
use serde_json::{Value, json};

use crate::facts;
use crate::failure::Failure;
use crate::numbers::counted;
use crate::output::print;

const EXPLANATION: &str = "\
Wasted reads are per lookup, each weighted by the level's cost: reads of tables that do not hold the
key.
";

/// A level as it is written: KEYS, then in any order xRUNS, /TABLES, @LOOKUPS, :COST and =PRESENT.
pub(crate) fn parse_level(text: &str) -> Result<Level, String> {
    let is_mark = |c: char| "x/@:=".contains(c);
    let (keys, mut rest) = text.split_at(text.find(is_mark).unwrap_or(text.len()));
    let keys = match keys {
        "0" => 0,
        keys => parse_keys(keys).map_err(|error| format!("keys \"{keys}\": {error}"))?,
    };
    let mut level = Level::new(keys);
    let mut seen = String::new();
    while let Some(mark) = rest.chars().next() {
        let value = &rest[1..];
        let (value, after) = value.split_at(value.find(is_mark).unwrap_or(value.len()));
        rest = after;
        if seen.contains(mark) {
            return Err(format!("\"{mark}\" twice: give each part of a level once"));
        }
        seen.push(mark);
        let fail = |what: &str, error: &dyn Display| format!("{what} \"{mark}{value}\": {error}");
        let count = |what| parse_runs(value).map_err(|error| fail(what, &error));
        let number = |what| {
            let number = value.parse::<f64>().ok().filter(|number| (0.0..=1e15).contains(number));
            number.ok_or_else(|| fail(what, &"give a number of 0 to 1e15, such as 0.5"))
        };
        level = match mark {
            'x' => level.runs(count("runs")?),
            '/' => level.tables(count("tables")?),
            '@' => level.lookups(number("lookups")?),
            ':' => level.cost(number("cost")?),
            _ => level.present(parse_present(value).map_err(|error| fail("present", &error))?),
        };
    }
    Ok(level)
}

/// A level of a printed plan of Bloom and Ribbon filters.
struct KindRow {
    keys: u64,
    kind: &'static str,
    bytes: u128,
    false_positive_rate: f64,
    cost: f64,
}

fn kind_rows(plan: &KindPlan) -> Vec<KindRow> {
    let row = |level: &PlannedKind| KindRow {
        keys: level.level.keys,
        kind: match level.kind {
            FilterKind::None => "none",
            FilterKind::Bloom { .. } => "bloom",
            FilterKind::Ribbon { .. } => "ribbon",
            _ => "other",
        },
        bytes: level.bytes,
        false_positive_rate: level.false_positive_rate,
        cost: level.expected_cost,
    };
    plan.levels().iter().map(row).collect()
}

fn bloom_rows(plan: &Plan) -> Result<Vec<KindRow>, Failure> {
    let row = |level: &PlannedLevel| {
        let bits = level.bits_per_key().min(MAX_BITS_PER_KEY);
        let alone = Plan::with_bits_per_key(&[level.level], bits);
        Ok(KindRow {
            keys: level.level.keys,
            kind: if level.skipped.is_some() { "none" } else { "bloom" },
            bytes: level.bytes(),
            false_positive_rate: level.false_positive_rate(),
            cost: alone.map_err(Failure::new)?.expected_cost(),
        })
    };
    plan.levels().iter().map(row).collect()
}

/// Prints a plan of Bloom and Ribbon filters, or of Bloom filters alone if that costs less: the
/// kinds are chosen among some numbers of bits per key, and Bloom's are not.
pub(super) fn run_kinds(
    levels: &[Level],
    budget: u64,
    ribbon_query_cost: f64,
    json: bool,
) -> Result<(), Failure> {
    let plan = KindPlan::for_budget(levels, budget, ribbon_query_cost).map_err(Failure::new)?;
    let bloom_only = Plan::for_budget(levels, budget).map_err(Failure::new)?;
    let bloom_rows = bloom_rows(&bloom_only)?;
    let (bytes, cost, rows) = match plan.expected_cost() <= bloom_only.expected_cost() {
        true => (plan.bytes(), plan.expected_cost(), kind_rows(&plan)),
        false => (bloom_only.bytes(), bloom_only.expected_cost(), bloom_rows),
    };
    if json {
        let levels = rows.iter().map(|level| {
            json!({
                "keys": level.keys,
                "kind": level.kind,
                "stored_bytes": level.bytes as f64,
                "false_positive_rate": level.false_positive_rate,
                "expected_cost": level.cost,
            })
        });
        let all = json!({
            "budget_bytes": budget,
            "bytes": bytes as f64,
            "expected_cost": cost,
            "bloom_only": {
                "bytes": bloom_only.bytes() as f64,
                "expected_cost": bloom_only.expected_cost(),
            },
            "levels": levels.collect::<Vec<Value>>(),
        });
        print(&format!("{all:#}\n"))?;
        return Ok(());
    }
    let mut text = format!(
        "{:>5}  {:>14}  {:>6}  {:>8}  {:>15}  {:>15}  {:>10}\n",
        "level", "keys", "kind", "bits/key", "stored bytes", "false positives", "cost"
    );
    for (i, level) in rows.iter().enumerate() {
        let bits = match level.keys {
            0 => 0.0,
            keys => 8.0 * level.bytes as f64 / keys as f64,
        };
        text += &format!(
            "{i:>5}  {:>14}  {:>6}  {bits:>8.2}  {:>15}  {:>15}  {:>10.6}\n",
            level.keys,
            level.kind,
            level.bytes,
            percent(level.false_positive_rate),
            level.cost
        );
    }
    for (kind, bytes, cost) in
        [("", bytes, cost), ("bloom", bloom_only.bytes(), bloom_only.expected_cost())]
    {
        text += &format!(
            "{:>5}  {:>14}  {kind:>6}  {:>8}  {bytes:>15}  {:>15}  {cost:>10.6}\n",
            "all", "", "", ""
        );
    }
    text += "\nCosts are wasted reads and queries per lookup, in reads. The last line is what \
             Bloom filters alone cost in the same budget.\n";
    print(&text)?;
    Ok(())
}

/// Prints the plan, the uniform one of the same budget, and one for each number of bits per key.
pub(super) fn run(
    levels: &[Level],
    budget: u64,
    bits_per_key: &[f64],
    json: bool,
) -> Result<(), Failure> {
    let mut plans = vec![
        ("planned".to_owned(), Plan::for_budget(levels, budget).map_err(Failure::new)?),
        ("uniform".to_owned(), Plan::uniform(levels, budget).map_err(Failure::new)?),
    ];
    for &bits in bits_per_key {
        let plan = Plan::with_bits_per_key(levels, bits).map_err(Failure::new)?;
        plans.push((format!("{bits} bits/key"), plan));
    }
    if json {
        let describe = |(name, plan): &(String, Plan)| facts::json(describe_plan(name, plan));
        let plans: Vec<Value> = plans.iter().map(describe).collect();
        let all = json!({ "budget_bytes": budget, "plans": plans });
        print(&format!("{all:#}\n"))?;
        return Ok(());
    }
    print(&text(budget, &plans))?;
    Ok(())
}

fn text(budget: u64, plans: &[(String, Plan)]) -> String {
    let (_, planned) = &plans[0];
    let mut heads = vec!["level", "keys", "runs", "bits/key", "false positives", "wasted reads"];
    heads.resize(6 + 2 * (plans.len() - 1), "wasted reads");
    for (head, (name, _)) in heads[6..].chunks_mut(2).zip(&plans[1..]) {
        head[0] = name;
    }
    let mut rows = vec![heads.into_iter().map(str::to_owned).collect::<Vec<_>>()];
    for (index, first) in planned.levels().iter().enumerate() {
        let rate = match first.skipped {
            Some(reason) => reason.to_string(),
            None => percent(first.false_positive_rate()),
        };
        let level = &first.level;
        let mut row = vec![index.to_string(), level.keys.to_string(), level.runs.to_string()];
        row.extend([bits(first), rate, reads(first.expected_wasted_reads())]);
        for (_, plan) in &plans[1..] {
            let other = &plan.levels()[index];
            row.extend([bits(other), reads(other.expected_wasted_reads())]);
        }
        rows.push(row);
    }
    let count = rows.len() as u64 - 1;
    let widths: Vec<usize> = (0..rows[0].len())
        .map(|column| rows.iter().map(|row| row[column].len()).max().unwrap_or(0))
        .collect();
    let mut text =
        format!("{}, {budget} bytes ({})\n\n", counted(count, "level"), BinaryBytes(budget));
    for row in &rows {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$}")).collect();
        text += &cells.join("  ");
        text.push('\n');
    }
    text.push('\n');
    let width = plans.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let least = planned.expected_wasted_reads();
    for (place, (name, plan)) in plans.iter().enumerate() {
        let (bytes, wasted) = (bytes_of(plan.bytes()), plan.expected_wasted_reads());
        text += &format!(
            "{name:<width$}  {bytes} bytes ({}), {} wasted reads per lookup",
            BinaryBytes(bytes),
            reads(wasted)
        );
        if place > 0 && wasted > 0.0 {
            let saved = wasted - least;
            let verb = if saved < 0.0 { "wastes more:" } else { "saves" };
            let percent = 100.0 * saved.abs() / wasted;
            text += &format!("; planning {verb} {} ({percent:.0} %)", reads(saved.abs()));
        }
        text.push('\n');
    }
    text.push('\n');
    text + EXPLANATION
}

/// As a `u64`, saturating.
fn bytes_of(bytes: u128) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

fn bits(planned: &PlannedLevel) -> String {
    match planned.skipped {
        Some(_) => "no filter".to_owned(),
        None => format!("{:.2}", planned.bits_per_key()),
    }
}

fn reads(reads: f64) -> String {
    match reads.abs() {
        0.0 => "0".to_owned(),
        0.0001..1e6 => format!("{reads:.4}"),
        _ => format!("{reads:.2e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::parse_level;
    use blocked_bloom_lsm::Level;

    #[test]
    fn levels_as_they_are_written() {
        let level = Level::new(1_000_000);
        for (text, expected) in [
            ("1M", level),
            ("1_000_000", level),
            ("0", Level::new(0)),
            ("1Mx4", level.runs(4)),
            ("1M/16@0.5", level.tables(16).lookups(0.5)),
            ("1M=90%:0.2x3", level.present(0.9).cost(0.2).runs(3)),
            ("1M=0", level),
            ("1M x4", level.runs(4)),
        ] {
            assert_eq!(parse_level(text), Ok(expected), "{text}");
        }
        for text in ["", "x4", "1Mx0", "1Mx4x4", "1M@", "1M@-1", "1M=101%", "1M:nan", "1M/é"] {
            assert!(parse_level(text).is_err(), "{text}");
        }
    }
}
