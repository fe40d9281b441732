//! Unit tests of `src/buffer.rs`, which includes this file.

use super::BlockBuffer;

#[test]
fn keeping_few_blocks_gives_memory_back() {
    // Linux has another alignment for 32,768 blocks or more. When a buffer crosses that size, it
    // must be freed with the layout of its allocation.
    for (blocks, kept, allocated) in [
        (1, 1, 1),
        (2, 1, 1),
        (3, 2, 3),
        (8, 5, 8),
        (8, 4, 4),
        (8, 0, 1),
        (8, 9, 8),
        (70_000, 35_000, 35_000),
        (70_000, 7, 7),
    ] {
        let mut buffer = BlockBuffer::zeroed(blocks, true).unwrap();
        for (number, block) in buffer.iter_mut().enumerate() {
            block[..8].copy_from_slice(&(number as u64).to_le_bytes());
        }
        let expected = buffer[..(kept as usize).clamp(1, blocks as usize)].to_vec();
        buffer.keep_first(kept);
        assert_eq!(*buffer, expected, "{kept} of {blocks} blocks");
        assert_eq!(buffer.allocated, allocated, "{kept} of {blocks} blocks");
    }
}

#[test]
fn blocks_that_the_allocator_moves_are_the_same() {
    for blocks in [1, 3, 32_767, 32_768, 70_000, 1_048_575, 1_048_576] {
        let mut buffer = BlockBuffer::zeroed(blocks, true).unwrap();
        assert!(buffer.iter().all(|block| *block == [0; 64]));
        for (number, block) in buffer.iter_mut().enumerate() {
            block[60..].copy_from_slice(&(number as u32).to_le_bytes());
        }
        let before = buffer.to_vec();
        buffer.reallocate();
        assert_eq!(*buffer, before, "{blocks} blocks");
        assert!(buffer.as_ptr().addr().is_multiple_of(64), "{blocks} blocks");
    }
}

/// Returns the size of the huge pages that back the mapping of `start`, in KiB.
#[cfg(all(target_os = "linux", feature = "rayon"))]
fn huge_kibibytes(start: *const u8) -> u64 {
    let maps = std::fs::read_to_string("/proc/self/smaps").unwrap_or_default();
    let mut here = false;
    for line in maps.lines() {
        let range = line.split(' ').next().and_then(|range| range.split_once('-'));
        if let Some((first, end)) = range {
            let [first, end] = [first, end].map(|end| usize::from_str_radix(end, 16));
            here = first.is_ok_and(|first| first <= start.addr())
                && end.is_ok_and(|end| start.addr() < end);
        }
        if here && let Some(size) = line.strip_prefix("AnonHugePages:") {
            return size.trim().trim_end_matches(" kB").parse().unwrap();
        }
    }
    0
}

/// Advice is ignored if the pages have been written. The buffer that threads fill shows whether
/// this machine has huge pages. It has 48 MiB, for which malloc creates a new mapping and which
/// `calloc` does not serve. The system may have no huge page left for the second buffer, so the
/// test fails only if that happens each time.
#[cfg(all(target_os = "linux", feature = "rayon"))]
#[test]
fn huge_pages_are_advised_before_the_first_write() {
    let blocks = 48 << 14;
    let mut counts = std::vec![];
    for _ in 0..10 {
        let by_threads = BlockBuffer::par_zeroed(blocks, true).unwrap();
        let wanted = huge_kibibytes(by_threads.as_ptr().cast());
        let buffer = BlockBuffer::zeroed(blocks, true).unwrap();
        let found = huge_kibibytes(buffer.as_ptr().cast());
        if found >= wanted / 2 {
            return;
        }
        counts.push((found, wanted));
    }
    panic!("KiB on huge pages, and of the other buffer: {counts:?}");
}
