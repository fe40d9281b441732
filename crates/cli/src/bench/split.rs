//! The kernels for Parquet's split blocks, beside the same instruction sets' kernels for native filters.

use blocked_bloom::{Bitmask, BloomFilter, Kernel};
use blocked_bloom_formats::parquet::SplitBlockFilter;

use super::baseline::SplitBlock;
use super::rows::{Group, Row, Setting};
use super::workload::{Mix, for_all_keys, lookup_count};
use crate::failure::Failure;

/// Absent keys. All rows of a batch size are interleaved, so that the two rows of a kernel can be compared.
pub(super) fn measure(setting: &Setting, filter: &BloomFilter) -> Result<Vec<Row>, Failure> {
    let native = filter.view();
    let mut blocks = SplitBlock::new(setting.params.blocks()).map_err(Failure::new)?;
    for_all_keys(setting.keys, |hashes| blocks.insert_hashes(hashes));
    let split = SplitBlockFilter::from_bitset(blocks.bitset()).map_err(Failure::new)?;
    let hashes = Mix::Absent.lookups(setting.keys, lookup_count(setting.keys));
    let mut rows = Vec::new();
    for &batch in &setting.batches {
        let mut group = Group::new("split_hashes", "absent", batch, native.blocks(), &hashes);
        let first = group.len();
        for kernel in Kernel::supported() {
            let (split, native) = (split.with_kernel(kernel), native.with_kernel(kernel));
            let mut hits = Bitmask::new();
            group.add_batches(kernel.name(), &hashes, move |hashes| {
                split.contains_hashes(hashes, &mut hits);
            });
            let mut hits = Bitmask::new();
            group.add_batches(kernel.name(), &hashes, move |hashes| {
                native.contains_hashes(hashes, &mut hits);
            });
        }
        if blocks.count_hits(&[], false).is_some() {
            let blocks = &blocks;
            for (name, ahead) in [("split_block", false), ("split_block_ahead", true)] {
                group.add_batches(name, &hashes, move |hashes| blocks.count_hits(hashes, ahead));
            }
        }
        let mut measured = group.rows(setting.rounds);
        for native in
            measured[first..].iter_mut().skip(1).step_by(2).take(Kernel::supported().count())
        {
            native.op = "contains_hashes";
        }
        rows.extend(measured);
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use blocked_bloom::Bitmask;
    use blocked_bloom_formats::parquet::SplitBlockFilter;

    use super::SplitBlock;
    use crate::bench::workload::Mix;

    /// The loop that others are compared with has the same filter as the library, and counts the same hits.
    #[test]
    fn the_loop_agrees_with_the_library() {
        let keys = Mix::Present.lookups(1_000, 2_000);
        let mut blocks = SplitBlock::new(20).unwrap();
        blocks.insert_hashes(&keys);
        let filter = SplitBlockFilter::from_bitset(blocks.bitset()).unwrap();
        let mut hits = Bitmask::new();
        for mix in Mix::ALL {
            let hashes = mix.lookups(1_000, 10_000);
            filter.contains_hashes(&hashes, &mut hits);
            for ahead in [false, true] {
                let counted = blocks.count_hits(&hashes, ahead);
                assert!(counted.is_none_or(|count| count == hits.count_hits()), "{mix:?}");
            }
        }
        filter.contains_hashes(&keys, &mut hits);
        assert_eq!(hits.count_misses(), 0);
    }
}
