//! What recording metrics costs: the same batches with and without, interleaved.

use std::hint::black_box;

use blocked_bloom::{Bitmask, BloomFilter};
use blocked_bloom_lsm::FilterMetrics;

use super::measure::{Case, Timing, interleaved};
use super::rows::{Row, Setting};
use super::workload::{Mix, lookup_count};
use crate::failure::Failure;
use crate::threads;

pub(super) const EXPLANATION: &str = "\
metrics ns/key of a thread's keys; threads share one FilterMetrics. not_counted: a batch looked up, its hits
        counted by the caller; record_batch: the same, and those numbers recorded; record: a batch looked up and
        its mask recorded; not_recorded: a batch looked up. ratio: to not_counted or not_recorded
";

const BATCHES: [usize; 2] = [128, 4096];

/// Keys that a thread looks up in a run: enough that starting the threads does not count.
const KEYS: usize = 1 << 20;

#[derive(Clone, Copy, PartialEq)]
enum Counting {
    NotRecorded,
    Record,
    NotCounted,
    RecordBatch,
}

pub(super) fn measure(setting: &Setting, filter: &BloomFilter) -> Result<Vec<Row>, Failure> {
    let mut hashes = Mix::Half.lookups(setting.keys, lookup_count(setting.keys));
    hashes.truncate(KEYS);
    let (hashes, metrics) = (&hashes, &FilterMetrics::new());
    let mut rows = Vec::new();
    for threads in [1, 2] {
        let pool = &threads::pool(Some(threads))?;
        for batch in BATCHES {
            let case = |counting| {
                let look_up = move || {
                    let mut hits = Bitmask::new();
                    for _ in 0..KEYS / hashes.len() {
                        for hashes in hashes.chunks(batch) {
                            filter.contains_hashes(black_box(hashes), &mut hits);
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
                Case::new(KEYS, move || pool.broadcast(|_| look_up()))
            };
            use Counting::{NotCounted, NotRecorded, Record, RecordBatch};
            let mut cases = [NotRecorded, Record, NotCounted, RecordBatch].map(case);
            let times = interleaved(&mut cases, setting.rounds);
            let mut row = |op, time, baseline: Option<Timing>| {
                let kernel = filter.kernel().name();
                rows.push(Row { op, mix: "half", kernel, threads, batch, time, baseline });
            };
            row("not_recorded", times[0], None);
            row("record", times[1], Some(times[0]));
            row("not_counted", times[2], None);
            row("record_batch", times[3], Some(times[2]));
        }
    }
    Ok(rows)
}
