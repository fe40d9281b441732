//! Filters that keys can be removed from, beside the Bloom filter, from which they cannot: times, and what is lost.

use std::fmt::Write;
use std::hint::black_box;

use blocked_bloom::{Bitmask, BloomFilter, Filter, InstructionSet, Kernel};
use blocked_bloom_removable::{RemovableError, RemovableFilter, RemovableOptions};
use cuckoofilter::CuckooFilter;
use scalable_cuckoo_filter::ScalableCuckooFilter;
use serde::{Deserialize, Serialize};

use crate::keys::{Mix, Queries, hash, pass_length};
use crate::measure::{Case, Clock, Timing, case, interleaved, timing};
use crate::own;
use crate::queries::{BATCH, schedule};

/// Bits per key of the Bloom filter.
const BLOOM_BITS: f64 = 10.0;

/// Removals of keys that were never added.
const MISUSE: u64 = 1_000_000;

/// A filter with its answers counted.
trait Peer {
    fn bytes(&self) -> usize;
    fn count(&self, hashes: &[u64]) -> usize;
    /// How many were refused.
    fn add(&mut self, hashes: &[u64]) -> usize;
    /// How many were found. Those that cannot remove are emptied.
    fn remove(&mut self, hashes: &[u64]) -> usize;
}

struct Kind {
    name: &'static str,
    removes: bool,
    /// For this many keys.
    empty: fn(usize) -> Option<Box<dyn Peer>>,
    /// More would take minutes.
    most_keys: u64,
}

fn kinds() -> [Kind; 5] {
    [
        Kind {
            name: "Bloom, AVX2, 10 bits per key",
            removes: false,
            empty: |keys| Some(Box::new(own::empty(keys, BLOOM_BITS).with_kernel(avx2()?))),
            most_keys: u64::MAX,
        },
        Kind {
            name: "blocked-bloom-removable",
            removes: true,
            empty: |keys| Some(Box::new(ours(keys, Kernel::default()))),
            most_keys: u64::MAX,
        },
        Kind {
            name: "blocked-bloom-removable, AVX2",
            removes: true,
            empty: |keys| Some(Box::new(ours(keys, avx2()?))),
            most_keys: u64::MAX,
        },
        Kind {
            name: "cuckoofilter †",
            removes: true,
            empty: |keys| Some(Box::new(Cuckoo::with_capacity(keys))),
            most_keys: 10_000_000,
        },
        Kind {
            name: "scalable_cuckoo_filter †",
            removes: true,
            empty: |keys| Some(Box::new(Scalable::new(keys, 0.001))),
            most_keys: 10_000_000,
        },
    ]
}

fn avx2() -> Option<Kernel> {
    Kernel::supported().find(|kernel| kernel.instructions() == InstructionSet::Avx2)
}

fn ours(keys: usize, kernel: Kernel) -> RemovableFilter {
    let filter = RemovableOptions::new(keys as u64).empty_filter().expect("memory for the filter");
    filter.with_kernel(kernel)
}

impl Peer for BloomFilter {
    fn bytes(&self) -> usize {
        self.memory_bytes() as usize
    }

    fn count(&self, hashes: &[u64]) -> usize {
        count(self, hashes)
    }

    fn add(&mut self, hashes: &[u64]) -> usize {
        self.insert_hashes(hashes).expect("a filter of whole keys");
        0
    }

    fn remove(&mut self, _hashes: &[u64]) -> usize {
        self.clear();
        0
    }
}

fn count(filter: &impl Filter, hashes: &[u64]) -> usize {
    let mut words = [0; BATCH / 64];
    let words = &mut words[..hashes.len().div_ceil(64)];
    filter.contains_hashes_into(hashes, words).expect("a word for 64 hashes");
    words.iter().map(|word| word.count_ones() as usize).sum()
}

impl Peer for RemovableFilter {
    fn bytes(&self) -> usize {
        self.memory_bytes() as usize
    }

    fn count(&self, hashes: &[u64]) -> usize {
        count(self, hashes)
    }

    fn add(&mut self, hashes: &[u64]) -> usize {
        let (mut rest, mut refused) = (hashes, 0);
        while let Err(RemovableError::Full { inserted, .. }) = self.insert_hashes(rest) {
            rest = &rest[inserted + 1..];
            refused += 1;
        }
        refused
    }

    fn remove(&mut self, hashes: &[u64]) -> usize {
        let mut found = Bitmask::new();
        self.remove_hashes(hashes, &mut found)
    }
}

/// As its documentation has it: SipHash.
type Cuckoo = CuckooFilter<std::collections::hash_map::DefaultHasher>;

impl Peer for Cuckoo {
    fn bytes(&self) -> usize {
        self.memory_usage()
    }

    fn count(&self, hashes: &[u64]) -> usize {
        hashes.iter().filter(|&hash| self.contains(hash)).count()
    }

    fn add(&mut self, hashes: &[u64]) -> usize {
        hashes.iter().filter(|&hash| CuckooFilter::add(self, hash).is_err()).count()
    }

    fn remove(&mut self, hashes: &[u64]) -> usize {
        hashes.iter().filter(|&hash| self.delete(hash)).count()
    }
}

type Scalable = ScalableCuckooFilter<u64>;

impl Peer for Scalable {
    fn bytes(&self) -> usize {
        self.bits() as usize / 8
    }

    fn count(&self, hashes: &[u64]) -> usize {
        hashes.iter().filter(|&hash| self.contains(hash)).count()
    }

    fn add(&mut self, hashes: &[u64]) -> usize {
        hashes.iter().for_each(|hash| self.insert(hash));
        0
    }

    fn remove(&mut self, hashes: &[u64]) -> usize {
        hashes.iter().filter(|&hash| ScalableCuckooFilter::remove(self, hash)).count()
    }
}

/// What was measured of one filter at one size.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Row {
    name: String,
    pub(crate) keys: u64,
    bits_per_key: f64,
    absent: Timing,
    present: Timing,
    add: Option<Timing>,
    remove: Option<Timing>,
    /// Absent keys of a million that passed.
    passed: u64,
    refused: u64,
    /// Keys that were added and are not found.
    lost: Option<Lost>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Lost {
    filling: u64,
    /// After four times as many additions and removals as there are keys.
    churn: u64,
    /// After a million removals of keys that were never added.
    misuse: u64,
}

/// Measures every filter at this size.
pub(crate) fn measure(keys: u64, quick: bool) -> Vec<Row> {
    let hashes: Vec<u64> = (0..keys).map(hash).collect();
    let mut peers: Vec<(Kind, Box<dyn Peer>)> = Vec::new();
    let mut refused = Vec::new();
    for kind in kinds().into_iter().filter(|kind| keys <= kind.most_keys) {
        if let Some(mut peer) = (kind.empty)(keys as usize) {
            eprintln!("  {keys} keys: filling {}", kind.name);
            refused.push(hashes.chunks(BATCH).map(|batch| peer.add(batch)).sum::<usize>() as u64);
            peers.push((kind, peer));
        }
    }
    let schedule = schedule(keys, quick);
    let query = |mix| {
        eprintln!("  {keys} keys: {mix:?} hashes, {BATCH} a call");
        let queries = Queries::new(mix, keys, pass_length(keys), hash);
        let queries = &queries;
        let mut cases: Vec<Case<'_>> =
            peers.iter().map(|(_, peer)| query_case(&**peer, queries)).collect();
        interleaved(&mut cases, schedule)
    };
    let (absent, present) = (query(Mix::Absent), query(Mix::Present));
    // Beyond, a round would take minutes.
    let (adding, removing) = match keys {
        ..=1_000_000 => updates(&mut peers, &hashes, if quick { 7 } else { 25 }),
        _ => (Vec::new(), Vec::new()),
    };
    let mut rows = Vec::new();
    for (i, (kind, peer)) in peers.iter_mut().enumerate() {
        let never: Vec<u64> = (0..MISUSE).map(|i| hash(1 << 40 | i)).collect();
        let passed = never.chunks(BATCH).map(|batch| peer.count(batch)).sum::<usize>() as u64;
        let lost = (kind.removes && keys <= 10_000_000).then(|| lost(kind, &hashes, &never));
        rows.push(Row {
            name: kind.name.to_owned(),
            keys,
            bits_per_key: peer.bytes() as f64 * 8.0 / keys as f64,
            absent: absent[i],
            present: present[i],
            add: adding.get(i).copied(),
            remove: removing.get(i).copied().filter(|_| kind.removes),
            passed,
            refused: refused[i],
            lost,
        });
    }
    rows
}

fn query_case<'a>(peer: &'a dyn Peer, queries: &'a Queries<u64>) -> Case<'a> {
    let keys = queries.pass(0).len();
    case(keys, move |pass| {
        let hits = queries.pass(pass).chunks(BATCH).map(|batch| peer.count(batch));
        black_box(hits.sum::<usize>());
    })
}

/// Times of removing all keys and of adding all of them again.
fn updates(
    peers: &mut [(Kind, Box<dyn Peer>)],
    hashes: &[u64],
    rounds: usize,
) -> (Vec<Timing>, Vec<Timing>) {
    eprintln!("  {} keys: removing and adding all, {BATCH} a call", hashes.len());
    let mut cases: Vec<Case<'_>> = Vec::new();
    for (_, peer) in peers {
        cases.push(Box::new(move |pass| {
            let start = Clock::thread();
            for batch in hashes.chunks(BATCH) {
                black_box(if pass % 2 == 0 { peer.remove(batch) } else { peer.add(batch) });
            }
            (hashes.len(), start.seconds())
        }));
    }
    by_turns(&mut cases, rounds)
}

/// Every case twice in each round: times of the second passes, and of the first.
fn by_turns(cases: &mut [Case<'_>], rounds: usize) -> (Vec<Timing>, Vec<Timing>) {
    let mut times = [vec![Vec::new(); cases.len()], vec![Vec::new(); cases.len()]];
    for _ in 0..rounds {
        for (i, case) in cases.iter_mut().enumerate() {
            for (pass, times) in times.iter_mut().enumerate() {
                let (keys, seconds) = case(pass);
                times[i].push(seconds * 1e9 / keys as f64);
            }
        }
    }
    let [removing, adding] = times.map(|times| times.into_iter().map(timing).collect());
    (adding, removing)
}

/// Fills a filter, lets keys come and go, and then misuses it.
fn lost(kind: &Kind, hashes: &[u64], never: &[u64]) -> Lost {
    eprintln!("  {} keys: what {} loses", hashes.len(), kind.name);
    let missing = |peer: &dyn Peer, live: &[u64]| {
        live.len() - live.chunks(BATCH).map(|batch| peer.count(batch)).sum::<usize>()
    };
    let Some(mut peer) = (kind.empty)(hashes.len()) else {
        return Lost { filling: 0, churn: 0, misuse: 0 };
    };
    let peer = &mut *peer;
    // Keys that were refused are not there.
    let add = |peer: &mut dyn Peer, hashes: &[u64], live: &mut Vec<u64>| {
        for &hash in hashes {
            if peer.add(&[hash]) == 0 {
                live.push(hash);
            }
        }
    };
    let mut live = Vec::new();
    add(peer, hashes, &mut live);
    let filling = missing(peer, &live);
    for i in 0..2 * hashes.len() as u64 {
        let out = live.swap_remove((hash(!i) % live.len() as u64) as usize);
        peer.remove(&[out]);
        add(peer, &[hash(1 << 41 | i)], &mut live);
    }
    let churn = missing(peer, &live);
    never.chunks(BATCH).for_each(|batch| _ = peer.remove(batch));
    let misuse = missing(peer, &live) - churn.min(missing(peer, &live));
    Lost { filling: filling as u64, churn: churn as u64, misuse: misuse as u64 }
}

/// The rows as Markdown.
pub(crate) fn table(out: &mut String, rows: &[Row]) {
    if rows.is_empty() {
        return;
    }
    let mut push =
        |text: std::fmt::Arguments<'_>| writeln!(out, "{text}").expect("a string takes all");
    push(format_args!("\n## Filters that keys can be removed from, {BATCH} keys a call\n"));
    push(format_args!(
        "In brackets the median as a multiple of the Bloom filter's. \"Lost\" are keys that were added and are not found: after filling \
         / after four times as many additions and removals / by a million removals of keys that were never added. † hashes keys itself.\n"
    ));
    push(format_args!(
        "| keys | | bits/key | absent | present | add | remove | false positives | refused | lost |\n\
         |---:|---|---:|---:|---:|---:|---:|---:|---:|---:|"
    ));
    for row in rows {
        let bloom =
            rows.iter().find(|other| other.keys == row.keys && other.name.starts_with("Bloom"));
        let cell = |time: Option<Timing>, base: Option<Timing>| match (time, base) {
            (Some(time), Some(base)) => {
                format!("{:.2} ({:.2}x)", time.median, time.median / base.median)
            }
            (Some(time), None) => format!("{:.2}", time.median),
            (None, _) => "-".to_owned(),
        };
        let base = |time: fn(&Row) -> Option<Timing>| bloom.and_then(time);
        let lost = row.lost.map_or_else(
            || "-".to_owned(),
            |lost| format!("{} / {} / {}", lost.filling, lost.churn, lost.misuse),
        );
        push(format_args!(
            "| {} | {} | {:.2} | {} | {} | {} | {} | {:.3} % | {} | {lost} |",
            row.keys,
            row.name,
            row.bits_per_key,
            cell(Some(row.absent), base(|row| Some(row.absent))),
            cell(Some(row.present), base(|row| Some(row.present))),
            cell(row.add, base(|row| row.add)),
            cell(row.remove, base(|row| row.add)),
            row.passed as f64 * 100.0 / MISUSE as f64,
            row.refused,
        ));
    }
}

/// Sizes at which they are compared.
pub(crate) fn sizes(quick: bool) -> &'static [u64] {
    if quick { &[10_000, 1_000_000] } else { &[10_000, 1_000_000, 10_000_000, 100_000_000] }
}
