//! The sharded filter in plain scalar Rust: which bits of which shard a hash refers to. Kernels and
//! construction are compared with it, and `docs/format.md` is normative.
//!
//! A shard is a small Ribbon filter of its own: equations of 64 coefficients, blocks of 64 slots, a
//! seed. With `n` shards:
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
//! `seed` and `starts` are the shard's, from its entry of the directory. A block is its columns one
//! behind the other, each a word of 64 bits of which bit i belongs to slot i; the first `short`
//! blocks have a column less than the filter's number.

pub(crate) mod rocksdb;

use self::rocksdb::{COEFFICIENTS, REHASH};

/// Slots in a block, and coefficients of an equation.
pub(crate) const WIDTH: u32 = 64;

/// Most columns, for a rate of 2^-32.
pub(crate) const MAX_COLUMNS: u32 = 32;

/// A word of the stored filter: a column of a block, or a shard's entry of the directory.
pub(crate) type Word = [u8; 8];

/// The factor of the seed's ordinal.
pub(crate) const SEED: u64 = 0xc782_19a2_3eea_dd03;

/// A shard as the directory has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Words before the shard's first.
    pub(crate) offset: u32,
    /// Slots in which an equation can start: the shard's slots less 63.
    pub(crate) starts: u16,
    /// Blocks, from the first, that have one column less.
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

    /// Blocks of the shard.
    pub(crate) fn blocks(self) -> u32 {
        u32::from(self.starts).div_ceil(WIDTH)
    }

    /// Words of the shard, if its blocks have this many columns.
    pub(crate) fn words(self, columns: u32) -> u32 {
        self.blocks() * columns - u32::from(self.short).min(self.blocks())
    }

    /// The fraction of the hashes of this shard that were not added and fulfil their equations.
    pub(crate) fn rate(self, columns: u32) -> f64 {
        let starts = f64::from(self.starts.max(1));
        let short = f64::from(u32::from(self.short) * WIDTH).min(starts) / starts;
        libm::exp2(-f64::from(columns)) * (1.0 + short)
    }
}

/// The shard of the hash, `0 .. shards`, and what remains of the hash.
#[inline(always)]
pub(crate) const fn shard(hash: u64, shards: u32) -> (u32, u64) {
    let product = hash as u128 * shards as u128;
    ((product >> 64) as u32, product as u64)
}

/// An equation: where it starts, its coefficients, its result.
#[inline(always)]
pub(crate) const fn equation(rest: u64, seed: u8, starts: u16) -> (u32, u64, u64) {
    let seeded = (rest ^ (seed as u64).wrapping_mul(SEED)).wrapping_mul(REHASH);
    let a = seeded.wrapping_mul(COEFFICIENTS);
    ((((seeded >> 32) * starts as u64) >> 32) as u32, a | 1, a.swap_bytes())
}

/// The words of a filter, and how they are read.
#[derive(Clone, Copy)]
pub(crate) struct Shards<'a> {
    /// At most 2^32 - 1.
    pub(crate) directory: &'a [Word],
    pub(crate) words: &'a [Word],
    /// 1 to 32.
    pub(crate) columns: u32,
}

/// An equation and where its columns are.
#[derive(Clone, Copy)]
pub(crate) struct Placed {
    /// The word of column 0 in the equation's first block.
    pub(crate) word: usize,
    /// Words from there to the same column of the next block; 0 if the equation is in one block.
    pub(crate) next: usize,
    /// 0 to 32; the equation's words end at `word + next + columns`, which is not beyond the last
    /// word.
    pub(crate) columns: u32,
    /// The equation's bits in the first block and in the next.
    pub(crate) left: u64,
    pub(crate) right: u64,
    pub(crate) result: u64,
}

impl Shards<'_> {
    /// The hash's equation, or the answer where there is none: false without shards, true ("maybe")
    /// if the directory leads beyond the last word, which a verified one does not.
    #[inline(always)]
    pub(crate) fn place(&self, hash: u64) -> Result<Placed, bool> {
        let (shard, rest) = shard(hash, self.directory.len() as u32);
        let entry = Entry::from_word(*self.directory.get(shard as usize).ok_or(false)?);
        let (start, coefficients, result) = equation(rest, entry.seed, entry.starts);
        let (block, bit) = (start / WIDTH, start % WIDTH);
        let short = u32::from(entry.short);
        let columns = self.columns - u32::from(block < short);
        let word = u64::from(entry.offset) + u64::from(block * self.columns - block.min(short));
        let next = if bit == 0 { 0 } else { columns };
        let end = word + u64::from(next + columns);
        let left = coefficients << bit;
        // In two steps, since it may be by 64.
        let right = coefficients >> 1 >> (WIDTH - 1 - bit);
        match end <= self.words.len() as u64 {
            true => Ok(Placed {
                word: word as usize,
                next: next as usize,
                columns,
                left,
                right,
                result,
            }),
            false => Err(true),
        }
    }

    /// Whether the hash's equation is fulfilled in every column: true means "maybe", false means
    /// "certainly absent", as without shards.
    #[inline]
    pub(crate) fn contains(&self, hash: u64) -> bool {
        let placed = match self.place(hash) {
            Ok(placed) => placed,
            Err(answer) => return answer,
        };
        let Placed { word: first, next, columns, left, right, result } = placed;
        (0..columns).all(|column| {
            let at = first + column as usize;
            let word = |at: usize| u64::from_le_bytes(self.words[at]);
            let sum = (word(at) & left) ^ (word(at + next) & right);
            (u64::from(sum.count_ones()) ^ result >> column) & 1 == 0
        })
    }
}
