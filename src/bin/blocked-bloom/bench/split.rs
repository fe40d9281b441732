//! `blocked-bloom bench --op split`: the kernels for Parquet's split blocks, beside the same kernels' native law.

use blocked_bloom::interop::parquet::SplitBlockFilterRef;
use blocked_bloom::{Bitmask, BloomFilter, Kernel};

use super::limits::SplitBlock;
use super::workload::{Mix, for_all_keys, question_count};
use super::{Group, Row, Setting};
use crate::failure::Failure;

/// Absent keys. All rows of a batch size ran in turn, so that the two rows of a kernel can be compared.
pub(super) fn measure(setting: &Setting, filter: &BloomFilter) -> Result<Vec<Row>, Failure> {
    let native = filter.view();
    let mut blocks = SplitBlock::new(size_of_val(native.blocks()));
    for_all_keys(setting.keys, |hashes| blocks.insert_hashes(hashes));
    let split = SplitBlockFilterRef::from_bitset(blocks.bitset()).map_err(Failure::new)?;
    let hashes = Mix::Absent.questions(setting.keys, question_count(setting.keys));
    let mut rows = Vec::new();
    for &batch in &setting.batches {
        let mut group = Group::new("split_hashes", "absent", batch, native.blocks(), &hashes);
        let first = group.names.len();
        for kernel in Kernel::supported() {
            let (split, native) = (split.with_kernel(kernel), native.with_kernel(kernel));
            let mut hits = Bitmask::new();
            group.add(kernel.name(), &hashes, move |hashes| {
                split.contains_hashes(hashes, &mut hits);
            });
            let mut hits = Bitmask::new();
            group.add(kernel.name(), &hashes, move |hashes| {
                native.contains_hashes(hashes, &mut hits);
            });
        }
        if blocks.count_hits(&[], false).is_some() {
            let blocks = &blocks;
            for (name, ahead) in [("split_block", false), ("split_block_ahead", true)] {
                group.add(name, &hashes, move |hashes| blocks.count_hits(hashes, ahead));
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
