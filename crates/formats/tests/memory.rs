//! Memory limits that the documentation promises, measured by an allocator: opening a hostile
//! footer, and large filters, which begin as zero pages. It counts each thread separately, since
//! the test harness also allocates.

#![expect(unsafe_code, reason = "an allocator that counts is an unsafe trait")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use blocked_bloom_formats::parquet::ParquetFile;

struct Counting;

std::thread_local! {
    static CURRENT: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
    static ZEROED: Cell<usize> = const { Cell::new(0) };
    /// Largest size that is granted.
    static LIMIT: Cell<usize> = const { Cell::new(usize::MAX) };
}

impl Counting {
    fn grow(bytes: usize) {
        CURRENT.set(CURRENT.get() + bytes);
        PEAK.set(PEAK.get().max(CURRENT.get()));
    }

    /// What another thread took may be given back by this one, which counts for neither.
    fn shrink(bytes: usize) {
        CURRENT.set(CURRENT.get().saturating_sub(bytes));
    }
}

// SAFETY: `System` does the work, or nothing is allocated and the result is null; the counters
// change nothing about it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() > LIMIT.get() {
            return std::ptr::null_mut();
        }
        Counting::grow(layout.size());
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.size() > LIMIT.get() {
            return std::ptr::null_mut();
        }
        Counting::grow(layout.size());
        ZEROED.set(ZEROED.get() + layout.size());
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        Counting::shrink(layout.size());
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if size > LIMIT.get() {
            return std::ptr::null_mut();
        }
        // Both may be there at once while the contents are moved.
        Counting::grow(size);
        // SAFETY: the caller's promises are passed on.
        let moved = unsafe { System.realloc(pointer, layout, size) };
        Counting::shrink(layout.size());
        moved
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Returns the maximum number of bytes allocated at once by `run`.
fn peak<R>(run: impl FnOnce() -> R) -> (usize, R) {
    let before = CURRENT.get();
    PEAK.set(before);
    let result = run();
    (PEAK.get() - before, result)
}

/// A builder that has lost a key returns no block, even with memory again.
#[cfg(feature = "rocksdb")]
#[test]
fn builders_of_rocksdb_blocks_that_lost_a_key_return_an_error() {
    use blocked_bloom_formats::rocksdb::{FilterBlockBuilder, RibbonBlockBuilder, RocksdbError};

    type Finish<B> = fn(B) -> Result<Vec<u8>, RocksdbError>;
    fn check<B: Extend<[u8; 8]> + Clone>(empty: B, finish: &[Finish<B>]) {
        let keys = || (0..5_000_u64).map(u64::to_le_bytes);
        for finish in finish {
            let mut builder = empty.clone();
            LIMIT.set(20_000);
            builder.extend(keys());
            LIMIT.set(usize::MAX);
            builder.extend(keys());
            let error = finish(builder).unwrap_err();
            assert!(matches!(error, RocksdbError::Alloc(_)), "{error}");

            // With memory for the keys, and none for the block.
            let mut builder = empty.clone();
            builder.extend(keys());
            assert!(finish(builder.clone()).is_ok());
            LIMIT.set(1_000);
            let error = finish(builder);
            LIMIT.set(usize::MAX);
            assert!(matches!(error, Err(RocksdbError::Alloc(_))), "{error:?}");
        }
    }
    for bloom in [FilterBlockBuilder::new(10.0), FilterBlockBuilder::legacy(10.0)] {
        check(bloom.unwrap(), &[FilterBlockBuilder::finish]);
    }
    let finish: [Finish<_>; 2] = [RibbonBlockBuilder::finish, RibbonBlockBuilder::finish_verified];
    check(RibbonBlockBuilder::new(10.0).unwrap(), &finish);
}

/// The first insertion does not wait until hundreds of megabytes are written.
#[cfg(all(feature = "redis", feature = "guava"))]
#[test]
fn large_filters_begin_as_zeros_of_the_allocator() {
    use blocked_bloom_formats::guava::GuavaFilter;
    use blocked_bloom_formats::redis::RedisFilter;

    let mut zeroed = 0;
    let mut more = || {
        let before = zeroed;
        zeroed = ZEROED.get();
        zeroed - before
    };
    more();
    let mut chain = RedisFilter::new(100, 0.01, Some(30_000)).unwrap();
    assert_eq!(more(), 0);
    (0..101_u32).for_each(|key| _ = chain.insert(key.to_le_bytes()).unwrap());
    assert!(chain.links().len() == 2 && chain.links()[1].as_bytes().len() > 4 << 20);
    assert_eq!(more(), chain.links()[1].as_bytes().len());
    let guava = GuavaFilter::new(10_000_000, 0.01).unwrap();
    assert_eq!(more(), guava.as_bytes().len());
    assert!(GuavaFilter::from_bytes(guava.as_bytes()).is_ok());
}

#[test]
#[expect(clippy::print_stdout, reason = "the figures that the documentation gives")]
fn hostile_footers_take_no_more_than_the_documentation_says() {
    for (name, footer) in hostile_footers() {
        let file = [b"PAR1", &footer[..], &(footer.len() as u32).to_le_bytes(), b"PAR1"].concat();
        let (bytes, _) = peak(|| ParquetFile::open(&file).map(|file| file.row_groups().len()));
        let times = bytes as f64 / file.len() as f64;
        println!("{name}: {times:.1} times the length of {} bytes", file.len());
        assert!(times > 5.0 && times < 65.0, "{name}: {bytes} bytes");
    }
}

/// Footers whose elements are as short as can be, each a power of two and one more, for which a
/// list that doubles takes most memory; and lists that announce more than there is, at every level.
fn hostile_footers() -> [(&'static str, Vec<u8>); 5] {
    const COUNT: usize = (1 << 17) + 1;
    // The head of a list of a type (12 a structure, 8 bytes) in the next field, or the field after
    // that.
    let list = |field: u8, kind: u8, length: usize| {
        let groups = [0, 7, 14].map(|shift| (length >> shift) as u8 | 0x80);
        [&[field << 4 | 9, 0xf0 | kind][..], &groups, &[(length >> 21) as u8]].concat()
    };
    // One row group, and what its columns begin with; the number of rows ends it.
    let row_group = |columns: Vec<u8>| [&[0x49, 0x1c][..], &columns, &[0x26, 0, 0, 0]].concat();
    let all = usize::pow(2, 28) - 1;
    [
        ("encrypted columns", row_group([list(1, 12, COUNT), [0x81, 0].repeat(COUNT)].concat())),
        ("names of a column", {
            let path = [&[0x1c, 0x3c, 0x15, 2][..], &list(2, 8, COUNT), &vec![0; COUNT]].concat();
            row_group([&[0x19][..], &path, &[0, 0]].concat())
        }),
        (
            "row groups",
            [list(4, 12, COUNT), [0x19, 0x0c, 0x26, 0, 0].repeat(COUNT), vec![0]].concat(),
        ),
        ("schema", [list(2, 12, COUNT), vec![0; COUNT], vec![0x29, 0x0c, 0]].concat()),
        ("lists longer than the file", {
            let heads = [list(4, 12, all), list(1, 12, all), vec![0x3c, 0x15, 2], list(2, 8, all)];
            [heads.concat(), vec![0xff; COUNT]].concat()
        }),
    ]
}
