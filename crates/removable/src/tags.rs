//! The tag scheme: the two lines of a key, and the effect of inserting and removing it. Plain Rust,
//! one key at a time. Every kernel leaves the same lines and returns the same answers.
//!
//! A line is 64 bytes: 32 tags of 16 bits, little-endian, where 0 is an empty lane. For a 64-bit
//! hash `h` and `n` lines:
//!
//! ```text
//! tag(h)    = max(1, h div 2^48)
//! first(h)  = (h mod 2^32) * n div 2^32
//! sum       = (tag * G mod 2^32) * n div 2^32          G = 0x9e3779b9
//! second(h) = (sum - first) mod n
//! ```
//!
//! Since `first + second = sum (mod n)`, a key whose first line is `second` has `first` as its
//! second line: with the tag, each line determines the other. Keys with the same tag in one line
//! therefore share *both* lines and are the same key to the filter. Removing one of them removes a
//! tag that stands for either. If the second line came from a second hash instead of the sum, two
//! keys could share a tag and one line but not the other. Removing one key could then remove the
//! tag of the other, which would be lost although no caller made a mistake.
//!
//! Tags never move. The lines of a key change only when tags are written and emptied, and
//! [concurrent readers](crate::RemovableReader) rely on it.
//!
//! ```
//! use blocked_bloom_removable::tags;
//! let mut lines = [[0; 64]; 3];
//! let hash = 0x9c1c_34f1_0a4e_7ab3;
//! assert!(tags::insert(&mut lines, hash));
//! assert!(tags::contains(&lines, hash));
//! assert!(tags::remove(&mut lines, hash));
//! assert!(!tags::contains(&lines, hash));
//! ```

use blocked_bloom::Block;

/// Tags in a line.
pub const LANES: usize = 32;

/// `G`: 2^32 divided by the golden ratio.
pub(crate) const MULTIPLIER: u32 = 0x9e37_79b9;

/// A key is written to its first line while that line has more empty lanes than this.
///
/// Otherwise it is written to the emptier of its two lines. Choosing the emptier line every time
/// postpones the first rejection in filters of a million keys from 0.912-0.931 of all lanes to
/// 0.920-0.942, but does not reduce rejections when keys come and go. With a value below 8,
/// rejections occur earlier.
pub(crate) const KEEP_EMPTY: u32 = 8;

/// Returns the fraction of absent keys that pass if the fraction `load` of the lanes is in use.
/// Each tag in a key's two lines equals the key's tag with a probability of 1/65,535.
pub(crate) fn false_positive_rate(load: f64) -> f64 {
    -libm::expm1(-2.0 * LANES as f64 * load / 65_535.0)
}

/// The two lines of a key, and its tag.
///
/// ```
/// use blocked_bloom_removable::tags::Place;
/// let place = Place::new(0x9c1c_34f1_0a4e_7ab3, 1_000);
/// assert_eq!((place.first, place.second, place.tag), (40, 70, 0x9c1c));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The preferred line.
    pub first: u32,
    /// The other line. For one key in `n` it is the same line.
    pub second: u32,
    /// The tag, never 0.
    pub tag: u16,
}

impl Place {
    /// Returns the place of a hash among `lines` lines (at least 1).
    #[inline]
    pub fn new(hash: u64, lines: u32) -> Self {
        let tag = ((hash >> 48) as u16).max(1);
        let first = scale(hash as u32, lines);
        let sum = scale(u32::from(tag).wrapping_mul(MULTIPLIER), lines);
        let second =
            if sum >= first { sum - first } else { sum.wrapping_sub(first).wrapping_add(lines) };
        Place { first, second, tag }
    }

    /// Returns the byte offsets of both lines.
    #[inline]
    pub(crate) fn offsets(self) -> [usize; 2] {
        [self.first, self.second].map(|line| line as usize * size_of::<Block>())
    }
}

/// Maps a 32-bit number to a number below `lines` (Lemire's fastrange).
#[inline]
fn scale(number: u32, lines: u32) -> u32 {
    ((u64::from(number) * u64::from(lines)) >> 32) as u32
}

/// Returns the tag in a lane of a line.
#[inline]
fn lane(line: &Block, lane: usize) -> u16 {
    u16::from_le_bytes([line[2 * lane], line[2 * lane + 1]])
}

/// Returns the lowest lane that contains `tag`.
#[inline]
fn find(line: &Block, tag: u16) -> Option<usize> {
    (0..LANES).find(|&i| lane(line, i) == tag)
}

#[inline]
fn set(line: &mut Block, lane: usize, tag: u16) {
    line[2 * lane..2 * lane + 2].copy_from_slice(&tag.to_le_bytes());
}

/// Returns the number of empty lanes of a line.
#[inline]
fn empty_lanes(line: &Block) -> u32 {
    (0..LANES).map(|i| u32::from(lane(line, i) == 0)).sum()
}

/// Returns the number of tags in all lines.
pub(crate) fn count_tags(lines: &[Block]) -> u64 {
    lines.iter().map(|line| LANES as u64 - u64::from(empty_lanes(line))).sum()
}

/// Returns whether the key may be present: a lane of its two lines contains its tag.
///
/// # Panics
///
/// If there are no lines, or more than 2^32 - 1.
pub fn contains(lines: &[Block], hash: u64) -> bool {
    let place = Place::new(hash, count(lines));
    [place.first, place.second].iter().any(|&line| find(&lines[line as usize], place.tag).is_some())
}

/// Inserts a key, or another copy of it: writes its tag into the lowest empty lane of its first
/// line if more than eight lanes of that line are empty. Otherwise it uses the emptier of both
/// lines, or the first if both are equally empty. Returns false, and changes nothing, if both lines
/// are full.
///
/// # Panics
///
/// If there are no lines, or more than 2^32 - 1.
pub fn insert(lines: &mut [Block], hash: u64) -> bool {
    let place = Place::new(hash, count(lines));
    let [first, second] =
        [place.first, place.second].map(|line| empty_lanes(&lines[line as usize]));
    let chosen = match first > KEEP_EMPTY || first >= second {
        true => place.first,
        false => place.second,
    };
    let line = &mut lines[chosen as usize];
    match find(line, 0) {
        Some(lane) => {
            set(line, lane, place.tag);
            true
        }
        None => false,
    }
}

/// Removes one copy of a key: empties the lowest lane that contains its tag. The line with the
/// lower number is searched first. Returns false if neither line contains the tag.
///
/// Concurrent readers read the lines in the same order, which does not depend on which line is the
/// key's first: see [`RemovableReader`](crate::RemovableReader).
///
/// # Panics
///
/// If there are no lines, or more than 2^32 - 1.
pub fn remove(lines: &mut [Block], hash: u64) -> bool {
    let Place { first, second, tag } = Place::new(hash, count(lines));
    for line in [first.min(second), first.max(second)] {
        let line = &mut lines[line as usize];
        if let Some(lane) = find(line, tag) {
            set(line, lane, 0);
            return true;
        }
    }
    false
}

fn count(lines: &[Block]) -> u32 {
    assert!(!lines.is_empty(), "no lines");
    u32::try_from(lines.len()).expect("at most 2^32 - 1 lines")
}
