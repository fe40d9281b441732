//! The resident set: the filters in memory, the answers while they change, and damaged loads.

use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use blocked_bloom::parts::HeaderError;
use blocked_bloom::{
    Bitmask, BloomFilter, Filter, FilterOptions, FormatError, KeyHash, PrefixExtractor, Sizing,
};
use blocked_bloom_formats::rocksdb::{FilterBlockBuilder, KEY_HASH, hash_key};
use blocked_bloom_lsm::{
    FilterIdentity, PartitionIndex, PartitionLocation, PartitionedFilterBuilder, TableFilter,
    TableFilterError,
};
use blocked_bloom_resident::{
    Answer, FilterPin, FilterSlot, LoadRequest, MergeInput, ResidentOptions, ResidentSet,
    ResidentTable,
};
use blocked_bloom_ribbon::RibbonOptions;

use crate::common::Random;

pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// Filters of 128 blocks or more (about 7,000 keys) then have an even number of blocks.
pub(crate) fn filters() -> FilterOptions {
    FilterOptions::new(Sizing::BitsPerKey(10.0)).foldable()
}

pub(crate) fn hash(table: u64, key: u64) -> u64 {
    filters().hasher().unwrap().hash((table << 32 | key).to_le_bytes())
}

pub(crate) fn filter(table: u64, keys: u64) -> BloomFilter {
    let mut builder = filters().builder();
    builder.extend((0..keys).map(|key| (table << 32 | key).to_le_bytes())).unwrap();
    builder.finish().unwrap()
}

/// Stored filters of this many keys, and the bytes of memory of one.
pub(crate) fn stored(tables: u64, keys: u64) -> (Vec<Vec<u8>>, u64) {
    let stored: Vec<Vec<u8>> = (0..tables).map(|table| filter(table, keys).to_bytes()).collect();
    let bytes = stored[0].len() as u64 - 64;
    (stored, bytes)
}

pub(crate) fn set(budget: u64) -> ResidentSet {
    ResidentSet::new(ResidentOptions::new(budget).with_filters(&filters()))
}

/// The last eight bytes of the header.
pub(crate) fn identity(stored: &[u8]) -> FilterIdentity {
    FilterIdentity::HeaderChecksum(u64::from_le_bytes(stored[56..64].try_into().unwrap()))
}

/// A slot for a stored Bloom filter.
pub(crate) fn add(set: &ResidentSet, table: u64, stored: &[u8], absent: f32) -> Arc<FilterSlot> {
    let known = ResidentTable::new(table, stored.len() as u64 - 64);
    let known = if absent > 0.0 { known.with_absent_per_second(absent) } else { known };
    set.add(known, identity(stored))
}

pub(crate) fn load(set: &ResidentSet, stored: &[Vec<u8>]) -> usize {
    let wanted = set.tick(SECOND);
    let count = wanted.len();
    for load in wanted {
        let bytes = stored[load.table() as usize].clone();
        set.complete_load(load, bytes).unwrap();
    }
    count
}

pub(crate) fn answer(slot: &FilterSlot, hash: u64) -> Answer {
    slot.query(&FilterPin::new(), hash)
}

pub(crate) fn is_resident(slot: &FilterSlot) -> bool {
    slot.filter(&FilterPin::new()).is_some()
}

/// In order, including tables without a filter in memory. Tables that the caller does not reach are
/// not counted.
#[test]
fn tables_to_read_skips_slots_that_answer_absent() {
    let (stored, bytes) = stored(4, 2_000);
    let set = set(3 * bytes);
    let slots: Vec<_> = (0..4)
        .map(|table| add(&set, table, &stored[table as usize], if table < 3 { 100.0 } else { 0.0 }))
        .collect();
    assert_eq!(load(&set, &stored), 3);
    let to_read = |hash, most| -> Vec<u64> {
        let pin = FilterPin::new();
        let tables = pin.tables_to_read(&slots, |slot| (slot, hash));
        tables.take(most).map(|slot| slot.table()).collect()
    };
    let mut passed = 0;
    for key in 0..2_000 {
        for table in 0..4 {
            let found = to_read(hash(table, key), 4);
            assert!(found.contains(&table) && found.contains(&3) && found.is_sorted());
            passed += found.len() - if table == 3 { 1 } else { 2 };
        }
    }
    assert!(passed < 8_000 * 3 / 20, "{passed}");
    // Found in the second table: the first is counted, the third is not looked up.
    set.tick(SECOND);
    for _ in 0..100 {
        (0..2_000).for_each(|key| _ = to_read(hash(1, key), 1));
    }
    set.tick(SECOND);
    let rate = |table| set.statistics().iter().find(|known| known.0 == table).unwrap().1;
    assert!(rate(0) > 20.0 * rate(2), "{:?}", set.statistics());
}

/// Absent answers are counted for the slots that gave them, before the table that has the key and
/// after it, as often as by `count_absent`. Finds counts that a neighbour gets, that are lost at
/// the end of a run, or that meet the same tables again and again.
#[test]
fn each_table_that_is_passed_is_counted() {
    let (stored, bytes) = stored(6, 2_000);
    let set = set(6 * bytes);
    let slots: Vec<_> =
        (0..6).map(|table| add(&set, table, &stored[table as usize], 1.0)).collect();
    assert_eq!(load(&set, &stored), 6);
    let pin = FilterPin::new();
    // Always the same four tables, so that a fixed step would miss some.
    let contains = |slot: &&Arc<FilterSlot>, key| {
        slot.filter(&pin).is_some_and(|filter| filter.contains_hash(hash(3, key)))
    };
    let of_one = |&key: &u64| slots[..5].iter().filter(|slot| contains(slot, key)).count() == 1;
    let keys: Vec<u64> = (0..2_000).filter(of_one).collect();
    for _ in 0..100 * keys.len() {
        slots[5].count_absent(1);
    }
    for key in keys.iter().cycle().take(100 * keys.len()) {
        assert_eq!(pin.tables_to_read(&slots[..5], |slot| (slot, hash(3, *key))).count(), 1);
    }
    set.tick(SECOND);
    let rates = set.statistics();
    let rate = |table| rates.iter().find(|known| known.0 == table).unwrap().1;
    for table in [0, 1, 2, 4] {
        assert!((0.95..1.05).contains(&(rate(table) / rate(5))), "{rates:?}");
    }
    assert!(rate(3) < rate(5) / 100.0, "{rates:?}");
}

/// Finds an iterator that ends if none of the first 64 tables contains the key, and one that skips
/// the next table.
#[test]
fn a_table_after_64_absent_ones_is_returned() {
    let (stored, bytes) = stored(2, 2_000);
    for place in [0, 63, 64, 65, 127, 128, 199] {
        let set = set(200 * bytes);
        let number = |i| if i == place { 0 } else { 1 };
        let slots: Vec<_> =
            (0..200).map(|i| add(&set, number(i), &stored[number(i) as usize], 1.0)).collect();
        assert_eq!(load(&set, &stored), 200);
        let pin = FilterPin::new();
        let key = (0..2_000).map(|key| hash(0, key));
        let mut key =
            key.filter(|&hash| slots[(place + 1) % 200].query(&pin, hash) == Answer::Absent);
        let hash = key.next().unwrap();
        let to_read = pin.tables_to_read(&slots, |slot| (slot, hash));
        let to_read: Vec<u64> = to_read.map(|slot| slot.table()).collect();
        assert_eq!(to_read, [0]);
    }
}

#[test]
fn the_most_useful_filters_are_loaded() {
    let (stored, bytes) = stored(40, 2_000);
    let set = set(10 * bytes);
    let slots: Vec<_> =
        (0..40).map(|table| add(&set, table, &stored[table as usize], 0.0)).collect();
    let mut random = Random(9);
    for second in 0..30 {
        for _ in 0..20_000 {
            // Table t is looked up about 1 / (t + 1) as often.
            let share = (random.next() >> 11) as f64 / (1_u64 << 53) as f64;
            let table = (40_f64.powf(share) - 1.0) as usize;
            let pin = FilterPin::new();
            let absent = hash(99, random.next() >> 32);
            if slots[table].query(&pin, absent).must_read() {
                slots[table].count_absent(1);
            }
        }
        load(&set, &stored);
        assert!(set.snapshot().resident_bytes <= 10 * bytes, "in second {second}");
    }
    assert!(slots[..6].iter().all(|slot| is_resident(slot)));
    assert!(!slots[30..].iter().any(|slot| is_resident(slot)));
    let snapshot = set.snapshot();
    assert!(snapshot.saved_reads > 0.65 * snapshot.savable_reads, "{snapshot}");
    // 20,000 lookups a second were made, and one in 16 was counted.
    assert!((19_000.0..21_000.0).contains(&(snapshot.savable_reads / 0.99)), "{snapshot}");
    assert!(snapshot.saved_reads_per_mib > 0.0);
    for (table, slot) in slots.iter().enumerate().filter(|(_, slot)| is_resident(slot)) {
        for key in 0..2_000 {
            assert_eq!(answer(slot, hash(table as u64, key)), Answer::Maybe);
        }
        let absent = (0..2_000).filter(|&key| answer(slot, hash(77, key)) == Answer::Absent);
        assert!(absent.count() > 1_600);
    }
}

/// Fails if bytes are counted twice, or if those of evicted and removed filters are not released.
#[test]
fn resident_bytes_match_the_filters_in_memory() {
    let (stored, bytes) = stored(20, 8_000);
    let set = set(20 * bytes);
    let slots = (0..20).map(|table| {
        let known = ResidentTable::new(table, 1).with_absent_per_second(100.0 + table as f32);
        set.add(known, identity(&stored[table as usize]))
    });
    let slots: Vec<_> = slots.collect();
    let in_memory = || -> u64 {
        let pin = FilterPin::new();
        slots.iter().filter_map(|slot| slot.filter(&pin)).map(TableFilter::memory_bytes).sum()
    };
    let mut random = Random(2);
    for round in 0..200 {
        set.set_budget(bytes / 2 + random.next() % (12 * bytes));
        load(&set, &stored);
        let offered = (random.next() % 20) as usize;
        set.offer(&slots[offered], filter(offered as u64, 8_000)).unwrap();
        let snapshot = set.snapshot();
        assert_eq!(snapshot.resident_bytes, in_memory(), "in round {round}");
        assert!(snapshot.resident_bytes <= snapshot.budget);
    }
    let snapshot = set.snapshot();
    assert!(snapshot.loads > 20 && snapshot.evictions > 20 && snapshot.folds > 0, "{snapshot}");
    for slot in &slots {
        set.remove(slot);
        set.remove(slot); // again changes nothing
        assert!(!is_resident(slot));
    }
    let snapshot = set.snapshot();
    assert_eq!((snapshot.tables, snapshot.resident, snapshot.resident_bytes), (0, 0, 0));
    assert!(!slots.iter().any(|slot| is_resident(slot)));
}

/// A folded filter answers as the filter of half the blocks, and takes half the memory.
#[test]
fn filters_are_folded_if_memory_is_short() {
    let (stored, bytes) = stored(2, 8_000);
    let set = set(2 * bytes);
    let slots: Vec<_> =
        (0..2).map(|table| add(&set, table, &stored[table as usize], 1_000.0)).collect();
    assert_eq!(load(&set, &stored), 2);
    assert_eq!(set.snapshot().folded, 0);
    set.set_budget(bytes);
    let snapshot = set.snapshot();
    assert_eq!((snapshot.resident, snapshot.folded, snapshot.resident_bytes), (2, 2, bytes));
    for (table, slot) in slots.iter().enumerate() {
        let table = table as u64;
        let half = filter(table, 8_000).folded(2).unwrap();
        for key in 0..16_000 {
            let expected = half.contains_hash(hash(table, key));
            assert_eq!(answer(slot, hash(table, key)).must_read(), expected);
        }
    }
    set.set_budget(2 * bytes);
    assert_eq!(load(&set, &stored), 2);
    assert_eq!(set.snapshot().folded, 0);
    assert_eq!(set.snapshot().resident_bytes, 2 * bytes);
}

/// Bytes that a reader can still see are reported separately, and freed afterwards.
#[test]
fn pinned_bytes_are_freed_after_the_reader() {
    let (stored, bytes) = stored(1, 3_000);
    let set = set(bytes);
    let slot = add(&set, 0, &stored[0], 1_000.0);
    assert_eq!(load(&set, &stored), 1);
    let pin = FilterPin::new();
    let held = slot.filter(&pin).unwrap();
    set.set_budget(0);
    let snapshot = set.snapshot();
    assert_eq!((snapshot.resident_bytes, snapshot.pinned_bytes), (0, bytes));
    assert_eq!(answer(&slot, hash(0, 1)), Answer::NotResident);
    // Still intact: AddressSanitizer reports reads of a freed filter.
    assert!((0..3_000).all(|key| held.contains_hash(hash(0, key))));
    drop(pin);
    // Pins of other tests delay the epochs for a moment.
    let freed = (0..2_000).any(|_| {
        std::thread::sleep(Duration::from_millis(5));
        set.snapshot().pinned_bytes == 0
    });
    assert!(freed, "{}", set.snapshot());
}

#[test]
fn a_dropped_slot_frees_its_filter() {
    let (stored, bytes) = stored(1, 3_000);
    let set = set(bytes);
    let slot = add(&set, 0, &stored[0], 1_000.0);
    load(&set, &stored);
    set.remove(&slot);
    drop(slot);
    let freed = (0..2_000).any(|_| {
        std::thread::sleep(Duration::from_millis(5));
        set.snapshot().pinned_bytes == 0
    });
    assert!(freed);
}

/// The error is counted, the table answers "maybe", and the filter is requested again later.
#[test]
fn damaged_loads_are_counted_and_delayed() {
    let (stored, bytes) = stored(1, 2_000);
    let set = set(bytes);
    let slot = add(&set, 0, &stored[0], 1_000.0);
    let mut asked = Vec::new();
    for second in 1..=200_u64 {
        slot.count_absent(1_000);
        for load in set.tick(SECOND) {
            asked.push(second);
            let mut damaged = stored[0].clone();
            damaged[100] ^= 4;
            let error = set.complete_load(load, damaged).unwrap_err();
            assert!(matches!(error, TableFilterError::Bloom(FormatError::Header(_))), "{error}");
        }
        assert_eq!(answer(&slot, hash(0, 1)), Answer::NotResident);
    }
    assert_eq!(asked, [1, 61, 181]);
    let snapshot = set.snapshot();
    assert_eq!((snapshot.failed_loads, snapshot.loads, snapshot.resident_bytes), (3, 0, 0));
    // Repaired, it is loaded by the next request.
    let mut is_loaded = false;
    for _ in 0..300 {
        slot.count_absent(1_000);
        for load in set.tick(SECOND) {
            is_loaded = set.complete_load(load, stored[0].clone()).unwrap();
        }
    }
    assert!(is_loaded && answer(&slot, hash(0, 1)) == Answer::Maybe);
}

#[test]
fn failed_reads_and_other_seeds_are_failed_loads() {
    let (stored, bytes) = stored(2, 2_000);
    let set = set(2 * bytes);
    let slots: Vec<_> =
        (0..2).map(|table| add(&set, table, &stored[table as usize], 1_000.0)).collect();
    let mut wanted = set.tick(SECOND).into_iter();
    set.fail_load(wanted.next().unwrap());
    let other = filters().with_key_hash(KeyHash::Xxh3 { seed: 3 }).empty_filter(100).unwrap();
    let error = set.complete_load(wanted.next().unwrap(), other.to_bytes()).unwrap_err();
    assert!(matches!(
        error,
        TableFilterError::Bloom(FormatError::Header(HeaderError::HashMismatch { .. }))
    ));
    assert!(set.offer(&slots[0], other).is_err());
    assert_eq!(set.snapshot().failed_loads, 2);
    assert!(set.tick(SECOND).is_empty());
    assert!(
        set.offer(
            &slots[1],
            TableFilter::from_bytes(stored[1].clone(), KeyHash::default()).unwrap()
        )
        .unwrap()
    );
}

/// Each slot accepts its own partition only. Another one would answer "absent" for its keys.
#[test]
fn a_slot_accepts_only_its_own_partition() {
    let mut stored = Vec::new();
    let mut builder = PartitionedFilterBuilder::new(filters(), 4_096).unwrap();
    for key in 0..20_000_u64 {
        if let Some(partition) = builder.insert(key.to_be_bytes()).unwrap() {
            partition.write_to(&mut stored).unwrap();
        }
    }
    let (last, index) = builder.finish().unwrap();
    last.write_to(&mut stored).unwrap();
    let index = PartitionIndex::from_bytes_any_hash(index).unwrap();
    let partitions = index.partitions();
    assert!(partitions > 4);

    let set = set(1 << 20);
    let slots = (0..partitions).map(|partition| {
        let at = index.location(partition).unwrap();
        let table = ResidentTable::new(partition as u64, at.length);
        let identity = FilterIdentity::HeaderChecksum(at.header_checksum);
        set.add(table.with_absent_per_second(1_000.0), identity)
    });
    let slots: Vec<_> = slots.collect();
    let bytes = |at: PartitionLocation| stored[at.offset as usize..][..at.length as usize].to_vec();
    let at = |partition: usize| index.location(partition % partitions).unwrap();
    let open = |partition| index.open(&at(partition), bytes(at(partition))).unwrap();
    let expected = |partition: usize| FilterIdentity::HeaderChecksum(at(partition).header_checksum);

    for load in set.tick(SECOND) {
        let partition = load.table() as usize;
        let error = match partition % 3 {
            0 => set.complete_load(load, bytes(at(partition + 1))),
            1 => set.complete_load_with(load, open(partition + 1)),
            _ => {
                drop(load);
                set.offer(&slots[partition], open(partition + 1))
            }
        };
        let (found, expected) = (expected(partition + 1), expected(partition));
        assert_eq!(error, Err(TableFilterError::OtherFilter { found, expected }));
    }
    assert!(!slots.iter().any(|slot| is_resident(slot)));
    assert_eq!(set.snapshot().failed_loads as usize, partitions - partitions / 3);

    // Until the failed loads are requested again.
    for _ in 0..61 {
        for load in set.tick(SECOND) {
            let partition = load.table() as usize;
            let is_kept = match partition % 2 {
                0 => set.complete_load(load, bytes(at(partition))),
                _ => set.complete_load_with(load, open(partition)),
            };
            assert_eq!(is_kept, Ok(true));
        }
    }
    let hasher = index.hasher().unwrap();
    for key in 0..20_000_u64 {
        let key = key.to_be_bytes();
        let slot = &slots[index.locate(key).partition];
        assert_eq!(answer(slot, hasher.hash(key)), Answer::Maybe);
    }
}

/// Covers filters of every kind and form.
#[test]
fn a_slot_accepts_only_its_own_filter() {
    let set = set(1 << 20);
    let key_hash = filters().key_hash();
    let ribbon = |table: u64| {
        let mut builder = RibbonOptions::for_filters(&filters()).builder();
        builder.extend((0..2_000).map(|key| (table << 32 | key).to_le_bytes())).unwrap();
        builder.finish().unwrap().as_bytes().to_vec()
    };
    let open = |bytes| TableFilter::from_bytes(bytes, key_hash).unwrap();
    let bloom = |table| filter(table, 2_000);
    let compact = |table| open(filter(table, 2_000).to_compact_bytes().unwrap());
    type Pair = [TableFilter; 2];
    let kinds: [Pair; 4] = [
        [bloom(0).into(), bloom(1).into()],
        [open(bloom(0).to_bytes()), open(bloom(1).to_bytes())],
        [compact(0), compact(1)],
        [open(ribbon(0)), open(ribbon(1))],
    ];
    for [own, other] in kinds {
        let [expected, found] = [&own, &other].map(TableFilter::identity);
        let table = ResidentTable::new(0, own.memory_bytes());
        let slot = set.add(table.with_absent_per_second(1_000.0), expected);
        let error = TableFilterError::OtherFilter { found, expected };
        assert_eq!(set.offer(&slot, other), Err(error));
        assert!(!is_resident(&slot));
        assert_eq!(set.offer(&slot, own), Ok(true));
        assert_eq!(answer(&slot, hash(0, 17)), Answer::Maybe);
    }
    let [full, compact] = [bloom(0).into(), compact(0)];
    assert_eq!(full.identity(), compact.identity());
    assert_eq!(full.identity(), identity(&bloom(0).to_bytes()));
}

/// A load in progress is not requested twice; a dropped request is made again.
#[test]
fn a_load_is_requested_once_until_it_completes() {
    let (stored, bytes) = stored(1, 2_000);
    let set = set(bytes);
    let slot = add(&set, 0, &stored[0], 1_000.0);
    let wanted: Vec<LoadRequest> = set.tick(SECOND);
    assert_eq!((wanted.len(), wanted[0].table(), wanted[0].bytes()), (1, 0, bytes));
    assert!(set.tick(SECOND).is_empty());
    assert_eq!(set.snapshot().wanted_bytes, bytes);
    drop(wanted);
    let again = set.tick(SECOND).pop().unwrap();
    // Removed during the read: not kept.
    set.remove(&slot);
    assert_eq!(set.complete_load(again, stored[0].clone()), Ok(false));
    assert_eq!(set.snapshot().resident_bytes, 0);
}

/// A late answer for a removed table does not affect the table that reuses its index.
#[test]
fn a_late_load_of_a_removed_table_changes_nothing() {
    let (stored, bytes) = stored(2, 2_000);
    let set = set(2 * bytes);
    let removed = add(&set, 0, &stored[0], 1_000.0);
    let load = set.tick(SECOND).pop().unwrap();
    set.remove(&removed);
    let other = add(&set, 1, &stored[1], 1_000.0);
    assert_eq!(set.complete_load(load, stored[0].clone()), Ok(false));
    assert_eq!(set.offer(&removed, filter(0, 2_000)), Ok(false));
    assert!(!is_resident(&removed) && !is_resident(&other));
    assert_eq!(set.snapshot().resident_bytes, 0);
    // Its removal and its failure do not either.
    set.remove(&removed);
    let load = set.tick(SECOND).pop().unwrap();
    assert_eq!(load.table(), 1);
    set.remove(&other);
    let third = add(&set, 1, &stored[1], 1_000.0);
    set.fail_load(load);
    assert_eq!(set.snapshot().failed_loads, 0);
    let load = set.tick(SECOND).pop().expect("the third did not fail");
    assert_eq!(set.complete_load(load, stored[1].clone()), Ok(true));
    assert_eq!(answer(&third, hash(1, 7)), Answer::Maybe);
    // Its lookups are not the input of a compaction.
    removed.count_absent(1_000_000);
    let input = MergeInput { table: &*removed, run: 1, share: 1.0 };
    set.add_merged(ResidentTable::new(9, bytes), FilterIdentity::Length(bytes), &[input]);
    let merged = set.statistics().into_iter().find(|&(table, _)| table == 9);
    assert_eq!(merged, Some((9, 0.0)));
}

/// A new slot starts at 0, even if the previous table with its index had counts.
#[test]
fn a_reused_index_starts_counting_at_zero() {
    let set = set(1 << 20);
    let (stored, _) = stored(2, 1_000);
    let removed = add(&set, 0, &stored[0], 0.0);
    removed.count_absent(1_600_000);
    set.tick(SECOND);
    set.remove(&removed);
    let slot = add(&set, 1, &stored[1], 0.0);
    slot.count_absent(160_000);
    set.tick(SECOND);
    let [(1, counted)] = set.statistics()[..] else { panic!("{:?}", set.statistics()) };
    assert!((150_000.0..170_000.0).contains(&counted), "{counted}");
}

/// Impossible sizes, as a damaged manifest may contain.
#[test]
fn sums_of_huge_sizes_saturate() {
    let options = ResidentOptions::new(u64::MAX).with_filters(&filters());
    let set = ResidentSet::new(options.with_load_cost(0.0, f64::INFINITY));
    let params = filters().params(100_000).unwrap();
    let slots = [0, 1].map(|table| {
        let known = ResidentTable::new(table, u64::MAX - 1).with_params(&params);
        set.add(known.with_absent_per_second(1e6), FilterIdentity::Length(1_000))
    });
    // Half of each is to be kept, but all of each must be read.
    assert_eq!(set.tick(SECOND).len(), 2);
    let snapshot = set.snapshot();
    assert_eq!((snapshot.wanted_bytes, snapshot.stored_bytes), (u64::MAX, u64::MAX));
    slots.iter().for_each(|slot| set.remove(slot));
}

/// A filter with another seed is a failed load, and is not requested at every tick.
#[test]
fn a_rejected_opened_filter_delays_the_next_load() {
    let (stored, bytes) = stored(1, 2_000);
    let set = set(bytes);
    let slot = add(&set, 0, &stored[0], 1_000.0);
    let seeded = filters().with_key_hash(KeyHash::Xxh3 { seed: 3 }).empty_filter(2_000).unwrap();
    let load = set.tick(SECOND).pop().unwrap();
    assert!(set.complete_load_with(load, seeded).is_err());
    assert_eq!(set.snapshot().failed_loads, 1);
    slot.count_absent(1_000);
    assert!(set.tick(SECOND).is_empty());
}

/// A load is not kept if the budget has no room for it any more.
#[test]
fn a_late_load_does_not_exceed_the_budget() {
    let (stored, bytes) = stored(1, 2_000);
    let set = set(bytes);
    let slot = add(&set, 0, &stored[0], 1_000.0);
    let wanted = set.tick(SECOND).pop().unwrap();
    set.set_budget(bytes - 1);
    assert_eq!(set.complete_load(wanted, stored[0].clone()), Ok(false));
    assert!(!is_resident(&slot));
}

/// A block of RocksDB with all keys of a table.
fn rocksdb_block(table: u64, bits_per_key: f64, keys: u64) -> Vec<u8> {
    let mut builder = FilterBlockBuilder::new(bits_per_key).unwrap();
    builder.extend((0..keys).map(|key| (table << 32 | key).to_le_bytes()));
    builder.finish().unwrap()
}

fn rocksdb_set(budget: u64) -> ResidentSet {
    ResidentSet::new(ResidentOptions::new(budget).with_key_hash(KEY_HASH))
}

/// The slot's own filter, offered again, replaces itself. If the whole does not fit, the resident
/// half stays.
#[test]
fn offering_the_resident_filter_again_keeps_or_unfolds_it() {
    let set = set(20_000);
    let own = filter(0, 8_000);
    let slot = add(&set, 0, &own.to_bytes(), 1_000.0);
    assert_eq!(set.offer(&slot, own.clone()), Ok(true));
    let whole = set.snapshot().resident_bytes;
    for (budget, is_kept, folded) in
        [(whole, true, 0), (whole / 2, false, 1), (whole, true, 0), (20_000, true, 0)]
    {
        set.set_budget(budget);
        assert_eq!(set.offer(&slot, own.clone()), Ok(is_kept));
        let snapshot = set.snapshot();
        assert_eq!((snapshot.resident, snapshot.folded), (1, folded));
        assert_eq!(snapshot.resident_bytes, whole >> folded);
        assert!((0..8_000).all(|key| answer(&slot, hash(0, key)) == Answer::Maybe));
    }
}

/// A slot for a filter without a header rejects filters of another length and filters with a
/// header. A slot for a filter with a header rejects filters without one. Rejected filters are not
/// kept.
#[test]
fn a_slot_for_a_length_rejects_other_lengths() {
    let block = |keys| TableFilter::from_rocksdb_block(rocksdb_block(0, 10.0, keys)).unwrap();
    let (own, shorter, longer) = (block(2_000), block(1_900), block(2_100));
    let sealed = filters().with_key_hash(KEY_HASH).empty_filter(2_000).unwrap().to_bytes();
    let set = rocksdb_set(1 << 20);
    let table = ResidentTable::new(0, own.memory_bytes()).with_absent_per_second(1_000.0);
    let slot = set.add(table, own.identity());
    let none = TableFilter::None(KEY_HASH);
    let with_header = TableFilter::from_bytes(sealed.clone(), KEY_HASH).unwrap();
    for other in [&shorter, &longer, &none, &with_header] {
        let (found, expected) = (other.identity(), own.identity());
        let error = Err(TableFilterError::OtherFilter { found, expected });
        assert_eq!(set.offer(&slot, other.clone()), error);
        assert!(!is_resident(&slot));
    }
    // A read that returns no bytes, or those of another file.
    for bytes in [Vec::new(), sealed.clone()] {
        let load = (0..7_200).find_map(|_| {
            slot.count_absent(1_000);
            set.tick(SECOND).pop()
        });
        let error = set.complete_load(load.unwrap(), bytes).unwrap_err();
        assert!(matches!(error, TableFilterError::OtherFilter { .. }), "{error}");
    }
    assert_eq!(set.snapshot().failed_loads, 2);
    let other = set.add(ResidentTable::new(1, 1_000), identity(&sealed));
    let (found, expected) = (own.identity(), identity(&sealed));
    let error = TableFilterError::OtherFilter { found, expected };
    assert_eq!(set.offer(&other, own.clone()), Err(error));
    assert_eq!(set.offer(&slot, own), Ok(true));
}

/// Useless filters are not kept: pass-all filters, no filter, an index of partitions.
#[test]
fn pass_all_filters_are_not_kept() {
    let set = set(1 << 20);
    let slots = [BloomFilter::pass_all(KeyHash::default()).to_bytes(), Vec::new()].map(|bytes| {
        let filter = TableFilter::from_bytes(&bytes, KeyHash::default()).unwrap();
        let table = ResidentTable::new(0, 1_000).with_absent_per_second(1_000.0);
        let slot = set.add(table, filter.identity());
        let load = set.tick(SECOND).pop().unwrap();
        assert_eq!(set.complete_load(load, bytes), Ok(false));
        slot
    });
    assert!(!slots.iter().any(|slot| is_resident(slot)));
    assert!(set.tick(SECOND).is_empty());
    assert_eq!(set.snapshot().failed_loads, 0);
}

/// Filters are copied: the owner of the bytes is dropped, and the budget is exact.
#[test]
fn any_owner_of_bytes_is_accepted() {
    let mut builder = RibbonOptions::for_filters(&filters()).builder();
    builder.extend((0..2_000_u64).map(u64::to_le_bytes)).unwrap();
    let ribbon = builder.finish().unwrap().as_bytes().to_vec();
    for stored in [filter(0, 2_000).to_bytes(), ribbon] {
        let shared: Arc<[u8]> = stored.into();
        let set = set(1 << 20);
        let slot = add(&set, 0, &shared, 1_000.0);
        let load = set.tick(SECOND).pop().unwrap();
        assert_eq!(set.complete_load(load, Arc::clone(&shared)), Ok(true));
        let opened = TableFilter::from_bytes(Arc::clone(&shared), KeyHash::default()).unwrap();
        assert_eq!(set.offer(&slot, opened), Ok(true));
        assert_eq!(Arc::strong_count(&shared), 1);
        assert!((0..2_000).all(|key| answer(&slot, hash(0, key)) == Answer::Maybe));
    }
}

/// With one hash for all slots, nearly every key of the second table would be "absent".
#[test]
fn slots_with_different_seeds_each_get_their_own_hash() {
    let set = set(1 << 20);
    let key_hashes = [KeyHash::default(), KeyHash::Xxh3 { seed: 7 }];
    let tables = key_hashes.map(|key_hash| {
        let mut builder = filters().with_key_hash(key_hash).builder();
        builder.extend((0..2_000_u64).map(u64::to_le_bytes)).unwrap();
        let stored = builder.finish().unwrap().to_bytes();
        let table = ResidentTable::new(0, stored.len() as u64).with_absent_per_second(1_000.0);
        let slot = set.add(table.with_key_hash(key_hash), identity(&stored));
        (key_hash.hasher().unwrap(), slot, stored)
    });
    let loads = set.tick(SECOND);
    for (load, (.., stored)) in loads.into_iter().zip(&tables) {
        assert_eq!(set.complete_load(load, stored), Ok(true));
    }
    let pin = FilterPin::new();
    let count = |key: u64| {
        pin.tables_to_read(&tables, |(hasher, slot, _)| (&**slot, hasher.hash(key.to_le_bytes())))
            .count()
    };
    assert!((0..2_000).all(|key| count(key) == 2));
    assert!((2_000..4_000).map(count).sum::<usize>() < 200);
    let other = filters().with_key_hash(key_hashes[1]).empty_filter(100).unwrap();
    let error = set.offer(&tables[0].1, other).unwrap_err();
    assert!(matches!(
        error,
        TableFilterError::Bloom(FormatError::Header(HeaderError::HashMismatch { .. }))
    ));
}

#[test]
fn ribbon_filters_can_be_resident() {
    let mut builder = RibbonOptions::for_filters(&filters()).builder();
    builder.extend((0..2_000_u64).map(u64::to_le_bytes)).unwrap();
    let bytes = builder.finish().unwrap().as_bytes().to_vec();
    let set = set(1 << 20);
    let slot = add(&set, 0, &bytes, 1_000.0);
    let load = set.tick(SECOND).pop().unwrap();
    assert_eq!(set.complete_load(load, bytes.clone()), Ok(true));
    assert!((0..2_000).all(|key| answer(&slot, hash(0, key)) == Answer::Maybe));
    assert!(
        answer(&slot, hash(1, 1)) == Answer::Absent || answer(&slot, hash(1, 2)) == Answer::Absent
    );
    assert_eq!(set.snapshot().resident_bytes, bytes.len() as u64);
}

#[test]
fn rocksdb_blocks_can_be_resident() {
    let block = rocksdb_block(0, 10.0, 2_000);
    let set = rocksdb_set(1 << 20);
    let known = ResidentTable::new(0, block.len() as u64).with_absent_per_second(1_000.0);
    let slot = set.add(known, FilterIdentity::Length(block.len() as u64));
    let load = set.tick(SECOND).pop().unwrap();
    let filter = TableFilter::from_rocksdb_block(block).unwrap();
    assert_eq!(set.complete_load_with(load, filter), Ok(true));
    let key = |key: u64| hash_key(key.to_le_bytes());
    assert!((0..2_000).all(|i| answer(&slot, key(i)) == Answer::Maybe));
    assert!((2_000..4_000).filter(|&i| answer(&slot, key(i)) == Answer::Absent).count() > 1_900);
}

/// Fails if a compaction loses the lookups of its inputs.
#[test]
fn compacted_tables_replace_their_inputs() {
    let (stored, bytes) = stored(4, 2_000);
    let set = set(2 * bytes);
    let slots: Vec<_> =
        (0..2).map(|table| add(&set, table, &stored[table as usize], 500.0)).collect();
    let others: Vec<_> =
        (2..4).map(|table| add(&set, table, &stored[table as usize], 100.0)).collect();
    load(&set, &stored);
    assert!(slots.iter().all(|slot| is_resident(slot)));
    let inputs: Vec<_> =
        slots.iter().map(|slot| MergeInput { table: &**slot, run: 1, share: 1.0 }).collect();
    // Lookups since the last tick count for the new table.
    slots.iter().for_each(|slot| slot.count_absent(160_000));
    let table = ResidentTable::new(9, 2 * bytes);
    let own = filter(9, 4_000);
    let merged = set.add_merged(table, identity(&own.to_bytes()), &inputs);
    slots.iter().for_each(|slot| set.remove(slot));
    // None of the inputs is accepted as the new filter.
    assert!(set.offer(&merged, filter(0, 2_000)).is_err());
    assert_eq!(set.offer(&merged, own), Ok(true));
    assert!(is_resident(&merged) && !others.iter().any(|slot| is_resident(slot)));
    set.tick(SECOND);
    let rate = set.statistics().into_iter().find(|&(table, _)| table == 9).unwrap().1;
    assert!(rate > 3_000.0, "{rate}: 1,000 a second, and 320,000 in the last");
    assert!(is_resident(&merged));
}

#[test]
fn persisted_statistics_decide_the_first_loads() {
    let (stored, bytes) = stored(8, 2_000);
    let before = set(2 * bytes);
    let slots: Vec<_> =
        (0..8).map(|table| add(&before, table, &stored[table as usize], 0.0)).collect();
    for _ in 0..20 {
        for (table, slot) in slots.iter().enumerate() {
            slot.count_absent(if table == 3 || table == 5 { 10_000 } else { 10 });
        }
        load(&before, &stored);
    }
    let statistics = before.statistics();
    assert_eq!(statistics.len(), 8);
    let after = set(2 * bytes);
    let slots: Vec<_> = statistics
        .iter()
        .map(|&(table, absent)| add(&after, table, &stored[table as usize], absent))
        .collect();
    load(&after, &stored);
    let resident: Vec<usize> = (0..8).filter(|&table| is_resident(&slots[table])).collect();
    assert_eq!(resident, [3, 5]);
}

/// Batches answer as single lookups, and count as many absent keys.
#[test]
fn batches_answer_and_count_like_single_lookups() {
    let (stored, bytes) = stored(1, 2_000);
    let set = set(bytes);
    let slot = add(&set, 0, &stored[0], 1_000.0);
    let hashes: Vec<u64> = (0..4_000).map(|key| hash(0, key)).collect();
    let mut hits = Bitmask::new();
    slot.query_hashes(&FilterPin::new(), &hashes, &mut hits);
    assert_eq!(hits.count_hits(), 4_000);
    load(&set, &stored);
    let pin = FilterPin::new();
    for _ in 0..1_000 {
        slot.query_hashes(&pin, &hashes, &mut hits);
    }
    for (&hash, is_hit) in hashes.iter().zip(hits.iter()) {
        assert_eq!(slot.query(&pin, hash).must_read(), is_hit);
    }
    let absent = hits.count_misses() as f64 * 1_001.0;
    drop(pin);
    // The mean of this second and of the previous minute's 1,000 per second.
    set.tick(SECOND);
    let window = 60.0 / std::f64::consts::LN_2 + 1.0;
    let mean = 1_000.0 + (absent - 1_000.0) / (window + 1.0);
    let counted = f64::from(set.statistics()[0].1);
    assert!((0.97..1.03).contains(&(counted / mean)), "{counted} for {mean}");
}

/// Scans that a filter rules out count as absent lookups, because they are worth memory too.
#[test]
fn scans_are_ruled_out_and_counted() {
    let rule = PrefixExtractor::fixed(4);
    let options = filters().with_prefixes(rule.clone());
    let mut builder = options.builder();
    builder.extend((0..2_000_u32).map(|key| [key.to_be_bytes(), *b"/row"].concat())).unwrap();
    let stored = builder.finish().unwrap().to_bytes();
    let set = ResidentSet::new(ResidentOptions::new(1 << 20).with_filters(&options));
    let slot = add(&set, 0, &stored, 1_000.0);
    let query = |key: u32| slot.query_prefix(&FilterPin::new(), &rule, key.to_be_bytes());
    let range = |from: u32, to: u32| {
        let (from, to) = (from.to_be_bytes(), to.to_be_bytes());
        slot.query_range(&FilterPin::new(), &rule, Bound::Included(&from), Bound::Excluded(&to))
    };
    assert_eq!(query(9_999), Answer::NotResident);
    assert_eq!(range(9_999, 10_000), Answer::NotResident);
    load(&set, &[stored]);
    assert!((0..2_000).all(|key| query(key) == Answer::Maybe));
    let one = |key: [u8; 4]| {
        let bound = Bound::Included(&key[..]);
        slot.query_range(&FilterPin::new(), &rule, bound, bound)
    };
    assert!((0..2_000_u32).all(|key| one(key.to_be_bytes()) == Answer::Maybe));
    let before = set.statistics()[0].1;
    assert!((0..7).all(|key| range(key << 8 | 250, (key << 8) + 256) == Answer::Maybe));
    assert_eq!(range(1_999, 70_000), Answer::Maybe, "too many prefixes");
    let absent = (0..320_000).filter(|key| query(2_000 + key) == Answer::Absent).count();
    assert!(absent > 310_000);
    let ranges = (0..320_000).filter(|key| range(2_048 + key, 2_049 + key) == Answer::Absent);
    let absent = absent + ranges.count();
    assert!(absent > 620_000);
    set.tick(SECOND);
    let window = 60.0 / std::f32::consts::LN_2 + 1.0;
    let expected = before + (absent as f32 - before) / (window + 1.0);
    let counted = set.statistics()[0].1;
    assert!((0.95..1.05).contains(&(counted / expected)), "{counted} for {expected}");
}

#[test]
fn a_snapshot_prints_each_figure() {
    let text = set(1_000).snapshot().to_string();
    for line in [
        "bloom.filter.resident : 0\n",
        "bloom.filter.resident.budget.bytes : 1000\n",
        "bloom.filter.resident.pinned.bytes : 0\n",
        "bloom.filter.load.failed COUNT : 0\n",
        "bloom.filter.saved.reads.per.second.per.MiB : 0.000\n",
    ] {
        assert!(text.contains(line), "{text}");
    }
    assert_eq!(text.lines().count(), 16);
}

/// Only the pointer in the slot tells the reader that the filter is complete. Miri and
/// ThreadSanitizer report a data race if the pointer is published without `Release`; other machines
/// than x86 can then read a filter that is not written yet.
#[test]
fn a_reader_that_sees_a_filter_sees_all_of_it() {
    let (stored, bytes) = stored(1, 50);
    let set = set(2 * bytes);
    let slot = add(&set, 0, &stored[0], 100.0);
    let hashes: Vec<u64> = (0..50).map(|key| hash(0, key)).collect();
    for _ in 0..if cfg!(miri) { 3 } else { 100 } {
        let load = set.tick(SECOND).pop().expect("the filter is wanted");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // Not without end, if the filter is not kept.
                for _ in 0..1_000_000 {
                    if is_resident(&slot) {
                        break;
                    }
                    std::thread::yield_now();
                }
                let found = hashes.iter().filter(|&&hash| answer(&slot, hash) == Answer::Maybe);
                assert_eq!(found.count(), 50);
            });
            assert!(set.complete_load(load, &stored[0]).unwrap());
        });
        set.set_budget(0);
        assert!(!is_resident(&slot));
        set.set_budget(2 * bytes);
    }
}

/// 10^8 lookups, half of them of present keys, while another thread loads, folds, evicts, removes
/// and adds filters. A present key must never be "absent". A freed filter shows up as garbage, and
/// as an error under AddressSanitizer.
#[test]
fn lookups_never_miss_keys_while_another_thread_evicts() {
    const TABLES: u64 = 16;
    const READERS: u64 = 2;
    // AddressSanitizer is about ten times as slow, so it runs fewer.
    let lookups = std::env::var("RESIDENT_LOOKUPS").map_or(100_000_000, |n| n.parse().unwrap());
    let (stored, bytes) = stored(TABLES, 8_000);
    let set = set(6 * bytes);
    let slots: Vec<_> =
        (0..TABLES).map(|table| add(&set, table, &stored[table as usize], 100.0)).collect();
    // The keys of each table, and as many absent keys.
    let hashes: Vec<Vec<u64>> =
        (0..TABLES).map(|table| (0..16_000).map(|key| hash(table, key)).collect()).collect();
    let done = AtomicBool::new(false);
    let answered = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for reader in 0..READERS {
            let (slots, hashes, answered) = (&slots, &hashes, &answered);
            scope.spawn(move || {
                let (mut made, mut by_filter) = (reader, 0);
                while made < lookups / READERS {
                    let pin = FilterPin::new();
                    for _ in 0..8 {
                        made += 1;
                        let table = (made % TABLES) as usize;
                        let key = (made.wrapping_mul(0x9e37_79b9) >> 7) as usize % 16_000;
                        match slots[table].query(&pin, hashes[table][key]) {
                            Answer::Absent => assert!(key >= 8_000, "table {table}, key {key}"),
                            Answer::Maybe => by_filter += 1,
                            Answer::NotResident => {
                                if key >= 8_000 {
                                    slots[table].count_absent(1);
                                }
                            }
                        }
                    }
                }
                answered.fetch_add(by_filter, Relaxed);
            });
        }
        let (set, done, stored) = (&set, &done, &stored);
        let evictor = scope.spawn(move || {
            let mut round = 0;
            while !done.load(Relaxed) {
                round += 1;
                set.set_budget((1 + round * 5 % 7) * bytes);
                load(set, stored);
                assert!(set.snapshot().resident_bytes <= set.snapshot().budget);
            }
        });
        // The scope waits for the readers, and this waits until they have told the evicting thread.
        while answered.load(Relaxed) == 0 && !evictor.is_finished() {
            std::thread::sleep(Duration::from_millis(20));
        }
        done.store(true, Relaxed);
    });
    let snapshot = set.snapshot();
    assert!(snapshot.evictions > 50 && snapshot.folds > 0, "{snapshot}");
    assert!(answered.load(Relaxed) > lookups / 20, "{} by a filter", answered.load(Relaxed));
}
