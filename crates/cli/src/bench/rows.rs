//! What is measured and what is printed of it: the filter's shape, groups of interleaved cases, and a row for each.

use std::hint::black_box;

use benches::baseline::{BASELINES, faster, load_lines};
use benches::clock::{Case, Schedule, Timing, interleaved};
use blocked_bloom::{Block, Params, Sizing};
use indicatif::BinaryBytes;
use serde_json::json;

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

/// What a row says of its measurement.
#[derive(Clone, Copy)]
pub(super) struct Name {
    pub(super) op: &'static str,
    pub(super) mix: &'static str,
    pub(super) kernel: &'static str,
    pub(super) threads: usize,
    pub(super) batch: usize,
}

/// One measurement.
pub(super) struct Row {
    pub(super) name: Name,
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
        let Name { op, mix, kernel, threads, batch } = self.name;
        let time = self.time;
        format!("{op:<16} {mix:<8} {kernel:<17} {threads:>7} {batch:>9} {time:>16} {ratio:>6}\n")
    }

    pub(super) fn json(&self, setting: &Setting) -> String {
        let row = json!({
            "op": self.name.op,
            "mix": self.name.mix,
            "kernel": self.name.kernel,
            "threads": self.name.threads,
            "keys": setting.keys,
            "bits_per_key": setting.params.bits_per_key(),
            "probes": setting.params.probes(),
            "batch": self.name.batch,
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

/// Interleaved cases, with what their rows say.
pub(super) struct Group<'a> {
    name: Name,
    names: Vec<Name>,
    cases: Vec<Case<'a>>,
}

impl<'a> Group<'a> {
    /// Of one thread, in calls of this many keys.
    pub(super) fn new(op: &'static str, mix: &'static str, batch: usize) -> Self {
        let name = Name { op, mix, kernel: "-", threads: 1, batch };
        Group { name, names: Vec::new(), cases: Vec::new() }
    }

    /// The same, with the loops of the memory-bound baseline of these lines as the first two rows.
    pub(super) fn beside_baseline(
        op: &'static str,
        mix: &'static str,
        batch: usize,
        blocks: &'a [Block],
        hashes: &'a [u64],
    ) -> Self {
        let mut group = Group::new(op, mix, batch);
        for (name, ahead) in BASELINES {
            group.add_batches(name, hashes, move |hashes| load_lines(blocks, hashes, ahead));
        }
        group
    }

    /// A case that calls `run` with batch after batch.
    pub(super) fn add_batches<T, R>(
        &mut self,
        kernel: &'static str,
        items: &'a [T],
        mut run: impl FnMut(&[T]) -> R + 'a,
    ) {
        let batch = self.name.batch;
        let run = move |_| {
            for items in items.chunks(batch) {
                black_box(run(black_box(items)));
            }
        };
        self.add(self.name.op, kernel, 1, Case::new(items.len(), run));
    }

    /// A case of an op of its own.
    pub(super) fn add(
        &mut self,
        op: &'static str,
        kernel: &'static str,
        threads: usize,
        case: Case<'a>,
    ) {
        self.names.push(Name { op, kernel, threads, ..self.name });
        self.cases.push(case);
    }

    /// From here on, cases are of this op.
    pub(super) fn op(&mut self, op: &'static str) -> &mut Self {
        self.name.op = op;
        self
    }

    /// Rows that are compared with the baseline.
    pub(super) fn rows(self, rounds: usize) -> Vec<Row> {
        self.rows_beside(rounds, |times, _| Some(faster(times[0], times[1])))
    }

    /// Rows that are compared with what `baseline` makes of the times and the row's place.
    pub(super) fn rows_beside(
        mut self,
        rounds: usize,
        baseline: impl Fn(&[Timing], usize) -> Option<Timing>,
    ) -> Vec<Row> {
        let times = interleaved(&mut self.cases, Schedule::rounds(rounds));
        let rows = self.names.into_iter().enumerate();
        let row = |(i, name)| Row { name, time: times[i], baseline: baseline(&times, i) };
        rows.map(row).collect()
    }
}
