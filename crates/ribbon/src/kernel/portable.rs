//! Plain Rust for machines without AVX2, AVX-512 or NEON: four columns at a time, whose parities
//! are computed together in one word.

use blocked_bloom::InstructionSet;

use super::driver::{self, Equation, Source, for_lines};
use super::{Table, scalar};
use crate::scheme::Shards;
use crate::scheme::rocksdb::Segments;

pub(super) const TABLE: Table = Table {
    instructions: InstructionSet::Portable,
    contains_64: for_lines!(batch_64),
    contains_128: for_lines!(batch_128),
    ..scalar::TABLE
};

fn batch_64<const LINES: usize>(shards: &Shards<'_>, hashes: &[u64], hits: &mut [u64]) {
    ran!("portable");
    driver::batch_singly::<_, LINES>(shards, hashes, hits, |equation, column| {
        let [left, right] = columns_of_both::<32>(shards.bytes(), equation, 8 * column);
        parities(core::array::from_fn(|i| {
            let word =
                |bytes: &[u8; 32]| u64::from_le_bytes(core::array::from_fn(|j| bytes[8 * i + j]));
            (word(left) & equation.left) ^ (word(right) & equation.right)
        }))
    });
}

fn batch_128<const LINES: usize>(segments: &Segments<'_>, hashes: &[u64], hits: &mut [u64]) {
    ran!("portable");
    driver::batch_singly::<_, LINES>(segments, hashes, hits, |equation, column| {
        let [left, right] = columns_of_both::<64>(segments.bytes(), equation, 16 * column);
        parities(core::array::from_fn(|i| {
            let word =
                |bytes: &[u8; 64]| u128::from_le_bytes(core::array::from_fn(|j| bytes[16 * i + j]));
            let sum = (word(left) & equation.left) ^ (word(right) & equation.right);
            sum as u64 ^ (sum >> 64) as u64
        }))
    });
}

/// Returns four columns in the equation's first block and in the next.
#[inline(always)]
fn columns_of_both<'b, const BYTES: usize>(
    bytes: &'b [u8],
    equation: &Equation<impl Sized>,
    column: usize,
) -> [&'b [u8; BYTES]; 2] {
    [equation.start + column, equation.start + equation.next + column]
        .map(|at| bytes[at..].first_chunk().expect("columns within the bytes"))
}

/// Returns the parity of each word, in bits 0 to 3.
#[inline(always)]
fn parities(words: [u64; 4]) -> u32 {
    // Folds each word to 16 bits, then all together to one bit per 16.
    let folded = words.map(|word| {
        let word = word ^ (word >> 32);
        (word ^ (word >> 16)) & 0xffff
    });
    let mut all = folded[0] | folded[1] << 16 | folded[2] << 32 | folded[3] << 48;
    for shift in [8, 4, 2, 1] {
        all ^= all >> shift;
    }
    let bits = all & 0x0001_0001_0001_0001;
    ((bits | bits >> 15 | bits >> 30 | bits >> 45) & 15) as u32
}
