//! Times of looking up: hashes and 16-byte keys, of three mixes, by batches of several sizes.

use std::hint::black_box;

use crate::keys::{Key, Mix, Queries, hash, key, pass_length};
use crate::measure::{Case, Schedule, case, interleaved};
use crate::own::{MOST, OURS, OURS_SINGLE, ROCKSDB, ROCKSDB_BATCH};
use crate::peer::{Batch, Kind, Peer, Role, count_all, count_all_keys};
use crate::report::{Section, Time};
use crate::rust_peers::SBBF_RS;

/// Keys of a call in the tables.
pub(crate) const BATCH: usize = 1024;

/// Keys of a call of a short MultiGet.
pub(crate) const SHORT: usize = 32;

/// Filters of the same keys, in the order of their kinds.
pub(crate) type Filters<'k> = Vec<(&'k Kind, Box<dyn Peer>)>;

/// Rounds for a filter of this many keys.
pub(crate) fn schedule(keys: u64, quick: bool) -> Schedule {
    let divisor = if quick { 4 } else { 1 };
    match keys {
        0..=2_000_000 => Schedule { rounds: 101 / divisor, warm: 2, timed: 2 },
        2_000_001..=20_000_000 => Schedule { rounds: 16 / divisor, warm: 1, timed: 2 },
        _ => Schedule { rounds: 12 / divisor, warm: 0, timed: 2 },
    }
}

/// Looks up hashes: every mix by long batches, absent ones by short batches too.
pub(crate) fn of_hashes(filters: &Filters<'_>, keys: u64, quick: bool, times: &mut Vec<Time>) {
    for mix in Mix::ALL {
        let queries = Queries::new(mix, keys, pass_length(keys), hash);
        for batch in if mix == Mix::Absent { &[BATCH, SHORT][..] } else { &[BATCH] } {
            eprintln!("  {keys} keys: {} hashes, {batch} a call", mix.name());
            run(
                filters,
                keys,
                mix,
                *batch,
                schedule(keys, quick),
                Section::Query,
                times,
                |peer, way, pass| count_all(peer, way, queries.pass(pass), *batch),
            );
        }
    }
}

/// Looks up 16-byte keys.
pub(crate) fn of_keys(filters: &Filters<'_>, keys: u64, quick: bool, times: &mut Vec<Time>) {
    for mix in [Mix::Absent, Mix::Present] {
        let queries: Queries<Key> = Queries::new(mix, keys, pass_length(keys), key);
        eprintln!("  {keys} keys: {} 16-byte keys, {BATCH} a call", mix.name());
        run(
            filters,
            keys,
            mix,
            BATCH,
            schedule(keys, quick),
            Section::Keys,
            times,
            |peer, way, pass| count_all_keys(peer, way, queries.pass(pass), BATCH),
        );
    }
}

/// Looks up absent hashes by batches from one key to thousands.
pub(crate) fn of_batches(filters: &Filters<'_>, keys: u64, quick: bool, times: &mut Vec<Time>) {
    let queries = Queries::new(Mix::Absent, keys, pass_length(keys), hash);
    let mut schedule = schedule(keys, quick);
    schedule.rounds = schedule.rounds.div_ceil(2);
    let sizes: &[usize] =
        if quick { &[1, 8, 32, 128, 1024] } else { &[1, 4, 8, 16, 32, 64, 128, 256, 1024, MOST] };
    for &batch in sizes {
        eprintln!("  {keys} keys: absent hashes, {batch} a call");
        run(
            filters,
            keys,
            Mix::Absent,
            batch,
            schedule,
            Section::Batch,
            times,
            |peer, way, pass| count_all(peer, way, queries.pass(pass), batch),
        );
    }
}

/// Looks up absent 16-byte keys by short batches, beside the loop that prefetches each as it is hashed. The filters are of hashes: what is
/// found are false positives.
pub(crate) fn of_key_batches(filters: &Filters<'_>, keys: u64, quick: bool, times: &mut Vec<Time>) {
    let queries: Queries<Key> = Queries::new(Mix::Absent, keys, pass_length(keys), key);
    for batch in [1, 4, 8, SHORT] {
        eprintln!("  {keys} keys: absent 16-byte keys, {batch} a call");
        run(
            filters,
            keys,
            Mix::Absent,
            batch,
            schedule(keys, quick),
            Section::KeyBatch,
            times,
            |peer, way, pass| count_all_keys(peer, way, queries.pass(pass), batch),
        );
    }
}

#[expect(clippy::too_many_arguments, reason = "what a time is of")]
fn run(
    filters: &Filters<'_>,
    keys: u64,
    mix: Mix,
    batch: usize,
    schedule: Schedule,
    section: Section,
    times: &mut Vec<Time>,
    count: impl Fn(&dyn Peer, usize, usize) -> usize,
) {
    let count = &count;
    let mut cases: Vec<Case<'_>> = Vec::new();
    let mut rows = Vec::new();
    for (kind, peer) in filters {
        for (number, way) in kind.ways.iter().enumerate() {
            // What has no batches is as fast in any; only what costs next to nothing to call is followed there.
            let is_same = section == Section::Query && batch != BATCH && way.batch == Batch::One;
            let is_aside = section == Section::Batch
                && (kind.role == Role::Package && kind.id != SBBF_RS
                    || kind.role == Role::Ours && kind.id != OURS);
            let is_other = section == Section::KeyBatch
                && ![OURS, OURS_SINGLE, ROCKSDB, ROCKSDB_BATCH].contains(&way.name);
            if is_same || is_aside || is_other {
                continue;
            }
            let peer = peer.as_ref();
            let keys = pass_length(keys);
            if mix == Mix::Present && kind.role != Role::Baseline {
                assert_eq!(count(peer, number, 0), keys, "{} forgot a key", way.name);
            }
            rows.push((way.name, peer.bytes()));
            cases.push(case(keys, move |pass| {
                black_box(count(peer, number, pass));
            }));
        }
    }
    let timings = interleaved(&mut cases, schedule);
    times.extend(rows.into_iter().zip(timings).map(|((row, bytes), ns)| Time {
        section,
        row: row.to_owned(),
        keys,
        mix: mix.name().to_owned(),
        batch,
        threads: 1,
        bits_per_key: bytes as f64 * 8.0 / keys as f64,
        ns,
    }));
}
