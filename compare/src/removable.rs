//! Filters that support removal, compared with a Bloom filter, which does not: times, and lost
//! keys.

use std::hash::{BuildHasherDefault, DefaultHasher};

use benches::clock::{Case, Schedule, interleaved, times};
use benches::results::Removable;
use benches::timing::Timing;
use benches::workload::{Mix, hash};
use blocked_bloom::{Bitmask, Filter, Kernel};
use blocked_bloom_removable::{RemovableError, RemovableOptions};
use cuckoo_clock::config::CuckooConfiguration;
use cuckoofilter::CuckooFilter;
use scalable_cuckoo_filter::ScalableCuckooFilter;

use crate::measure::{BATCH, pass_length, queries, schedule};
use crate::peers::{avx2, empty, hits};

/// Removals of keys that were never added.
const MISUSE: u64 = 1_000_000;

/// An operation on hashes. `Remove` empties a filter that does not support removal.
#[derive(Clone, Copy)]
enum Op {
    Bytes,
    Count,
    Add,
    Remove,
}

/// A filter: does an op with hashes, and gives its bytes or the hits.
type Peer = Box<dyn FnMut(Op, &[u64]) -> usize>;

/// Names and filters for this many keys, the Bloom filter first; of packages only where filling
/// would not take minutes.
fn peers(keys: usize) -> Vec<(&'static str, Peer)> {
    fn count(filter: &impl Filter, hashes: &[u64]) -> usize {
        hits(hashes.len(), |words| filter.contains_hashes_into(hashes, words))
    }
    let ours = |kernel| -> Peer {
        let filter = RemovableOptions::new(keys as u64).empty_filter().expect("memory");
        let mut filter = filter.with_kernel(kernel);
        Box::new(move |op, mut hashes| match op {
            Op::Bytes => filter.memory_bytes() as usize,
            Op::Count => count(&filter, hashes),
            Op::Remove => filter.remove_hashes(hashes, &mut Bitmask::new()),
            Op::Add => {
                while let Err(RemovableError::Full { inserted, .. }) = filter.insert_hashes(hashes)
                {
                    hashes = &hashes[inserted + 1..];
                }
                0
            }
        })
    };
    let mut bloom = empty(keys, 10.0).with_kernel(avx2().unwrap_or_default());
    let bloom = move |op, hashes: &[u64]| {
        match op {
            Op::Bytes => return bloom.memory_bytes() as usize,
            Op::Count => return count(&bloom, hashes),
            Op::Add => bloom.insert_hashes(hashes).expect("a filter of whole keys"),
            Op::Remove => bloom.clear(),
        }
        0
    };
    let mut peers: Vec<(_, Peer)> = vec![("Bloom, AVX2, 10 bits per key", Box::new(bloom))];
    peers.push(("blocked-bloom-removable", ours(Kernel::default())));
    peers.extend(avx2().map(|kernel| ("blocked-bloom-removable, AVX2", ours(kernel))));
    if keys <= 10_000_000 {
        // SipHash, as its documentation does.
        let mut filter = CuckooFilter::<DefaultHasher>::with_capacity(keys);
        let cuckoo = move |op, hashes: &[u64]| match op {
            Op::Bytes => filter.memory_usage(),
            Op::Count => hashes.iter().filter(|&hash| filter.contains(hash)).count(),
            Op::Add => hashes.iter().filter(|&hash| filter.add(hash).is_ok()).count(),
            Op::Remove => hashes.iter().filter(|&hash| filter.delete(hash)).count(),
        };
        peers.push(("cuckoofilter †", Box::new(cuckoo)));
        let configuration = CuckooConfiguration::builder(keys).build().expect("the defaults");
        let hasher = BuildHasherDefault::<DefaultHasher>::default();
        let filter = cuckoo_clock::CuckooFilter::new(configuration, hasher);
        let clock = move |op, hashes: &[u64]| match op {
            Op::Bytes => filter.get_memory_usage(),
            Op::Count => hashes.iter().filter(|&hash| filter.contains(hash)).count(),
            Op::Add => hashes.iter().filter(|&hash| filter.insert(hash).is_none()).count(),
            Op::Remove => hashes.iter().filter(|&hash| filter.remove(hash)).count(),
        };
        peers.push(("cuckoo-clock †", Box::new(clock)));
        let mut filter = ScalableCuckooFilter::new(keys, 0.001);
        let scalable = move |op, hashes: &[u64]| match op {
            Op::Bytes => filter.bits() as usize / 8,
            Op::Count => hashes.iter().filter(|&hash| filter.contains(hash)).count(),
            Op::Add => hashes.iter().inspect(|hash| filter.insert(hash)).count(),
            Op::Remove => hashes.iter().filter(|&hash| filter.remove(hash)).count(),
        };
        peers.push(("scalable_cuckoo_filter †", Box::new(scalable)));
    }
    peers
}

/// All of them, some a call.
fn run(peer: &mut Peer, op: Op, hashes: &[u64]) -> usize {
    hashes.chunks(BATCH).map(|part| peer(op, part)).sum()
}

/// Measures every filter at this size.
pub(crate) fn measure(keys: u64, quick: bool) -> Vec<Removable> {
    let hashes: Vec<u64> = (0..keys).map(hash).collect();
    let mut peers = peers(keys as usize);
    eprintln!("  {keys} keys: filling");
    peers.iter_mut().for_each(|(_, peer)| _ = run(peer, Op::Add, &hashes));
    let [absent, present] = [Mix::Absent, Mix::Present].map(|mix| {
        eprintln!("  {keys} keys: {mix:?} hashes, {BATCH} a call");
        let (queries, pass) = (&queries::<u64>(mix, keys), pass_length(keys));
        let cases = peers.iter_mut().map(|(name, peer)| {
            (*name, Case::batches(queries, pass, BATCH, |part: &[u64]| peer(Op::Count, part)))
        });
        interleaved(cases.collect(), schedule(keys, quick))
    });
    // Beyond, a round would take minutes.
    let updates = match keys {
        ..=1_000_000 => updates(&mut peers, &hashes, if quick { 7 } else { 25 }),
        _ => Vec::new(),
    };
    let never: Vec<u64> = (0..MISUSE).map(|i| hash(1 << 40 | i)).collect();
    let row = |(i, (name, mut peer)): (usize, (&str, Peer))| {
        let removes = i > 0;
        let (bytes, passed) = (peer(Op::Bytes, &[]), run(&mut peer, Op::Count, &never) as u64);
        let lost = (removes && keys <= 10_000_000).then(|| {
            let before = run(&mut peer, Op::Count, &hashes);
            run(&mut peer, Op::Remove, &never);
            before.saturating_sub(run(&mut peer, Op::Count, &hashes)) as u64
        });
        let [add, remove] = [1, 0].map(|which| updates.get(i).map(|of: &[Timing; 2]| of[which]));
        Removable {
            name: name.to_owned(),
            keys,
            bits_per_key: bytes as f64 * 8.0 / keys as f64,
            times: [Some(absent[i].1), Some(present[i].1), add, remove.filter(|_| removes)],
            passed,
            lost,
        }
    };
    peers.into_iter().enumerate().map(row).collect()
}

/// Times of removing all keys and of adding all of them again, in turn.
fn updates(peers: &mut [(&'static str, Peer)], hashes: &[u64], rounds: usize) -> Vec<[Timing; 2]> {
    eprintln!("  {} keys: removing and adding all, {BATCH} a call", hashes.len());
    let cases = peers.iter_mut().map(|(_, peer)| {
        let op = |pass: usize| if pass.is_multiple_of(2) { Op::Remove } else { Op::Add };
        Case::new(hashes.len(), move |pass| run(peer, op(pass), hashes))
    });
    let times = times(&mut cases.collect::<Vec<_>>(), Schedule { rounds, warm: 0, timed: 2 });
    let every_second =
        |times: &[f64], first| times.iter().skip(first).step_by(2).copied().collect();
    times
        .iter()
        .map(|times| [0, 1].map(|first| Timing::from_times(every_second(times, first))))
        .collect()
}
