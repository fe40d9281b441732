//! Unit tests of `src/classical/`, which includes this file: which cache lines batches prefetch,
//! and how long before they read them.

use alloc::vec;
use alloc::vec::Vec;

use super::batch::contains_all;
use super::bit_array::BitArray;
use super::{ClassicalFilter, ClassicalShape, Scheme, Walk};
use crate::watch::{Event, events, lines, note};

/// Eight bits for a byte, and an event for each position that is computed: where a line is
/// prefetched, and where a bit is read or set.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Watched;

const POSITION: Event = Event::Ran("position");

impl Scheme for Watched {
    type Hash = u64;

    fn header_bytes(self) -> usize {
        0
    }

    fn hash_key(self, key: &[u8]) -> u64 {
        key.len() as u64
    }

    fn walk(self, hash: u64) -> Walk {
        Walk { next: hash, step: 0x9e37_79b9_7f4a_7c15 }
    }

    fn dividend(self, number: u64) -> u64 {
        note(POSITION);
        number
    }

    fn byte_flip(self) -> u64 {
        0
    }
}

fn shape(probes: u32, bytes: usize) -> ClassicalShape<Watched> {
    ClassicalShape::from_parts(Watched, probes, 8 * bytes as u64, 8 * bytes as u64)
}

fn hashes(count: u64) -> Vec<u64> {
    (0..count).map(|key| (key + 7).wrapping_mul(0xd134_2543_de82_ef95)).collect()
}

/// The lines of a key's probes.
fn probed_lines(bytes: &[u8], probes: u32, hash: u64) -> Vec<usize> {
    let walk = Watched.walk(hash);
    (0..u64::from(probes))
        .map(|i| walk.next.wrapping_add(i.wrapping_mul(walk.step)) % (8 * bytes.len() as u64) / 8)
        .map(|byte| (bytes.as_ptr().addr() + byte as usize) / 64)
        .collect()
}

/// More than fits the cache, by a byte; and what just fits.
const LARGE: usize = (256 << 10) + 1;
const SMALL: usize = 256 << 10;

/// A group's first lines, the other lines of the group before it, and the bits of the one before
/// that.
#[test]
fn batches_prefetch_group_by_group() {
    for probes in [1, 2, 3, 7] {
        for count in [0, 1, 31, 32, 33, 64, 100] {
            let hashes = hashes(count);
            let mut words = vec![0; hashes.len().div_ceil(64)];
            for present in [true, false] {
                let bytes = vec![if present { 0xff } else { 0 }; LARGE];
                let array = BitArray::new(&bytes, shape(probes, LARGE));
                let found = events(|| contains_all(array, hashes.iter().copied(), &mut words));
                let mut expected = Vec::new();
                let groups: Vec<&[u64]> = hashes.chunks(32).collect();
                let group =
                    |i: Option<usize>| i.and_then(|i| groups.get(i)).copied().unwrap_or(&[]);
                let first = probes.min(2) as usize;
                for i in 0..groups.len() + 2 {
                    for &hash in group(Some(i)) {
                        let lines = probed_lines(&bytes, probes, hash);
                        expected.extend(vec![POSITION; first]);
                        // A key's only line twice.
                        expected.extend([0, first - 1].map(|i| Event::Line(lines[i])));
                    }
                    if !present {
                        continue;
                    }
                    for &hash in group(i.checked_sub(1)) {
                        for &line in &probed_lines(&bytes, probes, hash)[first..] {
                            expected.extend([POSITION, Event::Line(line)]);
                        }
                    }
                    let read = group(i.checked_sub(2)).len() * (probes as usize - first);
                    expected.extend(vec![POSITION; read]);
                }
                assert_eq!(found, expected, "{probes} probes, {count} keys, {present}");
            }
            let bytes = vec![0xff; SMALL];
            let array = BitArray::new(&bytes, shape(probes, SMALL));
            let found = events(|| contains_all(array, hashes.iter().copied(), &mut words));
            assert!(lines(&found).is_empty());
        }
    }
}

/// All lines of the key that comes sixteen later, before a key's bits are set.
#[test]
fn insertions_prefetch_the_lines_of_later_keys() {
    for count in [0, 1, 15, 16, 17, 100] {
        let (hashes, probes) = (hashes(count), 5);
        let mut filter = ClassicalFilter::from_parts(shape(probes, LARGE), vec![0; LARGE]);
        let start = hashes.iter().take(16);
        let later = hashes.iter().skip(16).map(Some).chain([None; 16]).take(hashes.len());
        let mut expected = Vec::new();
        let prefetch = |expected: &mut Vec<Event>, hash: u64| {
            for line in probed_lines(filter.as_bytes(), probes, hash) {
                expected.extend([POSITION, Event::Line(line)]);
            }
        };
        start.for_each(|&hash| prefetch(&mut expected, hash));
        for later in later {
            later.into_iter().for_each(|&hash| prefetch(&mut expected, hash));
            expected.extend(vec![POSITION; probes as usize]);
        }
        let found = events(|| filter.insert_hashes(&hashes));
        assert_eq!(found, expected, "{count} keys");
        let mut filter = ClassicalFilter::from_parts(shape(probes, SMALL), vec![0; SMALL]);
        assert!(lines(&events(|| filter.insert_hashes(&hashes))).is_empty());
    }
}
