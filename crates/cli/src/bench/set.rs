//! Sets of filters: one key looked up in 64, and a batch in 8, beside a filter as large as those together.

use std::hint::black_box;

use blocked_bloom::{
    BatchQuery, BitMatrix, Bitmask, Block, BloomFilter, BloomFilterRef, BuildError, FilterSet,
    Kernel, KeyHash,
};

use super::baseline::{load_line_of_each, load_lines};
use super::rows::{BASELINES, Group, Row, Setting};
use super::workload::{filled, for_all_keys, key};
use crate::failure::Failure;

pub(super) const EXPLANATION: &str = "\
set     ns per key and filter; one_key: absent keys looked up in 64 filters, one key at a time, one_by_one
        by a call for each filter; batch: batches of absent keys looked up in 8 filters, one_filter: as many
        lookups in one filter as large as all of them; one_copied: the same on small pages, which filters below
        2 MiB are on; ranges, scattered: pairs of which a key has two, in a sorted batch and in any other
";

/// Filters that one key is looked up in, and a batch of keys.
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
fn filters(setting: &Setting) -> Result<Vec<BloomFilter>, BuildError> {
    let filter = |i| {
        let mut filter = BloomFilter::new(setting.params, KeyHash::default())?;
        let (mut own, mut inserted) = (Vec::new(), Ok(()));
        for_all_keys(setting.keys, |hashes| {
            own.clear();
            own.extend(hashes.iter().map(|hash| key(hash ^ i)));
            inserted = inserted.and_then(|()| filter.insert_hashes(&own));
        });
        inserted?;
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
    let mut group = Group::new("one_key", "absent", 1);
    for (name, ahead) in BASELINES {
        group.add(name, pairs, move || load_line_of_each(blocks, hashes, ahead));
    }
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

    let mut group = Group::new("batch", "absent", BATCH);
    let blocks = one_filter.blocks();
    for (name, ahead) in BASELINES {
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
