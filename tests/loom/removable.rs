//! The words of the removable filter's writer and readers in the model checker: two lines of one
//! word, one writer, and every execution that the memory model allows.

#[path = "../../crates/removable/src/shared/word.rs"]
mod word;

use loom::sync::Arc;
use loom::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{self, Acquire, Relaxed, Release},
};
use loom::thread::spawn;
use word::{Word, contains, insert, remove};

impl Word for AtomicU64 {
    const LANES: usize = 4;

    fn load(&self, order: Ordering) -> u64 {
        self.load(order)
    }

    fn store(&self, word: u64, order: Ordering) {
        self.store(word, order);
    }
}

/// Both lines of a key, and whether the key was announced as present.
#[derive(Default)]
struct Lines {
    words: [[AtomicU64; 1]; 2],
    told: AtomicBool,
}

impl Lines {
    /// Inserts into the first line of the place while that has an empty lane.
    fn insert(&self, place: [u32; 2], tag: u16) {
        assert!(insert(&self.words, place, tag, 0));
    }

    fn remove(&self, place: [u32; 2], tag: u16) -> bool {
        remove(&self.words, place, tag)
    }

    fn contains(&self, place: [u32; 2], tag: u16) -> bool {
        contains(&self.words, place, tag)
    }
}

const TAG: u16 = 0x8001;

/// Two keys with the same tag and the same two lines, in opposite order.
const LOW: [u32; 2] = [0, 1];
const HIGH: [u32; 2] = [1, 0];

/// The only copy that is always present moves twice to its other line, because copies of either key
/// are added and removed. Fails if loads or stores are relaxed, or if a lookup or a removal starts
/// with the key's first line.
#[test]
fn a_reader_misses_no_key_of_which_a_copy_is_always_there() {
    for choice in 0..8 {
        let [from, reads, removes] = [0, 1, 2].map(|i| [LOW, HIGH][choice >> i & 1]);
        let to = if from == LOW { HIGH } else { LOW };
        loom::model(move || {
            let lines = Arc::new(Lines::default());
            lines.insert(from, TAG);
            let reader = Arc::clone(&lines);
            let reader = spawn(move || assert!(reader.contains(reads, TAG)));
            lines.insert(to, TAG);
            assert!(lines.remove(removes, TAG));
            lines.insert(from, TAG);
            assert!(lines.remove(removes, TAG));
            reader.join().unwrap();
            assert!(lines.remove(removes, TAG));
            assert!(!lines.remove(removes, TAG) && !lines.contains(reads, TAG));
        });
    }
}

/// Fails if a store could overwrite another lane of its word.
#[test]
fn changes_to_neighbouring_tags_are_harmless() {
    loom::model(|| {
        let lines = Arc::new(Lines::default());
        lines.insert(HIGH, TAG);
        lines.insert(HIGH, 7);
        let reader = Arc::clone(&lines);
        let reader = spawn(move || {
            assert!(reader.contains(LOW, TAG));
            assert!(!reader.contains(LOW, 9));
        });
        assert!(lines.remove(LOW, 7));
        lines.insert(HIGH, 8);
        lines.insert(HIGH, 10);
        assert_eq!(lines.words[1][0].load(Relaxed), 10 << 32 | 8 << 16 | u64::from(TAG));
        reader.join().unwrap();
    });
}

/// Fails if an addition could become visible after its announcement.
#[test]
fn an_addition_is_visible_to_its_observer() {
    loom::model(|| {
        let lines = Arc::new(Lines::default());
        let writer = Arc::clone(&lines);
        let writer = spawn(move || {
            writer.insert(HIGH, TAG);
            writer.told.store(true, Release);
            writer.insert(LOW, TAG);
            assert!(writer.remove(LOW, TAG));
        });
        if lines.told.load(Acquire) {
            assert!(lines.contains(LOW, TAG));
        }
        writer.join().unwrap();
        assert!(lines.contains(LOW, TAG));
    });
}
