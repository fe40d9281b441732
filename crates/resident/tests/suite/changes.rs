//! The memory of filters that are folded, evicted, refused or removed.

use std::sync::mpsc::channel;
use std::time::Duration;

use blocked_bloom::parts::HeaderError;
use blocked_bloom::{FilterOptions, FormatError, KeyHash, Sizing};
use blocked_bloom_lsm::TableFilterError;
use blocked_bloom_resident::{Answer, ResidentPlanner, ResidentSize, ResidentTable};

use crate::planner::free;
use crate::set::{SECOND, add, answer, filter, filters, hash, is_resident, load, set, stored};

/// The slot was made for this very filter, but lookups would hash keys by another seed.
#[test]
fn a_slot_refuses_its_own_filter_with_another_seed() {
    let key_hash = KeyHash::Xxh3 { seed: 7 };
    let mut builder = filters().with_key_hash(key_hash).builder();
    builder.extend((0..2_000_u64).map(u64::to_le_bytes)).unwrap();
    let own = builder.finish().unwrap();
    let set = set(1 << 20);
    let slot = add(&set, 0, &own.to_bytes(), 1_000.0);
    let expected = KeyHash::default();
    let mismatch = HeaderError::HashMismatch { offset: 11, found: key_hash, expected };
    let error = TableFilterError::Bloom(FormatError::Header(mismatch));
    assert_eq!(set.offer(&slot, own.clone()), Err(error));
    let request = set.tick(SECOND).pop().unwrap();
    assert_eq!(set.complete_load_with(request, own), Err(error));
    assert!(!is_resident(&slot));
    assert_eq!(answer(&slot, hash(0, 1)), Answer::NotResident);
}

/// Only the filter itself says whether it can be folded; the set learns it from an offer.
#[test]
fn a_filter_with_an_odd_number_of_blocks_is_not_requested_in_half() {
    for is_odd in [false, true] {
        let own = (1_000..).map(|keys| filter(0, keys));
        let own = own.into_iter().find(|own| own.params().blocks() % 2 == u32::from(is_odd));
        let own = own.unwrap();
        let stored = [own.to_bytes()];
        let set = set((stored[0].len() as u64 - 64) * 3 / 4);
        let slot = add(&set, 0, &stored[0], 1_000.0);
        assert_eq!(set.offer(&slot, own), Ok(false));
        assert_eq!(load(&set, &stored), usize::from(!is_odd));
        assert_eq!(set.snapshot().folded, u64::from(!is_odd));
    }
}

#[test]
fn an_offer_evicts_the_filters_that_it_displaces() {
    let (stored, bytes) = stored(2, 3_000);
    let set = set(bytes);
    let slots = [(0, 10.0), (1, 10_000.0)]
        .map(|(table, absent)| add(&set, table, &stored[table as usize], absent));
    for table in 0..2 {
        assert_eq!(set.offer(&slots[table as usize], filter(table, 3_000)), Ok(true));
        let resident = slots.each_ref().map(|slot| is_resident(slot));
        assert_eq!(resident, [table == 0, table == 1]);
        let snapshot = set.snapshot();
        assert_eq!((snapshot.resident, snapshot.resident_bytes), (1, bytes));
    }
}

/// Filters that are to be loaded whole stay as they are until then.
#[test]
fn a_larger_budget_evicts_nothing() {
    let (stored, bytes) = stored(2, 8_000);
    let set = set(2 * bytes);
    let slots = [0, 1].map(|table| add(&set, table, &stored[table as usize], 1_000.0));
    assert_eq!(load(&set, &stored), 2);
    set.set_budget(bytes);
    assert_eq!(set.snapshot().folded, 2);
    set.set_budget(2 * bytes);
    assert!(slots.iter().all(|slot| is_resident(slot)));
    assert_eq!((set.snapshot().folded, set.snapshot().resident_bytes), (2, bytes));

    let mut planner = ResidentPlanner::new(free(1_000));
    (0..2).for_each(|table| {
        planner.add(ResidentTable::new(table, 1_000).with_absent_per_second(9.0));
    });
    let [change] = planner.tick(SECOND)[..] else { panic!("one filter fits") };
    assert!(planner.resize(change.0, change.1));
    assert_eq!(planner.set_budget(2_000), []);
    assert_eq!(planner.tick(SECOND), [(1 - change.0, ResidentSize::Whole)]);
}

/// A thread that removed a filter and lives on does not keep its memory.
#[test]
fn filters_are_freed_while_the_thread_that_replaced_them_waits() {
    let (stored, bytes) = stored(1, 3_000);
    let set = &set(bytes);
    let slot = add(set, 0, &stored[0], 1_000.0);
    assert_eq!(load(set, &stored), 1);
    let ((removed, is_removed), (end, is_ended)) = (channel(), channel::<()>());
    std::thread::scope(|scope| {
        scope.spawn(move || {
            set.remove(&slot);
            removed.send(()).unwrap();
            is_ended.recv().unwrap_err();
        });
        is_removed.recv().unwrap();
        // Pins of other tests delay the epochs for a moment.
        let freed = (0..1_000).any(|_| {
            std::thread::sleep(Duration::from_millis(5));
            set.snapshot().pinned_bytes == 0
        });
        drop(end);
        assert!(freed, "{}", set.snapshot());
    });
}

#[test]
fn indices_of_removed_tables_are_reused() {
    let mut planner = ResidentPlanner::new(free(1_000));
    let all = [0, 1, 2].map(|table| planner.add(ResidentTable::new(table, 10)));
    for index in [all[1], all[0]] {
        planner.remove(index);
        assert_eq!(planner.add(ResidentTable::new(9, 10)), index);
    }
}

/// If half a filter saves less per byte than the whole, only the whole counts: another filter that
/// saves more per byte than the whole, but less than its second half, comes first.
#[test]
fn a_half_that_saves_less_per_byte_than_the_whole_is_no_step() {
    let options = FilterOptions::new(Sizing::MaxBytes(64 + 100 * 64)).with_probes(9);
    let params = options.params(8_500).unwrap();
    let (bytes, half_bytes) = (params.stored_bytes() as f64, f64::from(params.blocks() / 2 * 64));
    let saved = |keys| 1_000.0 * (1.0 - params.false_positive_rate_at(keys));
    let (whole, half) = (saved(8_500), saved(17_000));
    let second_half = (whole - half) / (bytes - half_bytes);
    assert!(half / half_bytes < whole / bytes && whole / bytes < second_half);
    let other = (whole / bytes + second_half) / 2.0 * bytes / 0.99;
    let mut planner = ResidentPlanner::new(free(params.stored_bytes()).with_folding(true));
    let table = |number| ResidentTable::new(number, params.stored_bytes());
    planner.add(table(0).with_params(&params).with_absent_per_second(1_000.0));
    let other = planner.add(table(1).with_absent_per_second(other as f32));
    assert_eq!(planner.tick(SECOND), [(other, ResidentSize::Whole)]);
}
