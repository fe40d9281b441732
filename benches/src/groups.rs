//! Groups of interleaved cases, and a row of figures for each case.

use blocked_bloom::{Block, Params, Sizing};

use crate::baseline::{BASELINES, faster, load_lines};
use crate::clock::{Case, Schedule, interleaved};
use crate::timing::Timing;

/// The head of a table of rows.
pub const HEADS: &str =
    "op               mix      kernel            threads     batch           ns/key  ratio";

/// The filter and how it is measured.
#[derive(Debug)]
pub struct Setting {
    /// Number of keys in the filter.
    pub keys: u64,
    /// The size from which `params` follow.
    pub sizing: Sizing,
    /// Blocks and probes.
    pub params: Params,
    /// Number of interleaved rounds.
    pub rounds: usize,
    /// Keys in a call.
    pub batches: Vec<usize>,
}

/// The identity of a row's measurement.
#[derive(Clone, Copy, Debug)]
pub struct Name {
    /// The measured operation.
    pub op: &'static str,
    /// The mix of present and absent keys.
    pub mix: &'static str,
    /// The kernel, or the loop that is not a kernel.
    pub kernel: &'static str,
    /// Number of threads.
    pub threads: usize,
    /// Keys in a call.
    pub batch: usize,
}

/// One measurement.
#[derive(Debug)]
pub struct Row {
    /// The identity of the measurement.
    pub name: Name,
    /// Nanoseconds per key.
    pub time: Timing,
    /// The time to compare with, if there is one.
    pub baseline: Option<Timing>,
}

impl Row {
    /// Returns the ratio to the baseline.
    pub fn ratio(&self) -> Option<f64> {
        self.baseline.map(|baseline| self.time.median / baseline.median)
    }

    /// Returns the row's line of a table whose head is [`HEADS`].
    pub fn text(&self) -> String {
        let ratio = self.ratio().map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"));
        let Name { op, mix, kernel, threads, batch } = self.name;
        let time = self.time;
        format!("{op:<16} {mix:<8} {kernel:<17} {threads:>7} {batch:>9} {time:>16} {ratio:>6}\n")
    }
}

/// Interleaved cases and the names of their rows.
#[expect(missing_debug_implementations, reason = "closures")]
pub struct Group<'a> {
    name: Name,
    cases: Vec<(Name, Case<'a>)>,
}

impl<'a> Group<'a> {
    /// Creates a group for one thread and calls of this many keys.
    pub fn new(op: &'static str, mix: &'static str, batch: usize) -> Self {
        let name = Name { op, mix, kernel: "-", threads: 1, batch };
        Group { name, cases: Vec::new() }
    }

    /// Creates a group whose first two rows are the loops of the memory-bound baseline.
    pub fn with_baseline(
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

    /// Adds a case that calls `run` with one batch after another.
    pub fn add_batches<T, R>(
        &mut self,
        kernel: &'static str,
        items: &'a [T],
        run: impl FnMut(&[T]) -> R + 'a,
    ) {
        let case = Case::batches(items, items.len(), self.name.batch, run);
        self.add(self.name.op, kernel, 1, case);
    }

    /// Adds a case that calls `run` once with all items.
    pub fn add_loop<T, R>(
        &mut self,
        kernel: &'static str,
        items: &'a [T],
        run: impl FnMut(&[T]) -> R + 'a,
    ) {
        let case = Case::batches(items, items.len(), items.len(), run);
        self.add(self.name.op, kernel, 1, case);
    }

    /// Adds a case with its own op.
    pub fn add(&mut self, op: &'static str, kernel: &'static str, threads: usize, case: Case<'a>) {
        self.cases.push((Name { op, kernel, threads, ..self.name }, case));
    }

    /// Sets the op of the cases that are added next.
    pub fn op(&mut self, op: &'static str) -> &mut Self {
        self.name.op = op;
        self
    }

    /// Measures all cases and compares them with the baseline.
    pub fn rows(self, rounds: usize) -> Vec<Row> {
        self.rows_beside(rounds, |times, _| Some(faster(times[0], times[1])))
    }

    /// Measures all cases and compares each with the time that `baseline` selects, given all times
    /// and the index of the row.
    pub fn rows_beside(
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
