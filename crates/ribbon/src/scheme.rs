//! The sharded filter in plain scalar Rust: the bits of a shard that belong to a hash. It is the
//! reference for kernels and construction; `docs/format.md` is normative.
//!
//! A shard is a small separate Ribbon filter with equations of 64 coefficients, blocks of 64 slots,
//! and a seed. With `n` shards:
//!
//! ```text
//! shard, rest  = (hash * n) / 2^64, (hash * n) mod 2^64
//! s            = (rest ^ seed * 0xc78219a23eeadd03) * 0x6193d459236a3a0d          mod 2^64
//! start        = ((s / 2^32) * starts) / 2^32
//! a            = s * 0xc28f82822b650bed                                            mod 2^64
//! coefficients = a | 1                              bit i belongs to slot start + i of the shard
//! result       = a with its bytes reversed              bit c belongs to column c
//! ```
//!
//! `seed` and `starts` come from the shard's entry in the directory. A block consists of its
//! columns, each a 64-bit word whose bit i belongs to slot i. The first `short` blocks have one
//! column less than the others.

pub(crate) mod rocksdb;

use self::rocksdb::{COEFFICIENTS, REHASH};

/// Slots in a block, and coefficients of an equation.
pub(crate) const WIDTH: u32 = 64;

/// Maximum number of columns, for a rate of 2^-32.
pub(crate) const MAX_COLUMNS: u32 = 32;

/// A word of the stored filter: a column of a block, or a shard's directory entry.
pub(crate) type Word = [u8; 8];

/// Multiplier of the seed's ordinal.
pub(crate) const SEED: u64 = 0xc782_19a2_3eea_dd03;

/// A shard's directory entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Number of words before the shard.
    pub(crate) offset: u32,
    /// Number of slots in which an equation can start: the shard's slots minus 63.
    pub(crate) starts: u16,
    /// Number of leading blocks with one column less.
    pub(crate) short: u8,
    pub(crate) seed: u8,
}

impl Entry {
    #[inline(always)]
    pub(crate) fn from_word(word: Word) -> Self {
        let word = u64::from_le_bytes(word);
        Entry {
            offset: word as u32,
            starts: (word >> 32) as u16,
            short: (word >> 48) as u8,
            seed: (word >> 56) as u8,
        }
    }

    pub(crate) fn to_word(self) -> Word {
        let high = u64::from(self.short) << 16 | u64::from(self.seed) << 24;
        (u64::from(self.offset) | (u64::from(self.starts) | high) << 32).to_le_bytes()
    }

    /// Returns the number of blocks of the shard.
    pub(crate) fn blocks(self) -> u32 {
        u32::from(self.starts).div_ceil(WIDTH)
    }

    /// Returns the number of words of the shard, given the columns of its blocks.
    pub(crate) fn words(self, columns: u32) -> u32 {
        self.blocks() * columns - u32::from(self.short).min(self.blocks())
    }

    /// Returns the fraction of absent hashes of this shard that satisfy their equations.
    pub(crate) fn rate(self, columns: u32) -> f64 {
        let starts = f64::from(self.starts.max(1));
        let short = f64::from(u32::from(self.short) * WIDTH).min(starts) / starts;
        libm::exp2(-f64::from(columns)) * (1.0 + short)
    }
}

/// Returns the shard of the hash, `0 .. shards`, and the remainder of the hash.
#[inline(always)]
pub(crate) const fn shard(hash: u64, shards: u32) -> (u32, u64) {
    let product = hash as u128 * shards as u128;
    ((product >> 64) as u32, product as u64)
}

/// Returns an equation: start, coefficients and result.
#[inline(always)]
pub(crate) const fn equation(rest: u64, seed: u8, starts: u16) -> (u32, u64, u64) {
    let seeded = (rest ^ (seed as u64).wrapping_mul(SEED)).wrapping_mul(REHASH);
    let a = seeded.wrapping_mul(COEFFICIENTS);
    ((((seeded >> 32) * starts as u64) >> 32) as u32, a | 1, a.swap_bytes())
}

/// The words of a filter.
#[derive(Clone, Copy)]
pub(crate) struct Shards<'a> {
    /// At most 2^32 - 1.
    pub(crate) directory: &'a [Word],
    pub(crate) words: &'a [Word],
    /// 1 to 32.
    pub(crate) columns: u32,
}

/// An equation and the place of its bytes.
#[derive(Clone, Copy)]
pub(crate) struct Equation<W> {
    /// Offset of column 0 in the equation's first block. `next` is the distance in bytes to the
    /// same column of the next block; 0 if the equation is in one block.
    pub(crate) start: usize,
    pub(crate) next: usize,
    /// 0 to 32. Without columns the answer is "maybe".
    pub(crate) columns: usize,
    pub(crate) result: u32,
    /// The bits in the first block and in the next: a word, or a reference to it.
    pub(crate) left: W,
    pub(crate) right: W,
}

impl<W> Equation<W> {
    /// Borrows the equation's bits.
    #[inline(always)]
    pub(crate) fn as_ref(&self) -> Equation<&W> {
        let Equation { start, next, columns, result, ref left, ref right } = *self;
        Equation { start, next, columns, result, left, right }
    }
}

/// The columns of a filter, and the equations of hashes.
pub(crate) trait Source {
    /// The type of a column of a block.
    type Word: Copy + Default;

    /// Size of a column of a block in bytes.
    const WORD_BYTES: usize;

    /// Returns the hash's equation. All of its bytes, `WORD_BYTES * columns` beginning at `start`
    /// and as many at `start + next`, are within [`bytes`](Self::bytes).
    fn equation(&self, hash: u64) -> Equation<Self::Word>;

    fn bytes(&self) -> &[u8];

    /// Returns the maximum number of columns of an equation.
    fn columns(&self) -> usize;

    /// Returns the parity of the equation in one column.
    fn parity(&self, equation: &Equation<&Self::Word>, column: usize) -> u32;

    /// Returns whether the equation is satisfied in every column.
    #[inline(always)]
    fn holds(&self, equation: &Equation<&Self::Word>) -> bool {
        let holds = |column| self.parity(equation, column) == equation.result >> column & 1;
        (0..equation.columns).all(holds)
    }

    /// Returns whether the hash satisfies its equation in every column: true means "maybe", false
    /// "certainly absent".
    #[inline]
    fn contains(&self, hash: u64) -> bool {
        self.holds(&self.equation(hash).as_ref())
    }
}

impl Source for Shards<'_> {
    type Word = u64;

    const WORD_BYTES: usize = 8;

    /// Returns an equation without columns if there are no shards, or if the directory, which may
    /// be unverified, points after the last word.
    #[inline(always)]
    fn equation(&self, hash: u64) -> Equation<u64> {
        let nothing = Equation { start: 0, next: 0, columns: 0, result: 0, left: 0, right: 0 };
        let (shard, rest) = shard(hash, self.directory.len() as u32);
        let Some(&entry) = self.directory.get(shard as usize) else { return nothing };
        let entry = Entry::from_word(entry);
        let (start, coefficients, result) = equation(rest, entry.seed, entry.starts);
        let (block, bit) = (start / WIDTH, start % WIDTH);
        let short = u32::from(entry.short);
        let columns = self.columns - u32::from(block < short);
        let word = u64::from(entry.offset) + u64::from(block * self.columns - block.min(short));
        let next = if bit == 0 { 0 } else { columns };
        if word + u64::from(next + columns) > self.words.len() as u64 {
            return nothing;
        }
        Equation {
            start: 8 * word as usize,
            next: 8 * next as usize,
            columns: columns as usize,
            result: result as u32,
            left: coefficients << bit,
            // In two steps, because the distance may be 64.
            right: coefficients >> 1 >> (WIDTH - 1 - bit),
        }
    }

    #[inline(always)]
    fn bytes(&self) -> &[u8] {
        self.words.as_flattened()
    }

    #[inline(always)]
    fn columns(&self) -> usize {
        self.columns as usize
    }

    #[inline(always)]
    fn parity(&self, equation: &Equation<&u64>, column: usize) -> u32 {
        let at = equation.start / 8 + column;
        let word = |at: usize| u64::from_le_bytes(self.words[at]);
        let next = word(at + equation.next / 8);
        ((word(at) & equation.left) ^ (next & equation.right)).count_ones() & 1
    }
}
