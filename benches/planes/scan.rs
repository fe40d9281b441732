//! The peers of bit planes: scans of consecutive rows of 128 bits for rows in which all bits of a
//! mask are set. AVX-512 does not make a scan faster, since memory limits it.

#![cfg_attr(target_arch = "x86_64", expect(unsafe_code, reason = "instruction sets"))]

/// Two words.
pub(crate) type Row = [u64; 2];

/// Bit `i` of the answers is row `i`.
pub(crate) type Scan = fn(&[Row], Row, &mut [u64]);

/// The fastest scan that this CPU has, and its name.
pub(crate) fn fastest() -> (&'static str, Scan) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi2") {
        // SAFETY: the CPU has both.
        return ("rows, AVX2", |rows, wanted, answers| unsafe { avx2(rows, wanted, answers) });
    }
    ("rows, words", words)
}

fn words(rows: &[Row], wanted: Row, answers: &mut [u64]) {
    let has_all = |row: &Row| !row[0] & wanted[0] | !row[1] & wanted[1] == 0;
    for (rows, answer) in rows.chunks(64).zip(answers) {
        let bits = rows.iter().enumerate().map(|(i, row)| u64::from(has_all(row)) << i);
        *answer = bits.fold(0, |all, bit| all | bit);
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi2")]
fn avx2(rows: &[Row], wanted: Row, answers: &mut [u64]) {
    use std::arch::x86_64::*;

    let [low, high] = wanted.map(|word| word as i64);
    let both = _mm256_set_epi64x(high, low, high, low);
    let (full, rest) = rows.as_chunks::<64>();
    let (answers, last) = answers.split_at_mut(full.len());
    for (rows, answer) in full.iter().zip(answers) {
        let mut bits = 0;
        for (i, pair) in rows.as_chunks::<2>().0.iter().enumerate() {
            // SAFETY: a pair of rows is 32 bytes.
            let pair = unsafe { _mm256_loadu_si256(pair.as_ptr().cast()) };
            let equal = _mm256_cmpeq_epi64(_mm256_and_si256(pair, both), both);
            let words = _mm256_movemask_pd(_mm256_castsi256_pd(equal)) as u64;
            bits |= _pext_u64(words & words >> 1, 0b101) << (2 * i);
        }
        *answer = bits;
    }
    words(rest, wanted, last);
}
