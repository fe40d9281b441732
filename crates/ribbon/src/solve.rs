//! Solves the equations of a shard, like `rocksdb` those of a block, but in any order of the keys:
//! all rows of a shard take 50 KB.

pub(crate) mod rocksdb;

use alloc::vec::Vec;

use blocked_bloom::AllocError;

use crate::scheme::{MAX_COLUMNS, WIDTH, Word, equation};
use crate::threads::Threads;

/// The rows of a shard, by slot. A slot without a row has 0 coefficients.
#[derive(Default)]
pub(crate) struct Rows {
    pub(crate) coefficients: Vec<u64>,
    pub(crate) results: Vec<u32>,
}

impl Rows {
    /// Inserts all equations with this seed into empty rows. Returns false if they contradict each
    /// other, so that another seed is needed.
    pub(crate) fn add_all(
        &mut self,
        rests: &[u64],
        seed: u8,
        slots: u32,
    ) -> Result<bool, AllocError> {
        Threads::One.refill(&mut self.coefficients, slots as usize)?;
        Threads::One.refill(&mut self.results, slots as usize)?;
        let starts = (slots - (WIDTH - 1)) as u16;
        let (rows, results) = (self.coefficients.as_mut_slice(), self.results.as_mut_slice());
        Ok(rests.iter().all(|&rest| {
            let (start, mut coefficients, result) = equation(rest, seed, starts);
            let (mut slot, mut result) = (start as usize, result as u32);
            // `slot` stays within the rows: an equation starts at least 63 slots before the last,
            // and a sum of equations ends where one of them ends.
            loop {
                let there = rows[slot];
                if there == 0 {
                    (rows[slot], results[slot]) = (coefficients, result);
                    return true;
                }
                coefficients ^= there;
                result ^= results[slot];
                if coefficients == 0 {
                    return result == 0;
                }
                let skipped = coefficients.trailing_zeros();
                slot += skipped as usize;
                coefficients >>= skipped;
            }
        }))
    }
}

/// The scalar definition of back substitution: from the last slot to the first, chooses each
/// column's bit so that its row is satisfied.
///
/// Always inlined, so that it is compiled for the caller's instruction set.
#[inline(always)]
pub(crate) fn substitute(rows: &Rows, out: &mut [Word], columns: u32, short: u32) {
    // The bits of each column in the next 64 slots.
    let mut state = [0_u64; MAX_COLUMNS as usize];
    let mut end = out.len();
    let blocks = rows.coefficients.chunks_exact(WIDTH as usize);
    let results = rows.results.chunks_exact(WIDTH as usize);
    for (block, (rows, results)) in blocks.zip(results).enumerate().rev() {
        let columns = (columns - u32::from((block as u32) < short)) as usize;
        for (&coefficients, &result) in rows.iter().zip(results).rev() {
            for (column, state) in state[..columns].iter_mut().enumerate() {
                *state <<= 1;
                let sum = (*state & coefficients).count_ones() ^ result >> column;
                *state |= u64::from(sum & 1);
            }
        }
        let first = end - columns;
        for (word, state) in out[first..end].iter_mut().zip(state) {
            *word = state.to_le_bytes();
        }
        end = first;
    }
}
