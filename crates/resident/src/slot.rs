//! The slot of a table: readers look up its filter without a lock, and it counts the absent
//! lookups.

use alloc::sync::Arc;
use core::cell::Cell;
use core::fmt::{self, Debug, Formatter};
use core::ops::Bound;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize};

use blocked_bloom::parts::Header;
use blocked_bloom::{Bitmask, Filter, FormatError, KeyHash, PrefixExtractor};
use blocked_bloom_lsm::{FilterIdentity, TableFilter, TableFilterError, contains_in_each};

use crate::cell::{EpochCell, FilterPin};

/// One in this many absent lookups is counted on average, and stands for all of them. Counting each
/// one would take 5 ns where several threads look up the same table.
pub(crate) const SAMPLE: u32 = 16;

/// The answer of a slot for one key.
///
/// ```
/// use blocked_bloom_resident::Answer;
/// assert!(!Answer::Absent.must_read());
/// assert!(Answer::Maybe.must_read() && Answer::NotResident.must_read());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// The table certainly does not contain the key: read nothing.
    Absent,
    /// The table may contain the key. Call [`FilterSlot::count_absent`] if the read does not find
    /// it.
    Maybe,
    /// Like `Maybe`, because no filter is in memory.
    NotResident,
}

impl Answer {
    /// Whether the table must be read.
    #[inline]
    pub fn must_read(self) -> bool {
        self != Answer::Absent
    }
}

/// A filter in memory.
struct ResidentFilter {
    filter: TableFilter,
    bytes: usize,
    /// Bytes of this set that were evicted and that readers may still see.
    pinned: Arc<AtomicUsize>,
}

/// Inlines the lookup in the kind that nearly all slots contain, and in no other.
#[inline]
fn contains_hash(filter: &TableFilter, hash: u64) -> bool {
    match filter {
        TableFilter::Owned(filter) => filter.contains_hash(hash),
        other => contains_in_other_kind(other, hash),
    }
}

#[cold]
#[inline(never)]
fn contains_in_other_kind(filter: &TableFilter, hash: u64) -> bool {
    filter.contains_hash(hash)
}

impl Drop for ResidentFilter {
    fn drop(&mut self) {
        // `put` added the bytes when it took the filter out of its slot, which happens before every
        // drop.
        self.pinned.fetch_sub(self.bytes, Relaxed);
    }
}

/// The place for the filter of one table, or of one partition. The engine keeps the slot, in its
/// `Arc`, with the table.
///
/// Readers look up without a lock while the set loads, folds and evicts.
/// [`ResidentSet`](crate::ResidentSet) shows a complete get.
///
/// ```
/// use blocked_bloom_lsm::FilterIdentity;
/// use blocked_bloom_resident::{Answer, FilterPin, ResidentOptions, ResidentSet, ResidentTable};
/// let set = ResidentSet::new(ResidentOptions::new(1 << 20));
/// let identity = FilterIdentity::HeaderChecksum(0x1234); // from the manifest
/// let slot = set.add(ResidentTable::new(7, 1_000), identity);
/// assert_eq!(slot.query(&FilterPin::new(), 42), Answer::NotResident); // read the table
/// slot.count_absent(1);
/// ```
pub struct FilterSlot {
    cell: EpochCell<ResidentFilter>,
    absent: Counter,
    is_loading: AtomicBool,
    index: u32,
    table: u64,
    /// Hash and identity of the only filter that the slot accepts.
    key_hash: KeyHash,
    identity: FilterIdentity,
    pinned: Arc<AtomicUsize>,
}

/// Absent lookups divided by `SAMPLE`, wrapping, never reset. On a cache line of its own, so that
/// threads that write it do not take the slot's line from readers.
#[derive(Default)]
#[repr(align(64))]
struct Counter(AtomicU32);

std::thread_local! {
    /// Absent lookups of this thread until the next one is counted.
    static LOOKUPS_LEFT: Cell<u32> = const { Cell::new(1) };
    /// State of a xorshift generator, never 0.
    static RANDOM_STATE: Cell<u64> = const { Cell::new(0x9e37_79b9_7f4a_7c15) };
}

/// Returns 1 to 31, 16 on average. A fixed step would miss tables that lookups visit in a fixed
/// order.
#[cold]
fn next_step() -> u32 {
    RANDOM_STATE.with(|state| {
        let mut word = state.get();
        word ^= word << 13;
        word ^= word >> 7;
        word ^= word << 17;
        state.set(word);
        1 + (word >> 32) as u32 % (2 * SAMPLE - 1)
    })
}

impl FilterSlot {
    /// Creates a slot without a filter. `index` is the planner's.
    pub(crate) fn new(
        index: usize,
        table: u64,
        (key_hash, identity): (KeyHash, FilterIdentity),
        pinned: &Arc<AtomicUsize>,
    ) -> Self {
        FilterSlot {
            cell: EpochCell::empty(),
            absent: Counter::default(),
            is_loading: AtomicBool::new(false),
            index: index as u32,
            table,
            key_hash,
            identity,
            pinned: Arc::clone(pinned),
        }
    }

    pub(crate) fn index(&self) -> usize {
        self.index as usize
    }

    pub(crate) fn key_hash(&self) -> KeyHash {
        self.key_hash
    }

    /// Returns an error unless this is the filter that the slot accepts. Cost: that of
    /// [`TableFilter::identity`].
    pub(crate) fn check<B: AsRef<[u8]>>(
        &self,
        filter: &TableFilter<B>,
    ) -> Result<(), TableFilterError> {
        // 11 is the offset of the hash id in a stored filter.
        Header::check_key_hash(11, filter.key_hash(), self.key_hash).map_err(FormatError::from)?;
        let (found, expected) = (filter.identity(), self.identity);
        if found != expected {
            return Err(TableFilterError::OtherFilter { found, expected });
        }
        Ok(())
    }

    /// Returns the absent lookups counted so far, divided by [`SAMPLE`], wrapping.
    pub(crate) fn samples(&self) -> u32 {
        self.absent.0.load(Relaxed)
    }

    /// Begins a load. Returns false if one is in progress.
    pub(crate) fn begin_load(&self) -> bool {
        !self.is_loading.swap(true, Relaxed)
    }

    pub(crate) fn end_load(&self) {
        self.is_loading.store(false, Relaxed);
    }

    /// Looks up a key's hash, which must be that of the table's filter. Absent answers are counted:
    /// they are the reads that the filter saves.
    ///
    /// Cost: a few nanoseconds more than [`TableFilter::contains_hash`] if everything is in cache.
    #[inline]
    pub fn query(&self, pin: &FilterPin, hash: u64) -> Answer {
        self.answer(pin, |filter| contains_hash(filter, hash))
    }

    /// Looks up a batch: `hits` gets one bit per hash, 1 if the table may contain the key. All bits
    /// are 1 if no filter is in memory.
    pub fn query_hashes(&self, pin: &FilterPin, hashes: &[u64], hits: &mut Bitmask) {
        match self.cell.get(pin) {
            None => hits.write(hashes.len(), |words| words.fill(u64::MAX)),
            Some(resident) => {
                resident.filter.contains_hashes(hashes, hits);
                self.count_absent(hits.count_misses());
            }
        }
    }

    /// Looks up a scan: whether the table may contain a key that starts with `start`, as
    /// [`TableFilter::contains_prefix`] says. A scan that the filter rules out counts as an absent
    /// lookup. Call [`count_absent`](Self::count_absent) after a read that found nothing.
    pub fn query_prefix(
        &self,
        pin: &FilterPin,
        extractor: &PrefixExtractor,
        start: impl AsRef<[u8]>,
    ) -> Answer {
        self.answer(pin, |filter| filter.contains_prefix(extractor, start))
    }

    /// Looks up a range: whether the table may contain a key between the bounds, as
    /// [`TableFilter::contains_range`] says. A range that the filter rules out counts as an absent
    /// lookup.
    pub fn query_range(
        &self,
        pin: &FilterPin,
        extractor: &PrefixExtractor,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
    ) -> Answer {
        self.answer(pin, |filter| filter.contains_range(extractor, lower, upper))
    }

    /// Looks up the filter if it is in memory, and counts an absent answer.
    #[inline]
    fn answer(&self, pin: &FilterPin, contains: impl FnOnce(&TableFilter) -> bool) -> Answer {
        match self.filter(pin) {
            None => Answer::NotResident,
            Some(filter) if contains(filter) => Answer::Maybe,
            Some(_) => {
                self.count_absent(1);
                Answer::Absent
            }
        }
    }

    /// Returns the filter if it is in memory. Report the absent answers that you get from it to
    /// [`count_absent`](Self::count_absent).
    #[inline]
    pub fn filter<'p>(&self, pin: &'p FilterPin) -> Option<&'p TableFilter> {
        self.cell.get(pin).map(|resident| &resident.filter)
    }

    /// Counts lookups of keys that the table does not contain. Call it with 1 if a read after
    /// [`Answer::Maybe`] or [`Answer::NotResident`] did not find the key. One in 16 is counted, at
    /// random.
    #[inline]
    pub fn count_absent(&self, keys: usize) {
        LOOKUPS_LEFT.with(|lookups_left| {
            let left = lookups_left.get();
            match u32::try_from(keys) {
                Ok(keys) if keys < left => lookups_left.set(left - keys),
                _ => lookups_left.set(self.count_samples(left, keys)),
            }
        });
    }

    /// Counts samples, the first after `left` keys. Returns the number of keys until the next
    /// sample.
    #[cold]
    fn count_samples(&self, left: u32, keys: usize) -> u32 {
        let rest = keys - left as usize;
        let (whole, rest) = (rest / SAMPLE as usize, (rest % SAMPLE as usize) as u32);
        let (mut count, mut next) =
            (1 + u32::try_from(whole).unwrap_or(1 << 30).min(1 << 30), next_step());
        if next <= rest {
            count += 1;
            next += SAMPLE;
        }
        self.add_samples(count);
        next - rest
    }

    /// Adds absent lookups, divided by [`SAMPLE`].
    fn add_samples(&self, count: u32) {
        // Not `fetch_add`, which waits for a cache line that another thread owns: 4.7 ns per lookup
        // instead of 3.2 where two threads look up the same tables. One of two simultaneous counts
        // may be lost.
        let counted = self.absent.0.load(Relaxed);
        self.absent.0.store(counted.wrapping_add(count), Relaxed);
    }

    /// Returns the engine's number for the table.
    pub fn table(&self) -> u64 {
        self.table
    }

    /// Replaces the filter. Only one thread at a time may call it: the one with the set's lock, or
    /// the last owner of the slot.
    pub(crate) fn put(&self, filter: Option<TableFilter>) {
        let pin = FilterPin::new();
        if let Some(resident) = self.cell.get(&pin) {
            self.pinned.fetch_add(resident.bytes, Relaxed);
        }
        let resident = filter.map(|filter| ResidentFilter {
            bytes: filter.memory_bytes() as usize,
            filter,
            pinned: Arc::clone(&self.pinned),
        });
        self.cell.swap(resident);
    }
}

/// Counts an absent lookup in each slot.
#[inline]
fn count_absent_in_each<'t, T>(
    tables: &'t [T],
    slot_and_hash: impl Fn(&'t T) -> (&'t FilterSlot, u64),
) {
    let (mut left, mut later) = (LOOKUPS_LEFT.get() as usize, tables);
    while left <= later.len() {
        slot_and_hash(&later[left - 1]).0.add_samples(1);
        (left, later) = (next_step() as usize, &later[left..]);
    }
    LOOKUPS_LEFT.set((left - later.len()) as u32);
}

impl FilterPin {
    /// Returns the tables that must be read for a key, in their order: all whose slot does not
    /// answer [`Answer::Absent`].
    ///
    /// `slot_and_hash` returns a table's slot and the key's hash for the filter of that slot. If
    /// all filters have one seed, the hash is the same for every table. The iterator looks up 64
    /// tables at a time with [`contains_in_each`]: it prefetches all filters, so that the cache
    /// misses overlap, and computes the bits of the key once if all filters have the same number of
    /// probes. Absent answers are counted for the tables that the iterator passes. If all filters
    /// are in the CPU's cache, [`FilterSlot::query`] of each slot takes less time
    /// (`benches/resident.rs`).
    ///
    /// ```
    /// use blocked_bloom_lsm::FilterIdentity::HeaderChecksum;
    /// use blocked_bloom_resident::{FilterPin, ResidentOptions, ResidentSet, ResidentTable};
    /// let set = ResidentSet::new(ResidentOptions::new(1 << 20));
    /// let known = [(7, HeaderChecksum(0x1234)), (8, HeaderChecksum(0x5678))];
    /// let tables = known.map(|(table, identity)| {
    ///     set.add(ResidentTable::new(table, 1_000), identity)
    /// });
    /// let pin = FilterPin::new();
    /// for slot in pin.tables_to_read(&tables, |slot| (slot, 42)) {
    ///     slot.count_absent(1); // the table was read, and had no such key
    /// }
    /// ```
    pub fn tables_to_read<'t, T>(
        &self,
        tables: &'t [T],
        slot_and_hash: impl Fn(&'t T) -> (&'t FilterSlot, u64),
    ) -> impl Iterator<Item = &'t T> {
        static MISSING_FILTER: TableFilter = TableFilter::None(KeyHash::Caller { tag: 0 });
        let (mut group, mut later, mut word) = (&tables[..0], tables, 0_u64);
        core::iter::from_fn(move || {
            loop {
                let (absent, rest) =
                    group.split_at(group.len().min(word.trailing_zeros() as usize));
                count_absent_in_each(absent, &slot_and_hash);
                if let [table, rest @ ..] = rest {
                    (group, word) = (rest, word >> absent.len() >> 1);
                    return Some(table);
                }
                (group, later) = later.split_at(later.len().min(64));
                word = contains_in_each(group, |table| {
                    let (slot, hash) = slot_and_hash(table);
                    (slot.filter(self).unwrap_or(&MISSING_FILTER), hash)
                });
                if group.is_empty() {
                    return None;
                }
            }
        })
    }
}

/// Frees the filter as soon as the pins allow.
impl Drop for FilterSlot {
    fn drop(&mut self) {
        self.put(None);
    }
}

impl Debug for FilterSlot {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("FilterSlot").field("table", &self.table).finish_non_exhaustive()
    }
}
