//! The order in which a set's filters and keys are prefetched and tested: for one key, for a batch, for some pairs of a filter and a
//! key.

use super::FilterSet;
use crate::bitmask::used;
use crate::kernel::{AHEAD, Ahead, Prefetch};
use crate::probe::{BLOCK_BYTES, MAX_PROBES};

impl FilterSet<'_> {
    /// Writes a bit per filter.
    pub(super) fn one(&self, hash: u64, words: &mut [u64]) {
        let (kernel, prefetch) = (self.kernel, self.prefetch());
        if let [probes] = *self.probes {
            let mask = [kernel.mask(hash, probes.into())];
            return kernel.covers(&self.sources, prefetch, hash, &mask, words);
        }
        let mut masks = [[0; BLOCK_BYTES]; MAX_PROBES as usize];
        for (mask, &probes) in masks.iter_mut().zip(&self.probes) {
            *mask = kernel.mask(hash, probes.into());
        }
        kernel.covers(&self.sources, prefetch, hash, &masks[..self.probes.len()], words);
    }

    /// Writes a row of bits per filter.
    ///
    /// Querying filter by filter drains the prefetch pipeline at the end of each.
    pub(super) fn all(&self, hashes: &[u64], words: &mut [u64]) {
        if hashes.is_empty() {
            return;
        }
        let prefetch = self.prefetch();
        // While the last keys are tested, those of as many of the next filter's first keys are prefetched.
        let last = if hashes.len() < 2 * AHEAD { hashes.len() } else { AHEAD + hashes.len() % 64 };
        let (first, later) = hashes.split_at(last);
        let (head, tail) = hashes.split_at(hashes.len() - last);
        if let Some(source) = self.sources.first() {
            prefetch.prefetch(source.blocks(), first);
        }
        let mut next = self.sources.iter().skip(1);
        let rows = words.chunks_exact_mut(hashes.len().div_ceil(64));
        for (source, row) in self.sources.iter().zip(rows) {
            let (blocks, probes) = (source.blocks(), self.probes[source.mask()].into());
            let (head_row, tail_row) = row.split_at_mut(head.len() / 64);
            if !head.is_empty() {
                let ahead = Ahead { prefetch, later, blocks };
                self.kernel.contains(blocks, ahead, probes, head, head_row);
            }
            let ahead = match next.next() {
                Some(source) => Ahead { prefetch, later: first, blocks: source.blocks() },
                None => Ahead { prefetch, later: &[], blocks },
            };
            self.kernel.contains(blocks, ahead, probes, tail, tail_row);
        }
    }

    /// Clears the bits, in a row per filter, of keys that are certainly absent.
    pub(super) fn some(&self, hashes: &[u64], words: &mut [u64]) {
        if hashes.is_empty() {
            return;
        }
        let prefetch = self.prefetch();
        let row = hashes.len().div_ceil(64);
        let (mut current, mut before) = (Gathered::new(), Gathered::new());
        for i in 0..words.len() {
            let source = &self.sources[i / row];
            let hashes = &hashes[i % row * 64..];
            words[i] &= used(hashes.len(), 0);
            if words[i] == 0 {
                continue;
            }
            if !current.has_space_for(words[i]) {
                before.test(self, row, words);
                (current, before) = (before, current);
            }
            prefetch.prefetch(source.blocks(), current.add(i, words[i], hashes));
        }
        before.test(self, row, words);
        current.test(self, row, words);
    }
}

/// Hashes whose lines are under way while those gathered before are tested.
struct Gathered {
    hashes: [u64; Gathered::MOST],
    count: usize,
    /// The words of the answers that have their bits, none of which is zero.
    words: [usize; Gathered::MOST],
    word_count: usize,
}

impl Gathered {
    /// As many lines as are usefully under way at once.
    const MOST: usize = 2 * AHEAD;

    fn new() -> Self {
        let (hashes, words) = ([0; Gathered::MOST], [0; Gathered::MOST]);
        Gathered { hashes, count: 0, words, word_count: 0 }
    }

    fn has_space_for(&self, word: u64) -> bool {
        self.count + word.count_ones() as usize <= Gathered::MOST
    }

    /// Adds the hashes whose bit is set in word `i`, and returns them.
    fn add(&mut self, i: usize, word: u64, hashes: &[u64]) -> &[u64] {
        let added = &mut self.hashes[self.count..][..word.count_ones() as usize];
        if let Some(start) = start_of_run(word) {
            added.copy_from_slice(&hashes[start..][..added.len()]);
        } else {
            let mut rest = word;
            for added in added.iter_mut() {
                *added = hashes[rest.trailing_zeros() as usize];
                rest &= rest - 1;
            }
        }
        self.count += added.len();
        self.words[self.word_count] = i;
        self.word_count += 1;
        added
    }

    /// Clears the bits of what is certainly absent, and becomes empty.
    fn test(&mut self, set: &FilterSet<'_>, row: usize, words: &mut [u64]) {
        let mut hashes = &self.hashes[..self.count];
        for &i in &self.words[..self.word_count] {
            let source = &set.sources[i / row];
            let (blocks, probes) = (source.blocks(), set.probes[source.mask()].into());
            let (now, later) = hashes.split_at(words[i].count_ones() as usize);
            hashes = later;
            let mut hits = [0];
            let ahead = Ahead { prefetch: Prefetch::No, later: &[], blocks };
            set.kernel.contains(blocks, ahead, probes, now, &mut hits);
            words[i] = spread(hits[0], words[i]);
        }
        (self.count, self.word_count) = (0, 0);
    }
}

/// Where the ones are, if they follow each other: the keys of a sorted batch that are in a table's range.
fn start_of_run(word: u64) -> Option<usize> {
    let start = word.trailing_zeros();
    let run = word.checked_shr(start)?;
    (run & run.wrapping_add(1) == 0).then_some(start as usize)
}

/// The lowest bits of `bits`, each moved to where `places` has its next one.
fn spread(mut bits: u64, places: u64) -> u64 {
    if let Some(start) = start_of_run(places) {
        return bits << start;
    }
    let (mut rest, mut spread) = (places, 0);
    while rest != 0 {
        let place = rest & rest.wrapping_neg();
        spread |= place & (bits & 1).wrapping_neg();
        bits >>= 1;
        rest ^= place;
    }
    spread
}
