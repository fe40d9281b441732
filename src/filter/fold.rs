//! Folding: making a filter smaller after its keys are gone, as exactly as if it had been built
//! smaller. The probe count cannot change after insertion.
//!
//! Exact, since the block index is monotone: with `n` blocks and `g` a divisor of `n`, block `i` of
//! `n` and block `i / g` of `n / g` are that of the same key, `floor(floor(lo n / 2^32) / g) =
//! floor(lo (n / g) / 2^32)`. So OR-ing `g` adjacent blocks gives the bits that inserting the same
//! keys into `n / g` blocks gives.

use super::facts::{FillHistogram, rate_at};
use super::parts::Blocks;
use super::{BloomFilter, BuildError};
use crate::buffer::BlockBuffer;
use crate::params::{self, ParamsError};
use crate::probe::{BLOCK_BITS, BLOCK_BYTES, Block};

impl BloomFilter {
    /// Folds the filter to the smallest size whose false-positive rate is at or below `rate`, and
    /// returns the divisor it was folded by: 1 if no smaller size keeps it.
    ///
    /// The rate is what [`estimated_false_positive_rate`](Self::estimated_false_positive_rate)
    /// gives after the fold, computed from the bits without folding: the number of keys inserted
    /// counts repeated keys too. The probes stay those the filter was made with.
    ///
    /// Cost: one pass over the blocks per larger divisor tried; a divisor that is far too large is
    /// rejected after about `rate` of the blocks. Then works in place; what is left moves to memory
    /// of its own size, so that for a moment the filter takes `1 + 1 / divisor` times its memory.
    /// Without memory for that only [`to_bytes`](Self::to_bytes) and copies are smaller.
    ///
    /// # Errors
    ///
    /// [`ParamsError::RateOutOfRange`] unless `0 < rate <= 1`; the filter is then unchanged.
    pub fn shrink_to_false_positive_rate(&mut self, rate: f64) -> Result<u32, ParamsError> {
        params::check_rate(rate)?;
        let view = self.view();
        let mut divisors = divisors_down(view.blocks().len() as u32);
        let divisor = divisors.find(|&divisor| divisor == 1 || keeps(&view, divisor, rate));
        let divisor = divisor.unwrap_or(1);
        if divisor > 1 {
            let (group, blocks) = (divisor as usize, &mut self.data);
            let left = blocks.len() / group;
            for to in 0..left {
                blocks[to] = or_blocks(&blocks[to * group..][..group]);
            }
            blocks.keep_first(left as u32);
        }
        Ok(divisor)
    }
}

impl<D: Blocks> BloomFilter<D> {
    /// A copy, smaller by this divisor of the blocks: so many neighbours become one by OR.
    ///
    /// Exact: the bytes are those of a filter that was built with that many blocks, the same probes
    /// and the same keys. The number of keys inserted stays, and so do the probes, which fit the
    /// size the filter was made for: fold a filter that received fewer keys than it was sized for.
    /// [`Sizing::foldable_params`](crate::Sizing::foldable_params) gives sizes that can be folded
    /// by many divisors. By 1 nothing changes; nor does a pass-all filter.
    ///
    /// Cost: reads every block once; allocates the folded filter only.
    ///
    /// # Errors
    ///
    /// [`BuildError::Params`] with [`ParamsError::NotADivisor`] naming the nearest divisors (0
    /// divides nothing), [`BuildError::Alloc`] if there is no memory for the copy.
    pub fn folded(&self, divisor: u32) -> Result<BloomFilter, BuildError> {
        // The blocks once: the owner of stored bytes may lend others the next time.
        let view = self.view();
        let left = blocks_left(&view, divisor)?;
        let BloomFilter { data: blocks, meta, kernel, answers } = view;
        let group = blocks.len() / left as usize;
        let mut data = BlockBuffer::zeroed(left, true)?;
        for (to, from) in data.iter_mut().zip(blocks.chunks_exact(group)) {
            *to = or_blocks(from);
        }
        Ok(BloomFilter { data, meta, kernel, answers })
    }
}

/// Whether the rate after folding by `divisor` is at or below `rate`.
fn keeps(filter: &BloomFilter<&[Block]>, divisor: u32, rate: f64) -> bool {
    let probes = filter.meta.probes;
    let mut rates = [0.0; BLOCK_BITS as usize + 1];
    for (ones, rate) in rates.iter_mut().enumerate() {
        *rate = rate_at(ones as f64 / f64::from(BLOCK_BITS), probes);
    }
    let groups = filter.blocks().chunks_exact(divisor as usize);
    // More than this is over the rate, however the sums are rounded.
    let too_much = rate * groups.len() as f64 * (1.0 + 1e-9);
    let (mut fills, mut sum) = (FillHistogram::new(), 0.0);
    for group in groups {
        sum += rates[fills.count(&or_blocks(group))];
        if sum > too_much {
            return false;
        }
    }
    fills.mean(|fill| rate_at(fill, probes)) <= rate
}

/// Blocks that a fold leaves.
fn blocks_left(filter: &BloomFilter<&[Block]>, divisor: u32) -> Result<u32, ParamsError> {
    let blocks = filter.blocks().len() as u32;
    if divisor != 0 && filter.is_pass_all() {
        return Ok(1);
    }
    if divisor != 0 && blocks.is_multiple_of(divisor) {
        return Ok(blocks / divisor);
    }
    let below = divisors_down(blocks).find(|&candidate| candidate < divisor);
    let above = divisors_down(blocks).take_while(|&candidate| candidate > divisor).last();
    Err(ParamsError::NotADivisor { divisor, blocks, below, above })
}

/// Every divisor of `blocks`, the largest first; a square's root twice. At most 2^17 divisions.
fn divisors_down(blocks: u32) -> impl Iterator<Item = u32> {
    let divides = move |small: &u32| blocks.is_multiple_of(*small);
    let small = 1..=blocks.isqrt();
    let large = small.clone().filter(divides).map(move |small| blocks / small);
    large.chain(small.rev().filter(divides))
}

/// All blocks OR-ed. Stops when every bit is set: a large group of a filter that is well filled is
/// full after a few blocks.
fn or_blocks(blocks: &[Block]) -> Block {
    let mut or = [0; BLOCK_BYTES];
    for some in blocks.chunks(16) {
        for block in some {
            for (or, byte) in or.iter_mut().zip(block) {
                *or |= byte;
            }
        }
        if or == [0xff; BLOCK_BYTES] {
            break;
        }
    }
    or
}
