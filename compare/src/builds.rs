//! Times of filling filters: every kind by one thread, those that can by several.

use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::keys::{Key, hash, hash_of, key};
use crate::measure::{Case, Clock, Schedule, interleaved, pool_case, timing};
use crate::own::empty;
use crate::peer::{Kind, Peer, Role};
use crate::queries::Filters;
use crate::report::{Section, Time};

/// Fills one filter of each kind, timed, and keeps the last ones.
pub(crate) fn of_hashes<'k>(
    kinds: &'k [Kind],
    keys: u64,
    bits: f64,
    quick: bool,
    times: &mut Vec<Time>,
) -> Filters<'k> {
    let hashes: Vec<u64> = (0..keys).map(hash).collect();
    let rounds = match keys {
        0..=200_000 => 21,
        200_001..=2_000_000 => 7,
        2_000_001..=20_000_000 => 2,
        _ => 1,
    };
    let rounds = if quick { rounds.min(5) } else { rounds };
    let fill = |kind: &'k Kind| {
        let clock = Clock::thread();
        let filter = (kind.of_hashes)(&hashes, bits);
        (clock.seconds() * 1e9 / keys as f64, filter)
    };
    eprintln!("  {keys} keys: filling from hashes");
    let mut taken = vec![Vec::new(); kinds.len()];
    for _ in 1..rounds {
        for (kind, taken) in kinds.iter().zip(&mut taken) {
            if is_timed(kind) {
                taken.push(fill(kind).0);
            }
        }
    }
    // One round takes minutes where it is the only one: side by side then.
    let last: Vec<(f64, Option<Box<dyn Peer>>)> = if rounds == 1 {
        kinds.par_iter().with_max_len(1).map(fill).collect()
    } else {
        kinds.iter().map(fill).collect()
    };
    let mut filters = Filters::new();
    for ((kind, mut taken), (time, filter)) in kinds.iter().zip(taken).zip(last) {
        let Some(filter) = filter else { continue };
        if is_timed(kind) {
            taken.push(time);
            times.push(Time {
                section: Section::Build,
                row: kind.id.to_owned(),
                keys,
                mix: "-".to_owned(),
                batch: keys as usize,
                threads: 1,
                bits_per_key: filter.bytes() as f64 * 8.0 / keys as f64,
                ns: timing(taken),
            });
        }
        filters.push((kind, filter));
    }
    filters
}

/// The baseline has nothing to fill, and small pages are a copy.
fn is_timed(kind: &Kind) -> bool {
    kind.role != Role::Baseline && !kind.id.ends_with("small pages")
}

/// Fills one filter of each kind with 16-byte keys.
pub(crate) fn of_keys<'k>(kinds: &'k [Kind], keys: u64, bits: f64) -> Filters<'k> {
    let list: Vec<Key> = (0..keys).map(key).collect();
    let fill = |kind: &'k Kind| {
        eprintln!("  {keys} keys: filling {} with 16-byte keys", kind.id);
        Some((kind, (kind.of_keys)(&list, bits)?))
    };
    kinds.iter().filter_map(fill).collect()
}

pub(crate) const THREADS_HASHES: &str = "blocked-bloom, hashes";
pub(crate) const THREADS_KEYS: &str = "blocked-bloom, 16-byte keys";
pub(crate) const ATOMIC_HASHES: &str = "fastbloom, hashes";
pub(crate) const ATOMIC_KEYS: &str = "fastbloom, 16-byte keys";

/// Fills filters of a known size by one thread up to all.
pub(crate) fn by_threads(keys: u64, bits: f64, quick: bool, times: &mut Vec<Time>) {
    let hashes: Vec<u64> = (0..keys).map(hash).collect();
    let list: Vec<Key> = (0..keys).map(key).collect();
    let count = keys as usize;
    let all = std::thread::available_parallelism().map_or(1, usize::from);
    let pools: Vec<ThreadPool> = threads_up_to(all)
        .into_iter()
        .map(|threads| ThreadPoolBuilder::new().num_threads(threads).build().expect("threads"))
        .collect();
    let mut rows = Vec::new();
    let mut cases: Vec<Case<'_>> = Vec::new();
    for pool in &pools {
        let threads = pool.current_num_threads();
        let mut add = |row: &str, case| {
            rows.push((row.to_owned(), threads));
            cases.push(case);
        };
        let (hashes, list) = (&hashes, &list);
        add(
            THREADS_HASHES,
            pool_case(pool, count, move |_| {
                let mut filter = empty(count, bits);
                pool.install(|| filter.par_insert_hashes(hashes)).expect("memory for the order");
            }),
        );
        add(
            THREADS_KEYS,
            pool_case(pool, count, move |_| {
                let mut filter = empty(count, bits);
                pool.install(|| filter.par_insert_batch(list)).expect("memory for the hashes");
            }),
        );
        let shared = move || {
            fastbloom::AtomicBloomFilter::with_num_bits((count as f64 * bits) as usize)
                .seed(&0)
                .expected_items(count)
        };
        add(
            ATOMIC_HASHES,
            pool_case(pool, count, move |_| {
                let filter = shared();
                pool.install(|| {
                    hashes.par_chunks(1 << 16).for_each(|hashes| {
                        for &hash in hashes {
                            filter.insert_hash(hash);
                        }
                    });
                });
            }),
        );
        add(
            ATOMIC_KEYS,
            pool_case(pool, count, move |_| {
                let filter = shared();
                pool.install(|| {
                    list.par_chunks(1 << 16).for_each(|keys| {
                        for key in keys {
                            filter.insert_hash(hash_of(key));
                        }
                    });
                });
            }),
        );
    }
    eprintln!("  {keys} keys: filling by 1 to {all} threads");
    let schedule = Schedule { rounds: if quick { 3 } else { 7 }, warm: 0, timed: 1 };
    let timings = interleaved(&mut cases, schedule);
    times.extend(rows.into_iter().zip(timings).map(|((row, threads), ns)| Time {
        section: Section::Threads,
        row,
        keys,
        mix: "-".to_owned(),
        batch: count,
        threads,
        bits_per_key: bits,
        ns,
    }));
}

/// Powers of two up to `all`, and `all`.
fn threads_up_to(all: usize) -> Vec<usize> {
    let mut numbers: Vec<usize> =
        (0..).map(|shift| 1 << shift).take_while(|&threads| threads < all).collect();
    numbers.push(all);
    numbers
}
