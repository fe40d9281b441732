//! The settings of a measurement, and its output.

use benches::groups::{HEADS, Row, Setting};
use blocked_bloom::Sizing;
use indicatif::BinaryBytes;
use serde_json::json;

use super::Args;
use crate::failure::Failure;

/// Returns the filter and how it is measured.
pub(super) fn setting(keys: u64, args: &Args) -> Result<Setting, Failure> {
    let sizing = Sizing::BitsPerKey(args.bits_per_key);
    let params = sizing.params(keys).map_err(Failure::new)?;
    if params.is_pass_all() {
        return Err(Failure::new("0 bits per key mean no filter: there is nothing to measure"));
    }
    let params = match args.probes {
        Some(probes) => params.with_probes(probes).map_err(Failure::new)?,
        None => params,
    };
    let default_rounds = if args.quick || keys > 1_000_000 { 11 } else { 41 };
    let rounds = args.rounds.unwrap_or(default_rounds) as usize;
    let batches = args.batch.iter().map(|&batch| batch as usize).collect();
    Ok(Setting { keys, sizing, params, rounds, batches })
}

/// Returns the lines above the rows.
pub(super) fn head(setting: &Setting) -> String {
    let (keys, params) = (setting.keys, &setting.params);
    let size = BinaryBytes(u64::from(params.blocks()) * 64);
    format!(
        "\n{keys} keys, {size}, {:.2} bits/key, {} probes, {} rounds\n{HEADS}\n",
        params.bits_per_key(),
        params.probes(),
        setting.rounds
    )
}

/// Returns a line of JSON.
pub(super) fn json(row: &Row, setting: &Setting) -> String {
    let object = json!({
        "op": row.name.op,
        "mix": row.name.mix,
        "kernel": row.name.kernel,
        "threads": row.name.threads,
        "keys": setting.keys,
        "bits_per_key": setting.params.bits_per_key(),
        "probes": setting.params.probes(),
        "batch": row.name.batch,
        "ns_per_key": row.time.median,
        "baseline_ns_per_key": row.baseline.map(|baseline| baseline.median),
        "ratio": row.ratio(),
        "min_ns_per_key": row.time.min,
        "min_baseline_ns_per_key": row.baseline.map(|baseline| baseline.min),
        "rounds": setting.rounds,
    });
    format!("{object}\n")
}
