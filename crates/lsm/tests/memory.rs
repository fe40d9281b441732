//! The builder of partitions without memory: the allocator refuses one allocation of a thread that
//! asks for it.

#![expect(unsafe_code, reason = "an allocator that refuses is an unsafe trait")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use blocked_bloom::{BuildError, FilterOptions, PrefixExtractor, Sizing};
use blocked_bloom_lsm::{PartitionBuildError, PartitionedFilterBuilder};

struct Refusing;

/// Smaller allocations never fail: the name of a prefix rule, which every builder's options copy,
/// is allocated infallibly.
const MIN_BYTES: usize = 64;

std::thread_local! {
    /// Allocations of this thread, of [`MIN_BYTES`] bytes or more, until the one that fails; 0 if
    /// none fails.
    static LEFT: Cell<u64> = const { Cell::new(0) };
    /// Bytes of the failed allocation; 0 before it.
    static REFUSED: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: `System` does the work; null is what an allocator without memory returns.
unsafe impl GlobalAlloc for Refusing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() >= MIN_BYTES {
            let left = LEFT.get();
            LEFT.set(left.saturating_sub(1));
            if left == 1 {
                REFUSED.set(layout.size());
                return std::ptr::null_mut();
            }
        }
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Refusing = Refusing;

type Partitions = Vec<Vec<u8>>;

/// Keys with 300 bytes in common, so that separators are long.
fn keys() -> Vec<Vec<u8>> {
    (0..3_000_u32).map(|key| [&[b'k'; 300][..], &key.to_be_bytes()].concat()).collect()
}

/// Returns the partitions and the index, while the allocation of this number fails; 0 if none
/// fails. After an error, every further call fails, even with memory again.
fn build(
    options: &FilterOptions,
    keys: &[Vec<u8>],
    refused: u64,
) -> Result<(Partitions, Vec<u8>), PartitionBuildError> {
    let mut partitions = Partitions::with_capacity(64);
    let mut builder = PartitionedFilterBuilder::new(options.clone(), 512)?;
    LEFT.set(refused);
    REFUSED.set(0);
    for key in keys {
        let inserted = builder.insert(key);
        // Allocations of the test itself do not fail.
        let left = LEFT.replace(0);
        match inserted {
            Ok(full) => partitions.extend(full.map(|full| full.to_bytes())),
            Err(error) => {
                for key in [key, &keys[0], &vec![b'z'; 400]] {
                    let again = builder.insert(key);
                    assert_eq!(again.map(|_| ()), Err(PartitionBuildError::AlreadyFailed));
                }
                let finished = builder.finish();
                assert_eq!(finished.map(|_| ()), Err(PartitionBuildError::AlreadyFailed));
                return Err(error);
            }
        }
        LEFT.set(left);
    }
    let finished = builder.finish();
    LEFT.set(0);
    let (last, index) = finished?;
    partitions.push(last.to_bytes());
    Ok((partitions, index))
}

/// Each allocation of [`MIN_BYTES`] bytes or more of a whole build fails in turn: hashes,
/// partitions, entries, separators, keys and the index. Each failure is an error, without a panic
/// or an abort.
#[test]
fn every_failed_allocation_is_an_error() {
    let keys = keys();
    let plain = FilterOptions::new(Sizing::BitsPerKey(10.0));
    for options in [plain.clone(), plain.with_prefixes(PrefixExtractor::fixed(302))] {
        let whole = build(&options, &keys, 0).unwrap();
        assert!(whole.0.len() > 4, "{} partitions", whole.0.len());
        let mut failures = 0;
        for refused in 1.. {
            let built = build(&options, &keys, refused);
            let bytes = REFUSED.get() as u64;
            if bytes == 0 {
                assert_eq!(built.unwrap(), whole);
                break;
            }
            failures += 1;
            let Err(PartitionBuildError::Build(BuildError::Alloc(error))) = built else {
                panic!("allocation {refused}, of {bytes} bytes: {built:?}")
            };
            assert!(error.bytes > 0, "{error} for {bytes} bytes");
        }
        // At least three per partition: its hashes, its blocks, its separator.
        assert!(failures > 3 * whole.0.len(), "{failures}");
    }
}
