//! Filters that keys can be removed from, beside the Bloom filter, from which they cannot: times, and what is lost.

use benches::clock::{Case, Schedule, Timing, interleaved, times};
use benches::workload::{Mix, hash};
use blocked_bloom::{Bitmask, BloomFilter, Filter, InstructionSet, Kernel};
use blocked_bloom_removable::{RemovableError, RemovableFilter, RemovableOptions};
use cuckoofilter::CuckooFilter;
use scalable_cuckoo_filter::ScalableCuckooFilter;

use crate::measure::{BATCH, pass_length, queries, schedule};
use crate::peers::{empty, hits};
use crate::report::Removable;

/// Removals of keys that were never added.
const MISUSE: u64 = 1_000_000;

/// A filter with its answers counted.
trait Peer {
    fn bytes(&self) -> usize;
    fn count(&self, hashes: &[u64]) -> usize;
    fn add(&mut self, hashes: &[u64]);
    /// Those that cannot remove are emptied.
    fn remove(&mut self, hashes: &[u64]);
}

macro_rules! peer {
    ($filter:ty, |$self:ident, $hashes:pat_param| $bytes:expr, $count:expr, $add:expr, $remove:expr) => {
        impl Peer for $filter {
            fn bytes(&$self) -> usize {
                $bytes as usize
            }

            fn count(&$self, $hashes: &[u64]) -> usize {
                $count
            }

            fn add(&mut $self, $hashes: &[u64]) {
                $add;
            }

            fn remove(&mut $self, $hashes: &[u64]) {
                $remove;
            }
        }
    };
}

fn count(filter: &impl Filter, hashes: &[u64]) -> usize {
    hits(hashes.len(), |words| filter.contains_hashes_into(hashes, words))
}

/// As its documentation has it: SipHash.
type Cuckoo = CuckooFilter<std::collections::hash_map::DefaultHasher>;
type Scalable = ScalableCuckooFilter<u64>;

peer!(
    BloomFilter,
    |self, hashes| self.memory_bytes(),
    count(self, hashes),
    self.insert_hashes(hashes).expect("a filter of whole keys"),
    if !hashes.is_empty() {
        self.clear();
    }
);
peer!(
    RemovableFilter,
    |self, hashes| self.memory_bytes(),
    count(self, hashes),
    {
        let mut rest = hashes;
        while let Err(RemovableError::Full { inserted, .. }) = self.insert_hashes(rest) {
            rest = &rest[inserted + 1..];
        }
    },
    self.remove_hashes(hashes, &mut Bitmask::new())
);
peer!(
    Cuckoo,
    |self, hashes| self.memory_usage(),
    hashes.iter().filter(|&hash| self.contains(hash)).count(),
    hashes.iter().for_each(|hash| _ = CuckooFilter::add(self, hash)),
    hashes.iter().for_each(|hash| _ = self.delete(hash))
);
peer!(
    Scalable,
    |self, hashes| self.bits() / 8,
    hashes.iter().filter(|&hash| self.contains(hash)).count(),
    hashes.iter().for_each(|hash| self.insert(hash)),
    hashes.iter().for_each(|hash| _ = ScalableCuckooFilter::remove(self, hash))
);

fn ours(keys: usize, kernel: Kernel) -> Box<dyn Peer> {
    let filter = RemovableOptions::new(keys as u64).empty_filter().expect("memory for the filter");
    Box::new(filter.with_kernel(kernel))
}

/// Names and filters for this many keys, the Bloom filter first; of packages only where filling would not take minutes.
fn peers(keys: usize) -> Vec<(&'static str, Box<dyn Peer>)> {
    let avx2 = || Kernel::supported().find(|k| k.instructions() == InstructionSet::Avx2);
    let bloom = empty(keys, 10.0).with_kernel(avx2().unwrap_or_default());
    let mut peers: Vec<(_, Box<dyn Peer>)> = vec![
        ("Bloom, AVX2, 10 bits per key", Box::new(bloom)),
        ("blocked-bloom-removable", ours(keys, Kernel::default())),
    ];
    peers.extend(avx2().map(|kernel| ("blocked-bloom-removable, AVX2", ours(keys, kernel))));
    if keys <= 10_000_000 {
        peers.push(("cuckoofilter †", Box::new(Cuckoo::with_capacity(keys))));
        peers.push(("scalable_cuckoo_filter †", Box::new(Scalable::new(keys, 0.001))));
    }
    peers
}

/// Measures every filter at this size.
pub(crate) fn measure(keys: u64, quick: bool) -> Vec<Removable> {
    let hashes: Vec<u64> = (0..keys).map(hash).collect();
    let mut peers = peers(keys as usize);
    eprintln!("  {keys} keys: filling");
    peers.iter_mut().for_each(|(_, peer)| hashes.chunks(BATCH).for_each(|part| peer.add(part)));
    let [absent, present] = [Mix::Absent, Mix::Present].map(|mix| {
        eprintln!("  {keys} keys: {mix:?} hashes, {BATCH} a call");
        let (queries, pass) = (&queries::<u64>(mix, keys), pass_length(keys));
        let cases = peers
            .iter()
            .map(|(_, peer)| Case::batches(queries, pass, BATCH, |part: &[u64]| peer.count(part)));
        interleaved(&mut cases.collect::<Vec<_>>(), schedule(keys, quick))
    });
    // Beyond, a round would take minutes.
    let updates = match keys {
        ..=1_000_000 => updates(&mut peers, &hashes, if quick { 7 } else { 25 }),
        _ => Vec::new(),
    };
    let never: Vec<u64> = (0..MISUSE).map(|i| hash(1 << 40 | i)).collect();
    let row = |(i, (name, mut peer)): (usize, (&str, Box<dyn Peer>))| {
        let count = |peer: &dyn Peer, hashes: &[u64]| {
            hashes.chunks(BATCH).map(|part| peer.count(part)).sum::<usize>() as u64
        };
        let (bytes, passed) = (peer.bytes(), count(&*peer, &never));
        let removes = i > 0;
        let lost = (removes && keys <= 10_000_000).then(|| {
            let before = count(&*peer, &hashes);
            never.chunks(BATCH).for_each(|part| peer.remove(part));
            before.saturating_sub(count(&*peer, &hashes))
        });
        let [add, remove] = [1, 0].map(|which| updates.get(i).map(|of: &[Timing; 2]| of[which]));
        Removable {
            name: name.to_owned(),
            keys,
            bits_per_key: bytes as f64 * 8.0 / keys as f64,
            times: [Some(absent[i]), Some(present[i]), add, remove.filter(|_| removes)],
            passed,
            lost,
        }
    };
    peers.into_iter().enumerate().map(row).collect()
}

/// Times of removing all keys and of adding all of them again, in turn.
fn updates(peers: &mut [(&str, Box<dyn Peer>)], hashes: &[u64], rounds: usize) -> Vec<[Timing; 2]> {
    eprintln!("  {} keys: removing and adding all, {BATCH} a call", hashes.len());
    let cases = peers.iter_mut().map(|(_, peer)| {
        Case::new(hashes.len(), move |pass| {
            let each = |part| if pass % 2 == 0 { peer.remove(part) } else { peer.add(part) };
            hashes.chunks(BATCH).for_each(each);
        })
    });
    let times = times(&mut cases.collect::<Vec<_>>(), Schedule { rounds, warm: 0, timed: 2 });
    let every_second =
        |times: &[f64], first| times.iter().skip(first).step_by(2).copied().collect();
    times.iter().map(|times| [0, 1].map(|first| Timing::of(every_second(times, first)))).collect()
}
