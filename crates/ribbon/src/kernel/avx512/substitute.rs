//! Back substitution with AVX-512: eight columns per register, up to four registers.

use core::arch::x86_64::*;

use super::splat;
use crate::scheme::rocksdb::{self, Segment};
use crate::scheme::{WIDTH, Word};
use crate::solve::Rows;
use crate::solve::rocksdb::Row;

/// `a ^ (b & c)`, and `a | (b & c)`.
const XOR_AND: i32 = 0x78;
const OR_AND: i32 = 0xf8;

/// # Safety
///
/// The CPU must support these features.
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,avx512vpopcntdq,bmi1,bmi2,popcnt")]
pub(super) unsafe fn substitute_64(rows: &Rows, out: &mut [Word], columns: u32, short: u32) {
    let substitute = match columns {
        ..=8 => columns_64::<1>,
        9..=16 => columns_64::<2>,
        17..=24 => columns_64::<3>,
        _ => columns_64::<4>,
    };
    // SAFETY: the caller promises that the CPU supports these features, which `substitute` needs.
    unsafe { substitute(rows, out, columns, short) }
}

/// # Safety
///
/// The CPU must support these features.
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,avx512vpopcntdq,bmi1,bmi2,popcnt")]
pub(super) unsafe fn substitute_128(rows: &[Row], out: &mut [Segment], columns: u32, short: u32) {
    let substitute = match columns {
        ..=8 => columns_128::<1>,
        9..=16 => columns_128::<2>,
        17..=24 => columns_128::<3>,
        _ => columns_128::<4>,
    };
    // SAFETY: the caller promises that the CPU supports these features, which `substitute` needs.
    unsafe { substitute(rows, out, columns, short) }
}

/// Returns the bit of the result for each column of register `k`, as the lowest bit of its word.
#[inline]
#[target_feature(enable = "avx512f")]
fn results(result: u32, k: usize) -> __m512i {
    let lanes = _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7);
    _mm512_srlv_epi64(splat(u64::from(result >> (8 * k))), lanes)
}

/// # Safety
///
/// The CPU must support these features.
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,avx512vpopcntdq,bmi1,bmi2,popcnt")]
unsafe fn columns_64<const K: usize>(rows: &Rows, out: &mut [Word], columns: u32, short: u32) {
    ran!("avx512");
    let mut state = [_mm512_setzero_si512(); K];
    let mut end = out.len();
    let blocks = rows.coefficients.chunks_exact(WIDTH as usize);
    let results_of = rows.results.chunks_exact(WIDTH as usize);
    for (block, (rows, row_results)) in blocks.zip(results_of).enumerate().rev() {
        for (&coefficients, &result) in rows.iter().zip(row_results).rev() {
            let coefficients = splat(coefficients);
            for (k, state) in state.iter_mut().enumerate() {
                let shifted = _mm512_slli_epi64::<1>(*state);
                let sum = _mm512_popcnt_epi64(_mm512_and_si512(shifted, coefficients));
                let bit = _mm512_xor_si512(sum, results(result, k));
                *state = _mm512_ternarylogic_epi64::<OR_AND>(shifted, bit, splat(1));
            }
        }
        let columns = (columns - u32::from((block as u32) < short)) as usize;
        let first = end - columns;
        let words = state.map(|register| words(register));
        for (word, state) in out[first..end].iter_mut().zip(words.as_flattened()) {
            *word = state.to_le_bytes();
        }
        end = first;
    }
}

/// # Safety
///
/// The CPU must support these features.
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,avx512vpopcntdq,bmi1,bmi2,popcnt")]
unsafe fn columns_128<const K: usize>(rows: &[Row], out: &mut [Segment], columns: u32, short: u32) {
    ran!("avx512");
    let mut state = [[_mm512_setzero_si512(); 2]; K];
    let mut end = out.len();
    for (block, rows) in rows.chunks_exact(rocksdb::WIDTH as usize).enumerate().rev() {
        for row in rows.iter().rev() {
            let (low_row, high_row) = (splat(row.low), splat(row.high));
            for (k, [low, high]) in state.iter_mut().enumerate() {
                let carry = _mm512_srli_epi64::<63>(*low);
                let shifted = _mm512_slli_epi64::<1>(*low);
                *high = _mm512_or_si512(_mm512_slli_epi64::<1>(*high), carry);
                let sum = _mm512_and_si512(shifted, low_row);
                let sum = _mm512_ternarylogic_epi64::<XOR_AND>(sum, *high, high_row);
                let bit = _mm512_xor_si512(_mm512_popcnt_epi64(sum), results(row.result, k));
                *low = _mm512_ternarylogic_epi64::<OR_AND>(shifted, bit, splat(1));
            }
        }
        let columns = (columns - u32::from((block as u32) < short)) as usize;
        let first = end - columns;
        let [low, high] = [0, 1].map(|half| state.map(|state| words(state[half])));
        let halves = low.as_flattened().iter().zip(high.as_flattened());
        for (segment, (&low, &high)) in out[first..end].iter_mut().zip(halves) {
            *segment = (u128::from(low) | u128::from(high) << 64).to_le_bytes();
        }
        end = first;
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn words(register: __m512i) -> [u64; 8] {
    let mut words = [0; 8];
    // SAFETY: the array has the 64 bytes that the store writes; the store allows any alignment.
    unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), register) };
    words
}
