//! What readers look up without a lock: the slot of a table, which counts the keys that it does not
//! have.

use alloc::sync::Arc;
use core::cell::Cell;
use core::fmt::{self, Debug, Formatter};
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize};

use blocked_bloom::{Bitmask, Filter, FormatError, KeyHash, PrefixExtractor};
use blocked_bloom_lsm::{FilterIdentity, TableFilter, TableFilterError};

use crate::cell::{EpochCell, FilterPin};

/// One absent lookup in this many is counted on average, and stands for as many. Counting each
/// would take 5 ns where several threads look up one table.
pub(crate) const SAMPLE: u32 = 16;

/// What a slot says about a key.
///
/// ```
/// use blocked_bloom_resident::Answer;
/// assert!(!Answer::Absent.must_read());
/// assert!(Answer::Maybe.must_read() && Answer::NotResident.must_read());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// Certainly not in the table: read nothing.
    Absent,
    /// May be in the table. Call [`FilterSlot::count_absent`] if the read finds nothing.
    Maybe,
    /// As `Maybe`, since no filter is in memory.
    NotResident,
}

impl Answer {
    /// Whether the table has to be read.
    #[inline]
    pub fn must_read(self) -> bool {
        self != Answer::Absent
    }
}

/// A filter in memory. Aligned, so that what a lookup reads of it is in one cache line.
#[repr(align(64))]
struct ResidentFilter {
    filter: TableFilter,
    bytes: usize,
    /// Bytes of this set that were evicted and that readers may still see.
    pinned: Arc<AtomicUsize>,
}

impl ResidentFilter {
    /// The kind that nearly all slots hold is inlined, the others are not.
    #[inline]
    fn contains_hash(&self, hash: u64) -> bool {
        match &self.filter {
            TableFilter::Owned(filter) => filter.contains_hash(hash),
            other => contains_in_other(other, hash),
        }
    }
}

#[cold]
#[inline(never)]
fn contains_in_other(filter: &TableFilter, hash: u64) -> bool {
    filter.contains_hash(hash)
}

impl Drop for ResidentFilter {
    fn drop(&mut self) {
        // `put` added it when it took the filter out of its slot, which is before every drop.
        self.pinned.fetch_sub(self.bytes, Relaxed);
    }
}

/// Holds the filter of one table, or of one partition, when it is in memory. An engine keeps it, in
/// its `Arc`, with the table.
///
/// Readers look up without a lock, whatever the set does meanwhile.
/// [`ResidentSet`](crate::ResidentSet) shows a whole get.
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
    held: EpochCell<ResidentFilter>,
    absent: Counter,
    is_loading: AtomicBool,
    index: u32,
    table: u64,
    /// Hash and identity of the only filter that the slot accepts.
    key_hash: KeyHash,
    identity: FilterIdentity,
    pinned: Arc<AtomicUsize>,
}

/// Absent lookups, divided by `SAMPLE`, wrapping; nobody resets it. It has a cache line of its own,
/// so that threads that write it do not take the slot's line from those that read it.
#[derive(Default)]
#[repr(align(64))]
struct Counter(AtomicU32);

std::thread_local! {
    /// Absent lookups of this thread until the next is counted.
    static UNCOUNTED: Cell<u32> = const { Cell::new(1) };
    /// State of a xorshift generator, never 0.
    static STATE: Cell<u64> = const { Cell::new(0x9e37_79b9_7f4a_7c15) };
}

/// 1 to 31, 16 on average: a fixed step would miss tables that lookups visit in a fixed order.
#[cold]
fn next_step() -> u32 {
    STATE.with(|state| {
        let mut word = state.get();
        word ^= word << 13;
        word ^= word >> 7;
        word ^= word << 17;
        state.set(word);
        1 + (word >> 32) as u32 % (2 * SAMPLE - 1)
    })
}

impl FilterSlot {
    /// A slot without a filter, under the planner's index.
    pub(crate) fn new(
        index: usize,
        table: u64,
        (key_hash, identity): (KeyHash, FilterIdentity),
        pinned: &Arc<AtomicUsize>,
    ) -> Self {
        FilterSlot {
            held: EpochCell::empty(),
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
        let (found, expected) = (filter.key_hash(), self.key_hash);
        if found != expected {
            return Err(FormatError::HashMismatch { found, expected }.into());
        }
        let (found, expected) = (filter.identity(), self.identity);
        if found != expected {
            return Err(TableFilterError::OtherFilter { found, expected });
        }
        Ok(())
    }

    /// Absent lookups that were counted so far, divided by [`SAMPLE`], wrapping.
    pub(crate) fn samples(&self) -> u32 {
        self.absent.0.load(Relaxed)
    }

    /// Begins a load; false if one was under way.
    pub(crate) fn begin_load(&self) -> bool {
        !self.is_loading.swap(true, Relaxed)
    }

    pub(crate) fn end_load(&self) {
        self.is_loading.store(false, Relaxed);
    }

    /// Whether the table may have the key with this hash. Absent keys are counted: they are what
    /// the filter is worth its memory for.
    ///
    /// Cost: some 2 ns more than [`TableFilter::contains_hash`], if everything is in a cache.
    #[inline]
    pub fn query(&self, pin: &FilterPin, hash: u64) -> Answer {
        match self.held.get(pin) {
            None => Answer::NotResident,
            Some(held) if held.contains_hash(hash) => Answer::Maybe,
            Some(_) => {
                self.count_absent(1);
                Answer::Absent
            }
        }
    }

    /// Looks up every hash: `hits` then has one bit per hash, 1 if the table may have the key; all
    /// are 1 without a filter in memory.
    pub fn query_hashes(&self, pin: &FilterPin, hashes: &[u64], hits: &mut Bitmask) {
        match self.held.get(pin) {
            None => hits.write(hashes.len(), |words| words.fill(u64::MAX)),
            Some(held) => {
                held.filter.contains_hashes(hashes, hits);
                self.count_absent(hits.count_misses());
            }
        }
    }

    /// Whether the table may have a key that starts with `start`, for scans, as
    /// [`TableFilter::contains_prefix`] says. A scan that the filter spares counts as an absent
    /// lookup; call [`found_nothing`](Self::found_nothing) after a read that was made for nothing.
    pub fn query_prefix(
        &self,
        pin: &FilterPin,
        extractor: &PrefixExtractor,
        start: impl AsRef<[u8]>,
    ) -> Answer {
        match self.held.get(pin) {
            None => Answer::NotResident,
            Some(held) if held.filter.contains_prefix(extractor, start) => Answer::Maybe,
            Some(_) => {
                self.count_absent(1);
                Answer::Absent
            }
        }
    }

    /// Prefetches what [`query`](Self::query) reads for this hash, as
    /// [`FilterPin::tables_to_read`] does for all tables of a get.
    #[inline]
    pub fn prefetch(&self, pin: &FilterPin, hash: u64) {
        if let Some(held) = self.held.get(pin) {
            held.filter.prefetch_hash(hash);
        }
    }

    /// The filter, if it is in memory. Its answers count only if they are given to
    /// [`count_absent`](Self::count_absent).
    #[inline]
    pub fn filter<'p>(&self, pin: &'p FilterPin) -> Option<&'p TableFilter> {
        self.held.get(pin).map(|held| &held.filter)
    }

    /// Call it when the table was read after [`Answer::Maybe`] or [`Answer::NotResident`] and did
    /// not have the key.
    #[inline]
    pub fn found_nothing(&self) {
        self.count_absent(1);
    }

    /// Counts lookups of keys that the table does not have: [`found_nothing`](Self::found_nothing)
    /// for a batch. One in 16 is counted, at random.
    #[inline]
    pub fn count_absent(&self, keys: usize) {
        UNCOUNTED.with(|uncounted| {
            let left = uncounted.get();
            match u32::try_from(keys) {
                Ok(keys) if keys < left => uncounted.set(left - keys),
                _ => uncounted.set(self.count_samples(left, keys)),
            }
        });
    }

    /// Counts samples, the first after `left` keys; returns how many are left until the next one.
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
        // No `fetch_add`, which waits for a line that another thread has: 4.7 ns a lookup where two
        // threads look up the same tables, 3.2 without. Of two counts at the same moment one may be
        // lost.
        let counted = self.absent.0.load(Relaxed);
        self.absent.0.store(counted.wrapping_add(count), Relaxed);
        next - rest
    }

    /// The number by which the engine knows the table.
    pub fn table(&self) -> u64 {
        self.table
    }

    /// Takes out what it holds and puts a filter in, or none. One thread at a time may call it: by
    /// the set's lock, or since nobody else has the slot.
    pub(crate) fn put(&self, filter: Option<TableFilter>) {
        let pin = FilterPin::new();
        if let Some(held) = self.held.get(&pin) {
            self.pinned.fetch_add(held.bytes, Relaxed);
        }
        let held = filter.map(|filter| ResidentFilter {
            bytes: filter.memory_bytes() as usize,
            filter,
            pinned: Arc::clone(&self.pinned),
        });
        self.held.swap(held);
    }
}

impl FilterPin {
    /// Returns the tables that must be read for a key, in their order: all whose slot does not
    /// answer [`Answer::Absent`].
    ///
    /// `slot_and_hash` returns a table's slot and the key's hash for the filter of that slot. If
    /// all filters have one seed, the hash is the same for every table. The call prefetches the
    /// memory that each lookup reads, in all slots, before the first lookup, so that the cache
    /// misses overlap. Absent answers are counted.
    ///
    /// Cost: as [`FilterSlot::prefetch`] for all tables, and then [`FilterSlot::query`] up to the
    /// table at which the caller stops.
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
        for table in tables {
            let (slot, hash) = slot_and_hash(table);
            slot.prefetch(self, hash);
        }
        tables.iter().filter(move |table| {
            let (slot, hash) = slot_and_hash(table);
            slot.query(self, hash).must_read()
        })
    }
}

/// Nobody else has it, so that what it holds is freed as soon as pins allow.
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
