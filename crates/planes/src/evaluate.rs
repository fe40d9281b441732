//! Evaluates a query: ANDs and ORs the words of planes, plane by plane, while rows are left.
//!
//! The loops are plain loops over words of 64 rows, which compilers vectorise. Above the size of
//! the cache, reads dominate. A window is at most [`WINDOW_WORDS`] words of each plane, so that its
//! answers stay in the first-level cache from plane to plane. While a plane is read in one window,
//! the same plane is prefetched for a later window: planes of neighbouring groups are far apart, so
//! the hardware prefetcher does not predict them.

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

/// Words in a window: 32,768 rows, 4 KiB of a plane.
const WINDOW_WORDS: usize = 512;

/// Words that cover 512 rows: one cache line of a plane.
const LINE_WORDS: usize = 8;

/// Bytes that cover 512 rows.
const LINE_BYTES: usize = 8 * LINE_WORDS;

/// Prefetch distance in words of each plane: 4 KiB.
const PREFETCH_WORDS: usize = 512;

/// Planes that are read before the first check whether rows are left.
const FIRST_PLANES: usize = 4;

/// If at most one cache line in this many has rows left, the remaining planes are evaluated line by
/// line instead of plane by plane.
const SPARSE: usize = 8;

/// If more than one cache line in this many has rows left, four planes are read before the next
/// check instead of two.
const DENSE: usize = 2;

/// A query expressed as planes. A row matches if it has all planes of one term of every clause.
#[derive(Debug)]
pub(crate) struct Terms {
    /// Planes that a row must have, without duplicates, in reading order.
    all: Vec<u32>,
    /// Clauses: lists of terms, each a list of planes.
    any: Vec<Vec<Vec<u32>>>,
}

impl Terms {
    pub(crate) fn new(query: &Query, options: &PlanesOptions) -> Self {
        let shape = options.shape();
        let planes = |hashes: &[u64]| {
            distinct(hashes.iter().flat_map(|&hash| shape.planes_of(hash)).collect())
        };
        let mut all = planes(&query.all);
        // The liveness plane comes last, so that it is not read once no row is left.
        all.extend(options.has_liveness().then_some(shape.planes()));
        let clause = |hashes: &Vec<u64>| hashes.chunks(1).map(planes).collect();
        Terms { all, any: query.any.iter().map(clause).collect() }
    }

    /// Returns every plane that the query needs, in ascending order.
    pub(crate) fn planes(&self) -> BTreeSet<u32> {
        self.all.iter().chain(self.any.iter().flatten().flatten()).copied().collect()
    }
}

/// Removes duplicates and keeps the first occurrence of each plane. It sorts, because a `BTreeSet`
/// made queries of 512 rows take up to 1.5 times as much time.
fn distinct(planes: Vec<u32>) -> Vec<u32> {
    // Both sorts are of one type, so that programs contain its code once.
    let mut places: Vec<(usize, usize)> =
        planes.into_iter().map(|plane| plane as usize).zip(0..).collect();
    places.sort_unstable();
    places.dedup_by_key(|&mut (plane, _)| plane);
    places.iter_mut().for_each(|(plane, place)| core::mem::swap(plane, place));
    places.sort_unstable();
    places.into_iter().map(|(_, plane)| plane as u32).collect()
}

/// A range of words, in the planes of one group, that is evaluated in one step.
pub(crate) struct Window {
    /// May be after the last group if the window is only prefetched.
    pub(crate) group: u64,
    /// Words in each plane of the group.
    words: Range<usize>,
}

impl Window {
    /// Returns the window that contains `word`, counted over all groups. Each plane of a group has
    /// `plane_words` words.
    fn new(word: usize, plane_words: usize) -> Self {
        let (group, word) = (word / plane_words, word % plane_words);
        let start = word - word % WINDOW_WORDS;
        Window { group: group as u64, words: start..(start + WINDOW_WORDS).min(plane_words) }
    }

    /// Returns the window's byte range in a plane of the group.
    pub(crate) fn bytes(&self) -> Range<usize> {
        8 * self.words.start..8 * self.words.end
    }
}

/// Writes the answers of the words that start at `first`, counted over all groups. Each plane of a
/// group has `plane_words` words. `plane` returns the bytes of a window of a plane; a plane for
/// which it returns `None` is treated as set in every row.
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
            // There is nothing to prefetch after the last row.
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

/// Writes which rows have all planes (every row if `planes` is empty). Planes and answers have
/// equal lengths. `later` holds one slice per plane, which is prefetched.
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
        // If nearly all lines have rows left, two more planes rarely change that.
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

/// Writes which rows have all of these planes. `FIRST` starts from all rows, otherwise the answers
/// so far are narrowed. Prefetches `later`. Returns the number of cache lines with rows left.
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

/// Narrows the answers line by line. Reads nothing for lines without answers.
fn intersect_lines(planes: &[&[u8]], answers: &mut [u64]) {
    for (line, answers) in answers.chunks_mut(LINE_WORDS).enumerate() {
        for pair in planes.chunks(2) {
            // One branch per line instead of one per word.
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
