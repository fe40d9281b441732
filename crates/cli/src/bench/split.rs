//! The kernels for Parquet's split blocks, beside the same instruction sets' kernels for native filters.

use benches::workload::{Mix, lookup_count};
use blocked_bloom::{Bitmask, BloomFilter, Kernel};
use blocked_bloom_formats::parquet::SplitBlockFilter;

use super::one_filter::{add_split_blocks, split_blocks};
use super::rows::{Group, Row, Setting};
use crate::failure::Failure;

/// Absent keys. All rows of a batch size are interleaved, so that the two rows of a kernel can be compared.
pub(super) fn measure(setting: &Setting, filter: &BloomFilter) -> Result<Vec<Row>, Failure> {
    let native = filter.view();
    let blocks = split_blocks(setting)?;
    let split = SplitBlockFilter::from_bitset(blocks.bitset()).map_err(Failure::new)?;
    let hashes = &Mix::Absent.lookups(setting.keys, lookup_count(setting.keys)).all;
    let mut rows = Vec::new();
    for &batch in &setting.batches {
        let mut group =
            Group::beside_baseline("split_hashes", "absent", batch, native.blocks(), hashes);
        for kernel in Kernel::supported() {
            let (split, native) = (split.with_kernel(kernel), native.with_kernel(kernel));
            let mut hits = Bitmask::new();
            group.op("split_hashes").add_batches(kernel.name(), hashes, move |hashes| {
                split.contains_hashes(hashes, &mut hits);
            });
            let mut hits = Bitmask::new();
            group.op("contains_hashes").add_batches(kernel.name(), hashes, move |hashes| {
                native.contains_hashes(hashes, &mut hits);
            });
        }
        add_split_blocks(group.op("split_hashes"), &blocks, hashes);
        rows.extend(group.rows(setting.rounds));
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use benches::split_block::SplitBlocks;
    use benches::workload::Mix;
    use blocked_bloom::Bitmask;
    use blocked_bloom_formats::parquet::SplitBlockFilter;

    /// The loop that others are compared with has the same filter as the library, and counts the same hits.
    #[test]
    fn the_loop_agrees_with_the_library() {
        let keys = &Mix::Present.lookups(1_000, 2_000).all;
        let mut blocks = SplitBlocks::new(20).unwrap();
        blocks.insert_hashes(keys);
        let filter = SplitBlockFilter::from_bitset(blocks.bitset()).unwrap();
        let mut hits = Bitmask::new();
        for mix in Mix::ALL {
            let hashes = mix.lookups(1_000, 10_000).all;
            filter.contains_hashes(&hashes, &mut hits);
            for ahead in [false, true] {
                let counted = blocks.count_hits(&hashes, ahead);
                assert!(counted.is_none_or(|count| count == hits.count_hits()), "{mix:?}");
            }
        }
        filter.contains_hashes(keys, &mut hits);
        assert_eq!(hits.count_misses(), 0);
    }
}
