//! A reader and a writer whose steps fall between the reader's loads: every interleaving, one after
//! the other. tests/loom covers those that only a weaker memory shows.

use core::array::from_fn;
use core::cell::Cell;
use core::sync::atomic::Ordering;

use super::word::{Word, contains, insert, remove};
use crate::RemovableOptions;

const TAG: u16 = 0x8001;

/// Two keys that share a tag and both lines: the first line of one is the second of the other.
const PLACES: [[u32; 2]; 2] = [[0, 1], [1, 0]];

/// Loads of a lookup: two lines of two words.
const LOADS: usize = 4;

#[derive(Clone, Copy)]
enum Step {
    Insert([u32; 2]),
    Remove([u32; 2]),
}

/// Two lines, and a writer that takes each step before one of the reader's loads.
struct Memory<'s> {
    words: [Cell<u64>; LOADS],
    steps: &'s [(usize, Step)],
    taken: Cell<usize>,
    loads: Cell<usize>,
    writing: Cell<bool>,
}

impl Memory<'_> {
    fn lines(&self) -> [[Watched<'_>; LOADS / 2]; 2] {
        from_fn(|line| from_fn(|word| Watched { memory: self, word: line * LOADS / 2 + word }))
    }

    fn write(&self, step: Step) {
        self.writing.set(true);
        match step {
            Step::Insert(place) => assert!(insert(&self.lines(), place, TAG, 0)),
            Step::Remove(place) => assert!(remove(&self.lines(), place, TAG)),
        }
        self.writing.set(false);
    }

    /// Takes the steps due before the reader's next load.
    fn advance(&self) {
        while let Some(&(load, step)) = self.steps.get(self.taken.get())
            && load <= self.loads.get()
        {
            self.taken.set(self.taken.get() + 1);
            self.write(step);
        }
        self.loads.set(self.loads.get() + 1);
    }

    fn copies(&self) -> u32 {
        let lanes = |word: u64| (0..4).map(move |lane| (word >> (16 * lane)) as u16);
        self.words.iter().flat_map(|word| lanes(word.get())).map(|tag| u32::from(tag == TAG)).sum()
    }
}

struct Watched<'m> {
    memory: &'m Memory<'m>,
    word: usize,
}

impl Word for Watched<'_> {
    const LANES: usize = 4;

    fn load(&self, _order: Ordering) -> u64 {
        if !self.memory.writing.get() {
            self.memory.advance();
        }
        self.memory.words[self.word].get()
    }

    fn store(&self, word: u64, _order: Ordering) {
        self.memory.words[self.word].set(word);
    }
}

/// A copy exists all the time and changes its line twice. Fails if a lookup or a removal begins
/// with the key's first line, with the line of the higher number, or at the end of a line.
#[test]
fn a_reader_finds_a_copy_wherever_the_writer_is() {
    let mut interleavings = 0;
    for choice in 0..64 {
        let place = |i: usize| PLACES[choice >> i & 1];
        let steps = [
            Step::Insert(place(2)),
            Step::Remove(place(3)),
            Step::Insert(place(4)),
            Step::Remove(place(5)),
        ];
        for times in 0..(LOADS + 1).pow(4) {
            let time = |i: u32| times / (LOADS + 1).pow(i) % (LOADS + 1);
            let steps: [_; 4] = from_fn(|i| (time(i as u32), steps[i]));
            if !steps.is_sorted_by_key(|(load, _): &(usize, Step)| *load) {
                continue;
            }
            let memory = Memory {
                words: Default::default(),
                steps: &steps,
                taken: Cell::new(0),
                loads: Cell::new(0),
                writing: Cell::new(false),
            };
            memory.write(Step::Insert(place(0)));
            assert!(contains(&memory.lines(), place(1), TAG), "{:?}", steps.map(|(load, _)| load));
            assert_eq!(memory.loads.get(), LOADS);
            memory.advance();
            assert_eq!((memory.taken.get(), memory.copies()), (4, 1));
            interleavings += 1;
        }
    }
    assert_eq!(interleavings, 64 * 70);
}

#[test]
fn readers_look_up_in_the_lines_that_the_filter_had() {
    let filter = RemovableOptions::new(1_000).empty_filter().unwrap();
    let before = filter.lines().as_ptr().addr();
    let writer = filter.into_writer();
    assert_eq!(writer.reader.0.lines.blocks().as_ptr().addr(), before);
    assert_eq!(writer.reader().clone().0.lines.blocks().as_ptr().addr(), before);
}
