//! Measurements and their output: the filter's shape, groups of interleaved cases, a
//! row for each, and the summary.

use benches::baseline::{BASELINES, faster, load_lines};
use benches::clock::{Case, Schedule, interleaved};
use benches::timing::Timing;
use blocked_bloom::{Block, Kernel, Params, Sizing};
use indicatif::BinaryBytes;
use serde_json::json;

use super::Args;
use crate::failure::Failure;

const HEADS: &str =
    "op               mix      kernel            threads     batch           ns/key  ratio";

/// The filter and how it is measured.
pub(super) struct Setting {
    pub(super) keys: u64,
    pub(super) sizing: Sizing,
    pub(super) params: Params,
    pub(super) rounds: usize,
    pub(super) batches: Vec<usize>,
}

impl Setting {
    pub(super) fn new(keys: u64, args: &Args) -> Result<Self, Failure> {
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

    /// The lines above the rows.
    pub(super) fn head(&self) -> String {
        let (keys, params) = (self.keys, &self.params);
        let size = BinaryBytes(u64::from(params.blocks()) * 64);
        format!(
            "\n{keys} keys, {size}, {:.2} bits/key, {} probes, {} rounds\n{HEADS}\n",
            params.bits_per_key(),
            params.probes(),
            self.rounds
        )
    }
}

/// The identity of a row's measurement.
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
    cases: Vec<(Name, Case<'a>)>,
}

impl<'a> Group<'a> {
    /// Of one thread, in calls of this many keys.
    pub(super) fn new(op: &'static str, mix: &'static str, batch: usize) -> Self {
        let name = Name { op, mix, kernel: "-", threads: 1, batch };
        Group { name, cases: Vec::new() }
    }

    /// The same, with the loops of the memory-bound baseline of these lines as the first two rows.
    pub(super) fn with_baseline(
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
        run: impl FnMut(&[T]) -> R + 'a,
    ) {
        let case = Case::batches(items, items.len(), self.name.batch, run);
        self.add(self.name.op, kernel, 1, case);
    }

    /// A case that calls `run` once with all items, for a loop over single ones.
    pub(super) fn add_loop<T, R>(
        &mut self,
        kernel: &'static str,
        items: &'a [T],
        run: impl FnMut(&[T]) -> R + 'a,
    ) {
        let case = Case::batches(items, items.len(), items.len(), run);
        self.add(self.name.op, kernel, 1, case);
    }

    /// A case of an op of its own.
    pub(super) fn add(
        &mut self,
        op: &'static str,
        kernel: &'static str,
        threads: usize,
        case: Case<'a>,
    ) {
        self.cases.push((Name { op, kernel, threads, ..self.name }, case));
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

    /// Rows that are compared with what `baseline` makes of all times and the row's index.
    pub(super) fn rows_beside(
        self,
        rounds: usize,
        baseline: impl Fn(&[Timing], usize) -> Option<Timing>,
    ) -> Vec<Row> {
        let rows = interleaved(self.cases, Schedule::rounds(rounds));
        let times: Vec<Timing> = rows.iter().map(|(_, time)| *time).collect();
        let row = |(i, (name, time))| Row { name, time, baseline: baseline(&times, i) };
        rows.into_iter().enumerate().map(row).collect()
    }
}

/// The last lines of `--quick`, below a head: for each of five ops that was measured the time of
/// the kernel that the library takes, in the largest filter, next to the memory-bound baseline.
/// None if none was measured.
pub(super) fn summary(setting: &Setting, rows: &[Row]) -> Option<String> {
    let kernel = Kernel::default().name();
    let batch = setting.batches.first().copied().unwrap_or(1);
    let lines = [
        ("absent keys", "contains_hashes", "absent", batch),
        ("present keys", "contains_hashes", "present", batch),
        ("absent keys", "contains_hash", "absent", 1),
        ("absent keys of 16 bytes, hashed", "contains_batch", "absent", batch),
        ("keys inserted", "insert_hashes", "absent", batch),
    ];
    let find = |op, mix, batch| {
        let is_it =
            |name: &Name| (name.op, name.mix, name.kernel, name.batch) == (op, mix, kernel, batch);
        rows.iter().find(|row| is_it(&row.name))
    };
    let mut text = String::new();
    for (what, op, mix, batch) in lines {
        let Some(row) = find(op, mix, batch) else { continue };
        // Whole keys are looked up in the same lines as their hashes.
        let beside = match row.baseline {
            None => find("contains_hashes", mix, batch).and_then(|row| row.baseline),
            baseline => baseline,
        };
        let [ratio, baseline] = beside.map_or(["-", "-"].map(str::to_owned), |baseline| {
            [row.time.median / baseline.median, baseline.median].map(|x| format!("{x:.2}"))
        });
        let calls = if batch == 1 { "one".to_owned() } else { batch.to_string() };
        let name = format!("{what}, {calls} a call");
        text += &format!("{name:<48} {:>8.2} {ratio:>6}  {baseline}\n", row.time.median);
    }
    let head = format!("summary: {} keys, kernel {kernel}", setting.keys);
    let head = format!("\n{head:<48} {:>8} {:>6}  memory-bound baseline\n", "ns/key", "ratio");
    (!text.is_empty()).then(|| head + &text)
}
