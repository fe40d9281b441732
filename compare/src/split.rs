//! Split-block filters: `blocked-bloom-split` beside the filter of the crate `parquet`,
//! sbbf-rs-safe and two loops, on filters of the sizes that arrow-rs measures its own on. Prints a
//! table, and which of its bounds hold.

use std::fmt::Write;
use std::hint::black_box;

use benches::clock::{Case, Schedule, Timing, interleaved};
use benches::split_block::SplitBlocks;
use benches::workload::{Key, Mix, key};
use blocked_bloom::{Filter as _, Kernel};
use blocked_bloom_split::{Lookup, SplitBlock, SplitBlockFilter, hash_value, split_block};
use parquet::bloom_filter::Sbbf;

use crate::measure::BATCH;
use crate::peers::{avx2, hits};

/// Bytes of a filter, and values in it: as arrow-rs's benchmark has them, and one far beyond any
/// cache.
const SIZES: [(usize, u64); 4] =
    [(128 << 10, 10_000), (2 << 20, 200_000), (32 << 20, 3_000_000), (512 << 20, 48_000_000)];

/// Lookups of a pass.
const PASS: usize = 1 << 15;

/// The loop of `Sbbf`, whose functions by hash are private: written from the scheme, with its leave
/// at the first word without the bit.
#[inline]
fn scalar(blocks: &[[u32; 8]], hash: u64) -> bool {
    let index = ((hash >> 32).wrapping_mul(blocks.len() as u64) >> 32) as usize;
    let bit = |salt: u32| 1 << ((hash as u32).wrapping_mul(salt) >> 27);
    let mask = split_block::SALTS.map(bit);
    blocks[index].iter().zip(mask).all(|(word, bit)| word & bit != 0)
}

fn words(bitset: &[SplitBlock]) -> Vec<[u32; 8]> {
    let words = |block: &SplitBlock| {
        let (words, _) = block.as_chunks();
        std::array::from_fn(|i| u32::from_le_bytes(words[i]))
    };
    bitset.iter().map(words).collect()
}

/// The same bits in every kind of filter.
struct Filters {
    /// One for each row, so that none finds what another left in the cache.
    ours: Vec<(&'static str, SplitBlockFilter)>,
    sbbf: Sbbf,
    safe: sbbf_rs_safe::Filter,
    words: Vec<[u32; 8]>,
    by_hand: SplitBlocks,
}

impl Filters {
    fn new(bytes: usize, values: u64) -> Self {
        // A copy, since made filters end at 128 MiB.
        let zeros = vec![0; bytes];
        let mut ours = SplitBlockFilter::from_bitset(&zeros)
            .expect("a multiple of 32")
            .to_filter()
            .expect("memory");
        drop(zeros);
        let mut by_hand = SplitBlocks::new((bytes / 64) as u32).expect("memory");
        let mut safe = sbbf_rs_safe::Filter::new(1, 8 * bytes);
        let mut part = Vec::new();
        for start in (0..values).step_by(BATCH) {
            part.clear();
            let end = values.min(start + BATCH as u64);
            part.extend((start..end).map(|i| hash_value(key(i))));
            ours.insert_hashes(&part);
            by_hand.insert_hashes(&part);
            part.iter().for_each(|&hash| _ = safe.insert_hash(hash));
        }
        let bitset = ours.blocks().as_flattened();
        assert!(by_hand.bitset() == bitset && safe.as_bytes() == bitset);
        let (sbbf, words) = (Sbbf::new(bitset), words(ours.blocks()));
        let ours = kernels().map(|(row, kernel)| (row, ours.clone().with_kernel(kernel)));
        Filters { ours: ours.collect(), sbbf, safe, words, by_hand }
    }
}

/// Rows of the tables.
const OURS: &str = "blocked-bloom-split";
const OURS_AVX2: &str = "blocked-bloom-split, AVX2";
const OURS_ONCE: &str = "blocked-bloom-split, with_lookup";
const SBBF: &str = "parquet Sbbf";
const SCALAR: &str = "Sbbf's loop by hand";
const SAFE: &str = "sbbf-rs-safe";
const LOOP: &str = "AVX2 loop by hand";
const AHEAD: &str = "AVX2 loop by hand, prefetching";

type Row = (&'static str, Timing);

fn kernels() -> impl Iterator<Item = (&'static str, Kernel)> {
    let default = Kernel::default();
    let other = avx2().filter(|other| other.name() != default.name());
    [(OURS, default)].into_iter().chain(other.map(|other| (OURS_AVX2, other)))
}

fn schedule(quick: bool) -> Schedule {
    Schedule { rounds: if quick { 15 } else { 61 }, warm: 1, timed: 2 }
}

/// Hash given, one value a call.
fn singles(filters: &Filters, queries: &[u64], quick: bool) -> Vec<Row> {
    let mut ways = Vec::new();
    for (row, filter) in &filters.ours {
        let filter = filter.view();
        let count = move |part: &[u64]| part.iter().filter(|&&h| filter.contains_hash(h)).count();
        ways.push((*row, Case::batches(queries, PASS, PASS, count)));
    }
    if let Some((_, filter)) = filters.ours.first() {
        let count = |part: &[u64]| {
            let hits =
                |lookup: Lookup<'_>| part.iter().filter(|&&h| lookup.contains_hash(h)).count();
            filter.with_lookup(hits)
        };
        ways.push((OURS_ONCE, Case::batches(queries, PASS, PASS, count)));
    }
    let (words, safe, by_hand) = (&filters.words, &filters.safe, &filters.by_hand);
    let count = |part: &[u64]| part.iter().filter(|&&h| black_box(scalar(words, h))).count();
    ways.push((SCALAR, Case::batches(queries, PASS, PASS, count)));
    let count = |part: &[u64]| part.iter().filter(|&&h| safe.contains_hash(h)).count();
    ways.push((SAFE, Case::batches(queries, PASS, PASS, count)));
    if by_hand.count_hits(&[], false).is_some() {
        let count = |part: &[u64]| by_hand.count_hits(part, false);
        ways.push((LOOP, Case::batches(queries, PASS, PASS, count)));
    }
    interleaved(ways, schedule(quick))
}

/// Hash given, 1,024 values a call.
fn batches(filters: &Filters, queries: &[u64], quick: bool) -> Vec<Row> {
    let mut ways = Vec::new();
    for (row, filter) in &filters.ours {
        let filter = filter.view();
        let count =
            move |part: &[u64]| hits(part.len(), |words| filter.contains_hashes_into(part, words));
        ways.push((*row, Case::batches(queries, PASS, BATCH, count)));
    }
    let (words, by_hand) = (&filters.words, &filters.by_hand);
    let count = |part: &[u64]| part.iter().filter(|&&h| black_box(scalar(words, h))).count();
    ways.push((SCALAR, Case::batches(queries, PASS, BATCH, count)));
    if by_hand.count_hits(&[], false).is_some() {
        let count = |part: &[u64]| by_hand.count_hits(part, true);
        ways.push((AHEAD, Case::batches(queries, PASS, BATCH, count)));
    }
    interleaved(ways, schedule(quick))
}

/// Keys of 16 bytes, hashed by each: one a call, or 1,024.
fn keys(filters: &Filters, queries: &[Key], batch: usize, quick: bool) -> Vec<Row> {
    let mut ways = Vec::new();
    for (row, filter) in &filters.ours {
        let filter = filter.view();
        let count = move |part: &[Key]| match batch {
            1 => part.iter().filter(|key| filter.contains(key)).count(),
            _ => part
                .chunks(BATCH)
                .map(|part| hits(part.len(), |words| filter.contains_batch_into(part, words)))
                .sum(),
        };
        ways.push((*row, Case::batches(queries, PASS, PASS, count)));
    }
    let sbbf = &filters.sbbf;
    let count = |part: &[Key]| part.iter().filter(|key| sbbf.check(key.as_slice())).count();
    ways.push((SBBF, Case::batches(queries, PASS, PASS, count)));
    interleaved(ways, schedule(quick))
}

/// A filter of zeros filled: with hashes in batches, and with keys.
fn build(bytes: usize, values: u64, quick: bool) -> [Vec<Row>; 2] {
    let count = values.min(1_000_000) as usize;
    let list: &Vec<Key> = &(0..count as u64).map(key).collect();
    let hashes: &Vec<u64> = &list.iter().map(hash_value).collect();
    let empty = move |kernel| {
        SplitBlockFilter::with_bytes(bytes as u64).expect("memory").with_kernel(kernel)
    };
    let (mut by_hash, mut by_key) = (Vec::new(), Vec::new());
    for (row, kernel) in kernels() {
        let fill = |mut filter: SplitBlockFilter| {
            hashes.chunks(BATCH).for_each(|part| filter.insert_hashes(part));
            filter
        };
        by_hash.push((row, Case::with_setup(None, count, move |_| empty(kernel), fill)));
        let fill = |mut filter: SplitBlockFilter| {
            list.iter().for_each(|key| _ = filter.insert(key));
            filter
        };
        by_key.push((row, Case::with_setup(None, count, move |_| empty(kernel), fill)));
    }
    let fill = |mut blocks: Vec<[u32; 8]>| {
        for &hash in hashes {
            let index = ((hash >> 32).wrapping_mul(blocks.len() as u64) >> 32) as usize;
            for (word, salt) in blocks[index].iter_mut().zip(split_block::SALTS) {
                *word |= 1 << ((hash as u32).wrapping_mul(salt) >> 27);
            }
        }
        blocks
    };
    let zeros = move |_| vec![[0; 8]; bytes / 32];
    by_hash.push((SCALAR, Case::with_setup(None, count, zeros, fill)));
    let fill = |mut filter: sbbf_rs_safe::Filter| {
        hashes.iter().for_each(|&hash| _ = filter.insert_hash(hash));
        filter
    };
    let zeros = move |_| sbbf_rs_safe::Filter::new(1, 8 * bytes);
    by_hash.push((SAFE, Case::with_setup(None, count, zeros, fill)));
    let fill = |mut filter: Sbbf| {
        list.iter().for_each(|key| filter.insert(key.as_slice()));
        filter
    };
    let zeros = move |_| Sbbf::new_with_num_of_bytes(bytes);
    by_key.push((SBBF, Case::with_setup(None, count, zeros, fill)));
    let schedule = Schedule { rounds: if quick { 3 } else { 11 }, warm: 0, timed: 1 };
    [by_hash, by_key].map(|ways| interleaved(ways, schedule))
}

/// Text and bounds.
#[derive(Default)]
struct Table {
    text: String,
    missed: usize,
}

impl Table {
    /// Rows with their ratio to those of the crate `parquet`, and a bound on ours.
    fn add(&mut self, title: &str, rows: &[Row], bounds: &[(&str, f64)]) {
        let text = &mut self.text;
        let median = |name: &str| rows.iter().find(|row| row.0 == name).map(|row| row.1.median);
        let base = median(SBBF).or(median(SCALAR)).expect("a row to compare with");
        writeln!(text, "\n{title}").expect("a string");
        for (name, time) in rows {
            let ratio = time.median / base;
            let row = format!("  {name:<32}{time:>16}{ratio:8.2}");
            let bounds = bounds.iter().filter(|_| [OURS, OURS_AVX2, OURS_ONCE].contains(name));
            let verdicts = bounds.filter_map(|(other, bound)| {
                let ratio = time.median / median(other)?;
                self.missed += usize::from(ratio > *bound);
                let verdict = if ratio <= *bound { "holds" } else { "MISSED" };
                Some(format!("  {ratio:.2} of {other}, at most {bound}: {verdict}"))
            });
            let verdicts: String = verdicts.collect();
            writeln!(text, "{row}{verdicts}").expect("a string");
        }
    }
}

/// Measures all of it, and says which bounds hold.
pub(crate) fn measure(quick: bool) -> String {
    let mut table = Table::default();
    writeln!(
        table.text,
        "Split-block filters: ns a value, median (least), and the ratio to Sbbf or its loop"
    )
    .expect("a string");
    for (bytes, values) in SIZES {
        if quick && bytes > 100 << 20 {
            continue;
        }
        let size = match bytes >> 20 {
            0 => format!("{} KiB", bytes >> 10),
            mebibytes => format!("{mebibytes} MiB"),
        };
        eprintln!("  split blocks of {size}");
        let is_in_cache = bytes <= 2 << 20;
        let (single, batch) = if is_in_cache { (0.8, 0.35) } else { (1.0, 0.25) };
        let filters = Filters::new(bytes, values);
        for (mix, name) in [(Mix::Absent, "miss"), (Mix::Present, "hit")] {
            let list: Vec<Key> = (0..8 * PASS as u64).map(|i| key(mix.number(values, i))).collect();
            let hashes: Vec<u64> = list.iter().map(hash_value).collect();
            let rows = singles(&filters, &hashes, quick);
            let bounds = [(SCALAR, single), (SAFE, 1.0)];
            let bounds = if is_in_cache { &bounds[..] } else { &bounds[..1] };
            table.add(&format!("{size}, {name}, hash given, one a call"), &rows, bounds);
            let rows = batches(&filters, &hashes, quick);
            table.add(
                &format!("{size}, {name}, hash given, {BATCH} a call"),
                &rows,
                &[(SCALAR, batch)],
            );
            let rows = keys(&filters, &list, 1, quick);
            table.add(&format!("{size}, {name}, 16-byte keys, one a call"), &rows, &[]);
            let rows = keys(&filters, &list, BATCH, quick);
            table.add(&format!("{size}, {name}, 16-byte keys, {BATCH} a call"), &rows, &[]);
        }
        drop(filters);
        if bytes <= 100 << 20 {
            let [by_hash, by_key] = build(bytes, values, quick);
            let title = format!("{size}, building from hashes, {BATCH} a call");
            table.add(&title, &by_hash, &[(SCALAR, 0.5)]);
            table.add(&format!("{size}, building from 16-byte keys, one a call"), &by_key, &[]);
        }
    }
    writeln!(table.text, "\n{} bounds missed", table.missed).expect("a string");
    table.text
}
