//! The parts that kernels share. Keys are prepared eight at a time, some iterations before they are
//! tested, so that their lines are in the cache by then. For kernels that prepare keys one by one,
//! it also tests four columns at a time.

use crate::prefetch;
pub(super) use crate::scheme::{Equation, Source};

/// Keys per iteration.
pub(super) const KEYS: usize = 8;

/// Prefetch distance in keys: 32 keys of seven columns use about 150 cache lines.
pub(super) const RING: usize = 32;

/// Looks up a batch. `prepare(ring, keys, slot)` prepares eight keys and prefetches their lines.
/// Later, `first(ring, slot)` tests the first columns of these eight keys without a branch between
/// them, and returns a bit for each. If there are `more` columns, `rest(ring, slot)` tests those of
/// a key that passed. Slots are below [`RING`], and the three functions share `ring`.
///
/// Each function is called in one place: with a loop over columns instead of `first`, a batch took
/// 1.2 times as much time (Zen 5). Always inlined, so that all are compiled for the caller's
/// instruction set.
#[inline(always)]
pub(super) fn batch<R>(
    ring: &mut R,
    hashes: &[u64],
    hits: &mut [u64],
    more: bool,
    prepare: impl Fn(&mut R, &[u64; KEYS], usize),
    first: impl Fn(&R, usize) -> u64,
    rest: impl Fn(&R, usize) -> bool,
) {
    const ITERATIONS_AHEAD: usize = RING / KEYS;
    let (iterations, last) = hashes.as_chunks::<KEYS>();
    let mut padded = [0; KEYS];
    padded[..last.len()].copy_from_slice(last);
    let count = hashes.len().div_ceil(KEYS);
    let mut bits = 0;
    for i in 0..count + ITERATIONS_AHEAD {
        let slot = i % ITERATIONS_AHEAD * KEYS;
        if let Some(tested) = i.checked_sub(ITERATIONS_AHEAD) {
            let mut passed = first(ring, slot);
            if more && passed != 0 {
                let mut left = passed;
                while left != 0 {
                    let key = left.trailing_zeros() as usize;
                    left &= left - 1;
                    passed ^= u64::from(!rest(ring, slot + key)) << key;
                }
            }
            bits |= passed << (tested * KEYS % 64);
            if tested % (64 / KEYS) == 64 / KEYS - 1 {
                hits[tested * KEYS / 64] = bits;
                bits = 0;
            }
        }
        if i < count {
            prepare(ring, iterations.get(i).unwrap_or(&padded), slot);
        }
    }
    if let (1.., Some(word)) = (hashes.len() % 64, hits.last_mut()) {
        if !count.is_multiple_of(64 / KEYS) {
            *word = bits;
        }
        // Padding keys may have passed.
        *word &= u64::MAX >> (64 - hashes.len() % 64);
    }
}

/// Tests eight keys one by one, and returns a bit for each.
#[inline(always)]
pub(super) fn test_each(slot: usize, test: impl Fn(usize) -> bool) -> u64 {
    let mut passed = 0;
    for key in 0..KEYS {
        passed |= u64::from(test(slot + key)) << key;
    }
    passed
}

/// For each of eight keys, prefetches `LINES` cache lines beginning at the key's start, and the
/// line of the last of `span` bytes. Prefetches nothing if `LINES` is 0.
#[inline(always)]
pub(super) fn prefetch_spans<const LINES: usize>(
    bytes: &[u8],
    starts: &[u64; RING],
    slot: usize,
    span: usize,
) {
    let starts = if LINES > 0 { &starts[slot % RING..][..KEYS] } else { &[] };
    for &start in starts {
        let start = start as usize;
        for line in 0..LINES {
            prefetch(bytes, start.wrapping_add(64 * line));
        }
        prefetch(bytes, start.wrapping_add(span).wrapping_sub(1));
    }
}

/// The variants of `$function` for 0 and for up to 2, 4, 8 and 16 cache lines. There are few, since
/// each is a separate loop in the binary.
macro_rules! for_lines {
    ($function:ident) => {
        [$function::<0>, $function::<2>, $function::<4>, $function::<8>, $function::<16>]
    };
}
pub(super) use for_lines;

/// Returns the bits of the equation's result beginning at each of two columns, the first in the low
/// half.
#[inline(always)]
fn results<W>(equation: &Equation<W>, columns: [usize; 2]) -> u64 {
    let [low, high] = columns.map(|column| u64::from(equation.result >> column));
    low | high << 32
}

/// Prepared equations. Aligned, since words that straddle two cache lines of the stack are stored
/// and loaded twice.
#[repr(C, align(64))]
pub(super) struct Ring<W> {
    pub(super) left: [W; RING],
    pub(super) right: [W; RING],
    pub(super) start: [u64; RING],
    pub(super) next: [u64; RING],
    pub(super) columns: [u64; RING],
    /// The result, and in the high half its bits beginning at the last four columns.
    pub(super) result: [u64; RING],
}

impl<W: Copy + Default> Ring<W> {
    fn new() -> Self {
        let [left, right] = [[W::default(); RING]; 2];
        let [start, next, columns, result] = [[0; RING]; 4];
        Ring { left, right, start, next, columns, result }
    }

    #[inline(always)]
    pub(super) fn get(&self, slot: usize) -> Equation<&W> {
        let slot = slot % RING;
        Equation {
            start: self.start[slot] as usize,
            next: self.next[slot] as usize,
            columns: self.columns[slot] as usize,
            result: self.result[slot] as u32,
            left: &self.left[slot],
            right: &self.right[slot],
        }
    }

    #[inline(always)]
    pub(super) fn set(&mut self, slot: usize, equation: Equation<W>) {
        let slot = slot % RING;
        self.start[slot] = equation.start as u64;
        self.next[slot] = equation.next as u64;
        self.columns[slot] = equation.columns as u64;
        self.result[slot] = results(&equation, [0, equation.columns.saturating_sub(4)]);
        self.left[slot] = equation.left;
        self.right[slot] = equation.right;
    }
}

/// Prefetches the cache lines of the equation's bytes. For any contents, at most the directory is
/// read.
#[inline]
pub(crate) fn prefetch_equation<S: Source>(source: &S, hash: u64) {
    let Equation { start, next, columns, .. } = source.equation(hash);
    let bytes = next + S::WORD_BYTES * columns;
    let last = bytes.checked_sub(1);
    (0..bytes).step_by(64).chain(last).for_each(|offset| prefetch(source.bytes(), start + offset));
}

/// Looks up a batch, eight columns at a time. `prepare(ring, keys, slot)` stores the equations of
/// eight keys, as [`Source::equation`] returns them. `first(ring, slot)` tests the first four and
/// the last four columns of eight keys, like [`test_singly`]. `holds` tests the remaining columns.
///
/// The first four and the last four columns come first, whether or not they overlap, so that
/// nothing remains for five to eight columns. Always inlined, so that all are compiled for the
/// caller's instruction set.
#[inline(always)]
pub(super) fn batch_by_fours<S: Source, const LINES: usize>(
    source: &S,
    hashes: &[u64],
    hits: &mut [u64],
    prepare: impl Fn(&mut Ring<S::Word>, &[u64; KEYS], usize),
    first: impl Fn(&Ring<S::Word>, usize) -> u64,
    holds: impl TestColumns<S>,
) {
    let span = 2 * S::WORD_BYTES * source.columns();
    let prepare = |ring: &mut Ring<S::Word>, keys: &[u64; KEYS], slot: usize| {
        prepare(ring, keys, slot);
        prefetch_spans::<LINES>(source.bytes(), &ring.start, slot, span);
    };
    let rest = |ring: &Ring<S::Word>, slot: usize| {
        let equation = ring.get(slot);
        let end = equation.columns.saturating_sub(4);
        (4..end).step_by(8).all(|column| {
            let columns = [column, (column + 4).min(end)];
            holds(&equation, columns, results(&equation, columns))
        })
    };
    let more = source.columns() > 8;
    batch(&mut Ring::new(), hashes, hits, more, prepare, first, rest);
}

/// `holds(equation, columns, results)` returns whether the equation is satisfied in four columns
/// beginning at each of two columns; the equation must have them. The halves of `results` contain
/// the bits of the result beginning at these columns.
pub(super) trait TestColumns<S: Source>:
    Fn(&Equation<&S::Word>, [usize; 2], u64) -> bool
{
}

impl<S: Source, F: Fn(&Equation<&S::Word>, [usize; 2], u64) -> bool> TestColumns<S> for F {}

/// Tests the first four and the last four columns of eight keys, or all columns if there are fewer.
#[inline(always)]
pub(super) fn test_singly<S: Source>(
    source: &S,
    ring: &Ring<S::Word>,
    slot: usize,
    holds: impl TestColumns<S>,
) -> u64 {
    test_each(slot, |slot| {
        let equation = ring.get(slot);
        if equation.columns < 4 {
            return source.holds(&equation);
        }
        holds(&equation, [0, equation.columns - 4], ring.result[slot % RING])
    })
}

/// Tests one key, eight columns at a time without a branch between them. A loop that ends at the
/// first failing column would be mispredicted for nearly every key.
#[inline(always)]
#[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "others test by columns"))]
pub(super) fn holds_all<S: Source>(source: &S, hash: u64, holds: impl TestColumns<S>) -> bool {
    let equation = source.equation(hash);
    let (equation, columns) = (equation.as_ref(), equation.columns);
    let Some(end) = columns.checked_sub(4) else { return source.holds(&equation) };
    let mut column = 0;
    loop {
        // If fewer than four columns are left, the last four are tested again.
        let tested = [column.min(end), (column + 4).min(end)];
        let holds = holds(&equation, tested, results(&equation, tested));
        column += 8;
        if column >= columns || !holds {
            return holds;
        }
    }
}

/// Looks up a batch with a kernel that prepares and tests keys one by one. `parities(equation,
/// column)` returns the parities of four columns in bits 0 to 3.
#[inline(always)]
pub(super) fn batch_singly<S: Source, const LINES: usize>(
    source: &S,
    hashes: &[u64],
    hits: &mut [u64],
    parities: impl Fn(&Equation<&S::Word>, usize) -> u32,
) {
    let prepare = |ring: &mut Ring<S::Word>, keys: &[u64; KEYS], slot: usize| {
        for (i, &hash) in keys.iter().enumerate() {
            ring.set(slot + i, source.equation(hash));
        }
    };
    let holds = |equation: &Equation<&S::Word>, columns: [usize; 2], results: u64| {
        (parities(equation, columns[0]) ^ results as u32) & 15 == 0
            && (parities(equation, columns[1]) ^ (results >> 32) as u32) & 15 == 0
    };
    let first = |ring: &Ring<S::Word>, slot| test_singly(source, ring, slot, holds);
    batch_by_fours::<_, LINES>(source, hashes, hits, prepare, first, holds);
}
