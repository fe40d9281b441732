//! The words of the atomic filter in a model checker: every execution of a block of two words that
//! the memory model allows, except those that loom omits (a relaxed load never sees a later store).
//! Also compares the machine's own words with the probe scheme.
#![cfg(test)]

#[path = "../../src/filter/atomic/word.rs"]
mod word;

mod removable;
#[cfg(crossbeam_loom)]
mod resident;

use core::sync::atomic::Ordering::Relaxed;

use loom::sync::Arc;
use loom::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Acquire, Release},
};
use loom::thread::spawn;
use word::{Word, contains, insert, insert_alone};

impl Word for AtomicU64 {
    const BYTES: usize = 8;

    fn load(&self) -> u64 {
        u64::from_le(self.load(Relaxed))
    }

    fn store(&self, word: u64) {
        self.store(word.to_le(), Relaxed);
    }

    fn or(&self, bits: u64) {
        self.fetch_or(bits.to_le(), Relaxed);
    }
}

#[derive(Default)]
struct Block([AtomicU64; 2]);

impl Block {
    fn insert(&self, bits: [u32; 2]) -> bool {
        insert(&self.0, bits.into_iter())
    }

    /// Only one thread calls it, and no other one inserts.
    fn insert_alone(&self, bits: [u32; 2]) -> bool {
        insert_alone(&self.0, bits.into_iter())
    }

    fn holds(&self, bits: [u32; 2]) -> bool {
        contains(&self.0, bits.into_iter())
    }
}

/// One bit in each word, so that the key's words can be loaded in any order.
const KEY: [u32; 2] = [3, 70];
/// Shares a bit with `KEY`.
const SECOND_KEY: [u32; 2] = [3, 127];

/// Fails if a `fetch_or` could lose a bit of another thread, or a lookup could miss one.
#[test]
fn an_insertion_is_visible_to_its_observer_during_other_insertions() {
    loom::model(|| {
        let shared = Arc::new((Block::default(), AtomicBool::new(false)));
        let writer = Arc::clone(&shared);
        let other = Arc::clone(&shared);
        let writer = spawn(move || {
            writer.0.insert(KEY);
            writer.1.store(true, Release);
        });
        let other = spawn(move || other.0.insert(SECOND_KEY));
        if shared.1.load(Acquire) {
            assert!(shared.0.holds(KEY));
        }
        writer.join().unwrap();
        other.join().unwrap();
        assert!(shared.0.holds(KEY) && shared.0.holds(SECOND_KEY));
        assert!(!shared.0.holds([3, 4]));
    });
}

/// Fails if each thread could find that the other one was first.
#[test]
fn two_racing_inserts_report_a_new_key_at_least_once() {
    loom::model(|| {
        let block = Arc::new(Block::default());
        let shared = Arc::clone(&block);
        let other = spawn(move || shared.insert(KEY));
        let new = block.insert(KEY);
        assert!(other.join().unwrap() | new);
        assert_eq!(block.0.each_ref().map(Word::load), [1 << 3, 1 << 6]);
        assert!(!block.insert(KEY));
    });
}

/// Of a key that a thread inserts after it learned of another thread's insertion of the key, and of
/// one that races: fails if "new" could be returned after an insertion of the key had returned.
#[test]
fn an_insertion_after_another_one_returned_is_not_new() {
    loom::model(|| {
        let shared = Arc::new((Block::default(), AtomicBool::new(false)));
        let [first, racing] = [(); 2].map(|()| Arc::clone(&shared));
        let first = spawn(move || {
            first.0.insert(KEY);
            first.1.store(true, Release);
        });
        let racing = spawn(move || racing.0.insert(SECOND_KEY));
        if shared.1.load(Acquire) {
            assert!(!shared.0.insert(KEY));
        }
        first.join().unwrap();
        racing.join().unwrap();
    });
}

/// Fails if a reader that learned of an insertion could miss a bit, or if the only writer could
/// lose a bit of its own, of two keys that share a word and a bit.
#[test]
fn an_insertion_of_the_only_writer_is_visible_to_its_observer() {
    loom::model(|| {
        let shared = Arc::new((Block::default(), AtomicBool::new(false)));
        let writer = Arc::clone(&shared);
        let writer = spawn(move || {
            assert!(writer.0.insert_alone(KEY));
            writer.1.store(true, Release);
            assert!(writer.0.insert_alone(SECOND_KEY));
            assert!(!writer.0.insert_alone(KEY));
        });
        if shared.1.load(Acquire) {
            assert!(shared.0.holds(KEY));
        }
        writer.join().unwrap();
        assert_eq!(shared.0.0.each_ref().map(Word::load), [1 << 3, 1 << 6 | 1 << 63]);
    });
}

/// A thread loads a bit that is already set, therefore does not set it, and then notifies another
/// thread. Fails if that other thread could miss the bit. The main thread inserts first in the
/// schedule that loom starts from, and loom varies the values that the other thread loads.
#[test]
fn a_repeated_insertion_is_visible_to_its_observer() {
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

/// Two keys one after the other, by the probe scheme, with every number of probes.
fn follows_the_probe_scheme<W: Word + Default, const N: usize>() {
    for probes in 1..=30 {
        for i in 0..200_u64 {
            let [words, alone]: [[W; N]; 2] =
                core::array::from_fn(|_| core::array::from_fn(|_| W::default()));
            let mut block = [0; 64];
            for hash in [i, i + 1, i].map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)) {
                let new = blocked_bloom::probe::insert(&mut block, hash, probes);
                let bits = || blocked_bloom::probe::bits(hash, probes);
                assert_eq!(contains(&words, bits()), !new);
                assert_eq!((insert(&words, bits()), insert_alone(&alone, bits())), (new, new));
                assert!(contains(&words, bits()) && contains(&alone, bits()));
                let bytes = |word: &W| word.load().to_le_bytes().into_iter().take(W::BYTES);
                for words in [&words, &alone] {
                    assert!(words.iter().flat_map(bytes).eq(block), "{probes} probes");
                }
            }
        }
    }
}

impl Word for blocked_bloom::parts::AtomicWord {
    const BYTES: usize = size_of::<Self>();

    fn load(&self) -> u64 {
        self.load(Relaxed)
    }

    fn store(&self, word: u64) {
        self.store(word, Relaxed);
    }

    fn or(&self, bits: u64) {
        self.fetch_or(bits, Relaxed);
    }
}

/// Words of 32 bits, also on machines with wider ones.
impl Word for core::sync::atomic::AtomicU32 {
    const BYTES: usize = 4;

    fn load(&self) -> u64 {
        u32::from_le(self.load(Relaxed)).into()
    }

    fn store(&self, word: u64) {
        self.store((word as u32).to_le(), Relaxed);
    }

    fn or(&self, bits: u64) {
        self.fetch_or((bits as u32).to_le(), Relaxed);
    }
}

#[test]
fn the_machines_words_of_either_width_follow_the_probe_scheme() {
    const WORDS: usize = 64 / blocked_bloom::parts::AtomicWord::BYTES;
    follows_the_probe_scheme::<blocked_bloom::parts::AtomicWord, WORDS>();
    follows_the_probe_scheme::<core::sync::atomic::AtomicU32, 16>();
}
