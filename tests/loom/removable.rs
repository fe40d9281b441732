//! The words of the removable filter's writer and readers under the model checker: two lines of one word, one writer, and every
//! execution that the memory model allows.

#[path = "../../crates/removable/src/shared/word.rs"]
mod word;

use loom::sync::Arc;
use loom::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Acquire, Release},
};
use loom::thread::spawn;
use word::{Word, empty_lanes, holds, put, take};

impl Word for AtomicU64 {
    const LANES: usize = 4;

    fn load(&self) -> u64 {
        self.load(Acquire)
    }

    fn store(&self, word: u64) {
        self.store(word, Release);
    }
}

/// Both lines of a key, the one with the lower number first, and whether the key was told to be there.
#[derive(Default)]
struct Lines {
    low: [AtomicU64; 1],
    high: [AtomicU64; 1],
    told: AtomicBool,
}

impl Lines {
    fn ascending(&self) -> [&[AtomicU64]; 2] {
        [&self.low, &self.high]
    }
}

const TAG: u16 = 0x8001;

/// The only copy that is always there changes its line twice, by copies that are added to the other and removed again. It does not
/// matter of which key they are: of two that share the tag and both lines, the first line of one may be the second of the other. Fails
/// if loads are relaxed, or if stores are, or if a reader or `take` begins with the other line.
#[test]
fn a_reader_misses_no_key_of_which_a_copy_is_always_there() {
    loom::model(|| {
        let lines = Arc::new(Lines::default());
        assert!(put(&lines.low, TAG));
        let reader = Arc::clone(&lines);
        let reader = spawn(move || assert!(holds(reader.ascending(), TAG)));
        assert!(put(&lines.high, TAG));
        assert!(take(lines.ascending(), TAG));
        assert!(put(&lines.low, TAG));
        assert!(take(lines.ascending(), TAG));
        reader.join().unwrap();
        assert!(take(lines.ascending(), TAG));
        assert!(!take(lines.ascending(), TAG) && !holds(lines.ascending(), TAG));
    });
}

/// Fails if a store could take another lane of its word with it.
#[test]
fn other_tags_of_a_word_come_and_go() {
    loom::model(|| {
        let lines = Arc::new(Lines::default());
        assert!(put(&lines.high, TAG) && put(&lines.high, 7));
        let reader = Arc::clone(&lines);
        let reader = spawn(move || {
            assert!(holds(reader.ascending(), TAG));
            assert!(!holds(reader.ascending(), 9));
        });
        assert!(take(lines.ascending(), 7));
        assert!(put(&lines.high, 8) && put(&lines.high, 10));
        assert_eq!(empty_lanes(&lines.high), 1);
        reader.join().unwrap();
    });
}

/// Fails if an addition could become visible after what tells of it.
#[test]
fn who_learns_of_an_addition_finds_the_key() {
    loom::model(|| {
        let lines = Arc::new(Lines::default());
        let writer = Arc::clone(&lines);
        let writer = spawn(move || {
            assert!(put(&writer.high, TAG));
            writer.told.store(true, Release);
            assert!(put(&writer.low, TAG));
            assert!(take(writer.ascending(), TAG));
        });
        if lines.told.load(Acquire) {
            assert!(holds(lines.ascending(), TAG));
        }
        writer.join().unwrap();
        assert!(holds(lines.ascending(), TAG));
    });
}
