//! Lookups of one key in the filters of many tables.

use blocked_bloom::{Block, Filter, Kernel};

/// Tables that one call looks up: one per bit of a word of answers.
const GROUP: usize = 64;

/// The block of a filter that is looked up on its own: it has the bits of every key.
static FULL_BLOCK: Block = [0xff; 64];

/// Looks up one key in the filters of up to 64 tables. Bit `i` of the result is 1 if table `i` may
/// contain the key, otherwise 0. Tables after the first 64 are not looked up.
///
/// `filter_and_hash` returns a table's filter and the key's hash for that filter. It is called once
/// per table, and once more for each filter without
/// [`block_and_probes`](Filter::block_and_probes).
///
/// Cost: that of [`Kernel::test_blocks`], so one cache line per Bloom filter. The memory of all
/// filters is prefetched before the first test.
///
/// ```
/// use blocked_bloom::FilterOptions;
/// use blocked_bloom_lsm::contains_in_each;
/// let options = FilterOptions::default();
/// let mut filters = [options.empty_filter(100)?, options.empty_filter(100)?];
/// filters[1].insert("fig")?;
/// let hash = options.hasher()?.hash("fig");
/// assert_eq!(contains_in_each(&filters, |filter| (filter, hash)), 0b10);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[inline]
pub fn contains_in_each<'t, 'f, T, F: Filter + ?Sized + 'f>(
    tables: &'t [T],
    filter_and_hash: impl Fn(&'t T) -> (&'f F, u64),
) -> u64 {
    let (tables, mut others) = (&tables[..tables.len().min(GROUP)], 0_u64);
    // A full block has the bits of any test: with the probes of the table before, all tests of a
    // key remain the same, for which the kernel computes the bits once.
    let mut last_probes = 1;
    let mut word = Kernel::default().test_blocks(tables.iter().enumerate().map(|(i, table)| {
        let (filter, hash) = filter_and_hash(table);
        let (block, probes) = filter.block_and_probes(hash).unwrap_or_else(|| {
            filter.prefetch_hash(hash);
            others |= 1 << i;
            (&FULL_BLOCK, last_probes)
        });
        last_probes = probes;
        (block, hash, probes)
    }));
    if others != 0 {
        word &= look_up_others(tables, filter_and_hash, others);
    }
    word
}

/// Looks up the tables whose bits are set in `others`. Returns ones, except for those of these
/// tables that lack the key.
///
/// Not inlined, so that the loop over the blocks keeps its registers.
#[inline(never)]
fn look_up_others<'t, 'f, T, F: Filter + ?Sized + 'f>(
    tables: &'t [T],
    filter_and_hash: impl Fn(&'t T) -> (&'f F, u64),
    mut others: u64,
) -> u64 {
    let mut word = !0;
    while others != 0 {
        let i = others.trailing_zeros();
        let (filter, hash) = filter_and_hash(&tables[i as usize]);
        word ^= u64::from(!filter.contains_hash(hash)) << i;
        others &= others - 1;
    }
    word
}

/// Returns the tables that may contain a key, in their order.
///
/// `filter_and_hash` returns a table's filter and the key's hash for that filter. If all filters
/// have one seed, the hash is the same for every table. With a seed per table it is not: a hash
/// made with another table's seed makes the filter answer "absent" for keys that it contains.
///
/// The iterator looks up 64 tables at a time with [`contains_in_each`]: it prefetches all filters,
/// so that the cache misses overlap, and computes the bits of the key once if all filters have the
/// same number of probes. It calls `filter_and_hash` up to twice per table.
///
/// Cost: less than lookups one by one, in the CPU's cache and from memory (`docs/benchmarks.md` has
/// figures).
///
/// ```
/// use blocked_bloom::{FilterOptions, Sizing};
/// use blocked_bloom_lsm::{TableFilter, tables_to_read};
/// struct Table {
///     name: &'static str,
///     filter: TableFilter,
/// }
/// let options = FilterOptions::new(Sizing::BitsPerKey(10.0));
/// let mut tables = Vec::new(); // the newest first
/// for (name, keys) in [("b", ["apple", "plum"]), ("a", ["apple", "fig"])] {
///     let mut builder = options.builder();
///     builder.extend(keys)?;
///     tables.push(Table { name, filter: TableFilter::Owned(builder.finish()?) });
/// }
/// let hash = options.hasher()?.hash("fig");
/// let mut to_read = tables_to_read(&tables, |table| (&table.filter, hash));
/// assert_eq!(to_read.next().map(|table| table.name), Some("a"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn tables_to_read<'t, T, F: Filter + ?Sized + 't>(
    tables: &'t [T],
    filter_and_hash: impl Fn(&'t T) -> (&'t F, u64),
) -> impl Iterator<Item = &'t T> {
    let (mut group, mut later, mut word) = (tables, tables, 0);
    core::iter::from_fn(move || {
        while word == 0 && !later.is_empty() {
            (group, later) = later.split_at(later.len().min(64));
            word = contains_in_each(group, &filter_and_hash);
        }
        let table = group.get(word.trailing_zeros() as usize);
        word &= word.wrapping_sub(1);
        table
    })
}
