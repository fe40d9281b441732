//! The probe scheme of LegacyBloom, RocksDB's filter before `format_version` 5, and the shape of
//! its blocks.
//!
//! The code is plain scalar Rust, since such filters disappear with compaction. A key's probes are
//! in one line, as in FastLocalBloom, but line and bits come from the same 32 bits of the hash, so
//! large filters have more false positives. A line is a cache line of the machine that wrote the
//! filter: 64 bytes, 128 on POWER, 256 on IBM Z.
//!
//! Source: `LegacyLocalityBloomImpl` in RocksDB's `util/bloom_impl.h`.

/// The bits of a valid filter.
#[derive(Clone, Copy)]
pub(super) struct Lines<B> {
    /// `lines * line_bytes` bytes.
    bits: B,
    /// At least 1.
    lines: u32,
    /// A power of two.
    line_bytes: u32,
    probes: u8,
}

impl<B: AsRef<[u8]>> Lines<B> {
    /// Returns `None` where RocksDB's reader gives up and answers "maybe": no lines, or a line
    /// length that is not a power of two.
    pub(super) fn new(bits: B, lines: u32, probes: u8) -> Option<Self> {
        let bytes = u32::try_from(bits.as_ref().len()).ok()?;
        let line_bytes = bytes.checked_div(lines)?;
        let fits = bytes % lines == 0 && line_bytes.is_power_of_two();
        fits.then_some(Lines { bits, lines, line_bytes, probes })
    }

    /// Creates lines from values that [`new`](Self::new) has checked.
    pub(super) fn from_parts(bits: B, lines: u32, line_bytes: u32, probes: u8) -> Self {
        Lines { bits, lines, line_bytes, probes }
    }

    pub(super) fn line_bytes(&self) -> u32 {
        self.line_bytes
    }

    pub(super) fn bits(&self) -> &B {
        &self.bits
    }

    /// Returns true ("maybe") if the owner of the bits lends fewer than at first.
    pub(super) fn contains(&self, hash: u32) -> bool {
        let bits = self.bits.as_ref();
        let is_set = |(byte, mask)| bits.get(byte).is_none_or(|bits: &u8| bits & mask != 0);
        self.probes_of(hash).all(is_set)
    }

    pub(super) fn insert(&mut self, hash: u32)
    where
        B: AsMut<[u8]>,
    {
        for (byte, mask) in self.probes_of(hash) {
            self.bits.as_mut()[byte] |= mask;
        }
    }

    /// Returns byte and bit of every probe.
    fn probes_of(&self, mut hash: u32) -> impl Iterator<Item = (usize, u8)> + use<B> {
        let start = (hash % self.lines) as usize * self.line_bytes as usize;
        let bits = u64::from(self.line_bytes) * 8 - 1;
        let delta = hash.rotate_right(17);
        (0..self.probes).map(move |_| {
            let bit = u64::from(hash) & bits;
            hash = hash.wrapping_add(delta);
            (start + (bit / 8) as usize, 1 << (bit % 8))
        })
    }
}
