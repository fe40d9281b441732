//! NEON: a line in four registers. Adding and removing are the portable ones: NEON has no
//! instruction that gathers a bit of each lane.

use core::arch::aarch64::*;

use blocked_bloom::Block;

use super::driver::{self, Places};
use super::{Table, portable};

pub(super) const TABLE: Table =
    Table { contains: [contains::<0>, contains::<1>, contains::<2>], ..portable::TABLE };

/// # Safety
///
/// As [`Table`] says.
#[target_feature(enable = "neon")]
unsafe fn contains<const LINES: usize>(lines: &[Block], hashes: &[u64], hits: &mut [u64]) {
    ran!("neon");
    let count = lines.len() as u32;
    driver::contains::<LINES>(
        lines,
        hashes,
        hits,
        |keys| Places::scalar(keys, count),
        |first, second, tags| contains_tag(first, second, tags),
    );
}

/// Whether a lane of one of the lines equals the tag.
#[inline]
#[target_feature(enable = "neon")]
fn contains_tag(first: &Block, second: &Block, tags: u64) -> bool {
    let tags = vdupq_n_u16(tags as u16);
    vmaxvq_u16(vorrq_u16(equal(first, tags), equal(second, tags))) != 0
}

/// Of lanes `i`, `8 + i`, `16 + i` and `24 + i` together: all ones if one of them equals the tag.
#[inline]
#[target_feature(enable = "neon")]
fn equal(line: &Block, tags: uint16x8_t) -> uint16x8_t {
    // SAFETY: the 64 bytes of the reference; the load is of bytes and has no alignment to respect.
    let lanes = unsafe { vld1q_u8_x4(line.as_ptr()) };
    let is = |lanes| vceqq_u16(vreinterpretq_u16_u8(lanes), tags);
    vorrq_u16(vorrq_u16(is(lanes.0), is(lanes.1)), vorrq_u16(is(lanes.2), is(lanes.3)))
}
