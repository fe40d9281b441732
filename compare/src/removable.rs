//! Filters that keys can be removed from, beside the Bloom filter, from which they cannot: times, and what is lost.

use std::hint::black_box;

use benches::clock::{Case, Schedule, Timing, interleaved, times};
use benches::table::markdown;
use benches::workload::{Mix, hash};
use blocked_bloom::{Bitmask, BloomFilter, Filter, InstructionSet, Kernel};
use blocked_bloom_removable::{RemovableError, RemovableFilter, RemovableOptions};
use cuckoofilter::CuckooFilter;
use scalable_cuckoo_filter::ScalableCuckooFilter;
use serde::{Deserialize, Serialize};

use crate::measure::{BATCH, pass_length, queries, schedule};
use crate::peers::{empty, hits};

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
    fn kind(name: &'static str, empty: fn(usize) -> Option<Box<dyn Peer>>) -> Kind {
        Kind { name, removes: true, empty, most_keys: u64::MAX }
    }
    [
        Kind {
            removes: false,
            ..kind("Bloom, AVX2, 10 bits per key", |keys| {
                Some(Box::new(empty(keys, 10.0).with_kernel(avx2()?)))
            })
        },
        kind("blocked-bloom-removable", |keys| Some(Box::new(ours(keys, Kernel::default())))),
        kind("blocked-bloom-removable, AVX2", |keys| Some(Box::new(ours(keys, avx2()?)))),
        Kind {
            most_keys: 10_000_000,
            ..kind("cuckoofilter †", |keys| Some(Box::new(Cuckoo::with_capacity(keys))))
        },
        Kind {
            most_keys: 10_000_000,
            ..kind("scalable_cuckoo_filter †", |keys| Some(Box::new(Scalable::new(keys, 0.001))))
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

fn count(filter: &impl Filter, hashes: &[u64]) -> usize {
    hits(hashes.len(), |words| filter.contains_hashes_into(hashes, words))
}

fn refused(hashes: &[u64], mut add: impl FnMut(u64) -> bool) -> usize {
    hashes.iter().filter(|&&hash| !add(hash)).count()
}

/// As its documentation has it: SipHash.
type Cuckoo = CuckooFilter<std::collections::hash_map::DefaultHasher>;
type Scalable = ScalableCuckooFilter<u64>;

macro_rules! peer {
    ($filter:ty, |$self:ident, $hashes:ident| $bytes:expr, $count:expr, $add:expr, $remove:expr) => {
        impl Peer for $filter {
            fn bytes(&$self) -> usize {
                $bytes as usize
            }

            fn count(&$self, $hashes: &[u64]) -> usize {
                $count
            }

            fn add(&mut $self, $hashes: &[u64]) -> usize {
                $add
            }

            fn remove(&mut $self, $hashes: &[u64]) -> usize {
                $remove
            }
        }
    };
}

peer!(
    BloomFilter,
    |self, hashes| self.memory_bytes(),
    count(self, hashes),
    self.insert_hashes(hashes).map_or(hashes.len(), |()| 0),
    {
        let _ = hashes;
        self.clear();
        0
    }
);
peer!(
    RemovableFilter,
    |self, hashes| self.memory_bytes(),
    count(self, hashes),
    {
        let (mut rest, mut refused) = (hashes, 0);
        while let Err(RemovableError::Full { inserted, .. }) = self.insert_hashes(rest) {
            rest = &rest[inserted + 1..];
            refused += 1;
        }
        refused
    },
    self.remove_hashes(hashes, &mut Bitmask::new())
);
peer!(
    Cuckoo,
    |self, hashes| self.memory_usage(),
    hashes.iter().filter(|&hash| self.contains(hash)).count(),
    refused(hashes, |hash| CuckooFilter::add(self, &hash).is_ok()),
    hashes.iter().filter(|&hash| self.delete(hash)).count()
);
peer!(
    Scalable,
    |self, hashes| self.bits() / 8,
    hashes.iter().filter(|&hash| self.contains(hash)).count(),
    refused(hashes, |hash| {
        self.insert(&hash);
        true
    }),
    hashes.iter().filter(|&hash| ScalableCuckooFilter::remove(self, hash)).count()
);

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

/// A filter of all keys, and how many it refused.
type Filled = (Kind, Box<dyn Peer>, u64);

/// Measures every filter at this size.
pub(crate) fn measure(keys: u64, quick: bool) -> Vec<Row> {
    let hashes: Vec<u64> = (0..keys).map(hash).collect();
    let mut peers: Vec<Filled> = Vec::new();
    for kind in kinds().into_iter().filter(|kind| keys <= kind.most_keys) {
        if let Some(mut peer) = (kind.empty)(keys as usize) {
            eprintln!("  {keys} keys: filling {}", kind.name);
            let refused: usize = hashes.chunks(BATCH).map(|batch| peer.add(batch)).sum();
            peers.push((kind, peer, refused as u64));
        }
    }
    let [absent, present] = [Mix::Absent, Mix::Present].map(|mix| {
        eprintln!("  {keys} keys: {mix:?} hashes, {BATCH} a call");
        let (queries, pass) = (&queries::<u64>(mix, keys), pass_length(keys));
        let cases = peers.iter().map(|(_, peer, _)| {
            Case::new(pass, move |number| {
                let batches = queries.pass(number, pass).chunks(BATCH);
                black_box(batches.map(|batch| peer.count(batch)).sum::<usize>())
            })
        });
        interleaved(&mut cases.collect::<Vec<_>>(), schedule(keys, quick))
    });
    // Beyond, a round would take minutes.
    let updates = match keys {
        ..=1_000_000 => updates(&mut peers, &hashes, if quick { 7 } else { 25 }),
        _ => Vec::new(),
    };
    let never: Vec<u64> = (0..MISUSE).map(|i| hash(1 << 40 | i)).collect();
    let row = |(i, (kind, peer, refused)): (usize, &Filled)| Row {
        name: kind.name.to_owned(),
        keys,
        bits_per_key: peer.bytes() as f64 * 8.0 / keys as f64,
        absent: absent[i],
        present: present[i],
        add: updates.get(i).map(|[_, add]| *add),
        remove: updates.get(i).map(|[remove, _]| *remove).filter(|_| kind.removes),
        passed: never.chunks(BATCH).map(|batch| peer.count(batch)).sum::<usize>() as u64,
        refused: *refused,
        lost: (kind.removes && keys <= 10_000_000).then(|| lost(kind, &hashes, &never)),
    };
    peers.iter().enumerate().map(row).collect()
}

/// Times of removing all keys and of adding all of them again, in turn.
fn updates(peers: &mut [Filled], hashes: &[u64], rounds: usize) -> Vec<[Timing; 2]> {
    eprintln!("  {} keys: removing and adding all, {BATCH} a call", hashes.len());
    let cases = peers.iter_mut().map(|(_, peer, _)| {
        Case::new(hashes.len(), move |pass| {
            for batch in hashes.chunks(BATCH) {
                black_box(if pass % 2 == 0 { peer.remove(batch) } else { peer.add(batch) });
            }
        })
    });
    let times = times(&mut cases.collect::<Vec<_>>(), Schedule { rounds, warm: 0, timed: 2 });
    let every_second =
        |times: &[f64], first| times.iter().skip(first).step_by(2).copied().collect();
    times.iter().map(|times| [0, 1].map(|first| Timing::of(every_second(times, first)))).collect()
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
        live.extend(hashes.iter().filter(|&&hash| peer.add(&[hash]) == 0));
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
    let misuse = missing(peer, &live).saturating_sub(churn);
    Lost { filling: filling as u64, churn: churn as u64, misuse: misuse as u64 }
}

/// The rows as Markdown.
pub(crate) fn table(rows: &[Row]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let heads = [
        "keys",
        "",
        "bits/key",
        "absent",
        "present",
        "add",
        "remove",
        "false positives",
        "refused",
        "lost",
    ];
    let lines = rows.iter().map(|row| {
        let bloom =
            rows.iter().find(|other| other.keys == row.keys && other.name.starts_with("Bloom"));
        let cell = |time: Option<Timing>, base: fn(&Row) -> Option<Timing>| {
            let Some(time) = time else { return "-".to_owned() };
            let base = bloom.and_then(base);
            let ratio = base.map(|base| format!(" ({:.2}x)", time.median / base.median));
            format!("{:.2}{}", time.median, ratio.unwrap_or_default())
        };
        let lost = |Lost { filling, churn, misuse }| format!("{filling} / {churn} / {misuse}");
        vec![
            row.keys.to_string(),
            row.name.clone(),
            format!("{:.2}", row.bits_per_key),
            cell(Some(row.absent), |row| Some(row.absent)),
            cell(Some(row.present), |row| Some(row.present)),
            cell(row.add, |row| row.add),
            cell(row.remove, |row| row.add),
            format!("{:.3} %", row.passed as f64 * 100.0 / MISUSE as f64),
            row.refused.to_string(),
            row.lost.map_or_else(|| "-".to_owned(), lost),
        ]
    });
    format!(
        "\n## Filters that keys can be removed from, {BATCH} keys a call\n\n\
         In brackets the median as a multiple of the Bloom filter's. \"Lost\" are keys that were added and are not found: after filling \
         / after four times as many additions and removals / by a million removals of keys that were never added. † hashes keys itself.\n\n{}",
        markdown(&heads.map(str::to_owned), lines)
    )
}
