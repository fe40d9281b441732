//! Finds the best prefetch hint, distance and grouping for this CPU.
//!
//! The filters have 1 to 100 MiB, and their blocks begin at a cache line or 16 bytes after one.
//! Figures are ns per absent key. The first columns time a loop that loads the lines of each key,
//! prefetched 64 to 512 keys ahead or in groups (the next 64 keys, then the loads of the 64
//! before). The last columns time the library's lookups and insertions at ten bits per key, in
//! groups of 64 whose lines this program has prefetched. Insertions use owned filters, whose blocks
//! always begin at a cache line.
//!
//! The row `as it is` shows loads without a prefetch, and lookups and insertions with the library's
//! own prefetching, 1,024 keys a call. The other rows come from a second process of this program
//! with `BLOCKED_BLOOM_PREFETCH_THRESHOLD` set. Both run three times in turn for each filter; a
//! figure is the smallest of three medians. `cargo bench -p blocked-bloom-benches --bench prefetch`
//! takes a minute and 300 MB. A table of another CPU is welcome in `benches/results`.

#![allow(missing_docs, reason = "a bench")]
#![allow(clippy::print_stdout, reason = "figures to be quoted")]
#![expect(unsafe_code, reason = "hints that the library does not offer")]

use std::hint::black_box;
use std::process::Command;

use benches::clock::Clock;
use benches::rows::Size;
use benches::timing::Timing;
use benches::workload::Mix;
use blocked_bloom::parts::BlockBuffer;
use blocked_bloom::probe::block_index;
use blocked_bloom::{Block, BloomFilter, Filter, KeyHash, PREFETCH_VARIABLE};

/// Keys a call.
const CALL: usize = 1024;
/// Keys of a case and round, of a million that are looked up in turn: the lines of one case are not
/// in a cache for the next.
const PASS: usize = 1 << 16;
const ROUNDS: usize = 11;
const COLUMNS: [&str; 7] = ["64", "128", "256", "512", "groups", "lookups", "insertions"];

/// The name of a hint, and the function that measures a column with it.
type Hint = (&'static str, fn(&mut Filters<'_>, usize, &[u64]));
/// The filter for lookups, and the filter for insertions.
type Filters<'a> = (BloomFilter<&'a [Block]>, BloomFilter);

macro_rules! hints {
    ($($number:literal $name:literal $instruction:literal),*) => {
        const HINTS: &[Hint] = &[("as it is", run::<0>), $(($name, run::<$number>)),*];

        #[inline(always)]
        fn prefetch<const HINT: u8>(line: *const u8) {
            match HINT {
                // SAFETY: a prefetch reads nothing: any address will do.
                $($number => unsafe {
                    core::arch::asm!(
                        $instruction,
                        in(reg) line,
                        options(nostack, preserves_flags, readonly)
                    );
                },)*
                _ => _ = line,
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
hints!(1 "T0" "prefetcht0 [{0}]", 2 "T1" "prefetcht1 [{0}]", 3 "T2" "prefetcht2 [{0}]", 4 "NTA" "prefetchnta [{0}]");
#[cfg(target_arch = "aarch64")]
hints!(1 "pldl1keep" "prfm pldl1keep, [{0}]", 2 "pldl2keep" "prfm pldl2keep, [{0}]");
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
hints!();

#[inline(always)]
fn prefetch_all<const HINT: u8>(blocks: *const [Block], hashes: &[u64]) {
    let start = blocks.cast::<Block>();
    for &hash in hashes {
        let block = start.wrapping_add(block_index(hash, blocks.len() as u32) as usize);
        prefetch::<HINT>(block.cast());
        if !start.addr().is_multiple_of(64) {
            prefetch::<HINT>(block.cast::<u8>().wrapping_add(63));
        }
    }
}

#[inline(always)]
fn load(blocks: &[Block], hashes: &[u64]) -> u8 {
    let block = |&hash| &blocks[block_index(hash, blocks.len() as u32) as usize];
    hashes.iter().map(block).fold(0, |all, block| all | block[0] | block[63])
}

fn load_ahead<const HINT: u8>(blocks: &[Block], hashes: &[u64], distance: usize) -> u8 {
    let (first, later) = hashes.split_at(distance);
    prefetch_all::<HINT>(blocks, first);
    let pairs = hashes.iter().zip(later).fold(0, |all, (&hash, &later)| {
        prefetch_all::<HINT>(blocks, &[later]);
        all | load(blocks, &[hash])
    });
    pairs | load(blocks, &hashes[later.len()..])
}

/// Runs the measurement of a column; without a hint, in one group.
fn run<const HINT: u8>((view, own): &mut Filters<'_>, column: usize, hashes: &[u64]) {
    let blocks = &raw const *if column < 6 { view.blocks() } else { own.blocks() };
    let (mut groups, mut words) =
        (hashes.chunks(if HINT == 0 { CALL } else { 64 }), [0; CALL / 64]);
    if HINT > 0 && column < 4 {
        black_box(load_ahead::<HINT>(view.blocks(), hashes, 64 << column));
        return;
    }
    prefetch_all::<HINT>(blocks, &hashes[..64]);
    while let Some(now) = groups.next() {
        prefetch_all::<HINT>(blocks, groups.clone().next().unwrap_or_default());
        let words = &mut words[..now.len() / 64];
        match column {
            0..5 => _ = black_box(load(view.blocks(), now)),
            5 => view.contains_hashes_into(now, words).expect("a word for 64 hashes"),
            _ => own.insert_hashes(now).expect("a filter of whole keys"),
        }
    }
    black_box(words);
}

/// The medians of each hint in columns, one after the other.
fn measure(keys: u64, offset: usize) -> Vec<f64> {
    let own = Size(keys, "").filled();
    let lookups = Mix::Absent.lookups(keys, 1 << 20);
    let mut passes = lookups.chunks(PASS).cycle();
    let mut copy = BlockBuffer::zeroed(own.params().blocks() + 1, true).expect("memory");
    let bytes = &mut copy.as_flattened_mut()[offset..][..own.blocks().len() * 64];
    bytes.copy_from_slice(own.blocks().as_flattened());
    let view = BloomFilter::from_blocks(bytes.as_chunks().0, 6, KeyHash::default());
    let mut filters = (view.expect("legal"), own);
    let mut times = vec![Vec::new(); HINTS.len() * COLUMNS.len()];
    for _ in 0..ROUNDS {
        for (i, times) in times.iter_mut().enumerate() {
            let (hint, column) = (i / COLUMNS.len(), i % COLUMNS.len());
            let clock = Clock::start();
            let calls = passes.next().expect("it cycles").chunks(CALL);
            calls.for_each(|hashes| HINTS[hint].1(&mut filters, column, hashes));
            times.push(clock.seconds() * 1e9 / PASS as f64);
        }
    }
    times.into_iter().map(|times| Timing::from_times(times).median).collect()
}

fn main() {
    let arguments: Vec<u64> = std::env::args().filter_map(|word| word.parse().ok()).collect();
    if let [keys, offset] = arguments[..] {
        return measure(keys, offset as usize).iter().for_each(|time| println!("{time}"));
    }
    println!("| filter | offset | hint | {} |", COLUMNS.join(" | "));
    println!("|---|---:|---|{}", "---:|".repeat(COLUMNS.len()));
    for (mib, offset) in [1, 3, 10, 30, 100].into_iter().flat_map(|mib| [(mib, 0), (mib, 16)]) {
        let keys = (mib << 20) * 8 / 10;
        let mut least = vec![f64::INFINITY; HINTS.len() * COLUMNS.len()];
        for _ in 0..3 {
            let own = measure(keys, offset).into_iter().take(COLUMNS.len());
            let mut anew = Command::new(std::env::current_exe().expect("a path"));
            anew.env(PREFETCH_VARIABLE, usize::MAX.to_string());
            let output = anew.args([keys.to_string(), offset.to_string()]).output().expect("runs");
            let text = String::from_utf8(output.stdout).expect("figures");
            let others = text.lines().skip(COLUMNS.len()).map(|time| time.parse().expect("ns"));
            least.iter_mut().zip(own.chain(others)).for_each(|(least, ns)| *least = ns.min(*least));
        }
        for (row, (name, ..)) in least.chunks(COLUMNS.len()).zip(HINTS) {
            let cells: Vec<String> = row.iter().map(|time| format!("{time:.2}")).collect();
            println!("| {mib} MiB | {offset} | {name} | {} |", cells.join(" | "));
        }
    }
}
