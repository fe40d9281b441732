//! The bits of a `Filter.db` that is not empty, borrowed: where the bits of a key are, and whether they are set.

use super::hash::Hash128;
use super::layout::Layout;
use super::limits::HEADER_BYTES;
use super::probe::{Walk, Words};
use super::shape::Shape;

/// Filters up to this many bytes stay in the second-level cache, where prefetching only costs.
pub(super) const PREFETCH_THRESHOLD: usize = 256 << 10;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Stored<'a> {
    layout: Layout,
    /// Eight times as many as the shape has words.
    bytes: &'a [u8],
    shape: Shape,
    words: Words,
}

impl<'a> Stored<'a> {
    /// `file` is as long as the shape says, and `words` divides by the shape's.
    pub(super) fn of_file(file: &'a [u8], layout: Layout, shape: Shape, words: Words) -> Self {
        Stored { layout, bytes: &file[HEADER_BYTES..], shape, words }
    }

    pub(super) fn shape(self) -> Shape {
        self.shape
    }

    /// The words of the file.
    pub(super) fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    #[inline]
    pub(super) fn contains(self, hash: Hash128) -> bool {
        let mut walk = self.walk(hash);
        (0..self.shape.hash_count()).all(|_| self.is_set(self.words.position(walk.next())))
    }

    #[inline]
    pub(super) fn walk(self, hash: Hash128) -> Walk {
        Walk::of(hash, self.layout)
    }

    /// The positions of the first two probes, taken off the walk; twice the same where a key has one.
    #[inline]
    pub(super) fn first(self, walk: &mut Walk) -> [u64; 2] {
        let first = self.words.position(walk.next());
        let second = self.words.position(walk.next());
        [first, if self.shape.hash_count() == 1 { first } else { second }]
    }

    /// The positions after the first two.
    #[inline]
    pub(super) fn rest(self, mut walk: Walk) -> impl Iterator<Item = u64> {
        (2..self.shape.hash_count()).map(move |_| self.words.position(walk.next()))
    }

    #[inline]
    pub(super) fn is_set(self, position: u64) -> bool {
        self.bytes[byte_index(position, self.layout)] >> (position % 8) & 1 == 1
    }

    /// Prefetches the cache line of a position.
    #[inline]
    pub(super) fn prefetch(self, position: u64) {
        blocked_bloom::prefetch(self.bytes, byte_index(position, self.layout));
    }
}

/// The byte, after the header, that holds a position.
#[inline]
pub(super) fn byte_index(position: u64, layout: Layout) -> usize {
    ((position / 8) ^ layout.byte_flip()) as usize
}
