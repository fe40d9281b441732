//! What is measured and what is printed of it: the filter's shape, groups of interleaved cases, and a row for each.

use std::hint::black_box;

use blocked_bloom::{Block, Params, Sizing};
use indicatif::BinaryBytes;
use serde_json::json;

use super::baseline::load_lines;
use super::measure::{Case, Timing, interleaved};
use crate::failure::Failure;

/// The filter and how it is measured.
pub(super) struct Setting {
    pub(super) keys: u64,
    pub(super) sizing: Sizing,
    pub(super) params: Params,
    pub(super) rounds: usize,
    pub(super) batches: Vec<usize>,
}

impl Setting {
    pub(super) fn new(
        keys: u64,
        bits_per_key: f64,
        probes: Option<u32>,
        rounds: usize,
        batches: Vec<usize>,
    ) -> Result<Self, Failure> {
        let sizing = Sizing::BitsPerKey(bits_per_key);
        let params = sizing.params(keys).map_err(Failure::new)?;
        if params.is_pass_all() {
            return Err(Failure::new("0 bits per key mean no filter: there is nothing to measure"));
        }
        let params = match probes {
            Some(probes) => params.with_probes(probes).map_err(Failure::new)?,
            None => params,
        };
        Ok(Setting { keys, sizing, params, rounds, batches })
    }

    /// What is printed above the rows.
    pub(super) fn head(&self) -> String {
        let (keys, params) = (self.keys, &self.params);
        let size = BinaryBytes(u64::from(params.blocks()) * 64);
        format!(
            "\n{keys} keys, {size}, {:.2} bits/key, {} probes, {} rounds\n{:<16} {:<8} {:<17} {:>7} {:>9} {:>16} {:>6}\n",
            params.bits_per_key(),
            params.probes(),
            self.rounds,
            "op",
            "mix",
            "kernel",
            "threads",
            "batch",
            "ns/key",
            "ratio"
        )
    }
}

/// One measurement.
pub(super) struct Row {
    pub(super) op: &'static str,
    pub(super) mix: &'static str,
    pub(super) kernel: &'static str,
    pub(super) threads: usize,
    pub(super) batch: usize,
    pub(super) time: Timing,
    /// None where there is none to compare with.
    pub(super) baseline: Option<Timing>,
}

impl Row {
    fn ratio(&self) -> Option<f64> {
        self.baseline.map(|baseline| self.time.median / baseline.median)
    }

    pub(super) fn text(&self) -> String {
        let ratio = self.ratio().map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"));
        let time = format!("{:.2} ({:.2})", self.time.median, self.time.min);
        format!(
            "{:<16} {:<8} {:<17} {:>7} {:>9} {time:>16} {ratio:>6}\n",
            self.op, self.mix, self.kernel, self.threads, self.batch
        )
    }

    pub(super) fn json(&self, setting: &Setting) -> String {
        let row = json!({
            "op": self.op,
            "mix": self.mix,
            "kernel": self.kernel,
            "threads": self.threads,
            "keys": setting.keys,
            "bits_per_key": setting.params.bits_per_key(),
            "probes": setting.params.probes(),
            "batch": self.batch,
            "ns_per_key": self.time.median,
            "baseline_ns_per_key": self.baseline.map(|baseline| baseline.median),
            "ratio": self.ratio(),
            "min_ns_per_key": self.time.min,
            "min_baseline_ns_per_key": self.baseline.map(|baseline| baseline.min),
            "rounds": setting.rounds,
        });
        format!("{row}\n")
    }
}

/// Names of the two loops of the memory-bound baseline, and whether they prefetch.
pub(super) const BASELINES: [(&str, bool); 2] = [("baseline", false), ("baseline_ahead", true)];

/// The faster of the two loops, which are the first cases.
pub(super) fn baseline(times: &[Timing]) -> Timing {
    Timing { median: times[0].median.min(times[1].median), min: times[0].min.min(times[1].min) }
}

/// Interleaved cases of one op, with what their rows say; the first two are the memory-bound baseline.
pub(super) struct Group<'a> {
    op: &'static str,
    mix: &'static str,
    batch: usize,
    names: Vec<&'static str>,
    cases: Vec<Case<'a>>,
}

impl<'a> Group<'a> {
    /// With the baseline of looking up or inserting `hashes`.
    pub(super) fn new(
        op: &'static str,
        mix: &'static str,
        batch: usize,
        blocks: &'a [Block],
        hashes: &'a [u64],
    ) -> Self {
        let mut group = Group { op, mix, batch, names: Vec::new(), cases: Vec::new() };
        for (name, ahead) in BASELINES {
            group.add_batches(name, hashes, move |hashes| load_lines(blocks, hashes, ahead));
        }
        group
    }

    /// A case that calls `run` with batch after batch.
    pub(super) fn add_batches<R>(
        &mut self,
        name: &'static str,
        hashes: &'a [u64],
        mut run: impl FnMut(&[u64]) -> R + 'a,
    ) {
        let batch = self.batch;
        self.names.push(name);
        self.cases.push(Case::new(hashes.len(), move || {
            for hashes in hashes.chunks(batch) {
                black_box(run(black_box(hashes)));
            }
        }));
    }

    /// The number of cases so far.
    pub(super) fn len(&self) -> usize {
        self.cases.len()
    }

    pub(super) fn rows(mut self, rounds: usize) -> Vec<Row> {
        let times = interleaved(&mut self.cases, rounds);
        let baseline = Some(baseline(&times));
        let Group { op, mix, batch, names, .. } = self;
        let rows = names.into_iter().zip(times);
        rows.map(|(kernel, time)| Row { op, mix, kernel, threads: 1, batch, time, baseline })
            .collect()
    }
}
