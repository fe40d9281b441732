//! Standard128Ribbon in plain scalar Rust: the bits of a block that belong to a hash. It is the
//! reference for kernels and construction.
//!
//! A Ribbon filter is the solution of a system of linear equations over bits. Each inserted key is
//! one equation over 128 consecutive rows ("slots") of a matrix. Its coefficients select the rows
//! whose sum must equal the key's result. An absent key satisfies its equation in each column with
//! a probability of 1/2.
//!
//! ```text
//! s            = (hash ^ raw(seed)) * 0x6193d459236a3a0d              mod 2^64
//! start        = (s * (128 * blocks - 127)) >> 64                     product in 128 bits
//! a            = s * 0xc28f82822b650bed                               mod 2^64
//! coefficients = (a * 2^64 + (a ^ 0xc367844a6e52731d)) | 1    128 bits: bit i is of slot start + i
//! result       = low 32 bits of a with its bytes reversed             bit c belongs to column c
//! ```
//!
//! The stored form is a sequence of blocks of 128 slots. A block consists of its columns, each 16
//! bytes whose bit i belongs to slot i. The first `short` blocks have one column less than the
//! others, which allows a fractional number of bits per key.
//!
//! Source: RocksDB `util/ribbon_impl.h`, `util/ribbon_alg.h`; Dillinger, Walzer, "Ribbon filter:
//! practically smaller than Bloom and Xor", 2021.

use super::{Equation, Source};

/// Size of a column of a block: one bit per slot.
pub(crate) const SEGMENT_BYTES: usize = 16;

/// Slots in a block, and coefficients of an equation.
pub(crate) const WIDTH: u32 = 128;

/// Maximum number of columns, given by the bits of a result.
pub(crate) const MAX_COLUMNS: u32 = 32;

/// Multipliers and masks of the equations, shared with the kernels.
pub(crate) const REHASH: u64 = 0x6193_d459_236a_3a0d;
pub(crate) const COEFFICIENTS: u64 = 0xc28f_8282_2b65_0bed;
pub(crate) const LOW_HALF: u64 = 0xc367_844a_6e52_731d;

/// Returns the seed with this stored ordinal.
pub(crate) const fn raw_seed(ordinal: u8) -> u32 {
    let product = (ordinal as u64).wrapping_mul(0xc782_19a2_3eea_dd03);
    (product ^ ((product & 0xf0f0_f0f0_f0f0_f0f0) >> 4)) as u32
}

/// Combines the hash with a seed. Start and coefficients depend on the result alone, and the start
/// increases with it, so sorting by it also sorts by start.
#[inline(always)]
pub(crate) const fn seeded(hash: u64, raw_seed: u32) -> u64 {
    (hash ^ raw_seed as u64).wrapping_mul(REHASH)
}

/// Returns the number of slots in which an equation can start.
pub(crate) const fn starts(slots: u32) -> u32 {
    slots - (WIDTH - 1)
}

/// Returns the first slot of the equation.
#[inline(always)]
pub(crate) const fn start(seeded: u64, starts: u32) -> u32 {
    ((seeded as u128 * starts as u128) >> 64) as u32
}

/// Returns the coefficients and the result of the equation.
#[inline(always)]
pub(crate) const fn equation(seeded: u64) -> (u128, u32) {
    let a = seeded.wrapping_mul(COEFFICIENTS);
    (((a as u128) << 64 | (a ^ LOW_HALF) as u128) | 1, a.swap_bytes() as u32)
}

/// The shape of a block's matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// 2 to 2^24 - 1.
    blocks: u32,
    /// Columns of the blocks after the first `short`, 1 to 32.
    columns: u32,
    /// Number of leading blocks with one column less, at most `blocks`.
    short: u32,
}

impl Shape {
    /// Returns the shape of this many bytes, or `None` where RocksDB's reader answers "maybe":
    /// fewer than two blocks, or less than one column of one block.
    ///
    /// The shape never has more segments than the bytes.
    pub(crate) fn new(bytes: usize, blocks: u32) -> Option<Self> {
        let segments = u32::try_from(bytes / SEGMENT_BYTES).ok()?;
        if !(2..1 << 24).contains(&blocks) || segments == 0 {
            return None;
        }
        match segments.div_ceil(blocks) {
            columns @ ..=MAX_COLUMNS => {
                Some(Shape { blocks, columns, short: columns * blocks - segments })
            }
            _ => Some(Shape { blocks, columns: MAX_COLUMNS, short: 0 }),
        }
    }

    pub(crate) fn blocks(self) -> u32 {
        self.blocks
    }

    pub(crate) fn columns(self) -> u32 {
        self.columns
    }

    pub(crate) fn short(self) -> u32 {
        self.short
    }

    /// Returns the number of slots in which an equation can start, below 2^31.
    #[inline(always)]
    pub(crate) fn starts(self) -> u32 {
        starts(self.blocks * WIDTH)
    }

    /// Returns the number of segments that equations can use.
    #[inline]
    pub(crate) fn segments(self) -> usize {
        (self.columns as usize * self.blocks as usize) - self.short as usize
    }

    /// Returns the fraction of absent keys that satisfy their equations.
    pub(crate) fn rate(self) -> f64 {
        let starts = f64::from(self.starts());
        let short = f64::from((self.short * WIDTH).min(self.starts())) / starts;
        libm::exp2(-f64::from(self.columns)) * (1.0 + short)
    }
}

/// A column of a block.
pub(crate) type Segment = [u8; SEGMENT_BYTES];

/// The segments of a filter block, with shape and seed.
#[derive(Clone, Copy)]
pub(crate) struct Segments<'a> {
    shape: &'a Shape,
    raw_seed: u32,
    /// At least as many as the shape has.
    segments: &'a [Segment],
}

impl<'a> Segments<'a> {
    /// Returns `None` if the data have fewer segments than the shape.
    #[inline]
    pub(crate) fn new(data: &'a [u8], shape: &'a Shape, raw_seed: u32) -> Option<Self> {
        let (segments, _) = data.as_chunks();
        (shape.segments() <= segments.len()).then_some(Segments { shape, raw_seed, segments })
    }

    #[inline(always)]
    #[cfg_attr(
        not(target_arch = "x86_64"),
        expect(dead_code, reason = "for keys prepared in registers")
    )]
    pub(crate) fn shape(&self) -> Shape {
        *self.shape
    }

    #[inline(always)]
    #[cfg_attr(
        not(target_arch = "x86_64"),
        expect(dead_code, reason = "for keys prepared in registers")
    )]
    pub(crate) fn raw_seed(&self) -> u32 {
        self.raw_seed
    }
}

impl Source for Segments<'_> {
    type Word = u128;

    const WORD_BYTES: usize = SEGMENT_BYTES;

    /// The place is always within the segments of the [`Shape`]: a block ends where the next
    /// begins. An equation that does not start at bit 0 ends in the next block. That block exists,
    /// because the last possible start is the first slot of the last block.
    #[inline(always)]
    fn equation(&self, hash: u64) -> Equation<u128> {
        let Shape { columns, short, .. } = *self.shape;
        let seeded = seeded(hash, self.raw_seed);
        let start = start(seeded, self.shape.starts());
        let (block, bit) = (start / WIDTH, start % WIDTH);
        let segment = (block * columns - block.min(short)) as usize;
        let columns = (columns - u32::from(block < short)) as usize;
        let (coefficients, result) = equation(seeded);
        Equation {
            start: SEGMENT_BYTES * segment,
            next: if bit == 0 { 0 } else { SEGMENT_BYTES * columns },
            columns,
            result,
            left: coefficients << bit,
            // In two steps, because the distance may be 128.
            right: coefficients >> 1 >> (WIDTH - 1 - bit),
        }
    }

    #[inline(always)]
    fn bytes(&self) -> &[u8] {
        self.segments.as_flattened()
    }

    #[inline(always)]
    fn columns(&self) -> usize {
        self.shape.columns as usize
    }

    #[inline(always)]
    fn parity(&self, equation: &Equation<&u128>, column: usize) -> u32 {
        let at = equation.start / SEGMENT_BYTES + column;
        let word = |at: usize| u128::from_le_bytes(self.segments[at]);
        let next = word(at + equation.next / SEGMENT_BYTES);
        ((word(at) & equation.left) ^ (next & equation.right)).count_ones() & 1
    }
}
