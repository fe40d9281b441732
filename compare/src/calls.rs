//! The calls that engines make most often: a MultiGet of few keys, a memtable's filter, a flush, a
//! prefix scan, opening, merging and folding. The first row of each table is the plainest
//! alternative.

use std::fmt::Write;
use std::hint::black_box;

use benches::clock::{Case, Schedule};
use benches::results::{Machine, Table};
use benches::workload::{Key, hash, key};
use blocked_bloom::{
    AtomicBloomFilter, Bitmask, BloomFilter, Filter as _, FilterOptions, KeyHash, PrefixExtractor,
    Sizing,
};

use crate::split::{Rows, lines};

const OPTIONS: FilterOptions = FilterOptions::new(Sizing::BitsPerKey(10.0));

/// Keys of one MultiGet.
const CALLS: [(usize, &str); 8] = [
    (2, "2 a call"),
    (3, "3 a call"),
    (4, "4 a call"),
    (6, "6 a call"),
    (8, "8 a call"),
    (16, "16 a call"),
    (32, "32 a call"),
    (64, "64 a call"),
];

/// Lookups of a pass.
const PASS: usize = 3 << 12;

/// Hashes of a batch of insertions.
const BATCH: usize = 64;

/// The tables, and their text.
struct Tables<'m> {
    text: String,
    stored: Vec<Table>,
    machine: &'m Machine,
    is_quick: bool,
}

impl Tables<'_> {
    /// Times the rows in as many rounds, or a quarter of them.
    fn add(&mut self, title: &str, rows: Rows<'_>, rounds: usize) {
        let rounds = if self.is_quick { rounds.div_ceil(4) } else { rounds };
        let rows = lines(rows, Schedule { rounds, warm: 1, timed: 1 });
        writeln!(self.text, "\n{title}").expect("a string");
        for line in &rows {
            let (name, time, ratio) = (&line.name, line.time, line.ratio);
            writeln!(self.text, "  {name:<32}{time:>18}{ratio:8.2}").expect("a string");
        }
        let Machine { date, command, .. } = self.machine;
        let [date, command] = [date, command].map(String::clone);
        self.stored.push(Table { title: format!("calls: {title}"), date, command, rows });
    }
}

/// Measures all of it: a text, and the tables.
pub(crate) fn measure(is_quick: bool, machine: &Machine) -> (String, Vec<Table>) {
    let text = "The calls of an engine: ns per key, median (least), and the ratio to the first row";
    let mut tables = Tables { text: text.to_owned() + "\n", stored: Vec::new(), machine, is_quick };
    let sizes: &[u64] =
        if is_quick { &[10_000, 1_000_000] } else { &[10_000, 1_000_000, 10_000_000] };
    for &keys in sizes {
        eprintln!("  calls, {keys} keys");
        multi_gets(&mut tables, keys);
        memtables(&mut tables, keys);
    }
    eprintln!("  calls: flush, scan, opening, merging, folding");
    flushes(&mut tables);
    whole_filters(&mut tables);
    (tables.text, tables.stored)
}

fn empty(keys: u64) -> BloomFilter {
    let mut filter = OPTIONS.empty_filter(keys).expect("memory");
    // Writes to every page, which a new filter has not touched yet.
    filter.clear();
    filter
}

fn filled(hashes: &[u64]) -> BloomFilter {
    BloomFilter::from_hashes(&OPTIONS, hashes).expect("memory")
}

/// Calls of 2 to 64 absent keys, and a loop over them.
fn multi_gets(tables: &mut Tables<'_>, keys: u64) {
    let filter = &{
        let mut filter = empty(keys);
        let hasher = OPTIONS.hasher().expect("the default hash");
        // Of each kind no key that is looked up is in the filter.
        (0..keys).for_each(|i| _ = filter.insert_hash(hasher.hash(key(i))).expect("hashes"));
        filter
    };
    let absent = || keys..keys + 8 * PASS as u64;
    let hashes: Vec<u64> = absent().map(hash).collect();
    let fixed: Vec<Key> = absent().map(key).collect();
    let strings: Vec<String> = hashes.iter().map(|i| format!("user:{:018}", i >> 8)).collect();
    let texts: Vec<&str> = strings.iter().map(String::as_str).collect();
    let bytes: Vec<[u8; 8]> = hashes.iter().map(|i| i.to_le_bytes()).collect();
    let title = |kind: &str| format!("MultiGet, {kind}, {keys} keys");
    let rounds = if keys > 1_000_000 { 21 } else { 61 };

    let mut rows = vec![single_row("one by one", &hashes, |&hash| filter.contains_hash(hash))];
    rows.extend(call_rows(&hashes, |part, words| filter.contains_hashes_into(part, words).is_ok()));
    tables.add(&title("hashes"), rows, rounds);
    let mut rows = vec![single_row("one by one", &fixed, |key| filter.contains(key))];
    rows.extend(call_rows(&fixed, |part, words| filter.contains_batch_into(part, words).is_ok()));
    tables.add(&title("16-byte keys"), rows, rounds);
    let mut rows = vec![single_row("one by one", &texts, |key| filter.contains(key))];
    rows.extend(call_rows(&texts, |part, words| filter.contains_batch_into(part, words).is_ok()));
    tables.add(&title("strings of 23 bytes"), rows, rounds);
    let mut rows = vec![single_row("one by one", &bytes, |key| filter.contains(key))];
    rows.extend(call_rows(&hashes, |part, words| filter.contains_u64s_into(part, words).is_ok()));
    tables.add(&title("integers"), rows, rounds);
}

/// A loop over the items.
fn single_row<'a, T>(
    name: &'static str,
    items: &'a [T],
    has: impl Fn(&T) -> bool + 'a,
) -> (&'static str, Case<'a>) {
    let count = move |part: &[T]| part.iter().filter(|item| has(item)).count();
    (name, Case::batches(items, PASS, PASS, count))
}

/// Calls of each length in [`CALLS`].
fn call_rows<'a, T>(
    items: &'a [T],
    look_up: impl Fn(&[T], &mut [u64]) -> bool + Copy + 'a,
) -> impl Iterator<Item = (&'static str, Case<'a>)> {
    CALLS.into_iter().map(move |(call, name)| {
        let count = move |all: &[T]| {
            let mut word = [0];
            let found = all.chunks(call).map(|part| {
                assert!(look_up(part, &mut word));
                word[0]
            });
            found.sum::<u64>()
        };
        (name, Case::batches(items, PASS, PASS, count))
    })
}

/// A memtable's filter, filled by one thread, and lookups of absent keys.
fn memtables(tables: &mut Tables<'_>, keys: u64) {
    let hashes: Vec<u64> = (0..keys).map(hash).collect();
    let hashes = &hashes[..];
    let bits = 10 * keys as usize;
    let peer = move || {
        let filter = fastbloom::AtomicBloomFilter::with_num_bits(bits);
        let filter = filter.seed(&0).expected_items(keys as usize);
        filter.clear();
        filter
    };
    let shared = move |_| AtomicBloomFilter::from(empty(keys));
    let alone = move |_| AtomicBloomFilter::from(empty(keys)).into_writer();
    let count = hashes.len();
    let rounds = if keys > 1_000_000 { 5 } else { 21 };
    let rows: Rows<'_> = vec![
        (
            "fastbloom's atomic filter",
            Case::with_setup(
                None,
                count,
                move |_| peer(),
                move |filter| {
                    hashes.iter().for_each(|&hash| _ = black_box(filter.insert_hash(hash)));
                    filter
                },
            ),
        ),
        (
            "insert_hash",
            Case::with_setup(None, count, shared, move |filter| {
                hashes.iter().for_each(|&hash| _ = black_box(filter.insert_hash(hash)));
                filter
            }),
        ),
        (
            "insert_hashes",
            Case::with_setup(None, count, shared, move |filter| {
                hashes.chunks(BATCH).for_each(|part| filter.insert_hashes(part).expect("hashes"));
                filter
            }),
        ),
        (
            "one writer, insert_hash",
            Case::with_setup(None, count, alone, move |mut filter| {
                hashes.iter().for_each(|&hash| _ = black_box(filter.insert_hash(hash)));
                filter
            }),
        ),
        (
            "one writer, insert_hashes",
            Case::with_setup(None, count, alone, move |mut filter| {
                hashes.chunks(BATCH).for_each(|part| filter.insert_hashes(part).expect("hashes"));
                filter
            }),
        ),
    ];
    tables.add(&format!("memtable, new keys, {keys} keys"), rows, rounds);

    let other = peer();
    hashes.iter().for_each(|&hash| _ = other.insert_hash(hash));
    let filter = filled(hashes);
    let atomic = AtomicBloomFilter::from(filter.clone());
    let absent: Vec<u64> = (keys..keys + 8 * PASS as u64).map(hash).collect();
    let batches = |part: &[u64]| {
        let mut word = [0];
        let found = part.chunks(BATCH).map(|part| {
            atomic.contains_hashes_into(part, &mut word).expect("one word");
            word[0].count_ones()
        });
        found.sum::<u32>()
    };
    let rows: Rows<'_> = vec![
        single_row("fastbloom's atomic filter", &absent, |&hash| other.contains_hash(hash)),
        single_row("contains_hash", &absent, |&hash| atomic.contains_hash(hash)),
        ("contains_hashes", Case::batches(&absent, PASS, PASS, batches)),
        single_row("contains_hash, not atomic", &absent, |&hash| filter.contains_hash(hash)),
    ];
    tables.add(&format!("memtable, absent keys, {keys} keys"), rows, 3 * rounds);
}

/// A flush of a million strings, with and without prefixes.
fn flushes(tables: &mut Tables<'_>) {
    let strings: Vec<String> =
        (0..1_000_000).map(|i| format!("user:{:018}", hash(i) >> 8)).collect();
    let strings = &strings[..];
    let hasher = OPTIONS.hasher().expect("the default hash");
    let with_prefixes = OPTIONS.with_prefixes(PrefixExtractor::fixed(12));
    let with_prefixes = &with_prefixes;
    let insert = |options: &FilterOptions| {
        let mut builder = options.builder();
        strings.iter().for_each(|key| builder.insert(key).expect("keys"));
        builder.finish().expect("memory")
    };
    let count = strings.len();
    let rows: Rows<'_> = vec![
        (
            "hash each, from_hashes",
            Case::new(count, |_| {
                filled(&strings.iter().map(|key| hasher.hash(key)).collect::<Vec<u64>>())
            }),
        ),
        ("builder, insert", Case::new(count, |_| insert(&OPTIONS))),
        (
            "builder, insert_batch",
            Case::new(count, |_| {
                let mut builder = OPTIONS.builder();
                strings.chunks(256).for_each(|part| builder.insert_batch(part).expect("keys"));
                builder.finish().expect("memory")
            }),
        ),
        ("builder, insert with prefixes", Case::new(count, |_| insert(with_prefixes))),
        (
            "fastbloom's filter",
            Case::new(count, |_| {
                let filter = fastbloom::BloomFilter::with_num_bits(10 * count);
                let mut filter = filter.seed(&0).expected_items(count);
                strings.iter().for_each(|key| _ = filter.insert_hash(hasher.hash(key)));
                filter
            }),
        ),
    ];
    tables.add("flush, 1000000 strings of 23 bytes", rows, 9);

    let filter = insert(with_prefixes);
    let prefixes = with_prefixes.extractor().expect("prefixes");
    let starts: Vec<String> =
        (0..8 * PASS as u64).map(|i| format!("{:018}", hash(!i) >> 8)).collect();
    // The compiler must not know the length, as it does not for prefixes of a rule.
    let length = black_box(12);
    let rows: Rows<'_> = vec![
        single_row("hash, contains_hash", &starts, |start| {
            filter.contains_hash(hasher.hash(&start[..length]))
        }),
        single_row("contains_prefix", &starts, |start| filter.contains_prefix(prefixes, start)),
        (
            "contains_prefix_batch, 64 a call",
            Case::batches(&starts, PASS, PASS, |part| {
                let mut hits = Bitmask::new();
                let found = part.chunks(BATCH).map(|part| {
                    filter.contains_prefix_batch(prefixes, part, &mut hits);
                    hits.count_hits()
                });
                found.sum::<usize>()
            }),
        ),
    ];
    tables.add("prefix scan, a filter of 1000000 keys, ns a scan", rows, 41);
}

/// Filters of 3 million keys: 58,594 blocks.
fn whole_filters(tables: &mut Tables<'_>) {
    const KEYS: u64 = 3_000_000;
    let of = |from: u64| {
        let hashes: Vec<u64> = (from..from + KEYS).map(hash).collect();
        let options = OPTIONS.foldable();
        BloomFilter::from_hashes(&options, &hashes).expect("memory")
    };
    let (one, other) = (of(0), of(KEYS));
    let blocks = one.blocks().len();
    let words = |filter: &BloomFilter| {
        let bytes = filter.blocks().iter().flat_map(|block| block.as_chunks::<8>().0);
        bytes.map(|word| u64::from_le_bytes(*word)).collect::<Vec<u64>>()
    };
    let (first, second) = (words(&one), words(&other));
    let half = first.len() / 2;
    let (view, other) = (&one, &other);
    let (first, second) = (&first, &second);
    let rows: Rows<'_> = vec![
        (
            "loop over words",
            Case::with_setup(
                None,
                blocks,
                move |_| first.clone(),
                move |mut words| {
                    words.iter_mut().zip(second).for_each(|(word, other)| *word |= other);
                    words
                },
            ),
        ),
        (
            "union_with",
            Case::with_setup(
                None,
                blocks,
                move |_| view.clone(),
                move |mut filter| {
                    filter.union_with(other).expect("equal parameters");
                    filter
                },
            ),
        ),
    ];
    tables.add("merging 3000000 keys each, ns a block", rows, 41);
    let rows: Rows<'_> = vec![
        (
            "loop over words",
            Case::new(blocks, move |_| {
                let mut words = vec![0_u64; half];
                let pairs = first.chunks_exact(16).zip(words.chunks_exact_mut(8));
                for (pair, block) in pairs {
                    let (low, high) = pair.split_at(8);
                    block.iter_mut().zip(low.iter().zip(high)).for_each(|(to, (a, b))| *to = a | b);
                }
                words
            }),
        ),
        ("folded", Case::new(blocks, move |_| view.folded(2).expect("an even number of blocks"))),
    ];
    tables.add("folding 3000000 keys in half, ns a block", rows, 41);
    let stored = one.to_bytes();
    let stored = &stored;
    let rows: Rows<'_> = vec![
        ("copy of the bytes", Case::new(blocks, move |_| stored.clone())),
        (
            "from_bytes",
            Case::new(blocks, move |_| {
                BloomFilter::from_bytes(stored, KeyHash::default()).expect("a filter").is_pass_all()
            }),
        ),
        (
            "from_bytes_trusted",
            Case::new(blocks, move |_| {
                let opened = BloomFilter::from_bytes_trusted(stored, KeyHash::default());
                opened.expect("a filter").is_pass_all()
            }),
        ),
    ];
    tables.add("opening 3000000 keys, ns a block", rows, 41);
}
