//! Tests how the checksum of a block depends on its offset.

use super::{ChecksumKind, FileRanges, Handle, Table};

fn context(base_context: u32, offset: u64) -> u32 {
    let table = Table {
        file: &FileRanges::new(0),
        footer: 0,
        format_version: 6,
        checksum: ChecksumKind::Xxh3,
        base_context,
        metaindex: Handle { offset: 0, size: 0 },
    };
    table.context(offset)
}

/// `ChecksumModifierForContext` of RocksDB's `table/format.h`: base ^ (lower half + upper half of
/// the offset), or 0 without a base. Files above 4 GiB are too large for a test.
#[test]
fn both_halves_of_an_offset_are_in_its_context() {
    for (offset, folded) in [
        (0, 0),
        (0x1234_5678, 0x1234_5678),
        (0xffff_ffff, 0xffff_ffff),
        (0x1_0000_0000, 1),
        (0x1_0000_0001, 2),
        // A sum, neither OR nor XOR; the carry is dropped.
        (0x3_0000_0001, 4),
        (0x1_ffff_ffff, 0),
        (0x0102_0304_a0b0_c0d0, 0xa1b2_c3d4),
        (u64::MAX, 0xffff_fffe),
    ] {
        for base in [1, 0x89ab_cdef, u32::MAX] {
            assert_eq!(context(base, offset), base ^ folded, "{base:#x}, {offset:#x}");
        }
        assert_eq!(context(0, offset), 0, "{offset:#x}");
    }
}
