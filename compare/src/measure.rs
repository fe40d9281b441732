//! Times of filling and of looking up, and false-positive rates.

use benches::clock::{Case, Clock, Schedule, interleaved};
use benches::results::{Rate, Report, Section, Time};
use benches::timing::Timing;
use benches::workload::{Key, Mix, hash, key};
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::peers::{
    Filled, Item, Kind, MAX_BATCH, OURS, OURS_AVX2, OURS_SINGLE, ROCKSDB, ROCKSDB_BATCH, Role,
    SBBF_RS, empty,
};

/// Keys of a call in the tables.
pub(crate) const BATCH: usize = 1024;

/// Keys of a call of a short MultiGet.
pub(crate) const SHORT: usize = 32;

/// Bits per key at which every kind is filled for its rate; a kind that cannot choose is measured
/// at the first.
const BITS: [f64; 7] = [10.0, 6.0, 8.0, 12.0, 14.0, 16.0, 20.0];

/// Filters of the same keys, in the order of their kinds.
type Filters<'k, T> = Vec<(&'k Kind, Filled<T>)>;

/// Rounds for a filter of this many keys.
pub(crate) fn schedule(keys: u64, quick: bool) -> Schedule {
    let divisor = if quick { 4 } else { 1 };
    match keys {
        0..=2_000_000 => Schedule { rounds: 101 / divisor, warm: 2, timed: 2 },
        2_000_001..=20_000_000 => Schedule { rounds: 16 / divisor, warm: 1, timed: 2 },
        _ => Schedule { rounds: 12 / divisor, warm: 0, timed: 2 },
    }
}

/// Queries in a pass: a pass touches a filter nearly all over, up to half of 10 million keys.
pub(crate) fn pass_length(keys: u64) -> usize {
    (keys as usize / 16).next_power_of_two().clamp(1 << 14, 1 << 18)
}

/// Eight passes of queries; they start over afterwards.
pub(crate) fn queries<T: Item>(mix: Mix, keys: u64) -> Vec<T> {
    (0..8 * pass_length(keys) as u64).map(|i| T::number(mix.number(keys, i))).collect()
}

/// The lookups in a filter of `keys` keys: section, mix, and keys per call.
fn calls(keys: u64, quick: bool) -> Vec<(Section, Mix, usize)> {
    use Section::{Batch, KeyBatch, Keys, Query};
    let mut calls = Mix::ALL.map(|mix| (Query, mix, BATCH)).to_vec();
    calls.push((Query, Mix::Absent, SHORT));
    let sizes: &[usize] = match quick {
        true => &[1, 8, 32, 128, 1024],
        false => &[1, 4, 8, 16, 32, 64, 128, 256, 1024, MAX_BATCH],
    };
    if [1_000_000, 100_000_000].contains(&keys) {
        calls.extend(sizes.iter().map(|&batch| (Batch, Mix::Absent, batch)));
    }
    if keys >= 1_000_000 {
        let sizes: &[usize] = if quick { &[1, SHORT] } else { &[1, 4, 8, SHORT, 256, BATCH] };
        calls.extend(sizes.iter().map(|&batch| (KeyBatch, Mix::Absent, batch)));
    }
    if keys <= 10_000_000 {
        calls.extend([Mix::Absent, Mix::Present].map(|mix| (Keys, mix, BATCH)));
    }
    calls
}

/// The rows that are followed in short calls of keys.
const SHORT_ROWS: [&str; 5] = [OURS, OURS_SINGLE, OURS_AVX2, ROCKSDB, ROCKSDB_BATCH];

/// Whether a row is in a table: a way without batches is as fast in any, and only ways whose calls
/// cost next to nothing are followed in short calls.
fn is_measured(
    section: Section,
    batch: usize,
    kind: &Kind,
    (row, in_batches): (&str, bool),
) -> bool {
    match section {
        Section::Query => batch == BATCH || in_batches,
        Section::Batch => match kind.role {
            Role::Package => kind.id == SBBF_RS,
            Role::Ours => [OURS, OURS_AVX2].contains(&kind.id),
            _ => true,
        },
        Section::KeyBatch => SHORT_ROWS.contains(&row),
        _ => true,
    }
}

/// Everything that is looked up in filters of this many keys.
pub(crate) fn look_up(kinds: &[Kind], keys: u64, quick: bool, report: &mut Report) {
    let filters = fill(kinds, keys, quick, report);
    let (bits, times) = (report.bits_per_key, &mut report.times);
    let (key_calls, hash_calls): (Vec<_>, Vec<_>) = calls(keys, quick)
        .into_iter()
        .partition(|(section, ..)| matches!(section, Section::Keys | Section::KeyBatch));
    for call in hash_calls {
        measure(&filters, keys, call, quick, times);
    }
    drop(filters);
    // With more, filters of keys of all kinds would take 4 GB and minutes.
    let is_short = |kind: &&Kind| kind.rows.iter().any(|(row, _)| SHORT_ROWS.contains(row));
    let wanted = kinds.iter().filter(|kind| keys <= 10_000_000 || is_short(kind));
    let list: Vec<Key> = (0..keys).map(key).collect();
    let filters: Filters<'_, Key> =
        wanted.filter_map(|kind| Some((kind, (kind.fill_keys)(&list, bits)?))).collect();
    for call in key_calls {
        measure(&filters, keys, call, quick, times);
    }
}

/// Fills one filter of each kind with hashes, timed, and keeps the last ones.
fn fill<'k>(kinds: &'k [Kind], keys: u64, quick: bool, report: &mut Report) -> Filters<'k, u64> {
    let hashes: Vec<u64> = (0..keys).map(hash).collect();
    let rounds = match keys {
        0..=200_000 => 21,
        200_001..=2_000_000 => 7,
        2_000_001..=20_000_000 => 3,
        _ => 1,
    };
    eprintln!("  {keys} keys: filling from hashes");
    // A virtual machine gets memory at its first use, for which the first row would pay.
    drop(std::hint::black_box([hashes.clone(), hashes.clone()]));
    let mut taken = vec![Vec::new(); kinds.len()];
    let mut filters: Vec<Option<Filled<u64>>> = kinds.iter().map(|_| None).collect();
    for _ in 0..if quick { rounds.min(5) } else { rounds } {
        for (kind, (taken, last)) in kinds.iter().zip(taken.iter_mut().zip(&mut filters)) {
            *last = None;
            let clock = Clock::start();
            *last = (kind.fill_hashes)(&hashes, report.bits_per_key);
            taken.push(clock.seconds() * 1e9 / keys as f64);
        }
    }
    let filled = kinds.iter().zip(filters).zip(taken).filter_map(|((kind, filter), taken)| {
        let filter = filter?;
        // The baseline has nothing to fill, and small pages are a copy.
        if kind.role != Role::Baseline && !kind.id.ends_with("small pages") {
            let of = (Section::Build, Mix::Absent, keys as usize);
            report.times.push(Time::new(
                of,
                kind.id,
                keys,
                filter.bytes,
                Timing::from_times(taken),
            ));
        }
        Some((kind, filter))
    });
    filled.collect()
}

fn measure<T: Item>(
    filters: &Filters<'_, T>,
    keys: u64,
    call: (Section, Mix, usize),
    quick: bool,
    times: &mut Vec<Time>,
) {
    let ((section, mix, batch), pass) = (call, pass_length(keys));
    eprintln!("  {keys} keys: {section:?}, {}, {batch} a call", mix.name());
    let queries = &queries::<T>(mix, keys);
    let mut ways = Vec::new();
    for (kind, filter) in filters {
        for (way, &row) in
            kind.rows.iter().enumerate().filter(|(_, r)| is_measured(section, batch, kind, **r))
        {
            let count = move |items: &[T]| (filter.count)(way, items);
            if mix == Mix::Present && kind.role != Role::Baseline {
                let found: usize = queries[..pass].chunks(batch).map(count).sum();
                assert_eq!(found, pass, "{} forgot a key", row.0);
            }
            ways.push(((row.0, filter.bytes), Case::batches(queries, pass, batch, count)));
        }
    }
    let mut schedule = schedule(keys, quick);
    if section == Section::Batch {
        schedule.rounds = schedule.rounds.div_ceil(2);
    }
    let time = |((row, bytes), ns)| Time::new(call, row, keys, bytes, ns);
    times.extend(interleaved(ways, schedule).into_iter().map(time));
}

/// Fills filters of a known size by one thread up to all.
pub(crate) fn build_in_pools(keys: u64, quick: bool, report: &mut Report) {
    let bits = report.bits_per_key;
    let hashes = &(0..keys).map(hash).collect::<Vec<u64>>();
    let count = keys as usize;
    let all = std::thread::available_parallelism().map_or(1, usize::from);
    let fewer = (0..).map(|shift| 1 << shift).take_while(|&threads| threads < all);
    let pools: Vec<ThreadPool> = fewer
        .chain([all])
        .map(|threads| ThreadPoolBuilder::new().num_threads(threads).build().expect("threads"))
        .collect();
    type Fill<'a> = (&'static str, &'a (dyn Fn() + Sync));
    let ways: [Fill<'_>; 2] = [
        ("blocked-bloom, hashes", &|| {
            empty(count, bits).par_insert_hashes(hashes).expect("memory for the order");
        }),
        ("fastbloom, hashes", &|| {
            let bits = (count as f64 * bits) as usize;
            let filter = fastbloom::AtomicBloomFilter::with_num_bits(bits);
            let filter = filter.seed(&0).expected_items(count);
            hashes.par_iter().with_min_len(1 << 16).for_each(|hash| _ = filter.insert_hash(*hash));
        }),
    ];
    let mut measured = Vec::new();
    for (pool, (row, fill)) in pools.iter().flat_map(|pool| ways.map(|way| (pool, way))) {
        let case = Case::pooled(pool, count, move |_| pool.install(fill));
        measured.push(((row, pool.current_num_threads()), case));
    }
    eprintln!("  {keys} keys: filling by 1 to {all} threads");
    let timings = interleaved(measured, Schedule::rounds(if quick { 3 } else { 7 }));
    let bytes = (keys as f64 * bits / 8.0) as usize;
    let time = |((row, threads), ns)| Time {
        threads,
        ..Time::new((Section::Threads, Mix::Absent, count), row, keys, bytes, ns)
    };
    report.times.extend(timings.into_iter().map(time));
}

/// Looks up `queries` absent keys in a filter of each kind and size.
pub(crate) fn rates(kinds: &[Kind], keys: u64, queries: u64) -> Vec<Rate> {
    let hashes: Vec<u64> = (0..keys).map(hash).collect();
    let absent: Vec<u64> = (keys..keys + queries).map(hash).collect();
    let mut rates = Vec::new();
    // Small pages and the other kernel hold the same bits.
    let is_other = |kind: &&Kind| {
        let is_same = kind.id.ends_with("small pages") || kind.id == OURS_AVX2;
        kind.role != Role::Baseline && !is_same
    };
    for kind in kinds.iter().filter(is_other) {
        eprintln!("  {keys} keys: false positives of {}", kind.id);
        let mut last = 0;
        for bits in BITS {
            let Some(filter) = (kind.fill_hashes)(&hashes, bits) else { continue };
            // One size for all: measured once.
            if std::mem::replace(&mut last, filter.bytes) == filter.bytes {
                break;
            }
            rates.push(Rate {
                id: kind.id.to_owned(),
                keys,
                bits_wanted: bits,
                bits_per_key: last as f64 * 8.0 / keys as f64,
                queries,
                false_positives: absent.chunks(BATCH).map(|a| (filter.count)(0, a)).sum::<usize>()
                    as u64,
            });
        }
    }
    rates
}
