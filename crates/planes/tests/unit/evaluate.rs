//! Unit tests of `src/evaluate.rs`, which includes this file: a query prefetches exactly the lines
//! that it reads next.

use alloc::vec;
use alloc::vec::Vec;

use super::*;
use crate::watch::{Event, events, note};

/// Memory of several groups. Each plane has its own lines, and every line of a window may be read.
struct Memory {
    groups: Vec<Vec<[u8; 64]>>,
    planes: u32,
    plane_words: usize,
}

impl Memory {
    fn new(groups: usize, planes: u32, plane_words: usize) -> Self {
        let group = vec![[0xff; 64]; planes as usize * plane_words.div_ceil(LINE_WORDS)];
        Memory { groups: vec![group; groups], planes, plane_words }
    }

    fn window(&self, plane: u32, window: &Window) -> Option<&[u8]> {
        let group = self.groups.get(window.group as usize)?;
        let start = plane as usize * self.plane_words.div_ceil(LINE_WORDS) * LINE_BYTES;
        assert!(plane < self.planes);
        group.as_flattened()[start..].get(window.bytes())
    }

    /// The line of a word of a plane, counted over all groups.
    fn line(&self, plane: u32, word: usize) -> usize {
        let group = &self.groups[word / self.plane_words];
        let before = plane as usize * self.plane_words.div_ceil(LINE_WORDS);
        group.as_ptr().addr() / 64 + before + word % self.plane_words / LINE_WORDS
    }
}

/// While a line is read, the line 4 KiB ahead in the same plane is prefetched once, in any group.
/// Nothing else is prefetched.
#[test]
fn windows_prefetch_what_is_read_next() {
    for (groups, plane_words) in [(1, 2_048), (3, 1_024), (5, 512), (9, 64), (80, 8)] {
        for planes in 1..=4_u32 {
            let memory = Memory::new(groups, planes, plane_words);
            let terms = Terms { all: (0..planes).collect(), any: Vec::new() };
            let words = groups * plane_words;
            let mut answers = vec![0; words];
            let read = |plane, window: &Window| {
                let found = memory.window(plane, window);
                // Each window requests the first plane twice: once to read it, once to prefetch
                // it.
                if plane == 0 {
                    note(Event::Window);
                }
                found
            };
            let all = events(|| evaluate(&terms, 0, plane_words, read, &mut answers));
            assert!(answers.iter().all(|&word| word == u64::MAX));
            let mut expected: Vec<Event> = Vec::new();
            let mut first = 0;
            while first < words {
                let step = WINDOW_WORDS.min(plane_words - first % plane_words).min(words - first);
                expected.extend([Event::Window; 2]);
                for line in 0..step / LINE_WORDS {
                    // The window 4 KiB ahead, as far as it exists.
                    let later = first + PREFETCH_WORDS;
                    let start = later - later % plane_words % WINDOW_WORDS;
                    let word = start + line * LINE_WORDS;
                    for plane in 0..planes {
                        if word < words && word / plane_words == later / plane_words {
                            expected.push(Event::Line(memory.line(plane, word)));
                        }
                    }
                }
                first += step;
            }
            let found: Vec<Event> = all
                .into_iter()
                .filter(|event| match event {
                    Event::Window => true,
                    // After the last row, an empty slice.
                    Event::Line(line) => memory.groups.iter().any(|group| {
                        let start = group.as_ptr().addr() / 64;
                        (start..start + group.len()).contains(line)
                    }),
                })
                .collect();
            assert!(found == expected, "{groups} groups of {plane_words} words, {planes} planes");
        }
    }
}
