//! Many filters at once: one key against 64, and a batch against 8, beside a filter of the same size as those together.

use std::hint::black_box;

use blocked_bloom::{
    AllocError, BitMatrix, Bitmask, Block, BloomFilter, BloomFilterRef, FilterSet, Kernel, KeyHash,
};

use super::limits::{load_line_of_each, load_lines};
use super::measure::{Case, Timing, interleaved};
use super::workload::{filled, for_all_keys, key};
use super::{Row, Setting};
use crate::failure::Failure;

pub(super) const EXPLANATION: &str = "\
set     ns per key and filter; one_key: 64 filters asked about one absent key after the other, one_by_one
        by a call for each filter; batch: 8 filters asked about batches of absent keys, one_filter: one
        of the same size as all, asked about as many pairs; one_copied: the same on small pages, which filters
        below 2 MiB are on; ranges, scattered: pairs of which a key has two, in a sorted batch and in any other
";

/// Filters that one key is asked of, and a batch of keys.
const MANY: usize = 64;
const FEW: usize = 8;

/// Keys of a batch.
const BATCH: usize = 128;

pub(super) fn measure(setting: &Setting) -> Result<Vec<Row>, Failure> {
    let filters = filters(setting).map_err(Failure::new)?;
    let mut rows = one_key(setting, &filters);
    rows.extend(batch(setting, &filters[..FEW])?);
    Ok(rows)
}

/// Filters of the setting's shape, with keys of their own.
fn filters(setting: &Setting) -> Result<Vec<BloomFilter>, AllocError> {
    let filter = |i| {
        let mut filter = BloomFilter::with_params(setting.params, KeyHash::default())?;
        let mut own = Vec::new();
        for_all_keys(setting.keys, |hashes| {
            own.clear();
            own.extend(hashes.iter().map(|hash| key(hash ^ i)));
            filter.insert_hashes(&own);
        });
        Ok(filter)
    };
    (1..=MANY as u64).map(filter).collect()
}

/// Keys that are in no filter.
fn absent(count: usize) -> Vec<u64> {
    (0..count as u64).map(|i| key(key(!i))).collect()
}

fn set(filters: &[BloomFilter], kernel: Kernel) -> FilterSet<'_> {
    let set = FilterSet::new(KeyHash::default(), filters);
    set.expect("64 filters of one hash").with_kernel(kernel)
}

fn one_key(setting: &Setting, filters: &[BloomFilter]) -> Vec<Row> {
    let hashes = absent(1 << 12);
    let hashes = &hashes[..];
    let pairs = hashes.len() * MANY;
    let blocks: Vec<&[Block]> = filters.iter().map(|filter| filter.view().blocks()).collect();
    let views: Vec<_> = filters.iter().map(BloomFilter::view).collect();
    let (blocks, views) = (&blocks[..], &views[..]);
    let mut group = Group::new("one_key", 1);
    group.add("limit", pairs, move || load_line_of_each(blocks, hashes, false));
    group.add("limit_ahead", pairs, move || load_line_of_each(blocks, hashes, true));
    group.add("one_by_one", pairs, move || {
        for &hash in hashes {
            let hash = black_box(hash);
            let bits = views.iter().enumerate();
            let bits =
                bits.fold(0, |bits, (i, view)| bits | u64::from(view.contains_hash(hash)) << i);
            black_box(bits);
        }
    });
    for kernel in Kernel::supported() {
        let set = set(filters, kernel);
        group.add(kernel.name(), pairs, move || {
            for &hash in hashes {
                let mut word = [0];
                let done = set.contains_hash_into(black_box(hash), &mut word);
                let _ = black_box((done, word));
            }
        });
    }
    group.rows(setting.rounds)
}

fn batch(setting: &Setting, filters: &[BloomFilter]) -> Result<Vec<Row>, Failure> {
    let keys = setting.keys * FEW as u64;
    let params = setting.sizing.params(keys).map_err(Failure::new)?;
    let params = params.with_probes(setting.params.probes()).map_err(Failure::new)?;
    let one_filter = filled(params, keys).map_err(Failure::new)?;
    let stored = one_filter.to_bytes();
    let mut copy = vec![0; stored.len() + 64];
    let start = copy.as_ptr().align_offset(64);
    copy[start..][..stored.len()].copy_from_slice(&stored);
    let copied = BloomFilterRef::from_bytes_trusted(&copy[start..][..stored.len()]);
    let copied = copied.map_err(Failure::new)?;
    let one_filter = one_filter.view();
    // As many pairs of a key and a filter for the one filter as for the eight.
    let hashes = absent(1 << 16);
    let few_hashes = &hashes[..hashes.len() / FEW];
    let pairs = hashes.len();
    let hashes = || hashes.chunks(BATCH * FEW);
    let few_hashes = || few_hashes.chunks(BATCH);

    let mut group = Group::new("batch", BATCH);
    let blocks = one_filter.blocks();
    for (name, ahead) in [("limit", false), ("limit_ahead", true)] {
        group.add(name, pairs, move || {
            hashes().map(|hashes| load_lines(blocks, hashes, ahead)).max()
        });
    }
    group.add("one_filter", pairs, || {
        let mut hits = Bitmask::new();
        for hashes in hashes() {
            one_filter.contains_hashes(black_box(hashes), &mut hits);
            black_box(&hits);
        }
    });
    group.add("one_copied", pairs, || {
        let mut hits = Bitmask::new();
        for hashes in hashes() {
            copied.contains_hashes(black_box(hashes), &mut hits);
            black_box(&hits);
        }
    });
    group.add("one_by_one", pairs, || {
        let mut hits = Bitmask::new();
        for hashes in few_hashes() {
            for filter in filters {
                filter.contains_hashes(black_box(hashes), &mut hits);
                black_box(&hits);
            }
        }
    });
    for kernel in Kernel::supported() {
        let set = set(filters, kernel);
        let mut hits = BitMatrix::new();
        group.add(kernel.name(), pairs, move || {
            for hashes in few_hashes() {
                let done = set.contains_hashes(black_box(hashes), &mut hits);
                let _ = black_box((done, &hits));
            }
        });
    }
    let set = FilterSet::new(KeyHash::default(), filters).map_err(Failure::new)?;
    // Two filters' ranges hold a key, in a sorted batch and in one that is not.
    let sorted = |i: usize| [i / (BATCH / FEW), (i / (BATCH / FEW) + 1) % FEW];
    let shuffled = |i: usize| [i % FEW, (i / FEW + 1 + i) % FEW];
    for (name, filters_of) in
        [("ranges", &sorted as &dyn Fn(usize) -> [usize; 2]), ("scattered", &shuffled)]
    {
        let mut wanted = BitMatrix::new();
        wanted.clear(FEW, BATCH).map_err(Failure::new)?;
        for key in 0..BATCH {
            for filter in filters_of(key) {
                wanted.set_keys(filter, key..key + 1).map_err(Failure::new)?;
            }
        }
        let (set, mut pairs) = (set.clone(), wanted.clone());
        group.add(name, few_hashes().len() * wanted.count_hits(), move || {
            for hashes in few_hashes() {
                pairs.clone_from(&wanted);
                let done = set.retain_hashes(black_box(hashes), &mut pairs);
                let _ = black_box((done, &pairs));
            }
        });
    }
    Ok(group.rows(setting.rounds))
}

/// Cases that run in turn; the first two are the limit loops.
struct Group<'a> {
    op: &'static str,
    batch: usize,
    names: Vec<&'static str>,
    cases: Vec<Case<'a>>,
}

impl<'a> Group<'a> {
    fn new(op: &'static str, batch: usize) -> Self {
        Group { op, batch, names: Vec::new(), cases: Vec::new() }
    }

    /// A case that asks about so many pairs of a key and a filter.
    fn add<R>(&mut self, name: &'static str, pairs: usize, run: impl FnMut() -> R + 'a) {
        self.names.push(name);
        self.cases.push(Case::new(pairs, run));
    }

    fn rows(mut self, rounds: usize) -> Vec<Row> {
        let times = interleaved(&mut self.cases, rounds);
        let limit = Timing {
            median: times[0].median.min(times[1].median),
            min: times[0].min.min(times[1].min),
        };
        let Group { op, batch, names, .. } = self;
        let row = |(kernel, time)| Row {
            op,
            mix: "absent",
            kernel,
            threads: 1,
            batch,
            time,
            limit: Some(limit),
        };
        names.into_iter().zip(times).map(row).collect()
    }
}
