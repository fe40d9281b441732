//! A program without `std`: its own panic handler, its own allocator, C's `main`. It builds
//! filters, stores, opens and queries them, and ends with 0 if every answer is right.
//!
//! A dependency that used `std` would bring a second panic handler, which the compiler rejects.
#![no_std]
#![no_main]

extern crate alloc;

use alloc::vec::Vec;
use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::panic::PanicInfo;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use core::time::Duration;

use blocked_bloom::{Bitmask, BloomFilter, Filter, FilterOptions, KeyHash, Sizing};
use blocked_bloom_formats::cassandra::{CassandraFilter, Layout as Words};
use blocked_bloom_formats::rocksdb::{FilterBlock, FilterBlockBuilder};
use blocked_bloom_lsm::{PartitionIndex, PartitionedFilterBuilder};
use blocked_bloom_resident::{ResidentOptions, ResidentPlanner, ResidentSize, ResidentTable};
use blocked_bloom_scalable::ScalableOptions;
use blocked_bloom_split::SplitBlockFilter;

const ROOM: usize = 1 << 20;

/// Allocates from one array, front to back, and never frees.
#[repr(align(64))]
struct Arena {
    bytes: UnsafeCell<[u8; ROOM]>,
    used: AtomicUsize,
}

// SAFETY: no two callers of `alloc` get the same bytes, and nothing else reaches them.
unsafe impl Sync for Arena {}

// SAFETY: what `alloc` gives lies in the array, is aligned, and is given once: `used` only grows.
unsafe impl GlobalAlloc for Arena {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let start = self.bytes.get().cast::<u8>();
        // Once full it stays full.
        let end = |used: usize| {
            let first = used + start.wrapping_add(used).align_offset(layout.align());
            first.checked_add(layout.size()).filter(|&end| end <= ROOM)
        };
        match self.used.fetch_update(Relaxed, Relaxed, end) {
            Ok(used) => {
                let free = start.wrapping_add(used);
                free.wrapping_add(free.align_offset(layout.align()))
            }
            Err(_) => null_mut(),
        }
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

#[global_allocator]
static ARENA: Arena = Arena { bytes: UnsafeCell::new([0; ROOM]), used: AtomicUsize::new(0) };

unsafe extern "C" {
    safe fn abort() -> !;
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    abort()
}

/// `core` and `alloc` are delivered compiled for unwinding, and name it; nothing calls it.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {
    abort()
}

#[unsafe(no_mangle)]
extern "C" fn main() -> i32 {
    i32::from(!matches!(run(), Some(true)))
}

/// Whether all keys are found and hardly any others. Returns `None` if a filter cannot be built or
/// opened.
fn run() -> Option<bool> {
    let (present, absent): (Vec<u32>, Vec<u32>) = (0..2_000).partition(|key| key % 2 == 0);
    let right = |contains: &dyn Fn(u32) -> bool| {
        present.iter().all(|&key| contains(key))
            && absent.iter().filter(|&&key| contains(key)).count() < 50
    };

    let options =
        FilterOptions::new(Sizing::BitsPerKey(10.0)).with_key_hash(KeyHash::Xxh3 { seed: 42 });
    let mut builder = options.builder();
    builder.extend(present.iter().map(|key| key.to_le_bytes())).ok()?;
    let stored = builder.finish_verified().ok()?.to_bytes();
    let filter = BloomFilter::from_bytes_any_hash(&stored).ok()?;
    let mut hits = Bitmask::new();
    let keys: Vec<[u8; 4]> = present.iter().map(|key| key.to_le_bytes()).collect();
    filter.contains_batch(&keys, &mut hits);
    let mut all =
        hits.count_hits() == keys.len() && right(&|key| filter.contains(key.to_le_bytes()));
    all &= BloomFilter::from_bytes_any_hash(&stored[1..]).is_err();
    let hasher = options.hasher().ok()?;
    all &= right(&|key| {
        BloomFilter::contains_hash_in(&stored, options.key_hash(), hasher.hash(key.to_le_bytes()))
    });

    let shared = options.atomic_filter(1_000).ok()?;
    shared.insert_batch(&keys).ok()?;
    all &= right(&|key| shared.contains(key.to_le_bytes()));

    let mut growing = ScalableOptions::for_filters(&options, 100).ok()?.build().ok()?;
    growing.insert_batch(&keys).ok()?;
    all &= growing.links().len() > 1 && right(&|key| growing.contains(key.to_le_bytes()));

    let mut builder = PartitionedFilterBuilder::new(options, 512).ok()?;
    let mut partitions = Vec::new();
    for key in &present {
        let full = builder.insert(key.to_be_bytes()).ok()?;
        partitions.extend(full.as_ref().map(BloomFilter::to_bytes));
    }
    let (last, index) = builder.finish().ok()?;
    partitions.push(last.to_bytes());
    let index = PartitionIndex::from_bytes_any_hash(index).ok()?;
    all &= right(&|key| {
        let at = index.locate(key.to_be_bytes());
        let filter = index.open(&at, &partitions[at.partition]);
        filter.map_or(true, |filter| filter.contains(key.to_be_bytes()))
    });

    // Memory for one of two filters.
    let mut planner = ResidentPlanner::new(ResidentOptions::new(1_000));
    let [cold, hot] = [1, 2].map(|number| planner.add(ResidentTable::new(number, 1_000)));
    planner.count(cold, 10);
    planner.count(hot, 10_000);
    all &= planner.tick(Duration::from_secs(1)) == [(hot, ResidentSize::Whole)];
    all &= planner.resize(hot, ResidentSize::Whole) && !planner.resize(cold, ResidentSize::Whole);

    let mut builder = FilterBlockBuilder::new(10.0).ok()?;
    builder.extend(keys.iter());
    let block = builder.finish().ok()?;
    let block = FilterBlock::from_bytes(&block).ok()?;
    all &= right(&|key| block.contains(key.to_le_bytes()));

    let mut split = SplitBlockFilter::new(1_000, 0.01).ok()?;
    keys.iter().for_each(|key| _ = split.insert(key));
    let split_bytes = split.to_bytes();
    let split = SplitBlockFilter::from_bytes(&split_bytes).ok()?;
    all &= right(&|key| split.contains(key.to_le_bytes()));

    let mut table = CassandraFilter::new(Words::Cassandra4, 1_000, 0.01).ok()?;
    keys.iter().for_each(|key| _ = table.insert(key));
    let table_bytes = table.into_inner();
    let table = CassandraFilter::from_bytes(&table_bytes, Words::Cassandra4).ok()?;
    all &= right(&|key| table.contains(key.to_le_bytes()));
    Some(all)
}
