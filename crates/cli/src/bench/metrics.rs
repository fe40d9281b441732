//! What recording metrics costs: the same batches with and without, interleaved.

use std::hint::black_box;

use benches::clock::Case;
use benches::workload::{Mix, lookup_count};
use blocked_bloom::{Bitmask, BloomFilter};
use blocked_bloom_lsm::FilterMetrics;

use super::rows::{Group, Row, Setting};
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

/// What is done with the answers of a batch, each beside the one before.
type Counting = fn(&FilterMetrics, &Bitmask);

const WAYS: [(&str, Counting); 4] = [
    ("not_recorded", |_, _| {}),
    ("record", |metrics, hits| metrics.record(hits)),
    ("not_counted", |_, hits| _ = black_box(hits.count_hits())),
    ("record_batch", |metrics, hits| metrics.record_batch(hits.len(), hits.count_hits())),
];

pub(super) fn measure(setting: &Setting, filter: &BloomFilter) -> Result<Vec<Row>, Failure> {
    let mut hashes = Mix::Half.lookups(setting.keys, lookup_count(setting.keys)).all;
    hashes.truncate(KEYS);
    let (hashes, metrics) = (&hashes, &FilterMetrics::new());
    let mut rows = Vec::new();
    for threads in [1, 2] {
        let pool = &threads::pool(Some(threads))?;
        for batch in BATCHES {
            let mut group = Group::new("", "half", batch);
            for (op, count) in WAYS {
                let look_up = move || {
                    let mut hits = Bitmask::new();
                    for _ in 0..KEYS / hashes.len() {
                        for hashes in hashes.chunks(batch) {
                            filter.contains_hashes(black_box(hashes), &mut hits);
                            count(metrics, black_box(&hits));
                        }
                    }
                };
                let case = Case::in_pool(pool, KEYS, move |_| pool.broadcast(|_| look_up()));
                group.add(op, filter.kernel().name(), threads, case);
            }
            let beside = |times: &[_], i: usize| (i % 2 == 1).then(|| times[i - 1]);
            rows.extend(group.rows_beside(setting.rounds, beside));
        }
    }
    Ok(rows)
}
