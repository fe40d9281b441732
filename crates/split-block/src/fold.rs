//! Folding and union of split-block filters, which are exact.
//!
//! A hash in block `i` of `n` is in block `i / g` of `n / g`, for every divisor `g`. So the OR of
//! `g` adjacent blocks equals the block of a filter that was built with `n / g` blocks.

use crate::error::SplitBlockError;
use crate::filter::SplitBlockFilter;
use crate::split_block::{SPLIT_BLOCK_BYTES, SplitBlock};

impl SplitBlockFilter {
    /// Halves the filter while the estimated rate stays at or below `rate` and the number of blocks
    /// is even. Returns the total divisor, which is 1 if no smaller size keeps the rate.
    ///
    /// The estimate, and therefore the size and the bytes, equal those of Arrow and arrow-rs: with
    /// the filter's [fill](Self::fill_ratio) `f`, halving `i` times results in the fill
    /// `1 - (1 - f)^(2^i)`, and the rate is its eighth power. The [rate computed from the
    /// bits](Self::estimated_false_positive_rate) is higher, 1.5 times as high for an estimate of
    /// 1 %, since blocks fill unevenly. To guarantee a rate, pass a lower one. An empty filter
    /// becomes one block, and so does every filter with a `rate` of 1 or more. With 0 or NaN, only
    /// an empty filter is folded.
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
            // The same steps as in arrow-rs, so that rounding leads to the same result.
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

    /// Inserts every value of another filter, for example of another row group or another thread.
    ///
    /// The number of blocks of the other filter must be a multiple of this filter's. It is folded
    /// to the same number. The rate increases.
    ///
    /// # Errors
    ///
    /// [`SplitBlockError::NotAMultiple`] for any other number of blocks, since a filter cannot be
    /// unfolded. The filter is unchanged.
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

/// Returns the rate that writers estimate for a filter with this fill.
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
