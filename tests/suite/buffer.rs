//! The memory of blocks is aligned and zeroed, can be shrunk, and is the same with any number of
//! threads.

use blocked_bloom::parts::BlockBuffer;

/// Sizes near a huge page, at which Linux buffers start to be aligned to huge pages.
const SIZES: [u32; 9] = [1, 2, 3, 1_000, 32_767, 32_768, 32_769, 65_536, 70_001];

fn aligned_to(blocks: usize) -> usize {
    if cfg!(target_os = "linux") && blocks * 64 >= 2 << 20 { 2 << 20 } else { 64 }
}

fn check_address(buffer: &BlockBuffer) {
    let address = buffer.as_ptr().addr();
    assert!(address.is_multiple_of(aligned_to(buffer.len())), "{buffer:?} at {address:#x}");
}

/// Memory that was used before must be zeroed as well: each size is allocated twice, after a buffer
/// that was filled.
#[test]
fn buffers_are_aligned_and_zeroed() {
    for huge_pages in [true, false] {
        for blocks in SIZES {
            for _ in 0..2 {
                let mut buffer = BlockBuffer::zeroed(blocks, huge_pages).unwrap();
                assert_eq!(buffer.len(), blocks as usize);
                check_address(&buffer);
                assert!(buffer.as_flattened().iter().all(|&byte| byte == 0), "{buffer:?}");
                buffer.fill([0xff; 64]);
                assert!(buffer.as_flattened().iter().all(|&byte| byte == 0xff));
            }
        }
    }
    assert_eq!(BlockBuffer::zeroed(0, true).unwrap().len(), 1, "at least one");
}

fn numbered(blocks: u32, huge_pages: bool) -> BlockBuffer {
    let mut buffer = BlockBuffer::zeroed(blocks, huge_pages).unwrap();
    for (number, block) in buffer.iter_mut().enumerate() {
        block[..8].copy_from_slice(&(number as u64).to_le_bytes());
        block[63] = !(number as u8);
    }
    buffer
}

#[test]
fn copies_are_aligned_and_independent() {
    for huge_pages in [true, false] {
        for blocks in SIZES {
            let buffer = numbered(blocks, huge_pages);
            // A copy of borrowed blocks at any address.
            let borrowed = [&[0; 3][..], buffer.as_flattened()].concat();
            let copy = BlockBuffer::copy_of(borrowed[3..].as_chunks().0, huge_pages).unwrap();
            for mut copy in [copy, buffer.clone()] {
                check_address(&copy);
                assert_eq!(*copy, *buffer);
                copy.fill([7; 64]);
            }
            assert_eq!(*buffer, *numbered(blocks, huge_pages));
        }
    }
}

/// Freeing memory may move the blocks to memory with another alignment. The first blocks must not
/// change.
#[test]
fn the_first_blocks_are_kept() {
    for huge_pages in [true, false] {
        for blocks in SIZES {
            let whole = numbered(blocks, huge_pages);
            for kept in [0, 1, 2, blocks / 3, blocks / 2, blocks / 2 + 1, blocks - 1, blocks] {
                let mut buffer = whole.clone();
                buffer.keep_first(kept);
                // At least one, and at most the existing number.
                let left = kept.clamp(1, blocks) as usize;
                assert_eq!(*buffer, whole[..left], "{kept} of {blocks}");
                assert!(buffer.as_ptr().addr().is_multiple_of(64));
                buffer.keep_first(u32::MAX);
                assert_eq!(buffer.len(), left);
                buffer.fill([1; 64]);
                let copy = buffer.clone();
                check_address(&copy);
                assert_eq!(*copy, *buffer);
            }
            // In steps, down to the last block.
            let mut buffer = whole.clone();
            while buffer.len() > 1 {
                let half = buffer.len() as u32 / 2;
                buffer.keep_first(half);
                check_address(&buffer);
                assert_eq!(*buffer, whole[..half as usize]);
            }
        }
    }
}

#[test]
fn buffers_may_cross_threads_and_show_no_bits() {
    fn shared<T: Send + Sync + Clone>(_: &T) {}
    let buffer = numbered(1_000, false);
    shared(&buffer);
    std::thread::scope(|scope| {
        let moved = buffer.clone();
        scope.spawn(move || assert_eq!(moved.len(), 1_000));
        scope.spawn(|| assert_eq!(buffer[999][0], (999_u32 & 0xff) as u8));
    });
    assert_eq!(format!("{buffer:?}"), "BlockBuffer { blocks: 1000, huge_pages: false }");
}

/// With eight million keys or more, one of the threads is the first to touch each page of the
/// filter, and zeroes it.
#[cfg(feature = "rayon")]
#[test]
fn pages_that_threads_touch_first_give_the_same_bytes() {
    use crate::common::Random;
    use blocked_bloom::{FilterOptions, Sizing};

    let hashes = Random(1).hashes((1 << 23) + 1_000);
    for huge_pages in [true, false] {
        // Ten huge pages.
        let options = FilterOptions::new(Sizing::BitsPerKey(20.0)).with_huge_pages(huge_pages);
        let mut builder = options.builder();
        // A few blocks receive all hashes except the first, and the others stay zero, so a block
        // that was not zeroed is detected.
        for (i, &hash) in hashes.iter().enumerate() {
            let low = if i < 1_000 { hash & 0xffff_ffff } else { hash & 0xffff };
            builder.insert_hash(hash >> 32 << 32 | low).unwrap();
        }
        let expected = builder.clone().finish().unwrap();
        let empty = expected.blocks().iter().filter(|block| **block == [0; 64]).count();
        assert!(empty * 2 > expected.blocks().len(), "{empty} empty blocks");
        let blocks = expected.params().blocks();
        for threads in [1, 2, 3, 8] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let builder = builder.clone();
            let filter = pool.install(|| {
                // So that the filter gets memory that was used before: glibc keeps freed memory
                // that is smaller than the largest freed allocation.
                for blocks in [blocks + blocks / 4, blocks, blocks] {
                    BlockBuffer::zeroed(blocks, huge_pages).unwrap().fill([0xff; 64]);
                }
                builder.par_finish().unwrap()
            });
            assert_eq!(filter.blocks().as_ptr().addr() % aligned_to(40_000), 0);
            assert!(filter == expected, "{threads} threads");
        }
    }
}
