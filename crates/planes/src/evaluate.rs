//! The evaluation of a query on windows of planes: AND and OR of words, plane by plane while rows
//! are left.
//!
//! Plain loops over words of 64 rows, which compilers vectorise; beyond the cache, reads decide the
//! time. A window is at most [`WINDOW_WORDS`] words of each plane, so that the answers of a window
//! stay in the first-level cache from plane to plane. While a plane is read in one window, the same
//! plane is prefetched for a later window, since planes of neighbouring groups are far apart and
//! hardware prefetch does not see them coming.

use alloc::collections::BTreeSet;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

#[cfg(not(test))]
use blocked_bloom::parts::prefetch;

use crate::options::PlanesOptions;
use crate::query::Query;
#[cfg(test)]
use crate::watch::prefetch;

/// Words of a window: 32,768 rows, 4 KiB of a plane.
const WINDOW_WORDS: usize = 512;

/// Words of 512 rows: a cache line of a plane.
const LINE_WORDS: usize = 8;

/// Bytes of as many rows.
const LINE_BYTES: usize = 8 * LINE_WORDS;

/// Words of each plane between what is read and what is prefetched: 4 KiB.
const PREFETCH_WORDS: usize = 512;

/// Planes that are read before the first test of whether rows are left.
const FIRST_PLANES: usize = 4;

/// Where at most one line of 512 rows in this many has rows left, those lines are evaluated one by
/// one, no longer plane by plane.
const SPARSE: usize = 8;

/// With more than one line in this many left, four planes are read before the next test instead of
/// two.
const DENSE: usize = 2;

/// A query as planes: rows that have all planes of one of the terms of every clause.
#[derive(Debug)]
pub(crate) struct Terms {
    /// Planes that a row must have all of, without repetitions, in the order in which they are
    /// read.
    all: Vec<u32>,
    /// Clauses of terms of planes.
    any: Vec<Vec<Vec<u32>>>,
}

impl Terms {
    pub(crate) fn new(query: &Query, options: &PlanesOptions) -> Self {
        let shape = options.shape();
        let planes = |hashes: &[u64]| {
            distinct(hashes.iter().flat_map(|&hash| shape.planes_of(hash)).collect())
        };
        let mut all = planes(&query.all);
        // Last, so that it is not read where no row is left.
        all.extend(options.has_liveness().then_some(shape.planes()));
        let clause = |hashes: &Vec<u64>| hashes.chunks(1).map(planes).collect();
        Terms { all, any: query.any.iter().map(clause).collect() }
    }

    /// Every plane that is needed, ascending.
    pub(crate) fn planes(&self) -> BTreeSet<u32> {
        self.all.iter().chain(self.any.iter().flatten().flatten()).copied().collect()
    }
}

/// Each plane once, in its first place. By sorting: with a `BTreeSet`, queries of 512 rows took up
/// to 1.5 times as long.
fn distinct(planes: Vec<u32>) -> Vec<u32> {
    let mut places: Vec<(u32, usize)> = planes.into_iter().zip(0..).collect();
    places.sort_unstable();
    places.dedup_by_key(|&mut (plane, _)| plane);
    places.sort_unstable_by_key(|&(_, place)| place);
    places.into_iter().map(|(plane, _)| plane).collect()
}

/// Words of the planes of one group that are evaluated at a time.
pub(crate) struct Window {
    /// May be past the last group, for a window that is only prefetched.
    pub(crate) group: u64,
    /// Words in each plane of the group.
    words: Range<usize>,
}

impl Window {
    /// The window of `word`, which is counted over all groups; their planes have `plane_words`
    /// words.
    fn new(word: usize, plane_words: usize) -> Self {
        let (group, word) = (word / plane_words, word % plane_words);
        let start = word - word % WINDOW_WORDS;
        Window { group: group as u64, words: start..(start + WINDOW_WORDS).min(plane_words) }
    }

    /// Its bytes in a plane of the group.
    pub(crate) fn bytes(&self) -> Range<usize> {
        8 * self.words.start..8 * self.words.end
    }
}

/// Writes the answers of words from `first` on, counted over all groups, whose planes have
/// `plane_words` each; `plane` gives the bytes of a window of a plane. A plane that it does not
/// give counts as one that every row has.
pub(crate) fn evaluate<'a>(
    terms: &Terms,
    mut first: usize,
    plane_words: usize,
    plane: impl Fn(u32, &Window) -> Option<&'a [u8]>,
    mut answers: &mut [u64],
) {
    let longest = if terms.any.is_empty() { 0 } else { plane_words.min(WINDOW_WORDS) };
    let (mut one, mut either) = (vec![0; longest], vec![0; longest]);
    let (mut here, mut ahead) = (Vec::new(), Vec::new());
    while !answers.is_empty() {
        let later = Window::new(first + PREFETCH_WORDS, plane_words);
        let mut window = Window::new(first, plane_words);
        window.words.start = first % plane_words;
        window.words.end = window.words.end.min(window.words.start + answers.len());
        first += window.words.len();
        let mut and_term = |term: &[u32], answers: &mut [u64]| {
            here.clear();
            here.extend(term.iter().filter_map(|&number| plane(number, &window)));
            // Behind the last row there is nothing to prefetch.
            ahead.clear();
            ahead.extend(term.iter().map(|&number| plane(number, &later).unwrap_or_default()));
            intersect_all(&here, &ahead, answers);
        };
        let answers = answers.split_off_mut(..window.words.len()).unwrap_or_default();
        and_term(&terms.all, answers);
        for clause in &terms.any {
            if answers.iter().all(|&word| word == 0) {
                break;
            }
            let (one, either) = (&mut one[..answers.len()], &mut either[..answers.len()]);
            either.fill(0);
            for term in clause {
                and_term(term, one);
                either.iter_mut().zip(&*one).for_each(|(either, one)| *either |= one);
            }
            answers.iter_mut().zip(&*either).for_each(|(answer, either)| *answer &= either);
        }
    }
}

/// Writes which rows have all planes, all ones if there is no plane. Planes are as long as the
/// answers; `later` has a slice for each, which is prefetched.
fn intersect_all(planes: &[&[u8]], later: &[&[u8]], answers: &mut [u64]) {
    let lines = answers.len().div_ceil(LINE_WORDS);
    let mut left = match (planes, later) {
        ([a, b, c, d, ..], [e, f, g, h, ..]) => {
            intersect::<4, true>([a, b, c, d], [e, f, g, h], answers)
        }
        ([a, b, c], [e, f, g]) => intersect::<3, true>([a, b, c], [e, f, g], answers),
        ([a, b], [e, f]) => intersect::<2, true>([a, b], [e, f], answers),
        ([a], [e]) => intersect::<1, true>([a], [e], answers),
        _ => {
            answers.fill(u64::MAX);
            lines
        }
    };
    let mut read = planes.len().min(FIRST_PLANES);
    while read < planes.len() {
        if left == 0 {
            return;
        }
        if left * SPARSE <= lines {
            return intersect_lines(&planes[read..], answers);
        }
        // Where nearly all lines have rows left, two more planes would hardly change that.
        (left, read) = match (&planes[read..], &later[read..]) {
            ([a, b, c, d, ..], [e, f, g, h, ..]) if left * DENSE > lines => {
                (intersect::<4, false>([a, b, c, d], [e, f, g, h], answers), read + 4)
            }
            ([a, b, ..], [e, f, ..]) => (intersect::<2, false>([a, b], [e, f], answers), read + 2),
            ([a, ..], [e, ..]) => (intersect::<1, false>([a], [e], answers), read + 1),
            _ => (left, planes.len()),
        };
    }
}

/// Writes which rows have all of these planes; with `FIRST` among all rows, else among the answers
/// so far. Prefetches `later`. Returns in how many lines rows are left.
#[inline]
fn intersect<const N: usize, const FIRST: bool>(
    planes: [&[u8]; N],
    later: [&[u8]; N],
    answers: &mut [u64],
) -> usize {
    let (lines, rest) = answers.as_chunks_mut::<LINE_WORDS>();
    let count = lines.len();
    let full = planes.map(|plane| &plane.as_chunks::<LINE_BYTES>().0[..count]);
    let mut left = 0;
    for (line, answers) in lines.iter_mut().enumerate() {
        for plane in later {
            prefetch(plane, line * LINE_BYTES);
        }
        let mut all = if FIRST { [u64::MAX; LINE_WORDS] } else { *answers };
        for plane in full {
            let words = plane[line].as_chunks::<8>().0;
            for (all, &word) in all.iter_mut().zip(words) {
                *all &= u64::from_le_bytes(word);
            }
        }
        *answers = all;
        left += usize::from(all.iter().fold(0, |any, word| any | word) != 0);
    }
    let mut any = 0;
    for (i, answer) in rest.iter_mut().enumerate() {
        let start = if FIRST { u64::MAX } else { *answer };
        let words = planes.map(|plane| plane.as_chunks::<8>().0[count * LINE_WORDS + i]);
        *answer = words.into_iter().fold(start, |all, word| all & u64::from_le_bytes(word));
        any |= *answer;
    }
    left + usize::from(any != 0)
}

/// Keeps the answers that have all planes, line by line. Nothing is read for lines without answers.
fn intersect_lines(planes: &[&[u8]], answers: &mut [u64]) {
    for (line, answers) in answers.chunks_mut(LINE_WORDS).enumerate() {
        for pair in planes.chunks(2) {
            // Without a branch for each word.
            if answers.iter().fold(0, |any, word| any | word) == 0 {
                break;
            }
            for plane in pair {
                let words = plane.as_chunks::<8>().0[line * LINE_WORDS..].iter();
                for (answer, &word) in answers.iter_mut().zip(words) {
                    *answer &= u64::from_le_bytes(word);
                }
            }
        }
    }
}

#[cfg(test)]
#[path = "../tests/unit/evaluate.rs"]
mod tests;
