//! Standard128Ribbon in plain scalar Rust: which bits of a block a hash refers to. Kernels and
//! construction are compared with it.
//!
//! A Ribbon filter is the solution of a system of linear equations over bits: every key that was
//! added is one equation, over 128 consecutive rows ("slots") of a matrix, whose bits say which of
//! these rows add up to the key's result. A key that was not added fulfils its equation in each
//! column by chance, half of the time.
//!
//! ```text
//! s            = (hash ^ raw(seed)) * 0x6193d459236a3a0d              mod 2^64
//! start        = (s * (128 * blocks - 127)) >> 64                     product in 128 bits
//! a            = s * 0xc28f82822b650bed                               mod 2^64
//! coefficients = (a * 2^64 + (a ^ 0xc367844a6e52731d)) | 1    128 bits: bit i is of slot start + i
//! result       = low 32 bits of a with its bytes reversed             bit c belongs to column c
//! ```
//!
//! Stored are blocks of 128 slots, one behind the other, and in each its columns: 16 bytes, bit i
//! of which belongs to slot i. The first `short` blocks have a column less than the others, which
//! gives fractional bits per key.
//!
//! Source: RocksDB `util/ribbon_impl.h`, `util/ribbon_alg.h`; Dillinger, Walzer, "Ribbon filter:
//! practically smaller than Bloom and Xor", 2021.

/// Bytes of a column of a block: one bit for each of its slots.
pub(crate) const SEGMENT_BYTES: usize = 16;

/// Slots in a block, and coefficients of an equation.
pub(crate) const WIDTH: u32 = 128;

/// Most columns that a result has bits for.
pub(crate) const MAX_COLUMNS: u32 = 32;

/// Multipliers and masks of the equations, for the kernels.
pub(crate) const REHASH: u64 = 0x6193_d459_236a_3a0d;
pub(crate) const COEFFICIENTS: u64 = 0xc28f_8282_2b65_0bed;
pub(crate) const LOW_HALF: u64 = 0xc367_844a_6e52_731d;

/// What the stored ordinal of a seed stands for.
pub(crate) const fn raw_seed(ordinal: u8) -> u32 {
    let product = (ordinal as u64).wrapping_mul(0xc782_19a2_3eea_dd03);
    (product ^ ((product & 0xf0f0_f0f0_f0f0_f0f0) >> 4)) as u32
}

/// The hash under a seed. Start and coefficients follow from it alone, and the start grows with it:
/// hashes that are ordered by it are ordered by start.
#[inline(always)]
pub(crate) const fn seeded(hash: u64, raw_seed: u32) -> u64 {
    (hash ^ raw_seed as u64).wrapping_mul(REHASH)
}

/// Slots in which an equation can start, given those of the filter.
pub(crate) const fn starts(slots: u32) -> u32 {
    slots - (WIDTH - 1)
}

/// The first slot of the equation.
#[inline(always)]
pub(crate) const fn start(seeded: u64, starts: u32) -> u32 {
    ((seeded as u128 * starts as u128) >> 64) as u32
}

/// Coefficients and result of the equation.
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
    /// Columns of the blocks from `short` on, 1 to 32.
    columns: u32,
    /// Blocks, from the first, that have one column less; at most `blocks`.
    short: u32,
}

/// Where the columns of an equation are.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    /// The segment of column 0 in the equation's first block; column c is c segments further on.
    pub(crate) segment: usize,
    /// 0 to 32. The next block, which has as many columns or one more, begins this many segments
    /// after `segment`.
    pub(crate) columns: u32,
    /// The first slot's bit in its segments, 0 to 127. At 0 the equation is in one block, which may
    /// be the last.
    pub(crate) bit: u32,
}

impl Shape {
    /// The shape of this many bytes, or `None` where RocksDB's reader answers "maybe": fewer than
    /// two blocks, or bytes for less than one column of one.
    ///
    /// The shape's segments are never more than those of the bytes.
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

    /// Slots in which an equation can start, less than 2^31.
    #[inline(always)]
    pub(crate) fn starts(self) -> u32 {
        starts(self.blocks * WIDTH)
    }

    /// Segments that equations can be about.
    #[inline]
    pub(crate) fn segments(self) -> usize {
        (self.columns as usize * self.blocks as usize) - self.short as usize
    }

    /// Where the equation that starts here is, `start < starts()`.
    ///
    /// All of it is among [`segments`](Self::segments): a block ends where the next begins. An
    /// equation that does not start at bit 0 ends in the next block, which there is, since starts
    /// end with the first slot of the last block.
    #[inline(always)]
    pub(crate) fn place(self, start: u32) -> Place {
        let (block, bit) = (start / WIDTH, start % WIDTH);
        let segment = (block * self.columns - block.min(self.short)) as usize;
        Place { segment, columns: self.columns - u32::from(block < self.short), bit }
    }

    /// The fraction of keys that were not added and fulfil their equations.
    pub(crate) fn rate(self) -> f64 {
        let starts = f64::from(self.starts());
        let short = f64::from((self.short * WIDTH).min(self.starts())) / starts;
        libm::exp2(-f64::from(self.columns)) * (1.0 + short)
    }
}

/// The bits of an equation in its first block and in the next.
#[inline(always)]
pub(crate) const fn masks(coefficients: u128, bit: u32) -> (u128, u128) {
    // The shift is in two steps, since it may be by 128.
    (coefficients << bit, coefficients >> 1 >> (WIDTH - 1 - bit))
}

/// The columns of a block.
pub(crate) type Segment = [u8; SEGMENT_BYTES];

/// The segments of a block, and how they are read.
#[derive(Clone, Copy)]
pub(crate) struct Segments<'a> {
    shape: &'a Shape,
    raw_seed: u32,
    /// At least those of the shape.
    segments: &'a [Segment],
}

/// An equation and where its columns are.
#[derive(Clone, Copy)]
pub(crate) struct Placed {
    /// The segment of column 0 in the equation's first block.
    pub(crate) segment: usize,
    /// Segments from there to the same column of the next block; 0 if the equation is in one block.
    pub(crate) next: usize,
    /// 0 to 32; the equation's segments end at `segment + next + columns`, which is not beyond the
    /// last segment.
    pub(crate) columns: u32,
    /// The equation's bits in the first block and in the next.
    pub(crate) left: u128,
    pub(crate) right: u128,
    pub(crate) result: u32,
}

impl<'a> Segments<'a> {
    /// `None` if the data have fewer segments than the shape.
    #[inline]
    pub(crate) fn new(data: &'a [u8], shape: &'a Shape, raw_seed: u32) -> Option<Self> {
        let (segments, _) = data.as_chunks();
        (shape.segments() <= segments.len()).then_some(Segments { shape, raw_seed, segments })
    }

    #[inline(always)]
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

    #[inline(always)]
    pub(crate) fn segments(&self) -> &'a [Segment] {
        self.segments
    }

    /// The hash's equation.
    #[inline(always)]
    pub(crate) fn place(&self, hash: u64) -> Placed {
        let seeded = seeded(hash, self.raw_seed);
        let Place { segment, columns, bit } = self.shape.place(start(seeded, self.shape.starts()));
        let (coefficients, result) = equation(seeded);
        let (left, right) = masks(coefficients, bit);
        let next = if bit == 0 { 0 } else { columns as usize };
        Placed { segment, next, columns, left, right, result }
    }

    /// Whether the hash's equation is fulfilled in every column: true means "maybe", false means
    /// "certainly absent".
    #[inline]
    pub(crate) fn contains(&self, hash: u64) -> bool {
        let Placed { segment: first, next, columns, left, right, result } = self.place(hash);
        (0..columns).all(|column| {
            let at = first + column as usize;
            let word = |at: usize| u128::from_le_bytes(self.segments[at]);
            let sum = (word(at) & left) ^ (word(at + next) & right);
            (sum.count_ones() ^ result >> column) & 1 == 0
        })
    }
}
