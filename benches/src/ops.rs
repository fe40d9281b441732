//! The operations that `blocked-bloom bench` measures.

use std::cell::Cell;
use std::error::Error;
use std::hint::black_box;

use blocked_bloom::{
    Bitmask, Block, BloomFilter, BloomFilterBuilder, BuildError, Filter as _, FilterOptions,
    Kernel, KeyHash, KeyHasher,
};
use blocked_bloom_lsm::FilterMetrics;
use blocked_bloom_split::SplitBlockFilter;
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::baseline::{BASELINES, early_exit, load_lines};
use crate::clock::Case;
use crate::groups::{Group, Name, Row, Setting};
use crate::split_block::SplitBlocks;
use crate::workload::{Key, Mix, filled, hash, key, lookup_count, visit_hashes};

/// What to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Op {
    /// Batches of hashes, by every kernel, and one by one in a loop
    Query,
    /// One hash a call, by every kernel, and inlined in a loop
    Single,
    /// Batches of 16-byte keys, of 8-byte keys and of integers: hashed in a loop, hashed as a
    /// batch, and looked up
    Keys,
    /// Inserting batches of hashes, by every kernel, and one by one
    Insert,
    /// Batches of hashes in a Parquet filter of the same size, by every kernel, next to the same
    /// kernel's native filter; not by default
    Split,
    /// Whole filters from hashes and from 16-byte keys, by one thread and by all; not by default,
    /// since 100M keys take a minute and 7 GB
    Build,
    /// Batches of 128 and 4,096 hashes with and without recording metrics; not by default
    Metrics,
}

/// Explains the columns, and the rows of most ops.
pub const EXPLANATION: &str = "\
ns/key  median over the rounds, and in brackets the least; all rows of a block are interleaved. On
        Linux CPU time of the thread, of several the busiest
ratio   to the memory-bound baseline of the same keys and batch: the faster of two loops that load
        one line per key and test nothing, with and without prefetching: a reference, not a bound
single  contains_hash: each call is timed with what its measuring costs, which is in every row of
        it, the baseline's too, and alone in that of harness; contains_in_loop: the same lookups
        inlined in a loop, next to the loops of the baseline
kernel  one_by_one: a call for each key; early_exit: the scalar probe scheme inlined, stopping at
        the first bit that is not set; split_block: Parquet's probe scheme in one AVX2 loop, which
        only counts and accepts some 30 % more absent keys at 10 bits/key; ahead: with prefetching
";

/// Explains the rows of [`Op::Build`].
pub const BUILD_HELP: &str = "\
build   load_lines: the memory-bound baseline; copy_list: copying the hashes; hash_loop,
        slices_loop: hashing 16-byte keys one by one, alone; hashes_to_filter: from the builder's
        list; and_verified: finish_verified; keys_to_filter, slices_to_filter: through a builder, by
        insert_batch; one_by_one: a call for each key; known_count: par_insert_batch; threads share
        the inserting from 8.4 million keys on
";

/// Explains the rows of [`Op::Metrics`].
pub const METRICS_HELP: &str = "\
metrics ns/key of a thread's keys; threads share one FilterMetrics. not_counted: a batch looked up,
        its hits counted by the caller; record_batch: the same, and those numbers recorded; record:
        a batch looked up and its mask recorded; not_recorded: a batch looked up. ratio: to
        not_counted or not_recorded
";

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Measures one operation.
///
/// # Errors
///
/// If memory or threads are missing.
pub fn measure(op: Op, setting: &Setting, filter: &BloomFilter) -> Result<Vec<Row>> {
    match op {
        Op::Query | Op::Single | Op::Split => look_up(op, setting, filter),
        Op::Keys => Ok(whole_keys(setting, filter)),
        Op::Insert => insert(setting),
        Op::Build => build(setting),
        Op::Metrics => metrics(setting, filter),
    }
}

fn lookups(setting: &Setting, mix: Mix) -> Vec<u64> {
    mix.lookups(setting.keys, lookup_count(setting.keys))
}

/// Batches of hashes, or one a call, by every kernel and by other loops; or the kernels for
/// Parquet's split blocks, next to the same instruction sets' kernels for native filters.
fn look_up(op: Op, setting: &Setting, filter: &BloomFilter) -> Result<Vec<Row>> {
    let (name, mixes, batches) = match op {
        Op::Single => ("contains_hash", &Mix::ALL[..], &[1][..]),
        Op::Split => ("split_hashes", &[Mix::Absent][..], &setting.batches[..]),
        _ => ("contains_hashes", &Mix::ALL[..], &setting.batches[..]),
    };
    let native = filter.view();
    // Of the same size and keys.
    let mut blocks = SplitBlocks::new(setting.params.blocks())?;
    if op != Op::Single {
        visit_hashes(setting.keys, |hashes| blocks.insert_hashes(hashes));
    }
    let split = SplitBlockFilter::from_bitset(blocks.bitset())?;
    let blocks = &blocks;
    let mut rows = Vec::new();
    for (&batch, &mix) in batches.iter().flat_map(|b| mixes.iter().map(move |mix| (b, mix))) {
        let hashes = &lookups(setting, mix);
        let mut group = Group::with_baseline(name, mix.name(), batch, native.blocks(), hashes);
        for kernel in Kernel::supported() {
            let (split, native) = (split.with_kernel(kernel), native.with_kernel(kernel));
            if op == Op::Single {
                let contains = move |hashes: &[u64]| native.contains_hash(hashes[0]);
                group.add_batches(kernel.name(), hashes, contains);
                continue;
            }
            let [mut of_split, mut of_native] = [Bitmask::new(), Bitmask::new()];
            if op == Op::Split {
                let contains = move |hashes: &[u64]| split.contains_hashes(hashes, &mut of_split);
                group.op("split_hashes").add_batches(kernel.name(), hashes, contains);
            }
            let contains = move |hashes: &[u64]| native.contains_hashes(hashes, &mut of_native);
            group.op("contains_hashes").add_batches(kernel.name(), hashes, contains);
        }
        if op == Op::Query {
            let has = move |hash: &&u64| native.contains_hash(**hash);
            group.add_batches("one_by_one", hashes, move |h| h.iter().filter(has).count());
            let probes = setting.params.probes();
            let early_exit = move |h: &[u64]| early_exit(native.blocks(), probes, h);
            group.add_batches("early_exit", hashes, early_exit);
        }
        if op != Op::Single && blocks.count_hits(&[], false).is_some() {
            group.op(name);
            for (name, ahead) in [("split_block", false), ("split_block_ahead", true)] {
                group.add_batches(name, hashes, move |hashes| blocks.count_hits(hashes, ahead));
            }
        }
        if op == Op::Single {
            group.add_batches("harness", hashes, |hashes| hashes[0]);
        }
        rows.extend(group.rows(setting.rounds));
        if op == Op::Single {
            rows.extend(time_inlined_lookups(setting, native, mix, hashes));
        }
    }
    Ok(rows)
}

/// Single lookups inlined in a loop, without the cost of measuring each call, next to the loops of
/// the baseline.
fn time_inlined_lookups(
    setting: &Setting,
    filter: BloomFilter<&[Block]>,
    mix: Mix,
    hashes: &[u64],
) -> Vec<Row> {
    let mut group = Group::new("contains_in_loop", mix.name(), 1);
    for (name, ahead) in BASELINES {
        let blocks = filter.blocks();
        group.add_loop(name, hashes, move |hashes| load_lines(blocks, hashes, ahead));
    }
    for kernel in Kernel::supported() {
        let filter = filter.with_kernel(kernel);
        let has = move |hash: &&u64| filter.contains_hash(**hash);
        group.add_loop(kernel.name(), hashes, move |hashes| hashes.iter().filter(has).count());
    }
    group.rows(setting.rounds)
}

/// Hashes key after key.
fn hash_loop<K: AsRef<[u8]>>(keys: &[K], hashes: &mut Vec<u64>) {
    let hasher = KeyHasher::default();
    hashes.clear();
    hashes.extend(keys.iter().map(|key| hasher.hash(key)));
}

/// Keys of 16 bytes, of 8, and integers, all absent: hashed alone; hashed and looked up in one
/// call, or in two. `hash_loop` calls `KeyHasher::hash` for each key, which the compiler may
/// vectorise as it likes.
fn whole_keys(setting: &Setting, filter: &BloomFilter) -> Vec<Row> {
    let view = filter.view();
    let integers = lookups(setting, Mix::Absent);
    let keys: Vec<Key> = (setting.keys..).map(key).take(integers.len()).collect();
    let slices: Vec<&[u8]> = keys.iter().map(|key| key.as_slice()).collect();
    let eights: Vec<[u8; 8]> = integers.iter().map(|key| key.to_le_bytes()).collect();
    let hasher = KeyHasher::default();
    let kernel = view.kernel().name();
    let mut rows = Vec::new();
    for &batch in &setting.batches {
        let mut group = Group::new("", "absent", batch);
        // A case with space for hashes and answers.
        macro_rules! add {
            ($op:literal, $kernel:expr, $keys:ident,
             |$batch:ident, $hashes:ident, $hits:pat_param| $run:expr) => {{
                let (mut $hashes, mut hits) = (Vec::<u64>::new(), Bitmask::new());
                group.op($op).add_batches($kernel, &$keys, move |$batch| {
                    let ($hashes, $hits) = (&mut $hashes, &mut hits);
                    $run;
                });
            }};
        }
        add!("hash_loop", "-", keys, |keys, hashes, _| hash_loop(keys, hashes));
        add!("hash_batch", kernel, keys, |keys, hashes, _| hasher.hash_batch(keys, hashes));
        add!("hash_slices", kernel, slices, |keys, hashes, _| hasher.hash_batch(keys, hashes));
        add!("hash_loop_8", "-", eights, |keys, hashes, _| hash_loop(keys, hashes));
        add!("hash_batch_8", kernel, eights, |keys, hashes, _| hasher.hash_batch(keys, hashes));
        add!("hash_u64s", kernel, integers, |keys, hashes, _| {
            hashes.resize(keys.len(), 0);
            _ = hasher.hash_u64s(keys, hashes); // as many hashes as keys
        });
        add!("loop, contains", kernel, keys, |keys, hashes, hits| {
            hash_loop(keys, hashes);
            view.contains_hashes(hashes, hits);
        });
        add!("hash, contains", kernel, keys, |keys, hashes, hits| {
            hasher.hash_batch(keys, hashes);
            view.contains_hashes(hashes, hits);
        });
        add!("contains_batch", kernel, keys, |keys, _hashes, hits| view.contains_batch(keys, hits));
        add!("loop_8, contains", kernel, eights, |keys, hashes, hits| {
            hash_loop(keys, hashes);
            view.contains_hashes(hashes, hits);
        });
        add!("contains_u64s", kernel, integers, |keys, _hashes, hits| view
            .contains_u64s(keys, hits));
        rows.extend(group.rows_beside(setting.rounds, |_, _| None));
    }
    rows
}

/// Keys that were not in the filter when it was made: bits that are set already cost the same,
/// since no kernel tests them.
fn insert(setting: &Setting) -> Result<Vec<Row>> {
    let filter = BloomFilter::with_params(setting.params, KeyHash::default())?;
    let lines = &filter.clone();
    // All kernels insert into one filter, interleaved.
    let filter = &Cell::new(Some(filter));
    let with = move |kernel, insert: &dyn Fn(&mut BloomFilter)| {
        if let Some(owned) = filter.take() {
            let mut owned = owned.with_kernel(kernel);
            insert(&mut owned);
            filter.set(Some(owned));
        }
    };
    let hashes = &lookups(setting, Mix::Absent);
    let mut rows = Vec::new();
    for &batch in &setting.batches {
        let mut group =
            Group::with_baseline("insert_hashes", "absent", batch, lines.blocks(), hashes);
        // A filter of keys takes every hash.
        for kernel in Kernel::supported() {
            let insert = move |hashes: &[u64]| with(kernel, &|f| _ = f.insert_hashes(hashes));
            group.add_batches(kernel.name(), hashes, insert);
        }
        group.add_batches("one_by_one", hashes, move |hashes| {
            with(Kernel::default(), &|filter| {
                hashes.iter().for_each(|&hash| _ = filter.insert_hash(hash));
            });
        });
        rows.extend(group.rows(setting.rounds));
    }
    Ok(rows)
}

/// Whole filters: from hashes and from keys, by one thread and by all.
fn build(setting: &Setting) -> Result<Vec<Row>> {
    /// Hashes that a thread copies at a time.
    const PIECE: usize = 1 << 16;
    let count = setting.keys as usize;
    let filter = filled(setting.params, setting.keys)?;
    let hashes = &(0..setting.keys).map(hash).collect::<Vec<u64>>();
    let keys = &(0..setting.keys).map(key).collect::<Vec<Key>>();
    let slices: &Vec<&[u8]> = &keys.iter().map(|key| key.as_slice()).collect();
    let options = FilterOptions::new(setting.sizing).with_probes(setting.params.probes());
    let builder = || options.clone().builder();
    let mut collected = builder();
    for &hash in hashes {
        collected.insert_hash(hash)?;
    }
    let all = std::thread::available_parallelism().map_or(1, usize::from);
    let pools = [pool(1)?, pool(all)?];

    let mut group = Group::with_baseline("load_lines", "-", count, filter.blocks(), hashes);
    let kernel = filter.kernel().name();
    group.add("hash_loop", "-", 1, Case::new(count, |_| hash_all(keys)));
    group.add("slices_loop", "-", 1, Case::new(count, |_| hash_all(slices)));
    let from_slices = Case::new(count, |_| from_keys(builder(), slices));
    group.add("slices_to_filter", kernel, 1, from_slices);
    let one_by_one = Case::new(count, |_| {
        let mut builder = builder();
        keys.iter().try_for_each(|key| builder.insert(key))?;
        builder.finish()
    });
    group.add("one_by_one", kernel, 1, one_by_one);
    for pool in &pools[..all.min(2)] {
        let threads = pool.current_num_threads();
        let clone = |_| collected.clone();
        // The bandwidth of so many threads: reordering the list by cuts reads and writes it once.
        let mut copy = vec![0; count];
        let copied = move |_| {
            let pieces = copy.par_chunks_mut(PIECE).zip(hashes.par_chunks(PIECE));
            pool.install(|| pieces.for_each(|(copy, piece)| copy.copy_from_slice(piece)));
        };
        group.add("copy_list", "-", threads, Case::pooled(pool, count, copied));
        let finish = |builder: BloomFilterBuilder| pool.install(|| builder.par_finish());
        let case = Case::with_setup(Some(pool), count, clone, finish);
        group.add("hashes_to_filter", kernel, threads, case);
        let verified = |builder: BloomFilterBuilder| pool.install(|| builder.par_finish_verified());
        let case = Case::with_setup(Some(pool), count, clone, verified);
        group.add("and_verified", kernel, threads, case);
        let from_keys = move |_| {
            let mut builder = builder();
            pool.install(|| match threads {
                1 => from_keys(builder, keys),
                _ => {
                    builder.par_extend(keys)?;
                    builder.par_finish()
                }
            })
        };
        group.add("keys_to_filter", kernel, threads, Case::pooled(pool, count, from_keys));
        let known_count = || {
            let mut filter = BloomFilter::with_params(setting.params, KeyHash::default())?;
            filter.par_insert_batch(keys)?;
            Ok::<_, BuildError>(filter)
        };
        let case = Case::pooled(pool, count, move |_| pool.install(known_count));
        group.add("known_count", kernel, threads, case);
    }
    Ok(group.rows(setting.rounds))
}

fn pool(threads: usize) -> Result<ThreadPool> {
    let pool = ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map_err(|error| format!("cannot start threads: {error}").into())
}

fn hash_all<K: AsRef<[u8]>>(keys: &[K]) -> u64 {
    let hasher = KeyHasher::default();
    keys.iter().fold(0, |sum, key| sum ^ hasher.hash(key))
}

fn from_keys<K: AsRef<[u8]>>(
    mut builder: BloomFilterBuilder,
    keys: &[K],
) -> std::result::Result<BloomFilter, BuildError> {
    builder.insert_batch(keys)?;
    builder.finish()
}

/// Uses of the answers of a batch. Every second one is compared with the one before it.
type Counting = fn(&FilterMetrics, &Bitmask);

const COUNTINGS: [(&str, Counting); 4] = [
    ("not_recorded", |_, _| {}),
    ("record", |metrics, hits| metrics.record(hits)),
    ("not_counted", |_, hits| _ = black_box(hits.count_hits())),
    ("record_batch", |metrics, hits| metrics.record_batch(hits.len(), hits.count_hits())),
];

/// What recording metrics costs: the same batches with and without, interleaved.
fn metrics(setting: &Setting, filter: &BloomFilter) -> Result<Vec<Row>> {
    /// Keys that a thread looks up in a run: enough that starting the threads does not count.
    const KEYS: usize = 1 << 20;
    let hashes = &lookups(setting, Mix::Half);
    let (metrics, mut rows) = (&FilterMetrics::new(), Vec::new());
    for (threads, batch) in [(1, 128), (1, 4096), (2, 128), (2, 4096)] {
        let pool = &pool(threads)?;
        let mut group = Group::new("", "half", batch);
        for (op, count) in COUNTINGS {
            let look_up = move || {
                let mut hits = Bitmask::new();
                for hashes in hashes.chunks(batch).cycle().take(KEYS / batch) {
                    filter.contains_hashes(black_box(hashes), &mut hits);
                    count(metrics, black_box(&hits));
                }
            };
            let case = Case::pooled(pool, KEYS, move |_| pool.broadcast(|_| look_up()));
            group.add(op, filter.kernel().name(), threads, case);
        }
        let beside = |times: &[_], i: usize| (i % 2 == 1).then(|| times[i - 1]);
        rows.extend(group.rows_beside(setting.rounds, beside));
    }
    Ok(rows)
}

/// Returns a table of five ops, as far as they were measured: the time of the kernel that the
/// library takes, next to the memory-bound baseline. Returns `None` if none was measured.
pub fn summary(setting: &Setting, rows: &[Row]) -> Option<String> {
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
