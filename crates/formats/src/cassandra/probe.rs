//! Cassandra's probe scheme: where the bits of a partition key are.

use super::hash::Hash128;
use super::layout::Layout;
use super::shape::Shape;
use crate::classical::{Modulus, Scheme, Walk};

/// Where the bits of a key are in a file of this layout and shape.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Probes {
    layout: Layout,
    shape: Shape,
    bits: Modulus,
}

impl Probes {
    pub(super) fn new(layout: Layout, shape: Shape) -> Self {
        Probes { layout, shape, bits: Modulus::new(shape.bits()) }
    }

    pub(super) fn shape(self) -> Shape {
        self.shape
    }
}

impl Scheme for Probes {
    type Hash = Hash128;

    #[inline]
    fn probes(self) -> u32 {
        self.shape.hash_count()
    }

    #[inline]
    fn bits(self) -> u64 {
        self.shape.bits()
    }

    #[inline]
    fn walk(self, hash: Hash128) -> Walk {
        if self.layout.starts_with_h1() {
            Walk { next: hash.h1, step: hash.h2 }
        } else {
            Walk { next: hash.h2, step: hash.h1 }
        }
    }

    /// The magnitude of Java's remainder, whose sign is that of the dividend. The magnitude of the smallest number is 2^63.
    #[inline]
    fn position(self, number: u64) -> u64 {
        self.bits.remainder(number.cast_signed().unsigned_abs()) ^ self.layout.byte_flip()
    }
}
