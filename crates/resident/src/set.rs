//! The resident set: one lock around the decisions which slots contain a filter.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::{self, Debug, Formatter};
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::Relaxed;
use core::time::Duration;
use std::sync::{Mutex, MutexGuard, PoisonError};

use blocked_bloom::KeyHash;
use blocked_bloom_lsm::{FilterIdentity, TableFilter, TableFilterError};

use crate::cell::FilterPin;
use crate::options::ResidentOptions;
use crate::planner::ResidentPlanner;
use crate::slot::{FilterSlot, SAMPLE};
use crate::snapshot::{Counters, ResidentSnapshot};
use crate::table::{MergeInput, ResidentSize, ResidentTable};

/// A filter to load, returned by [`ResidentSet::tick`]. Read its bytes and call
/// [`complete_load`](ResidentSet::complete_load), or [`fail_load`](ResidentSet::fail_load) if the
/// read fails. Until then the filter is not requested again. Dropping the request cancels it.
///
/// ```
/// use std::time::Duration;
/// use blocked_bloom_lsm::FilterIdentity;
/// use blocked_bloom_resident::{ResidentOptions, ResidentSet, ResidentTable};
/// let set = ResidentSet::new(ResidentOptions::new(1 << 20));
/// let table = ResidentTable::new(7, 1_000).with_absent_per_second(50.0);
/// let slot = set.add(table, FilterIdentity::HeaderChecksum(0x1234));
/// for load in set.tick(Duration::from_secs(1)) {
///     assert_eq!((load.table(), load.bytes()), (7, 1_000));
///     set.fail_load(load); // the disk did not answer
/// }
/// # drop(slot);
/// ```
#[derive(Debug)]
#[must_use = "a load that is dropped is wanted again by the next tick"]
pub struct LoadRequest {
    slot: Arc<FilterSlot>,
    size: ResidentSize,
    bytes: u64,
}

impl LoadRequest {
    /// Returns the engine's number for the table.
    pub fn table(&self) -> u64 {
        self.slot.table()
    }

    /// Returns the bytes of the stored filter, as far as known. Read all of them, even if the set
    /// then folds the filter.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for LoadRequest {
    fn drop(&mut self) {
        self.slot.end_load();
    }
}

/// Keeps the filters in memory that save the most reads per byte.
///
/// The set does no I/O and has no threads and no clock. About once a second the engine calls
/// [`tick`](Self::tick), which evicts and folds filters and returns the filters to read. Readers
/// look up the [slots](FilterSlot) without a lock. `docs/resident.md` shows the code of an engine,
/// and when a resident set pays.
///
/// The set copies each filter into its own memory, so that the budget covers exactly what it keeps,
/// and the owner of the bytes is released.
///
/// Cost: about 200 bytes per slot in addition to the filters. `cargo bench --bench resident`
/// measures a tick.
///
/// ```
/// use std::time::Duration;
/// use blocked_bloom::{FilterOptions, Sizing};
/// use blocked_bloom_lsm::TableFilter;
/// use blocked_bloom_resident::{Answer, FilterPin, ResidentOptions, ResidentSet, ResidentTable};
///
/// let filters = FilterOptions::new(Sizing::BitsPerKey(10.0)).foldable();
/// let mut builder = filters.builder();
/// builder.extend((0..1_000_u32).map(u32::to_le_bytes))?;
/// let stored = builder.finish()?.to_bytes();
/// let identity = TableFilter::from_bytes(&stored, filters.key_hash())?.identity();
///
/// let set = ResidentSet::new(ResidentOptions::new(1 << 20).with_filters(&filters));
/// // The engine keeps it with table 7.
/// let slot = set.add(ResidentTable::new(7, stored.len() as u64), identity);
///
/// // A get: one pin for all of its tables.
/// let hash = filters.hasher()?.hash(5_000_u32.to_le_bytes());
/// for _ in 0..1_000 {
///     let pin = FilterPin::new();
///     if slot.query(&pin, hash) == Answer::NotResident {
///         slot.count_absent(1); // the table was read, and had no such key
///     }
/// }
/// // Every second: load the requested filters.
/// for load in set.tick(Duration::from_secs(1)) {
///     assert_eq!(load.table(), 7);
///     set.complete_load(load, stored.clone())?;
/// }
/// assert_eq!(slot.query(&FilterPin::new(), hash), Answer::Absent);
/// assert_eq!(set.snapshot().resident, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ResidentSet {
    key_hash: KeyHash,
    pinned: Arc<AtomicUsize>,
    inner: Mutex<Inner>,
}

struct Inner {
    planner: ResidentPlanner,
    /// Indexed like the planner's tables.
    slots: Vec<Option<Arc<FilterSlot>>>,
    /// The last number read from each slot's counter.
    last_samples: Vec<u32>,
    counters: Counters,
}

impl Inner {
    /// Returns the index of a slot, unless it was removed or belongs to another set.
    fn index(&self, slot: &FilterSlot) -> Option<usize> {
        let index = slot.index();
        let stored = self.slots.get(index)?.as_ref()?;
        core::ptr::eq(&**stored, slot).then_some(index)
    }

    fn slot(&self, index: usize) -> &Arc<FilterSlot> {
        self.slots[index].as_ref().expect("every table of the planner has a slot")
    }

    fn insert(
        &mut self,
        index: usize,
        table: u64,
        accepted: (KeyHash, FilterIdentity),
        pinned: &Arc<AtomicUsize>,
    ) -> Arc<FilterSlot> {
        let slot = Arc::new(FilterSlot::new(index, table, accepted, pinned));
        if index == self.slots.len() {
            self.slots.push(None);
            self.last_samples.push(0);
        }
        self.last_samples[index] = 0;
        self.slots[index] = Some(Arc::clone(&slot));
        slot
    }

    /// Reports the lookups that a slot counted to the planner.
    fn take_counts(&mut self, index: usize) {
        let counted = self.slot(index).samples();
        let new = counted.wrapping_sub(core::mem::replace(&mut self.last_samples[index], counted));
        // A thread that was suspended before its store can set the counter back. The difference is
        // then meaningless.
        let new = if new > u32::MAX / 2 { 0 } else { new };
        self.planner.count(index, u64::from(new) * u64::from(SAMPLE));
    }

    /// Evicts or folds a filter that the planner already counts as evicted or folded.
    fn shrink(&mut self, index: usize, size: ResidentSize) {
        let slot = Arc::clone(self.slot(index));
        let pin = FilterPin::new();
        let folded = match (size, slot.filter(&pin)) {
            (ResidentSize::Half, Some(TableFilter::Owned(filter))) => filter.folded(2).ok(),
            _ => None,
        };
        match &folded {
            Some(_) => self.counters.folds += 1,
            None => {
                self.counters.evictions += 1;
                // If the planner chose to fold the filter, the copy could not be allocated.
                self.planner.resize(index, ResidentSize::None);
            }
        }
        slot.put(folded.map(TableFilter::Owned));
    }
}

/// Returns the bytes and rate of a filter, whole and folded to half.
fn measured_shape(filter: &TableFilter) -> impl FnOnce(ResidentTable) -> ResidentTable + use<> {
    /// Rates at ten bits per key, for filters whose number of keys is not known.
    const DEFAULT_RATES: (f64, f64) = (0.01, 0.12);
    let bytes = filter.memory_bytes();
    let (rate, half) = match filter {
        TableFilter::Owned(filter) if filter.is_pass_all() => (1.0, None),
        TableFilter::Owned(filter) => {
            let (params, keys) = (filter.params(), filter.keys_inserted());
            let rates = match keys {
                0 => DEFAULT_RATES,
                // Half of the blocks have the same load as all blocks with twice the keys.
                _ => (
                    params.false_positive_rate_at(keys),
                    params.false_positive_rate_at(keys.saturating_mul(2)),
                ),
            };
            (rates.0, params.blocks().is_multiple_of(2).then_some((bytes / 2, rates.1)))
        }
        other => (other.expected_false_positive_rate(), None),
    };
    move |table| table.with_shape(bytes, rate, half)
}

impl ResidentSet {
    /// Creates an empty set.
    pub fn new(options: ResidentOptions) -> Self {
        let key_hash = options.key_hash;
        let planner = ResidentPlanner::new(options.with_sampling(SAMPLE));
        let inner = Inner {
            planner,
            slots: Vec::new(),
            last_samples: Vec::new(),
            counters: Counters::default(),
        };
        ResidentSet { key_hash, pinned: Arc::default(), inner: Mutex::new(inner) }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a table, or a partition of one, whose filter is not in memory. Its slot accepts only
    /// the filter with this identity: any other would answer "absent" for keys that the table
    /// contains.
    pub fn add(&self, table: ResidentTable, identity: FilterIdentity) -> Arc<FilterSlot> {
        let inner = &mut *self.lock();
        let index = inner.planner.add(table);
        let key_hash = table.key_hash.unwrap_or(self.key_hash);
        inner.insert(index, table.table, (key_hash, identity), &self.pinned)
    }

    /// Adds a table that a compaction wrote. It inherits the lookups of its inputs, as
    /// [`ResidentPlanner::add_merged`] describes. [Remove](Self::remove) the inputs, and then
    /// [`offer`](Self::offer) the new filter.
    pub fn add_merged(
        &self,
        table: ResidentTable,
        identity: FilterIdentity,
        inputs: &[MergeInput<&FilterSlot>],
    ) -> Arc<FilterSlot> {
        let inner = &mut *self.lock();
        let known = inputs.iter().filter_map(|input| {
            let index = inner.index(input.table)?;
            Some(MergeInput { table: index, run: input.run, share: input.share })
        });
        let known: Vec<_> = known.collect();
        for input in &known {
            inner.take_counts(input.table);
        }
        let index = inner.planner.add_merged(table, &known);
        let key_hash = table.key_hash.unwrap_or(self.key_hash);
        inner.insert(index, table.table, (key_hash, identity), &self.pinned)
    }

    /// Removes a table and frees its filter. Readers that still have the slot get
    /// [`Answer::NotResident`](crate::Answer::NotResident).
    pub fn remove(&self, slot: &FilterSlot) {
        let inner = &mut *self.lock();
        if let Some(index) = inner.index(slot) {
            inner.planner.remove(index);
            inner.slots[index] = None;
            slot.put(None);
        }
    }

    /// Ages the counts by the time since the last tick, evicts and folds filters that are worth
    /// less than others, and returns the filters to load, the most valuable first. Call it about
    /// once a second.
    pub fn tick(&self, elapsed: Duration) -> Vec<LoadRequest> {
        let inner = &mut *self.lock();
        for index in 0..inner.slots.len() {
            if inner.slots[index].is_some() {
                inner.take_counts(index);
            }
        }
        let changes = inner.planner.tick(elapsed);
        let mut wanted = Vec::new();
        inner.counters.wanted_bytes = 0;
        for (index, size) in changes {
            if inner.planner.size(index) == size {
                inner.shrink(index, size);
                continue;
            }
            let bytes = inner.planner.table(index).bytes();
            let sum = inner.counters.wanted_bytes.saturating_add(bytes);
            inner.counters.wanted_bytes = sum;
            let slot = inner.slot(index);
            if slot.begin_load() {
                wanted.push(LoadRequest { slot: Arc::clone(slot), size, bytes });
            }
        }
        free_replaced();
        wanted
    }

    /// Verifies the bytes of a requested filter and keeps a copy. Returns false if the filter is
    /// not kept: the table was removed, the filter no longer fits into the budget, or it answers
    /// "maybe" to every key.
    ///
    /// Cost: reads the bytes twice (a Ribbon filter three times) before taking the lock.
    ///
    /// # Errors
    ///
    /// [`TableFilterError`] if the bytes are not a filter, have another hash, or are not the filter
    /// of this slot. The table then answers "maybe", and the filter is requested again after one
    /// minute; each further failure doubles the delay, up to one hour.
    pub fn complete_load(
        &self,
        load: LoadRequest,
        bytes: impl AsRef<[u8]>,
    ) -> Result<bool, TableFilterError> {
        match TableFilter::from_bytes(bytes.as_ref(), load.slot.key_hash()) {
            Ok(filter) => self.complete_load_with(load, filter),
            Err(error) => {
                self.fail_load(load);
                Err(error)
            }
        }
    }

    /// Keeps a copy of a requested filter that the caller has opened: needed for RocksDB's blocks,
    /// and possible for a partition opened by its index.
    ///
    /// # Errors
    ///
    /// As [`complete_load`](Self::complete_load).
    pub fn complete_load_with<B: AsRef<[u8]>>(
        &self,
        load: LoadRequest,
        filter: impl Into<TableFilter<B>>,
    ) -> Result<bool, TableFilterError> {
        match self.keep(&load.slot, filter.into(), Some(load.size)) {
            Ok(is_kept) => Ok(is_kept),
            Err(error) => {
                self.fail_load(load);
                Err(error)
            }
        }
    }

    /// Reports that a requested filter could not be read. It is requested again after one minute;
    /// each further failure doubles the delay, up to one hour. The failure of a removed table is
    /// ignored.
    pub fn fail_load(&self, load: LoadRequest) {
        let inner = &mut *self.lock();
        if let Some(index) = inner.index(&load.slot) {
            inner.counters.failed_loads += 1;
            inner.planner.fail_load(index);
        }
    }

    /// Offers a filter that the engine already has in memory, for example after a flush or a
    /// compaction. The set keeps a copy if the filter is worth more than those that it displaces;
    /// returns whether it does.
    ///
    /// Cost: as [`complete_load`](Self::complete_load).
    ///
    /// # Errors
    ///
    /// [`TableFilterError`] if the filter has another hash, is not the filter of this slot, or
    /// cannot be copied for lack of memory.
    pub fn offer<B: AsRef<[u8]>>(
        &self,
        slot: &FilterSlot,
        filter: impl Into<TableFilter<B>>,
    ) -> Result<bool, TableFilterError> {
        self.keep(slot, filter.into(), None)
    }

    /// `size` is the requested size, or `None` for an offer.
    fn keep<B: AsRef<[u8]>>(
        &self,
        slot: &FilterSlot,
        filter: TableFilter<B>,
        size: Option<ResidentSize>,
    ) -> Result<bool, TableFilterError> {
        slot.check(&filter)?;
        // Everything that reads the blocks happens before the lock is taken.
        let filter = filter.into_own_memory()?;
        let shape = measured_shape(&filter);
        let half = match (&filter, size) {
            (TableFilter::Owned(filter), Some(ResidentSize::Half)) => filter.folded(2).ok(),
            _ => None,
        };
        let inner = &mut *self.lock();
        let Some(index) = inner.index(slot) else { return Ok(false) };
        if inner.planner.update_shape(index, shape) {
            slot.put(None);
        }
        let saves = filter.expected_false_positive_rate() < 1.0 && filter.memory_bytes() > 0;
        let (filter, is_kept) = match (size, half) {
            _ if !saves => (filter, false),
            (Some(_), Some(half)) => {
                (TableFilter::Owned(half), inner.planner.resize(index, ResidentSize::Half))
            }
            (Some(_), None) => (filter, inner.planner.resize(index, ResidentSize::Whole)),
            (None, _) => match inner.planner.offer(index) {
                Some(evicted) => {
                    for other in evicted {
                        inner.shrink(other, ResidentSize::None);
                    }
                    (filter, true)
                }
                None => (filter, false),
            },
        };
        if is_kept {
            match size {
                Some(_) => inner.counters.loads += 1,
                None => inner.counters.offered += 1,
            }
            slot.put(Some(filter));
        }
        Ok(is_kept)
    }

    /// Sets the budget, and evicts or folds filters at once until they fit. If the budget grows,
    /// the next tick requests more filters.
    pub fn set_budget(&self, bytes: u64) {
        let inner = &mut *self.lock();
        for (index, size) in inner.planner.set_budget(bytes) {
            inner.shrink(index, size);
        }
        free_replaced();
    }

    /// Returns the absent lookups per second of every table. Persist them (twelve bytes per table),
    /// and pass them to [`ResidentTable::with_absent_per_second`] after a restart, so that the
    /// first tick loads the same filters again.
    pub fn statistics(&self) -> Vec<(u64, f32)> {
        self.lock().planner.statistics().collect()
    }

    /// Returns the figures of the set: filters in memory, saved reads, counters.
    pub fn snapshot(&self) -> ResidentSnapshot {
        free_replaced();
        let inner = &*self.lock();
        ResidentSnapshot::new(&inner.planner, inner.counters, self.pinned.load(Relaxed) as u64)
    }
}

/// Frees replaced filters that no reader uses. Epochs advance one at a time, and a filter is freed
/// two epochs after it was replaced.
fn free_replaced() {
    for _ in 0..3 {
        FilterPin::new().collect();
    }
}

impl Debug for ResidentSet {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ResidentSet").field(&self.snapshot()).finish()
    }
}
