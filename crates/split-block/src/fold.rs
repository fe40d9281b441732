//! Folding and union of split-block filters, which are exact.
//!
//! A hash that belongs to block `i` of `n` belongs to block `i / g` of `n / g`, for every divisor
//! `g`. So OR-ing `g` adjacent blocks gives the bits of a filter that was made with `n / g` blocks.

use crate::error::SplitBlockError;
use crate::filter::SplitBlockFilter;
use crate::split_block::{SPLIT_BLOCK_BYTES, SplitBlock};

impl SplitBlockFilter {
    /// Halves the filter as often as the estimated rate stays at or below `rate` and the number of
    /// blocks is even, and returns the divisor it was folded by: 1 if no smaller size keeps the
    /// rate.
    ///
    /// The estimate, and so the size and the bytes, are those of Arrow and arrow-rs: from the
    /// filter's [fill](Self::fill_ratio) `f`, halving `i` times gives the fill `1 - (1 - f)^(2^i)`,
    /// and the rate is the eighth power of that. The [rate of the
    /// bits](Self::estimated_false_positive_rate) is higher, by half where the estimate is 1 %,
    /// since blocks fill unevenly: for a rate that must hold, give a lower one. An empty filter
    /// becomes one block, and every filter at a `rate` of 1 or more; at 0 or NaN only an empty one
    /// is folded.
    ///
    /// Cost: reads every block once.
    ///
    /// ```
    /// use blocked_bloom_split::SplitBlockFilter;
    /// let mut filter = SplitBlockFilter::new(1_000_000, 0.01)?;
    /// for value in 0..1_000_i64 {
    ///     filter.insert(value.to_le_bytes());
    /// }
    /// assert_eq!(filter.shrink_to_false_positive_rate(0.01), 1_024);
    /// assert_eq!(filter.blocks().len(), 64);
    /// # Ok::<(), blocked_bloom_split::SplitBlockError>(())
    /// ```
    pub fn shrink_to_false_positive_rate(&mut self, rate: f64) -> u32 {
        let mut blocks = self.blocks().len();
        let mut unset = 1.0 - self.fill_ratio();
        while blocks.is_multiple_of(2) {
            // In the steps of arrow-rs, so that rounding does not decide otherwise.
            unset *= unset;
            let meets = eighth_power(1.0 - unset) <= rate || unset == 1.0;
            if !meets {
                break;
            }
            blocks /= 2;
        }
        let group = self.blocks().len() / blocks;
        if group > 1 {
            let from = self.blocks_mut();
            for to in 0..blocks {
                from[to] = or_blocks(&from[to * group..][..group]);
            }
            self.keep_first(blocks);
        }
        group as u32
    }

    /// Adds every value of another filter, such as one of another row group, or of a part that
    /// another thread made.
    ///
    /// The other filter may have a multiple of this one's blocks, and is folded to as many. The
    /// rate grows with what is added.
    ///
    /// # Errors
    ///
    /// [`SplitBlockError::NotAMultiple`] if it has another number, such as fewer, since a filter
    /// cannot be unfolded. The filter is then unchanged.
    pub fn union_with<D: AsRef<[SplitBlock]>>(
        &mut self,
        other: &SplitBlockFilter<D>,
    ) -> Result<(), SplitBlockError> {
        // Borrowed once: the owner of stored bytes may lend others the next time.
        let other = other.view();
        let (found, expected) = (other.blocks().len() as u32, self.blocks().len() as u32);
        if !found.is_multiple_of(expected) {
            return Err(SplitBlockError::NotAMultiple { found, expected });
        }
        let groups = other.blocks().chunks_exact((found / expected) as usize);
        for (to, from) in self.blocks_mut().iter_mut().zip(groups) {
            or_assign(to, &or_blocks(from));
        }
        Ok(())
    }
}

/// What writers take for the rate of a filter with this fill.
pub(crate) fn eighth_power(fill: f64) -> f64 {
    let squared = fill * fill;
    let fourth = squared * squared;
    fourth * fourth
}

fn or_blocks(blocks: &[SplitBlock]) -> SplitBlock {
    let mut all = [0; SPLIT_BLOCK_BYTES];
    blocks.iter().for_each(|block| or_assign(&mut all, block));
    all
}

fn or_assign(to: &mut SplitBlock, from: &SplitBlock) {
    for (to, from) in to.iter_mut().zip(from) {
        *to |= from;
    }
}
