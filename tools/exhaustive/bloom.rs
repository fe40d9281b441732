//! The kernels of blocked Bloom filters: the high half of a hash determines the bits of its block.

use blocked_bloom::{Bitmask, Block, BloomFilter, Kernel, KeyHash, ParamsError, probe};

use crate::calls::Calls;
use crate::{Check, N, SPREAD, numbers};

/// Blocks that begin at cache lines.
#[repr(align(64))]
struct Aligned<const BLOCKS: usize>([Block; BLOCKS]);

pub(crate) struct Bloom {
    kernel: Kernel,
    /// Probes of the filter that is checked.
    probes: u32,
    /// The calls to check, with `None` for insertion.
    calls: Vec<Option<Calls>>,
    /// `G^i` for each probe of the scheme, computed here without it.
    powers: Vec<u32>,
    /// Block `b` lacks bit `b`. Every other bit is set.
    holes: Box<Aligned<512>>,
    /// Block `i` has the bits of number `i` of the chunk.
    blocks: Box<Aligned<N>>,
    /// The same bits according to the scheme.
    expected: Box<Aligned<N>>,
    /// Row `i` has probe `i` of every number: the top nine bits are the position.
    products: Vec<[u32; N]>,
    new: Bitmask,
}

impl Bloom {
    /// A check of filters with this many `probes` against a scheme with `expected`. They are equal
    /// outside of tests of this check.
    pub(crate) fn new(
        kernel: Kernel,
        calls: Vec<Option<Calls>>,
        probes: u32,
        expected: u32,
    ) -> Result<Self, ParamsError> {
        // An error for a wrong number of probes.
        BloomFilter::from_blocks(&[[0; 64]][..], probes, KeyHash::default())?;
        let mut powers = vec![1_u32];
        for _ in 1..expected {
            let last = powers[powers.len() - 1];
            powers.push((u64::from(last) * 0x9e37_79b9) as u32);
        }
        let mut holes = Box::new(Aligned([[0xff; 64]; 512]));
        for (bit, block) in holes.0.iter_mut().enumerate() {
            block[bit / 8] ^= 1 << (bit % 8);
        }
        Ok(Bloom {
            kernel,
            probes,
            calls,
            products: vec![[0; N]; powers.len()],
            powers,
            holes,
            blocks: Box::new(Aligned([[0; 64]; N])),
            expected: Box::new(Aligned([[0; 64]; N])),
            new: Bitmask::new(),
        })
    }

    /// Computes the positions of a chunk, and the blocks that have their bits.
    fn expect(&mut self, numbers: &[u32; N]) {
        for (row, power) in self.products.iter_mut().zip(&self.powers) {
            // Products of neighbours differ by one summand.
            let mut product = numbers[0].wrapping_mul(*power);
            let step = SPREAD.wrapping_mul(*power);
            for slot in row {
                *slot = product;
                product = product.wrapping_add(step);
            }
        }
        // Row by row: successive bits are in different blocks, so no store waits for the last one.
        self.expected.0.fill([0; 64]);
        for row in &self.products {
            for (block, product) in self.expected.0.iter_mut().zip(row) {
                let bit = product >> 23;
                block[(bit / 8) as usize] |= 1 << (bit % 8);
            }
        }
    }

    /// Inserts hashes into empty blocks, and compares the blocks with the scheme's.
    fn insert(&mut self, hashes: &[u64; N], reports_new: bool) -> Result<(), String> {
        self.blocks.0.fill([0; 64]);
        let key_hash = KeyHash::default();
        let filter = BloomFilter::from_blocks(&mut self.blocks.0[..], self.probes, key_hash);
        let mut filter = filter.map_err(|error| error.to_string())?.with_kernel(self.kernel);
        if reports_new {
            filter.insert_hashes_new(hashes, &mut self.new).map_err(|error| error.to_string())?;
            if self.new.count_hits() != N {
                return Err(format!("{} of {N} insertions were new", self.new.count_hits()));
            }
        } else {
            filter.insert_hashes(hashes).map_err(|error| error.to_string())?;
        }
        let pairs = self.blocks.0.iter().zip(&self.expected.0);
        match pairs.zip(hashes).find(|((block, expected), _)| block != expected) {
            None => Ok(()),
            Some((_, hash)) => Err(format!("insertion of hash {hash:#018x} set other bits")),
        }
    }
}

impl Check for Bloom {
    fn chunk(&mut self, chunk: u64) -> Result<(), String> {
        let (numbers, turn) = (numbers(chunk), chunk as usize);
        self.expect(&numbers);
        // The scheme itself, as it is published, now and then: the comparisons need no more.
        if chunk.is_multiple_of(64) {
            let hash = u64::from(numbers[0]) << 32;
            let own = self.products.iter().map(|row| row[0] >> 23);
            if !own.eq(probe::bits(hash, self.products.len() as u32)) {
                return Err(format!("probe::bits differs for hash {hash:#018x}"));
            }
        }
        // Number `i` is in block `i` of 256.
        let hash = |i: usize| u64::from(numbers[i]) << 32 | (i as u64) << 24;
        let hashes: [u64; N] = std::array::from_fn(hash);
        if self.calls.contains(&None) {
            self.insert(&hashes, false)?;
            self.insert(&hashes, true)?;
        }
        // Each block has the bits of its number and no others: a kernel that tests another bit
        // would miss it.
        let key_hash = KeyHash::default();
        let filter = BloomFilter::from_blocks(&self.expected.0[..], self.probes, key_hash);
        let filter = filter.map_err(|error| error.to_string())?.with_kernel(self.kernel);
        for calls in self.calls.iter().flatten() {
            calls.check(&filter, &hashes, true, turn)?;
        }
        let filter = BloomFilter::from_blocks(&self.holes.0[..], self.probes, key_hash);
        let filter = filter.map_err(|error| error.to_string())?.with_kernel(self.kernel);
        for (probe, row) in self.products.iter().enumerate() {
            // The product as low half selects the block of 512 that lacks the probe's bit.
            let hash = |i: usize| u64::from(numbers[i]) << 32 | u64::from(row[i]);
            let hashes = std::array::from_fn(hash);
            for calls in self.calls.iter().flatten() {
                calls
                    .check(&filter, &hashes, false, turn + probe)
                    .map_err(|error| format!("without the bit of probe {probe}, {error}"))?;
            }
        }
        Ok(())
    }
}
