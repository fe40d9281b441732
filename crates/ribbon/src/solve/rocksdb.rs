//! Solves the equations of a block: Gaussian elimination of each key's equation against the
//! previous ones, then back substitution.
//!
//! A row is the equation whose first coefficient belongs to its slot. An equation is inserted at
//! its first slot. If that slot has a row, both are added, and the sum begins at a later slot. The
//! order of the keys determines which row is in which slot, but not the solution: with zeros in
//! slots without a row, it is unique. So keys are first sorted into buckets of neighbouring slots,
//! whose rows stay in the cache.

use alloc::vec::Vec;

use blocked_bloom::AllocError;

use crate::scheme::rocksdb::{MAX_COLUMNS, Segment, WIDTH, equation, seeded, start, starts};
use crate::threads::Threads;

/// An equation in its slot. Bit i of the coefficients belongs to the i-th next slot. All zeros mean
/// no equation.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Row {
    pub(crate) low: u64,
    pub(crate) high: u64,
    pub(crate) result: u32,
}

/// Slots of a bucket: 400 KB of rows, which fit a second-level cache.
const BUCKET_SLOTS: u32 = 1 << 14;

/// Maximum bits of a bucket's number. With more buckets, scattering the hashes misses the cache.
const MAX_BUCKET_BITS: u32 = 11;

/// Memory of a construction, reused for every seed.
#[derive(Default)]
pub(crate) struct Solver {
    pub(crate) rows: Vec<Row>,
    /// The hashes combined with the current seed, sorted by bucket.
    scratch: Vec<u64>,
}

impl Solver {
    /// Inserts all equations with this seed. Returns false if they contradict each other, so that
    /// another seed is needed.
    pub(crate) fn add_all(
        &mut self,
        hashes: &[u64],
        raw_seed: u32,
        slots: u32,
        threads: Threads,
    ) -> Result<bool, AllocError> {
        threads.refill(&mut self.rows, slots as usize)?;
        let bits = (slots / BUCKET_SLOTS).max(1).ilog2().min(MAX_BUCKET_BITS);
        let starts = starts(slots);
        if bits == 0 {
            return Ok(add_each(&mut self.rows, hashes, raw_seed, starts));
        }
        if self.scratch.len() != hashes.len() {
            threads.refill(&mut self.scratch, hashes.len())?;
        }
        match threads {
            Threads::One => {
                partition(hashes, raw_seed, bits, &mut self.scratch);
                Ok(add_seeded(&mut self.rows, 0, starts, &self.scratch, &mut Vec::new()))
            }
            #[cfg(feature = "rayon")]
            Threads::Pool => Ok(pool::add_all(self, hashes, raw_seed, bits)),
        }
    }
}

/// An equation: its first slot, coefficients and result.
type Equation = (usize, u128, u32);

/// Inserts an equation. Returns whether it agrees with the rows, or the rest of an equation that
/// reaches the end of the rows.
#[inline(always)]
fn add(
    rows: &mut [Row],
    (mut slot, mut coefficients, mut result): Equation,
) -> Result<bool, Equation> {
    loop {
        let Some(row) = rows.get_mut(slot) else { return Err((slot, coefficients, result)) };
        let there = u128::from(row.high) << 64 | u128::from(row.low);
        if there == 0 {
            *row = Row { low: coefficients as u64, high: (coefficients >> 64) as u64, result };
            return Ok(true);
        }
        coefficients ^= there;
        result ^= row.result;
        if coefficients == 0 {
            return Ok(result == 0);
        }
        let skipped = coefficients.trailing_zeros();
        slot += skipped as usize;
        coefficients >>= skipped;
    }
}

/// Inserts an equation into all rows. Returns whether it agrees with them.
///
/// It never reaches the end of the rows: an equation starts at least 127 slots before the last, and
/// a sum of equations ends where one of them ends.
#[inline(always)]
fn add_within(rows: &mut [Row], equation: Equation) -> bool {
    add(rows, equation).expect("equations end within the rows")
}

/// Inserts the equations of hashes in their order, like RocksDB. Tests compare the other functions
/// with it.
pub(crate) fn add_each(rows: &mut [Row], hashes: &[u64], raw_seed: u32, starts: u32) -> bool {
    hashes.iter().all(|&hash| {
        let seeded = seeded(hash, raw_seed);
        let (coefficients, result) = equation(seeded);
        add_within(rows, (start(seeded, starts) as usize, coefficients, result))
    })
}

/// Inserts the equations of seeded hashes into rows that begin at slot `first`. An equation that
/// reaches the end of the rows is appended to `spilled`: a task has only the rows of its buckets.
fn add_seeded(
    rows: &mut [Row],
    first: usize,
    starts: u32,
    seeded: &[u64],
    spilled: &mut Vec<Equation>,
) -> bool {
    seeded.iter().all(|&seeded| {
        let (coefficients, result) = equation(seeded);
        let slot = start(seeded, starts) as usize - first;
        add(rows, (slot, coefficients, result)).unwrap_or_else(|(slot, coefficients, result)| {
            spilled.push((first + slot, coefficients, result));
            true
        })
    })
}

/// Writes the seeded hashes sorted by their first `bits` bits, and returns the end of each bucket.
fn partition(hashes: &[u64], raw_seed: u32, bits: u32, out: &mut [u64]) -> Vec<usize> {
    let bucket = |seeded: u64| (seeded >> (64 - bits)) as usize;
    let mut ends = alloc::vec![0; 1 << bits];
    for &hash in hashes {
        ends[bucket(seeded(hash, raw_seed))] += 1;
    }
    let mut sum = 0;
    for end in &mut ends {
        (*end, sum) = (sum, sum + *end);
    }
    for &hash in hashes {
        let seeded = seeded(hash, raw_seed);
        let next = &mut ends[bucket(seeded)];
        out[*next] = seeded;
        *next += 1;
    }
    ends
}

/// The scalar definition of back substitution: from the last slot to the first, chooses each
/// column's bit so that its row is satisfied.
///
/// Always inlined, so that it is compiled for the caller's instruction set.
#[inline(always)]
pub(crate) fn substitute(rows: &[Row], out: &mut [Segment], columns: u32, short: u32) {
    // The bits of each column in the next 128 slots.
    let mut state = [0_u128; MAX_COLUMNS as usize];
    let mut end = out.len();
    for (block, rows) in rows.chunks_exact(WIDTH as usize).enumerate().rev() {
        let columns = (columns - u32::from((block as u32) < short)) as usize;
        for row in rows.iter().rev() {
            let coefficients = u128::from(row.high) << 64 | u128::from(row.low);
            for (column, state) in state[..columns].iter_mut().enumerate() {
                *state <<= 1;
                let sum = (*state & coefficients).count_ones() ^ row.result >> column;
                *state |= u128::from(sum & 1);
            }
        }
        let first = end - columns;
        for (segment, state) in out[first..end].iter_mut().zip(state) {
            *segment = state.to_le_bytes();
        }
        end = first;
    }
}

/// Shares the work among several threads.
#[cfg(feature = "rayon")]
mod pool {
    use alloc::vec::Vec;

    use rayon::prelude::*;

    use super::{Equation, Row, Solver, add_seeded, add_within, partition, start, starts};

    /// Each thread sorts a part of the hashes into buckets. Then each task inserts the equations of
    /// neighbouring buckets of all parts into the rows in which they start, bucket by bucket.
    /// Equations that reach the end of a task's rows are inserted last; there are a few hundred per
    /// border.
    pub(super) fn add_all(solver: &mut Solver, hashes: &[u64], raw_seed: u32, bits: u32) -> bool {
        let tasks = (4 * rayon::current_num_threads()).min(1 << bits);
        let part = hashes.len().div_ceil(rayon::current_num_threads());
        let parts: Vec<(&[u64], Vec<usize>)> = hashes
            .par_chunks(part)
            .zip(solver.scratch.par_chunks_mut(part))
            .map(|(hashes, scratch)| {
                #[cfg(test)]
                crate::watch::arrive("buckets");
                let ends = partition(hashes, raw_seed, bits, scratch);
                (&*scratch, ends)
            })
            .collect();
        let starts = starts(solver.rows.len() as u32);
        let mut rest = solver.rows.as_mut_slice();
        let mut first = 0;
        let mut work: Vec<(usize, &mut [Row], [usize; 2])> = Vec::new();
        for task in 0..tasks {
            let buckets = [task, task + 1].map(|task| (task << bits) / tasks);
            let end = match task + 1 == tasks {
                true => first + rest.len(),
                false => start((buckets[1] as u64) << (64 - bits), starts) as usize,
            };
            let (rows, later) = rest.split_at_mut(end - first);
            work.push((first, rows, buckets));
            (rest, first) = (later, end);
        }
        let spilled: Option<Vec<Vec<Equation>>> = work
            .into_par_iter()
            .map(|(first, rows, buckets)| {
                #[cfg(test)]
                crate::watch::arrive("rows");
                let mut spilled = Vec::new();
                let all = (buckets[0]..buckets[1]).all(|bucket| {
                    parts.iter().all(|(seeded, ends)| {
                        let start = bucket.checked_sub(1).map_or(0, |last| ends[last]);
                        let seeded = &seeded[start..ends[bucket]];
                        add_seeded(rows, first, starts, seeded, &mut spilled)
                    })
                });
                all.then_some(spilled)
            })
            .collect();
        let Some(spilled) = spilled else { return false };
        spilled.into_iter().flatten().all(|equation| add_within(&mut solver.rows, equation))
    }
}
