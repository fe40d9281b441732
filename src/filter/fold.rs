//! Folding: shrinking a filter without its keys. The result equals a filter that was built with
//! fewer blocks. The number of probes cannot change after insertion.
//!
//! Folding is exact because the block index is monotone. Let `g` divide the number of blocks `n`. A
//! key in block `i` of `n` blocks belongs in block `i / g` of `n / g` blocks, since `floor(floor(lo
//! n / 2^32) / g) = floor(lo (n / g) / 2^32)`. So the OR of `g` adjacent blocks has the bits that
//! insertion of the same keys into `n / g` blocks sets.

use super::facts::{FillHistogram, rate_at};
use super::parts::Blocks;
use super::{BloomFilter, BuildError};
use crate::buffer::BlockBuffer;
use crate::params::{self, ParamsError};
use crate::probe::{BLOCK_BITS, BLOCK_BYTES, Block};

impl BloomFilter {
    /// Folds the filter to the smallest size whose false-positive rate is at most `rate`. Returns
    /// the divisor: 1 if the filter cannot be smaller.
    ///
    /// The rate is the [estimated](Self::estimated_false_positive_rate) one after the fold, which
    /// is computed from the bits, since the number of keys inserted includes repeated keys. The
    /// number of probes does not change.
    ///
    /// Cost: one pass over the blocks for each divisor tried, from the largest down; divisors that
    /// are far too large are rejected after a fraction of the blocks. The fold works in place. The
    /// remaining blocks then move to smaller memory, so for a moment the filter takes `1 + 1 /
    /// divisor` times its memory. If that allocation fails, the memory stays as large, and only
    /// [`to_bytes`](Self::to_bytes) and copies are smaller.
    ///
    /// # Errors
    ///
    /// [`ParamsError::RateOutOfRange`] unless `0 < rate <= 1`. The filter is unchanged then.
    pub fn shrink_to_false_positive_rate(&mut self, rate: f64) -> Result<u32, ParamsError> {
        params::check_rate(rate)?;
        let view = self.view();
        let mut divisors = divisors_down(view.blocks().len() as u32);
        let divisor = divisors.find(|&d| d == 1 || keeps(&view, d, rate)).unwrap_or(1);
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
    /// Returns a copy with fewer blocks: each group of `divisor` adjacent blocks becomes their OR.
    ///
    /// The bytes are those of a filter that was built with that many blocks, the same probes and
    /// the same keys. The numbers of probes and of keys inserted do not change. The probes suit the
    /// original size, so fold filters that received fewer keys than expected.
    /// [`Sizing::foldable_params`](crate::Sizing::foldable_params) returns sizes with many
    /// divisors. A divisor of 1 changes nothing, and a pass-all filter does not change.
    ///
    /// Cost: reads every block once; allocates only the folded filter.
    ///
    /// # Errors
    ///
    /// [`BuildError::Params`] with [`ParamsError::NotADivisor`], which names the nearest divisors,
    /// and [`BuildError::Alloc`] if the allocation fails.
    pub fn folded(&self, divisor: u32) -> Result<BloomFilter, BuildError> {
        // Borrows the blocks once, since the owner of stored bytes may lend others the next time.
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

/// Whether the rate after folding by `divisor` is at most `rate`.
fn keeps(filter: &BloomFilter<&[Block]>, divisor: u32, rate: f64) -> bool {
    let probes = filter.meta.probes;
    let rates: [f64; BLOCK_BITS as usize + 1] =
        core::array::from_fn(|ones| rate_at(ones as f64 / f64::from(BLOCK_BITS), probes));
    let groups = filter.blocks().chunks_exact(divisor as usize);
    // A larger sum exceeds the rate in spite of rounding errors.
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

/// Returns the number of blocks after a fold.
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

/// Returns every divisor of `blocks`, the largest first; the root of a square appears twice. Takes
/// at most 2^17 divisions.
fn divisors_down(blocks: u32) -> impl Iterator<Item = u32> {
    let divides = move |small: &u32| blocks.is_multiple_of(*small);
    let small = 1..=blocks.isqrt();
    let large = small.clone().filter(divides).map(move |small| blocks / small);
    large.chain(small.rev().filter(divides))
}

/// Returns the OR of all blocks. Stops once every bit is set: a few blocks of a well filled filter
/// suffice for that.
fn or_blocks(blocks: &[Block]) -> Block {
    let mut or = [0; BLOCK_BYTES];
    for chunk in blocks.chunks(16) {
        for block in chunk {
            for (or, byte) in or.iter_mut().zip(block) {
                *or |= byte;
            }
        }
        if chunk.len() == 16 && or == [0xff; BLOCK_BYTES] {
            break;
        }
    }
    or
}
