//! One word that threads write at the same time, and what a block of them is made of.
//!
//! Written once over the word's type, so that loom can check a miniature of it.

#[cfg(any(test, not(target_has_atomic = "64")))]
use core::sync::atomic::AtomicU32;
#[cfg(target_has_atomic = "64")]
use core::sync::atomic::AtomicU64;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::buffer::AtomicBlock;
use crate::kernel::Place;
use crate::probe;

/// Where lines are requested, a block of atomic words stands for the native law's block.
impl Place for AtomicBlock {
    #[inline]
    fn index(hash: u64, blocks: u32) -> u32 {
        probe::block_index(hash, blocks)
    }
}

/// An atomic word of a block, as the little-endian number that its bytes are, so that bit `i` of the number is the same bit of
/// the same byte on every machine. A trait, so that loom's words can stand in for the machine's.
///
/// Relaxed is enough. Words only gain bits: each is modified by `fetch_or` alone, and one `fetch_or` reads the latest value, so
/// none loses what another set. When an insertion returns, it has for every bit of its key either set it or loaded its word
/// with the bit set. A query that this happens before loads each word later, and by coherence (write-read in the first case,
/// read-read in the second) gets the value that the insertion left or saw, or one that follows it in the word's modification
/// order; all of those have the bit. This holds for each word by itself, so no order among words is needed.
pub(super) trait Word {
    const BYTES: usize;
    fn load(&self) -> u64;
    /// The value before.
    fn fetch_or(&self, bits: u64) -> u64;
}

macro_rules! word {
    ($atomic:ty, $number:ty) => {
        impl Word for $atomic {
            const BYTES: usize = size_of::<$number>();

            #[inline]
            fn load(&self) -> u64 {
                <$number>::from_le(self.load(Relaxed)).into()
            }

            #[inline]
            fn fetch_or(&self, bits: u64) -> u64 {
                <$number>::from_le(self.fetch_or((bits as $number).to_le(), Relaxed)).into()
            }
        }
    };
}

#[cfg(target_has_atomic = "64")]
word!(AtomicU64, u64);
#[cfg(any(test, not(target_has_atomic = "64")))]
word!(AtomicU32, u32);

/// Sets bits of a block. Returns true if at least one was set by this call.
///
/// Probe by probe. Gathering a key's bits per word first saves `fetch_or`s of probes that share one, and costs branches that
/// nobody can predict: at 6 probes 44 ns for a new key and 12 to 16 for a known one, against 28 and 6; at 8 probes 46 and 17
/// against 40 and 7. It would win for new keys from 10 probes (48 against 52; at 17 probes 52 against 79), never for known ones.
#[inline]
pub(super) fn set<W: Word>(words: &[W], bits: impl Iterator<Item = u32>) -> bool {
    let mut new = false;
    for bit in bits {
        let (index, bit) = (bit as usize / (8 * W::BYTES), bit as usize % (8 * W::BYTES));
        let (word, bit) = (&words[index], 1 << bit);
        // Writing makes the line this core's own and takes it from all others, even if it changes nothing.
        if word.load() & bit == 0 {
            new |= word.fetch_or(bit) & bit == 0;
        }
    }
    new
}

/// Copies a block, each word at a moment of its own.
#[inline]
pub(super) fn copy_words<W: Word>(words: &[W], copy: &mut [u8]) {
    for (bytes, word) in copy.chunks_exact_mut(W::BYTES).zip(words) {
        bytes.copy_from_slice(&word.load().to_le_bytes()[..W::BYTES]);
    }
}

/// Counts additions in one of eight cache lines; which one depends on the thread.
///
/// In a single line the count would be what threads wait for: two that insert at 6 probes take 58 ns for a new key and 18 for a
/// known one, against 41 and 10 with these lines, and 40 and 10 without a count.
#[derive(Default)]
pub(super) struct Additions([Line; 8]);

#[derive(Default)]
#[repr(align(64))]
struct Line(AtomicUsize);

impl Additions {
    #[inline]
    pub(super) fn add(&self, additions: usize) {
        // Threads have stacks of their own: the address of a variable tells most of them apart, without `std`. Two threads in one
        // line, or one in two, cost time only.
        let variable = 0_u8;
        let stack = (&raw const variable).addr() as u64 >> 16;
        let line = stack.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 61;
        let Line(count) = &self.0[line as usize];
        let mut so_far = count.load(Relaxed);
        while let Err(changed) =
            count.compare_exchange_weak(so_far, so_far.saturating_add(additions), Relaxed, Relaxed)
        {
            so_far = changed;
        }
    }

    pub(super) fn sum(&self) -> u64 {
        let counts = self.0.iter().map(|Line(count)| count.load(Relaxed) as u64);
        counts.fold(0, u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};

    use super::{Additions, Line, Word, copy_words, set};
    use crate::probe;

    /// Two keys after another, as the law does them, at every number of probes.
    fn follows_the_law<W: Word + Default, const N: usize>() {
        for probes in 1..=30 {
            for i in 0..200_u64 {
                let words: [W; N] = core::array::from_fn(|_| W::default());
                let (mut block, mut copy) = ([0; 64], [7; 64]);
                for hash in [i, i + 1, i].map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)) {
                    let new = probe::insert(&mut block, hash, probes);
                    assert_eq!(set(&words, probe::bits(hash, probes)), new);
                    copy_words(&words, &mut copy);
                    assert_eq!(copy, block, "{probes} probes");
                }
            }
        }
    }

    /// Those of 32 bits also on machines that have wider ones.
    #[test]
    fn words_of_either_width_follow_the_law() {
        #[cfg(target_has_atomic = "64")]
        follows_the_law::<core::sync::atomic::AtomicU64, 8>();
        follows_the_law::<AtomicU32, 16>();
    }

    #[test]
    fn additions_saturate() {
        let additions = Additions(core::array::from_fn(|_| Line(AtomicUsize::new(usize::MAX - 1))));
        (0..3).for_each(|_| additions.add(1));
        assert!(additions.0.iter().all(|Line(count)| count.load(Relaxed) >= usize::MAX - 1));
        assert!(additions.0.iter().any(|Line(count)| count.load(Relaxed) == usize::MAX));
        assert!(additions.sum() >= usize::MAX as u64);
    }
}

/// Every execution of a block of two words that the memory model allows, up to what loom leaves out (it does not let a relaxed
/// load see a store that is made later). `RUSTFLAGS="--cfg loom" cargo test --lib --release atomic`
#[cfg(all(test, loom, feature = "std"))]
mod model {
    use loom::sync::Arc;
    use loom::sync::atomic::{
        AtomicBool, AtomicU64,
        Ordering::{Acquire, Relaxed, Release},
    };
    use loom::thread::spawn;

    use super::{Word, copy_words, set};

    word!(AtomicU64, u64);

    #[derive(Default)]
    struct Block([AtomicU64; 2]);

    impl Block {
        fn insert(&self, bits: [u32; 2]) -> bool {
            set(&self.0, bits.into_iter())
        }

        fn holds(&self, bits: [u32; 2]) -> bool {
            let mut copy = [0; 16];
            copy_words(&self.0, &mut copy);
            bits.iter().all(|bit| copy[*bit as usize / 8] >> (bit % 8) & 1 == 1)
        }
    }

    /// A bit of its own in each word, so that the key's words can be seen in any order.
    const KEY: [u32; 2] = [3, 70];
    /// Shares a bit with `KEY`.
    const OTHER: [u32; 2] = [3, 127];

    /// Fails if a `fetch_or` could lose another's bit, or a query miss one.
    #[test]
    fn who_learns_of_an_insertion_finds_the_key_while_others_insert() {
        loom::model(|| {
            let shared = Arc::new((Block::default(), AtomicBool::new(false)));
            let writer = Arc::clone(&shared);
            let other = Arc::clone(&shared);
            let writer = spawn(move || {
                writer.0.insert(KEY);
                writer.1.store(true, Release);
            });
            let other = spawn(move || other.0.insert(OTHER));
            if shared.1.load(Acquire) {
                assert!(shared.0.holds(KEY));
            }
            writer.join().unwrap();
            other.join().unwrap();
            assert!(shared.0.holds(KEY) && shared.0.holds(OTHER));
            assert!(!shared.0.holds([3, 4]));
        });
    }

    /// Fails if each could take the other for the first.
    #[test]
    fn of_two_that_insert_one_key_at_least_one_finds_it_new() {
        loom::model(|| {
            let block = Arc::new(Block::default());
            let shared = Arc::clone(&block);
            let other = spawn(move || shared.insert(KEY));
            let new = block.insert(KEY);
            assert!(other.join().unwrap() | new);
            assert_eq!(block.0.each_ref().map(|word| word.load(Relaxed)), [1 << 3, 1 << 6]);
            assert!(!block.insert(KEY));
        });
    }

    /// Fails if what a thread saw set, and therefore did not set, could be missed by one that it tells. The main thread inserts
    /// first in the schedule that loom starts from, and what the other sees of that is varied.
    #[test]
    fn who_learns_of_a_repeated_insertion_finds_the_key() {
        loom::model(|| {
            let block = Arc::new(Block::default());
            let [repeats, is_told] = [(); 2].map(|()| Arc::clone(&block));
            let repeats = spawn(move || {
                repeats.insert(KEY);
                spawn(move || assert!(is_told.holds(KEY))).join().unwrap();
            });
            block.insert(KEY);
            repeats.join().unwrap();
        });
    }
}
