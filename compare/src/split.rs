//! Compares `blocked-bloom-split` with the filter of the crate `parquet`, sbbf-rs-safe and two
//! loops, in filters of the sizes that arrow-rs measures. Returns the tables as text, which shows
//! the bounds that hold, and in their stored form.

use std::fmt::Write;

use benches::clock::{Case, Schedule, times};
use benches::results::{Line, Machine, Table};
use benches::split_block::{BOUNDS, OURS, OURS_ONCE, SAFE, SBBF, SBBF_LOOP, SplitBlocks};
use benches::timing::Timing;
use benches::workload::{Key, Mix, key};
use blocked_bloom::{Filter as _, Kernel};
use blocked_bloom_split::{Lookup, SplitBlock, SplitBlockFilter, hash_value, split_block};
use parquet::bloom_filter::Sbbf;

use crate::measure::BATCH;
use crate::peers::{avx2, hits};

/// Bytes of a filter, and values in it: the sizes of arrow-rs's benchmark, and one filter far
/// larger than any cache.
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

/// Its loop of insertion.
#[inline]
fn scalar_insert(blocks: &mut [[u32; 8]], hash: u64) {
    let index = ((hash >> 32).wrapping_mul(blocks.len() as u64) >> 32) as usize;
    for (word, salt) in blocks[index].iter_mut().zip(split_block::SALTS) {
        *word |= 1 << ((hash as u32).wrapping_mul(salt) >> 27);
    }
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
    hand_loop: SplitBlocks,
}

impl Filters {
    fn new(bytes: usize, values: u64) -> Self {
        // Opened and copied, because `SplitBlockFilter::new` makes at most 128 MiB.
        let zeros = vec![0; bytes];
        let mut ours = SplitBlockFilter::from_bitset(&zeros)
            .expect("a multiple of 32")
            .to_filter()
            .expect("memory");
        drop(zeros);
        let mut hand_loop = SplitBlocks::new((bytes / 64) as u32).expect("memory");
        let mut safe = sbbf_rs_safe::Filter::new(1, 8 * bytes);
        let mut part = Vec::new();
        for start in (0..values).step_by(BATCH) {
            part.clear();
            let end = values.min(start + BATCH as u64);
            part.extend((start..end).map(|i| hash_value(key(i))));
            ours.insert_hashes(&part);
            hand_loop.insert_hashes(&part);
            part.iter().for_each(|&hash| _ = safe.insert_hash(hash));
        }
        let bitset = ours.blocks().as_flattened();
        assert!(hand_loop.bitset() == bitset && safe.as_bytes() == bitset);
        let (sbbf, words) = (Sbbf::new(bitset), words(ours.blocks()));
        let ours = kernels().map(|(row, kernel)| (row, ours.clone().with_kernel(kernel)));
        Filters { ours: ours.collect(), sbbf, safe, words, hand_loop }
    }
}

/// The other rows of the tables.
const OURS_AVX2: &str = "blocked-bloom-split, AVX2";
const LOOP: &str = "AVX2 loop by hand";
const HAND_LOOP_PREFETCHING: &str = "AVX2 loop by hand, prefetching";

/// Rows before they are timed. The others are compared with the first.
pub(crate) type Rows<'a> = Vec<(&'static str, Case<'a>)>;

fn kernels() -> impl Iterator<Item = (&'static str, Kernel)> {
    let default = Kernel::default();
    let other = avx2().filter(|other| other.name() != default.name());
    [(OURS, default)].into_iter().chain(other.map(|other| (OURS_AVX2, other)))
}

fn schedule(quick: bool) -> Schedule {
    Schedule { rounds: if quick { 15 } else { 61 }, warm: 1, timed: 2 }
}

/// Rounds of filling.
fn filling(quick: bool) -> Schedule {
    Schedule { rounds: if quick { 3 } else { 11 }, warm: 0, timed: 1 }
}

/// Times all in interleaved rounds.
pub(crate) fn lines(ways: Rows<'_>, schedule: Schedule) -> Vec<Line> {
    let (names, mut cases): (Vec<&str>, Vec<Case<'_>>) = ways.into_iter().unzip();
    let times = times(&mut cases, schedule);
    let line = |(name, mine): (&str, &Vec<f64>)| {
        let ratios = mine.iter().zip(&times[0]).map(|(mine, first)| mine / first).collect();
        let (time, ratio) = (Timing::from_times(mine.clone()), Timing::from_times(ratios).median);
        Line { name: name.to_owned(), time, ratio }
    };
    names.into_iter().zip(&times).map(line).collect()
}

/// Hash given, one value a call.
fn singles<'a>(filters: &'a Filters, queries: &'a [u64]) -> Rows<'a> {
    let (words, safe, hand_loop) = (&filters.words, &filters.safe, &filters.hand_loop);
    let count = move |part: &[u64]| part.iter().filter(|&&h| scalar(words, h)).count();
    let mut ways = vec![(SBBF_LOOP, Case::batches(queries, PASS, PASS, count))];
    for (row, filter) in &filters.ours {
        let filter = filter.view();
        let count = move |part: &[u64]| part.iter().filter(|&&h| filter.contains_hash(h)).count();
        ways.push((*row, Case::batches(queries, PASS, PASS, count)));
    }
    if let Some((_, filter)) = filters.ours.first() {
        let count = move |part: &[u64]| {
            let hits =
                |lookup: Lookup<'_>| part.iter().filter(|&&h| lookup.contains_hash(h)).count();
            filter.with_lookup(hits)
        };
        ways.push((OURS_ONCE, Case::batches(queries, PASS, PASS, count)));
    }
    let count = move |part: &[u64]| part.iter().filter(|&&h| safe.contains_hash(h)).count();
    ways.push((SAFE, Case::batches(queries, PASS, PASS, count)));
    if hand_loop.count_hits(&[], false).is_some() {
        let count = move |part: &[u64]| hand_loop.count_hits(part, false);
        ways.push((LOOP, Case::batches(queries, PASS, PASS, count)));
    }
    ways
}

/// Hash given, 1,024 values a call.
fn batches<'a>(filters: &'a Filters, queries: &'a [u64]) -> Rows<'a> {
    let (words, hand_loop) = (&filters.words, &filters.hand_loop);
    let count = move |part: &[u64]| part.iter().filter(|&&h| scalar(words, h)).count();
    let mut ways = vec![(SBBF_LOOP, Case::batches(queries, PASS, BATCH, count))];
    for (row, filter) in &filters.ours {
        let filter = filter.view();
        let count =
            move |part: &[u64]| hits(part.len(), |words| filter.contains_hashes_into(part, words));
        ways.push((*row, Case::batches(queries, PASS, BATCH, count)));
    }
    if hand_loop.count_hits(&[], false).is_some() {
        let count = move |part: &[u64]| hand_loop.count_hits(part, true);
        ways.push((HAND_LOOP_PREFETCHING, Case::batches(queries, PASS, BATCH, count)));
    }
    ways
}

/// Keys of 16 bytes, hashed by each: one a call, or 1,024.
fn keys<'a>(filters: &'a Filters, queries: &'a [Key], batch: usize) -> Rows<'a> {
    let sbbf = &filters.sbbf;
    let count = move |part: &[Key]| part.iter().filter(|key| sbbf.check(key.as_slice())).count();
    let mut ways = vec![(SBBF, Case::batches(queries, PASS, PASS, count))];
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
    ways
}

/// A filter of zeros filled with hashes in batches.
fn build_from_hashes(bytes: usize, hashes: &[u64]) -> Rows<'_> {
    let fill = move |mut blocks: Vec<[u32; 8]>| {
        hashes.iter().for_each(|&hash| scalar_insert(&mut blocks, hash));
        blocks
    };
    let zeros = move |_| vec![[0; 8]; bytes / 32];
    let mut ways = vec![(SBBF_LOOP, Case::with_setup(None, hashes.len(), zeros, fill))];
    for (row, kernel) in kernels() {
        let fill = move |mut filter: SplitBlockFilter| {
            hashes.chunks(BATCH).for_each(|part| filter.insert_hashes(part));
            filter
        };
        let zeros = move |_| empty(bytes, kernel);
        ways.push((row, Case::with_setup(None, hashes.len(), zeros, fill)));
    }
    let fill = move |mut filter: sbbf_rs_safe::Filter| {
        hashes.iter().for_each(|&hash| _ = filter.insert_hash(hash));
        filter
    };
    let zeros = move |_| sbbf_rs_safe::Filter::new(1, 8 * bytes);
    ways.push((SAFE, Case::with_setup(None, hashes.len(), zeros, fill)));
    ways
}

/// A filter of zeros filled with keys, one a call.
fn build_from_keys(bytes: usize, keys: &[Key]) -> Rows<'_> {
    let fill = move |mut filter: Sbbf| {
        keys.iter().for_each(|key| filter.insert(key.as_slice()));
        filter
    };
    let zeros = move |_| Sbbf::new_with_num_of_bytes(bytes);
    let mut ways = vec![(SBBF, Case::with_setup(None, keys.len(), zeros, fill))];
    for (row, kernel) in kernels() {
        let fill = move |mut filter: SplitBlockFilter| {
            keys.iter().for_each(|key| _ = filter.insert(key));
            filter
        };
        let zeros = move |_| empty(bytes, kernel);
        ways.push((row, Case::with_setup(None, keys.len(), zeros, fill)));
    }
    ways
}

fn empty(bytes: usize, kernel: Kernel) -> SplitBlockFilter {
    SplitBlockFilter::with_bytes(bytes as u64).expect("memory").with_kernel(kernel)
}

/// The filters of more than 128 MiB, which none of them makes: these hashes are added to them, so
/// that no page is new.
fn add_hashes<'a>(filters: &'a mut Filters, hashes: &'a [u64]) -> Rows<'a> {
    let pass = hashes.len() / 4;
    let words = &mut filters.words;
    let add = move |part: &[u64]| part.iter().for_each(|&hash| scalar_insert(words, hash));
    let mut ways = vec![(SBBF_LOOP, Case::batches(hashes, pass, BATCH, add))];
    for (row, filter) in &mut filters.ours {
        let add = move |part: &[u64]| filter.insert_hashes(part);
        ways.push((*row, Case::batches(hashes, pass, BATCH, add)));
    }
    let safe = &mut filters.safe;
    let add = move |part: &[u64]| part.iter().for_each(|&hash| _ = safe.insert_hash(hash));
    ways.push((SAFE, Case::batches(hashes, pass, BATCH, add)));
    ways
}

/// The same of keys, one a call.
fn add_keys<'a>(filters: &'a mut Filters, keys: &'a [Key]) -> Rows<'a> {
    let pass = keys.len() / 4;
    let sbbf = &mut filters.sbbf;
    let add = move |part: &[Key]| part.iter().for_each(|key| sbbf.insert(key.as_slice()));
    let mut ways = vec![(SBBF, Case::batches(keys, pass, BATCH, add))];
    for (row, filter) in &mut filters.ours {
        let add = move |part: &[Key]| part.iter().for_each(|key| _ = filter.insert(key));
        ways.push((*row, Case::batches(keys, pass, BATCH, add)));
    }
    ways
}

/// Text and tables.
struct Tables {
    text: String,
    missed: usize,
    stored: Vec<Table>,
    machine: Machine,
}

impl Tables {
    /// Times these rows, compares ours with others by the bounds of this way, and keeps them.
    fn add(&mut self, bytes: usize, way: &str, mix: &str, ways: Rows<'_>, schedule: Schedule) {
        let rows = lines(ways, schedule);
        let title = format!("{}, {way}{mix}", size(bytes));
        let text = &mut self.text;
        let median =
            |name: &str| rows.iter().find(|row| row.name == name).map(|row| row.time.median);
        writeln!(text, "\n{title}").expect("a string");
        for Line { name, time, ratio } in &rows {
            let row = format!("  {name:<32}{time:>16}{ratio:8.2}");
            let is_ours = [OURS, OURS_AVX2, OURS_ONCE].contains(&name.as_str());
            let bounds = BOUNDS.iter().filter(|bound| is_ours && bound.method == way);
            let verdicts = bounds.filter_map(|bound| {
                let (other, most) = (bound.peer, bound.limit(bytes)?);
                let ratio = time.median / median(other)?;
                self.missed += usize::from(ratio > most);
                let verdict = if ratio <= most { "holds" } else { "MISSED" };
                Some(format!("  {ratio:.2} of {other}, at most {most}: {verdict}"))
            });
            let verdicts: String = verdicts.collect();
            writeln!(text, "{row}{verdicts}").expect("a string");
        }
        let Machine { date, command, .. } = &self.machine;
        let [date, command] = [date, command].map(String::clone);
        self.stored.push(Table { title: format!("split: {title}"), date, command, rows });
    }
}

fn size(bytes: usize) -> String {
    match bytes >> 20 {
        0 => format!("{} KiB", bytes >> 10),
        mebibytes => format!("{mebibytes} MiB"),
    }
}

/// Measures all of it: a text that says which bounds hold, and the tables.
pub(crate) fn measure(quick: bool, machine: &Machine) -> (String, Vec<Table>) {
    let mut tables =
        Tables { text: String::new(), missed: 0, stored: Vec::new(), machine: machine.clone() };
    let title =
        "Split-block filters: ns a value, median (least), and the ratio to Sbbf or its loop";
    writeln!(tables.text, "{title}").expect("a string");
    for (bytes, values) in SIZES {
        let is_large = bytes > 100 << 20;
        if quick && is_large {
            continue;
        }
        eprintln!("  split blocks of {}", size(bytes));
        let mut filters = Filters::new(bytes, values);
        for (mix, name) in [(Mix::Absent, ", miss"), (Mix::Present, ", hit")] {
            let list: Vec<Key> = (0..8 * PASS as u64).map(|i| key(mix.number(values, i))).collect();
            let hashes: Vec<u64> = list.iter().map(hash_value).collect();
            let key_case = |batch| keys(&filters, &list, batch);
            let [one, many] = [singles(&filters, &hashes), batches(&filters, &hashes)];
            tables.add(bytes, "hash given, one a call", name, one, schedule(quick));
            tables.add(bytes, "hash given, 1024 a call", name, many, schedule(quick));
            tables.add(bytes, "16-byte keys, one a call", name, key_case(1), schedule(quick));
            tables.add(bytes, "16-byte keys, 1024 a call", name, key_case(BATCH), schedule(quick));
        }
        // The values of the filter; added to the largest one, others than it has.
        let numbers = if is_large { values..values + (1 << 22) } else { 0..values.min(1_000_000) };
        let list: Vec<Key> = numbers.map(key).collect();
        let hashes: Vec<u64> = list.iter().map(hash_value).collect();
        let by_hash = "building from hashes, 1024 a call";
        let by_key = "building from 16-byte keys, one a call";
        if is_large {
            tables.add(bytes, by_hash, "", add_hashes(&mut filters, &hashes), filling(quick));
            tables.add(bytes, by_key, "", add_keys(&mut filters, &list), filling(quick));
        } else {
            drop(filters);
            tables.add(bytes, by_hash, "", build_from_hashes(bytes, &hashes), filling(quick));
            tables.add(bytes, by_key, "", build_from_keys(bytes, &list), filling(quick));
        }
    }
    writeln!(tables.text, "\n{} bounds missed", tables.missed).expect("a string");
    (tables.text, tables.stored)
}
