//! NEON: a line in four registers. Insertion and removal use the portable kernel, since NEON has no
//! instruction that collects one bit per lane.

use core::arch::aarch64::*;

use blocked_bloom::Block;

use super::driver::{self, Places};
use super::{Table, portable};

pub(super) const TABLE: Table =
    Table { contains: [contains::<0>, contains::<1>, contains::<2>], ..portable::TABLE };

/// # Safety
///
/// The CPU must support NEON: see [`Table`].
#[target_feature(enable = "neon")]
unsafe fn contains<const LINES: usize>(lines: &[Block], hashes: &[u64], hits: &mut [u64]) {
    ran!("neon");
    driver::contains::<LINES>(lines, hashes, hits, Places::scalar, |first, second, tags| {
        contains_tag(first, second, tags)
    });
}

/// Returns whether a lane of one of the lines equals the tag.
#[inline]
#[target_feature(enable = "neon")]
fn contains_tag(first: &Block, second: &Block, tags: u64) -> bool {
    let tags = vdupq_n_u16(tags as u16);
    vmaxvq_u16(vorrq_u16(equal(first, tags), equal(second, tags))) != 0
}

/// Compares lanes `i`, `8 + i`, `16 + i` and `24 + i` together: all ones if one equals the tag.
#[inline]
#[target_feature(enable = "neon")]
fn equal(line: &Block, tags: uint16x8_t) -> uint16x8_t {
    // SAFETY: reads the 64 bytes of the reference; loads of bytes allow any alignment.
    let lanes = unsafe { vld1q_u8_x4(line.as_ptr()) };
    let is = |lanes| vceqq_u16(vreinterpretq_u16_u8(lanes), tags);
    vorrq_u16(vorrq_u16(is(lanes.0), is(lanes.1)), vorrq_u16(is(lanes.2), is(lanes.3)))
}
