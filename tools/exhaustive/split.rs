//! The kernels of split blocks: the low half of a hash determines one bit in each of eight words.

use blocked_bloom::Kernel;
use blocked_bloom_split::SplitBlockFilter;

use crate::calls::Calls;
use crate::{Check, N, numbers};

/// The salts that the Parquet specification lists, written again.
const SALTS: [u32; 8] = [
    0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d, 0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31,
];

/// The bytes of blocks that begin at cache lines.
#[repr(align(64))]
struct Aligned([[u8; 32]; N]);

pub(crate) struct Split {
    kernel: Kernel,
    /// Block `32 * word + bit` lacks this bit. Every other bit is set.
    holes: Box<Aligned>,
}

impl Split {
    pub(crate) fn new(kernel: Kernel) -> Self {
        let mut holes = Box::new(Aligned([[0xff; 32]; N]));
        for (bit, block) in holes.0.iter_mut().enumerate() {
            block[bit / 8] ^= 1 << (bit % 8);
        }
        Split { kernel, holes }
    }
}

impl Check for Split {
    fn chunk(&mut self, chunk: u64) -> Result<(), String> {
        let (numbers, turn) = (numbers(chunk), chunk as usize);
        let hash = |i: usize| u64::from(numbers[i]) | (i as u64) << 56;
        let hashes: [u64; N] = std::array::from_fn(hash);
        let mut expected = [[0_u8; 32]; N];
        for (block, number) in expected.iter_mut().zip(numbers) {
            for (word, salt) in block.as_chunks_mut().0.iter_mut().zip(SALTS) {
                *word = (1_u32 << (number.wrapping_mul(salt) >> 27)).to_le_bytes();
            }
        }
        let mut filters = [(); 2].map(|()| SplitBlockFilter::with_blocks(N as u32));
        for (at_once, filter) in filters.iter_mut().enumerate() {
            let Ok(filter) = filter else { return Err("no memory".into()) };
            *filter = filter.clone().with_kernel(self.kernel);
            if at_once == 1 {
                filter.insert_hashes(&hashes);
            } else if !hashes.iter().all(|&hash| filter.insert_hash(hash)) {
                return Err("an insertion into an empty block was not new".into());
            }
            let mut pairs = filter.blocks().iter().zip(&expected).zip(hashes);
            if let Some((_, hash)) = pairs.find(|((block, expected), _)| block != expected) {
                return Err(format!("insertion of hash {hash:#018x} set other bits"));
            }
            for calls in Calls::ALL {
                calls.check(filter, &hashes, true, turn + at_once)?;
            }
        }
        let holes = SplitBlockFilter::from_bitset(self.holes.0.as_flattened());
        let holes = holes.map_err(|error| error.to_string())?.with_kernel(self.kernel);
        for (word, salt) in SALTS.into_iter().enumerate() {
            let hash = |i: usize| {
                let bit = 32 * word as u64 + u64::from(numbers[i].wrapping_mul(salt) >> 27);
                u64::from(numbers[i]) | bit << 56
            };
            let hashes = std::array::from_fn(hash);
            for calls in Calls::ALL {
                calls
                    .check(&holes, &hashes, false, turn + word)
                    .map_err(|error| format!("without the bit of word {word}, {error}"))?;
            }
        }
        Ok(())
    }
}
