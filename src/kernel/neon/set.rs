//! One key against many filters: lines that are compared with its mask.

use core::arch::aarch64::*;

use super::super::prefetch::Prefetch;
use super::super::source::{Source, prefetch_first};
use crate::probe::Block;

/// # Safety
///
/// As [`Table`](super::super::table::Table) says.
#[target_feature(enable = "neon")]
pub(super) unsafe fn covers(
    sources: &[Source<'_>],
    prefetch: Prefetch,
    hash: u64,
    masks: &[Block],
    hits: &mut [u64],
) {
    match prefetch {
        Prefetch::No => each::<0>(sources, hash, masks, hits),
        Prefetch::OneLine => each::<1>(sources, hash, masks, hits),
        Prefetch::TwoLines => each::<2>(sources, hash, masks, hits),
    }
}

/// Prefetches `LINES` lines per source.
#[target_feature(enable = "neon")]
fn each<const LINES: usize>(sources: &[Source<'_>], hash: u64, masks: &[Block], hits: &mut [u64]) {
    let mut later = prefetch_first::<LINES>(sources, hash).iter();
    for (sources, word) in sources.chunks(64).zip(hits) {
        let mut bits = 0;
        for (i, source) in sources.iter().enumerate() {
            if LINES > 0
                && let Some(source) = later.next()
            {
                source.prefetch::<LINES>(hash);
            }
            let line = load(source.line(hash));
            let mask = load(if let [mask] = masks { mask } else { &masks[source.mask()] });
            let low = vorrq_u8(vbicq_u8(mask.0, line.0), vbicq_u8(mask.1, line.1));
            let high = vorrq_u8(vbicq_u8(mask.2, line.2), vbicq_u8(mask.3, line.3));
            let missing = vmaxvq_u32(vreinterpretq_u32_u8(vorrq_u8(low, high)));
            bits |= u64::from(missing == 0) << i;
        }
        *word = bits;
    }
}

#[inline]
#[target_feature(enable = "neon")]
fn load(block: &Block) -> uint8x16x4_t {
    // SAFETY: the 64 bytes of a reference; the load has no alignment to respect.
    unsafe { vld1q_u8_x4(block.as_ptr()) }
}
