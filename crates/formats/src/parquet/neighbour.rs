//! Detects filters of a file that overlap, and finds the next filter of each.
//!
//! If two filters overlap, either may be damaged, so neither is trusted. A filter of unknown length
//! claims only its first byte. If it extends into the next filter, reading its header detects it,
//! and only that filter is an error. To detect it before the next filter is looked up, the headers
//! of all filters before that would have to be read.

/// The neighbour of a filter in its file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Neighbour {
    /// The footer.
    #[default]
    None,
    /// The next filter, at this offset.
    Next(i64),
    /// A filter at this offset, which has bytes in common.
    Overlapping(i64),
}

/// The bytes that a column chunk claims for its filter.
pub(super) struct Claim<'a> {
    /// At least 0.
    pub(super) offset: i64,
    pub(super) length: Option<i32>,
    /// Index of the result.
    pub(super) neighbour: &'a mut Neighbour,
}

impl Claim<'_> {
    /// Returns the length, which is 1 for a filter of unknown or impossible length.
    fn end(&self) -> i64 {
        self.offset.saturating_add(self.length.unwrap_or(1).max(1).into())
    }
}

/// Finds the neighbour of each filter. Cost: one sort.
pub(super) fn find(claims: &mut [Claim<'_>]) {
    claims.sort_unstable_by_key(|claim| claim.offset);
    // If any earlier claim overlaps the next one, then the claim that extends farthest does.
    let mut farthest = 0;
    for i in 1..claims.len() {
        let (before, offset) = (claims[farthest].offset, claims[i].offset);
        if let previous @ Neighbour::None = &mut *claims[i - 1].neighbour {
            *previous = Neighbour::Next(offset);
        }
        if claims[farthest].end() > offset {
            *claims[i].neighbour = Neighbour::Overlapping(before);
            *claims[farthest].neighbour = Neighbour::Overlapping(offset);
        }
        if claims[i].end() > claims[farthest].end() {
            farthest = i;
        }
    }
}
