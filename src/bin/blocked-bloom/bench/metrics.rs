//! What counting queries costs: the same batches with and without recording, in turn.

use std::hint::black_box;

use blocked_bloom::{Bitmask, BloomFilter, FilterMetrics};
use rayon::ThreadPoolBuilder;

use super::measure::{Case, Timing, interleaved};
use super::workload::{Mix, question_count};
use super::{Row, Setting};
use crate::failure::Failure;

pub(crate) const EXPLANATION: &str = "\
metrics ns/key of a thread's keys. not_counted: a batch answered, its hits counted by the caller.
        record_batch: the same, and those numbers recorded. record: a batch answered and its mask recorded;
        not_recorded: a batch answered. ratio: to not_counted or not_recorded
";

const BATCHES: [usize; 2] = [128, 4096];

/// Keys that a thread asks about in a run: enough that starting the threads does not count.
const KEYS: usize = 1 << 20;

#[derive(Clone, Copy, PartialEq)]
enum Counting {
    NotRecorded,
    Record,
    NotCounted,
    RecordBatch,
}

pub(super) fn measure(setting: &Setting, filter: &BloomFilter) -> Result<Vec<Row>, Failure> {
    let view = filter.view();
    let mut hashes = Mix::Half.questions(setting.keys, question_count(setting.keys));
    hashes.truncate(KEYS);
    let (hashes, metrics) = (&hashes, &FilterMetrics::new());
    let mut rows = Vec::new();
    for threads in [1, 2] {
        let pool = &ThreadPoolBuilder::new().num_threads(threads).build().map_err(Failure::new)?;
        for batch in BATCHES {
            let case = |counting| {
                let ask = move || {
                    let mut hits = Bitmask::new();
                    for _ in 0..KEYS / hashes.len() {
                        for hashes in hashes.chunks(batch) {
                            view.contains_hashes(black_box(hashes), &mut hits);
                            let hits = black_box(&hits);
                            match counting {
                                Counting::NotRecorded => {}
                                Counting::Record => metrics.record(hits),
                                Counting::NotCounted => {
                                    black_box(hits.count_hits());
                                }
                                Counting::RecordBatch => {
                                    metrics.record_batch(hits.len(), hits.count_hits());
                                }
                            }
                        }
                    }
                };
                Case::new(KEYS, move || pool.broadcast(|_| ask()))
            };
            use Counting::{NotCounted, NotRecorded, Record, RecordBatch};
            let mut cases = [NotRecorded, Record, NotCounted, RecordBatch].map(case);
            let times = interleaved(&mut cases, setting.rounds);
            let mut row = |op, time, limit: Option<Timing>| {
                let kernel = view.kernel().name();
                rows.push(Row { op, mix: "half", kernel, threads, batch, time, limit });
            };
            row("not_recorded", times[0], None);
            row("record", times[1], Some(times[0]));
            row("not_counted", times[2], None);
            row("record_batch", times[3], Some(times[2]));
        }
    }
    Ok(rows)
}
