use super::{max_blocks, split_evenly};

/// Of the values that choose blocks, every block gets the same number, or one of them one more.
#[test]
fn more_than_16_gib_are_shared_evenly() {
    let first_of = |block: u64, blocks: u32| (block << 32).div_ceil(u64::from(blocks));
    for wanted in [1 << 28, (1 << 28) + 1, 300_000_000, 1 << 30, 1_500_000_000, 1 << 32] {
        for (blocks, is_up) in [
            (split_evenly(wanted, |values, blocks| values / blocks), true),
            (split_evenly(wanted, u64::div_ceil), false),
        ] {
            let (found, most) = (u64::from(blocks), u32::MAX.into());
            let is_right = if is_up { found >= wanted.min(most) } else { found <= wanted };
            assert!(is_right, "{wanted} {blocks}");
            assert!(wanted == 1 << 28 || blocks >= 1 << 28);
            let share = (1_u64 << 32) / u64::from(blocks);
            let larger = (0..u64::from(blocks)).step_by(9_973).map(|block| {
                let values = first_of(block + 1, blocks) - first_of(block, blocks);
                assert!(values == share || values == share + 1, "{blocks} {block}");
                values - share
            });
            // 2^32 modulo the blocks, of which less than one in a million have a value more.
            assert!(larger.sum::<u64>() <= 1, "{blocks}");
            assert!((1 << 32) - share * u64::from(blocks) < 17, "{blocks}");
        }
    }
    assert_eq!(split_evenly(1_000, u64::div_ceil), 1_000);
    let blocks = |bytes| max_blocks(bytes).ok();
    assert_eq!([blocks(63), blocks(64), blocks(17 << 30)], [None, Some(1), Some(1 << 28)]);
    assert_eq!([blocks(64 << 30), blocks(256 << 30)], [Some(1 << 30), Some(u32::MAX)]);
    assert_eq!(blocks((256 << 30) + 64), None);
}
