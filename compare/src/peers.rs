//! The kinds of filters that are compared: how to fill one, and how to look keys up in it. Packages
//! are used as their documentation recommends for speed.

use std::cell::RefCell;
use std::hint::black_box;

use benches::baseline::load_lines;
use benches::split_block::SplitBlocks;
use benches::workload::{Key, hash, key};
use blocked_bloom::{
    Block, BloomFilter, Filter as _, FilterOptions, InstructionSet, Kernel, LengthError, Params,
    Sizing, Stored,
};
use blocked_bloom_ribbon::RibbonOptions;
use blocked_bloom_ribbon::rocksdb::{BuiltBlock, RibbonBlock, RibbonBlockOptions};
use memmap2::MmapMut;
use parquet::bloom_filter::Sbbf;
use parquet::data_type::AsBytes;
use xxhash_rust::xxh3::xxh3_64;

pub(crate) const OURS: &str = "blocked-bloom";

/// This library, one key at a time.
pub(crate) const OURS_SINGLE: &str = "blocked-bloom, one key a call";

/// The same with AVX2, where the default kernel is another.
pub(crate) const OURS_AVX2: &str = "blocked-bloom, AVX2";

/// The rows of the memory-bound baseline.
pub(crate) const BASELINE: &str = "memory-bound baseline: one line a key";
pub(crate) const BASELINE_AHEAD: &str = "memory-bound baseline, prefetched 128 keys ahead";

/// The rows of the loops written anew, and of a package that is followed in short calls.
pub(crate) const ROCKSDB: &str = "RocksDB's loop, one key";
pub(crate) const ROCKSDB_BATCH: &str = "RocksDB's loop, batches of 32";
pub(crate) const SPLIT: &str = "32-byte split blocks, AVX2";
pub(crate) const SPLIT_AHEAD: &str = "split blocks, prefetched 128 keys ahead";
pub(crate) const SBBF_RS: &str = "sbbf-rs-safe";

/// The most keys of a call.
pub(crate) const MAX_BATCH: usize = 4096;

/// What filters are filled with: hashes, or keys of 16 bytes.
pub(crate) trait Item: Copy + std::hash::Hash + Send + Sync + 'static {
    /// The `i`th.
    fn number(i: u64) -> Self;
    fn bytes(&self) -> &[u8];
    /// For all filters that take hashes: of keys XXH3-64, the fastest at hand, inlined for a known
    /// length.
    fn hashed(&self) -> u64;
    fn with_hashes(items: &[Self], count: impl FnOnce(&[u64]) -> usize) -> usize;
    fn contains<D: AsRef<[Block]>>(filter: &BloomFilter<D>, items: &[Self]) -> usize;
    fn contains_one<D: AsRef<[Block]>>(&self, filter: &BloomFilter<D>) -> bool;
}

impl Item for u64 {
    fn number(i: u64) -> Self {
        hash(i)
    }

    fn bytes(&self) -> &[u8] {
        self.as_bytes()
    }

    #[inline]
    fn hashed(&self) -> u64 {
        *self
    }

    fn with_hashes(items: &[Self], count: impl FnOnce(&[u64]) -> usize) -> usize {
        count(items)
    }

    fn contains<D: AsRef<[Block]>>(filter: &BloomFilter<D>, items: &[Self]) -> usize {
        hits(items.len(), |words| filter.contains_hashes_into(items, words))
    }

    #[inline]
    fn contains_one<D: AsRef<[Block]>>(&self, filter: &BloomFilter<D>) -> bool {
        filter.contains_hash(*self)
    }
}

impl Item for Key {
    fn number(i: u64) -> Self {
        key(i)
    }

    fn bytes(&self) -> &[u8] {
        self
    }

    #[inline]
    fn hashed(&self) -> u64 {
        xxh3_64(self)
    }

    fn with_hashes(items: &[Self], count: impl FnOnce(&[u64]) -> usize) -> usize {
        thread_local!(static HASHES: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) });
        HASHES.with_borrow_mut(|hashes| {
            hashes.clear();
            hashes.extend(items.iter().map(Key::hashed));
            count(hashes)
        })
    }

    fn contains<D: AsRef<[Block]>>(filter: &BloomFilter<D>, items: &[Self]) -> usize {
        hits(items.len(), |words| filter.contains_batch_into(items, words))
    }

    #[inline]
    fn contains_one<D: AsRef<[Block]>>(&self, filter: &BloomFilter<D>) -> bool {
        filter.contains(self)
    }
}

/// The hits of a call for this many keys.
pub(crate) fn hits(
    keys: usize,
    look_up: impl FnOnce(&mut [u64]) -> Result<(), LengthError>,
) -> usize {
    // Zeroing 512 bytes, or `count_ones` by twenty instructions for want of `popcnt`, takes as long
    // as some keys: fewer are counted bit by bit.
    if keys <= 64 {
        let mut word = [0];
        look_up(&mut word).expect("a word for 64 keys");
        let [mut word] = word;
        if keys >= 8 {
            return word.count_ones() as usize;
        }
        let mut hits = 0;
        while word != 0 {
            word &= word - 1;
            hits += 1;
        }
        return hits;
    }
    let mut words = [0; MAX_BATCH / 64];
    let words = &mut words[..keys.div_ceil(64)];
    look_up(words).expect("a word for 64 keys");
    words.iter().map(|word| word.count_ones() as usize).sum()
}

/// Counts the hits of a call with the method of this number.
type Count<T> = Box<dyn Fn(usize, &[T]) -> usize + Send + Sync>;

/// A filled filter: the memory of its table, and how to look keys up, each way for a row of its
/// kind.
pub(crate) struct Filled<T> {
    pub(crate) bytes: usize,
    pub(crate) count: Count<T>,
}

fn peer<T>(
    bytes: usize,
    count: impl Fn(usize, &[T]) -> usize + Send + Sync + 'static,
) -> Option<Filled<T>> {
    Some(Filled { bytes, count: Box::new(count) })
}

/// A filter that can only look up one key at a time.
fn single<T>(
    bytes: usize,
    contains: impl Fn(&T) -> bool + Send + Sync + 'static,
) -> Option<Filled<T>> {
    peer(bytes, move |_, items| items.iter().filter(|item| contains(item)).count())
}

/// Fills a filter with distinct items, at this many bits per key; `None` where the CPU lacks the
/// instructions.
type Fill<T> = fn(&[T], f64) -> Option<Filled<T>>;

/// A kind of filter.
pub(crate) struct Kind {
    pub(crate) id: &'static str,
    /// The package whose version is stated.
    pub(crate) package: Option<&'static str>,
    pub(crate) configuration: &'static str,
    pub(crate) role: Role,
    /// Rows of the tables, one for each way to look keys up, and whether it gains from keys that
    /// are given at once.
    pub(crate) rows: &'static [(&'static str, bool)],
    pub(crate) fill_hashes: Fill<u64>,
    pub(crate) fill_keys: Fill<Key>,
}

/// The purpose of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Not a filter: loads lines.
    Baseline,
    /// This library.
    Ours,
    /// Another project's loop, written anew.
    Loop,
    /// A Rust package.
    Package,
}

/// Every kind, in the order of the tables.
pub(crate) fn kinds() -> Vec<Kind> {
    macro_rules! kinds {
        ($(
            $role:ident $id:expr, $package:expr, $fill:ident, $rows:expr, $configuration:literal;
        )*) => {
            vec![$(Kind {
                id: $id,
                package: $package,
                configuration: $configuration,
                role: Role::$role,
                rows: &$rows,
                fill_hashes: $fill::<u64>,
                fill_keys: $fill::<Key>,
            }),*]
        };
    }
    kinds![
        Baseline "memory-bound baseline", None, baseline,
            [(BASELINE, true), (BASELINE_AHEAD, true)],
            "widest loads, all ORed; the lines of blocked-bloom, huge pages";
        Ours OURS, None, ours, [(OURS, true), (OURS_SINGLE, false)],
            "default kernel, `contains_hashes_into` and `contains_batch_into`, `contains_hash` \
             and `contains`; its own memory (huge pages)";
        Ours OURS_AVX2, None, ours_avx2,
            [(OURS_AVX2, true), ("blocked-bloom, AVX2, one key a call", false)],
            "the same with the kernel of AVX2, where the default is another";
        Ours "blocked-bloom, small pages", None, small_pages, [("blocked-bloom, small pages", true)],
            "the same filter, read from its stored bytes in memory without huge pages, as a \
             mapped file is";
        Loop "RocksDB's loop", None, rocksdb, [(ROCKSDB, false), (ROCKSDB_BATCH, true)],
            "re-creation of FastLocalBloom's AVX2 loop; aligned lines in huge pages";
        Loop "32-byte split blocks", None, split_blocks, [(SPLIT, false), (SPLIT_AHEAD, true)],
            "inlined AVX2 loop, hits only counted; huge pages";
        Ours "sharded Ribbon", None, sharded,
            [("sharded Ribbon", true), ("sharded Ribbon, one key a call", false)],
            "`RibbonOptions` of the rate that blocked-bloom has; fewer bits per key; needs all \
             keys at once";
        Ours "RocksDB's Ribbon", None, ribbon_block, [("RocksDB's Ribbon", true)],
            "`RibbonBlock` as RocksDB stores it, of the rate that a Bloom filter has; up to 20 \
             million keys; needs all keys at once";
        Package "pleat", Some("pleat"), pleat, [("pleat Ribbon", true)],
            "`Ribbon::<7>::from_keys_pleated`, about 0.8 % of false positives whatever the bits; \
             needs all keys at once";
        Package SBBF_RS, Some("sbbf-rs-safe"), sbbf_rs, [(SBBF_RS, false)],
            "`contains_hash`; finds AVX2 at run time by itself";
        Package "parquet", Some("parquet"), parquet, [("parquet Sbbf †", false)],
            "`Sbbf` of as many bytes, `check`; takes no hashes: XXH64 of the value (8 bytes where \
             others get a hash) is in its times";
        Package "fastbloom", Some("fastbloom"), fastbloom, [("fastbloom", false)],
            "`BloomFilter::with_num_bits(..).expected_items(..)`, `contains_hash`; a classical \
             filter";
        Package "bloomfilter", Some("bloomfilter"), bloomfilter, [("bloomfilter †", false)],
            "`Bloom::new_with_seed`, `check`; takes no hashes: SipHash-1-3 of the value (8 bytes \
             where others get a hash) is in its times; a classical filter";
        Package "xorf BinaryFuse8", Some("xorf"), fuse, [("xorf BinaryFuse8", false)],
            "`BinaryFuse8::try_from`, `contains`; about 9 bits per key, whatever is wanted; needs \
             all keys at once";
    ]
}

fn params<T>(items: &[T], bits: f64) -> Params {
    Sizing::BitsPerKey(bits).params(items.len() as u64).expect("bits per key are in range")
}

/// Bits for this many keys.
fn bits_for<T>(items: &[T], bits_per_key: f64) -> usize {
    (items.len() as f64 * bits_per_key).ceil() as usize
}

fn hashes_of<T: Item>(items: &[T]) -> Vec<u64> {
    items.iter().map(T::hashed).collect()
}

/// An empty filter of this library.
pub(crate) fn empty(keys: usize, bits: f64) -> BloomFilter {
    let options = FilterOptions::new(Sizing::BitsPerKey(bits));
    options.empty_filter(keys as u64).expect("bits per key in range, memory for the filter")
}

/// Lines to load, of a filter without keys.
fn baseline<T: Item>(items: &[T], bits: f64) -> Option<Filled<T>> {
    let filter = empty(items.len(), bits);
    peer(filter.memory_bytes() as usize, move |way, items| {
        let load = |hashes: &[u64]| _ = black_box(load_lines(filter.blocks(), hashes, way == 1));
        T::with_hashes(items, |hashes| {
            load(hashes);
            0
        })
    })
}

fn filled<T: Item>(items: &[T], bits: f64, kernel: Kernel) -> BloomFilter {
    let mut filter = empty(items.len(), bits).with_kernel(kernel);
    filter.insert_hashes(&hashes_of(items)).expect("a filter of whole keys");
    filter
}

fn ours<T: Item>(items: &[T], bits: f64) -> Option<Filled<T>> {
    ours_by(items, bits, Kernel::default())
}

/// The kernel of AVX2, if this CPU has it.
pub(crate) fn avx2() -> Option<Kernel> {
    Kernel::supported().find(|kernel| kernel.instructions() == InstructionSet::Avx2)
}

fn ours_avx2<T: Item>(items: &[T], bits: f64) -> Option<Filled<T>> {
    let is_other = Kernel::default().instructions() != InstructionSet::Avx2;
    ours_by(items, bits, avx2().filter(|_| is_other)?)
}

fn ours_by<T: Item>(items: &[T], bits: f64, kernel: Kernel) -> Option<Filled<T>> {
    let filter = filled(items, bits, kernel);
    peer(filter.memory_bytes() as usize, move |way, items| match way {
        0 => T::contains(&filter, items),
        _ => items.iter().filter(|item| item.contains_one(&filter)).count(),
    })
}

fn small_pages<T: Item>(items: &[T], bits: f64) -> Option<Filled<T>> {
    let stored = filled(items, bits, Kernel::default()).to_bytes();
    let mut map = MmapMut::map_anon(stored.len()).expect("memory");
    #[cfg(target_os = "linux")]
    map.advise(memmap2::Advice::NoHugePage).expect("advice of Linux");
    map.copy_from_slice(&stored);
    let filter: BloomFilter<Stored<MmapMut>> =
        BloomFilter::from_bytes_any_hash(map).expect("just written");
    peer(filter.memory_bytes() as usize, move |_, items| T::contains(&filter, items))
}

/// The library's size and number of probes, so that false positives are the same.
fn rocksdb<T: Item>(items: &[T], bits: f64) -> Option<Filled<T>> {
    #[cfg(target_arch = "x86_64")]
    {
        use benches::rocksdb::FastLocalBloom;
        let mut filter = FastLocalBloom::new(params(items, bits)).expect("memory")?;
        filter.insert_hashes(&hashes_of(items));
        peer(filter.bytes(), move |way, items| match way {
            0 => filter.count_one_by_one(items, T::hashed),
            _ => filter.count_by_batches(items, T::hashed),
        })
    }
    #[cfg(not(target_arch = "x86_64"))]
    None
}

fn split_blocks<T: Item>(items: &[T], bits: f64) -> Option<Filled<T>> {
    let mut filter = SplitBlocks::new(params(items, bits).blocks()).expect("memory");
    filter.count_hits(&[], false)?;
    filter.insert_hashes(&hashes_of(items));
    peer(filter.bitset().len(), move |way, items| {
        T::with_hashes(items, |hashes| filter.count_hits(hashes, way == 1).expect("AVX2"))
    })
}

/// This project's Ribbon filter, with the rate that a blocked Bloom filter of the same bits per key
/// has: they take fewer.
fn sharded<T: Item>(items: &[T], bits: f64) -> Option<Filled<T>> {
    let rate = params(items, bits).false_positive_rate();
    let mut builder = RibbonOptions::new(rate.min(0.5)).builder();
    items.iter().for_each(|item| builder.insert_hash(item.hashed()));
    let filter = builder.finish().ok()?;
    peer(filter.as_bytes().len(), move |way, items: &[T]| match way {
        0 => T::with_hashes(items, |hashes| {
            hits(hashes.len(), |words| filter.contains_hashes_into(hashes, words))
        }),
        _ => items.iter().filter(|item| filter.contains_hash(item.hashed())).count(),
    })
}

fn ribbon_block<T: Item>(items: &[T], bits: f64) -> Option<Filled<T>> {
    // Building takes 40 bytes a key.
    if items.len() > 20_000_000 {
        return None;
    }
    let options = RibbonBlockOptions::new(bits).ok()?;
    let BuiltBlock::Ribbon(block) = options.build(&hashes_of(items)).ok()? else { return None };
    let filter = RibbonBlock::from_bytes(block).ok()?;
    peer(filter.as_bytes().len(), move |_, items: &[T]| {
        T::with_hashes(items, |hashes| {
            hits(hashes.len(), |words| filter.contains_hashes_into(hashes, words))
        })
    })
}

fn pleat<T: Item>(items: &[T], _: f64) -> Option<Filled<T>> {
    let filter = pleat::filter::Ribbon::<7>::from_keys_pleated(&hashes_of(items));
    peer(filter.size_bytes(), move |_, items: &[T]| {
        let answers = &mut [false; MAX_BATCH][..items.len()];
        T::with_hashes(items, |hashes| {
            filter.contains_batch(hashes, answers);
            answers.iter().filter(|&&answer| answer).count()
        })
    })
}

fn sbbf_rs<T: Item>(items: &[T], bits: f64) -> Option<Filled<T>> {
    // One bit per key and as many keys as bits: its numbers are whole.
    let mut filter = sbbf_rs_safe::Filter::new(1, bits_for(items, bits));
    items.iter().for_each(|item| _ = filter.insert_hash(item.hashed()));
    single(filter.as_bytes().len(), move |item: &T| filter.contains_hash(item.hashed()))
}

fn parquet<T: Item>(items: &[T], bits: f64) -> Option<Filled<T>> {
    // Of zeros, since its own sizes are powers of two.
    let mut filter = Sbbf::new(&vec![0; bits_for(items, bits).div_ceil(256) * 32]);
    items.iter().for_each(|item| filter.insert(item.bytes()));
    single(filter.num_blocks() * 32, move |item: &T| filter.check(item.bytes()))
}

fn fastbloom<T: Item>(items: &[T], bits: f64) -> Option<Filled<T>> {
    let filter = fastbloom::BloomFilter::with_num_bits(bits_for(items, bits));
    let mut filter = filter.seed(&0).expected_items(items.len());
    items.iter().for_each(|item| _ = filter.insert_hash(item.hashed()));
    single(filter.num_bits() / 8, move |item: &T| filter.contains_hash(item.hashed()))
}

fn bloomfilter<T: Item>(items: &[T], bits: f64) -> Option<Filled<T>> {
    let bytes = bits_for(items, bits).div_ceil(8);
    // Its two SipHash keys are the halves of the seed, which must differ.
    let seed = std::array::from_fn(|i| i as u8);
    let filter = bloomfilter::Bloom::<T>::new_with_seed(bytes, items.len(), &seed);
    let mut filter = filter.expect("bits and keys are not 0");
    items.iter().for_each(|item| filter.set(item));
    single(filter.len() as usize / 8, move |item: &T| filter.check(item))
}

fn fuse<T: Item>(items: &[T], _: f64) -> Option<Filled<T>> {
    let filter = xorf::BinaryFuse8::try_from(&hashes_of(items)).expect("the hashes are distinct");
    single(xorf::Filter::len(&filter), move |item: &T| {
        xorf::Filter::contains(&filter, &item.hashed())
    })
}
