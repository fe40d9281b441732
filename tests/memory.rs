//! The memory that building takes, counted by an allocator, is at most the documented amount.

#![expect(unsafe_code, reason = "an allocator that counts is an unsafe trait")]
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use blocked_bloom::{BloomFilter, BuildError, FilterOptions, KeyHash, Sizing};

struct Counting;

/// Larger allocations fail, independent of the machine's memory.
const REFUSED: usize = 1 << 30;

static CURRENT: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

impl Counting {
    fn grow(bytes: usize) {
        PEAK.fetch_max(CURRENT.fetch_add(bytes, Relaxed) + bytes, Relaxed);
    }
}

// SAFETY: `System` does the work; the counters change nothing about it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() > REFUSED {
            return std::ptr::null_mut();
        }
        Counting::grow(layout.size());
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        CURRENT.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Both may exist while the contents are moved.
        Counting::grow(size);
        // SAFETY: the caller's promises are passed on.
        let moved = unsafe { System.realloc(pointer, layout, size) };
        CURRENT.fetch_sub(layout.size(), Relaxed);
        moved
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Returns the largest number of bytes that were allocated at once during `run`, in addition to
/// those allocated before.
fn peak<R>(run: impl FnOnce() -> R) -> (usize, R) {
    let before = CURRENT.load(Relaxed);
    PEAK.store(before, Relaxed);
    let result = run();
    (PEAK.load(Relaxed) - before, result)
}

const KEYS: usize = 3_000_000;

/// The only test: allocations of other tests would be counted too.
#[test]
#[expect(clippy::print_stdout, reason = "the figures that the documentation gives")]
fn memory_is_what_the_documentation_says() {
    // The harness's own thread still allocates, which would be counted.
    std::thread::sleep(std::time::Duration::from_millis(200));
    let sizing = Sizing::BitsPerKey(10.0);
    let options = FilterOptions::new(sizing);
    let keys = || (0..KEYS as u64).map(u64::to_le_bytes);
    let filter_bytes = sizing.params(KEYS as u64).unwrap().stored_bytes() as usize;

    for keys_now in [1_000, 100_000, KEYS] {
        let (bytes, filter) = peak(|| {
            let before = CURRENT.load(Relaxed);
            let mut builder = options.builder();
            builder.extend(keys().take(keys_now)).unwrap();
            assert_eq!(builder.memory_bytes() as usize, CURRENT.load(Relaxed) - before);
            builder.finish()
        });
        let filter_bytes = filter.unwrap().params().stored_bytes() as usize;
        let beside = bytes - filter_bytes;
        println!(
            "builder, {keys_now} keys: {beside} bytes beside the filter, {:.2} per key",
            beside as f64 / keys_now as f64
        );
        assert!(beside <= keys_now * 8 * 11 / 10 + 2_048, "{beside} bytes for {keys_now} keys");
    }

    let before = CURRENT.load(Relaxed);
    let params = sizing.params(KEYS as u64).unwrap();
    drop(BloomFilter::with_params(params, KeyHash::default()).unwrap());
    assert_eq!(CURRENT.load(Relaxed), before, "a filter gives its memory back");

    let all: Vec<[u8; 8]> = keys().collect();
    let (bytes, filter) = peak(|| {
        let params = sizing.params(KEYS as u64).unwrap();
        let mut filter = BloomFilter::with_params(params, KeyHash::default()).unwrap();
        filter.insert_batch(&all).unwrap();
        filter
    });
    let beside = bytes.saturating_sub(filter_bytes);
    println!("known count: {beside} bytes beside the filter");
    assert!(beside <= 1 << 20, "{beside} bytes");
    assert_eq!(filter.keys_inserted(), KEYS as u64);

    let limit = 1 << 20;
    let (bytes, filter) = peak(|| {
        let limited = options.clone().with_memory_limit(limit).with_expected_items(KEYS as u64);
        let before = CURRENT.load(Relaxed);
        let mut builder = limited.builder();
        builder.extend(keys()).unwrap();
        let (told, held) = (builder.memory_bytes() as usize, CURRENT.load(Relaxed) - before);
        assert!(told <= held && told + 1_024 >= held, "{told} bytes told, {held} held");
        builder.finish_verified().unwrap()
    });
    let beside = bytes - filter_bytes;
    println!("limit of {limit} bytes and an estimate: {beside} bytes beside the filter");
    assert!(beside <= limit as usize * 11 / 10, "{beside} bytes");
    assert_eq!(filter.keys_inserted(), KEYS as u64);

    #[cfg(feature = "rayon")]
    {
        use rayon::prelude::*;
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        let (bytes, filter) = peak(|| {
            pool.install(|| {
                let mut builder = options.builder();
                builder.par_extend(all.par_iter()).unwrap();
                builder.par_finish()
            })
        });
        let beside = bytes - filter_bytes;
        println!(
            "parallel iterator: {beside} bytes beside the filter, {:.2} per key",
            beside as f64 / KEYS as f64
        );
        // The last chunk of each part may be half empty.
        assert!(beside <= KEYS * 8 * 11 / 10 + 64 * (512 << 10), "{beside} bytes");
        assert_eq!(filter.unwrap().keys_inserted(), KEYS as u64);

        // Enough for two threads to fill the filter by cuts.
        const LARGE_COUNT: usize = 9_000_000;
        let many: Vec<u64> = (0..LARGE_COUNT as u64).collect();
        let mut builder = options.builder();
        let (bytes, filter) = peak(|| {
            many.iter().for_each(|&hash| builder.insert_hash(hash).unwrap());
            pool.install(|| builder.par_finish())
        });
        let filter_bytes = filter.unwrap().params().stored_bytes() as usize;
        let beside = bytes - filter_bytes;
        println!(
            "builder, {LARGE_COUNT} hashes by two threads: {:.2} per key",
            beside as f64 / LARGE_COUNT as f64
        );
        assert!(beside <= LARGE_COUNT * 8 * 11 / 10, "{beside} bytes");
        let params = sizing.params(LARGE_COUNT as u64).unwrap();
        let mut filter = BloomFilter::with_params(params, KeyHash::default()).unwrap();
        let (bytes, done) = peak(|| pool.install(|| filter.par_insert_hashes(&many)));
        println!("known count by two threads: {bytes} bytes beside the filter");
        assert!(done.is_ok() && bytes <= 72 << 20, "{bytes} bytes");
    }

    // 125 GB.
    let mut builder = options.with_memory_limit(0).with_expected_items(100_000_000_000).builder();
    builder.insert("apple").unwrap();
    let (filter, error) = builder.finish_verified_or_pass_all().unwrap();
    assert!(filter.is_pass_all() && filter.contains("anything"));
    assert_eq!(filter.keys_inserted(), 1);
    assert!(matches!(error, Some(BuildError::Alloc(_))), "{error:?}");
}
